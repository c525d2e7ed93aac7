"""Marks in a figure for the page's script: which parts belong to a method, and the text of each point.

A mark is an element's ``gid`` while matplotlib draws; :func:`written` turns it into ``data-`` attributes of the SVG. Without a script a
marked figure looks like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

import numpy as np

from cglsuite.reports.kit.htmltable import number_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from numpy.typing import ArrayLike, NDArray

__all__ = ["PREFIX", "held_back", "mark_entries", "mark_grid", "mark_series", "point_texts", "written"]

PREFIX = "cglsuite:"
_GID = re.compile(rf' id="{PREFIX}([^"]*)"')
_HELD = re.compile(r' id="mark-(\d+)"')


def mark_series(label: str, *artists: Artist, points: Sequence[str] = ()) -> None:
    """The parts of a figure that belong to a label: they are hidden with its legend entry.

    Args:
        points: the text of each point of the first artist (a line or its markers), in order.
    """
    for number, artist in enumerate(artists):
        artist.set_gid(_gid(series=label, **({"points": list(points)} if points and not number else {})))


def mark_entries(legend: Legend, labels: Sequence[str]) -> None:
    """The entries of a legend that hide what is marked with their label; other entries stay plain."""
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
        if handle is not None and text.get_text() in labels:
            handle.set_gid(_gid(legend=text.get_text()))
            text.set_gid(_gid(legend=text.get_text()))


def mark_grid(axes: Axes, values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], *, percent: bool) -> None:
    """Mark the values of a heat map that fills its axes, float64 ``[rows, columns]`` from the top; cells without a value get no text."""
    scale, digits = _scale(percent)
    cells = [[number_text(scale * value, digits) if np.isfinite(value) else "" for value in row] for row in values]
    axes.set_gid(_gid(grid={"rows": list(rows), "columns": list(columns), "cells": cells}))


def point_texts(where: Sequence[str], mean: ArrayLike, spread: ArrayLike | None = None, *, percent: bool) -> list[str]:
    """Texts for :func:`mark_series`: the place of each point, its value, and its spread if there is one; NaN points are left out.

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
    """The factor for values, and the number of decimals."""
    return (100.0, 1) if percent else (1.0, 4)


def held_back(svg: str) -> tuple[str, list[dict[str, Any]]]:
    """The SVG with numbers in place of its marks, and the marks by number."""
    found: list[dict[str, Any]] = []

    def numbered(match: re.Match[str]) -> str:
        found.append(json.loads(unquote(match[1])))
        return f' id="mark-{len(found) - 1}"'

    return _GID.sub(numbered, svg), found


def written(svg: str, marks: Sequence[dict[str, Any]]) -> str:
    """The SVG with its marks as ``data-`` attributes: text for labels, JSON for points and grids."""

    def attributes(match: re.Match[str]) -> str:
        return "".join(f" data-{name}={_attribute(value)}" for name, value in marks[int(match[1])].items())

    return _HELD.sub(attributes, svg)


def _gid(**mark: Any) -> str:
    return PREFIX + quote(json.dumps(mark))  # without the quotes that matplotlib writes in its own way


def _attribute(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return quoteattr(text)  # in single quotes around JSON, whose own would each take six characters
