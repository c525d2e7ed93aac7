"""Ranks of methods within orders: by hand, against SciPy, and as properties."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, rankdata

from cglsuite import stats


def tidy(values: np.ndarray) -> pd.DataFrame:
    """From ``[orders, methods]``."""
    return pd.DataFrame([{"order": f"o{o}", "method": f"m{m}", "value": float(v)} for (o, m), v in np.ndenumerate(values)])


HAND = np.array([[0.9, 0.5, 0.5], [0.1, 0.8, 0.7], [0.6, 0.5, 0.4], [0.3, 0.3, 0.3]])


def test_by_hand() -> None:
    """A tie shares ranks and counts half a win."""
    assert stats.ranks(tidy(HAND)).to_numpy().tolist() == [[1, 2.5, 2.5], [3, 1, 2], [1, 2, 3], [2, 2, 2]]
    shares = stats.win_shares(tidy(HAND))
    assert shares.loc["m0", "m1"] == pytest.approx((1 + 0 + 1 + 0.5) / 4)
    assert shares.loc["m1", "m2"] == pytest.approx((0.5 + 1 + 1 + 0.5) / 4)
    assert np.isnan(np.diag(shares)).all()
    assert stats.win_shares(tidy(HAND), higher_is_better=False).loc["m1", "m0"] == shares.loc["m0", "m1"]
    assert stats.ranks(tidy(HAND), higher_is_better=False).iloc[1].tolist() == [1, 3, 2]


@given(st.integers(3, 8), st.integers(2, 5), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_against_scipy_and_loops(n_orders: int, n_methods: int, random_seed: int) -> None:
    """Coarse values give many ties."""
    values = np.random.default_rng(random_seed).integers(0, 4, (n_orders, n_methods)) / 4
    frame = tidy(values)
    assert np.array_equal(stats.ranks(frame), np.array([rankdata(-row) for row in values]))
    shares = stats.win_shares(frame)
    for a, b in itertools.permutations(range(n_methods), 2):
        wins = sum((row[a] > row[b]) + 0.5 * (row[a] == row[b]) for row in values)
        assert shares.iloc[a, b] == pytest.approx(wins / n_orders)
        assert shares.iloc[a, b] + shares.iloc[b, a] == pytest.approx(1.0)
    if n_methods > 2 and any(len(set(row)) > 1 for row in values):
        chi2 = friedmanchisquare(*values.T).statistic
        assert stats.kendalls_w(frame) == pytest.approx(chi2 / (n_orders * (n_methods - 1)))


def test_concordance_at_its_ends() -> None:
    """The same ranking everywhere is 1; each of three methods first, second and third equally often is 0."""
    assert stats.kendalls_w(tidy(np.tile([0.1, 0.2, 0.3], (4, 1)))) == pytest.approx(1.0)
    assert stats.kendalls_w(tidy(np.array([[1, 2, 3], [2, 3, 1], [3, 1, 2]]))) == pytest.approx(0.0)


def test_equal_but_for_rounding_is_a_tie() -> None:
    assert stats.ranks(tidy(np.array([[0.1 + 0.2, 0.3]]))).to_numpy().tolist() == [[1.5, 1.5]]


def test_order_means() -> None:
    """Seeds within an order are averaged; different numbers of seeds are refused."""
    rows = [("m", o, s, v) for (o, s), v in {("a", 0): 0.2, ("a", 1): 0.4, ("b", 0): 0.5, ("b", 1): 0.7}.items()]
    frame = pd.DataFrame(rows, columns=["method", "order", "seed", "value"])
    found = stats.order_means(frame)
    assert found["value"].tolist() == pytest.approx([0.3, 0.6])
    assert found["n_seeds"].tolist() == [2, 2]
    with pytest.raises(stats.Refused, match="there are 1 to 2 seeds"):
        stats.order_means(frame.head(3))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (tidy(HAND[:, :1]), "a ranking needs at least 2 methods, but there is 1"),
        (tidy(HAND).drop(index=4), "1 of 12 values .* are missing: o1 × m1"),
        (tidy(np.where(HAND == 0.8, np.nan, HAND)), r"undefined \(NaN\): \(method m1, order o1\)"),
        (tidy(HAND[:2]), "2 orders"),
        (tidy(np.full((3, 3), 0.5)), "all methods are tied"),
    ],
)
def test_refusals(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(stats.Refused, match=message):
        stats.kendalls_w(frame)


def test_complete_block() -> None:
    """Seeds of a null and orders with a gap stay outside, with the reason."""
    rows = [(m, o, s, 0.1 * s) for m in "xy" for o in "abcd" for s in range(3)]
    rows += [(m, "a", s, 0.0) for m in "xy" for s in range(3, 9)]
    frame = pd.DataFrame(rows, columns=["method", "order", "seed", "value"])
    frame = frame[~((frame["method"] == "y") & (frame["order"] == "c") & (frame["seed"] == 1))]
    block, left = stats.complete_block(frame)
    assert set(block["order"]) == {"a", "b", "d"}
    assert set(block["seed"]) == {0, 1, 2}
    assert len(block) == 18
    assert left["reason"].value_counts().to_dict() == {"its seed was run with few orders": 12, "its order lacks a cell": 5}
    with pytest.raises(stats.Refused, match="no order has all 2 cells"):
        stats.complete_block(pd.DataFrame({"method": ["x", "y"], "order": ["a", "b"], "seed": [0, 0], "value": [1.0, 2.0]}))
