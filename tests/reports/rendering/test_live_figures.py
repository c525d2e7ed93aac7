"""Figures of a page in a real browser: legend entries hide methods, values come by pointer and keyboard, paper and no script lose nothing.

Needs Selenium and Debian's packages chromium and chromium-driver; elsewhere the tests are skipped and say so.
"""

from __future__ import annotations

import csv
import io
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import chromium
import numpy as np
import pandas as pd
import pytest
from chromium import Browser
from fontTools.ttLib import TTFont
from report_lab import page_with

from cglsuite.reports.kit.figures import curve_figure, legend_picture, matrix_figure
from cglsuite.reports.kit.pictures import DARK, LIGHT, Gallery, Picture, picture

pytestmark = pytest.mark.nightly
LABELS = ["bare", "ewc", "<b>&"]
PLACE = """
const svg = document.querySelectorAll("figure.live > svg")[arguments[0]];
const part = svg.querySelectorAll(arguments[1])[arguments[2]];
part.scrollIntoView({ block: "center" });
const box = part.getBoundingClientRect();
return [box.x + box.width * arguments[3], box.y + box.height * arguments[4]];
"""
"""The place of a part of a figure: (figure, selector, which, share of its width, of its height)."""


def gallery() -> Gallery:
    """Three methods over two tasks, and a matrix too large to have its values written out: cell (i, j) is i + j hundredths."""
    frame = pd.DataFrame(
        [{"label": n, "task": t, "mean": 0.2 + 0.2 * i + 0.1 * t, "std": 0.01} for i, n in enumerate(LABELS) for t in (1, 2)]
    )
    values = 0.01 * np.add.outer(np.arange(15), np.arange(14))
    return Gallery(
        (
            picture(lambda theme: curve_figure(frame, theme, title="curves", ylabel="AP", order=LABELS, chance=np.array([0.5, 0.25])), "c"),
            picture(lambda theme: matrix_figure(values, "matrix", theme), "m"),
        )
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figures") / "page.html"
    path.write_text(page_with(gallery()))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.started() as found:
        yield found


def drawn(browser: Browser) -> list[str]:
    """The methods that the first figure shows."""
    found: list[str] = browser.run(
        """return [...document.querySelector("figure.live > svg").querySelectorAll("[data-points]")]
             .filter((part) => getComputedStyle(part).display !== "none").map((part) => part.dataset.series)"""
    )
    return found


def tip(browser: Browser, figure: int = 0) -> str:
    """What a figure says at the moment."""
    found: str = browser.run(
        "const tip = document.querySelectorAll('.tip')[arguments[0]]; return tip.hidden ? '' : tip.textContent", figure
    )
    return found


def point_at(browser: Browser, *where: Any) -> None:
    x, y = browser.run(PLACE, *where)
    browser._tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


def entry(browser: Browser, label: str) -> Any:
    return next(button for button in browser.all("figure.live [role=button]") if button.get_attribute("aria-label") == label)


def test_a_click_on_a_name_hides_its_method(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert drawn(browser) == ["chance", *LABELS]
    entry(browser, "ewc").click()
    assert drawn(browser) == ["chance", "bare", "<b>&"]
    assert entry(browser, "ewc").get_attribute("aria-pressed") == "false"
    entry(browser, "<b>&").click()
    assert drawn(browser) == ["chance", "bare"]
    entry(browser, "ewc").click()
    assert drawn(browser) == ["chance", "bare", "ewc"]
    assert entry(browser, "ewc").get_attribute("aria-pressed") == "true"
    assert browser.console() == []
    assert [address for address in browser.requests() if not address.startswith("data:")] == [page.as_uri()]


def test_one_legend_serves_all_figures_of_a_gallery(browser: Browser, tmp_path: Path) -> None:
    """Hiding, and the values along the arrow keys, through all figures in turn."""
    from selenium.webdriver.common.keys import Keys

    frame = pd.DataFrame([{"label": n, "task": t, "mean": 0.2 * t, "std": 0.01} for n in LABELS for t in (1, 2)])
    both = [
        picture(lambda theme: curve_figure(frame, theme, title="c", ylabel="AP", order=LABELS, with_legend=False), "c") for _ in range(2)
    ]
    (tmp_path / "page.html").write_text(page_with(Gallery((legend_picture(LABELS, order=LABELS), *both))))
    browser.open(tmp_path / "page.html", width=1400)
    assert [button.get_attribute("aria-label") for button in browser.all("figure.live [role=button]")] == LABELS
    places = [figure.rect["y"] for figure in browser.all("figure.live")]
    assert places[0] < places[1] == places[2]
    entry(browser, "ewc").click()
    shown = """return [...document.querySelectorAll("[data-points]")]
             .filter((part) => getComputedStyle(part).display !== "none").map((part) => part.dataset.series)"""
    assert browser.run(shown) == ["bare", "<b>&"] * 2
    browser.press(Keys.ENTER, *[Keys.ARROW_RIGHT] * 3)
    assert browser.run(shown) == LABELS * 2
    assert [tip(browser, number) for number in range(3)] == ["", "", "ewc, after task 1: 20.0 ± 1.0"]


def test_the_pointer_finds_the_nearest_value(browser: Browser, page: Path) -> None:
    """Of what is shown; nothing far from any point."""
    browser.open(page)
    point_at(browser, 0, "[data-series='ewc'] use", 1, 0.5, 0.5)
    assert tip(browser) == "ewc, after task 2: 60.0 ± 1.0"
    entry(browser, "ewc").click()
    point_at(browser, 0, "[data-series='ewc'] use", 1, 0.5, 0.5)
    assert tip(browser) == ""
    point_at(browser, 0, "[data-points]", 0, 0.5, 0.5)  # half-way between the tasks
    assert tip(browser) == ""


def test_a_large_matrix_tells_its_cells(browser: Browser, page: Path) -> None:
    """Row and column by their place, and the value."""
    browser.open(page)
    point_at(browser, 1, "[data-grid] > g:first-child path", 0, 2.5 / 14, 3.5 / 15)
    assert tip(browser, 1) == "after task 3, task 3: 5.0"
    point_at(browser, 1, "[data-grid] > g:first-child path", 0, 13.5 / 14, 0.5 / 15)
    assert tip(browser, 1) == "before training, task 14: 13.0"


def test_keys_do_what_the_pointer_does(browser: Browser, page: Path) -> None:
    """Tab reaches every entry, Enter and Space hide, the arrow keys go along the values, and the focus is seen."""
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    for name in [*LABELS, "chance"]:
        for _ in range(12):
            browser.press(Keys.TAB)
            if browser.run("return document.activeElement.getAttribute('aria-label')") == name:
                break
        else:
            pytest.fail(f"Tab does not reach {name}")
        assert browser.run("return getComputedStyle(document.activeElement.querySelector('.ground')).stroke") != "none"
    browser.press(Keys.ARROW_RIGHT)
    assert tip(browser) == "chance, after task 1: 50.0"
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert tip(browser) == "chance, after task 2: 25.0"
    browser.press(Keys.ESCAPE)
    assert tip(browser) == ""
    browser.press(Keys.ENTER)
    assert drawn(browser) == LABELS
    browser.press(Keys.SPACE)
    assert drawn(browser) == ["chance", *LABELS]
    assert browser.run("return document.querySelector('.tip').getAttribute('aria-live')") == "polite"


@pytest.mark.parametrize("width", [420, 1200])
def test_entries_are_large_enough_for_a_finger_and_fit(browser: Browser, page: Path, width: int) -> None:
    """At a desk each is 24 pixels high; on a phone a figure shrinks to the window."""
    browser.open(page, width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    heights = browser.run(
        "return [...document.querySelectorAll('.live [role=button] .ground')].map((e) => e.getBoundingClientRect().height)"
    )
    assert len(heights) == 4
    assert min(heights) >= (23.99 if width > 600 else 15)


def test_paper_shows_the_whole_figure(browser: Browser, page: Path) -> None:
    """What is hidden on the screen is printed: the image, which knows nothing of it."""
    browser.open(page)
    entry(browser, "bare").click()
    browser._tell("Emulation.setEmulatedMedia", media="print")
    shown = [(e.tag_name, e.is_displayed()) for e in browser.all("figure.live > picture > img, figure.live > svg, .hint")]
    browser._tell("Emulation.setEmulatedMedia", media="")
    assert shown == [("p", False), *[("img", True), ("svg", False)] * 2]


def test_each_figure_and_its_values_can_be_saved(browser: Browser, page: Path, tmp_path: Path) -> None:
    """As SVG in the colours for paper, and its values as CSV and as a table for LaTeX, with every sign that LaTeX reads escaped."""
    browser.open(page, dark=True)
    browser.run("for (const link of document.querySelectorAll('.save a')) link.focus()")
    files = [
        {link.text: unquote(link.get_attribute("href").partition(",")[2]) for link in line.find_elements("css selector", "a")}
        for line in browser.all("figure > .save")
    ]
    assert [list(one) for one in files] == [["SVG", "PDF", "CSV", "LaTeX"]] * 2
    curves, matrix = files
    assert LIGHT.lines[0] in curves["SVG"]
    assert DARK.lines[0] not in curves["SVG"]
    rows = list(csv.reader(io.StringIO(curves["CSV"])))
    assert sorted(rows[0]) == sorted(["", *LABELS, "chance"])
    assert [row[0] for row in rows[1:]] == ["after task 1", "after task 2"]
    assert rows[1][rows[0].index("ewc")] == "50.0 ± 1.0"
    assert "<b>\\&" in curves["LaTeX"]
    assert "50.0 $\\pm$ 1.0" in curves["LaTeX"]
    assert curves["LaTeX"].count("\\\\\n") == 3
    cells = list(csv.reader(io.StringIO(matrix["CSV"])))
    assert cells[0] == ["", *(f"task {k + 1}" for k in range(14))]
    assert (cells[1][0], cells[3][4]) == ("before training", "5.0")
    assert browser.console() == []


def test_each_figure_can_be_saved_as_pdf(browser: Browser, page: Path, tmp_path: Path) -> None:
    """One page of the drawing's size in the colours for paper, its text searchable, with the font's outlines as TrueType (Type 42)."""
    browser.open(page, dark=True)
    browser.download_to(tmp_path)
    browser.run("for (const link of document.querySelectorAll('.save a')) if (link.textContent === 'PDF') link.click()")
    paths = [tmp_path / f"figure-{number}.pdf" for number in (1, 2)]
    deadline = time.monotonic() + 20
    while not all(path.exists() for path in paths) and time.monotonic() < deadline:
        time.sleep(0.1)
    curves, matrix = map(pdf_objects, paths)
    size = browser.run("return document.querySelector('figure.live > svg').getAttribute('viewBox')").split()[2:]
    assert f"/MediaBox [0 0 {float(size[0]):g} {float(size[1]):g}]" in "".join(map(str, curves))
    assert drawn_text(curves) >= {"AP", "tasks learnt", *LABELS, "chance"}
    red, green, blue = (int(LIGHT.lines[0][at : at + 2], 16) / 255 for at in (1, 3, 5))
    assert re.search(rf"^{red:.3g} {green:.3g} {blue:.3g} RG$", drawing(curves), re.MULTILINE)
    assert any("/Subtype /Image" in about for about, _ in matrix)
    assert browser.console() == []
    assert browser.all(".stage") == []


def pdf_objects(path: Path) -> list[tuple[str, bytes]]:
    """The objects of a PDF, in the order of its table of places: the dictionary, and the unpacked stream."""
    data = path.read_bytes()
    table = data[int(data.split()[-2]) :]
    found = []
    for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n", table), start=1):
        head, about, after = data[int(place) :].split(b"\n", 2)
        assert head == b"%d 0 obj" % number
        length = re.search(rb"/Length (\d+)", about)
        stream = after.removeprefix(b"stream\n")[: int(length[1])] if length else b""
        found.append((about.decode(), zlib.decompress(stream) if b"FlateDecode" in about else stream))
    return found


def drawing(objects: list[tuple[str, bytes]]) -> str:
    """What the page of a PDF draws."""
    return next(stream for _, stream in objects if b" Tm " in stream).decode()


def drawn_text(objects: list[tuple[str, bytes]]) -> set[str]:
    """The texts of a PDF, by the names that its fonts give to their glyphs, which have outlines."""
    found = set[str]()
    for about, stream in objects:
        if "/Length1" in about:
            font = TTFont(io.BytesIO(stream))
            assert font["maxp"].numGlyphs > 3
            assert any(font["glyf"][name].numberOfContours > 0 for name in font.getGlyphOrder())
    names = [dict(re.findall(r"<(\w{4})> <(\w{4})>", stream.decode())) for _, stream in objects if b"beginbfchar" in stream]
    for glyphs in re.findall(r"<(\w+)> Tj", drawing(objects)):
        codes = [glyphs[at : at + 4] for at in range(0, len(glyphs), 4)]
        found |= {"".join(chr(int(name[code], 16)) for code in codes) for name in names if set(codes) <= name.keys()}
    return found


def test_without_a_script_the_image_stands(browser: Browser, page: Path) -> None:
    browser._tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        assert [e.is_displayed() for e in browser.all("figure > picture > img")] == [True, True]
        assert browser.all("figure > svg") == []
    finally:
        browser._tell("Emulation.setScriptExecutionDisabled", value=False)


def test_a_change_of_the_scheme_keeps_what_is_hidden(browser: Browser, page: Path) -> None:
    browser.open(page)
    entry(browser, "bare").click()
    background = "return getComputedStyle(document.querySelector('figure.live > svg path')).fill"
    light = browser.run(background)
    browser._tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    end = time.monotonic() + 10
    while browser.run(background) == light and time.monotonic() < end:
        time.sleep(0.05)  # the page hears of it with the next frame
    assert browser.run(background) != light
    assert drawn(browser) == ["chance", "ewc", "<b>&"]
    assert len(browser.all("figure.live > svg")) == 2


def test_a_hostile_figure_runs_and_fetches_nothing(browser: Browser, tmp_path: Path) -> None:
    """Scripts, handlers, foreign content, styles and addresses of another place do not come into the page with a drawing."""
    away = "http://192.0.2.1/x"
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:h="http://www.w3.org/1999/xhtml"
      width="10pt" height="10pt" viewBox="0 0 10 10" onload="hit(1)" style="position:fixed;inset:0">
      <script>hit(2)</script><h:script>hit(3)</h:script><style>body {{ display: none }} @import url({away});</style>
      <foreignObject><h:img src="x" onerror="hit(4)"/></foreignObject><a href="javascript:hit(5)"><text>a</text></a>
      <image xlink:href="{away}" onerror="hit(6)"/><use href="{away}#a"/><path style="fill:url({away})" onclick="hit(7)" d="M0 0"/>
      <animate onbegin="hit(8)" attributeName="x"/><g data-series="m" data-points="[]" tabindex="1"/></svg>"""
    (tmp_path / "page.html").write_text(page_with(Gallery((Picture(svg, svg, "alt"),))))
    browser.run_before_pages("window.hits = []; window.hit = (n) => hits.push(n)")
    browser.open(tmp_path / "page.html")
    assert len(browser.all("figure.live > svg")) == 1
    assert browser.run("return hits") == []
    inside = browser.run("return [...document.querySelector('figure.live > svg').querySelectorAll('*')].map((e) => e.localName).sort()")
    assert inside == ["circle", "g", "image", "path", "use"]
    assert not browser.run("return document.querySelector('figure.live').innerHTML.split('</picture>')[1].includes('192.0.2.1')")
    assert browser.run("return getComputedStyle(document.body).display") == "block"
    assert browser.run("return getComputedStyle(document.querySelector('figure.live > svg')).position") == "static"
    assert [address for address in browser.requests() if not address.startswith("data:")] == [(tmp_path / "page.html").as_uri()]
    # A newer Chromium says which handlers the policy of the page kept from running, before they are dropped; nothing else may be said.
    refused = browser.console()
    assert len(refused) in (0, svg.count('="hit('))
    assert all("inline event handler" in message and "has been blocked" in message for message in refused)
