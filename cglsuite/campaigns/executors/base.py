"""The interface of executors."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cglsuite.cells.keys as keys
from cglsuite.base.errors import CglsuiteError
from cglsuite.cells.plan import Limits, PlannedCell
from cglsuite.cells.storage.store import Store

if TYPE_CHECKING:
    from cglsuite.cells.observing import Observers
    from cglsuite.host import Catalogue


AGAIN = 75
"""EX_TEMPFAIL: work is left that this process could not or must not do; start another process."""
REFUSED = 69
"""EX_UNAVAILABLE: a machine refuses its share of a plan; its output says why."""


class ExecutorError(CglsuiteError):
    """Workers cannot be started, or exit before they start any cell."""


class UnreachableError(ExecutorError):
    """An engine does not answer, so the state of its jobs is unknown; they may still be running."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to run a list of cells.

    Args:
        catalogue: the catalogue used to resolve the cells.
        workers: number of processes. limits: of one cell.
        detach: return once other machines have been asked to run the cells; only for executors that can.
        share_prefixes: whether cells that begin with the same tasks share the training of those tasks.
        retry: statuses (``diverged``, ``skipped``) whose cells are tried again, although their outcome is settled.
        label: title of the progress bar; progress: whether there is one.
        watch: observers by name, with absolute folders; a supervisor that runs elsewhere makes its own from them.
        observers: those of this process, with the named ones; supervisors tell them what their workers do.
    """

    catalogue: Catalogue
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    share_prefixes: bool = True
    retry: Sequence[str] = ()
    label: str = "cells"
    progress: bool = True
    detach: bool = False
    watch: Sequence[str] = ()
    observers: Observers | None = None


class Executor(Protocol):
    """Runs cells; the contract does not depend on where they run.

    Cells whose record is ``done`` are skipped, as are settled ones that ``retry`` does not name
    (:meth:`cglsuite.cells.records.record.Record.settled_on`); each of the others is run once, under a lease, even if several runners share
    the store. A worker that dies costs only its cell, whose record gives the reason. On ``KeyboardInterrupt`` the executor stops its
    workers and keeps finished cells.
    """

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run the missing cells and return how many of ``cells`` have no ``done`` record afterwards (N/A and waiting cells do not count).

        Raises:
            StoreError: the store cannot be written.
            ExecutorError: no worker starts a cell.
        """


@dataclass(frozen=True, kw_only=True)
class Job:
    """A plan that several machines work through: ``parts`` supervisors, each starting at its own section of the plan.

    Args:
        name: unique, of lower-case letters, digits and ``-``. engine: the executor's name.
        folder: of this job alone, on a file system that all machines share; holds the plan and the parts' output.
        cpus: what one part uses at once: its workers' threads. python: the interpreter on the other machines.
    """

    name: str
    engine: str
    folder: Path
    store: Path
    parts: int
    cpus: int = 1
    python: str = sys.executable

    @property
    def plan(self) -> Path:
        """The plan file; supervisors stop once it is gone."""
        return self.folder / "plan.json"

    def words(self, part: int | str, *, id: str = "") -> tuple[str, ...]:
        """The command line that works on ``part``; ``id`` is the part's number in the engine, for records."""
        command = (self.python, "-P", "-m", "cglsuite.campaigns.executors.node", str(self.plan))
        named = ("--engine", self.engine, "--name", self.name, *(("--id", id) if id else ()))
        return (*command, "--store", str(self.store), "--share", str(part), str(self.parts), *named)

    def log(self, part: int | str) -> Path:
        """The log file of ``part``, whose last lines explain a failure."""
        return self.folder / f"part-{part}.log"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a part ended.

    ``ok``: it found nothing more to do. ``again``: it was stopped (its time was up, another job came first, its machine failed), and is
    to be started again. Neither: it failed, and would fail again. ``reason`` says it in words.
    """

    ok: bool
    again: bool = False
    reason: str = ""

    @classmethod
    def by_status(cls, status: int) -> Ended:
        """The outcome for the exit status of a part's command; a negative status is a signal number."""
        if status == 0:
            return cls(ok=True)
        if status < 0 or status > 128:
            number = -status if status < 0 else status - 128
            name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"
            return cls(ok=False, again=True, reason=f"ended by {name}")
        return cls(ok=False, again=status == AGAIN, reason="stopped before its end" if status == AGAIN else f"exit status {status}")


class Launcher(Protocol):
    """The interface of an engine's plugin: launch, poll, cancel. Plans, progress, retries, time limits and failed cells are the core's.

    An engine with a queue may have a fourth, ``waiting(ids)``: those of the parts that do not run yet.
    """

    parts: int
    """The most supervisors of one job, running at once or in succession."""

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        """Start ``parts`` of ``job``, and return the engine's name for each of them.

        Called again with the same job for parts that are to be started again, and when the first answer was lost: an engine that can look
        a job up by its name returns the names of those parts that are alive.

        Raises:
            ExecutorError: the engine refuses; the message says why.
            UnreachableError: the engine does not answer.
        """

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        """Those of the parts in ``ids`` that have ended, with how.

        Raises:
            UnreachableError: the engine does not answer, so that nothing is known.
        """

    def cancel(self, ids: Mapping[int, str]) -> None:
        """End these parts; ids of parts that have already ended are ignored.

        Raises:
            UnreachableError: the engine does not answer.
        """


# Which unfinished cells need which checkpoints: a checkpoint is removed with the last cell that needs it.


class Families:
    """Groups of cells that share checkpoints, with the number of unfinished cells in each."""

    def __init__(self, store: Store, options: RunOptions) -> None:
        self.store, self.options = store, options
        self._unfinished = Counter[str]()
        self._of: dict[str, list[str]] = {}

    def count(self, cells: Iterable[PlannedCell], unfinished: Container[str]) -> None:
        """Register the cells whose keys are ``unfinished``, and remove the checkpoints that only the other ``cells`` needed."""
        needless = set()
        saved = self.store.has_checkpoints()
        for planned in cells:
            if planned.cell is None or not (saved or planned.key in unfinished):
                continue
            names = list(keys.prefix_keys(planned.cell, self.options.catalogue))
            if planned.key in unfinished:
                self._unfinished.update(names)
                self._of[planned.key] = names
            else:
                needless.update(names)
        self.store.drop_checkpoints(sorted(needless - self._unfinished.keys()))

    def sharing(self) -> dict[str, str]:
        """The family of every cell that shares one."""
        if not self.options.share_prefixes:
            return {}
        return {key: names[0] for key, names in self._of.items() if names and self._unfinished[names[0]] > 1}

    def release(self, key: str) -> None:
        """Mark ``key`` as finished: its checkpoints are removed with the last cell that needs them."""
        for name in self._of.pop(key, ()):
            self._unfinished[name] -= 1
            if self._unfinished[name] <= 0:
                self.store.drop_checkpoints([name])
