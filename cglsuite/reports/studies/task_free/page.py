"""Render the page on task-free streams.

Formats what :mod:`cglsuite.reports.studies.task_free.compute` (streams) and
:mod:`cglsuite.reports.studies.task_free.compute` (methods on them) compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.figures import StreamAxis, legend_picture, stream_matrix_figure
from cglsuite.reports.kit.pictures import (
    COLOUR_MAP,
    DASHES,
    LEGEND_ROW,
    RASTER_DPI,
    Gallery,
    Theme,
    headline,
    ink_on,
    labels_in,
    legend,
    mark_series,
    picture,
    plain_axes,
    point_texts,
    style_of,
    titled_figure,
    wrapped,
)
from cglsuite.reports.kit.tables import Column, as_rows, crossed, empty, framed, label, number, number_cell, number_text, words
from cglsuite.reports.kit.text import notice, tile
from cglsuite.reports.results.measures import TASK_FREE_MEASURES, is_fraction, performance_name
from cglsuite.reports.results.results import Group
from cglsuite.reports.results.runs import problems, provenance
from cglsuite.reports.results.summary import notices
from cglsuite.reports.results.summary import summary as campaign_summary
from cglsuite.reports.studies import sweep as show_sweep
from cglsuite.reports.studies.sweep import Sweep
from cglsuite.reports.studies.task_free import compute as performance_tables
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free.compute import RebuiltStream, TaskFreeStudy
from cglsuite.reports.studies.task_free.compute import contrast as contrasted
from cglsuite.streams.mixing import overlap_index

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
_NOT_REBUILT = "No stream has been regenerated."


# --- the study -------------------------------------------------------------------------------------------------------------------


def overview(study: TaskFreeStudy, message: Fragment | None = None) -> Fragment:
    """Introduce the runs and their streams, show ``message`` (such as key results), and list warnings about the numbers."""
    first, records = study.results[0], study.records
    presets = {group.preset for group in study.groups}
    tiles = [(sum(len(result.cells) for result in study.results), "cells planned"), (len(records), "in use"), (len(presets), "streams")]
    tiles += [(len(study.methods), "methods"), (len({str(r.cell["seeds"]) for r in records}), "seeds (order/split/init)")]
    parts: list[Content] = [element("p", element("strong", first.title), class_="lead"), message]
    parts.append(element("p", first.campaign.description) if first.campaign.description else None)
    parts.append(element("ul", *(tile(value, label) for value, label in tiles), class_="tiles"))
    return join([*parts, *_notices(study)])


def _notices(study: TaskFreeStudy) -> Iterable[Fragment]:
    for result in study.results:
        yield from notices(result)
    if study.other:
        yield notice(f"{study.other} finished cells have task streams; they are left out here (see campaign_report).")
    if study.not_rebuilt:
        description = [f"{title}: {why}" for title, why in study.not_rebuilt.items()]
        yield notice("These streams could not be regenerated, so only facts from the records are shown:", *description)
    changed = [stream.title for stream in study.streams.values() if stream.same is False]
    if changed:
        yield notice("These streams differ from those of the records, because data or code have changed:", *changed)


def summary(study: TaskFreeStudy) -> Fragment:
    """Tabulate the mean ± standard deviation of every metric, with one table per stream."""
    return campaign_summary(study.pooled) if study.groups else empty(_NOTHING)


# --- the streams -----------------------------------------------------------------------------------------------------------------


def streams(study: TaskFreeStudy) -> Fragment:
    """Tabulate, with one row per stream, how much the stream mixes latent tasks and how often its items arrive."""
    frame = stream_tables.streams(study)
    if frame.empty:
        return empty(_NOTHING if not study.groups else _NOT_REBUILT)
    columns = [
        label("stream", lambda row: _figure_title(study.streams[row["preset"]])),
        words("steps × items", lambda row: f"{number_text(row['steps'], 0)} × {row['batch']}", "number nowrap", "number"),
        *(number("latent tasks", "tasks"), number("overlap index", "overlap", 3), number("as delivered", "overlap_delivered", 3)),
        *(number("mixing entropy", "entropy", 3), number("tasks at a time", "at_a_time", 2)),
        *(Column("never drawn, %", lambda row: _percent(row["never"])), number("drawn at most", "most")),
    ]
    description = f"Overlap index: share of steps at which no latent task has a share of {study.threshold:g} or more, both as scheduled "
    description += (
        "and as delivered in whole items. Mixing entropy: 0 if every step has one latent task, 1 if all share every step equally. "
    )
    same = [stream.same for stream in study.streams.values()]
    description += "Hashes confirm that these are the streams of the records." if all(same) else ""
    return framed(frame, columns, description, by=lambda row: study.base(row["preset"]))


def _percent(share: float) -> Fragment:
    return element("td", number_text(100 * share, 1), class_="number", data_value=repr(float(share)))


def schedules(study: TaskFreeStudy) -> Gallery | Fragment:
    """Plot the scheduled mixture, the arrivals and the cumulative arrivals, one figure per stream."""
    if not study.streams:
        return empty(_NOT_REBUILT)
    return Gallery(tuple(_schedule(study, stream) for stream in study.streams.values()))


def _schedule(study: TaskFreeStudy, stream: RebuiltStream) -> Any:
    arrivals = (stream.mixture, stream.counts, stream.sizes)
    draw = partial(stream_figure, *arrivals, title=_figure_title(stream), threshold=study.threshold)
    mixed = overlap_index(stream.mixture, study.threshold)
    description = f"{len(stream.mixture)} steps of {stream.batch} items from {stream.mixture.shape[1]} latent tasks"
    caption = f"{len(stream.mixture)} steps, overlap index {mixed:.2f}, seeds {stream.seeds}"
    alt = f"Schedule and delivery of {stream.title} ({stream.schedule_text}): {description}; "
    alt += f"overlap index {mixed:.3f} at threshold {study.threshold:g}"
    return picture(draw, alt, caption, study.base(stream.preset))


def _figure_title(stream: RebuiltStream) -> str:
    """A figure's title: the values that distinguish its stream from others in the group."""
    return stream.words or stream.schedule_text


