"""Compute properties of task-free streams: how much they mix tasks, how often items arrive, and which schedule gives a target mixture.

Tables of a :class:`~cglsuite.reports.studies.task_free.compute.TaskFreeStudy`, formatted by
:mod:`cglsuite.reports.studies.task_free.page`. Values are fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cglsuite.base.errors import CglsuiteError, SpecError, UnknownNameError, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.cells.records.record import Record
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.measures import TASK_FREE_MEASURES, is_fraction, performance_bounds, performance_name, stream_facts, value_of
from cglsuite.reports.results.results import CampaignResults, Group
from cglsuite.reports.results.tables import mean_interval, mean_matrices, mean_std
from cglsuite.reports.results.variants import value_as_text
from cglsuite.reports.studies.sweep import Sweep, sweep_curves
from cglsuite.specs import ScheduleSpec
from cglsuite.stats import metrics
from cglsuite.streams.mixing import mid_steps, mixing_entropy, mixture_of, overlap_index, smallest_setting, step_entropies

QUANTITIES = ("overlap", "entropy")
"""The quantities that a schedule's hyperparameter can be solved for."""
_MAX_DRAWN = 3


def streams(study: TaskFreeStudy) -> pd.DataFrame:
    """Return a data frame with one row per stream.

    Returns:
        Columns preset, title, schedule (in full), steps, tasks, batch, evaluations, overlap (share of steps at which no latent
        task's share reaches the threshold), overlap_delivered (the same for what arrived, in whole items), entropy (see
        :func:`~cglsuite.streams.mixing.mixing_entropy`), at_a_time (``mean_t exp H``: how many equally frequent latent tasks would mix as
        much), never (share of training items that never arrive), most (how often the most frequent one does), mean (draws per item), same.
    """
    rows = []
    for stream in study.streams.values():
        draws = np.concatenate(list(stream.draws))
        rows.append(
            {
                "preset": stream.preset,
                "title": stream.title,
                "schedule": stream.schedule_text,
                "steps": len(stream.mixture),
                "tasks": stream.mixture.shape[1],
                "batch": stream.batch,
                "evaluations": len(stream.evaluations),
                "overlap": overlap_index(stream.mixture, study.threshold),
                "overlap_delivered": overlap_index(stream.counts / stream.batch, study.threshold),
                "entropy": mixing_entropy(stream.mixture),
                "at_a_time": float(np.exp(step_entropies(stream.mixture)).mean()),
                "never": float((draws == 0).mean()),
                "most": int(draws.max()),
                "mean": float(draws.mean()),
                "same": stream.same,
            }
        )
    return pd.DataFrame(rows, columns=_STREAMS)


_STREAMS = ["preset", "title", "schedule", "steps", "tasks", "batch", "evaluations", "overlap", "overlap_delivered", "entropy", "at_a_time"]
_STREAMS += ["never", "most", "mean", "same"]


def exposure(stream: RebuiltStream) -> pd.DataFrame:
    """Count how often the training items of each latent task arrive. Columns: task (1-based), times ("0", "1", "2", "3 or more"), share."""
    rows = []
    for k, draws in enumerate(stream.draws, start=1):
        shares = np.bincount(np.minimum(draws, _MAX_DRAWN), minlength=_MAX_DRAWN + 1) / draws.size
        rows += [{"task": k, "times": name, "share": float(share)} for name, share in zip(_TIMES, shares, strict=True)]
    return pd.DataFrame(rows, columns=["task", "times", "share"])


_TIMES = [*map(str, range(_MAX_DRAWN)), f"{_MAX_DRAWN} or more"]


# --- a schedule's hyperparameter from what is wanted of it ------------------------------------------------------------------------------


def solved_hyperparameters(
    study: TaskFreeStudy, targets: Mapping[str, Sequence[float]], knob: str = "", catalogue: Catalogue | None = None
) -> Any:
    """Find the hyperparameter value that gives a stream a target overlap index or mixing entropy, with everything else unchanged.

    Args:
        targets: by quantity (one of :data:`QUANTITIES`), the wanted values. knob: the schedule's hyperparameter; empty: its first number.

    Returns:
        A frame with the columns title, schedule, knob, quantity, target, value (NaN where there is none), overlap and entropy at that
        value, refused (the reason for a missing value). Streams that differ only in these share their rows.

    Raises:
        UnknownNameError: if a quantity is unknown, or no schedule has the hyperparameter.
    """
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for stream in study.streams.values():
        spec = (catalogue or load_catalogue()).schedule(stream.schedule)
        name = _knob(spec, knob)
        rest = {n: v for n, v in stream.hyperparameters.items() if n != name}
        identity = canonical([stream.schedule, rest, stream.spans.tolist()])
        if not name or identity in seen:
            continue
        seen.add(identity)
        for quantity, wanted in targets.items():
            rows += [
                {"title": stream.title, "schedule": stream.schedule, "knob": name} | _solved(study, stream, spec, name, quantity, t)
                for t in wanted
            ]
    if knob and study.streams and not rows and targets:
        raise UnknownNameError(
            "hyperparameter of the schedules", knob, sorted({n for stream in study.streams.values() for n in stream.hyperparameters})
        )
    columns = ["title", "schedule", "knob", "quantity", "target", "value", "overlap", "entropy", "refused"]
    return pd.DataFrame(rows, columns=columns)


