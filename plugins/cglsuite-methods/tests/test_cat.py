"""Condensed items: how many, how long, how near; and training on them alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.cat import places_of
from tiny_streams import catalogue_runner, tiny_data, tiny_stream

from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins


@pytest.mark.parametrize(
    ("counts", "b", "expected"),
    [([10, 10], 4, [2, 2]), ([3, 1], 3, [2, 1]), ([50, 30, 20], 7, [4, 2, 1]), ([97, 1, 2], 3, [3, 1, 1]), ([1, 1], 9, [1, 1])],
)
def test_classes_have_items_in_proportion_and_at_least_one(counts: list[int], b: int, expected: list[int]) -> None:
    assert places_of(counts, b) == expected


def made(**hyperparameters: Any) -> TaskRunner:
    stream = tiny_stream(tiny_data(per_class=15), edge_policy="full", training={"epochs": 40, "lr": 0.05})
    return catalogue_runner(stream, "cat", {"per_task": 6} | hyperparameters)


def test_condensed_items_keep_their_length_and_come_nearer() -> None:
    runner = made()
    real = runner.stream.view(0).graph.dense.norm(dim=1)
    result = runner.run()
    assert result.memory["items"] == 18
    for items in runner.method.memory.all():
        x: Any = items.x
        nearest = (x.norm(dim=1)[:, None] - real[None]).abs().min(dim=1).values
        assert nearest.max() < 1e-4
    distances = result.curves[0]["loss"][:40]
    assert sum(distances[-8:]) < 0.7 * sum(distances[:8])


def test_features_are_free_in_length_as_in_begin() -> None:
    runner = made(as_begin=True)
    real = runner.stream.view(0).graph.dense.norm(dim=1)
    runner.run()
    items: Any = runner.method.memory["task-0"].x
    assert (items.norm(dim=1)[:, None] - real[None]).abs().min(dim=1).values.max() > 1e-3


def test_only_condensed_items_are_learnt_from() -> None:
    """Gradients of a step come from them alone: other real items than those of the view give the same loss."""
    runner = made()
    runner.run()
    method: Any = runner.method
    view = runner.stream.view(2)
    method.condensed = method.problem.recall(method.problem.join(method.memory.all()))
    method.model.eval()
    assert torch.equal(method.loss(view.train), method.loss(runner.stream.view(0).train))
