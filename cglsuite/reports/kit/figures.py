"""Figures of a report, as SVG in a light and a dark version; palettes are safe for colour-blind readers, and values are written out.

Drawing uses matplotlib's figure objects alone: no pyplot, no global state, no display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from cglsuite.reports.kit.figure_parts import (
    ANNOTATED_TASKS,
    DASHES,
    LEGEND_ROW,
    frameless,
    headline,
    ink_on,
    labels_in,
    legend,
    legend_columns,
    look_of,
    plain_axes,
    wrapped,
)
from cglsuite.reports.kit.htmltable import number_text
from cglsuite.reports.kit.marks import mark_grid, mark_series, point_texts
from cglsuite.reports.kit.pictures import picture
from cglsuite.reports.kit.statistical import heat_map

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Picture, Theme

__all__ = [
    "CHANCE",
    "Panel",
    "PointAxis",
    "cumulative_figure",
    "curve_figure",
    "legend_figure",
    "legend_picture",
    "matrix_figure",
    "point_figure",
]

CHANCE = "chance"
"""The legend entry of guessing."""
_BARS_UP_TO = 15


def matrix_figure(
    matrix: NDArray[np.float64], title: str, theme: Theme, *, percent: bool = True, bounds: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """A performance matrix as a heat map: a row per moment (the first before training, set apart), a column per task.

    Args:
        matrix: float64 ``[T + 1, T]``; NaN is left blank with a dash. bounds: of the colour scale.
    """
    n_tasks = matrix.shape[1]
    side = 0.43 if n_tasks <= ANNOTATED_TASKS else max(0.13, 4.2 / n_tasks)
    annotated = n_tasks <= ANNOTATED_TASKS
    inner = (side * n_tasks, side * 0.82 * (n_tasks + 1))
    margins = (0.66, 0.12 if annotated else 0.75, 0.46, 0.36)  # left, right, bottom, top, in inches
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


def _task_ticks(axes: Axes, n_tasks: int) -> None:
    step = max(1, int(np.ceil(n_tasks / ANNOTATED_TASKS)))
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
    keyed: bool = True,
) -> Figure:
    """A metric after every task: one line per method, with bars of one standard deviation (a band where there are many tasks).

    Args:
        frame: columns label, task, mean, std.
        order: labels in the order that fixes colours, so that a method looks the same in all figures.
        chance: float64 [T], the value of guessing after each task, dotted; None: not drawn. keyed: with a legend of its own.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    rows = int(np.ceil((len(labels) + (chance is not None)) / 2)) if keyed else 0
    lines = wrapped(title, 5.6, 10.5)
    width, plot_height, below, above = 5.9, 2.7, 0.62 + LEGEND_ROW * rows, 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.72) / width, plot_height / height))
    axes.axhline(0, color=theme.rule, linewidth=1, zorder=0)
    tasks = int(frame["task"].max())
    for label in labels:
        index = order.index(label)
        part = frame[frame["label"] == label].sort_values("task")
        x, y = part["task"].to_numpy(), scale * part["mean"].to_numpy(dtype=np.float64)
        spread = scale * np.nan_to_num(part["std"].to_numpy(dtype=np.float64))
        look = look_of(index, theme)
        if tasks > _BARS_UP_TO:
            bars: Artist = axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.1, linewidth=0)
        else:  # side by side, so that bars do not hide each other
            x = x + min(0.017 * tasks, 0.6 / len(labels)) * (labels.index(label) - (len(labels) - 1) / 2)
            bars = axes.vlines(x, y - spread, y + spread, color=look["color"], linewidth=1.1, alpha=0.75)
        (line,) = axes.plot(x, y, label=label, markersize=4.5, linewidth=1.6, **look)
        where = [f"after task {task:.0f}" for task in part["task"]]
        mark_series(label, line, bars, points=point_texts(where, part["mean"], part["std"], percent=percent))
    if chance is not None:
        known = np.flatnonzero(np.isfinite(chance))
        (line,) = axes.plot(known + 1, scale * chance[known], label=CHANCE, color=theme.quiet, linewidth=1.3, linestyle=":", zorder=1)
        where = [f"after task {task + 1}" for task in known]
        mark_series(CHANCE, line, points=point_texts(where, chance[known], percent=percent))
    axes.set_xticks(range(1, tasks + 1, max(1, tasks // 10)))
    axes.set_xlim(0.5, tasks + 0.5)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "y", floor=True)
    headline(figure, lines, theme)
    if keyed:
        legend(figure, 2, hides=[*labels, CHANCE])
    return figure


def legend_figure(
    labels: Sequence[str], theme: Theme, *, order: Sequence[str], chance: bool = False, lines: bool = True, bounds: Sequence[str] = ()
) -> Figure:
    """A legend for several figures: its entries hide their method in all figures of the same gallery.

    Args:
        labels: those that are drawn anywhere. order: all labels, which fixes colours. lines: whether points are joined. bounds: labels that
            are dashed lines without points.
    """
    names = [label for label in order if label in labels]
    joined: dict[str, Any] = {} if lines else {"linestyle": "none"}
    looks = {name: look_of(order.index(name), theme) | joined for name in names}
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
    """:func:`legend_figure` in a row of its own, for the beginning of a gallery."""

    def draw(theme: Theme) -> Figure:
        return legend_figure(labels, theme, order=order, chance=chance, lines=lines, bounds=bounds)

    return picture(draw, f"Legend: {', '.join([*labels, *([CHANCE] if chance else [])])}", wide=True)


@dataclass(frozen=True)
class PointAxis:
    """An axis of :func:`point_figure`: the columns ``<name>_mean`` and ``<name>_std`` times ``scale``.

    ``logarithmic``: for costs; a value of 0 has its place left of the others.
    """

    name: str
    label: str
    scale: float = 1.0
    logarithmic: bool = False


def point_figure(
    frame: pd.DataFrame, theme: Theme, *, title: str, x: PointAxis, y: PointAxis, order: Sequence[str], keyed: bool = True
) -> Figure:
    """One point per row with bars of one standard deviation in both directions.

    Args:
        frame: columns label, and mean and std of both axes. order: labels in the order that fixes colours.
    """
    known = frame[frame[f"{x.name}_mean"].notna() & frame[f"{y.name}_mean"].notna()]
    labels = labels_in(known, order)
    lines = wrapped(title, 4.4, 10.5)
    width, plot_height, below, above = 4.7, 2.45, 0.62 + LEGEND_ROW * int(np.ceil(keyed * len(labels) / 2)), 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.72) / width, plot_height / height))
    for label in labels:
        row = known[known["label"] == label].iloc[0]
        at = (x.scale * row[f"{x.name}_mean"], y.scale * row[f"{y.name}_mean"])
        bars = (x.scale * np.nan_to_num(row[f"{x.name}_std"]), y.scale * np.nan_to_num(row[f"{y.name}_std"]))
        look = look_of(order.index(label), theme) | {"linestyle": "none"}
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
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    plain_axes(axes, theme, "both", floor=True)
    headline(figure, lines, theme)
    if keyed:
        legend(figure, 2, hides=labels)
    return figure


