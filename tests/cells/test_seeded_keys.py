"""Keys of cells that differ in their seeds are made from one text, and are those of the cells one by one."""

from __future__ import annotations

import dataclasses

import pytest

from cglsuite import Catalogue
from cglsuite.cells.keys import cell_key, seeded_keys
from cglsuite.cells.plan import CellRequest, plan_cell, plan_cells
from cglsuite.cells.spec import resolve_cell
from cglsuite.specs import Seeds
from cglsuite.testing.staged import executor_cells
from cglsuite.testing.streams import tiny_catalogue, with_specs

SEEDS = [Seeds(), Seeds(order=1), Seeds(split=2), Seeds(init=3), Seeds(order=2**63 - 1, split=5, init=7)]
OBEDIENT = "testing-obedient"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The installed plugins, tiny streams, and a method that is there without any plugin."""
    tiny = tiny_catalogue()
    return with_specs(tiny, executor_cells.cglsuite_methods(), tiny.records[-1])


@pytest.mark.parametrize(
    ("scenario", "method", "overrides"),
    [
        ("testing-nodes/task-il@testing-1", OBEDIENT, {}),
        ("testing-nodes/task-il@testing-1", OBEDIENT, {"training.epochs": 2, "method.number": 3}),
        pytest.param("synthetic-csbm/class-il@begin-1", "bare", {}, marks=pytest.mark.plugins),
        pytest.param(
            "synthetic-csbm/task-il@begin-1", "ewc", {"training.epochs": 2, "scenario.class_order": "native"}, marks=pytest.mark.plugins
        ),
        pytest.param("synthetic-csbm/hard@drift-1", "er", {}, marks=pytest.mark.plugins),
    ],
)
def test_keys_are_those_of_the_cells_one_by_one(catalogue: Catalogue, scenario: str, method: str, overrides: dict[str, object]) -> None:
    cell = resolve_cell(catalogue, scenario=scenario, method=method, overrides=overrides)
    keyed = seeded_keys(cell, catalogue)
    expected = [cell_key(dataclasses.replace(cell, seeds=seeds), catalogue) for seeds in SEEDS]
    assert [keyed(seeds) for seeds in SEEDS] == expected
    assert len(set(expected)) == len(SEEDS)


def test_plans_of_many_requests_are_those_of_each(catalogue: Catalogue) -> None:
    """Whether their overrides are one mapping or equal ones."""
    shared = {"training.epochs": 2}
    requests = [
        CellRequest(scenario=scenario, method=OBEDIENT, overrides=overrides, seeds=seeds)
        for scenario in ("testing-nodes/task-il@testing-1", "testing-nodes/class-il@testing-1")
        for overrides in (shared, {"training.epochs": 2}, {"training.epochs": 3})
        for seeds in SEEDS
    ]
    assert plan_cells(iter(requests), catalogue) == [plan_cell(request, catalogue) for request in requests]
