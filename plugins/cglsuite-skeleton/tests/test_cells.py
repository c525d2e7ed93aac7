"""Whole cells over skeletons, from preset to record: both backbones, every method that the benchmark ran, augmentation included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from installed import installed

from cglsuite import Seeds
from cglsuite.cells.run import run_cell
from cglsuite.cells.spec import resolve_cell
from cglsuite.cells.storage.store import Store

SCENARIO = "synthetic-motion/class-il@skeleton-1"
SMALL: dict[str, Any] = {
    "dataset.n_classes": 4,
    "dataset.per_class": 40,
    "dataset.noise": 0.2,
    "dataset.frames": 16,
    "scenario.n_tasks": 2,
    "training.epochs": 30,
    "training.lr": 0.01,
    "backbone.width": 8,
}
#: Every method once, every category of methods on both backbones.
METHODS = [
    ("bare", "graph-gcn"),
    ("joint", "st-gcn"),
    ("ewc", "graph-gcn"),
    ("twp", "st-gcn"),
    ("mas", "graph-gcn"),
    ("lwf", "st-gcn"),
    ("gem", "graph-gcn"),
    ("replay", "st-gcn"),
]


def record_of(folder: Path, method: str, backbone: str | None = None, seeds: Seeds | None = None, **overrides: Any) -> Any:
    cell = resolve_cell(installed(), SCENARIO, method, backbone, SMALL | overrides, seeds or Seeds())
    record = run_cell(cell, installed(), Store(folder))
    assert record.status == "done", record.reason
    return record


@pytest.mark.sampled(3)
@pytest.mark.plugins
@pytest.mark.parametrize(("method", "backbone"), METHODS)
def test_a_method_from_preset_to_record(method: str, backbone: str, tmp_path: Path) -> None:
    record = record_of(tmp_path, method, backbone)
    assert len(record.matrix) == 3
    assert record.metrics["average_performance"] is not None
    assert record.matrix[1][0] > 0.6, "two classes of the first task are told apart better than by chance"
    if method in ("replay", "gem"):
        assert record.memory["items"] > 0
        assert record.memory["bytes"] > 0


@pytest.mark.plugins
@pytest.mark.parametrize("backbone", ["graph-gcn", "st-gcn"])
def test_outputs_are_kept_with_sequences(backbone: str, tmp_path: Path) -> None:
    """Of four classes a float32 output and a bool each."""
    record = record_of(tmp_path, "der++", backbone, **{"method.memory": 10, "training.epochs": 2})
    assert record.memory["items"] == 10
    assert record.memory["extra_bytes"] == 10 * 4 * (4 + 1)
    assert record.memory["bytes"] > record.memory["extra_bytes"]


@pytest.mark.plugins
def test_a_cell_is_the_same_whoever_ran_before(tmp_path: Path) -> None:
    one = record_of(tmp_path / "a", "replay")
    record_of(tmp_path / "b", "replay", seeds=Seeds(init=5))
    again = record_of(tmp_path / "b", "replay")
    assert one.matrix == again.matrix
    assert one.fingerprints() == again.fingerprints()


@pytest.mark.plugins
def test_inputs_kept_or_made_anew_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = record_of(tmp_path / "a", "replay")
    monkeypatch.setenv("CGLSUITE_AUGMENTATION_CACHE_MB", "0")
    anew = record_of(tmp_path / "b", "replay")
    assert kept.fingerprints() == anew.fingerprints()


@pytest.mark.sampled(1)
@pytest.mark.plugins
@pytest.mark.parametrize("policy", ["shared", "frozen", "per-task"])
def test_norm_statistics_are_a_switch(policy: str, tmp_path: Path) -> None:
    assert len(record_of(tmp_path, "bare", "st-gcn", **{"training.norm_statistics": policy}).matrix) == 3
