"""Published values in a common unit, the known facts about them, and the results that each can be compared with.

A row and a result match if the preset belongs to the paper's protocol and they agree in data set, setting, problem level, method,
backbone and metric. Metrics are compared by definition, since a paper's "AF" means different things in two papers. Whatever else
distinguishes the columns of a table (its *variant*: ``sigma=20; batch=10``, ``inter-task-edges=true``) needs overrides: :func:`demand_of`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.errors import CglsuiteError, UnknownNameError
from cglsuite.base.markup import several
from cglsuite.campaigns.reference import dataset_statistics, known_artefacts, names, published_results
from cglsuite.specs import METRICS, NO_PRETRAINING, MetricSpec, ScenarioSpec
from cglsuite.specs.plugins import PRETRAINING_SCHEME
from cglsuite.stats import Agreement, MeanEstimate, Refused, agreement, error_rate, sample_deviation

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.host import Catalogue


ARTEFACT = "published artefact"
"""The verdict on a published value known to violate its own protocol, however close our value is."""
POINT = 1.0
_NO_SPREAD = 1e-12
MIN_RUNS = 3
"""The number of our repetitions that a verdict needs."""
ASSUMED_RUNS = 2
"""Assumed number of runs if a paper gives none: the smallest number that has a standard deviation, and so the least certain."""
_OTHER_SCALE = "std evidently on the 0-1 scale"
_DEVIATION_IN_POINTS = (
    "the paper prints standard deviations on a 0 to 1 scale next to means in percent; they are converted to points here (times 100)"
)
_NOT_A_REMARK = re.compile(r"base metric: .*|AF[<>]0 means forgetting|INT: lower is better|called .*|built upon .*|std evidently .*")


@dataclass(frozen=True)
class Unit:
    """A unit of published values: the factor (``scale``) from our values, and the size of a percentage point (``point``)."""

    name: str
    scale: float
    point: float | None

    @property
    def to_points(self) -> float:
        """The factor that converts a difference in this unit to percentage points; NaN if that is impossible."""
        return math.nan if self.point is None else POINT / self.point


UNITS: Mapping[str, Unit] = {
    name: Unit(name, scale, point)
    for name, scale, point in (
        ("%", 100.0, 1.0),
        ("fraction", 1.0, 0.01),
        ("-MAE", 1.0, None),
        ("MAE", 1.0, None),
        ("MAE x100", 100.0, None),
    )
}
"""Performance is stored as a fraction; for graph regression it is the negative mean absolute error."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Known facts about a published row, as remarks of different kinds (see :func:`cglsuite.campaigns.reference.known_artefacts`)."""

    reasons: tuple[tuple[str, str], ...]

    def of(self, *kinds: str) -> tuple[str, ...]:
        """Return the texts of the remarks of certain kinds."""
        return tuple(reason for kind, reason in self.reasons if kind in kinds)

    @property
    def artefacts(self) -> tuple[str, ...]:
        """Explain how the value deviates from its stated protocol."""
        return self.of("artefact", "not-comparable")

    @property
    def unavailable(self) -> tuple[str, ...]:
        """Explain why the experiment cannot be repeated."""
        return self.of("unavailable")

    @property
    def comparable(self) -> bool:
        """Whether the row is about the same problem on the same data."""
        return not self.of("not-comparable", "unavailable")


@lru_cache
def _artefacts() -> tuple[dict[str, Any], ...]:
    return tuple({str(k): v for k, v in row.items()} for row in known_artefacts().to_dict(orient="records"))


def known_about(row: Mapping[str, Any]) -> Known:
    """Return what is known about a published row."""
    where = ("paper", "problem", "setting", "dataset", "method", "metric")
    artefacts = [artefact for artefact in _artefacts() if all(not artefact[w] or row[w] in artefact[w].split("|") for w in where)]
    return Known(reasons=tuple((artefact["kind"], artefact["reason"]) for artefact in artefacts))


def printed_deviation(row: Mapping[str, Any]) -> float:
    """Return the printed standard deviation in the unit of the mean. AGALE prints deviations on a 0 to 1 scale next to means in percent.

    A row that is not comparable is returned as printed: AGALE's joint training has 22.47 ± 0.47, which cannot mean 47 points.
    """
    other = _OTHER_SCALE in row["note"] and known_about(row).comparable
    return float(row["std"]) * (100.0 if other else 1.0)


