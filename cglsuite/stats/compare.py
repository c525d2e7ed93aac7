"""Compare pairs of methods, and test whether our means agree with published ones.

Methods are compared in a declared family of tests. For agreement, it is not enough that a difference is not significant, since nothing is
significant with few runs. Equivalence is tested by two one-sided tests (TOST; Schuirmann 1987): a mean is equivalent to the published one
if both ``difference ≤ -margin`` and ``difference ≥ margin`` are rejected, that is, if the interval for the difference at level ``1 - 2α``
is within ``±margin``. The margin is fixed in advance. A mean that is not equivalent is different if Welch's test, Holm-adjusted over the
rows of a table, is significant, and undecided otherwise. The smallest margin that would have passed indicates how precise the data are.
Both tests use the standard errors of both means, with the degrees of freedom of Welch and Satterthwaite.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.markup import several
from cglsuite.stats.crossed import MIN_UNITS, MeanEstimate
from cglsuite.stats.pairwise import Difference, Effect, crossed_g, crossed_t, hedges_g, paired_t_of, samples, welch_g, welch_of, wilcoxon
from cglsuite.stats.refusal import Refused, require_frame
from cglsuite.stats.replication import LEVELS, Cells, Replicates, replicates

TESTS = ("t", "wilcoxon", "welch")
"""``t``: Student's t (paired), Welch's t (independent) or the quasi-F (crossed factors), depending on the design; ``wilcoxon``: the
signed-rank test, for pairs over one factor only; ``welch``: Welch's t of methods as if they had been run apart, as papers test."""
COMPARISON_COLUMNS = [
    *("first", "second", "unit", "n", "n_second", "replicates", "averaged", "given", "population", "paired", "test"),
    *("estimate", "low", "high", "interval", "statistic", "df", "p", "p_adjusted", "g", "g_low", "g_high", "standardiser"),
    *("better", "verdict", "refused"),
]
"""The columns of a comparison table."""
NO_DIFFERENCE = "no significant difference"
"""The verdict on a pair whose adjusted p value is above alpha."""


def compare_methods(
    frame: pd.DataFrame,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    against: str | None = None,
    higher_is_better: bool = True,
    test: str = "t",
    adjustment: str = "holm",
    alpha: float = 0.05,
    orders_in_all: int | None = None,
    overlap: float = 0.0,
) -> pd.DataFrame:
    """Compare pairs of methods on one scenario and one metric. A test that the data do not support is refused and has no p value.

    The design decides the test (see :mod:`cglsuite.stats.replication`). With one factor, methods that were run in the same units are
    compared with a paired test, and others with Welch's test. With orders crossed with seeds, the test is the quasi-F of the paired
    differences. If all possible orders were run, they are the population, and only the seeds are replicates. With a single order or seed,
    the claim is limited to that order or seed.

    ``welch`` ignores that methods share orders and seeds. Its units are those of the design, never single cells. Each method's mean has the
    standard error of that method's design, computed from ``(MS_O + MS_S - MS_E) / (O S)`` if orders and seeds are crossed.

    Args:
        frame: one row per cell, with the columns method, value, and any of order, split and seed.
        pairs: the declared family of comparisons; by default all pairs of methods, or all pairs that include ``against``.
        adjustment: ``holm`` or ``benjamini-hochberg``, over all declared pairs. alpha: family-wise level; intervals have level 1 - alpha.
        orders_in_all: the total number of possible task orders, if this number is limited.
        overlap: for random splits, the ratio of test items to training items (see :mod:`cglsuite.stats.crossed`).

    Returns:
        One row per pair: first, second; unit, n, n_second (values of each), replicates (these as text), averaged (cells per value),
        given (the single order or seed to which the claim is limited), population (``all 120 orders``, or empty), paired; test, estimate
        (difference of means, or the Hodges-Lehmann estimate for Wilcoxon's test, in the values' unit), low, high, interval (its kind; not
        adjusted for the family), statistic, df, p, p_adjusted; g, g_low, g_high, standardiser (see :func:`cglsuite.stats.hedges_g`); better
        (the significantly better method by the sign of the estimate, or empty), verdict (the same in words, :data:`NO_DIFFERENCE` or
        ``refused``); refused (the reason if there is no test, otherwise empty).

    Raises:
        UsageError: a column is missing, there are fewer than two methods, or alpha is not between 0 and 1. UnknownNameError: a method or
            test is unknown.
    """
    family = _family(frame, pairs, against)
    if test not in TESTS:
        raise UnknownNameError("test", test, TESTS)
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 1")
    by_method = {str(name): Cells(part, orders_in_all, overlap) for name, part in frame.groupby("method", sort=False)}
    rows = [_compared(a, b, by_method[a], by_method[b], test, alpha) for a, b in family]
    comparisons = pd.DataFrame(rows, columns=COMPARISON_COLUMNS)
    comparisons["p_adjusted"] = adjust(comparisons["p"].astype(float), adjustment)
    comparisons["better"] = [_better(row, alpha, higher_is_better) for row in comparisons.to_dict(orient="records")]
    comparisons["verdict"] = [_verdict(row) for row in comparisons.to_dict(orient="records")]
    return comparisons.astype(dict.fromkeys(_NUMBERS, "float64"))


