"""Cells that train as one stacked model: each as if it were alone, bit by bit, and nearly as the cell that trains by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from cglsuite import Catalogue, Seeds, load_catalogue
from cglsuite.campaigns.migrate import replanned
from cglsuite.cells import run_cells
from cglsuite.cells.batching.companies import company_of, side_by_side, why_alone
from cglsuite.cells.engine import default_engine
from cglsuite.cells.keys import cell_key, design_key, numerics_facts
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store
from cglsuite.errors import NotApplicable, SpecError

pytestmark = pytest.mark.plugins

FULL = "synthetic-csbm/task-il@begin-1"
CLASS_IL = "synthetic-csbm/class-il@begin-1"
OWN_GRAPHS = "synthetic-csbm/task-il@cglb-1"
TINY = {
    "dataset.n_nodes": 73,
    "dataset.n_classes": 6,
    "dataset.n_features": 40,
    "dataset.words": 5,
    "dataset.avg_degree": 4,
    "training.epochs": 5,
    "training.lr": 0.01,
    "backbone.width": 6,
}
METHODS: dict[str, dict[str, Any]] = {
    "bare": {},
    "joint": {},
    "replay": {},
    "ewc": {"method.lambda": 10.0},
    "mas": {},
    "lwf": {},
    "twp": {"method.detach_beta": True},
    "er-gnn": {"method.per_class": 2},
}
SLOTS = 3


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(allow=["cglsuite", "cglsuite-node", "cglsuite-methods", "cglsuite-metrics"])


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[], Store]:
    made: list[Store] = []

    def another() -> Store:
        made.append(Store(tmp_path / f"store-{len(made)}"))
        return made[-1]

    return another


def make(catalogue: Catalogue, method: str = "bare", scenario: str = FULL, seed: int = 0, **overrides: Any) -> CellSpec:
    more = {name.replace("__", "."): value for name, value in overrides.items()}
    given = {**TINY, **METHODS.get(method, {}), **more}
    return resolve_cell(catalogue, scenario, method, overrides=given, seeds=Seeds(order=seed, split=0, init=seed))


def result(record: Record) -> dict[str, Any]:
    """All numbers of a record, and the digests of the method's state and its answers."""
    assert record.status == "done", record.reason
    names = ("matrix", "validation_matrix", "per_class")
    return {name: getattr(record, name) for name in names} | {"curves": record.training_curves(), "fingerprints": record.fingerprints()}