def _knob(spec: ScheduleSpec, name: str) -> str:
    numbers = [h.name for h in spec.hyperparameters if h.type is float]
    return name if name in numbers else "" if name else next(iter(numbers), "")


def _solved(study: TaskFreeStudy, stream: RebuiltStream, spec: ScheduleSpec, knob: str, quantity: str, target: float) -> dict[str, Any]:
    def mixture(value: float) -> NDArray[np.float64]:
        return mixture_of(
            stream.weights(mid_steps(stream.spans), stream.spans, **(dict(stream.hyperparameters) | {knob: value})), stream.schedule_text
        )

    measures: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "overlap": lambda mixed: overlap_index(mixed, study.threshold),
        "entropy": mixing_entropy,
    }
    if quantity not in measures:
        raise UnknownNameError("quantity to solve for", quantity, QUANTITIES)
    row = {"quantity": quantity, "target": float(target), "refused": ""}
    if getattr(stream.weights, "needs_arrivals", False):
        return row | {"refused": "the schedule follows the times of the data"}
    declared = next(h for h in spec.hyperparameters if h.name == knob)
    try:
        start = float(stream.hyperparameters.get(knob) or declared.default or 1.0)
        value = smallest_setting(
            lambda v: measures[quantity](mixture(v)), target, start, minimum=declared.minimum, maximum=declared.maximum
        )
    except SpecError as error:
        return row | {"refused": str(error)}
    solved = mixture(value)
    return row | {"value": value} | {name: measure(solved) for name, measure in measures.items()}


# The task-free cells of campaigns, pooled, and their streams, regenerated.
# Records hold the arrivals up to each evaluation. The arrivals at every step, and how often each item is drawn, follow from the scenario
# and its seeds: streams are regenerated here, and the hash of their arrivals is compared with the records.
# :mod:`cglsuite.reports.studies.task_free.compute` and :mod:`cglsuite.reports.studies.task_free.compute` compute tables of a study.

STREAM_AXES = ("schedule.", "stream.", "training.batch_size")
"""Prefixes of the keys that define how a stream arrives."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RebuiltStream:
    """A stream that was rebuilt in order to examine what it delivers.

    Args:
        preset: of the cells. title: display name. words: what distinguishes it from the other streams of the same preset.
        seeds: order/split/init of its cell.
        schedule: name in the catalogue; hyperparameters: of the schedule; weights: the same with further ones, float64 [T, K].
        spans: float64 [K + 1]. mixture: float64 [T, K]. counts: int64 [T, K]. draws: per latent task int64 [n_k], how often each training
        item arrives. names: of the latent tasks. evaluations: steps made.
        same: whether the records with these seeds were made on the same arrivals; None if no record says.
    """

    preset: str
    title: str
    words: str
    seeds: str
    schedule: str
    hyperparameters: Mapping[str, Any]
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
        """The number of items per step."""
        return int(self.counts[0].sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of training items of each latent task, int64 [K]."""
        return np.array([draw.size for draw in self.draws], dtype=np.int64)

    @property
    def schedule_text(self) -> str:
        """The schedule with its hyperparameters, as text."""
        return " ".join([self.schedule, *(f"{name}={value_as_text(value)}" for name, value in self.hyperparameters.items())])


