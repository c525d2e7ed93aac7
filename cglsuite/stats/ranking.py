"""Rank several methods over common blocks with Friedman's test, Nemenyi's comparisons and the critical difference (Demšar 2006)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.base.markup import several
from cglsuite.stats.compare import NO_DIFFERENCE, adjust
from cglsuite.stats.pairwise import welch, wilcoxon
from cglsuite.stats.refusal import Refused, require_complete, require_frame

_MIN_LEVELS = 3


@dataclass(frozen=True, kw_only=True)
class Friedman:
    """The result of Friedman's test on the ranks of methods over blocks.

    Args:
        average_ranks: average rank by method, 1 = best; ties share the average of the ranks they span.
        statistic, df, p: Friedman's test, corrected for ties, with the chi-squared approximation.
        nemenyi: p values of all pairs, as a labelled square table. critical_difference: critical difference of average ranks at level
            ``alpha``.
    """

    average_ranks: pd.Series
    n_blocks: int
    statistic: float
    df: int
    p: float
    nemenyi: pd.DataFrame
    critical_difference: float
    alpha: float

    @property
    def separates(self) -> bool:
        """Whether Friedman's test is significant. Pairs are compared only if it is."""
        return self.p <= self.alpha


def friedman(frame: pd.DataFrame, *, higher_is_better: bool = True, alpha: float = 0.05) -> Friedman:
    """Test whether the average ranks of the methods differ, and which pairs differ.

    Args:
        frame: columns method, order (the block: a unit of replication, see :mod:`cglsuite.stats.replication`), value.

    Raises:
        Refused: there are fewer than three methods or blocks; a value is missing; all methods are tied in every block; or the critical
            difference is so large that even a method that is always first would not differ from one that is always last.
    """
    from scikit_posthocs import posthoc_nemenyi_friedman
    from scipy import stats

    table = ranks(frame, higher_is_better=higher_is_better)
    n_blocks, n_methods = table.shape
    for n, name in ((n_methods, "methods"), (n_blocks, "blocks")):
        if n < _MIN_LEVELS:
            raise Refused(f"{n} {name if n != 1 else name.removesuffix('s')}: Friedman's test needs at least {_MIN_LEVELS}")
    if float(np.ptp(table.to_numpy())) == 0.0:
        raise Refused(f"all {n_methods} methods are tied in all {n_blocks} blocks, so there are no ranks to compare")
    distance = critical_difference(n_methods, n_blocks, alpha)
    if distance > n_methods - 1:
        raise Refused(
            f"with {n_blocks} blocks of {n_methods} methods, the critical difference is {distance:.2f} ranks, but ranks "
            f"cannot differ by more than {n_methods - 1}"
        )
    result = stats.friedmanchisquare(*table.to_numpy(dtype=np.float64).T)
    return Friedman(
        average_ranks=table.mean(axis=0),
        n_blocks=n_blocks,
        statistic=float(result.statistic),
        df=n_methods - 1,
        p=float(result.pvalue),
        nemenyi=posthoc_nemenyi_friedman(table),
        critical_difference=distance,
        alpha=alpha,
    )


def critical_difference(n_methods: int, n_blocks: int, alpha: float = 0.05) -> float:
    """Compute Nemenyi's critical difference ``q_α √(k(k+1) / 6N)`` (1963), where q is the studentised range over √2.

    Example:
        >>> round(critical_difference(4, 14), 2)
        1.25
    """
    from scipy import stats

    q = float(stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf)) / sqrt(2.0)
    return q * sqrt(n_methods * (n_methods + 1) / (6.0 * n_blocks))


# Ranks of methods within scenarios, by category of method, and Welch's tests between categories: Figure 7 of BeGin as a function.
# Ko et al. (ACM TIST 16(1), 2025) rank the methods of the compared categories within each scenario and compare the pooled ranks of two
# categories by Welch's t-test. Ranks within a scenario are not independent, and neither are a method's ranks in several scenarios, so these
# p values reproduce the paper's figure and are not evidence at face value: ``tests/benchmarks/significance.py`` measures their false
# positive rate. With scenarios as units, the mean ranks of two categories in a scenario are a pair.

CATEGORIES: Mapping[str, Sequence[str]] = {
    "regularization-based": ("lwf", "ewc", "mas", "twp"),
    "replay-based": ("gem", "er-gnn"),
    "parameter-isolation-based": ("packnet", "piggyback", "hat", "pi-gnn"),
}
"""The categories of BeGin's Figure 7, by the names of their methods in lower case."""
TIES = ("min", "average", "max")
"""How ties are ranked: the lowest of the ranks that they span (as in BeGin), their average (as in Friedman's test), or the highest."""
MIN_SCENARIOS = 6
"""Scenarios from which on categories are compared over them."""
_DECIMALS = 12


