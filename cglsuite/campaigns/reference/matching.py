"""The mapping between presets and published rows, by names and the catalogue.

A row and a result belong together where the preset is of the paper's protocol, data set, setting and problem level agree, and so do the
method, the backbone and the metric by definition (a paper's "AF" is two different things in two papers). What else tells the columns of a
table apart (its *variant*: ``sigma=20; batch=10``, ``inter-task-edges=true``) demands overrides: :func:`demand_of`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import CglsuiteError
from cglsuite.campaigns.reference import dataset_statistics, names, published_results
from cglsuite.campaigns.reference.values import paper_named, paper_of
from cglsuite.specs import NO_PRETRAINING, MetricSpec, ScenarioSpec
from cglsuite.specs.plugins import PRETRAINING_SCHEME

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.host import Catalogue

__all__ = [
    "REFERENCE",
    "SECONDS",
    "Demand",
    "Recipe",
    "RecipeBook",
    "Result",
    "dataset_key",
    "demand_of",
    "keyed_results",
    "method_key",
    "preset_key",
    "printed_rows",
]

SECONDS = "seconds"
"""In place of a metric: a running time, of which the ledger compares ratios."""
REFERENCE = "bare"
"""The method whose seconds others are divided by."""

_OPEN = (
    *("schedule.sigma", "schedule.p", "schedule.window", "training.batch_size", "scenario.n_tasks", "scenario.classes_per_task"),
    *(PRETRAINING_SCHEME, "pretraining.as_begin", "pretraining.temperature"),
)
"""The keys that tables vary over one preset; whatever else a variant demands must be a preset of its own."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """A variant's requirements on a cell.

    Args:
        overrides: dotted key to value. orders: designs of ``seeds.orders`` over which the printed value is computed; ``()``: none.
        refused: why no cell here can meet them; empty otherwise.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict)
    orders: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was run, as far as it decides which published rows it can stand beside.

    Args:
        preset: without the hash of overridden switches. setting, level: of its scenario. backbone: ``None`` = the preset's own.
        configuration: every resolved value. changes: the names of those that were overridden.
    """

    preset: str
    setting: str
    level: str
    method: str
    backbone: str | None
    metric: str
    configuration: Mapping[str, Any]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a published row is reproduced: the cells' preset, method, backbone (``None`` = the preset's own) and overrides, and the metric.

    ``orders``: see :class:`Demand`. ``needs_joint``: the metric compares with joint training.
    """

    preset: str
    method: str
    metric: str
    backbone: str | None = None
    overrides: tuple[tuple[str, Any], ...] = ()
    orders: tuple[str, ...] = ()
    needs_joint: bool = False

    @property
    def needs_reference(self) -> bool:
        """Whether it is a running time, which is relative to that of :data:`REFERENCE`."""
        return self.metric == SECONDS

    @property
    def design(self) -> tuple[Any, ...]:
        """What the cells of one campaign have in common. Class orders hold the task orders, so that one campaign serves both."""
        return self.preset, self.backbone, self.overrides, bool(self.orders)


# --- names -----------------------------------------------------------------------------------------------------------------------


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9*]", "", name.lower())


@lru_cache
def _words(kind: str) -> tuple[tuple[str, str], ...]:
    """What papers print and what it is called here; several names here may have one printed name."""
    table = names()
    mine = table[table["kind"] == kind]
    return tuple((_word(printed), _word(here)) for printed, here in zip(mine["printed"], mine["here"], strict=True))


@lru_cache
def _aliases(kind: str) -> dict[str, str]:
    return dict(_words(kind))


@lru_cache
def _printed_backbones() -> dict[str, str]:
    return {here: printed for printed, here in _words("backbone")}


def dataset_key(name: str) -> str:
    """``CoraFull-CL`` and ``corafull``, ``UCLA-CIL`` and ``nw-ucla`` are one data set each."""
    return _aliases("dataset").get(_word(name), _word(name))


def method_key(name: str) -> str:
    """``EvolveGCN`` and ``evolve-gcn``, ``CGNN`` and ``continual-gnn`` are one method each."""
    return _aliases("method").get(_word(name), _word(name))


def backbone_key(name: str) -> str:
    """``GCN``, ``gcn`` and ``graph-gcn`` are one backbone in the words of papers, which name it alike at all levels."""
    return _printed_backbones().get(_word(name), _word(name))


def preset_key(preset: str, setting: str, level: str) -> tuple[str, str, str, str] | None:
    """Paper, data set, setting and problem level of a preset; ``None`` where its protocol is no paper's."""
    paper = paper_of(preset.partition("@")[2])
    return None if paper is None else (paper.name, dataset_key(preset.partition("/")[0]), setting, level)


