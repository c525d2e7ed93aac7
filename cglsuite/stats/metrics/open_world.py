"""The metric of open-world streams, from the performance matrix; NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.stats.metrics.matrix import _checked


def open_world_mean(matrix: ArrayLike, joint: ArrayLike | None = None) -> float:
    """``mean_{k<T} M[k, k+1]``: in an open world, the scenario's measure over all test items of a stage. NaN for a single task.

    >>> open_world_mean([[float("nan"), float("nan")], [0.9, 0.4], [0.5, 0.8]])
    0.4
    """
    m = _checked(matrix)
    return float(np.diagonal(m[1:], offset=1).mean()) if m.shape[1] > 1 else float("nan")
