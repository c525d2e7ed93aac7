"""A worker by itself: no supervisor, only a plan and a store."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import fake_cells
import pytest

from cglsuite.campaigns.executors import worker
from cglsuite.cells.plan import CellRequest, Limits, PlanFile, PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.specs import Seeds

CATALOGUE: Any = fake_cells.FakeCatalogue()


def cell(seed: int, **overrides: Any) -> PlannedCell:
    dotted = {f"method.{name}": value for name, value in overrides.items()}
    return plan_cell(CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides=dotted, seeds=Seeds(init=seed)), CATALOGUE)


@pytest.fixture(autouse=True)
def _keep_logging() -> Any:
    logger = logging.getLogger("cglsuite")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate


def work(store: Store, plan: Path, *words: str) -> int:
    return worker.main([str(plan), "--store", str(store.path), *words])


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Where plans are written."""
    return tmp_path / "plan.json"


def test_a_worker_runs_what_nobody_has_run(store: Store, plan: Path, log: Path) -> None:
    """Done ones and held ones are left alone; a second worker finds nothing to do."""
    cells = [cell(n) for n in range(4)]
    PlanFile.of(cells).write(plan)
    store.put(fake_cells.make_record(cells[0].cell))
    lease = store.lease(cells[1].key)
    assert lease is not None
    with lease:
        assert work(store, plan) == 0
    assert Counter(log.read_text().split()) == Counter([cells[2].key, cells[3].key])
    assert work(store, plan) == 0
    assert Counter(log.read_text().split()) == Counter([c.key for c in cells[1:]])


@pytest.mark.parametrize("interval", [None, 0.0, 2.5])
def test_a_plan_says_how_often_checkpoints_are_saved(
    store: Store, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: float | None
) -> None:
    """None is left to the environment of the process that runs the cell."""
    monkeypatch.setenv("FAKE_INTERVALS", str(tmp_path / "intervals"))
    PlanFile.of([cell(0)], limits=Limits(checkpoint_every_s=interval)).write(plan)
    assert work(store, plan) == 0
    assert (tmp_path / "intervals").read_text() == f"{interval}\n"


def test_failed_cells_are_tried_once_per_plan(store: Store, plan: Path, log: Path) -> None:
    """Not by every worker of the plan; a new plan tries them again."""
    cells = [cell(0, behave="diverge")]
    for attempts in (1, 2):
        PlanFile.of(cells).write(plan)
        assert work(store, plan) == 0
        assert work(store, plan) == 0
        assert len(log.read_text().split()) == attempts


def test_a_cell_that_failed_elsewhere_while_its_lease_was_taken_is_not_tried_again(
    store: Store, plan: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker may record a failure between this one's look at the store and its lease."""
    planned = cell(0)
    PlanFile.of([planned]).write(plan)
    lease = Store.lease

    def after_another(self: Store, key: str, *more: Any) -> Any:
        self.put(fake_cells.make_record(planned.cell, status="failed", reason="on another machine"))
        return lease(self, key, *more)

    monkeypatch.setattr(Store, "lease", after_another)
    assert work(store, plan) == 0
    assert log.read_text() == ""
    record = store.get(planned.key)
    assert record is not None
    assert record.reason == "on another machine"


def test_the_failure_of_a_cell_is_recorded_before_its_lease_is_released(
    store: Store, plan: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another worker could take the cell in between and try it a second time."""
    planned = cell(0, behave="raise")
    PlanFile.of([planned]).write(plan)
    holders: list[Any] = []
    put = Store.put

    def watched(self: Store, record: Any, **more: Any) -> bool:
        holders.append(self.holder(record.key))
        return put(self, record, **more)

    monkeypatch.setattr(Store, "put", watched)
    assert work(store, plan) == worker.AGAIN
    assert len(holders) == 1
    assert holders[0] is not None
    record = store.get(planned.key)
    assert record is not None
    assert record.reason == "RuntimeError: the core itself broke"


def test_a_stream_that_is_refused_wears_no_process(store: Store, plan: Path, log: Path) -> None:
    """The same fault of fifty cells takes no fifty processes."""
    cells = [cell(n, behave="refuse") for n in range(3)]
    PlanFile.of(cells).write(plan)
    assert work(store, plan) == 0
    assert {store.get(planned.key).reason for planned in cells} == {"of 15 classes 1 would fill no task"}  # type: ignore[union-attr]


@pytest.mark.parametrize(("index", "of", "route"), [(0, 2, "012543"), (1, 2, "345210"), (1, 3, "235410"), (0, 1, "012345")])
def test_workers_begin_in_their_own_stretch(store: Store, plan: Path, log: Path, index: int, of: int, route: str) -> None:
    """So that neighbours, which share data and prefixes, are run by the same worker; helpers come from the far end."""
    cells = [cell(n) for n in range(6)]
    PlanFile.of(cells).write(plan)
    work(store, plan, "--index", str(index), "--of", str(of))
    assert log.read_text().split() == [cells[int(n)].key for n in route]


def ordered(order: str) -> PlannedCell:
    """A cell with two classes in every task of ``order``."""
    classes = order if order == "random" else ",".join(f"{2 * int(task)},{2 * int(task) + 1}" for task in order.split(","))
    request = CellRequest(scenario="toy/task-il@begin-1", method="bare", overrides={"scenario.class_order": classes})
    return plan_cell(request, CATALOGUE)


def test_a_family_is_run_depth_first_and_told_what_is_still_needed(store: Store, plan: Path, log: Path) -> None:
    """In the places that it has in the plan, whatever else is there; a cell that is done is not waited for."""
    orders = ["2,0,1", "0,1,2", "random", "0,2,1", "2,1,0"]
    family, stranger = [ordered(o) for o in orders], cell(7)
    cells = [*family[:2], stranger, *family[2:]]
    PlanFile.of(cells, {c.key: "f" for c in family}).write(plan)
    assert work(store, plan) == 0
    by_key = {c.key: name for c, name in zip([*family, stranger], [*orders, "stranger"], strict=True)}
    assert [by_key[key] for key in log.read_text().split()] == ["0,1,2", "0,2,1", "stranger", "2,0,1", "2,1,0", "random"]
    message = [(store.path / "common" / family[n].key).read_text() for n in (1, 3, 0, 4, 2)]
    assert message == ["1 1", "0 0", "1 1", "0 0", "0 0"]
    assert (store.path / "common" / stranger.key).read_text() == "0 0"


def test_exit_statuses(store: Store, plan: Path) -> None:
    """A plan that is none, a full disk."""
    plan.write_text("{}")
    assert work(store, plan) == 2
    PlanFile.of([cell(0, behave="full")]).write(plan)
    assert work(store, plan) == worker.STORE_FAULT
