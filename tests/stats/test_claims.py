"""Claims: pairs that print separates, verdicts of paired runs, power; SciPy and counting by hand as references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UsageError


def holm(p: list[float]) -> list[float]:
    """By hand: the k-th smallest of m times m - k + 1, never falling."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = highest
    return adjusted


def test_pairs_of_a_block_are_welchs_tests_of_what_is_printed() -> None:
    means, deviations, n = [90.3, 56.9, 93.8, 90.3], [1.8, 12.6, 1.3, 1.8], [10, 10, 10, 3]
    pairs = stats.printed_pairs(means, deviations, n)
    assert len(pairs) == 6
    by_hand, places = [], [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for i, j in places:
        error = math.sqrt(deviations[i] ** 2 / n[i] + deviations[j] ** 2 / n[j])
        parts = [deviations[k] ** 2 / n[k] for k in (i, j)]
        df = sum(parts) ** 2 / sum(part**2 / (n[k] - 1) for part, k in zip(parts, (i, j), strict=True))
        by_hand.append(float(2 * scipy_stats.t.sf(abs(means[i] - means[j]) / error, df)))
    for pair, (i, j), p, adjusted in zip(pairs, places, by_hand, holm(by_hand), strict=True):
        assert {pair.better, pair.worse} == {i, j}
        assert means[pair.better] >= means[pair.worse]
        assert pair.difference == pytest.approx(abs(means[i] - means[j]))
        assert (pair.p, pair.p_holm) == (pytest.approx(p), pytest.approx(adjusted))


def test_the_better_method_forgets_less_where_lower_is_better() -> None:
    (pair,) = stats.printed_pairs([10.0, 30.0], [1.0, 1.0], [5, 5], higher_is_better=False)
    assert (pair.better, pair.worse, pair.difference) == (0, 1, 20.0)
    assert stats.printed_pairs([10.0], [1.0], [5]) == []
    with pytest.raises(UsageError, match="positive standard deviation"):
        stats.printed_pairs([10.0, 30.0], [0.0, 1.0], [5, 5])


def test_a_deviation_over_n_becomes_that_of_a_sample() -> None:
    values = np.array([1.0, 2.0, 4.0])
    assert stats.sample_deviation(float(values.std()), 3, 0) == pytest.approx(float(values.std(ddof=1)))
    assert stats.sample_deviation(1.5, 3, 1) == stats.sample_deviation(1.5, 3, None) == 1.5


def test_verdicts_depend_on_separation_and_sign() -> None:
    verdicts, p = stats.claim_verdicts([2.0, 0.1, -0.1, -2.0, math.nan], [0.001, 0.6, 0.6, 0.002, math.nan])
    assert verdicts == ["confirmed", "same sign", "opposite sign", "reversed", "no verdict"]
    assert p[:2] == pytest.approx([0.005, 1.0])  # the untested claim stays in the family
    assert math.isnan(p[4])
    assert stats.claim_verdicts([0.0], [1.0])[0] == ["no verdict"]
    assert stats.claim_verdicts([2.0, -1.0], [0.04, 0.04])[0] == ["same sign", "opposite sign"]  # neither survives Holm


def test_power_is_at_the_level_of_the_strictest_step() -> None:
    power, runs = stats.claim_power(2.0, 5, 4.0, 10)
    level = 0.05 / 10
    critical = scipy_stats.t.ppf(1 - level / 2, 4)
    assert power == pytest.approx(float(scipy_stats.nct.sf(critical, 4, 4.0 / 2.0 * math.sqrt(5))), abs=1e-6)
    assert runs is not None
    at = [float(scipy_stats.nct.sf(scipy_stats.t.ppf(1 - level / 2, n - 1), n - 1, 2.0 * math.sqrt(n))) for n in (runs - 1, runs)]
    assert at[0] < 0.8 <= at[1]
    assert stats.claim_power(2.0, 5, 1e-6, 10)[1] is None


def test_a_switch_flips_a_difference_that_it_separates_the_other_way_round() -> None:
    assert stats.flips([1.0, 2.0, 3.0], [4.0, 5.1, 6.2], was=3.0)
    assert not stats.flips([1.0, 2.0, 3.0], [4.0, 5.1, 6.2], was=-3.0)
    assert not stats.flips([1.0, 2.0, 3.0], [4.0, 5.1, 6.2], was=3.0, tried=1000)
    assert not stats.flips([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], was=3.0)  # no spread, no test
