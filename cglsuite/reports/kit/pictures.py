"""Draw figures as SVG in a light and a dark version, and arrange several figures side by side."""

from __future__ import annotations

import base64
import io
import json
import re
import textwrap
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.markup import element, join
from cglsuite.reports.kit.tables import number_text

_FONTS = "'DejaVu Sans', Verdana, 'Liberation Sans', Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Theme:
    """The colours of the light or dark version of a figure.

    ``lines`` is the palette of Okabe and Ito in shades that contrast with the background. ``width`` is the width in inches of a figure for
    a paper, which has no title; if it is 0, each figure has its own width for a page.
    """

    ground: str
    ink: str
    quiet: str
    rule: str
    lines: tuple[str, ...]
    width: float = 0.0


_LIGHT_LINES = ("#0072b2", "#d55e00", "#009e73", "#a8407f", "#7a5200", "#3399ee", "#444444", "#770088")
_DARK_LINES = ("#56b4e9", "#f97b2c", "#2fd0a3", "#e59ac6", "#f7d060", "#9fd4f5", "#cfcfcf", "#7766ee")
LIGHT = Theme("#ffffff", "#1b1f24", "#57606a", "#d8dee4", _LIGHT_LINES)
DARK = Theme("#14171b", "#e4e8ec", "#a3adb8", "#363d46", _DARK_LINES)


@dataclass(frozen=True)
class Picture:
    """One figure in a light and a dark version, with alternative text.

    Pictures in the same ``group`` share its title, and ``wide`` ones fill a row. ``draw`` draws the figure again, for example with a
    different width.
    """

    light: str
    dark: str
    alt: str
    caption: str = ""
    group: str = ""
    wide: bool = False
    draw: Callable[[Theme], Figure] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Gallery:
    """Several figures shown side by side. Pages follow the reader's light or dark preference; Jupyter shows the light version."""

    pictures: tuple[Picture, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            FIGURES: {"figures": [{name: getattr(p, name) for name in _WRITTEN} for p in self.pictures]},
            "text/html": "".join(_row(group, list(pictures)) for group, pictures in groupby(self.pictures, key=lambda p: p.group)),
            "text/plain": "\n".join(p.alt for p in self.pictures),
        }


_WRITTEN = ("light", "dark", "alt", "caption", "group", "wide")


def _row(group: str, pictures: Sequence[Picture]) -> str:
    """Arrange the pictures of a group in a row below its name, for front ends without our style sheet."""
    flat = "margin:0 0 1rem 0"
    captions = [element("figcaption", p.caption) if p.caption else None for p in pictures]
    images = [element("img", src=_data_uri(p.light), alt=p.alt) for p in pictures]
    shown = [element("figure", image, caption, style=flat) for image, caption in zip(images, captions, strict=True)]
    title = element("p", element("strong", group)).source if group else ""
    return title + element("div", join(shown), style="display:flex;flex-wrap:wrap;gap:1rem;align-items:start").source


def picture(draw: Callable[[Theme], Figure], alt: str, caption: str = "", group: str = "", *, wide: bool = False) -> Picture:
    """Draw both versions of a figure."""
    with mpl.rc_context(house_style(LIGHT)):
        light = svg(draw(LIGHT))
    with mpl.rc_context(house_style(DARK)):
        dark = svg(draw(DARK))
    return Picture(light, dark, alt, caption, group, wide, draw)


def svg(figure: Figure) -> str:
    """Render the figure as SVG text. The output is deterministic."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text, marks = extract_marks(text[text.index("<svg") :])
    text = _TAG.sub(lambda tag: _LONG_NUMBER.sub(r"\1", tag[0]), text)
    for pattern, replacement in _COMPACT:
        text = re.sub(pattern, replacement, text)
    return restore_marks(text.replace("<svg ", f'<svg font-family="{_FONTS}" ', 1), marks)


_TAG = re.compile(r"<[^>]*>")
_LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
"""Long numbers in tags, which are shortened. Numbers in a figure's text are values and stay exact."""
# Matplotlib repeats most attributes in every element. Removing them reduces a heat map to a third of its size without changing its look.
_COMPACT = (
    (r"<metadata>[\s\S]*?</metadata>", ""),
    (r"font-family: [^;\"]*(?:; )?", ""),  # once for all
    (r' transform="rotate\(-0 [^"]*"', ""),
    (r' id="(?![pm][0-9a-f]{8}|image|mark-)[^"]*"', ""),  # except of clip paths, markers, images and marks
    (r'd="M (\S+) (\S+) \nL (\S+) \2 \nL \3 (\S+) \nL \1 \4 \nL \1 \2 \n"', r'd="M\1 \2H\3V\4H\1Z"'),  # rectangles
    (r"\n\s*", "\n"),
    (r"<g>\n(<text .*?</text>)\n</g>", r"\1"),
)


