"""Power analysis before a campaign: the number of units of replication that a difference needs; power of t-tests from statsmodels.

The unit is that of :mod:`cglsuite.stats.replication`, usually an order. More seeds per order only shrink the part of the spread that is due
to seeds. The method-by-order interaction remains, so beyond some number of seeds only more orders help.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.base.wording import several
from cglsuite.stats.crossed import LEAST_UNITS, admissible, mean_squares
from cglsuite.stats.pairwise import samples
from cglsuite.stats.refusal import Refused
from cglsuite.stats.variance import VarianceComponents

__all__ = [
    "MOST_UNITS",
    "DifferenceVariances",
    "crossed_power",
    "detectable_difference",
    "detectable_error",
    "observed_std",
    "orders_needed",
    "power",
    "std_bound",
    "units_needed",
]

MOST_UNITS = 10_000
"""The largest number of units in a plan; larger plans are refused."""


def power(n: int, difference: float, std: float, *, paired: bool = True, alpha: float = 0.05) -> float:
    """The probability that a two-sided t-test at ``alpha`` detects a true difference with the correct sign.

    Args:
        n: units (pairs where ``paired``, else per method). difference: between means. std: of the differences between pairs, or within each
            method; both in the values' unit.

    Raises:
        Refused: fewer than three units, no spread. UsageError: a difference that is not positive, an alpha outside 0 to 1.

    Example:
        >>> round(power(10, 0.02, 0.02), 3)
        0.803
    """
    from statsmodels.stats.power import TTestIndPower, TTestPower

    if n < LEAST_UNITS:
        raise Refused(f"{n} units: a test needs at least {LEAST_UNITS}")
    size = _size(difference, std, alpha)
    # One-sided: a significant difference with the wrong sign is not a success (and its probability underflows to NaN).
    return float((TTestPower() if paired else TTestIndPower()).power(size, n, alpha / 2, alternative="larger"))


def units_needed(difference: float, std: float, *, paired: bool = True, alpha: float = 0.05, wanted: float = 0.8) -> int:
    """The smallest number of units (pairs if ``paired``, otherwise units per method) that gives a power of at least ``wanted``.

    Raises:
        Refused: no spread, or more than :data:`MOST_UNITS` units. UsageError: see :func:`power`; or ``wanted`` is not between 0 and 1.

    Example:
        >>> units_needed(0.02, 0.02)
        10
    """
    if not 0.0 < wanted < 1.0:
        raise UsageError(f"power = {wanted}: expected a number between 0 and 1")
    _size(difference, std, alpha)
    plan = range(LEAST_UNITS, MOST_UNITS + 1)
    place = bisect_left(plan, wanted, key=lambda n: power(n, difference, std, paired=paired, alpha=alpha))
    if place == len(plan):
        raise Refused(f"a difference of {difference:g} with a standard deviation of {std:g} needs more than {MOST_UNITS:,} units")
    return plan[place]


def detectable_difference(n: int, std: float, *, paired: bool = True, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """The smallest true difference that ``n`` units find with the power ``wanted``, in the values' unit.

    Raises:
        Refused: as :func:`power`.
    """
    size = _detectable_size(n, paired, alpha, wanted)
    _require_spread(std)
    return size * std


@cache
def _detectable_size(n: int, paired: bool, alpha: float, wanted: float) -> float:
    """In standard deviations: the same for all pairs of methods over as many units."""
    from scipy.optimize import brentq

    high = 1.0
    while power(n, high, 1.0, paired=paired, alpha=alpha) < wanted:
        high *= 2.0
    return float(brentq(lambda d: power(n, d, 1.0, paired=paired, alpha=alpha) - wanted, 1e-6, high, xtol=1e-9))


@dataclass(frozen=True, kw_only=True)
class DifferenceVariances:
    """Variances of the difference of two methods in a cell: what orders do to it, what seeds do to it, and the rest; squared units."""

    order: float
    seed: float
    rest: float

    @classmethod
    def of(cls, components: VarianceComponents) -> DifferenceVariances:
        """Twice those of one method: effects on all methods alike cancel.

        Raises:
            Refused: components of a single method, which say nothing about differences.
        """
        if "method_order" not in components.variances:
            raise Refused("variance components of a single method: the spread of a difference needs at least 2")
        order, seed, rest = (2.0 * components.variances[name] for name in ("method_order", "method_seed", "rest"))
        return cls(order=order, seed=seed, rest=rest)

    @classmethod
    def observed(cls, differences: NDArray[np.float64]) -> DifferenceVariances:
        """From mean squares of differences ``[O, S]``; a negative one is 0."""
        n_orders, n_seeds = differences.shape
        squares = mean_squares(differences)
        rest = float(squares.rest)
        order, seed = float(squares.rows) - rest, float(squares.columns) - rest
        return cls(order=max(0.0, order) / n_seeds, seed=max(0.0, seed) / n_orders, rest=rest)

    def error(self, n_orders: int, n_seeds: int) -> tuple[float, float]:
        """The standard error of a mean difference over crossed orders and seeds, and Satterthwaite's degrees of freedom."""
        by_order, by_seed = self.rest + n_seeds * self.order, self.rest + n_orders * self.seed
        total = by_order + by_seed - self.rest
        freedom = (n_orders - 1) * (n_seeds - 1)
        terms = by_order**2 / (n_orders - 1) + by_seed**2 / (n_seeds - 1) + self.rest**2 / freedom
        return sqrt(total / (n_orders * n_seeds)), total**2 / terms


