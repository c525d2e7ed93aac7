"""Which tests the quick round may leave to the nightly one: never those that guard hidden labels, the oracle, kills, or the README."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = re.compile(r"hidden_label|leak|oracle|kill|readme", re.IGNORECASE)


MARKS = re.compile(r"mark\.(nightly|sampled)\b")


def nightly(text: str) -> Iterator[str]:
    """The names of the tests of a file that are marked nightly, whole or in one of their cases."""
    tree = ast.parse(text)
    marks = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"]
    whole = any(MARKS.search(ast.unparse(node)) for node in marks)
    for node in ast.walk(tree):
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if is_test and (whole or any(MARKS.search(ast.unparse(mark)) for mark in node.decorator_list)):
            yield node.name


def test_what_guards_the_promises_runs_in_the_quick_round() -> None:
    texts = {p.relative_to(ROOT): p.read_text(encoding="utf-8") for top in ("tests", "plugins") for p in (ROOT / top).rglob("test_*.py")}
    found = {file: list(nightly(text)) for file, text in texts.items() if MARKS.search(text)}
    assert sum(map(len, found.values())) > 30
    assert [f"{file}::{name}" for file, names in found.items() for name in names if ALWAYS.search(f"{file.stem}::{name}")] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def test_a(): pass\n\n@pytest.mark.nightly\ndef test_b(): pass", ["test_b"]),
        ("pytestmark = [pytest.mark.plugins, pytest.mark.nightly]\ndef test_a(): pass\ndef helper(): pass", ["test_a"]),
        ("@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.nightly)])\ndef test_a(x): pass", ["test_a"]),
        ("@pytest.mark.sampled(1)\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): pass", ["test_a"]),
    ],
)
def test_marks_are_found_wherever_they_stand(text: str, names: list[str]) -> None:
    assert list(nightly(text)) == names