def exposure(study: TaskFreeStudy) -> Gallery | Fragment:
    """Plot how often the training items of each latent task are drawn, one figure per stream."""
    if not study.streams:
        return empty(_NOT_REBUILT)
    rows = {row["preset"]: row for row in as_rows(stream_tables.streams(study))}

    def chart(stream: RebuiltStream) -> Any:
        row, draw = rows[stream.preset], partial(exposure_figure, stream_tables.exposure(stream), title=_figure_title(stream))
        description = f"{100 * row['never']:.1f}% never, {row['most']} times at most"
        return picture(draw, f"Exposure in {stream.title} ({stream.schedule_text}). {description}", description, study.base(stream.preset))

    return Gallery(tuple(chart(stream) for stream in study.streams.values()))


def solved(study: TaskFreeStudy, targets: Mapping[str, Sequence[float]], knob: str = "") -> Fragment:
    """Tabulate the schedule hyperparameters that give a target overlap index or mixing entropy."""
    frame = stream_tables.solved_hyperparameters(study, targets, knob)
    if frame.empty:
        return empty("There is nothing to solve for: no schedule has a numeric setting, or no target was given.")
    named = {"overlap": "overlap index", "entropy": "mixing entropy"}
    streams = {stream.title: stream for stream in study.streams.values()}

    def title(row: Mapping[str, Any]) -> str:
        stream = streams[row["title"]]
        size = f"{stream.mixture.shape[1]} latent tasks in {len(stream.mixture)} steps of {stream.batch} items"
        return f"{row['schedule']}: {row['knob']} for {size}, as in {row['title']}"

    def setting(row: Mapping[str, Any]) -> Fragment:
        return element("td", element("strong", f"{row['value']:.4g}"), class_="number", data_value=repr(row["value"]))

    columns = [
        label("wanted", lambda row: f"{named[row['quantity']]} ≥ {row['target']:g}"),
        *(Column("setting", setting), number("overlap index", "overlap", 3), number("mixing entropy", "entropy", 3)),
    ]
    about = "The smallest value of the hyperparameter that reaches the target, and the resulting overlap and entropy."
    return framed(frame, columns, about, by=title, refused=lambda row: (1, f"none: {row['refused']}") if row["refused"] else None)


