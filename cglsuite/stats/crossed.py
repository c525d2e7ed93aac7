"""Estimate means and standard errors over one or two random factors, also after selection by validation or with collapsed runs.

Campaigns run every order with the same seeds, so orders and seeds are *crossed*: ``d[o, s] = δ + A_o + B_s + E_os``. Here d is the
difference between two methods in a cell, A is the effect of an order on the difference (method × order), and B is the effect of a seed on
it (method × seed). The variance of the mean is

    ``Var(mean d) = σ²_A / O + σ²_B / S + σ²_E / (O S)``,  estimated by ``(MS_A + MS_B - MS_E) / (O S)``

with ``MS_A = S Σ_o (d_o - d)² / (O-1)``, ``MS_B = O Σ_s (d_s - d)² / (S-1)`` and ``MS_E`` the residual mean square (Cornfield & Tukey
1956). No mean square alone has this expectation, so ``F' = O S d² / (MS_A + MS_B - MS_E)`` is a quasi-F (Clark 1973), with the degrees of
freedom of Satterthwaite (1946): ``(MS_A + MS_B - MS_E)² / (MS_A²/(O-1) + MS_B²/(S-1) + MS_E²/((O-1)(S-1)))``. A negative component is set
to 0 and its mean square is dropped, so the estimated variance is never below that from the other factor alone.

Random splits of a data set share items, so their results are correlated, and ``σ² / n`` underestimates the variance of their mean. Nadeau
and Bengio (2003) use ``σ² (1 / n + n_test / n_train)``. Here, σ² is only the variance component of the split, and the ratio is called
``overlap``.

``tests/benchmarks/significance.py`` measures the false positive rate, which is at most 6.5% for :func:`admissible` designs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.base.markup import several
from cglsuite.stats.refusal import Refused

MIN_UNITS = 3
"""The least number of units, or of levels of a crossed factor, for a test: a variance from two values has one degree of freedom."""
MAX_LEVELS_WITH_MIN = 10
"""The most levels of a crossed factor when the other has three; with more, false positives rise to 8%."""
_NO_SPREAD = 1e-12
_Values = NDArray[np.float64]


class Squares(NamedTuple):
    """Mean squares of a two-way layout without replication: rows, columns and residual; float64 ``[...]``."""

    rows: _Values
    columns: _Values
    rest: _Values


@dataclass(frozen=True, kw_only=True)
class MeanEstimate:
    """An estimated mean with its standard error and degrees of freedom.

    Args:
        mean: the mean, in the unit of the values. error: standard error of the mean. df: degrees of freedom of the error.
        spread: standard deviation of one value over all factors. n: number of levels of each factor.
    """

    mean: float
    error: float
    df: float
    spread: float
    n: tuple[int, ...]

    def minus(self, other: MeanEstimate) -> MeanEstimate:
        """Return the difference from an independent mean, with Welch-Satterthwaite degrees of freedom and the mean spread (RMS)."""
        variance = self.error**2 + other.error**2
        df = variance**2 / (self.error**4 / self.df + other.error**4 / other.df) if variance > 0.0 else nan
        spread = sqrt((self.spread**2 + other.spread**2) / 2.0)
        return MeanEstimate(mean=self.mean - other.mean, error=sqrt(variance), df=df, spread=spread, n=(*self.n, *other.n))

    @property
    def t(self) -> float:
        """The t statistic, ``mean / error``."""
        return self.mean / self.error

    @property
    def p(self) -> float:
        """The two-sided p value for the null hypothesis of a mean of 0."""
        from scipy import stats

        return float(2.0 * stats.t.sf(abs(self.t), self.df))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval ``mean ± t_{df} · error`` at ``level``."""
        from scipy import stats

        reach = float(stats.t.ppf(0.5 + level / 2.0, self.df)) * self.error
        return self.mean - reach, self.mean + reach


def mean_squares(values: _Values) -> Squares:
    """Compute the mean squares of layouts ``[..., rows, columns]``."""
    *_, n, m = values.shape
    mean = values.mean(axis=(-2, -1), keepdims=True)
    rows, columns = values.mean(axis=-1, keepdims=True) - mean, values.mean(axis=-2, keepdims=True) - mean
    rest = values - mean - rows - columns
    return Squares(
        rows=m * (rows**2).sum(axis=(-2, -1)) / (n - 1),
        columns=n * (columns**2).sum(axis=(-2, -1)) / (m - 1),
        rest=(rest**2).sum(axis=(-2, -1)) / ((n - 1) * (m - 1)),
    )


