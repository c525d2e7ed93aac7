"""Two-sample tests with the difference and its interval: Welch's t, paired t, Wilcoxon's signed-rank, all computed by SciPy, and the
quasi-F of crossed factors.

Samples hold one value per unit of replication; :func:`cglsuite.stats.compare_methods` chooses the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.wording import several
from cglsuite.stats.crossed import LEAST_UNITS, mean_estimate
from cglsuite.stats.intervals import BOOTSTRAP_FROM, Interval, mean_interval
from cglsuite.stats.refusal import Refused

__all__ = ["Difference", "crossed_t", "difference_interval", "paired_t", "samples", "welch", "wilcoxon"]

_NO_SPREAD = 1e-12
_RESAMPLES = 9999
_Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """First minus second, tested two-sided against 0.

    Args:
        test: its name. n: units of the first and of the second sample (the number of pairs, twice, where paired).
        estimate: difference of means (Wilcoxon: Hodges and Lehmann's), in the values' unit, with its interval ``low`` to ``high`` at
            ``level`` of the kind ``interval``.
        statistic, df, p: of the test; ``df`` is NaN where the test has none.
    """

    test: str
    n: tuple[int, int]
    estimate: float
    low: float
    high: float
    level: float
    interval: str
    statistic: float
    df: float
    p: float


def welch(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unit: str = "values") -> Difference:
    """Welch's t-test of independent samples with possibly different variances (Welch-Satterthwaite degrees of freedom).

    Args:
        first, second: float64 ``[n]`` and ``[m]``. level: of the interval. unit: what to call the units in refusals (a plural).

    Raises:
        Refused: fewer than three units in a sample, values that are not finite, a sample without spread.

    Example:
        >>> round(welch([1.0, 2.0, 3.0], [4.0, 6.0, 9.0]).df, 3)
        2.626
    """
    from scipy import stats

    x, y = samples(first, second, paired=False, unit=unit)
    result = stats.ttest_ind(x, y, equal_var=False)
    return _student("Welch's t", result, (x.size, y.size), float(x.mean() - y.mean()), level)


def paired_t(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unit: str = "values") -> Difference:
    """Student's t-test of the differences within pairs: the same order or seed for both.

    Args:
        first, second: float64 ``[n]``, in the same sequence of units.

    Raises:
        Refused: as :func:`welch`; samples of different lengths; differences without spread.
    """
    from scipy import stats

    x, y = samples(first, second, paired=True, unit=unit)
    return _student("paired t", stats.ttest_rel(x, y), (x.size, y.size), float((x - y).mean()), level)


def _student(test: str, result: Any, n: tuple[int, int], estimate: float, level: float) -> Difference:
    interval = result.confidence_interval(level)
    return Difference(
        test=test,
        n=n,
        estimate=estimate,
        low=float(interval.low),
        high=float(interval.high),
        level=level,
        interval="t",
        statistic=float(result.statistic),
        df=float(result.df),
        p=float(result.pvalue),
    )


def crossed_t(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, factors: tuple[str, str] = ("row", "column")) -> Difference:
    """The quasi-F of the differences in the cells of two crossed random factors, as ``t = ±√F'`` (see :mod:`cglsuite.stats.crossed`).

    Args:
        first, second: float64 ``[O, S]``, both methods in the same cells. factors: what to call rows and columns in refusals.

    Raises:
        Refused: values that are not finite, differences without spread, a design that is not :func:`cglsuite.stats.admissible`.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    _require_spread(x - y, f"the difference is the same in all {x.size} cells", max(abs(x).max(), abs(y).max()))
    found = mean_estimate(x - y, factors)
    low, high = found.interval(level)
    return Difference(
        test="crossed quasi-F",
        n=(x.size, y.size),
        estimate=found.mean,
        low=low,
        high=high,
        level=level,
        interval="t",
        statistic=found.t,
        df=found.df,
        p=found.p,
    )


def wilcoxon(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unit: str = "values") -> Difference:
    """Wilcoxon's signed-rank test of the differences within pairs; pairs without a difference are dropped (Wilcoxon 1945).

    Its estimate is that of Hodges and Lehmann (1963), the median of the Walsh averages ``(d_i + d_j) / 2, i ≤ j``, with the interval of the
    averages that the exact test leaves (Hollander & Wolfe 1999, 3.2 to 3.3). Both have the direction of the ranks, which a single large
    difference cannot turn, as it turns the difference of means.

    Raises:
        Refused: as :func:`paired_t`; too few pairs: the smallest p that n pairs can reach, ``2 / 2ⁿ``, is above ``1 - level``.
    """
    from scipy import stats

    x, y = samples(first, second, paired=True, unit=unit)
    differences = (x - y)[x != y]
    n = differences.size
    smallest = 2.0 ** (1 - n)
    if smallest > 1.0 - level:
        raise Refused(f"{n} {unit} with a difference: Wilcoxon's test cannot give a p below {smallest:.3g}, whatever the data")
    result = stats.wilcoxon(differences)
    walsh = np.sort(np.add.outer(differences, differences)[np.triu_indices(n)] / 2.0)
    outside = int(np.searchsorted(np.cumsum(_signed_ranks(n)), (1.0 - level) / 2.0, side="right")) - 1
    return Difference(
        test="Wilcoxon signed-rank",
        n=(x.size, y.size),
        estimate=float(np.median(walsh)),
        low=float(walsh[outside]),
        high=float(walsh[-1 - outside]),
        level=level,
        interval="signed ranks",
        statistic=float(result.statistic),
        df=float("nan"),
        p=float(result.pvalue),
    )


def _signed_ranks(n: int) -> _Values:
    """The probabilities of every sum of positive ranks where n signs are fair coins: float64 ``[n (n + 1) / 2 + 1]``."""
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        chances[rank:] = chances[rank:] + chances[:-rank]
        chances /= 2.0
    return chances


def difference_interval(
    first: ArrayLike, second: ArrayLike, *, paired: bool, level: float = 0.95, random_seed: int = 0, unit: str = "values"
) -> Interval:
    """A BCa bootstrap interval (Efron 1987) of the difference of two means; deterministic given ``random_seed``.

    Args:
        paired: resample pairs; otherwise resample each sample independently.

    Raises:
        Refused: as :func:`welch` or :func:`paired_t`; fewer than ten units in a sample (a bootstrap interval would be too narrow).
    """
    from scipy import stats

    x, y = samples(first, second, paired=paired, unit=unit)
    least = min(x.size, y.size)
    if least < BOOTSTRAP_FROM:
        raise Refused(f"{least} {unit}: a bootstrap interval of fewer than {BOOTSTRAP_FROM} is too narrow; use the interval of the t-test")
    if paired:
        return mean_interval(x - y, level=level, random_seed=random_seed, unit=unit)

    def difference(a: _Values, b: _Values, axis: int = -1) -> _Values:
        return np.asarray(a.mean(axis=axis) - b.mean(axis=axis))

    how = {"confidence_level": level, "n_resamples": _RESAMPLES, "method": "BCa"}
    interval = stats.bootstrap((x, y), difference, rng=np.random.default_rng(random_seed), **how).confidence_interval
    return Interval(low=float(interval.low), high=float(interval.high), level=level, n=least, method="BCa")


def samples(first: ArrayLike, second: ArrayLike, *, paired: bool, unit: str = "values") -> tuple[_Values, _Values]:
    """Both samples as float64, after checking that they support a test.

    Raises:
        Refused: as :func:`welch`, or as :func:`paired_t` where ``paired``.
    """
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if paired and x.size != y.size:
        raise Refused(f"{x.size} and {y.size} {unit}: a paired test needs the same number in both samples")
    for values in (x, y):
        undefined = int((~np.isfinite(values)).sum())
        if undefined:
            raise Refused(f"{undefined} of {values.size} {unit} are undefined")
        if values.size < LEAST_UNITS:
            raise Refused(f"{several(values.size, unit.removesuffix('s'), unit)}: a test needs at least {LEAST_UNITS} on each side")
    if paired:
        _require_spread(x - y, f"the difference is the same in all {x.size} {unit}", max(abs(x).max(), abs(y).max()))
    else:
        for values in (x, y):
            _require_spread(values, f"all {values.size} {unit} of one method are equal", abs(values).max())
    return x, y


def _require_spread(values: _Values, finding: str, scale: float) -> None:
    if float(np.ptp(values)) <= _NO_SPREAD * max(1.0, float(scale)):
        raise Refused(f"{finding}: without spread there is no variance to test against")
