"""Graphs of any size, packed one after the other into a disjoint union."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.errors import DataError
from cglsuite.graphs.collection import GraphSet, Pooling
from cglsuite.graphs.message import MessageGraph, Operator
from cglsuite.graphs.pack import Pack
from cglsuite.graphs.sparse import SparseMatrix

__all__ = ["PackedGraphs", "PackedSource"]


class PackedGraphs(GraphSet):
    """A set of graphs of any size; its nodes lie graph by graph.

    Made by :class:`PackedSource`; nothing is augmented.
    """

    def __init__(self, pack: Pack, device: str | torch.device) -> None:
        self._pack = pack
        self._graph = MessageGraph(pack.x, pack.edge_index, device)
        self.device = torch.device(device)
        self.features = pack.x.to(device)

    def __len__(self) -> int:
        return len(self._pack)

    @property
    def edges_with_loops(self) -> Tensor:
        return self._graph.edges_with_loops

    def propagate(self, kind: Operator, hidden: Tensor) -> Tensor:
        return self._graph.propagate(kind, hidden)

    @cached_property
    def _members(self) -> SparseMatrix:
        """float32 [n, N]: 1 where a node belongs to a graph."""
        start = self._pack.node_start.numpy()
        n_nodes = int(start[-1])
        matrix = scipy.sparse.csr_matrix((np.ones(n_nodes, np.float32), np.arange(n_nodes), start), (len(self), n_nodes))
        return SparseMatrix(matrix, self.device)

    @cached_property
    def _sizes(self) -> Tensor:
        return self._pack.sizes.to(self.device)

    def pool(self, hidden: Tensor, how: Pooling) -> Tensor:
        if how == "max":
            of = torch.arange(len(self), device=self.device).repeat_interleave(self._sizes)
            lowest = hidden.new_full((len(self), hidden.shape[1]), -torch.inf)
            return lowest.scatter_reduce(0, of.unsqueeze(-1).expand_as(hidden), hidden, "amax")
        total = self._members @ hidden
        return total if how == "sum" else total / self._sizes.unsqueeze(-1)

    def take(self, ids: Tensor) -> Self:
        return type(self)(self._pack.take(ids.cpu()), self.device)

    def merged(self, others: Sequence[Self]) -> Self:
        return type(self)(self._pack.joined([o._pack for o in others]), self.device) if others else self

    def payload(self) -> dict[str, Tensor]:
        return self._pack.payload()

    def rebuilt(self, payload: Mapping[str, Tensor]) -> Self:
        return type(self)(Pack.of(payload), self.device)


class PackedSource:
    """The graphs of a dataset, packed (a :class:`cglsuite.graphs.GraphSource`).

    Args:
        x: float32 [N, F], the features of all nodes, graph by graph.
        edge_index: int64 [2, E], node ids within the whole pack, in any order.
        sizes: int64 [n], the number of nodes of each graph.

    Raises:
        DataError: shapes that do not fit, an empty graph, NaN or infinite features, an edge between two graphs or out of range.
    """

    def __init__(self, x: Tensor, edge_index: Tensor, sizes: Tensor, name: str = "graphs") -> None:
        if x.dim() != 2 or x.dtype != torch.float32 or int(sizes.sum()) != x.shape[0]:
            raise DataError(f"{name}: x is {x.dtype} {list(x.shape)}; expected float32 [{int(sizes.sum())}, F], one row per node")
        if (empty := (sizes < 1).nonzero().flatten()).numel():
            raise DataError(f"{name}: graph {int(empty[0])} has no nodes; leave empty graphs out in the loader")
        of = torch.arange(sizes.numel()).repeat_interleave(sizes)
        if bool((bad := ~torch.isfinite(x).all(dim=1)).any()):
            node = int(bad.nonzero()[0])
            raise DataError(f"{name}: graph {int(of[node])} has a NaN or infinite feature; repair or leave it out in the loader")
        if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= x.shape[0]):
            raise DataError(f"{name}: an edge names a node outside 0..{x.shape[0] - 1}")
        graph_of_edge = of[edge_index]
        if bool((crossing := graph_of_edge[0] != graph_of_edge[1]).any()):
            pair = graph_of_edge[:, int(crossing.nonzero()[0])].tolist()
            raise DataError(f"{name}: an edge leads from graph {pair[0]} to graph {pair[1]}; edges lie within graphs")
        order = torch.argsort(graph_of_edge[0], stable=True)
        edges_of = torch.bincount(graph_of_edge[0], minlength=sizes.numel())
        zero = torch.zeros(1, dtype=torch.int64)
        self._pack = Pack(
            x=x,
            edge_index=edge_index[:, order],
            node_start=torch.cat([zero, sizes.cumsum(0)]),
            edge_start=torch.cat([zero, edges_of.cumsum(0)]),
        )

    def __len__(self) -> int:
        return len(self._pack)

    @property
    def n_features(self) -> int:
        """Number of features F of a node."""
        return int(self._pack.x.shape[1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) over features, edges and sizes."""
        total = hashlib.sha256(b"packed")
        for part in (self._pack.x, self._pack.edge_index, self._pack.node_start):
            array = part.contiguous().numpy()
            total.update(f"|{array.dtype.str}{array.shape}|".encode())
            total.update(array.data)
        return total.hexdigest()

    def training(self, ids: Tensor, seed: int, device: str) -> PackedGraphs:
        """The graphs ``ids`` (int64 [n]); the seed has nothing to decide."""
        return PackedGraphs(self._pack.take(ids), device)

    def queries(self, ids: Tensor, device: str) -> PackedGraphs:
        """The graphs ``ids`` (int64 [n]) to be asked about."""
        return PackedGraphs(self._pack.take(ids), device)
