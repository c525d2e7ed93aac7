"""Tests of two samples against SciPy, formulas and hand-made numbers, and what they refuse."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from cglsuite import stats
from cglsuite.stats.pairwise import small_sample_factor

FIRST, SECOND = [0.61, 0.55, 0.70, 0.66, 0.58], [0.50, 0.52, 0.61, 0.47]
PAIRED = [0.60, 0.51, 0.66, 0.67, 0.52]
values = st.lists(st.integers(0, 1000), min_size=3, max_size=12).map(lambda x: [v / 1000 for v in x])


def test_welch_by_its_formulas() -> None:
    """Statistic, Welch and Satterthwaite's degrees of freedom, p and interval, written out; statsmodels agrees."""
    found = stats.welch(FIRST, SECOND)
    a, b = np.var(FIRST, ddof=1) / 5, np.var(SECOND, ddof=1) / 4
    df = (a + b) ** 2 / (a**2 / 4 + b**2 / 3)
    estimate = np.mean(FIRST) - np.mean(SECOND)
    t = estimate / np.sqrt(a + b)
    half = scipy_stats.t.ppf(0.975, df) * np.sqrt(a + b)
    assert (found.estimate, found.statistic, found.df) == pytest.approx((estimate, t, df))
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(abs(t), df))
    assert (found.low, found.high) == pytest.approx((estimate - half, estimate + half))
    assert (found.test, found.n, found.interval, found.level) == ("Welch's t", (5, 4), "t", 0.95)
    other = CompareMeans(DescrStatsW(FIRST), DescrStatsW(SECOND))
    assert (found.statistic, found.p, found.df) == pytest.approx(other.ttest_ind(usevar="unequal"))
    assert (found.low, found.high) == pytest.approx(other.tconfint_diff(usevar="unequal"))


def test_paired_t_is_the_t_test_of_differences() -> None:
    found = stats.paired_t(FIRST, PAIRED, level=0.9)
    expected = scipy_stats.ttest_1samp(np.subtract(FIRST, PAIRED), 0.0)
    assert (found.statistic, found.p, found.df) == pytest.approx((expected.statistic, expected.pvalue, 4))
    interval = expected.confidence_interval(0.9)
    assert (found.low, found.high, found.level) == pytest.approx((interval.low, interval.high, 0.9))


def test_wilcoxon_by_all_signs() -> None:
    """The exact p value: the share of all sign patterns whose smaller rank sum is at most the observed one."""
    differences = np.array([0.01, 0.02, -0.03, 0.04, 0.05, 0.06, 0.07])
    found = stats.wilcoxon(0.5 + differences, np.full(7, 0.5))
    ranks = np.arange(1, 8)
    sums = [min(ranks[list(s)].sum(), 28 - ranks[list(s)].sum()) for n in range(8) for s in itertools.combinations(range(7), n)]
    assert found.statistic == 3
    assert found.p == pytest.approx(np.mean([s <= 3 for s in sums]))
    walsh = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(differences, 2))
    assert found.estimate == pytest.approx(np.median(walsh))
    # 4 of 128 patterns have a rank sum of at most 2, 5 of at most 3: at 95% the interval leaves out two averages at each end.
    assert (found.low, found.high, found.interval) == pytest.approx((walsh[2], walsh[-3], "signed ranks"))
    assert np.isnan(found.df)


@given(st.lists(st.integers(-40, 100), min_size=6, max_size=14, unique_by=abs).filter(lambda x: 0 not in x))
def test_wilcoxon_points_where_its_ranks_point(differences: list[int]) -> None:
    """Not where the mean does; its interval leaves out 0 exactly where p is at most alpha."""
    found = stats.wilcoxon(differences, [0] * len(differences))
    ranks = scipy_stats.rankdata(np.abs(differences))
    positive = ranks[np.array(differences) > 0].sum()
    if (twice := positive - (ranks.sum() - positive)) and found.estimate:
        assert np.sign(found.estimate) == np.sign(twice)
    assert found.low <= found.estimate <= found.high
    assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)


def test_effect_sizes_of_huge_statistics_end_at_once() -> None:
    """SciPy's search for a noncentrality takes minutes there; at the switch both ways agree."""
    from cglsuite.stats.pairwise import _LARGE_T, _noncentralities

    for df in (2.0, 9.0, 40.0):
        below, above = (_noncentralities(t, df, 0.95) for t in (0.999 * _LARGE_T, 1.001 * _LARGE_T))
        assert above == pytest.approx(np.multiply(below, 1.001 / 0.999), rel=1e-3)
        low, high = _noncentralities(-1.001 * _LARGE_T, df, 0.95)
        assert (-high, -low) == pytest.approx(above)
    x = np.array([1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.0 + 2e-9])
    started = time.monotonic()
    found = stats.hedges_g(x, [0.0] * 4, paired=True)
    assert time.monotonic() - started < 1.0
    assert 1e8 < found.low < found.g < found.high < 1e10


@given(values, values)
def test_first_and_second_are_mirrored(first: list[float], second: list[float]) -> None:
    """Exchanged, everything has the other sign; p is the same."""
    try:
        one, other = stats.welch(first, second), stats.welch(second, first)
    except stats.Refused:
        return
    assert (one.estimate, one.low, one.statistic, one.p) == pytest.approx((-other.estimate, -other.high, -other.statistic, other.p))
    assert one.low <= one.estimate <= one.high