def quasi_f(values: _Values, overlap: tuple[float, float] = (0.0, 0.0)) -> tuple[_Values, _Values, _Values]:
    """Estimate the means of layouts with two crossed random factors, with standard errors and Satterthwaite's degrees of freedom.

    Args:
        values: float64 ``[..., O, S]``; differences between two methods, or values of one method. overlap: the overlap of the levels of
            each factor.

    Returns:
        mean, error, df; float64 ``[...]``.

    Example:
        >>> mean, error, df = quasi_f(np.array([[1.0, 2.0, 6.0], [3.0, 5.0, 7.0], [0.0, 1.0, 3.0]]))
        >>> round(float(mean), 3), round(float(error), 3), round(float(df), 2)
        (3.111, 1.567, 3.8)
    """
    *_, n, m = values.shape
    a, b, rest = mean_squares(values)
    of_rows, of_columns = np.where(a > rest, 1.0 + overlap[0] * n, 0.0), np.where(b > rest, 1.0 + overlap[1] * m, 0.0)
    total = rest + of_rows * (a - rest) + of_columns * (b - rest)
    # With both components positive all three mean squares are in the sum, with one its own alone, with none that of the rest.
    terms = (of_rows * a) ** 2 / (n - 1) + (of_columns * b) ** 2 / (m - 1)
    terms = terms + ((1.0 - of_rows - of_columns) * rest) ** 2 / ((n - 1) * (m - 1))
    with np.errstate(invalid="ignore"):
        df = total**2 / terms
    return np.asarray(values.mean(axis=(-2, -1))), np.sqrt(total / (n * m)), df


def admissible(n: int, m: int) -> bool:
    """Return whether the test maintains its size with these numbers of crossed levels (at most 6.5% at a level of 5%)."""
    least, most = min(n, m), max(n, m)
    return least > MIN_UNITS or (least == MIN_UNITS and most <= MAX_LEVELS_WITH_MIN)


def mean_estimate(values: _Values, factors: Sequence[str] = ("value",), *, overlap: float = 0.0) -> MeanEstimate:
    """Estimate the mean over one or two random factors.

    Args:
        values: float64, one axis per factor. factors: names of the factors' levels for error messages.
        overlap: the ratio of test items to training items for the factor ``split``, since splits share items.

    Raises:
        Refused: there are too few levels or no spread, values are not finite, or two crossed factors are not :func:`admissible`.
    """
    x = np.asarray(values, dtype=np.float64)
    many = [several(n, name) for n, name in zip(x.shape, factors, strict=True)]
    undefined = int((~np.isfinite(x)).sum())
    if undefined:
        raise Refused(f"{undefined} of {x.size} values are undefined")
    if min(x.shape) < MIN_UNITS:
        raise Refused(f"{' × '.join(many)}: a test needs at least {MIN_UNITS}{' of each' if x.ndim == 2 else ''}")
    if x.ndim == 2 and not admissible(*x.shape):
        raise Refused(
            f"{' × '.join(many)}, crossed: with {MIN_UNITS} of one and more than {MAX_LEVELS_WITH_MIN} of the other the test has too many "
            f"false positives; run a fourth {factors[int(np.argmin(x.shape))]}"
        )
    if float(np.ptp(x)) <= _NO_SPREAD * max(1.0, float(abs(x).max())):
        raise Refused(f"the value is the same in all {' × '.join(many)}, so there is no variance to test against")
    shared = tuple(overlap if name == "split" else 0.0 for name in factors)
    if x.ndim == 1:
        spread = float(x.std(ddof=1))
        error = spread * sqrt((1.0 + shared[0] * x.size) / x.size)
        return MeanEstimate(mean=float(x.mean()), error=error, df=x.size - 1.0, spread=spread, n=x.shape)
    mean, error, df = (float(number) for number in quasi_f(x, (shared[0], shared[1])))
    a, b, rest = (float(number) for number in mean_squares(x))
    n, m = x.shape
    spread = sqrt(max(0.0, a - rest) / m + max(0.0, b - rest) / n + rest)
    return MeanEstimate(mean=mean, error=error, df=df, spread=spread, n=x.shape)


# Training fails now and then, and its performance falls to that of guessing. With one collapse in five, Student's t covers the mean far
# less often than it says with few repetitions (``cglsuite.stats.error_rate("collapses", ...)``), and a bootstrap-t no more often.

ENOUGH_TO_COLLAPSE = 10
"""Repetitions from which on an interval is nearly as good as it says although some collapse."""
_SPREADS = 4.0
_OF_A_NORMAL = 1.4826


def collapsed(values: ArrayLike, *, higher_is_better: bool = True, least: float = 0.0) -> NDArray[np.bool_]:
    """Return which values have collapsed.

    A collapsed value is worse than the median by more than four robust standard deviations and by more than ``least``. With fewer than
    three values, no value counts as collapsed.

    The robust standard deviation is 1.4826 times the median absolute deviation, which changes little if fewer than half of the values
    collapse.

    Args:
        values: float64 ``[..., n]``. least: the smallest distance that counts as a collapse, in the values' unit.

    Example:
        >>> collapsed([0.81, 0.80, 0.79, 0.20, 0.82], least=0.1).tolist()
        [False, False, False, True, False]
    """
    x = np.asarray(values, dtype=np.float64)
    if x.shape[-1] < MIN_UNITS:
        return np.zeros(x.shape, dtype=np.bool_)
    below = (np.median(x, axis=-1, keepdims=True) - x) * (1.0 if higher_is_better else -1.0)
    spread = _OF_A_NORMAL * np.median(abs(below), axis=-1, keepdims=True)
    return np.asarray(below > np.maximum(_SPREADS * spread, least) + 1e-12)


