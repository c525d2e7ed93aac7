"""What methods that rehearse share: how items are kept, a memory drawn uniformly, and a view with replayed items in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.errors import BudgetError
from cglsuite.problems import MemoryItems
from cglsuite.streams import Batch, TaskView

__all__ = ["both_losses", "keep_at_random", "kept_as", "share_of", "with_replayed"]


def kept_as(method: Method) -> Literal["reference", "item"]:
    """How a method keeps items: by reference where its ``neighbourhood`` is set, else with their features."""
    return "reference" if method.hyperparameters.neighbourhood else "item"


def share_of(view: TaskView, fraction: float) -> int:
    """How many items ``fraction`` of a task's training items are, at least one."""
    return max(1, round(fraction * len(view.train)))


def with_replayed(method: Method, view: TaskView, items: MemoryItems) -> TaskView:
    """The task's view with ``items`` among its training items, laid out as one batch; its validation items are its own."""
    together = method.problem.merge([view.train, method.problem.recall(items, view)])
    return replace(view, train=together)


def both_losses(method: Method, batch: Batch, replay: Batch) -> tuple[Tensor, Tensor]:
    """The losses of a batch and of replayed items; one forward pass serves both where they share a graph."""
    problem, model = method.problem, method.model
    if replay.graph is not batch.graph:
        return problem.loss(method.forward(batch), batch), problem.loss(method.forward(replay), replay)
    hidden = model.encode(batch.graph)
    current = problem.loss(model.readout(hidden, batch.graph, batch.ids), batch)
    return current, problem.loss(model.readout(hidden, batch.graph, replay.ids), replay)


def keep_at_random(method: Method, view: TaskView, wanted: int) -> None:
    """Put ``wanted`` training items of the task on the shelf ``task-<position>``, drawn uniformly without replacement.

    A small task is kept whole. Where the scenario has a budget every task has an equal share of it, ``budget // T`` items at most. Items
    are kept by reference where the method's ``neighbourhood`` is set, else with their features.

    Raises:
        BudgetError: the budget is too small for one item of each task.
    """
    budget, n_tasks = method.memory.budget, method.context.n_tasks
    if budget is not None:
        wanted = min(wanted, budget // n_tasks)
    if wanted < 1:
        raise BudgetError(
            f"a budget of {budget} items (scenario.memory_budget) leaves less than one for each of {n_tasks} tasks: "
            f"expected at least {n_tasks}, or none for no limit"
        )
    chosen = torch.randperm(len(view.train), generator=method.context.generator("memory"))[:wanted]
    method.memory.put(f"task-{view.position}", method.problem.sample(view.train, chosen, kept_as(method)))