_NUMBERS = ["n", "n_second", "estimate", "low", "high", "statistic", "df", "p", "p_adjusted", "g", "g_low", "g_high"]


def _family(frame: pd.DataFrame, pairs: Sequence[tuple[str, str]] | None, against: str | None) -> list[tuple[str, str]]:
    absent = [name for name in ("method", "value") if name not in frame]
    if absent or not any(name in frame for name in LEVELS):
        wanted = ", ".join(absent) or "at least one of " + ", ".join(LEVELS)
        raise UsageError(f"the frame has the columns {', '.join(map(str, frame.columns))}, but {wanted} is also required")
    methods = [str(name) for name in frame["method"].drop_duplicates()]
    if len(methods) < 2:
        raise UsageError(f"the frame has {len(methods)} method, but a comparison needs at least two")
    for name in {m for pair in pairs or () for m in pair} | ({against} if against else set()):
        if name not in methods:
            raise UnknownNameError("method of this frame", name, methods)
    if pairs is not None:
        return list(pairs)
    return [(m, against) for m in methods if m != against] if against else list(combinations(methods, 2))


def _compared(a: str, b: str, first: Cells, second: Cells, test: str, alpha: float) -> dict[str, Any]:
    row: dict[str, Any] = {"first": a, "second": b, "p": np.nan}
    row |= dict.fromkeys(("unit", "replicates", "averaged", "given", "population", "test", "interval", "standardiser", "refused"), "")
    try:
        units = replicates(first, second, apart=test == "welch")
        row |= {"unit": units.unit, "n": units.first.size, "n_second": units.second.size, "replicates": units.text}
        row |= {"paired": units.paired, "averaged": _averaged(units), "population": units.population}
        row |= {"given": ", ".join(f"{name} {value}" for name, value in units.given.items())}
        difference, effect = _tested(units, test, 1.0 - alpha)
    except Refused as refusal:
        return row | {"refused": str(refusal)}
    numbers = {name: value for name, value in asdict(difference).items() if name in COMPARISON_COLUMNS and name != "n"}
    return row | numbers | {"g": effect.g, "g_low": effect.low, "g_high": effect.high, "standardiser": effect.standardiser}


def _averaged(units: Replicates) -> str:
    first, two = units.averaged
    return str(first) if first == two else f"{first} and {two}"


def _tested(units: Replicates, test: str, level: float) -> tuple[Difference, Effect]:
    name = f"{units.factors[0]}s"
    if test == "wilcoxon":
        if len(units.factors) == 2:
            raise Refused(f"{units.unit} are crossed, but Wilcoxon's signed-rank test supports only pairs over one factor")
        if not units.paired:
            raise Refused(f"the methods share no {units.unit}, but Wilcoxon's signed-rank test needs pairs")
        if units.overlap:
            raise Refused("random splits share items, but Wilcoxon's signed-rank test needs independent pairs")
        difference = wilcoxon(units.first, units.second, level=level, unit=name)
        return difference, hedges_g(units.first, units.second, paired=True, level=level, unit=name)
    if not units.paired:
        if len(units.factors) == 1:
            samples(units.first, units.second, paired=False, unit=name)
        return welch_of(*units.estimates, level=level), welch_g(*units.estimates, level=level)
    if len(units.factors) == 2:
        factors = (units.factors[0], units.factors[1])
        difference = crossed_t(units.first, units.second, level=level, factors=factors, overlap=units.overlap)
    else:
        samples(units.first, units.second, paired=True, unit=name)
        difference = paired_t_of(units.difference, level=level)
    return difference, crossed_g(units.difference, level=level)


