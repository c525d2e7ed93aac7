"""Pages: nothing in them can run, nothing is fetched, and what the notebook says is there."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from page_elements import text_of, texts
from report_lab import Elements, assert_harmless

from cglsuite.base.markup import element
from cglsuite.reports.kit.pictures import FACTS, FIGURES
from cglsuite.reports.rendering.job import Outcome
from cglsuite.reports.rendering.notebook import failure_html
from cglsuite.reports.rendering.page import Page, document_html, page_html, sanitize

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><img src='http://e.x/a.png'><a href='javascript:alert(3)'>x</a>"
    "<p style='background:url(http://e.x)' onclick='x()'>d</p><style>@import url(http://e.x);</style><iframe src='http://e.x'></iframe>"
    "<link rel=stylesheet href='http://e.x/s.css'><svg onload=alert(4)></svg><base href='http://e.x'><form action='http://e.x'></form>"
    "<meta http-equiv=refresh content='0;url=http://e.x'><object data='http://e.x'></object><style>unclosed"
)


def hostile_notebook() -> Any:
    outputs = [
        new_output("display_data", {"text/html": EVIL}),
        new_output("display_data", {"text/markdown": EVIL}),
        new_output("execute_result", {"text/plain": EVIL}),
        new_output("stream", name="stdout", text="\x1b[31m" + EVIL),
        new_output("error", ename="E", evalue=EVIL, traceback=[EVIL]),
        new_output("display_data", {"image/svg+xml": SVG, "text/plain": EVIL}),
        new_output("display_data", {"image/png": 'iVBORw0KGgo="><script>', "text/plain": EVIL}),
        new_output("display_data", {"application/javascript": "alert(5)", "text/plain": "js"}),
        new_output("display_data", {FIGURES: {"figures": [{"light": SVG, "dark": SVG, "alt": EVIL, "caption": EVIL, "group": EVIL}]}}),
        new_output("display_data", {FACTS: {"footer": [EVIL]}, "text/html": EVIL}),
    ]
    cells = [new_markdown_cell("# Title\n\n" + EVIL), new_code_cell(f"x = '''{EVIL}'''", outputs=outputs)]
    return new_notebook(cells=cells, metadata={"title": EVIL, "widgets": {"application/vnd.jupyter.widget-state+json": {"x": EVIL}}})


def test_a_hostile_notebook_is_only_text() -> None:
    """Scripts, handlers, remote images and styles from any kind of output end as visible text, or not at all."""
    page = page_html(hostile_notebook(), Page(title=EVIL, footer=(EVIL,)))
    assert_harmless(page)
    assert any("<script>alert(1)" in text for text in texts(page, "main p, main pre"))  # shown, so that a reader sees what was tried


def test_the_policy_forbids_everything_from_elsewhere() -> None:
    """What the allow-list might miss, the browser still refuses."""
    page = page_html(new_notebook(cells=[]), Page(title="x"))
    policy = next(a["content"] for t, a in Elements(page).found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("<table><tr><td data-value='1.5' class='number'>1</td></tr></table>", 'data-value="1.5"'),
        ("<details open><summary>s</summary>t</details>", "<details open"),
        ('<a href="https://example.org/x">x</a>', 'href="https://example.org/x"'),
        ("<style>p { color: red }</style><p>t</p>", "<p>t</p>"),
    ],
)
def test_what_is_harmless_stays(given: str, kept: str) -> None:
    """Tables, details and ordinary links pass; a data frame's style element goes without a trace."""
    cleaned = sanitize(given)
    assert kept in cleaned
    assert "color: red" not in cleaned


def test_figures_come_in_both_versions_with_a_description() -> None:
    """The dark version is for readers who prefer it; the text says what the figure shows."""
    content = {"figures": [{"light": "<svg>L</svg>", "dark": "<svg>D</svg>", "alt": "what it shows", "caption": "c", "group": "g"}]}
    page = page_html(new_notebook(cells=[new_code_cell("1", outputs=[new_output("display_data", {FIGURES: content})])]), Page(title="x"))
    elements = Elements(page).found
    image = next(a for t, a in elements if t == "img")
    source = next(a for t, a in elements if t == "source")
    assert image["alt"] == "what it shows"
    assert base64.b64decode(str(image["src"]).partition(",")[2]) == b"<svg>L</svg>"
    assert base64.b64decode(str(source["srcset"]).partition(",")[2]) == b"<svg>D</svg>"
    assert "prefers-color-scheme: dark" in str(source["media"])


def test_input_is_folded_and_sections_are_listed() -> None:
    """Every input cell stands in a closed details element; three or more sections get a list that links them."""
    cells = [new_markdown_cell(f"## Part {n} & more") for n in range(3)]
    code = new_code_cell("secret = 1", outputs=[new_output("stream", name="stdout", text="1")])
    page = page_html(new_notebook(cells=[*cells, code]), Page(title="x"))
    folded = page[page.index('<details class="source"') :]
    assert "secret" in folded.partition("</details>")[0]
    assert '<details class="source" open' not in page
    elements = Elements(page).found
    targets = [str(a["href"])[1:] for t, a in elements if t == "a" and "class" not in a]
    assert targets == [a["id"] for t, a in elements if t == "h2"]
    assert len(targets) == 4  # the three parts, and how the page was made


def test_a_failure_page_cannot_be_taken_for_a_report() -> None:
    """Its title, its status and its first words say that it failed, and the traceback is plain text."""
    page = failure_html("Title", "nb", Outcome(status="failed", reason=f"cell 2: {EVIL}", details="\x1b[31mTraceback <b>"))
    assert_harmless(page)
    assert texts(page, "title") == ["FAILED: Title"]
    assert ("meta", {"content": "failed", "name": "cglsuite:status"}) in Elements(page).found
    assert text_of(page, "pre", "Traceback").startswith("Traceback <b>")


def test_no_sign_that_steers_reaches_the_title_or_the_heading() -> None:
    """Controls, a change of direction and a lone surrogate; browsers show the title in windows and histories."""
    steering = "re\u202esults\x1b[31m of\x07 \u2066all\u2069\n\ud800 methods\x00"
    pages = [
        document_html(Page(title=steering), element("h1", "x")),
        page_html(new_notebook(cells=[new_markdown_cell("# Title")]), Page(title=steering, heading=steering)),
        failure_html(steering, "notebook", Outcome(status="failed", reason="x")),
    ]
    for page in pages:
        (title,) = re.findall(r"<title>(.*?)</title>", page, re.DOTALL)
        assert title.removeprefix("FAILED: ") == "results of all methods"
        assert page.encode()
        assert not re.search("[\x00\x07\x1b\u202e\u2066\u2069]", page)
