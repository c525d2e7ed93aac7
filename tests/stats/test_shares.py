"""Shares of rows within the margin: limits that are known, one table and several at once, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cglsuite import stats

BLOCKS = ["a"] * 5 + ["b"] * 5


def test_precise_rows_count_themselves() -> None:
    """With hardly any error the share is that of the differences: 8 of 10."""
    differences = [0.1, -0.2, 0.5, 1.0, 9.0, -1.5, 0.3, -7.0, 0.0, 1.9]
    for scale in stats.PRIOR_SCALES:
        (share,) = stats.share_within(differences, [0.01] * 10, [2.0] * 10, BLOCKS, scale=scale, draws=300)
        assert share == (scale, pytest.approx(0.8), pytest.approx(0.8), pytest.approx(0.8))


def test_rows_that_are_undecided_one_by_one_say_much_together() -> None:
    """Differences of 0 with errors of 1.5 points: no row is equivalent by itself, and the table is close."""
    noise = np.random.default_rng(0).normal(0.0, 0.8, 20)
    assert (np.abs(noise) + 1.645 * 1.5 >= 2.0).all()
    (share,) = stats.share_within(noise, [1.5] * 20, [2.0] * 20, [i // 5 for i in range(20)])
    assert share.mean > 0.85
    assert 0.0 <= share.low < share.mean <= share.high <= 1.0


def test_an_offset_of_the_whole_table_is_no_agreement() -> None:
    (share,) = stats.share_within(np.full(10, 4.0), [0.5] * 10, [2.0] * 10, BLOCKS)
    assert share.high < 0.5


def test_several_tables_at_once_are_those_one_by_one_but_for_the_draws() -> None:
    generator = np.random.default_rng(1)
    differences = generator.normal(0.0, [[0.3], [3.0]], (2, 10))
    both = stats.share_within(differences, np.full((2, 10), 0.5), np.full((2, 10), 2.0), BLOCKS, draws=3000)
    for table, share in zip(differences, both, strict=True):
        (alone,) = stats.share_within(table, [0.5] * 10, [2.0] * 10, BLOCKS, draws=3000, seed=7)
        assert share.mean == pytest.approx(alone.mean, abs=0.03)


def test_what_has_no_share() -> None:
    with pytest.raises(stats.Refused, match="the table has 4 rows, but computing a share needs at least 5"):
        stats.share_within([0.0] * 4, [1.0] * 4, [2.0] * 4, "aabb")
    with pytest.raises(stats.Refused, match="some rows lack a difference or a standard error"):
        stats.share_within([0.0] * 5, [1.0, 1.0, 0.0, 1.0, 1.0], [2.0] * 5, "aabbb")
