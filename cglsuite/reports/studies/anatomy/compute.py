"""Statistics of a data set for groups of its items: the tasks of a stream, years, domains or classes.

A group's graph is the subgraph that its items induce (links: the links themselves; whole graphs: their union). Everything is a function of
the data and the groups; work per group is in array operations over nodes and edges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataAbsentError, UnknownNameError, UsageError
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import CellSpec, resolve_scenario
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.data import label_kind
from cglsuite.graphs.homophily import edge_homophily, graph_homophily, node_homophily
from cglsuite.graphs.message import scipy_features
from cglsuite.graphs.splits.partition import induced_subgraph
from cglsuite.host import Catalogue
from cglsuite.reports.kit.text import listed
from cglsuite.reports.results.measures import is_fraction, performance_name
from cglsuite.reports.results.results import CampaignResults, Group
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import Assembly

_GRAPHS_AT_ONCE = 2000
_DEGREE_BINS = 16
_SAMPLED = 100
"""The number of graphs whose edge features are examined."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """A partition of a data set's items into groups.

    Args:
        what: the noun for one group: ``task``, ``year``, ``class``. names: the groups' names.
        members: per group int64 ids of its items. own: bool [G, C], the labels that are a group's own, whatever others its items have;
            ``None``: all. outputs: bool [G, C], the labels that count for a group's homophily; ``None`` for all.
        in_order: whether groups arrive one after the other, so that changes from one to the next are meaningful.
    """

    what: str
    names: Sequence[str]
    members: Sequence[Tensor]
    own: Tensor | None = None
    outputs: Tensor | None = None
    in_order: bool = True


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The drift of the mean features of the items from group to group.

    Args:
        of: the averaged quantity. places: float64 [G, D], D <= 2, principal components of the means. explained: float64 [D], their
            shares of the variance between means. shift: float64 [G], distance of a group's mean from the first group's, in units of the
            items' spread (root of their total variance). chance: float64 [G], the root mean square of that distance if items were assigned
            at random to groups of these sizes.
    """

    of: str
    places: NDArray[np.float64]
    explained: NDArray[np.float64]
    shift: NDArray[np.float64]
    chance: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Anatomy:
    """The statistics of a data set and its groups.

    Args:
        name: of the scenario or data set. dataset: its data set. setting: of the scenario, empty for a data set alone.
        level: problem level. what, names, in_order: see :class:`Grouping`.
        whole: facts of the whole data set, in the columns of ``groups``, and ``loops`` (self-loops), ``features``, ``edge_features``,
            ``graphs``; of links ``receivers`` (nodes that a link leads to); of graphs ``feature_sum`` and ``edge_feature_sum`` (the mean
            sum of the features of a node and of an edge, for one-hot features the number of categorical ones). Over several orders also
            ``mean_COLUMN`` and, of multi-label nodes in class-IL, ``carried_homophily`` (with the labels of earlier orders).
        groups: a row per group: ``items``, ``nodes``, ``edges`` (as listed), ``pairs`` (of distinct nodes, either direction),
            ``mean_degree`` (distinct neighbours), ``classes`` (of the group's own, with an item), ``labels`` (of these, mean per item),
            ``homophily``, ``cut`` (share of the edges of its nodes that lead out of the group), and those of :func:`theorem_1`. NaN where a
            column does not apply.
        shares: float64 [G, C], the share of a group's own labels that each class has (of a yes or no: [G, 2]); ``None`` without classes.
        degrees, homophilies: values of single nodes (float64) by group, ``whole data set`` first.
        drift: of the mean features; ``None`` for a single group.
        growth: the data of all groups up to each: ``nodes``, ``edges`` and ``classes`` (NaN without classes).
    """

    name: str
    dataset: str
    setting: str
    level: str
    what: str
    names: Sequence[str]
    in_order: bool
    whole: Mapping[str, float]
    groups: pd.DataFrame
    shares: NDArray[np.float64] | None
    degrees: Mapping[str, NDArray[np.float64]]
    homophilies: Mapping[str, NDArray[np.float64]]
    drift: Drift | None
    growth: pd.DataFrame
    variant: str = ""
    orders: Sequence[int] = (0,)
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)
    measure: str = "performance"
    percent: bool = True


