"""Agreement with published means: TOST and Welch against SciPy and statsmodels, verdicts, and offsets of whole tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UsageError

OURS, THEIRS = np.array([89.1, 90.4, 90.0, 91.2, 88.7]), np.random.default_rng(3).normal(90.5, 1.8, 10)


def found(ours: Any = OURS, theirs: Any = THEIRS, **how: Any) -> stats.Agreement:
    std = float(np.std(theirs, ddof=1))
    return stats.agreement(stats.mean_estimate(ours), float(np.mean(theirs)), std, len(theirs), **{"margin": 2.0} | how)


def test_welch_and_its_interval() -> None:
    """By SciPy from the same values; the interval is that of 90%."""
    expected = scipy_stats.ttest_ind(OURS, THEIRS, equal_var=False)
    one = found()
    assert (one.p_different, one.df) == pytest.approx((expected.pvalue, expected.df))
    interval = expected.confidence_interval(0.9)
    assert (one.low, one.high) == pytest.approx((interval.low, interval.high))


def test_print_over_three_runs_must_leave_room_of_its_own() -> None:
    """By hand: t.95(2) · 1 / √3 = 1.69 on top of a difference of 0.5 is beyond a margin of 2, whatever ours is."""
    reach = scipy_stats.t.ppf(0.95, 2) / math.sqrt(3)
    for spread in (0.1, 1.0, 2.0):  # Satterthwaite's df rise with it
        ours = stats.MeanEstimate(mean=90.5, error=spread / math.sqrt(30), df=29.0, spread=spread, n=(30,))
        one = stats.agreement(ours, 90.0, 1.0, 3, margin=2.0)
        assert one.printed_reach == pytest.approx(reach)
        assert one.smallest_margin >= 0.5 + reach > 2.0
        assert one.p_equivalent > 0.05
    noisy = stats.MeanEstimate(mean=90.5, error=0.5, df=29.0, spread=2.7, n=(30,))
    one = stats.agreement(noisy, 90.0, 1.0, 3, margin=2.0)
    assert one.high < 2.0  # what Welch's interval alone would have called equivalent
    passing = stats.agreement(replace(noisy, mean=90.1, error=0.05), 90.0, 1.0, 3, margin=2.0)
    assert passing.p_equivalent == pytest.approx(scipy_stats.t.sf((2.0 - 0.1) * math.sqrt(3), 2))
    four = stats.agreement(noisy, 90.0, 1.0, 4, margin=2.0)
    assert four.smallest_margin == pytest.approx(max(abs(four.low), abs(four.high)))  # from four runs on Welch's interval decides


def test_what_an_undecided_value_needs() -> None:
    """The number of runs is the smallest at which simulated means without a difference are called equivalent in 80%."""
    assert stats.precision_of(0.0, 4.0, 10, 2.0) == ("print too imprecise", None)  # 1.83 · 4 / √10 = 2.3
    kind, runs = stats.precision_of(2.5, 1.0, 10, 2.0)
    assert kind == "needs more runs"
    assert runs is not None
    generator = np.random.default_rng(0)

    def power(n: int) -> float:
        ours, theirs = generator.normal(0, 2.5, (4000, n)), generator.normal(0, 1.0, (4000, 10))
        test = scipy_stats.ttest_ind(ours, theirs, axis=1, equal_var=False)
        interval = test.confidence_interval(0.9)
        return float(np.mean((interval.low > -2.0) & (interval.high < 2.0)))

    assert power(runs) == pytest.approx(0.8, abs=0.04)
    assert power(runs - 3) < 0.8
    assert stats.precision_of(2.5, 3.3, 10, 2.0) == ("not worth it", None)  # even without any error of ours print leaves too little room
    assert stats.precision_of(40.0, 1.0, 10, 2.0) == ("not worth it", None)  # more than a hundred runs


@pytest.mark.parametrize("margin", [0.5, 2.0, 6.0])
def test_tost_is_that_of_statsmodels(margin: float) -> None:
    from statsmodels.stats.weightstats import ttost_ind

    p, _, _ = ttost_ind(OURS, THEIRS, -margin, margin, usevar="unequal")
    one = found(margin=margin)
    assert one.p_equivalent == pytest.approx(p)
    assert (p <= 0.05) == (-margin <= one.low and one.high <= margin)


def test_the_smallest_margin_that_passes() -> None:
    """A hair more passes, a hair less does not."""
    least = found().smallest_margin
    assert found(margin=least * 1.0001).p_equivalent < 0.05 < found(margin=least * 0.9999).p_equivalent
    assert least == pytest.approx(max(abs(found().low), abs(found().high)))


def test_no_two_point_margin_at_five_beside_ten_and_a_std_of_four() -> None:
    """Even where the means are the same to the last digit."""
    ours, theirs = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), np.linspace(-1.0, 1.0, 10)
    ours, theirs = 4 * ours / ours.std(ddof=1), 4 * theirs / theirs.std(ddof=1)
    one = found(ours, theirs)
    assert one.difference == pytest.approx(0.0, abs=1e-12)
    assert one.smallest_margin > 2.0
    assert stats.agreement_verdicts([one.p_equivalent], [one.p_different])[0] == ["undecided"]


def test_verdicts_over_a_table() -> None:
    """Equivalence is not adjusted, a difference is: 0.03 is significant alone and not among three."""
    verdicts, adjusted = stats.agreement_verdicts([0.01, 0.9, 0.4], [0.5, 0.001, 0.03])
    assert verdicts == ["equivalent", "different", "undecided"]
    assert adjusted == pytest.approx(stats.adjust([0.5, 0.001, 0.03]))
    assert stats.agreement_verdicts([0.4], [0.03])[0] == ["different"]
    assert stats.agreement_verdicts([0.001], [0.001])[0] == ["equivalent"]  # a difference that is real and smaller than the margin


def test_our_mean_may_be_over_crossed_factors() -> None:
    values = 90 + np.random.default_rng(0).normal(size=(5, 4))
    ours = stats.mean_estimate(values, ("order", "seed"))
    one = stats.agreement(ours, 90.0, 1.0, 10, margin=2.0)
    assert one.error == pytest.approx(math.sqrt(ours.error**2 + 0.1))


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"std": math.nan}, stats.Refused, "no standard deviation"),
        ({"std": -1.0}, stats.Refused, "no standard deviation"),
        ({"mean": math.nan}, stats.Refused, "the published mean is not a number"),
        ({"n": 1}, stats.Refused, "the published value comes from 1 run, but a verdict needs at least 2"),
        ({"margin": 0.0}, UsageError, "margin = 0"),
        ({"alpha": 0.5}, UsageError, "alpha = 0.5"),
    ],
)
def test_refusals(how: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"mean": 90.0, "std": 1.0, "n": 10, "margin": 2.0} | how
    with pytest.raises(error, match=message):
        stats.agreement(stats.mean_estimate(OURS), **given)


def test_sign_tests_of_the_median_are_scipys_and_hold_for_skewed_noise() -> None:
    """The larger p of two exact binomial tests; NaN is within no margin; at the margin at most 5% pass, however skewed the noise."""
    for seed in range(20):
        values = np.random.default_rng(seed).normal(0.2, 0.5, 9)
        sides = [(values >= 0.5).sum(), (values <= -0.5).sum()]
        expected = max(scipy_stats.binomtest(int(k), 9, 0.5, "less").pvalue for k in sides)
        assert stats.median_within(values, 0.5) == pytest.approx(expected)
    assert stats.median_within([0.0] * 4 + [math.nan], 0.5) == pytest.approx(6 / 32)
    noise = np.random.default_rng(0).exponential(size=(2000, 10)) - math.log(2.0)
    assert np.mean([stats.median_within(1.0 + 0.3 * one, 1.0) <= 0.05 for one in noise]) <= 0.05


def test_sizes_at_the_margin_and_at_no_difference() -> None:
    """At the margin equivalence is found in at most 6% of 2,000 draws, and a difference where there is none in at most 6.5%."""
    generator = np.random.default_rng(5)
    equivalent = different = 0
    for _ in range(2000):
        ours, theirs = generator.normal(0.0, 1.0, 5), generator.normal(0.0, 1.0, 10)
        different += found(ours, theirs).p_different <= 0.05
        equivalent += found(ours + 2.0, theirs).p_equivalent <= 0.05
    assert different / 2000 <= 0.065
    assert 0.03 <= equivalent / 2000 <= 0.06


# --- tables as a whole -----------------------------------------------------------------------------------------------------------


def table_of(values: np.ndarray, published: float = 0.0, error: float = 0.0, block: str = "one") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows ``[rows, units]`` beside one published value."""
    rows = [(r, u, float(v)) for (r, u), v in np.ndenumerate(values)]
    printed = {"row": range(len(values)), "block": block, "mean": published, "error": error, "df": 9.0}
    return pd.DataFrame(rows, columns=["row", "unit", "value"]), pd.DataFrame(printed)


