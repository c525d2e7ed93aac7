"""Power analysis for planning campaigns: the number of units of replication needed to detect a difference. Uses t-test power from
statsmodels.

The unit is that of :mod:`cglsuite.stats.replication`, usually an order. More seeds per order only reduce the part of the spread that is due
to seeds. The method-by-order interaction remains, so beyond some number of seeds, only more orders help.

The error rates of verdicts are simulated: ``python tests/benchmarks/significance.py --write`` stores the tables that :func:`error_rates`
reads.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.markup import several
from cglsuite.stats.crossed import MIN_UNITS, admissible, mean_squares
from cglsuite.stats.pairwise import samples
from cglsuite.stats.refusal import Refused, require_complete, require_frame

MAX_UNITS = 10_000
"""The largest number of units in a plan; larger plans are refused."""


def power(n: int, difference: float, std: float, *, paired: bool = True, alpha: float = 0.05, overlap: float = 0.0) -> float:
    """Compute the probability that a two-sided t-test at ``alpha`` detects a true difference with the correct sign.

    Args:
        n: number of units (pairs if ``paired``, otherwise units per method). difference: true difference between the means. std: standard
            deviation of the paired differences, or within each method; both in the unit of the values. overlap: if the units are random
            splits, the ratio of test items to training items.

    Raises:
        Refused: there are fewer than three units or no spread. UsageError: the difference is not positive, or alpha is not between 0 and 1.

    Example:
        >>> round(power(10, 0.02, 0.02), 3)
        0.803
    """
    from statsmodels.stats.power import TTestIndPower, TTestPower

    if n < MIN_UNITS:
        raise Refused(f"a test needs at least {MIN_UNITS} units, but there are {n}")
    size = _size(difference, std * sqrt(1.0 + overlap * n), alpha)
    # One-sided: a significant difference with the wrong sign is not a success (and its probability underflows to NaN).
    return float((TTestPower() if paired else TTestIndPower()).power(size, n, alpha / 2, alternative="larger"))


def units_needed(
    difference: float, std: float, *, paired: bool = True, alpha: float = 0.05, wanted: float = 0.8, overlap: float = 0.0
) -> int:
    """Find the smallest number of units (pairs if ``paired``, otherwise units per method) that gives a power of at least ``wanted``.

    Raises:
        Refused: there is no spread, or more than :data:`MAX_UNITS` units are needed. UsageError: as in :func:`power`, or ``wanted`` is not
            between 0 and 1.

    Example:
        >>> units_needed(0.02, 0.02)
        10
    """
    if not 0.0 < wanted < 1.0:
        raise UsageError(f"power = {wanted}: expected a number between 0 and 1")
    _size(difference, std, alpha)
    plan = range(MIN_UNITS, MAX_UNITS + 1)
    place = bisect_left(plan, wanted, key=lambda n: power(n, difference, std, paired=paired, alpha=alpha, overlap=overlap))
    if place == len(plan) and overlap:
        raise Refused("random splits share items, and no number of splits can compensate for this")
    if place == len(plan):
        raise Refused(f"a difference of {difference:g} with a standard deviation of {std:g} needs more than {MAX_UNITS:,} units")
    return plan[place]


def detectable_difference(
    n: int, std: float, *, paired: bool = True, alpha: float = 0.05, wanted: float = 0.8, overlap: float = 0.0
) -> float:
    """Compute the smallest true difference that ``n`` units detect with power ``wanted``, in the unit of the values.

    Raises:
        Refused: as in :func:`power`.
    """
    size = _detectable_size(n, paired, alpha, wanted)
    _require_spread(std)
    return size * std * sqrt(1.0 + overlap * n)


@cache
def _detectable_size(n: int, paired: bool, alpha: float, wanted: float) -> float:
    """Return the detectable difference in standard deviations. It is the same for all pairs of methods with the same number of units."""
    from scipy.optimize import brentq

    high = 1.0
    while power(n, high, 1.0, paired=paired, alpha=alpha) < wanted:
        high *= 2.0
    return float(brentq(lambda d: power(n, d, 1.0, paired=paired, alpha=alpha) - wanted, 1e-6, high, xtol=1e-9))


@dataclass(frozen=True, kw_only=True)
class DifferenceVariances:
    """Variance components of the difference between two methods in a cell: order, seed and residual, in squared units."""

    order: float
    seed: float
    rest: float

    @classmethod
    def of(cls, components: VarianceComponents) -> DifferenceVariances:
        """Derive the variances from a method's components, which are doubled. Effects shared by all methods cancel.

        Raises:
            Refused: the components are those of a single method, so they contain no information about differences.
        """
        if "method_order" not in components.variances:
            raise Refused("the spread of a difference needs variance components of at least 2 methods, but these are of a single method")
        order, seed, rest = (2.0 * components.variances[name] for name in ("method_order", "method_seed", "rest"))
        return cls(order=order, seed=seed, rest=rest)

    @classmethod
    def observed(cls, differences: NDArray[np.float64]) -> DifferenceVariances:
        """Estimate the variances from the mean squares of differences ``[O, S]``. Negative estimates become 0."""
        n_orders, n_seeds = differences.shape
        squares = mean_squares(differences)
        rest = float(squares.rest)
        order, seed = float(squares.rows) - rest, float(squares.columns) - rest
        return cls(order=max(0.0, order) / n_seeds, seed=max(0.0, seed) / n_orders, rest=rest)

    def error(self, n_orders: int, n_seeds: int) -> tuple[float, float]:
        """Return the standard error of a mean difference over crossed orders and seeds, with Satterthwaite's degrees of freedom."""
        by_order, by_seed = self.rest + n_seeds * self.order, self.rest + n_orders * self.seed
        total = by_order + by_seed - self.rest
        freedom = (n_orders - 1) * (n_seeds - 1)
        terms = by_order**2 / (n_orders - 1) + by_seed**2 / (n_seeds - 1) + self.rest**2 / freedom
        return sqrt(total / (n_orders * n_seeds)), total**2 / terms


