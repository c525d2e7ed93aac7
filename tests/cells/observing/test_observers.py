"""Observers: what they are told and when, and that they change neither bits nor keys, whatever they do."""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from cglsuite.base.errors import UsageError
from cglsuite.cells import CellOptions, Record, cell_key, observing, resolve_cell, run_cell
from cglsuite.cells.observing import (
    CsvObserver,
    Epoch,
    ObservedCell,
    Observer,
    ObserverHub,
    Observers,
    Sender,
    TensorBoardObserver,
    observer_of,
    observers_of,
    with_absolute_folder,
)
from cglsuite.cells.storage.store import Store
from cglsuite.testing import tiny_catalogue
from cglsuite.testing.streams import FINE_TUNING

NODES, TASK_FREE = "testing-nodes/class-il@testing-1", "testing-nodes/task-free@testing-1"
LEVELS = [
    NODES,
    TASK_FREE,
    "testing-links/class-il@testing-1",
    "testing-interactions/domain-il@testing-1",
    "testing-graphs/task-free@testing-1",
    "testing-targets/domain-il@testing-1",
]
"""Every level, with tasks or without: both runners."""


class Notes(Observer):
    """Writes down what it is told."""

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__(folder)
        self.told: list[tuple[Any, ...]] = []

    def stream_built(self, cell: ObservedCell) -> None:
        self.told.append(("stream", cell.epochs))

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        self.told.append(("epoch", task, epoch, loss, monitored))

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        self.told.append(("task", task, *performance))

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        self.told.append(("end", None if record is None else record.status))

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        """What was told of one kind."""
        return [told[1:] for told in self.told if told[0] == kind]


class Meddles(Observer):
    """Draws, seeds, and leaves torch and the process with other settings, in the middle of training."""

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        torch.manual_seed(torch.randint(0, 99, ()).item())
        random.seed(3)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        torch.rand(3)


class Rewrites(Observer):
    """Improves whatever it is handed."""

    def cell_started(self, cell: ObservedCell) -> None:
        cell.key = "0" * 64
        cell.spec.method_hyperparameters["improved"] = 1.0  # type: ignore[index]
        cell.spec.backbone_hyperparameters["width"] = 1  # type: ignore[index]

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        cell.covered += 100
        with contextlib.suppress(TypeError, AttributeError):
            performance[0] = 1.0  # type: ignore[index]

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        with contextlib.suppress(TypeError, AttributeError):
            epochs.clear()  # type: ignore[attr-defined]

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        assert record is not None
        record.matrix[-1].sort(key=lambda value: -1.0 if value is None else value)  # type: ignore[attr-defined]
        record.metrics.clear()  # type: ignore[attr-defined]
        record.curves().trainings[0]["loss"].clear()


class Fails(Observer):
    """Raises at the first task."""

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        raise OSError("the disk is full")


class Interrupts(Observer):
    """Ctrl-C in the second epoch of the second task."""

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        if (task, epoch) == (2, 2):
            raise KeyboardInterrupt


def ran(folder: Path, *observers: Observer, scenario: str = NODES, epochs: int = 2) -> Record:
    catalogue = tiny_catalogue()
    cell = resolve_cell(catalogue, scenario, FINE_TUNING, overrides={"training.epochs": epochs})
    return run_cell(cell, catalogue, Store(folder), CellOptions(observers=observers))


