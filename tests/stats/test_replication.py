"""The design of cells in every field: factors, values, what is averaged, given or the population, and the words for each; and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cglsuite.base.errors import UsageError
from cglsuite.stats import Cells, Refused, layout
from cglsuite.stats.refusal import require_complete, require_frame
from cglsuite.stats.replication import replicates


def cells(orders: Any, seeds: Any, own: bool = False) -> pd.DataFrame:
    """Every order with every seed; ``own``: seeds of its own in each order. The value tells order and seed."""
    rows = [(f"o{o}", 100 * o + s if own else s, o + s / 16) for o, s in itertools.product(orders, seeds)]
    return pd.DataFrame(rows, columns=["order", "seed", "value"])


def test_one_factor() -> None:
    """Orders in the sequence in which they come, each the mean of its own seeds."""
    found = layout(cells([2, 0, 1], [0, 1], own=True))
    assert (found.factors, found.labels, found.averaged) == (("order",), (("o2", "o0", "o1"),), 2)
    np.testing.assert_array_equal(found.values, [2 + 1 / 32, 1 / 32, 1 + 1 / 32])
    assert (found.unit, found.text, found.description) == ("order", "3 orders", "3 orders, 2 cells each")
    assert (dict(found.given), found.population) == ({}, "")


def test_two_factors() -> None:
    found = layout(cells([1, 0], [3, 0, 5]))
    assert (found.factors, found.labels, found.averaged) == (("order", "seed"), (("o1", "o0"), (3, 0, 5)), 1)
    np.testing.assert_array_equal(found.values, [[1 + 3 / 16, 1, 1 + 5 / 16], [3 / 16, 0, 5 / 16]])
    assert (found.unit, found.text, found.description) == ("order × seed", "2 orders × 3 seeds", "2 orders × 3 seeds, crossed")


@pytest.mark.parametrize(
    ("orders", "seeds", "in_all", "description", "given"),
    [
        (4, 1, None, "4 orders, with one seed", {"seed": "0"}),
        (1, 3, None, "3 seeds, in one order", {"order": "o0"}),
        (1, 1, None, "1 seed, in one order", {"order": "o0", "seed": "0"}),
        (4, 3, 4, "3 seeds, over all 4 orders", {}),
        (4, 3, 24, "4 orders × 3 seeds, crossed", {}),
        (4, 3, 3, "4 orders × 3 seeds, crossed", {}),
    ],
)
def test_a_design_in_words(orders: int, seeds: int, in_all: int | None, description: str, given: dict[str, str]) -> None:
    found = layout(cells(range(orders), range(seeds)), in_all)
    assert (found.description, dict(found.given)) == (description, given)
    assert found.population == ("all 4 orders" if "over" in description else "")
    if found.population:
        assert (found.factors, found.averaged) == (("seed",), 4)
        np.testing.assert_allclose(found.values, 1.5 + np.arange(3) / 16)


def test_the_orders_are_the_population_only_with_shared_seeds() -> None:
    """With a seed of its own in each order, orders stay the factor; with one seed for all there is nothing to repeat."""
    own = layout(cells(range(3), [0], own=True), 3)
    assert (own.factors, own.population, own.averaged) == (("order",), "", 1)
    with pytest.raises(Refused, match="^all 3 orders were run with one seed; since these orders are the whole population"):
        layout(cells(range(3), [0]), 3)
    gap = cells(range(3), range(3)).drop(index=4)
    for in_all in (None, 3):
        with pytest.raises(Refused, match=r"^missing cells: 1 of 9 \(order × seed\): order o1 with seed 1"):
            layout(gap, in_all)


def test_unequal_numbers_of_cells_are_refused() -> None:
    frame = cells(range(3), range(3), own=True).drop(index=[0])
    says = "^there are 2 to 3 cells per order, so the order means are not equally precise; run the missing cells$"
    with pytest.raises(Refused, match=says):
        layout(frame)
    for empty in (frame.iloc[:0], cells([], [])):
        with pytest.raises(Refused, match="^a method has no finished cell$"):
            layout(empty)
        for pair in ((empty, frame), (frame, empty), (empty, empty)):
            with pytest.raises(Refused, match="a method has no finished cell"):
                replicates(*pair)


def shifted(frame: pd.DataFrame, by: float = 1.0, **moved: Any) -> pd.DataFrame:
    """Another method's values, in cells that ``moved`` renames."""
    return frame.assign(value=frame["value"] + by, **{name: frame[name].map(rename) for name, rename in moved.items()})


def test_methods_with_the_same_cells_are_paired() -> None:
    """Cell by cell, in whatever sequence the second comes."""
    first = cells(range(3), range(2))
    found = replicates(first, shifted(first).iloc[::-1])
    assert (found.factors, found.paired, found.averaged, found.unit, found.text) == (
        *(("order", "seed"), True, (1, 1), "order × seed", "3 orders × 2 seeds"),
    )
    np.testing.assert_array_equal(found.second - found.first, np.ones((3, 2)))
    np.testing.assert_array_equal(found.first[1], [1, 1 + 1 / 16])


def test_methods_with_seeds_of_their_own_are_paired_by_order() -> None:
    first, second = cells(range(3), [0, 1], own=True), cells(range(3), [7, 8, 9], own=True)
    found = replicates(first, shifted(second).iloc[::-1])
    assert (found.factors, found.paired, found.averaged, found.text) == (("order",), True, (2, 3), "3 orders")
    np.testing.assert_allclose(found.second - found.first, 1 + 8 / 16 - 0.5 / 16)


