"""Functions shared by rehearsal methods: the storage form of items, a uniformly sampled memory, and views with replayed items."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.base.errors import BudgetError
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView


def kept_as(method: Method) -> Literal["reference", "item"]:
    """Return how a method stores items: by reference if its ``neighbourhood`` is set, otherwise with their features."""
    return "reference" if method.hyperparameters.neighbourhood else "item"


def share_of(view: TaskView, fraction: float) -> int:
    """Return the number of items in ``fraction`` of the training items of a task, at least one."""
    return max(1, round(fraction * len(view.train)))


def with_replayed(method: Method, view: TaskView, items: MemoryItems) -> TaskView:
    """Return the task's view with ``items`` added to its training items as one batch. Validation items are unchanged."""
    together = method.problem.merge([view.train, method.problem.recall(items, view)])
    return replace(view, train=together)


def both_losses(method: Method, batch: Batch, replay: Batch) -> tuple[Tensor, Tensor]:
    """Compute the losses on a batch and on replayed items, in one forward pass if they share a graph."""
    problem, model = method.problem, method.model
    if replay.graph is not batch.graph:
        return problem.loss(method.forward(batch), batch), problem.loss(method.forward(replay), replay)
    hidden = model.encode(batch.graph)
    current = problem.loss(model.readout(hidden, batch.graph, batch.ids), batch)
    return current, problem.loss(model.readout(hidden, batch.graph, replay.ids), replay)


def keep_at_random(method: Method, view: TaskView, wanted: int) -> None:
    """Store ``wanted`` training items of the task, drawn uniformly without replacement, on the shelf ``task-<position>``.

    A task with fewer items is stored completely. If the scenario has a budget, every task has an equal share of it, at most ``budget // T``
    items. Items are stored by reference if the method's ``neighbourhood`` is set, otherwise with their features.

    Raises:
        BudgetError: the budget is too small for one item of each task.
    """
    budget, n_tasks = method.memory.budget, method.context.n_tasks
    if budget is not None:
        wanted = min(wanted, budget // n_tasks)
    if wanted < 1:
        raise BudgetError(
            f"a budget of {budget} items (scenario.memory_budget) is less than one for each of {n_tasks} tasks; "
            f"expected at least {n_tasks}, or none for no limit"
        )
    chosen = torch.randperm(len(view.train), generator=method.context.generator("memory"))[:wanted]
    method.memory.put(f"task-{view.position}", method.problem.sample(view.train, chosen, kept_as(method)))