def _cost_scale(axes: Axes, values: NDArray[np.float64]) -> None:
    """Logarithmic from the least positive value on, with a place for 0."""
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
        axes.set_xticks(inside[:: 1 + len(inside) // 8])
    else:
        axes.set_xscale("symlog", linthresh=low, linscale=0.5)
        axes.set_xlim(-0.4 * low, 1.6 * positive.max())
        powers = (10.0**k for k in range(int(np.log10(low)), int(np.log10(high)) + 1))
        axes.set_xticks([0, *(power for power in powers if power <= 1.6 * positive.max())])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))  # no powers of ten: formulas are off in figures
    axes.xaxis.set_minor_locator(NullLocator())


@dataclass(frozen=True)
class Panel:
    """Distributions of one quantity by label: (ascending values, cumulative shares).

    ``bounds`` are the limits of the axis; ``logarithmic`` is for counts, with a place for 0.
    """

    quantity: str
    curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    bounds: tuple[float, float]
    logarithmic: bool = False


def cumulative_figure(panels: Sequence[Panel], theme: Theme, *, title: str, order: Sequence[str], unit: str = "items") -> Figure:
    """Empirical distribution functions side by side, one panel per quantity: where a curve is lower, values are larger.

    Args:
        order: labels in the order that fixes colours, so that a label looks the same in all figures.
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
        axes.set_xticks(shown, [f"{tick:,.0f}".replace(",", "\u202f") for tick in shown])
        axes.set_xticks([], minor=True)
    elif high > 1:  # counts
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    axes.set_xlabel(panel.quantity)
    plain_axes(axes, theme, "both", floor=True)
