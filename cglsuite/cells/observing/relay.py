"""Relay events from worker processes to observers: a worker sends events, its supervisor passes them on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.cells.observing.observers import Epoch, ObservedCell, Observer, Observers

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec

__all__ = ["Audience", "Sender"]


class Sender(Observer):
    """Runs in a worker and forwards every event through ``emit(event, **facts)``, as JSON types."""

    changes_nothing = True

    def __init__(self, emit: Callable[..., None]) -> None:
        super().__init__()
        self._emit = emit

    def stream_built(self, cell: ObservedCell) -> None:
        """Send how many epochs there may be."""
        self._emit("stream", key=cell.key, epochs=list(cell.epochs))

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Send the epochs in one event."""
        self._emit("epochs", key=cell.key, epochs=[list(epoch) for epoch in epochs])

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Send the row of the matrix."""
        row = [value if math.isfinite(value) else None for value in performance]
        self._emit("row", key=cell.key, task=task, performance=row, covered=cell.covered)


class Audience:
    """Runs in a supervisor: holds the observers and the cells in progress."""

    def __init__(self, observers: Observers | None = None) -> None:
        self.observers = Observers([]) if observers is None else observers
        self.cells: dict[str, ObservedCell] = {}

    def started(self, key: str, spec: CellSpec) -> None:
        """A worker has begun a cell."""
        self.cells[key] = ObservedCell(key, copy.deepcopy(spec))
        self.observers.tell("cell_started", self.cells[key])

    def hear(self, kind: str, event: Mapping[str, Any]) -> None:
        """Pass on an event of a :class:`Sender`; other events are ignored."""
        cell = self.cells.get(event.get("key", ""))
        if cell is None:
            return
        if kind == "stream":
            cell.epochs = tuple(event["epochs"])
            self.observers.tell("stream_built", cell)
        elif kind == "epochs":
            self.observers.tell("epochs_ended", cell, tuple(Epoch(*epoch) for epoch in event["epochs"]))
        elif kind == "row":
            cell.covered = event["covered"]
            row = tuple(math.nan if value is None else value for value in event["performance"])
            self.observers.tell("task_ended", cell, event["task"], row)

    def ended(self, key: str, record: Callable[[], Record | None]) -> None:
        """A cell has ended with a record, or was given back: ``None``."""
        cell = self.cells.pop(key, None)
        if cell is not None:
            self.observers.tell("cell_ended", cell, record())

    def stopped(self) -> None:
        """End all cells in progress: the run was interrupted."""
        for key in list(self.cells):
            self.ended(key, lambda: None)
