"""Numbers in sentences: 95%, 1,179, and nouns that agree with them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cglsuite.base.markup import file_size, several


@pytest.mark.parametrize(("n", "words"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")])
def test_a_noun_agrees_with_its_number(n: int, words: str) -> None:
    assert several(n, "cell") == words


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert [several(n, "field differs", "fields differ") for n in (1, 2)] == ["1 field differs", "2 fields differ"]


@pytest.mark.parametrize(
    ("n_bytes", "words"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_450_000, "1.4 MB"), (2.5e9, "2.5 GB"), (1.2e12, "1,200.0 GB")]
)
def test_sizes_have_the_largest_unit_of_which_there_is_one(n_bytes: float, words: str) -> None:
    assert file_size(n_bytes) == words


def test_a_percent_sign_follows_its_number() -> None:
    """95%, and never 95 %, in every text of the suite."""
    sources = (Path(__file__).parents[1] / "cglsuite").rglob("*.py")
    texts = [(path, node.value) for path in sources for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Constant)]
    apart = [(path.name, text) for path, text in texts if isinstance(text, str) and re.search(r"(?:^|\d) %(?!\w)", text)]
    assert apart == []