def shown_value(row: Mapping[str, Any], *, percent: bool = False) -> str:
    """Return the printed value, with its deviation in the unit of the mean.

    Args:
        percent: convert fractions to percent with all their digits, for display next to results in percent.
    """
    deviation, text = printed_deviation(row), str(row["printed"])
    if math.isfinite(deviation) and deviation != row["std"]:
        text = f"{text.partition(' ±')[0]} ± {deviation:g}"
    if percent and row["unit"] == "fraction":
        return " ± ".join(format(Decimal(number).scaleb(2), "f") for number in text.split(" ± "))
    return text


def unit_note(row: Mapping[str, Any], *, percent: bool = False) -> str:
    """Explain why :func:`shown_value` differs from the printed value. Returns an empty string if it does not."""
    if shown_value(row) != row["printed"]:
        return _DEVIATION_IN_POINTS
    if shown_value(row, percent=percent) != row["printed"]:
        return "the paper prints fractions of 1; they are converted to percent here (times 100)"
    return ""


def remarks(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the remarks on a row that readers of its value should know."""
    noted = [part for part in row["note"].split("; ") if part and not _NOT_A_REMARK.fullmatch(part)]
    return (*noted, *known_about(row).of("remark"))


# --- agreement -------------------------------------------------------------------------------------------------------------------


def margin_of(metric: str, unit: Unit) -> float:
    """Return the margin of a metric, named as in this suite, in a published unit.

    Raises:
        KeyError: the metric has no margin; every metric of :data:`cglsuite.campaigns.reference.values.PAPERS` has one.
    """
    return MARGINS[metric] * unit.scale


def repetitions_mean(values: Sequence[float]) -> MeanEstimate:
    """Return the mean over independent repetitions, in their unit. A spread of zero is allowed.

    Raises:
        Refused: there are fewer than :data:`MIN_RUNS` repetitions.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size < MIN_RUNS:
        raise Refused(f"{several(x.size, 'repetition')} of ours: a verdict needs at least {MIN_RUNS}")
    spread = float(x.std(ddof=1))
    return MeanEstimate(mean=float(x.mean()), error=spread / math.sqrt(x.size), df=x.size - 1.0, spread=spread, n=x.shape)


def require_comparable(row: Mapping[str, Any]) -> None:
    """Check that a published row is about the same problem on the same data.

    Raises:
        Refused: the row is about a different problem or different data.
    """
    if not known_about(row).comparable:
        raise Refused("the published value is not comparable: it is for a different problem or different data")


def published_error(row: Mapping[str, Any], runs: int | None) -> tuple[float, int]:
    """Return the standard deviation of a published row in the published unit, and the number of runs it is based on.

    A printed 0.0 is replaced by half a unit in its last digit, the largest value that rounds to it. If the paper does not state the number
    of runs, :data:`ASSUMED_RUNS` is used. If the paper's code divides by n, the deviation is converted to the sample standard deviation.
    """
    deviation = printed_deviation(row)
    if deviation == 0.0:
        digits = str(row["printed"]).partition(" ± ")[2].partition(".")[2]
        deviation = 0.5 * 10.0 ** -len(digits)
    n = runs or ASSUMED_RUNS
    return sample_deviation(deviation, n, paper_named(row["paper"]).ddof), n


def verdict_on(row: Mapping[str, Any], metric: str, ours: MeanEstimate, runs: int | None) -> Agreement:
    """Compare our mean with a published row using both tests, in the published unit.

    Args:
        metric: its name here. ours: in stored units. runs: number of runs behind the published mean; ``None`` if unknown.

    Raises:
        Refused: there is no printed value to test against, the row is about a different problem, or neither mean has any spread (a printed
            0.0, and a value that is the same in all of our repetitions, usually at the bound of its scale).
    """
    require_comparable(row)
    unit = UNITS[row["unit"]]
    if printed_deviation(row) == 0.0 and ours.spread <= _NO_SPREAD:
        raise Refused("neither value has spread over its repetitions: there is no variance to test against")
    std, n = published_error(row, runs)
    scaled = replace(ours, mean=unit.scale * ours.mean, error=unit.scale * ours.error, spread=unit.scale * ours.spread)
    return agreement(scaled, float(row["mean"]), std, n, margin=margin_of(metric, unit))


def skew_note(ours: int, runs: int | None) -> str:
    """State the assumption behind the equivalence test for means over ``ours`` and ``runs`` repetitions. Returns an empty string if the
    numbers are equal,
    since skewness then cancels.
    """
    if ours == (ASSUMED_RUNS if runs is None else runs):
        return ""
    share = error_rate("agreements", "skewed: 3 orders, std 1")["equivalent, true 2"]
    return (
        "the means are over different numbers of runs: if noise is as skewed as an exponential, then at 3 runs against 10, "
        f"{share:.0f}% of rows at the margin are called equivalent, not 5%"
    )


# The papers whose tables ship with the suite: their protocols, the names of their metrics here, and their numbers of runs.


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and the meaning of its tables.

    Args:
        name: as in the column ``paper`` of the published tables.
        protocols: the protocols of presets that reproduce this paper's benchmark unchanged, newest version first.
        metrics: maps a printed label to the metric with that definition. "AF" in one paper may be the negative of "AF" in another.
        seeds: seeds of successive repetitions, in the form of a campaign's ``[seeds]`` table; the lists are traversed in step.
        repeats: number of runs behind a printed mean; ``None`` if the paper does not say. seeds_note: what the paper leaves open.
        own_orders: whether the protocol's seeds give the same orders as those behind the printed means.
        spread: what the printed standard deviation is over, as far as the paper says. ddof: its code divides by the number of runs minus
            this; ``None`` if unknown.
        trials: the number of settings among which a method's hyperparameters were chosen, as far as the paper says.
        backbone: the tables' name for the default backbone of the protocol's presets.
    """

    name: str
    protocols: tuple[str, ...]
    metrics: Mapping[str, str]
    seeds: Mapping[str, tuple[int, ...]]
    repeats: int | None
    spread: str
    ddof: int | None = None
    seeds_note: str = ""
    own_orders: bool = False
    trials: str = ""
    backbone: str = "GCN"
    orders: Mapping[str, Any] = field(default_factory=dict)

    @property
    def max_repeats(self) -> int:
        """The number of repetitions of the protocol."""
        return max(map(len, self.seeds.values()))


_TASKS = {"AP": "average_performance", "AF": "backward_transfer"}
_THOUSANDS = tuple(range(0, 10_000, 1000))

PAPERS: tuple[Paper, ...] = (
    Paper(
        name="BeGin",
        protocols=("begin-2", "begin-1"),
        metrics=_TASKS | {"AF": "forgetting_from_diagonal", "INT": "intransigence", "FWT": "forward_transfer"},
        seeds={"order": _THOUSANDS, "split": (0,), "init": _THOUSANDS},
        repeats=10,
        spread="10 seeds, each with its own order of classes and its own initialisation, on one split; the code prints the sample standard "
        "deviation",
        ddof=1,
        own_orders=True,
        trials="18 settings of Bare and 36 of most other methods, chosen by the final validation AP over all tasks",
    ),
    Paper(
        name="CGLB",
        protocols=("cglb-2", "cglb-inter-2", "cglb-1", "cglb-inter-1"),
        metrics=_TASKS,
        seeds={"order": (0,), "split": (0,), "init": tuple(range(5))},
        repeats=None,
        spread=f"runs of one order of classes, whose number the paper does not state; {ASSUMED_RUNS} are assumed, the least certain case; "
        "the code divides by the number of runs",
        ddof=0,
        seeds_note="The paper does not say how many runs a mean is over; here there are five, of the native order.",
    ),
    Paper(
        name="AGALE",
        protocols=("agale-2", "agale-1"),
        metrics=_TASKS,
        seeds={"order": (0, 1, 2), "split": (0,), "init": (0, 1, 2)},
        repeats=3,
        spread="3 orders of classes, each with its own initialisation",
    ),
    Paper(
        name="DRIFT",
        protocols=("drift-2", "drift-1"),
        metrics={"A_AUC": "a_auc", "AF_s": "af_s", "AA": "a_end", "AF": "af_hard"},
        seeds={"order": (1, 2, 3), "split": (1, 2, 3), "init": (1, 2, 3)},
        repeats=3,
        spread="3 seeds, each with its own stream, split and initialisation",
    ),
    Paper(
        name="SkeletonCGL",
        protocols=("skeleton-2", "skeleton-1"),
        metrics={"AOPD": "aopd", "MOPD": "mopd"},
        seeds={"split": (0,), "init": tuple(range(5))},
        repeats=5,
        spread="5 repetitions of all orders, of which each gives one AOPD and one MOPD",
        seeds_note="A repetition is one seed with which every order is run.",
        orders={"task": ("all-tasks",), "class (aggregated)": ("all-tasks", "random-classes:100")},
    ),
)

_LEVEL, _DIFFERENCE = 0.02, 0.03
MARGINS: Mapping[str, float] = {
    name: _LEVEL if name in METRICS and METRICS[name].quantity == "performance" else _DIFFERENCE
    for paper in PAPERS
    for name in paper.metrics.values()
}
"""The margin, by metric, within which a mean counts as equivalent to a published one; in stored units, so 0.02 is 2 points.

Fixed before looking at results: 2 points for means of performance, 3 for differences and ranges of two performances, whose spread is about
    √2 times as
large.
"""


def paper_named(name: str) -> Paper:
    """Return the paper with that name, ignoring case.

    Raises:
        UnknownNameError: the name is unknown; the message suggests the nearest.
    """
    for paper in PAPERS:
        if paper.name.lower() == name.lower():
            return paper
    raise UnknownNameError("paper", name, [paper.name for paper in PAPERS])


def paper_of(protocol: str) -> Paper | None:
    """Return the paper that a protocol comes from; ``None`` if presets with this protocol have no published values."""
    return next((paper for paper in PAPERS if protocol in paper.protocols), None)


SECONDS = "seconds"
"""Replaces the metric when running times are compared; the ledger compares ratios of them."""
REFERENCE = "bare"
"""The method whose running time the others are divided by."""

_OPEN = (
    *("schedule.sigma", "schedule.p", "schedule.window", "training.batch_size", "scenario.n_tasks", "scenario.classes_per_task"),
    *(PRETRAINING_SCHEME, "pretraining.as_begin", "pretraining.temperature"),
)
"""Keys that tables vary within one preset; any other requirement of a variant needs a separate preset."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The requirements that a published variant places on a cell.

    Args:
        overrides: values by dotted key. orders: designs of ``seeds.orders`` over which the printed value is computed; ``()``: none.
        refused: why no cell here can meet the requirements; otherwise empty.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict)
    orders: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The properties of a result that determine which published rows it can be compared with.

    Args:
        preset: its name without the hash of overridden switches. setting, level: of its scenario. backbone: ``None`` = the preset's.
        configuration: every resolved value. changes: the names of overridden values.
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
    """How to reproduce a published row: the preset, method, backbone (``None`` = the preset's) and overrides of its cells, and the metric.

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
        """Whether the metric is a running time, which is compared relative to the running time of :data:`REFERENCE`."""
        return self.metric == SECONDS

    @property
    def design(self) -> tuple[Any, ...]:
        """The part of a recipe that all cells in a campaign share. Class orders include task orders, so one campaign covers both."""
        return self.preset, self.backbone, self.overrides, bool(self.orders)


# --- names -----------------------------------------------------------------------------------------------------------------------


def _normalised_word(name: str) -> str:
    return re.sub(r"[^a-z0-9*]", "", name.lower())


@lru_cache
def _names_by_printed(kind: str) -> tuple[tuple[str, str], ...]:
    """Return printed names and their names here; several names here may share a printed one."""
    table = names()
    mine = table[table["kind"] == kind]
    return tuple((_normalised_word(printed), _normalised_word(here)) for printed, here in zip(mine["printed"], mine["here"], strict=True))


@lru_cache
def _aliases(kind: str) -> dict[str, str]:
    return dict(_names_by_printed(kind))


@lru_cache
def _printed_backbones() -> dict[str, str]:
    return {here: printed for printed, here in _names_by_printed("backbone")}


def dataset_key(name: str) -> str:
    """Normalise a data set's name: ``CoraFull-CL`` and ``corafull``, or ``UCLA-CIL`` and ``nw-ucla``, are the same data set."""
    return _aliases("dataset").get(_normalised_word(name), _normalised_word(name))