def test_rows_that_share_orders_are_drawn_jointly() -> None:
    """The interval is Student's t over the units' means of all rows, up to the bootstrap's noise; independent rows would be far surer."""
    generator = np.random.default_rng(1)
    values = generator.normal(0, 2, (1, 6)) + generator.normal(0, 0.5, (10, 6))
    offset = stats.joint_offset(*table_of(values))
    low, high = scipy_stats.t.interval(0.95, 5, loc=values.mean(), scale=scipy_stats.sem(values.mean(axis=0)))
    assert (offset.rows, offset.mean) == (10, pytest.approx(values.mean()))
    assert (offset.low, offset.high) == pytest.approx((low, high), rel=0.06)
    alone = scipy_stats.t.interval(0.95, 59, loc=values.mean(), scale=scipy_stats.sem(values.ravel()))
    assert offset.high - offset.low > 2 * (alone[1] - alone[0])
    assert offset.certain == (low > 0 or high < 0)
    assert stats.joint_offset(*table_of(values)) == offset


def test_published_errors_widen_the_interval() -> None:
    """As if they were one error: fully correlated."""
    values = np.random.default_rng(2).normal(0, 1, (4, 8))
    sure, unsure = (stats.joint_offset(*table_of(values, error=error)) for error in (0.0, 0.5))
    se = (sure.high - sure.low) / 2 / scipy_stats.t.ppf(0.975, 7)
    df = (se**2 + 0.25) ** 2 / (se**4 / 7 + 0.25**2 / 9)
    assert (unsure.high - unsure.low) / 2 == pytest.approx(scipy_stats.t.ppf(0.975, df) * math.sqrt(se**2 + 0.25))


