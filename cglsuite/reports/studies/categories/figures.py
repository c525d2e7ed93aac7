"""Box plots of ranks by category of method, as in BeGin's Figure 7 (a)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from cglsuite.reports.kit.figure_parts import headline, look_of, plain_axes, row_titles, wrapped
from cglsuite.reports.kit.statistical import box_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cglsuite.reports.kit.pictures import Theme
    from cglsuite.reports.studies.categories.compute import Ranked

__all__ = ["rank_boxes"]


def rank_boxes(panels: Sequence[Ranked], theme: Theme, *, title: str, order: Sequence[str]) -> Figure:
    """One panel per incremental setting, above each other: a box over the ranks of every category, and each rank as a point.

    The box spans the quartiles, the line in it is the median, the whiskers reach the extremes; the upright mark is the mean.

    Args:
        order: categories in the order that fixes colours and marks.
    """
    counts, lines = [len(panel.categories) for panel in panels], wrapped(title, 4.6, 10.5)
    row, gap, below, above = 0.34, 0.34, 0.46, 0.16 + 0.19 * len(lines)
    left, inner = 0.3 + 0.075 * max(len(name) for panel in panels for name in panel.categories), 2.9
    width, height = left + inner + 0.2, sum(row * n + gap for n in counts) + below + above
    most = max(float(panel.ranks["rank"].max()) for panel in panels)
    figure, top = Figure(figsize=(width, height)), height - above
    for place, (panel, n) in enumerate(zip(panels, counts, strict=True)):
        top -= gap
        axes = figure.add_axes((left / width, (top - row * n) / height, inner / width, row * n / height))
        top -= row * n
        _boxes(axes, panel, theme, order)
        axes.set_title(panel.setting, loc="left", fontsize=9, color=theme.quiet, pad=3)
        axes.set_xlim(0.4, most + 0.6)
        if place < len(panels) - 1:
            axes.set_xticklabels([])
        else:
            axes.set_xlabel("rank within a scenario, 1 = best")
    headline(figure, lines, theme)
    return figure


def _boxes(axes: Axes, panel: Ranked, theme: Theme, order: Sequence[str]) -> None:
    names = panel.categories
    values = [panel.ranks.loc[panel.ranks["category"] == name, "rank"].to_numpy(dtype=np.float64) for name in names]
    looks = {name: look_of(order.index(name), theme) | {"linestyle": "none"} for name in names}
    box_rows(axes, list(zip(names, values, strict=True)), theme, colours={name: look["color"] for name, look in looks.items()})
    for place, (name, own) in enumerate(zip(names, values, strict=True)):
        ranks, count = np.unique(own, return_counts=True)
        y = len(names) - 1 - place + np.concatenate([0.09 * (np.arange(n) - (n - 1) / 2) for n in count])
        axes.plot(np.repeat(ranks, count), y, markersize=3.6, markeredgewidth=0, **looks[name])
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
