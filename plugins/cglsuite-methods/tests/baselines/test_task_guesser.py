"""A guess of the task from degrees: right where tasks have graphs of their own that differ, chance where all are asked at once."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from cglsuite_methods.baselines.task_guesser import TaskGuesser, degree_views
from tiny_streams import KeptCheckpoints, assert_same_run, catalogue_runner, tiny_stream, variant_stream
from torch import Tensor

from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph, NodeData
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins
POOLED = {"query_grouping": "pooled"}
GLOBALLY = {"query_grouping": "pooled", "query_edges": "seen"}


def rings(*reach: int, per_class: int = 40) -> NodeData:
    """Two classes per task, all features alike; a node of task t is linked to the next ``reach[t]`` on a ring, so that degrees differ."""
    n = 2 * per_class
    edges = []
    for t, r in enumerate(reach):
        here = torch.arange(n)
        edges += [t * n + torch.stack([here, (here + step) % n]) for step in range(1, r + 1)]
    forth = torch.cat(edges, dim=1)
    y = torch.arange(2 * len(reach)).repeat_interleave(per_class)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n * len(reach), 8, generator=generator)
    return NodeData(x=x, edge_index=torch.cat([forth, forth.flip(0)], dim=1), y=y, n_classes=2 * len(reach), name="rings")


def runner_of(
    data: NodeData, method: str = "task-guesser", /, *, hyperparameters: dict[str, Any] | None = None, **changes: Any
) -> TaskRunner:
    asked = {"setting": "class-il", "edge_policy": "none"} | changes
    return catalogue_runner(tiny_stream(data, **asked), method, hyperparameters)


def share_guessed(runner: TaskRunner) -> float:
    """The share of items asked after the last task whose task is guessed, as a mean over tasks."""
    runner.run()
    method = runner.method
    assert isinstance(method, TaskGuesser)
    right, tasks = list[Tensor](), list[Tensor]()
    for group in runner.stream.make_queries(len(runner.stream)):
        asked = runner.stream.asked(group.token)
        right.append(method.guessed(group.query) == asked.tasks)
        tasks.append(asked.tasks)
    hits, of = torch.cat(right).float(), torch.cat(tasks)
    return float(torch.stack([hits[of == k].mean() for k in range(len(runner.stream))]).mean())


def test_views_by_hand() -> None:
    """A path 0 → 1 → 2: degrees with the node itself are 1, 2, 2."""
    graph = MessageGraph(torch.zeros(3, 1), torch.tensor([[0, 1], [1, 2]]))
    log2 = math.log(2)
    expected = torch.tensor([[0, 0, 0], [log2, log2 / 2, log2 / 4], [log2, log2, log2 * 3 / 4]])
    torch.testing.assert_close(degree_views(graph, 2), expected)
    torch.testing.assert_close(degree_views(graph, 0), expected[:, :1])


def test_means_and_the_variance_within_tasks() -> None:
    runner = runner_of(rings(1, 3, 6))
    runner.run()
    method = runner.method
    assert isinstance(method, TaskGuesser)
    own = [degree_views(view.graph, 2)[view.train.ids] for view in (runner.stream.view(k) for k in range(3))]
    torch.testing.assert_close(torch.stack(method.views), torch.stack([v.mean(dim=0) for v in own]))
    torch.testing.assert_close(method.spread, torch.stack([(v - v.mean(dim=0)).square().sum(dim=0) for v in own]).sum(dim=0))
    assert method.seen == sum(map(len, own))


@pytest.mark.parametrize("evidence", ["graph", "item"])
def test_tasks_that_differ_in_degree_are_told_apart(evidence: str) -> None:
    assert share_guessed(runner_of(rings(1, 3, 6), hyperparameters={"evidence": evidence})) == 1.0


@pytest.mark.parametrize("asked", [POOLED, GLOBALLY], ids=["own edges", "all edges"])
def test_asked_about_all_tasks_at_once_the_guess_is_chance(asked: dict[str, Any]) -> None:
    """One guess for all items, right for one of three tasks. A node's own neighbourhood still tells, as each task keeps its degrees."""
    assert share_guessed(runner_of(rings(1, 3, 6), **asked)) == pytest.approx(1 / 3)
    assert share_guessed(runner_of(rings(1, 3, 6), hyperparameters={"evidence": "item"}, **asked)) == 1.0


def test_tasks_of_equal_degrees_are_not_told_apart() -> None:
    """Every node has the same degree: the first task is guessed throughout."""
    assert share_guessed(runner_of(rings(3, 3, 3))) == pytest.approx(1 / 3)


def test_what_it_gains_over_its_encoder_is_the_task() -> None:
    """Features say nothing of the class, so that half of the items are right once the task is known, a sixth otherwise."""

    def final(method: str, **asked: Any) -> float:
        return sum(runner_of(rings(1, 3, 6, per_class=100), method, **asked).run().matrix[-1]) / 3

    assert final("task-guesser") == pytest.approx(1 / 2, abs=0.1)
    assert final("task-guesser", **GLOBALLY) == pytest.approx(1 / 6, abs=0.06)
    assert final("task-guesser") > final("frozen-ncm", **GLOBALLY)


def test_answers_stay_within_the_guessed_task() -> None:
    runner = runner_of(rings(1, 3, 6))
    runner.run()
    method = runner.method
    assert isinstance(method, TaskGuesser)
    for group in runner.stream.make_queries(3):
        classes = method.predict(group.query).argmax(dim=1)
        assert torch.equal(classes // 2, method.guessed(group.query))


def test_it_sees_no_features() -> None:
    """Other features change classes, and no guess."""
    plain = rings(1, 3, 6)
    other = NodeData(x=plain.x.flip(0), edge_index=plain.edge_index, y=plain.y, n_classes=plain.n_classes, name="rings")
    guesses = []
    for data in (plain, other):
        runner = runner_of(data, hyperparameters={"evidence": "item"})
        runner.run()
        assert isinstance(runner.method, TaskGuesser)
        guesses.append([runner.method.guessed(g.query) for g in runner.stream.make_queries(3)])
    assert all(torch.equal(a, b) for a, b in zip(*guesses, strict=True))


def test_resumption() -> None:
    kept = KeptCheckpoints()
    whole = runner_of(rings(1, 3, 6)).run(kept, keep=99)
    for prefix in kept.saved:
        only = KeptCheckpoints()
        only.files[prefix] = kept.files[prefix]
        resumed = runner_of(rings(1, 3, 6)).run(only)
        assert_same_run(resumed, whole)
        assert resumed.fingerprints == whole.fingerprints


def test_it_is_for_single_labels_in_class_il() -> None:
    with pytest.raises(
        NotApplicable,
        match="task-guesser answers by means of classes and needs exactly one label per item, but the items of this stream are multi-label",
    ):
        catalogue_runner(variant_stream("multi class-il"), "task-guesser")
    with pytest.raises(NotApplicable, match="task-guesser is not for domain-il"):
        catalogue_runner(variant_stream("domain-il"), "task-guesser")
