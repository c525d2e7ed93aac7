"""The default path from cells to verdicts: paired and independent samples, families, refusals, and how often it is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError, UsageError


def design(orders: int = 4, seeds: int = 3, methods: str = "abc", step: float = 0.05, random_seed: int = 0) -> pd.DataFrame:
    """Methods a step apart in shared orders, with seeds of their own in every order; columns method, order, seed, value."""
    generator = np.random.default_rng(random_seed)
    common = generator.normal(0, 0.05, orders)
    rows = []
    for (m, method), o in itertools.product(enumerate(methods), range(orders)):
        own = generator.normal(0, 0.01)
        rows += [(method, f"o{o}", 10 * o + s, 0.5 + step * m + common[o] + own + generator.normal(0, 0.01)) for s in range(seeds)]
    return pd.DataFrame(rows, columns=["method", "order", "seed", "value"])


def order_means(frame: pd.DataFrame, method: str) -> np.ndarray:
    return frame[frame["method"] == method].groupby("order")["value"].mean().to_numpy()


def one(frame: pd.DataFrame, **how: object) -> dict[str, object]:
    """The only comparison of a frame of two methods."""
    found = stats.compare_methods(frame, **how)  # type: ignore[arg-type]
    assert len(found) == 1
    return dict(found.iloc[0])


def test_shared_orders_are_paired_on_their_means() -> None:
    """All pairs; the numbers are those of the paired test of order means, and Holm's over the family."""
    frame = design()
    found = stats.compare_methods(frame)
    assert list(found.columns) == stats.COMPARISON_COLUMNS
    assert list(zip(found["first"], found["second"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in found.to_dict("records"):
        expected = stats.paired_t(order_means(frame, row["first"]), order_means(frame, row["second"]))
        for name in ("estimate", "low", "high", "statistic", "df", "p"):
            assert row[name] == pytest.approx(getattr(expected, name)), name
        assert (row["unit"], row["n"], row["n_second"], row["averaged"], row["given"]) == ("order", 4, 4, "3", "")
        assert (row["paired"], row["test"], row["refused"]) == (True, "paired t", "")
    assert found["p_adjusted"].to_numpy() == pytest.approx(stats.adjust(found["p"]))
    assert found["verdict"].tolist() == ["b is better", "c is better", "c is better"]
    down = stats.compare_methods(frame, higher_is_better=False)
    assert down["verdict"].tolist() == ["a is better", "a is better", "b is better"]


def test_rows_may_come_in_any_sequence() -> None:
    frame = design()
    shuffled = frame.sample(frac=1.0, random_state=1)
    pairs = [("a", "b"), ("b", "c")]
    pd.testing.assert_frame_equal(stats.compare_methods(frame, pairs=pairs), stats.compare_methods(shuffled, pairs=pairs))


def test_orders_with_seeds_of_their_own_are_paired_all_the_same() -> None:
    """One seed per order: order and seed go together."""
    row = one(design(seeds=1, methods="ab"))
    assert (row["unit"], row["n"], row["averaged"], row["paired"], row["given"]) == ("order", 4, "1", True, "")


def test_unshared_orders_take_welch() -> None:
    frame = design(orders=4, methods="ab")
    frame.loc[frame["method"] == "b", ["order", "seed"]] = (frame["order"] + "'").to_frame("order").assign(seed=frame["seed"] + 100)
    row = one(frame)
    expected = stats.welch(order_means(frame, "a"), order_means(frame, "b"))
    assert (row["test"], row["paired"], row["n"], row["n_second"]) == ("Welch's t", False, 4, 4)
    assert (row["p"], row["df"]) == pytest.approx((expected.p, expected.df))
    assert row["standardiser"] == "std within methods"
    assert "share no order" in str(one(frame, test="wilcoxon")["refused"])


def test_a_single_order_makes_a_claim_on_that_order() -> None:
    """The unit is the seed, paired where seeds are shared; the verdict says so."""
    frame = design(orders=1, seeds=5, methods="ab", step=0.2)
    row = one(frame)
    assert (row["unit"], row["n"], row["given"], row["paired"]) == ("seed", 5, "order o0", True)
    assert row["verdict"] == "b is better, in this one order only"
    frame.loc[frame["method"] == "b", "seed"] += 100
    assert (one(frame)["test"], one(frame)["unit"]) == ("Welch's t", "seed")


def test_seeds_within_a_split_are_no_replicates_of_splits() -> None:
    """One order, three splits, two seeds each: the unit is the split."""
    parts = [design(orders=1, seeds=2, methods="ab", random_seed=s).assign(split=s) for s in range(3)]
    parts = [part.assign(seed=part["seed"] + 10 * s) for s, part in enumerate(parts)]
    row = one(pd.concat(parts))
    assert (row["unit"], row["n"], row["averaged"], row["given"]) == ("split", 3, "2", "order o0")
    two = one(pd.concat(parts[:2]))
    assert two["refused"] == "2 splits: a test needs at least 3 in each sample"


Change = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[f["order"].isin(["o0", "o1"])], "2 orders: a test needs at least 3"),
        (lambda f: f[~((f["method"] == "b") & (f["order"] == "o1"))], r"1 of 4 orders were run with only one of the methods \(o1\)"),
        (lambda f: f[~((f["order"] == "o1") & (f["seed"] == 12))], "are 2 to 3 cells per order"),
        (lambda f: f[~((f["method"] == "b") & (f["order"] == "o1") & (f["seed"] == 12))], r"has a result in 1 of 4 orders \(o1\)"),
        (lambda f: f[~((f["method"] == "b") & (f["seed"] % 10 == 2))], r"has a result in 4 of 4 orders \(o0; o1; o2 and 1 more\)"),
        (lambda f: f.assign(value=f["value"].where(f.index != 4)), "undefined"),
        (lambda f: pd.concat([f, f.head(1)]), "1 cells occur more than once"),
        (lambda f: f.assign(value=0.5), "the difference is the same in all 4 orders"),
        (lambda f: f[(f["method"] == "a") | (f["order"] == "o0")], "3 of 4 orders were run with only one of the methods"),
    ],
)
def test_refusals_have_no_p(change: Change, message: str) -> None:
    """And the row says why; the other columns that need a test are empty."""
    row = stats.compare_methods(change(design(methods="ab"))).iloc[0]
    assert row["verdict"] == "refused"
    assert pd.Series([row["refused"]]).str.contains(message).all(), row["refused"]
    assert row[["p", "p_adjusted", "statistic", "estimate", "g"]].isna().all()


