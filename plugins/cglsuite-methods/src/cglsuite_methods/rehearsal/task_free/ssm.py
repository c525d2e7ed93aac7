"""Sparsified subgraph memory (SSM)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.graphs import MessageGraph, Pack, Ranking, ego_graphs
from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class SSM(Sampling):
    """Minimise ``L(B) + L(M_B)`` with a memory of sparsified computation subgraphs (Zhang et al. 2022).

    A stored node includes part of its neighbourhood: ``fan_out`` neighbours per hop, drawn uniformly or in proportion to their degrees. The
    replay loss is on the centres, which receive messages from these neighbours. Whole graphs are stored unchanged. The memory is a uniform
    sample of the stream: items are offered to it after their batch, or after their task in streams of tasks.

    The budget counts nodes including neighbours, so it is comparable to a memory of single nodes; edges and bytes are counted too. As
    benchmarked (DRIFT): ``centres_only`` counts only centres, so the memory is many times larger than its budget.
    """

    def loss(self, batch: Batch) -> Tensor:
        """Return the sum of the losses on the batch and the replayed centres."""
        return self.replayed_loss(batch)

    def offer(self, batch: Batch) -> None:
        """Offer items to the reservoir together with their neighbourhoods."""
        self.reservoir.offer(batch, "item", self._surroundings)

    def _surroundings(self, graph: MessageGraph, ids: Tensor) -> Pack:
        return ego_graphs(graph, ids, [self.hyperparameters.fan_out] * self.hyperparameters.hops, self.ranking())

    def ranking(self) -> Ranking:
        """Return the ranking used to select neighbours."""
        return drawn(self.context.generator("neighbours"), by_degree=self.hyperparameters.neighbours == "degree")


def drawn(generator: torch.Generator, *, by_degree: bool) -> Ranking:
    """Build a random ranking in which the k lowest edges are a sample without replacement, uniform or proportional to the degrees of their
    sources.

    Each edge has an exponential variate with its weight as the rate; the k smallest form such a sample (Efraimidis & Spirakis 2006).
    """

    def rank(graph: MessageGraph, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
        times: NDArray[np.float64] = -np.log1p(-torch.rand(len(source), dtype=torch.float64, generator=generator).numpy())
        if not by_degree:
            return times
        pointers, _ = graph.in_neighbours
        weighted: NDArray[np.float64] = times / np.maximum(pointers[source + 1] - pointers[source], 1)
        return weighted

    return rank
