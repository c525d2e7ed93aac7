"""Observers of a campaign's cells: workers send what happens, the supervisor tells, and a cell does not depend on who listens."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.campaigns.campaign import Campaign, load_campaign
from cglsuite.campaigns.executors import LocalExecutor, RunOptions, run_campaign
from cglsuite.campaigns.executors.campaign_run import _open_observers
from cglsuite.campaigns.executors.remote import RemoteExecutor
from cglsuite.cells.observing import ObservedCell, Observer, Observers
from cglsuite.cells.plan import CellRequest, PlanFile, plan_cell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

CATALOGUE: Any = fake_cells.FakeCatalogue()
CAMPAIGN = """
name = "small"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1", "synthetic-csbm/gaussian@drift-1"]
methods = ["bare"]
[seeds]
init = [0, 1]
[set]
dataset.n_nodes = 90
dataset.n_classes = 6
dataset.n_features = 40
backbone.width = 8
[[override]]
match = { scenario = "*begin*" }
set = { "training.epochs" = 5 }
[run]
workers = 2
device = "cpu"
"""


class Notes(Observer):
    """Writes down what it is told, by cell."""

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__(folder)
        self.losses: dict[str, list[float]] = {}
        self.rows: dict[str, list[Sequence[float]]] = {}
        self.records: dict[str, Record | None] = {}

    def cell_started(self, cell: ObservedCell) -> None:
        self.losses[cell.key], self.rows[cell.key] = [], []

    def epoch_ended(self, cell: ObservedCell, task: int, epoch: int, loss: float, monitored: float | None) -> None:
        self.losses[cell.key].append(loss)
        assert 1 <= epoch <= cell.epochs[task]

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        self.rows[cell.key].append(performance)

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        self.records[cell.key] = record


class Fails(Observer):
    """Raises when it hears of a cell."""

    def cell_started(self, cell: ObservedCell) -> None:
        raise OSError("the disk is full")


def results(store: Store) -> dict[str, Any]:
    """By key, all that the cells came to."""
    facts = ("status", "matrix", "validation_matrix", "per_class", "training", "metrics")
    return {r.key: [r.to_json()[name] for name in facts] for r in store.records()}


@pytest.mark.nightly
@pytest.mark.plugins
def test_workers_tell_every_epoch_and_give_the_same_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of a stream of tasks and of a task-free one. A campaign without observers gives the same keys, matrices and fingerprints."""
    from cglsuite import load_catalogue

    campaign, catalogue = Campaign.parse(tomllib.loads(CAMPAIGN)), load_catalogue()
    alone, watched, notes = Store(tmp_path / "alone"), Store(tmp_path / "watched"), Notes()
    run_campaign(campaign, catalogue, alone, progress=False)
    outcome = run_campaign(campaign, catalogue, watched, progress=False, watch=[notes, Fails, f"csv={tmp_path / 'csv'}"])
    assert outcome.counts == {"done": 4}
    assert results(watched) == results(alone)
    for record in watched.records():
        losses = [loss for curve in record.training_curves() for loss in curve["loss"]]
        assert notes.losses[record.key] == losses
        assert len(notes.rows[record.key]) == len(record.matrix) - 1
        (folder,) = (tmp_path / "csv").glob(f"bare-{record.key[:16]}")
        assert [float(row["loss"]) for row in csv.DictReader((folder / "epochs.csv").read_text().splitlines())] == losses
        told = notes.records[record.key]
        assert told is not None
        assert told.to_json() == record.to_json()
    warnings = [r.getMessage() for r in caplog.records if "observer" in r.getMessage()]
    assert warnings == ["the observer Fails was dropped: cell_started: OSError: the disk is full"]


def planned(**overrides: Any) -> Any:
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=overrides)
    return plan_cell(request, CATALOGUE)


def options(**changes: Any) -> RunOptions:
    return RunOptions(**({"catalogue": CATALOGUE, "progress": False} | changes))


def test_a_cell_whose_worker_dies_ends_for_observers_too(store: Store) -> None:
    notes = Notes()
    cell = planned(**{"method.behave": "kill"})
    LocalExecutor().run([cell], store, options(observers=Observers([notes])))
    record = notes.records[cell.key]
    assert record is not None
    assert record.status == "failed"


def test_names_have_folders_in_the_store_or_where_the_campaign_says(tmp_path: Path) -> None:
    """Relative to the file in a file, to the working folder on the command line, which comes first."""
    store, path = Store(tmp_path / "store"), tmp_path / "folder" / "small.toml"
    path.parent.mkdir()
    path.write_text(CAMPAIGN + 'watch = ["csv", "csv=logs"]\n')
    campaign = load_campaign(path)
    names, observers = _open_observers(campaign, store, None)
    assert names == [f"csv={store.path.absolute() / 'watched' / 'csv'}", f"csv={path.parent / 'logs'}"]
    assert observers is not None
    assert len(observers) == 2
    names, _ = _open_observers(campaign, store, ["csv=here"])
    assert names == [f"csv={Path('here').absolute()}"]
    assert _open_observers(campaign, store, []) == ([], None)
    with pytest.raises(UsageError, match="unknown observer 'cvs'"):
        _open_observers(campaign, store, ["cvs"])


def test_other_machines_make_named_observers_and_refuse_objects(tmp_path: Path, store: Store) -> None:
    plan = PlanFile.of([planned()], watch=["csv=/x"])
    plan.write(tmp_path / "plan.json")
    assert PlanFile.read(tmp_path / "plan.json").watch == ["csv=/x"]
    launcher: Any = object()
    with pytest.raises(UsageError, match="an observer that is a Python object or class works only with workers on this machine"):
        RemoteExecutor("slurm", launcher).run([planned()], store, options(observers=Observers([Notes()])))


@pytest.mark.nightly
@pytest.mark.plugins
def test_a_supervisor_on_another_machine_tells_the_observers_that_its_plan_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that cannot be had there costs a warning."""
    from cglsuite import load_catalogue
    from cglsuite.campaigns.executors.node import _observers

    store = Store(tmp_path / "store")
    overrides = {"dataset.n_nodes": 90, "dataset.n_classes": 6, "dataset.n_features": 40, "training.epochs": 3}
    request = CellRequest(scenario="synthetic-csbm/class-il@begin-1", method="bare", overrides=overrides)
    plan = PlanFile.of([plan_cell(request, load_catalogue())], watch=[f"csv={tmp_path / 'csv'}"])
    plan.write(tmp_path / "plan.json")
    words = [sys.executable, "-m", "cglsuite.campaigns.executors.node", str(tmp_path / "plan.json"), "--store", str(store.path)]
    subprocess.run(words, check=True)
    (record,) = store.records()
    (file,) = (tmp_path / "csv").glob("bare-*/epochs.csv")
    losses = [loss for curve in record.training_curves() for loss in curve["loss"]]
    assert [float(row["loss"]) for row in csv.DictReader(file.read_text().splitlines())] == losses
    assert len(_observers(PlanFile(cells=[], watch=["no_such:Thing=/x", "csv=/y"]))) == 1
    assert "No module named 'no_such'" in caplog.text
