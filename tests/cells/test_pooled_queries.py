"""Methods that answer item by item answer pooled queries as they answer those of one task at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import installed

from cglsuite.cells.keys import design_key
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins

SCENARIO = "synthetic-csbm/class-il@cglb-1"
POOLED = {"scenario.query_grouping": "pooled"}


@pytest.mark.parametrize("method", ["bare", "er-gnn", "twp", "joint"])
def test_pooled_queries_change_no_bit(method: str, tmp_path: Path) -> None:
    catalogue, store = installed(), Store(tmp_path)
    records = [
        run_cell(resolve_cell(catalogue, SCENARIO, method, overrides={"training.epochs": 3} | further), catalogue, store)
        for further in ({}, POOLED)
    ]
    assert [record.status for record in records] == ["done", "done"]
    apart, pooled = [(repr(r.matrix), repr(r.validation_matrix), r.per_class) for r in records]
    assert apart == pooled
    assert len({record.key for record in records}) == 2


def test_naming_the_defaults_is_the_same_cell() -> None:
    catalogue = installed()
    plain = resolve_cell(catalogue, SCENARIO, "bare")
    named = resolve_cell(catalogue, SCENARIO, "bare", overrides={"scenario.query_grouping": "task", "scenario.query_edges": "own"})
    other = resolve_cell(catalogue, SCENARIO, "bare", overrides=POOLED)
    assert named == plain
    assert not any(name.startswith("scenario.query") for name in plain.configuration)
    assert (plain.preset, named.preset) == (SCENARIO, SCENARIO)
    assert other.preset.startswith(SCENARIO + "+")
    assert len({design_key(cell) for cell in (plain, named, other)}) == 2