def method_key(name: str) -> str:
    """Normalise a method's name: ``EvolveGCN`` and ``evolve-gcn``, or ``CGNN`` and ``continual-gnn``, are the same method."""
    return _aliases("method").get(_normalised_word(name), _normalised_word(name))


def backbone_key(name: str) -> str:
    """Normalise a backbone's name: ``GCN``, ``gcn`` and ``graph-gcn`` are the same, since papers use the same name at all levels."""
    return _printed_backbones().get(_normalised_word(name), _normalised_word(name))


def preset_key(preset: str, setting: str, level: str) -> tuple[str, str, str, str] | None:
    """Return a preset's paper, data set, setting and problem level; ``None`` if its protocol belongs to no paper."""
    paper = paper_of(preset.partition("@")[2])
    return None if paper is None else (paper.name, dataset_key(preset.partition("/")[0]), setting, level)


@lru_cache
def keyed_results() -> pd.DataFrame:
    """Return the published table with normalised names for matching: ``place`` (see :func:`preset_key`), ``method_key``,
    ``backbone_key``."""
    table = published_results()
    datasets = table["dataset"].map({name: dataset_key(name) for name in table["dataset"].unique()})
    places: list[Any] = list(zip(table["paper"], datasets, table["setting"].str.lower(), table["problem"], strict=True))
    keys = {f"{kind}_key": table[kind].map({n: key(n) for n in table[kind].unique()}) for kind, key in _KEYS.items()}
    return table.assign(place=places, **keys)


