"""The anatomy of scenarios, data sets and the scenarios of a campaign, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataAbsentError, UnknownNameError, UsageError
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_scenario
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.data import label_kind
from cglsuite.graphs.splits.partition import induced_subgraph
from cglsuite.reports.kit.text import listed
from cglsuite.reports.results.performance import is_fraction, performance_name
from cglsuite.reports.studies.anatomy.compute import Anatomy, Grouping, dissect
from cglsuite.specs import Seeds
from cglsuite.streams.assembly import Assembly

if TYPE_CHECKING:
    from torch import Tensor

    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults, Group
    from cglsuite.specs import ScenarioSpec

__all__ = ["Anatomies", "anatomies", "anatomy_of", "campaign_anatomies"]

_TIMES = ("year", "quarter", "month", "day", "step", "time", "domain")
"""Attributes by which a data set alone is grouped, the first that it has."""
_MOST_VALUES, _BINS = 24, 12


@dataclasses.dataclass(frozen=True)
class Anatomies:
    """Several anatomies, and the subjects whose raw data are absent, with the reason."""

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
    """The anatomy of every subject whose data are here: see :func:`anatomy_of`."""
    seeds = [orders] if isinstance(orders, int) else orders
    return _present({name: partial(anatomy_of, catalogue, name, key=key, orders=seeds, overrides=overrides) for name in listed(subjects)})


def _present(makers: Mapping[str, Callable[[], Anatomy]]) -> Anatomies:
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
    """The anatomy of a scenario (``pcg/class-il@agale-1``) by its tasks, or of a data set (``pcg``) by an attribute of its items.

    Args:
        key: for a data set: the attribute (``year``, ``domain``, ...), or ``class``; empty: the first time or domain that the data set has,
            else its classes. orders: seeds of orders; tasks are those of the first, and means over tasks are over all of them.
        overrides: of the scenario's switches and the data set's hyper-parameters.

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
    """The anatomy of every scenario of a campaign whose data are here, with the methods' scores on its tasks.

    Tasks are those of the first cell with a result; scores are over the cells that share its order and split.
    """
    makers = {}
    for preset in dict.fromkeys(group.preset for group in results.groups):
        groups = [group for group in results.groups if group.preset == preset]
        cell = next((c.planned.cell for g in groups for c in g.cells if c.planned.cell is not None and c.done), None)
        if cell is not None:
            makers[results.preset_title(preset)] = partial(_scored, catalogue, results.preset_title(preset), groups, cell)
    return _present(makers)


def _scored(catalogue: Catalogue, title: str, groups: Sequence[Group], cell: CellSpec) -> Anatomy:
    made = _of_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, title, [cell.seeds])
    scores = [row for group in groups for row in _scores(group, cell.seeds, len({g.backbone for g in groups}) > 1)]
    record = groups[0].records[0]
    frame = pd.DataFrame(scores, columns=["label", "task", "mean", "std", "n"])
    return dataclasses.replace(made, scores=frame, measure=performance_name(record.scenario), percent=is_fraction(record))


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
    made = [_of_stream(build_scenario(catalogue, spec, hyperparameters, one), title) for one in seeds]
    if len(made) == 1:
        return made[0]
    mean = {f"mean_{name}": float(np.mean([one.groups[name].mean() for one in made])) for name in made[0].groups.columns}
    if spec.setting == "class-il" and spec.labels == "multi":
        mean["carried_homophily"] = _carried_homophily(build_scenario(catalogue, spec, hyperparameters, one) for one in seeds)
    return dataclasses.replace(made[0], whole={**made[0].whole, **mean}, orders=[one.order for one in seeds])


def _of_stream(stream: Any, title: str) -> Anatomy:
    if not isinstance(stream, Assembly):
        raise UsageError(f"{title}: its stream holds no data set ({type(stream).__name__}); expected a stream of the suite's builders")
    spec, layout = stream.spec, stream.layout
    outputs = layout.outputs
    if spec.setting == "class-il":  # every label seen so far competes
        outputs = outputs.long().cumsum(0) > 0
    grouping = Grouping(
        what="latent task" if spec.setting == "task-free" else "task",
        names=_numbered(layout.names),
        members=layout.nodes,
        own=layout.outputs,
        outputs=outputs,
    )
    edges = getattr(stream, "edges", None) if isinstance(stream.data, NodeData) else None
    return dissect(stream.data, grouping, edges, name=title, dataset=spec.dataset, setting=spec.setting, level=spec.level)


def _carried_homophily(streams: Iterable[Any]) -> float:
    """The mean over the tasks of several orders of a Jaccard index in which a label counts as often as it has been seen, orders before
    included."""
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


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"{k + 1}: {name}" for k, name in enumerate(names)]


# --- data sets -------------------------------------------------------------------------------------------------------------------


def _by_attribute(data: NodeData | LinkData | GraphData, key: str) -> Grouping:
    key = key or next((name for name in _TIMES if name in data.keys), "class")
    if key == "class":
        return _by_class(data)
    if key not in data.keys:
        raise UnknownNameError(f"attribute of the data set {data.name!r}", key, [*data.keys, "class"])
    values = data.keys[key]
    distinct = values.unique()
    if distinct.numel() <= _MOST_VALUES:
        members = [(values == value).nonzero().flatten() for value in distinct]
        return Grouping(what=key, names=[str(int(value)) for value in distinct], members=members, in_order=key != "domain")
    bounds = torch.from_numpy(np.unique(np.quantile(values.numpy(), np.linspace(0, 1, _BINS + 1)[1:-1], method="higher")))
    bins = torch.bucketize(values, bounds)
    members = [found for b in range(int(bins.max()) + 1) if (found := (bins == b).nonzero().flatten()).numel()]
    names = [f"{int(values[ids].min())} to {int(values[ids].max())}" for ids in members]
    return Grouping(what=key, names=names, members=members, in_order=key != "domain")


def _by_class(data: NodeData | LinkData | GraphData) -> Grouping:
    if label_kind(data.y) == "real":
        return Grouping(what="part", names=["all items"], members=[torch.arange(data.n_items)], in_order=False)
    members: list[Tensor] = [(data.y[:, c] if data.y.dim() == 2 else data.y == c).nonzero().flatten() for c in range(data.n_classes)]
    kept = [c for c, ids in enumerate(members) if ids.numel()]
    return Grouping(what="class", names=[str(c) for c in kept], members=[members[c] for c in kept], in_order=False)
