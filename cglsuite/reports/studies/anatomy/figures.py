"""Figures of the anatomy of a stream: class shares over time, drift of the mean features, homophily of tasks beside scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cglsuite.reports.kit.figures import heat_map
from cglsuite.reports.kit.pictures import (
    ANNOTATED_TASKS,
    LEGEND_ROW,
    RASTER_DPI,
    headline,
    labels_in,
    legend,
    look_of,
    mark_series,
    plain_axes,
    point_texts,
    wrapped,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Theme
    from cglsuite.reports.studies.anatomy.compute import Drift

__all__ = ["drift_figure", "homophily_figure", "share_figure"]

_NUMBERED = 40
"""Above this number of groups only some points of a path are numbered."""


def share_figure(shares: NDArray[np.float64], classes: Sequence[str], theme: Theme, *, title: str, what: str) -> Figure:
    """The share of every class in every group, as a heat map: a row per class, a column per group.

    Args:
        shares: float64 [G, C]. classes: names of the columns. title: line breaks are kept. what: a group is called.
    """
    n_groups, n_classes = shares.shape
    annotated = n_groups <= ANNOTATED_TASKS and n_classes <= 24
    cell = (0.4, 0.26) if annotated else (max(0.07, min(0.4, 5.0 / n_groups)), max(0.06, min(0.26, 4.2 / n_classes)))
    inner = (cell[0] * n_groups, cell[1] * n_classes)
    left, right, below, above = 0.66, 0.14 if annotated else 0.7, 0.46, 0.36
    lines = [line for part in title.split("\n") for line in wrapped(part, max(inner[0] + right + 0.5, 3.4), 9.5)]
    width, height = max(inner[0] + left + right, 3.6), inner[1] + below + above + 0.17 * (len(lines) - 1)
    figure = Figure(figsize=(width, height), dpi=RASTER_DPI)
    axes = figure.add_axes((left / width, below / height, inner[0] / width, inner[1] / height))
    scale = ((left + inner[0] + 0.12) / width, below / height, 0.12 / width, inner[1] / height)
    top = max(0.01, float(shares.max()))
    heat_map(axes, shares.T, theme, bounds=(0.0, top), percent=True, bar=None if annotated else scale)
    _spaced(axes.set_xticks, [str(k + 1) for k in range(n_groups)], cell[0], 0.24)
    _spaced(axes.set_yticks, classes, cell[1], 0.16)
    axes.set_xlabel(what)
    axes.set_ylabel("class")
    plain_axes(axes, theme)
    headline(figure, lines, theme, points=9.5, left=0.06)
    return figure


def _spaced(place: Any, names: Sequence[str], cell: float, room: float) -> None:
    """Ticks in the middle of cells, as many as have room."""
    step = max(1, int(np.ceil(room / cell)))
    shown = list(range(0, len(names), step))
    place([i + 0.5 for i in shown], [names[i] for i in shown])


def drift_figure(drift: Drift, theme: Theme, *, title: str, what: str, in_order: bool) -> Figure:
    """Left the means of the groups in their principal plane, numbered; right the distance of each from the first, beside chance."""
    n = len(drift.shift)
    lines = wrapped(title, 6.4, 10.5)
    inner, plot_height, below, above, gap, left = 2.75, 2.4, 0.86, 0.24 + 0.19 * len(lines), 0.75, 0.62
    width, height = left + 2 * inner + gap + 0.14, plot_height + below + above
    figure = Figure(figsize=(width, height))
    plane = figure.add_axes((left / width, below / height, inner / width, plot_height / height))
    places = drift.places if drift.places.shape[1] == 2 else np.column_stack([drift.places[:, 0], np.zeros(n)])
    if in_order:
        plane.plot(places[:, 0], places[:, 1], color=theme.rule, linewidth=1.3, zorder=1)
    plane.plot(places[:, 0], places[:, 1], linestyle="none", marker="o", markersize=4.5, color=theme.lines[0], zorder=2)
    every = max(1, int(np.ceil(n / _NUMBERED)))
    for k in range(0, n, every):
        plane.annotate(str(k + 1), places[k], xytext=(4, 3), textcoords="offset points", fontsize=8, color=theme.ink)
    plane.margins(0.12)
    parts = [f"component {d + 1} ({100 * share:.0f} %)" for d, share in enumerate(drift.explained)]
    plane.set_xlabel(parts[0])
    plane.set_ylabel(parts[1] if len(parts) > 1 else "")
    for axis in (plane.xaxis, plane.yaxis):
        axis.set_major_locator(MaxNLocator(4))
    if len(parts) < 2:
        plane.set_yticks([])
    plain_axes(plane, theme, "both", floor=True)
    distance = figure.add_axes(((left + inner + gap) / width, below / height, inner / width, plot_height / height))
    x = np.arange(1, n + 1)
    distance.bar(x, drift.shift, color=theme.lines[0], width=0.7, label=f"from {what} 1")
    distance.step(
        np.r_[0.5, x + 0.5], np.r_[drift.chance[:1], drift.chance], where="pre", color=theme.lines[1], linewidth=1.6, label="by chance"
    )
    distance.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    distance.set_xlim(0.4, n + 0.6)
    distance.set_xlabel(what)
    distance.set_ylabel("distance / spread of items")
    plain_axes(distance, theme, "y", floor=True)
    headline(figure, lines, theme)
    legend(figure, 2, left=left + inner + gap - 0.1)
    return figure


def homophily_figure(
    homophily: NDArray[np.float64],
    whole: float,
    scores: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    what: str,
    order: Sequence[str],
    ylabel: str = "score",
) -> Figure:
    """The label homophily of every group as bars, the whole graph's as a dashed line, and methods' final scores as lines.

    Args:
        homophily: float64 [G]. scores: columns label, task (from 0), mean (fractions); may be empty. order: labels, fixes colours.
        ylabel: what the scores are, for the axis.
    """
    n = len(homophily)
    labels = labels_in(scores, order) if len(scores) else []
    rows = int(np.ceil((len(labels) + 2) / 3))
    lines = wrapped(title, 5.9, 10.5)
    width, plot_height, below, above = 6.2, 2.6, 0.62 + LEGEND_ROW * rows, 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.76) / width, plot_height / height))
    x = np.arange(1, n + 1)
    axes.bar(x, 100 * homophily, color=theme.rule, width=0.72, label="label homophily")
    axes.axhline(100 * whole, color=theme.ink, linestyle=(0, (5, 2)), linewidth=1.3, label="homophily, full graph")
    for label in labels:
        part = scores[scores["label"] == label].sort_values("task")
        look = look_of(order.index(label), theme)
        (line,) = axes.plot(part["task"] + 1, 100 * part["mean"], markersize=4.5, linewidth=1.5, label=label, **look)
        where = [f"{what} {task + 1:.0f}" for task in part["task"]]
        mark_series(label, line, points=point_texts(where, part["mean"], part["std"], percent=True))
    _percent(axes, scores)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    axes.set_xlim(0.4, n + 0.6)
    axes.set_xlabel(what)
    axes.set_ylabel(f"homophily; {ylabel} (%)" if labels else "label homophily (%)")
    plain_axes(axes, theme, "y", floor=True)
    headline(figure, lines, theme)
    legend(figure, 3, hides=labels)
    return figure


def _percent(axes: Axes, scores: pd.DataFrame) -> None:
    low = min(0.0, 100 * float(scores["mean"].min())) if len(scores) else 0.0
    axes.set_ylim(1.05 * low, 104)
