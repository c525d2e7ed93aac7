"""Observers of cells: the events that they receive, whether from this process or from workers, and built-in observers that write files."""

from __future__ import annotations

import copy
import csv
import importlib
import importlib.util
import itertools
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from cglsuite.base.atomic import make_folder
from cglsuite.base.errors import UsageError, nearest, said
from cglsuite.base.inputs import check_regular
from cglsuite.cells.records.record import Record

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec


logger = logging.getLogger(__name__)


@dataclass
class ObservedCell:
    """The description of a cell that observers receive.

    Attributes:
        key: its key. spec: its specification.
        epochs: the maximum number of epochs per task, known once the stream is built; for a task-free stream, the steps up to each
            evaluation. The first entry counts epochs before the first task. It is 0, except for an upper bound that first trains offline on
        a task-free stream.
        covered: the number of tasks (or evaluations) that checkpoints covered so far. Observers are notified of them immediately, with
            the stored values.
        validation: the row of the validation matrix after the latest task, float [T], NaN for tasks that could not be queried; empty
            before.
    """

    key: str
    spec: CellSpec
    epochs: Sequence[int] = ()
    covered: int = 0
    validation: Sequence[float] = ()

    @property
    def label(self) -> str:
        """A one-line label for display."""
        seeds = self.spec.seeds
        names = f"{self.spec.scenario.name} × {self.spec.method} × {self.spec.backbone}"
        return f"{names} (order {seeds.order}, split {seeds.split}, init {seeds.init})"

    def share(self, task: int, epoch: int) -> float:
        """Return the completed fraction of all epochs, from 0 to 1, assuming that no task stops early."""
        return min(1.0, (sum(self.epochs[:task]) + epoch) / max(1, sum(self.epochs)))

    def position(self, task: int, epoch: int | None = None) -> str:
        """Describe the position of an epoch in the stream, or of a whole task."""
        if task == 0:
            return f"offline epoch {epoch}/{self.epochs[0]}"
        part, step = ("task", "epoch") if self.spec.scenario.task_free is None else ("evaluation", "step")
        where = f"{part} {task}/{len(self.epochs) - 1}"
        return where if epoch is None else f"{where}, {step} {epoch}/{self.epochs[task]}"

    @property
    def folder(self) -> str:
        """A folder name that is unique to this cell."""
        return f"{self.spec.method}-{self.key[:16]}"


class Epoch(NamedTuple):
    """One epoch of a task or, in a task-free stream, one step.

    ``task``: from 1; 0 is offline training before a task-free stream. ``epoch``: from 1, within the task. ``loss``: mean over the epoch's
    mini-batches. ``monitored``: the value that early stopping minimises, if any.
    """

    task: int
    epoch: int
    loss: float
    monitored: float | None


class Observer:
    """Base class of observers. Every hook does nothing until overridden. Several cells may run at the same time, so each hook receives its
    cell.

    A hook that raises ``KeyboardInterrupt``, or a class derived from it, ends the run as Ctrl-C does: running cells get no record,
    finished cells remain, and a later run resumes from checkpoints.

    Args:
        folder: the folder in which the observer may write.
    """

    changes_nothing = False
    """Whether the observer is known to leave global state unchanged, so that none needs to be saved and compared around its hooks."""

    def __init__(self, folder: str | Path = ".") -> None:
        self.folder = Path(folder)

    def cell_started(self, cell: ObservedCell) -> None:
        """Called before the data are loaded. Threads and processes that the observer needs must be started here or earlier."""

    def stream_built(self, cell: ObservedCell) -> None:
        """Called when the stream has been built and ``cell.epochs`` is known."""

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        """Called after one epoch; see :class:`Epoch`."""

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Called with the epochs since the last call, which cover at most half a second. Calls :meth:`epoch_ended` for each."""
        for epoch in epochs:
            self.epoch_ended(cell, *epoch)

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Called after a task or an evaluation with its row of the performance matrix, float [T]; NaN for tasks that could not be
        queried."""

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """Called at the end with a copy of the record, or ``None`` if the run was interrupted and can be resumed. Close files here."""


