"""Intervals of means: which kind, how often they cover, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats


def test_few_units_take_student() -> None:
    x = np.array([0.2, 0.4, 0.5, 0.9])
    found = stats.mean_interval(x)
    expected = scipy_stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.method, found.n, found.level) == ("t", 4, 0.95)


def test_many_units_take_the_bootstrap() -> None:
    """The same at any time, and near Student's for well-behaved values."""
    x = np.random.default_rng(1).normal(0.5, 0.1, 40)
    found = stats.mean_interval(x)
    assert found.method == "BCa"
    assert found == stats.mean_interval(x)
    expected = scipy_stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.006)


def test_coverage_at_five() -> None:
    """Why few units take Student: nine of ten and more of its intervals cover; 95% is meant."""
    draws = np.random.default_rng(0).normal(0.0, 1.0, (400, 5))
    found = [stats.mean_interval(row) for row in draws]
    assert 0.92 <= np.mean([i.low <= 0 <= i.high for i in found]) <= 0.98


def test_bounds_of_the_scale() -> None:
    found = stats.mean_interval([0.99, 1.0, 0.9], bounds=(0.0, 1.0))
    assert found.high == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.1, 0.2], "2 repeats: an interval needs at least 3"),
        ([1.0] * 5, "all 5 repeats are equal"),
        ([1, np.nan, 2], "1 of 3 repeats are undefined"),
    ],
)
def test_refusals(values: list[float], message: str) -> None:
    with pytest.raises(stats.Refused, match=message):
        stats.mean_interval(values, unit="repeats")