@lru_cache
def keyed_results() -> pd.DataFrame:
    """The published table with its names in the form in which they are matched: ``place`` (see :func:`preset_key`), ``method_key``,
    ``backbone_key``."""
    table = published_results()
    datasets = table["dataset"].map({name: dataset_key(name) for name in table["dataset"].unique()})
    places: list[Any] = list(zip(table["paper"], datasets, table["setting"].str.lower(), table["problem"], strict=True))
    keys = {f"{kind}_key": table[kind].map({n: key(n) for n in table[kind].unique()}) for kind, key in _KEYS.items()}
    return table.assign(place=places, **keys)


_KEYS: Mapping[str, Callable[[str], str]] = {"method": method_key, "backbone": backbone_key}


# --- variants --------------------------------------------------------------------------------------------------------------------


def demand_of(row: Mapping[str, Any]) -> Demand:
    """What the variant of a published row asks of a cell."""
    overrides: dict[str, Any] = {}
    orders: tuple[str, ...] = ()
    for part in filter(None, row["variant"].split("; ")):
        key, _, value = part.partition("=")
        if key not in _VARIANTS:
            return Demand(refused=f"the variant {part!r} has no counterpart here")
        varied = _VARIANTS[key](value, row)
        if varied.refused:
            return varied
        overrides |= varied.overrides
        orders += varied.orders
    if "ssl=" not in row["variant"] and (body := _BODIES.get((row["paper"], row["method"], row["problem"]))):
        overrides |= _pretraining(body, row).overrides
    return Demand(overrides=overrides, orders=orders)


_BODIES = {("BeGin", "Piggyback", "NC"): "DGI", ("BeGin", "Piggyback", "LC"): "DGI", ("BeGin", "Piggyback", "GC"): "InfoGraph"}
"""By paper, method and problem the scheme that trained the body on which rows rest whose variant names none."""


def _edges(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"scenario.edge_policy": "inter-task" if value == "true" else "none"})


def _hard(_: str, __: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"stream.schedule": "hard"})


def _sigma(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"stream.schedule": "gaussian", "schedule.sigma": float(value)})


def _batch(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"training.batch_size": int(value)})


def _mixing(value: str, _: Mapping[str, Any]) -> Demand:
    kind, number = value.split(" ")
    amount = float(number.partition("=")[2].rstrip("%"))
    setting = {"schedule.p": amount / 100} if kind == "global" else {"schedule.window": amount}
    return Demand(overrides={"stream.schedule": kind, **setting})


def _tasks(value: str, row: Mapping[str, Any]) -> Demand:
    """Nothing where the data set's own number of tasks in this setting is asked for: then it is the preset unchanged."""
    if value in _own_task_counts().get((row["paper"], row["dataset"], row["setting"]), ()):
        return Demand()
    return Demand(overrides={"scenario.n_tasks": int(value), "scenario.classes_per_task": None})


@lru_cache
def _own_task_counts() -> Mapping[tuple[str, str, str], set[str]]:
    """The printed numbers of tasks by paper, data set and setting."""
    counts: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    table = dataset_statistics()
    for paper, dataset, setting, n in zip(table["paper"], table["dataset"], table["setting"], table["n_tasks"], strict=True):
        counts[paper, dataset, setting].add(n)
    return dict(counts)


def _pretraining(value: str, _: Mapping[str, Any]) -> Demand:
    """A scheme as BeGin implements it, where ours differs from that by default."""
    if value == "none":
        return Demand()
    of_begin: dict[str, dict[str, Any]] = {"graphcl": {"pretraining.as_begin": True}, "infograph": {"pretraining.as_begin": True}}
    of_begin["lightgcl"] = {"pretraining.temperature": 1.0}
    return Demand(overrides={PRETRAINING_SCHEME: value.lower(), **of_begin.get(value.lower(), {})})


def _orders(value: str, row: Mapping[str, Any]) -> Demand:
    return Demand(orders=paper_named(row["paper"]).orders[value])


