"""Whole cells over the embedded links, from preset to record: what is learnt shows, and one cell is the same whoever ran before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cglsuite_link.protocols import link_presets
from installed import installed

from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

PRESETS = [preset for preset in link_presets() if preset.name.startswith("synthetic-") and preset.protocol != "begin-2"]
SMALL: dict[str, Any] = {"training.epochs": 40, "training.lr": 0.01, "backbone.width": 16, "backbone.predictor_width": 16}
#: Performance of a model that has learnt nothing, by measure; Hits@K of chance is K over the number of pairs without a link.
CHANCE = {"micro": 0.5, "roc-auc": 0.5, "hits": 50 / 400}


def record_of(name: str, method: str, folder: Path) -> Any:
    record = run_cell(resolve_cell(installed(), name, method, overrides=SMALL), installed(), Store(folder))
    assert record.status == "done", record.reason
    return record


@pytest.mark.sampled(2)
@pytest.mark.plugins
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_tasks_are_learnt(preset: Any, tmp_path: Path) -> None:
    record = record_of(preset.name, "bare", tmp_path)
    just_learnt = [row[k] for k, row in enumerate(record.matrix[1:])]
    assert sum(just_learnt) / len(just_learnt) > CHANCE[preset.performance] + 0.1
    assert record.memory["items"] == 0


@pytest.mark.sampled(1)
@pytest.mark.plugins
@pytest.mark.parametrize("name", ["synthetic-signed-links/class-il@begin-1", "synthetic-temporal-links/time-il@begin-paper-1"])
def test_a_memory_keeps_to_the_budget_and_holds_pairs_alone(name: str, tmp_path: Path) -> None:
    record = record_of(name, "gem", tmp_path)
    assert 0 < record.memory["items"] <= record.memory["budget_items"]
    # Both ends, task and label, 64 bits each at most: no features are kept, pairs are read in the graph.
    assert record.memory["bytes"] <= record.memory["items"] * 32


@pytest.mark.nightly
@pytest.mark.plugins
def test_joint_training_keeps_what_fine_tuning_forgets(tmp_path: Path) -> None:
    bare, joint = (record_of("synthetic-signed-links/class-il@begin-1", method, tmp_path) for method in ("bare", "joint"))
    assert joint.metrics["average_performance"] > bare.metrics["average_performance"]


@pytest.mark.plugins
def test_twp_as_implemented_by_begin(tmp_path: Path) -> None:
    """The second version of a preset: the attention is read off degree-normalised embeddings."""
    name = "synthetic-signed-links/class-il@begin-2"
    cell = resolve_cell(installed(), name, "twp", overrides=SMALL | {"training.epochs": 3})
    assert cell.configuration["method.attention_from"] == "degree-normalised"
    record = run_cell(cell, installed(), Store(tmp_path))
    assert record.status == "done", record.reason
