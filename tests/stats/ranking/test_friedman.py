"""Friedman's test and Nemenyi's comparisons: Demšar's worked example, SciPy, the studentised range, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats


def long(table: np.ndarray) -> pd.DataFrame:
    """A row per method and block from values ``[blocks, methods]``."""
    rows = [(f"m{m}", f"b{b}", float(value)) for (b, m), value in np.ndenumerate(table)]
    return pd.DataFrame(rows, columns=["method", "order", "value"])


def test_critical_differences_of_demsar() -> None:
    """Demšar (2006), table 5: q_0.05 = 2.569 for 4 methods, 2.343 for 3, 3.164 for 10; his example of 14 data sets."""
    for k, q in ((2, 1.960), (3, 2.343), (4, 2.569), (10, 3.164)):
        assert stats.critical_difference(k, 6) == pytest.approx(q * np.sqrt(k * (k + 1) / 36), abs=6e-4 * k)
    assert stats.critical_difference(4, 14, alpha=0.1) == pytest.approx(2.291 * np.sqrt(20 / 84), abs=1e-3)


def test_against_scipy_and_the_studentised_range() -> None:
    """Higher is better: the highest value has rank 1; a pair at the critical difference has p = alpha."""
    values = np.random.default_rng(5).normal(size=(8, 4)) + np.array([0.0, 0.5, 1.0, 2.5])
    found = stats.friedman(long(values))
    ranks = scipy_stats.rankdata(-values, axis=1)
    assert found.average_ranks.to_numpy() == pytest.approx(ranks.mean(axis=0))
    expected = scipy_stats.friedmanchisquare(*values.T)
    assert (found.statistic, found.p, found.df, found.n_blocks) == pytest.approx((expected.statistic, expected.pvalue, 3, 8))
    gap = abs(ranks[:, 0].mean() - ranks[:, 3].mean())
    q = gap / np.sqrt(4 * 5 / (6 * 8)) * np.sqrt(2)
    assert found.nemenyi.loc["m0", "m3"] == pytest.approx(scipy_stats.studentized_range.sf(q, 4, np.inf))
    near = found.average_ranks.to_numpy()
    apart = np.abs(near[:, None] - near[None, :]) > found.critical_difference
    assert ((found.nemenyi.to_numpy() < 0.05) == apart).all()
    assert found.separates == (found.p <= 0.05)
    lower = stats.friedman(long(values), higher_is_better=False)
    assert lower.average_ranks.to_numpy() == pytest.approx(5 - ranks.mean(axis=0))


def test_between_five_and_ten_percent_nothing_separates() -> None:
    """The level is 5% unless another is given; the critical difference is that of the same level."""
    values = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])
    usual, lenient = stats.friedman(long(values)), stats.friedman(long(values), alpha=0.1)
    assert 0.05 < usual.p < 0.1
    assert (usual.alpha, usual.separates) == (0.05, False)
    assert (lenient.alpha, lenient.separates) == (0.1, True)
    assert usual.critical_difference == stats.critical_difference(3, 3) == stats.critical_difference(3, 3, 0.05)
    assert lenient.critical_difference == stats.critical_difference(3, 3, 0.1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.arange(6.0).reshape(3, 2), "2 methods: Friedman's test needs at least 3"),
        (np.arange(6.0).reshape(2, 3), "2 blocks: Friedman's test needs at least 3"),
        (np.ones((4, 3)), "all 3 methods are tied in all 4 blocks"),
    ],
)
def test_refusals(values: np.ndarray, message: str) -> None:
    with pytest.raises(stats.Refused, match=message):
        stats.friedman(long(values))


def test_too_few_blocks_to_tell_anything_apart() -> None:
    """At a strict level even always first and always last are nearer than the critical difference."""
    with pytest.raises(stats.Refused, match="cannot differ by more than 2"):
        stats.friedman(long(np.arange(9.0).reshape(3, 3)), alpha=0.01)


def test_a_missing_cell_is_named() -> None:
    frame = long(np.random.default_rng(0).normal(size=(4, 3)))
    with pytest.raises(stats.Refused, match="1 of 12 values .* b1 × m1"):
        stats.friedman(frame.drop(index=4))