# The interval of the chosen setting's values alone takes the choice as given. Here units are drawn anew, all settings together, and the
# choice is made again within every draw. Orders and seeds that are crossed are drawn independently of each other, and a cell counts as
# often as its order and its seed together (the pigeonhole bootstrap of Owen, 2007, *Annals of Applied Statistics* 1). This counts the noise
# of a cell up to three times, so the interval is rather too wide than too narrow.

_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The setting chosen by validation, and its mean value.

    Args:
        chosen: index of the chosen setting. mean: mean of its values. low, high: interval of the mean.
        again: share of bootstrap draws that chose the same setting.
    """

    chosen: int
    mean: float
    low: float
    high: float
    again: float


def selected(values: ArrayLike, validation: ArrayLike, *, level: float = 0.95, random_seed: int = 0) -> Selected:
    """Choose the setting with the best mean validation score, and estimate its mean value.

    The bootstrap standard error is multiplied by ``√(n / (n - 1))``, and the interval uses Student's t with ``n - 1`` degrees of freedom.
    With crossed factors, n is the number of levels of the smaller factor, and the degrees of freedom are those of the mean of the chosen
    setting.

    Args:
        values, validation: float64 ``[settings, units]``, or ``[settings, orders, seeds]`` if these are crossed. Higher validation scores
            are better. A unit is the same for all settings.

    Raises:
        UsageError: the shapes differ. Refused: fewer than three units, or fewer than three levels of a crossed factor; three levels of one
            factor and more than ten of the other; values that are not finite; no spread.

    Example:
        >>> found = selected([[0.7, 0.8, 0.9], [0.5, 0.6, 0.8]], [[0.7, 0.8, 0.8], [0.6, 0.6, 0.7]])
        >>> found.chosen, round(found.mean, 2), found.again
        (0, 0.8, 1.0)
    """
    from scipy import stats

    x, v = np.asarray(values, dtype=np.float64), np.asarray(validation, dtype=np.float64)
    if x.shape != v.shape or x.ndim not in (2, 3):
        raise UsageError(f"values has shape {x.shape} and validation has shape {v.shape}; expected settings × units for both")
    units, n = " × ".join(map(str, x.shape[1:])), min(x.shape[1:])
    if n < MIN_UNITS:
        each = " in orders and in seeds" if x.ndim == 3 else ""
        raise Refused(f"each setting has {units} repetitions, but an interval needs at least {MIN_UNITS}{each}")
    if x.ndim == 3 and not admissible(*x.shape[1:]):
        raise Refused(f"{units} repetitions of each setting, crossed: the interval would be too narrow; run a fourth of the {MIN_UNITS}")
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        raise Refused("a setting lacks a value or a validation score")
    draws, choices = redrawn(x, v, np.random.default_rng(random_seed))
    chosen = int(v.reshape(len(v), -1).mean(axis=1).argmax())
    error = float(draws.std(ddof=1)) * sqrt(n / (n - 1))
    if not error > 0.0:
        raise Refused(f"all {units} repetitions of the chosen setting are equal, so there is no spread for an interval")
    df = float(quasi_f(x[chosen])[2]) if x.ndim == 3 else n - 1.0
    mean, reach = float(x[chosen].mean()), float(stats.t.ppf(0.5 + level / 2.0, df if df > 0.0 else n - 1.0)) * error
    return Selected(chosen=chosen, mean=mean, low=mean - reach, high=mean + reach, again=float((choices == chosen).mean()))


def redrawn(
    values: NDArray[np.float64], validation: NDArray[np.float64], generator: np.random.Generator, draws: int = _DRAWS
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Choose a setting by validation in each bootstrap draw of units. Return its mean value and index.

    Args:
        values, validation: float64 ``[settings, units]`` or ``[settings, orders, seeds]``.

    Returns:
        float64 and integers ``[draws]``.
    """
    weights = [generator.multinomial(n, np.full(n, 1.0 / n), draws) / n for n in values.shape[1:]]

    def means(x: NDArray[np.float64]) -> NDArray[np.float64]:
        over_last = x @ weights[-1].T
        return np.asarray(over_last if x.ndim == 2 else (over_last * weights[0].T).sum(axis=1))

    choices = means(validation).argmax(axis=0)
    return means(values)[choices, np.arange(draws)], choices
