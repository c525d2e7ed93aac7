"""Helper processes that run checks, such as the judge of methods. Crashes of these processes are detected and reported.

A request is a header followed by a pickle. The header contains the size, a token that every answer repeats, and whether the request needs
:func:`further_processes`. An answer is a line of JSON. :meth:`HelperProcess.ask` is the client and :func:`requests_on` the server. The
judge (:class:`Judge`) loads no plugins, holds the hidden labels, and runs the method in separate processes, because the calling process has
imported plugins and may hold the method of a single-module plugin in memory. The caller sends specs, which are plain data, and prints the
findings.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import secrets
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import TracebackType
from typing import Any, Self

from cglsuite.base.errors import NotApplicable, PluginError
from cglsuite.base.helpers import Helper, module_path
from cglsuite.host import Catalogue, Entry
from cglsuite.specs import KINDS
from cglsuite.testing.findings import CheckFailed, CheckReport, Finding, OnFinding, source_of
from cglsuite.testing.streams import FINE_TUNING

_HEAD = struct.Struct(">Q8s?")
_ADVICE = "raise an error that says what is wrong; never end the process"


def requests_on(line: socket.socket) -> Iterator[tuple[bytes, bool, Callable[..., None]]]:
    """Yield each request on a socket: the pickle, whether it needs :func:`further_processes`, and a function that sends answers."""
    incoming = line.makefile("rb")
    while head := incoming.read(_HEAD.size):
        size, turn, compares = _HEAD.unpack(head)
        yield incoming.read(size), compares, partial(_answer, line, turn.hex())


def _answer(line: socket.socket, turn: str, **facts: Any) -> None:
    line.sendall(json.dumps({"turn": turn, **facts}).encode() + b"\n")


class ProcessEnded(PluginError):
    """The process ended without answering. The message describes how it ended."""


class HelperProcess:
    """A helper process that runs ``module``. Exiting the context manager ends the process.

    Args:
        environment: additional environment variables.
    """

    _compares = False
    """Whether answers need :func:`same_everywhere`. If so, the helper starts the processes for it once, before forking."""

    def __init__(self, module: str, **environment: str) -> None:
        self._mine, theirs = socket.socketpair()
        number, variables = theirs.fileno(), os.environ | environment
        self._process = Helper(module, str(number), pass_fds=(number,), env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        theirs.close()
        self._lines = self._mine.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._lines.close()
        self._mine.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        self._process.kill()
        self._process.wait()

    def ask(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Yield the answers to a request. The caller must stop after the last one.

        Raises:
            ProcessEnded: the process ended, so there are no more answers.
        """
        blob, turn = pickle.dumps(request), secrets.token_bytes(8)
        with contextlib.suppress(ConnectionError):
            self._mine.sendall(_HEAD.pack(len(blob), turn, self._compares) + blob)
            for line in self._lines:
                answer: dict[str, Any] = json.loads(line)
                if answer.pop("turn") != turn.hex():  # an answer to an earlier, abandoned request
                    continue
                if "ended" in answer:
                    raise ProcessEnded(answer["ended"])
                yield answer
        raise ProcessEnded("the process no longer exists")


