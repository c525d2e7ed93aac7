"""How many units a difference needs: by simulation, by inversion, from variance components, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UsageError


@pytest.mark.parametrize("paired", [True, False])
def test_power_is_what_simulation_finds(paired: bool) -> None:
    """The share of 4000 simulated t-tests with p < 0.05."""
    generator = np.random.default_rng(7)
    first = generator.normal(0.03, 0.02, (4000, 6))
    found = (
        scipy_stats.ttest_1samp(first, 0, axis=1) if paired else scipy_stats.ttest_ind(first, generator.normal(0, 0.02, (4000, 6)), axis=1)
    )
    assert stats.power(6, 0.03, 0.02, paired=paired) == pytest.approx((found.pvalue < 0.05).mean(), abs=0.02)


@given(st.floats(0.1, 5.0), st.booleans(), st.sampled_from([0.05, 0.01]), st.sampled_from([0.8, 0.9]))
def test_the_smallest_number_that_is_enough(size: float, paired: bool, alpha: float, wanted: float) -> None:
    """One unit fewer is not enough."""
    n = stats.units_needed(size, 1.0, paired=paired, alpha=alpha, wanted=wanted)
    assert stats.power(n, size, 1.0, paired=paired, alpha=alpha) >= wanted
    assert n == 3 or stats.power(n - 1, size, 1.0, paired=paired, alpha=alpha) < wanted


@pytest.mark.parametrize("paired", [True, False])
def test_the_detectable_difference_needs_these_units(paired: bool) -> None:
    difference = stats.detectable_difference(7, 0.02, paired=paired)
    assert stats.power(7, difference, 0.02, paired=paired) == pytest.approx(0.8, abs=1e-6)
    assert stats.units_needed(1.0001 * difference, 0.02, paired=paired) == 7


VARIANCES = stats.DifferenceVariances(order=0.0004, seed=0.0001, rest=0.0002)


def test_variances_of_a_difference() -> None:
    """What an order or a seed does to all methods alike is not in them."""
    parts = {"order": 9.0, "method_order": 0.04, "seed": 4.0, "method_seed": 0.02, "order_seed": 1.0, "rest": 0.12}
    components = stats.VarianceComponents(variances=parts, moments={}, n_methods=3, n_orders=5, n_seeds=3)
    assert stats.DifferenceVariances.of(components) == stats.DifferenceVariances(order=0.08, seed=0.04, rest=0.24)
    alone = stats.VarianceComponents(variances={"order": 9.0, "seed": 0.1, "rest": 0.1}, moments={}, n_methods=1, n_orders=5, n_seeds=3)
    with pytest.raises(stats.Refused, match="single method"):
        stats.DifferenceVariances.of(alone)
    layout = np.array([[1.0, 2.0, 6.0], [3.0, 5.0, 7.0], [0.0, 1.0, 3.0]])
    found, (rows, columns, rest) = stats.DifferenceVariances.observed(layout), stats.mean_squares(layout)
    assert (found.order, found.seed, found.rest) == pytest.approx(((rows - rest) / 3, (columns - rest) / 3, rest))
    error, df = found.error(3, 3)
    assert [error, df] == pytest.approx([float(one) for one in stats.quasi_f(layout)[1:]])


def test_crossed_power_is_what_simulation_finds() -> None:
    """Of 4,000 campaigns with 8 orders × 5 seeds, the share whose quasi-F is significant."""
    noise, n = np.random.default_rng(1).normal, 4000
    parts = zip((VARIANCES.order, VARIANCES.seed, VARIANCES.rest), ((n, 8, 1), (n, 1, 5), (n, 8, 5)), strict=True)
    mean, error, df = stats.quasi_f(0.03 + sum(np.sqrt(v) * noise(size=shape) for v, shape in parts))
    found = (2 * scipy_stats.t.sf(mean / error, df) < 0.05).mean()
    assert 0.4 < found < 0.95
    assert stats.crossed_power(VARIANCES, 8, 5, 0.03) == pytest.approx(found, abs=0.05)


def test_orders_needed_with_crossed_seeds() -> None:
    """One fewer is not enough; and what seeds do to a difference is not averaged out by orders."""
    n = stats.orders_needed(VARIANCES, 6, 0.03)
    assert stats.crossed_power(VARIANCES, n, 6, 0.03) >= 0.8 > stats.crossed_power(VARIANCES, n - 1, 6, 0.03)
    with pytest.raises(stats.Refused, match="10,000 orders are not enough with 4 seeds, because the effect of a seed on a difference"):
        stats.orders_needed(VARIANCES, 4, 0.01)
    with pytest.raises(stats.Refused, match="10 orders are not enough with 3 seeds"):
        stats.orders_needed(VARIANCES, 3, 0.02)
    for seeds in (1, 2):
        with pytest.raises(stats.Refused, match="crossed with orders: a test needs at least 3"):
            stats.orders_needed(VARIANCES, seeds, 0.03)


def test_the_detectable_difference_in_standard_errors() -> None:
    """With the degrees of freedom of a paired test of 7 units it is that test's."""
    assert stats.detectable_error(6.0) * 0.02 / np.sqrt(7) == pytest.approx(stats.detectable_difference(7, 0.02), rel=1e-6)


def test_bound_of_a_standard_deviation_covers() -> None:
    """In 80% of pilots the true one is below it."""
    draws = np.random.default_rng(2).normal(0, 1, (2000, 5)).std(axis=1, ddof=1)
    assert np.mean([stats.std_bound(s, 5) >= 1 for s in draws]) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.units_needed(0.01, 0.0), stats.Refused, "no spread"),
        (lambda: stats.units_needed(1e-5, 0.1), stats.Refused, "more than 10,000 units"),
        (lambda: stats.units_needed(-0.1, 0.1), UsageError, r"difference is -0\.1; expected a positive number"),
        (lambda: stats.units_needed(0.1, 0.1, wanted=80), UsageError, "power = 80"),
        (lambda: stats.power(2, 0.1, 0.1), stats.Refused, "a test needs at least 3 units, but there are 2"),
        (lambda: stats.power(5, 0.1, 0.1, alpha=1.0), UsageError, "alpha = 1"),
        (lambda: stats.crossed_power(VARIANCES, 120, 3, 0.1), stats.Refused, "120 orders × 3 seeds are too few"),
        (lambda: stats.orders_needed(VARIANCES, 5, 0.1, wanted=80), UsageError, "power = 80"),
        (lambda: stats.std_bound(0.1, 2), stats.Refused, "at least 3 values, but this one is over 2"),
    ],
)
def test_refusals(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()  # type: ignore[operator]


def test_the_spread_that_a_pilot_shows() -> None:
    """Of differences where paired (by hand: 1, 0, 2), else the root of the mean of both variances; without spread there is none."""
    first, second = [1.0, 2.0, 6.0], [0.0, 2.0, 4.0]
    assert stats.observed_std(first, second, paired=True) == pytest.approx(1.0)
    assert stats.observed_std(first, second, paired=False) == pytest.approx(np.sqrt((7.0 + 4.0) / 2))
    with pytest.raises(stats.Refused, match="the difference is the same in all 3 orders"):
        stats.observed_std(first, first, paired=True, unit="orders")
