"""The problem adapter for graph classification and regression (GC, GR), whose items are whole graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, uploaded
from cglsuite.graphs.upload import Sent
from cglsuite.problems.base import Problem, Surroundings
from cglsuite.problems.replay_items import MemoryItems
from cglsuite.streams import Batch, TaskView
from cglsuite.streams.views import on_host, sent

_LASTING = ("columns", "labels", "class_weight", "everything")  # cached values of a batch that do not depend on augmentation


class GraphProblem(Problem):
    """Adapter for whole graphs. A batch's ``graph`` is a set of graphs, and its ``ids`` are positions in that set.

    Graphs are independent of each other, so stored items can be used unchanged at any point of the stream.
    """

    def arrive(self, view: TaskView) -> None:
        """Register the outputs and the graphs of a new task."""
        super().arrive(view)
        self.like = view.train.graph

    def epochs(self, views: Sequence[TaskView], generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable over the batches of an epoch, whose graphs are augmented anew in each epoch."""
        if self.fan_out:
            raise SpecError(
                f"training.fan_out = {self.fan_out!r}: items are whole graphs, but neighbours can be sampled only in a large graph"
            )
        return super().epochs(views, generator)

    @staticmethod
    def passes(batch: Batch, batch_size: int | None, generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable like :meth:`epochs`, for a given batch."""
        return _Epochs(batch, batch_size, generator)

    def _union(self, graphs: Sequence[Any]) -> tuple[GraphSet, list[int]]:
        first: GraphSet = graphs[0]
        return first.merged(graphs[1:]), [len(g) for g in graphs]

    def forward(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the raw outputs of the batch's graphs: float32 [n, C]."""
        out: Tensor = model(batch.graph)
        return out if _is_everything(batch) else out[batch.ids]

    def features(self, batch: Batch) -> Tensor:
        """Compute the mean node features of each graph: float32 [n, F]."""
        graphs: GraphSet = batch.graph
        return graphs.mean_features()[batch.ids]

    def _content(self, batch: Batch, ids: Tensor, kind: Literal["reference", "item"], surroundings: Surroundings | None) -> GraphSet:
        graphs: GraphSet = batch.graph
        return graphs.take(ids)

    def recall(self, items: MemoryItems, view: TaskView | Batch | None = None) -> Batch:
        """Convert memory items to a labelled batch in the same order."""
        ids = Sent.of(torch.arange(len(items)), self.device)
        return Batch(graph=items.x, ids=ids.there, y=items.y, tasks=items.tasks, allowed=self.allowed(items.tasks), cache=sent(ids))


class _Epochs:
    """An iterable over the batches of an epoch. Each iteration is one epoch, and its 0-based number determines the augmentation."""

    def __init__(self, batch: Batch, batch_size: int | None, generator: torch.Generator) -> None:
        self.batch, self.batch_size, self.generator = batch, batch_size, generator
        self.passed = 0
        self._before = batch

    @cached_property
    def _ids(self) -> Tensor:
        """The ids on the CPU, where graphs are selected. They are copied only once, rather than in every step."""
        return on_host(self.batch, self.batch.ids).cpu()

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return 1 if self.batch_size is None else -(-len(self.batch) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        number, self.passed = self.passed, self.passed + 1
        batch = self.batch
        if self.batch_size is not None and self.batch_size < len(batch):
            for chosen in torch.randperm(len(batch), generator=self.generator).split(self.batch_size):
                yield _part(batch, self._ids[chosen], uploaded(chosen, batch.ids.device), number)
            return
        graph = batch.graph.epoch(number)
        if graph is not batch.graph:
            lasting = {k: v for k, v in self._before.cache.items() if k in _LASTING}
            batch = self._before = replace(batch, graph=graph, cache=lasting)
        yield batch


def _part(batch: Batch, taken: Tensor, chosen: Tensor, number: int) -> Batch:
    """Return a batch with the items at positions ``chosen`` (int64 [m]), whose ids are ``taken``."""
    ids = Sent.of(torch.arange(len(chosen)), batch.ids.device)
    return replace(
        batch,
        graph=batch.graph.take(taken).epoch(number),
        ids=ids.there,
        allowed=batch.allowed if batch.allowed.dim() == 1 else batch.allowed[chosen],
        y=None if batch.y is None else batch.y[chosen],
        tasks=None if batch.tasks is None else batch.tasks[chosen],
        cache=sent(ids),
    )


def _is_everything(batch: Batch) -> bool:
    """Return whether a batch contains all graphs of its set in order."""
    if "everything" not in batch.cache:
        n, ids = len(batch.graph), on_host(batch, batch.ids)
        batch.cache["everything"] = len(batch) == n and torch.equal(ids, torch.arange(n, device=ids.device))
    everything: bool = batch.cache["everything"]
    return everything