class Observers:
    """A group of observers that acts as one. An observer that raises an error is dropped with a warning, and the run continues."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._left = list(observers)

    def __len__(self) -> int:
        return len(self._left)

    @property
    def change_nothing(self) -> bool:
        """Whether all observers are known to leave global state unchanged."""
        return all(observer.changes_nothing for observer in self._left)

    def tell(self, event: str, cell: ObservedCell, *facts: object) -> None:
        """Call the hook ``event`` of each observer with separate copies of the arguments."""
        for observer in list(self._left):
            copies = [fact.copy() if isinstance(fact, Record) else fact for fact in facts]
            try:
                getattr(observer, event)(copy.copy(cell), *copies)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the run goes on without it
                name = type(observer).__name__
                logger.warning("the observer %s was dropped: %s: %s: %s", name, event, type(error).__name__, said(error))
                self._left.remove(observer)


# Events of one cell that runs in this process. Epochs reach observers in small batches; their time and random draws do not affect the run.

FLUSH_S = 0.5
"""The shortest time between two notifications of epochs, each of which saves and compares global state (under a millisecond)."""


class Observation:
    """Notifies observers of the events of one cell.

    Args:
        observers: an observer that raises is dropped for later cells too, if this is an :class:`Observers`.
    """

    def __init__(self, observers: Observers | Sequence[Observer], spec: CellSpec, key: str) -> None:
        self.observers = observers if isinstance(observers, Observers) else Observers(observers)
        self.cell = ObservedCell(key, copy.deepcopy(spec))
        self._task = self._epoch = 0
        self._waiting: list[Epoch] = []
        self._flushed = -math.inf
        self._clock: Any = None
        self._notify("cell_started")

    def attach(self, runner: Any) -> None:
        """Observe every epoch and task of a runner. For tasks covered by checkpoints, the stored values are reported."""
        contents = [facts.content for facts in runner.stream.tasks]
        stage, advance, covered = runner._stage, runner._advance, runner._covered

        def task_ended(task: int, trained: Any) -> None:
            self.cell.validation = tuple(trained.scores.validation.get(content, math.nan) for content in contents)
            self._notify("task_ended", task, tuple(trained.scores.rows.get(content, math.nan) for content in contents))

        def watched_stage(k: int, before: Any) -> Any:
            self._task, self._epoch = k + 1, 0
            result = stage(k, before)
            task_ended(k + 1, result)
            return result

        def watched_advance(k: int) -> Any:
            out = advance(k)
            self.flush()  # not only after the evaluation, which may take long
            return out

        def watched_covered(checkpoints: Any, beyond: int) -> Any:
            stages = covered(checkpoints, beyond)
            for task, stage_result in enumerate((stages or [])[beyond + 1 :], start=beyond + 1):
                losses, monitored = stage_result.curve.get("loss", []), stage_result.curve.get("monitor") or []
                padded = [*monitored, *[None] * (len(losses) - len(monitored))]
                self._waiting += [Epoch(task, e, *both) for e, both in enumerate(zip(losses, padded, strict=True), start=1)]
                self.flush()
                self.cell.covered += 1
                task_ended(task, stage_result)
            return stages

        runner._stage, runner._advance, runner._covered = watched_stage, watched_advance, watched_covered
        runner.on_epoch = self._on_epoch
        self._clock = runner.clock
        self.cell.epochs = _max_epochs(runner)
        self._notify("stream_built")

    def flush(self) -> None:
        """Report pending epochs."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._notify("epochs_ended", tuple(waiting))
        self._flushed = time.monotonic()

    def ended(self, record: Record | None) -> None:
        """Report the end of the run with its record, or ``None`` if it was interrupted."""
        self.flush()
        self._notify("cell_ended", record)

    def _on_epoch(self, loss: float, monitored: float | None) -> None:
        self._epoch += 1
        self._waiting.append(Epoch(self._task, self._epoch, loss, monitored))
        if time.monotonic() - self._flushed >= FLUSH_S:
            self.flush()

    def _notify(self, event: str, *facts: object) -> None:
        """Notify the observers, undo their changes to global state, and exclude their time from the method's."""
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


def _max_epochs(runner: Any) -> tuple[int, ...]:
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
    """Capture the global state of the process and the random states of GPUs in use; return a function that restores them."""
    import torch

    from cglsuite.base.traces import SHARED, Traces
    from cglsuite.cells.process import NUMERICAL

    before = Traces((*SHARED, *NUMERICAL))
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore() -> None:
        if before.changes():
            before.restore()
        for device, state in enumerate(on_gpu):
            torch.cuda.set_rng_state(state, device)

    return restore


