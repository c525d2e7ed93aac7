"""The pages of a hosted leaderboard and of a submission's report in a real browser: looks, silence, accessibility, sorting and filters.

Needs Selenium and Debian's packages chromium and chromium-driver; elsewhere the tests are skipped and say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import Browser
from hosted_lab import UNVERIFIED, hosted
from made_records import CAMPAIGN
from page_looks import LOOKS, assert_silent_and_readable

from cglsuite.commons.submissions.review import submission_html

pytestmark = pytest.mark.nightly
SCENARIO = "scenario-cora-task-il@begin-1.html"
PAGES = [
    *("index.html", SCENARIO, "across.html", "methods.html", "method-si.html", "method-packnet.html", "dataset-cora.html"),
    *("papers.html", "paper-BeGin.html", "feeds.html", "report.html"),
]
FINDINGS: list[dict[str, str]] = [
    {"check": "names", "verdict": "verified", "reason": ""},
    {"check": "metrics", "verdict": "refused", "reason": "average_performance: 0.99, but the matrix gives 0.512345678"},
    {"check": "rerun", "verdict": "unverified", "reason": "made on cuda, which this machine does not have"},
    {"check": "orders", "verdict": "noted", "reason": "9 of the 10 repetitions of BeGin are missing (order/split/init 1000/0/1000)"},
]
REPORT: dict[str, Any] = {
    "review": "20260101T000000Z-0",
    "submission": "/data/submissions/from-a-laboratory-with-a-long-name",
    "into": "/data/results",
    "when": "2026-01-01T00:00:00Z",
    "cglsuite": "0.1.0",
    "here": {"torch": "2.0", "cpu": "a made-up CPU", "cuda": None},
    "options": {"sample": 3, "seed": 4674249860567097572, "tolerance": None},
    "summary": {"verified": 1, "unverified": 1, "refused": 1},
    "notes": ["verification/ is ignored: verification marks are written by the reviewer and never taken from a submission"],
    "records": [
        {"file": f"ab/{'ab' * 32}.json", "label": "cora/task-il@begin-1 × si (order 0)", "rerun": rerun, "outcome": outcome,
         "findings": [f for f in FINDINGS if outcome == "refused" or f["verdict"] != "refused"]}
        for outcome, rerun in (("verified", "bits"), ("unverified", ""), ("refused", ""))
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One window for all tests of this file."""
    with chromium.started() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site, with the report on a submission."""
    folder = tmp_path_factory.mktemp("hosted")
    hosted(folder)
    (folder / "site" / "report.html").write_text(submission_html(REPORT))
    return folder / "site"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_pages_are_silent_and_readable(site: Path, browser: Browser, page: str, width: int, dark: bool) -> None:
    assert_silent_and_readable(browser, site / page, width, dark)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(420, True), (1200, False)])
def test_axe_finds_nothing(site: Path, browser: Browser, page: str, width: int, dark: bool) -> None:
    """No rule of axe-core is broken, with all folds open."""
    axe = chromium.axe_source()
    browser.open(site / page, width=width, dark=dark)
    browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert browser.violations(axe) == {}


def shown(browser: Browser, level: str) -> list[str]:
    """The methods of the rows that the board of a level shows."""
    rows = browser.all(f"#{level} .board .scroll tbody tr:is([data-row], [data-rows])")
    return [row.find_element("css selector", "th a").text for row in rows if row.is_displayed()]


def test_both_boards_sort_and_filter_and_stay_apart(site: Path, browser: Browser) -> None:
    """Sorting one leaves the other as it is; a filter counts rows of both; no row changes its board."""
    browser.open(site / SCENARIO)
    first = {level: shown(browser, level) for level in ("verified", "unverified")}
    assert set(first["unverified"]) == set(UNVERIFIED)
    assert set(first["verified"]) == set(CAMPAIGN["grid"]["methods"]) - set(UNVERIFIED)
    browser.run("arguments[0].click()", browser.one('#verified th[data-column="method"] > button'))
    assert shown(browser, "verified") == [*sorted({*first["verified"]} - {"joint"}), "joint"]  # references stand in a section of their own
    assert shown(browser, "unverified") == first["unverified"]
    for reverse in (False, True):
        browser.run("arguments[0].click()", browser.one('#unverified th[data-column="method"] > button'))
        assert shown(browser, "unverified") == sorted(first["unverified"], reverse=reverse)
    browser.one("#filter-words").send_keys("packnet")
    assert (shown(browser, "verified"), shown(browser, "unverified")) == ([], ["packnet"])
    assert browser.one("#filter-shown").text == "1 of 5 rows"
    browser.one("#filter-clear").click()
    assert sorted(shown(browser, "unverified")) == sorted(first["unverified"])


def test_links_lead_from_the_index_to_a_method_and_back(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    browser.one(f'a[href="{SCENARIO}"]').click()
    assert "cora" in browser.driver.title
    browser.one("#verified .board tbody th a").click()
    assert browser.one("h1").text in CAMPAIGN["grid"]["methods"]
    browser.one("nav.pages a").click()
    assert browser.one("h1").text == "A public board"