@given(values, values, st.sampled_from([0.9, 0.95, 0.99]), st.booleans())
def test_interval_test_and_effect_agree(first: list[float], second: list[float], level: float, paired: bool) -> None:
    """p is below 1 - level exactly where the interval of the difference, and that of g, leave out 0."""
    if paired:
        n = min(len(first), len(second))
        first, second = first[:n], second[:n]
    try:
        found = (stats.paired_t if paired else stats.welch)(first, second, level=level)
        effect = stats.hedges_g(first, second, paired=paired, level=level)
    except stats.Refused:
        return
    if abs(found.p - (1 - level)) < 1e-6:
        return
    assert (found.p < 1 - level) == (found.low > 0 or found.high < 0) == (effect.low > 0 or effect.high < 0)
    assert np.sign(effect.g) == pytest.approx(np.sign(found.estimate))


def test_hedges_g_of_equal_designs_is_the_usual_one() -> None:
    """Equal numbers and variances: statsmodels' bias-corrected standardised mean difference (which approximates J)."""
    first, second = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    found = stats.hedges_g(first, second, paired=False)
    g, _ = effectsize_smd(first.mean(), first.std(ddof=1), 5, second.mean(), second.std(ddof=1), 5)
    assert found.g == pytest.approx(g, rel=1e-3)
    assert found.g == pytest.approx(-small_sample_factor(8) / np.sqrt(2.5))
    assert small_sample_factor(8) == pytest.approx(1 - 3 / (4 * 8 - 1), rel=2e-3)


def test_hedges_g_of_unequal_variances_by_hand() -> None:
    """Delacre et al.: the mean of both variances, whatever the numbers."""
    first, second = [0.0, 2.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0, 3.0]
    one, two = 4.0, 2.0
    df = 2 * 5 * (one + two) ** 2 / (5 * one**2 + 2 * two**2)
    found = stats.hedges_g(first, second, paired=False)
    assert found.g == pytest.approx(small_sample_factor(df) * -1.0 / np.sqrt(3.0))
    assert found.standardiser == "std within methods"


def test_interval_of_g_holds_the_noncentralities() -> None:
    """At its bounds the statistic is at its 97.5% and 2.5% quantiles."""
    x = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.15])
    found = stats.hedges_g(x, [0, 0.01, 0, 0.02, 0, 0], paired=True)
    d = x - [0, 0.01, 0, 0.02, 0, 0]
    t = d.mean() / (d.std(ddof=1) / np.sqrt(6))
    assert scipy_stats.nct.cdf(t, 5, found.low * np.sqrt(6)) == pytest.approx(0.975, abs=1e-6)
    assert scipy_stats.nct.cdf(t, 5, found.high * np.sqrt(6)) == pytest.approx(0.025, abs=1e-6)
    assert found.g == pytest.approx(small_sample_factor(5) * d.mean() / d.std(ddof=1))


def test_bootstrap_of_a_difference() -> None:
    """Near the t interval for well-behaved values, the same at any time; paired it is that of the differences."""
    generator = np.random.default_rng(3)
    x, y = generator.normal(0.6, 0.05, 40), generator.normal(0.5, 0.02, 30)
    found = stats.difference_interval(x, y, paired=False)
    expected = stats.welch(x, y)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.003)
    assert found == stats.difference_interval(x, y, paired=False)
    assert (found.method, found.n) == ("BCa", 30)
    assert stats.difference_interval(x[:30], y, paired=True) == stats.mean_interval(x[:30] - y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.welch([1.0, 2.0], [1.0, 2.0, 3.0], unit="orders"), "2 orders: a test needs at least 3 in each sample"),
        (lambda: stats.welch([1.0, 2.0, 3.0], [1.0], unit="orders"), "1 order: a test"),
        (lambda: stats.welch([1.0, 2.0, 3.0], [0.5] * 4), "all 4 values of one method are equal"),
        (lambda: stats.welch([1.0, np.nan, 3.0], [1.0, 2.0, 3.0]), "1 of 3 values are undefined"),
        (lambda: stats.paired_t([1.0, 2.0, 3.0], [1.0, 2.0]), "the samples have 3 and 2 values, but a paired test needs equal numbers"),
        (lambda: stats.paired_t([1.1, 2.1, 3.1], [1.0, 2.0, 3.0]), "the difference is the same in all 3 values"),
        (lambda: stats.wilcoxon(range(1, 6), [0] * 5), r"differ in only 5 values, .* below 0\.0625"),
        (lambda: stats.wilcoxon([1, 2, 3, 4, 5, 7, 0, 0], [0] * 8, level=0.99), "differ in only 6 values"),
        (lambda: stats.hedges_g([1.0, 2.0], [1.0, 3.0], paired=True), "at least 3"),
        (
            lambda: stats.difference_interval([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], paired=False),
            "with 3 values, a bootstrap interval is too narrow",
        ),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(stats.Refused, match=message):
        call()  # type: ignore[operator]


def test_rounding_of_large_values_is_no_spread() -> None:
    """Of two methods one of which is far larger, rounding is that of the larger one: their difference is the same in all units."""
    small = np.array([1 / 3, 2 / 7, 0.123, 0.7])
    large = small + 1e7
    large[0] = np.nextafter(large[0], np.inf)  # the least that can be told apart there
    assert np.ptp(large - small) > 0
    for first, second in ((large, small), (small, large)):
        with pytest.raises(stats.Refused, match="the difference is the same in all 4"):
            stats.paired_t(first, second)
    assert stats.paired_t(large, small * 1.01).n == (4, 4)
