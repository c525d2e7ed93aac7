"""Ranks of methods within scenarios, by category of method, and Welch's tests between categories: Figure 7 of BeGin as a function.

Ko et al. (ACM TIST 16(1), 2025) rank the methods of the compared categories within each scenario and compare the pooled ranks of two
categories by Welch's t-test. Ranks within a scenario are not independent, and neither are a method's ranks in several scenarios, so
these p values reproduce the paper's figure and are not evidence at face value: ``tests/benchmarks/significance.py`` measures their false
positive rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.stats.pairwise import welch
from cglsuite.stats.refusal import Refused, require_frame

__all__ = ["CATEGORIES", "TIES", "average_ranks", "category_ranks", "category_tests", "rank_table"]

CATEGORIES: Mapping[str, Sequence[str]] = {
    "regularization-based": ("lwf", "ewc", "mas", "twp"),
    "replay-based": ("gem", "er-gnn"),
    "parameter-isolation-based": ("packnet", "piggyback", "hat", "pi-gnn"),
}
"""The categories of BeGin's Figure 7, by the names of their methods in lower case."""
TIES = ("min", "average", "max")
"""The rank of tied methods: the lowest of the ranks they span (as in BeGin), their average (as in Friedman's test), or the highest."""
_DECIMALS = 12


def rank_table(frame: pd.DataFrame, *, ties: str, within: Sequence[str] = ("scenario",), higher_is_better: bool = True) -> pd.DataFrame:
    """The rank of every method among the methods with a value in the same scenario, 1 = best.

    Args:
        frame: columns method, value and those of ``within``. ties: one of :data:`TIES`; no default, since it changes results.

    Returns:
        The frame with a column rank (float64).

    Raises:
        UnknownNameError: another rule for ties. Refused: NaN, a method twice in a scenario.

    Example:
        >>> frame = pd.DataFrame({"scenario": "s", "method": ["a", "b", "c"], "value": [0.9, 0.9, 0.5]})
        >>> rank_table(frame, ties="min")["rank"].tolist(), rank_table(frame, ties="average")["rank"].tolist()
        ([1.0, 1.0, 3.0], [1.5, 1.5, 3.0])
    """
    if ties not in TIES:
        raise UnknownNameError("rule for ties", ties, TIES)
    require_frame(frame, [*within, "method"])
    values = frame["value"].round(_DECIMALS).groupby([frame[name] for name in within], sort=False)
    return frame.assign(rank=values.rank(method=ties, ascending=not higher_is_better).astype("float64"))


def average_ranks(frame: pd.DataFrame, *, ties: str, higher_is_better: bool = True) -> pd.DataFrame:
    """The mean rank of every method over the scenarios in which it has a value.

    Returns:
        Columns method, rank, n_scenarios; best first.

    Raises:
        As :func:`rank_table`.
    """
    groups = rank_table(frame, ties=ties, higher_is_better=higher_is_better).groupby("method", sort=False)["rank"]
    averages = pd.DataFrame({"rank": groups.mean(), "n_scenarios": groups.size()}).reset_index()
    return averages.sort_values("rank", kind="stable").reset_index(drop=True)


def category_ranks(
    frame: pd.DataFrame,
    categories: Mapping[str, Sequence[str]] = CATEGORIES,
    *,
    ties: str = "min",
    higher_is_better: bool = True,
) -> pd.DataFrame:
    """The ranks that Figure 7 pools: one per scenario and method that belongs to a category; other methods take no rank.

    Args:
        frame: columns scenario, method, value; one row per method and scenario. categories: methods by category, in lower case.

    Returns:
        Columns scenario, category, method, value, rank, in the order of ``categories``.

    Raises:
        UsageError: a method in two categories. Refused: NaN, a method twice in a scenario.
    """
    members: dict[str, str] = {}
    for category, methods in categories.items():
        for method in methods:
            if members.setdefault(method.lower(), category) != category:
                raise UsageError(f"method {method!r} is in the categories {members[method.lower()]!r} and {category!r}: expected one")
    mine = frame.assign(category=frame["method"].str.lower().map(members)).dropna(subset="category")
    ranked = rank_table(mine, ties=ties, higher_is_better=higher_is_better)
    order = {category: place for place, category in enumerate(categories)}
    ranked = ranked.sort_values("category", key=lambda column: column.map(order), kind="stable").reset_index(drop=True)
    return ranked[["scenario", "category", "method", "value", "rank"]]


def category_tests(ranked: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Welch's t-test between the ranks of every two categories.

    Args:
        ranked: what :func:`category_ranks` returns.

    Returns:
        Columns first, second, n, n_second (ranks of each), t, df, p, estimate (difference of mean ranks), low, high, refused (empty, or why
        there is no test). A negative t favours the first: its ranks are lower.
    """
    rows = []
    samples = {str(name): part["rank"].to_numpy(dtype="float64") for name, part in ranked.groupby("category", sort=False)}
    for first, second in combinations(samples, 2):
        row = {"first": first, "second": second, "n": samples[first].size, "n_second": samples[second].size, "refused": ""}
        try:
            tested = welch(samples[first], samples[second], level=level, unit="ranks")
        except Refused as refusal:
            rows.append(row | {"refused": str(refusal)})
            continue
        interval = {"estimate": tested.estimate, "low": tested.low, "high": tested.high}
        rows.append(row | {"t": tested.statistic, "df": tested.df, "p": tested.p} | interval)
    return pd.DataFrame(rows, columns=["first", "second", "n", "n_second", "t", "df", "p", "estimate", "low", "high", "refused"])
