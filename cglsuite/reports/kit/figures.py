"""Draw the figures of a report as light and dark SVG, with colour-blind safe palettes and with values written out.

Drawing uses only Matplotlib's figure objects, without pyplot, global state or a display.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from cglsuite.reports.kit.pictures import (
    ANNOTATED_TASKS,
    COLOUR_MAP,
    DARK,
    DASHES,
    LEGEND_ROW,
    RASTER_DPI,
    Picture,
    Theme,
    frameless,
    headline,
    ink_on,
    labels_in,
    legend,
    legend_columns,
    mark_grid,
    mark_series,
    picture,
    plain_axes,
    point_texts,
    row_titles,
    style_of,
    text_points,
    titled_figure,
    wrapped,
)
from cglsuite.reports.kit.tables import number_text
from cglsuite.reports.kit.text import value_text

CHANCE = "chance"
"""The legend entry for chance level."""
_BARS_UP_TO = 15


def matrix_figure(
    matrix: NDArray[np.float64], title: str, theme: Theme, *, percent: bool = True, bounds: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Plot a performance matrix as a heat map with one row per evaluation and one column per task.

    The first row, which is the evaluation before training, is separated from the others.

    Args:
        matrix: float64 ``[T + 1, T]``; NaN is shown as a dash. bounds: limits of the colour scale.
    """
    n_tasks = matrix.shape[1]
    side = 0.43 if n_tasks <= ANNOTATED_TASKS else max(0.13, 4.2 / n_tasks)
    annotated = n_tasks <= ANNOTATED_TASKS
    inner = (side * n_tasks, side * 0.82 * (n_tasks + 1))
    margins = (0.66, 0.12 if annotated else 0.95, 0.46, 0.36)  # left, right, bottom, top, in inches
    lines = wrapped(title, max(inner[0] + margins[1] + 0.5, 1.9), 9.5)
    width, height = max(inner[0] + margins[0] + margins[1], 2.1), inner[1] + margins[2] + margins[3] + 0.17 * (len(lines) - 1)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((margins[0] / width, margins[2] / height, inner[0] / width, inner[1] / height))
    scale = ((margins[0] + inner[0] + 0.1) / width, margins[2] / height, 0.12 / width, inner[1] / height)
    image = heat_map(axes, matrix, theme, bounds=bounds, percent=percent, bar=None if annotated else scale)
    if annotated:
        _frame_tasks_just_learnt(axes, matrix, image)
    else:
        moments = ["before training", *(f"after task {k + 1}" for k in range(n_tasks))]
        mark_grid(axes, matrix, moments, [f"task {k + 1}" for k in range(n_tasks)], percent=percent)
    axes.axhline(1.0, color=theme.ground, linewidth=4.0)  # between the untrained model and what was learnt
    _task_ticks(axes, n_tasks)
    axes.set_xlabel("task")
    axes.set_ylabel("after task")
    headline(figure, lines, theme, points=9.5, left=0.06)
    return figure


