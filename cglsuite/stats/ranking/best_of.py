"""What a number of trials buys: the expected best of n of N scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite.stats.refusal import Refused

__all__ = ["expected_best"]


def expected_best(scores: Sequence[float]) -> pd.DataFrame:
    """The mean and standard deviation of the best of n scores, for n = 1 to N, over all subsets of n of the N scores.

    With the scores sorted, ``v_1 <= ... <= v_N``, the best of a random subset of size n is ``v_i`` with probability
    ``C(i-1, n-1) / C(N, n)``. This is the estimator without replacement of Dodge et al., Show Your Work, EMNLP 2019, which takes it with
    replacement.

    Args:
        scores: of N trials, higher is better.

    Returns:
        Columns n (1 to N), mean, std: exact over subsets, so std is 0 at n = N.

    Raises:
        Refused: there is no score, or one is not finite.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if not values.size or not np.isfinite(values).all():
        raise Refused("the best of n trials needs a finite score of every trial")
    rows = []
    for n in range(values.size, 0, -1):
        weights = _weights(values.size, n)
        mean = float(weights @ values)
        rows.append({"n": n, "mean": mean, "std": float(np.sqrt(weights @ (values - mean) ** 2))})
    return pd.DataFrame(rows[::-1])


def _weights(total: int, n: int) -> NDArray[np.float64]:
    """The probabilities that the i-th smallest of ``total`` is the largest of n drawn, by a recursion that cannot overflow."""
    weights = np.zeros(total)
    weights[-1] = n / total
    for i in range(total - 1, n - 1, -1):  # C(i-1, n-1) / C(i, n-1) = (i - n + 1) / i
        weights[i - 1] = weights[i] * (i - n + 1) / i
    return weights
