"""Sets and sources of graphs of any size, packed one after the other into a disjoint union."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.blocks import BlockDiagonal, members
from cglsuite.graphs.collection import GraphSet, Pooling
from cglsuite.graphs.message import MessageGraph, Operator, scipy_features
from cglsuite.graphs.pack import Pack
from cglsuite.graphs.sparse import SparseMatrix
from cglsuite.graphs.upload import uploaded


class PackedGraphs(GraphSet):
    """A set of graphs of any size, with nodes ordered by graph.

    Created by :class:`PackedSource`. The graphs are not augmented.
    """

    def __init__(self, pack: Pack, device: str | torch.device) -> None:
        self._pack = pack
        self.device = torch.device(device)
        self._ready: dict[Operator, SparseMatrix] = {}
        self._used: set[Operator] = set()  # the operators used by models, shared with subsets
        self._whole: dict[Operator, BlockDiagonal | None] = {}
        self._taken = 0

    def __len__(self) -> int:
        return len(self._pack)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the graphs; caches are rebuilt on demand."""
        return {"pack": self._pack, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        PackedGraphs.__init__(self, state["pack"], state["device"])

    @cached_property
    def _graph(self) -> MessageGraph:
        # Built lazily: a set from which mini-batches are taken propagates no messages itself.
        x = self._pack.x
        return MessageGraph(scipy_features(x) if x.layout == torch.sparse_csr else x, self._pack.edge_index, self.device, self._ready)

    @cached_property
    def features(self) -> Tensor | SparseMatrix:  # type: ignore[override]
        """Node features: float32 [N, F], dense or sparse like the source."""
        return self._graph.features

    @cached_property
    def edge_features(self) -> Tensor | None:  # type: ignore[override]
        """Features of the edges without self-loops: float32 [E, D]."""
        attr, (source, target) = self._pack.edge_attr, self._pack.edge_index
        if attr is None:
            return None
        proper = source != target
        return uploaded(attr if bool(proper.all()) else attr[proper], self.device)

    @property
    def n_nodes(self) -> int:
        """Total number of nodes N."""
        return int(self._pack.x.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features F per node."""
        return int(self._pack.x.shape[1])

    @property
    def edges_with_loops(self) -> Tensor:
        return self._graph.edges_with_loops

    def propagate(self, kind: Operator, hidden: Tensor) -> Tensor:
        self._used.add(kind)
        return self._graph.propagate(kind, hidden)

    @cached_property
    def _members(self) -> SparseMatrix:
        return members(self._pack.node_start, self.device)

    @cached_property
    def _sizes(self) -> Tensor:
        return uploaded(self._pack.sizes, self.device)

    @cached_property
    def _graph_of(self) -> Tensor:
        return uploaded(torch.arange(len(self)).repeat_interleave(self._pack.sizes), self.device)

    def pool(self, hidden: Tensor, how: Pooling) -> Tensor:
        if how == "max":
            lowest = hidden.new_full((len(self), hidden.shape[1]), -torch.inf)
            return lowest.scatter_reduce(0, self._graph_of.unsqueeze(-1).expand_as(hidden), hidden, "amax")
        total = self._members @ hidden
        return total if how == "sum" else total / self._sizes.unsqueeze(-1)

    def mean_features(self) -> Tensor:
        """Mean node features of each graph, dense: float32 [n, F]."""
        if not isinstance(self.features, SparseMatrix):
            return self.pool(self.features, "mean")
        x = self.features.csr
        graph_of = self._graph_of.repeat_interleave(x.crow_indices().diff())
        total = torch.zeros(len(self), self.n_features, device=self.device)
        total.view(-1).index_add_(0, graph_of * self.n_features + x.col_indices(), x.values())
        return total / self._sizes.unsqueeze(-1)

    def take(self, ids: Tensor) -> Self:
        """Return the graphs at positions ``ids`` (int64 [m]), without data from the other graphs.

        Once the number of graphs taken reaches the size of the set (from the second epoch of mini-batches), the operators that models use
        are built for the whole set, and subsets reuse their blocks.
        """
        chosen = ids.cpu()
        made = type(self)(self._pack.take(chosen), self.device)
        made._used = self._used
        self._taken += len(chosen)
        if self._taken > len(self) and made._pack.n_edges:
            whole = {kind: self._blocks(kind) for kind in sorted(self._used)}
            made._ready = {kind: blocks.take(chosen, self.device) for kind, blocks in whole.items() if blocks is not None}
        return made

    def _blocks(self, kind: Operator) -> BlockDiagonal | None:
        if kind not in self._whole:
            operator = self._graph.operator(kind, "cpu")
            self._whole[kind] = None if operator is None else BlockDiagonal(operator, self._pack.node_start)
        return self._whole[kind]

    def merged(self, others: Sequence[Self]) -> Self:
        return type(self)(self._pack.joined([o._pack for o in others]), self.device) if others else self

    def payload(self) -> dict[str, Tensor]:
        return self._pack.payload()

    def rebuilt(self, payload: Mapping[str, Tensor]) -> Self:
        return type(self)(Pack.of(payload), self.device)


class PackedSource:
    """The graphs of a dataset, packed (a :class:`cglsuite.graphs.GraphSource`).

    Args:
        x: float32 [N, F], the features of all nodes, graph by graph; dense or sparse CSR. With sparse one-hot columns
            (:func:`cglsuite.graphs.categories.one_hot`), a linear first layer is a sum of embeddings.
        edge_index: int64 [2, E], node ids within the whole pack, in any order.
        sizes: int64 [n], the number of nodes of each graph.
        edge_attr: float32 [E, D], edge features in the order of ``edge_index``; ``None`` = none.

    Raises:
        DataError: shapes are inconsistent, a graph is empty, features are NaN or infinite, or an edge joins two graphs or is out of range.
    """

    def __init__(self, x: Tensor, edge_index: Tensor, sizes: Tensor, name: str = "graphs", *, edge_attr: Tensor | None = None) -> None:
        if x.dim() != 2 or x.dtype != torch.float32 or int(sizes.sum()) != x.shape[0]:
            raise DataError(f"{name}: x is {x.dtype} {list(x.shape)}; expected float32 [{int(sizes.sum())}, F], one row per node")
        if (empty := (sizes < 1).nonzero().flatten()).numel():
            raise DataError(f"{name}: graph {int(empty[0])} has no nodes; remove empty graphs in the loader")
        graph_of = torch.arange(sizes.numel()).repeat_interleave(sizes)
        if (node := _first_row_not_finite(x)) is not None:
            raise DataError(f"{name}: graph {int(graph_of[node])} has a NaN or infinite feature; fix or remove the graph in the loader")
        if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= x.shape[0]):
            raise DataError(f"{name}: an edge refers to a node outside 0..{x.shape[0] - 1}")
        graph_of_edge = graph_of[edge_index]
        if bool((crossing := graph_of_edge[0] != graph_of_edge[1]).any()):
            pair = graph_of_edge[:, int(crossing.nonzero()[0])].tolist()
            raise DataError(f"{name}: an edge connects graph {pair[0]} to graph {pair[1]}; expected both ends in the same graph")
        _check_edge_attr(name, edge_attr, graph_of_edge[0])
        order = torch.argsort(graph_of_edge[0], stable=True)
        edges_of = torch.bincount(graph_of_edge[0], minlength=sizes.numel())
        zero = torch.zeros(1, dtype=torch.int64)
        self._pack = Pack(
            x=x,
            edge_index=edge_index[:, order],
            node_start=torch.cat([zero, sizes.cumsum(0)]),
            edge_start=torch.cat([zero, edges_of.cumsum(0)]),
            edge_attr=None if edge_attr is None else edge_attr[order],
        )

    def __len__(self) -> int:
        return len(self._pack)

    @property
    def n_features(self) -> int:
        """Number of features F per node."""
        return int(self._pack.x.shape[1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 hash (hex) of the features, edges and sizes."""
        total = hashlib.sha256(b"packed")
        x, edge_attr = self._pack.x, self._pack.edge_attr
        of_nodes = (x.crow_indices(), x.col_indices(), x.values()) if x.layout == torch.sparse_csr else (x,)
        for part in (*of_nodes, self._pack.edge_index, self._pack.node_start, *([] if edge_attr is None else [edge_attr])):
            array = part.contiguous().numpy()
            total.update(f"|{array.dtype.str}{array.shape}|".encode())
            total.update(array.data)
        return total.hexdigest()

    def training(self, ids: Tensor, seed: int, device: str) -> PackedGraphs:
        """Return the graphs ``ids`` (int64 [n]). The seed is ignored."""
        return PackedGraphs(self._pack.take(ids), device)

    def queries(self, ids: Tensor, device: str) -> PackedGraphs:
        """Return the graphs ``ids`` (int64 [n]) as queries."""
        return PackedGraphs(self._pack.take(ids), device)


def _first_row_not_finite(x: Tensor) -> int | None:
    """Return the first row (dense or sparse CSR) with a NaN or infinite value."""
    sparse = x.layout == torch.sparse_csr
    bad = ~torch.isfinite(x.values()) if sparse else ~torch.isfinite(x).all(dim=1)
    if not bool(bad.any()):
        return None
    place = int(bad.nonzero()[0])
    return int(torch.searchsorted(x.crow_indices(), place, right=True)) - 1 if sparse else place


def _check_edge_attr(name: str, edge_attr: Tensor | None, graph_of_edge: Tensor) -> None:
    if edge_attr is None:
        return
    n_edges = graph_of_edge.numel()
    if edge_attr.layout != torch.strided or edge_attr.dtype != torch.float32 or edge_attr.dim() != 2 or len(edge_attr) != n_edges:
        raise DataError(
            f"{name}: edge_attr is {edge_attr.dtype} {list(edge_attr.shape)}; expected dense float32 [{n_edges}, D], one row per edge in "
            "the order of edge_index"
        )
    if (edge := _first_row_not_finite(edge_attr)) is not None:
        raise DataError(
            f"{name}: an edge of graph {int(graph_of_edge[edge])} has a NaN or infinite feature; fix or remove the edge in the loader"
        )