def rank_table(frame: pd.DataFrame, *, ties: str, within: Sequence[str] = ("scenario",), higher_is_better: bool = True) -> pd.DataFrame:
    """Rank each method among the methods that have a value in the same scenario, 1 = best.

    Args:
        frame: columns method, value and those named in ``within``. ties: one of :data:`TIES`. There is no default, because the rule changes
            the results.

    Returns:
        The frame with an additional column rank (float64).

    Raises:
        UnknownNameError: the rule for ties is unknown. Refused: a value is NaN, or a method occurs twice in a scenario.

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
    """Compute the mean rank of each method over the scenarios in which it has a value.

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
    """Compute the ranks pooled in Figure 7 of BeGin, one per scenario and categorised method. Other methods are not ranked.

    Args:
        frame: columns scenario, method, value, with one row per method and scenario. categories: the methods in each category, in lower
            case.

    Returns:
        Columns scenario, category, method, value, rank, in the order of ``categories``.

    Raises:
        UsageError: a method is in two categories. Refused: a value is NaN, or a method occurs twice in a scenario.
    """
    members: dict[str, str] = {}
    for category, methods in categories.items():
        for method in methods:
            if members.setdefault(method.lower(), category) != category:
                raise UsageError(f"method {method!r} is in the categories {members[method.lower()]!r} and {category!r}; expected only one")
    mine = frame.assign(category=frame["method"].str.lower().map(members)).dropna(subset="category")
    ranked = rank_table(mine, ties=ties, higher_is_better=higher_is_better)
    order = {category: place for place, category in enumerate(categories)}
    ranked = ranked.sort_values("category", key=lambda column: column.map(order), kind="stable").reset_index(drop=True)
    return ranked[["scenario", "category", "method", "value", "rank"]]


