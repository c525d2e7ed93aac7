"""For tests of the reproduction ledger: a catalogue with BeGin's Cora and a few other published presets, and records of set accuracies.

A record made by :func:`flat` has one accuracy everywhere at and below the diagonal, so that AP is this accuracy, AF is 0 and INT is the
difference from joint training's. Cells of :func:`catalogue` that are run come out like that too, but for those of ``ewc``, which fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from report_lab import ToyCells, catalogue_of, record_of, with_toy_cells

from cglsuite.campaigns.reference.reproduction import Selection, reproduction_of
from cglsuite.cells.plan import CellRequest, PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.studies.ledger.compute import Ledger, load_ledger
from cglsuite.specs import BackboneSpec, DatasetSpec, ExecutorSpec, MethodSpec, PluginSpec, ScenarioSpec, TrainingSpec

__all__ = ["ACCURACY", "CORA", "Made", "absent", "broken", "catalogue", "fill", "flat", "ledger_of", "present"]

CORA = {"paper": "BeGin", "dataset": "Cora", "setting": "task-IL"}
ACCURACY: Mapping[str, float] = {"bare": 0.90, "lwf": 0.95, "continual-gnn": 0.91, "packnet": 0.93, "joint": 0.92}
"""Beside BeGin's AP on Cora in task-IL: Bare 90.3 ± 1.8, LwF 91.5 ± 1.2, CGNN 91.1 ± 1.5, PackNet 93.3 ± 1.8, Joint 92.4 ± 1.5."""
HOME = "https://example.org/citeseer.zip"


def present(root: Any, **_: Any) -> Any:
    """A data set whose files are there."""
    return root.derived("toy", "key", dict)


def absent(root: Any, **_: Any) -> Any:
    """A data set whose file is nowhere."""
    return root.file("CiteSeer/raw/ind.citeseer.x", urls=[HOME])


def broken(root: Any, **_: Any) -> Any:
    """A loader that a root which only looks cannot satisfy."""
    raise ValueError("no such thing")


def catalogue(*extra: tuple[str, PluginSpec]) -> Catalogue:
    """The toy catalogue, with an executor, further methods, a data set that is absent, and graph-level presets."""
    levels = {"lwf": ("NC",), "continual-gnn": ("NC",), "mas": ("NC", "GC", "GR")}
    methods = [MethodSpec(name=name, summary=name, factory="json:loads", levels=levels[name]) for name in levels]
    presets = {"citeseer/task-il@begin-1": ("citeseer", "task-il", "NC"), "zinc/domain-il@begin-1": ("zinc", "domain-il", "GR")}
    presets |= {"sider/task-il@cglb-1": ("zinc", "task-il", "GC"), "pcg/task-il@agale-1": ("toy", "task-il", "NC")}
    specs: list[tuple[str, PluginSpec]] = [("method", spec) for spec in methods]
    for name, (dataset, setting, level) in presets.items():
        given: dict[str, Any] = {"dataset": dataset, "setting": setting, "level": level}
        given |= {} if level == "NC" else {"training": TrainingSpec(backbone="graph-gcn")}
        given |= {"labels": "real", "performance": "negative-mae"} if level == "GR" else {}
        specs.append(("scenario", ScenarioSpec(name=name, summary=name, **given)))
    whole = catalogue_of(
        *specs,
        ("dataset", DatasetSpec(name="citeseer", summary="absent", factory="ledger_lab:absent")),
        ("dataset", DatasetSpec(name="zinc", summary="there", factory="ledger_lab:present", levels=("GC", "GR"))),
        ("backbone", BackboneSpec(name="graph-gcn", summary="of graphs", factory="json:loads", levels=("GC", "GR"))),
        ("executor", ExecutorSpec(name="local", summary="local", factory="cglsuite.campaigns.executors.supervisor:LocalExecutor")),
        *extra,
    )
    return with_toy_cells(whole, LedgerCells())


def flat(planned: PlannedCell, accuracy: float, **changes: Any) -> Record:
    """A finished record with one accuracy at and below the diagonal of three tasks."""
    below = np.vstack([np.zeros((1, 3)), np.tril(np.ones((3, 3)))])
    matrix = np.where(below > 0, accuracy, min(accuracy, 0.1))
    others: dict[str, Any] = {"validation_matrix": [], "per_class": []} if accuracy < 0 else {}  # the toy's are accuracies
    return record_of(planned, **({"matrix": matrix} | others | changes))


class LedgerCells(ToyCells):
    """Toys that run in no time. Every run appends the label of its cell to ``$LEDGER_LOG``."""

    def run_cell(self, cell: Any, known: Any, store: Store, *_: Any) -> Record:
        request = CellRequest(scenario=cell.scenario.name, method=cell.method, seeds=cell.seeds)
        planned = PlannedCell(request=request, state="ready", cell=cell, key=self.cell_key(cell, known))
        with open(os.environ["LEDGER_LOG"], "a") as log:
            log.write(f"{cell.method} {cell.seeds.init}\n")
        if cell.method == "ewc":
            record = record_of(planned, status="diverged", reason="the loss is not finite")
        else:
            record = flat(planned, ACCURACY.get(cell.method, 0.5))
        store.put(record)
        return record


Made = Callable[[PlannedCell], "Record | None"]


def fill(path: Path, made: Made, **selection: Any) -> list[PlannedCell]:
    """Put into a store what ``made`` gives for each cell of a selection; returns the cells."""
    store, known = Store(path), catalogue()
    cells = reproduction_of(Selection(**(CORA | selection)), known).plan(known)
    for planned in cells:
        if planned.ready and (record := made(planned)) is not None:
            store.put(record)
    return cells


def ledger_of(path: Path, **selection: Any) -> Ledger:
    """The ledger of a selection from a store."""
    return load_ledger(Selection(**(CORA | selection)), path, catalogue=catalogue())
