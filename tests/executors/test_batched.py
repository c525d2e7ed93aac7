"""Campaigns with ``[run] batch``: which cells are planned in stacks, and what workers make of them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cglsuite import Catalogue, load_catalogue
from cglsuite.campaigns.campaign import load_campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells import run_cells
from cglsuite.cells.plan import PlanFile, PlannedCell
from cglsuite.cells.storage.store import Store
from cglsuite.errors import UsageError

pytestmark = pytest.mark.plugins

CAMPAIGN = """
name = "stacked"
[grid]
scenarios = ["synthetic-csbm/task-il@begin-1"]
methods = ["bare", "gem"]
[seeds]
design = "cross"
order = [0, 1, 2, 3]
init = [0]
[set]
dataset.n_nodes = 90
dataset.n_classes = 6
dataset.n_features = 30
backbone.width = 4
training.epochs = 20
scenario.class_order = "random"
[run]
batch = 3
"""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def planned(folder: Path, catalogue: Catalogue, text: str = CAMPAIGN, device: str = "cpu") -> tuple[Path, list[PlannedCell]]:
    path = folder / "stacked.toml"
    path.write_text(text)
    from cglsuite.campaigns.overrides import Overrides

    return path, plan_campaign(load_campaign(path), catalogue, Overrides(device=device))


def outcome(store: Store, key: str) -> dict[str, Any]:
    record = store.cached(key)
    assert record is not None
    found = record.to_json()
    facts = {name: found[name] for name in ("status", "matrix", "validation_matrix", "training", "cell")}
    return facts | {"numerics": found["environment"]["numerics"]}


def start(campaign: Path, store: Store) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "cglsuite", "run", str(campaign), "--store", str(store.path), "--no-reports", "--device", "cpu"]
    return subprocess.Popen(words, env={k: v for k, v in os.environ.items() if k != "FAKE_LOG"}, cwd=campaign.parent)


def test_cells_that_cannot_be_batched_are_planned_as_ever_and_say_why_once(
    tmp_path: Path, catalogue: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="cglsuite"):
        _, cells = planned(tmp_path, catalogue)
    _, plain = planned(tmp_path, catalogue, CAMPAIGN.replace("batch = 3", ""))
    slots = {(p.request.method, p.request.slots, p.cell.slots if p.cell else None) for p in cells}
    assert slots == {("bare", 3, 3), ("gem", 0, 0)}
    assert [message for message in caplog.messages if "batched" in message] == [
        "synthetic-csbm/task-il@begin-1 × gem is not batched: method 'gem' is not batchable"
    ]
    assert {p.key for p in cells} & {p.key for p in plain} == {p.key for p in plain if p.request.method == "gem"}


def test_auto_batches_on_cuda_alone(tmp_path: Path, catalogue: Catalogue) -> None:
    text = CAMPAIGN.replace("batch = 3", 'batch = "auto"')
    assert {p.request.slots for p in planned(tmp_path, catalogue, text)[1]} == {0}


@pytest.mark.parametrize("given", ["1", "65", '"all"', "true", "2.5"])
def test_other_values_of_batch_are_refused(given: str, tmp_path: Path, catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match=r"run\.batch"):
        planned(tmp_path, catalogue, CAMPAIGN.replace("batch = 3", f"batch = {given}"))


def test_a_plan_file_names_slots_only_where_there_are_some(tmp_path: Path, catalogue: Catalogue) -> None:
    _, cells = planned(tmp_path, catalogue)
    plan = PlanFile.of(cells, "cglsuite.cells.engine:default_engine")
    plan.write(tmp_path / "plan.json")
    assert PlanFile.read(tmp_path / "plan.json").cells == plan.cells
    assert {"slots" in request.to_json() for _, request in plan.cells if request.method == "gem"} == {False}


def test_workers_train_stacks_and_a_killed_run_goes_on(tmp_path: Path, catalogue: Catalogue) -> None:
    """Four cells in stacks of three slots: a company of three and one of one; killed in the middle and started again."""
    path, cells = planned(tmp_path, catalogue, CAMPAIGN.replace('["bare", "gem"]', '["bare"]'))
    here, killed = Store(tmp_path / "here"), Store(tmp_path / "killed")
    run_cells([p.cell for p in cells if p.cell is not None], catalogue, here, batch=3)
    with start(path, killed) as process:
        deadline = time.monotonic() + 100
        while not any(killed.cached(p.key) for p in cells) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    with start(path, killed) as process:
        assert process.wait(100) == 0
    assert [outcome(killed, p.key) for p in cells] == [outcome(here, p.key) for p in cells]
    assert {outcome(killed, p.key)["numerics"]["slots"] for p in cells} == {3}
    assert not killed.problems
    assert not list((killed.path / "leases").glob("*.lease"))


@pytest.mark.nightly
def test_orders_in_stacks_train_each_shared_prefix_once(tmp_path: Path, catalogue: Catalogue) -> None:
    """Six orders of three tasks are a tree of 3 + 6 + 6 trainings: a member waits for the tasks that another one is learning."""
    text = CAMPAIGN.replace('design = "cross"\norder = [0, 1, 2, 3]', 'orders = "all-tasks"').replace('"bare", "gem"', '"bare"')
    text = text.replace('scenario.class_order = "random"', "scenario.n_tasks = 3").replace("batch = 3", "batch = 8")
    path, cells = planned(tmp_path, catalogue, text)
    assert [p.request.slots for p in cells] == [8] * 6
    store = Store(tmp_path / "store")
    with start(path, store) as process:
        assert process.wait(100) == 0
    records = [store.cached(p.key) for p in cells]
    assert sum(r.provenance["trained_tasks"] for r in records if r is not None) == 15
