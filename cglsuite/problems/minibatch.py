"""Mini-batches: the items of a task in a new order every epoch, each batch in a graph of its sampled neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.graphs import MessageGraph
from cglsuite.graphs.neighbourhoods.sampling import sample_neighbours
from cglsuite.graphs.upload import uploaded
from cglsuite.streams import Batch
from cglsuite.streams.views import on_host

__all__ = ["MiniBatches", "sampled"]


class MiniBatches:
    """Batches of ``batch_size`` items (the last may be smaller); every pass over this object is one epoch in a new order.

    Batches are made lazily, so only one sampled graph is in memory. A batch's ``graph`` is the sampled neighbourhood, and its ``ids`` are
    positions in it; a batch has no reference to the whole graph.

    Args:
        batch: the labelled items.
        batch_size: items per batch.
        fan_out: neighbours per layer (see ``sample_neighbours``); empty = batches in the whole graph.
        generator: on the CPU; draws orders and neighbours.
    """

    def __init__(self, batch: Batch, batch_size: int, fan_out: Sequence[int], generator: torch.Generator) -> None:
        self.batch, self.batch_size, self.fan_out, self.generator = batch, batch_size, tuple(fan_out), generator

    def __len__(self) -> int:
        """Batches per epoch."""
        return -(-len(self.batch) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for chosen in torch.randperm(len(self.batch), generator=self.generator).split(self.batch_size):
            yield self._part(chosen, uploaded(chosen, self.batch.ids.device))

    @cached_property
    def _host_ids(self) -> Tensor:
        """Neighbours are sampled on the CPU: ids are brought there once, not in every step."""
        return on_host(self.batch, self.batch.ids).cpu()

    def _part(self, on_host: Tensor, chosen: Tensor) -> Batch:
        batch = self.batch
        if self.fan_out:
            graph, ids = sampled(batch.graph, self._host_ids[on_host], self.fan_out, self.generator)
        else:
            graph, ids = batch.graph, batch.ids[chosen]
        return replace(
            batch,
            graph=graph,
            ids=ids,
            allowed=batch.allowed if batch.allowed.dim() == 1 else batch.allowed[chosen],
            y=None if batch.y is None else batch.y[chosen],
            tasks=None if batch.tasks is None else batch.tasks[chosen],
            cache={},
        )


def sampled(graph: MessageGraph, ids: Tensor, fan_out: Sequence[int], generator: torch.Generator) -> tuple[MessageGraph, Tensor]:
    """The sampled neighbourhood of nodes or pairs of nodes (``ids`` int64 [n] or [n, 2]), and their ids in it, shaped like ``ids``."""
    part, places = sample_neighbours(graph, ids.flatten(), fan_out, generator)
    return part, places.view(ids.shape)
