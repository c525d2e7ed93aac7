"""Building blocks of all figures: titles, axes without a frame, the look of a method, legends."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.reports.kit.marks import mark_entries

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cglsuite.reports.kit.pictures import Theme

__all__ = [
    "ANNOTATED_TASKS",
    "COLOUR_MAP",
    "DASHES",
    "LEGEND_ROW",
    "RASTER_DPI",
    "frameless",
    "headline",
    "ink_on",
    "labels_in",
    "legend",
    "legend_columns",
    "look_of",
    "plain_axes",
    "row_titles",
    "wrapped",
]

ANNOTATED_TASKS = 12
"""The largest number of tasks for which a matrix has its values written into the cells."""
COLOUR_MAP = "viridis"
LEGEND_ROW = 0.25
"""Height of a row of a legend in inches: 24 CSS pixels, so that its entries can be hit with a finger."""
RASTER_DPI = 180
"""Resolution of rasterised parts of a figure, in dots per inch."""
_MARKERS = "osD^vPX*"
"""Shapes of points, by position in the order of labels."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.4)), (0, (5, 2, 1.2, 2)))
"""Line styles, one per round through the colours."""


# --- around the axes -------------------------------------------------------------------------------------------------------------


def wrapped(text: str, inches: float, points: float) -> list[str]:
    """Text wrapped to a width in inches, by the average width of a character; a preset's name may break after / and @."""
    breakable = text.replace("/", "/\u200b").replace("@", "\u200b@").replace("\u200b", " \u200b")
    lines = textwrap.wrap(breakable, max(10, int(inches * 72 / (0.62 * points))), break_long_words=True)
    return [line.replace(" \u200b", "").replace("\u200b", "") for line in lines] or [""]


def headline(figure: Figure, lines: Sequence[str], theme: Theme, *, points: float = 10.5, left: float = 0.08) -> None:
    """The figure's title at its upper left, ``left`` inches from the edge."""
    width, height = figure.get_size_inches()
    place: dict[str, Any] = {"va": "top", "ha": "left", "fontsize": points, "fontweight": "bold", "color": theme.ink}
    figure.text(left / width, 1 - 0.1 / height, "\n".join(lines), **place)


def legend(figure: Figure, columns: int, *, left: float = 0.5, hides: Sequence[str] = (), **more: Any) -> None:
    """The legend at the figure's foot, ``left`` inches from the edge, in rows of :data:`LEGEND_ROW`.

    Args:
        hides: entries that hide what is marked with their label on a page. more: for matplotlib.
    """
    width, height = figure.get_size_inches()
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (left / width, 0.02 / height)}
    look = {"ncols": columns, "frameon": False, "fontsize": 9, "handlelength": 2.6, "labelspacing": 0.88}
    mark_entries(figure.legend(**place | look | more), hides)


def legend_columns(labels: Sequence[str], inches: float) -> int:
    """How many columns of a :func:`legend` with these labels fit a width in inches: at least one, at most as many as there are labels."""
    widest = 0.7 + 0.08 * max((len(label) for label in labels), default=0)
    return max(1, min(len(labels), int(inches / widest)))


def plain_axes(axes: Axes, theme: Theme, grid: Literal["x", "y", "both", ""] = "", *, floor: bool = False) -> None:
    """Remove the frame (with ``floor``, all but the bottom line) and the ticks; draw faint grid lines behind the data."""
    if grid:
        axes.grid(axis=grid, color=theme.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes, floor=floor)


def frameless(axes: Axes, *, floor: bool = False) -> None:
    """Remove the frame (with ``floor``, all but the bottom line) and the ticks."""
    for side, spine in axes.spines.items():
        spine.set_visible(floor and side == "bottom")
    axes.tick_params(length=0)


def row_titles(axes: Axes, theme: Theme) -> None:
    """The names of rows in full ink."""
    for tick in axes.get_yticklabels():
        tick.set_color(theme.ink)


# --- methods ---------------------------------------------------------------------------------------------------------------------


def labels_in(frame: pd.DataFrame, order: Sequence[str]) -> list[str]:
    """The labels of a frame in the order that fixes colours."""
    return [label for label in order if (frame["label"] == label).any()]


def look_of(index: int, theme: Theme) -> dict[str, Any]:
    """Colour, marker and line style by position in the order of labels, so that a method looks the same in all figures."""
    colours = len(theme.lines)
    dash = DASHES[index // colours % len(DASHES)]
    return {"color": theme.lines[index % colours], "marker": _MARKERS[index % len(_MARKERS)], "linestyle": dash}


# --- colours ------------------------------------------------------------------------------------------------------------------------


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever stands out more (contrast by relative luminance, WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"
