"""A study as a campaign file: what is written is what TOML reads."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cglsuite.base.errors import UsageError
from cglsuite.study.study import _toml

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
PLAIN = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT)
VALUES = st.recursive(PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)), max_leaves=6)


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_what_is_written_is_read(content: dict[str, Any]) -> None:
    assert tomllib.loads(_toml(content)) == content


def test_tables_are_written_as_people_do() -> None:
    content = {"name": "study", "set": {"training.epochs": 2, "lr": 1e-5}, "data": [], "report": [{"notebook": "a"}, {"notebook": "b"}]}
    keys, switches = 'name = "study"\ndata = []\n', '\n[set]\n"training.epochs" = 2\nlr = 1e-05\n'
    assert _toml(content) == f'{keys}{switches}\n[[report]]\nnotebook = "a"\n\n[[report]]\nnotebook = "b"\n'


def test_what_toml_does_not_have_is_refused_by_its_value() -> None:
    with pytest.raises(UsageError, match="cannot contain None; expected text"):
        _toml({"set": {"lr": None}})
