"""One SVG for light and dark pages: each version's colours come back, and nothing else moves."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import Browser
from matplotlib import pyplot
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_notebook, new_output

from cglsuite.reports.kit.pictures import DARK, FIGURES, LIGHT, Picture, Theme, picture
from cglsuite.reports.rendering.page import Page, page_html, themed

SHEET = re.compile(r"<style>:root\{([^}]*)\}@media \(prefers-color-scheme:dark\)\{:root\{([^}]*)\}\}</style>")


def drawn(theme: Theme) -> Figure:
    """Lines with markers and clip paths, an image and a text that looks like a colour."""
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    for n, colour in enumerate(theme.lines[:3]):
        axes.plot([0, 1, 2], [n, 1, 2], color=colour, marker="os^"[n])
    axes.set_title("#1b1f24")
    axes.text(0.5, 0.5, "grey in both", color="#808080")
    return figure


@pytest.fixture(scope="module")
def both() -> Picture:
    return picture(drawn, "lines")


def restored(text: str, version: int) -> str:
    """The SVG of one version: its variables replaced by their values, without the sheet."""
    (values,) = SHEET.findall(text)
    colours = dict(pair.split(":") for pair in values[version].split(";") if pair)
    return re.sub(r"var\((--\d+)\)", lambda found: colours[found[1]], SHEET.sub("", text))


def names_by_order(text: str) -> str:
    """Names of clip paths and markers, which hash colours, by the order in which they come."""
    seen: dict[str, str] = {}
    return re.sub(r'(?<=[#"])([pm])([0-9a-f]{10})\b', lambda found: seen.setdefault(found[0], f"{found[1]}{len(seen)}"), text)


def test_each_version_comes_back(both: Picture) -> None:
    one = themed(both.light, both.dark)
    assert one is not None
    assert restored(one, 0) == names_by_order(both.light)
    assert restored(one, 1) == names_by_order(both.dark)
    assert len(one) < 1.1 * len(both.light)
    assert ">#1b1f24</text>" in one  # a text, no colour
    assert "#808080" in SHEET.sub("", one)  # of both versions


def test_one_light_colour_may_stand_for_two_dark_ones() -> None:
    light = '<svg width="1"><path style="fill: #ffffff"/><path style="stroke: #ffffff"/></svg>'
    dark = '<svg width="1"><path style="fill: #000000"/><path style="stroke: #123456"/></svg>'
    one = themed(light, dark)
    assert one is not None
    assert (restored(one, 0), restored(one, 1)) == (light, dark)


@pytest.mark.parametrize(
    "dark",
    [
        '<svg><path style="fill: #000000" d="M1"/></svg>',
        '<svg><path style="fill: #000000; opacity: 0.5" d="M0"/></svg>',
        '<svg><path fill="#000000" d="M0"/></svg>',
        '<svg><path style="fill: none" d="M0"/></svg>',
        '<svg><text style="fill: #000000">M0</text></svg>',
    ],
)
def test_versions_that_differ_in_more_than_colours_stay_two(dark: str) -> None:
    assert themed('<svg><path style="fill: #ffffff" d="M0"/></svg>', dark) is None


def test_equal_versions_need_no_sheet() -> None:
    assert themed("<svg>same</svg>", "<svg>same</svg>") == "<svg>same</svg>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.started() as found:
        yield found


@pytest.mark.nightly
@pytest.mark.parametrize(("dark", "theme"), [(False, LIGHT), (True, DARK)])
def test_a_browser_shows_what_the_reader_prefers(browser: Browser, both: Picture, tmp_path: Path, dark: bool, theme: Theme) -> None:
    content: dict[str, Any] = {"figures": [{"light": both.light, "dark": both.dark, "alt": both.alt}]}
    page = page_html(new_notebook(cells=[new_code_cell("1", outputs=[new_output("display_data", {FIGURES: content})])]), Page(title="x"))
    (tmp_path / "page.html").write_text(page)
    browser.open(tmp_path / "page.html", dark=dark)
    assert browser.all("figure source") == []
    pixels = pyplot.imread(io.BytesIO(browser.one("figure img").screenshot_as_png))
    seen = {"#" + "".join(f"{round(255 * float(part)):02x}" for part in pixel[:3]) for pixel in pixels.reshape(-1, pixels.shape[-1])}
    assert {theme.ground, theme.lines[0], theme.lines[1]} <= seen
