"""What task-free streams deliver and what methods make of it: the tables of a study, computed.

Records hold what had arrived at each evaluation. What arrives at every single step, and how often each item is drawn, follows from the
scenario and its seeds: streams are dealt again here, and the hash of what arrives is compared with that in the records.
:mod:`cglsuite.reports.show_flows` formats. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite import metrics, stats
from cglsuite.errors import CglsuiteError, SpecError, UnknownNameError, UsageError
from cglsuite.hashing import canonical
from cglsuite.reports.measures import FLOW_MEASURES, stream_facts
from cglsuite.reports.performance import is_fraction, performance_name
from cglsuite.reports.tables import mean_matrices
from cglsuite.reports.variants import setting_text
from cglsuite.streams.mixing import mid_steps, mixing_entropy, mixture_of, overlap_index, smallest_setting, step_entropies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cglsuite.cells.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.reports.results import CampaignResults, Group
    from cglsuite.specs import ScheduleSpec

__all__ = [
    "QUANTITIES",
    "STREAM_AXES",
    "Flow",
    "FlowStudy",
    "accuracy",
    "courses",
    "exposure",
    "flow_study",
    "one_at_a_time",
    "overlap_points",
    "recoveries",
    "solved_settings",
    "streams",
]

STREAM_AXES = ("schedule.", "stream.", "training.batch_size")
"""What the names of settings begin with that say how a stream arrives."""
QUANTITIES = ("overlap", "entropy")
"""What a schedule's setting can be solved for."""
_MOST_DRAWN = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Flow:
    """One stream, dealt again.

    Args:
        preset: of the cells. title: what to call it; words: what tells it from the other streams of the same preset.
        seeds: order/split/init of the cell that it is of.
        schedule: name in the catalogue; settings: of the schedule; weights: the same with further settings, float64 [T, K].
        spans: float64 [K + 1]. mixture: float64 [T, K]. counts: int64 [T, K]. draws: per latent task int64 [n_k], how often each training
        item arrives. names: of the latent tasks. evaluations: steps made.
        same: whether the records with these seeds were made on what was dealt here; None where no record says.
    """

    preset: str
    title: str
    words: str
    seeds: str
    schedule: str
    settings: Mapping[str, Any]
    weights: Callable[..., NDArray[np.float64]]
    spans: NDArray[np.float64]
    mixture: NDArray[np.float64]
    counts: NDArray[np.int64]
    draws: Sequence[NDArray[np.int64]]
    names: Sequence[str]
    evaluations: Sequence[int]
    same: bool | None

    @property
    def batch(self) -> int:
        """Items per step."""
        return int(self.counts[0].sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 [K]: training items of each latent task."""
        return np.array([one.size for one in self.draws], dtype=np.int64)

    @property
    def told(self) -> str:
        """The schedule with its settings, as they would be written down."""
        return " ".join([self.schedule, *(f"{name}={setting_text(value)}" for name, value in self.settings.items())])


@dataclass(frozen=True, kw_only=True)
class FlowStudy:
    """The task-free part of campaigns.

    Args:
        results: of every campaign. pooled: their finished task-free cells as one campaign's, each record once. flows: by preset.
        words: by preset, what tells it from the others of the same base: the first says in what they differ, the rest how from the first.
        not_dealt: why a preset's stream could not be dealt again, by its title. other: finished cells that are of streams of tasks.
        threshold: the share from which on a latent task dominates a step.
    """

    results: tuple[CampaignResults, ...]
    pooled: CampaignResults
    flows: Mapping[str, Flow]
    words: Mapping[str, str]
    not_dealt: Mapping[str, str] = field(default_factory=dict)
    other: int = 0
    threshold: float = 0.9

    @property
    def groups(self) -> list[Group]:
        """Records that differ in their seeds only."""
        return self.pooled.groups

    @property
    def methods(self) -> list[str]:
        """Labels in the campaigns' order, which fixes their colours."""
        return list(dict.fromkeys(group.label for group in self.groups))

    @property
    def records(self) -> list[Record]:
        """The finished records in use."""
        return self.pooled.used

    def title(self, preset: str) -> str:
        """What to call a preset on the page."""
        return ", ".join(filter(None, [self.base(preset), self.words[preset]]))

    def base(self, preset: str) -> str:
        """The preset without what was overridden; its own name where nothing tells variants apart."""
        mine = next(group for group in self.groups if group.preset == preset)
        return str(mine.records[0].cell["scenario"]) if self.words[preset] else preset


def flow_study(
    results: Sequence[CampaignResults], *, threshold: float = 0.9, deal: bool = True, catalogue: Catalogue | None = None
) -> FlowStudy:
    """The task-free cells of all campaigns, and their streams.

    Args:
        threshold: the share from which on a latent task dominates a step, for the overlap index.
        deal: deal the streams again, which needs the data. Streams of presets without a finished cell are not dealt.

    Raises:
        UsageError: a threshold outside (0, 1].
    """
    if not 0.0 < threshold <= 1.0:
        raise UsageError(f"threshold = {threshold}: expected a share above 0 and at most 1")
    telling = _telling(results)
    pooled = _pooled(results, telling)
    study = FlowStudy(
        results=tuple(results),
        pooled=pooled,
        flows={},
        words={preset: _in_words(told) for preset, told in telling.items()},
        other=sum(len(group.records) for one in results for group in one.groups if not group.task_free),
        threshold=threshold,
    )
    flows: dict[str, Flow] = {}
    not_dealt: dict[str, str] = {}
    for group in study.groups if deal else ():
        if group.preset in flows or group.preset in not_dealt:
            continue
        try:
            flows[group.preset] = _dealt(study, group, catalogue or _installed())
        except CglsuiteError as error:
            not_dealt[group.preset] = str(error)
    return replace(study, flows=flows, not_dealt={study.title(preset): why for preset, why in not_dealt.items()})


def _in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.partition('.')[2]} = {setting_text(value)}" for name, value in settings.items())