def _better(row: dict[Any, Any], alpha: float, higher_is_better: bool) -> str:
    """Return the better method of a tested pair, or an empty string if the estimate is 0."""
    if row["refused"] or not row["p_adjusted"] <= alpha or not row["estimate"]:
        return ""
    return str(row["first"] if (row["estimate"] > 0) == higher_is_better else row["second"])


def _verdict(row: dict[Any, Any]) -> str:
    if row["refused"]:
        return "refused"
    if not row["better"]:
        return NO_DIFFERENCE
    verdict = f"{row['better']} is better"
    condition = condition_of(row["given"])
    return f"{verdict}, {condition} only" if condition else verdict


def condition_of(words: str) -> str:
    """Describe the condition of a claim in words.

    Args:
        words: the value in the column ``words`` of a comparison.

    Example:
        >>> condition_of("order 0,1 | 2,3"), condition_of("seed 0"), condition_of("")
        ('in this one order', 'with this one seed', '')
    """
    names = [part.partition(" ")[0] for part in words.split(", ")]
    return " ".join(text for name, text in (("order", "in this one order"), ("seed", "with this one seed")) if name in names)


# Multiple testing: p values adjusted over a family declared before the data were seen.

ADJUSTMENTS = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
"""Adjustments by their names in statsmodels: Holm (1979) controls the family-wise error rate, Benjamini and Hochberg (1995) the false
discovery rate."""


