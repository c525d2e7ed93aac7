"""What observers are, and several of them as one."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cglsuite.cells.records.record import Record

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec

__all__ = ["Epoch", "ObservedCell", "Observer", "Observers"]

logger = logging.getLogger(__name__)


@dataclass
class ObservedCell:
    """A cell as observers hear of it.

    Attributes:
        key: its key. spec: its specification.
        epochs: the most epochs that each task may take, known once the stream is built. Of a task-free stream the steps up to each
            evaluation. The first entry counts the epochs before the first task: 0, except for an upper bound that first trains offline on a
            task-free stream.
        covered: how many tasks (or evaluations) checkpoints covered so far. Observers are told of them at once, as they were recorded.
    """

    key: str
    spec: CellSpec
    epochs: Sequence[int] = ()
    covered: int = 0

    @property
    def label(self) -> str:
        """One line for display."""
        seeds = self.spec.seeds
        names = f"{self.spec.scenario.name} × {self.spec.method} × {self.spec.backbone}"
        return f"{names} (order {seeds.order}, split {seeds.split}, init {seeds.init})"

    def share(self, task: int, epoch: int) -> float:
        """The part of all epochs that lies behind this one: 0 to 1, if no task stops early."""
        return min(1.0, (sum(self.epochs[:task]) + epoch) / max(1, sum(self.epochs)))

    def position(self, task: int, epoch: int | None = None) -> str:
        """Where in the stream an epoch, or a task as a whole, is; for display."""
        if task == 0:
            return f"offline epoch {epoch}/{self.epochs[0]}"
        part, step = ("task", "epoch") if self.spec.scenario.task_free is None else ("evaluation", "step")
        where = f"{part} {task}/{len(self.epochs) - 1}"
        return where if epoch is None else f"{where}, {step} {epoch}/{self.epochs[task]}"

    @property
    def folder(self) -> str:
        """A name for a folder of this cell alone."""
        return f"{self.spec.method}-{self.key[:16]}"


class Epoch(NamedTuple):
    """One epoch of a task; of a task-free stream, one step.

    ``task``: from 1; 0 is offline training before a task-free stream. ``epoch``: from 1, within the task. ``loss``: the mean over its
    batches. ``monitored``: what early stopping minimises, if anything.
    """

    task: int
    epoch: int
    loss: float
    monitored: float | None


class Observer:
    """Does nothing; subclasses override what they need. Several cells may run at once, so every hook is given the cell.

    Args:
        folder: where it may write.
    """

    changes_nothing = False
    """Known to leave the process as it was, so that nothing needs to be saved and compared around its hooks."""

    def __init__(self, folder: str | Path = ".") -> None:
        self.folder = Path(folder)

    def cell_started(self, cell: ObservedCell) -> None:
        """Before the data are loaded. Threads and processes that the observer needs start here, or earlier."""

    def stream_built(self, cell: ObservedCell) -> None:
        """``cell.epochs`` is known."""

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        """One epoch; see :class:`Epoch`."""

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """The epochs since the last call, at most half a second of them. Calls :meth:`epoch_ended` for each."""
        for epoch in epochs:
            self.epoch_ended(cell, *epoch)

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """After a task (or at an evaluation): its row of the performance matrix, float [T], NaN where a task could not be asked."""

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """With a copy of the record, whatever its status; ``None`` if the run was interrupted and will be resumed. Close what is open."""


class Observers:
    """Several observers as one. One that raises is dropped with a warning; the run goes on."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._left = list(observers)

    def __len__(self) -> int:
        return len(self._left)

    @property
    def change_nothing(self) -> bool:
        """Whether all are known to leave the process as it was."""
        return all(observer.changes_nothing for observer in self._left)

    def tell(self, event: str, cell: ObservedCell, *facts: object) -> None:
        """Call the hook named ``event`` of each, with copies of its own: none changes what the suite or another observer reads."""
        for observer in list(self._left):
            own = [fact.copy() if isinstance(fact, Record) else fact for fact in facts]
            try:
                getattr(observer, event)(copy.copy(cell), *own)
            except Exception as error:  # noqa: BLE001 - the run goes on without it
                name = type(observer).__name__
                logger.warning("the observer %s is dropped: %s: %s: %s", name, event, type(error).__name__, error)
                self._left.remove(observer)