# --- what methods make of it -----------------------------------------------------------------------------------------------------


def performance(study: TaskFreeStudy) -> Gallery | Fragment:
    """Plot mean performance over latent tasks against the step, one figure per stream and backbone and one line per method."""
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


def _progress(study: TaskFreeStudy, preset: str, backbone: str, part: pd.DataFrame, with_legend: bool) -> Any:
    percent, stream = bool(part["percent"].iloc[0]), study.streams.get(preset)
    record = next(g.records[0] for g in study.groups if g.preset == preset)
    measured, several = performance_name(record.scenario), len({g.backbone for g in study.groups}) > 1
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    bands = f"Bands: 95% interval ({', '.join(kinds)}) over seeds." if kinds else "Too few seeds for intervals."
    offline = [g.label for g in study.groups if g.preset == preset and g.method == UPPER_BOUND]
    if offline:
        bands += f" Dashed: {', '.join(offline)}, trained offline on all items, at the end of the stream, where all classes compete."
    ends = as_rows(part[part["step"] == part["step"].max()])
    description = "; ".join(f"{row['label']} {(100.0 if percent else 1.0) * row['mean']:.1f}" for row in ends)

    title = ", ".join(filter(None, [_figure_title(stream) if stream else study.words[preset], backbone if several else ""])) or preset
    look: dict[str, Any] = {"title": title, "ylabel": f"{measured}{', %' if percent else ''}", "order": study.methods, "percent": percent}
    draw = partial(progress_figure, part, **look, mixture=stream.mixture if stream else None, bounds=offline, with_legend=with_legend)
    alt = f"Mean {measured} over latent tasks along {study.title(preset)}, backbone {backbone}. After the last step: {description}"
    return picture(draw, alt, bands, study.base(preset))


def courses(study: TaskFreeStudy) -> Gallery | Fragment:
    """Plot performance on each latent task over the stream, with one heat map per stream and method. Values are means over seeds."""
    if not study.groups:
        return empty(_NOTHING)
    return Gallery(tuple(_trajectory_picture(study, group, values) for group, values in performance_tables.courses(study)))


def _trajectory_picture(study: TaskFreeStudy, group: Group, values: Any) -> Any:
    record, percent = group.records[0], is_fraction(group.records[0])
    stream_axis, title = StreamAxis.of(record.stream, len(values)), f"{group.label}, n = {len(group.records)}"
    bounds = (0.0, 1.0) if percent else (float(values.min()), float(values.max()))
    draw = partial(stream_matrix_figure, values, stream_axis, title, percent=percent, bounds=bounds)
    measured = performance_name(record.scenario)
    last = ", ".join("–" if math.isnan(v) else f"{(100.0 if percent else 1.0) * v:.1f}" for v in values[-1])
    alt = f"Mean {measured} of {group.label} on every latent task along {study.title(group.preset)}. After the last step: {last}"
    return picture(draw, alt, group=f"{study.title(group.preset)} – {measured}{' in percent' if percent else ''}")


def recoveries(study: TaskFreeStudy) -> Fragment:
    """Tabulate, per stream and method, the number of drops below 90% of the best performance, the share that recovers, and the recovery
    time.
    """
    frame = performance_tables.recoveries(study)
    if frame.empty:
        return empty(_NOTHING)
    several = frame["backbone"].nunique() > 1
    columns = [
        label("method", "label", lambda row: row["backbone"] if several else ""),
        *(number("records", "n"), number("drops per record", "dips", 1)),
        Column("recovered, %", lambda row: number_cell(None) if math.isnan(row["recovered"]) else _percent(row["recovered"])),
        Column("median steps to recover", lambda row: _steps(row["steps"])),
        number("mean depth, points", lambda row: (100.0 if row["percent"] else 1.0) * row["depth"], lambda row: 1 if row["percent"] else 4),
    ]
    description = (
        "A drop begins at the evaluation at which a latent task is below 90% of its best performance since it first arrived, and ends "
    )
    description += (
        "when it is back at that level. A drop that outlasts the stream counts as infinitely long; never: at least half of them do."
    )
    return framed(frame, columns, description, by=lambda row: study.title(row["preset"]))


