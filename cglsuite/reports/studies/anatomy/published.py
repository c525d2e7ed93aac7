"""Published statistics of data sets beside ours: what papers print of sizes, classes, tasks, homophily and averages per task."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.campaigns.reference import dataset_statistics
from cglsuite.campaigns.reference.matching import dataset_key
from cglsuite.campaigns.reference.papers import paper_named, paper_of
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.studies.anatomy.causes import COLUMN_OF, Count, cause_of

if TYPE_CHECKING:
    from cglsuite.reports.studies.anatomy.compute import Anatomy

__all__ = ["COLUMNS", "averaged_over_tasks", "counted", "published_beside"]

COLUMNS = ["paper", "dataset", "setting", "quantity", "published", "ours", "equal", "cause", "check", "remark"]
_NUMBER = r"([\d,]+(?:\.\d+)?)(K?)(?=$|[;,\s])"
_ROUNDED = {"K": 1_000.0, "M": 1_000_000.0}
_THREE_DIMENSIONS = 3


def published_beside(anatomy: Anatomy) -> pd.DataFrame:
    """Every statistic that a paper prints of this data set and that is counted here.

    Of a scenario: the rows of its paper and setting; of a data set alone: what each paper prints of the data set itself.

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
    """Every number that a row of ``dataset_statistics`` prints, beside a count of the data.

    Args:
        anatomy: of the row's scenario, or of its data set alone, of which tasks and classes are not counted; ``None`` without data.

    Yields:
        paper, dataset (as printed), setting, quantity, published, ours (NaN where it is not counted), equal (to the printed digits, rounded
        or cut; ``None`` where ours is not counted), cause and check (see :func:`cglsuite.reports.studies.anatomy.causes.cause_of`), remark
        (a contradiction in the paper).
    """
    place = {name: row[name] for name in ("paper", "dataset", "setting")}
    said, _, remark = str(row["note"]).partition("suspect: ")
    tasks = anatomy is None or bool(anatomy.setting)
    for quantity, published, unit, count in [*_printed_columns(row), *_printed_notes(said)]:
        if not tasks and quantity in _OF_TASKS:
            continue
        ours = math.nan if anatomy is None else count(anatomy)
        facts = {} if anatomy is None else _facts(anatomy)
        one = Count(row=row, quantity=quantity, published=published, unit=unit, ours=math.nan if ours is None else ours, facts=facts)
        cause, check = cause_of(one)
        if check in ("open", "fails") and anatomy is not None and quantity in _MEANS and len(anatomy.orders) < _orders(row):
            cause, check = f"a mean over {_orders(row)} orders of classes; ours is of {len(anatomy.orders)}", "not checked"
        numbers = {"quantity": quantity, "published": published, "ours": one.ours, "equal": one.equal}
        yield {**place, **numbers, "cause": cause, "check": check, "remark": remark.removesuffix("; ")}


def averaged_over_tasks(row: Mapping[str, Any]) -> bool:
    """Whether a row prints means over tasks, which depend on the order of classes."""
    return any(quantity in _MEANS for quantity, *_ in _printed_notes(str(row["note"]).partition("suspect: ")[0]))


def _orders(row: Mapping[str, Any]) -> int:
    return len(paper_named(row["paper"]).seeds.get("order", (0,)))


def _facts(anatomy: Anatomy) -> dict[str, float]:
    """Of the whole data set, with the pairs of a task on average."""
    pairs = _mean("pairs")(anatomy)
    return {name: float(value) for name, value in anatomy.whole.items()} | ({} if pairs is None else {"mean_pairs": pairs})


# --- what is printed, and how ours is counted ------------------------------------------------------------------------------------

_Counter = Callable[["Anatomy"], "float | None"]
_Printed = tuple[str, float, float, _Counter]


def _whole(name: str) -> _Counter:
    return lambda anatomy: anatomy.whole.get(name)


def _mean(name: str) -> _Counter:
    """Over tasks, and over orders where there are several."""
    return lambda anatomy: float(anatomy.whole.get(f"mean_{name}", anatomy.groups[name].mean()))


def _per_graph(name: str) -> _Counter:
    return lambda anatomy: anatomy.whole[name] / anatomy.whole["graphs"] if anatomy.whole.get("graphs") else None


def _classes(anatomy: Anatomy) -> float | None:
    return None if anatomy.shares is None else float((anatomy.shares > 0).any(axis=0).sum())


def _degree(anatomy: Anatomy) -> float | None:
    return 2 * anatomy.whole["pairs"] / anatomy.whole["nodes"]


_COUNTED: Mapping[str, _Counter] = {
    "nodes": _whole("nodes"),
    "edges": _whole("edges"),
    "nodes per graph": _per_graph("nodes"),
    "edges per graph": _per_graph("edges"),
    "features": _whole("features"),
    "edge features": _whole("edge_features"),
    "graphs": _whole("graphs"),
    "classes": _classes,
    "tasks": lambda anatomy: float(len(anatomy.groups)),
}
_NOTED: Mapping[str, tuple[str, _Counter]] = {
    "mean labels per node": ("labels per node", _whole("labels")),
    "label homophily of the full graph": ("label homophily, full graph", _whole("homophily")),
    "homophily": ("label homophily, full graph", _whole("homophily")),
    "average degree": ("mean degree", _degree),
    "frames per sequence": ("frames per sequence", lambda anatomy: anatomy.whole["features"] / _THREE_DIMENSIONS),
    "mean label homophily of the subgraphs in this setting": ("label homophily, mean over tasks", _mean("homophily")),
    "average subgraph nodes": ("nodes per task", _mean("nodes")),
    "average subgraph edges": ("edges per task", _mean("edges")),
    "average nodes per task": ("nodes per task", _mean("nodes")),
    "average edges per task": ("edges per task", _mean("edges")),
    "average graphs per task": ("graphs per task", _mean("items")),
    "average sequences per task": ("graphs per task", _mean("items")),
}
"""What notes say of a data set, by their words."""
_MEANS = ("label homophily, mean over tasks", "nodes per task", "edges per task", "graphs per task")
_OF_TASKS = ("classes", "tasks", *_MEANS)


def _printed_columns(row: Mapping[str, Any]) -> Iterator[_Printed]:
    """BeGin prints averages per graph and CGLB totals; the nodes of skeletons are the joints of one."""
    per_graph = bool(row["n_graphs"]) and row["paper"] != "CGLB"
    for quantity, column in COLUMN_OF.items():
        if row[column] and (per_graph or not quantity.endswith("per graph")) and not (per_graph and quantity in ("nodes", "edges")):
            yield quantity, float(row[column]), _unit(row, column), _COUNTED[quantity]


def _unit(row: Mapping[str, Any], column: str) -> float:
    """Of the last printed digit; ``printed rounded: 3K nodes, 7.34M edges`` in a note says what the cell does not."""
    rounded = re.search(rf"printed rounded: .*?\b([\d.]+)([KM]) {column.removeprefix('n_')}", row["note"])
    if rounded:
        return _ROUNDED[rounded[2]] * 10.0 ** -_decimals(rounded[1])
    return 10.0 ** -_decimals(row[column])


def _decimals(digits: str) -> int:
    return len(digits.partition(".")[2])


def _printed_notes(note: str) -> Iterator[_Printed]:
    for words, (quantity, count) in _NOTED.items():
        found = re.search(rf"(?:^|; ){re.escape(words)} {_NUMBER}", note)
        if found:
            scale = _ROUNDED.get(found[2], 1.0)
            yield quantity, float(found[1].replace(",", "")) * scale, scale * 10.0 ** -_decimals(found[1]), count
