"""Edge classification as node classification on the line graph.

The nodes of the line graph ``L(G)`` are the undirected edges of G. Two of them are adjacent if they share an end. With the incidence matrix
``B`` (nodes × edges), its adjacency is ``BᵀB - 2I``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import NodeData


def line_graph(data: NodeData, edge_y: Tensor, n_classes: int | None = None, max_entries: int = 100_000_000) -> NodeData:
    """Build the line graph of ``data`` as a node-level dataset.

    Edges are undirected, so the features of an edge are symmetric in its two ends: ``[x_u + x_v, |x_u - x_v|]``.

    Args:
        data: the graph, with edges listed in one direction or both. Its node labels are not used.
        edge_y: the label of each column of ``data.edge_index``: int64 [E] (-1 = none), or bool [E, C]. A column, its reverse and its
            duplicates must have the same label.
        n_classes: number of edge classes. With ``None``, it is the largest label plus one, or C.
        max_entries: upper limit on the entries of ``BᵀB``, which take at least 16 bytes each in the resulting edge list.

    Returns:
        A graph with one node per undirected edge {u, v}, u < v, sorted by (u, v); ``keys["u"]`` and ``keys["v"]`` hold the ends. x is
        float32 [M, 2F] in the layout of ``data.x``. Edges are listed in both directions, sorted by (source, target).

    Raises:
        DataError: ``edge_y`` has the wrong shape, an edge has contradictory labels, there is a self-loop, or the line graph exceeds
            ``max_entries``.

    Example:
        >>> path = NodeData(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.zeros(3, dtype=torch.int64), n_classes=1)
        >>> line_graph(path, torch.tensor([0, 1])).edge_index.tolist()
        [[0, 1], [1, 0]]
    """
    _check(data, edge_y)
    u, v, labels = _undirected(data, edge_y)
    degree = torch.cat([u, v]).bincount(minlength=data.n_nodes)
    entries = int((degree * degree).sum())
    if entries > max_entries:
        hub = int(degree.argmax())
        raise DataError(
            f"{data.name}: the line graph of {u.numel()} edges has {entries} entries (the sum of squared degrees; node {hub} alone has "
            f"{int(degree[hub])} edges), above the limit of {max_entries}; remove hubs, use fewer edges, or raise max_entries"
        )
    if n_classes is None:
        n_classes = labels.shape[1] if labels.dim() == 2 else int(labels.max()) + 1 if labels.numel() else 0
    return NodeData(
        x=_features(data.x, u, v),
        edge_index=_adjacency(u, v, data.n_nodes),
        y=labels,
        n_classes=n_classes,
        keys={"u": u, "v": v},
        name=f"{data.name}-line-graph",
    )


def _check(data: NodeData, edge_y: Tensor) -> None:
    n = data.edge_index.shape[1]
    single, several = edge_y.dtype == torch.int64 and edge_y.dim() == 1, edge_y.dtype == torch.bool and edge_y.dim() == 2
    if not (single or several) or edge_y.shape[0] != n:
        raise DataError(f"{data.name}: edge_y is {edge_y.dtype} {list(edge_y.shape)}; expected int64 [{n}], or bool [{n}, C]")
    loops = (data.edge_index[0] == data.edge_index[1]).nonzero().flatten()
    if loops.numel():
        raise DataError(f"{data.name}: node {int(data.edge_index[0, loops[0]])} has a self-loop; every edge must join two different nodes")


def _undirected(data: NodeData, edge_y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sorted undirected edges without duplicates: their ends u < v (int64 [M]) and labels."""
    low, high = data.edge_index.min(dim=0).values, data.edge_index.max(dim=0).values
    key, where = (low * data.n_nodes + high).unique(return_inverse=True)
    first = torch.full((key.numel(),), where.numel()).scatter_reduce_(0, where, torch.arange(where.numel()), "amin")
    labels = edge_y[first]
    differs = edge_y != labels[where]
    differs = differs.any(dim=1) if differs.dim() == 2 else differs
    if differs.any():
        column = int(differs.nonzero()[0])
        a, b = data.edge_index[:, column].tolist()
        raise DataError(
            f"{data.name}: the edge {{{a}, {b}}} has different labels in columns {int(first[where[column]])} and {column} of edge_index; "
            "expected the same label in both directions"
        )
    return key // data.n_nodes, key % data.n_nodes, labels


def _features(x: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Compute the edge features ``[x_u + x_v, |x_u - x_v|]``: float32 [M, 2F]."""
    if x.layout != torch.sparse_csr:
        return torch.cat([x[u] + x[v], (x[u] - x[v]).abs()], dim=1)
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    rows = scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))
    a, b = rows[u.numpy()], rows[v.numpy()]
    both = scipy.sparse.hstack([a + b, abs(a - b)], format="csr", dtype=np.float32)
    both.sum_duplicates()
    both.eliminate_zeros()
    structure = (torch.from_numpy(both.indptr.astype(np.int64)), torch.from_numpy(both.indices.astype(np.int64)))
    return torch.sparse_csr_tensor(*structure, torch.from_numpy(both.data), size=both.shape, dtype=torch.float32)


def _adjacency(u: Tensor, v: Tensor, n_nodes: int) -> Tensor:
    """Return the pairs of distinct edges that share an end, in both directions: int64 [2, E']."""
    m = u.numel()
    ends = np.stack([u.numpy(), v.numpy()], axis=1).ravel()  # row e of Bᵀ holds the two ends of edge e
    transposed = scipy.sparse.csr_matrix((np.ones(2 * m, dtype=np.int8), ends, np.arange(0, 2 * m + 1, 2)), shape=(m, n_nodes))
    # In a simple graph two distinct edges share at most one end, so off-diagonal values are 1 and diagonal values are 2.
    product = (transposed @ transposed.T).tocsr()
    product.sort_indices()
    source = np.repeat(np.arange(m), np.diff(product.indptr))
    off = product.indices != source
    return torch.from_numpy(np.stack([source[off], product.indices[off].astype(np.int64)]))