def bits(record: Record) -> dict[str, Any]:
    """All that a run came to, times aside."""
    found = record.to_json()
    provenance = {name: found["provenance"][name] for name in ("plugins", "core")}
    return {name: found[name] for name in ("key", "status", "matrix", "validation_matrix", "per_class", "training", "metrics")} | provenance


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every epoch is told as it ends."""
    monkeypatch.setattr(observing, "FLUSH_S", 0.0)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("scenario", LEVELS)
def test_they_change_no_bit_and_no_key(tmp_path: Path, scenario: str, caplog: pytest.LogCaptureFixture) -> None:
    """One meddles, one fails, one writes: the record is that of a run without them, and clean; the fingerprints of its states are equal."""
    notes = Notes()
    plain = ran(tmp_path / "a", scenario=scenario)
    watched = ran(tmp_path / "b", Meddles(), notes, Fails(), CsvObserver(tmp_path / "csv"), scenario=scenario)
    assert plain.done
    assert plain.fingerprints()
    assert bits(watched) == bits(plain)
    assert "unclean" not in watched.provenance
    assert [r.getMessage() for r in caplog.records] == ["the observer Fails was dropped: task_ended: OSError: the disk is full"]
    assert [told[2] for told in notes.of("epoch")] == [loss for curve in plain.training_curves() for loss in curve["loss"]]
    assert notes.told[-1] == ("end", "done")


class Leaves(BaseException):
    """Like SystemExit, of one's own; its text would end the process."""

    def __str__(self) -> str:
        sys.exit(0)


@pytest.mark.parametrize("raised", [Leaves, SystemExit, GeneratorExit])
def test_one_that_ends_itself_ends_nothing_else(tmp_path: Path, raised: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    """The bug: the command ended, with status 0 and without a word where the text of the error did."""

    class Ends(Observer):
        def task_ended(self, *facts: Any) -> None:
            raise raised

    assert bits(ran(tmp_path / "b", Ends())) == bits(ran(tmp_path / "a"))
    assert [r.getMessage().partition(f"{raised.__name__}: ")[0] for r in caplog.records] == ["the observer Ends was dropped: task_ended: "]


@pytest.mark.usefixtures("at_once")
def test_what_they_are_handed_is_theirs(tmp_path: Path) -> None:
    """One that rewrites its cell, its record and its rows changes neither the run, nor the record, nor what the next one hears."""
    notes, plain = Notes(), ran(tmp_path / "a")
    watched = ran(tmp_path / "b", Rewrites(), notes)
    assert bits(watched) == bits(plain)
    assert watched.cell == plain.cell
    assert watched.curves().trainings == plain.curves().trainings
    assert [told[2] for told in notes.of("epoch")] == [loss for curve in plain.training_curves() for loss in curve["loss"]]
    assert [list(told[1:]) for told in notes.of("task")] == list(plain.matrix[1:])


def test_they_hear_validation_performance_too(tmp_path: Path) -> None:
    """In the training process, and from a worker: the sender's events are the audience's rows."""

    class Rows(Observer):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[Sequence[float]] = []

        def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
            self.rows.append(cell.validation)

    here, there = Rows(), Rows()
    audience = ObserverHub(Observers([there]))
    sender = Sender(lambda kind, **facts: audience.handle_event(kind, json.loads(json.dumps(facts))))
    spec = resolve_cell(tiny_catalogue(), NODES, FINE_TUNING, overrides={"training.epochs": 2})
    audience.started(cell_key(spec, tiny_catalogue()), spec)
    record = ran(tmp_path, here, sender)
    assert len(record.validation_matrix) > 2
    for heard in (here.rows, there.rows):
        assert repr([list(row) for row in heard]) == repr(
            [[math.nan if v is None else v for v in row] for row in record.validation_matrix[1:]]
        )


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("scenario", [NODES, TASK_FREE])
def test_an_epoch_is_told_as_it_ends(tmp_path: Path, scenario: str) -> None:
    """An interrupt in the middle of a task finds its first epochs told, and the end of the run without a record."""
    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, notes, Interrupts(), scenario=scenario, epochs=3)
    assert notes.told[0][0] == "stream"
    assert [told[:2] for told in notes.of("epoch") if told[0] == 2] == [(2, 1), (2, 2)]
    assert [told[0] for told in notes.of("task")] == [1]
    assert notes.told[-1] == ("end", None)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("scenario", [NODES, TASK_FREE])
