"""The expected best of n trials, against all subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cglsuite.stats import Refused, expected_best


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_against_brute_force(scores: list[float]) -> None:
    """Mean and standard deviation over all subsets of every size."""
    frame = expected_best(scores)
    for row in frame.itertuples():
        best = [max(some) for some in itertools.combinations(scores, row.n)]
        assert row.mean == pytest.approx(np.mean(best))
        assert row.std == pytest.approx(np.std(best), abs=1e-7)


def test_ends_and_order() -> None:
    """One trial: the mean of all; all trials: the best, without doubt; never falling between. Large N does not overflow."""
    scores = np.sin(np.arange(2000.0))
    frame = expected_best(list(scores))
    assert list(frame["n"]) == list(range(1, 2001))
    assert frame["mean"].iloc[0] == pytest.approx(scores.mean())
    assert (frame["mean"].iloc[-1], frame["std"].iloc[-1]) == (scores.max(), 0.0)
    assert (frame["mean"].diff().dropna() >= -1e-12).all()


@pytest.mark.parametrize("scores", [[], [0.5, float("nan")]])
def test_refused(scores: list[float]) -> None:
    """A missing score is not a low one."""
    with pytest.raises(Refused, match="some trials have no finite score"):
        expected_best(scores)
