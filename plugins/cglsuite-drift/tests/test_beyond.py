"""Task-free streams of real targets and of several labels: nothing leaks, outputs are never hidden, and methods of classes are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cglsuite_drift.beyond import beyond_presets
from installed import installed

from cglsuite import Seeds
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.cells.run import build_scenario, run_cell
from cglsuite.cells.spec import resolve_cell, resolve_scenario
from cglsuite.cells.storage.store import Store
from cglsuite.learning.task_free_runner import TaskFreeRunner

PRESETS = {preset.name: preset for preset in beyond_presets()}
EMBEDDED = [name for name in PRESETS if name.startswith("synthetic-")]


def stream(name: str, task_free: dict[str, Any] | None = None, order: int = 1) -> Any:
    catalogue = installed()
    resolved = resolve_scenario(catalogue, name)
    spec = resolved.spec
    assert spec.task_free is not None
    spec = replace(spec, task_free=replace(spec.task_free, **(task_free or {})))
    return build_scenario(catalogue, spec, resolved.dataset_hyperparameters, Seeds(order=order, split=1))


@pytest.mark.parametrize("name", EMBEDDED)
def test_training_items_arrive_about_equally_often_and_others_never(name: str) -> None:
    made = stream(name)
    draws = made.items.flatten().bincount(minlength=len(made.data.y))
    for k in range(len(made)):
        arrived = draws[made.members(k, "train")]
        assert int(arrived.max() - arrived.min()) <= 1
        if "/periodic@" in name:  # the last batch of a latent task is filled with items that have arrived before
            assert int(arrived.min()) == 1
            assert int(arrived.sum()) - len(arrived) < made.items.shape[1]
        assert not draws[made.members(k, "test")].any()
        assert not draws[made.members(k, "validation")].any()


@pytest.mark.parametrize("name", [name for name in EMBEDDED if "links" not in name])
def test_queries_have_no_targets_and_batches_all_outputs(name: str) -> None:
    made = stream(name)
    batch = made.make_batch(0)
    assert torch.equal(batch.y, made.data.y[made.items[0]])
    assert batch.allowed.all()
    queries = [group.query for group in made.make_queries(made.n_steps)]
    assert all(query.y is None and query.tasks is None for query in queries)
    assert [len(query) for query in queries] == [
        sum(made.members(k, part).numel() for k in range(len(made))) for part in ("test", "validation")
    ]


@pytest.mark.parametrize("name", [name for name in EMBEDDED if "temporal-links" in name])
def test_links_are_ranked_against_the_same_negatives_at_every_evaluation(name: str) -> None:
    made = stream(name)
    (first,), (last,) = made.make_queries(0), made.make_queries(made.n_steps)
    assert first.query.y is None
    assert torch.equal(first.query.ids, last.query.ids)
    links = {tuple(pair) for pair in made.data.links.T.tolist()}
    batch = made.make_batch(3)
    positive, negative = batch.ids[batch.y[:, 0]], batch.ids[~batch.y[:, 0]]
    assert torch.equal(positive.T, made.data.links[:, made.items[3]])
    assert torch.equal(positive[:, 0], negative[:, 0])
    assert {tuple(pair) for pair in positive.tolist()} <= links
    asked = {tuple(sorted(pair)) for part in ("validation", "test") for k in range(len(made)) for pair in pairs(made, k, part)}
    for step in (0, made.n_steps - 1):
        graph = made.make_batch(step).graph
        assert not asked & {tuple(sorted(pair)) for pair in edges_of(graph)}


def pairs(made: Any, k: int, part: str) -> list[list[int]]:
    rows: list[list[int]] = made.data.links[:, made.members(k, part)].T.tolist()
    return rows


def edges_of(graph: Any) -> list[list[int]]:
    rows: list[list[int]] = graph.edge_index.T.tolist()
    return rows


@pytest.mark.parametrize("name", [name for name in EMBEDDED if "/real-time@" in name])
def test_training_graphs_contain_nothing_of_later_periods(name: str) -> None:
    """A later period's nodes or links come into the graph with its first item, and no earlier."""
    made = stream(name)
    arrival = made._stream.layout.arrival if hasattr(made, "_stream") else made.layout.arrival
    reached = [max(k for k in range(len(made)) if int(made.counts[: step + 1, k].sum())) for step in range(made.n_steps)]
    assert reached[0] < len(made) - 1 == reached[-1]
    for step in (0, made.n_steps // 2, made.n_steps - 1):
        graph = made.make_batch(step).graph
        if made.spec.level == "NR":
            expected = int((arrival[made.present] <= reached[step]).sum())
            assert graph.n_nodes == expected
        else:
            there = {tuple(sorted(pair)) for pair in made.data.links[:, arrival <= reached[step]].T.tolist()}
            assert {tuple(sorted(pair)) for pair in edges_of(graph) if pair[0] != pair[1]} <= there
    sizes = [made.make_batch(step).graph.n_edges for step in (0, made.n_steps - 1)]
    assert sizes[0] < sizes[1]


def test_the_items_depend_on_the_order_seed() -> None:
    name = "synthetic-node-targets/periodic@task-free-1"
    assert stream(name).content == stream(name).content
    assert stream(name).content != stream(name, order=2).content


@pytest.mark.parametrize("mask", ["seen", "progressive"])
def test_masks_of_classes_are_refused(mask: str) -> None:
    with pytest.raises(SpecError, match=rf"stream.mask = {mask}: periods and domains share all outputs, .*; expected all"):
        stream("synthetic-node-targets/periodic@task-free-1", {"mask": mask})


@pytest.mark.parametrize("method", ["er", "ewc"])
def test_methods_of_classes_or_boundaries_are_refused(method: str) -> None:
    with pytest.raises(NotApplicable, match=f"method '{method}' (supports only NC|needs task boundaries|supports only)"):
        resolve_cell(installed(), "synthetic-node-targets/periodic@task-free-1", method)


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["node-targets", "graph-regression", "signed-links", "temporal-links"])
def test_an_interruption_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """The cell goes on from its last evaluation, with a graph that has grown and a memory that has been filled."""
    schedule = "periodic" if level == "graph-regression" else "real-time"
    made = resolve_cell(installed(), f"synthetic-{level}/{schedule}@task-free-1", "der++")
    whole = run_cell(made, installed(), Store(tmp_path / "whole"))
    original, begun = TaskFreeRunner._advance, []

    def interrupted(self: TaskFreeRunner, k: int) -> Any:
        begun.append(k)
        if k == 2 and begun.count(2) == 1:
            raise KeyboardInterrupt
        return original(self, k)

    monkeypatch.setattr(TaskFreeRunner, "_advance", interrupted)
    store = Store(tmp_path / "parts")
    with pytest.raises(KeyboardInterrupt):
        run_cell(made, installed(), store)
    torch.manual_seed(5)
    resumed = run_cell(made, installed(), Store(store.path))
    assert resumed.stream["resumed_from_evaluation"] == 2
    assert begun.count(2) == 2
    assert (resumed.matrix, resumed.validation_matrix) == (whole.matrix, whole.validation_matrix)
    assert resumed.fingerprints() == whole.fingerprints()