def _steps(value: float) -> Fragment:
    return element("td", "never", class_="number quiet") if math.isinf(value) else number_cell(value, 0)


# --- across streams --------------------------------------------------------------------------------------------------------------


def overlap(study: TaskFreeStudy, measure: str = "a_auc") -> Gallery | Fragment:
    """Plot a metric against the overlap index, one figure per family of streams that differ only in their schedule."""
    frame = performance_tables.overlap_points(study, measure)
    if frame.empty:
        return empty("No two regenerated streams differ only in their schedule.")
    return Gallery(tuple(_overlap(study, measure, part) for _, part in frame.groupby("key", sort=False)))


def _overlap(study: TaskFreeStudy, measure: str, part: pd.DataFrame) -> Any:
    percent, metric, family = bool(part["percent"].iloc[0]), TASK_FREE_MEASURES[measure], str(part["family"].iloc[0])
    ylabel = f"{metric.axis}{', %' if percent else ''}"
    description = "; ".join(
        f"{row['label']} at {row['overlap']:.2f} ({row['schedule']}): {(100 if percent else 1) * row['mean']:.1f}" for row in as_rows(part)
    )

    look: dict[str, Any] = {"title": f"{metric.symbol} against overlap", "ylabel": ylabel, "order": study.methods, "percent": percent}
    points = part[["overlap", "schedule"]].drop_duplicates().sort_values("overlap")
    listed = "; ".join(f"{row['overlap']:.2f} {row['schedule']}" for row in as_rows(points))
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    bars = f"Bars: 95% interval ({', '.join(kinds)}) over seeds." if kinds else "Too few seeds for intervals."
    alt = f"{metric.axis} against the overlap index in {family}. {description}"
    return picture(partial(overlap_figure, part, **look), alt, f"{bars} Streams: {listed}.", family)


def sweeps(study: Sweep, measure: str = "a_auc") -> Gallery | Fragment:
    """Plot a metric against each stream switch that takes several values, one line per method."""
    if not study.axes:
        return empty("No switch of the stream has two values among the finished cells of one scenario.")
    if measure not in study.measures:
        return empty(_NOTHING)
    return show_sweep.curves(study, measure)


def contrast(study: Sweep, axis: str) -> Fragment:
    """Tabulate, per design, A_AUC and AF_s of each method at each value of a key, with the change from the first value to the last."""
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
            metric = study.measures[measure]
            heads = {value: f"{metric.axis}, {name} = {value}" for value in values}
            columns += [crossed(head, points, (measure, value), partial(_point, unit=unit)) for value, head in heads.items()]
            columns.append(crossed(f"{metric.symbol}: {values[-1]} − {values[0]}", changes, measure, partial(_change, unit=unit)))
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


# Figures of task-free streams, in the style of :mod:`cglsuite.reports.kit.figures`.


_WIDTH = 5.7
_POINTS = 240
"""The most points drawn along a stream."""
_VECTOR_TASKS = 12
"""The number of latent tasks above which areas are drawn as an image, to keep pages small."""


# --- a stream --------------------------------------------------------------------------------------------------------------------


