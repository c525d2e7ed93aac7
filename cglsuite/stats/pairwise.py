"""Two-sample tests with an interval for the difference: Welch's t, paired t, quasi-F of crossed factors and Wilcoxon's signed-rank test.

Samples contain one value per unit of replication. :func:`cglsuite.stats.compare_methods` chooses the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, prod, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.markup import several
from cglsuite.stats.crossed import MIN_UNITS, MeanEstimate, mean_estimate
from cglsuite.stats.refusal import Refused
from cglsuite.stats.replication import Layout

_NO_SPREAD = 1e-12
_RESAMPLES = 9999
_Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between two means (first minus second), with a two-sided test against 0.

    Args:
        test: name of the test. n: numbers of units in the first and second samples (for paired tests, the number of pairs twice).
        estimate: difference between the means (for Wilcoxon's test, the Hodges-Lehmann estimate), in the unit of the values. low, high: its
            interval at ``level``; ``interval`` names its kind. statistic, df, p: results of the test; ``df`` is NaN if the test has none.
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
    """Perform Welch's t-test for independent samples with possibly different variances (Welch-Satterthwaite degrees of freedom).

    Args:
        first, second: float64 ``[n]`` and ``[m]``. level: level of the interval. unit: plural name of the units in error messages.

    Raises:
        Refused: a sample has fewer than three units, a value that is not finite, or no spread.

    Example:
        >>> round(welch([1.0, 2.0, 3.0], [4.0, 6.0, 9.0]).df, 3)
        2.616
    """
    return welch_of(*map(mean_estimate, samples(first, second, paired=False, unit=unit)), level=level)


def welch_of(first: MeanEstimate, second: MeanEstimate, *, level: float = 0.95) -> Difference:
    """Perform Welch's t-test for two means, each with the standard error and degrees of freedom of its own design."""
    return _student("Welch's t", first.minus(second), (prod(first.n), prod(second.n)), level)


def paired_t(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unit: str = "values") -> Difference:
    """Perform Student's t-test on the differences within pairs (the same order or seed for both).

    Args:
        first, second: float64 ``[n]``, with the same units in the same order.

    Raises:
        Refused: as in :func:`welch`; the samples have different lengths; the differences have no spread.
    """
    x, y = samples(first, second, paired=True, unit=unit)
    return paired_t_of(mean_estimate(x - y), level=level)


def paired_t_of(estimate: MeanEstimate, *, level: float = 0.95) -> Difference:
    """Perform Student's t-test for a mean difference with a given standard error."""
    return _student("paired t", estimate, (prod(estimate.n), prod(estimate.n)), level)


def _student(test: str, estimate: MeanEstimate, n: tuple[int, int], level: float) -> Difference:
    low, high = estimate.interval(level)
    return Difference(
        test=test,
        n=n,
        estimate=estimate.mean,
        low=low,
        high=high,
        level=level,
        interval="t",
        statistic=estimate.t,
        df=estimate.df,
        p=estimate.p,
    )