def category_tests(ranked: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare the ranks of each pair of categories with Welch's t-test.

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


def scenario_tests(ranked: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    """Compare the mean ranks of each pair of categories with Wilcoxon's signed-rank test, paired over the scenarios that have both.

    The conclusion applies to the ranked methods in scenarios like these.

    Args:
        ranked: what :func:`category_ranks` returns. alpha: family-wise level of Holm's adjustment over all pairs; the interval has level 1
            - alpha.

    Returns:
        Columns first, second, scenarios, wins, losses (scenarios in which the first has the lower and the higher mean rank), estimate
        (Hodges-Lehmann difference of mean ranks), low, high, statistic, p, p_adjusted, verdict, refused (empty, or why there is no test). A
        negative estimate favours the first.
    """
    table = ranked.groupby(["scenario", "category"], sort=False)["rank"].mean().unstack()
    rows = []
    for first, second in combinations(dict.fromkeys(ranked["category"]), 2):
        both = table[[first, second]].dropna()
        difference = both[first] - both[second]
        row = {"first": first, "second": second, "scenarios": len(both), "p": np.nan, "refused": ""}
        row |= {"wins": int((difference < 0).sum()), "losses": int((difference > 0).sum())}
        try:
            if len(both) < MIN_SCENARIOS:
                raise Refused(
                    f"only {several(len(both), 'scenario')} with both categories; a test over scenarios needs at least {MIN_SCENARIOS}"
                )
            tested = wilcoxon(both[first], both[second], level=1.0 - alpha, unit="scenarios")
            row |= {"estimate": tested.estimate, "low": tested.low, "high": tested.high, "statistic": tested.statistic, "p": tested.p}
        except Refused as refusal:
            row["refused"] = str(refusal)
        rows.append(row)
    columns = [
        "first",
        "second",
        "scenarios",
        "wins",
        "losses",
        "estimate",
        "low",
        "high",
        "statistic",
        "p",
        "p_adjusted",
        "verdict",
        "refused",
    ]
    tests = pd.DataFrame(rows, columns=columns)
    tests["p_adjusted"] = adjust(tests["p"].astype(float))
    tests["verdict"] = [_category_verdict(row, alpha) for row in tests.to_dict(orient="records")]
    return tests.astype(dict.fromkeys(("estimate", "low", "high", "statistic", "p", "p_adjusted"), "float64"))


def _category_verdict(row: Mapping[Hashable, Any], alpha: float) -> str:
    if row["refused"]:
        return "refused"
    if not row["p_adjusted"] <= alpha or not row["estimate"]:
        return NO_DIFFERENCE
    return f"{row['first'] if row['estimate'] < 0.0 else row['second']} ranks better"


# Does the ranking of methods depend on the order? Ranks within each order, pairwise win shares, Kendall's W.
# Frames have a row per method and order: columns ``method``, ``order``, ``value``; higher is better by default. Ties get the average of the
# ranks they span and count as half a win for each side. Values are compared to twelve decimals, so means that differ only by the order of
# summation are a tie.


def order_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds for each method and order, since the unit of replication is the order, not the seed within an order.

    Args:
        frame: columns method, order, seed, value, without gaps (see :func:`cglsuite.stats.replication.complete_block`).

    Returns:
        Columns method, order, value, n_seeds, in the frame's order.

    Raises:
        Refused: a value is NaN, a cell occurs twice, or the numbers of seeds differ.
    """
    require_frame(frame, ["method", "order", "seed"])
    groups = frame.groupby(["method", "order"], sort=False)["value"]
    means = pd.DataFrame({"value": groups.mean(), "n_seeds": groups.size()}).reset_index()
    if means["n_seeds"].nunique() > 1:
        raise Refused(f"there are {means['n_seeds'].min()} to {means['n_seeds'].max()} seeds per method and order; expected equal numbers")
    return means


def ranks(frame: pd.DataFrame, *, higher_is_better: bool = True) -> pd.DataFrame:
    """Rank the methods within each order, 1 = best. Ties get their average rank.

    Returns:
        Labelled float64 ``[orders, methods]``, in the frame's order.

    Raises:
        Refused: there are fewer than two methods, a method lacks an order, or a value is NaN.
    """
    table = _table(frame)
    return table.rank(axis=1, ascending=not higher_is_better, method="average")


def win_shares(frame: pd.DataFrame, *, higher_is_better: bool = True) -> pd.DataFrame:
    """Compute the share of orders in which the method of the row beats the method of the column. Ties count half.

    Returns:
        Labelled float64 ``[methods, methods]``; NaN on the diagonal. Opposite entries sum to 1.

    Raises:
        Refused: as in :func:`ranks`.
    """
    table = _table(frame) if higher_is_better else -_table(frame)
    values = table.to_numpy(dtype=np.float64)
    first, second = values[:, :, None], values[:, None, :]
    shares = ((first > second) + 0.5 * (first == second)).mean(axis=0)
    np.fill_diagonal(shares, np.nan)
    return pd.DataFrame(shares, index=table.columns, columns=table.columns)


def kendalls_w(frame: pd.DataFrame) -> float:
    """Compute Kendall's coefficient of concordance, which is 1 if all orders rank the methods identically and about 1/m by chance.

    ``W = 12 S / (m² (n³ - n) - m Σ_o Σ_g (t_g³ - t_g))`` with m orders, n methods, S the sum of squared deviations of the methods' rank
    sums from their mean, and t_g the sizes of the groups of ties in order o (Kendall & Gibbons 1990).

    Raises:
        Refused: there are fewer than three orders; all methods are tied in every order; or as in :func:`ranks`.
    """
    table = ranks(frame)
    m, n = table.shape
    if m < 3:
        raise Refused(f"{m} orders: Kendall's W needs at least 3")
    sums = table.to_numpy(dtype=np.float64).sum(axis=0)
    sizes = [np.unique(row, return_counts=True)[1] for row in table.to_numpy(dtype=np.float64)]
    ties = sum(float((t**3 - t).sum()) for t in sizes)
    room = m**2 * (n**3 - n) - m * ties
    if room <= 0:
        raise Refused("all methods are tied in every order, so there is no ranking to agree on")
    return float(12.0 * ((sums - sums.mean()) ** 2).sum() / room)


def _table(frame: pd.DataFrame) -> pd.DataFrame:
    require_frame(frame, ["method", "order"])
    methods = frame["method"].drop_duplicates()
    if len(methods) < 2:
        raise Refused(f"a ranking needs at least 2 methods, but there is {len(methods)}")
    table = frame.pivot(index="order", columns="method", values="value")
    table = table.reindex(index=frame["order"].drop_duplicates(), columns=methods)
    require_complete(table, "values (order × method)")
    return table.round(_DECIMALS)


# What a number of trials buys: the expected best of n of N scores.


def expected_best(scores: Sequence[float]) -> pd.DataFrame:
    """Compute the mean and standard deviation of the best of n scores over all subsets of size n of the N scores, for n = 1 to N.

    With the scores sorted, ``v_1 <= ... <= v_N``, the best of a random subset of size n is ``v_i`` with probability ``C(i-1, n-1) / C(N,
    n)``. This is the estimator of Dodge et al., Show Your Work, EMNLP 2019, but without replacement.

    Args:
        scores: scores of N trials; higher is better.

    Returns:
        Columns n (1 to N), mean, std: exact over subsets, so std is 0 at n = N.

    Raises:
        Refused: there are no scores, or a score is not finite.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if not values.size or not np.isfinite(values).all():
        raise Refused("the best of n trials cannot be computed, because some trials have no finite score")
    rows = []
    for n in range(values.size, 0, -1):
        weights = _weights(values.size, n)
        mean = float(weights @ values)
        rows.append({"n": n, "mean": mean, "std": float(np.sqrt(weights @ (values - mean) ** 2))})
    return pd.DataFrame(rows[::-1])


def _weights(total: int, n: int) -> NDArray[np.float64]:
    """Return the probability that the i-th smallest of ``total`` scores is the largest of n draws, by a recursion that cannot overflow."""
    weights = np.zeros(total)
    weights[-1] = n / total
    for i in range(total - 1, n - 1, -1):  # C(i-1, n-1) / C(i, n-1) = (i - n + 1) / i
        weights[i - 1] = weights[i] * (i - n + 1) / i
    return weights