@dataclass(frozen=True, kw_only=True)
class TaskFreeStudy:
    """The task-free streams and cells of campaigns.

    Args:
        results: those of every campaign. pooled: their finished task-free cells as one campaign's, each record once. streams: by preset.
        words: by preset, what distinguishes it from others of the same base: all differing values for the first, changes for the rest.
        not_rebuilt: by title, why a preset's stream could not be regenerated. other: finished cells of task streams.
        threshold: the share from which a latent task dominates a step.
    """

    results: tuple[CampaignResults, ...]
    pooled: CampaignResults
    streams: Mapping[str, RebuiltStream]
    words: Mapping[str, str]
    not_rebuilt: Mapping[str, str] = field(default_factory=dict)
    other: int = 0
    threshold: float = 0.9

    @property
    def groups(self) -> list[Group]:
        """Groups of records that differ only in their seeds."""
        return self.pooled.groups

    @property
    def methods(self) -> list[str]:
        """Method labels in campaign order, which determines their colours."""
        return list(dict.fromkeys(group.label for group in self.groups))

    @property
    def records(self) -> list[Record]:
        """The finished records that are used."""
        return self.pooled.used

    def title(self, preset: str) -> str:
        """Return the display name of a preset."""
        return ", ".join(filter(None, [self.base(preset), self.words[preset]]))

    def base(self, preset: str) -> str:
        """Return the preset in words, without its overrides, or the preset itself if it has no variants."""
        mine = next(group for group in self.groups if group.preset == preset)
        return scenario_words(str(mine.records[0].cell["scenario"]) if self.words[preset] else preset)


def task_free_study(
    results: Sequence[CampaignResults], *, threshold: float = 0.9, deal: bool = True, catalogue: Catalogue | None = None
) -> TaskFreeStudy:
    """Collect the task-free cells of all campaigns and their streams.

    Args:
        threshold: the share at which a latent task dominates a step, for the overlap index.
        deal: regenerate the streams, which needs the data. Streams of presets without a finished cell are skipped.

    Raises:
        UsageError: if the threshold is outside (0, 1].
    """
    if not 0.0 < threshold <= 1.0:
        raise UsageError(f"threshold = {threshold}: expected a share above 0 and at most 1")
    distinguishing = _distinguishing_values(results)
    pooled = _pooled(results, distinguishing)
    study = TaskFreeStudy(
        results=tuple(results),
        pooled=pooled,
        streams={},
        words={preset: _in_words(configuration) for preset, configuration in distinguishing.items()},
        other=sum(len(group.records) for result in results for group in result.groups if not group.task_free),
        threshold=threshold,
    )
    streams: dict[str, RebuiltStream] = {}
    not_rebuilt: dict[str, str] = {}
    for group in study.groups if deal else ():
        if group.preset in streams or group.preset in not_rebuilt:
            continue
        try:
            streams[group.preset] = _rebuilt(study, group, catalogue or load_catalogue())
        except CglsuiteError as error:
            not_rebuilt[group.preset] = str(error)
    return replace(study, streams=streams, not_rebuilt={study.title(preset): why for preset, why in not_rebuilt.items()})


def _in_words(configuration: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.partition('.')[2]} = {value_as_text(value)}" for name, value in configuration.items())


def _pooled(results: Sequence[CampaignResults], distinguishing: Mapping[str, Mapping[str, Any]]) -> CampaignResults:
    """The finished task-free cells of all campaigns, each record once, with presets named by what distinguishes them."""
    cells = {c.record.key: c for result in results for c in result.cells if c.record is not None and c.record.done and c.record.stream}
    variants = {name: variant for result in reversed(results) for name, variant in result.variants.items()}
    named = {name: replace(variant, distinguishing=distinguishing.get(name, variant.distinguishing)) for name, variant in variants.items()}
    return replace(results[0], cells=tuple(cells.values()), variants=named)


def _distinguishing_values(results: Sequence[CampaignResults]) -> dict[str, dict[str, Any]]:
    """The values that distinguish presets of one base: all of them for the first, those that differ from the first for the rest."""
    by_base: dict[str, dict[str, Mapping[str, Any]]] = {}
    changed: set[str] = set()
    for owner, group in [(result, group) for result in results for group in result.groups if group.task_free]:
        cell = group.records[0].cell
        by_base.setdefault(cell["scenario"], {}).setdefault(group.preset, cell["configuration"])
        changed |= set(owner.variants[group.preset].changes) if group.preset in owner.variants else set()
    distinguishing = {}
    for presets in by_base.values():
        first = next(iter(presets.values()))
        varying = [n for n in sorted(changed) if len({canonical(configuration.get(n)) for configuration in presets.values()}) > 1]
        for preset, configuration in presets.items():
            named = [n for n in varying if configuration is first or canonical(configuration.get(n)) != canonical(first.get(n))]
            distinguishing[preset] = {n: configuration.get(n) for n in named}
    return distinguishing


