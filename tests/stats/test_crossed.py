"""Crossed orders and seeds: the quasi-F by hand and against statsmodels, what designs are taken for, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats


def drawn(shape: tuple[int, int], order: float, seed: float, rest: float, random_seed: int = 0) -> np.ndarray:
    """Differences with these standard deviations by order, by seed and within."""
    noise = np.random.default_rng(random_seed).normal
    return order * noise(size=(shape[0], 1)) + seed * noise(size=(1, shape[1])) + rest * noise(size=shape)


def frame_of(values: np.ndarray, method: str = "a") -> pd.DataFrame:
    return pd.DataFrame(
        [(method, f"o{o}", s, float(v)) for (o, s), v in np.ndenumerate(values)], columns=["method", "order", "seed", "value"]
    )


def two(values: np.ndarray) -> pd.DataFrame:
    """A method whose differences from another are the given ones; what both share of an order is much larger."""
    common = 0.5 + drawn(values.shape, 0.3, 0.2, 0.1, 9)
    return pd.concat([frame_of(common + values, "a"), frame_of(common, "b")])


def test_mean_squares_are_those_of_an_analysis_of_variance() -> None:
    """Of statsmodels, for a two-way layout without replication."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    values = drawn((5, 4), 0.03, 0.02, 0.01)
    table = sm.stats.anova_lm(smf.ols("value ~ C(order) + C(seed)", frame_of(values)).fit())
    found = stats.mean_squares(values)
    assert [float(one) for one in found] == pytest.approx(list(table["mean_sq"]))


def test_the_quasi_f_by_hand() -> None:
    """(MS_A + MS_B - MS_E) / (O S), and Satterthwaite's degrees of freedom."""
    values = drawn((6, 5), 0.03, 0.02, 0.01)
    a, b, rest = (float(one) for one in stats.mean_squares(values))
    assert min(a, b) > rest
    total = a + b - rest
    df = total**2 / (a**2 / 5 + b**2 / 4 + rest**2 / 20)
    row = stats.compare_methods(two(values)).iloc[0]
    assert (row["test"], row["unit"], row["replicates"], row["n"]) == ("crossed quasi-F", "order × seed", "6 orders × 5 seeds", 30)
    assert (row["estimate"], row["df"]) == pytest.approx((values.mean(), df))
    assert row["statistic"] == pytest.approx(values.mean() / np.sqrt(total / 30))
    assert row["p"] == pytest.approx(2 * scipy_stats.t.sf(abs(row["statistic"]), df))
    assert (row["low"], row["high"]) == pytest.approx(scipy_stats.t.interval(0.95, df, loc=values.mean(), scale=np.sqrt(total / 30)))
    assert (row["low"] < 0 < row["high"]) == (row["p"] > 0.05) == (row["g_low"] < 0 < row["g_high"])
    assert (row["given"], row["population"], row["averaged"]) == ("", "", "1")


@pytest.mark.parametrize(("order", "seed"), [(0.03, 0.0), (0.0, 0.03), (0.0, 0.0)])
def test_a_negative_component_is_left_out(order: float, seed: float) -> None:
    """The variance is then that of the other factor alone, or of the rest."""
    seen = 0
    for random_seed in range(40):
        values = drawn((5, 4), order, seed, 0.02, random_seed)
        a, b, rest = (float(one) for one in stats.mean_squares(values))
        _, error, df = stats.quasi_f(values)
        if a > rest > b:
            expected = (a, 4)
        elif b > rest > a:
            expected = (b, 3)
        elif rest > max(a, b):
            expected = (rest, 12)
        else:
            continue
        seen += 1
        assert (20 * float(error) ** 2, float(df)) == pytest.approx(expected)
    assert seen > 5


def test_many_layouts_at_once_are_the_same() -> None:
    values = np.stack([drawn((4, 5), 0.02, 0.02, 0.02, k) for k in range(6)])
    for name, found in zip(("mean", "error", "df"), stats.quasi_f(values), strict=True):
        one_by_one = [getattr(stats.mean_estimate(part, ("order", "seed")), name) for part in values]
        assert found == pytest.approx(one_by_one), name