def _request(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    """Return the data that a process needs to serve a request: the specs, which are plain data, and the locations of code and files."""
    return {
        "kind": entry.kind,
        "name": entry.name,
        "entries": [entry for kind in KINDS for entry in catalogue.entries(kind)],
        "records": list(catalogue.records),
        "path": module_path(),
        "environment": {name: value for name, value in os.environ.items() if name.startswith("CGLSUITE_")},
    }


class Examiner(HelperProcess):
    """Checks entries of any kind except methods in a separate process, so that a crash is reported as a finding."""

    _compares = True

    def __init__(self) -> None:
        super().__init__("cglsuite.testing.staged.examining")

    def examine(self, entry: Entry, catalogue: Catalogue, *, on_finding: OnFinding | None = None, **options: Any) -> CheckReport:
        """Check a catalogue entry and return the findings.

        Args:
            on_finding: called with each finding immediately. options: options of :func:`cglsuite.testing.examine`.
        """
        findings, checks = list[Finding](), tuple[str, ...]()
        try:
            for answer in self.ask(**_request(catalogue, entry), options=options):
                if "checks" in answer:
                    checks = tuple(answer["checks"])
                    continue
                findings.append(Finding(**answer))
                if on_finding is not None:
                    on_finding(findings[-1])
        except ProcessEnded as ended:
            if not checks:
                after = f", after the check {findings[-1].check!r}" if findings else ""
                message = f"{entry.kind} {entry.name!r} ends its process ({ended}{after})"
                findings.append(Finding(check="process", status="failed", message=message, fix=_ADVICE))
        facts = {"kind": entry.kind, "name": entry.name, "provider": entry.provider, "installation": entry.record.installation}
        return CheckReport(**facts, findings=tuple(findings), checks=checks or ("process",), source=source_of(entry))


def further_processes() -> list[HelperProcess]:
    """Return the two additional processes that :func:`same_everywhere` uses for comparison."""
    return [_further_process(1), _further_process(2)]


@cache
def _further_process(number: int) -> HelperProcess:
    """Return one of two processes with different hash seeds. They run until this process ends."""
    other = HelperProcess("cglsuite.testing.staged.examining", PYTHONHASHSEED=str(number))
    atexit.register(other.close)
    return other


def same_everywhere(catalogue: Catalogue, entry: Entry, outcomes: Callable[[Catalogue, Entry], Iterator[tuple[str, str]]]) -> None:
    """Check that an entry gives the same results here and in two processes with different hash seeds, process ids and memory layouts.

    Args:
        outcomes: the function for the entry's kind from :data:`cglsuite.testing.checks.OUTCOMES`.

    Raises:
        CheckFailed: the results differ, or the entry fails in another process. NotApplicable: its data are not available on this machine.
    """
    outcomes_by_process = [list(outcomes(catalogue, entry))]
    for other in further_processes():
        try:
            answer = next(answers := other.ask(**_request(catalogue, entry)))
            with contextlib.suppress(ProcessEnded):
                next(answers)
        except ProcessEnded as ended:
            raise CheckFailed(f"{entry.kind} {entry.name!r} terminates the separate process in which it runs ({ended})", _ADVICE) from None
        if "absent" in answer:
            raise NotApplicable(answer["absent"])
        if "failed" in answer:
            raise CheckFailed(f"it fails in another process: {answer['failed']}", "depend only on the arguments")
        outcomes_by_process.append([(what, digest) for what, digest in answer["outcomes"]])
    for values in zip(*outcomes_by_process, strict=True):
        if len(set(values)) > 1:
            raise CheckFailed(
                f"{values[0][0]} differs between processes",
                "use only the arguments: hash() of a string, the order of a set, id(), times and process ids differ between processes",
            )


class Judge(HelperProcess):
    """The client of the judge process. Exiting the context manager ends the process."""

    def __init__(self) -> None:
        super().__init__("cglsuite.testing.judge.process")

    def examine(self, name: str, catalogue: Catalogue, *, on_finding: OnFinding | None = None, **options: Any) -> CheckReport:
        """Check a method of the catalogue and return the findings.

        Args:
            on_finding: called with each finding immediately. options: ``quick``, ``scenarios``, ``seed``.

        Raises:
            UnknownNameError: there is no such method. PluginError: the judge process has ended.
        """
        entries = [e for kind in ("backbone", "dataset") for e in catalogue.entries(kind) if not e.name.startswith("testing-")]
        if name != FINE_TUNING:
            entries.append(catalogue.get("method", name))
        source, copy = ("", "") if name == FINE_TUNING else (source_of(entries[-1]), entries[-1].record.installation)
        records = list({id(entry.record): entry.record for entry in entries}.values())
        findings = list[Finding]()
        try:
            for answer in self.ask(name=name, entries=entries, records=records, path=module_path(), **options):
                if "refused" in answer:
                    raise PluginError(f"method {name!r} cannot be checked: {answer['refused']}")
                if "check" not in answer:
                    break
                findings.append(Finding(**answer))
                if on_finding is not None:
                    on_finding(findings[-1])
        except ProcessEnded:
            raise PluginError(f"the judge process of method {name!r} ended unexpectedly; see its last output on stderr") from None
        reported = tuple(findings)
        return CheckReport(kind="method", name=name, provider=answer["provider"], findings=reported, source=source, installation=copy)
