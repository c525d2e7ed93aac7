"""GDumb: a memory that is balanced whatever comes, and a model that sees nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from cglsuite_methods.rehearsal.gdumb import GDumb, greedily_balanced
from tiny_streams import catalogue_runner, tiny_data, tiny_stream

from cglsuite.base.errors import BudgetError
from cglsuite.learning.task_runner import TaskRunner

pytestmark = pytest.mark.plugins


def balanced(sizes: list[int], room: int, seed: int = 0) -> list[int]:
    """How many items of each class stay, of classes that come one after the other."""
    groups = [(0, c) for c, n in enumerate(sizes) for _ in range(n)]
    kept = greedily_balanced(groups, 0, room, torch.Generator().manual_seed(seed))
    assert kept == sorted(set(kept))
    counts = Counter(groups[i][1] for i in kept)
    return [counts[c] for c in range(len(sizes))]


def test_classes_have_equal_parts_of_the_memory() -> None:
    assert balanced([50, 50, 50], 12) == [4, 4, 4]
    assert balanced([50, 2, 50], 12) == [6, 2, 4]  # a class that comes gets a third, from the largest
    assert balanced([3, 3], 12) == [3, 3]
    assert sorted(balanced([50, 50, 50], 10)) == [3, 3, 4]
    assert sum(balanced([9] * 20, 7)) == 7  # more classes than places


def test_what_leaves_is_drawn() -> None:
    """Every one of the first class's items that were in the memory is as likely to stay."""
    groups = [(0, 0)] * 8 + [(1, 1)] * 8
    stays = Counter(i for seed in range(400) for i in greedily_balanced(groups, 8, 8, torch.Generator().manual_seed(seed)) if i < 8)
    assert sum(stays.values()) == 4 * 400
    assert all(150 < stays[i] < 250 for i in range(8))


def run(setting: str = "class-il", memory: int = 13, **changes: Any) -> TaskRunner:
    stream = tiny_stream(tiny_data(per_class=15), setting=setting, training={"epochs": 3, "lr": 0.05}, **changes)
    return catalogue_runner(stream, "gdumb", {"memory": memory})


def test_the_memory_is_balanced_after_every_task() -> None:
    runner = run()
    seen = list[dict[int, int]]()
    runner.on_task = lambda k: seen.append(dict(Counter(runner.method.memory["memory"].y.tolist()))) if k else None
    result = runner.run()
    assert [len(counts) for counts in seen] == [2, 4, 6]
    assert all(max(counts.values()) - min(counts.values()) <= 1 for counts in seen)
    assert result.memory["items"] == sum(seen[-1].values()) == 13


def test_it_is_trained_on_the_memory_alone_and_from_scratch() -> None:
    """Each task's model is a new one, and the task's own graph is in no batch."""
    runner = run()
    method: Any = runner.method
    models, trained = list[Any](), list[tuple[int, int]]()
    of_loss = method.loss

    def noted(batch: Any) -> Any:
        if not any(m is method.model for m in models):
            models.append(method.model)
        trained.append((len(batch), batch.graph.n_edges))
        return of_loss(batch)

    method.loss = noted
    runner.run()
    assert len(models) == 3
    assert all(n <= 13 and edges == 0 for n, edges in trained)


def test_classes_that_return_are_kept_of_every_task() -> None:
    """Where all tasks have the same classes each task has its part of the memory."""
    runner = catalogue_runner(
        tiny_stream(
            tiny_data(per_class=30, keys={"domain": [3, 5, 9]}), setting="domain-il", task_key="domain", training={"epochs": 2, "lr": 0.05}
        ),
        "gdumb",
        {"memory": 18},
    )
    runner.run()
    counts = Counter(runner.method.memory["memory"].tasks.tolist())
    assert set(counts) == {0, 1, 2}
    assert max(counts.values()) - min(counts.values()) <= 6


def test_a_budget_is_the_capacity() -> None:
    runner = run(memory=200, memory_budget=9)
    assert isinstance(runner.method, GDumb)
    assert runner.run().memory["items"] == 9
    with pytest.raises(BudgetError, match="the memory budget is 0 items"):
        run(memory_budget=0)