def crossed_power(variances: DifferenceVariances, n_orders: int, n_seeds: int, difference: float, *, alpha: float = 0.05) -> float:
    """Compute the probability that the quasi-F of crossed orders and seeds detects a true difference with the correct sign.

    Raises:
        Refused: the design is not :func:`cglsuite.stats.admissible`, or there is no spread. UsageError: as in :func:`power`.
    """
    if not admissible(n_orders, n_seeds):
        raise Refused(
            f"{n_orders} orders × {n_seeds} seeds are too few: every test for crossed orders and seeds has too many false positives"
        )
    error, df = variances.error(n_orders, n_seeds)
    return _power(_size(difference, error, alpha), df, alpha)


def orders_needed(variances: DifferenceVariances, n_seeds: int, difference: float, *, alpha: float = 0.05, wanted: float = 0.8) -> int:
    """Find the smallest number of orders, crossed with ``n_seeds`` seeds, that gives a power of at least ``wanted``.

    Raises:
        Refused: there are too few seeds for a test, or no number of orders is sufficient, because orders do not average out the effect of
            seeds on a difference. UsageError: as in :func:`units_needed`.
    """
    plan = [n for n in range(MIN_UNITS, MAX_UNITS + 1) if admissible(n, n_seeds)]
    if not plan:
        raise Refused(f"{several(n_seeds, 'seed')} crossed with orders: a test needs at least {MIN_UNITS}")
    if not 0.0 < wanted < 1.0:
        raise UsageError(f"power = {wanted}: expected a number between 0 and 1")
    place = bisect_left(plan, wanted, key=lambda n: crossed_power(variances, n, n_seeds, difference, alpha=alpha))
    if place == len(plan):
        raise Refused(
            f"{plan[-1]:,} orders are not enough with {n_seeds} seeds, because the effect of a seed on a difference is the same in "
            "all orders"
        )
    return plan[place]


def detectable_error(df: float, *, alpha: float = 0.05, wanted: float = 0.8) -> float:
    """Compute the smallest true difference, in standard errors, that a t-test with this ``df`` detects with power ``wanted``."""
    from scipy.optimize import brentq

    high = 1.0
    while _power(high, df, alpha) < wanted:
        high *= 2.0
    return float(brentq(lambda size: _power(size, df, alpha) - wanted, 1e-6, high))


