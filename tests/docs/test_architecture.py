"""The map for contributors names rooms, files and functions as they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import house
import pytest
from doc_blocks import ROOT

TEXT = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
WALKS = re.findall(r"^\| \d+ \| (.+?) \| `([\w/]+\.py)` \|", TEXT, re.MULTILINE)
SCREENS, LINES, WIDTH = 3, 60, 140


def _place(path: str) -> Path:
    """A path of the page is below the core where it exists there, else below the repository."""
    return core if (core := ROOT / "cglsuite" / path).exists() else ROOT / path


def _defined(path: str) -> set[str]:
    """Functions and classes of a module, and ``Class.method`` for the methods."""
    names = set()
    for node in ast.parse(_place(path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            names |= {f"{node.name}.{inner.name}" for inner in getattr(node, "body", []) if isinstance(inner, ast.FunctionDef)}
    return names


def test_the_rooms_are_listed_layer_by_layer_from_the_top() -> None:
    table = TEXT.partition("| layer | rooms |\n| --- | --- |\n")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ")[1] for line in table.splitlines()]
    listed = [tuple(re.findall(r"(?:^|, )`(\w+)` \(", cell)) for cell in cells]
    assert listed == [*reversed(house.LAYERS)]


def test_every_path_exists() -> None:
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)+)/?`", TEXT)
    assert len(paths) > 80
    assert [path for path in paths if not _place(path).exists()] == []


def test_the_map_fits_three_screens() -> None:
    assert sum(-(-max(1, len(line)) // WIDTH) for line in TEXT.splitlines()) <= SCREENS * LINES


@pytest.mark.parametrize(("functions", "path"), WALKS)
def test_every_function_of_a_walk_is_in_its_file(functions: str, path: str) -> None:
    named = re.findall(r"`([\w.]+)`", functions)
    assert named
    assert set(named) <= _defined(path)


def test_both_walks_are_read() -> None:
    assert len(WALKS) == 22
