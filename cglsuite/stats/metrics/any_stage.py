"""Forgetting relative to the best stage of the stream, including stages before the task was learnt; NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.stats.metrics.matrix import _checked


def forgetting_max_any_stage(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``mean_{j<T} (max_{l<T} M[l, j] - M[T, j])``, the skeleton study's formula as printed; positive = forgetting. NaN for one task.

    :func:`forgetting_max` starts at stage ``l = j``, where task j is learnt. The two differ if a task is best before it is learnt. This can
    happen in task-IL and domain-IL, where tasks are evaluated from the start. Earlier stages without an evaluation are skipped.

    >>> forgetting_max_any_stage([[0.5, 0.5, 0.5], [0.9, 0.8, 0.5], [0.8, 0.7, 0.5], [0.7, 0.6, 0.9]])
    0.2
    """
    m = _checked(matrix)[1:]
    if m.shape[1] < 2:
        return float("nan")
    before = np.where(np.triu(np.isnan(m), 1), -np.inf, m)[:-1, :-1]
    return float((before.max(axis=0) - m[-1, :-1]).mean())
