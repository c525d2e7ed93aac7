"""Cells that train on mini-batches: their switches are settings like all others, and every built-in method can do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.base.errors import SpecError
from cglsuite.cells.keys import cell_key, design_key
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins

TASK_IL, CLASS_IL, GROWING = "synthetic-csbm/task-il@cglb-1", "synthetic-csbm/class-il@begin-1", "synthetic-csbm/class-il@cglb-inter-1"
TINY = {
    "dataset.n_nodes": 72,
    "dataset.n_classes": 6,
    "dataset.n_features": 40,
    "dataset.words": 5,
    "dataset.avg_degree": 4,
    "training.epochs": 2,
    "backbone.width": 6,
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])


def cell(catalogue: Catalogue, method: str = "bare", scenario: str = GROWING, **training: Any) -> CellSpec:
    layers = ",".join(["2"] * (3 if "begin" in scenario else 2))
    given = {"batch_size": 5, "fan_out": layers} | training
    return resolve_cell(catalogue, scenario, method, overrides=TINY | {f"training.{k}": v for k, v in given.items()})


@pytest.mark.parametrize("method", ["bare", "joint", "ewc", "er-gnn"])
@pytest.mark.parametrize("scenario", [TASK_IL, CLASS_IL, GROWING])
def test_built_in_methods_train_on_mini_batches(catalogue: Catalogue, tmp_path: Path, scenario: str, method: str) -> None:
    record = run_cell(cell(catalogue, method, scenario), catalogue, Store(tmp_path))
    assert record.status == "done", record.reason
    assert record.scenario["training"]["batch_size"] == 5
    assert record.scenario["training"]["fan_out"] == [2] * (3 if scenario == CLASS_IL else 2)
    assert record.cell["configuration"]["training.batch_size"] == 5


def test_two_stores_hold_the_same_numbers(catalogue: Catalogue, tmp_path: Path) -> None:
    one, other = (run_cell(cell(catalogue, "er-gnn"), catalogue, Store(tmp_path / name)) for name in "ab")
    first, second = (json.dumps([r.matrix, r.training_curves(), r.fingerprints()]) for r in (one, other))
    assert first == second


@pytest.mark.parametrize("written", ["2,3", "2, 3", "(2, 3)", [2, 3], (2, 3), ["2", "3"]])
def test_a_fan_out_is_written_in_many_ways(catalogue: Catalogue, written: Any) -> None:
    made = cell(catalogue, fan_out=written)
    assert made.scenario.training.fan_out == (2, 3)
    assert design_key(made) == design_key(cell(catalogue, fan_out="2,3"))


@pytest.mark.parametrize("written", ["", "()", []])
def test_an_empty_fan_out_is_the_whole_graph(catalogue: Catalogue, written: Any) -> None:
    made = cell(catalogue, fan_out=written)
    assert made.configuration["training.fan_out"] == ()
    assert made.configuration["training.batch_size"] == 5


def test_both_switches_are_part_of_the_key(catalogue: Catalogue) -> None:
    changes: list[dict[str, Any]] = [{}, {"batch_size": 6}, {"fan_out": "2,3"}, {"fan_out": ""}, {"fan_out": "", "batch_size": "none"}]
    cells = [cell(catalogue, **change) for change in changes]
    assert len({cell_key(c, catalogue) for c in cells}) == len(changes)
    assert len({c.preset for c in cells}) == len(changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, r"training\.batch_size = 0: expected at least 1, or none"),
        ({"batch_size": "many"}, r"training\.batch_size = 'many': expected a whole number, or none"),
        ({"batch_size": "none"}, r"training\.batch_size = none, but training\.fan_out samples neighbours"),
        ({"fan_out": "2,0"}, r"training\.fan_out = '0': expected at least 1"),
        ({"fan_out": "2,x"}, r"training\.fan_out = 'x': expected a whole number"),
        ({"fan_out": "2.5,3"}, r"training\.fan_out = '2\.5': expected a whole number"),
    ],
)
def test_values_that_cannot_be_are_refused(catalogue: Catalogue, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        cell(catalogue, **changes)


def test_a_fan_out_of_another_depth_fails_with_its_reason(catalogue: Catalogue, tmp_path: Path) -> None:
    record = run_cell(cell(catalogue, fan_out="2,2,2"), catalogue, Store(tmp_path))
    assert record.status == "failed"
    assert record.reason is not None
    assert "expected 2 numbers, one per hop" in record.reason
