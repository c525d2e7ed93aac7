"""What is on the page is what was computed: every shown number is parsed back, and names from plugins are only ever text."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from report_lab import assert_harmless

from cglsuite.reports import published, show, tables
from cglsuite.reports.htmltable import data_table, number_text
from cglsuite.reports.markup import element
from cglsuite.reports.page import Page, page_html
from cglsuite.reports.results import CampaignResults
from cglsuite.reports.text import value_text

SECTIONS = (
    "overview",
    "summary",
    "definitions",
    "published",
    "curves",
    "matrices",
    "problems",
    "searches",
    "settings",
    "resources",
    "provenance",
)


class Tables(HTMLParser):
    """The tables of a page: rows of (text, value) pairs, value being the exact number behind the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.captions: list[str] = []
        self.tables: list[list[list[tuple[str, float | None]]]] = []
        self._text: list[str] | None = None
        self._value: float | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th", "figcaption"}:
            self._text, given = [], dict(attrs).get("data-value")
            self._value = None if given is None else float(given)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"} and self._text is not None:
            self.tables[-1][-1].append(("".join(self._text), self._value))
        elif tag == "figcaption" and self._text is not None:
            self.captions.append("".join(self._text))
        if tag in {"td", "th", "figcaption"}:
            self._text = None


def page_of(results: CampaignResults, *sections: str) -> str:
    """A page with these sections, as a notebook would give them."""
    outputs = []
    for section in sections:
        shown: Any = getattr(show, section)(results)
        bundle = shown._repr_mimebundle_() if hasattr(shown, "_repr_mimebundle_") else {"text/html": shown._repr_html_()}
        outputs.append(new_output("display_data", bundle))
    return page_html(new_notebook(cells=[new_code_cell("", outputs=outputs)]), Page(title="t"))


def test_summary_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Exact values behind the text, and the text their rounding in percent."""
    page = Tables(page_of(results, "summary"))
    computed = tables.summary(results)
    assert [caption.split(" – ")[0] for caption in page.captions] == list(dict.fromkeys(computed.preset))
    seen = 0
    for preset, table in zip(dict.fromkeys(computed.preset), page.tables, strict=True):
        names = [name for name in show.ordered_metrics(results.metrics) if name in set(computed[computed.preset == preset].metric)]
        assert [text.endswith(name) for (text, _), name in zip(table[0][2:], names, strict=True)] == [True] * len(names)
        for (method, _), _n, *cells in table[1:]:
            for (text, value), name in zip(cells, names, strict=True):
                row = computed[(computed.preset == preset) & (computed.method == method) & (computed.metric == name)]
                if row.empty:
                    assert (text, value) == ("–", None)
                    continue
                seen += 1
                assert value == float(row["mean"].iloc[0])
                assert text.startswith(number_text(100 * row["mean"].iloc[0], 1))
                spread = row["std"].iloc[0]
                assert (f"± {100 * spread:.1f}" in text) if spread == spread else ("±" not in text)
    assert seen == len(computed) > 10


def test_published_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Ours, the printed value, the difference and the verdict, row by row."""
    (table,) = Tables(page_of(results, "published")).tables
    rows = [row for row in table[1:] if len(row) > 1]
    computed = published.compare(results)
    assert len(rows) == len(computed) > 3
    for shown, row in zip(rows, computed.to_dict(orient="records"), strict=True):
        assert shown[0][0].split()[0] == row["method"]
        assert shown[2][1] == row["mean"]
        assert shown[4] == (row["printed"].replace("-", "−"), row["published"])
        assert shown[5][1] == row["difference"]
        assert shown[7][0] == {True: "within 2 std", False: "outside 2 std", None: "no deviation printed"}[row["agrees"]]


def test_resources_numbers_equal_the_computed_ones(results: CampaignResults) -> None:
    """Seconds as they are, parts in percent of them."""
    (table,) = Tables(page_of(results, "resources")).tables
    rows = [row for row in table[1:] if len(row) > 1]
    for shown, row in zip(rows, tables.resources(results).to_dict(orient="records"), strict=True):
        assert shown[2][1] == row["total_s"]
        assert shown[3][1] == pytest.approx(100 * row["training_s"] / row["total_s"])


def test_nothing_hostile_gets_through(results: CampaignResults) -> None:
    """Title, summaries, reasons and machine names hold a script; the page holds its text."""
    page = page_of(results, *SECTIONS)
    assert_harmless(page)
    assert page.count("&lt;script&gt;alert(") > 5


def test_empty_results_say_so(load: Any, tmp_path: Any) -> None:
    """A campaign of which nothing has run makes a page, not an error."""
    from cglsuite.cells.store import Store

    page = page_of(load(store=Store(tmp_path / "empty")), *SECTIONS)
    assert "No cell of this campaign is finished yet" in page
    assert "not finished: 21 missing" in page


def test_stale_and_unfinished_are_told_first(load: Any) -> None:
    """Before any number a reader learns that other code made the records, and that some are missing."""
    overview = str(show.overview(load(source="c" * 64)))
    assert "18 of 18 records are stale" in overview
    assert "not finished: 1 missing" in overview


@pytest.mark.parametrize(
    ("value", "digits", "plus", "expected"),
    [
        (-0.04, 1, False, "0.0"),
        (-1.26, 1, False, "−1.3"),
        (2, 1, True, "+2.0"),
        (0.0, 1, True, "0.0"),
        (1234567.0, 0, False, "1\u202f234\u202f567"),
    ],
)
def test_numbers_in_words(value: float, digits: int, plus: bool, expected: str) -> None:
    """True minus signs, none before a rounded zero, thousands apart."""
    assert number_text(value, digits, plus) == expected


def test_values_in_words() -> None:
    """Settings of any type."""
    assert [value_text(v) for v in (None, True, 1e-3, "x", [1, 2.5])] == ["–", "yes", "0.001", "x", "1, 2.5"]


def test_markup_escapes_everything_but_fragments() -> None:
    """Children, attributes, names."""
    inner = element("b", "<i>&")
    assert str(element("p", inner, '"x"', None, class_='a"b', data_value=1)) == (
        '<p class="a&quot;b" data-value="1"><b>&lt;i&gt;&amp;</b>&quot;x&quot;</p>'
    )


def test_any_data_frame_can_be_shown() -> None:
    """Text is escaped, numbers keep their value."""
    import pandas as pd

    (table,) = Tables(str(data_table(pd.DataFrame({"name": ["<b>"], "value": [0.1]})))).tables
    assert table == [[("name", None), ("value", None)], [("<b>", None), ("0.1", 0.1)]]


def test_importing_reports_is_light() -> None:
    """Neither the package nor its command loads what only rendering needs."""
    heavy = "{'torch', 'pandas', 'pydantic', 'papermill', 'nbconvert', 'matplotlib', 'nbformat', 'numpy'}"
    code = f"import sys, cglsuite.reports, cglsuite.cli.report, cglsuite.reports.plugin; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
