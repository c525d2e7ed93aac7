"""OPD, AOPD, MOPD, their null and the pooling of task orders: by hand, by brute force, and as properties."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite import stats
from cglsuite.base.errors import UsageError

COLUMNS = ["order", "seed", "item", "value"]


def tidy(*rows: tuple[str, int, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def random_frame(n_orders: int, n_seeds: int, n_items: int, random_seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(random_seed).random((n_orders, n_seeds, n_items))
    return tidy(*((f"o{o}", s, f"t{i}", float(v)) for (o, s, i), v in np.ndenumerate(values)))


HAND = tidy(
    ("1,0", 0, "a", 0.9),
    ("1,0", 0, "b", 0.1),
    ("0,1", 0, "a", 0.2),
    ("0,1", 0, "b", 0.3),
    ("1,0", 1, "a", 0.5),
    ("1,0", 1, "b", 0.5),
    ("0,1", 1, "a", 0.4),
    ("0,1", 1, "b", 1.0),
)


def test_by_hand() -> None:
    """Two orders, two seeds, two items."""
    found = stats.opd(HAND).set_index(["seed", "item"])
    assert found["opd"].round(12).to_dict() == {(0, "a"): 0.7, (0, "b"): 0.2, (1, "a"): 0.1, (1, "b"): 0.5}
    assert found.loc[(0, "a"), ["lowest_order", "highest_order"]].tolist() == ["0,1", "1,0"]
    totals = stats.opd_totals(found.reset_index()).set_index("seed")
    assert totals.loc[0, ["aopd", "mopd"]].tolist() == pytest.approx([0.45, 0.7])
    assert totals.loc[1, ["aopd", "mopd"]].tolist() == pytest.approx([0.3, 0.5])
    assert totals["mopd_item"].tolist() == ["a", "b"]


@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_against_loops(n_orders: int, n_seeds: int, n_items: int, random_seed: int) -> None:
    """The same from nested loops, whatever the sequence of the rows."""
    frame = random_frame(n_orders, n_seeds, n_items, random_seed)
    values = {(r.order, r.seed, r.item): r.value for r in frame.itertuples()}
    found = stats.opd(frame.sample(frac=1.0, random_state=random_seed))
    assert len(found) == n_seeds * n_items
    for row in found.itertuples():
        column = [v for (_, seed, item), v in values.items() if (seed, item) == (row.seed, row.item)]
        assert row.opd == max(column) - min(column)
        assert values[row.highest_order, row.seed, row.item] == row.highest == max(column)
        assert row.n_orders == n_orders
    for total in stats.opd_totals(found).itertuples():
        part = found[found["seed"] == total.seed]["opd"]
        assert total.aopd == pytest.approx(part.mean())
        assert total.aopd <= total.mopd + 1e-12 == pytest.approx(part.max())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_expected_range_is_the_mean_over_all_subsets(values: list[float], data: st.DataObject) -> None:
    """The closed form against every subset; the whole gives the plain range, and more draws never a smaller one."""
    n = data.draw(st.integers(1, len(values)))
    subsets = [max(c) - min(c) for c in itertools.combinations(values, n)]
    assert stats.expected_range(values, n) == pytest.approx(np.mean(subsets), abs=1e-12)
    assert stats.expected_range(values, len(values)) == pytest.approx(max(values) - min(values), abs=1e-12)
    ranges = [stats.expected_range(values, m) for m in range(1, len(values) + 1)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(ranges))


def test_expected_range_of_many() -> None:
    """Binomials of 220 over 110 stay exact: the mean of uniform ranges is (n - 1)/(n + 1) of a fine grid."""
    grid = np.linspace(0, 1, 220)
    assert stats.expected_range(grid, 110) == pytest.approx((109 / 111) * 221 / 219, rel=1e-12)
    with pytest.raises(stats.Refused, match="221 of 220"):
        stats.expected_range(grid, 221)
    with pytest.raises(stats.Refused, match="not finite"):
        stats.expected_range([0.0, np.nan], 2)


def test_opd_at_fewer_orders() -> None:
    """Over all pairs of three orders; random subsets agree on average, and are the same at any time."""
    frame = random_frame(5, 2, 3)
    exact = stats.expected_opd(frame, 3)
    drawn = stats.subset_opd(frame, 3, draws=4000)
    assert drawn["aopd"].mean() == pytest.approx(exact["opd"].mean(), abs=0.01)
    assert (drawn["mopd"] >= drawn["aopd"]).all()
    pd.testing.assert_frame_equal(drawn, stats.subset_opd(frame, 3, draws=4000))
    full = stats.opd_totals(stats.opd(frame))
    whole = stats.subset_opd(frame, 5, draws=3)
    assert whole["mopd"].tolist() == pytest.approx([full["mopd"].mean()] * 3)
    assert whole["aopd"].tolist() == pytest.approx([full["aopd"].mean()] * 3)
    with pytest.raises(stats.Refused, match="subsets of 6 of 5 orders"):
        stats.subset_opd(frame, 6)


def test_null_by_hand() -> None:
    """The range over seeds of one order, mean over the orders that have the most seeds."""
    null = stats.null_opd(HAND)
    # order 1,0: a 0.4, b 0.4; order 0,1: a 0.2, b 0.7
    assert null.items["opd"].tolist() == pytest.approx([0.3, 0.55])
    assert null.aopd == pytest.approx(0.425)
    assert null.mopd == pytest.approx((0.4 + 0.7) / 2)
    assert (null.n, null.n_seeds, null.orders) == (2, 2, ("1,0", "0,1"))


def test_null_uses_the_orders_with_the_most_seeds() -> None:
    """One order with many seeds beside many orders with one; and as many draws as were asked for."""
    values = [0.1, 0.5, 0.2, 0.9]
    frame = tidy(*(("a", s, "t", v) for s, v in enumerate(values)), ("b", 0, "t", 0.0), ("c", 0, "t", 0.0))
    null = stats.null_opd(frame)
    assert (null.orders, null.n) == (("a",), 4)
    assert null.aopd == pytest.approx(0.8) == null.mopd
    pairs = [abs(x - y) for x, y in itertools.combinations(values, 2)]
    two = stats.null_opd(frame, 2, draws=3000)
    assert two.aopd == pytest.approx(np.mean(pairs))
    assert two.mopd == pytest.approx(np.mean(pairs), abs=0.02)


def test_the_null_is_what_noise_alone_shows() -> None:
    """Where the order has no effect, the OPD at equal numbers is the null, up to sampling."""
    frame = random_frame(40, 40, 5)
    assert stats.expected_opd(frame, 10)["opd"].mean() == pytest.approx(stats.null_opd(frame, 10).aopd, abs=0.01)


BAD = {
    "single order": (HAND[HAND["order"] == "1,0"], "seed 0 has only one order"),
    "NaN": (
        HAND.assign(value=HAND["value"].where(HAND["value"] != 0.3)),
        r"1 of 8 values are undefined \(NaN\): \(order 0,1, seed 0, item b",
    ),
    "twice": (pd.concat([HAND, HAND.head(1)]), "1 cells occur more than once"),
    "gap": (HAND.drop(index=3), "1 of 4 values .* of seed 0 are missing: 0,1 × b"),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals_name_what_is_wrong(case: str) -> None:
    frame, message = BAD[case]
    with pytest.raises(stats.Refused, match=message):
        stats.opd(frame)


def test_null_refusals() -> None:
    """One seed per order; more draws than seeds; a gap; a column that is not there."""
    with pytest.raises(stats.Refused, match="no order was run with more than one seed"):
        stats.null_opd(HAND[HAND["seed"] == 0])
    with pytest.raises(stats.Refused, match="3 draws from 2 seeds"):
        stats.null_opd(HAND, 3)
    with pytest.raises(stats.Refused, match="of order 0,1 are missing"):
        stats.null_opd(HAND.drop(index=3))
    with pytest.raises(UsageError, match="but item is also required"):
        stats.null_opd(HAND.drop(columns="item"))


# --- task orders among class orders ------------------------------------------------------------------------------------------------


def pooled(orders: Sequence[tuple[tuple[int, ...], ...]], random_seed: int = 0) -> pd.DataFrame:
    """Final accuracies by class and by task of class orders given as tasks."""
    generator, rows = np.random.default_rng(random_seed), []
    for tasks in orders:
        by_class = {c: float(generator.random()) for task in tasks for c in task}
        named = {"order": " | ".join(str(t) for t in tasks), "partition": " | ".join(sorted(str(sorted(t)) for t in tasks)), "seed": 0}
        rows += [named | {"unit": "class", "item": str(c), "value": v} for c, v in by_class.items()]
        rows += [named | {"unit": "task", "item": str(sorted(t)), "value": np.mean([by_class[c] for c in t])} for t in tasks]
    return pd.DataFrame(rows)


def test_task_orders_are_class_orders() -> None:
    """Three orders of the tasks {0,1}, {2,3} (one with the classes inside a task turned round), two of other tasks."""
    orders = [((0, 1), (2, 3)), ((2, 3), (0, 1)), ((3, 2), (0, 1)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    frame = pooled(orders)
    kept, partition = stats.task_orders(frame)
    assert partition == "[0, 1] | [2, 3]"
    assert kept["order"].nunique() == 3
    tasks = stats.opd(kept[kept["unit"] == "task"])
    assert set(tasks["item"]) == {"[0, 1]", "[2, 3]"}
    assert set(tasks["n_orders"]) == {3}
    classes = stats.opd(frame[frame["unit"] == "class"]).set_index("item")
    assert set(classes["n_orders"]) == {5}
    for c in "0123":
        values = frame[(frame["unit"] == "class") & (frame["item"] == c)]["value"]
        assert classes.loc[c, "opd"] == values.max() - values.min()
    with pytest.raises(stats.Refused, match="no two of the 2 orders"):
        stats.task_orders(pooled(orders[2:4]))


def test_a_tie_between_partitions_is_settled_by_name() -> None:
    kept, partition = stats.task_orders(pooled([((2, 0), (1,)), ((1,), (0, 2)), ((0, 1), (2,)), ((2,), (0, 1))]))
    assert partition == "[0, 1] | [2]"
    assert kept["order"].nunique() == 2


# --- blocks ------------------------------------------------------------------------------------------------------------------------


def test_repeats() -> None:
    """A seed with fewer orders is left out by name; a seed of the null too."""
    frame = pd.concat([random_frame(4, 2, 2).iloc[:-2], tidy(("o0", 7, "t0", 0.1), ("o0", 7, "t1", 0.1))])
    kept, left = stats.repeats(frame)
    assert set(kept["seed"]) == {0}
    assert left.set_index("seed")["reason"].to_dict() == {1: "3 of 4 orders", 7: "1 of 4 orders"}
    zipped = tidy(("a", 0, "t", 0.1), ("b", 1, "t", 0.2))
    kept, left = stats.repeats(zipped)
    assert set(kept["seed"]) == {stats.UNSHARED}
    assert left.empty
    assert stats.opd(kept)["opd"].tolist() == pytest.approx([0.1])
    with pytest.raises(stats.Refused, match="needs at least 2 orders, but there is 1"):
        stats.repeats(zipped.head(1))


def test_common_items() -> None:
    """A class that one order leaves over is named with how often it was scored; nothing else is dropped."""
    frame = random_frame(3, 1, 2)
    frame.loc[(frame["order"] == "o1") & (frame["item"] == "t0"), "value"] = np.nan
    kept, left = stats.common_items(frame)
    assert set(kept["item"]) == {"t1"}
    assert left.to_dict("records") == [{"item": "t0", "n_undefined": 1, "reason": "scored in 2 of 3 cells"}]
    kept, left = stats.common_items(frame.dropna())
    assert left["item"].tolist() == ["t0"]
    assert stats.common_items(random_frame(3, 2, 2))[1].empty
