"""Curves over the values of a hyper-parameter or switch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from cglsuite.reports.kit.figure_parts import (
    LEGEND_ROW,
    headline,
    labels_in,
    legend,
    look_of,
    plain_axes,
    wrapped,
)
from cglsuite.reports.kit.marks import mark_series, point_texts

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.kit.pictures import Theme


__all__ = ["sweep_figure"]


def sweep_figure(
    frame: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    order: Sequence[str],
    percent: bool,
    bounds: tuple[float, float],
) -> Figure:
    """A metric against a hyper-parameter or switch, one line per method, with intervals.

    Args:
        frame: columns label, place (position of the value on the axis, 0-based), value (in words), mean, low, high (NaN: no interval).
        order: labels in the order that fixes colours. bounds: of the vertical axis.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    rows, lines = int(np.ceil(len(labels) / 2)), wrapped(title, 4.4, 10.5)
    width, plot_height, below, above = 4.7, 2.45, 0.62 + LEGEND_ROW * rows, 0.22 + 0.19 * len(lines)
    height = plot_height + below + above
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.62 / width, below / height, (width - 0.72) / width, plot_height / height))
    values = frame[["place", "value"]].drop_duplicates().sort_values("place")
    for label in labels:
        index, part = order.index(label), frame[frame["label"] == label].sort_values("place")
        look = look_of(index, theme)
        shift = min(0.05, 0.5 / len(labels)) * (labels.index(label) - (len(labels) - 1) / 2)
        x = part["place"].to_numpy(dtype=np.float64) + shift
        bars = axes.vlines(x, scale * part["low"], scale * part["high"], color=look["color"], linewidth=1.2, alpha=0.75)
        (line,) = axes.plot(x, scale * part["mean"], label=label, markersize=4.5, linewidth=1.6, **look)
        mark_series(label, line, bars, points=point_texts([f"{xlabel} {value}" for value in part["value"]], part["mean"], percent=percent))
    axes.set_xticks(values["place"].to_list(), values["value"].to_list())
    axes.set_ylim(scale * bounds[0], scale * bounds[1])
    axes.set_xlim(values["place"].min() - 0.4, values["place"].max() + 0.4)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "y")
    headline(figure, lines, theme)
    legend(figure, 2, hides=labels)
    return figure
