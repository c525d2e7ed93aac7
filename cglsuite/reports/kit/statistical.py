"""Statistical drawings by seaborn, in the look of the house: heat maps, and values beside each other as boxes with their points."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cglsuite.reports.kit.figure_parts import COLOUR_MAP, headline, ink_on, look_of, plain_axes, row_titles, wrapped
from cglsuite.reports.kit.htmltable import number_text
from cglsuite.reports.kit.marks import mark_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cglsuite.reports.kit.pictures import Theme

__all__ = ["BOX_FROM", "MANY_POINTS", "box_figure", "box_rows", "heat_map", "mesh", "spread_evenly"]

BOX_FROM = 4
"""Values from which on there is a box: of fewer, quartiles say nothing."""
_GOLDEN = 0.618033988749895
MANY_POINTS = 1500
"""Above this number, points are drawn as an image, to keep pages small."""
_LIGHTER = 20
"""Points from which on they are lighter."""


def mesh(axes: Axes, values: NDArray[np.float64], *, bounds: tuple[float, float], colours: Any, **more: Any) -> Any:
    """Values as coloured cells, the first row on top, without ticks and without a scale; cells without a value stay empty.

    Args:
        values: float64 [rows, columns]. bounds: of the colour scale. more: for matplotlib.

    Returns:
        The cells.
    """
    import seaborn

    plain: dict[str, Any] = {"cbar": False, "xticklabels": False, "yticklabels": False}
    seaborn.heatmap(values, ax=axes, cmap=colours, vmin=bounds[0], vmax=bounds[1], **plain, **more)
    axes.set(xlabel="", ylabel="")
    return axes.collections[-1]


def heat_map(
    axes: Axes,
    values: NDArray[np.float64],
    theme: Theme,
    *,
    bounds: tuple[float, float],
    percent: bool,
    bar: tuple[float, float, float, float] | None,
    middle: float = 0.5,
) -> Any:
    """Values as colours, the first row on top: written out, or with a scale.

    Args:
        bounds: of the colour scale. bar: where the scale is (left, bottom, width, height, shares of the figure); None: values are written,
            ``middle`` of the way down in their cells, and a dash where there is none.

    Returns:
        The image.
    """
    look: dict[str, Any] = {"rasterized": True} if bar else {"linecolor": theme.ground, "linewidths": 1.0, "clip_on": False}
    image = mesh(axes, values, bounds=bounds, colours=COLOUR_MAP, **look)
    scale = 100.0 if percent else 1.0
    if bar:
        figure: Any = axes.figure
        shown = figure.colorbar(image, cax=figure.add_axes(bar))
        shown.ax.yaxis.set_major_formatter(lambda value, _: f"{scale * value:g}")
        shown.outline.set_visible(False)
        return image
    for (row, column), value in np.ndenumerate(values):
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        text = "–"
        if np.isfinite(value):
            text = f"{scale * value:.0f}" if percent else f"{value:.2g}"
            style["color"] = ink_on(image.cmap(image.norm(value))[:3])
        axes.text(column + 0.5, row + middle, text, **style)
    return image


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
    """A row per name, the first on top: a box over the quartiles with the median, and a tall stroke in ink at the mean.

    Rows lie at n - 1 down to 0, and their names are the ticks. Rows of fewer than :data:`BOX_FROM` values have no box.

    Args:
        colours: by name. height: of a box. raised: by how much boxes lie above their rows. whiskers: to the extremes; otherwise none.
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
    whole: bool = False,
    digits: int = 1,
) -> Figure:
    """:func:`box_rows` with every value as a point, in a figure of its own.

    Args:
        order: names in the order that fixes colours. whole: ticks at whole numbers only, for ranks. digits: of the texts of points.
    """
    lines, row, inner = wrapped(title, 5.2, 10.5), 0.36, 4.6
    left, above, below = 0.25 + 0.075 * max(len(name) for name, _ in rows), 0.24 + 0.19 * len(lines), 0.5
    width, height = left + inner + 0.2, row * len(rows) + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * len(rows) / height))
    colours = {name: str(look_of(order.index(name), theme)["color"]) for name, _ in rows}
    box_rows(axes, rows, theme, colours=colours, height=0.56)
    for number, (name, values) in enumerate(rows):
        points = spread_evenly(axes, values, len(rows) - 1 - number, over=0.26, color=colours[name], markersize=3.8)
        mark_series(name, points, points=[number_text(value, digits) for value in values] if values.size <= MANY_POINTS else ())
    axes.set_xlabel(xlabel)
    if whole:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
    headline(figure, lines, theme)
    return figure


def spread_evenly(axes: Axes, values: NDArray[np.float64], centre: float, *, over: float = 0.34, **look: Any) -> Any:
    """Values as points spread over a narrow band around ``centre``: without chance, so that a figure is the same at any time.

    Args:
        over: the height of the band. look: colour, marker and size of the points.

    Returns:
        The points.
    """
    jitter = ((np.arange(values.size) * _GOLDEN) % 1.0 - 0.5) * over
    shown: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0} | look
    alpha = 0.55 if values.size > _LIGHTER else 0.8
    (points,) = axes.plot(values, centre + jitter, alpha=alpha, rasterized=values.size > MANY_POINTS, **shown)
    return points
