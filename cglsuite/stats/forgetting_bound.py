"""An upper bound on average forgetting from average accuracy.

With accuracies between 0 and 1, ``AF_max = 1/(k-1) Σ_{j<k} (max_l M[l, j] - M[k, j]) ≤ 1/(k-1) Σ_{j<k} (1 - M[k, j])``, and the sum of the
final accuracies of the first k - 1 tasks is at least ``k·AA - 1``: hence ``AF ≤ 1 - k/(k-1)·AA + 1/(k-1)`` (Wei et al., arXiv:2401.18054).
The bound holds for forgetting from the diagonal too, which is never larger.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.stats.refusal import Refused

__all__ = ["af_bound", "check_bound"]

_TOLERANCE = 1e-9


def af_bound(aa: ArrayLike, k: int) -> NDArray[np.float64]:
    """``1 - k/(k-1)·AA + 1/(k-1)``: the largest average forgetting possible at an average accuracy.

    Args:
        aa: average accuracies after the last task, fractions. k: number of tasks.

    Raises:
        Refused: a single task: nothing can be forgotten.

    Example:
        >>> af_bound([0.2, 1.0], 5).round(3).tolist()
        [1.0, 0.0]
    """
    if k < 2:
        raise Refused(f"{k} task: forgetting is defined from 2 tasks on")
    return np.asarray(1.0 - k / (k - 1) * np.asarray(aa, dtype=np.float64) + 1.0 / (k - 1))


def check_bound(frame: pd.DataFrame) -> pd.DataFrame:
    """Whether every cell obeys the bound.

    Args:
        frame: columns aa, af, n_tasks; fractions.

    Returns:
        The frame with columns bound, slack (bound - af), obeys (True, False, or None where there is nothing to check) and reason (why
        not, or empty).

    Raises:
        UsageError: a column is absent.
    """
    absent = [name for name in ("aa", "af", "n_tasks") if name not in frame]
    if absent:
        raise UsageError(f"a frame without {', '.join(absent)}: expected aa, af and n_tasks")
    rows = [_checked(float(aa), float(af), int(k)) for aa, af, k in zip(frame["aa"], frame["af"], frame["n_tasks"], strict=True)]
    checks = pd.DataFrame(rows, columns=["bound", "slack", "obeys", "reason"], index=frame.index)
    return frame.assign(bound=checks["bound"], slack=checks["slack"], obeys=checks["obeys"].astype(object), reason=checks["reason"])


def _checked(aa: float, af: float, k: int) -> tuple[float, float, bool | None, str]:
    nan = float("nan")
    if k < 2:
        return nan, nan, None, "a single task"
    if not (np.isfinite(aa) and np.isfinite(af)):
        return nan, nan, None, "AA or AF is undefined"
    bound = float(af_bound(aa, k))
    return bound, bound - af, bool(af <= bound + _TOLERANCE), ""