def house_style(theme: Theme) -> Any:
    """Return the Matplotlib settings used for every figure, including seaborn figures."""
    return {
        "svg.fonttype": "none",  # text as text, not as paths: sharp at any size, and small
        "svg.hashsalt": "cglsuite",
        "text.parse_math": False,  # names come from plugins, so a dollar sign must not start a formula
        "font.family": "sans-serif",
        "font.size": text_points(theme),
        "figure.facecolor": theme.ground,
        "savefig.facecolor": theme.ground,
        "axes.facecolor": theme.ground,
        "axes.edgecolor": theme.rule,
        "axes.labelcolor": theme.quiet,
        "text.color": theme.ink,
        "xtick.color": theme.quiet,
        "ytick.color": theme.quiet,
        "axes.labelsize": text_points(theme),
    }


def text_points(theme: Theme) -> float:
    """Return the font size of a figure's text, in points."""
    return 8.0 if theme.width else 9.0


class ShownFigure(Figure):
    """A figure that a notebook shows as PNG. Saved files contain its text as text, not as paths.

    Jupyter draws figures on its own only after pyplot has selected a backend. PDF and PostScript files embed fonts as TrueType (Type 42),
    which conferences require.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Render a high-resolution PNG, with its size in CSS pixels as metadata."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_SHOWN_DPI)
        width, height = (round(96 * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """Save the figure as Matplotlib does, but with fonts embedded as TrueType."""
        with mpl.rc_context(_FILES):
            super().savefig(*args, **kwargs)


_SHOWN_DPI = 160
_FILES: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "cglsuite"}


def shown_figure(draw: Callable[[Theme], Figure], theme: Theme) -> ShownFigure:
    """Draw one version of a picture as a Matplotlib figure that can be shown or saved."""
    with mpl.rc_context(house_style(theme)):
        figure = draw(theme)
    figure.__class__ = ShownFigure  # drawings build plain figures
    assert isinstance(figure, ShownFigure)  # noqa: S101 - for the type checker
    return figure


def _data_uri(text: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


# Building blocks of all figures: titles, axes without a frame, the style of a method, legends.

ANNOTATED_TASKS = 12
"""The largest number of tasks for which a matrix shows its values in the cells."""
COLOUR_MAP = "viridis"
LEGEND_ROW = 0.25
"""The height of a legend's row in inches, which is 24 CSS pixels, so that its entries can be tapped."""
RASTER_DPI = 180
"""Resolution of rasterised parts of a figure, in dots per inch."""
MARKERS = "osD^vPX*"
"""Marker shapes of methods."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.4)), (0, (5, 2, 1.2, 2)))
"""Line styles: solid for a method's first label."""


# --- around the axes -------------------------------------------------------------------------------------------------------------


def wrapped(text: str, inches: float, points: float) -> list[str]:
    """Wrap text to a width in inches, which is estimated from the average width of a character. Preset names may break after / and before
    @.
    """
    breakable = text.replace("/", "/\u200b").replace("@", "\u200b@").replace("\u200b", " \u200b")
    lines = textwrap.wrap(breakable, max(10, int(inches * 72 / (0.62 * points))), break_long_words=True)
    return [line.replace(" \u200b", "").replace("\u200b", "") for line in lines] or [""]


def titled_figure(
    title: str,
    theme: Theme,
    width: float,
    height: float,
    *,
    rows: int = 0,
    left: float = 0.62,
    margins: float = 0.72,
    below: float = 0.62,
    wrap: float = 0.3,
) -> tuple[Figure, Axes]:
    """Create a figure with a title, axes and room for a legend below. All sizes are in inches.

    Args:
        width: width of the figure, unless the theme has one. height: height of the axes. rows: number of rows of the legend.
        left, margins: margin to the left of the axes, and the sum of the left and right margins.
        below: space between the axes and the legend. wrap: difference between the figure's width and that of the title's lines.
    """
    width = theme.width or width
    lines = [] if theme.width else wrapped(title, width - wrap, 10.5)
    foot, head = below + LEGEND_ROW * rows, (0.22 if lines else 0.08) + 0.19 * len(lines)
    whole = height + foot + head
    figure = Figure(figsize=(width, whole))
    axes = figure.add_axes((left / width, foot / whole, (width - margins) / width, height / whole))
    headline(figure, lines, theme)
    return figure, axes


def headline(figure: Figure, lines: Sequence[str], theme: Theme, *, points: float = 10.5, left: float = 0.08) -> None:
    """Draw the figure's title at its upper left, ``left`` inches from the edge."""
    width, height = figure.get_size_inches()
    place: dict[str, Any] = {"va": "top", "ha": "left", "fontsize": points, "fontweight": "bold", "color": theme.ink}
    figure.text(left / width, 1 - 0.1 / height, "\n".join(lines), **place)


