"""The comparison with approved pages: what it notices, and what it leaves to other versions of Matplotlib."""

from __future__ import annotations

import base64
from pathlib import Path

import approved
import pytest
from approved import Pages


def page(words: str, stroke: str = "red", value: float = 1 / 3) -> str:
    svg = base64.b64encode(f"<svg><path stroke='{stroke}'/><text>AP</text></svg>".encode()).decode()
    figure = f"<img src='data:image/svg+xml;base64,{svg}'>"
    return f"<html><body><p class='note'>{words}</p><td data-value='{value}'>0.33</td>{figure}</body></html>"


def check(folder: Path, *pages: str) -> None:
    with Pages("tests/test_x.py::test_y[a/b]", {"/tmp/run-1": "TMP"}) as kept:
        for one in pages:
            approved.note(one)
    kept.check()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of approved pages with those of one test."""
    monkeypatch.setattr(approved, "FOLDER", tmp_path / "a" / "b" / "c")
    monkeypatch.setenv("APPROVE_PAGES", "1")
    check(tmp_path, page("in /tmp/run-1"))
    monkeypatch.delenv("APPROVE_PAGES")
    return approved.FOLDER


def test_one_line_for_each_element(folder: Path) -> None:
    lines = (folder / "test_x" / "test_y-a-b-.txt").read_text().splitlines()
    assert lines[2:4] == ["p.note in TMP", "td {data-value=0.333333333} 0.33"]
    assert lines[4].startswith("img {src=svg ")
    assert lines[4].endswith(" [AP]}")


def test_every_change_is_noticed(folder: Path) -> None:
    """A word, a stroke of a figure, a page more, no page at all."""
    check(folder, page("in /tmp/run-1"))
    for shown in ([page("on /tmp/run-1")], [page("in /tmp/run-1", "blue")], [page("in /tmp/run-1")] * 2, []):
        with pytest.raises(AssertionError, match="APPROVE_PAGES=1 pytest"):
            check(folder, *shown)


@pytest.mark.parametrize(
    ("value", "same"), [(1 / 3 + 1e-8, True), (1 / 3 - 2e-7, True), (1 / 3 + 1e-6, False), (-1 / 3, False), (0.0, False)]
)
def test_exact_numbers_are_compared_to_six_digits(folder: Path, value: float, same: bool) -> None:
    """An optimiser ends elsewhere in the eighth digit on other processors; the words around a number are compared as they are."""
    if same:
        check(folder, page("in /tmp/run-1", value=value))
        with pytest.raises(AssertionError, match="differ"):
            check(folder, page("on /tmp/run-1", value=value))
    else:
        with pytest.raises(AssertionError, match="differ"):
            check(folder, page("in /tmp/run-1", value=value))


def test_strokes_are_left_to_the_version_that_drew_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are not."""
    monkeypatch.setattr("matplotlib.__version__", "0")
    check(folder, page("in /tmp/run-1", "blue"))
    with pytest.raises(AssertionError, match="differ"):
        check(folder, page("on /tmp/run-1"))


def test_a_test_that_shows_nothing_any_more_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROVE_PAGES", "1")
    check(folder)
    assert not (folder / "test_x" / "test_y-a-b-.txt").exists()
