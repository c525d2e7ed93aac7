"""Results of conformance checks: one finding per check, and one report per catalogue entry."""

from __future__ import annotations

import ast
import importlib.util
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cglsuite.base.errors import CglsuiteError, NotApplicable
from cglsuite.base.markup import displayed
from cglsuite.base.traces import random_state_restored
from cglsuite.host import Entry

Status = Literal["ok", "failed", "skipped"]
OnFinding = Callable[["Finding"], None]
"""A callback that receives each finding as soon as its check has run."""


class CheckFailed(AssertionError):
    """A check failed. ``fix`` tells the author how to fix the problem."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check: what was checked, where (a tiny scenario, or empty), and how to fix a failure.

    Args:
        evidence: the measured values as text; for a method on a stream, the performance matrix. replay: the command that repeats the check.
    """

    check: str
    status: Status
    where: str = ""
    message: str = ""
    fix: str = ""
    evidence: str = ""
    replay: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """All findings about one catalogue entry.

    Args:
        checks: the names of all checks for this entry, including those that were not run.
        source: where the checked object is defined, as ``FILE:LINE``; empty if unknown.
        installation: how the entry's plugin was installed; see :attr:`cglsuite.host.PluginRecord.installation`.
    """

    kind: str
    name: str
    provider: str
    findings: tuple[Finding, ...]
    checks: tuple[str, ...] = ()
    source: str = ""
    installation: str = ""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def failed(self) -> list[Finding]:
        """The findings of failed checks."""
        return [f for f in self.findings if f.status == "failed"]

    @property
    def passed(self) -> bool:
        """Whether at least one check ran and none failed."""
        return not self.failed and any(f.status == "ok" for f in self.findings)

    def _repr_html_(self) -> str:
        return displayed("report_card", self)

    def raise_failures(self) -> None:
        """Raise an error that lists all failed checks, or that no check could be run.

        Raises:
            CheckFailed: at least one check failed, or none could be run. The message lists each failed check and its fix.
        """
        if self.passed:
            return
        lines = [f"{f.check}{f' in {f.where}' if f.where else ''}: {f.message}. To fix it: {f.fix}" for f in self.failed]
        reasons = lines or ["no check could be run: " + "; ".join(dict.fromkeys(f.message for f in self.findings))]
        where = f" ({self.source})" if self.source else ""
        raise CheckFailed("\n".join([f"{self.kind} {self.name!r} of {self.provider}{where} does not conform:", *reasons]), "see each line")


def reported(entry: Entry, findings: Iterable[Finding], on_finding: OnFinding | None = None) -> CheckReport:
    """Collect the findings about an entry in a report. ``on_finding`` is called with each finding immediately."""
    collected = []
    for finding in findings:
        collected.append(finding)
        if on_finding is not None:
            on_finding(finding)
    return CheckReport(
        kind=entry.kind,
        name=entry.name,
        provider=entry.provider,
        findings=tuple(collected),
        source=source_of(entry),
        installation=entry.record.installation,
    )


def source_of(entry: Entry) -> str:
    """Return where an entry's object is defined, as ``FILE:LINE``, or an empty string if looking it up would run its code."""
    spec: Any = entry.spec
    builder = str(getattr(spec, "builder", ""))
    module, _, name = str(getattr(spec, "factory", "" if builder.startswith("cglsuite.") else builder)).partition(":")
    path = entry.record.source if not module else None
    try:
        module_spec = importlib.util.find_spec(module) if module else None
        path = Path(module_spec.origin) if module_spec is not None and module_spec.origin else path
        if path is None or path.suffix != ".py":
            return "" if path is None else str(path)
        body = ast.parse(path.read_bytes()).body
    except (ImportError, ValueError, OSError, SyntaxError):
        return ""
    lines = [node.lineno for node in body if getattr(node, "name", None) == name]
    return f"{path}:{lines[-1]}" if lines else str(path)


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check: its name, its function, where it runs, and the check that must pass first.

    Args:
        action: raises if the check fails; any text it returns is reported. where: as in :class:`Finding`.
        after: the name of the check that must pass first, in the same place if it runs there. If that check fails, this one is neither run
            nor reported.
    """

    name: str
    action: Callable[[], object]
    where: str = ""
    after: str = ""


def examined(entry: Entry, checks: Iterable[Check], on_finding: OnFinding | None = None, only: Sequence[str] = ()) -> CheckReport:
    """Run an entry's checks and return the report.

    Args:
        only: names of the checks to run; empty for all. Their prerequisites also run, and are reported if they fail.
    """
    every = list(checks)
    report = reported(entry, _run_checks(every, only), on_finding)
    return replace(report, checks=tuple(dict.fromkeys(check.name for check in every)))


def _run_checks(checks: Sequence[Check], only: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings of the selected checks in order, running each check once."""
    by_place = {(check.name, check.where): check for check in checks}
    by_name = {check.name: check for check in reversed(checks)}
    last = dict[int, Finding]()

    def finding_of(check: Check) -> Finding:
        """Return the finding of a check, or that of its failed prerequisite."""
        if check.after:
            first = by_place.get((check.after, check.where), by_name[check.after])
            if (before := finding_of(first)).status != "ok":
                return before
        if id(check) not in last:
            last[id(check)] = performed(check.name, check.action, check.where)
        return last[id(check)]

    note = set[int]()
    for check in checks:
        if not only or check.name in only:
            finding = finding_of(check)
            if id(finding) not in note:
                note.add(id(finding))
                yield finding


def performed(check: str, action: Callable[[], object], place: str = "", fix: str = "") -> Finding:
    """Run one check and return its finding. ``action`` raises an error if the check fails; any text it returns becomes the message.

    Args:
        fix: the fix to report for errors that do not provide one.
    """
    try:
        with random_state_restored():
            note = action()
    except NotApplicable as reason:
        return Finding(check=check, status="skipped", where=place, message=str(reason))
    except CheckFailed as failure:
        return Finding(check=check, status="failed", where=place, message=str(failure), fix=failure.fix)
    except Exception as error:  # noqa: BLE001 - an error in third-party code is a finding
        return Finding(check=check, status="failed", where=place, message=error_text(error), fix=fix or "fix the error")
    return Finding(check=check, status="ok", where=place, message=note if isinstance(note, str) else "")


def error_text(error: BaseException) -> str:
    """Return the text of an error, with its type and location if it is a third-party error."""
    if isinstance(error, CglsuiteError):
        return str(error)
    frames: Sequence[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno} in {last.name})"
