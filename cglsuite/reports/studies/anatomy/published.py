"""Published statistics of data sets next to ours: sizes, classes, tasks, homophily and averages per task."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.campaigns.reference import dataset_statistics, statistic_causes
from cglsuite.campaigns.reference.values import dataset_key, paper_named, paper_of
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.studies.anatomy.compute import Anatomy

COLUMNS = ["paper", "dataset", "setting", "quantity", "published", "ours", "equal", "cause", "check", "remark"]
_NUMBER = r"([\d,]+(?:\.\d+)?)(K?)(?=$|[;,\s])"
_ROUNDED = {"K": 1_000.0, "M": 1_000_000.0}
_THREE_DIMENSIONS = 3


def published_beside(anatomy: Anatomy) -> pd.DataFrame:
    """Compare every published statistic of this data set with our count, if there is one.

    A scenario uses the rows of its paper and setting. A data set alone uses what each paper prints about the data set itself.

    Returns:
        The columns of :func:`counted`.
    """
    table = dataset_statistics()
    mine = table[table["dataset"].map(dataset_key) == dataset_key(anatomy.dataset)]
    if anatomy.setting:
        paper = paper_of(anatomy.name.partition("@")[2])
        mine = mine[(mine["setting"].str.lower() == anatomy.setting) & (mine["paper"] == (paper.name if paper else ""))]
    rows = [line for row in as_rows(mine) for line in counted(row, anatomy) if line["equal"] is not None]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame if anatomy.setting else frame.assign(setting="").drop_duplicates(ignore_index=True)


def counted(row: Mapping[str, Any], anatomy: Anatomy | None = None) -> Iterator[dict[str, Any]]:
    """Compare every number in a row of ``dataset_statistics`` with a count of the data.

    Args:
        anatomy: of the row's scenario, or of its data set alone, of which tasks and classes are not counted; ``None`` without data.

    Yields:
        paper, dataset (as printed), setting, quantity, published, ours (NaN where it is not counted), equal (to the printed digits, rounded
        or cut; ``None`` where ours is not counted), cause and check (see :func:`cause_of`), remark
        (a contradiction in the paper).
    """
    place = {name: row[name] for name in ("paper", "dataset", "setting")}
    said, _, remark = str(row["note"]).partition("suspect: ")
    tasks = anatomy is None or bool(anatomy.setting)
    for quantity, published, unit, count in [*_printed_columns(row), *_printed_notes(said)]:
        if not tasks and quantity in _OF_TASKS:
            continue
        ours = math.nan if anatomy is None else count(anatomy)
        facts = {} if anatomy is None else {**anatomy.whole, "mean_pairs": _mean("pairs")(anatomy)}
        result = Count(row=row, quantity=quantity, published=published, unit=unit, ours=math.nan if ours is None else ours, facts=facts)
        cause, check = cause_of(result)
        if check in ("open", "fails") and anatomy is not None and quantity in _MEANS and len(anatomy.orders) < _orders(row):
            cause, check = f"a mean over {_orders(row)} orders of classes; ours is of {len(anatomy.orders)}", "not checked"
        numbers = {"quantity": quantity, "published": published, "ours": result.ours, "equal": result.equal}
        yield {**place, **numbers, "cause": cause, "check": check, "remark": remark.removesuffix("; ")}


def averaged_over_tasks(row: Mapping[str, Any]) -> bool:
    """Return whether a row contains means over tasks, which depend on the class order."""
    return any(quantity in _MEANS for quantity, *_ in _printed_notes(str(row["note"]).partition("suspect: ")[0]))


def _orders(row: Mapping[str, Any]) -> int:
    return len(paper_named(row["paper"]).seeds.get("order", (0,)))


# --- what is printed, and how ours is counted ------------------------------------------------------------------------------------

_Counter = Callable[["Anatomy"], "float | None"]
_Printed = tuple[str, float, float, _Counter]


def _count_of_dataset(name: str) -> _Counter:
    return lambda anatomy: anatomy.whole.get(name)


def _mean(name: str) -> Callable[[Anatomy], float]:
    """The mean over tasks, and over orders if there are several."""
    return lambda anatomy: float(anatomy.whole.get(f"mean_{name}", anatomy.groups[name].mean()))


def _per_graph(name: str) -> _Counter:
    return lambda anatomy: anatomy.whole[name] / anatomy.whole["graphs"] if anatomy.whole.get("graphs") else None


_COUNTED: Mapping[str, _Counter] = {
    "nodes": _count_of_dataset("nodes"),
    "edges": _count_of_dataset("edges"),
    "nodes per graph": _per_graph("nodes"),
    "edges per graph": _per_graph("edges"),
    "features": _count_of_dataset("features"),
    "edge features": _count_of_dataset("edge_features"),
    "graphs": _count_of_dataset("graphs"),
    "classes": lambda anatomy: None if anatomy.shares is None else float((anatomy.shares > 0).any(axis=0).sum()),
    "tasks": lambda anatomy: float(len(anatomy.groups)),
}
_NOTED: Mapping[str, tuple[str, _Counter]] = {
    "mean labels per node": ("labels per node", _count_of_dataset("labels")),
    "label homophily of the full graph": ("label homophily, full graph", _count_of_dataset("homophily")),
    "homophily": ("label homophily, full graph", _count_of_dataset("homophily")),
    "average degree": ("mean degree", lambda anatomy: 2 * anatomy.whole["pairs"] / anatomy.whole["nodes"]),
    "frames per sequence": ("frames per sequence", lambda anatomy: anatomy.whole["features"] / _THREE_DIMENSIONS),
    "mean label homophily of the subgraphs in this setting": ("label homophily, mean over tasks", _mean("homophily")),
    "average subgraph nodes": ("nodes per task", _mean("nodes")),
    "average subgraph edges": ("edges per task", _mean("edges")),
    "average nodes per task": ("nodes per task", _mean("nodes")),
    "average edges per task": ("edges per task", _mean("edges")),
    "average graphs per task": ("graphs per task", _mean("items")),
    "average sequences per task": ("graphs per task", _mean("items")),
}
"""Quantities mentioned in notes on data sets, by the words used for them."""
_MEANS = ("label homophily, mean over tasks", "nodes per task", "edges per task", "graphs per task")
_OF_TASKS = ("classes", "tasks", *_MEANS)


def _printed_columns(row: Mapping[str, Any]) -> Iterator[_Printed]:
    """The columns that a row prints: BeGin prints averages per graph, CGLB totals; the nodes of skeletons are the joints of one."""
    per_graph = bool(row["n_graphs"]) and row["paper"] != "CGLB"
    for quantity, column in COLUMN_OF.items():
        if row[column] and (per_graph or not quantity.endswith("per graph")) and not (per_graph and quantity in ("nodes", "edges")):
            yield quantity, float(row[column]), _unit(row, column), _COUNTED[quantity]


def _unit(row: Mapping[str, Any], column: str) -> float:
    """Return the unit of the last printed digit. A note may state it, as in ``printed rounded: 3K nodes, 7.34M edges``."""
    rounded = re.search(rf"printed rounded: .*?\b([\d.]+)([KM]) {column.removeprefix('n_')}", row["note"])
    if rounded:
        return _ROUNDED[rounded[2]] * 10.0 ** -_decimals(rounded[1])
    return 10.0 ** -_decimals(row[column])


def _decimals(digits: str) -> int:
    return len(digits.partition(".")[2])


def _printed_notes(note: str) -> Iterator[_Printed]:
    for words, (quantity, count) in _NOTED.items():
        match = re.search(rf"(?:^|; ){re.escape(words)} {_NUMBER}", note)
        if match:
            scale = _ROUNDED.get(match[2], 1.0)
            yield quantity, float(match[1].replace(",", "")) * scale, scale * 10.0 ** -_decimals(match[1]), count


# Causes of deviations between printed statistics of data sets and our counts: rules that give the printed number, and so can be checked.
# A rule computes the number that a paper prints from the data (the facts of an :class:`~cglsuite.reports.studies.anatomy.compute.Anatomy`)
# or from what else the paper prints. A cause holds if this is the printed number, to the digits of the print.

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
"""The column of ``dataset_statistics`` that holds a quantity; the remaining quantities are in notes."""
CHECKS = ("holds", "fails", "not checked", "open")
"""Outcomes of checking a cause: the rule gives the printed number, or another one; its data are missing; there is no rule."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """A published statistic next to a count of the data.

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
        """Whether our count equals the published number to its printed digits, or ``None`` without data."""
        return None if math.isnan(self.ours) else is_printed_as(self.ours, self.published, self.unit)


