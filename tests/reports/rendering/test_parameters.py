"""What a notebook declares, and what is refused before anything runs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from cglsuite.base.errors import ReportError, UnknownNameError
from cglsuite.reports.rendering.parameters import Parameter, check_parameters, declared_parameters


def notebook(*sources: str, tagged: int = 1) -> Any:
    cells = [new_code_cell(s, metadata={"tags": ["parameters"]} if i < tagged else {}) for i, s in enumerate(sources)]
    return new_notebook(cells=cells)


SOURCE = """
store = ""  # where
n = 3
rate: float = 0.5
flags = [1, 2]
table = {
    "a": 1,
}
nothing = None
made = list(range(3))
quick = True
"""
DECLARED = declared_parameters(notebook(SOURCE))


def test_declared_names_and_literal_defaults() -> None:
    """Assignments over any number of lines; what is no literal has no known default."""
    assert list(DECLARED) == ["store", "n", "rate", "flags", "table", "nothing", "made", "quick"]
    assert DECLARED["table"] == Parameter("table", {"a": 1}, True)
    assert not DECLARED["made"].known


@pytest.mark.parametrize(("given", "expected"), [(0, "0 code cells"), (2, "2 code cells")])
def test_exactly_one_cell_declares(given: int, expected: str) -> None:
    """None or two tagged cells are an error that says so."""
    with pytest.raises(ReportError, match=expected):
        declared_parameters(notebook("x = 1", "y = 2", tagged=given))


def test_a_parameters_cell_that_is_no_python() -> None:
    """The reason is the syntax error."""
    with pytest.raises(ReportError, match="not Python"):
        declared_parameters(notebook("x = = 1"))


def test_a_misspelt_name_suggests_the_nearest() -> None:
    """Papermill alone would run on with the default."""
    with pytest.raises(UnknownNameError, match=r"unknown parameter of notebook 'r' 'stroe'. Did you mean 'store'\?"):
        check_parameters(DECLARED, {"stroe": "x"}, "r")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("nothing", Path("x"), "is a PosixPath"),
        ("nothing", datetime.date(2025, 1, 1), "is a date"),
        ("nothing", float("nan"), "JSON cannot represent it"),
        ("flags", [1, {"a": {1, 2}}], "item 1, key 'a' is a set"),
        ("table", {1: 2}, "the keys of a table are text"),
        ("n", "3", "expected int, like its default 3"),
        ("n", True, "expected int"),
        ("quick", 1, "expected bool"),
        ("store", ["x"], "expected str"),
        ("table", "x", "expected dict"),
    ],
)
def test_values_that_do_not_fit(name: str, value: Any, expected: str) -> None:
    """Not JSON, or of another type than the default: the message names the parameter."""
    with pytest.raises(ReportError, match=expected) as caught:
        check_parameters(DECLARED, {name: value}, "r")
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    "given", [{}, {"rate": 1}, {"nothing": {"a": [1, None, "x", False]}}, {"made": "anything"}, {"flags": ()}, {"store": "s", "n": 4}]
)
def test_values_that_fit(given: dict[str, Any]) -> None:
    """Whole numbers are fractions; None and computed defaults fit anything."""
    assert check_parameters(DECLARED, given, "r") == given


def test_one_text_for_a_list_of_texts() -> None:
    """``-p methods bare`` means the list of one; a list of numbers takes no text."""
    declared = declared_parameters(notebook('methods = ["bare", "ewc"]\nflags = [1]'))
    assert check_parameters(declared, {"methods": "joint"}, "r") == {"methods": ["joint"]}
    with pytest.raises(ReportError, match="expected list"):
        check_parameters(declared, {"flags": "1"}, "r")
