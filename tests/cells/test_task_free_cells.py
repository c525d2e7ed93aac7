"""Task-free cells end to end: what their records hold beside the curve, and a search that validation decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cglsuite import Catalogue, load_catalogue
from cglsuite.base.errors import SpecError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_search
from cglsuite.cells.records.record import Record
from cglsuite.cells.run import StoreCheckpoints, build_stream, run_cell
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.cells.storage.store import Store

pytestmark = pytest.mark.plugins

NODES, SEQUENCES = "synthetic-csbm/gaussian@drift-honest-1", "synthetic-motion/gaussian@drift-honest-1"
TINY: dict[str, dict[str, Any]] = {
    NODES: {
        "dataset.n_nodes": 120,
        "dataset.n_classes": 6,
        "dataset.n_features": 40,
        "dataset.words": 5,
        "dataset.avg_degree": 4,
        "backbone.width": 6,
        "training.batch_size": 4,
        "training.fan_out": "3,3",
        "stream.evaluate_every": 6,
        "schedule.sigma": 3.0,
        "scenario.memory_budget": 30,
    },
    SEQUENCES: {
        "dataset.per_class": 10,
        "dataset.n_classes": 4,
        "dataset.frames": 6,
        "backbone.width": 6,
        "training.batch_size": 4,
        "stream.evaluate_every": 3,
        "schedule.sigma": 2.0,
        "scenario.memory_budget": 9,
    },
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(allow=["cglsuite", *(f"cglsuite-{name}" for name in ("node", "skeleton", "drift", "methods", "metrics"))])


def cell(catalogue: Catalogue, method: str, scenario: str = NODES, **overrides: Any) -> CellSpec:
    return resolve_cell(catalogue, scenario, method, overrides=TINY[scenario] | {k.replace("__", "."): v for k, v in overrides.items()})


def made(asked: CellSpec, catalogue: Catalogue, folder: Path) -> Record:
    """The record of a cell, as it is read back from the store."""
    store = Store(folder)
    record = run_cell(asked, catalogue, store)
    assert record.status == "done", record.reason
    store.put(record)
    read = store.get(record.key)
    assert read is not None
    return read


@pytest.mark.parametrize("scenario", [NODES, SEQUENCES])
def test_firings_of_the_detector(scenario: str, catalogue: Catalogue, tmp_path: Path) -> None:
    """Thresholds that every window meets let it fire once, as no peak follows; ones that none meets, never."""
    always = made(cell(catalogue, "mas-star", scenario, method__mean_threshold=99.0, method__variance_threshold=99.0), catalogue, tmp_path)
    never = made(cell(catalogue, "mas-star", scenario, method__mean_threshold=0.0), catalogue, tmp_path)
    assert always.counters["triggers"] >= 1
    assert never.counters == {"triggers": 0}
    assert json.loads(json.dumps(always.to_json()))["provenance"]["counters"] == always.counters


@pytest.mark.parametrize("scenario", [NODES, SEQUENCES])
def test_what_arrived(scenario: str, catalogue: Catalogue, tmp_path: Path) -> None:
    asked = cell(catalogue, "bare", scenario)
    record, stream = made(asked, catalogue, tmp_path), build_stream(asked, catalogue)
    draws = torch.bincount(stream.items.flatten(), minlength=10_000)  # type: ignore[attr-defined]
    for k, counts in enumerate(record.stream["exposure"]):
        assert counts == torch.bincount(draws[stream.members(k, "train")]).tolist()
        assert sum(n * count for n, count in enumerate(counts)) == record.stream["delivered"][-1][k]
    assert record.counters == {}
    assert record.memory["items"] == record.memory["edges"] == record.memory["bytes"] == 0


@pytest.mark.parametrize("scenario", [NODES, SEQUENCES])
def test_the_record_of_a_resumed_cell_says_what_was_covered(
    scenario: str, catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that says ``resumed from 0, trained all, in 0 s`` says nothing that is true."""
    asked, save = cell(catalogue, "er", scenario), StoreCheckpoints.save
    whole = made(asked, catalogue, tmp_path / "whole")
    assert (whole.provenance["resumed_from_task"], whole.provenance["trained_tasks"]) == (0, len(whole.tasks))
    assert whole.provenance["trained_s"] > 0 == whole.provenance["covered_s"]

    def stop(self: StoreCheckpoints, prefix: str, payload: dict[str, Any]) -> None:
        save(self, prefix, payload)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoreCheckpoints, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            run_cell(asked, catalogue, Store(tmp_path / "resumed"))
    resumed = made(asked, catalogue, tmp_path / "resumed")
    assert resumed.stream["resumed_from_evaluation"] == 1
    assert resumed.provenance["resumed_from_task"] + resumed.provenance["trained_tasks"] == len(resumed.tasks)
    assert resumed.provenance["trained_s"] > 0 < resumed.provenance["covered_s"]
    assert resumed.provenance["trained_s"] + resumed.provenance["covered_s"] == pytest.approx(resumed.timings_s["total"])
    assert resumed.matrix == whole.matrix


