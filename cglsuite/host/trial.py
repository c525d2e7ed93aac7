"""New plugins are first loaded in a separate process, so that none can end, crash, block or change this one.

Verdicts are cached until the distribution is reinstalled; bad ones for a day at most, since the machine may have been at fault.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cglsuite.base.atomic import new_file
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.environment import variable
from cglsuite.base.hashing import digest
from cglsuite.host.discovery import CORE, Candidate, Gate, normalised

if TYPE_CHECKING:
    from cglsuite.host.doctor import Fault

__all__ = ["TIMEOUT", "TIMEOUT_S", "dangerous"]

TIMEOUT = "CGLSUITE_PLUGINS_TIMEOUT"

TIMEOUT_S = 60.0
"""Default time limit in seconds for one step of one plugin (its import, one hook); see ``CGLSUITE_PLUGINS_TIMEOUT``."""
_BAD_FOR_S = 24 * 3600
_TRIAL = 2  # verdicts of older trials with fewer checks are ignored
_log = logging.getLogger(__name__)


def dangerous(candidates: Iterable[Candidate]) -> dict[tuple[str, str, str], Fault]:
    """The faults, by key, of plugins that must not be loaded here: they end or crash the process, hang, or change global state
    (threads, descriptors, the working folder, the environment, the suite's own functions, ...).

    Known plugins cost a cache lookup; all new ones together cost one child process, plus one for each plugin that ends it.

    Args:
        candidates: the plugins to load, after block and allow lists.

    Raises:
        UsageError: ``CGLSUITE_PLUGINS_TIMEOUT`` is not a number of seconds.
    """
    faults: dict[tuple[str, str, str], Fault] = {}
    new = list(_not_known(candidates, faults))
    if new:
        _try(new, _timeout_s(), faults)
    return faults


def _timeout_s() -> float:
    given: float | None = variable(TIMEOUT)
    return TIMEOUT_S if given is None else given


def _not_known(candidates: Iterable[Candidate], faults: dict[tuple[str, str, str], Fault]) -> Iterator[Candidate]:
    """The candidates without a verdict; bad verdicts go to ``faults``."""
    for candidate in candidates:
        if normalised(candidate.distribution) == CORE or candidate.problem:
            continue
        verdict = _read(_place(candidate))
        if verdict is None:
            yield candidate
        elif verdict:
            from cglsuite.host.doctor import Fault

            faults[candidate.key] = Fault(**verdict)


def _try(new: list[Candidate], timeout_s: float, faults: dict[tuple[str, str, str], Fault]) -> None:
    from cglsuite.host.doctor import Examiner, left_fault

    examiner = Examiner(timeout_s=timeout_s, deep=False, gate=Gate(frozenset(), None), stop=threading.Event())
    left = new
    while left:
        visit = examiner.visit(left, timeout_s, deep=False)
        if visit.report is None:
            culprit = next((c for c in left if c.key == visit.plugin), None)
            if culprit is None:  # Python itself did not start: no plugin is to blame
                return
            faults[culprit.key] = _condemn(culprit, visit.fault(culprit.distribution))
            left = [c for c in left if c is not culprit]
            continue
        changed = {tuple(key): changes for key, changes in visit.report["left"]}
        tried = {tuple(key) for key in visit.report["tried"]}  # all, or those up to a plugin that spoils the process
        for candidate in (c for c in left if c.key in tried):
            if candidate.key in changed:
                faults[candidate.key] = _condemn(candidate, left_fault(candidate.distribution, changed[candidate.key]))
            else:
                _write(_place(candidate), {})
        left = [c for c in left if c.key not in tried]


def _condemn(culprit: Candidate, verdict: Fault) -> Fault:
    """Store a bad verdict; return the fault as reported."""
    from cglsuite.host.doctor import Fault

    place = _place(culprit)
    fault = Fault(error=verdict.error, fix=f"{verdict.fix}; to try it again, delete {place}")
    _log.debug("trial of %s: %s", culprit.distribution, fault.error)
    _write(place, {"error": fault.error, "fix": fault.fix})
    return fault


def _place(candidate: Candidate) -> Path:
    """The cache file of a candidate's verdict; reinstalling the distribution changes it."""
    where = getattr(candidate.entry_point.dist, "_path", None)  # the metadata's folder, written at installation
    stamp: list[object] = [str(where)]
    with contextlib.suppress(OSError, TypeError):
        stamp.append(os.stat(where).st_mtime_ns)  # type: ignore[arg-type]
    return DataRoot.from_environment().cache / "plugins" / f"{digest([_TRIAL, *candidate.key, candidate.version, *stamp])}.json"


def _read(place: Path) -> dict[str, str] | None:
    """A cached verdict: empty = harmless, else the fault; ``None`` if there is no valid one."""
    with contextlib.suppress(OSError, ValueError):
        verdict: dict[str, str] = json.loads(place.read_text(encoding="utf-8"))
        if not verdict or time.time() - place.stat().st_mtime < _BAD_FOR_S:
            return verdict
    return None


def _write(place: Path, verdict: dict[str, str]) -> None:
    """Store a verdict if the cache is writable; otherwise the plugin is tried again next time."""
    with contextlib.suppress(OSError), new_file(place, durable=False) as file:
        file.write(json.dumps(verdict).encode())
