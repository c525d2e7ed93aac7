"""Forgetting in excess of that of a learner with frozen weights; NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.base.errors import UsageError
from cglsuite.stats.metrics.matrix import forgetting_from_diagonal


def excess_forgetting(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``AF - AF_frozen`` with the AF of :func:`forgetting_from_diagonal`; positive = more forgetting than ``frozen-ncm``.

    NaN for a single task, or without the matrix of that method. In class-IL, performance on old tasks drops even without forgetting,
    because more and more classes compete. The weights of ``frozen-ncm`` never change, so its AF for the same order measures only this
    competition and, if the graph grows, the effect of its growth.

    Args:
        joint: float64 [T + 1, T], the matrix of ``frozen-ncm``.

    Raises:
        UsageError: that matrix has a different number of tasks.

    >>> excess_forgetting([[0.5, 0.5], [0.9, 0.5], [0.4, 0.8]], [[0.5, 0.5], [0.8, 0.5], [0.55, 0.7]])
    0.25
    """
    own = forgetting_from_diagonal(matrix)
    if joint is None:
        return float("nan")
    if np.shape(joint) != np.shape(matrix):
        raise UsageError(
            f"the joint matrix has shape {np.shape(joint)}, but the matrix has shape {np.shape(matrix)}; expected the same tasks"
        )
    return own - forgetting_from_diagonal(joint)