def test_a_seed_shared_by_all_orders_counts_once() -> None:
    """One seed favours a method in all 30 orders: a test over orders is sure of it, the quasi-F is not."""
    values = drawn((30, 4), 0.002, 0.02, 0.002, 5)
    row = stats.compare_methods(two(values)).iloc[0]
    over_orders = scipy_stats.ttest_1samp(values.mean(axis=1), 0.0)
    assert over_orders.pvalue < 1e-6 < 0.05 < row["p"]
    assert row["verdict"] == stats.NO_DIFFERENCE


def test_one_seed_makes_a_claim_on_that_seed() -> None:
    """120 orders with one shared seed."""
    row = stats.compare_methods(two(0.02 + drawn((120, 1), 0.01, 0.0, 0.01))).iloc[0]
    assert (row["test"], row["unit"], row["given"]) == ("paired t", "order", "seed 0")
    assert row["verdict"] == "a is better, with this one seed only"


def test_orders_that_are_all_there_are_the_population() -> None:
    """The order term drops out: Student's t over the means of seeds. With one seed there is nothing to test against."""
    values = 0.02 + drawn((6, 5), 0.05, 0.004, 0.004)
    row = stats.compare_methods(two(values), orders_in_all=6).iloc[0]
    expected = scipy_stats.ttest_1samp(values.mean(axis=0), 0.0)
    assert (row["test"], row["unit"], row["population"], row["averaged"]) == ("paired t", "seed", "all 6 orders", "6")
    assert (row["statistic"], row["p"], row["df"]) == pytest.approx((expected.statistic, expected.pvalue, 4))
    assert row["p"] < stats.compare_methods(two(values)).iloc[0]["p"]
    assert stats.compare_methods(two(values), orders_in_all=24).iloc[0]["unit"] == "order × seed"
    refused = stats.compare_methods(two(values[:, :1]), orders_in_all=6).iloc[0]
    assert (
        refused["refused"]
        == "all 6 orders were run with one seed; since these orders are the whole population, only additional seeds can be replicates"
    )


