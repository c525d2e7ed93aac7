"""What strangers write ends as text: on a terminal, in a table, in a page, in JSON."""

from __future__ import annotations

import json
import logging
import unicodedata

import click
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cglsuite.base.markup import csv_text, element, escaped_json, plain_text
from cglsuite.cells.records.frame import render_frame
from cglsuite.cli import output

HOSTILE = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\x00\x7f\x85\u202eevil\u2066\ufeff\u2028b\rc\U000e0041"


def harmless(text: str) -> bool:
    return all(c in "\n\t\r" or unicodedata.category(c) not in {"Cc", "Zl", "Zp", "Cs"} for c in text) and "\u202e" not in text


def test_a_hostile_text_by_hand() -> None:
    assert plain_text(HOSTILE) == "aredevilb c"
    assert plain_text("two\nlines\tand a tab\r\n") == "two\nlines\tand a tab\r\n"
    assert plain_text("naïve 図 👩\u200d🔬 – ok") == "naïve 図 👩\u200d🔬 – ok"
    assert plain_text(click.style("bold", bold=True) + HOSTILE, colours=True) == "\x1b[1mbold\x1b[0ma\x1b[31mred\x1b[0mevilb c"


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    assert harmless(plain_text(text))
    assert plain_text(plain_text(text)) == plain_text(text)
    assert harmless(element("p", text, title=text).source)
    assert json.loads(escaped_json(json.dumps(text, ensure_ascii=False))) == text
    assert harmless(escaped_json(json.dumps(text, ensure_ascii=False)))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1", "\t=1", "\x00=1", "\x1b[1m=1", "\u202e=1", "\uff1d1", "\r=1", "\n@x"])
def test_results_as_csv_hold_no_formula(text: str) -> None:
    """One implementation with the downloads of pages; numbers stay numbers."""
    assert csv_text(text).startswith("'")
    frame = pd.DataFrame({"reason": [text, "fine"], text: ["x", text], "value": [-1.5, 2.0]})
    head, *rows = pd.read_csv(__import__("io").BytesIO(render_frame(frame, "csv")), header=None, dtype=str).values.tolist()
    assert head[1].startswith("'")
    assert [row[0].startswith("'") for row in rows] == [True, False]
    assert [row[2] for row in rows] == ["-1.5", "2.0"]
    assert harmless(render_frame(frame, "csv").decode())


def test_what_commands_print_and_log(capsys: pytest.CaptureFixture[str]) -> None:
    output.configure_logging()
    try:
        logging.getLogger("cglsuite.test").error("%s", HOSTILE)
        output.echo(HOSTILE)
        output.print_json({"a": HOSTILE})
        output.echo(output.heading(HOSTILE))
    finally:
        output.release_logging()
    out, err = capsys.readouterr()
    assert err == "error: aredevilb c\n"
    assert harmless(out)
    assert json.loads(out.partition("\n")[2].rpartition("\n}\n")[0] + "\n}") == {"a": HOSTILE}
