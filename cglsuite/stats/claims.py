"""Check the claims of published tables: which pairs of methods differ, whether our runs confirm this, and how many runs it takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.base.errors import UsageError
from cglsuite.stats.compare import adjust
from cglsuite.stats.pairwise import paired_t
from cglsuite.stats.refusal import Refused
from cglsuite.stats.sample_size import power, units_needed

CLAIM_VERDICTS = ("confirmed", "same sign", "opposite sign", "reversed")
"""What runs say of a claim: they separate the two methods or not, with the sign of the claim or the other one."""


class PrintedPair(NamedTuple):
    """Two rows of a block, compared with Welch's test.

    ``better`` and ``worse`` are row indices within the block, ``difference`` is the lead of the better row, and ``p_holm`` is adjusted over
    all pairs in the block.
    """

    better: int
    worse: int
    difference: float
    p: float
    p_holm: float


def sample_deviation(deviation: float, n: int, ddof: int | None) -> float:
    """Convert a published standard deviation to a sample standard deviation. If it divides by n, it is multiplied by ``√(n / (n - 1))``.

    Args:
        ddof: the paper's code divides by ``n - ddof``; ``None`` means unknown, which is treated as a sample standard deviation.

    Examples:
        >>> round(sample_deviation(1.0, 2, 0), 3), sample_deviation(1.0, 2, 1)
        (1.414, 1.0)
    """
    return deviation * sqrt(n / (n - 1)) if ddof == 0 else deviation


def printed_pairs(means: ArrayLike, deviations: ArrayLike, n: ArrayLike, *, higher_is_better: bool = True) -> list[PrintedPair]:
    """Compare all pairs of rows in a block with two-sided Welch tests on the published values, Holm-adjusted over the block.

    Args:
        means, deviations: float64 ``[rows]``. n: the number of runs behind each row.

    Raises:
        UsageError: a row has no standard deviation or fewer than two runs.

    Examples:
        >>> [(pair.better, round(pair.difference, 1), pair.p_holm < 0.05) for pair in printed_pairs([90.0, 70.0], [2.0, 3.0], [10, 10])]
        [(0, 20.0, True)]
    """
    from scipy import stats

    mean, deviation, runs = (np.asarray(values, dtype=np.float64) for values in (means, deviations, n))
    if not (np.isfinite(mean).all() and (deviation > 0.0).all() and (runs >= 2).all()):
        raise UsageError("a published row needs a mean, a positive standard deviation and at least two runs")
    if mean.size < 2:
        return []
    first, second = np.array(list(combinations(range(mean.size), 2))).T
    sides = [(mean[side], deviation[side], runs[side]) for side in (first, second)]
    p = stats.ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue
    ahead = (mean[first] - mean[second]) * (1.0 if higher_is_better else -1.0)
    better, worse = np.where(ahead >= 0.0, first, second), np.where(ahead >= 0.0, second, first)
    columns = (better.tolist(), worse.tolist(), np.abs(ahead).tolist(), p.tolist(), adjust(p).tolist())
    return [PrintedPair(*pair) for pair in zip(*columns, strict=True)]


def claim_verdicts(differences: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[list[str], list[float]]:
    """Return the verdict and the p value of each claim in a block, Holm-adjusted over the block.

    Args:
        differences, p: float64 ``[claims]``. A difference is positive if our difference has the same sign as the claim. NaN means that
        there is no test.

    Returns:
        One of :data:`CLAIM_VERDICTS` or ``no verdict`` for each claim, and the adjusted p values.

    Examples:
        >>> claim_verdicts([2.0, 0.1, -0.1, -2.0], [0.001, 0.6, 0.6, 0.001])[0]
        ['confirmed', 'same sign', 'opposite sign', 'reversed']
    """
    adjusted = adjust(p)
    verdicts = []
    for difference, value in zip(np.asarray(differences, dtype=np.float64).tolist(), adjusted.tolist(), strict=True):
        if np.isnan(value) or difference == 0.0:
            verdicts.append("no verdict")
        else:
            verdicts.append(CLAIM_VERDICTS[(0 if difference > 0.0 else 3) if value <= alpha else (1 if difference > 0.0 else 2)])
    return verdicts, adjusted.tolist()


def claim_power(deviation: float, n: int, difference: float, claims: int, *, alpha: float = 0.05) -> tuple[float, int | None]:
    """Return the power of ``n`` paired runs for a true difference, and the number of runs for 80% power (``None`` if it is too large).

    Args:
        deviation: standard deviation of the paired differences. claims: number of claims in the block. The test's level is ``alpha /
            claims``, the strictest step of Holm's method.
    """
    level = alpha / claims
    try:
        runs: int | None = units_needed(difference, deviation, alpha=level)
    except Refused:
        runs = None
    found = power(n, difference, deviation, alpha=level)
    return found if np.isfinite(found) else 1.0, runs  # NaN: the noncentral distribution underflows far beyond the critical value


def flips(better: Sequence[float], worse: Sequence[float], was: float, tried: int = 1, *, alpha: float = 0.05) -> bool:
    """Return whether the paired values under another setting differ significantly, with the opposite sign to ``was``.

    Args:
        better, worse: values of the two methods, for the same units in the same order. tried: the number of settings tried, by which p is
        multiplied.
    """
    try:
        test = paired_t(better, worse)
    except Refused:
        return False
    return test.estimate * was < 0.0 and min(1.0, tried * test.p) <= alpha


PRECISIONS = ("print too imprecise", "needs more runs", "not worth it")
"""What is behind an undecided mean beside a printed one."""
MAX_WORTHWHILE_UNITS = 100
"""Runs of one method beyond which equivalence is not worth showing: ten times what the most thorough of the papers prints."""


def precision_of(
    spread: float, printed: float, n: int, margin: float, *, alpha: float = 0.05, wanted: float = 0.8
) -> tuple[str, int | None]:
    """Return what is needed to show that an undecided value is equivalent: one of :data:`PRECISIONS`, and the number of runs.

    Args:
        spread: standard deviation of our repetitions. printed, n: sample standard deviation of the published runs, and their number.
        margin: the equivalence margin, in the same unit.

    Returns:
        ``print too imprecise``: ``t.95(n - 1) · s / √n`` reaches the margin, so no number of our runs can show equivalence. ``needs more
        runs``: the returned number of runs shows it with power ``wanted`` if the true difference is 0. ``not worth it``: more than
        :data:`MAX_WORTHWHILE_UNITS` would be needed.

    Examples:
        >>> precision_of(2.0, 4.0, 10, 2.0), precision_of(1.0, 1.0, 10, 2.0), precision_of(1.0, 3.2, 10, 2.0)
        (('print too imprecise', None), ('needs more runs', 5), ('not worth it', None))
    """
    from scipy import stats

    theirs = printed**2 / n
    reach = float(stats.t.ppf(1.0 - alpha, n - 1)) * sqrt(theirs)
    if reach >= margin:
        return PRECISIONS[0], None
    runs = np.arange(3, MAX_WORTHWHILE_UNITS + 1)
    own = spread**2 / runs
    error = np.sqrt(own + theirs)
    df = error**4 / (own**2 / (runs - 1) + theirs**2 / (n - 1))
    room = margin / error - stats.t.ppf(1.0 - alpha, df)
    if n <= 3:  # there the published mean alone must leave room too
        room = np.minimum(room, (margin - reach) / error)
    enough = runs[2.0 * stats.t.cdf(room, df) - 1.0 >= wanted]
    return (PRECISIONS[1], int(enough[0])) if enough.size else (PRECISIONS[2], None)
