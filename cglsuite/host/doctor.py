"""Examine every plugin in a separate process, so that plugins that exit, crash or hang are identified."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cglsuite.base.atomic import new_file
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.environment import variable
from cglsuite.base.hashing import digest
from cglsuite.base.helpers import Helper
from cglsuite.host.discovery import BLOCK, CORE, Candidate, Gate, PluginRecord, find_candidates, normalised
from cglsuite.host.hookspecs import HOOKS
from cglsuite.host.loading import blocked

_PROBE = "cglsuite.host.probe"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault and its fix."""

    error: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The faults of one plugin or, if ``record`` is ``None``, of all healthy plugins loaded together."""

    record: PluginRecord | None
    faults: tuple[Fault, ...] = ()


def diagnose(*, timeout_s: float = 60.0, deep: bool = False, gate: Gate | None = None) -> list[Diagnosis]:
    """Examine each installed plugin in a separate process, and then all healthy ones together. No plugin is imported in this process.

    Args:
        timeout_s: the time limit in seconds for one step of a plugin, including the start of Python.
        deep: also import every factory that the plugins name (slow: this imports torch).
        gate: block and allow lists; default: the environment's.

    Returns:
        One diagnosis per plugin, sorted as in the catalogue. If names collide or plugins interfere, another one is added at the end.
    """
    candidates = find_candidates()
    examiner = Examiner(timeout_s=timeout_s, deep=deep, gate=gate or Gate.from_environment(), stop=threading.Event())
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        try:
            diagnoses = list(pool.map(examiner.examine, candidates))
        except BaseException:  # Ctrl-C does not reach the children, which have their own sessions
            examiner.stop.set()
            raise
    healthy = [c for c, d in zip(candidates, diagnoses, strict=True) if d.record and d.record.status == "ok"]
    together = examiner.examine_together(healthy)
    return [*diagnoses, *([together] if together.faults else [])]


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """How a child process ended: its final report, or else its last stage and plugin and how it exited."""

    report: dict[str, Any] | None
    stage: str
    plugin: tuple[str, ...] | None
    ending: str
    stderr: str

    def fault(self, name: str) -> Fault:
        where = f"while calling {self.stage}" if self.stage in HOOKS else f"at {self.stage}"
        return Fault(error=f"{self.ending} {where}", fix=f"block it ({BLOCK}={name}) or uninstall it, and tell its authors")


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """Loads plugins in child processes; ``timeout_s`` limits one step of one plugin, including the start of Python."""

    timeout_s: float
    deep: bool
    gate: Gate
    stop: threading.Event

    def examine(self, candidate: Candidate) -> Diagnosis:
        """Examine one plugin by itself."""
        if refusal := self.gate.refusal(candidate.distribution):
            return Diagnosis(record=blocked(candidate, *refusal))
        visit = self.visit([candidate], self.timeout_s, self.deep)
        if visit.report is None:
            fault = visit.fault(candidate.distribution)
            record = replace(blocked(candidate, fault.error, fault.fix), status="failed", details=visit.stderr)
            return Diagnosis(record=record, faults=(fault,))
        record = PluginRecord.from_json(visit.report["records"][0])
        return Diagnosis(record=record, faults=tuple(_faults(record, visit.report)))

    def examine_together(self, healthy: Sequence[Candidate]) -> Diagnosis:
        """Find faults that occur only when healthy plugins share a process: collisions and interference."""
        if len(healthy) < 2:
            return Diagnosis(record=None)
        visit = self.visit(healthy, self.timeout_s, deep=False)
        if visit.report is None:
            return Diagnosis(record=None, faults=(visit.fault("one of them"),))
        failed = [PluginRecord.from_json(r) for r in visit.report["records"] if r["status"] == "failed"]
        disturbed = [Fault(error=f"{r.label} fails only together with the others: {r.error}", fix=r.fix or "") for r in failed]
        return Diagnosis(record=None, faults=(*disturbed, *(Fault(error=e, fix=f) for e, f in visit.report["collisions"])))

    def visit(self, candidates: Sequence[Candidate], timeout_s: float, deep: bool) -> _Visit:
        """Load the candidates in a child process with the same module path, and read its report."""
        with tempfile.TemporaryDirectory(prefix="cglsuite-doctor-") as folder:
            report, output, errors = Path(folder, "report.jsonl"), Path(folder, "stdout.txt"), Path(folder, "stderr.txt")
            words = (_PROBE, str(report), json.dumps([c.key for c in candidates]), "1" if deep else "0")
            with output.open("wb") as written, errors.open("wb") as stream:
                child = Helper(
                    *words, limit_s=2 * timeout_s,
                    stdin=subprocess.DEVNULL, stdout=written, stderr=stream, cwd=folder, start_new_session=True,
                )  # fmt: skip
                ending = self._wait(child, timeout_s, report)
            lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()] if report.exists() else []
            final = lines[-1] if lines and lines[-1].get("records") else None
            stages = [line for line in lines if "stage" in line]
            last = stages[-1] if stages else {"stage": "start"}
            stderr = errors.read_text(encoding="utf-8", errors="replace")[-4000:]
            plugin = tuple(last["plugin"]) if "plugin" in last else None
            return _Visit(report=final, stage=last["stage"], plugin=plugin, ending=ending, stderr=stderr)

    def _wait(self, child: subprocess.Popen[bytes], timeout_s: float, report: Path) -> str:
        """Wait for the child and return how it ended; if a step takes too long, kill it and all its children."""
        deadline, written = time.monotonic() + timeout_s, 0
        while not self.stop.is_set() and time.monotonic() < deadline:
            if (size := report.stat().st_size if report.exists() else 0) > written:
                deadline, written = time.monotonic() + timeout_s, size
            try:
                code = child.wait(min(0.2, timeout_s))
            except subprocess.TimeoutExpired:
                continue
            return f"is killed by {signal.Signals(-code).name}" if code < 0 else f"ends the process (exit code {code})"
        os.killpg(child.pid, signal.SIGKILL)  # not reaped yet, so the pid is still the child's
        child.wait()
        return f"hangs: no progress for {timeout_s:g} s"


def leftover_fault(name: str, changes: Sequence[str]) -> Fault:
    """Return the fault of a plugin that changes the state of the process on import."""
    return Fault(
        error=f"changes the state of the process that loads it: {'; '.join(changes)}",
        fix=f"its authors should make such changes only when they are needed, not on import; until then, block it ({BLOCK}={name})",
    )


def _faults(record: PluginRecord, report: dict[str, Any]) -> Iterable[Fault]:
    if record.status == "failed":
        yield Fault(error=record.error or "failed", fix=record.fix or "")
    for key, changes in report["left"]:
        yield leftover_fault(key[0], changes)
    if report["heavy"]:
        yield Fault(
            error=f"listing it imports {' and '.join(report['heavy'])}, which slows down every command by seconds",
            fix="its authors should import it in the module that the factory string names, not in the module with the hooks",
        )
    for message in report["factories"]:
        yield Fault(error=message, fix=f"install another version of {record.distribution}, or the missing module named above")


# New plugins are first loaded in a separate process, so that none can end, crash, block or change this one.
# Verdicts are cached until the distribution is reinstalled; bad ones for a day at most, since the machine may have been at fault.

TIMEOUT = "CGLSUITE_PLUGINS_TIMEOUT"

TIMEOUT_S = 60.0
"""Default time limit in seconds for one step of one plugin (its import, one hook); see ``CGLSUITE_PLUGINS_TIMEOUT``."""
_BAD_FOR_S = 24 * 3600
_TRIAL = 2  # verdicts of older trials with fewer checks are ignored
_log = logging.getLogger(__name__)


def find_faults(candidates: Iterable[Candidate]) -> dict[tuple[str, str, str], Fault]:
    """Return the faults, by key, of plugins that must not be loaded in this process because they exit, crash, hang, or change global state
    (threads, descriptors, the working folder, the environment, the suite's own functions, ...).

    A known plugin needs only a cache lookup. All new plugins share one child process, which is restarted after each plugin that ends it.

    Args:
        candidates: the plugins to load, after block and allow lists.

    Raises:
        UsageError: ``CGLSUITE_PLUGINS_TIMEOUT`` is not a number of seconds.
    """
    faults: dict[tuple[str, str, str], Fault] = {}
    new = list(_without_verdict(candidates, faults))
    if new:
        _try_plugins(new, _timeout_s(), faults)
    return faults


def _timeout_s() -> float:
    seconds: float | None = variable(TIMEOUT)
    return TIMEOUT_S if seconds is None else seconds


def _without_verdict(candidates: Iterable[Candidate], faults: dict[tuple[str, str, str], Fault]) -> Iterator[Candidate]:
    """Yield the candidates without a stored verdict, and add stored bad verdicts to ``faults``."""
    for candidate in candidates:
        if normalised(candidate.distribution) == CORE or candidate.problem:
            continue
        verdict = _read(_verdict_path(candidate))
        if verdict is None:
            yield candidate
        elif verdict:
            faults[candidate.key] = Fault(**verdict)


def _try_plugins(new: list[Candidate], timeout_s: float, faults: dict[tuple[str, str, str], Fault]) -> None:

    examiner = Examiner(timeout_s=timeout_s, deep=False, gate=Gate(frozenset(), None), stop=threading.Event())
    left = new
    while left:
        visit = examiner.visit(left, timeout_s, deep=False)
        if visit.report is None:
            culprit = next((c for c in left if c.key == visit.plugin), None)
            if culprit is None:  # Python itself did not start: no plugin is to blame
                return
            faults[culprit.key] = _store_fault(culprit, visit.fault(culprit.distribution))
            left = [c for c in left if c is not culprit]
            continue
        changed = {tuple(key): changes for key, changes in visit.report["left"]}
        tried = {tuple(key) for key in visit.report["tried"]}  # all, or those up to a plugin that spoils the process
        for candidate in (c for c in left if c.key in tried):
            if candidate.key in changed:
                faults[candidate.key] = _store_fault(candidate, leftover_fault(candidate.distribution, changed[candidate.key]))
            else:
                _write(_verdict_path(candidate), {})
        left = [c for c in left if c.key not in tried]


def _store_fault(culprit: Candidate, verdict: Fault) -> Fault:
    """Store a bad verdict, and return the fault as reported."""

    place = _verdict_path(culprit)
    fault = Fault(error=verdict.error, fix=f"{verdict.fix}; to try it again, delete {place}")
    _log.debug("trial of %s: %s", culprit.distribution, fault.error)
    _write(place, {"error": fault.error, "fix": fault.fix})
    return fault


def _verdict_path(candidate: Candidate) -> Path:
    """Return the cache file of a candidate's verdict. Its name changes when the distribution is reinstalled."""
    where = getattr(candidate.entry_point.dist, "_path", None)  # the metadata's folder, written at installation
    stamp: list[object] = [str(where)]
    with contextlib.suppress(OSError, TypeError):
        stamp.append(os.stat(where).st_mtime_ns)  # type: ignore[arg-type]
    return DataRoot.from_environment().cache / "plugins" / f"{digest([_TRIAL, *candidate.key, candidate.version, *stamp])}.json"


def _read(path: Path) -> dict[str, str] | None:
    """Return a cached verdict: empty if the plugin is harmless, else the fault; ``None`` if there is no valid verdict."""
    with contextlib.suppress(OSError, ValueError):
        verdict: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        if not verdict or time.time() - path.stat().st_mtime < _BAD_FOR_S:
            return verdict
    return None


def _write(path: Path, verdict: dict[str, str]) -> None:
    """Store a verdict if the cache is writable; otherwise the plugin is tried again next time."""
    with contextlib.suppress(OSError), new_file(path, durable=False) as file:
        file.write(json.dumps(verdict).encode())
