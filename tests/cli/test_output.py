"""Tables and paragraphs: aligned, within the width, safe against what strangers write."""

from __future__ import annotations

import click
import pytest

from cglsuite.cli import output


def lines_of(text: str) -> list[str]:
    return click.unstyle(text).splitlines()


ROWS = [("alpha", "NC", "pkg-one", "a summary that is rather long, as summaries are"), ("a-longer-name", "NC, GC", "p", "short")]
HEADER = ("NAME", "LEVELS", "PROVIDER", "SUMMARY")


def test_columns_are_aligned() -> None:
    assert lines_of(output.table(HEADER, ROWS, width=200)) == [
        "NAME           LEVELS  PROVIDER  SUMMARY",
        "alpha          NC      pkg-one   a summary that is rather long, as summaries are",
        "a-longer-name  NC, GC  p         short",
    ]


def test_the_last_column_is_cut_first_then_others_are_left_out() -> None:
    assert lines_of(output.table(HEADER, ROWS, width=60))[1] == "alpha          NC      pkg-one   a summary that is rather…"
    assert lines_of(output.table(HEADER, ROWS, width=50)) == [
        "NAME           LEVELS  SUMMARY",
        "alpha          NC      a summary that is rather…",
        "a-longer-name  NC, GC  short",
    ]
    assert lines_of(output.table(HEADER, ROWS, width=30))[1] == "alpha          a summary that…"


@pytest.mark.parametrize("width", range(20, 120))
def test_a_table_never_exceeds_the_width(width: int) -> None:
    assert max(map(len, lines_of(output.table(HEADER, ROWS, width=width)))) <= width


def test_wide_characters_count_twice() -> None:
    first, second = lines_of(output.table(("NAME", "X"), [("図神経", "y"), ("abcdef", "y")]))[1:]
    assert first == "図神経  y"
    assert second == "abcdef  y"


def test_characters_that_take_no_or_two_columns_are_cut_with_their_width() -> None:
    assert lines_of(output.table(("N", "X"), [("a", "図神経網")], width=10))[1] == "a  図神経…"
    assert lines_of(output.table(("N", "X"), [("a", "e\u0301" * 9)], width=8))[1] == "a  " + "e\u0301" * 4 + "…"


@pytest.mark.timeout(10)
def test_a_very_long_cell_is_cut_in_one_pass() -> None:
    assert lines_of(output.table(("KIND", "NAMES"), [("scenarios", "name, " * 50_000)], width=40))[1].endswith("…")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (0.001, "0.001"),
        ((), "none"),
        (("NC", "GC"), "NC, GC"),
        ("two\n  lines", "two lines"),
        ("\x1b[31mred", "?[31mred"),
        ("a\u202eb", "a?b"),
    ],
)
def test_any_value_becomes_one_harmless_line(value: object, text: str) -> None:
    assert output.tidy(value) == text


def test_properties_wrap_under_themselves() -> None:
    text = output.properties([("a", "one two three four five six seven"), ("longer", 3)], width=30)
    assert text.splitlines() == ["  a       one two three four", "          five six seven", "  longer  3"]


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"b": float("nan"), "a": (1, 2)})
    assert capsys.readouterr().out == '{\n  "b": null,\n  "a": [\n    1,\n    2\n  ]\n}\n'


def test_descriptions_stand_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as wide as its widest cell, prose behind them and wrapped below itself."""
    monkeypatch.setattr(output, "terminal_width", lambda: 60)
    rows = [("ewc", "Reg", "keeps weights near"), ("er-gnn-long", "R", "replays nodes that were chosen by how much they were needed")]
    assert click.unstyle(output.descriptions(("name", "kind", "summary"), rows)).splitlines() == [
        "  name         kind  summary",
        "  ewc          Reg   keeps weights near",
        "  er-gnn-long  R     replays nodes that were chosen by how",
        "                     much they were needed",
    ]
