"""Figures of order sensitivity, in the style of :mod:`cglsuite.reports.kit.figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cglsuite.reports.kit.figures import MANY_POINTS, box_rows, mesh, spread_evenly
from cglsuite.reports.kit.pictures import (
    DASHES,
    LEGEND_ROW,
    frameless,
    headline,
    ink_on,
    labels_in,
    legend,
    look_of,
    mark_series,
    plain_axes,
    row_titles,
    wrapped,
)
from cglsuite.reports.kit.tables import COMPONENT_NAMES
from cglsuite.stats import af_bound

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Theme

__all__ = ["Spread", "bound_figure", "component_figure", "range_figure", "spread_figure", "win_figure"]


def range_figure(frame: pd.DataFrame, theme: Theme, *, title: str, unit: str, colour: int, percent: bool = True) -> Figure:
    """The OPD of every item of one method as a bar, with its null as an upright line.

    Args:
        frame: columns item, opd, std, null and opd_k (NaN where there is no null), in the order from top to bottom: up to ``opd_k``, which
            is for as many runs as the null, the bar has its full colour. colour: the method's.
    """
    scale = 100.0 if percent else 1.0
    n, values = len(frame), scale * frame["opd"].to_numpy(dtype=np.float64)
    spread = scale * np.nan_to_num(frame["std"].to_numpy(dtype=np.float64))
    nulls = scale * frame["null"].to_numpy(dtype=np.float64)
    names = [str(item) for item in frame["item"]]
    left = 0.5 + 0.075 * max(map(len, names))
    inner, row, lines = 1.95, 0.25, wrapped(title, 2.6, 9.5)
    above, below = 0.16 + 0.17 * len(lines), 0.42
    width, height = left + inner + 0.42, row * n + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * n / height))
    y = np.arange(n)[::-1]
    equal = scale * frame["opd_k"].fillna(frame["opd"]).to_numpy(dtype=np.float64)
    look: dict[str, Any] = {"height": 0.62, "color": theme.lines[colour % len(theme.lines)], "linewidth": 0}
    axes.barh(y, values, alpha=0.4, **look)
    axes.barh(y, np.minimum(equal, values), **look)
    if spread.any():
        axes.hlines(y, values - spread, np.minimum(values + spread, scale), color=theme.ink, linewidth=1.0)
    known = np.isfinite(nulls)
    axes.vlines(nulls[known], y[known] - 0.42, y[known] + 0.42, color=theme.ground, linewidth=4.0)
    axes.vlines(nulls[known], y[known] - 0.42, y[known] + 0.42, color=theme.ink, linewidth=1.8)
    top = scale if percent else max(1e-9, 1.05 * float((values + spread).max()))
    for place, value in zip(y, values, strict=True):
        axes.text(1.03 * top, place, _digits(value, percent), ha="left", va="center", fontsize=8.5, color=theme.ink)
    axes.set_xlim(0, top)
    axes.set_ylim(-0.6, n - 0.4)
    axes.set_yticks(y, names)
    axes.set_ylabel(unit)
    axes.set_xlabel(f"OPD{', points' if percent else ''}")
    plain_axes(axes, theme, "x")
    headline(figure, lines, theme, points=9.5)
    return figure


def _digits(value: float, percent: bool) -> str:
    return f"{value:.0f}" if percent else f"{value:.2g}"


def bound_figure(frame: pd.DataFrame, theme: Theme, *, title: str, k: int, order: Sequence[str]) -> Figure:
    """AF against AA, a point per cell, with the upper bound as a line.

    Args:
        frame: columns label, aa, af; fractions. k: number of tasks. order: labels in the order that fixes colours.
    """
    labels = labels_in(frame, order)
    rows = int(np.ceil((len(labels) + 1) / 3))
    lines = wrapped(title, 5.2, 10.5)
    width, plot_height, below, above = 5.6, 3.3, 0.6 + LEGEND_ROW * rows, 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.78) / width, plot_height / height))
    x = np.array([0.0, 1.0])
    bound = af_bound(x, k)
    low = min(-0.05, float(frame["af"].min()) - 0.03)
    axes.fill_between(100 * x, 100 * bound, 200.0, color=theme.rule, alpha=0.45, linewidth=0)
    axes.plot(100 * x, 100 * bound, color=theme.ink, linewidth=1.4, linestyle=DASHES[1])
    handles: list[Any] = [Line2D([], [], color=theme.ink, linewidth=1.4, linestyle=DASHES[1], label="bound")]
    as_image = len(frame) > MANY_POINTS
    for label in labels:
        part, index = frame[frame["label"] == label], order.index(label)
        style = look_of(index, theme) | {"linestyle": "none"}
        points = {**style, "markersize": 4.2, "markeredgewidth": 0, "alpha": 0.6, "rasterized": as_image}
        (dots,) = axes.plot(100 * part["aa"], 100 * part["af"], **points)
        mark_series(label, dots)
        handles.append(Line2D([], [], markersize=5.5, label=label, **style))
    axes.set_xlim(0, 100)
    axes.set_ylim(100 * low, 104)
    axes.set_xlabel("average accuracy (AA) after the last task, %")
    axes.set_ylabel("average forgetting (AF_max), %")
    plain_axes(axes, theme, "both")
    headline(figure, lines, theme)
    legend(figure, 3, handles=handles, handlelength=2.2, hides=() if as_image else labels)
    return figure


@dataclass(frozen=True)
class Spread:
    """One method's AA over orders (float64 ``[n_orders]``), and over seeds of a single order (``[n_seeds]``, may be empty)."""

    label: str
    orders: NDArray[np.float64]
    seeds: NDArray[np.float64]