def crossed_t(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, factors: tuple[str, str] = ("row", "column"), overlap: float = 0.0
) -> Difference:
    """Perform the quasi-F test on the differences in the cells of two crossed random factors, as ``t = ±√F'`` (see
    :mod:`cglsuite.stats.crossed`).

    Args:
        first, second: float64 ``[O, S]``, both methods in the same cells. factors: names of the rows and columns for error messages.
        overlap: see :func:`cglsuite.stats.mean_estimate`.

    Raises:
        Refused: a value is not finite, the differences have no spread, or the design is not :func:`cglsuite.stats.admissible`.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    _require_spread(x - y, f"the difference is the same in all {x.size} cells", max(abs(x).max(), abs(y).max()))
    return _student("crossed quasi-F", mean_estimate(x - y, factors, overlap=overlap), (x.size, y.size), level)


def wilcoxon(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unit: str = "values") -> Difference:
    """Perform Wilcoxon's signed-rank test on the differences within pairs. Pairs without a difference are dropped (Wilcoxon 1945).

    The estimate is that of Hodges and Lehmann (1963), the median of the Walsh averages ``(d_i + d_j) / 2, i ≤ j``. Its interval contains
    the averages that the exact test does not reject (Hollander & Wolfe 1999, 3.2 to 3.3). Both follow the direction of the ranks. A single
    large difference cannot reverse them, although it can reverse the difference between means.

    Raises:
        Refused: as in :func:`paired_t`; or there are too few pairs: the smallest p that n pairs can reach, ``2 / 2ⁿ``, is above ``1 -
            level``.
    """
    from scipy import stats

    x, y = samples(first, second, paired=True, unit=unit)
    differences = (x - y)[x != y]
    n = differences.size
    smallest = 2.0 ** (1 - n)
    if smallest > 1.0 - level:
        raise Refused(f"the samples differ in only {n} {unit}, so the p-value of Wilcoxon's test cannot be below {smallest:.3g}")
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
    """Return the probability of each sum of positive ranks for n random signs: float64 ``[n (n + 1) / 2 + 1]``."""
    chances = np.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        chances[rank:] = chances[rank:] + chances[:-rank]
        chances /= 2.0
    return chances


def difference_interval(
    first: ArrayLike, second: ArrayLike, *, paired: bool, level: float = 0.95, random_seed: int = 0, unit: str = "values"
) -> Interval:
    """Compute a BCa bootstrap interval (Efron 1987) for the difference between two means. It is deterministic for a given ``random_seed``.

    Args:
        paired: resample pairs instead of resampling each sample independently.

    Raises:
        Refused: as in :func:`welch` or :func:`paired_t`; or a sample has fewer than ten units (a bootstrap interval would be too narrow).
    """
    from scipy import stats

    x, y = samples(first, second, paired=paired, unit=unit)
    least = min(x.size, y.size)
    if least < BOOTSTRAP_FROM:
        raise Refused(
            f"with {least} {unit}, a bootstrap interval is too narrow (it needs at least {BOOTSTRAP_FROM}); use the interval of the t-test"
        )
    if paired:
        return mean_interval(x - y, level=level, random_seed=random_seed, unit=unit)

    def difference(a: _Values, b: _Values, axis: int = -1) -> _Values:
        return np.asarray(a.mean(axis=axis) - b.mean(axis=axis))

    how = {"confidence_level": level, "n_resamples": _RESAMPLES, "method": "BCa"}
    interval = stats.bootstrap((x, y), difference, rng=np.random.default_rng(random_seed), **how).confidence_interval
    return Interval(low=float(interval.low), high=float(interval.high), level=level, n=least, method="BCa")


def samples(first: ArrayLike, second: ArrayLike, *, paired: bool, unit: str = "values") -> tuple[_Values, _Values]:
    """Convert both samples to float64 and check that they support a test.

    Raises:
        Refused: as in :func:`welch`, or as in :func:`paired_t` if ``paired``.
    """
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (first, second))
    if paired and x.size != y.size:
        raise Refused(f"the samples have {x.size} and {y.size} {unit}, but a paired test needs equal numbers")
    for values in (x, y):
        undefined = int((~np.isfinite(values)).sum())
        if undefined:
            raise Refused(f"{undefined} of {values.size} {unit} are undefined")
        if values.size < MIN_UNITS:
            raise Refused(f"{several(values.size, unit.removesuffix('s'), unit)}: a test needs at least {MIN_UNITS} in each sample")
    if paired:
        _require_spread(x - y, f"the difference is the same in all {x.size} {unit}", max(abs(x).max(), abs(y).max()))
    else:
        for values in (x, y):
            _require_spread(values, f"all {values.size} {unit} of one method are equal", abs(values).max())
    return x, y


def _require_spread(values: _Values, finding: str, scale: float) -> None:
    if float(np.ptp(values)) <= _NO_SPREAD * max(1.0, float(scale)):
        raise Refused(f"{finding}, so there is no variance to test against")


# Confidence intervals for means, with a rule for which kind, and named refusals.
# From ten units on the interval is BCa bootstrap (Efron 1987), which needs no normality; with three to nine units it is Student's t,
# because a bootstrap of so few values is too narrow: its resamples cannot spread as wide as the t quantile demands.
# A range (maximum minus minimum) gets no bootstrap over the values it is the range of: a resample never exceeds the observed extremes, so
# its percentiles lie at or below the statistic whatever the truth is. Ranges that were repeated with other seeds are averaged, and their
# mean has an interval like any other.

BOOTSTRAP_FROM = 10
"""The number of units from which on an interval is bootstrapped."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval for a mean: bounds, level, number of units, and ``method`` (``BCa``, ``t`` or ``quasi-F``)."""

    low: float
    high: float
    level: float
    n: int
    method: str


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, bounds: tuple[float, float] | None = None, random_seed: int = 0, unit: str = "values"
) -> Interval:
    """Compute a deterministic confidence interval for the mean of independent units.

    Args:
        values: float64 ``[n]``, one per unit of replication. bounds: limits of the scale, to which the interval is clipped.
        unit: plural name of the units in error messages.

    Raises:
        Refused: there are fewer than three units, a value is NaN, or there is no spread.
    """
    from scipy import stats

    x = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(x).all():
        raise Refused(f"{int((~np.isfinite(x)).sum())} of {x.size} {unit} are undefined")
    if x.size < 3:
        raise Refused(f"{several(x.size, unit.removesuffix('s'), unit)}: an interval needs at least 3")
    if float(np.ptp(x)) <= 1e-12:
        raise Refused(f"all {x.size} {unit} are equal, so there is no spread for an interval")
    if x.size < BOOTSTRAP_FROM:
        low, high = stats.t.interval(level, x.size - 1, loc=x.mean(), scale=stats.sem(x))
        method = "t"
    else:
        bootstrapped = stats.bootstrap(
            (x,), np.mean, confidence_level=level, n_resamples=_RESAMPLES, method="BCa", rng=np.random.default_rng(random_seed)
        )
        (low, high), method = bootstrapped.confidence_interval, "BCa"
    least, most = bounds or (-np.inf, np.inf)
    return Interval(low=max(float(low), least), high=min(float(high), most), level=level, n=x.size, method=method)


