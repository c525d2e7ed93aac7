"""Pairwise comparison of methods over a declared family of tests: the default path from cells to verdicts."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.stats.crossed import mean_estimate
from cglsuite.stats.pairwise import Difference, Effect, crossed_g, crossed_t, hedges_g, paired_t, welch, wilcoxon
from cglsuite.stats.refusal import Refused
from cglsuite.stats.replication import LEVELS, Cells, Replicates, replicates

__all__ = ["ADJUSTMENTS", "COMPARISON_COLUMNS", "NO_DIFFERENCE", "TESTS", "adjust", "compare_methods", "condition_of"]

TESTS = ("t", "wilcoxon")
"""``t``: Student's t (paired), Welch's t (independent) or the quasi-F (crossed factors), as the design asks; ``wilcoxon``: the signed-rank
test, for pairs over one factor only."""
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
) -> pd.DataFrame:
    """Test pairs of methods on one scenario and one metric; a test that the data do not support is refused and has no p value.

    The design decides the test (see :mod:`cglsuite.stats.replication`). Over one factor, methods run in the same units are compared in
    pairs, others by Welch's test; over orders crossed with seeds, by the quasi-F of the paired differences. Where all possible orders were
    run, they are the population, and seeds alone are replicates. With a single order or a single seed, the claim is about that one only.

    Args:
        frame: one row per cell: columns method, value, and whichever of order, split and seed the design has.
        pairs: the declared family; default all pairs of methods, or those with ``against``.
        adjustment: ``holm`` or ``benjamini-hochberg``, over all declared pairs. alpha: level of the family; intervals have level 1 - alpha.
        orders_in_all: how many orders there are, where the scenario's tasks can arrive in so many only.

    Returns:
        One row per pair: first, second; unit, n, n_second (values of each), replicates (these as text), averaged (cells per value),
        given (the single order or seed that the claim is about), population (``all 120 orders``, or empty), paired; test, estimate
        (difference of means, of Wilcoxon's test Hodges and Lehmann's, in the values' unit), low, high, interval (its kind; not adjusted for
        the family), statistic, df, p, p_adjusted; g, g_low, g_high, standardiser (see :func:`cglsuite.stats.hedges_g`); better (the method
        that is significantly better by the sign of the test's estimate, or empty), verdict (the same in words, :data:`NO_DIFFERENCE` or
        ``refused``); refused: the reason if there is no test, otherwise empty.

    Raises:
        UsageError: a column is absent, fewer than two methods, an alpha outside 0 to 1. UnknownNameError: a method or a test.
    """
    family = _family(frame, pairs, against)
    if test not in TESTS:
        raise UnknownNameError("test", test, TESTS)
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha = {alpha}: expected a level between 0 and 1")
    by_method = {str(name): Cells(part, orders_in_all) for name, part in frame.groupby("method", sort=False)}
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
        raise UsageError(f"the frame has the columns {', '.join(map(str, frame.columns))}: expected {wanted} as well")
    methods = [str(name) for name in frame["method"].drop_duplicates()]
    if len(methods) < 2:
        raise UsageError(f"{len(methods)} method: a comparison needs at least two")
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
        units = replicates(first, second)
        row |= {"unit": units.unit, "n": units.first.size, "n_second": units.second.size, "replicates": units.text}
        row |= {"paired": units.paired, "averaged": _averaged(units), "population": units.population}
        row |= {"given": ", ".join(f"{name} {value}" for name, value in units.given.items())}
        difference, effect = _tested(units, test, 1.0 - alpha)
    except Refused as refusal:
        return row | {"refused": str(refusal)}
    numbers = {name: value for name, value in asdict(difference).items() if name in COMPARISON_COLUMNS and name != "n"}
    return row | numbers | {"g": effect.g, "g_low": effect.low, "g_high": effect.high, "standardiser": effect.standardiser}


def _averaged(units: Replicates) -> str:
    one, two = units.averaged
    return str(one) if one == two else f"{one} and {two}"


def _tested(units: Replicates, test: str, level: float) -> tuple[Difference, Effect]:
    name = f"{units.factors[0]}s"
    if len(units.factors) == 2:
        if test == "wilcoxon":
            raise Refused(f"{units.unit} are crossed: Wilcoxon's signed-rank test is for pairs over one factor")
        difference = crossed_t(units.first, units.second, level=level, factors=(units.factors[0], units.factors[1]))
        return difference, crossed_g(mean_estimate(units.first - units.second, units.factors), level=level)
    if test == "wilcoxon" and not units.paired:
        raise Refused(f"the methods share no {units.unit}: Wilcoxon's signed-rank test needs pairs")
    chosen = wilcoxon if test == "wilcoxon" else paired_t if units.paired else welch
    difference = chosen(units.first, units.second, level=level, unit=name)
    return difference, hedges_g(units.first, units.second, paired=units.paired, level=level, unit=name)


def _better(row: dict[Any, Any], alpha: float, higher_is_better: bool) -> str:
    """An estimate of 0 names nobody."""
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


def condition_of(given: str) -> str:
    """What a claim is conditional on, in words.

    Args:
        given: the column ``given`` of a comparison.

    Example:
        >>> condition_of("order 0,1 | 2,3"), condition_of("seed 0"), condition_of("")
        ('in this one order', 'with this one seed', '')
    """
    names = [part.partition(" ")[0] for part in given.split(", ")]
    return " ".join(text for name, text in (("order", "in this one order"), ("seed", "with this one seed")) if name in names)


# Multiple testing: p values adjusted over a family declared before the data were seen.

ADJUSTMENTS = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}
"""Name here to name in statsmodels: Holm (1979) controls the family-wise error rate, Benjamini and Hochberg (1995) the false discovery
rate."""


def adjust(p: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    """Adjusted p values; compare them with the level of the whole family.

    A comparison that was declared and then refused stays in the family with p = 1, so an untestable comparison never makes the others look
    better.

    Args:
        p: float64 ``[m]``, one per declared comparison; NaN where it was refused. method: ``holm`` or ``benjamini-hochberg``.

    Returns:
        float64 ``[m]``; NaN stays NaN.

    Raises:
        UnknownNameError: another method. UsageError: a p outside 0 to 1.

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
        raise UsageError(f"p values outside 0 to 1: {', '.join(f'{one:g}' for one in outside[:3])}")
    if not known.any():
        return values
    with _out_of_the_collectors_way():
        adjusted = multipletests(np.where(known, values, 1.0), method=ADJUSTMENTS[method])[1]
    return np.where(known, adjusted, np.nan)


@contextlib.contextmanager
def _out_of_the_collectors_way() -> Iterator[None]:
    """statsmodels collects garbage at every adjustment by Holm. With thousands of records in memory that takes a second; what is there
    already need not be searched."""
    if gc.get_freeze_count():  # somebody else's, which must stay frozen
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
