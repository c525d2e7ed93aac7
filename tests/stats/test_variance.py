"""Variance components: mean squares and REML on complete blocks of crossed orders and seeds, and data that cannot carry a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from cglsuite import stats

STD = (0.06, 0.04, 0.05, 0.03, 0.03, 0.02)
"""Standard deviations of order, method × order, seed, method × seed, order × seed and the rest."""


def simulated(methods: int, orders: int, seeds: int, std: tuple[float, ...] = STD, random_seed: int = 0) -> pd.DataFrame:
    noise = np.random.default_rng(random_seed).normal
    shapes = [(1, orders, 1), (methods, orders, 1), (1, 1, seeds), (methods, 1, seeds), (1, orders, seeds), (methods, orders, seeds)]
    values = 0.5 + 0.05 * np.arange(methods)[:, None, None] + sum(s * noise(size=shape) for s, shape in zip(std, shapes, strict=True))
    return pd.DataFrame([{"method": f"m{m}", "order": f"o{o}", "seed": s, "value": float(v)} for (m, o, s), v in np.ndenumerate(values)])


def fitted_by_statsmodels(frame: pd.DataFrame, names: tuple[str, ...] = stats.COMPONENTS) -> dict[str, float]:
    """MixedLM with crossed random effects: one group, a variance component per effect."""
    import statsmodels.formula.api as smf

    formulas = {"order": "C(order)", "seed": "C(seed)", "method_order": "C(method):C(order)", "method_seed": "C(method):C(seed)"}
    formulas |= {"order_seed": "C(order):C(seed)"}
    effects = {name: f"0 + {formula}" for name, formula in formulas.items() if name in names}
    scaled = frame.assign(value=20 * frame["value"], everything=1)
    fixed = "value ~ 0 + C(method)" if frame["method"].nunique() > 1 else "value ~ 1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = smf.mixedlm(fixed, scaled, groups="everything", re_formula="0", vc_formula=effects)
        fit = model.fit(reml=True, method="powell")
    found = dict(zip(sorted(effects), fit.vcomp, strict=True)) | {"rest": fit.scale}
    return {name: float(value) / 400 for name, value in found.items()}


def test_positive_moments_are_the_estimates() -> None:
    found = stats.variance_components(simulated(3, 12, 8))
    assert min(found.moments.values()) > 0
    assert dict(found.variances) == dict(found.moments)
    assert (tuple(found.variances), found.notes) == (stats.COMPONENTS, ())
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert (found.n_methods, found.n_orders, found.n_seeds) == (3, 12, 8)


def test_moments_against_an_analysis_of_variance() -> None:
    """Mean squares of statsmodels' three-way table, solved for the components by hand."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    frame = simulated(3, 4, 5)
    terms = "C(method) + C(order) + C(seed) + C(method):C(order) + C(method):C(seed) + C(order):C(seed)"
    squares = sm.stats.anova_lm(smf.ols(f"value ~ {terms}", frame).fit())["mean_sq"]
    o, s, rest = squares["C(order)"], squares["C(seed)"], squares["Residual"]
    mo, ms, os = squares["C(method):C(order)"], squares["C(method):C(seed)"], squares["C(order):C(seed)"]
    expected = [(o - mo - os + rest) / 15, (mo - rest) / 5, (s - ms - os + rest) / 12, (ms - rest) / 4, (os - rest) / 3, rest]
    assert list(stats.moment_components(frame).values()) == pytest.approx(expected)


def restricted_likelihood(frame: pd.DataFrame, variances: dict[str, float]) -> float:
    """-2 log of it up to a constant, from the covariance matrix of all cells: log |V| + log |X' V⁻¹ X| + r' V⁻¹ r."""
    columns = {"order": ["order"], "method_order": ["method", "order"], "seed": ["seed"], "method_seed": ["method", "seed"]}
    columns |= {"order_seed": ["order", "seed"], "rest": ["method", "order", "seed"]}
    covariance = np.zeros((len(frame), len(frame)))
    for name, variance in variances.items():
        group = frame.groupby(columns[name], sort=False).ngroup().to_numpy()
        covariance += variance * (group[:, None] == group[None, :])
    fixed = pd.get_dummies(frame["method"]).to_numpy(dtype=float)
    inverse = np.linalg.inv(covariance)
    information = fixed.T @ inverse @ fixed
    y = frame["value"].to_numpy()
    residual = y - fixed @ np.linalg.solve(information, fixed.T @ inverse @ y)
    return float(np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1] + residual @ inverse @ residual)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "std", [STD, (0.05, 0.0, 0.0, 0.0, 0.0, 0.03), (0.0, 0.03, 0.05, 0.0, 0.03, 0.02), (0.0, 0.0, 0.0, 0.0, 0.0, 0.05)]
)
def test_no_other_place_is_more_likely(std: tuple[float, ...]) -> None:
    """The restricted likelihood of all cells, computed from their covariance matrix; components at 0 say so."""
    at_zero = 0
    for random_seed in range(4):
        frame = simulated(3, 4, 4, std, random_seed)
        found = stats.variance_components(frame)
        zero = [name for name, value in found.variances.items() if value == 0.0]
        at_zero += len(zero)
        assert found.notes == tuple(f"the data give no positive {name} component: it is set to 0" for name in zero)
        best = restricted_likelihood(frame, dict(found.variances))
        for name, value in found.variances.items():
            for other in (0.9 * value, 1.1 * value, value + 2e-5):
                assert restricted_likelihood(frame, dict(found.variances) | {name: other}) >= best - 1e-6, name
    assert at_zero or 0.0 not in std


def test_reml_is_that_of_statsmodels() -> None:
    """As near as its optimiser comes."""
    frame = simulated(3, 6, 4, random_seed=3)
    expected = fitted_by_statsmodels(frame)
    assert dict(stats.variance_components(frame).variances) == pytest.approx({name: expected[name] for name in stats.COMPONENTS}, rel=5e-2)


def test_truth_is_found() -> None:
    """With many orders and seeds the components are near those that made the data."""
    found = stats.variance_components(simulated(6, 80, 60))
    assert dict(found.variances) == pytest.approx({name: s**2 for name, s in zip(stats.COMPONENTS, STD, strict=True)}, rel=0.4)


def test_one_method() -> None:
    """Order, seed and the rest only."""
    frame = simulated(1, 10, 6)
    found = stats.variance_components(frame)
    assert set(found.variances) == {"order", "seed", "rest"}
    assert dict(found.variances) == pytest.approx(fitted_by_statsmodels(frame, ("order", "seed")), rel=5e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[f["seed"] < 2], "2 seeds: variance components need at least 3"),
        (lambda f: f[f["order"].isin(["o0", "o1"])], "2 orders: variance components need at least 3"),
        (lambda f: f.drop(index=4), r"1 of 30 cells \(method × order × seed\) are missing: m0 × o1 × 1"),
        (lambda f: f.assign(value=f["value"].where(f.index != 4)), r"undefined \(NaN\): \(method m0, order o1, seed 1\)"),
        (lambda f: pd.concat([f, f.head(2)]), "2 cells occur more than once"),
        (lambda f: f.assign(value=0.5), "exact sums of method, order and seed effects"),
    ],
)
def test_refusals(change: object, message: str) -> None:
    frame = simulated(2, 5, 3)
    with pytest.raises(stats.Refused, match=message):
        stats.variance_components(change(frame))  # type: ignore[operator]