# Relay events from worker processes to observers: a worker sends events, its supervisor passes them on.


class Sender(Observer):
    """Forwards every event of a worker through ``emit(event, **facts)``, with JSON-serialisable values."""

    changes_nothing = True

    def __init__(self, emit: Callable[..., None]) -> None:
        super().__init__()
        self._emit = emit

    def stream_built(self, cell: ObservedCell) -> None:
        """Send the maximum number of epochs."""
        self._emit("stream", key=cell.key, epochs=list(cell.epochs))

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Send the epochs in one event."""
        self._emit("epochs", key=cell.key, epochs=[list(epoch) for epoch in epochs])

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Send the task's rows of the performance and validation matrices."""
        rows = {"performance": performance, "validation": cell.validation}
        sent = {name: [value if math.isfinite(value) else None for value in row] for name, row in rows.items()}
        self._emit("row", key=cell.key, task=task, covered=cell.covered, **sent)


class ObserverHub:
    """Receives events in the supervisor, and stores the observers and the cells in progress."""

    def __init__(self, observers: Observers | None = None) -> None:
        self.observers = Observers([]) if observers is None else observers
        self.cells: dict[str, ObservedCell] = {}

    def started(self, key: str, spec: CellSpec) -> None:
        """Handle the start of a cell in a worker."""
        self.cells[key] = ObservedCell(key, copy.deepcopy(spec))
        self.observers.tell("cell_started", self.cells[key])

    def handle_event(self, kind: str, event: Mapping[str, Any]) -> None:
        """Handle an event from a :class:`Sender`, and ignore other events."""
        cell = self.cells.get(event.get("key", ""))
        if cell is None:
            return
        if kind == "stream":
            cell.epochs = tuple(event["epochs"])
            self.observers.tell("stream_built", cell)
        elif kind == "epochs":
            self.observers.tell("epochs_ended", cell, tuple(Epoch(*epoch) for epoch in event["epochs"]))
        elif kind == "row":
            cell.covered, cell.validation = event["covered"], _parse_row(event["validation"])
            self.observers.tell("task_ended", cell, event["task"], _parse_row(event["performance"]))

    def ended(self, key: str, record: Callable[[], Record | None]) -> None:
        """Handle the end of a cell with its record, or with ``None`` if it was returned without an outcome."""
        cell = self.cells.pop(key, None)
        if cell is not None:
            self.observers.tell("cell_ended", cell, record())

    def stopped(self) -> None:
        """End all cells in progress because the run was interrupted."""
        for key in list(self.cells):
            self.ended(key, lambda: None)


def _parse_row(row: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in row)


# Observers that write files, and observers by name.


class CsvObserver(Observer):
    """Writes three files per cell, in a folder named after its method and key.

    ``cell.json`` (key, label), ``epochs.csv`` (task, epoch, loss, monitored) and ``tasks.csv`` (after, task, performance). Rows are
    appended as events arrive, so an interrupted run leaves what it reported.
    """

    changes_nothing = True

    def cell_started(self, cell: ObservedCell) -> None:
        """Create the files."""
        folder = self.folder / cell.folder
        make_folder(folder, self.folder)
        (folder / "cell.json").write_text(json.dumps({"key": cell.key, "label": cell.label}, ensure_ascii=False) + "\n", encoding="utf-8")
        self._write(cell, "epochs", [Epoch._fields], "w")
        self._write(cell, "tasks", [("after", "task", "performance")], "w")

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Append a row per epoch."""
        self._write(cell, "epochs", [["" if value is None else value for value in epoch] for epoch in epochs])

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Append the task's row of the performance matrix."""
        self._write(cell, "tasks", [(task, j, value) for j, value in enumerate(performance, start=1) if math.isfinite(value)])

    def _write(self, cell: ObservedCell, name: str, rows: Iterable[Sequence[Any]], mode: str = "a") -> None:
        with (self.folder / cell.folder / f"{name}.csv").open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


