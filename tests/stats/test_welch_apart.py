"""Welch's test of methods as if they had been run apart: SciPy's over one factor, each method's own design errors over crossed ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from cglsuite import stats

RNG = np.random.default_rng(55)
FIRST, SECOND = (level + 0.02 * RNG.normal(size=(5, 4)) + 0.04 * RNG.normal(size=(5, 1)) for level in (0.7, 0.6))


def cells(crossed: bool = True, **orders: list[int]) -> pd.DataFrame:
    """Both methods with crossed seeds, or with seeds of their own in each order; ``orders`` by method, all by default."""
    rows = [
        (method, str(o), str(s) if crossed else f"{o}/{s}", values[o, s])
        for method, values in (("a", FIRST), ("b", SECOND))
        for o in orders.get(method, range(5))
        for s in range(4)
    ]
    return pd.DataFrame(rows, columns=["method", "order", "seed", "value"])


def test_over_one_factor_it_is_scipys() -> None:
    """Seeds of their own are averaged within orders, which are the units; the design's test pairs them."""
    row = stats.compare_methods(cells(crossed=False), test="welch").iloc[0]
    x, y = FIRST.mean(axis=1), SECOND.mean(axis=1)
    expected = scipy_stats.ttest_ind(x, y, equal_var=False)
    interval = expected.confidence_interval(0.95)
    found = row[["statistic", "df", "p", "low", "high", "estimate"]].astype(float).to_list()
    assert found == pytest.approx([expected.statistic, expected.df, expected.pvalue, interval.low, interval.high, x.mean() - y.mean()])
    assert (row["test"], row["paired"], row["replicates"], row["averaged"]) == ("Welch's t", False, "5 orders", "4")
    assert row["g"] == pytest.approx(stats.hedges_g(x, y, paired=False).g)
    assert stats.compare_methods(cells(crossed=False)).iloc[0]["test"] == "paired t"


def test_over_crossed_factors_each_method_has_the_error_of_its_own_design() -> None:
    """By hand from mean squares, never over cells or means of orders."""
    variances, freedoms = [], []
    for values in (FIRST, SECOND):
        n, m = values.shape
        mean, by_order, by_seed = values.mean(), values.mean(axis=1), values.mean(axis=0)
        ms_o, ms_s = m * by_order.var(ddof=1), n * by_seed.var(ddof=1)
        rest = ((values - by_order[:, None] - by_seed[None] + mean) ** 2).sum() / ((n - 1) * (m - 1))
        parts = [(ms_o, n - 1)] if ms_s <= rest else [(ms_o, n - 1), (ms_s, m - 1), (-rest, (n - 1) * (m - 1))]
        assert ms_o > rest
        total = sum(part for part, _ in parts)
        variances.append(total / (n * m))
        freedoms.append(total**2 / sum(part**2 / df for part, df in parts))
    row = stats.compare_methods(cells(), test="welch").iloc[0]
    error = np.sqrt(sum(variances))
    df = sum(variances) ** 2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    t = (FIRST.mean() - SECOND.mean()) / error
    assert row[["statistic", "df", "p"]].astype(float).to_list() == pytest.approx([t, df, 2 * scipy_stats.t.sf(abs(t), df)])
    over_cells = scipy_stats.ttest_ind(FIRST.ravel(), SECOND.ravel(), equal_var=False)
    assert row["p"] > 10 * over_cells.pvalue


def test_methods_need_no_cells_in_common() -> None:
    """The design's test is refused where cells are missing; run apart, both have a mean with an error."""
    frame = cells(crossed=False, a=[0, 1, 2, 3], b=[1, 2, 3, 4])
    assert "missing cells" in stats.compare_methods(frame).iloc[0]["refused"]
    row = stats.compare_methods(frame, test="welch").iloc[0]
    expected = scipy_stats.ttest_ind(FIRST[:4].mean(axis=1), SECOND[1:].mean(axis=1), equal_var=False)
    assert (row["refused"], row["p"]) == ("", pytest.approx(expected.pvalue))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (cells(a=[0, 1]), "replicated over|a test needs at least 3"),
        (cells().assign(value=lambda frame: np.where(frame["method"] == "b", 0.5, frame["value"])), "the value is the same in all"),
        (cells(a=[0]), "replicated over"),
    ],
    ids=["two orders", "no spread", "one order"],
)
def test_what_has_no_error_is_refused(frame: pd.DataFrame, reason: str) -> None:
    row = stats.compare_methods(frame, test="welch").iloc[0]
    assert pd.Series([row["refused"]]).str.contains(reason).all(), row["refused"]
    assert (row["verdict"], row["better"]) == ("refused", "")


@pytest.mark.parametrize(("units", "seeds"), [(5, 1), (10, 1), (6, 4)])
def test_random_splits_have_the_error_of_nadeau_and_bengio(units: int, seeds: int) -> None:
    """``σ² (1 / n + n_test / n_train)`` on the split component."""
    overlap, rng = 0.25, np.random.default_rng(units)
    values = rng.normal(size=(units, 1)) * 2 + rng.normal(size=(units, seeds))
    if seeds == 1:
        found = stats.mean_estimate(values[:, 0], ("split",), overlap=overlap)
        assert found.error**2 == pytest.approx(values.var(ddof=1) * (1 / units + overlap))
        return
    a, b, rest = (float(square) for square in stats.mean_squares(values))
    found = stats.mean_estimate(values, ("split", "seed"), overlap=overlap)
    expected = (a - rest) / seeds * (1 / units + overlap) + max(0.0, b - rest) / units / seeds + rest / (units * seeds)
    assert found.error**2 == pytest.approx(expected)
    assert stats.mean_estimate(values, ("order", "seed"), overlap=overlap).error < found.error


def test_splits_are_units_with_that_error_and_have_no_wilcoxon() -> None:
    rows = [(m, str(s), level + 0.01 * x) for m, level in (("a", 0.7), ("b", 0.69)) for s, x in enumerate(RNG.normal(size=8))]
    frame = pd.DataFrame(rows, columns=["method", "split", "value"])
    alone, mended = (stats.compare_methods(frame, overlap=overlap).iloc[0] for overlap in (0.0, 0.25))
    assert mended["statistic"] == pytest.approx(alone["statistic"] / np.sqrt(1 + 0.25 * 8))
    assert "independent pairs" in stats.compare_methods(frame, overlap=0.25, test="wilcoxon").iloc[0]["refused"]
    with pytest.raises(stats.Refused, match="no number of splits"):
        stats.units_needed(0.001, 0.02, overlap=0.25)