def layout_interval(layout: Layout, *, level: float = 0.95, bounds: tuple[float, float] | None = None) -> Interval:
    """Compute the interval for a design's mean, with :func:`mean_interval` for one factor or the quasi-F for two crossed factors.

    Raises:
        Refused: as in :func:`mean_interval` or :func:`cglsuite.stats.mean_estimate`.
    """
    if len(layout.factors) == 1:
        return mean_interval(layout.values, level=level, bounds=bounds, unit=f"{layout.unit}s")
    low, high = mean_estimate(layout.values, layout.factors).interval(level)
    least, most = bounds or (-np.inf, np.inf)
    return Interval(low=max(low, least), high=min(high, most), level=level, n=layout.values.size, method="quasi-F")


# Effect size: Hedges' g with a confidence interval from the noncentral t distribution.

_LARGE_T = 1000.0


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A standardised difference (first minus second) with its confidence interval. ``standardiser`` is the name of the divisor."""

    g: float
    low: float
    high: float
    level: float
    standardiser: str


def hedges_g(first: ArrayLike, second: ArrayLike, *, paired: bool, level: float = 0.95, unit: str = "values") -> Effect:
    """Compute Hedges' ``g = J(ν) · (mean₁ - mean₂) / s``, corrected for small-sample bias (Hedges 1981).

    For paired samples, s is the standard deviation of the differences, and ``ν = n - 1``. Otherwise ``s = √((s₁² + s₂²)/2)`` with the
    degrees of freedom of Delacre et al. (2021), which does not assume equal variances. With equal sample sizes and variances, this is the
    usual g.

    The interval contains the noncentralities for which the observed t is neither too large nor too small. It excludes 0 if and only if the
    t-test on the same data has ``p < 1 - level``.

    Raises:
        Refused: as in :func:`cglsuite.stats.welch`, or as in :func:`cglsuite.stats.paired_t` if ``paired``.
    """
    x, y = samples(first, second, paired=paired, unit=unit)
    return crossed_g(mean_estimate(x - y), level=level) if paired else welch_g(mean_estimate(x), mean_estimate(y), level=level)


def welch_g(first: MeanEstimate, second: MeanEstimate, *, level: float = 0.95) -> Effect:
    """Compute Hedges' g for two independent means, each with the error, spread and degrees of freedom of its own design."""
    difference, a, b = first.minus(second), first.spread**2, second.spread**2
    freedom = (a + b) ** 2 / (a**2 / first.df + b**2 / second.df)
    return _effect(difference, freedom, level, "std within methods")


def crossed_g(estimate: MeanEstimate, *, level: float = 0.95) -> Effect:
    """Compute ``g = J(ν) · mean / s`` from the differences in the cells of a design, with s over all factors and ν from the error."""
    return _effect(estimate, estimate.df, level, "std of differences")


def _effect(estimate: MeanEstimate, freedom: float, level: float, standardiser: str) -> Effect:
    low, high = _noncentralities(estimate.t, estimate.df, level)
    scale = estimate.error / estimate.spread
    g = small_sample_factor(freedom) * estimate.mean / estimate.spread
    return Effect(g=g, low=low * scale, high=high * scale, level=level, standardiser=standardiser)


def small_sample_factor(freedom: float) -> float:
    """Compute ``J(ν) = Γ(ν/2) / (√(ν/2) Γ((ν-1)/2))``, the bias correction of a standardised difference (Hedges 1981).

    Example:
        >>> round(small_sample_factor(2), 4)
        0.5642
    """
    from scipy.special import gammaln

    return exp(float(gammaln(freedom / 2) - gammaln((freedom - 1) / 2))) / sqrt(freedom / 2)


def _noncentralities(t: float, freedom: float, level: float) -> tuple[float, float]:
    """Return the bounds of the noncentrality parameters for which the t statistic is neither too large nor too small.

    SciPy's search loses digits above t = 10⁴ and takes minutes above 10⁵. For such large t, the error of the normal numerator is
    negligible, so the noncentrality is t times the root of a mean square: ``t √(χ²_ν / ν)``.
    """
    from scipy.special import nctdtrinc
    from scipy.stats import chi2

    beyond = (1.0 - level) / 2
    if abs(t) > _LARGE_T:
        ends = t * np.sqrt(chi2.ppf([beyond, 1.0 - beyond], freedom) / freedom)
        return float(ends.min()), float(ends.max())
    low, high = nctdtrinc(freedom, np.array([1.0 - beyond, beyond]), t)
    return float(low), float(high)