def test_a_refusal_weighs_on_the_family_and_on_nothing_else() -> None:
    """One method lacks an order: its pairs are refused, the third is adjusted over all three."""
    frame = design()
    whole = stats.compare_methods(frame, pairs=[("a", "b")]).iloc[0]
    found = stats.compare_methods(frame[~((frame["method"] == "c") & (frame["order"] == "o2"))])
    assert found["refused"].map(bool).tolist() == [False, True, True]
    assert found.iloc[0]["p"] == pytest.approx(whole["p"])
    assert found.iloc[0]["p_adjusted"] == pytest.approx(3 * whole["p"])


def test_declared_families() -> None:
    frame = design()
    assert stats.compare_methods(frame, against="a")[["first", "second"]].to_numpy().tolist() == [["b", "a"], ["c", "a"]]
    with pytest.raises(UnknownNameError, match="method of this frame 'd'"):
        stats.compare_methods(frame, against="d")
    with pytest.raises(UnknownNameError, match="unknown test"):
        stats.compare_methods(frame, test="z")
    with pytest.raises(UsageError, match="the frame has 1 method, but a comparison needs at least two"):
        stats.compare_methods(frame[frame["method"] == "a"])
    with pytest.raises(UsageError, match="but value is also required"):
        stats.compare_methods(frame.drop(columns="value"))
    with pytest.raises(UsageError, match="at least one of order, split, seed"):
        stats.compare_methods(frame[["method", "value"]])
    with pytest.raises(UsageError, match="alpha = 5"):
        stats.compare_methods(frame, alpha=5)


