"""Agreement of a mean with a published one: equivalent, different or undecided.

A difference that is not significant is no agreement: with few runs nothing is significant. Equivalence is tested by two one-sided tests
(TOST; Schuirmann 1987): a mean is equivalent to the published one where both ``difference ≤ -margin`` and ``difference ≥ margin`` are
rejected, which is where the interval of the difference at level ``1 - 2α`` lies within ``±margin``. The margin is fixed before looking. A
mean that is not equivalent is different where Welch's test finds a difference, adjusted over the rows of a table by Holm's method, and
undecided otherwise. The smallest margin that would have passed says how much the data can show.

Both tests use the standard errors of both means, with the degrees of freedom of Welch and Satterthwaite.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.base.markup import several
from cglsuite.stats.compare import adjust
from cglsuite.stats.crossed import MeanEstimate
from cglsuite.stats.refusal import Refused, require_frame

__all__ = ["AGREEMENTS", "Agreement", "Offset", "agreement", "agreement_verdicts", "joint_offset"]

AGREEMENTS = ("equivalent", "different", "undecided")
"""The verdicts on a mean beside a published one."""
_FEWEST = 2
_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """A mean beside a published one.

    Args:
        difference: ours minus published, with its interval ``low`` to ``high`` at level ``1 - 2α``, the one that decides on equivalence.
        error, df: standard error of the difference, and its degrees of freedom. margin: within which means count as equivalent.
        smallest_margin: the smallest one that would have passed. p_equivalent: of the two one-sided tests. p_different: of Welch's test.
    """

    difference: float
    low: float
    high: float
    error: float
    df: float
    margin: float
    smallest_margin: float
    p_equivalent: float
    p_different: float


def agreement(ours: MeanEstimate, mean: float, std: float, n: int, *, margin: float, alpha: float = 0.05) -> Agreement:
    """Both tests of a mean beside a published one; one unit for all values.

    Args:
        mean, std, n: as published; the standard deviation is over n independent runs. margin: fixed before looking.

    Raises:
        Refused: a published mean without a standard deviation or over fewer than two runs; neither mean has an error.
        UsageError: a margin that is not positive, an alpha outside 0 to 0.5.

    Example:
        >>> ours = MeanEstimate(mean=90.0, error=0.5, df=4.0, spread=1.1, n=(5,))
        >>> found = agreement(ours, 90.4, 1.8, 10, margin=2.0)
        >>> round(found.smallest_margin, 2), found.p_equivalent < 0.05
        (1.75, True)
    """
    from scipy import stats

    if not margin > 0.0:
        raise UsageError(f"margin = {margin:g}: expected a positive number")
    if not 0.0 < alpha < 0.5:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 0.5")
    if not isfinite(std):
        raise Refused("the published mean has no standard deviation")
    if n < _FEWEST:
        raise Refused(f"the published value is of {n} run: a verdict needs at least {_FEWEST}")
    theirs = std**2 / n
    variance = ours.error**2 + theirs
    if not variance > 0.0:
        raise Refused("neither mean has a standard error: there is nothing to test against")
    error = sqrt(variance)
    df = variance**2 / (ours.error**4 / ours.df + theirs**2 / (n - 1))
    difference = ours.mean - mean
    reach = float(stats.t.ppf(1.0 - alpha, df)) * error
    above, below = stats.t.sf((difference + margin) / error, df), stats.t.cdf((difference - margin) / error, df)
    return Agreement(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        error=error,
        df=df,
        margin=margin,
        smallest_margin=abs(difference) + reach,
        p_equivalent=float(max(above, below)),
        p_different=float(2.0 * stats.t.sf(abs(difference) / error, df)),
    )


def agreement_verdicts(p_equivalent: ArrayLike, p_different: ArrayLike, *, alpha: float = 0.05) -> tuple[list[str], NDArray[np.float64]]:
    """The verdicts on the rows of one table, and the p values of Welch's tests adjusted over it by Holm's method.

    Args:
        p_equivalent, p_different: float64 ``[rows]``, of :class:`Agreement`.

    Returns:
        One of :data:`AGREEMENTS` per row; float64 ``[rows]``.

    Example:
        >>> " ".join(agreement_verdicts([0.01, 0.9, 0.4], [0.5, 0.001, 0.03])[0])
        'equivalent different undecided'
    """
    adjusted = adjust(p_different)
    pairs = zip(np.asarray(p_equivalent, dtype=np.float64), adjusted, strict=True)
    return ["equivalent" if same <= alpha else "different" if p <= alpha else "undecided" for same, p in pairs], adjusted


@dataclass(frozen=True, kw_only=True)
class Offset:
    """The mean difference from published values over the rows of a table.

    Args:
        rows: their number. higher: of how many ours is higher; a description, since rows that share orders are not independent.
        mean: of the differences, with its interval ``low`` to ``high`` at ``level``; NaN without one. reason: why there is none.
    """

    rows: int
    higher: int
    mean: float
    low: float
    high: float
    level: float
    reason: str = ""

    @property
    def certain(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0.0 or self.high < 0.0


def joint_offset(frame: pd.DataFrame, published: pd.DataFrame, *, level: float = 0.95, random_seed: int = 0) -> Offset:
    """Whether a table is off as a whole: the mean difference, with the standard error of a joint bootstrap.

    Rows of one block (data set and setting) share orders, splits and seeds, so these are drawn once for all of its rows in every bootstrap
    sample; blocks are independent. The errors of the published means of a block are taken as fully correlated, which makes the interval
    wider than any other correlation. The bootstrap variance is multiplied by ``n / (n - 1)``, and the interval uses Student's t with
    Satterthwaite's degrees of freedom over the blocks, since few orders are drawn from.

    Args:
        frame: our values: columns row, unit, value; units (orders, repetitions) have the same name in all rows of a block.
        published: one line per row: columns row, block, mean, error (standard error of the published mean, 0 where unknown), df.

    Returns:
        The offset; without an interval where a block has fewer than three units.

    Raises:
        Refused: NaN, a row and unit twice.
    """
    from scipy import stats

    require_frame(frame, ["row", "unit"])
    rows = published.set_index("row")
    table = frame.pivot(index="row", columns="unit", values="value")
    differences = table.mean(axis=1) - rows["mean"].reindex(table.index)
    mean = float(differences.mean())
    counts: dict[str, Any] = {
        "rows": len(differences),
        "higher": int((differences > 0).sum()),
        "mean": mean,
        "level": level,
    }
    generator = np.random.default_rng(random_seed)
    parts: list[tuple[float, float]] = []
    for _, block in rows.reindex(table.index).groupby("block", sort=False):
        mine = table.loc[block.index].dropna(axis=1, how="all")
        n = mine.shape[1]
        if n < 3:
            return Offset(**counts, low=nan, high=nan, reason=f"a data set has {several(n, 'repetition')}: an interval needs at least 3")
        share = len(mine) / len(table)
        values = mine.to_numpy(dtype=np.float64)
        parts.append((share**2 * _bootstrap_variance(values, generator) * n / (n - 1), n - 1.0))
        parts.append((share**2 * float(block["error"].mean()) ** 2, float(block["df"].min())))
    variance = sum(part for part, _ in parts)
    if not variance > 0.0:
        return Offset(**counts, low=nan, high=nan, reason="no value has any spread")
    df = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    reach = float(stats.t.ppf(0.5 + level / 2.0, df)) * sqrt(variance)
    return Offset(**counts, low=mean - reach, high=mean + reach)


def _bootstrap_variance(values: NDArray[np.float64], generator: np.random.Generator) -> float:
    """Of the mean over rows of row means, with columns drawn for all rows at once; a row's gaps are left out of its mean."""
    draws = generator.integers(0, values.shape[1], (_DRAWS, values.shape[1]))
    weights = np.stack([(draws == unit).sum(axis=1) for unit in range(values.shape[1])], axis=1)
    known = np.isfinite(values)
    totals, counts = weights @ np.where(known, values, 0.0).T, weights @ known.T
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, totals / counts, np.nan)
    return float(np.nanvar(np.nanmean(means, axis=1), ddof=1))
