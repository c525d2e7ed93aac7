"""Block-diagonal sparse matrices over packed graphs, assembled from precomputed blocks without sorting or conversion."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.graphs.pack import ranges
from cglsuite.graphs.sparse import SparseMatrix, _csr

__all__ = ["BlockDiagonal", "members"]


class BlockDiagonal:
    """A block-diagonal matrix over the nodes of a pack, one block per graph. The cost of selecting graphs is linear in their entries.

    Args:
        whole: [N, N], on the CPU, without entries between two graphs.
        node_start: int64 [n + 1], where the nodes of each graph begin.
    """

    def __init__(self, whole: SparseMatrix, node_start: Tensor) -> None:
        self._node_start = node_start
        self._rows, self._columns, self._permutation = whole.csr, whole._columns, whole._permutation
        # A block holds as many entries by rows as by columns, in the same range of both.
        self._entry_start = self._rows.crow_indices()[node_start]

    def take(self, ids: Tensor, device: str | torch.device) -> SparseMatrix:
        """The blocks of the graphs ``ids`` (int64 [m]) along the diagonal: equal to the matrix of a new pack of these graphs."""
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
    """float32 [n, N]: 1 where a node belongs to a graph; ``node_start`` is int64 [n + 1]."""
    n, n_nodes = len(node_start) - 1, int(node_start[-1])
    nodes, ones = torch.arange(n_nodes + 1), torch.ones(n_nodes)
    graph_of = torch.arange(n).repeat_interleave(node_start.diff())
    rows = _csr(node_start, nodes[:-1], ones, (n, n_nodes), "cpu")
    columns = _csr(nodes, graph_of, ones, (n_nodes, n), "cpu")
    return SparseMatrix._from_parts(rows, columns, nodes[:-1]).to(device)
