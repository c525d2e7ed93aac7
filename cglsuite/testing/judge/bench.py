"""The processes in which methods run during checks, and their protocol with the judge."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError
from cglsuite.base.helpers import module_path
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.hearing import Hearing, Outcome
from cglsuite.testing.judge.nursery import Nursery, NurseryGone
from cglsuite.testing.judge.wire import Near, received_plain

__all__ = ["Bench"]

_LIMIT_S = 120.0
_Talk = tuple[str, str, Callable[[Near, Callable[[], bool]], object]]
"""A name, a method's factory, and the dialogue with its process."""


class Bench:
    """Runs methods in separate processes; a context manager that ends them all.

    Args:
        limit_s: time limit in seconds for all requests to one process.
        path: its module path; default: this process's.
    """

    def __init__(self, *, limit_s: float = _LIMIT_S, path: Sequence[str] | None = None) -> None:
        self.limit_s, self.path = limit_s, module_path() if path is None else list(path)
        self._nursery = Nursery()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._nursery.close()

    def run(self, catalogue: Catalogue, hearings: Iterable[Hearing]) -> list[Outcome]:
        """Serve the hearings one after another in a fresh process.

        Raises:
            CheckFailed: the process ends, hangs, sends invalid data, or leaves processes behind.
            NotApplicable, Refused: as of :meth:`Hearing.serve`.
        """
        outcomes = list[Outcome]()

        def serve(hearing: Hearing, near: Near, ready: Callable[[], bool]) -> None:
            outcomes.append(hearing.serve(near, ready))

        def talks() -> Iterator[_Talk]:
            for hearing in hearings:
                yield hearing.name, hearing.method.factory, partial(serve, hearing)

        self._talk(catalogue, talks())
        return outcomes

    def agree(self, catalogue: Catalogue, entry: Entry, scenario: str) -> dict[str, list[float]]:
        """The first losses of a method on CPU and GPU, by device, from one process.

        Raises:
            CheckFailed: it fails on one of them; or as of :meth:`run`.
        """
        losses = self._answered(catalogue, entry, {"devices": {"catalogue": catalogue, "method": entry.name, "scenario": scenario}})
        return {device: [float(v) for v in losses[device]] for device in ("cpu", "cuda")}

    def describe(self, catalogue: Catalogue, entry: Entry) -> str:
        """The docstring of a method's factory.

        Raises:
            CheckFailed: it cannot be imported; or as of :meth:`run`.
        """
        return str(self._answered(catalogue, entry, {"describe": str(getattr(entry.spec, "factory", ""))})["doc"])

    def _answered(self, catalogue: Catalogue, entry: Entry, request: dict[str, Any]) -> dict[str, Any]:
        """A fresh process's reply to a single request."""
        answer, name = dict[str, Any](), f"{entry.kind} {entry.name!r} of {entry.provider}"

        def hear(near: Near, ready: Callable[[], bool]) -> None:
            near.send(request)
            if not ready():
                raise CheckFailed(f"{name} hangs", "a module should have no side effects on import")
            answer.update(received_plain(near.connection))

        self._talk(catalogue, [(name, str(getattr(entry.spec, "factory", "")), hear)])
        if answer.get("what") != "answered":
            raise CheckFailed(f"{name} fails: {answer.get('reason')}", "repair what the error names")
        return answer

    def _talk(self, catalogue: Catalogue, talks: Iterable[_Talk]) -> None:
        """Run all dialogues in turn with one fresh process."""
        trial, name = self._nursery.begin(), "the method"
        deadline, ended, problem = time.monotonic() + self.limit_s, False, None

        def ready() -> bool:
            return self._nursery.ready(trial, max(0.0, deadline - time.monotonic()))

        try:
            near = Near(trial.connection)
            for i, (current, factory, talk) in enumerate(talks):
                name = current
                if i == 0:
                    loaders = sorted(_loaders(catalogue, factory))
                    raw = [str(folder) for folder in DataRoot.from_environment().folders]
                    near.send({"path": self.path, "loaders": loaders, "data": raw})
                talk(near, ready)
        except (EOFError, ConnectionError):
            ended = True
        except (CglsuiteError, CheckFailed):
            raise
        except Exception as error:  # noqa: BLE001 - an invalid reply of any kind
            problem = error
        finally:
            try:
                status, left = self._nursery.end(trial, patient=ended)
            except NurseryGone:
                self._nursery.close()
                self._nursery = Nursery()
                raise CheckFailed(f"{name} ends the process that started it", "send no signals") from None
        if ended:
            raise CheckFailed(
                f"{name} ends its process ({_status_text(status)})", "raise an error that says what is wrong; never end the process"
            )
        if problem is not None:
            raise CheckFailed(f"{name} sends unreadable data: {type(problem).__name__}: {problem!s:.200}", "do not modify the suite")
        if left:
            processes = "a process" if left == 1 else f"{left} processes"
            raise CheckFailed(f"{name} leaves {processes} behind", "a method should start no processes, and must end those it starts")


def _loaders(catalogue: Catalogue, method: str) -> set[str]:
    """The modules of dataset loaders, which methods must not use; except the method's own module."""
    factories = {str(getattr(entry.spec, "factory", "")).partition(":")[0] for entry in catalogue.entries("dataset")}
    return factories - {method.partition(":")[0], ""}


def _status_text(status: int) -> str:
    """A wait status as text."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {signal.Signals(number).name}"
    return f"exit status {os.waitstatus_to_exitcode(status)}"