def matrices_figure(
    matrices: Sequence[tuple[str, NDArray[np.float64]]],
    theme: Theme,
    *,
    percent: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Plot several performance matrices side by side on one colour scale, with one named panel per matrix (see :func:`matrix_figure`).

    Args:
        matrices: names and matrices, float64 ``[T + 1, T]``. bounds: limits of the colour scale.
    """
    width = theme.width or 5.9
    columns = min(len(matrices), max(1, int(width / 1.3)))
    rows, margins = int(np.ceil(len(matrices) / columns)), (0.52, 0.72, 0.42, 0.24)  # left, right, bottom, top, in inches
    side = (width - margins[0] - margins[1] - 0.12 * (columns - 1)) / columns
    gap = 0.3
    height = rows * side + (rows - 1) * gap + margins[2] + margins[3]
    figure = Figure(figsize=(width, height), dpi=RASTER_DPI)
    for number, (name, matrix) in enumerate(matrices):
        row, column = divmod(number, columns)
        left, bottom = margins[0] + column * (side + 0.12), margins[2] + (rows - 1 - row) * (side + gap)
        axes = figure.add_axes((left / width, bottom / height, side / width, side / height))
        image = heat_map(axes, matrix, theme, bounds=bounds, percent=percent, bar=None, written=False)
        axes.axhline(1.0, color=theme.ground, linewidth=2.0)  # between the untrained model and what was learnt
        _task_ticks(axes, matrix.shape[1], max_ticks=4)
        axes.set_title(name, fontsize=text_points(theme), loc="left", pad=3)
        if column:
            axes.set_yticks([])
        else:
            axes.set_ylabel("after task")
        if number + columns < len(matrices):
            axes.set_xticks([])
        else:
            axes.set_xlabel("task")
    bar = ((width - margins[1] + 0.08) / width, margins[2] / height, 0.09 / width, (height - margins[2] - margins[3]) / height)
    _scale_beside(figure, image, bar, percent=percent)
    return figure


_SCENARIOS_AS_ROWS = 24
"""The maximum number of scenarios shown as rows of a grid, where their names are easy to read; more are shown as columns."""
_PAGE_WIDTH = 12.4
"""The widest figure of a page, in inches."""


def grid_picture(
    cells: Mapping[tuple[str, str], float],
    *,
    title: str,
    what: str,
    caption: str = "",
    percent: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
    colours: str = COLOUR_MAP,
    columns: str = "scenarios",
) -> Picture:
    """Draw a heat map of methods by scenarios, which serves as the overview of a page.

    Methods are sorted by their mean deviation from the scenarios' means.

    Args:
        cells: values by method and scenario, or by method and what ``columns`` names instead. title: the figure's title.
        what: the name of the values, for the colour scale and the alternative text.
        percent: whether values are fractions, shown in percent. bounds: limits of the colour scale. colours: name of the colour map.
    """
    methods, scenarios = (list(dict.fromkeys(key[n] for key in cells)) for n in (0, 1))
    frame = pd.Series(cells).unstack().reindex(index=methods, columns=scenarios).astype(float)
    frame = frame.loc[frame.sub(frame.mean()).mean(axis=1).sort_values(ascending=False, kind="stable").index]
    shown = frame.T if len(scenarios) <= _SCENARIOS_AS_ROWS else frame
    finite, (scale, unit) = frame.to_numpy()[np.isfinite(frame.to_numpy())], (100.0, "%") if percent else (1.0, "")
    ends = " to ".join(f"{number_text(scale * end, 1)}{unit}" for end in (finite.min(), finite.max()))
    alt = (
        f"{what} of {len(methods)} methods in {len(scenarios)} {columns}: {ends}. From the highest to the lowest: {', '.join(frame.index)}."
    )
    look: dict[str, Any] = {"title": title, "what": what, "percent": percent, "bounds": bounds, "colours": colours}
    return picture(partial(grid_figure, shown, **look), alt, caption, wide=True)


def grid_figure(
    frame: pd.DataFrame, theme: Theme, *, title: str, what: str, percent: bool, bounds: tuple[float, float], colours: str = COLOUR_MAP
) -> Figure:
    """Draw a table of values as a heat map with labelled rows and columns.

    Values are written in the cells or, if there are many columns, explained by a colour scale.

    Args:
        frame: the values; NaN is left blank. what: the name of the values. bounds: limits of the colour scale. colours: name of the colour
            map.
    """
    rows, columns = [str(name) for name in frame.index], [str(name) for name in frame.columns]
    points = text_points(theme) - 1
    letter = 0.58 * points / 72
    left, right, below = 0.15 + letter * max(map(len, rows)), 0.85, 0.15 + letter * max(map(len, columns))
    cell = min(0.42, max(0.14, ((theme.width or _PAGE_WIDTH) - left - right) / len(columns)))
    annotated = cell >= 0.3
    row, lines = (0.22 if annotated else 0.19), wrapped(title, max(3.0, left + cell * len(columns)), 10.5)
    above = 0.24 + 0.19 * len(lines)
    width, height = left + cell * len(columns) + (0.1 if annotated else right), above + row * len(rows) + below
    figure = Figure(figsize=(max(width, 3.4), height), dpi=RASTER_DPI)
    width = figure.get_figwidth()
    axes = figure.add_axes((left / width, below / height, cell * len(columns) / width, row * len(rows) / height))
    scale = ((left + cell * len(columns) + 0.1) / width, below / height, 0.12 / width, row * len(rows) / height)
    heat_map(axes, frame.to_numpy(), theme, bounds=bounds, percent=percent, bar=None if annotated else scale, colours=colours, what=what)
    mark_grid(axes, frame.to_numpy(), rows, columns, percent=percent)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=90, fontsize=points)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, rotation=0, fontsize=points)
    frameless(axes)
    row_titles(axes, theme)
    headline(figure, lines, theme)
    return figure


def _task_ticks(axes: Axes, n_tasks: int, max_ticks: int = ANNOTATED_TASKS) -> None:
    step = max(1, int(np.ceil(n_tasks / max_ticks)))
    shown = list(range(0, n_tasks, step))
    axes.set_xticks([i + 0.5 for i in shown], [str(i + 1) for i in shown])
    axes.set_yticks([0.5, *(i + 1.5 for i in shown)], ["start", *(str(i + 1) for i in shown)])
    frameless(axes)


def _frame_tasks_just_learnt(axes: Axes, matrix: NDArray[np.float64], image: Any) -> None:
    for k, value in enumerate(np.diagonal(matrix, -1)):
        if np.isfinite(value):
            ink = ink_on(image.cmap(image.norm(value))[:3])
            axes.add_patch(Rectangle((k + 0.04, k + 1.05), 0.92, 0.9, fill=False, edgecolor=ink, linewidth=0.9, zorder=3))


def curve_figure(
    frame: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    ylabel: str,
    order: Sequence[str],
    percent: bool = True,
    xlabel: str = "tasks learnt",
    chance: NDArray[np.float64] | None = None,
    with_legend: bool = True,
) -> Figure:
    """Plot a metric after every task, one line per method. Error bars (a band for many tasks) span one standard deviation.

    Args:
        frame: columns label, task, mean, std.
        order: labels in the order of the legend.
        chance: float64 [T], the chance level after each task, drawn as a dotted line, or None. with_legend: whether to draw a legend.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    if theme.width:  # names are at the ends of their lines
        beside = 0.12 + 0.068 * max(map(len, [*labels, CHANCE]))
        figure, axes = titled_figure(title, theme, theme.width, 1.9, left=0.65, margins=0.65 + beside, below=0.42)
        ylabel = "\n".join(wrapped(ylabel, 2.3, text_points(theme)))
    else:
        figure, axes = titled_figure(title, theme, 5.9, 2.7, rows=int(np.ceil(with_legend * (len(labels) + (chance is not None)) / 2)))
    ends: dict[str, tuple[float, str]] = {}
    axes.axhline(0, color=theme.rule, linewidth=1, zorder=0)
    tasks = int(frame["task"].max())
    for label in labels:
        part = frame[frame["label"] == label].sort_values("task")
        x, y = part["task"].to_numpy(), scale * part["mean"].to_numpy(dtype=np.float64)
        spread = scale * np.nan_to_num(part["std"].to_numpy(dtype=np.float64))
        look = style_of(label, order, theme)
        if tasks > _BARS_UP_TO:
            bars: Artist = axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.1, linewidth=0)
        else:  # side by side, so that bars do not hide each other
            x = x + min(0.017 * tasks, 0.6 / len(labels)) * (labels.index(label) - (len(labels) - 1) / 2)
            bars = axes.vlines(x, y - spread, y + spread, color=look["color"], linewidth=1.1, alpha=0.75)
        (line,) = axes.plot(x, y, label=label, markersize=4.5, linewidth=1.6, **look)
        ends[label] = y[-1], look["color"]
        where = [f"after task {task:.0f}" for task in part["task"]]
        mark_series(label, line, bars, points=point_texts(where, part["mean"], part["std"], percent=percent))
    if chance is not None:
        known = np.flatnonzero(np.isfinite(chance))
        (line,) = axes.plot(known + 1, scale * chance[known], label=CHANCE, color=theme.quiet, linewidth=1.3, linestyle=":", zorder=1)
        ends[CHANCE] = scale * chance[known[-1]], theme.quiet
        where = [f"after task {task + 1}" for task in known]
        mark_series(CHANCE, line, points=point_texts(where, chance[known], percent=percent))
    axes.set_xticks(range(1, tasks + 1, max(1, tasks // 10)))
    axes.set_xlim(0.5, tasks + 0.5)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "y", floor=True)
    if theme.width:
        _end_labels(axes, ends, theme, 1.9)
    elif with_legend:
        legend(figure, 2, hides=[*labels, CHANCE])
    return figure


def _end_labels(axes: Axes, ends: Mapping[str, tuple[float, str]], theme: Theme, height: float) -> None:
    """Write names to the right of the axes, each at the height of the end of its line, and separate names that would overlap.

    Args:
        ends: height and colour by name. height: height of the axes in inches.
    """
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    least = 1.25 * text_points(theme) / 72 / height * (high - low)
    names = sorted(ends, key=lambda name: ends[name][0])
    places = np.array([ends[name][0] for name in names], dtype=np.float64)
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + least)
    for k in range(len(places) - 1, -1, -1):  # none above the axes
        top = high if k == len(places) - 1 else places[k + 1] - least
        places[k] = min(places[k], top)
    for name, place in zip(names, places, strict=True):
        look: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "annotation_clip": False, "va": "center"}
        axes.annotate(name, (1.0, place), xycoords=("axes fraction", "data"), color=ends[name][1], **look)


