"""Block-diagonal matrices for packed graphs and message graphs, assembled from precomputed blocks without sorting or conversion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from cglsuite.graphs.message import MessageGraph, Operator
from cglsuite.graphs.pack import ranges
from cglsuite.graphs.sparse import SparseMatrix, _csr


class BlockDiagonal:
    """A block-diagonal matrix with one block per graph of a pack. Selecting graphs takes time linear in their number of entries.

    Args:
        whole: [N, N], on the CPU, without entries between two graphs.
        node_start: int64 [n + 1], the index of each graph's first node, then N.
    """

    def __init__(self, whole: SparseMatrix, node_start: Tensor) -> None:
        self._node_start = node_start
        self._rows, self._permutation, self._columns = whole.csr, whole._permutation, whole._columns
        # A block holds as many entries by rows as by columns, in the same range of both.
        self._entry_start = self._rows.crow_indices()[node_start]

    def take(self, ids: Tensor, device: str | torch.device) -> SparseMatrix:
        """Return the block-diagonal matrix of the graphs ``ids`` (int64 [m]). It equals the matrix of a pack with only these graphs."""
        nodes, node_begins = ranges(self._node_start, ids)
        entries, entry_begins = ranges(self._entry_start, ids)
        per_graph = entry_begins.diff()
        shift = (node_begins[:-1] - self._node_start[ids]).repeat_interleave(per_graph)
        moved = (entry_begins[:-1] - self._entry_start[ids]).repeat_interleave(per_graph)
        rows = self._part(self._rows, nodes, entries, shift)
        columns = self._part(self._columns, nodes, entries, shift)
        return SparseMatrix._from_parts(rows, columns, self._permutation[entries] + moved).to(device)

    @staticmethod
    def _part(matrix: Tensor, nodes: Tensor, entries: Tensor, shift: Tensor) -> Tensor:
        counts = matrix.crow_indices().diff()[nodes]
        pointers = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
        n = nodes.numel()
        return _csr(pointers, matrix.col_indices()[entries] + shift, matrix.values()[entries], (n, n), "cpu")


def members(node_start: Tensor, device: str | torch.device) -> SparseMatrix:
    """Build the graph-by-node membership matrix: float32 [n, N], 1 where the node belongs to the graph; ``node_start`` is int64 [n + 1]."""
    n, n_nodes = len(node_start) - 1, int(node_start[-1])
    nodes, ones = torch.arange(n_nodes + 1), torch.ones(n_nodes)
    graph_of = torch.arange(n).repeat_interleave(node_start.diff())
    rows = _csr(node_start, nodes[:-1], ones, (n, n_nodes), "cpu")
    columns = _csr(nodes, graph_of, ones, (n_nodes, n), "cpu")
    return SparseMatrix._from_parts(rows, columns, nodes[:-1]).to(device)


class SideBySide(MessageGraph):
    """The disjoint union of several message graphs as a single message graph. Prepared operators are combined on their device.

    Args:
        parts: one or more graphs on the same device, with the same number of features, either all dense or all sparse.
    """

    def __init__(self, parts: Sequence[MessageGraph]) -> None:
        self._parts, self.device = tuple(parts), parts[0].device
        sparse = [g.features for g in parts if isinstance(g.features, SparseMatrix)]
        dense = [g.features for g in parts if isinstance(g.features, Tensor)]
        self.features = SparseMatrix.joined(sparse, diagonal=False) if sparse else torch.cat(dense)
        self.starts: list[int] = torch.tensor([0, *(g.n_nodes for g in parts)]).cumsum(0).tolist()
        """Position of each part's first node; then the number of nodes."""
        self._operators = {}

    @cached_property
    def _edges(self) -> Tensor:  # type: ignore[override]
        return torch.cat([g._edges + start for g, start in zip(self._parts, self.starts, strict=False)], dim=1)

    @cached_property
    def edge_index(self) -> Tensor:
        """The concatenated edges of all parts: int64 [2, E]."""
        return torch.cat([g.edge_index + start for g, start in zip(self._parts, self.starts, strict=False)], dim=1)

    @cached_property
    def edges_with_loops(self) -> Tensor:
        """The concatenated edges of all parts without self-loops, followed by one self-loop per node: int64 [2, E']."""
        proper = [g.edges_with_loops[:, : -g.n_nodes] + start for g, start in zip(self._parts, self.starts, strict=False)]
        return torch.cat([*proper, torch.arange(self.n_nodes, device=self.device).expand(2, -1)], dim=1)

    def operator(self, kind: Operator, device: str | torch.device) -> SparseMatrix | None:
        """Return the block-diagonal matrix of the parts' operators; see :meth:`MessageGraph.operator`."""
        prepared = [g.prepared(kind) for g in self._parts]
        if all(block is None for block in prepared):
            return None

        def block(graph: MessageGraph, prepared: SparseMatrix | None) -> SparseMatrix:
            if prepared is not None:
                return prepared
            # Without edges `sum` is zero and the others are the identity.
            identity = SparseMatrix.identity(graph.n_nodes, graph.device)
            return identity.with_values(torch.zeros_like(identity.values)) if kind == "sum" else identity

        return SparseMatrix.joined([block(g, p) for g, p in zip(self._parts, prepared, strict=True)], diagonal=True).to(device)
