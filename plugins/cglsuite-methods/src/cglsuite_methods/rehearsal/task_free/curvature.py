"""Edge curvature, which measures how strongly the neighbourhoods of the two endpoints of an edge overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from cglsuite.base.errors import NotApplicable

IDLENESS = 0.5


def forman(adjacency: scipy.sparse.csr_matrix, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the Forman curvature of an unweighted graph whose triangles are faces: ``4 - deg(u) - deg(v) + 3 |N(u) ∩ N(v)|`` (Samal et
    al. 2018).

    Args:
        adjacency: a graph's ``neighbourhood``. source, target: int64 [m], the ends of edges.

    Returns:
        float64 [m].
    """
    degree = np.diff(adjacency.indptr)
    out: NDArray[np.float64] = 4.0 - degree[source] - degree[target] + 3.0 * _common(adjacency, source, target)
    return out


def overlap(adjacency: scipy.sparse.csr_matrix, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the Jaccard index of the two neighbourhoods, ``|N(u) ∩ N(v)| / |N(u) ∪ N(v)|``: float64 [m]."""
    degree = np.diff(adjacency.indptr)
    common = _common(adjacency, source, target)
    out: NDArray[np.float64] = common / np.maximum(degree[source] + degree[target] - common, 1)
    return out


def overlap_with_larger(adjacency: scipy.sparse.csr_matrix, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute ``(|N(u) ∩ N(v)| + 1) / (max(|N(u)|, |N(v)|) + 1)``, which the DRIFT code uses in place of curvature: float64 [m]."""
    degree = np.diff(adjacency.indptr)
    out: NDArray[np.float64] = (_common(adjacency, source, target) + 1) / (np.maximum(degree[source], degree[target]) + 1)
    return out


def _common(adjacency: scipy.sparse.csr_matrix, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count the common neighbours of the two endpoints: float64 [m]."""
    both = adjacency[source].multiply(adjacency[target])
    return np.asarray(both.sum(axis=1), dtype=np.float64).ravel()


def transport_solver() -> Any:
    """Import the exact optimal-transport solver (library POT), or raise an error that explains how to install it.

    Raises:
        NotApplicable: POT is not installed; the message names the extra that installs it.
    """
    try:
        import ot
    except ImportError:
        raise NotApplicable(
            "Ollivier curvature needs the library POT, which is not installed; run python -m pip install 'cglsuite-methods[curvature]', "
            "or choose method.curvature=forman"
        ) from None
    return ot


def ollivier(adjacency: scipy.sparse.csr_matrix, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the Ollivier curvature of edges, ``1 - W_1(m_u, m_v)`` (Ollivier 2009): float64 [m].

    The measure m_u has half of its mass on u and the rest evenly on u's neighbours; W_1 is the cost of moving m_u to m_v along the graph,
    solved exactly. The cost grows with deg(u) · deg(v).

    Raises:
        NotApplicable: the solver is not installed.
    """
    ot = transport_solver()
    out = np.empty(len(source))
    for i, (u, v) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        (mine, here), (theirs, there) = _measure(adjacency, u), _measure(adjacency, v)
        out[i] = 1.0 - ot.emd2(here, there, _distances(adjacency, mine, theirs))
    return out


def _measure(adjacency: scipy.sparse.csr_matrix, node: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A node and its neighbours, with the probability mass on each."""
    around = adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]].astype(np.int64)
    return np.append(around, node), np.append(np.full(len(around), (1 - IDLENESS) / max(1, len(around))), IDLENESS)


def _distances(adjacency: scipy.sparse.csr_matrix, mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Hop distances between the neighbours of two adjacent nodes, at most 3: float64 [a, b]."""
    rows, columns = adjacency[mine], adjacency[theirs]
    out = np.where((rows @ columns.T).toarray() > 0, 2.0, 3.0)
    out[rows[:, theirs].toarray() > 0] = 1.0
    out[mine[:, None] == theirs] = 0.0
    return out
