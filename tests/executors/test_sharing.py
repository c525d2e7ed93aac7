"""Cells whose orders begin with the same tasks share what was learnt of them: the number of trainings, and that no number changes."""

from __future__ import annotations

import os
import signal
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.executors.campaign_run import CampaignOutcome, run_campaign, trainings_text
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins

CAMPAIGN = """
name = "orders"
[grid]
scenarios = ["synthetic-csbm/class-il@begin-1"]
methods = ["{method}"]
[seeds]
orders = {orders}
[set]
scenario.n_tasks = {tasks}
dataset.n_nodes = {nodes}
dataset.n_classes = {classes}
dataset.n_features = 40
backbone.width = 6
training.epochs = {epochs}
[run]
workers = {workers}
device = "cpu"
share_prefixes = {share}
"""


class Watched:
    """The most checkpoints that lay in a store at once, by looking again and again."""

    def __init__(self, store: Store) -> None:
        self.folder, self.most, self._stop = store.path / "checkpoints", 0, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.wait(0.001):
            self.most = max(self.most, len([p for p in self.folder.glob("*.pt") if not p.name.startswith(".")]))

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def orders_run(
    store: Store,
    orders: str = '"all-tasks"',
    *,
    tasks: int = 3,
    workers: int = 1,
    share: bool = True,
    method: str = "er-gnn",
    epochs: int = 2,
) -> CampaignOutcome:
    from cglsuite import load_catalogue

    facts = {"orders": orders, "tasks": tasks, "workers": workers, "share": str(share).lower(), "method": method, "epochs": epochs}
    text = CAMPAIGN.format(nodes=24 * tasks, classes=2 * tasks, **facts)
    return run_campaign(Campaign.parse(tomllib.loads(text)), load_catalogue(), store, progress=False)


def found(outcome: CampaignOutcome, store: Store) -> dict[str, Any]:
    """Everything in the records that is a result, by key."""
    records = [store.cached(p.key) for p, _ in outcome.states]
    parts = ("matrix", "validation_matrix", "per_class", "training", "metrics", "tasks", "parameters", "cell", "design")
    return {
        r.key: {name: r.to_json()[name] for name in parts} | {"memory": {k: v for k, v in r.memory.items() if k != "peak_bytes"}}
        for r in records
        if r is not None
    }


def leftovers(store: Store) -> list[str]:
    folders = ("checkpoints", "leases", "plans")
    return [p.name for f in folders for p in (store.path / f).glob("*") if not p.name.startswith(".")]


@pytest.mark.nightly
def test_six_orders_of_three_tasks_take_fifteen_trainings_and_give_the_same_bits(tmp_path: Path) -> None:
    """3 + 6 + 6 instead of 18; along the way no more states than tasks lie in the store, and at the end none."""
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    with Watched(shared) as watched:
        together = orders_run(shared)
    assert together.counts == {"done": 6}
    assert together.trainings == (18, 15)
    assert trainings_text(together.trainings) == "trained 15 of 18 tasks, the other 3 were shared"
    assert watched.most <= 3
    assert leftovers(shared) == []
    apart = orders_run(alone, share=False)
    assert apart.trainings == (18, 18)
    assert leftovers(alone) == []
    assert trainings_text(apart.trainings) == ""
    assert len(found(together, shared)) == 6
    assert found(together, shared) == found(apart, alone)


@pytest.mark.nightly
def test_two_workers_train_no_task_twice(tmp_path: Path) -> None:
    """24 orders of four tasks: 4 + 12 + 24 + 24 = 64 trainings instead of 96, however many workers share them."""
    store = Store(tmp_path / "store")
    with Watched(store) as watched:
        outcome = orders_run(store, tasks=4, workers=2, method="bare")
    assert outcome.counts == {"done": 24}
    assert outcome.trainings == (96, 64)
    assert watched.most <= 8
    assert leftovers(store) == []


def test_designs_share_with_each_other(tmp_path: Path) -> None:
    """Latin rows and drawn orders of tasks are among all orders: they cost nothing more, and leave the same matrices."""
    store = Store(tmp_path / "store")
    outcome = orders_run(store, '["latin-tasks", "random-tasks:4", "all-tasks"]')
    assert outcome.counts == {"done": 16}
    assert outcome.trainings == (48, 15)
    assert leftovers(store) == []
    records = [store.cached(p.key) for p, _ in outcome.states]
    by_order: dict[str, set[str]] = {}
    for record in records:
        assert record is not None
        by_order.setdefault(str([t["classes"] for t in record.tasks]), set()).add(str(record.matrix))
    assert len(by_order) == 6
    assert all(len(matrices) == 1 for matrices in by_order.values())


@pytest.mark.nightly
def test_drawn_orders_of_classes_share_their_first_task_where_they_can(tmp_path: Path) -> None:
    """Eight orders of four classes in two tasks: as many first trainings as there are first tasks."""
    store = Store(tmp_path / "store")
    outcome = orders_run(store, '"random-classes:30"', tasks=2, method="bare")
    records = [store.cached(p.key) for p, _ in outcome.states]
    first = {str(r.tasks[0]["classes"]) for r in records if r is not None}
    assert len(first) < 30
    assert outcome.trainings == (60, len(first) + 30)
    assert leftovers(store) == []


def test_a_killed_worker_costs_its_cell_and_what_the_others_share_stays(tmp_path: Path) -> None:
    """One of two workers dies in the middle; run again, every cell gives what it gives alone."""
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    victims: list[int] = []

    def strike() -> None:
        deadline = time.monotonic() + 60
        while not victims and time.monotonic() < deadline:
            leases = [p.stem for p in (shared.path / "leases").glob("*.lease") if "-" in p.stem and not p.stem.startswith("plan-")]
            victims.extend(h.pid for h in map(shared.holder, leases) if h is not None)
        if victims:
            os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=strike)
    killer.start()
    first = orders_run(shared, workers=2, epochs=30)
    killer.join()
    assert victims
    assert first.counts.get("failed", 0) <= 1
    again = orders_run(shared, workers=2, epochs=30)
    assert again.counts == {"done": 6}
    assert leftovers(shared) == []
    assert found(again, shared) == found(orders_run(alone, share=False, epochs=30), alone)