def legend_figure(
    labels: Sequence[str], theme: Theme, *, order: Sequence[str], chance: bool = False, lines: bool = True, bounds: Sequence[str] = ()
) -> Figure:
    """Draw a legend for several figures. Clicking an entry hides its method in all figures of the gallery.

    Args:
        labels: all labels that occur in the figures. order: all labels, in the order of the legend.
        lines: whether points are joined by lines. bounds: labels drawn as dashed lines without points.
    """
    names = [label for label in order if label in labels]
    joined: dict[str, Any] = {} if lines else {"linestyle": "none"}
    looks = {name: style_of(name, order, theme) | joined for name in names}
    looks |= {name: looks[name] | {"linestyle": DASHES[1], "marker": ""} for name in bounds if name in names}
    handles = [Line2D([], [], label=name, markersize=4.5, linewidth=1.6, **looks[name]) for name in names]
    if chance:
        handles.append(Line2D([], [], label=CHANCE, color=theme.quiet, linewidth=1.3, linestyle=":"))
    shown = [handle.get_label() for handle in handles]
    columns = max(1, min(len(shown), int(5.9 / (0.62 + 0.085 * max(map(len, map(str, shown)))))))
    figure = Figure(figsize=(5.9, LEGEND_ROW * int(np.ceil(len(shown) / columns)) + 0.1))
    legend(figure, columns, left=0.0, hides=[*names, CHANCE], handles=handles)
    return figure