def is_printed_as(value: float, published: float, unit: float) -> bool:
    """Return whether ``value``, rounded or truncated to a multiple of ``unit``, equals ``published``.

    Example:
        >>> is_printed_as(29.747, 29.7, 0.1), is_printed_as(37351, 37000, 1000), is_printed_as(5881, 5858, 1)
        (True, True, False)
    """
    slack = 1e-9 * max(abs(published), 1.0)
    difference = value - published
    return abs(difference) <= unit / 2 + slack or -slack <= difference < unit - slack


def cause_of(count: Count) -> tuple[str, str]:
    """Return the cause of a deviation and the outcome of its check, one of :data:`CHECKS`. Both are empty for equal numbers.

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
    return {(row["paper"], row["dataset"], row["quantity"], row["setting"]): row for row in as_rows(statistic_causes())}


# --- rules -----------------------------------------------------------------------------------------------------------------------


def _pairs(count: Count, _: str) -> float | None:
    """Undirected edges counted once, of the data set, of a graph or of a task."""
    pairs = count.facts.get("mean_pairs" if count.quantity == "edges per task" else "pairs")
    return None if pairs is None else pairs / (count.facts["graphs"] if count.quantity == "edges per graph" else 1.0)


def _total_over(count: Count, argument: str) -> float | None:
    """The printed total divided by a number."""
    what = count.quantity.partition(" ")[0]
    total = count.row[COLUMN_OF[what]]
    return float(total) / float(argument) if total else None


def _row(count: Count, argument: str) -> float | None:
    """The same column of another row (``paper/dataset``)."""
    paper, _, dataset = argument.partition("/")
    table = dataset_statistics()
    values = table[(table["paper"] == paper) & (table["dataset"] == dataset)][COLUMN_OF[count.quantity]]
    return float(values.iloc[0]) if len(values) else None


def _file_lines(count: Count, argument: str) -> float | None:
    """The number of lines in a raw file, one per edge; for a task, in proportion to its distinct pairs."""
    path = DataRoot.from_environment().find(argument)
    if path is None or not count.facts:
        return None
    with path.open("rb") as file:
        lines = sum(bool(line.strip()) for line in file)
    return lines * (count.facts["mean_pairs"] / count.facts["pairs"] if count.quantity == "edges per task" else 1.0)


RULES: Mapping[str, Callable[[Count, str], float | None]] = {
    "pairs": _pairs,
    "receivers": lambda count, _: count.facts.get("receivers"),  # nodes that a link leads to
    # categorical features behind indicators: the number of ones of a node or edge
    "indicators": lambda count, _: count.facts.get("edge_feature_sum" if count.quantity == "edge features" else "feature_sum"),
    "total over": _total_over,
    "row": _row,
    "product": lambda _, argument: math.prod(map(float, argument.split(" × "))),  # of two numbers, which the cause explains
    "lines": _file_lines,
    # mean homophily of the tasks of several orders where the list of classes seen goes on from order to order
    "carried classes": lambda count, _: count.facts.get("carried_homophily"),
}
"""By name, a rule that computes a published number from a count and an argument; ``None`` if its data are missing."""
