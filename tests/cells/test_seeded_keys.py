"""Keys of cells that differ in their seeds are made from one text, and are those of the cells one by one."""

from __future__ import annotations

import dataclasses

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.cells.engine import default_engine
from cglsuite.cells.keys import cell_key, seeded_keys
from cglsuite.cells.plan import CellRequest
from cglsuite.cells.spec import resolve_cell
from cglsuite.specs import Seeds

SEEDS = [Seeds(), Seeds(order=1), Seeds(split=2), Seeds(init=3), Seeds(order=2**63 - 1, split=5, init=7)]
CELLS = [
    ("synthetic-csbm/class-il@begin-1", "bare", {}),
    ("synthetic-csbm/task-il@begin-1", "ewc", {"training.epochs": 2, "scenario.class_order": "native"}),
    ("synthetic-csbm/task-free@drift-1", "er", {}),
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def known(catalogue: Catalogue) -> list[tuple[str, str, dict[str, object]]]:
    return [cell for cell in CELLS if cell[0] in catalogue.names("scenario") and cell[1] in catalogue.names("method")]


def test_keys_are_those_of_the_cells_one_by_one(catalogue: Catalogue) -> None:
    assert len(known(catalogue)) >= 2
    for scenario, method, overrides in known(catalogue):
        cell = resolve_cell(catalogue, scenario=scenario, method=method, overrides=overrides)
        keyed = seeded_keys(cell, catalogue)
        expected = [cell_key(dataclasses.replace(cell, seeds=seeds), catalogue) for seeds in SEEDS]
        assert [keyed(seeds) for seeds in SEEDS] == expected
        assert len(set(expected)) == len(SEEDS)


def test_plans_of_many_requests_are_those_of_each(catalogue: Catalogue) -> None:
    """Whether their overrides are one mapping or equal ones, and by whichever function an engine makes its keys."""
    engine = default_engine()
    shared = {"training.epochs": 2}
    requests = [
        CellRequest(scenario="synthetic-csbm/class-il@begin-1", method=method, overrides=overrides, seeds=seeds)
        for method in ("bare", "ewc")
        for overrides in (shared, {"training.epochs": 2}, {"training.epochs": 3})
        for seeds in SEEDS
    ]
    assert engine.plan_all(iter(requests), catalogue) == [engine.plan(request, catalogue) for request in requests]
    own = dataclasses.replace(engine, cell_key=lambda cell, catalogue: f"{cell.method} {cell.seeds.init}")
    assert [p.key for p in own.plan_all(requests, catalogue)] == [f"{r.method} {r.seeds.init}" for r in requests]
