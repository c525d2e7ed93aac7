"""Node features computed from the graph, for datasets without features."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from cglsuite_node.datasets.arrays import Array

DEGREE_BINS = 16
STRUCTURAL_FEATURES = 2 * DEGREE_BINS + 1
_ROWS = 2048  # chunk size in rows of a product of adjacencies, which hubs make dense


def structural_features(pairs: Array, n_nodes: int) -> Array:
    """Compute the degree, the degrees of the neighbours and the local clustering of every node in an undirected graph, ignoring self-loops.

    With d the degree, bin 0 contains d = 0 and bin b contains 2^(b-1) <= d < 2^b (the last bin also contains larger d). Columns 0..15 are 1
    in the node's own bin. Columns 16..31 are the share of its neighbours in each bin. Column 32 is the local clustering coefficient 2 t /
    (d (d - 1)) with t triangles, or 0 if d < 2. Every value is computed from counts and one division, so the features are the same on every
    machine.

    Args:
        pairs: integers [2, M], in one direction or both, repeated or not.
        n_nodes: number of nodes N.

    Returns:
        float32 [N, 33].
    """
    adjacency = _adjacency(pairs, n_nodes)
    degree = np.diff(adjacency.indptr)
    # frexp gives the number of binary digits exactly; a logarithm could round across a power of two.
    bins = np.minimum(np.frexp(degree.astype(np.float64))[1], DEGREE_BINS - 1)
    own = np.zeros((n_nodes, DEGREE_BINS))
    own[np.arange(n_nodes), bins] = 1
    neighbours = (adjacency @ own) / np.maximum(degree, 1)[:, None]
    pairs_at = degree.astype(np.float64) * (degree - 1)
    clustering = 2 * _triangles(adjacency) / np.maximum(pairs_at, 1)
    return np.concatenate([own, neighbours, clustering[:, None]], axis=1).astype(np.float32)


def _adjacency(pairs: Array, n_nodes: int) -> scipy.sparse.csr_matrix:
    source, target = pairs[:, pairs[0] != pairs[1]].astype(np.int64)
    ones = np.ones(2 * len(source))
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    adjacency = scipy.sparse.csr_matrix((ones, both), (n_nodes, n_nodes))  # sums what repeats
    adjacency.data[:] = 1
    return adjacency


def _triangles(adjacency: scipy.sparse.csr_matrix) -> Array:
    """The number of triangles at every node: float64 [N].

    Edges are directed to the end with more neighbours, which bounds the work at hubs; a triangle is then a -> b -> c with a -> c.
    """
    n = adjacency.shape[0]
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(np.diff(adjacency.indptr), kind="stable")] = np.arange(n)
    edges = adjacency.tocoo()
    up = rank[edges.row] < rank[edges.col]
    forward = scipy.sparse.csr_matrix((edges.data[up], (edges.row[up], edges.col[up])), (n, n))
    backward = forward.T.tocsr()
    count = np.zeros(n)
    for first in range(0, n, _ROWS):
        rows = slice(first, first + _ROWS)
        at_a = (forward[rows] @ forward).multiply(forward[rows])
        at_b = (backward[rows] @ forward).multiply(forward[rows])
        count[rows] += np.asarray(at_a.sum(axis=1) + at_b.sum(axis=1)).reshape(-1)
        count += np.asarray(at_b.sum(axis=0)).reshape(-1)  # at c
    return count