def spread_figure(spreads: Sequence[Spread], theme: Theme, *, title: str, order: Sequence[str], percent: bool = True) -> Figure:
    """Every order a point, quartiles as a box, the mean as a line; below it, quieter, every seed of a single order."""
    scale = 100.0 if percent else 1.0
    n, with_seeds = len(spreads), any(s.seeds.size for s in spreads)
    row, inner = (0.62 if with_seeds else 0.46), 4.4
    left, lines = 0.3 + 0.078 * max(len(s.label) for s in spreads), wrapped(title, 5.2, 10.5)
    above, below = 0.22 + 0.19 * len(lines), 0.48 + (0.24 if with_seeds else 0.0)
    width, height = left + inner + 0.2, row * n + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * n / height))
    colours = {s.label: theme.lines[order.index(s.label) % len(theme.lines)] for s in spreads}
    raised = 0.14 if with_seeds else 0.0
    box_rows(axes, [(s.label, scale * s.orders) for s in spreads], theme, colours=colours, height=0.44, raised=raised, whiskers=False)
    for place, spread in zip(range(n - 1, -1, -1), spreads, strict=True):
        spread_evenly(axes, scale * spread.orders, place + raised, color=colours[spread.label], markersize=3.6)
        if spread.seeds.size:
            spread_evenly(axes, scale * spread.seeds, place - 0.27, over=0.16, color=theme.quiet, markersize=2.6)
    axes.set_ylim(-0.55, n - 0.45)
    axes.set_xlabel(f"AA after the last task{', %' if percent else ''}")
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
    headline(figure, lines, theme)
    if with_seeds:
        marks: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}
        handles = [
            Line2D([], [], color=theme.ink, markersize=4.5, label="an order", **marks),
            Line2D([], [], color=theme.quiet, markersize=3.2, label="a seed of a single order", **marks),
        ]
        figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(left / width - 0.02, 0.0), ncols=2, frameon=False, fontsize=8.5)
    return figure


def win_figure(shares: pd.DataFrame, theme: Theme, *, title: str) -> Figure:
    """Share of orders in which the row beats the column, in percent: blue if the row wins more often, orange if the column does."""
    names, n = [str(name) for name in shares.index], len(shares)
    side, text = 0.52, 0.078 * max(map(len, shares.index.map(str)))
    left, above, lines = 0.25 + text, 0.14 + text, wrapped(title, max(2.4, side * n + text), 9.5)
    head = 0.17 * len(lines) + 0.1
    width, height = max(left + side * n + 0.12, 2.2), side * 0.8 * n + above + head + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, 0.08 / height, side * n / width, side * 0.8 * n / height))
    colours = LinearSegmentedColormap.from_list("wins", [theme.lines[1], theme.ground, theme.lines[0]])
    values = shares.to_numpy(dtype=np.float64)
    mesh(axes, np.where(np.isfinite(values), values, 0.5), bounds=(0, 1), colours=colours, linecolor=theme.rule, linewidths=0.6)
    for (row, column), value in np.ndenumerate(values):
        if row != column:
            ink = ink_on(colours(value)[:3])
            axes.text(column + 0.5, row + 0.5, f"{100 * value:.0f}", ha="center", va="center", fontsize=8.5, color=ink)
    axes.xaxis.tick_top()
    places = [i + 0.5 for i in range(n)]
    axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 4 else 0)
    axes.set_yticks(places, names)
    axes.tick_params(colors=theme.ink)
    frameless(axes)
    headline(figure, lines, theme, points=9.5)
    return figure


_COMPONENT_LINES = dict(zip(COMPONENT_NAMES, (0, 1, 2, 3, 4, 6), strict=True))
"""Colours; what is left over is grey."""


def component_figure(shares: Mapping[str, Mapping[str, float]], theme: Theme) -> Figure:
    """The share of each variance component, a bar per design."""
    n, row, inner = len(shares), 0.5, 5.2
    below, above = 1.1, 0.1 + 0.26
    width, height = inner + 0.5, (row + 0.26) * n + below + above - 0.26
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.25 / width, below / height, inner / width, (height - below - above) / height))
    for place, (name, parts) in zip(range(n - 1, -1, -1), shares.items(), strict=True):
        begin = 0.0
        for component, share in parts.items():
            colour = theme.lines[_COMPONENT_LINES[component]]
            axes.barh(place, 100 * share, left=begin, height=0.6, color=colour, edgecolor=theme.ground, linewidth=1.2)
            if share > 0.06:
                ink = ink_on(tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
                axes.text(begin + 50 * share, place, f"{100 * share:.0f}", ha="center", va="center", fontsize=9, color=ink)
            begin += 100 * share
        axes.text(0, place + 0.36, name, ha="left", va="bottom", fontsize=9, color=theme.ink)
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.4, n - 1 + 0.4)
    axes.set_yticks([])
    axes.set_xlabel("share of the variance of AA, %")
    plain_axes(axes, theme)
    shown = [Patch(color=theme.lines[i], label=name) for i, name in zip(_COMPONENT_LINES.values(), COMPONENT_NAMES.values(), strict=True)]
    figure.legend(
        handles=shown,
        loc="lower left",
        bbox_to_anchor=(0.15 / width, 0.0),
        ncols=3,
        columnspacing=1.0,
        handlelength=1.2,
        frameon=False,
        fontsize=9,
    )
    return figure
