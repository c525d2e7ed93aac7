"""Figures of task-free streams, in the style of :mod:`cglsuite.reports.kit.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from cglsuite.reports.kit.pictures import (
    COLOUR_MAP,
    DASHES,
    LEGEND_ROW,
    RASTER_DPI,
    headline,
    ink_on,
    labels_in,
    legend,
    look_of,
    mark_series,
    plain_axes,
    point_texts,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Theme

__all__ = ["exposure_figure", "overlap_figure", "progress_figure", "stream_figure"]

_WIDTH = 5.7
_POINTS = 240
"""Maximum number of places drawn along a stream."""
_VECTOR_TASKS = 12
"""Above this number of latent tasks, areas are drawn as an image, to keep pages small."""


# --- a stream --------------------------------------------------------------------------------------------------------------------


def stream_figure(
    mixture: NDArray[np.float64], counts: NDArray[np.int64], sizes: NDArray[np.int64], theme: Theme, *, title: str, threshold: float
) -> Figure:
    """The scheduled mixture, the arrivals, and the cumulative arrivals of a stream: three panels over the same steps.

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
    panels[0].fill_between(
        centres,
        -0.075,
        -0.03,
        where=mixed,
        color=theme.ink,
        linewidth=0,
        clip_on=False,
        transform=panels[0].get_xaxis_transform(),
        step="mid",
    )
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
    made, bottom = [], below
    for inner in reversed(heights):
        made.append(figure.add_axes((left / width, bottom / height, (width - left - right) / width, inner / height)))
        bottom += inner + gap
    return made[::-1]


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
    """A centred moving mean over rows, over fewer of them at the ends."""
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
    """A sequential palette: neighbours in the stream look similar, early and late tasks do not; every other one is a little lighter."""
    ends = (0.05, 0.93) if ink_on(to_rgb(theme.ground)) == "#000000" else (0.2, 1.0)  # away from the ground
    scale = mpl.colormaps[COLOUR_MAP](np.linspace(*ends, n_tasks))[:, :3]
    lighter = 1 - 0.78 * (1 - scale)
    return [tuple(lighter[k] if k % 2 else scale[k]) for k in range(n_tasks)]


def _task_bar(figure: Figure, n_tasks: int, bottom: float, tall: float, theme: Theme) -> None:
    """The colours of the latent tasks, the first at the bottom as in the stacks."""
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
    """How often the training items of each latent task arrive, as shares of a bar per latent task.

    Args:
        frame: columns task (1-based), times (in the order from the bottom, never first), share.
    """
    table = frame.pivot_table(index="task", columns="times", values="share", sort=False)
    lines = wrapped(title, 4.4, 10.5)
    width, plot_height, below, above = 4.7, 1.7, 0.74, 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.76) / width, plot_height / height))
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
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.5 / width, 0.0), "ncols": 4, "frameon": False}
    figure.legend(handles=shown_names, fontsize=8.5, handlelength=1.2, columnspacing=1.4, **place)
    headline(figure, lines, theme)
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
    keyed: bool = True,
) -> Figure:
    """Mean performance over latent tasks along the stream, a line per method with its interval as a band.

    Args:
        frame: columns label, step, mean, low, high (NaN: no interval). order: labels in the order that fixes colours.
        bounds: labels of models that were trained offline: their value at the last step is a dashed line across the stream.
        mixture: float64 [T, K], drawn as a ribbon above, to show what arrives; None: no ribbon. keyed: with a legend of its own.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    rows, lines = int(np.ceil(keyed * len(labels) / 3)), wrapped(title, _WIDTH - 0.4, 10.5)
    ribbon = 0.0 if mixture is None else 0.24
    below, above, inner = 0.62 + LEGEND_ROW * rows, 0.24 + 0.19 * len(lines), 2.7
    height = inner + below + above + ribbon
    figure = Figure(figsize=(_WIDTH, height), dpi=RASTER_DPI)
    frame_of = (0.66 / _WIDTH, below / height, (_WIDTH - 0.86) / _WIDTH, inner / height)
    axes = figure.add_axes(frame_of)
    last = float(frame["step"].max())
    frame = frame[~frame["label"].isin(bounds) | (frame["step"] == last)]
    for label in labels:
        index, part = order.index(label), frame[frame["label"] == label].sort_values("step")
        look = look_of(index, theme)
        if label in bounds:  # the same model at every step: only the classes that compete grow in number
            part = pd.concat([part.assign(step=0), part])
            look |= {"linestyle": DASHES[1], "marker": ""}
        x, y = part["step"].to_numpy(dtype=np.float64), scale * part["mean"].to_numpy(dtype=np.float64)
        low, high = (scale * part[name].to_numpy(dtype=np.float64) for name in ("low", "high"))
        band = axes.fill_between(x, low, high, where=list(np.isfinite(low)), color=look["color"], alpha=0.16, linewidth=0)
        (line,) = axes.plot(x, y, label=label, linewidth=1.7, markersize=4.0, markevery=max(1, len(x) // 12), **look)
        where = ["offline" if label in bounds else f"after step {step:.0f}" for step in x]
        mark_series(label, line, band, points=point_texts(where, part["mean"], percent=percent))
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
    if keyed:
        legend(figure, 3, hides=labels)
    headline(figure, lines, theme)
    return figure


def overlap_figure(frame: pd.DataFrame, theme: Theme, *, title: str, ylabel: str, order: Sequence[str], percent: bool) -> Figure:
    """A metric against the overlap index of the stream, a line per method with its intervals.

    Args:
        frame: columns label, overlap (a share), entropy (which orders streams of one overlap), mean, low, high (NaN: no interval).
        order: labels in the order that fixes colours.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    rows, lines = int(np.ceil(len(labels) / 2)), wrapped(title, 4.8, 10.5)
    width, inner, below, above = 5.2, 2.6, 0.62 + LEGEND_ROW * rows, 0.22 + 0.19 * len(lines)
    height = inner + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.66 / width, below / height, (width - 0.8) / width, inner / height))
    for label in labels:
        index, part = order.index(label), frame[frame["label"] == label].sort_values(["overlap", "entropy"])
        look = look_of(index, theme)
        x = part["overlap"].to_numpy(dtype=np.float64) + 0.006 * (labels.index(label) - (len(labels) - 1) / 2)
        bars = axes.vlines(x, scale * part["low"], scale * part["high"], color=look["color"], linewidth=1.2, alpha=0.75)
        (line,) = axes.plot(x, scale * part["mean"], linewidth=1.6, markersize=4.8, label=label, **look)
        where = [f"overlap {overlap:.2f}" for overlap in part["overlap"]]
        mark_series(label, line, bars, points=point_texts(where, part["mean"], percent=percent))
    axes.set_xlim(-0.04, 1.04)
    axes.set_xlabel("overlap index: share of steps without a dominant latent task")
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "both")
    legend(figure, 2, hides=labels)
    headline(figure, lines, theme)
    return figure