def _pooled(results: Sequence[CampaignResults], telling: Mapping[str, Mapping[str, Any]]) -> CampaignResults:
    """The finished task-free cells of all campaigns, each record once; presets are called by what tells them apart over all of them."""
    cells = {c.record.key: c for one in results for c in one.cells if c.record is not None and c.record.done and c.record.stream}
    variants = {name: variant for one in reversed(results) for name, variant in one.variants.items()}
    named = {name: replace(variant, telling=telling.get(name, variant.telling)) for name, variant in variants.items()}
    return replace(results[0], cells=tuple(cells.values()), variants=named)


def _telling(results: Sequence[CampaignResults]) -> dict[str, dict[str, Any]]:
    """By preset, the settings that tell it from others of its base: all of them for the first, for the rest those unlike the first's."""
    by_base: dict[str, dict[str, Mapping[str, Any]]] = {}
    changed: set[str] = set()
    for owner, group in [(one, group) for one in results for group in one.groups if group.task_free]:
        cell = group.records[0].cell
        by_base.setdefault(cell["scenario"], {}).setdefault(group.preset, cell["settings"])
        changed |= set(owner.variants[group.preset].changes) if group.preset in owner.variants else set()
    telling = {}
    for presets in by_base.values():
        first = next(iter(presets.values()))
        unlike = [n for n in sorted(changed) if len({canonical(settings.get(n)) for settings in presets.values()}) > 1]
        for preset, settings in presets.items():
            told = [n for n in unlike if settings is first or canonical(settings.get(n)) != canonical(first.get(n))]
            telling[preset] = {n: settings.get(n) for n in told}
    return telling


def _installed() -> Catalogue:
    from cglsuite.cells.engine import default_engine

    return default_engine().load_catalogue()