WHOLE = "whole data set"


def dissect(data: NodeData | LinkData | GraphData, grouping: Grouping, edges: Tensor | None = None, **names: Any) -> Anatomy:
    """Compute the statistics of ``data`` in the groups of ``grouping``.

    Args:
        edges: int64 [2, E], node pairs that replace the data's edges (a scenario may make them symmetric).
        names: further fields of :class:`Anatomy`: name, dataset, setting, level.
    """
    if isinstance(data, NodeData):
        parts = _nodes(data, grouping, data.edge_index if edges is None else edges)
    elif isinstance(data, LinkData):
        parts = _links(data, grouping)
    else:
        parts = _graphs(data, grouping)
    own_classes: Any = [None] * len(grouping.members) if grouping.own is None else grouping.own
    counts = [_class_counts(data, ids, mine) for ids, mine in zip(grouping.members, own_classes, strict=True)]
    rows = [facts | {"items": float(ids.numel())} for facts, ids in zip(parts.groups, grouping.members, strict=True)]
    rows = [facts | _labels(*counted) for facts, counted in zip(rows, counts, strict=True)]
    shares = _shares([classes for classes, _ in counts])
    seen = np.nan if shares is None else ((shares > 0).cumsum(axis=0) > 0).sum(axis=1)
    everything = torch.arange(data.n_items)
    whole = parts.whole | {"items": float(data.n_items)} | _labels(*_class_counts(data, everything))
    return Anatomy(
        what=grouping.what,
        names=list(grouping.names),
        in_order=grouping.in_order,
        whole=whole,
        groups=pd.DataFrame(rows, columns=COLUMNS),
        shares=shares,
        degrees=parts.degrees,
        homophilies=parts.homophilies,
        drift=mean_drift(parts.described, parts.of, len(grouping.members)),
        growth=pd.DataFrame(parts.growth).assign(classes=seen).astype("float64"),
        **names,
    )


THEOREM_1 = ["single_edges", "single_kept", "several_edges", "several_kept", "several_claimed"]
COLUMNS = ["items", "nodes", "edges", "pairs", "mean_degree", "classes", "labels", "homophily", "cut", *THEOREM_1]


# --- what a level has ------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Parts:
    """What differs between problem levels; ``described``: per group, features of its items (or of their nodes), [n, F]."""

    whole: dict[str, float]
    of: str
    degrees: dict[str, NDArray[np.float64]]
    homophilies: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    groups: list[dict[str, float]] = field(default_factory=list)
    growth: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    described: list[Any] = field(default_factory=list)


def _first_groups(members: Sequence[Tensor], n_items: int) -> Tensor:
    """The first group of each item, their number for an item of none: int64 [N]."""
    first = torch.full((n_items,), len(members))
    for k in reversed(range(len(members))):
        first[members[k]] = k
    return first


