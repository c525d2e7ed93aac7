"""Fragments of HTML and small cards: whatever is not a fragment is only ever text."""

from __future__ import annotations

import pytest
from html_shape import EVIL, EVIL_SHOWN, Shape
from hypothesis import given
from hypothesis import strategies as st

from cglsuite.base.markup import card, element, fold, grid, join, tidy
from cglsuite.study.display import shown_value

PRINTABLE = st.text(st.characters(exclude_categories=("C",)), max_size=30)


def test_a_card_escapes_every_part() -> None:
    shape = Shape(card(EVIL, [(EVIL, EVIL), ("n", 3)], fold(EVIL, EVIL), grid((EVIL,), [(EVIL,)]), summary=EVIL))
    assert "img" not in shape.tags
    assert shape.text.count(EVIL_SHOWN) == 5  # title, summary, fact and its name, cell
    assert shape.text.count("<img src=x onerror=alert(1)>") == 8  # and the title and content of the fold, the head of the grid


def test_an_element_escapes_everything_but_fragments() -> None:
    inner = element("b", "<i>&")
    assert str(element("p", inner, '"x"', None, class_='a"b', data_value=1)) == (
        '<p class="a&quot;b" data-value="1"><b>&lt;i&gt;&amp;</b>&quot;x&quot;</p>'
    )


@given(PRINTABLE)
def test_what_is_shown_is_what_was_given(text: str) -> None:
    shape = Shape(card("t", [("fact", text)]))
    assert shape.text.split("fact\n", 1)[1].strip() == tidy(text)
    assert Shape(str(element("p", text, title=text))).text.removesuffix("\n") == text


def test_front_ends_without_html_get_the_text() -> None:
    """A line per block, cells apart; escaped text as it was."""
    tiles = element("ul", *(element("li", element("b", n), " ", element("span", what)) for n, what in ((4, "cells"), (2, "a < b"))))
    table = element("table", element("tr", element("th", "x"), element("td", 1)), element("tr", element("th", "y"), element("td", 2)))

    class Printer:
        said = ""

        def text(self, text: str) -> None:
            self.said += text

    printer = Printer()
    join([element("h2", "<img> &amp;"), tiles, table])._repr_pretty_(printer, False)
    assert printer.said == "<img> &amp;\n4 cells\n2 a < b\nx  1\ny  2"


def test_fragments_are_joined_as_they_are() -> None:
    assert str(join([element("b", "a & b"), "<", None, 3])) == "<b>a &amp; b</b>&lt;3"
    assert str(element("br")) == "<br>"


@pytest.mark.parametrize(("rows", "shown", "message"), [(0, 0, ""), (3, 3, ""), (4, 3, "and 1 more, 4 in all"), (5000, 3, "5000 in all")])
def test_a_grid_shows_so_many_rows_and_counts_the_others(rows: int, shown: int, message: str) -> None:
    shape = Shape(str(grid(("n",), ((i,) for i in range(rows)), max_rows=3)))
    assert shape.tags.count("td") == shown
    assert message in shape.text
    assert ("in all" in shape.text) == bool(message)


def test_values_in_words() -> None:
    assert shown_value((("lr", 0.1), ("wd", None))) == "lr=0.1, wd=none"
    assert shown_value(("NC", "GC")) == "NC, GC"
    assert shown_value(()) == "none"
    assert shown_value(True) == "true"