def test_methods_that_share_no_unit_are_independent() -> None:
    first = cells(range(3), [0], own=True)
    second = shifted(cells(range(4), [9], own=True), order=lambda name: f"{name}'")
    found = replicates(first, second)
    assert (found.paired, found.text, found.unit) == (False, "3 and 4 orders", "order")
    np.testing.assert_array_equal(found.second, [1 + o + 9 / 16 for o in range(4)])
    assert (dict(found.given), found.population) == ({}, "")


def test_what_is_given_and_the_population_are_those_of_both() -> None:
    one = cells(range(4), [0])
    assert dict(replicates(one, shifted(one)).given) == {"seed": "0"}
    whole = cells(range(4), range(3))
    found = replicates(whole, shifted(whole), 4)
    assert (found.population, found.factors, found.averaged, found.text) == ("all 4 orders", ("seed",), (4, 4), "3 seeds")
    np.testing.assert_allclose(found.second - found.first, 1.0)


def test_a_methods_design_is_worked_out_once_however_many_it_is_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("cglsuite.stats.replication.layout", lambda *args: calls.append(1) or layout(*args))
    frame = cells(range(4), range(3))
    methods = [Cells(shifted(frame, by), 4) for by in range(5)]
    for first, second in itertools.combinations(methods, 2):
        found, afresh = replicates(first, second), replicates(first.frame, second.frame, 4)
        np.testing.assert_array_equal(found.second - found.first, afresh.second - afresh.first)
        assert (found.population, found.text) == (afresh.population, afresh.text) == ("all 4 orders", "3 seeds")
    assert len(calls) == 5 + 2 * 10


def test_levels_that_only_one_method_has_are_left_out() -> None:
    first = cells(range(3), [0])
    found = replicates(Cells(first), Cells(shifted(first).drop(columns="seed")))
    assert (found.factors, dict(found.given)) == (("order",), {})


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (cells(range(3), [0]), cells(range(3), [1]), "one method was run only with seed 0, the other only with seed 1"),
        (
            cells(range(3), range(3)),
            cells(range(3), range(3), own=True).assign(seed=lambda f: f["seed"] + 1000),
            "one method is replicated over order × seed, the other over order; run both in the same cells",
        ),
        (
            cells(range(3), range(3)),
            cells(range(4), range(3)),
            "missing cells: 1 of 4 orders were run with only one of the methods (o3); run the rest, or compare over the 3 shared ones",
        ),
        (
            cells(range(6), range(3)),
            cells(range(1), range(3)),
            "missing cells: 5 of 6 orders were run with only one of the methods (o1; o2; o3 and 2 more); run the rest, or compare over "
            "the 1 shared ones",
        ),
        (
            cells(range(3), range(3)),
            cells(range(3), range(1, 4)),
            "some cells are missing: not every method has a result in 3 of 3 orders (o0; o1; o2)",
        ),
        (
            cells(range(3), range(3)),
            cells(range(3), range(3, 6)),
            "order × seed are crossed, but the methods do not share them; run both in the same cells",
        ),
    ],
)
def test_methods_that_cannot_be_compared(first: pd.DataFrame, second: pd.DataFrame, says: str) -> None:
    with pytest.raises(Refused) as error:
        replicates(first, second)
    assert str(error.value) == says


def test_frames_are_checked_first() -> None:
    """Columns, undefined values, cells that come twice: the first three are named, the others counted."""
    frame = cells(range(5), [0])
    require_frame(frame, ["order", "seed"])
    with pytest.raises(UsageError, match="^the frame has the columns order, seed, value, but split, score is also required$"):
        require_frame(frame, ["order", "split"], "score")
    undefined = frame.assign(value=[1.0, np.nan, np.nan, np.nan, 1.0])
    with pytest.raises(Refused, match=r"^3 of 5 values are undefined \(NaN\): \(order o1\); \(order o2\); \(order o3\)$"):
        require_frame(undefined, ["order"])
    with pytest.raises(Refused, match=r"^4 of 5 values .*: \(order o0, seed 0\); \(order o1, seed 0\); \(order o2, seed 0\) and 1 more$"):
        require_frame(frame.assign(value=[np.nan] * 4 + [1.0]), ["order", "seed"])
    with pytest.raises(Refused, match=r"^1 cells occur more than once: \(order o0, seed 0\)$"):
        require_frame(pd.concat([frame, frame.iloc[:1]]), ["order", "seed"])
    with pytest.raises(Refused, match=r"^4 cells occur more than once: \(seed 0\); \(seed 0\); \(seed 0\) and 1 more$"):
        require_frame(frame, ["seed"])


def test_tables_are_complete() -> None:
    """Every gap is counted; of one level or two, the first three are named."""
    table = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["o0", "o1"], columns=["x", "y"])
    require_complete(table, "cells")
    with pytest.raises(Refused, match="^1 of 4 cells are missing: o1 × x$"):
        require_complete(table.replace(3.0, np.nan), "cells")
    with pytest.raises(Refused, match="^4 of 4 pairs are missing: o0 × x; o0 × y; o1 × x and 1 more$"):
        require_complete(table * np.nan, "pairs")
