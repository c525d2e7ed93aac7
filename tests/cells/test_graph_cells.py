"""Cells over whole graphs with bonds, real targets and labels that are not all known: the same bits, interrupted or not, audited or not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from odd_methods import with_specs

from cglsuite import Catalogue, DatasetSpec, Hyperparameter, ScenarioSpec, Seeds, TrainingSpec, load_catalogue
from cglsuite.cells.plan import CellOptions
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.testing import audit

pytestmark = pytest.mark.plugins

DATA = DatasetSpec(
    name="tiny-molecules",
    summary="paths and rings of a few atoms",
    factory="tiny_graphs:loaded_molecules",
    levels=("GC", "GR"),
    embedded=True,
    hyperparameters=(
        Hyperparameter(name="targets", default="real", doc="real or label"),
        Hyperparameter(name="outputs", default=1, doc="how many"),
        Hyperparameter(name="unknown", default=0.0, doc="share of labels that are not known"),
    ),
)
TRAINING = TrainingSpec(
    backbone="begin-graph-gcn",
    lr=0.01,
    epochs=3,
    batch_size=16,
    plateau_patience=1,
    stop_ratio=1e-2,
    monitor="validation-performance",
    restore_best=True,
)


def scenario(name: str, **switches: Any) -> ScenarioSpec:
    return ScenarioSpec(
        name=name,
        summary="tiny",
        dataset="tiny-molecules",
        split="random",
        class_order="native",
        builder="cglsuite.streams.graphwise:build_graph_stream",
        training=TRAINING,
        **switches,
    )


SCENARIOS = {
    s.name.partition("/")[2]: s
    for s in (
        scenario(
            "tiny-molecules/time-il@real-1", level="GR", labels="real", performance="negative-mae", setting="time-il", task_key="year"
        ),
        scenario(
            "tiny-molecules/domain-il@label-1",
            level="GC",
            labels="multi",
            performance="roc-auc",
            setting="domain-il",
            task_key="domain",
            dataset_hyperparameters=(("targets", "label"),),
        ),
        scenario(
            "tiny-molecules/task-il@unknown-1",
            level="GC",
            labels="multi",
            performance="roc-auc",
            setting="task-il",
            classes_per_task=1,
            train_outputs="task",
            dataset_hyperparameters=(("targets", "label"), ("outputs", 3), ("unknown", 0.3)),
        ),
    )
}
SMALL = {"backbone.layers": 2, "backbone.width": 8, "backbone.edge_features": 3}
METHODS: dict[str, dict[str, Any]] = {"gem": {"method.per_task": 6}, "lwf": {}, "ewc": {"method.lambda": 1.0}}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    installed = load_catalogue(allow=["cglsuite", "cglsuite-methods", "cglsuite-metrics"])
    return with_specs(installed, [DATA, *SCENARIOS.values()])


def make(catalogue: Catalogue, name: str, method: str) -> CellSpec:
    return resolve_cell(
        catalogue, f"tiny-molecules/{name}", method, overrides=SMALL | METHODS[method], seeds=Seeds(order=0, split=1, init=2)
    )


def numbers(record: Record) -> str:
    """What must be the same to the bit whenever a cell is run."""
    assert record.status == "done", record.reason
    held = {k: v for k, v in record.memory.items() if k != "peak_bytes"}
    curves = [{k: v for k, v in curve.items() if not k.endswith("_s")} for curve in record.training_curves()]
    return json.dumps([record.matrix, record.validation_matrix, record.metrics, curves, held, record.fingerprints()])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cell_gives_the_same_bits_twice_and_after_an_interruption(catalogue: Catalogue, tmp_path: Path, name: str, method: str) -> None:
    cell = make(catalogue, name, method)
    whole = run_cell(cell, catalogue, Store(tmp_path / "a"))
    assert whole.status == "done", whole.reason
    assert len(whole.matrix) == 4
    low, high = (-math.inf, 0.0) if "real" in name else (0.0, 1.0)
    assert all(low < v <= high for row in whole.matrix for v in row if v is not None)
    torch.manual_seed(99)

    def stop(learnt: int, tasks: int) -> None:
        if learnt == 2:
            raise KeyboardInterrupt

    store = Store(tmp_path / "b")
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, catalogue, store, CellOptions(progress=stop))
    resumed = run_cell(cell, catalogue, store)
    assert resumed.provenance["resumed_from_task"] > 0
    assert numbers(resumed) == numbers(whole)
    if method == "gem":
        assert whole.memory["items"] == 18
        assert whole.memory["bytes"] > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_in_a_process_of_its_own_gives_the_same_answers(catalogue: Catalogue, method: str) -> None:
    """Graphs travel there without what was prepared of them, and memories of graphs are taken there."""
    found = audit(make(catalogue, "time-il@real-1", method), catalogue)
    assert found.passed, (found.differences, found.acts)
    assert len(found.matrix) == 4


def test_real_targets_are_measured_by_metrics_of_performance(catalogue: Catalogue, tmp_path: Path) -> None:
    record = run_cell(make(catalogue, "time-il@real-1", "lwf"), catalogue, Store(tmp_path))
    final = record.matrix[3]
    assert record.metrics["average_performance"] == pytest.approx(sum(final) / 3)
    assert record.metrics["forgetting_from_diagonal"] == pytest.approx(sum(record.matrix[k + 1][k] - final[k] for k in range(2)) / 2)
