"""Predict each item with the part of the network that belongs to its task."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import torch
from torch import Tensor

from cglsuite.learning.method import Method
from cglsuite.streams import Batch


def by_task(method: Method, query: Batch, use: Callable[[int], AbstractContextManager[object]], learnt: int) -> Tensor:
    """Compute a query's outputs, predicting each item with the network of its task.

    Args:
        use: maps the position of a task to a context manager within which the model predicts for that task.
        learnt: number of tasks learnt so far. Items whose task is unknown or not yet learnt are predicted as the latest task's.

    Returns:
        float32 [n, C].
    """
    latest = learnt - 1
    if query.tasks is None:
        with use(latest):
            return method.forward(query)
    tasks = torch.where(query.tasks < learnt, query.tasks, latest)
    parts, places = list[Tensor](), list[Tensor]()
    for k in tasks.unique().tolist():
        chosen = (tasks == k).nonzero().flatten()
        allowed = query.allowed if query.allowed.dim() == 1 else query.allowed[chosen]
        with use(k):
            parts.append(
                method.forward(replace(query, ids=query.ids[chosen], tasks=query.tasks[chosen], allowed=allowed, y=None, cache={}))
            )
        places.append(chosen)
    joined = torch.cat(parts)
    return torch.empty_like(joined).index_copy(0, torch.cat(places), joined)
