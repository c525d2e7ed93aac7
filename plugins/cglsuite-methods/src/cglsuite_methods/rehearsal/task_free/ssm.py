"""Sparsified subgraph memory."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.graphs import MessageGraph, Pack, Ranking, ego_graphs
from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling

__all__ = ["SSM", "drawn"]


class SSM(Sampling):
    """``L(B) + L(M_B)`` with a memory of sparsified computation subgraphs (Zhang et al. 2022).

    A node that is kept takes part of its surroundings with it: ``fan_out`` neighbours per hop, drawn uniformly or in proportion to their
    degrees. The replayed loss is that of the centres, which hear these neighbours. Items that stand alone are kept as they are.

    A budget counts nodes, neighbours included, so that it means the same as for a memory of single nodes; edges and bytes are metered.
    As benchmarked (DRIFT): ``centres_only`` counts centres, and the memory is then many times as large as its budget says.
    """

    def loss(self, batch: Batch) -> Tensor:
        """The loss of the batch, and that of the centres drawn."""
        return self.replayed_loss(batch)

    def offer(self, batch: Batch) -> None:
        """Offer items with their surroundings."""
        self.reservoir.offer(batch, "item", self._surroundings)

    def _surroundings(self, graph: MessageGraph, ids: Tensor) -> Pack:
        return ego_graphs(graph, ids, [self.hyperparameters.fan_out] * self.hyperparameters.hops, self.ranking())

    def ranking(self) -> Ranking:
        """By what neighbours are chosen."""
        return drawn(self.context.generator("neighbours"), by_degree=self.hyperparameters.neighbours == "degree")


def drawn(generator: torch.Generator, *, by_degree: bool) -> Ranking:
    """A ranking whose lowest k are k edges drawn without replacement: uniformly, or in proportion to the degrees of their sources.

    Each edge has an exponential time with its weight as rate; the k first are such a draw (Efraimidis & Spirakis 2006).
    """

    def rank(graph: MessageGraph, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
        times: NDArray[np.float64] = -np.log1p(-torch.rand(len(source), dtype=torch.float64, generator=generator).numpy())
        if not by_degree:
            return times
        pointers, _ = graph.in_neighbours
        weighted: NDArray[np.float64] = times / np.maximum(pointers[source + 1] - pointers[source], 1)
        return weighted

    return rank
