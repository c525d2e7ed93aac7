"""The levels that functions of statistics have if none is given: 5% for a test, 95% for an interval."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cglsuite import stats

DEFAULTS: list[Any] = [
    pytest.param(parameter.default, {"alpha": 0.05, "level": 0.95}[parameter.name], id=f"{name}-{parameter.name}")
    for name in sorted(stats.__all__)
    if inspect.isfunction(function := getattr(stats, name)) and name != "std_bound"  # an upper bound of 80%, as its docstring says
    for parameter in inspect.signature(function).parameters.values()
    if parameter.name in ("alpha", "level") and parameter.default is not parameter.empty
]


def test_they_are_found() -> None:
    assert len(DEFAULTS) >= 10


@pytest.mark.parametrize(("default", "usual"), DEFAULTS)
def test_what_is_usual(default: float, usual: float) -> None:
    assert default == usual
