"""Claims over all scenarios, collapses, a choice among settings, categories over scenarios: by hand on small tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UsageError


def test_scenarios_are_selected_and_tested_at_the_level_of_the_selection() -> None:
    """Benjamini and Hochberg over the smallest p of each family; a family that was refused as a whole stays in their number."""
    families = [[0.001, 0.024], [0.04, 0.5], [0.02], [float("nan")]]
    chosen, level = stats.across_families(families)
    assert (chosen, level) == ([True, False, True, False], 0.025)
    assert stats.across_families([]) == ([], 0.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.81, 0.80, 0.79, 0.20, 0.82], [3]),
        ([0.81, 0.80, 0.30], [2]),
        ([0.81, 0.80], []),
        ([0.81, 0.78, 0.74, 0.72, 0.83], []),
        ([1.0, 1.0, 1.0, 0.95], []),
        ([0.8, 0.8, 0.8, 0.6], [3]),
    ],
    ids=["one of five", "one of three", "too few", "noise", "within ten points", "no other spread"],
)
def test_collapses_are_far_below_the_median(values: list[float], expected: list[int]) -> None:
    assert np.flatnonzero(stats.collapsed(values, least=0.1)).tolist() == expected
    assert np.flatnonzero(stats.collapsed(1 - np.array(values), higher_is_better=False, least=0.1)).tolist() == expected


def test_a_choice_among_settings_is_in_its_interval() -> None:
    """With one setting that validation always chooses it is the bootstrap's t interval of its mean; with a choice it is wider."""
    rng = np.random.default_rng(1)
    one = rng.normal(0.7, 0.02, 10)
    sure = stats.selected([one, one - 0.3], [one, one - 0.3])
    reach = scipy_stats.t.ppf(0.975, 9) * scipy_stats.sem(one)
    assert (sure.chosen, sure.again) == (0, 1.0)
    assert [sure.low, sure.high] == pytest.approx([one.mean() - reach, one.mean() + reach], abs=0.05 * reach)
    values = rng.normal(0.7, 0.02, (6, 10))
    unsure = stats.selected(values, values)
    assert unsure.again < 1.0
    with pytest.raises(stats.Refused, match="each setting has 2 repetitions, but an interval needs at least 3"):
        stats.selected(values[:, :2], values[:, :2])
    with pytest.raises(UsageError, match="expected settings × units for both"):
        stats.selected(values, values[:, :5])
    with pytest.raises(stats.Refused, match="lacks a value or a validation score"):
        stats.selected(values, np.full((6, 10), np.nan))


def test_a_choice_over_crossed_orders_and_seeds_draws_both() -> None:
    """With a sure choice the interval is no narrower than that of the design's mean, and at most as wide as noise of cells counted three
    times makes it. Too few levels are refused, with what to run."""
    rng = np.random.default_rng(1)
    one = 0.7 + 0.02 * rng.normal(size=(5, 1)) + 0.01 * rng.normal(size=4) + 0.01 * rng.normal(size=(5, 4))
    sure = stats.selected([one, one - 0.3], [one, one - 0.3])
    low, high = stats.mean_estimate(one, ("order", "seed")).interval(0.95)
    assert (sure.chosen, sure.again) == (0, 1.0)
    assert 1.0 < (sure.high - sure.low) / (high - low) < 3**0.5
    values = 0.7 + 0.02 * rng.normal(size=(6, 5, 4))
    assert stats.selected(values, values).again < 1.0
    with pytest.raises(stats.Refused, match="each setting has 5 × 2 repetitions, but an interval needs at least 3 in orders and in seeds"):
        stats.selected(values[..., :2], values[..., :2])
    many = rng.normal(size=(6, 12, 3))
    with pytest.raises(stats.Refused, match="12 × 3 repetitions of each setting, crossed: .*; run a fourth of the 3"):
        stats.selected(many, many)


def test_categories_are_compared_over_scenarios() -> None:
    """By SciPy on mean ranks per scenario; five scenarios are refused, with the reason."""
    rng = np.random.default_rng(3)
    methods = {"x": ("a", "b"), "y": ("c", "d", "e")}
    rows = [(f"s{s:02}", m, rng.normal(0.1 * (m in "ab"), 0.1)) for s in range(14) for m in "abcde"]
    frame = pd.DataFrame(rows, columns=["scenario", "method", "value"])
    ranked = stats.category_ranks(frame, methods)
    row = stats.scenario_tests(ranked).iloc[0]
    means = ranked.groupby(["scenario", "category"])["rank"].mean().unstack()
    difference = (means["x"] - means["y"]).to_numpy()
    expected = scipy_stats.wilcoxon(difference[difference != 0.0])
    assert (row["scenarios"], row["p"], row["statistic"]) == (14, pytest.approx(expected.pvalue), expected.statistic)
    assert (row["wins"], row["losses"]) == (int((means["x"] < means["y"]).sum()), int((means["x"] > means["y"]).sum()))
    few = stats.scenario_tests(stats.category_ranks(frame[frame["scenario"] < "s05"], methods)).iloc[0]
    assert few["refused"] == "only 5 scenarios with both categories; a test over scenarios needs at least 6"
    assert (few["verdict"], np.isnan(few["p"])) == ("refused", True)
