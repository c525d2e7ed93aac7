"""Effect size: Hedges' g with a confidence interval from the noncentral t distribution."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.stats.crossed import MeanEstimate
from cglsuite.stats.pairwise import samples

__all__ = ["Effect", "crossed_g", "hedges_g", "small_sample_factor"]

_LARGE_T = 1000.0


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A standardised difference (first minus second) with its confidence interval; ``standardiser`` names the divisor."""

    g: float
    low: float
    high: float
    level: float
    standardiser: str


def hedges_g(first: ArrayLike, second: ArrayLike, *, paired: bool, level: float = 0.95, unit: str = "values") -> Effect:
    """``g = J(ν) · (mean₁ - mean₂) / s``, corrected for small-sample bias (Hedges 1981).

    Paired, s is the standard deviation of the differences and ``ν = n - 1``. Otherwise ``s = √((s₁² + s₂²)/2)`` with the degrees of freedom
    of Delacre et al. (2021), so that equal variances are not assumed; with equal numbers and variances this is the usual g.

    The interval holds the noncentralities with which the t statistic is neither too large nor too small; it excludes 0 exactly if the
    t-test of the same data has ``p < 1 - level``.

    Raises:
        Refused: as :func:`cglsuite.stats.welch`, or as :func:`cglsuite.stats.paired_t` where ``paired``.
    """
    x, y = samples(first, second, paired=paired, unit=unit)
    if paired:
        difference = x - y
        estimate, spread, error = difference.mean(), difference.std(ddof=1), difference.std(ddof=1) / sqrt(x.size)
        freedom = freedom_of_t = float(x.size - 1)
        standardiser = "std of differences"
    else:
        one, two, n, m = float(x.var(ddof=1)), float(y.var(ddof=1)), x.size, y.size
        estimate, spread, error = x.mean() - y.mean(), sqrt((one + two) / 2), sqrt(one / n + two / m)
        freedom = (n - 1) * (m - 1) * (one + two) ** 2 / ((m - 1) * one**2 + (n - 1) * two**2)
        freedom_of_t = (one / n + two / m) ** 2 / ((one / n) ** 2 / (n - 1) + (two / m) ** 2 / (m - 1))
        standardiser = "std within methods"
    low, high = _noncentralities(float(estimate / error), freedom_of_t, level)
    scale = float(error / spread)
    g = small_sample_factor(freedom) * float(estimate / spread)
    return Effect(g=g, low=low * scale, high=high * scale, level=level, standardiser=standardiser)


def crossed_g(found: MeanEstimate, *, level: float = 0.95) -> Effect:
    """The same of differences in crossed cells: ``g = J(ν) · mean / s``, with s over both factors and the quasi-F's ν."""
    low, high = _noncentralities(found.t, found.df, level)
    scale = found.error / found.spread
    g = small_sample_factor(found.df) * found.mean / found.spread
    return Effect(g=g, low=low * scale, high=high * scale, level=level, standardiser="std of differences")


def small_sample_factor(freedom: float) -> float:
    """``J(ν) = Γ(ν/2) / (√(ν/2) Γ((ν-1)/2))``, the bias correction of a standardised difference (Hedges 1981).

    Example:
        >>> round(small_sample_factor(2), 4)
        0.5642
    """
    from scipy.special import gammaln

    return exp(float(gammaln(freedom / 2) - gammaln((freedom - 1) / 2))) / sqrt(freedom / 2)


def _noncentralities(t: float, freedom: float, level: float) -> tuple[float, float]:
    """Between which the t statistic is neither too large nor too small.

    SciPy's search loses digits above t = 10⁴ and takes minutes above 10⁵. There the normal numerator's error is nothing beside t, so the
    noncentrality is t times the root of a mean square: ``t √(χ²_ν / ν)``.
    """
    from scipy.special import nctdtrinc
    from scipy.stats import chi2

    beyond = (1.0 - level) / 2
    if abs(t) > _LARGE_T:
        ends = t * np.sqrt(chi2.ppf([beyond, 1.0 - beyond], freedom) / freedom)
        return float(ends.min()), float(ends.max())
    low, high = nctdtrinc(freedom, np.array([1.0 - beyond, beyond]), t)
    return float(low), float(high)