_KEYS: Mapping[str, Callable[[str], str]] = {"method": method_key, "backbone": backbone_key}


# --- variants --------------------------------------------------------------------------------------------------------------------


def demand_of(row: Mapping[str, Any]) -> Demand:
    """Return the requirements that the variant of a published row places on a cell."""
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
        overrides |= _pretraining_demand(body, row).overrides
    return Demand(overrides=overrides, orders=orders)


_BODIES = {("BeGin", "Piggyback", "NC"): "DGI", ("BeGin", "Piggyback", "LC"): "DGI", ("BeGin", "Piggyback", "GC"): "InfoGraph"}
"""The scheme, by paper, method and problem, that pre-trained the body in rows whose variant names none."""


def _edges(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"scenario.edge_policy": "inter-task" if value == "true" else "none"})


def _hard(_: str, __: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"stream.schedule": "hard"})


def _sigma(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"stream.schedule": "gaussian", "schedule.sigma": float(value)})


def _batch(value: str, _: Mapping[str, Any]) -> Demand:
    return Demand(overrides={"training.batch_size": int(value)})


def _mixing_demand(value: str, _: Mapping[str, Any]) -> Demand:
    kind, number = value.split(" ")
    amount = float(number.partition("=")[2].rstrip("%"))
    setting = {"schedule.p": amount / 100} if kind == "global" else {"schedule.window": amount}
    return Demand(overrides={"stream.schedule": kind, **setting})


