"""What a caller asks for reaches the numbers: levels, bounds, units and seeds, each against SciPy or by hand; refusals count in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats

FIVE = np.array([0.31, 0.42, 0.38, 0.55, 0.47])
OTHER = np.array([0.21, 0.39, 0.33, 0.36, 0.41])
TWELVE = 0.5 + 0.1 * np.sin(np.arange(12.0))


def ends(found: Any) -> tuple[float, float]:
    return float(found.low), float(found.high)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_levels_of_intervals_and_tests(level: float) -> None:
    expected = scipy_stats.t.interval(level, 4, loc=FIVE.mean(), scale=scipy_stats.sem(FIVE))
    mean = stats.mean_interval(FIVE, level=level)
    assert (ends(mean), mean.level, mean.n) == (pytest.approx(expected), level, 5)
    pairs: list[tuple[Any, Any]] = [
        (stats.paired_t(FIVE, OTHER, level=level), scipy_stats.ttest_rel(FIVE, OTHER)),
        (stats.welch(FIVE, OTHER, level=level), scipy_stats.ttest_ind(FIVE, OTHER, equal_var=False)),
    ]
    for ours, theirs in pairs:
        assert ends(ours) == pytest.approx(ends(theirs.confidence_interval(level)))
        assert (ours.statistic, ours.p, ours.df) == pytest.approx((theirs.statistic, theirs.pvalue, theirs.df))
        assert (ours.level, ours.n, ours.estimate) == (level, (5, 5), pytest.approx(FIVE.mean() - OTHER.mean()))
    signed = stats.wilcoxon(TWELVE, TWELVE[::-1] + 0.01, level=level)
    for end, inwards in ((signed.low, 1e-9), (signed.high, -1e-9)):  # what the exact test rejects lies outside, and nothing else
        inside, outside = (scipy_stats.wilcoxon(TWELVE - (TWELVE[::-1] + 0.01) - end - step).pvalue for step in (inwards, -inwards))
        assert outside <= 1.0 - level < inside


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_levels_of_bootstraps(level: float) -> None:
    """By SciPy with the same draws; another seed draws otherwise."""
    one = scipy_stats.bootstrap((TWELVE,), np.mean, confidence_level=level, n_resamples=10_000, method="BCa", rng=np.random.default_rng(3))
    found = stats.mean_interval(TWELVE, level=level, random_seed=3)
    width = found.high - found.low
    assert ends(found) == pytest.approx(ends(one.confidence_interval), abs=0.05 * width)
    assert ends(found) != ends(stats.mean_interval(TWELVE, level=level))
    assert ends(stats.difference_interval(TWELVE, 0 * TWELVE, paired=True, level=level, random_seed=3)) == ends(found)
    both = stats.difference_interval(TWELVE, TWELVE[:10] - 1.0, paired=False, level=level)
    error = math.sqrt(np.var(TWELVE) / 12 + np.var(TWELVE[:10]) / 10)
    reach = scipy_stats.norm.ppf(0.5 + level / 2) * error
    middle = TWELVE.mean() - TWELVE[:10].mean() + 1.0
    assert ends(both) == pytest.approx((middle - reach, middle + reach), abs=0.2 * reach)
    assert (both.n, both.level, both.method) == (10, level, "BCa")


def test_both_ends_are_cut_at_the_bounds() -> None:
    """Of one factor and of two crossed ones."""
    wide = np.array([0.0, 0.9, 0.5])
    assert ends(stats.mean_interval(wide)) == pytest.approx((-0.654, 1.587), abs=0.001)
    assert ends(stats.mean_interval(wide, bounds=(0.0, 1.0))) == (0.0, 1.0)
    rows = [{"order": f"o{k}", "split": "0", "seed": "0", "value": value} for k, value in enumerate(wide)]
    design = stats.layout(pd.DataFrame(rows), None)
    assert ends(stats.layout_interval(design, bounds=(0.0, 1.0))) == (0.0, 1.0)
    assert ends(stats.layout_interval(design, level=0.5)) == ends(stats.mean_interval(wide, level=0.5))
    cells = [
        {
            "order": f"o{o}",
            "split": "0",
            "seed": str(s),
            "value": 0.5 + 0.3 * math.sin(3 * o) + 0.2 * math.cos(5 * s) + 0.1 * math.sin(o * s),
        }
        for o in range(4)
        for s in range(3)
    ]
    crossed = stats.layout(pd.DataFrame(cells), None)
    free, cut = stats.layout_interval(crossed), stats.layout_interval(crossed, bounds=(0.3, 0.6))
    assert free.low < 0.3 < 0.6 < free.high
    assert (ends(cut), cut.method, cut.n) == ((0.3, 0.6), "quasi-F", 12)
    narrow = stats.layout_interval(crossed, level=0.5)
    assert free.low < narrow.low < narrow.high < free.high


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: stats.mean_interval([1.0], unit="orders"), "1 order: an interval needs at least 3"),
        (lambda: stats.mean_interval([1.0, 2.0], unit="orders"), "2 orders: an interval needs at least 3"),
        (lambda: stats.welch([1.0], FIVE, unit="seeds"), "1 seed: a test needs at least 3 in each sample"),
        (lambda: stats.welch(FIVE, [1.0, 2.0], unit="seeds"), "2 seeds: a test needs at least 3 in each sample"),
        (lambda: stats.welch(FIVE, [1.0, 1.0, 1.0], unit="seeds"), "all 3 seeds of one method are equal, so there is no"),
        (lambda: stats.paired_t(FIVE, FIVE - 0.1, unit="seeds"), "the difference is the same in all 5 seeds, so there is no variance"),
        (lambda: stats.paired_t(FIVE, FIVE[:4], unit="seeds"), "the samples have 5 and 4 seeds, but a paired test needs equal numbers"),
        (lambda: stats.paired_t(FIVE, [np.nan, 1, 2, np.inf, 3], unit="seeds"), "2 of 5 seeds are undefined"),
        (
            lambda: stats.wilcoxon(FIVE, OTHER, unit="orders"),
            "the samples differ in only 5 orders, so the p-value .* cannot be below 0.0625",
        ),
        (
            lambda: stats.difference_interval(TWELVE[:9], TWELVE, paired=False, unit="orders"),
            "with 9 orders, a bootstrap interval is too narrow",
        ),
    ],
)
def test_refusals_count_in_words(ask: Any, message: str) -> None:
    with pytest.raises(stats.Refused, match=f"^{message}"):
        ask()


def test_ten_values_are_enough_for_a_bootstrap_and_six_for_signed_ranks() -> None:
    assert stats.difference_interval(TWELVE[:10], TWELVE[2:], paired=False).method == "BCa"
    assert (stats.mean_interval(TWELVE[:9]).method, stats.mean_interval(TWELVE[:10]).method) == ("t", "BCa")
    assert stats.wilcoxon(TWELVE[:6], TWELVE[:6] - np.arange(1.0, 7.0)).p == pytest.approx(2 / 64)


def offset_of(values: np.ndarray, **more: Any) -> stats.Offset:
    rows, units = values.shape
    frame = pd.DataFrame([{"row": r, "unit": u, "value": float(values[r, u])} for r in range(rows) for u in range(units)])
    published = pd.DataFrame({"row": range(rows), "block": "a", "mean": 0.0, "error": 0.0, "df": 9.0})
    return stats.joint_offset(frame, published, **more)


def test_offsets_without_an_interval() -> None:
    """One repetition, two, or no spread at all; three are enough."""
    assert offset_of(np.ones((2, 1))).reason == "a data set has 1 repetition: an interval needs at least 3"
    assert offset_of(np.ones((2, 2))).reason == "a data set has 2 repetitions: an interval needs at least 3"
    flat = offset_of(np.full((2, 4), 0.5))
    assert (flat.reason, flat.mean, flat.higher, flat.certain) == ("no value has any spread", 0.5, 2, False)
    three = offset_of(np.array([[0.1, 0.2, 0.4]]))
    assert (three.reason, math.isfinite(three.low)) == ("", True)
    narrow = offset_of(np.array([[0.1, 0.2, 0.4]]), level=0.5)
    ratio = scipy_stats.t.ppf(0.75, 2) / scipy_stats.t.ppf(0.975, 2)
    assert (narrow.high - narrow.low) / (three.high - three.low) == pytest.approx(ratio)
    assert offset_of(np.array([[-0.1, -0.1, -0.11]])).certain


def test_one_method_without_an_effect_of_orders() -> None:
    """The moment of orders is negative, so it is set to 0 and its square pooled with the residual's, by hand."""
    values = np.array([[0.5, 0.62, 0.68], [0.52, 0.58, 0.7], [0.49, 0.61, 0.71], [0.51, 0.6, 0.69]])
    frame = pd.DataFrame([{"method": "m", "order": f"o{o}", "seed": s, "value": float(v)} for (o, s), v in np.ndenumerate(values)])
    mean = values.mean()
    by_order, by_seed = values.mean(axis=1) - mean, values.mean(axis=0) - mean
    sums = 3 * (by_order**2).sum(), 4 * (by_seed**2).sum(), ((values - mean - by_order[:, None] - by_seed) ** 2).sum()
    moments = stats.moment_components(frame)
    assert moments["order"] == pytest.approx((sums[0] / 3 - sums[2] / 6) / 3)
    assert moments["seed"] == pytest.approx((sums[1] / 2 - sums[2] / 6) / 4)
    assert moments["order"] < 0
    rest = (sums[0] + sums[2]) / 9
    found = stats.variance_components(frame)
    assert dict(found.variances) == {"order": 0.0, "seed": pytest.approx((sums[1] / 2 - rest) / 4), "rest": pytest.approx(rest, rel=1e-4)}
    assert found.notes == ("the data give no positive order component: it is set to 0",)
