"""Whole cells over graphs, from preset to record: classification and regression, every method that can, edge features included."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from installed import installed

from cglsuite import Seeds
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

MOTIFS: dict[str, Any] = {
    "dataset.copies": 4,
    "dataset.signal": 1.0,
    "training.epochs": 40,
    "training.lr": 0.01,
    "backbone.width": 16,
}
REGRESSION: dict[str, Any] = {"dataset.n_graphs": 150, "training.epochs": 15, "training.lr": 0.01, "backbone.width": 8}
METHODS = ["bare", "joint", "ewc", "twp", "mas", "lwf", "gem", "replay"]
#: Methods take turns, so that each category meets both.
SCENARIOS = ["synthetic-motifs/class-il@begin-1", "synthetic-motifs/task-il@cglb-1"]


def record_of(folder: Path, scenario: str, method: str, overrides: dict[str, Any], backbone: str | None = None) -> Any:
    cell = resolve_cell(installed(), scenario, method, backbone, overrides, Seeds())
    record = run_cell(cell, installed(), Store(folder))
    assert record.status == "done", record.reason
    return record


@pytest.mark.sampled(3)
@pytest.mark.plugins
@pytest.mark.parametrize(("method", "scenario"), list(zip(METHODS, cycle(SCENARIOS), strict=False)))
def test_classification_from_preset_to_record(scenario: str, method: str, tmp_path: Path) -> None:
    record = record_of(tmp_path, scenario, method, MOTIFS)
    assert len(record.matrix) == 6
    assert record.matrix[1][0] > 0.6, "two motifs of the first task are told apart better than by chance"
    if method in ("replay", "gem"):
        assert record.memory["items"] > 0


@pytest.mark.sampled(2)
@pytest.mark.plugins
@pytest.mark.parametrize("method", METHODS)
def test_regression_from_preset_to_record(method: str, tmp_path: Path) -> None:
    more = {"dataset.n_graphs": 400, "training.epochs": 40, "backbone.width": 16} if method == "joint" else {}
    record = record_of(tmp_path, "synthetic-graph-regression/domain-il@begin-1", method, REGRESSION | more)
    assert len(record.matrix) == 6
    assert all(value < 0 for row in record.matrix[1:] for value in row), "minus a mean absolute error"
    if method == "joint":
        assert record.metrics["average_performance"] > sum(record.matrix[0]) / 5, "better than without training"


@pytest.mark.nightly
@pytest.mark.plugins
def test_gine_takes_the_features_of_edges(tmp_path: Path) -> None:
    """Signal 1: the kinds of a motif's edges name its class among three."""
    record = record_of(tmp_path, "synthetic-motifs/class-il@begin-1", "joint", MOTIFS, "gine")
    assert record.metrics["average_performance"] > 0.2


@pytest.mark.plugins
def test_twp_as_implemented_by_begin(tmp_path: Path) -> None:
    """The second version of a preset runs, with the attention that the backbone for whole graphs offers."""
    record = record_of(tmp_path, "synthetic-motifs/class-il@begin-2", "twp", MOTIFS | {"training.epochs": 2})
    assert record.cell["configuration"]["method.attention_norm"] == "norm"
    assert "method.attention_from" not in record.cell["configuration"]