def _so_far(first: Tensor, n_groups: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """How much has come with each group and those before it, of things that come with the group ``first`` (int64 [N]): float64 [G]."""
    total: NDArray[np.float64] = np.bincount(first.numpy(), weights, n_groups + 1)[:n_groups].cumsum().astype(np.float64)
    return total


def distinct_neighbours(edge_index: Tensor, n_nodes: int) -> tuple[NDArray[np.int64], int, int]:
    """Count the distinct neighbours of each node in either direction (int64 [N]), the distinct pairs, and the self-loops.

    Example:
        >>> distinct_neighbours(torch.tensor([[0, 1, 0, 2], [1, 0, 2, 2]]), 3)
        (array([2, 1, 1]), 2, 1)
    """
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    loops = low == high
    pairs = torch.unique(low[~loops] * n_nodes + high[~loops])
    ends = torch.cat([pairs // max(n_nodes, 1), pairs % max(n_nodes, 1)])
    return torch.bincount(ends, minlength=n_nodes).numpy(), int(pairs.numel()), int(loops.sum())


def _graph_facts(edge_index: Tensor, n_nodes: int) -> tuple[dict[str, float], NDArray[np.float64]]:
    degrees, pairs, loops = distinct_neighbours(edge_index, n_nodes)
    facts = {"nodes": float(n_nodes), "edges": float(edge_index.shape[1]), "pairs": float(pairs), "loops": float(loops)}
    return facts | {"mean_degree": float(degrees.mean()) if n_nodes else np.nan}, degrees.astype(np.float64)


def _nodes(data: NodeData, grouping: Grouping, edges: Tensor) -> _Parts:
    whole, all_degrees = _graph_facts(edges, data.n_nodes)
    whole |= {"homophily": graph_homophily(data.y, edges), "features": float(data.n_features), "edge_features": 0.0}
    of_nodes = {WHOLE: _known(node_homophily(data.y, edges))}
    out = _Parts(whole=whole, of="features", degrees={WHOLE: all_degrees}, homophilies=of_nodes)
    x, first, n_groups = _features(data.x), _first_groups(grouping.members, data.n_nodes), len(grouping.members)
    out.growth = {"nodes": _so_far(first, n_groups), "edges": _so_far(first[edges].amax(dim=0), n_groups)}
    for k, (name, ids) in enumerate(zip(grouping.names, grouping.members, strict=True)):
        inside = induced_subgraph(edges, ids, data.n_nodes)
        mine = torch.zeros(data.n_nodes, dtype=torch.bool)
        mine[ids] = True
        touching = int((mine[edges[0]] | mine[edges[1]]).sum())
        facts, degrees = _graph_facts(inside, ids.numel())
        counting = None if grouping.outputs is None else grouping.outputs[k]
        facts["homophily"] = graph_homophily(data.y[ids], inside, counting)
        facts["cut"] = 1 - inside.shape[1] / touching if touching else np.nan
        if grouping.own is not None and counting is not None and data.y.dim() == 2:
            facts |= theorem_1(data.y, edges[:, mine[edges[0]] & mine[edges[1]]], counting, int(grouping.own[k].sum()))
        out.groups.append(facts)
        out.degrees[name] = degrees
        out.homophilies[name] = _known(node_homophily(data.y[ids], inside, counting))
        out.described.append(x[ids.numpy()])
    return out


def theorem_1(y: Tensor, edges: Tensor, counting: Tensor, size: int) -> dict[str, float]:
    """Check Theorem 1 of AGALE (Zhao et al., TMLR 2024) by counting the edges that are at least as homophilous in a task as in the whole
    graph.

    Part 1: this is true of every edge with an end that has a single label. Part 2: for an edge between nodes with several labels, the
    probability is at least ``1 - (1 - h)^K``, where h is its homophily in the whole graph and K the number of labels per task. The paper
    prints this bound, but it is not true in general.

    Args:
        y: bool [N, C]. edges: int64 [2, E], of the task. counting: bool [C], the labels that count in the task. size: K.

    Returns:
        single_edges and several_edges (by the ends' labels), the shares single_kept and several_kept that are at least as homophilous, and
        several_claimed (the mean of the printed bound). A share is NaN without such edges.
    """
    static, now = edge_homophily(y, edges), edge_homophily(y, edges, counting)
    single, kept = (y.sum(dim=1) == 1)[edges].any(dim=0), (now >= static).double()
    facts = {"single_edges": float(single.sum()), "single_kept": float(kept[single].mean()), "several_edges": float((~single).sum())}
    return facts | {"several_kept": float(kept[~single].mean()), "several_claimed": float((1 - (1 - static[~single]) ** size).mean())}


def _features(x: Tensor) -> Any:
    return scipy_features(x) if x.layout == torch.sparse_csr else x.numpy()


def _known(values: Tensor) -> NDArray[np.float64]:
    known: NDArray[np.float64] = values[~values.isnan()].numpy()
    return known


def _links(data: LinkData, grouping: Grouping) -> _Parts:
    whole, all_degrees = _graph_facts(data.links, data.n_nodes)
    whole |= {"features": float(data.n_features or 0), "edge_features": 0.0, "receivers": float(data.links[1].unique().numel())}
    of = "features of the ends of links" if data.x is not None else "nodes by degree, in powers of two"
    out = _Parts(whole=whole, of=of, degrees={WHOLE: all_degrees})
    x = None if data.x is None else _features(data.x)
    first, n_groups = _first_groups(grouping.members, data.n_items), len(grouping.members)
    reached = torch.full((data.n_nodes,), n_groups).scatter_reduce(0, data.links.flatten(), first.repeat(2), "amin")
    out.growth = {"nodes": _so_far(reached, n_groups), "edges": _so_far(first, n_groups)}
    for name, ids in zip(grouping.names, grouping.members, strict=True):
        met, ends = data.links[:, ids].flatten().unique(return_inverse=True)
        facts, degrees = _graph_facts(ends.view(2, -1), met.numel())
        out.groups.append(facts)
        out.degrees[name] = degrees
        out.described.append(_degree_indicators(degrees) if x is None else x[data.links[:, ids].flatten().numpy()])
    return out


def _degree_indicators(degrees: NDArray[np.float64]) -> scipy.sparse.csr_matrix:
    """One-hot degrees by powers of two, one row per node: [N, 16]."""
    place = np.floor(np.log2(np.maximum(degrees, 1))).astype(np.int64).clip(max=_DEGREE_BINS - 1)
    rows = np.arange(len(place))
    return scipy.sparse.csr_matrix((np.ones(len(place)), (rows, place)), shape=(len(place), _DEGREE_BINS))


def _graphs(data: GraphData, grouping: Grouping) -> _Parts:
    wanted = torch.cat(list(grouping.members)).unique()
    sizes, edges, means = _per_graph(data, wanted)
    sample = data.items.queries(wanted[:_SAMPLED], "cpu")
    place = torch.full((data.n_items,), -1, dtype=torch.int64)
    place[wanted] = torch.arange(wanted.numel())

    def facts(some: NDArray[np.int64]) -> dict[str, float]:
        n, e = float(sizes[some].sum()), float(edges[some].sum())
        return {"nodes": n, "edges": e, "pairs": e / 2, "mean_degree": e / n if n else np.nan, "graphs": float(len(some))}

    rows = [place[ids].numpy() for ids in grouping.members]
    whole = facts(np.arange(len(sizes))) | {"features": float(data.n_features), "edge_features": float(sample.n_edge_features)}
    whole["feature_sum"] = float(sample.mean_features().sum(dim=1).mean())
    if sample.edge_features is not None:
        whole["edge_feature_sum"] = float(sample.edge_features.sum(dim=1).mean())
    degrees = {name: _ratio(edges[some], sizes[some]) for name, some in zip(grouping.names, rows, strict=True)}
    out = _Parts(whole=whole, of="mean features of graphs", degrees={WHOLE: _ratio(edges, sizes)} | degrees)
    first, n_groups = _first_groups(grouping.members, data.n_items)[wanted], len(grouping.members)
    out.growth = {"nodes": _so_far(first, n_groups, sizes), "edges": _so_far(first, n_groups, edges)}
    return dataclasses.replace(out, groups=[facts(some) for some in rows], described=[means[some] for some in rows])


def _ratio(edges: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    return edges / np.maximum(sizes, 1)


def _per_graph(data: GraphData, ids: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes [n], directed edges [n] and mean features [n, F] of graphs, computed in chunks of a few thousand."""
    sizes, edges, means = [], [], []
    for some in ids.split(_GRAPHS_AT_ONCE):
        batch = data.items.queries(some, "cpu")
        degree = torch.bincount(batch.edge_index[1], minlength=batch.n_nodes).to(torch.float32)
        sizes.append(batch.pool(torch.ones(batch.n_nodes, 1), "sum").flatten().numpy())
        edges.append(batch.pool(degree[:, None], "sum").flatten().numpy())
        means.append(batch.mean_features().numpy())
    return tuple(np.concatenate(parts).astype(np.float64) for parts in (sizes, edges, means))  # type: ignore[return-value]


# --- labels ----------------------------------------------------------------------------------------------------------------------


def _labels(counts: NDArray[np.int64] | None, labelled: int) -> dict[str, float]:
    """The number of classes with an item, and the mean number of labels of an item."""
    if counts is None:
        return {}
    return {"classes": float((counts > 0).sum()), "labels": float(counts.sum()) / max(1, labelled)}


def _class_counts(
    data: NodeData | LinkData | GraphData, ids: Tensor, classes_of_data: Tensor | None = None
) -> tuple[NDArray[np.int64] | None, int]:
    """The number of items of each class (int64 [C]; ``None`` for real targets and for link prediction, whose links all exist), and of items
    with any class; restricted to ``classes_of_data`` (bool [C]).
    """
    kind, y = label_kind(data.y), data.y[ids]
    if kind == "real" or (kind == "multi" and data.n_classes == 1 and bool(data.y.all())):
        return None, 0
    if kind == "multi" and data.n_classes == 1:  # a yes or no: both are classes
        known = (y if data.known is None else y[data.known[ids]]).flatten().long()
        return torch.bincount(known, minlength=2).numpy(), known.numel()
    mine = torch.ones(data.n_classes, dtype=torch.bool) if classes_of_data is None else classes_of_data
    if kind == "multi":
        y = y.bool() & mine
        return y.sum(dim=0).numpy(), int(y.any(dim=1).sum())
    counted = torch.bincount(y[y >= 0], minlength=data.n_classes) * mine
    return counted.numpy(), int(counted.sum())


def _shares(counts: Sequence[NDArray[np.int64] | None]) -> NDArray[np.float64] | None:
    if any(c is None for c in counts):
        return None
    table = np.array(counts, dtype=np.float64)
    shares: NDArray[np.float64] = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return shares


# --- drift -----------------------------------------------------------------------------------------------------------------------


def mean_drift(described: Sequence[Any], of: str, n_groups: int) -> Drift | None:
    """Measure the drift of the mean features (per group [n, F], dense or sparse) from group to group. Return ``None`` for a single group.

    Principal components are exact (a full singular value decomposition of the means), so they need no seed.
    """
    if n_groups < 2 or not described or described[0].shape[1] == 0:
        return None
    from sklearn.decomposition import PCA

    sizes = np.array([max(part.shape[0], 1) for part in described], dtype=np.float64)
    means = np.array([np.asarray(part.mean(axis=0), dtype=np.float64).ravel() for part in described])
    powers = (part.multiply(part) if scipy.sparse.issparse(part) else part.astype(np.float64) ** 2 for part in described)
    squares = np.array([float(power.sum()) for power in powers])
    centre = (means * sizes[:, None]).sum(axis=0) / sizes.sum()
    spread = float(np.sqrt(max(squares.sum() / sizes.sum() - float(centre @ centre), 0.0)))
    model = PCA(n_components=min(2, n_groups - 1, means.shape[1]), svd_solver="full")
    with np.errstate(invalid="ignore"):  # equal means have no variance to share out
        places = model.fit_transform(means)
    distance = np.linalg.norm(means - means[0], axis=1)
    chance = np.sqrt(1 / sizes + 1 / sizes[0])
    chance[0] = 0.0
    return Drift(
        of=of,
        places=np.asarray(places, dtype=np.float64),
        explained=np.nan_to_num(np.asarray(model.explained_variance_ratio_, dtype=np.float64)),
        shift=distance / spread if spread > 0 else np.zeros(n_groups),
        chance=chance,
    )


# The anatomy of scenarios, data sets and the scenarios of a campaign, by name.

_TIMES = ("year", "quarter", "month", "day", "step", "time", "domain")
"""Attributes by which a data set without scenario is grouped; the first one that it has is used."""
_MAX_VALUES, _BINS = 24, 12


@dataclasses.dataclass(frozen=True)
class Anatomies:
    """The statistics of several subjects, and the reasons why others are missing (no raw data)."""

    shown: tuple[Anatomy, ...]
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)


def anatomies(
    catalogue: Catalogue,
    subjects: str | Sequence[str],
    *,
    key: str = "",
    orders: int | Sequence[int] = (0,),
    overrides: Mapping[str, Any] | None = None,
) -> Anatomies:
    """Compute the statistics of every subject with available data (see :func:`anatomy_of`)."""
    seeds = [orders] if isinstance(orders, int) else orders
    return _available({name: partial(anatomy_of, catalogue, name, key=key, orders=seeds, overrides=overrides) for name in listed(subjects)})


def _available(makers: Mapping[str, Callable[[], Anatomy]]) -> Anatomies:
    shown, absent = [], {}
    for name, make in makers.items():
        try:
            shown.append(make())
        except DataAbsentError as error:
            absent[name] = str(error)
    return Anatomies(tuple(shown), absent)


def anatomy_of(
    catalogue: Catalogue, name: str, *, key: str = "", orders: Sequence[int] = (0,), overrides: Mapping[str, Any] | None = None
) -> Anatomy:
    """Compute the statistics of a scenario (``pcg/class-il@agale-1``) by task, or of a data set (``pcg``) by an attribute of its items.

    Args:
        key: for a data set: the attribute (``year``, ``domain``, ...), or ``class``; empty: the first time or domain that the data set has,
            else its classes. orders: seeds of orders; tasks are those of the first, and means over tasks are over all of them.
        overrides: of the scenario's switches and the data set's hyperparameters.

    Raises:
        UsageError: an unknown name, an attribute that the data set lacks, or a stream without a data set.
    """
    if "/" in name:
        resolved = resolve_scenario(catalogue, name, dict(overrides or {}))
        return _of_scenario(catalogue, resolved.spec, resolved.dataset_hyperparameters, resolved.preset, [Seeds(order=o) for o in orders])
    spec = catalogue.dataset(name)
    wanted = {k.removeprefix("dataset."): v for k, v in (overrides or {}).items()}
    data = catalogue.resolve(catalogue.get("dataset", name))(DataRoot.from_environment(), **wanted)
    return dissect(data, _by_attribute(data, key), name=name, dataset=name, setting="", level=spec.levels[0])


def campaign_anatomies(results: CampaignResults, catalogue: Catalogue) -> Anatomies:
    """Compute the statistics of every scenario of a campaign with available data, together with the methods' scores on its tasks.

    Tasks are those of the first cell with a result; scores are over the cells that share its order and split.
    """
    makers = {}
    for preset in dict.fromkeys(group.preset for group in results.groups):
        groups = [group for group in results.groups if group.preset == preset]
        cell = next((c.planned.cell for g in groups for c in g.cells if c.planned.cell is not None and c.done), None)
        if cell is not None:
            makers[results.preset_title(preset)] = partial(_with_scores, catalogue, results.preset_title(preset), groups, cell)
    return _available(makers)


def _with_scores(catalogue: Catalogue, title: str, groups: Sequence[Group], cell: CellSpec) -> Anatomy:
    anatomy = _of_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, title, [cell.seeds])
    scores = [row for group in groups for row in _scores(group, cell.seeds, len({g.backbone for g in groups}) > 1)]
    record = groups[0].records[0]
    frame = pd.DataFrame(scores, columns=["label", "task", "mean", "std", "n"])
    return dataclasses.replace(anatomy, scores=frame, measure=performance_name(record.scenario), percent=is_fraction(record))


def _scores(group: Group, seeds: Seeds, backbones: bool) -> list[dict[str, Any]]:
    """A row per task: the final performance on it over the records of one order and split."""
    same = [r for r in group.records if (r.cell["seeds"]["order"], r.cell["seeds"]["split"]) == (seeds.order, seeds.split)]
    if not same:
        return []
    last = np.array([record.performance()[-1] for record in same])
    spread = last.std(axis=0, ddof=1) if len(same) > 1 else np.full(last.shape[1], np.nan)
    label = f"{group.label}, {group.backbone}" if backbones else group.label
    return [
        {"label": label, "task": k, "mean": mean, "std": std, "n": len(same)}
        for k, (mean, std) in enumerate(zip(last.mean(axis=0), spread, strict=True))
    ]


# --- scenarios -------------------------------------------------------------------------------------------------------------------


def _of_scenario(
    catalogue: Catalogue, spec: ScenarioSpec, hyperparameters: Mapping[str, Any], title: str, seeds: Sequence[Seeds]
) -> Anatomy:
    per_seed = [_of_stream(build_scenario(catalogue, spec, hyperparameters, anatomy), title) for anatomy in seeds]
    if len(per_seed) == 1:
        return per_seed[0]
    mean = {f"mean_{name}": float(np.mean([anatomy.groups[name].mean() for anatomy in per_seed])) for name in per_seed[0].groups.columns}
    if spec.setting == "class-il" and spec.labels == "multi":
        mean["carried_homophily"] = _carried_homophily(build_scenario(catalogue, spec, hyperparameters, anatomy) for anatomy in seeds)
    return dataclasses.replace(per_seed[0], whole={**per_seed[0].whole, **mean}, orders=[anatomy.order for anatomy in seeds])


def _of_stream(stream: Any, title: str) -> Anatomy:
    if not isinstance(stream, Assembly):
        raise UsageError(f"{title}: its stream contains no data set ({type(stream).__name__}); expected a stream from the suite's builders")
    spec, layout = stream.spec, stream.layout
    outputs = layout.outputs
    if spec.setting == "class-il":  # every label seen so far competes
        outputs = outputs.long().cumsum(0) > 0
    grouping = Grouping(
        what="latent task" if spec.setting == "task-free" else "task",
        names=[f"{k}: {name}" for k, name in enumerate(layout.names, start=1)],
        members=layout.nodes,
        own=layout.outputs,
        outputs=outputs,
    )
    edges = getattr(stream, "edges", None) if isinstance(stream.data, NodeData) else None
    return dissect(stream.data, grouping, edges, name=title, dataset=spec.dataset, setting=spec.setting, level=spec.level)


def _carried_homophily(streams: Iterable[Any]) -> float:
    """The mean, over the tasks of several orders, of a Jaccard index that counts each label as often as it has been seen so far."""
    values, seen = [], torch.zeros(0)
    for stream in streams:
        seen = seen if len(seen) else torch.zeros(stream.n_outputs)
        for outputs, nodes in zip(stream.layout.outputs, stream.layout.nodes, strict=True):
            seen = seen + outputs
            source, target = induced_subgraph(stream.edges, nodes, stream.data.n_nodes)
            y = stream.data.y[nodes]
            shared, either = ((part * seen).sum(dim=1).double() for part in (y[source] & y[target], y[source] | y[target]))
            values.append(float((shared / either).nanmean()))
    return float(np.mean(values))


# --- data sets -------------------------------------------------------------------------------------------------------------------


def _by_attribute(data: NodeData | LinkData | GraphData, key: str) -> Grouping:
    key = key or next((name for name in _TIMES if name in data.keys), "class")
    if key == "class":
        return _by_class(data)
    if key not in data.keys:
        raise UnknownNameError(f"attribute of the data set {data.name!r}", key, [*data.keys, "class"])
    values = data.keys[key]
    distinct = values.unique()
    if distinct.numel() <= _MAX_VALUES:
        members = [(values == value).nonzero().flatten() for value in distinct]
        return Grouping(what=key, names=[str(int(value)) for value in distinct], members=members, in_order=key != "domain")
    bounds = torch.from_numpy(np.unique(np.quantile(values.numpy(), np.linspace(0, 1, _BINS + 1)[1:-1], method="higher")))
    bins = torch.bucketize(values, bounds)
    members = [in_bin for b in range(int(bins.max()) + 1) if (in_bin := (bins == b).nonzero().flatten()).numel()]
    names = [f"{int(values[ids].min())} to {int(values[ids].max())}" for ids in members]
    return Grouping(what=key, names=names, members=members, in_order=key != "domain")


def _by_class(data: NodeData | LinkData | GraphData) -> Grouping:
    if label_kind(data.y) == "real":
        return Grouping(what="part", names=["all items"], members=[torch.arange(data.n_items)], in_order=False)
    members: list[Tensor] = [(data.y[:, c] if data.y.dim() == 2 else data.y == c).nonzero().flatten() for c in range(data.n_classes)]
    classes = [c for c, ids in enumerate(members) if ids.numel()]
    return Grouping(what="class", names=[str(c) for c in classes], members=[members[c] for c in classes], in_order=False)