def stream_figure(
    mixture: NDArray[np.float64], counts: NDArray[np.int64], sizes: NDArray[np.int64], theme: Theme, *, title: str, threshold: float
) -> Figure:
    """Plot the scheduled mixture, the arrivals and the cumulative arrivals of a stream in three panels over the same steps.

    Args:
        mixture: float64 [T, K], rows sum to 1. counts: int64 [T, K], items. sizes: int64 [K], training items of each latent task.
        threshold: the steps at which no share reaches it are marked below the first panel.
    """
    n_steps, n_tasks = mixture.shape
    window = max(1, round(n_steps / 60))
    lines = wrapped(title, _WIDTH - 0.4, 10.5)
    heights, gap, above, below = (1.25, 1.25, 1.25), 0.42, 0.42 + 0.19 * len(lines), 0.48
    height = sum(heights) + 2 * gap + above + below
    figure = Figure(figsize=(_WIDTH, height), dpi=RASTER_DPI)
    panels = _panels(figure, heights, gap, below, left=0.66, right=0.62)
    edges = _edges(n_steps)
    colours = _task_colours(n_tasks, theme)
    centres = (edges[1:] + edges[:-1]) / 2
    _stack(panels[0], edges, _binned(mixture, edges), colours)
    _stack(panels[1], edges, _binned(_smoothed(counts / counts[0].sum(), window), edges), colours, stairs=window == 1)
    mixed = _binned((mixture.max(axis=1) < threshold).astype(np.float64)[:, None], edges)[:, 0] > 0.5
    look: dict[str, Any] = {"color": theme.ink, "linewidth": 0, "clip_on": False, "transform": panels[0].get_xaxis_transform()}
    panels[0].fill_between(centres, -0.075, -0.03, where=mixed, step="mid", **look)
    arrived = np.concatenate([np.zeros((1, n_tasks)), counts.cumsum(axis=0)]) / sizes
    places = np.unique(np.concatenate([[0], edges[1:].astype(int)]))
    for k in range(n_tasks):
        panels[2].plot(places, 100 * arrived[places, k], color=colours[k], linewidth=1.3, rasterized=n_tasks > _VECTOR_TASKS)
    smoothing = f", mean over {window} steps" if window > 1 else ""
    names = (
        "scheduled share of each latent task, %",
        f"share that arrives{smoothing}, %",
        "arrived so far, % of its items",
    )
    for axes, name in zip(panels, names, strict=True):
        axes.set_title(name, loc="left", fontsize=9, color=theme.quiet, pad=4)
        axes.set_xlim(0, n_steps)
        plain_axes(axes, theme)
    for axes in panels[:2]:
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    panels[2].axhline(100, color=theme.rule, linewidth=0.8, zorder=0)
    panels[2].set_ylim(0, max(105.0, 104.0 * float(arrived[-1].max())))
    panels[2].set_yticks(list(range(0, int(panels[2].get_ylim()[1]) + 1, 50 if arrived[-1].max() < 2.5 else 100)))
    panels[2].set_xlabel("step")
    for axes in panels[:2]:
        axes.set_xticklabels([])
    _task_bar(figure, n_tasks, below / height, sum(heights) / height + 2 * gap / height, theme)
    headline(figure, lines, theme)
    return figure


def _panels(figure: Figure, heights: Sequence[float], gap: float, below: float, left: float, right: float) -> list[Axes]:
    """Stacked panels, the first on top; sizes in inches."""
    width, height = figure.get_size_inches()
    panels, bottom = [], below
    for inner in reversed(heights):
        panels.append(figure.add_axes((left / width, bottom / height, (width - left - right) / width, inner / height)))
        bottom += inner + gap
    return panels[::-1]


def _edges(n_steps: int) -> NDArray[np.float64]:
    """The edges of bins of steps: one step per bin, or as many bins as are drawn."""
    out: NDArray[np.float64] = np.round(np.linspace(0, n_steps, min(n_steps, _POINTS) + 1))
    return out