def adjust(p: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    """Adjust p values for multiple comparisons. Compare the results with the level of the whole family.

    A declared comparison that was refused stays in the family with p = 1, so that it never makes the other comparisons look more
    significant.

    Args:
        p: float64 ``[m]``, one per declared comparison; NaN if it was refused. method: ``holm`` or ``benjamini-hochberg``.

    Returns:
        float64 ``[m]``; NaN stays NaN.

    Raises:
        UnknownNameError: the adjustment is unknown. UsageError: a p value is not between 0 and 1.

    Example:
        >>> adjust([0.01, 0.04, float("nan")]).round(3).tolist()
        [0.03, 0.08, nan]
    """
    from statsmodels.stats.multitest import multipletests

    if method not in ADJUSTMENTS:
        raise UnknownNameError("adjustment", method, ADJUSTMENTS)
    values = np.asarray(p, dtype=np.float64).ravel()
    known = ~np.isnan(values)
    outside = values[known & ~((values >= 0) & (values <= 1))]
    if outside.size:
        raise UsageError(f"p values outside 0 to 1: {', '.join(f'{value:g}' for value in outside[:3])}")
    if not known.any():
        return values
    with _out_of_the_collectors_way():
        adjusted = multipletests(np.where(known, values, 1.0), method=ADJUSTMENTS[method])[1]
    return np.where(known, adjusted, np.nan)


def across_families(p: Sequence[ArrayLike], alpha: float = 0.05) -> tuple[list[bool], float]:
    """Select the families that contain a difference, and return the level for tests within them (Benjamini & Bogomolov 2014).

    A family's p value is its smallest adjusted p value. Families are selected with the Benjamini-Hochberg procedure. If R of m families are
    selected, adjusted p values within them are compared with ``alpha R / m``. The probability of a false claim within a family, averaged
    over the selected families, is then at most alpha.

    Args:
        p: the p values of each family after Holm's adjustment; NaN for refused tests.

    Example:
        >>> across_families([[0.001, 0.2], [0.9], [0.03]])
        ([True, False, True], 0.03333333333333333)
    """
    least = [float(np.nanmin(x, initial=np.inf)) for x in (np.asarray(values, dtype=np.float64) for values in p)]
    adjusted = adjust([min(value, 1.0) for value in least], "benjamini-hochberg") if least else np.zeros(0)
    chosen = [bool(value <= alpha) for value in adjusted]
    return chosen, alpha * sum(chosen) / max(1, len(chosen))


_FROZEN_BY_PYTHON = 1_000
"""More objects than a new interpreter has frozen (375 in CPython 3.12, none in 3.11 and 3.13)."""


@contextlib.contextmanager
def _out_of_the_collectors_way() -> Iterator[None]:
    """Exclude existing objects from garbage collection, which statsmodels triggers in every Holm adjustment and which is slow."""
    if gc.get_freeze_count() > _FROZEN_BY_PYTHON:  # somebody else's, which must stay frozen
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


AGREEMENTS = ("equivalent", "different", "undecided")
"""The verdicts on a mean compared with a published one."""
_MIN_RUNS, _FEW = 2, 3
_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The results of the equivalence test and of Welch's test of our mean against a published mean.

    Args:
        difference: our mean minus the published one. low, high: its interval at level ``1 - 2α``, which decides equivalence. error, df:
            standard error of the difference, and its degrees of freedom. margin: the equivalence margin.
        smallest_margin: the smallest margin that would have passed. printed_reach: half-width of the same interval for the published mean
            alone. If the margin is not larger, no number of runs can show equivalence. p_equivalent: p value of the two one-sided tests.
            p_different: p value of Welch's test.
    """

    difference: float
    low: float
    high: float
    error: float
    df: float
    margin: float
    smallest_margin: float
    printed_reach: float
    p_equivalent: float
    p_different: float


def agreement(ours: MeanEstimate, mean: float, std: float, n: int, *, margin: float, alpha: float = 0.05) -> Agreement:
    """Test our mean against a published mean for equivalence and for difference. All values are in the same unit.

    With two or three published runs, more noise in our runs would raise Satterthwaite's degrees of freedom and make equivalence easier to
    show. In this case, the difference must also be within the margin given the error of the published mean alone, with n - 1 degrees of
    freedom.

    Args:
        mean, std, n: as published; the standard deviation is over n independent runs. margin: the equivalence margin, fixed in advance.

    Raises:
        Refused: the published mean is NaN, or has no standard deviation or fewer than two runs; or neither mean has an error.
        UsageError: the margin is not positive, or alpha is not between 0 and 0.5.

    Example:
        >>> ours = MeanEstimate(mean=90.0, error=0.5, df=4.0, spread=1.1, n=(5,))
        >>> found = agreement(ours, 90.4, 1.8, 10, margin=2.0)
        >>> round(found.smallest_margin, 2), found.p_equivalent < 0.05
        (1.75, True)
    """
    if not margin > 0.0:
        raise UsageError(f"margin = {margin:g}: expected a positive number")
    if not 0.0 < alpha < 0.5:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 0.5")
    if not (isfinite(mean) and isfinite(std) and std >= 0.0):
        raise Refused("the published mean has no standard deviation" if isfinite(mean) else "the published mean is not a number")
    if n < _MIN_RUNS:
        raise Refused(f"the published value comes from {n} run, but a verdict needs at least {_MIN_RUNS}")
    return _agreement(ours, MeanEstimate(mean=mean, error=std / sqrt(n), df=n - 1.0, spread=std, n=(n,)), margin, alpha)


def agreement_on_orders(values: ArrayLike, mean: float, std: float, n: int, *, margin: float, alpha: float = 0.05) -> Agreement:
    """Test agreement with a published mean over the same orders as ours, with one run per order. The claim is limited to these orders.

    An order has the same effect on both means. Its variance component in our O orders × S seeds, ``σ²_o = (MS_o - MS_e) / S``, is therefore
    removed from both squared errors. Ours becomes ``MS_e / (O S)``, and the published one becomes ``(s² - σ²_o) / n``, but at least ``MS_e
    / n``.

    Args:
        values: float64 ``[orders, seeds]``, with different seeds in every order. mean, std, n, margin: as in :func:`agreement`.

    Raises:
        Refused: there are fewer than three orders or seeds per order; the numbers of orders and of published runs differ; or orders have no
            spread.
    """
    x = np.asarray(values, dtype=np.float64)
    orders, seeds = x.shape
    if orders < MIN_UNITS or seeds < MIN_UNITS:
        raise Refused(
            f"there are {orders} orders × {seeds} init seeds, but the variance component of orders needs at least {MIN_UNITS} of each"
        )
    if orders != n:
        raise Refused(f"there are {orders} orders but {n} published runs; the effects of orders cancel only if both used the same orders")
    within, between = float(x.var(axis=1, ddof=1).mean()), seeds * float(x.mean(axis=1).var(ddof=1))
    if not within > 0.0:
        raise Refused("all seeds of an order give the same value, so there is no variance to test against")
    within_df, component = orders * (seeds - 1.0), max(0.0, between - within) / seeds
    left, left_df = std**2 - component, n - 1.0
    if left < within:
        left, left_df = within, within_df
    elif component:
        parts = (std**2) ** 2 / (n - 1) + (between / seeds) ** 2 / (orders - 1) + (within / seeds) ** 2 / within_df
        left_df = left**2 / parts
    ours = MeanEstimate(mean=float(x.mean()), error=sqrt(within / x.size), df=within_df, spread=sqrt(within), n=x.shape)
    return _agreement(ours, MeanEstimate(mean=mean, error=sqrt(left / n), df=left_df, spread=sqrt(left), n=(n,)), margin, alpha)


def _agreement(ours: MeanEstimate, theirs: MeanEstimate, margin: float, alpha: float) -> Agreement:
    from scipy import stats

    found, alone = ours.minus(theirs), theirs.error
    if not found.error > 0.0:
        raise Refused("neither mean has a standard error, so there is no variance to test against")
    difference, error, df = found.mean, found.error, found.df
    reach = float(stats.t.ppf(1.0 - alpha, df)) * error
    above, below = stats.t.sf((difference + margin) / error, df), stats.t.cdf((difference - margin) / error, df)
    p_equivalent, smallest = float(max(above, below)), abs(difference) + reach
    printed_reach = float(stats.t.ppf(1.0 - alpha, theirs.df)) * alone
    if theirs.n[0] <= _FEW and alone:
        p_equivalent = max(p_equivalent, float(stats.t.sf((margin - abs(difference)) / alone, theirs.df)))
        smallest = max(smallest, abs(difference) + printed_reach)
    return Agreement(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        error=error,
        df=df,
        margin=margin,
        smallest_margin=smallest,
        printed_reach=printed_reach,
        p_equivalent=p_equivalent,
        p_different=found.p,
    )


def agreement_verdicts(p_equivalent: ArrayLike, p_different: ArrayLike, *, alpha: float = 0.05) -> tuple[list[str], NDArray[np.float64]]:
    """Return the verdict for each row of a table, and the p values of Welch's tests, Holm-adjusted over the table.

    Args:
        p_equivalent, p_different: float64 ``[rows]``, from :class:`Agreement`.

    Returns:
        One of :data:`AGREEMENTS` per row, and the adjusted p values, float64 ``[rows]``.

    Example:
        >>> " ".join(agreement_verdicts([0.01, 0.9, 0.4], [0.5, 0.001, 0.03])[0])
        'equivalent different undecided'
    """
    adjusted = adjust(p_different)
    pairs = zip(np.asarray(p_equivalent, dtype=np.float64), adjusted, strict=True)
    return ["equivalent" if same <= alpha else "different" if p <= alpha else "undecided" for same, p in pairs], adjusted


def median_within(values: ArrayLike, margin: float) -> float:
    """Return the p value of two one-sided exact sign tests that the median is within ±margin, for any noise distribution.

    The t-tests of :func:`agreement` assume nearly normal noise and pass too often if it is skewed. The sign tests need at least five values
    to reach ``p ≤ 0.05``.

    Args:
        values: float64 ``[n]``, differences from a reference value without error.

    Example:
        >>> median_within([0.1, -0.1, 0.0, 0.2, 0.1], 0.5), median_within([0.1, -0.1, 0.0, 0.2, 0.7], 0.5)
        (0.03125, 0.1875)
    """
    from scipy import stats

    x = np.asarray(values, dtype=np.float64)
    outside = max(int((~(x < margin)).sum()), int((~(x > -margin)).sum()))  # NaN is within no margin
    return float(stats.binom.cdf(outside, x.size, 0.5))


def equivalence_curve(smallest_margins: ArrayLike, margins: ArrayLike) -> NDArray[np.float64]:
    """Return the share of rows that would be equivalent at each margin, to show how much the verdicts depend on the margin.

    Args:
        smallest_margins: float64 ``[rows]``, from :class:`Agreement`. Rows without a verdict are NaN and ignored.

    Example:
        >>> equivalence_curve([0.5, 1.5, 4.0, float("nan")], [1.0, 2.0, 5.0]).round(3).tolist()
        [0.333, 0.667, 1.0]
    """
    smallest = np.asarray(smallest_margins, dtype=np.float64)
    smallest = np.sort(smallest[~np.isnan(smallest)])
    return np.searchsorted(smallest, np.asarray(margins, dtype=np.float64), side="right") / max(1, smallest.size)


def neighbour_gap(means: ArrayLike) -> float:
    """Return the median difference between neighbours in a ranking of means, as a yardstick for margins; NaN for fewer than two means.

    Example:
        >>> neighbour_gap([90.0, 91.0, 95.0, 80.0])
        4.0
    """
    gaps = np.diff(np.sort(np.asarray(means, dtype=np.float64)))
    return float(np.median(gaps)) if gaps.size else nan


@dataclass(frozen=True, kw_only=True)
class Offset:
    """The mean difference from published values over the rows of a table, with its confidence interval.

    Args:
        rows: number of rows. higher: number of rows in which our value is higher. This is only descriptive, since rows that share orders
            are not independent.
        mean: mean difference. low, high: its interval at ``level``, or NaN if there is none. reason: why there is no interval.
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
    """Estimate whether a table as a whole deviates, from the mean difference with a standard error from a joint bootstrap.

    Rows of a block (data set and setting) share orders, splits and seeds, so each bootstrap sample draws them once for all rows of a block.
    Blocks are independent. The errors of the published means in a block are assumed to be fully correlated, which gives the widest
    interval. The bootstrap variance is multiplied by ``n / (n - 1)``, and the interval uses Student's t with Satterthwaite's degrees of
    freedom over the blocks, since the number of orders is small.

    Args:
        frame: our values, with the columns row, unit, value. A unit (an order or a repetition) has the same name in all rows of a block.
        published: one line per row, with the columns row, block, mean, error (standard error of the published mean, 0 if unknown), df.

    Returns:
        The offset. It has no interval if a block has fewer than three units.

    Raises:
        Refused: a value is NaN, or a row has the same unit twice.
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
    """Return the bootstrap variance of the mean of row means. Columns are drawn jointly for all rows, and missing values are ignored."""
    draws = generator.integers(0, values.shape[1], (_DRAWS, values.shape[1]))
    weights = np.stack([(draws == unit).sum(axis=1) for unit in range(values.shape[1])], axis=1)
    known = np.isfinite(values)
    totals, counts = weights @ np.where(known, values, 0.0).T, weights @ known.T
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, totals / counts, np.nan)
    return float(np.nanvar(np.nanmean(means, axis=1), ddof=1))


# The share of a table's rows that is within the margin, by a hierarchical model over rows whose errors are correlated within a preset.

PRIOR_SCALES = (1.0, 3.0, 6.0)
"""In points: scales of the priors with which a share is shown, as none of them is the right one."""
MIN_ROWS = 5
_NU = 4.0
_GRID = 40
_WARM_UP = 400
_Values = NDArray[np.float64]


class Share(NamedTuple):
    """The share of rows with a true difference within the margin: posterior mean and 95% interval for priors of the given ``scale``."""

    scale: float
    mean: float
    low: float
    high: float


def share_within(
    differences: ArrayLike,
    errors: ArrayLike,
    margins: ArrayLike,
    blocks: Sequence[Any],
    *,
    scale: float = 3.0,
    draws: int = 1500,
    seed: int = 0,
) -> list[Share]:
    """Compute the posterior of the share of rows within their margins, for one or more tables of the same shape.

    The model is ``d_i = μ + b_preset + t_i + e_i``. ``t_i`` has a Student's t distribution with 4 degrees of freedom, so a few rows may be
    far off. ``e_i`` has the standard error of the row. The errors of a preset share an unknown correlation, because our runs share orders
    and seeds, as do those of the paper. All scales and the correlation of each preset are integrated out with Gibbs sampling, without point
    estimates. The prior of ``μ`` is normal, the priors of both scales are half-normal, and the priors of the correlations are uniform. The
    result describes a table and is not a verdict on any row.

    Args:
        differences, errors, margins: float64 ``[tables, rows]`` or ``[rows]``, in points. blocks: the preset of each row.
        scale: scale of the priors, in points.

    Raises:
        Refused: there are fewer than five rows, or an error is not positive.

    Example:
        >>> share, = share_within([0.1, -0.2, 0.3, 0.0, 0.2], [0.2] * 5, [2.0] * 5, ["a", "a", "b", "b", "b"], draws=200)
        >>> share.mean > 0.9
        True
    """
    d, s, m = (np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in (differences, errors, margins))
    if d.shape[1] < MIN_ROWS:
        raise Refused(f"the table has {several(d.shape[1], 'row')}, but computing a share needs at least {MIN_ROWS}")
    if not (np.isfinite(d).all() and (s > 0.0).all()):
        raise Refused("a share cannot be computed, because some rows lack a difference or a standard error")
    names = list(dict.fromkeys(blocks))
    member = np.array([[float(block == name) for name in names] for block in blocks])
    sampler = _Sampler(d, s, member, scale, np.random.default_rng(seed))
    shares = np.stack([(np.abs(sampler.step()) <= m).mean(axis=1) for _ in range(_WARM_UP + draws)][_WARM_UP:])
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return [Share(scale, *map(float, ends)) for ends in zip(shares.mean(axis=0), low, high, strict=True)]


class _Sampler:
    """A Gibbs sampler for one or more tables. Arrays are ``[tables, rows]`` or ``[tables, presets]``."""

    def __init__(self, d: _Values, s: _Values, member: _Values, scale: float, generator: np.random.Generator) -> None:
        self.d, self.s, self.member, self.scale, self.generator = d, s, member, scale, generator
        self.sizes = member.sum(axis=0)
        tables = d.shape[0]
        self.true, self.weight = d.copy(), np.ones_like(d)
        self.mu, self.tau, self.sigma = np.zeros((tables, 1)), np.full((tables, 1), scale / 2), np.full((tables, 1), scale / 2)
        self.preset = np.zeros((tables, member.shape[1]))
        self.scales = np.geomspace(scale / 100.0, 4.0 * scale, _GRID)
        self.rho, n = np.linspace(0.0, 0.95, 20), self.sizes[:, None]
        common = 1.0 + (n - 1.0) * self.rho
        self.ratio, self.log_common = self.rho / common, (n - 1.0) * np.log(1.0 - self.rho) + np.log(common)
        self.logs, self.twice, self.prior = np.log(self.scales), 2.0 * self.scales**2, self.scales**2 / (2.0 * scale**2)

    def step(self) -> _Values:
        """Draw one sample of the true differences of the rows."""
        self._errors()
        centre = self.mu + self.preset @ self.member.T
        off = self.true - centre
        self.weight = self.generator.gamma((_NU + 1.0) / 2.0, 2.0 / (_NU + (off / self.tau) ** 2))
        self.tau = self._scale_of((self.weight * off**2).sum(axis=1, keepdims=True), off.shape[1])
        precision = self.weight / self.tau**2
        self.preset = self._normal((precision * (self.true - self.mu)) @ self.member, precision @ self.member + 1.0 / self.sigma**2)
        self.sigma = self._scale_of((self.preset**2).sum(axis=1, keepdims=True), self.preset.shape[1])
        residual = precision * (self.true - self.preset @ self.member.T)
        self.mu = self._normal(residual.sum(axis=1, keepdims=True), precision.sum(axis=1, keepdims=True) + 1.0 / self.scale**2)
        return self.true

    def _errors(self) -> None:
        """Draw the correlation of each preset's errors, the common part of the errors, and the true differences."""
        standard = (self.d - self.true) / self.s
        squares, sums, rho = (standard**2) @ self.member, standard @ self.member, self.rho
        quadratic = (squares[..., None] - self.ratio * sums[..., None] ** 2) / (1.0 - rho)
        drawn = rho[self._place(-0.5 * (self.log_common + quadratic))]
        shared = self._normal(sums * np.sqrt(drawn) / (1.0 - drawn), 1.0 + self.sizes * drawn / (1.0 - drawn))
        own = (self.s**2) * ((1.0 - drawn) @ self.member.T)
        around = self.d - self.s * ((np.sqrt(drawn) * shared) @ self.member.T)
        prior = self.weight / self.tau**2
        self.true = self._normal(around / own + prior * (self.mu + self.preset @ self.member.T), 1.0 / own + prior)

    def _scale_of(self, squares: _Values, n: int) -> _Values:
        """Draw a scale with a half-normal prior, conditional on the sum of n squares, from a grid with even steps in the logarithm."""
        return self.scales[self._place((1.0 - n) * self.logs - squares / self.twice - self.prior)][:, None]

    def _place(self, density: _Values) -> NDArray[np.intp]:
        """Draw an index along the last axis from the given log density."""
        place: NDArray[np.intp] = np.argmax(density + self.generator.gumbel(size=density.shape), axis=-1)
        return place

    def _normal(self, total: _Values, precision: _Values) -> _Values:
        return np.asarray(total / precision + self.generator.standard_normal(total.shape) / np.sqrt(precision))
