"""Average performance, forgetting, transfer and intransigence; NumPy only.

Below, ``M[k, j]`` is the performance on task j (1-based) after learning task k, and row 0 is the untrained model. Entries that could not be
evaluated are NaN, and so are all metrics that need them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError

__all__ = [
    "average_performance",
    "backward_transfer",
    "forgetting_from_diagonal",
    "forgetting_max",
    "forward_transfer",
    "intransigence",
]


def _checked(matrix: ArrayLike) -> NDArray[np.float64]:
    try:
        m = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"not a performance matrix ({error}); expected shape [T + 1, T], where row 0 is before training") from error
    if m.ndim != 2 or m.shape[0] != m.shape[1] + 1 or m.shape[1] == 0:
        raise UsageError(f"the performance matrix has shape {m.shape}; expected [T + 1, T], with row 0 before training")
    return m


def average_performance(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``AP = mean_j M[T, j]``; higher is better. Also called AA.

    >>> average_performance([[0.5, 0.5], [0.9, 0.5], [0.7, 0.8]])
    0.75
    """
    return float(_checked(matrix)[-1].mean())


def forgetting_from_diagonal(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``AF = mean_{j<T} (M[j, j] - M[T, j])``, BeGin's forgetting; positive = forgetting. NaN for a single task."""
    m = _checked(matrix)
    return float((np.diagonal(m[1:]) - m[-1])[:-1].mean()) if m.shape[1] > 1 else float("nan")


def backward_transfer(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``BWT = mean_{j<T} (M[T, j] - M[j, j])``, the AF of CGLB and AGALE; negative = forgetting. NaN for a single task."""
    return -forgetting_from_diagonal(matrix)


def forgetting_max(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``AF_max = mean_{j<T} (max_{j≤l<T} M[l, j] - M[T, j])`` (Chaudhry et al. 2018); positive = forgetting. NaN for a single task.

    The maximum is taken over the rows after task j was learnt and before task T was learnt.
    """
    m = _checked(matrix)[1:]
    if m.shape[1] < 2:
        return float("nan")
    learnt = np.where(np.tri(m.shape[0], dtype=bool), m, -np.inf)[:-1, :-1]
    return float((learnt.max(axis=0) - m[-1, :-1]).mean())


def forward_transfer(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``FWT = mean_{j≥2} (M[j-1, j] - M[0, j])``; higher is better. NaN for a single task, or if unseen tasks cannot be evaluated."""
    m = _checked(matrix)
    return float((np.diagonal(m)[1:] - m[0, 1:]).mean()) if m.shape[1] > 1 else float("nan")


def intransigence(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``INT = mean_j (M_joint[j, j] - M[j, j])``; lower is better. NaN without the matrix of joint training.

    Raises:
        UsageError: the joint matrix has a different number of tasks.
    """
    m = _checked(matrix)
    if joint is None:
        return float("nan")
    upper = _checked(joint)
    if upper.shape != m.shape:
        raise UsageError(f"the joint matrix has shape {upper.shape}, but the matrix has shape {m.shape}; expected the same tasks")
    return float((np.diagonal(upper[1:]) - np.diagonal(m[1:])).mean())