@pytest.mark.parametrize(
    ("cells", "factors"),
    [
        ([(o, 0, s) for o, s in itertools.product(range(4), range(3))], ("order", "seed")),
        ([(o, 0, o) for o in range(4)], ("order",)),
        ([(o, o, o) for o in range(4)], ("order",)),
        ([(o, 0, 10 * o + s) for o, s in itertools.product(range(4), range(3))], ("order",)),
        ([(o, s, s) for o, s in itertools.product(range(4), range(3))], ("order", "split")),
        ([(0, p, s) for p, s in itertools.product(range(4), range(3))], ("split", "seed")),
        ([(0, p, 10 * p + s) for p, s in itertools.product(range(4), range(3))], ("split",)),
        ([(o, 0, o // 2) for o in range(8)], ("seed",)),
        ([(0, 0, s) for s in range(4)], ("seed",)),
        ([(0, 0, 0)], ("seed",)),
    ],
)
def test_factors_of_a_design(cells: list[tuple[int, int, int]], factors: tuple[str, ...]) -> None:
    """Nested factors are averaged, in whichever direction; those that vary together are one."""
    frame = pd.DataFrame(cells, columns=["order", "split", "seed"]).assign(value=np.arange(len(cells), dtype=float))
    found = stats.layout(frame)
    assert found.factors == factors
    assert found.values.size * found.averaged == len(cells)
    assert float(found.values.mean()) == pytest.approx(float(frame["value"].mean()))


def test_designs_in_words() -> None:
    crossed = frame_of(drawn((5, 3), 1, 1, 1)).drop(columns="method")
    assert stats.layout(crossed).description == "5 orders × 3 seeds, crossed"
    assert stats.layout(crossed, 5).description == "3 seeds, over all 5 orders"
    assert stats.layout(crossed[crossed["seed"] == 0]).description == "5 orders, with one seed"
    assert stats.layout(crossed[crossed["order"] == "o0"]).description == "3 seeds, in one order"
    own = crossed.assign(seed=crossed["order"] + crossed["seed"].astype(str))
    assert stats.layout(own).description == "5 orders, 3 cells each"


@pytest.mark.parametrize(
    ("shape", "ok"),
    [((3, 3), True), ((10, 3), True), ((3, 10), True), ((11, 3), False), ((3, 120), False), ((120, 4), True), ((5, 2), False)],
)
def test_designs_that_keep_the_level(shape: tuple[int, int], ok: bool) -> None:
    assert stats.admissible(*shape) == ok
    row = stats.compare_methods(two(drawn(shape, 0.02, 0.02, 0.02))).iloc[0]
    assert (row["refused"] == "") == ok
    assert ok or row["verdict"] == "refused"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[f["seed"] < 2], "4 orders × 2 seeds: a test needs at least 3 of each"),
        (lambda f: f[f["order"].isin(["o0", "o1"])], "2 orders × 3 seeds: a test needs at least 3 of each"),
        (lambda f: f.drop(index=4), r"missing cells: 1 of 12 \(order × seed\): order o1 with seed 1"),
        (lambda f: f.assign(value=0.5), "the difference is the same in all 12 cells"),
        (
            lambda f: f.assign(split=f["seed"] % 2, seed=f["seed"] // 2),
            "4 orders × 2 splits × 2 seeds, crossed: tests support at most two",
        ),
    ],
)
def test_refusals(change: Any, message: str) -> None:
    frame = two(drawn((4, 3), 0.02, 0.02, 0.02)).reset_index(drop=True)
    changed = pd.concat([change(part.reset_index(drop=True)) for _, part in frame.groupby("method")])
    row = stats.compare_methods(changed).iloc[0]
    assert pd.Series([row["refused"]]).str.contains(message).all(), row["refused"]
    assert row["verdict"] == "refused"


def test_three_crossed_factors_have_no_test() -> None:
    cells = [(o, p, s, 0.1 * o + p * s) for o, p, s in itertools.product(range(3), range(3), range(3))]
    frame = pd.DataFrame(cells, columns=["order", "split", "seed", "value"])
    with pytest.raises(stats.Refused, match="3 orders × 3 splits × 3 seeds, crossed: tests support at most two crossed factors"):
        stats.layout(frame)


def test_methods_that_do_not_share_crossed_factors() -> None:
    """Neither other seeds in the same orders nor other orders; and Wilcoxon's test is for one factor."""
    frame = two(drawn((4, 3), 0.02, 0.02, 0.02))
    for axis, other in (("seed", frame["seed"] + 100), ("order", frame["order"] + "'")):
        moved = frame.assign(**{axis: frame[axis].where(frame["method"] == "a", other)})
        assert "order × seed are crossed, but the methods do not share them" in stats.compare_methods(moved).iloc[0]["refused"]
    assert (
        "Wilcoxon's signed-rank test supports only pairs over one factor"
        in stats.compare_methods(frame, test="wilcoxon").iloc[0]["refused"]
    )
    one = frame[frame["seed"] == 0]
    moved = one.assign(seed=one["seed"].where(one["method"] == "a", 7))
    assert stats.compare_methods(moved).iloc[0]["refused"] == "one method was run only with seed 0, the other only with seed 7"


def test_the_interval_of_a_mean_over_crossed_factors() -> None:
    values = 0.5 + drawn((6, 4), 0.03, 0.03, 0.01)
    found = stats.layout_interval(stats.layout(frame_of(values)))
    mean, error, df = (float(one) for one in stats.quasi_f(values))
    assert (found.low, found.high) == pytest.approx(scipy_stats.t.interval(0.95, df, loc=mean, scale=error))
    assert found.method == "quasi-F"
    assert stats.layout_interval(stats.layout(frame_of(values)), bounds=(0.499, 0.501)).high == 0.501


@pytest.mark.parametrize("seed_std", [0.0, 0.01, 0.02])
def test_size_of_the_quasi_f(seed_std: float) -> None:
    """At most 6.5% in 2,000 campaigns of 5 × 4 cells without a difference, whatever the seeds do."""
    noise = np.random.default_rng([4, int(100 * seed_std)]).normal
    n = 2000
    values = 0.02 * noise(size=(n, 5, 1)) + seed_std * noise(size=(n, 1, 4)) + 0.02 * noise(size=(n, 5, 4))
    mean, error, df = stats.quasi_f(values)
    assert (2 * scipy_stats.t.sf(abs(mean) / error, df) < 0.05).mean() <= 0.065
