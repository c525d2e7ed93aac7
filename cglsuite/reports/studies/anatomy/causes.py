"""Causes of deviations between printed statistics of data sets and our counts: rules that give the printed number, and so can be checked.

A rule computes the number that a paper prints from the data (the facts of an :class:`~cglsuite.reports.studies.anatomy.compute.Anatomy`) or
from what else the paper prints. A cause holds if this is the printed number, to the digits of the print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.campaigns.reference import dataset_statistics, statistic_causes

__all__ = ["CHECKS", "COLUMN_OF", "RULES", "Count", "cause_of", "is_printed_as"]

COLUMN_OF: Mapping[str, str] = {
    "nodes": "n_nodes",
    "edges": "n_edges",
    "nodes per graph": "n_nodes",
    "edges per graph": "n_edges",
    "features": "n_features",
    "edge features": "n_edge_features",
    "graphs": "n_graphs",
    "classes": "n_classes",
    "tasks": "n_tasks",
}
"""The column of ``dataset_statistics`` in which a quantity stands; the others stand in notes."""
CHECKS = ("holds", "fails", "not checked", "open")
"""What becomes of a cause: the rule gives the printed number, or another one; the data for it are absent; there is no rule."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """A printed statistic beside a count of the data.

    Args:
        row: of ``dataset_statistics``. quantity: what is counted. published: the printed number; unit: of its last printed digit.
        ours: the same, counted here; NaN without data. facts: of the whole data set (``Anatomy.whole``); empty without data.
    """

    row: Mapping[str, Any]
    quantity: str
    published: float
    unit: float
    ours: float = math.nan
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def equal(self) -> bool | None:
        """Whether ours is the printed number, to its digits; ``None`` without data."""
        return None if math.isnan(self.ours) else is_printed_as(self.ours, self.published, self.unit)


def is_printed_as(value: float, published: float, unit: float) -> bool:
    """Whether ``value`` gives ``published`` when it is rounded to multiples of ``unit``, or cut.

    Example:
        >>> is_printed_as(29.747, 29.7, 0.1), is_printed_as(37351, 37000, 1000), is_printed_as(5881, 5858, 1)
        (True, True, False)
    """
    slack = 1e-9 * max(abs(published), 1.0)
    difference = value - published
    return abs(difference) <= unit / 2 + slack or -slack <= difference < unit - slack


def cause_of(count: Count) -> tuple[str, str]:
    """The cause of a deviation and what became of its check, one of :data:`CHECKS`; empty for numbers that are equal.

    Without data a cause is given if the paper's own numbers decide on it, or if it is known from elsewhere (``not checked``).
    """
    if count.equal:
        return "", ""
    place = (count.row["paper"], count.row["dataset"], count.quantity)
    row = _causes().get((*place, count.row["setting"])) or _causes().get((*place, ""))
    if row is None:
        return ("", "") if count.equal is None else ("not known", "open")
    if not row["rule"]:
        return row["cause"], "open" if count.equal is False else "not checked"
    expected = RULES[row["rule"]](count, row["argument"])
    if expected is None:
        return row["cause"], "not checked"
    return row["cause"], "holds" if is_printed_as(expected, count.published, count.unit) else "fails"


@cache
def _causes() -> dict[tuple[str, str, str, str], dict[str, str]]:
    rows: Any = statistic_causes().to_dict(orient="records")
    return {(row["paper"], row["dataset"], row["quantity"], row["setting"]): row for row in rows}


# --- rules -----------------------------------------------------------------------------------------------------------------------


def _pairs(count: Count, _: str) -> float | None:
    """Each undirected edge once, of the data set, of a graph or of a task."""
    pairs = count.facts.get("mean_pairs" if count.quantity == "edges per task" else "pairs") if count.facts else None
    return None if pairs is None else pairs / (count.facts["graphs"] if count.quantity == "edges per graph" else 1.0)


def _receivers(count: Count, _: str) -> float | None:
    """Nodes that a link leads to."""
    return count.facts.get("receivers") if count.facts else None


def _indicators(count: Count, _: str) -> float | None:
    """Categorical features behind indicators: the number of ones of a node or edge."""
    return count.facts.get("edge_feature_sum" if count.quantity == "edge features" else "feature_sum") if count.facts else None


def _total_over(count: Count, argument: str) -> float | None:
    """The printed total over a number."""
    what = count.quantity.partition(" ")[0]
    total = count.row[COLUMN_OF[what]]
    return float(total) / float(argument) if total else None


def _row(count: Count, argument: str) -> float | None:
    """What the same column of another row says (``paper/dataset``)."""
    paper, _, dataset = argument.partition("/")
    table = dataset_statistics()
    values = table[(table["paper"] == paper) & (table["dataset"] == dataset)][COLUMN_OF[count.quantity]]
    return float(values.iloc[0]) if len(values) else None


def _product(_: Count, argument: str) -> float | None:
    """Of two numbers, which the cause explains."""
    return math.prod(map(float, argument.split(" × ")))


def _lines(count: Count, argument: str) -> float | None:
    """Lines of a raw file, one per edge; of a task in proportion to its distinct pairs."""
    path = DataRoot.from_environment().find(argument)
    if path is None or not count.facts:
        return None
    with path.open("rb") as file:
        lines = sum(bool(line.strip()) for line in file)
    return lines * (count.facts["mean_pairs"] / count.facts["pairs"] if count.quantity == "edges per task" else 1.0)


def _carried(count: Count, _: str) -> float | None:
    """Mean homophily of the tasks of several orders where the list of classes seen goes on from order to order."""
    return count.facts.get("carried_homophily") if count.facts else None


RULES: Mapping[str, Callable[[Count, str], float | None]] = {
    "pairs": _pairs,
    "receivers": _receivers,
    "indicators": _indicators,
    "total over": _total_over,
    "row": _row,
    "product": _product,
    "lines": _lines,
    "carried classes": _carried,
}
"""By name: the number that a paper would print by a rule, from a count and the rule's argument; ``None`` where data are absent."""
