"""Data sets that are neither bundled nor a file of the user's: they are loaded at launch where the settings are not a preset's."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from installed import installed

from cglsuite import Catalogue
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, SpecError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import check_feasible, plan_campaign
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins
PLACE = "cglsuite_node.datasets.synthetic.synthetic_csbm"


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    known = installed()
    not_bundled = dataclasses.replace(known.dataset("synthetic-csbm"), embedded=False)
    monkeypatch.setattr(Catalogue, "dataset", lambda self, name: not_bundled)
    return known


def check(catalogue: Catalogue, store: Store, **settings: Any) -> None:
    content = {"name": "c", "grid": {"scenarios": ["synthetic-csbm/class-il@begin-1"], "methods": ["bare", "ewc"]}}
    campaign = Campaign.parse(content | {"set": {"dataset.n_nodes": 400, "training.epochs": 1} | settings})
    check_feasible(plan_campaign(campaign, catalogue, store=store), catalogue, "here")


def test_settings_that_fit_no_task_are_refused(catalogue: Catalogue, tmp_path: Any) -> None:
    with pytest.raises(SpecError, match=r"^here: synthetic-csbm/class-il@begin-1: scenario\.n_tasks = 9, but 10 classes form at most 5 "):
        check(catalogue, Store(tmp_path), **{"scenario.n_tasks": 9})


def test_a_single_task_is_named(catalogue: Catalogue, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    check(catalogue, Store(tmp_path), **{"scenario.classes_per_task": 10})
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "synthetic-csbm/class-il@begin-1: the stream has a single task, so there is no continual learning: lower scenario.classes_per_task"
    ]


def test_files_that_are_absent_are_left_to_the_workers(catalogue: Catalogue, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked for once for all cells, and not downloaded."""
    roots = []

    def absent(root: DataRoot, **_: Any) -> None:
        roots.append(root)
        raise DataError("the data file is absent")

    monkeypatch.setattr(PLACE, absent)
    check(catalogue, Store(tmp_path), **{"scenario.n_tasks": 9})
    assert [root.offline for root in roots] == [True]


def test_data_of_a_preset_are_not_read(catalogue: Catalogue, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PLACE, None)
    check(catalogue, Store(tmp_path))
