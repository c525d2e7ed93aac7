"""Specs of measures: bounds that ascend, and which measures score which labels."""

from __future__ import annotations

import math

import pytest

from cglsuite.base.errors import SpecError
from cglsuite.specs import MeasureSpec
from cglsuite.specs.plugins import CORE_MEASURES, MEASURES


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (0.0, math.inf)])
def test_bounds_that_ascend(bounds: tuple[float, float]) -> None:
    assert MeasureSpec(name="m", summary="s", factory="a:b", labels=("single",), range=bounds).range == bounds


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (1.0, 0.0), (math.nan, 1.0)])
def test_bounds_that_do_not(bounds: tuple[float, float]) -> None:
    with pytest.raises(SpecError, match="expected two ascending bounds"):
        MeasureSpec(name="m", summary="s", factory="a:b", labels=("single",), range=bounds)


def test_measures_by_the_labels_that_they_score() -> None:
    for kind, names in MEASURES.items():
        assert set(names) == {spec.name for spec in CORE_MEASURES if kind in spec.labels}
    assert "negative-mae" not in MEASURES["single"]
    assert "micro" not in MEASURES["real"]
