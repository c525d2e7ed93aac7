"""Published statistics of data sets beside ours: what papers print of sizes, classes, tasks, homophily and averages per task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.reference import dataset_statistics
from cglsuite.reference.matching import dataset_key
from cglsuite.reference.papers import paper_of
from cglsuite.reports.kit.rows import as_rows

if TYPE_CHECKING:
    from cglsuite.reports.studies.anatomy.compute import Anatomy

__all__ = ["CLOSE", "COLUMNS", "published_beside"]

COLUMNS = ["paper", "dataset", "setting", "quantity", "published", "counted", "ours", "agrees", "remark"]
CLOSE = 0.02
"""Statistics agree if they differ by at most this share, or not at all to the printed digits."""
_NUMBER = r"([\d,]+(?:\.\d+)?)(K?)(?=$|[;,\s])"


def published_beside(anatomy: Anatomy) -> pd.DataFrame:
    """Every statistic that a paper prints of this data set and that is computed here.

    Of a scenario: the rows of its paper and setting; of a data set alone: what each paper prints of the data set itself.

    Returns:
        Columns paper, dataset (as printed), setting, quantity, published, counted (how ours is counted, where there are several ways: the
        nearest), ours, agrees (within 2 %, or to the printed digits), remark (a contradiction in the paper).
    """
    table = dataset_statistics()
    mine = table[table["dataset"].map(dataset_key) == dataset_key(anatomy.dataset)]
    if anatomy.setting:
        paper = paper_of(anatomy.name.partition("@")[2])
        mine = mine[(mine["setting"].str.lower() == anatomy.setting) & (mine["paper"] == (paper.name if paper else ""))]
    rows = [found for row in as_rows(mine) for found in _of_row(row, anatomy)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame if anatomy.setting else frame.assign(setting="").drop_duplicates(ignore_index=True)


def _of_row(row: Mapping[str, Any], anatomy: Anatomy) -> Iterator[dict[str, Any]]:
    place = {name: row[name] for name in ("paper", "dataset", "setting")}
    note = str(row["note"])
    remark = note.partition("suspect: ")[2]
    for quantity, published, ways in [*_printed_columns(row, anatomy), *_printed_notes(note.partition("suspect: ")[0], anatomy)]:
        known = {words: value for words, value in ways.items() if value is not None and value == value}
        if published == published and known:
            counted = min(known, key=lambda words: abs(known[words] - published))
            ours = known[counted]
            agrees = _agree(ours, published, "printed rounded" in note)
            yield {
                **place,
                "quantity": quantity,
                "published": published,
                "counted": counted,
                "ours": ours,
                "agrees": agrees,
                "remark": remark,
            }


def _agree(ours: float, published: float, thousands: bool) -> bool:
    """``thousands``: large counts are printed as 3K, rounded or cut."""
    if abs(ours - published) <= CLOSE * abs(published):
        return True
    if thousands and published >= 1000:
        return published % 1000 == 0 and abs(ours - published) < 1000
    digits = len(f"{published:g}".partition(".")[2])
    return round(ours, digits) == published


_Ways = dict[str, float | None]


def _printed_columns(row: Mapping[str, Any], anatomy: Anatomy) -> Iterator[tuple[str, float, _Ways]]:
    whole = anatomy.whole
    graphs = whole.get("graphs")
    mean = graphs if graphs and row["paper"] == "BeGin" else 1.0  # BeGin prints averages per graph, CGLB totals
    per = " per graph" if graphs and row["paper"] == "BeGin" else ""
    if row["paper"] != "SkeletonCGL":  # whose nodes are joints
        yield f"nodes{per}", _value(row["n_nodes"]), {"": whole["nodes"] / mean}
    yield f"edges{per}", _value(row["n_edges"]), _edge_ways(whole["edges"] / mean, whole["pairs"] / mean, whole.get("loops", 0.0) / mean)
    yield "features", _value(row["n_features"]), {"": whole.get("features")}
    yield "graphs", _value(row["n_graphs"]), {"": graphs}
    if anatomy.setting:
        yield "classes", _value(row["n_classes"]), {"": _classes(anatomy)}
        yield "tasks", _value(row["n_tasks"]), {"": float(len(anatomy.groups))}


def _edge_ways(edges: float, pairs: float, loops: float) -> _Ways:
    ways: _Ways = {"as listed": edges, "distinct pairs": pairs}
    return ways | {"distinct pairs and self-loops": pairs + loops, "both directions": 2 * pairs} if loops or edges == pairs else ways


def _classes(anatomy: Anatomy) -> float | None:
    return None if anatomy.shares is None else float((anatomy.shares > 0).any(axis=0).sum())


def _mean(name: str) -> Callable[[Anatomy], _Ways]:
    return lambda a: {"": float(a.whole.get(f"mean_{name}", a.groups[name].mean()))}


def _mean_edges(anatomy: Anatomy) -> _Ways:
    (edges,), (pairs,) = _mean("edges")(anatomy).values(), _mean("pairs")(anatomy).values()
    return {"as listed": edges, "distinct pairs": pairs}


def _whole(name: str) -> Callable[[Anatomy], _Ways]:
    return lambda a: {"": a.whole.get(name)}


def _degree(anatomy: Anatomy) -> _Ways:
    whole = anatomy.whole
    return {"distinct neighbours": whole["mean_degree"], "2 × edges / nodes": 2 * whole["edges"] / whole["nodes"]}


_NOTED: Mapping[str, tuple[str, Callable[[Anatomy], _Ways]]] = {
    "mean labels per node": ("labels per node", _whole("labels")),
    "label homophily of the full graph": ("label homophily, full graph", _whole("homophily")),
    "homophily": ("label homophily, full graph", _whole("homophily")),
    "average degree": ("mean degree", _degree),
}
"""What notes say of a data set, by their words."""
_NOTED_OF_TASKS: Mapping[str, tuple[str, Callable[[Anatomy], _Ways]]] = {
    "mean label homophily of the subgraphs in this setting": ("label homophily, mean over tasks", _mean("homophily")),
    "average subgraph nodes": ("nodes per task", _mean("nodes")),
    "average subgraph edges": ("edges per task", _mean_edges),
    "average nodes per task": ("nodes per task", _mean("nodes")),
    "average edges per task": ("edges per task", _mean_edges),
    "average graphs per task": ("graphs per task", _mean("items")),
}


def _printed_notes(note: str, anatomy: Anatomy) -> Iterator[tuple[str, float, _Ways]]:
    for words, (quantity, ways) in {**_NOTED, **(_NOTED_OF_TASKS if anatomy.setting else {})}.items():
        found = re.search(rf"(?:^|; ){re.escape(words)} {_NUMBER}", note)
        if found:
            yield quantity, float(found[1].replace(",", "")) * (1000 if found[2] else 1), ways(anatomy)


def _value(given: Any) -> float:
    return float("nan") if given is None or given == "" else float(given)