def _dealt(study: FlowStudy, group: Group, catalogue: Catalogue) -> Flow:
    from cglsuite.cells.run import build_scenario

    reported = next(cell for cell in group.cells if cell.planned.cell is not None and cell.record is not None)
    cell: Any = reported.planned.cell
    stream: Any = build_scenario(catalogue, cell.scenario, cell.dataset_settings, cell.seeds)
    drawn = np.bincount(stream.items.flatten().numpy())
    members = [stream.members(k, "train").numpy() for k in range(len(stream))]
    top = max(int(ids.max()) for ids in members) + 1
    drawn = np.pad(drawn, (0, max(0, top - drawn.size)))
    sizes = np.array([ids.size for ids in members])
    batch = cell.scenario.training.batch_size or 1
    contents = {r.stream.get("content") for r in group.records if _stream_seeds(r) == (cell.seeds.order, cell.seeds.split)} - {None}
    online = cell.scenario.online
    return Flow(
        preset=group.preset,
        title=study.title(group.preset),
        words=study.words[group.preset],
        seeds=f"{cell.seeds.order}/{cell.seeds.split}/{cell.seeds.init}",
        schedule=online.schedule,
        settings=dict(online.schedule_settings),
        weights=_schedule(cell, catalogue),
        spans=np.concatenate([[0.0], np.cumsum(-(-sizes // batch), dtype=np.float64)]),
        mixture=stream.mixture,
        counts=stream.counts.numpy(),
        draws=[drawn[ids] for ids in members],
        names=[task.name for task in stream.tasks],
        evaluations=list(stream.evaluations),
        same=contents == {stream.content} if contents else None,
    )


def _stream_seeds(record: Record) -> tuple[int, int]:
    return record.cell["seeds"]["order"], record.cell["seeds"]["split"]


def _schedule(cell: CellSpec, catalogue: Catalogue) -> Callable[..., NDArray[np.float64]]:
    online: Any = cell.scenario.online
    function: Callable[..., NDArray[np.float64]] = catalogue.resolve(catalogue.get("schedule", online.schedule))
    return function


def one_at_a_time(campaign: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Further campaigns, each the given one (its content) along one of ``axes`` (dotted settings to values) and no other."""
    grid, title = dict(campaign.get("grid", {})), campaign.get("title") or campaign["name"]
    return [
        {
            **campaign,
            "name": f"{campaign['name']}-{axis.replace('.', '-').replace('_', '-')}",
            "title": f"{title}: along {axis}",
            "grid": grid | {"settings": {axis: list(values)}},
        }
        for axis, values in axes.items()
    ]


# --- the streams -----------------------------------------------------------------------------------------------------------------


def streams(study: FlowStudy) -> pd.DataFrame:
    """One row per stream.

    Returns:
        Columns preset, title, told (the schedule with its settings), steps, tasks, batch, evaluations, overlap (share of steps at which no
        latent task's share reaches the threshold), overlap_delivered (the same of what arrived, in whole items), entropy (see
        :func:`~cglsuite.streams.mixing.mixing_entropy`), at_a_time (``mean_t exp H``: how many equally frequent latent tasks would mix as
        much), never (share of training items that never arrive), most (how often the most frequent one does), mean (draws per item), same.
    """
    rows = []
    for flow in study.flows.values():
        draws = np.concatenate(list(flow.draws))
        rows.append(
            {
                "preset": flow.preset,
                "title": flow.title,
                "told": flow.told,
                "steps": len(flow.mixture),
                "tasks": flow.mixture.shape[1],
                "batch": flow.batch,
                "evaluations": len(flow.evaluations),
                "overlap": overlap_index(flow.mixture, study.threshold),
                "overlap_delivered": overlap_index(flow.counts / flow.batch, study.threshold),
                "entropy": mixing_entropy(flow.mixture),
                "at_a_time": float(np.exp(step_entropies(flow.mixture)).mean()),
                "never": float((draws == 0).mean()),
                "most": int(draws.max()),
                "mean": float(draws.mean()),
                "same": flow.same,
            }
        )
    return pd.DataFrame(rows, columns=_STREAMS)


_STREAMS = ["preset", "title", "told", "steps", "tasks", "batch", "evaluations", "overlap", "overlap_delivered", "entropy", "at_a_time"]
_STREAMS += ["never", "most", "mean", "same"]


def exposure(flow: Flow) -> pd.DataFrame:
    """How often the training items of each latent task arrive: columns task (1-based), times ("0", "1", "2", "3 or more"), share."""
    rows = []
    for k, draws in enumerate(flow.draws, start=1):
        shares = np.bincount(np.minimum(draws, _MOST_DRAWN), minlength=_MOST_DRAWN + 1) / draws.size
        rows += [{"task": k, "times": name, "share": float(share)} for name, share in zip(_TIMES, shares, strict=True)]
    return pd.DataFrame(rows, columns=["task", "times", "share"])


_TIMES = [*map(str, range(_MOST_DRAWN)), f"{_MOST_DRAWN} or more"]


# --- a schedule's setting from what is wanted of it ------------------------------------------------------------------------------


def solved_settings(study: FlowStudy, targets: Mapping[str, Sequence[float]], knob: str = "", catalogue: Catalogue | None = None) -> Any:
    """Which value of a schedule's setting gives a stream a wanted overlap index or mixing entropy, its other settings as they are.

    Args:
        targets: by quantity (one of :data:`QUANTITIES`), the values that are wanted. knob: the schedule's setting; empty: its first number.

    Returns:
        A frame with the columns title, schedule, knob, quantity, target, value (NaN where there is none), overlap and entropy at that
        value, refused (why there is no value). Streams that differ in settings of their schedule alone have their rows once.

    Raises:
        UnknownNameError: a quantity, or a setting that no schedule has.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for flow in study.flows.values():
        spec: Any = (catalogue or _installed()).get("schedule", flow.schedule).spec
        name = _knob(spec, knob)
        rest = {n: v for n, v in flow.settings.items() if n != name}
        identity = canonical([flow.schedule, rest, flow.spans.tolist()])
        if not name or identity in seen:
            continue
        seen.add(identity)
        for quantity, wanted in targets.items():
            rows += [
                {"title": flow.title, "schedule": flow.schedule, "knob": name} | _solved(study, flow, spec, name, quantity, t)
                for t in wanted
            ]
    if knob and study.flows and not rows and targets:
        raise UnknownNameError("setting of the schedules", knob, sorted({n for flow in study.flows.values() for n in flow.settings}))
    columns = ["title", "schedule", "knob", "quantity", "target", "value", "overlap", "entropy", "refused"]
    return pd.DataFrame(rows, columns=columns)


def _knob(spec: ScheduleSpec, asked: str) -> str:
    numbers = [h.name for h in spec.hyperparameters if h.type is float]
    return asked if asked in numbers else "" if asked else next(iter(numbers), "")


def _solved(study: FlowStudy, flow: Flow, spec: ScheduleSpec, knob: str, quantity: str, target: float) -> dict[str, Any]:
    def mixture(value: float) -> NDArray[np.float64]:
        return mixture_of(flow.weights(mid_steps(flow.spans), flow.spans, **(dict(flow.settings) | {knob: value})), flow.told)

    measures: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "overlap": lambda mixed: overlap_index(mixed, study.threshold),
        "entropy": mixing_entropy,
    }
    if quantity not in measures:
        raise UnknownNameError("quantity to solve for", quantity, QUANTITIES)
    row = {"quantity": quantity, "target": float(target), "value": np.nan, "overlap": np.nan, "entropy": np.nan, "refused": ""}
    if getattr(flow.weights, "needs_arrivals", False):
        return row | {"refused": "the schedule follows the times of the data"}
    declared = next(h for h in spec.hyperparameters if h.name == knob)
    try:
        start = float(flow.settings.get(knob) or declared.default or 1.0)
        value = smallest_setting(
            lambda v: measures[quantity](mixture(v)), target, start, minimum=declared.minimum, maximum=declared.maximum
        )
    except SpecError as error:
        return row | {"refused": str(error)}
    found = mixture(value)
    return row | {"value": value} | {name: measure(found) for name, measure in measures.items()}


# --- what methods make of it -----------------------------------------------------------------------------------------------------


def accuracy(study: FlowStudy) -> pd.DataFrame:
    """The mean over latent tasks at every evaluation, over seeds.

    Returns:
        Columns preset, backbone, label, step (steps made), mean, std, low, high (NaN: no interval), n, interval (kind, or why there is
        none), percent.
    """
    rows = []
    for group in study.groups:
        evaluations, stack = _alike(group)
        values = stack.mean(axis=2)
        percent = is_fraction(group.records[0])
        identity = {"preset": group.preset, "backbone": group.backbone, "label": group.label, "percent": percent}
        for i, step in enumerate(evaluations):
            rows.append(identity | {"step": step} | _mean(values[:, i], percent))
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "step", "mean", "std", "low", "high", "interval", "n"])


def _alike(group: Group) -> tuple[list[int], NDArray[np.float64]]:
    """The most frequent list of evaluations among the records, and their matrices: float64 [n, E + 1, K]."""
    lists = [tuple(record.stream["evaluations"]) for record in group.records]
    usual, _ = Counter(lists).most_common(1)[0]
    kept = [r.performance() for r, own in zip(group.records, lists, strict=True) if own == usual]
    shape = Counter(m.shape for m in kept).most_common(1)[0][0]
    return list(usual), np.stack([m for m in kept if m.shape == shape])


def _mean(values: NDArray[np.float64], share: bool) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    row = {"mean": float(known.mean()) if known.size else np.nan, "std": np.nan, "low": np.nan, "high": np.nan, "n": int(known.size)}
    if known.size > 1:
        row["std"] = float(known.std(ddof=1))
    try:
        interval = stats.mean_interval(known, unit="seeds", bounds=(0.0, 1.0) if share else None)
    except stats.Refused as refusal:
        return row | {"interval": str(refusal)}
    return row | {"low": interval.low, "high": interval.high, "interval": interval.method}


def courses(study: FlowStudy) -> list[tuple[Group, NDArray[np.float64]]]:
    """Each group with the mean of its matrices, float64 [E + 1, K]; the methods of a preset one after the other."""
    presets = list(dict.fromkeys(group.preset for group in study.groups))
    return sorted(mean_matrices(study.pooled), key=lambda pair: presets.index(pair[0].preset))


def recoveries(study: FlowStudy) -> pd.DataFrame:
    """What fell below 90 % of its best and how soon it was back, over all latent tasks and seeds.

    Returns:
        Columns preset, backbone, label, percent, n (records), dips (per record), recovered (share of all dips), steps (median over dips,
        infinitely long where they last; inf: half or more last, NaN: nothing dips), depth (mean of what is lost at the lowest).
    """
    rows = []
    for group in study.groups:
        found = [dip for record in group.records for dip in metrics.dips(record.performance(), stream_facts(record))]
        rows.append(
            {
                "preset": group.preset,
                "backbone": group.backbone,
                "label": group.label,
                "percent": is_fraction(group.records[0]),
                "n": len(group.records),
                "dips": len(found) / len(group.records),
                "recovered": float(np.mean([dip.end is not None for dip in found])) if found else np.nan,
                "steps": float(np.median([dip.steps for dip in found])) if found else np.nan,
                "depth": float(np.mean([dip.best - dip.least for dip in found])) if found else np.nan,
            }
        )
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "n", "dips", "recovered", "steps", "depth"])