class TensorBoardObserver(Observer):
    """Writes TensorBoard scalars in a folder per cell: ``loss`` and ``monitored`` per epoch, and ``performance/task J`` per task.

    Needs ``pip install 'cglsuite[tensorboard]'``.

    Raises:
        UsageError: TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__(folder)
        try:
            self._make: Any = importlib.import_module("torch.utils.tensorboard").SummaryWriter
        except ImportError as error:
            advice = "install it (pip install 'cglsuite[tensorboard]'), or use --watch csv"
            raise UsageError(f"the observer tensorboard needs TensorBoard, which is not installed ({error}): {advice}") from error
        self._writers: dict[str, Any] = {}
        self._steps: dict[str, int] = {}

    def cell_started(self, cell: ObservedCell) -> None:
        """Open the cell's writer."""
        self._writers[cell.key], self._steps[cell.key] = self._make(str(self.folder / cell.folder)), 0

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Write the losses."""
        writer = self._writers[cell.key]
        for epoch in epochs:
            self._steps[cell.key] += 1
            writer.add_scalar("loss", epoch.loss, self._steps[cell.key])
            if epoch.monitored is not None:
                writer.add_scalar("monitored", epoch.monitored, self._steps[cell.key])
        writer.flush()

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Write the task's row of the performance matrix."""
        for j, value in enumerate(performance, start=1):
            if math.isfinite(value):
                self._writers[cell.key].add_scalar(f"performance/task {j}", value, task)
        self._writers[cell.key].flush()

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """Close the cell's writer."""
        self._writers.pop(cell.key).close()


_BY_NAME: dict[str, type[Observer]] = {"csv": CsvObserver, "tensorboard": TensorBoardObserver}


def with_absolute_folder(text: str, default: Path, base: Path) -> str:
    """Convert ``NAME`` or ``NAME=FOLDER`` to ``NAME=FOLDER`` with an absolute folder. A file in the name becomes absolute too.

    Args:
        default: the parent folder if the text does not name a folder. base: the folder that relative paths start from.
    """
    name, _, place = text.partition("=")
    file, colon, attribute = name.partition(":")
    if file.endswith(".py"):
        name = f"{(base / Path(file).expanduser()).absolute()}{colon}{attribute}"
        folder = default / f"{Path(file).stem}.{attribute}"
    else:
        folder = default / name.replace(":", ".")
    return f"{name}={(base / Path(place).expanduser() if place else folder).absolute()}"


def observer_of(text: str, default: Path) -> Observer:
    """Create the observer described by ``NAME`` or ``NAME=FOLDER``.

    A name is ``csv``, ``tensorboard``, ``package.module:Class`` or ``file.py:Class``.

    Args:
        default: the parent folder if the text does not name a folder.

    Raises:
        UsageError: the observer is unknown, or cannot be used here.
    """
    name, _, folder = with_absolute_folder(text, default, Path()).partition("=")
    if name in _BY_NAME:
        return _BY_NAME[name](folder)
    module, colon, attribute = name.partition(":")
    if not colon:
        close = nearest(name, _BY_NAME, 1)
        hint = f"did you mean {close[0]}?" if close else f"expected {', '.join(_BY_NAME)}, package.module:Class or file.py:Class"
        raise UsageError(f"watch {text}: unknown observer {name!r}: {hint}")
    try:
        observer = getattr(_import_file(module), attribute)(folder)
    except Exception as error:
        raise UsageError(f"watch {text}: {type(error).__name__}: {error}; expected a class whose constructor accepts a folder") from error
    if not isinstance(observer, Observer):
        raise UsageError(f"watch {text}: {attribute} is not a cglsuite.cells.Observer; derive it from that class")
    return observer


def _import_file(module: str) -> ModuleType:
    if not module.endswith(".py"):
        return importlib.import_module(module)
    path = Path(module)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    check_regular(path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, loaded)
    spec.loader.exec_module(loaded)
    return loaded


def observers_of(items: Iterable[str | Observer | type[Observer]], default: Path) -> Observers:
    """Create observers from the names, classes or objects that users pass.

    Args:
        default: the parent folder for observers that do not name a folder.

    Raises:
        UsageError: an item is anything else, or :func:`observer_of` raises.
    """
    observers: list[Observer] = []
    for item in items:
        if isinstance(item, str):
            observers.append(observer_of(item, default))
        elif isinstance(item, type) and issubclass(item, Observer):
            observers.append(item(default / item.__name__))
        elif isinstance(item, Observer):
            observers.append(item)
        else:
            raise UsageError(f"observer {item!r}: expected a name, or a cglsuite.cells.Observer (a class or an object)")
    return Observers(observers)
