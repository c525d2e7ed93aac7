"""The message graph, with cached propagation operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs.sparse import SparseMatrix, _csr, sorted_csr
from cglsuite.graphs.upload import uploaded

Operator = Literal["sum", "sum-self", "sym"]
"""The propagation operator: A, A + I, or D^-1/2 (A + I) D^-1/2."""

_BLOCK = 2**22
"""The number of operator entries scaled at a time."""
_SORTED = 2**22
"""The largest number of edges for which sorting them is the fastest way to build the operator."""


class MessageGraph:
    """A graph with features and edges only. Labels are not accessible from this object.

    Args:
        x: float32 [N, F], dense, or a sparse matrix of the same shape (a SciPy matrix, or a sparse matrix on the device).
        edge_index: int64 [2, E] (source, target).
        device: device of the graph's tensors.
        operators: precomputed propagation operators of this graph.
    """

    def __init__(
        self,
        x: Tensor | scipy.sparse.csr_matrix | SparseMatrix,
        edge_index: Tensor,
        device: str | torch.device = "cpu",
        operators: Mapping[Operator, SparseMatrix] | None = None,
    ) -> None:
        self.features: Tensor | SparseMatrix
        if isinstance(x, SparseMatrix):
            self.features = x.to(device)
        else:
            self.features = uploaded(x, device) if isinstance(x, Tensor) else SparseMatrix(x, device)
        self.device = torch.device(device)
        self._edges = edge_index
        self._operators: dict[str, SparseMatrix | None] = {str(name): operator for name, operator in (operators or {}).items()}

    def __repr__(self) -> str:
        return f"<MessageGraph of {self.n_nodes:,} nodes, {self.n_edges:,} edges, {self.n_features:,} features>"

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return int(self.features.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of directed edges E."""
        return int(self._edges.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features F."""
        return int(self.features.shape[1])

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges (source, target) on the graph's device: int64 [2, E]. They are copied there on first use."""
        return uploaded(self._edges, self.device)

    @cached_property
    def dense(self) -> Tensor:
        """Dense features for standard layers: float32 [N, F]. Sparse features are converted once."""
        return self.features if isinstance(self.features, Tensor) else self.features.csr.to_dense()

    def propagate(self, kind: Operator, hidden: Tensor) -> Tensor:
        """Propagate messages along the edges: float32 [N, d] to [N, d].

        ``sum`` computes A·H, where A[i, j] = 1 for an edge j → i, without self-loops. ``sum-self`` computes (A + I)·H. ``sym`` computes
        Kipf's D^-1/2 (A + I) D^-1/2 · H, where D contains the row sums of A + I.
        """
        operator = self.prepared(kind)
        if operator is not None:
            return operator @ hidden
        return torch.zeros_like(hidden) if kind == "sum" else hidden

    def prepared(self, kind: Operator) -> SparseMatrix | None:
        """Return :meth:`operator` on the graph's device. It is computed once."""
        if kind not in self._operators:
            self._operators[kind] = self.operator(kind, self.device)
        return self._operators[kind]

    @cached_property
    def edges_with_loops(self) -> Tensor:
        """Edges without self-loops, followed by one self-loop per node: int64 [2, E']."""
        source, target = self._edges
        proper = uploaded(self._edges[:, source != target], self.device)  # selected where they are: a GPU is waited for where sizes follow
        loops = torch.arange(self.n_nodes, device=self.device)
        return torch.cat([proper, loops.expand(2, -1)], dim=1)

    @cached_property
    def in_neighbours(self) -> tuple[Any, Any]:
        """The in-neighbours in CSR form on the CPU: node i receives messages from ``sources[pointers[i]:pointers[i + 1]]``.

        Self-loops are dropped (the propagation operators add their own), parallel edges are kept, and edges may be in any order.

        Returns:
            The pointers, int64 [N + 1], and the sources [E'], ascending per node: int32 if all ids fit, otherwise int64.
        """
        heard = self._heard()
        sources = heard.indices.astype(np.int32 if self.n_nodes < 2**31 else np.int64, copy=False)
        if heard.data.dtype == np.bool_:
            return heard.indptr.astype(np.int64), sources
        pointers = np.concatenate([[0], heard.data.cumsum(dtype=np.int64)])[heard.indptr]
        return pointers, np.repeat(sources, heard.data)

    def _heard(self, *, loops: bool = False) -> scipy.sparse.csr_matrix:
        """Count the edges from node j to node i: [N, N], canonical; bool without parallel edges, otherwise int32.

        Args:
            loops: whether to give every node exactly one self-loop. Otherwise all self-loops are dropped.
        """
        n = self.n_nodes
        heard = self._heard_in_order()
        if heard is not None:
            return heard + scipy.sparse.identity(n, np.bool_, "csr") if loops else heard
        source, target = self._edges.cpu().numpy()
        proper = source != target
        if not proper.all():
            source, target = source[proper], target[proper]
        if loops:
            own = np.arange(n)
            source, target = np.concatenate([source, own]), np.concatenate([target, own])
        # SciPy sorts by counting, in linear time, and counts parallel edges.
        heard = scipy.sparse.csr_matrix((np.ones(len(source), np.int32), (target, source)), (n, n))
        if heard.nnz == len(source):
            heard.data = np.ones(heard.nnz, np.bool_)
        return heard

    def _heard_in_order(self) -> scipy.sparse.csr_matrix | None:
        """Return the adjacency matrix (bool, no self-loops) if the edges are already in order, otherwise ``None``."""
        if "in_neighbours" in vars(self):  # prepared for a sampler
            pointers, sources = self.in_neighbours
            known = scipy.sparse.csr_matrix((np.ones(len(sources), np.bool_), sources, pointers), (self.n_nodes, self.n_nodes))
            if known.has_canonical_format:
                return known
        by_source = sorted_csr(self._edges.cpu(), self.n_nodes)
        return None if by_source is None else by_source.T.tocsr()

    @contextmanager
    def scratch(self) -> Iterator[Any]:
        """Return a buffer for samplers: int64 [N], filled with -1. Callers must restore -1 after writing, so that a batch does not cost
        O(N).

        Each sampling thread has its own buffer.
        """
        try:
            memory = self._scratch.pop()
        except IndexError:
            memory = np.full(self.n_nodes, -1, dtype=np.int64)
        yield memory  # not restored after an error
        self._scratch.append(memory)

    @cached_property
    def _scratch(self) -> list[Any]:
        return []

    @cached_property
    def neighbourhood(self) -> scipy.sparse.csr_matrix:
        """The undirected adjacency matrix: float32 [N, N], symmetric with entries 0 and 1, without self-loops, on the CPU."""
        source, target = self._edges.cpu().numpy()
        proper = source != target
        ends = np.concatenate([source[proper], target[proper]]), np.concatenate([target[proper], source[proper]])
        out = scipy.sparse.csr_matrix((np.ones(len(ends[0]), np.float32), ends), (self.n_nodes, self.n_nodes))
        out.sum_duplicates()
        out.data[:] = 1.0
        return out

    def operator(self, kind: Operator, device: str | torch.device) -> SparseMatrix | None:
        """Compute the matrix used by :meth:`propagate`; ``None`` without edges (``sum`` is then zero, and the others are the identity)."""
        if kind not in ("sum", "sum-self", "sym"):
            raise SpecError(f"unknown propagation {kind!r}; expected 'sum', 'sum-self' or 'sym'")
        if self.n_edges <= _SORTED:
            return sorted_operator(self._edges, self.n_nodes, kind, device)
        adjacency = self._heard(loops=kind != "sum")
        if adjacency.nnz == (0 if kind == "sum" else self.n_nodes):
            return None
        adjacency = adjacency.astype(np.float32)
        if kind == "sym":
            scale = 1.0 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel())
            pointers, per_block = adjacency.indptr, max(1, _BLOCK * self.n_nodes // adjacency.nnz)
            for first in range(0, self.n_nodes, per_block):
                bounds = pointers[first : first + per_block + 1]
                block = slice(int(bounds[0]), int(bounds[-1]))
                adjacency.data[block] *= np.repeat(scale[first : first + per_block], np.diff(bounds))
                adjacency.data[block] *= scale[adjacency.indices[block]]
        return SparseMatrix(adjacency, device, compact=True)

    def rows(self, ids: Tensor) -> Tensor | scipy.sparse.csr_matrix:
        """Return the features of the nodes ``ids`` (int64 [n]) on the CPU: dense float32 [n, F] or SciPy CSR."""
        if isinstance(self.features, Tensor):
            return self.features[uploaded(ids, self.features.device)].cpu()
        return self.features.rows(ids)

    def isolated(self, ids: Tensor) -> MessageGraph:
        """Return a graph with copies of the nodes ``ids`` and no edges."""
        return MessageGraph(self.rows(ids), torch.empty(2, 0, dtype=torch.int64), self.device)

    def bytes(self) -> int:
        """Memory used by features, edges and operators, in bytes."""
        own = self.features.bytes() if isinstance(self.features, SparseMatrix) else stored_bytes(self.features)
        kept = sum(a.nbytes for a in self.in_neighbours) if "in_neighbours" in vars(self) else 0
        if "neighbourhood" in vars(self):
            kept += sum(part.nbytes for part in (self.neighbourhood.data, self.neighbourhood.indices, self.neighbourhood.indptr))
        return own + kept + self._edges.numel() * 8 + sum(o.bytes() for o in self._operators.values() if o is not None)


def sorted_operator(edge_index: Tensor, n: int, kind: Operator, device: str | torch.device) -> SparseMatrix | None:
    """Compute :meth:`MessageGraph.operator` for a graph with ``n`` nodes, bit-identically, by sorting edges encoded as single integers.

    This is for sampled batches, whose graphs have a few hundred edges: SciPy takes four times as long for them, mostly to check its
    arguments. For a graph with tens of millions of edges, the integers would take more memory than anything else.
    """
    source, target = edge_index.cpu().numpy()
    proper = source != target
    if not proper.all():
        source, target = source[proper], target[proper]
    if source.size == 0:
        return None
    keys = target * n + source
    if kind != "sum":
        keys = np.concatenate([keys, np.arange(n) * (n + 1)])
    keys.sort()
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    values = np.diff(first, append=keys.size).astype(np.float32)  # parallel edges count
    keys = keys[first]
    pointers = np.searchsorted(keys, np.arange(n + 1) * n)
    rows, columns = np.divmod(keys, n)
    if kind == "sym":
        scale = 1.0 / np.sqrt(np.add.reduceat(values, pointers[:-1]))
        values *= scale[rows]
        values *= scale[columns]
    return SparseMatrix.canonical(pointers, columns, values, (n, n), device, compact=True)


def scipy_features(x: Tensor) -> scipy.sparse.csr_matrix:
    """Convert a torch CSR tensor to a SciPy CSR matrix that shares its memory (after a copy to the CPU if needed)."""
    parts = (x.values().cpu().numpy(), x.col_indices().cpu().numpy(), x.crow_indices().cpu().numpy())
    return scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))


def stored_bytes(x: Tensor) -> int:
    """Return a matrix's size in a memory, in bytes. Sparse CSR takes a value and a 64-bit column per entry, and a pointer per row."""
    if x.layout != torch.sparse_csr:
        return x.numel() * x.element_size()
    return sum(part.numel() * part.element_size() for part in (x.values(), x.col_indices(), x.crow_indices()))


def torch_csr(rows: scipy.sparse.csr_matrix) -> Tensor:
    """Convert a SciPy CSR matrix to a torch CSR tensor with 64-bit indices."""
    return _csr(rows.indptr, rows.indices, rows.data, rows.shape, "cpu")
