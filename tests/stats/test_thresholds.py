"""Pairs at every threshold that a docstring of the room states: with that many values there is a result, with one fewer a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cglsuite import stats
from cglsuite.base.errors import UsageError

RNG = np.random.default_rng(5)
X, Y = RNG.normal(0.8, 0.05, 20), RNG.normal(0.6, 0.05, 20)


def tidy(methods: int, orders: int, seeds: int = 1, items: int = 0) -> pd.DataFrame:
    """A full block of values without ties."""
    rng = np.random.default_rng(1)
    index = [(f"m{m}", f"o{o}", s, f"i{i}") for m in range(methods) for o in range(orders) for s in range(seeds) for i in range(items or 1)]
    frame = pd.DataFrame(index, columns=["method", "order", "seed", "item"])
    frame["value"] = frame["method"].str[1:].astype(float) + rng.normal(0, 0.4, len(frame))
    return frame if items else frame.drop(columns="item")


#: Name: the call with a number of values, and the least number with which it answers.
LEAST: dict[str, tuple[Callable[[int], Any], int]] = {
    "mean_interval": (lambda n: stats.mean_interval(X[:n]), 3),
    "welch": (lambda n: stats.welch(X[:n], Y), 3),
    "welch, the other sample": (lambda n: stats.welch(X, Y[:n]), 3),
    "paired_t": (lambda n: stats.paired_t(X[:n], Y[:n]), 3),
    "wilcoxon at a level of 0.95": (lambda n: stats.wilcoxon(X[:n], Y[:n]), 6),
    "hedges_g": (lambda n: stats.hedges_g(X[:n], Y[:n], paired=True), 3),
    "hedges_g, unpaired": (lambda n: stats.hedges_g(X, Y[:n], paired=False), 3),
    "difference_interval": (lambda n: stats.difference_interval(X[:n], Y[:n], paired=True), 10),
    "difference_interval, unpaired": (lambda n: stats.difference_interval(X, Y[:n], paired=False), 10),
    "difference_interval, the other sample": (lambda n: stats.difference_interval(X[:n], Y, paired=False), 10),
    "power": (lambda n: stats.power(n, 0.1, 0.1), 3),
    "std_bound": (lambda n: stats.std_bound(0.1, n), 3),
    "friedman, methods": (lambda n: stats.friedman(tidy(n, 6).drop(columns="seed")), 3),
    "friedman, blocks": (lambda n: stats.friedman(tidy(3, n).drop(columns="seed")), 3),
    "kendalls_w, orders": (lambda n: stats.kendalls_w(tidy(3, n).drop(columns="seed")), 3),
    "kendalls_w, methods": (lambda n: stats.kendalls_w(tidy(n, 4).drop(columns="seed")), 2),
    "ranks, methods": (lambda n: stats.ranks(tidy(n, 4).drop(columns="seed")), 2),
    "opd, orders": (lambda n: stats.opd(tidy(1, n, 2, 3).drop(columns="method")), 2),
    "expected_opd, orders": (lambda n: stats.expected_opd(tidy(1, n, 2, 3).drop(columns="method"), 4), 4),
    "subset_opd, orders": (lambda n: stats.subset_opd(tidy(1, n, 2, 3).drop(columns="method"), 4, draws=5), 4),
    "variance_components, orders": (lambda n: stats.variance_components(tidy(2, n, 4)), 3),
    "variance_components, seeds": (lambda n: stats.variance_components(tidy(2, 5, n)), 3),
    "mean_estimate": (lambda n: stats.mean_estimate(X[:n]), 3),
    "quasi-F, orders": (lambda n: stats.crossed_t(X.reshape(5, 4)[:n], Y.reshape(5, 4)[:n]), 3),
    "quasi-F, seeds": (lambda n: stats.crossed_t(X.reshape(4, 5)[:, :n], Y.reshape(4, 5)[:, :n]), 3),
}


@pytest.mark.parametrize("name", LEAST)
def test_at_the_threshold_there_is_a_result_and_below_it_a_refusal(name: str) -> None:
    call, least = LEAST[name]
    call(least)
    for n in range(1, least):
        with pytest.raises(stats.Refused):
            call(n)


def test_below_ten_values_the_interval_is_students_and_from_ten_on_a_bootstrap() -> None:
    assert [stats.mean_interval(X[:n]).method for n in (3, 9, 10, 11)] == ["t", "t", "BCa", "BCa"]


def test_a_p_value_that_equals_alpha_is_told_apart() -> None:
    """At ``p_adjusted`` = alpha, just below and just above it."""
    frame = tidy(2, 8).drop(columns="seed")
    p = float(stats.compare_methods(frame)["p_adjusted"].iloc[0])
    assert 0 < p < 1
    verdicts = [stats.compare_methods(frame, alpha=a)["verdict"].iloc[0] for a in (p * (1 - 1e-9), p, p * (1 + 1e-9))]
    assert verdicts == ["no significant difference", "m1 is better", "m1 is better"]


def test_friedman_finds_a_difference_at_its_alpha_and_not_below() -> None:
    frame = tidy(3, 6).drop(columns="seed")
    p = stats.friedman(frame).p
    assert [stats.friedman(frame, alpha=a).separates for a in (p * (1 - 1e-9), p, p * (1 + 1e-9))] == [False, True, True]


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_an_alpha_is_between_0_and_1(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        stats.compare_methods(tidy(2, 4).drop(columns="seed"), alpha=alpha)
    with pytest.raises(UsageError, match="alpha"):
        stats.power(5, 0.1, 0.1, alpha=alpha)


def test_two_decimals_of_spread_are_spread_and_rounding_is_not() -> None:
    """Values that are equal but for the last bits of their sums have no spread; those that differ by more have."""
    for make in (stats.mean_interval, lambda x: stats.paired_t(x, np.zeros(3))):
        with pytest.raises(stats.Refused, match="so there is no"):
            make(np.array([0.3, 0.3, 0.1 + 0.2]))
        make(np.array([0.3, 0.3, 0.3 + 1e-6]))
