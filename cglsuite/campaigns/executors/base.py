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
"""EX_TEMPFAIL: work is left that this process cannot or must not do; start another process."""
REFUSED = 69
"""EX_UNAVAILABLE: a machine refuses its share of a plan; its output explains why."""


class ExecutorError(CglsuiteError):
    """Workers cannot be started, or exit before they start a cell."""


class UnreachableError(ExecutorError):
    """An engine cannot be reached, so the state of its jobs is unknown. They may still be running."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to run a list of cells.

    Args:
        catalogue: the catalogue that resolves the cells.
        workers: number of processes. limits: limits on one cell.
        detach: return as soon as the cells are submitted to other machines; only for executors that support it.
        share_prefixes: whether cells that begin with the same tasks share the training of those tasks.
        retry: statuses (``diverged``, ``skipped``) whose cells are tried again, although their outcome is settled.
        label: title of the progress bar; progress: whether to show one.
        watch: observers by name, with absolute folders; a supervisor on another machine creates its own observers from these names.
        observers: this process's observers, including the named ones; supervisors notify them of their workers' events.
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
    """The interface of executors, which run cells. The contract is the same wherever the cells run.

    Cells with a ``done`` record are skipped, as are settled cells whose status is not in ``retry``
    (:meth:`cglsuite.cells.records.record.Record.settled_on`). Every other cell is run once, under a lease, even if several runners share
    the store. If a worker dies, only its current cell is lost, and the cell's record gives the reason. On ``KeyboardInterrupt`` the
    executor stops its workers and keeps finished cells.
    """

    def run(self, cells: Sequence[PlannedCell], store: Store, options: RunOptions) -> int:
        """Run the missing cells. Return how many of ``cells`` have no ``done`` record afterwards, not counting N/A and waiting cells.

        Raises:
            StoreError: the store cannot be written.
            ExecutorError: workers cannot be started, or exit before they start a cell.
        """


@dataclass(frozen=True, kw_only=True)
class Job:
    """A plan that several machines work through, with ``parts`` supervisors that each start at a different section of the plan.

    Args:
        name: a unique name of lower-case letters, digits and ``-``. engine: the executor's name.
        folder: the job's folder, which contains the plan and the parts' output, on a file system that all machines share.
        cpus: CPUs that one part uses at a time (its workers' threads). python: the interpreter on the other machines.
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
        """The path of the plan file. Supervisors stop once this file is gone."""
        return self.folder / "plan.json"

    def words(self, part: int | str, *, id: str = "") -> tuple[str, ...]:
        """Return the command line that runs ``part``. ``id`` is the engine's id of the part, which is stored in records."""
        command = (self.python, "-P", "-m", "cglsuite.campaigns.executors.node", str(self.plan))
        named = ("--engine", self.engine, "--name", self.name, *(("--id", id) if id else ()))
        return (*command, "--store", str(self.store), "--share", str(part), str(self.parts), *named)

    def log(self, part: int | str) -> Path:
        """Return the log file of ``part``. Its last lines explain a failure."""
        return self.folder / f"part-{part}.log"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a part ended.

    ``ok``: it has nothing left to do. ``again``: it was stopped (its time was up, another job had priority, its machine failed) and
    should be restarted. If neither is set, the part failed and would fail again. ``reason`` describes the outcome.
    """

    ok: bool
    again: bool = False
    reason: str = ""

    @classmethod
    def by_status(cls, status: int) -> Ended:
        """Return the outcome that corresponds to the exit status of a part's command. A negative status is a signal number."""
        if status == 0:
            return cls(ok=True)
        if status < 0 or status > 128:
            number = -status if status < 0 else status - 128
            name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"
            return cls(ok=False, again=True, reason=f"ended by {name}")
        return cls(ok=False, again=status == AGAIN, reason="stopped before it finished" if status == AGAIN else f"exit status {status}")


class Launcher(Protocol):
    """The interface that an engine's plugin implements: launch, poll and cancel. The core handles plans, progress, retries, time limits and
    failed cells.

    An engine with a queue may have a fourth method, ``waiting(ids)``, which returns the parts that are still queued.
    """

    parts: int
    """The maximum number of supervisors of one job, running at once or in succession."""

    def launch(self, job: Job, parts: Sequence[int]) -> Mapping[int, str]:
        """Start ``parts`` of ``job`` and return the engine's id of each.

        Called again with the same job to restart parts, or if the first reply was lost: an engine that can look a job up by its name
        returns the ids of the parts that are alive.

        Raises:
            ExecutorError: the engine refuses; the message gives its reason.
            UnreachableError: the engine does not answer.
        """

    def poll(self, ids: Mapping[int, str]) -> Mapping[int, Ended]:
        """Return the parts in ``ids`` that have ended, with the outcome of each.

        Raises:
            UnreachableError: the engine does not answer, so the parts' state is unknown.
        """

    def cancel(self, ids: Mapping[int, str]) -> None:
        """Cancel these parts. Parts that have already ended are ignored.

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
        """Return the families of the cells that share checkpoints with other unfinished cells, by key."""
        if not self.options.share_prefixes:
            return {}
        return {key: names[0] for key, names in self._of.items() if names and self._unfinished[names[0]] > 1}

    def release(self, key: str) -> None:
        """Mark ``key`` as finished, and remove its checkpoints if no unfinished cell needs them."""
        for name in self._of.pop(key, ()):
            self._unfinished[name] -= 1
            if self._unfinished[name] <= 0:
                self.store.drop_checkpoints([name])