def _rebuilt(study: TaskFreeStudy, group: Group, catalogue: Catalogue) -> RebuiltStream:
    from cglsuite.cells.run import build_scenario

    reported = next(cell for cell in group.cells if cell.planned.cell is not None and cell.record is not None)
    cell: Any = reported.planned.cell
    stream: Any = build_scenario(catalogue, cell.scenario, cell.dataset_hyperparameters, cell.seeds)
    drawn = np.bincount(stream.items.flatten().numpy())
    members = [stream.members(k, "train").numpy() for k in range(len(stream))]
    top = max(int(ids.max()) for ids in members) + 1
    drawn = np.pad(drawn, (0, max(0, top - drawn.size)))
    sizes = np.array([ids.size for ids in members])
    batch = cell.scenario.training.batch_size or 1
    alike = (r for r in group.records if all(r.cell["seeds"][axis] == getattr(cell.seeds, axis) for axis in ("order", "split")))
    contents = {record.stream.get("content") for record in alike} - {None}
    task_free = cell.scenario.task_free
    return RebuiltStream(
        preset=group.preset,
        title=study.title(group.preset),
        words=study.words[group.preset],
        seeds=f"{cell.seeds.order}/{cell.seeds.split}/{cell.seeds.init}",
        schedule=task_free.schedule,
        hyperparameters=dict(task_free.schedule_hyperparameters),
        weights=catalogue.resolve(catalogue.get("schedule", task_free.schedule)),
        spans=np.concatenate([[0.0], np.cumsum(-(-sizes // batch), dtype=np.float64)]),
        mixture=stream.mixture,
        counts=stream.counts.numpy(),
        draws=[drawn[ids] for ids in members],
        names=[task.name for task in stream.tasks],
        evaluations=list(stream.evaluations),
        same=contents == {stream.content} if contents else None,
    )


def campaigns_per_axis(campaign: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Split a campaign into one campaign per axis. Each one varies only one of ``axes`` (dotted keys to values)."""
    grid, title = dict(campaign.get("grid", {})), campaign.get("title") or campaign["name"]
    return [
        {
            **campaign,
            "name": f"{campaign['name']}-{axis.replace('.', '-').replace('_', '-')}",
            "title": f"{title}: along {axis}",
            "grid": grid | {"axes": {axis: list(values)}},
        }
        for axis, values in axes.items()
    ]


# Methods on task-free streams: performance along the stream, falls and recoveries, performance against overlap.
# Tables of a :class:`~cglsuite.reports.studies.task_free.compute.TaskFreeStudy`, formatted by
# :mod:`cglsuite.reports.studies.task_free.page`. Values are fractions.


def performance(study: TaskFreeStudy) -> pd.DataFrame:
    """Compute the mean performance over latent tasks at every evaluation, averaged over seeds.

    Returns:
        Columns preset, backbone, label, step (steps made), mean, std, low, high (NaN: no interval), n, interval (kind, or why it is
        missing), percent.
    """
    rows = []
    for group in study.groups:
        evaluations, stack = _common_evaluations(group)
        values = stack.mean(axis=2)
        percent = is_fraction(group.records[0])
        identity = {"preset": group.preset, "backbone": group.backbone, "label": group.label, "percent": percent}
        for i, step in enumerate(evaluations):
            rows.append(identity | {"step": step} | _mean(values[:, i], performance_bounds(group.records[0])))
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "step", *_MEAN])


_MEAN = ["mean", "std", "low", "high", "interval", "n"]


def _common_evaluations(group: Group) -> tuple[list[int], NDArray[np.float64]]:
    """The most frequent list of evaluations among the records, and their matrices: float64 [n, E + 1, K]."""
    lists = [tuple(record.stream["evaluations"]) for record in group.records]
    usual, _ = Counter(lists).most_common(1)[0]
    performances = [r.performance() for r, steps in zip(group.records, lists, strict=True) if steps == usual]
    shape = Counter(m.shape for m in performances).most_common(1)[0][0]
    return list(usual), np.stack([m for m in performances if m.shape == shape])


def _mean(values: NDArray[np.float64], bounds: tuple[float, float] | None) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    return mean_std(known) | mean_interval(known, unit="seeds", bounds=bounds)


def courses(study: TaskFreeStudy) -> list[tuple[Group, NDArray[np.float64]]]:
    """Return every group with its mean matrix, float64 [E + 1, K]. Methods of the same preset are adjacent."""
    presets = list(dict.fromkeys(group.preset for group in study.groups))
    return sorted(mean_matrices(study.pooled), key=lambda pair: presets.index(pair[0].preset))


def recoveries(study: TaskFreeStudy) -> pd.DataFrame:
    """Count drops below 90% of the best performance, and measure the time to recover, over all latent tasks and seeds.

    Returns:
        Columns preset, backbone, label, percent, n (records), dips (per record), recovered (share of all dips), steps (median over dips,
        infinite if they last; inf: half or more last, NaN: no dips), depth (mean loss at the lowest point).
    """
    rows = []
    for group in study.groups:
        dips = [dip for record in group.records for dip in metrics.dips(record.performance(), stream_facts(record))]
        identity = {"preset": group.preset, "backbone": group.backbone, "label": group.label, "percent": is_fraction(group.records[0])}
        row: dict[str, Any] = identity | {"n": len(group.records), "dips": len(dips) / len(group.records)}
        if dips:
            row |= {"recovered": np.mean([dip.end is not None for dip in dips]), "steps": np.median([dip.steps for dip in dips])}
            row["depth"] = np.mean([dip.best - dip.least for dip in dips])
        rows.append(row)
    return pd.DataFrame(rows, columns=["preset", "backbone", "label", "percent", "n", "dips", "recovered", "steps", "depth"])


def overlap_points(study: TaskFreeStudy, measure: str = "a_auc") -> pd.DataFrame:
    """Return a metric and the overlap index for streams that differ only in their schedule.

    Returns:
        Columns key, family (what they share, as text), percent, label, preset, title, schedule, overlap, entropy, mean, std, low, high,
        interval, n; families of a single overlap index have no rows.
    """
    metric = TASK_FREE_MEASURES[measure]
    rows = []
    for group in study.groups:
        stream = study.streams.get(group.preset)
        if stream is None:
            continue
        values = np.array([value_of(metric, record) for record in group.records])
        percent = is_fraction(group.records[0])
        mixed = {"overlap": overlap_index(stream.mixture, study.threshold), "entropy": mixing_entropy(stream.mixture)}
        shown = {"preset": group.preset, "title": stream.title, "schedule": stream.schedule_text, **mixed}
        identity = {"key": _family(group), "family": _family_title(group), "percent": percent, "label": group.label}
        rows.append(identity | shown | _mean(values, performance_bounds(group.records[0]) if metric.quantity == "performance" else None))
    frame = pd.DataFrame(rows, columns=["key", "family", "percent", "label", "preset", "title", "schedule", "overlap", "entropy", *_MEAN])
    several = frame.groupby("key")["overlap"].nunique()
    return frame[frame["key"].isin(several[several > 1].index)].reset_index(drop=True)


def _family(group: Group) -> str:
    """All values that define learning and evaluation, except the schedule."""
    configuration = group.records[0].cell["configuration"]
    values = {n: v for n, v in configuration.items() if not n.startswith(("schedule.", "method.", "training.")) and n != "stream.schedule"}
    return canonical([values, configuration.get("training.batch_size"), group.backbone])


def _family_title(group: Group) -> str:
    scenario, configuration = group.records[0].scenario, group.records[0].cell["configuration"]
    shared = f"mask {configuration.get('stream.mask')}, {configuration.get('training.batch_size')} items per step"
    what = f"{scenario.get('dataset')} × {group.backbone}, {shared}, {configuration.get('stream.draw')}"
    return f"{what} – {performance_name(scenario)}"


# Two or more values of one key side by side, method by method, as in papers; a sweep draws the same as curves.
# Values are fractions. :mod:`cglsuite.reports.studies.task_free.page` formats.

_POINT = ["design", "rest", "label", "measure", "place", "value", "mean", "std", "n"]


def contrast(study: Sweep, axis: str, measures: tuple[str, ...] = ("a_auc", "af")) -> pd.DataFrame:
    """Compare every method's measures at every value of a key, with the change from the first value to the last.

    Args:
        axis: dotted key, one of the sweep's axes; for any other the result is empty.
        measures: names of the sweep's measures.

    Returns:
        One row per point, in ascending order of the values: columns design, rest (the other axes in words), label, measure, place, value
        (in words), mean, std (NaN for a single unit), n, change (difference of the means at the last and at the first value of that
        method; NaN where it lacks one of them).
    """
    frames = [sweep_curves(study, name).assign(measure=name) for name in measures if name in study.measures and axis in study.axes]
    points = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*_POINT, "axis"])
    points = points[points["axis"] == axis].sort_values("place", kind="stable")[_POINT]
    parts = []
    for _, curve in points.groupby(["design", "rest"], sort=False):
        for _, rows in curve.groupby(["label", "measure"], sort=False):
            means = rows.set_index("place")["mean"].reindex([0, curve["place"].max()])
            parts.append(rows.assign(change=means.iloc[1] - means.iloc[0]))
    return pd.concat(parts, ignore_index=True) if parts else points.assign(change=pd.Series(dtype="float64"))