def legend(figure: Figure, columns: int, *, left: float = 0.5, hides: Sequence[str] = (), **more: Any) -> None:
    """Draw the legend at the bottom of the figure, ``left`` inches from the edge, in rows of height :data:`LEGEND_ROW`.

    Args:
        hides: entries that hide the artists marked with their label on a page. more: keyword arguments for Matplotlib.
    """
    width, height = figure.get_size_inches()
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (left / width, 0.02 / height)}
    look = {"ncols": columns, "frameon": False, "fontsize": 9, "handlelength": 2.6, "labelspacing": 0.88}
    mark_entries(figure.legend(**place | look | more), hides)


def legend_columns(labels: Sequence[str], inches: float) -> int:
    """Return how many columns of a :func:`legend` fit into a width in inches, from one to the number of labels."""
    widest = 0.7 + 0.08 * max((len(label) for label in labels), default=0)
    return max(1, min(len(labels), int(inches / widest)))


def plain_axes(axes: Axes, theme: Theme, grid: Literal["x", "y", "both", ""] = "", *, floor: bool = False) -> None:
    """Remove the ticks and the frame (except for the bottom line, with ``floor``), and draw faint grid lines behind the data."""
    if grid:
        axes.grid(axis=grid, color=theme.rule, linewidth=0.6)
    axes.set_axisbelow(True)
    frameless(axes, floor=floor)


def frameless(axes: Axes, *, floor: bool = False) -> None:
    """Remove the ticks and the frame (except for the bottom line, with ``floor``)."""
    for side, spine in axes.spines.items():
        spine.set_visible(floor and side == "bottom")
    axes.tick_params(length=0)


def row_titles(axes: Axes, theme: Theme) -> None:
    """Show the names of rows in the theme's darkest colour."""
    for tick in axes.get_yticklabels():
        tick.set_color(theme.ink)


# --- methods ---------------------------------------------------------------------------------------------------------------------


def labels_in(frame: pd.DataFrame, order: Sequence[str]) -> list[str]:
    """Return the labels in a data frame, sorted as in ``order``."""
    return [label for label in order if (frame["label"] == label).any()]


_REFERENCES = ("joint", "joint-budgeted", "frozen-ncm", "task-guesser")
"""Methods that are not continual learners. They are grey, so that no learner has their colour."""
# fmt: off
_LEARNERS = (
    "bare", "ewc", "er-gnn", "lwf", "mas", "gem", "twp", "replay", "er", "ssm", "sem", "packnet", "hat", "tpp", "der++", "a-gem", "gss",
    "icarl", "gdumb", "si", "cat", "puma", "delome", "pi-gnn", "piggyback", "mas-star", "er-ace", "dmsg", "continual-gnn", "ssrm",
    "evolve-gcn", "analytic-ridge", "pdgnns-tem", "simple-cil", "teen", "gdoc",
)
# fmt: on
"""The suite's learners, whose positions select one of the 56 pairs of colour and marker. The first seven, which many papers include, differ
in colour. Add new methods at the end, so that the others keep their style.
"""
_GREY = 6
_COLOURS = (0, 1, 2, 3, 4, 5, 7)


def style_of(label: str, order: Sequence[str], theme: Theme) -> dict[str, Any]:
    """Return a method's colour, marker and line style. They are the same in every figure, whatever other methods it shows.

    Each of the suite's methods has its own pair of colour and marker. The style of any other method is derived from its name, with a dashed
    line and a hollow marker. Several labels of one method, for example with different backbones, share its colour and differ in marker and
    line style.

    Args:
        label: a method's name, optionally followed by a space or comma and details that distinguish the label.
        order: all labels of the figure, or of the figures that share a legend.

    Example:
        >>> style_of("bare", ["ewc", "bare"], LIGHT) == style_of("bare", ["bare", "mine"], LIGHT)
        True
    """
    method = method_of(label)
    look: dict[str, Any] = {}
    if method in _REFERENCES:
        colour, marker, dash = _GREY, _REFERENCES.index(method), 0
    else:
        listed = method in _LEARNERS
        place = _LEARNERS.index(method) if listed else zlib.crc32(method.encode())
        colour, marker, dash = _COLOURS[place % len(_COLOURS)], place, 0 if listed else 1
        look = {} if listed else {"markerfacecolor": theme.ground}
    earlier = sum(method_of(other) == method for other in order[: order.index(label)])
    markers, dashes = MARKERS[(marker + earlier) % len(MARKERS)], DASHES[(dash + earlier) % len(DASHES)]
    return {"color": theme.lines[colour], "marker": markers, "linestyle": dashes, **look}


