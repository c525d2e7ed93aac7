"""Node-level datasets with edge weights, which a message graph may use."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import NodeData


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedNodeData(NodeData):
    """A node-level dataset with a weight for every edge.

    Args:
        edge_weight: float32 [E], finite, in the order of ``edge_index``, which must be sorted by (source, target) without duplicates.

    Raises:
        DataError: as for :class:`cglsuite.graphs.NodeData`, or the weights do not match the edges.
    """

    edge_weight: Tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        weights, edges = self.edge_weight, self.edge_index.shape[1]
        if weights.dtype != torch.float32 or tuple(weights.shape) != (edges,):
            raise DataError(f"{self.name}: edge_weight is {weights.dtype} {list(weights.shape)}; expected float32 [{edges}]")
        if not bool((self._places.diff() > 0).all()):
            raise DataError(f"{self.name}: weighted edges must be sorted by (source, target) without duplicates, but these are not")

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of the whole dataset, including the weights."""
        return hashlib.sha256(super().content_hash.encode() + self.edge_weight.numpy().tobytes()).hexdigest()

    @cached_property
    def _places(self) -> Tensor:
        return self.edge_index[0] * self.n_nodes + self.edge_index[1]

    def weights_of(self, edges: Tensor, otherwise: float) -> Tensor:
        """Look up the weights of ``edges`` (int64 [2, m]): float32 [m], with ``otherwise`` for node pairs without an edge."""
        wanted = edges[0] * self.n_nodes + edges[1]
        if not self._places.numel():
            return torch.full(wanted.shape, otherwise)
        slots = torch.searchsorted(self._places, wanted).clamp(max=len(self._places) - 1)
        return torch.where(self._places[slots] == wanted, self.edge_weight[slots], otherwise)