def legend_picture(
    labels: Sequence[str], *, order: Sequence[str], chance: bool = False, lines: bool = True, bounds: Sequence[str] = ()
) -> Picture:
    """Draw a :func:`legend_figure` in its own row, for the top of a gallery."""
    draw = partial(legend_figure, labels, order=order, chance=chance, lines=lines, bounds=bounds)
    return picture(draw, f"Legend: {', '.join([*labels, *([CHANCE] if chance else [])])}", wide=True)


@dataclass(frozen=True)
class PointAxis:
    """An axis of :func:`point_figure`. It shows the columns ``<name>_mean`` and ``<name>_std``, multiplied by ``scale``.

    ``logarithmic`` is meant for costs. A value of 0 is shown to the left of the others.
    """

    name: str
    label: str
    scale: float = 1.0
    logarithmic: bool = False


def point_figure(
    frame: pd.DataFrame, theme: Theme, *, title: str, x: PointAxis, y: PointAxis, order: Sequence[str], with_legend: bool = True
) -> Figure:
    """Plot one point per row, with error bars of one standard deviation in both directions.

    Args:
        frame: columns label, and mean and std for both axes. order: labels in the order of the legend.
    """
    known = frame[frame[f"{x.name}_mean"].notna() & frame[f"{y.name}_mean"].notna()]
    labels = labels_in(known, order)
    figure, axes = titled_figure(title, theme, 4.7, 2.45, rows=int(np.ceil(with_legend * len(labels) / 2)))
    for label in labels:
        row = known[known["label"] == label].iloc[0]
        at = (x.scale * row[f"{x.name}_mean"], y.scale * row[f"{y.name}_mean"])
        bars = (x.scale * np.nan_to_num(row[f"{x.name}_std"]), y.scale * np.nan_to_num(row[f"{y.name}_std"]))
        look = style_of(label, order, theme) | {"linestyle": "none"}
        if x.logarithmic:  # a bar must not reach zero
            bars = (min(bars[0], 0.9 * at[0]), bars[1])
        drawn = axes.errorbar(*at, xerr=bars[0], yerr=bars[1], label=label, markersize=5.5, elinewidth=1.1, **look)
        text = f"{x.label} {number_text(at[0], 1)}, {y.label} {number_text(at[1], 1)}"
        mark_series(label, *(part for part in drawn.get_children() if part is not None), points=[text])
    if x.logarithmic:
        _cost_scale(axes, x.scale * known[f"{x.name}_mean"].to_numpy(dtype=np.float64))
    else:
        axes.margins(x=0.08)
    axes.margins(y=0.1)
    _name_scale(axes, x.label)
    axes.set_ylabel(y.label)
    plain_axes(axes, theme, "both", floor=True)
    if with_legend:
        legend(figure, 2, hides=labels)
    return figure