def crossed_power(variances: DifferenceVariances, n_orders: int, n_seeds: int, difference: float, *, alpha: float = 0.05) -> float:
    """The probability that the quasi-F of crossed orders and seeds detects a true difference with the correct sign.

    Raises:
        Refused: a design that is not :func:`cglsuite.stats.admissible`, no spread. UsageError: as :func:`power`.
    """
    if not admissible(n_orders, n_seeds):
        raise Refused(f"{n_orders} orders × {n_seeds} seeds: no test of crossed orders and seeds keeps its level with so few")
    error, df = variances.error(n_orders, n_seeds)
    return _power(_size(difference, error, alpha), df, alpha)


def orders_needed(variances: DifferenceVariances, n_seeds: int, difference: float, *, alpha: float = 0.05, wanted: float = 0.8) -> int:
    """The smallest number of orders, crossed with ``n_seeds`` seeds, with which the power is at least ``wanted``.

    Raises:
        Refused: too few seeds for a test; no number of orders is enough, because what seeds do to a difference is not averaged out by
            orders. UsageError: as :func:`units_needed`.
    """
    plan = [n for n in range(LEAST_UNITS, MOST_UNITS + 1) if admissible(n, n_seeds)]
    if not plan:
        raise Refused(f"{several(n_seeds, 'seed')} crossed with orders: a test needs at least {LEAST_UNITS}")
    if not 0.0 < wanted < 1.0:
        raise UsageError(f"power = {wanted}: expected a number between 0 and 1")
    place = bisect_left(plan, wanted, key=lambda n: crossed_power(variances, n, n_seeds, difference, alpha=alpha))
    if place == len(plan):
        raise Refused(f"{plan[-1]:,} orders are not enough with {n_seeds} seeds: what a seed does to a difference, it does in all orders")
    return plan[place]


def detectable_error(df: float, *, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """The smallest true difference that a t-test with these degrees of freedom finds with the power ``wanted``, in standard errors."""
    from scipy.optimize import brentq

    high = 1.0
    while _power(high, df, alpha) < wanted:
        high *= 2.0
    return float(brentq(lambda size: _power(size, df, alpha) - wanted, 1e-6, high))


def _power(size: float, df: float, alpha: float) -> float:
    """Of a two-sided t-test with the correct sign, at a true difference of ``size`` standard errors."""
    from scipy import stats

    return float(stats.nct.sf(stats.t.ppf(1.0 - alpha / 2.0, df), df, size))


def observed_std(first: ArrayLike, second: ArrayLike, *, paired: bool, unit: str = "values") -> float:
    """The ``std`` that :func:`power` takes, from the units of a pilot: of the differences, or ``√((s₁² + s₂²)/2)`` where not paired.

    Raises:
        Refused: as :func:`cglsuite.stats.paired_t` where ``paired``, else as :func:`cglsuite.stats.welch`.

    Example:
        >>> observed_std([1.0, 2.0, 6.0], [0.0, 2.0, 4.0], paired=True)
        1.0
    """
    x, y = samples(first, second, paired=paired, unit=unit)
    if paired:
        return float((x - y).std(ddof=1))
    return sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / 2.0)


def std_bound(std: float, n: int, level: float = 0.8) -> float:
    """The one-sided upper bound of a standard deviation that was estimated from ``n`` normal values: ``s √((n-1) / χ²_{1-level}(n-1))``.

    A pilot's standard deviation is itself uncertain; a plan based on this bound is too small with probability ``1 - level`` (Browne 1995).

    Raises:
        Refused: fewer than three values.
    """
    from scipy import stats

    if n < LEAST_UNITS:
        raise Refused(f"a standard deviation of {n} values: a bound needs at least {LEAST_UNITS}")
    return std * sqrt((n - 1) / float(stats.chi2.ppf(1.0 - level, n - 1)))


def _size(difference: float, std: float, alpha: float) -> float:
    if not difference > 0:
        raise UsageError(f"a smallest interesting difference of {difference:g}: expected a positive number")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 1")
    _require_spread(std)
    return difference / std


def _require_spread(std: float) -> None:
    if not std > 0:
        raise Refused("the pilot has no spread, so the number of units needed cannot be estimated")