def _tasks(value: str, row: Mapping[str, Any]) -> Demand:
    """Return no override if the variant asks for the data set's default number of tasks, since the preset is then unchanged."""
    if value in _printed_task_counts().get((row["paper"], row["dataset"], row["setting"]), ()):
        return Demand()
    return Demand(overrides={"scenario.n_tasks": int(value), "scenario.classes_per_task": None})


@lru_cache
def _printed_task_counts() -> Mapping[tuple[str, str, str], set[str]]:
    """Return the printed numbers of tasks by paper, data set and setting."""
    counts: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    table = dataset_statistics()
    for paper, dataset, setting, n in zip(table["paper"], table["dataset"], table["setting"], table["n_tasks"], strict=True):
        counts[paper, dataset, setting].add(n)
    return dict(counts)


def _pretraining_demand(value: str, _: Mapping[str, Any]) -> Demand:
    """Return a scheme as BeGin implements it, if our default differs."""
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
    "mixing": _mixing_demand,
    "N": _tasks,
    "ssl": _pretraining_demand,
    "order": _orders,
    "size": _size,
    "time": _time,
}


# --- from a result to rows -------------------------------------------------------------------------------------------------------


def printed_rows(result: Result) -> pd.DataFrame:
    """Return the published rows that a result can be compared with, in table order. Rows without a printed value are omitted.

    An overridden switch must be one that the row's variant requires, with the same value.
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
    scheme, wanted = (settings.get(PRETRAINING_SCHEME, NO_PRETRAINING) for settings in (result.configuration, demand.overrides))
    if demand.refused or scheme != wanted:
        return False
    demanded = {"training.backbone", *demand.overrides}
    missing = object()
    met = all(result.configuration.get(name, missing) == value for name, value in demand.overrides.items())
    return met and all(name in demanded for name in result.changes)


# --- from a row to the cells -----------------------------------------------------------------------------------------------------


class RecipeBook:
    """Derives recipes for published rows from a catalogue's plugins. No plugin names are built in."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._presets: dict[Any, list[ScenarioSpec]] = defaultdict(list)
        for spec in catalogue.specs(ScenarioSpec).values():
            self._presets[preset_key(spec.name, spec.setting, spec.level)].append(spec)
        self._methods = {method_key(name): name for name in catalogue.names("method")}
        self._backbones = {backbone_key(name): name for name in catalogue.names("backbone")}
        self._metrics = catalogue.specs(MetricSpec)

    def recipe(self, row: Mapping[str, Any]) -> Recipe | str:
        """Return the recipe for a row in :func:`keyed_results`, or the reason why there is none."""
        paper = paper_named(row["paper"])
        timed = row["unit"] == "s"
        metric, demand = SECONDS if timed else paper.metrics.get(row["metric"]), demand_of(row)
        if metric is None:
            return f"no metric here corresponds to {row['metric']} in {paper.name}"
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
        is_paper_backbone = row["backbone"] == paper.backbone
        if backbone is None and not is_paper_backbone:
            return f"backbone {row['backbone']} is not implemented here: no plugin provides it"
        return Recipe(
            preset=spec.name,
            method=method,
            metric=metric,
            backbone=None if is_paper_backbone else backbone,
            overrides=tuple(sorted({**overrides, **self._shared_budget(spec, overrides, method)}.items())),
            orders=demand.orders,
            needs_joint=not demand.orders and not timed and bool(self._metrics[metric].needs_joint),
        )

    def _preset(self, row: Mapping[str, Any], demand: Demand) -> tuple[ScenarioSpec, dict[str, Any]] | str:
        """Return the newest version of the preset that needs the fewest overrides to meet a demand, with these overrides; or why there is
        none."""
        from cglsuite.cells.spec import default_configuration

        there = self._presets.get(row["place"], [])
        if not there:
            protocols = " or ".join(paper_named(row["paper"]).protocols)
            return f"no plugin provides a preset of {protocols} for {row['dataset']} in {row['setting']} ({row['problem']})"
        fitting: list[tuple[int, int, ScenarioSpec, dict[str, Any]]] = []
        missing, newest = object(), paper_named(row["paper"]).protocols
        for spec in there:
            try:
                defaults = default_configuration(self._catalogue, spec)
            except CglsuiteError as error:  # it depends on a plugin that is missing or faulty
                return f"preset {spec.name} cannot be resolved: {error}"
            overrides = {name: value for name, value in demand.overrides.items() if defaults.get(name, missing) != value}
            if all(name in _OPEN for name in overrides):
                fitting.append((len(overrides), newest.index(spec.name.partition("@")[2]), spec, overrides))
        if not fitting:
            return f"no preset for {row['dataset']} in {row['setting']} has {row['variant']}"
        _, _, spec, overrides = min(fitting, key=lambda candidate: candidate[:2])
        return spec, overrides

    def _shared_budget(self, spec: ScenarioSpec, overrides: Mapping[str, Any], method: str) -> dict[str, Any]:
        """Scale a per-task memory so that the total budget stays the same with a different number of tasks."""
        tasks, budget = overrides.get("scenario.n_tasks"), spec.memory_budget
        declared = self._catalogue.method(method)
        if tasks is None or budget is None or not any(h.name == "per_task" for h in declared.hyperparameters):
            return {}
        return {"method.per_task": max(budget // tasks, 1)}