def overlap_points(study: FlowStudy, measure: str = "a_auc") -> pd.DataFrame:
    """A metric against the overlap index of the stream, among streams that differ in nothing but their schedule.

    Returns:
        Columns key, family (what they share, in words), percent, label, preset, title, told, overlap, entropy, mean, std, low, high,
        interval, n; families of a single overlap index have no rows.
    """
    function = FLOW_MEASURES[measure]
    rows = []
    for group in study.groups:
        flow = study.flows.get(group.preset)
        if flow is None:
            continue
        values = np.array([function.of(record) for record in group.records])
        percent = is_fraction(group.records[0])
        shown: dict[str, Any] = {"title": flow.title, "told": flow.told, "overlap": overlap_index(flow.mixture, study.threshold)}
        shown["entropy"] = mixing_entropy(flow.mixture)
        identity = {"key": _family(group), "family": _family_title(group), "percent": percent, "label": group.label, "preset": group.preset}
        rows.append(identity | shown | _mean(values, percent and function.share))
    columns = [
        "key",
        "family",
        "percent",
        "label",
        "preset",
        "title",
        "told",
        "overlap",
        "entropy",
        "mean",
        "std",
        "low",
        "high",
        "interval",
        "n",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    several = frame.groupby("key")["overlap"].nunique()
    return frame[frame["key"].isin(several[several > 1].index)].reset_index(drop=True)


def _family(group: Group) -> str:
    """Everything that says what is learnt and asked but the schedule."""
    settings = group.records[0].cell["settings"]
    kept = {n: v for n, v in settings.items() if not n.startswith(("schedule.", "method.", "training.")) and n != "stream.schedule"}
    return canonical([kept, settings.get("training.batch_size"), group.backbone])


def _family_title(group: Group) -> str:
    scenario, settings = group.records[0].scenario, group.records[0].cell["settings"]
    shared = [
        f"mask {settings.get('stream.mask')}",
        f"{settings.get('training.batch_size')} items per step",
        str(settings.get("stream.draw")),
    ]
    return f"{scenario.get('dataset')} × {group.backbone}, {', '.join(shared)} – {performance_name(scenario)}"
