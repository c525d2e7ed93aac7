"""The mean of a setting that was chosen among several by validation, with an interval that has the choice in it.

The interval of the chosen setting's values alone takes the choice as given. Here units are drawn anew, all settings together, and the
choice is made again within every draw. Orders and seeds that are crossed are drawn independently of each other, and a cell counts as often
as its order and its seed together (the pigeonhole bootstrap of Owen, 2007, *Annals of Applied Statistics* 1). This counts the noise of a
cell up to three times, so the interval is rather too wide than too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.stats.crossed import LEAST_UNITS, admissible, quasi_f
from cglsuite.stats.refusal import Refused

_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Selected:
    """What a choice by validation gives.

    Args:
        chosen: its place among the settings. mean: of its values, with the interval ``low`` to ``high``.
        again: the share of draws that chose the same setting.
    """

    chosen: int
    mean: float
    low: float
    high: float
    again: float


def selected(values: ArrayLike, validation: ArrayLike, *, level: float = 0.95, random_seed: int = 0) -> Selected:
    """The setting with the best mean validation, and its mean value.

    The bootstrap's standard error is multiplied by ``√(n / (n - 1))``, and the interval uses Student's t with ``n - 1`` degrees of freedom;
    over crossed factors n is the number of levels of the smaller one, and degrees of freedom are those of the chosen setting's mean.

    Args:
        values, validation: float64 ``[settings, units]``, or ``[settings, orders, seeds]`` where these are crossed; higher validation is
            better; a unit is the same for all settings.

    Raises:
        UsageError: different shapes. Refused: fewer than three units, or of a crossed factor; three of one and more than ten of the other;
            values that are not finite, no spread.

    Example:
        >>> found = selected([[0.7, 0.8, 0.9], [0.5, 0.6, 0.8]], [[0.7, 0.8, 0.8], [0.6, 0.6, 0.7]])
        >>> found.chosen, round(found.mean, 2), found.again
        (0, 0.8, 1.0)
    """
    from scipy import stats

    x, v = np.asarray(values, dtype=np.float64), np.asarray(validation, dtype=np.float64)
    if x.shape != v.shape or x.ndim not in (2, 3):
        raise UsageError(f"values of the shape {x.shape} and validation of the shape {v.shape}: expected settings × units for both")
    units, n = " × ".join(map(str, x.shape[1:])), min(x.shape[1:])
    if n < LEAST_UNITS:
        each = " in orders and in seeds" if x.ndim == 3 else ""
        raise Refused(f"{units} repetitions of each setting: an interval needs at least {LEAST_UNITS}{each}")
    if x.ndim == 3 and not admissible(*x.shape[1:]):
        raise Refused(f"{units} repetitions of each setting, crossed: the interval would be too narrow; run a fourth of the {LEAST_UNITS}")
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        raise Refused("a setting lacks a value or its validation")
    draws, choices = redrawn(x, v, np.random.default_rng(random_seed))
    chosen = int(v.reshape(len(v), -1).mean(axis=1).argmax())
    error = float(draws.std(ddof=1)) * sqrt(n / (n - 1))
    if not error > 0.0:
        raise Refused(f"all {units} repetitions of the chosen setting are equal: without spread there is no interval")
    df = float(quasi_f(x[chosen])[2]) if x.ndim == 3 else n - 1.0
    mean, reach = float(x[chosen].mean()), float(stats.t.ppf(0.5 + level / 2.0, df if df > 0.0 else n - 1.0)) * error
    return Selected(chosen=chosen, mean=mean, low=mean - reach, high=mean + reach, again=float((choices == chosen).mean()))


def redrawn(
    values: NDArray[np.float64], validation: NDArray[np.float64], generator: np.random.Generator, draws: int = _DRAWS
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The mean value of the setting that validation chooses in each draw of units, and which one that is.

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
