"""The site in a real browser, at a phone's and a desk's width, light and dark: sorting, filtering, links, keyboard, downloads, silence.

Needs Selenium and Debian's packages chromium and chromium-driver; elsewhere the tests are skipped and say so.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import chromium
import pytest
from chromium import Browser
from hostile_plugin import MARK, attacked_results, attacked_site
from made_records import made_results
from page_looks import LOOKS, assert_silent_and_readable, contrast
from report_lab import page_with

from cglsuite.base.markup import element
from cglsuite.reports.rendering.job import Outcome
from cglsuite.reports.rendering.notebook import RenderedReport, failure_html
from cglsuite.reports.results.summary import overview
from cglsuite.reports.site import leaderboard as show_leaderboard
from cglsuite.reports.site.boards import Board, boards
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import site_html
from cglsuite.reports.studies import campaign as show_campaign
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison import page as show_comparison

pytestmark = pytest.mark.nightly
FIRST = {"method", "rank", "records", "average_performance", "forgetting_from_diagonal", "intransigence", "total_s", "backbone"}
"""The columns that a board shows first."""
SMALLEST_TARGET = 24
"""Pixels either way, of buttons and fields: WCAG 2.2, success criterion 2.5.8."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One window for all tests of this file."""
    with chromium.started() as found:
        yield found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Board]]:
    """The folder of a site: an index, two reports, one of which failed; and the boards."""
    folder = tmp_path_factory.mktemp("site")
    results, catalogue = made_results(folder / "store")
    outcome = Outcome(status="failed", reason="cell 2: ValueError: no", details="Traceback\n" + "a long line " * 30)
    (folder / "bad.html").write_text(failure_html("Bad", "bad", outcome))
    heading = element("h1", "A page")
    board = [show_leaderboard.leaderboard(results, catalogue), show_leaderboard.method_cards(results, catalogue)]
    (folder / "leaderboard.html").write_text(page_with(heading, overview(results), element("h2", "Boards"), *board))
    figures = [show_campaign.curves(results), show_campaign.matrices(results)]
    (folder / "figures.html").write_text(page_with(heading, overview(results), *figures))
    rendered = [
        RenderedReport(notebook="leaderboard", path=folder / "leaderboard.html", status="done", reason="", seconds=3.0),
        RenderedReport(notebook="bad", path=folder / "bad.html", status="failed", reason=outcome.reason, seconds=1.0),
    ]
    (folder / "index.html").write_text(site_html(results.campaign, rendered, catalogue, results))
    return folder, boards(results, catalogue)


@pytest.fixture
def index(made: tuple[Path, list[Board]], browser: Browser) -> Browser:
    """The index, freshly opened at a desk."""
    browser.open(made[0] / "index.html")
    return browser


def methods_of(browser: Browser, number: int) -> list[str]:
    """Method and backbone of the rows that a board shows, from top to bottom."""
    found: list[str] = browser.run(
        """return [...document.querySelectorAll(`section[data-board="${arguments[0]}"] > .scroll tbody tr:is([data-row], [data-rows])`)]
             .filter((row) => row.getClientRects().length)
             .map((row) => `${row.querySelector("th a").textContent} ${row.lastElementChild.textContent}`)""",
        number,
    )
    return found


def named(board: Board) -> list[str]:
    return [f"{row.method} {row.group.backbone}" for row in board.rows]


def head_button(browser: Browser, number: int, column: str) -> str:
    return f'section[data-board="{number}"] th[data-column="{column}"] > button'


# --- sorting ---------------------------------------------------------------------------------------------------------------------