def test_what_checkpoints_cover_is_told_as_it_was(tmp_path: Path, scenario: str) -> None:
    """A resumed run tells the whole cell: files that it writes anew lose nothing."""
    notes, csv_files = Notes(), CsvObserver(tmp_path / "csv")
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path / "store", Interrupts(), csv_files, scenario=scenario, epochs=3)
    resumed = ran(tmp_path / "store", notes, csv_files, scenario=scenario, epochs=3)
    whole = Notes()
    assert bits(ran(tmp_path / "other", whole, scenario=scenario, epochs=3)) == bits(resumed)
    assert repr(notes.told) == repr(whole.told)  # NaN is not equal to itself
    (rows,) = (tmp_path / "csv").glob("*/epochs.csv")
    assert len(rows.read_text().splitlines()) == 1 + len(whole.of("epoch"))


def test_epochs_come_in_batches_and_before_the_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short epochs are told together, twice a second at most; the last ones do not wait for the evaluation."""
    batches: list[tuple[int, int]] = []
    evaluated: list[int] = []

    class Batches(Observer):
        def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
            batches.append((epochs[0].task, len(epochs)))

    from cglsuite.learning.runner import Runner

    evaluate = Runner._evaluate

    def noting(self: Any, k: int) -> Any:
        evaluated.append(sum(count for _, count in batches))
        return evaluate(self, k)

    monkeypatch.setattr(observing, "FLUSH_S", 3600.0)
    monkeypatch.setattr(Runner, "_evaluate", noting)
    catalogue = tiny_catalogue()
    cell = resolve_cell(catalogue, NODES, FINE_TUNING, overrides={"training.epochs": 4})
    run_cell(cell, catalogue, Store(tmp_path), CellOptions(observers=[Batches()]))
    assert batches == [(1, 1), (1, 3), (2, 4), (3, 4)]
    assert evaluated == [0, 4, 8, 12]


def test_their_time_is_not_the_methods(tmp_path: Path) -> None:
    class Slow(Observer):
        def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
            time.sleep(0.2)

    spent = ran(tmp_path, Slow()).timings_s
    own = {name: seconds for name, seconds in spent.items() if seconds is not None}
    assert own["framework"] >= 0.6 > own["training"] + own["method"] + own["evaluation"]


def test_they_know_how_far_the_cell_is(tmp_path: Path) -> None:
    shares: list[tuple[str, float]] = []

    class Asks(Observer):
        def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
            shares.append((cell.position(task, epoch), cell.share(task, epoch)))

    ran(tmp_path / "a", Asks(), epochs=2)
    assert shares[0] == ("task 1/3, epoch 1/2", 1 / 6)
    assert shares[-1] == ("task 3/3, epoch 2/2", 1.0)
    shares.clear()
    ran(tmp_path / "b", Asks(), scenario=TASK_FREE)
    assert shares[-1][0].startswith("evaluation ")
    assert shares[-1][1] == 1.0


def test_csv_files_hold_every_epoch_and_every_row(tmp_path: Path) -> None:
    record = ran(tmp_path / "store", CsvObserver(tmp_path / "csv"))
    folder = tmp_path / "csv" / f"{FINE_TUNING}-{record.key[:16]}"
    rows = list(csv.DictReader((folder / "epochs.csv").read_text().splitlines()))
    assert [float(row["loss"]) for row in rows] == [loss for curve in record.training_curves() for loss in curve["loss"]]
    assert [(row["task"], row["epoch"]) for row in rows] == [(str(k), str(e)) for k in (1, 2, 3) for e in (1, 2)]
    tasks = csv.DictReader((folder / "tasks.csv").read_text().splitlines())
    shown = {(int(row["after"]), int(row["task"])): float(row["performance"]) for row in tasks}
    matrix = record.performance()
    assert shown == {(k, j): matrix[k, j - 1] for k in (1, 2, 3) for j in (1, 2, 3) if matrix[k, j - 1] == matrix[k, j - 1]}
    named = json.loads((folder / "cell.json").read_text())
    assert named["key"] == record.key
    assert named["label"].startswith(f"{NODES} × {FINE_TUNING} × ")


def test_tensorboard_gets_scalars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through torch's writer, one per cell, which is closed at the end; without the package there is an error that says how to get it."""
    written: list[tuple[Any, ...]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            written.append(("open", Path(folder)))

        def add_scalar(self, *facts: Any) -> None:
            written.append(facts)

        def flush(self) -> None: ...

        def close(self) -> None:
            written.append(("close",))

    stand_in = types.ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    record = ran(tmp_path / "store", TensorBoardObserver(tmp_path / "tb"))
    assert written[0] == ("open", tmp_path / "tb" / f"{FINE_TUNING}-{record.key[:16]}")
    assert written[-1] == ("close",)
    losses = [facts[1:] for facts in written[1:-1] if facts[0] == "loss"]
    assert losses == list(zip([loss for curve in record.training_curves() for loss in curve["loss"]], range(1, 7), strict=True))
    assert ("performance/task 1", record.performance()[3, 0], 3) in written
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match=r"pip install 'cglsuite\[tensorboard\]'"):
        observer_of("tensorboard", tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_tensorboards_own_reader_reads_what_its_writer_wrote(tmp_path: Path) -> None:
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    record = ran(tmp_path / "store", TensorBoardObserver(tmp_path / "tb"))
    (folder,) = (tmp_path / "tb").iterdir()
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    losses = [loss for curve in record.training_curves() for loss in curve["loss"]]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(losses, rel=1e-6)
    assert [event.value for event in events.Scalars("performance/task 3")] == pytest.approx(record.performance()[1:, 2], rel=1e-6)
    assert "unclean" not in record.provenance


def test_they_are_named_on_the_command_line(tmp_path: Path) -> None:
    assert observer_of("csv", tmp_path).folder == tmp_path / "csv"
    assert observer_of(f"csv={tmp_path / 'here'}", tmp_path).folder == tmp_path / "here"
    with pytest.raises(UsageError, match=r"unknown observer 'cvs': did you mean csv\?"):
        observer_of("cvs", tmp_path)
    with pytest.raises(UsageError, match="derive it from that class"):
        observer_of("pathlib:Path", tmp_path)
    with pytest.raises(UsageError, match="No module named 'no_such'"):
        observer_of("no_such:Thing", tmp_path)


def test_one_of_ones_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    """Which need not be importable; its folder is named after it."""
    file = tmp_path / "loud_observer.py"
    file.write_text("from cglsuite.cells import Observer\nclass Loud(Observer):\n    pass\n")
    made = observer_of(f"{file}:Loud", tmp_path)
    assert type(made).__name__ == "Loud"
    assert made.folder == tmp_path / "loud_observer.Loud"
    assert with_absolute_folder("loud_observer.py:Loud=logs", tmp_path, tmp_path) == f"{file}:Loud={tmp_path / 'logs'}"
    with pytest.raises(UsageError, match="there is no file"):
        observer_of(f"{tmp_path / 'other.py'}:Loud", tmp_path)


def test_they_are_given_as_names_classes_or_objects(tmp_path: Path) -> None:
    notes = Notes()
    made = observers_of(["csv", Meddles, notes], tmp_path)
    assert isinstance(made, Observers)
    assert len(made) == 3
    with pytest.raises(UsageError, match="observer 3: expected a name"):
        observers_of([3], tmp_path)  # type: ignore[list-item]


@pytest.mark.nightly
def test_without_one_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from cglsuite.cells import resolve_cell, run_cell, Store; "
        "from cglsuite.testing import tiny_catalogue; c = tiny_catalogue(); "
        f"r = run_cell(resolve_cell(c, {NODES!r}, {FINE_TUNING!r}, overrides={{'training.epochs': 1}}), c, Store({str(tmp_path)!r})); "
        "print(r.done, [name for name in sys.modules if name.startswith('cglsuite.cells.observing')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == ["True", "[]\n"]


def test_an_observers_file_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """The bug: the command waited for somebody to write into it."""
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(UsageError, match=r"it is a FIFO, not a regular file"):
        observer_of(f"{tmp_path}/pipe.py:Loud", tmp_path)
