"""Confidence intervals for means, with a rule for which kind, and named refusals.

From ten units on the interval is BCa bootstrap (Efron 1987), which needs no normality; with three to nine units it is Student's t, because
a bootstrap of so few values is too narrow: its resamples cannot spread as wide as the t quantile demands.

A range (maximum minus minimum) gets no bootstrap over the values it is the range of: a resample never exceeds the observed extremes, so its
percentiles lie at or below the statistic whatever the truth is. Ranges that were repeated with other seeds are averaged, and their mean has
an interval like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cglsuite.base.wording import several
from cglsuite.stats.crossed import mean_estimate
from cglsuite.stats.refusal import Refused
from cglsuite.stats.replication import Layout

__all__ = ["BOOTSTRAP_FROM", "Interval", "layout_interval", "mean_interval"]

BOOTSTRAP_FROM = 10
"""Units from which on an interval is bootstrapped."""
_RESAMPLES = 9999


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval of a mean: bounds, level, the number of units, and ``method`` in words (``BCa``, ``t`` or ``quasi-F``)."""

    low: float
    high: float
    level: float
    n: int
    method: str


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, bounds: tuple[float, float] | None = None, random_seed: int = 0, unit: str = "values"
) -> Interval:
    """A deterministic interval for the mean of independent units.

    Args:
        values: float64 ``[n]``, one per unit of replication. bounds: of the scale; the interval is cut there.
        unit: what to call the units in refusals (a plural).

    Raises:
        Refused: fewer than three units, NaN, or no spread at all.
    """
    from scipy import stats

    x = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(x).all():
        raise Refused(f"{int((~np.isfinite(x)).sum())} of {x.size} {unit} are undefined")
    if x.size < 3:
        raise Refused(f"{several(x.size, unit.removesuffix('s'), unit)}: an interval needs at least 3")
    if float(np.ptp(x)) <= 1e-12:
        raise Refused(f"all {x.size} {unit} are equal: without spread there is no interval")
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


def layout_interval(found: Layout, *, level: float = 0.95, bounds: tuple[float, float] | None = None) -> Interval:
    """The interval of the mean of a design: :func:`mean_interval` over one factor, the quasi-F's over two crossed ones.

    Raises:
        Refused: as :func:`mean_interval`, or as :func:`cglsuite.stats.mean_estimate`.
    """
    if len(found.factors) == 1:
        return mean_interval(found.values, level=level, bounds=bounds, unit=f"{found.unit}s")
    low, high = mean_estimate(found.values, found.factors).interval(level)
    least, most = bounds or (-np.inf, np.inf)
    return Interval(low=max(low, least), high=min(high, most), level=level, n=found.values.size, method="quasi-F")