def test_a_budget_counts_the_same_for_every_memory(catalogue: Catalogue, tmp_path: Path) -> None:
    """Thirty nodes, alone or with their neighbours; edges are counted beside them, and bytes cover features, labels and edges."""
    memory = {name: made(cell(catalogue, name), catalogue, tmp_path).memory for name in ("er", "a-gem", "gss", "dmsg", "ssm", "sem")}
    for name, used in memory.items():
        surroundings = name in {"ssm", "sem"}
        assert used["items"] == 30 or (surroundings and 30 - 13 < (used["items"] or 0) <= 30), name  # 13: the largest of one, 1 + 3 + 9
        assert ((used["edges"] or 0) > 0) == surroundings, name
        assert (used["bytes"] or 0) > 16 * (used["edges"] or 0), name
    assert len({memory[name]["bytes"] for name in ("er", "a-gem", "gss", "dmsg")}) == 1, "the same kind of item costs the same"


def test_graphs_are_items_of_a_memory(catalogue: Catalogue, tmp_path: Path) -> None:
    used = made(cell(catalogue, "er", SEQUENCES), catalogue, tmp_path).memory
    assert used["items"] == 9
    assert (used["bytes"] or 0) > 0


@pytest.mark.nightly
def test_a_search_goes_by_validation(catalogue: Catalogue, tmp_path: Path) -> None:
    """Of a rate that learns and one that does not the validation items choose the first; scores are means over latent tasks."""
    store = Store(tmp_path)
    campaign = {
        "name": "searched",
        "grid": {"scenarios": [NODES], "methods": ["er"]},
        "set": TINY[NODES] | {"training.epochs": 15, "dataset.n_nodes": 240},
        "search": {"grid": {"training.lr": [1e-9, 0.05]}, "seeds": {"init": [0, 1]}},
        "run": {"numerics": "native"},
    }
    with pytest.raises(UsageError, match=r"search.scope: first-tasks\(2\) cannot be used with a task-free stream"):
        plan_search(Campaign.parse(campaign | {"search": campaign["search"] | {"scope": "first-tasks(2)"}}), catalogue)  # type: ignore[operator]
    (search,) = plan_search(Campaign.parse(campaign), catalogue)
    scores = []
    for candidate in search.candidates:
        for planned in candidate.cells:
            assert planned.cell is not None
            record = run_cell(planned.cell, catalogue, store)
            store.put(record)
            scores.append(record.validation()[-1].mean())
            assert record.validation().shape == record.performance().shape
    choice = search.choose(store)
    assert choice is not None
    assert choice.overrides == {"training.lr": 0.05}
    assert [s for row in choice.outcome["candidates"] for s in row["scores"]] == pytest.approx(scores)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"schedule__sigma": 0.0}, "schedule.sigma = 0.0: expected a positive number of steps"),
        ({"schedule__sigma": -1.0}, r"sigma = -1\.0: expected at least 0"),
        ({"stream__schedule": "global", "schedule__p": 1.5}, r"p = 1\.5: expected at most 1"),
        ({"training__batch_size": 200}, "latent task 1 has only .* training items; lower training.batch_size"),
    ],
)
def test_what_cannot_be_is_refused_by_name(overrides: dict[str, Any], message: str, catalogue: Catalogue) -> None:
    given = TINY[NODES] | {k.replace("__", "."): v for k, v in overrides.items()}
    if "stream__schedule" in overrides:
        del given["schedule.sigma"]
    with pytest.raises(SpecError, match=message):
        build_stream(resolve_cell(catalogue, NODES, "bare", overrides=given), catalogue)