def _power(size: float, df: float, alpha: float) -> float:
    """Return the power of a two-sided t-test, with the correct sign, for a true difference of ``size`` standard errors."""
    from scipy import stats

    return float(stats.nct.sf(stats.t.ppf(1.0 - alpha / 2.0, df), df, size))


def observed_std(first: ArrayLike, second: ArrayLike, *, paired: bool, unit: str = "values") -> float:
    """Estimate the ``std`` of :func:`power` from a pilot: the standard deviation of the differences, or ``√((s₁² + s₂²)/2)`` if unpaired.

    Raises:
        Refused: as in :func:`cglsuite.stats.paired_t` if ``paired``, otherwise as in :func:`cglsuite.stats.welch`.

    Example:
        >>> observed_std([1.0, 2.0, 6.0], [0.0, 2.0, 4.0], paired=True)
        1.0
    """
    x, y = samples(first, second, paired=paired, unit=unit)
    if paired:
        return float((x - y).std(ddof=1))
    return sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / 2.0)


def std_bound(std: float, n: int, level: float = 0.8) -> float:
    """Compute the one-sided upper bound for a standard deviation from ``n`` normal values, ``s √((n-1) / χ²_{1-level}(n-1))``.

    A pilot's standard deviation is itself uncertain. A plan based on this bound is too small with probability ``1 - level`` (Browne 1995).

    Raises:
        Refused: there are fewer than three values.
    """
    from scipy import stats

    if n < MIN_UNITS:
        raise Refused(f"a bound requires a standard deviation over at least {MIN_UNITS} values, but this one is over {n}")
    return std * sqrt((n - 1) / float(stats.chi2.ppf(1.0 - level, n - 1)))


def _size(difference: float, std: float, alpha: float) -> float:
    if not difference > 0:
        raise UsageError(f"the smallest interesting difference is {difference:g}; expected a positive number")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 1")
    _require_spread(std)
    return difference / std


def _require_spread(std: float) -> None:
    if not std > 0:
        raise Refused("the pilot has no spread, so the number of units needed cannot be estimated")


# Where the variance of a result comes from: orders, seeds, what either does to one method and not to another, and the rest.
# ``y[m, o, s] = μ_m + a_o + b_mo + c_s + d_ms + f_os + e_mos`` with methods fixed, orders and seeds random and crossed: ``Var a`` is what
# an order does to all methods alike, ``Var b`` what it does to one method and not to another (what flips rankings); ``Var c`` and ``Var d``
# are the same of seeds; ``Var f`` is what a seed does to all methods in one order; ``Var e`` the rest.
# On a complete block the mean squares are independent and sufficient for the variances, each a multiple of chi-squared with an expectation
# that is linear in them, so the restricted likelihood depends on the data through six mean squares alone (Searle, Casella & McCulloch 1992,
# ch. 4). It is maximised over variances that are not negative by SciPy.

