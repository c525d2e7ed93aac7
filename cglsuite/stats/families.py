"""Many tests at once: p values adjusted over a family that was declared before the data were seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.errors import UnknownNameError, UsageError

__all__ = ["ADJUSTMENTS", "adjust"]

ADJUSTMENTS = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
"""What an adjustment is called here, and in statsmodels: Holm (1979) bounds the chance of any false positive, Benjamini and Hochberg (1995)
the expected share of false positives among the positives."""


def adjust(p: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    """Adjusted p values, to be compared with the level of the whole family.

    A comparison that was declared and then refused stays in the family: it counts as p = 1, so that what could not be tested never makes
    the others look better.

    Args:
        p: float64 ``[m]``, one per declared comparison; NaN where it was refused. method: ``holm`` or ``benjamini-hochberg``.

    Returns:
        float64 ``[m]``; NaN stays NaN.

    Raises:
        UnknownNameError: another method. UsageError: a p outside 0 to 1.

    Example:
        >>> adjust([0.01, 0.04, float("nan")]).round(3).tolist()
        [0.03, 0.08, nan]
    """
    from statsmodels.stats.multitest import multipletests

    if method not in ADJUSTMENTS:
        raise UnknownNameError("adjustment", method, ADJUSTMENTS)
    values = np.asarray(p, dtype=np.float64).ravel()
    known = ~np.isnan(values)
    outside = values[known & ~((values >= 0) & (values <= 1))]
    if outside.size:
        raise UsageError(f"p values outside 0 to 1: {', '.join(f'{one:g}' for one in outside[:3])}")
    if not known.any():
        return values
    adjusted = multipletests(np.where(known, values, 1.0), method=ADJUSTMENTS[method])[1]
    return np.where(known, adjusted, np.nan)