def method_of(label: str) -> str:
    """Return the method name in a label, without the details after a space or comma."""
    return label.partition(" ")[0].rstrip(",")


# --- colours ------------------------------------------------------------------------------------------------------------------------


def ink_on(colour: Sequence[float]) -> str:
    """Return black or white, whichever contrasts more with ``colour`` (by relative luminance, WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"


# Marks in a figure for the page's script: which parts belong to a method, and the text of each point.
# A mark is an element's ``gid`` while matplotlib draws; :func:`restore_marks` turns it into ``data-`` attributes of the SVG. Without a
# script, marks have no visible effect.

PREFIX = "cglsuite:"
_GID = re.compile(rf' id="{PREFIX}([^"]*)"')
_HELD = re.compile(r' id="mark-(\d+)"')


def mark_series(label: str, *artists: Artist, points: Sequence[str] = ()) -> None:
    """Mark the artists of a label, so that its legend entry can hide them.

    Args:
        points: the text for each point of the first artist (a line or its markers), in order.
    """
    for number, artist in enumerate(artists):
        artist.set_gid(_gid(series=label, **({"points": list(points)} if points and not number else {})))


def mark_entries(legend: Legend, labels: Sequence[str]) -> None:
    """Mark the legend entries that can hide the artists of their label. Other entries are not marked."""
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
        if handle is not None and text.get_text() in labels:
            handle.set_gid(_gid(legend=text.get_text()))
            text.set_gid(_gid(legend=text.get_text()))


def mark_grid(axes: Axes, values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], *, percent: bool) -> None:
    """Attach the values of a heat map that fills its axes: float64 ``[rows, columns]`` from the top. Cells without a value get no text."""
    scale, digits = _scale(percent)
    cells = [[number_text(scale * value, digits) if np.isfinite(value) else "" for value in row] for row in values]
    axes.set_gid(_gid(grid={"rows": list(rows), "columns": list(columns), "cells": cells}))


def point_texts(where: Sequence[str], mean: ArrayLike, spread: ArrayLike | None = None, *, percent: bool) -> list[str]:
    """Return texts for :func:`mark_series`, with the position, the value and (if known) the spread of each point. NaN points are left out.

    Example:
        >>> point_texts(["after task 1", "after task 2"], [0.5, float("nan")], [0.01, 0.0], percent=True)
        ['after task 1: 50.0 ± 1.0']
    """
    scale, digits = _scale(percent)
    means = np.asarray(mean, dtype=np.float64)
    spreads = np.full(means.shape, np.nan) if spread is None else np.asarray(spread, dtype=np.float64)
    texts = []
    for place, value, deviation in zip(where, means, spreads, strict=True):
        if np.isfinite(value):
            beside = f" ± {number_text(scale * deviation, digits)}" if np.isfinite(deviation) else ""
            texts.append(f"{place}: {number_text(scale * value, digits)}{beside}")
    return texts


def _scale(percent: bool) -> tuple[float, int]:
    """Return the scale factor for values and the number of decimals."""
    return (100.0, 1) if percent else (1.0, 4)


def extract_marks(svg: str) -> tuple[str, list[dict[str, Any]]]:
    """Replace the marks in an SVG by numbers, so that rewriting identifiers cannot damage them. Return the SVG and the marks in order."""
    pictures: list[dict[str, Any]] = []

    def numbered(match: re.Match[str]) -> str:
        pictures.append(json.loads(unquote(match[1])))
        return f' id="mark-{len(pictures) - 1}"'

    return _GID.sub(numbered, svg), pictures


def restore_marks(svg: str, marks: Sequence[dict[str, Any]]) -> str:
    """Write the marks back into the SVG as ``data-`` attributes, with text for labels and JSON for points and grids."""

    def attributes(match: re.Match[str]) -> str:
        return "".join(f" data-{name}={_attribute(value)}" for name, value in marks[int(match[1])].items())

    return _HELD.sub(attributes, svg)


def _gid(**mark: Any) -> str:
    return PREFIX + quote(json.dumps(mark))  # without the quotes that matplotlib writes in its own way


def _attribute(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return quoteattr(text)  # in single quotes around JSON, whose own would each take six characters


# The media types with which notebooks pass figures and facts to our pages; Jupyter shows the plain alternatives instead.

FIGURES = "application/vnd.cglsuite.figures+json"
"""``{"figures": [{"light": svg, "dark": svg, "alt": text, "caption": text}, ...]}``"""
FACTS = "application/vnd.cglsuite.facts+json"
"""``{"footer": [line, ...]}`` with lines for the footer of the page."""