COMPONENTS = ("order", "method_order", "seed", "method_seed", "order_seed", "rest")
"""The names of the components, in the order in which they are shown."""
_MIN_LEVELS = 3
_NONE = 1e-9
"""The share of the largest component below which a component counts as 0."""
_Block = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Estimated variance components, in squared units of the value.

    Args:
        variances: variance by component name; for a single method, ``order``, ``seed`` and ``rest``.
        moments: the estimates from mean squares, which may be negative. notes: which components are at their bound of 0.
    """

    variances: Mapping[str, float]
    moments: Mapping[str, float]
    n_methods: int
    n_orders: int
    n_seeds: int
    notes: tuple[str, ...] = field(default=())

    @property
    def shares(self) -> dict[str, float]:
        """The share of each component in the total variance."""
        total = sum(self.variances.values())
        return {name: value / total for name, value in self.variances.items()}


def variance_components(frame: pd.DataFrame) -> VarianceComponents:
    """Estimate variance components by restricted maximum likelihood (REML) on a complete block.

    If all estimates from mean squares are positive, both methods agree. Otherwise some components are 0, and a note states which.

    Args:
        frame: columns method, order, seed, value.

    Raises:
        Refused: there are fewer than three seeds or orders; a cell is missing or NaN; or there is no residual variance beyond the additive
            effects of methods, orders and seeds.
    """
    values = _block(frame)
    n_methods, n_orders, n_seeds = values.shape
    squares, freedom = _mean_squares(values)
    error = "method_order_seed" if n_methods > 1 else "order_seed"
    if squares[error] <= 1e-18:
        raise Refused(
            "the results are exact sums of method, order and seed effects, so there is no residual variance to compare these effects with"
        )
    moments = _moments(squares, values.shape)
    variances = _restricted(squares, freedom, values.shape, moments)
    zero = [name for name, value in variances.items() if value == 0.0]
    notes = tuple(f"the data give no positive {name} component: it is set to 0" for name in zero)
    counts = {"n_methods": n_methods, "n_orders": n_orders, "n_seeds": n_seeds}
    return VarianceComponents(variances=variances, moments=moments, notes=notes, **counts)


def moment_components(frame: pd.DataFrame) -> dict[str, float]:
    """Estimate variance components from mean squares. Estimates may be negative.

    With M methods, O orders and S seeds, ``Var e = MS_mos``, ``Var f = (MS_os - MS_mos)/M``, ``Var b = (MS_mo - MS_mos)/S``, ``Var d =
    (MS_ms - MS_mos)/O``, ``Var a = (MS_o - MS_mo - MS_os + MS_mos)/(M S)`` and ``Var c = (MS_s - MS_ms - MS_os + MS_mos)/(M O)``. With a
    single method, ``Var e = MS_os``, ``Var a = (MS_o - MS_os)/S`` and ``Var c = (MS_s - MS_os)/O``.

    Raises:
        Refused: as in :func:`variance_components`, except for missing residual variance.
    """
    values = _block(frame)
    return _moments(_mean_squares(values)[0], values.shape)


def _moments(squares: Mapping[str, float], shape: tuple[int, ...]) -> dict[str, float]:
    m, o, s = shape
    order, seed, both = squares["order"], squares["seed"], squares["order_seed"]
    if m == 1:
        return {"order": (order - both) / s, "seed": (seed - both) / o, "rest": both}
    rest, by_order, by_seed = squares["method_order_seed"], squares["method_order"], squares["method_seed"]
    return {
        "order": (order - by_order - both + rest) / (m * s),
        "method_order": (by_order - rest) / s,
        "seed": (seed - by_seed - both + rest) / (m * o),
        "method_seed": (by_seed - rest) / o,
        "order_seed": (both - rest) / m,
        "rest": rest,
    }


def _expectations(shape: tuple[int, ...]) -> tuple[list[str], list[str], _Block]:
    """Return the names of the mean squares and of the components, and the matrix that maps components to expected mean squares."""
    m, o, s = shape
    if m == 1:
        return ["order", "seed", "order_seed"], ["order", "seed", "rest"], np.array([[s, 0, 1], [0, o, 1], [0, 0, 1]], dtype=np.float64)
    rows = {
        "order": {"order": m * s, "method_order": s, "order_seed": m, "rest": 1},
        "seed": {"seed": m * o, "method_seed": o, "order_seed": m, "rest": 1},
        "order_seed": {"order_seed": m, "rest": 1},
        "method_order": {"method_order": s, "rest": 1},
        "method_seed": {"method_seed": o, "rest": 1},
        "method_order_seed": {"rest": 1},
    }
    return list(rows), list(COMPONENTS), np.array([[row.get(name, 0) for name in COMPONENTS] for row in rows.values()], dtype=np.float64)


def _restricted(
    squares: Mapping[str, float], freedom: Mapping[str, int], shape: tuple[int, ...], moments: Mapping[str, float]
) -> dict[str, float]:
    """Minimise ``Σ_i f_i (log λ_i + MS_i / λ_i)`` over variances ≥ 0, where ``λ_i`` is the expectation of ``MS_i``."""
    from scipy.optimize import minimize

    if all(value > 0 for value in moments.values()):  # then λ_i = MS_i, and no other place is better
        return dict(moments)
    names, components, matrix = _expectations(shape)
    scale = max(squares.values())
    observed = np.array([squares[name] for name in names]) / scale
    weights = np.array([freedom[name] for name in names], dtype=np.float64)
    smallest_variance = 1e-12 * float(observed[-1])

    def loss(variances: _Block) -> tuple[float, _Block]:
        expected = matrix @ variances
        slope = weights * (1.0 / expected - observed / expected**2)
        return float(weights @ (np.log(expected) + observed / expected)), matrix.T @ slope

    start = np.array([max(moments[name] / scale, 0.0) for name in components])
    start[-1] = max(start[-1], float(observed[-1]))
    bounds = [(0.0, None)] * (len(components) - 1) + [(smallest_variance, None)]
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-12})
    best = np.where(solution.x > _NONE * solution.x.max(), solution.x, 0.0)
    return {name: float(scale * value) for name, value in zip(components, best, strict=True)}


def _mean_squares(values: _Block) -> tuple[dict[str, float], dict[str, int]]:
    """Compute mean squares and degrees of freedom by effect from values ``[methods, orders, seeds]``."""
    m, o, s = values.shape
    centred = values - values.mean(axis=(1, 2), keepdims=True)
    orders, seeds = centred.mean(axis=(0, 2)), centred.mean(axis=(0, 1))
    both = centred.mean(axis=0) - orders[:, None] - seeds[None, :]
    sums = {"order": m * s * float((orders**2).sum()), "seed": m * o * float((seeds**2).sum()), "order_seed": m * float((both**2).sum())}
    freedom = {"order": o - 1, "seed": s - 1, "order_seed": (o - 1) * (s - 1)}
    if m > 1:
        by_order, by_seed = centred.mean(axis=2) - orders[None, :], centred.mean(axis=1) - seeds[None, :]
        shared = orders[None, :, None] + seeds[None, None, :] + both[None] + by_order[:, :, None] + by_seed[:, None, :]
        sums |= {"method_order": s * float((by_order**2).sum()), "method_seed": o * float((by_seed**2).sum())}
        sums |= {"method_order_seed": float(((centred - shared) ** 2).sum())}
        freedom |= {"method_order": (m - 1) * (o - 1), "method_seed": (m - 1) * (s - 1), "method_order_seed": (m - 1) * (o - 1) * (s - 1)}
    return {name: total / freedom[name] for name, total in sums.items()}, freedom


def _block(frame: pd.DataFrame) -> _Block:
    """Return the values of a complete block, float64 ``[methods, orders, seeds]``."""
    require_frame(frame, ["method", "order", "seed"])
    n_methods, n_orders, n_seeds = (int(frame[name].nunique()) for name in ("method", "order", "seed"))
    for name, n in (("seeds", n_seeds), ("orders", n_orders)):
        if n < _MIN_LEVELS:
            raise Refused(f"{n} {name if n != 1 else name.removesuffix('s')}: variance components need at least {_MIN_LEVELS}")
    table = frame.pivot(index=["method", "order"], columns="seed", values="value")
    every = pd.MultiIndex.from_product([frame["method"].unique(), frame["order"].unique()], names=["method", "order"])
    table = table.reindex(every)
    require_complete(table, "cells (method × order × seed)")
    return table.to_numpy(dtype=np.float64).reshape(n_methods, n_orders, n_seeds)


@cache
def error_rates() -> Mapping[str, Any]:
    """Return all simulated tables of error rates by name, each with its caption, number of replicates, columns, and labelled rows."""
    tables: Mapping[str, Any] = json.loads((files("cglsuite.stats") / "error_rates.json").read_text(encoding="utf-8"))
    return tables


def error_rate(table: str, row: str) -> Mapping[str, float]:
    """Return the error rates of one row, by column.

    Raises:
        UnknownNameError: the table or row does not exist.
    """
    tables = error_rates()
    if table not in tables:
        raise UnknownNameError("table of error rates", table, tables)
    rows = tables[table]["rows"]
    if row not in rows:
        raise UnknownNameError(f"row of {table}", row, rows)
    return dict(zip(tables[table]["columns"], rows[row], strict=True))
