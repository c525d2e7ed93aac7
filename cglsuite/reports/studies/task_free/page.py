"""The page on task-free streams.

Formats what :mod:`cglsuite.reports.studies.task_free.compute` (streams) and
:mod:`cglsuite.reports.studies.task_free.compute` (methods on them) compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.figures import Course, course_figure, legend_picture
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.tables import Column, as_rows, crossed, empty, framed, label, number, number_cell, number_text, words
from cglsuite.reports.kit.text import notice, tile
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.measures import TASK_FREE_MEASURES, is_fraction, performance_name
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.results.summary import notices
from cglsuite.reports.results.summary import summary as campaign_summary
from cglsuite.reports.studies import sweep as show_sweep
from cglsuite.reports.studies.sweep import Sweep
from cglsuite.reports.studies.task_free import compute as performance_tables
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free.compute import contrast as contrasted
from cglsuite.reports.studies.task_free.figures import exposure_figure, overlap_figure, progress_figure, stream_figure
from cglsuite.streams.mixing import overlap_index

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.results.results import Group
    from cglsuite.reports.studies.task_free.compute import DealtStream, TaskFreeStudy

__all__ = [
    "contrast",
    "courses",
    "exposure",
    "overlap",
    "overview",
    "performance",
    "problems",
    "provenance",
    "recoveries",
    "schedules",
    "solved",
    "streams",
    "summary",
    "sweeps",
]

_NOTHING = "No task-free cell of these campaigns is finished yet."
_NOT_DEALT = "No stream has been regenerated."


# --- the study -------------------------------------------------------------------------------------------------------------------


def overview(study: TaskFreeStudy, message: Fragment | None = None) -> Fragment:
    """The runs, their streams, ``message`` (such as key results), and warnings to read before the numbers."""
    first, records = study.results[0], study.records
    presets = {group.preset for group in study.groups}
    tiles = [(sum(len(one.cells) for one in study.results), "cells planned"), (len(records), "in use"), (len(presets), "streams")]
    tiles += [(len(study.methods), "methods"), (len({str(r.cell["seeds"]) for r in records}), "seeds (order/split/init)")]
    parts: list[Content] = [element("p", element("strong", first.title), class_="lead"), message]
    parts.append(element("p", first.campaign.description) if first.campaign.description else None)
    parts.append(element("ul", *(tile(value, label) for value, label in tiles), class_="tiles"))
    return join([*parts, *_notices(study)])


def _notices(study: TaskFreeStudy) -> Iterable[Fragment]:
    for one in study.results:
        yield from notices(one)
    if study.other:
        yield notice(f"{study.other} finished cells have task streams; they are left out here (see campaign_report).")
    if study.not_dealt:
        description = [f"{title}: {why}" for title, why in study.not_dealt.items()]
        yield notice("These streams could not be regenerated, so only facts from the records are shown:", *description)
    changed = [stream.title for stream in study.streams.values() if stream.same is False]
    if changed:
        yield notice("These streams differ from those behind the records; data or code have changed:", *changed)


def summary(study: TaskFreeStudy) -> Fragment:
    """Mean ± standard deviation of every metric, a table per stream."""
    return campaign_summary(study.pooled) if study.groups else empty(_NOTHING)


# --- the streams -----------------------------------------------------------------------------------------------------------------


def streams(study: TaskFreeStudy) -> Fragment:
    """One row per stream: how much it mixes, and how often items arrive."""
    frame = stream_tables.streams(study)
    if frame.empty:
        return empty(_NOTHING if not study.groups else _NOT_DEALT)
    columns = [
        label("stream", lambda row: _figure_title(study.streams[row["preset"]])),
        words("steps × items", lambda row: f"{number_text(row['steps'], 0)} × {row['batch']}", "number nowrap", "number"),
        *(number("latent tasks", "tasks"), number("overlap index", "overlap", 3), number("as delivered", "overlap_delivered", 3)),
        *(number("mixing entropy", "entropy", 3), number("tasks at a time", "at_a_time", 2)),
        *(Column("never drawn, %", lambda row: _percent(row["never"])), number("drawn at most", "most")),
    ]
    description = (
        f"Overlap index: share of steps at which no latent task has a share of {study.threshold:g} or more, as the schedule asks for it "
    )
    description += (
        "and as delivered in whole items. Mixing entropy: 0 if every step has one latent task, 1 if all share every step equally. "
    )
    same = [stream.same for stream in study.streams.values()]
    description += "Hashes confirm that these are the streams of the records." if all(same) else ""
    return framed(frame, columns, description, by=lambda row: study.base(row["preset"]))


def _percent(share: float) -> Fragment:
    return element("td", number_text(100 * share, 1), class_="number", data_value=repr(float(share)))


def schedules(study: TaskFreeStudy) -> Gallery | Fragment:
    """One figure per stream: what the schedule asks for, what arrives, what has arrived."""
    if not study.streams:
        return empty(_NOT_DEALT)
    return Gallery(tuple(_schedule(study, stream) for stream in study.streams.values()))


def _schedule(study: TaskFreeStudy, stream: DealtStream) -> Any:
    def draw(theme: Theme) -> Any:
        return stream_figure(stream.mixture, stream.counts, stream.sizes, theme, title=_figure_title(stream), threshold=study.threshold)

    mixed = overlap_index(stream.mixture, study.threshold)
    description = f"{len(stream.mixture)} steps of {stream.batch} items from {stream.mixture.shape[1]} latent tasks"
    caption = f"{len(stream.mixture)} steps, overlap index {mixed:.2f}, seeds {stream.seeds}"
    alt = f"Schedule and delivery of {stream.title} ({stream.schedule_text}): {description}; "
    alt += f"overlap index {mixed:.3f} at threshold {study.threshold:g}"
    return picture(draw, alt, caption, study.base(stream.preset))


def _figure_title(stream: DealtStream) -> str:
    """The values that distinguish the stream from others in the group of figures."""
    return stream.words or stream.schedule_text


def exposure(study: TaskFreeStudy) -> Gallery | Fragment:
    """One figure per stream: how often the training items of each latent task are drawn."""
    if not study.streams:
        return empty(_NOT_DEALT)
    rows = {row["preset"]: row for row in as_rows(stream_tables.streams(study))}

    def one(stream: DealtStream) -> Any:
        frame, row = stream_tables.exposure(stream), rows[stream.preset]

        def draw(theme: Theme) -> Any:
            return exposure_figure(frame, theme, title=_figure_title(stream))

        description = f"{100 * row['never']:.1f} % never, {row['most']} times at most"
        return picture(draw, f"Exposure in {stream.title} ({stream.schedule_text}). {description}", description, study.base(stream.preset))

    return Gallery(tuple(one(stream) for stream in study.streams.values()))


def solved(study: TaskFreeStudy, targets: Mapping[str, Sequence[float]], knob: str = "") -> Fragment:
    """Which hyper-parameter of a schedule gives a wanted overlap index or mixing entropy."""
    frame = stream_tables.solved_hyperparameters(study, targets, knob)
    if frame.empty:
        return empty("There is nothing to solve for: no schedule has a number, or no target was given.")
    named = {"overlap": "overlap index", "entropy": "mixing entropy"}
    streams = {stream.title: stream for stream in study.streams.values()}

    def title(row: Mapping[str, Any]) -> str:
        stream = streams[row["title"]]
        size = f"{stream.mixture.shape[1]} latent tasks in {len(stream.mixture)} steps of {stream.batch} items"
        return f"{row['schedule']}: {row['knob']} for {size}, as in {row['title']}"

    def setting(row: Mapping[str, Any]) -> Fragment:
        return element("td", element("strong", f"{row['value']:.4g}"), class_="number", data_value=repr(row["value"]))

    def unreached(row: Mapping[str, Any]) -> tuple[int, str] | None:
        return (1, f"none: {row['refused']}") if row["refused"] else None

    columns = [
        label("wanted", lambda row: f"{named[row['quantity']]} ≥ {row['target']:g}"),
        *(Column("setting", setting), number("overlap index", "overlap", 3), number("mixing entropy", "entropy", 3)),
    ]
    about = "The smallest value of the hyper-parameter that reaches the target, and the resulting overlap and entropy."
    return framed(frame, columns, about, by=title, refused=unreached)


# --- what methods make of it -----------------------------------------------------------------------------------------------------


def performance(study: TaskFreeStudy) -> Gallery | Fragment:
    """One figure per stream and backbone: the mean over latent tasks along the stream, a line per method."""
    frame = performance_tables.performance(study)
    if frame.empty:
        return empty(_NOTHING)
    parts = frame.groupby(["preset", "backbone"], sort=False)
    alone = parts.ngroups == 1
    pictures = [_progress(study, str(preset), str(backbone), part, alone) for (preset, backbone), part in parts]
    if alone:
        return Gallery(tuple(pictures))
    offline = list(dict.fromkeys(group.label for group in study.groups if group.method == UPPER_BOUND))
    return Gallery((legend_picture(study.methods, order=study.methods, bounds=offline), *pictures))


def _progress(study: TaskFreeStudy, preset: str, backbone: str, part: pd.DataFrame, keyed: bool) -> Any:
    percent, stream = bool(part["percent"].iloc[0]), study.streams.get(preset)
    record = next(g.records[0] for g in study.groups if g.preset == preset)
    measured, several = performance_name(record.scenario), len({g.backbone for g in study.groups}) > 1
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    bands = f"Bands: 95 % interval ({', '.join(kinds)}) over seeds." if kinds else "Too few seeds for intervals."
    offline = [g.label for g in study.groups if g.preset == preset and g.method == UPPER_BOUND]
    if offline:
        bands += f" Dashed: {', '.join(offline)}, trained offline on all items, at the end of the stream, where all classes compete."
    ends = as_rows(part[part["step"] == part["step"].max()])
    description = "; ".join(f"{row['label']} {(100.0 if percent else 1.0) * row['mean']:.1f}" for row in ends)

    def draw(theme: Theme) -> Any:
        title = ", ".join(filter(None, [_figure_title(stream) if stream else study.words[preset], backbone if several else ""])) or preset
        ylabel = f"{measured}{', %' if percent else ''}"
        mixture = stream.mixture if stream else None
        look: dict[str, Any] = {"percent": percent, "mixture": mixture, "bounds": offline, "keyed": keyed}
        return progress_figure(part, theme, title=title, ylabel=ylabel, order=study.methods, **look)

    alt = f"Mean {measured} over latent tasks along {study.title(preset)}, backbone {backbone}. After the last step: {description}"
    return picture(draw, alt, bands, study.base(preset))


def courses(study: TaskFreeStudy) -> Gallery | Fragment:
    """One heat map per stream and method: every latent task along the stream, means over seeds."""
    if not study.groups:
        return empty(_NOTHING)
    return Gallery(tuple(_course(study, group, values) for group, values in performance_tables.courses(study)))


def _course(study: TaskFreeStudy, group: Group, values: Any) -> Any:
    record, percent = group.records[0], is_fraction(group.records[0])
    course, title = Course.of(record.stream, len(values)), f"{group.label}, n = {len(group.records)}"
    bounds = (0.0, 1.0) if percent else (float(values.min()), float(values.max()))

    def draw(theme: Theme) -> Any:
        return course_figure(values, course, title, theme, percent=percent, bounds=bounds)

    measured = performance_name(record.scenario)
    last = ", ".join("–" if math.isnan(v) else f"{(100.0 if percent else 1.0) * v:.1f}" for v in values[-1])
    alt = f"Mean {measured} of {group.label} on every latent task along {study.title(group.preset)}. After the last step: {last}"
    return picture(draw, alt, group=f"{study.title(group.preset)} – {measured}{' in percent' if percent else ''}")


def recoveries(study: TaskFreeStudy) -> Fragment:
    """Per stream and method: the number of falls below 90 % of the best, the share that recovers, and how soon."""
    frame = performance_tables.recoveries(study)
    if frame.empty:
        return empty(_NOTHING)
    several = frame["backbone"].nunique() > 1
    columns = [
        label("method", "label", lambda row: row["backbone"] if several else ""),
        *(number("records", "n"), number("falls per record", "dips", 1)),
        Column("made good, %", lambda row: number_cell(None) if _nan(row["recovered"]) else _percent(row["recovered"])),
        Column("median steps until then", lambda row: _steps(row["steps"])),
        number("mean depth, points", lambda row: (100.0 if row["percent"] else 1.0) * row["depth"], lambda row: 1 if row["percent"] else 4),
    ]
    description = (
        "A fall begins at the evaluation at which a latent task is below 90 % of the best it had since it first arrived, and recovers "
    )
    description += "when it is back there. A fall that outlasts the stream counts as infinitely long; never: half or more of them do."
    return framed(frame, columns, description, by=lambda row: study.title(row["preset"]))


def _nan(value: Any) -> bool:
    return bool(value != value)


def _steps(value: float) -> Fragment:
    return element("td", "never", class_="number quiet") if math.isinf(value) else number_cell(value, 0)


# --- across streams --------------------------------------------------------------------------------------------------------------


def overlap(study: TaskFreeStudy, measure: str = "a_auc") -> Gallery | Fragment:
    """A metric against the overlap index, one figure per family of streams that differ only in their schedule."""
    frame = performance_tables.overlap_points(study, measure)
    if frame.empty:
        return empty("No two regenerated streams differ only in their schedule.")
    return Gallery(tuple(_overlap(study, measure, part) for _, part in frame.groupby("key", sort=False)))


def _overlap(study: TaskFreeStudy, measure: str, part: pd.DataFrame) -> Any:
    percent, label, family = bool(part["percent"].iloc[0]), TASK_FREE_MEASURES[measure].label, str(part["family"].iloc[0])
    ylabel = f"{label}{', %' if percent else ''}"
    description = "; ".join(
        f"{row['label']} at {row['overlap']:.2f} ({row['schedule']}): {(100 if percent else 1) * row['mean']:.1f}" for row in as_rows(part)
    )

    def draw(theme: Theme) -> Any:
        return overlap_figure(part, theme, title=f"{label.split()[0]} against overlap", ylabel=ylabel, order=study.methods, percent=percent)

    points = part[["overlap", "schedule"]].drop_duplicates().sort_values("overlap")
    listed = "; ".join(f"{row['overlap']:.2f} {row['schedule']}" for row in as_rows(points))
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    bars = f"Bars: 95 % interval ({', '.join(kinds)}) over seeds." if kinds else "Too few seeds for intervals."
    return picture(draw, f"{label} against the overlap index in {family}. {description}", f"{bars} Streams: {listed}.", family)


def sweeps(study: Sweep, measure: str = "a_auc") -> Gallery | Fragment:
    """A metric against every switch of the stream with several values, one line per method."""
    if not study.axes:
        return empty("No switch of the stream has two values among the finished cells of one scenario.")
    if measure not in study.measures:
        return empty(_NOTHING)
    return show_sweep.curves(study, measure)


def contrast(study: Sweep, axis: str) -> Fragment:
    """A table per design: A_AUC and AF_s of every method at every value of a key, and their change from the first to the last."""
    frame = contrasted(study, axis)
    if frame.empty:
        return empty(f"{axis} has only one value among the finished cells of each scenario.")
    name, tables = axis.partition(".")[2] or axis, []
    for (design, rest), part in frame.groupby(["design", "rest"], sort=False):
        percent = study.percent[str(design)]
        unit = (1, 100.0) if percent else (4, 1.0)
        values = list(dict.fromkeys(part.sort_values("place")["value"]))
        points = {(row["label"], (row["measure"], row["value"])): row for row in as_rows(part)}
        changes = {(row["label"], row["measure"]): row["change"] for row in as_rows(part)}
        columns = [label("method", str)]
        for measure in (measure for measure in study.measures if measure in set(part["measure"])):
            title = study.measures[measure].label
            columns += [crossed(f"{title}, {name} = {value}", points, (measure, value), partial(_point, unit=unit)) for value in values]
            columns.append(crossed(f"{title.split()[0]}: {values[-1]} − {values[0]}", changes, measure, partial(_change, unit=unit)))
        counts = sorted({int(n) for n in part["n"]})
        units = f"n = {counts[0]}" if len(counts) == 1 else f"n from {counts[0]} to {counts[-1]}"
        about = f"Means ± standard deviations{' in percent' if percent else ''}, {units}; changes in points."
        group = ", ".join(filter(None, [str(design), str(rest)]))
        tables.append(framed(list(dict.fromkeys(part["label"])), columns, about, by=lambda row, group=group: group))
    return join(tables)


def _point(row: Mapping[str, Any], unit: tuple[int, float]) -> Fragment:
    (digits, scale), mean, std = unit, float(row["mean"]), float(row["std"])
    spread = "" if math.isnan(std) else f" ± {number_text(scale * std, digits)}"
    return element("td", number_text(scale * mean, digits) + spread, class_="number nowrap", data_value=repr(mean))


def _change(change: float, unit: tuple[int, float]) -> Fragment:
    digits, scale = unit
    return number_cell(scale * change, digits)


# --- what is missing, and whose code ---------------------------------------------------------------------------------------------


def problems(study: TaskFreeStudy) -> Fragment:
    """Every planned cell without a result, with its reason, campaign by campaign."""
    return show_runs.each_problems(study.results)


def provenance(study: TaskFreeStudy) -> Facts:
    """Code and environment of the records, campaign by campaign, with lines for the page footer."""
    return show_runs.each_provenance(study.results)