def test_blocks_are_independent_and_gaps_are_left_out() -> None:
    """Two data sets halve the variance of one; a row that lacks a unit has its mean over the others."""
    values = np.random.default_rng(4).normal(0, 1, (6, 9))
    frame, published = table_of(values)
    two = published.assign(block=["a"] * 3 + ["b"] * 3)
    expected = math.sqrt(sum(scipy_stats.sem(part.mean(axis=0)) ** 2 for part in (values[:3], values[3:])) / 4)
    offset = stats.joint_offset(frame, two)
    assert (offset.high - offset.low) / 2 == pytest.approx(scipy_stats.t.ppf(0.975, 15) * expected, rel=0.08)
    lacking = stats.joint_offset(frame.drop(index=0), published)
    assert lacking.mean == pytest.approx(np.mean([values[0, 1:].mean(), *values[1:].mean(axis=1)]))
    assert math.isfinite(lacking.low)


def test_no_interval_of_two_repetitions() -> None:
    offset = stats.joint_offset(*table_of(np.array([[1.0, 2.0], [3.0, -4.0]])))
    assert (offset.rows, offset.higher, offset.mean) == (2, 1, pytest.approx(0.5))
    assert (math.isnan(offset.low), offset.certain) == (True, False)
    assert offset.reason == "a data set has 2 repetitions: an interval needs at least 3"


def test_on_shared_orders_their_component_leaves_both_errors() -> None:
    """By hand from mean squares; what an order does to both means changes neither the difference nor its error."""
    generator = np.random.default_rng(3)
    order, noise, printed = 6.0 * generator.normal(size=10), generator.normal(size=(10, 3)), generator.normal(size=10)
    found = []
    for scale in (0.0, 1.0):
        x, theirs = 80.0 + scale * order[:, None] + noise, 80.0 + scale * order + printed
        one = stats.agreement_on_orders(x, float(theirs.mean()), float(theirs.std(ddof=1)), 10, margin=2.0)
        within, between = x.var(axis=1, ddof=1).mean(), 3 * x.mean(axis=1).var(ddof=1)
        left = max(theirs.var(ddof=1) - max(0.0, between - within) / 3, within)
        assert one.error == pytest.approx(np.sqrt(within / 30 + left / 10))
        assert one.difference == pytest.approx(x.mean() - theirs.mean())
        found.append(one)
    assert found[0].difference == pytest.approx(found[1].difference)
    alone = stats.agreement(stats.mean_estimate(x.mean(axis=1)), float(theirs.mean()), float(theirs.std(ddof=1)), 10, margin=2.0)
    assert alone.error > 3 * found[1].error
    for values, n, message in (
        (x[:, :2], 10, "at least 3 of each"),
        (x, 9, "there are 10 orders but 9 published runs"),
        (x * 0, 10, "no variance"),
    ):
        with pytest.raises(stats.Refused, match=message):
            stats.agreement_on_orders(values, 80.0, 1.0, n, margin=2.0)
