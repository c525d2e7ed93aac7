"""Mini-batches of a task's items, reshuffled in every epoch. Each batch has its own graph of sampled neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Thread
from typing import Generic, TypeVar

import torch
from torch import Tensor

from cglsuite.graphs import MessageGraph
from cglsuite.graphs.sampling import sample_neighbours
from cglsuite.graphs.upload import uploaded
from cglsuite.streams import Batch
from cglsuite.streams.views import on_host

T = TypeVar("T")
_LARGE = 2**20
"""The minimum number of edges for preparing batches in advance. In smaller graphs, this would cost more than sampling."""


class _Ahead(Thread, Generic[T]):
    """Run a computation in a separate thread, which ends with the computation, so that errors leave no idle thread behind."""

    def __init__(self, compute: Callable[[], T]) -> None:
        super().__init__(name="cglsuite-sampler", daemon=True)
        self._compute = compute
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Run the computation. Called by the thread."""
        try:
            self._result = self._compute()
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    def result(self) -> T:
        """Wait for the computation to finish and return its result.

        Raises:
            BaseException: any exception that the computation raised.
        """
        self.join()
        if self._error is not None:
            raise self._error
        return self._result


class MiniBatches:
    """An iterable over batches of ``batch_size`` items (the last may be smaller). Each iteration is one epoch in a new order.

    Batches are created lazily. In a large graph, a thread samples the next batch while the current one is used, so two sampled graphs are
    in memory. Results stay bit-identical: the draws come in the same order from a generator used nowhere else, and after an early stop, its
    state is as if no batch had been sampled ahead. A batch's ``graph`` is the sampled neighbourhood, and its ``ids`` are positions in it. A
    batch has no reference to the whole graph.

    Args:
        batch: the labelled items.
        batch_size: number of items per batch.
        fan_out: number of neighbours per layer (see ``sample_neighbours``). Empty = batches use the whole graph.
        generator: a CPU generator for drawing orders and neighbours.
    """

    def __init__(self, batch: Batch, batch_size: int, fan_out: Sequence[int], generator: torch.Generator) -> None:
        self.batch, self.batch_size, self.fan_out, self.generator = batch, batch_size, tuple(fan_out), generator

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return -(-len(self.batch) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        parts = torch.randperm(len(self.batch), generator=self.generator).split(self.batch_size)
        if not self.fan_out or len(parts) < 2 or self.batch.graph.n_edges < _LARGE:
            yield from map(self._part, parts)
            return
        coming = _Ahead(partial(self._drawn, parts[0]))
        for chosen in (*parts[1:], None):
            made, state = coming.result()
            if chosen is not None:
                coming = _Ahead(partial(self._drawn, chosen))
            try:
                yield made
            except GeneratorExit:  # stopped early
                coming.join()
                self.generator.set_state(state)
                raise

    def _drawn(self, chosen: Tensor) -> tuple[Batch, Tensor]:
        """Draw a batch and return it together with the state of the generator after the draw."""
        if (device := self.batch.ids.device).type == "cuda":
            torch.cuda.set_device(device)  # a new thread starts on the first GPU
        return self._part(chosen), self.generator.get_state()

    @cached_property
    def _host_ids(self) -> Tensor:
        """The ids on the CPU, where neighbours are sampled. They are copied only once, rather than in every step."""
        return on_host(self.batch, self.batch.ids).cpu()

    def _part(self, on_host: Tensor) -> Batch:
        batch, chosen = self.batch, uploaded(on_host, self.batch.ids.device)
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
    """Sample the neighbourhood of nodes or node pairs. Return the sampled graph and the ids in it.

    Args:
        ids: int64 [n] or [n, 2]. The returned ids have the same shape.
    """
    part, places = sample_neighbours(graph, ids.flatten(), fan_out, generator)
    return part, places.view(ids.shape)
