"""Forgetting in excess of that of a learner whose weights never change; NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.base.errors import UsageError
from cglsuite.stats.metrics.matrix import forgetting_from_diagonal


def excess_forgetting(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``AF - AF_frozen`` with the AF of :func:`forgetting_from_diagonal`; positive = more forgetting than ``frozen-ncm``.

    NaN for a single task, or without that method's matrix. In class-IL, old tasks get worse even without forgetting, because more and more
    classes compete. ``frozen-ncm`` never changes a weight, so its AF under the same order measures only this competition and, if the graph
    grows, the growth of the graph.

    Args:
        joint: float64 [T + 1, T], the matrix of ``frozen-ncm``.

    Raises:
        UsageError: its matrix has a different number of tasks.

    >>> excess_forgetting([[0.5, 0.5], [0.9, 0.5], [0.4, 0.8]], [[0.5, 0.5], [0.8, 0.5], [0.55, 0.7]])
    0.25
    """
    own = forgetting_from_diagonal(matrix)
    if joint is None:
        return float("nan")
    if np.shape(joint) != np.shape(matrix):
        raise UsageError(f"joint matrix of shape {np.shape(joint)} for a matrix of shape {np.shape(matrix)}: expected the same tasks")
    return own - forgetting_from_diagonal(joint)
