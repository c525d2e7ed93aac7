"""Cells over links end to end: a record of link classification and one of link prediction, the same bits however they are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cglsuite import Catalogue, Seeds
from cglsuite.base.errors import SpecError
from cglsuite.cells.keys import cell_key
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.learning.task_runner import TaskRunner
from cglsuite.testing.streams import tiny_catalogue

pytestmark = pytest.mark.plugins

CLASSIFIED, PREDICTED = "testing-links/class-il@testing-1", "testing-interactions/time-il@testing-1"
SCENARIOS = [
    *(f"testing-links/{setting}@testing-1" for setting in ("task-il", "class-il", "domain-il", "time-il")),
    *(f"testing-interactions/{setting}@testing-1" for setting in ("domain-il", "time-il")),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return tiny_catalogue()


def cell(catalogue: Catalogue, scenario: str, method: str = "bare", *, seeds: Seeds | None = None, **overrides: Any) -> CellSpec:
    given = {"training.epochs": 4} | {name.replace("__", "."): value for name, value in overrides.items()}
    return resolve_cell(catalogue, scenario, method, overrides=given, seeds=seeds or Seeds())


def numbers(record: Record) -> str:
    """What must be the same to the bit whenever a cell is run."""
    parts = [record.matrix, record.validation_matrix, record.per_class, record.training_curves(), record.tasks, record.metrics]
    return json.dumps([*parts, record.fingerprints(), record.provenance["data"]])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_record_says_what_was_measured(catalogue: Catalogue, tmp_path: Path, scenario: str) -> None:
    predicted = "interactions" in scenario
    record = run_cell(cell(catalogue, scenario, "replay"), catalogue, Store(tmp_path))
    assert (record.status, record.reason) == ("done", None)
    assert record.scenario["level"] == ("LP" if predicted else "LC")
    assert record.scenario["performance"] == ("hits" if predicted else "micro")
    matrix = record.performance()
    assert matrix.shape == (4, 3)
    early = predicted or record.scenario["edge_policy"] == "full"
    np.testing.assert_array_equal(np.isfinite(matrix), np.ones((4, 3), dtype=bool) if early else np.tri(4, 3, -1, dtype=bool))
    assert (np.nan_to_num(matrix) >= 0).all()
    assert (np.nan_to_num(matrix) <= 1).all()
    np.testing.assert_array_equal(np.isfinite(record.validation()), np.tri(4, 3, -1, dtype=bool))
    assert record.metrics["average_performance"] == pytest.approx(matrix[3].mean())
    assert all(task["n_train"] > 0 < task["n_test"] for task in record.tasks)
    assert record.memory["items"]
    assert Record.from_json(Store(tmp_path).record_path(record.key).read_bytes()) == record


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scenario", [CLASSIFIED, PREDICTED])
@pytest.mark.parametrize("method", ["bare", "gem", "lwf"])
def test_the_same_cell_twice_gives_the_same_bits(catalogue: Catalogue, tmp_path: Path, scenario: str, method: str) -> None:
    """In stores of their own and under other global randomness."""
    made = cell(catalogue, scenario, method, seeds=Seeds(order=1, split=2, init=3))
    one = run_cell(made, catalogue, Store(tmp_path / "one"))
    torch.manual_seed(987)
    other = run_cell(made, catalogue, Store(tmp_path / "other"))
    assert one.status == other.status == "done"
    assert numbers(one) == numbers(other)
    differs = run_cell(cell(catalogue, scenario, method, seeds=Seeds(order=1, split=2, init=4)), catalogue, Store(tmp_path / "one"))
    assert numbers(differs) != numbers(one)


@pytest.mark.parametrize("scenario", [CLASSIFIED, PREDICTED])
@pytest.mark.parametrize("method", ["gem", "replay"])
def test_an_interrupted_cell_goes_on_where_it_was(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, method: str
) -> None:
    """Interrupted in the second task, it trains the two that are left and gives the same bits."""
    made = cell(catalogue, scenario, method)
    whole = run_cell(made, catalogue, Store(tmp_path / "whole"))
    original, begun = TaskRunner._learn, []

    def interrupted(self: TaskRunner, view: Any) -> Any:
        begun.append(view.position)
        if view.position == 1 and len(begun) == 2:
            raise KeyboardInterrupt
        return original(self, view)

    monkeypatch.setattr(TaskRunner, "_learn", interrupted)
    store = Store(tmp_path / "parts")
    with pytest.raises(KeyboardInterrupt):
        run_cell(made, catalogue, store)
    torch.manual_seed(5)
    resumed = run_cell(made, catalogue, Store(store.path))
    assert begun == [0, 1, 1, 2]
    assert resumed.provenance["resumed_from_task"] == 1
    assert numbers(resumed) == numbers(whole)


def test_switches_of_links_are_part_of_the_key(catalogue: Catalogue) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"scenario__hits_k": 10},
        {"scenario__negatives": 100},
        {"scenario__exclude_targets": True},
        {"scenario__node_features": "degrees"},
        {"training__batch_size": 32},
    ]
    assert len({cell_key(cell(catalogue, PREDICTED, **change), catalogue) for change in changes}) == len(changes)


@pytest.mark.parametrize(
    "change", [{"scenario__exclude_targets": True}, {"scenario__node_features": "degrees"}, {"training__batch_size": 16}]
)
def test_switches_of_links_reach_the_stream(catalogue: Catalogue, tmp_path: Path, change: dict[str, Any]) -> None:
    plain, changed = (run_cell(cell(catalogue, PREDICTED, **more), catalogue, Store(tmp_path)) for more in ({}, change))
    assert changed.status == "done", changed.reason
    assert numbers(changed) != numbers(plain)
    again = run_cell(cell(catalogue, PREDICTED, **change), catalogue, Store(tmp_path / "again"))
    assert numbers(again) == numbers(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenario__hits_k": 10_000}, "too few for Hits@10000"),
        ({"scenario__edge_policy": "full"}, "along links before their time"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_learnt(
    catalogue: Catalogue, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        run_cell(cell(catalogue, PREDICTED, **change), catalogue, Store(tmp_path))