def batched(cells: Sequence[CellSpec], catalogue: Catalogue, store: Store) -> list[dict[str, Any]]:
    return [result(record) for record in run_cells(cells, catalogue, store, batch=SLOTS)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
def test_a_result_depends_neither_on_company_nor_on_the_slot(method: str, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    first, second, third = (make(catalogue, method, seed=seed) for seed in range(3))
    alone = batched([first], catalogue, stores())[0]
    together = batched([first, second, third], catalogue, stores())
    turned = batched([third, second, first], catalogue, stores())
    assert together[0] == alone
    assert turned == together[::-1]


@pytest.mark.nightly
def test_more_cells_than_slots_follow_one_another(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    cells = [make(catalogue, seed=seed) for seed in range(5)]
    assert batched(cells, catalogue, stores()) == [batched([cell], catalogue, stores())[0] for cell in cells]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
def test_batched_and_sequential_training_agree_up_to_rounding(method: str, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    cells = [make(catalogue, method, seed=seed, backbone__dropout=0.0) for seed in range(2)]
    store = stores()
    for cell, stacked in zip(cells, batched(cells, catalogue, store), strict=True):
        alone = result(run_cell(cell, catalogue, store))
        for ours, theirs in zip(stacked["curves"], alone["curves"], strict=True):
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=2e-3, abs=2e-4)
            assert ours["monitor"] == pytest.approx(theirs["monitor"], rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("scenario", [CLASS_IL, OWN_GRAPHS])
@pytest.mark.parametrize("backbone", ["gcn", "gin"])
def test_other_scenarios_and_backbones(scenario: str, backbone: str, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    given = {**TINY, "training.backbone": backbone}
    seeds = [Seeds(order=0, split=0, init=seed) for seed in range(3)]
    cells = [resolve_cell(catalogue, scenario, "bare", overrides=given, seeds=one) for one in seeds]
    together = batched(cells, catalogue, stores())
    assert batched(cells[2:], catalogue, stores())[0] == together[2]
    alone = result(run_cell(cells[1], catalogue, stores()))
    for ours, theirs in zip(together[1]["curves"], alone["curves"], strict=True):
        assert ours["loss"][:3] == pytest.approx(theirs["loss"][:3], rel=2e-3)


def test_a_member_that_diverges_has_its_own_status_and_changes_no_other(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    plain = {"training__optimizer": "sgd", "backbone__batch_norm": False}
    sound = [make(catalogue, seed=seed, **plain) for seed in (0, 2)]
    wild = make(catalogue, seed=1, training__lr=1e6, **plain)
    records = run_cells([sound[0], wild, sound[1]], catalogue, stores(), batch=SLOTS)
    assert [record.status for record in records] == ["done", "diverged", "done"]
    assert "epoch" in str(records[1].reason)
    alone = [batched([cell], catalogue, stores())[0] for cell in sound]
    assert [result(records[0]), result(records[2])] == alone


def test_members_of_one_company_may_differ_in_rates_and_stop_at_different_epochs(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    settings = [{"training__lr": 0.01}, {"training__lr": 0.3, "training__weight_decay": 0.1}, {"training__lr": 0.05}]
    steep = {"training__epochs": 12, "training__plateau_patience": 0, "training__stop_ratio": 0.5}
    cells = [make(catalogue, seed=seed, **steep, **one) for seed, one in enumerate(settings)]
    assert len({company_of(cell) for cell in cells}) == 1
    together = batched(cells, catalogue, stores())
    epochs = [tuple(len(curve["loss"]) for curve in one["curves"]) for one in together]
    assert len(set(epochs)) > 1, "the schedule must end tasks at different epochs for this test to say anything"
    assert [batched([cell], catalogue, stores())[0] for cell in cells] == together


def test_the_key_says_batched_and_nothing_moves_for_others(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    cell = make(catalogue)
    stacked, wider = (dataclasses.replace(cell, slots=slots) for slots in (3, 4))
    assert len({cell_key(one, catalogue) for one in (cell, stacked, wider)}) == 3
    assert design_key(stacked) == design_key(cell)
    assert {"arithmetic", "slots"}.isdisjoint(numerics_facts("cpu", 1))
    record = run_cells([cell], catalogue, stores(), batch=3)[0]
    assert record.key == cell_key(stacked, catalogue)
    assert record.environment["numerics"] == numerics_facts("cpu", 1) | {"arithmetic": "batched-1", "slots": 3}
    assert record.cell["slots"] == 3


def test_a_batched_cell_trains_alone_where_it_is_run_alone(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    cell = make(catalogue)
    by_itself = run_cell(dataclasses.replace(cell, slots=SLOTS), catalogue, stores())
    assert result(by_itself) == batched([cell], catalogue, stores())[0]


class Interrupt:
    """Interrupts a run once so many tasks have been learnt by the cell at a place."""

    def __init__(self, place: int, tasks: int) -> None:
        self.place, self.tasks = place, tasks

    def __call__(self, place: int, learnt: int, n_tasks: int) -> None:
        if place == self.place and learnt >= self.tasks:
            raise KeyboardInterrupt


def test_an_interrupted_company_resumes_in_any_other(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    cells = [make(catalogue, "ewc", seed=seed, training__carry_optimizer=True) for seed in range(3)]
    whole = batched(cells, catalogue, stores())
    store = stores()
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, catalogue, store, batch=SLOTS, progress=Interrupt(2, 2), checkpoint_every_s=0)
    assert store.has_checkpoints()
    assert not store.keys()
    later = [run_cells([cell], catalogue, store, batch=SLOTS, checkpoint_every_s=0)[0] for cell in reversed(cells)][::-1]
    assert [record.provenance["resumed_from_task"] for record in later] == [2, 2, 2]
    assert [result(record) for record in later] == whole


def test_random_states_and_settings_of_the_process_are_left_alone(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    torch.manual_seed(5)
    before, threads, generator = torch.get_rng_state(), torch.get_num_threads(), torch.random.default_generator
    run_cells([make(catalogue, seed=seed) for seed in range(2)], catalogue, stores(), batch=SLOTS)
    assert torch.equal(torch.get_rng_state(), before)
    assert (torch.get_num_threads(), torch.random.default_generator) == (threads, generator)
    assert torch.is_grad_enabled()


REFUSED = {
    "gem": ({}, FULL, "method 'gem' is not batchable"),
    "twp": ({"method__detach_beta": False}, FULL, "only with method.detach_beta = True"),
    "mini-batches": ({"training__batch_size": 8}, FULL, "mini-batches have no stacked form"),
    "backbone": ({"training__backbone": "gat"}, FULL, "backbone 'gat' has no stacked form; expected gcn or gin"),
    "orders": ({"scenario__class_order": "random"}, OWN_GRAPHS, "cells of other orders have other graphs"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_batched_is_refused_with_the_reason(what: str, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    overrides, scenario, reason = REFUSED[what]
    cell = make(catalogue, what if what in ("gem", "twp") else "bare", scenario, **overrides)
    assert reason in why_alone(cell, catalogue)
    with pytest.raises(NotApplicable, match="cannot be batched"):
        run_cells([cell], catalogue, stores(), batch=2)


@pytest.mark.parametrize("slots", [0, 1, 65])
def test_a_stack_has_two_slots_or_more(slots: int, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    with pytest.raises(SpecError, match="expected a number of slots from 2 to 64"):
        run_cells([make(catalogue)], catalogue, stores(), batch=slots)


@pytest.mark.nightly
def test_batched_and_sequential_results_are_equivalent_in_distribution(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    """Two one-sided tests at 5 %: the 90 % interval of the mean difference of average performance lies within two points."""
    cells = [make(catalogue, seed=seed, training__epochs=25) for seed in range(8)]
    store = stores()
    stacked = [record.metrics["average_performance"] for record in run_cells(cells, catalogue, store, batch=4)]
    alone = [run_cell(cell, catalogue, store).metrics["average_performance"] for cell in cells]
    differences = np.array(stacked, dtype=float) - np.array(alone, dtype=float)
    half = scipy.stats.t.ppf(0.95, len(cells) - 1) * differences.std(ddof=1) / np.sqrt(len(cells))
    assert np.std(alone) > 0.01, "cells must differ for this test to say anything"
    assert abs(differences.mean()) + half < 0.02


def test_a_batched_record_is_planned_again_as_batched(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    record = run_cells([make(catalogue)], catalogue, stores(), batch=3)[0]
    again, reason = replanned(record, catalogue, default_engine())
    assert (again.key if again else reason) == record.key


def test_members_that_begin_with_the_same_task_train_it_once(catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    """The second one waits for the first one's state while that goes on in the same thread."""
    orders = [make(catalogue, "ewc", scenario__class_order=order) for order in ("0,1,2,3,4,5", "0,1,4,5,2,3")]
    alone = [batched([cell], catalogue, stores())[0] for cell in orders]
    cells, store = [dataclasses.replace(cell, slots=SLOTS) for cell in orders], stores()
    records = side_by_side(cells[0], [partial(run_cell, cell, catalogue, store, in_common=lambda: 1) for cell in cells])
    assert sorted(record.provenance["trained_tasks"] for record in records) == [2, 3]
    assert [result(record) for record in records] == alone


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("width", "threads"), [(16, 1), (64, 1), (16, 2)])
def test_a_graph_that_fills_kernels_changes_nothing(width: int, threads: int, catalogue: Catalogue, stores: Callable[[], Store]) -> None:
    """Vector blocks, cache blocks and threads divide larger matrices otherwise than tiny ones."""
    size = {"dataset.n_nodes": 1501, "dataset.n_features": 300, "backbone.width": width, "training.epochs": 3, "scenario.n_tasks": 2}
    cells = [
        resolve_cell(catalogue, FULL, "bare", overrides={**TINY, **size}, seeds=Seeds(order=seed, init=seed), threads=threads)
        for seed in range(SLOTS)
    ]
    together = batched(cells, catalogue, stores())
    assert [batched([cell], catalogue, stores())[0] for cell in cells] == together