def _size(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(refused=f"a running time on a part of the data set ({value}); the paper does not say which")


def _time(_: str, __: Mapping[str, Any]) -> Demand:
    return Demand()


_VARIANTS: Mapping[str, Callable[[str, Mapping[str, Any]], Demand]] = {
    "inter-task-edges": _edges,
    "hard": _hard,
    "sigma": _sigma,
    "batch": _batch,
    "mixing": _mixing,
    "N": _tasks,
    "ssl": _pretraining,
    "order": _orders,
    "size": _size,
    "time": _time,
}


# --- from a result to rows -------------------------------------------------------------------------------------------------------


def printed_rows(result: Result) -> pd.DataFrame:
    """The published rows that a result can stand beside, in the order of the tables; rows without a printed value are none.

    A switch that was overridden must be one that the row's variant asks for, with its value.
    """
    table = keyed_results()
    place, paper = preset_key(result.preset, result.setting, result.level), paper_of(result.preset.partition("@")[2])
    if place is None or paper is None:
        return table.iloc[:0]
    labels = [label for label, metric in paper.metrics.items() if metric == result.metric]
    backbone = backbone_key(result.backbone or paper.backbone)
    mine = (table["paper"] == paper.name) & table["metric"].isin(labels) & (table["method_key"] == method_key(result.method))
    mine &= (table["place"] == place) & (table["backbone_key"] == backbone) & table["mean"].notna()
    matching = table[mine]
    rows: dict[Any, Any] = matching.to_dict(orient="index")
    return matching.loc[[index for index, row in rows.items() if _meets(result, demand_of(row))]]


def _meets(result: Result, demand: Demand) -> bool:
    made, wanted = (settings.get(PRETRAINING_SCHEME, NO_PRETRAINING) for settings in (result.configuration, demand.overrides))
    if demand.refused or made != wanted:
        return False
    asked = {"training.backbone", *demand.overrides}
    missing = object()
    met = all(result.configuration.get(name, missing) == value for name, value in demand.overrides.items())
    return met and all(name in asked for name in result.changes)


# --- from a row to the cells -----------------------------------------------------------------------------------------------------


class RecipeBook:
    """How published rows are reproduced with what is in a catalogue: nothing here knows any of them by name."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._presets: dict[Any, list[ScenarioSpec]] = defaultdict(list)
        for spec in catalogue.specs(ScenarioSpec).values():
            self._presets[preset_key(spec.name, spec.setting, spec.level)].append(spec)
        self._methods = {method_key(name): name for name in catalogue.names("method")}
        self._backbones = {backbone_key(name): name for name in catalogue.names("backbone")}
        self._metrics = catalogue.specs(MetricSpec)

    def recipe(self, row: Mapping[str, Any]) -> Recipe | str:
        """How a row of :func:`keyed_results` is reproduced, or the reason why it is not."""
        paper = paper_named(row["paper"])
        timed = row["unit"] == "s"
        metric, demand = SECONDS if timed else paper.metrics.get(row["metric"]), demand_of(row)
        if metric is None:
            return f"no metric here stands for {row['metric']} of {paper.name}"
        if demand.refused:
            return demand.refused
        if metric not in self._metrics and not demand.orders and not timed:
            return f"no plugin provides the metric {metric}"
        preset = self._preset(row, demand)
        if isinstance(preset, str):
            return preset
        spec, overrides = preset
        method, backbone = self._methods.get(row["method_key"]), self._backbones.get(row["backbone_key"])
        if method is None:
            return f"method {row['method']} is not implemented here: no plugin provides it"
        own = row["backbone"] == paper.backbone
        if backbone is None and not own:
            return f"backbone {row['backbone']} is not implemented here: no plugin provides it"
        return Recipe(
            preset=spec.name,
            method=method,
            metric=metric,
            backbone=None if own else backbone,
            overrides=tuple(sorted({**overrides, **self._shared_budget(spec, overrides, method)}.items())),
            orders=demand.orders,
            needs_joint=not demand.orders and not timed and bool(self._metrics[metric].needs_joint),
        )

    def _preset(self, row: Mapping[str, Any], demand: Demand) -> tuple[ScenarioSpec, dict[str, Any]] | str:
        """The preset that needs the fewest overrides to meet a demand, its newest version, with these; or why there is none."""
        from cglsuite.cells.spec import default_configuration

        there = self._presets.get(row["place"], [])
        if not there:
            protocols = " or ".join(paper_named(row["paper"]).protocols)
            return f"no preset of {protocols} is {row['dataset']} in {row['setting']} ({row['problem']}): no plugin provides one"
        fitting: list[tuple[int, int, ScenarioSpec, dict[str, Any]]] = []
        missing, newest = object(), paper_named(row["paper"]).protocols
        for spec in there:
            try:
                defaults = default_configuration(self._catalogue, spec)
            except CglsuiteError as error:  # it leans on a plugin that is absent or at fault
                return f"preset {spec.name} cannot be resolved: {error}"
            overrides = {name: value for name, value in demand.overrides.items() if defaults.get(name, missing) != value}
            if all(name in _OPEN for name in overrides):
                fitting.append((len(overrides), newest.index(spec.name.partition("@")[2]), spec, overrides))
        if not fitting:
            return f"no preset of {row['dataset']} in {row['setting']} has {row['variant']}"
        _, _, spec, overrides = min(fitting, key=lambda one: one[:2])
        return spec, overrides

    def _shared_budget(self, spec: ScenarioSpec, overrides: Mapping[str, Any], method: str) -> dict[str, Any]:
        """Where the number of tasks is another, a method that keeps so many items per task keeps its share of the same budget."""
        tasks, budget = overrides.get("scenario.n_tasks"), spec.memory_budget
        declared = self._catalogue.method(method)
        if tasks is None or budget is None or not any(h.name == "per_task" for h in declared.hyperparameters):
            return {}
        return {"method.per_task": max(budget // tasks, 1)}
