"""Adjusted p values by hand, and what a refused comparison counts."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError, UsageError


def test_holm_by_hand() -> None:
    """Times 4, 3, 2, 1 from the smallest on, never falling."""
    assert stats.adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_is_scipys() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert stats.adjust(p, "benjamini-hochberg") == pytest.approx(scipy_stats.false_discovery_control(p))
    assert stats.adjust(p, "benjamini-hochberg") == pytest.approx([0.02, 0.04, 0.04, 0.02])


@pytest.mark.parametrize("method", stats.ADJUSTMENTS)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_refused_comparison_stays_in_the_family(method: str, p: list[float]) -> None:
    """It counts as p = 1, and no adjusted p is below its own."""
    adjusted = stats.adjust([*p, np.nan], method)
    assert np.isnan(adjusted[-1])
    assert adjusted[:-1] == pytest.approx(stats.adjust([*p, 1.0], method)[:-1])
    assert (adjusted[:-1] >= np.array(p) - 1e-15).all()
    assert (adjusted[:-1] <= 1).all()


def test_the_collector_that_statsmodels_calls_searches_nothing_that_was_there_before() -> None:
    """A search among thousands of records takes a second, in every adjustment."""
    left_out: list[int] = []
    before = gc.get_freeze_count()  # 0, except in Python 3.12 or if an earlier test has frozen something

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            left_out.append(gc.get_freeze_count())

    gc.callbacks.append(note)
    try:
        stats.adjust([0.01, 0.04])
    finally:
        gc.callbacks.remove(note)
    assert left_out
    assert min(left_out) > 10_000
    assert gc.get_freeze_count() <= before


def test_what_somebody_else_has_frozen_stays_frozen() -> None:
    kept: list[list[int]] = [[] for _ in range(10_000)]  # others of the frozen may be freed at any time
    gc.freeze()
    try:
        stats.adjust([0.01, 0.04])
        assert gc.get_freeze_count() >= len(kept)
    finally:
        gc.unfreeze()


def test_wrong_input() -> None:
    assert np.isnan(stats.adjust([np.nan, np.nan])).all()
    with pytest.raises(UsageError, match=r"outside 0 to 1: 1\.2"):
        stats.adjust([0.1, 1.2])
    with pytest.raises(UnknownNameError, match="Did you mean 'holm'"):
        stats.adjust([0.1], "hol")
