"""One cell that runs in this process, as its observers hear it: a runner's epochs in small batches, outside its clock and its draws."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.cells.observing.observers import Epoch, ObservedCell, Observer, Observers

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec

__all__ = ["FLUSH_S", "Observation"]

FLUSH_S = 0.5
"""Epochs are told at most this often. Each telling saves and compares the state of the process, which takes under a millisecond."""


class Observation:
    """Tells observers of one cell.

    Args:
        observers: one that raises is dropped for later cells too, if this is an :class:`Observers`.
    """

    def __init__(self, observers: Observers | Sequence[Observer], spec: CellSpec, key: str) -> None:
        self.observers = observers if isinstance(observers, Observers) else Observers(observers)
        self.cell = ObservedCell(key, copy.deepcopy(spec))
        self._task = self._epoch = 0
        self._waiting: list[Epoch] = []
        self._flushed = -math.inf
        self._clock: Any = None
        self._tell("cell_started")

    def attach(self, runner: Any) -> None:
        """Hear of every epoch and every task of a runner. Tasks that checkpoints cover are told as they were recorded."""
        contents = [facts.content for facts in runner.stream.tasks]
        stage, advance, covered = runner._stage, runner._advance, runner._covered

        def task_ended(task: int, made: Any) -> None:
            self._tell("task_ended", task, tuple(made.scores.rows.get(content, math.nan) for content in contents))

        def watched_stage(k: int, before: Any) -> Any:
            self._task, self._epoch = k + 1, 0
            made = stage(k, before)
            task_ended(k + 1, made)
            return made

        def watched_advance(k: int) -> Any:
            out = advance(k)
            self.flush()  # not only after the evaluation, which may take long
            return out

        def watched_covered(checkpoints: Any, beyond: int) -> Any:
            stages = covered(checkpoints, beyond)
            for task, made in enumerate((stages or [])[beyond + 1 :], start=beyond + 1):
                losses, monitored = made.curve.get("loss", []), made.curve.get("monitor") or []
                padded = [*monitored, *[None] * (len(losses) - len(monitored))]
                self._waiting += [Epoch(task, e, *both) for e, both in enumerate(zip(losses, padded, strict=True), start=1)]
                self.flush()
                self.cell.covered += 1
                task_ended(task, made)
            return stages

        runner._stage, runner._advance, runner._covered = watched_stage, watched_advance, watched_covered
        runner.on_epoch = self._heard
        self._clock = runner.clock
        self.cell.epochs = _most_epochs(runner)
        self._tell("stream_built")

    def flush(self) -> None:
        """Tell of the epochs that wait."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._tell("epochs_ended", tuple(waiting))
        self._flushed = time.monotonic()

    def ended(self, record: Record | None) -> None:
        """The run is over: its record, or ``None`` if it was interrupted."""
        self.flush()
        self._tell("cell_ended", record)

    def _heard(self, loss: float, monitored: float | None) -> None:
        self._epoch += 1
        self._waiting.append(Epoch(self._task, self._epoch, loss, monitored))
        if time.monotonic() - self._flushed >= FLUSH_S:
            self.flush()

    def _tell(self, event: str, *facts: object) -> None:
        """What observers change in the process is undone, and their time is not charged to the method."""
        if not self.observers:
            return
        before = self._clock.switch("framework") if self._clock is not None else ""
        restore: Callable[[], None] = _nothing if self.observers.change_nothing else _state()
        try:
            self.observers.tell(event, self.cell, *facts)
        finally:
            restore()
            if before:
                self._clock.switch(before)


def _most_epochs(runner: Any) -> tuple[int, ...]:
    training, stream = runner.training, runner.stream
    evaluations = getattr(stream, "evaluations", None)
    if evaluations is None:
        return (0, *[training.epochs] * len(stream))
    if runner.past_views:
        offline = runner.method.hyperparameters.get("offline_epochs", 0)
        return (offline, *[0] * (len(evaluations) - 1))
    return (0, *(later - earlier for earlier, later in itertools.pairwise(evaluations)))


def _nothing() -> None:
    pass


def _state() -> Callable[[], None]:
    """A function that restores the global state of the process, with the random states of GPUs in use."""
    import torch

    from cglsuite.base.traces import SHARED, Traces
    from cglsuite.cells.process.numerical_state import NUMERICAL

    before = Traces((*SHARED, *NUMERICAL))
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore() -> None:
        if before.changes():
            before.restore()
        for device, state in enumerate(on_gpu):
            torch.cuda.set_rng_state(state, device)

    return restore
