"""Repetitions that collapsed: values so far on the bad side of the median that a mean with a t interval does not describe them.

Training fails now and then, and its performance falls to that of guessing. With one collapse in five, Student's t covers the mean far less
often than it says with few repetitions (``cglsuite.stats.error_rate("collapses", ...)``), and a bootstrap-t no more often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.stats.crossed import LEAST_UNITS

ENOUGH_TO_COLLAPSE = 10
"""Repetitions from which on an interval is nearly as good as it says although some collapse."""
_SPREADS = 4.0
_OF_A_NORMAL = 1.4826


def collapsed(values: ArrayLike, *, higher_is_better: bool = True, least: float = 0.0) -> NDArray[np.bool_]:
    """Which values lie further on the bad side of the median than four robust standard deviations, and than ``least``.

    None of fewer than three.

    The robust standard deviation is 1.4826 times the median absolute deviation, which collapses of fewer than half of the values do
    not move.

    Args:
        values: float64 ``[..., n]``. least: a distance that is no collapse whatever the spread, in the values' unit.

    Example:
        >>> collapsed([0.81, 0.80, 0.79, 0.20, 0.82], least=0.1).tolist()
        [False, False, False, True, False]
    """
    x = np.asarray(values, dtype=np.float64)
    if x.shape[-1] < LEAST_UNITS:
        return np.zeros(x.shape, dtype=np.bool_)
    below = (np.median(x, axis=-1, keepdims=True) - x) * (1.0 if higher_is_better else -1.0)
    spread = _OF_A_NORMAL * np.median(abs(below), axis=-1, keepdims=True)
    return np.asarray(below > np.maximum(_SPREADS * spread, least) + 1e-12)