def trials_figure(frame: pd.DataFrame, theme: Theme, *, xlabel: str, order: Sequence[str]) -> Figure:
    """Plot the validation score of every trial against a setting, with error bars of one standard deviation. A ring marks chosen trials.

    The axis is logarithmic for numbers that span more than a factor of 20. Values that are not numbers are evenly spaced.

    Args:
        frame: columns label, value, mean, std (NaN: no bar) and chosen. order: labels in the order of the legend.
    """
    labels, values = labels_in(frame, order), list(dict.fromkeys(frame["value"].map(value_text)))
    figure, axes = titled_figure(f"trials by {xlabel.partition('.')[2] or xlabel}", theme, 4.7, 2.45, rows=int(np.ceil(len(labels) / 2)))
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in frame["value"])
    places = frame["value"].map(float if numbers else lambda value: values.index(value_text(value))).to_numpy(dtype=np.float64)
    for label in labels:
        mine = (frame["label"] == label).to_numpy()
        part, x, look = frame[mine], places[mine], style_of(label, order, theme) | {"linestyle": "none"}
        mean, std = part["mean"].to_numpy(dtype=np.float64), part["std"].to_numpy(dtype=np.float64)
        drawn = axes.errorbar(x, 100 * mean, yerr=100 * np.nan_to_num(std), label=label, markersize=4.5, elinewidth=0.9, **look)
        ring = part["chosen"].to_numpy(dtype=bool)
        rings = {"s": 110, "facecolors": "none", "edgecolors": look["color"], "linewidths": 1.6}
        rings_drawn = axes.scatter(x[ring], 100 * mean[ring], **rings)
        texts = point_texts([f"{xlabel} {value_text(value)}" for value in part["value"]], mean, std, percent=True)
        mark_series(label, *(artist for artist in drawn.get_children() if artist is not None), rings_drawn, points=texts)
    positive = places[places > 0]
    if numbers and positive.size and positive.max() > 20 * positive.min() and places.min() >= 0:
        _cost_scale(axes, places)
    elif not numbers:
        axes.set_xticks(range(len(values)), values)
        axes.set_xlim(-0.5, len(values) - 0.5)
    axes.margins(x=0.08, y=0.1)
    _name_scale(axes, xlabel)
    axes.set_ylabel("validation, %")
    plain_axes(axes, theme, "both")
    legend(figure, 2, hides=labels)
    return figure


def _name_scale(axes: Axes, name: str) -> None:
    """Label the horizontal axis, and note if it is logarithmic."""
    axes.set_xlabel(name if axes.get_xscale() == "linear" else f"{name}, log scale")


