"""Observers that write files, and observers by name."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from cglsuite.base.errors import UsageError, nearest
from cglsuite.cells.observing.observers import Epoch, ObservedCell, Observer, Observers
from cglsuite.cells.records.record import Record

__all__ = ["CsvObserver", "TensorBoardObserver", "located", "observer_of", "observers_of"]


class CsvObserver(Observer):
    """Writes three files per cell, in a folder named after its method and key.

    ``cell.json`` (key, label), ``epochs.csv`` (task, epoch, loss, monitored) and ``tasks.csv`` (after, task, performance). Rows are
    appended as they are heard, so an interrupted run leaves what it reported.
    """

    changes_nothing = True

    def cell_started(self, cell: ObservedCell) -> None:
        """Create the files."""
        folder = self.folder / cell.folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cell.json").write_text(json.dumps({"key": cell.key, "label": cell.label}, ensure_ascii=False) + "\n", encoding="utf-8")
        self._write(cell, "epochs", [Epoch._fields], "w")
        self._write(cell, "tasks", [("after", "task", "performance")], "w")

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Append a row per epoch."""
        self._write(cell, "epochs", [["" if value is None else value for value in epoch] for epoch in epochs])

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Append the row of the matrix."""
        self._write(cell, "tasks", [(task, j, value) for j, value in enumerate(performance, start=1) if math.isfinite(value)])

    def _write(self, cell: ObservedCell, name: str, rows: Iterable[Sequence[Any]], mode: str = "a") -> None:
        with (self.folder / cell.folder / f"{name}.csv").open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


class TensorBoardObserver(Observer):
    """Writes TensorBoard scalars: ``loss`` and ``monitored`` by epoch, ``performance/task J`` by task, in a folder per cell.

    Needs ``pip install 'cglsuite[tensorboard]'``.

    Raises:
        UsageError: TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__(folder)
        try:
            self._make: Any = importlib.import_module("torch.utils.tensorboard").SummaryWriter
        except ImportError as error:
            advice = "install it (pip install 'cglsuite[tensorboard]'), or watch with csv"
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
        """Write the row of the matrix."""
        for j, value in enumerate(performance, start=1):
            if math.isfinite(value):
                self._writers[cell.key].add_scalar(f"performance/task {j}", value, task)
        self._writers[cell.key].flush()

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """Close the cell's writer."""
        self._writers.pop(cell.key).close()


_BY_NAME: dict[str, type[Observer]] = {"csv": CsvObserver, "tensorboard": TensorBoardObserver}


def located(text: str, default: Path, base: Path) -> str:
    """``NAME`` or ``NAME=FOLDER`` as ``NAME=FOLDER`` with an absolute folder, and an absolute file where the name has one.

    Args:
        default: the parent folder if none is given. base: the folder that relative paths start from.
    """
    name, _, given = text.partition("=")
    file, colon, attribute = name.partition(":")
    if file.endswith(".py"):
        name = f"{(base / Path(file).expanduser()).absolute()}{colon}{attribute}"
        folder = default / f"{Path(file).stem}.{attribute}"
    else:
        folder = default / name.replace(":", ".")
    return f"{name}={(base / Path(given).expanduser() if given else folder).absolute()}"


def observer_of(text: str, default: Path) -> Observer:
    """The observer that ``NAME`` or ``NAME=FOLDER`` asks for.

    A name is ``csv``, ``tensorboard``, ``package.module:Class`` or ``file.py:Class``.

    Args:
        default: the parent folder if none is given.

    Raises:
        UsageError: no such observer, or one that cannot be used here.
    """
    name, _, folder = located(text, default, Path()).partition("=")
    if name in _BY_NAME:
        return _BY_NAME[name](folder)
    module, colon, attribute = name.partition(":")
    if not colon:
        close = nearest(name, _BY_NAME, 1)
        hint = f"did you mean {close[0]}?" if close else f"expected {', '.join(_BY_NAME)}, package.module:Class or file.py:Class"
        raise UsageError(f"watch {text}: unknown observer {name!r}: {hint}")
    try:
        made = getattr(_imported(module), attribute)(folder)
    except Exception as error:
        raise UsageError(f"watch {text}: {type(error).__name__}: {error}; expected a class that takes a folder") from error
    if not isinstance(made, Observer):
        raise UsageError(f"watch {text}: {attribute} is not a cglsuite.cells.Observer; derive it from that class")
    return made


def _imported(module: str) -> ModuleType:
    if not module.endswith(".py"):
        return importlib.import_module(module)
    path = Path(module)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    made = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, made)
    spec.loader.exec_module(made)
    return made


def observers_of(given: Iterable[str | Observer | type[Observer]], default: Path) -> Observers:
    """Turn what users pass (names, classes or objects) into observers.

    Args:
        default: the parent folder for observers without a folder of their own.

    Raises:
        UsageError: anything else, or an error of :func:`observer_of`.
    """
    made: list[Observer] = []
    for one in given:
        if isinstance(one, str):
            made.append(observer_of(one, default))
        elif isinstance(one, type) and issubclass(one, Observer):
            made.append(one(default / one.__name__))
        elif isinstance(one, Observer):
            made.append(one)
        else:
            raise UsageError(f"observer {one!r}: expected a name, or a cglsuite.cells.Observer (a class or an object)")
    return Observers(made)