def test_the_first_order_is_that_of_the_page_without_its_script(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """The script rearranges nothing until it is asked to."""
    for number, board in enumerate(made[1]):
        assert methods_of(index, number) == named(board)


def test_every_column_sorts_both_ways(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """The better end first, the other on the second click, by the exact numbers; methods without a value last either way. Incomplete rows
    and references stay in their sections, which follow."""
    for number in (0, 2):
        board = made[1][number]
        for column in board.columns:
            values = {
                name: row.scores[column.name].mean if column.name in row.scores else math.nan
                for name, row in zip(named(board), board.rows, strict=True)
            }
            known = [name for name in values if not math.isnan(values[name])]
            section = {name: row.section for name, row in zip(named(board), board.rows, strict=True)}
            first = index.run("return arguments[0].closest('th').ariaSort", index.one(head_button(index, number, column.name)))
            expected = ["descending", "ascending"] if column.better == "up" else ["ascending", "descending"]
            for order in reversed(expected) if first == expected[0] else expected:
                index.run("arguments[0].click()", index.one(head_button(index, number, column.name)))
                shown = methods_of(index, number)
                assert sorted(shown) == sorted(values)
                assert [section[name] for name in shown] == sorted(section.values())
                for part in set(section.values()):
                    names = [name for name in shown if section[name] == part]
                    numbers = [values[name] for name in names if name in known]
                    assert numbers == sorted(numbers, reverse=order == "descending"), (column.name, order)
                    assert set(names[: len(numbers)]) <= set(known)
                marked = index.all(f'section[data-board="{number}"] th[aria-sort]')
                assert [(th.get_attribute("data-column"), th.get_attribute("aria-sort")) for th in marked] == [(column.name, order)]


@pytest.mark.parametrize("column", ["method", "category", "backbone"])
def test_columns_of_text_sort_by_text(index: Browser, made: tuple[Path, list[Board]], column: str) -> None:
    """From a to z, then from z to a, within each section."""
    place = {"method": 0, "backbone": 1}
    sizes = [n for _, n in sorted(Counter(row.section for row in made[1][0].rows).items())]
    for reverse in (False, True):
        index.run("arguments[0].click()", index.one(head_button(index, 0, column)))
        if column == "category":
            shown = [
                row.find_elements("css selector", "td.nowrap")[0].text
                for row in index.all('[data-board="0"] > .scroll tbody tr:is([data-row], [data-rows])')
            ]
        else:
            shown = [name.split()[place[column]] for name in methods_of(index, 0)]
        assert len(shown) == sum(sizes)
        for size in sizes:
            part, shown = shown[:size], shown[size:]
            assert part == sorted(part, key=str.lower, reverse=reverse)


# --- filtering -------------------------------------------------------------------------------------------------------------------


def test_filters_hide_rows_of_every_board(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """By words, by choice, by both; how many are left is told, and clearing brings all back."""
    all_boards = made[1]
    total = sum(len(board.rows) for board in all_boards)
    status, words = index.one("#filter-shown"), index.one("#filter-words")
    assert status.text == f"{total} rows"
    words.send_keys("REP gat")
    expected = [[n for n, r in zip(named(b), b.rows, strict=True) if r.category == "Rep" and n.endswith(" gat")] for b in all_boards]
    assert [methods_of(index, number) for number in range(len(all_boards))] == expected
    assert status.text == f"{sum(map(len, expected))} of {total} rows"
    index.one("#filter-clear").click()
    assert status.text == f"{total} rows"
    assert index.focused() == words
    index.run("const s = document.getElementById('filter-method'); s.value = 'packnet'; s.dispatchEvent(new Event('change'))")
    left = [methods_of(index, number) for number in range(len(all_boards))]
    assert left == [[n for n in named(b) if n.startswith("packnet ")] for b in all_boards]
    empty = left.index([])
    assert not index.one(f'[data-board="{empty}"]').is_displayed()
    index.one("#filter-clear").click()
    assert index.one(f'[data-board="{empty}"]').is_displayed()


def columns_of(browser: Browser, number: int) -> list[str]:
    """The named columns that a board shows."""
    heads = browser.all(f'section[data-board="{number}"] > .scroll th[data-column]')
    return [head.get_attribute("data-column") for head in heads if head.is_displayed()]


def test_columns_are_chosen_and_the_rest_is_printed(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """A few columns at first; a tick brings another one; every column is on paper."""
    board = made[1][0]
    names = ["method", "rank", "records", *(column.name for column in board.columns), *(["backbone"] if len(board.backbones) > 1 else [])]
    assert columns_of(index, 0) == [name for name in names if name in FIRST]
    index.one("#filter-columns > summary").click()
    index.one('#filter-columns input[value="category"]').click()
    assert "category" in columns_of(index, 0)
    index.one(f'#filter-columns input[value="{board.first.name}"]').click()
    assert board.first.name not in columns_of(index, 0)
    assert not [e for e in index.all('section[data-board="0"] > .scroll .plot') if e.is_displayed()]  # goes with its column
    index.one("#filter-clear").click()
    assert board.first.name in columns_of(index, 0)
    hidden = index.run(
        "return [...document.styleSheets].flatMap((s) => [...s.cssRules]).find((r) => r.cssText.includes('.off')).media.mediaText"
    )
    assert hidden == "screen"


def test_a_view_stands_in_the_address(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """Filters and columns are in the query, and opening that address shows the same view."""
    index.one("#filter-words").send_keys("gat")
    index.run("const s = document.getElementById('filter-setting'); s.value = 'task-il'; s.dispatchEvent(new Event('change'))")
    index.one("#filter-columns > summary").click()
    index.one('#filter-columns input[value="category"]').click()
    shown = [methods_of(index, n) for n in range(len(made[1]))], columns_of(index, 0)
    query = index.run("return location.search")
    assert "text=gat" in query
    assert "setting=task-il" in query
    index.open(made[0] / "index.html", place=query)
    assert ([methods_of(index, n) for n in range(len(made[1]))], columns_of(index, 0)) == shown


def test_downloads_hold_what_is_shown_in_its_order(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """After sorting and filtering, the CSV has those rows in that order."""
    index.run("arguments[0].click()", index.one(head_button(index, 0, "method")))
    index.one("#filter-words").send_keys("gcn")
    address = index.one('[data-board="0"] a[data-file="0"]').get_attribute("href")
    lines = unquote(address.partition(",")[2]).splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    assert [f"{row['method']} {row['backbone']}" for row in rows] == methods_of(index, 0)
    assert len(rows) == len([n for n in named(made[1][0]) if n.endswith("gcn")]) > 0


def test_a_table_for_latex_has_the_columns_that_are_shown(index: Browser, made: tuple[Path, list[Board]]) -> None:
    """And the best of the rows that are shown in bold."""
    board = made[1][0]
    best, *others = [row for row in board.rows if row.method != "joint" and row.group.backbone == board.rows[0].group.backbone]

    def table() -> list[str]:
        address = index.one('[data-board="0"] a[data-file="1"]').get_attribute("href")
        return [line for line in unquote(address.partition(",")[2]).splitlines() if line.endswith("\\\\")]

    only_here = {"rank"}  # stands in no table of a paper
    assert len(table()[0].split(" & ")) == len({*columns_of(index, 0)} - only_here) < len(board.columns)
    index.one("#filter-columns summary").click()
    index.one("#filter-columns input[value=intransigence]").click()
    assert len(table()[0].split(" & ")) == len({*columns_of(index, 0)} - only_here)
    assert "INT" not in table()[0]
    index.one("#filter-words").send_keys(f"{best.group.backbone} {best.method}")
    assert best.method in table()[1]
    assert "mathbf" in table()[1]
    index.one("#filter-words").clear()
    index.one("#filter-words").send_keys(f"{others[0].group.backbone} {others[0].method}")
    assert all("mathbf" in line for line in table()[1:])


def test_a_download_is_saved(index: Browser, made: tuple[Path, list[Board]], tmp_path: Path) -> None:
    """The page's policy lets its own files through: under their names, with their text."""
    from report_lab import catalogue_of

    index.download_to(tmp_path)
    for link in index.all('[data-board="0"] a[download]'):
        link.click()
        wait_for(tmp_path / link.get_attribute("download"))
    (csv_file, *_) = board_downloads(made[1][0], catalogue_of())
    assert (tmp_path / csv_file.name).read_bytes().decode() == csv_file.text
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".bib", ".csv", ".tex"]
    assert index.console() == []


def wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not (path.is_file() and path.stat().st_size):
        assert time.monotonic() < end, f"{path.name} was not saved"
        time.sleep(0.05)


# --- links and keyboard ----------------------------------------------------------------------------------------------------------


def test_the_overview_can_be_saved(index: Browser, made: tuple[Path, list[Board]], tmp_path: Path) -> None:
    """The heat map of methods and scenarios has the same links as the figures of a report, and its PDF is made on the page."""
    index.run("for (const link of document.querySelectorAll('.save a')) link.focus()")
    (line,) = index.all("figure > .save")
    files = {link.text: unquote(link.get_attribute("href").partition(",")[2]) for link in line.find_elements("css selector", "a")}
    assert list(files) == ["SVG", "PDF", "CSV", "LaTeX"]
    rows = list(csv.reader(io.StringIO(files["CSV"])))
    assert {row[0] for row in rows[1:]} == {board.title for board in made[1]}
    best = made[1][0].rows[0]
    (row,) = [row for row in rows if row[0] == made[1][0].title]
    assert float(row[rows[0].index(best.method)]) == pytest.approx(100 * best.scores[made[1][0].first.name].mean, abs=0.051)
    index.download_to(tmp_path)
    index.run("for (const link of document.querySelectorAll('.save a')) if (link.textContent === 'PDF') link.click()")
    deadline = time.monotonic() + 20
    while not (path := tmp_path / "figure-1.pdf").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert path.read_bytes().startswith(b"%PDF-")
    assert index.console() == []


def test_links_within_the_page_open_what_is_folded(index: Browser) -> None:
    """A method's card, and the records behind a row: open, and in sight."""
    row = index.one('[data-board="0"] > .scroll tbody tr:is([data-row], [data-rows])')
    for link in row.find_elements("tag name", "a"):
        target = unquote(link.get_attribute("href").partition("#")[2])
        index.run("arguments[0].click()", link)
        seen = index.run(
            """const target = document.getElementById(arguments[0]);
               const box = target.getBoundingClientRect();
               const open = [...document.querySelectorAll("details[open]")].some((fold) => fold.contains(target));
               return [open, box.height > 0, box.top < innerHeight]""",
            target,
        )
        assert seen == [True, True, True], target


def test_an_address_of_a_place_opens_what_is_folded(made: tuple[Path, list[Board]], browser: Browser) -> None:
    """As a link from elsewhere has it."""
    browser.open(made[0] / "index.html", place="#method-si")
    assert browser.one("#method-si").get_attribute("open")


def test_reports_are_reached_and_left(index: Browser) -> None:
    """Every report's link leads to its page."""
    found = [link.get_attribute("href") for link in index.all("#reports a")]
    assert [address.rpartition("/")[2] for address in found] == ["leaderboard.html", "bad.html"]
    for number, title in enumerate(("t", "FAILED: Bad")):
        index.all("#reports a")[number].click()
        assert index.driver.title == title
        index.driver.back()
        assert index.all("#reports a")


def test_everything_is_done_by_keyboard(index: Browser) -> None:
    """Tab comes to the skip link first, then to filters, heads, tables and folds; what has the focus shows it, and Enter works."""
    from selenium.webdriver.common.keys import Keys

    index.press(Keys.TAB)
    assert index.focused().text == "Skip to the content"
    assert index.focused().location["x"] >= 0
    reached: set[str] = set()
    wanted = {"filter-words", "filter-method", "head", "region", "download", "fold", "card"}
    for _ in range(400):
        index.press(Keys.TAB)
        kind, outlined = index.run(
            """const e = document.activeElement, style = getComputedStyle(e);
               const kinds = {head: "th > button", region: "[role=region]", download: "a[download]", fold: "details.provenance > summary",
                              card: "details.card > summary"};
               const kind = e.id || Object.keys(kinds).find((name) => e.matches(kinds[name])) || "other";
               return [kind, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0]"""
        )
        assert outlined, kind
        reached.add(kind)
        if kind == "head" and "head" in wanted:
            before = index.run("return document.activeElement.closest('th').ariaSort")
            index.press(Keys.ENTER)
            assert index.run("return document.activeElement.closest('th').ariaSort") not in {None, before}
        if kind == "fold" and "fold" in wanted:
            index.press(Keys.ENTER)
            assert index.run("return document.activeElement.parentElement.open")
            index.press(Keys.ENTER)
        wanted.discard(kind)
        if not wanted:
            break
    assert not wanted, reached


# --- looks and silence -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["index.html", "leaderboard.html", "bad.html"])
@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_pages_are_silent_and_readable(made: tuple[Path, list[Board]], browser: Browser, page: str, width: int, dark: bool) -> None:
    """Nothing on the console, no request but for the page itself, nothing beyond the window's edge, text that stands out."""
    assert_silent_and_readable(browser, made[0] / page, width, dark)


@pytest.mark.parametrize("page", ["index.html", "leaderboard.html", "bad.html", "figures.html"])
@pytest.mark.parametrize(("width", "dark"), [(420, True), (1200, False)])
def test_axe_finds_nothing(made: tuple[Path, list[Board]], browser: Browser, page: str, width: int, dark: bool) -> None:
    """No rule of axe-core is broken, with all folds open."""
    axe = chromium.axe_source()
    browser.open(made[0] / page, width=width, dark=dark)
    browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert browser.violations(axe) == {}


@pytest.mark.parametrize("page", ["index.html", "leaderboard.html", "figures.html"])
def test_paper_loses_nothing(made: tuple[Path, list[Board]], browser: Browser, page: str) -> None:
    """On A4 no table and no figure is wider than the sheet, every column is there, and nothing waits behind a scroll bar."""
    browser.open(made[0] / page)
    columns = browser.run("return document.querySelectorAll('th').length")
    width = browser.print_media(landscape=page == "index.html")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    cut = browser.run(
        """return [...document.querySelectorAll("main table, main img, main svg, main figure")].filter((e) => e.getClientRects().length)
             .map((e) => [e.tagName, e.className.baseVal ?? e.className, Math.round(e.getBoundingClientRect().right)])
             .filter(([, , right]) => right > arguments[0] + 1)""",
        width,
    )
    assert cut == []
    scrolled = browser.run("return [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).length")
    assert scrolled == 0
    assert columns == browser.run("return document.querySelectorAll('th').length")
    heads = browser.run("return [...document.querySelectorAll('.board th > button')].map((e) => getComputedStyle(e).display)")
    assert {*heads} <= {"contents"}  # Chromium repeats heads on every page, but not the buttons in them


def test_contrast_of_known_colours() -> None:
    """Black on white is 21; the grey #767676 on white is the darkest of the usual examples that passes, 4.54."""
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21.0)
    assert contrast([0x76] * 3, [255, 255, 255]) == pytest.approx(4.54, abs=0.005)


def test_targets_are_large_enough_for_a_finger(made: tuple[Path, list[Board]], browser: Browser) -> None:
    """On a phone: buttons, fields, and the links that download."""
    browser.open(made[0] / "index.html", width=420)
    boxes = browser.run(
        """return [...document.querySelectorAll("button, input, select, a[download], summary")].filter((e) => e.getClientRects().length)
             .map((e) => [e.textContent.slice(0, 30), e.getBoundingClientRect().width, e.getBoundingClientRect().height])"""
    )
    assert len(boxes) > 20
    assert [box for box in boxes if min(box[1:]) < SMALLEST_TARGET] == []


def test_hostile_text_runs_nowhere(browser: Browser, tmp_path: Path) -> None:
    """Opened, sorted, filtered and unfolded, the attacked page calls nothing of the attacker's and asks for nothing."""
    results, catalogue = attacked_results(tmp_path / "store")
    (tmp_path / "index.html").write_text(attacked_site(results, catalogue))
    browser.run_before_pages(f"window.calls = []; window.{MARK} = (n) => window.calls.push(n)")
    browser.open(tmp_path / "index.html")
    assert browser.run(f"{MARK}(0); return calls") == [0]  # the trap itself works
    for button in browser.all("th[data-column] > button"):
        browser.run("arguments[0].click()", button)
    browser.one("#filter-words").send_keys("script")
    for fold, link in itertools.zip_longest(browser.all("details"), browser.all("main a[href^='#']")):
        browser.run("if (arguments[0]) arguments[0].open = true; if (arguments[1]) arguments[1].click()", fold, link)
    assert browser.run("return calls") == [0]
    assert browser.console() == []
    assert [address for address in browser.requests() if not address.startswith("data:")] == [(tmp_path / "index.html").as_uri()]


def test_the_policy_refuses_scripts_that_are_not_ours(index: Browser) -> None:
    """Should a text ever get through, the page's policy is the second door: neither an element nor a handler of another's runs."""
    index.run(
        """const script = document.createElement("script"); script.textContent = "window.ran = 1"; document.body.append(script);
           document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 2'>")"""
    )
    time.sleep(0.3)
    assert index.run("return window.ran ?? null") is None
    assert any("Content Security Policy" in message for message in index.console())


# --- wide tables -----------------------------------------------------------------------------------------------------------------


def test_a_table_of_many_columns_fits_a_desk_and_scrolls_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Both tests of every pair have 17 columns. Where they scroll the names stay."""
    results, _ = made_results(tmp_path / "store")
    path = tmp_path / "page.html"
    path.write_text(page_with(show_comparison.differences(comparison.study(results))))
    hidden = "return [...document.querySelectorAll('.scroll')].map((box) => box.scrollWidth - box.clientWidth)"
    browser.open(path, width=1280)
    assert len(browser.all(".scroll thead tr:last-child th")) >= 17
    assert set(browser.run(hidden)) == {0}
    browser.open(path, width=420)
    assert min(browser.run(hidden)) > 100
    state = """
    const [box, share] = [document.querySelector('.scroll'), arguments[0]];
    box.scrollLeft = share * (box.scrollWidth - box.clientWidth);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const left = (part) => part.getBoundingClientRect().x;
    const away = ["thead tr:last-child th", "tbody th"].map((part) => left(box.querySelector(part)) - left(box));
    return away.map((x) => Math.round(x));
    """
    assert browser.run(state, 0.0) == [1, 1]
    assert browser.run(state, 0.5) == [1, 1]
    assert browser.run(state, 1.0) == [1, 1]
