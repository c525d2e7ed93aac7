"""Tables from lists of columns: values by name and by function, units, groups, rows that are refused."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.tables import Column, amount, crossed, framed, interval, label, mean_std, number, two_lines, words

ROWS = pd.DataFrame({"method": ["ewc", "bare"], "group": ["a", "b"], "n": [3, 0], "mean": [0.512, math.nan], "low": [0.4, math.nan]})


def _lines(shown: Fragment) -> list[list[str]]:
    """The texts of every row of a table, its head first."""
    return [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in BeautifulSoup(str(shown), "html.parser").find_all("tr")]


def test_values_by_name_and_by_function() -> None:
    """A column shows the item that its head names, another one, or what a function makes of the row."""
    columns = [label("method"), number("n"), number("runs", "n", zero=False), words("what", lambda row: f"{row['method']}!")]
    assert _lines(framed(ROWS, columns)) == [["method", "n", "runs", "what"], ["ewc", "3", "3", "ewc!"], ["bare", "0", "–", "bare!"]]


def test_units_scale_what_is_shown_and_no_exact_number() -> None:
    """Digits and scale may depend on the row; what is missing is a dash."""
    columns = [amount("mean", "mean", (1, 100.0)), interval("ends", lambda row: (2, float(row["n"])), "low", "mean", plus=True)]
    shown = framed(ROWS, columns)
    assert _lines(shown) == [["mean", "ends"], ["51.2", "+1.20 to +1.54"], ["–", "–"]]
    cells = BeautifulSoup(str(shown), "html.parser").find_all("td")
    assert [cells[0]["data-value"], cells[1]["data-low"], cells[1]["data-high"]] == ["0.512", "0.4", "0.512"]


def test_a_mean_with_its_deviation() -> None:
    """Both in the unit of the column."""
    assert _lines(framed([{"mean": 0.5, "std": 0.01}], [mean_std("score", (1, 100.0))])) == [["score"], ["50.0 ± 1.0"]]


def test_keys_against_keys() -> None:
    """A dash where there is nothing of both."""
    cells = {("ewc", "cora"): 1, ("bare", "pubmed"): 0}
    columns = [label("method", str), *(crossed(name, cells, name, lambda n: element("td", n)) for name in ("cora", "pubmed"))]
    assert _lines(framed(["ewc", "bare"], columns)) == [["method", "cora", "pubmed"], ["ewc", "1", "–"], ["bare", "–", "0"]]


def test_rows_of_a_group_stand_below_its_title() -> None:
    """In the order of first rows, wherever they come from; rows without a title have none."""
    rows = [{"method": name, "of": of} for name, of in (("one", "a"), ("two", "b"), ("three", "a"), ("all", ""))]
    assert _lines(framed(rows, [label("method"), words("of")], by="of"))[1:] == [
        *(["a"], ["one", "a"], ["three", "a"]),
        *(["b"], ["two", "b"], ["all", ""]),
    ]


def test_a_refused_row_gives_its_reason_across_the_other_columns() -> None:
    """Only the cells before it are made."""
    refuses: list[Column] = [label("method"), Column("ratio", lambda row: element("td", 1 / row["n"])), number("n")]
    shown = framed(ROWS, refuses, refused=lambda row: None if row["n"] else (1, "no record"))
    assert _lines(shown)[2] == ["bare", "no record"]
    assert BeautifulSoup(str(shown), "html.parser").find_all("td")[-1]["colspan"] == "2"


@pytest.mark.parametrize("rows", [ROWS.iloc[:0], []])
def test_without_rows(rows: pd.DataFrame | list[object]) -> None:
    """A sentence in place of the table, if there is one; otherwise the head alone."""
    assert "Nothing here." in str(framed(rows, [label("method")], none="Nothing here."))
    assert _lines(framed(rows, [label("method")])) == [["method"]]


def test_heads_and_titles_may_be_fragments() -> None:
    """A head of two lines, and a link as the title of a row."""
    linked = label("method", lambda row: element("a", row["method"], href="#x"))
    shown = str(framed(ROWS, [linked, Column(two_lines("a", "b"), lambda row: element("td"))], element("b", "about")))
    assert '<th class="name" scope="row"><a href="#x">ewc</a></th>' in shown
    assert '<th class="number nowrap" scope="col">a<br>' in shown
    assert "<b>about</b>" in shown