def _binned(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over bins of rows."""
    starts = edges[:-1].astype(int)
    out: NDArray[np.float64] = np.add.reduceat(values, starts, axis=0) / np.diff(edges)[:, None]
    return out


def _smoothed(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """A centred moving mean over rows, with shorter windows at the ends."""
    total = np.concatenate([np.zeros((1, values.shape[1])), values.cumsum(axis=0)])
    index = np.arange(len(values))
    low, high = np.maximum(index - window // 2, 0), np.minimum(index + (window + 1) // 2, len(values))
    out: NDArray[np.float64] = (total[high] - total[low]) / (high - low)[:, None]
    return out


def _stack(axes: Axes, edges: NDArray[np.float64], shares: NDArray[np.float64], colours: Sequence[Any], *, stairs: bool = False) -> None:
    """Stacked shares of the latent tasks in bins of steps, the first at the bottom; as stairs or from centre to centre."""
    if stairs:
        x, tops = np.repeat(edges, 2)[1:-1], np.repeat(shares, 2, axis=0).cumsum(axis=1)
    else:
        x = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        tops = np.concatenate([shares[:1], shares, shares[-1:]]).cumsum(axis=1)
    lower = np.zeros(len(x))
    for k, colour in enumerate(colours):
        upper = tops[:, k]
        present = upper - lower > 1e-4
        reached = present | np.roll(present, 1) | np.roll(present, -1)  # slopes down to 0 belong to it
        look: dict[str, Any] = {"color": colour, "linewidth": 0, "rasterized": len(colours) > _VECTOR_TASKS}
        axes.fill_between(x, lower, upper, where=list(reached), **look)
        lower = upper


def _task_colours(n_tasks: int, theme: Theme) -> list[Any]:
    """A sequential palette: neighbouring tasks have similar colours, early and late ones do not; every other colour is a little lighter."""
    ends = (0.05, 0.93) if ink_on(to_rgb(theme.ground)) == "#000000" else (0.2, 1.0)  # away from the ground
    scale = mpl.colormaps[COLOUR_MAP](np.linspace(*ends, n_tasks))[:, :3]
    lighter = 1 - 0.78 * (1 - scale)
    return [tuple(lighter[k] if k % 2 else scale[k]) for k in range(n_tasks)]


def _task_bar(figure: Figure, n_tasks: int, bottom: float, tall: float, theme: Theme) -> None:
    """A colour bar of the latent tasks, the first at the bottom as in the stacks."""
    width, height = figure.get_size_inches()
    inner = min(tall, max(0.16 * n_tasks, 0.6) / height)
    axes = figure.add_axes(((width - 0.42) / width, bottom + tall - inner, 0.11 / width, inner))
    for k, colour in enumerate(_task_colours(n_tasks, theme)):
        axes.fill_between([0, 1], k, k + 1, color=colour, linewidth=0)
    step = max(1, int(np.ceil(n_tasks / 9)))
    shown = list(range(0, n_tasks, step))
    axes.set_ylim(0, n_tasks)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([k + 0.5 for k in shown], [str(k + 1) for k in shown], fontsize=8)
    axes.yaxis.tick_right()
    axes.set_title("task", fontsize=8, color=theme.quiet, pad=4, loc="left")
    plain_axes(axes, theme)


def exposure_figure(frame: pd.DataFrame, theme: Theme, *, title: str) -> Figure:
    """Plot how often the training items of each latent task arrive, as one stacked bar per latent task.

    Args:
        frame: columns task (1-based), times (in the order from the bottom, never first), share.
    """
    table = frame.pivot_table(index="task", columns="times", values="share", sort=False)
    figure, axes = titled_figure(title, theme, 4.7, 1.7, margins=0.76, below=0.74)
    ramp = mpl.colormaps[COLOUR_MAP]
    colours: list[Any] = [theme.lines[1], ramp(0.75)[:3], ramp(0.45)[:3], ramp(0.12)[:3]]
    base, x = np.zeros(len(table)), table.index.to_numpy(dtype=np.float64)
    for name, colour in zip(table.columns, colours, strict=True):
        values = 100 * table[name].to_numpy(dtype=np.float64)
        shown = values > 0
        axes.bar(x[shown], values[shown], bottom=base[shown], width=0.86, color=colour, linewidth=0)
        base = base + values
    axes.set_xlim(0.4, len(table) + 0.6)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_xlabel("latent task")
    axes.set_ylabel("training items, %")
    plain_axes(axes, theme)
    names = {"0": "never", "1": "once", "2": "twice", "3 or more": "more often"}
    shown_names = [Patch(color=c, label=names.get(str(n), str(n))) for n, c in zip(table.columns, colours, strict=True)]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.5 / 4.7, 0.0), "ncols": 4, "frameon": False}
    figure.legend(handles=shown_names, fontsize=8.5, handlelength=1.2, columnspacing=1.4, **place)
    return figure


# --- accuracy over the stream ----------------------------------------------------------------------------------------------------


def progress_figure(
    frame: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    ylabel: str,
    order: Sequence[str],
    percent: bool,
    mixture: NDArray[np.float64] | None,
    bounds: Sequence[str] = (),
    with_legend: bool = True,
) -> Figure:
    """Plot mean performance over latent tasks against the step, one line per method with its interval as a band.

    Args:
        frame: columns label, step, mean, low, high (NaN: no interval). order: labels in the order of the legend.
        bounds: labels of models that were trained offline: their value at the last step is a dashed line across the stream.
        mixture: float64 [T, K], drawn as a ribbon above, to show what arrives; None: no ribbon. with_legend: with a legend of its own.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    rows, lines = int(np.ceil(with_legend * len(labels) / 3)), wrapped(title, _WIDTH - 0.4, 10.5)
    ribbon = 0.0 if mixture is None else 0.24
    below, above, inner = 0.62 + LEGEND_ROW * rows, 0.24 + 0.19 * len(lines), 2.7
    height = inner + below + above + ribbon
    figure = Figure(figsize=(_WIDTH, height), dpi=RASTER_DPI)
    frame_of = (0.66 / _WIDTH, below / height, (_WIDTH - 0.86) / _WIDTH, inner / height)
    axes = figure.add_axes(frame_of)
    last = float(frame["step"].max())
    frame = frame[~frame["label"].isin(bounds) | (frame["step"] == last)]
    for name in labels:
        part = frame[frame["label"] == name].sort_values("step")
        look = style_of(name, order, theme)
        if name in bounds:  # the same model at every step: only the classes that compete grow in number
            part = pd.concat([part.assign(step=0), part])
            look |= {"linestyle": DASHES[1], "marker": ""}
        x, y = part["step"].to_numpy(dtype=np.float64), scale * part["mean"].to_numpy(dtype=np.float64)
        low, high = (scale * part[end].to_numpy(dtype=np.float64) for end in ("low", "high"))
        band = axes.fill_between(x, low, high, where=list(np.isfinite(low)), color=look["color"], alpha=0.16, linewidth=0)
        (line,) = axes.plot(x, y, label=name, linewidth=1.7, markersize=4.0, markevery=max(1, len(x) // 12), **look)
        where = ["offline" if name in bounds else f"after step {step:.0f}" for step in x]
        mark_series(name, line, band, points=point_texts(where, part["mean"], percent=percent))
    axes.set_xlim(0, last)
    if percent:
        axes.set_ylim(0, min(100.0, 1.08 * scale * float(np.nanmax(frame[["mean", "high"]].to_numpy(dtype=np.float64)))))
    axes.set_xlabel("step")
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "y")
    if mixture is not None:
        top = figure.add_axes((frame_of[0], frame_of[1] + frame_of[3] + 0.06 / height, frame_of[2], 0.16 / height))
        edges = _edges(len(mixture))
        _stack(top, edges, _binned(mixture, edges), _task_colours(mixture.shape[1], theme))
        top.set_xlim(0, last)
        top.set_ylim(0, 1)
        top.axis("off")
    if with_legend:
        legend(figure, 3, hides=labels)
    headline(figure, lines, theme)
    return figure


def overlap_figure(frame: pd.DataFrame, theme: Theme, *, title: str, ylabel: str, order: Sequence[str], percent: bool) -> Figure:
    """Plot a metric against the overlap index of the stream, one line per method with its intervals.

    Args:
        frame: columns label, overlap (a share), entropy (which orders streams of one overlap), mean, low, high (NaN: no interval).
        order: labels in the order of the legend.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    figure, axes = titled_figure(title, theme, 5.2, 2.6, rows=int(np.ceil(len(labels) / 2)), left=0.66, margins=0.8, wrap=0.4)
    for name in labels:
        part = frame[frame["label"] == name].sort_values(["overlap", "entropy"])
        look = style_of(name, order, theme)
        x = part["overlap"].to_numpy(dtype=np.float64) + 0.006 * (labels.index(name) - (len(labels) - 1) / 2)
        bars = axes.vlines(x, scale * part["low"], scale * part["high"], color=look["color"], linewidth=1.2, alpha=0.75)
        (line,) = axes.plot(x, scale * part["mean"], linewidth=1.6, markersize=4.8, label=name, **look)
        where = [f"overlap {overlap:.2f}" for overlap in part["overlap"]]
        mark_series(name, line, bars, points=point_texts(where, part["mean"], percent=percent))
    axes.set_xlim(-0.04, 1.04)
    axes.set_xlabel("overlap index: share of steps without a dominant latent task")
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "both")
    legend(figure, 2, hides=labels)
    return figure
