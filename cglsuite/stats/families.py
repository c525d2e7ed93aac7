"""Multiple testing: p values adjusted over a family declared before the data were seen."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UnknownNameError, UsageError

__all__ = ["ADJUSTMENTS", "adjust"]

ADJUSTMENTS = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
"""Name here to name in statsmodels: Holm (1979) controls the family-wise error rate, Benjamini and Hochberg (1995) the false discovery
rate."""


def adjust(p: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    """Adjusted p values; compare them with the level of the whole family.

    A comparison that was declared and then refused stays in the family with p = 1, so an untestable comparison never makes the others look
    better.

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
    with _out_of_the_collectors_way():
        adjusted = multipletests(np.where(known, values, 1.0), method=ADJUSTMENTS[method])[1]
    return np.where(known, adjusted, np.nan)


@contextlib.contextmanager
def _out_of_the_collectors_way() -> Iterator[None]:
    """statsmodels collects garbage at every adjustment by Holm. With thousands of records in memory that takes a second; what is there
    already need not be searched."""
    if gc.get_freeze_count():  # somebody else's, which must stay frozen
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