def _cost_scale(axes: Axes, values: NDArray[np.float64]) -> None:
    """Set a logarithmic scale that starts at the smallest positive value, with room for 0 if it occurs."""
    positive = values[values > 0]
    if not positive.size:
        axes.set_xlim(-1, 1)
        axes.set_xticks([0])
        return
    low, high = 10 ** np.floor(np.log10(positive.min())), 10 ** np.ceil(np.log10(positive.max() * 1.001))
    if positive.size == values.size:
        axes.set_xscale("log")
        axes.set_xlim(positive.min() / 1.5, positive.max() * 1.5)
        ticks = [m * 10.0**k for k in range(int(np.log10(low)), int(np.log10(high)) + 1) for m in (1, 2, 5)]
        inside = [tick for tick in ticks if positive.min() / 1.5 <= tick <= positive.max() * 1.5]
        if len(inside) < 3:  # values within a factor of two
            inside = [tick for tick in MaxNLocator(4).tick_values(*axes.get_xlim()) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
        axes.set_xticks(inside[:: 1 + len(inside) // 8])
    else:
        axes.set_xscale("symlog", linthresh=low, linscale=0.5)
        axes.set_xlim(-0.4 * low, 1.6 * positive.max())
        powers = (10.0**k for k in range(int(np.log10(low)), int(np.log10(high)) + 1))
        axes.set_xticks([0, *(power for power in powers if power <= 1.6 * positive.max())])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))  # no powers of ten: figures render no formulas
    axes.xaxis.set_minor_locator(NullLocator())


@dataclass(frozen=True)
class Panel:
    """The distributions of one quantity, shown in one panel.

    ``curves`` are pairs of ascending values and cumulative shares, by label. ``bounds`` are the limits of the axis. ``logarithmic`` is
    meant for counts, and the scale includes 0.
    """

    quantity: str
    curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    bounds: tuple[float, float]
    logarithmic: bool = False


def cumulative_figure(panels: Sequence[Panel], theme: Theme, *, title: str, order: Sequence[str], unit: str = "items") -> Figure:
    """Plot empirical distribution functions side by side, one panel per quantity. A lower curve means larger values.

    Args:
        order: labels in the order of the legend.
    """
    styles: dict[str, dict[str, Any]] = {
        label: {"color": theme.lines[i], "linestyle": DASHES[i], "linewidth": 1.7} for i, label in enumerate(order)
    }
    inner, plot_height, gap, left = (2.35 if len(panels) > 1 else 3.4), 2.05, 0.3, 0.66
    width = left + len(panels) * inner + (len(panels) - 1) * gap + 0.14
    lines = wrapped(title, width - 0.4, 10.5)
    drawn = [label for label in order if any(label in panel.curves for panel in panels)]
    columns = legend_columns(drawn, width - 0.55)
    below, above = 0.59 + LEGEND_ROW * int(np.ceil(len(drawn) / columns)), 0.24 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    for number, panel in enumerate(panels):
        place = ((left + number * (inner + gap)) / width, below / height, inner / width, plot_height / height)
        axes = figure.add_axes(place)
        for label, (values, shares) in panel.curves.items():
            steps = np.concatenate([[panel.bounds[0]], values, [panel.bounds[1]]])
            heights = np.concatenate([[0.0], shares, shares[-1:]])
            mark_series(label, *axes.step(steps, heights, where="post", **styles[label]))
        _cumulative_axes(axes, panel, theme)
        if number:
            axes.set_yticklabels([])
        else:
            axes.set_ylabel(f"share of {unit}, %")
    headline(figure, lines, theme)
    handles = [Line2D([], [], label=label, **styles[label]) for label in drawn]
    legend(figure, columns, left=0.55, handles=handles, hides=drawn)
    return figure


def _cumulative_axes(axes: Axes, panel: Panel, theme: Theme) -> None:
    low, high = panel.bounds
    if panel.logarithmic:
        axes.set_xscale("symlog", linthresh=1, linscale=0.3)
        ticks = [0.0, *(m * 10.0**e for e in range(7) for m in ((1, 2, 5) if high <= 60 else (1,)))]
        shown = [tick for tick in ticks if low <= tick <= high]
        axes.set_xticks(shown, [f"{tick:,.0f}" for tick in shown])
        axes.set_xticks([], minor=True)
    elif high > 1:  # counts
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    _name_scale(axes, panel.quantity)
    plain_axes(axes, theme, "both", floor=True)


# A performance matrix over the steps of a task-free stream.


@dataclass(frozen=True)
class StreamAxis:
    """The time axis of a task-free stream.

    ``steps`` are the steps at each evaluation, float64 [E + 1]. ``arrival`` has the steps between which the middle 90% of each latent
    task's items arrive, float64 [K, 2], with NaN for a latent task without items.
    """

    steps: NDArray[np.float64]
    arrival: NDArray[np.float64]

    @classmethod
    def of(cls, stream: Mapping[str, Any], rows: int) -> StreamAxis:
        """Build the time axis from a record's stream facts. Evaluations beyond ``rows`` are left out."""
        steps = np.asarray(stream["evaluations"], dtype=np.float64)[:rows]
        delivered = np.asarray(stream["delivered"], dtype=np.float64)[:rows]
        arrival = np.full((delivered.shape[1], 2), np.nan)
        for k, total in enumerate(delivered[-1]):
            if total > 0:
                arrival[k] = [_step_of_amount(delivered[:, k], steps, share * total) for share in (0.05, 0.95)]
        return cls(steps, arrival)


def stream_matrix_figure(
    matrix: NDArray[np.float64],
    stream_axis: StreamAxis,
    title: str,
    theme: Theme,
    *,
    percent: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Plot performance on each latent task over the stream, one row per latent task and one column per evaluation.

    The first column is the untrained model. A line below a row spans the steps in which the middle 90% of the latent task's items arrive.

    Args:
        matrix: float64 [E + 1, K]; NaN is left blank, with a dash where values are written out. bounds: limits of the colour scale.
    """
    n_rows, n_tasks = matrix.shape
    annotated = n_rows <= 8 and n_tasks <= ANNOTATED_TASKS
    cell = (0.33, 0.32) if annotated else (max(0.04, min(0.28, 2.6 / n_rows)), max(0.1, min(0.3, 3.4 / n_tasks)))
    inner = (cell[0] * n_rows, cell[1] * n_tasks)
    left, right, below, above = 0.62, 0.14 if annotated else 0.82, 0.46, 0.36
    lines = wrapped(title, max(inner[0] + right + 0.5, 2.2), 9.5)
    width, height = max(inner[0] + left + right, 2.4), inner[1] + below + above + 0.17 * (len(lines) - 1)
    figure = Figure(figsize=(width, height), dpi=RASTER_DPI)
    axes = figure.add_axes((left / width, below / height, inner[0] / width, inner[1] / height))
    scale = ((left + inner[0] + 0.12) / width, below / height, 0.12 / width, inner[1] / height)
    heat_map(axes, matrix.T, theme, bounds=bounds, percent=percent, bar=None if annotated else scale, middle=0.47)
    if not annotated:
        moments = ["before training", *(f"after step {step:.0f}" for step in stream_axis.steps[1:])]
        mark_grid(axes, matrix.T, [f"latent task {k + 1}" for k in range(n_tasks)], moments, percent=percent)
    _stream_ticks(axes, stream_axis, n_tasks, cell[0], theme)
    _mark_arrivals(axes, stream_axis, theme)
    headline(figure, lines, theme, points=9.5, left=0.06)
    return figure


def _step_of_amount(delivered: NDArray[np.float64], steps: NDArray[np.float64], amount: float) -> float:
    """Return the step by which a positive amount was delivered, interpolated linearly between two evaluations."""
    after = int((delivered >= amount).argmax())
    return float(np.interp(amount, delivered[after - 1 : after + 1], steps[after - 1 : after + 1]))


def _stream_ticks(axes: Axes, stream_axis: StreamAxis, n_tasks: int, cell: float, theme: Theme) -> None:
    n_rows = len(stream_axis.steps)
    names = ["start", *(f"{step:.0f}" for step in stream_axis.steps[1:])]
    room = 0.085 * max(map(len, names)) + 0.08
    step = max(1, int(np.ceil(room / cell)))
    shown = [i for i in range(0, n_rows, step) if i == 0 or n_rows - 1 - i >= step or i == n_rows - 1]
    shown += [n_rows - 1] if n_rows - 1 not in shown else []
    axes.set_xticks([i + 0.5 for i in shown], [names[i] for i in shown])
    every = max(1, int(np.ceil(n_tasks / ANNOTATED_TASKS)))
    axes.set_yticks([k + 0.5 for k in range(0, n_tasks, every)], [str(k + 1) for k in range(0, n_tasks, every)])
    axes.set_xlabel("after step")
    axes.set_ylabel("latent task")
    plain_axes(axes, theme)


def _mark_arrivals(axes: Axes, stream_axis: StreamAxis, theme: Theme) -> None:
    """Mark when latent tasks arrive; a step is mapped to the column of the evaluation that follows it."""
    columns = np.arange(len(stream_axis.steps), dtype=np.float64) + 1.0
    for k, (begin, end) in enumerate(stream_axis.arrival):
        if np.isfinite(begin):
            x = np.interp([begin, end], stream_axis.steps, columns)
            for colour, size in ((theme.ground, 4.0), (theme.lines[1], 2.2)):
                axes.plot(x, [k + 0.95, k + 0.95], color=colour, linewidth=size, solid_capstyle="butt", clip_on=False)


# Statistical figures drawn by seaborn in our style: heat maps, and boxes with their points.

BOX_FROM = 4
"""The minimum number of values for a box, because quartiles of fewer values mean little."""
_GOLDEN = 0.618033988749895
MANY_POINTS = 1500
"""The number of points above which they are drawn as an image, to keep pages small."""
_LIGHTER = 20
"""The number of points above which they are drawn lighter."""


def mesh(axes: Axes, values: NDArray[np.float64], *, bounds: tuple[float, float], colours: Any, **more: Any) -> Any:
    """Draw values as coloured cells without ticks or a colour scale. The first row is on top, and cells without a value stay empty.

    Args:
        values: float64 [rows, columns]. bounds: limits of the colour scale. more: keyword arguments for Matplotlib.

    Returns:
        The collection of drawn cells.
    """
    import seaborn

    plain: dict[str, Any] = {"cbar": False, "xticklabels": False, "yticklabels": False}
    seaborn.heatmap(values, ax=axes, cmap=colours, vmin=bounds[0], vmax=bounds[1], **plain, **more)
    axes.set(xlabel="", ylabel="")
    return axes.collections[-1]


_DARK_SCALE = DARK.ground, COLOUR_MAP
_DARK_COLOURS = ListedColormap(colormaps[COLOUR_MAP](np.linspace(0.15, 1.0, 256)))
"""The colour map on a dark page, without its lowest part, which is hard to distinguish from the background."""


def heat_map(
    axes: Axes,
    values: NDArray[np.float64],
    theme: Theme,
    *,
    bounds: tuple[float, float],
    percent: bool,
    bar: tuple[float, float, float, float] | None,
    middle: float = 0.5,
    written: bool = True,
    colours: str = COLOUR_MAP,
    what: str = "performance",
) -> Any:
    """Draw a heat map with the first row on top. Values are written in the cells, or a colour scale is added.

    Args:
        bounds: limits of the colour scale. bar: position of the scale (left, bottom, width, height) as fractions of the figure; None for no
            scale. written: without a scale, whether to write the values, with a dash where there is none. middle: height of this text, as a
            fraction of its cell from the top. colours: name of the colour map. what: title of the scale.

    Returns:
        The collection of drawn cells.
    """
    look: dict[str, Any] = {"rasterized": True} if bar else {"linecolor": theme.ground, "linewidths": 1.0, "clip_on": False}
    image = mesh(axes, values, bounds=bounds, colours=_DARK_COLOURS if (theme.ground, colours) == _DARK_SCALE else colours, **look)
    scale = 100.0 if percent else 1.0
    if bar:
        _scale_beside(axes.figure, image, bar, percent=percent, what=what)
        return image
    for (row, column), value in np.ndenumerate(values if written else np.empty((0, 0))):
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        text = "–"
        if np.isfinite(value):
            text = number_text(scale * value, 0) if percent or bounds[1] > 10 else f"{value:.2g}"
            style["color"] = ink_on(image.cmap(image.norm(value))[:3])
        axes.text(column + 0.5, row + middle, text, **style)
    return image


def _scale_beside(figure: Any, image: Any, place: tuple[float, float, float, float], *, percent: bool, what: str = "performance") -> None:
    """Draw the colour scale at ``place`` (left, bottom, width, height, as fractions of the figure), with ``what`` as its title."""
    shown = figure.colorbar(image, cax=figure.add_axes(place))
    shown.ax.yaxis.set_major_formatter(lambda value, _: f"{100.0 * value if percent else value:g}")
    shown.outline.set_visible(False)
    shown.set_label(f"{what}{', %' if percent else ''}")


def box_rows(
    axes: Axes,
    rows: Sequence[tuple[str, NDArray[np.float64]]],
    theme: Theme,
    *,
    colours: Mapping[str, str],
    height: float = 0.62,
    raised: float = 0.0,
    whiskers: bool = True,
) -> None:
    """Draw one box per name, with the first name on top. A box spans the quartiles and shows the median, and a tall tick marks the mean.

    The rows have the y coordinates n - 1 to 0, with their names as tick labels. Rows with fewer than :data:`BOX_FROM` values have no box.

    Args:
        colours: colour by name. height: height of a box. raised: distance of boxes above their rows. whiskers: whether to draw whiskers,
            which extend to the extremes.
    """
    import seaborn

    places = {name: len(rows) - 1 - number for number, (name, _) in enumerate(rows)}
    boxed = [(name, values) for name, values in rows if values.size >= BOX_FROM]
    if boxed:
        frame = pd.concat([pd.DataFrame({"value": values, "place": places[name] + raised, "name": name}) for name, values in boxed])
        palette = {name: colours[name] for name, _ in boxed}
        what: dict[str, Any] = {"x": "value", "y": "place", "hue": "name", "palette": palette, "orient": "h", "native_scale": True}
        look: dict[str, Any] = {"fill": False, "width": height, "linewidth": 1.2, "medianprops": {"linewidth": 2.2}, "legend": False}
        ends: dict[str, Any] = {"whis": (0, 100), "showcaps": whiskers, "whiskerprops": {} if whiskers else {"visible": False}}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "vert: bool")  # seaborn 0.13 names the direction as Matplotlib did before 3.11
            seaborn.boxplot(frame, ax=axes, dodge=False, **what, **look, **ends)
        axes.set(xlabel="", ylabel="")
    for name, values in rows:
        middle, half = places[name] + raised, 0.5 * height + 0.04
        axes.vlines(values.mean(), middle - half, middle + half, color=theme.ink, linewidth=1.6)
    axes.set_yticks(list(places.values()), list(places))
    axes.set_ylim(-0.5, len(rows) - 0.5)


def box_figure(
    rows: Sequence[tuple[str, NDArray[np.float64]]],
    theme: Theme,
    *,
    title: str,
    xlabel: str,
    order: Sequence[str],
    is_count: bool = False,
    digits: int = 1,
) -> Figure:
    """Draw a box plot (see :func:`box_rows`) that also shows every value as a point.

    Args:
        order: names in the order of the legend. is_count: whether ticks are at whole numbers only, as for ranks. digits: number of decimals
            in the texts of points.
    """
    lines, row, inner = wrapped(title, 5.2, 10.5), 0.36, 4.6
    left, above, below = 0.25 + 0.075 * max(len(name) for name, _ in rows), 0.24 + 0.19 * len(lines), 0.5
    width, height = left + inner + 0.2, row * len(rows) + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * len(rows) / height))
    colours = {name: str(style_of(name, order, theme)["color"]) for name, _ in rows}
    box_rows(axes, rows, theme, colours=colours, height=0.56)
    for number, (name, values) in enumerate(rows):
        points = spread_evenly(axes, values, len(rows) - 1 - number, over=0.26, color=colours[name], markersize=3.8)
        mark_series(name, points, points=[number_text(value, digits) for value in values] if values.size <= MANY_POINTS else ())
    axes.set_xlabel(xlabel)
    if is_count:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
    headline(figure, lines, theme)
    return figure


def spread_evenly(axes: Axes, values: NDArray[np.float64], centre: float, *, over: float = 0.34, **look: Any) -> Any:
    """Draw values as points in a narrow band around ``centre``. The spread is deterministic, so the figure is reproducible.

    Args:
        over: height of the band. look: colour, marker and size of the points.

    Returns:
        The drawn points.
    """
    jitter = ((np.arange(values.size) * _GOLDEN) % 1.0 - 0.5) * over
    shown: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0} | look
    alpha = 0.55 if values.size > _LIGHTER else 0.8
    (points,) = axes.plot(values, centre + jitter, alpha=alpha, rasterized=values.size > MANY_POINTS, **shown)
    return points