def alike(n: int, *, orders: int, seeds: int, shared: bool, ratio: float) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """``n`` campaigns of two methods whose expectations are equal, and their pairs: methods a0 and b0, a1 and b1, ..."""
    generator, parts = np.random.default_rng([n, orders, seeds, shared, int(ratio)]), []
    common = generator.normal(0, 0.02, (n, orders))
    for letter, scale in (("a", 1.0), ("b", ratio)):
        effect = common if shared else generator.normal(0, 0.02 * scale, (n, orders))
        effect = effect + generator.normal(0, 0.02 * scale, (n, orders))
        values = effect[:, :, None] + generator.normal(0, 0.02 * scale, (n, orders, seeds))
        run, order, seed = (axis.ravel() for axis in np.indices(values.shape))
        mine = "" if shared else letter
        names = {"method": [f"{letter}{r}" for r in run], "order": [f"{mine}{o}" for o in order]}
        names |= {"seed": [f"{mine}{o}/{s}" for o, s in zip(order, seed, strict=True)]}
        parts.append(pd.DataFrame({**names, "value": values.ravel()}))
    return pd.concat(parts, ignore_index=True), [(f"a{r}", f"b{r}") for r in range(n)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ratio", [1.0, 4.0], ids=["equal variances", "unequal variances"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared orders", "unshared orders"])
def test_false_positives_of_the_default_path(shared: bool, ratio: float) -> None:
    """Between 3 and 7% at alpha = 0.05 with nested seeds, where counting seeds as replicates finds far more (the same data).

    The tests of order means are SciPy's; those of the default path are equal to them.
    """
    frame, pairs = alike(2000, orders=5, seeds=5, shared=shared, ratio=ratio)
    values = frame["value"].to_numpy().reshape(2, 2000, 5, 5)
    test: Any = scipy.stats.ttest_rel if shared else partial(scipy.stats.ttest_ind, equal_var=False)
    p = test(*values.mean(axis=3), axis=1).pvalue
    assert 0.03 <= (p < 0.05).mean() <= 0.07
    some = stats.compare_methods(frame[frame["method"].isin([name for pair in pairs[:40] for name in pair])], pairs=pairs[:40])
    np.testing.assert_allclose(some["p"], p[:40], rtol=1e-9)
    assert (test(*values.reshape(2, 2000, 25), axis=1).pvalue < 0.05).mean() > 0.15


def above_but_once(n: int, step: float, collapse: float) -> pd.DataFrame:
    """Method a is above b in all orders but the last, where it collapses so far that its mean is below b's."""
    differences = [step * (1 + 0.01 * i) for i in range(n - 1)] + [collapse]
    rows = [("a", o, 5.0 + d) for o, d in enumerate(differences)] + [("b", o, 5.0) for o in range(n)]
    return pd.DataFrame(rows, columns=["method", "order", "value"])


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize(("n", "step", "collapse"), [(20, 0.01, -3.0), (12, 0.01, -0.9), (13, 0.002, -0.4)])
def test_one_collapse_does_not_turn_the_direction_of_ranks(n: int, step: float, collapse: float, higher_is_better: bool) -> None:
    frame = above_but_once(n, step, collapse)
    row = one(frame, test="wilcoxon", higher_is_better=higher_is_better)
    assert frame.groupby("method")["value"].mean().diff()["b"] > 0, "by means b is above a"
    assert row["p"] < 0.05
    assert row["estimate"] > 0
    better = "a" if higher_is_better else "b"
    assert (row["better"], row["verdict"]) == (better, f"{better} is better")


def test_an_estimate_of_zero_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cglsuite.stats.compare.wilcoxon", lambda *a, **k: replace(stats.wilcoxon(*a, **k), estimate=0.0))
    row = one(above_but_once(20, 0.01, -3.0), test="wilcoxon")
    assert row["p"] < 0.05
    assert (row["better"], row["verdict"]) == ("", stats.NO_DIFFERENCE)
