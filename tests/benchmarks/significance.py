"""How often the verdicts of reports are wrong, by simulation: size, power, and false reversals. A command, not a test.

    python tests/benchmarks/significance.py [--replicates 4000] [--seed 0] [--only TABLE ...] [--write]

``--write`` stores the shares in ``cglsuite/stats/error_rates.json``, which pages quote, and puts them into docs/reference/statistics.md.

The values of two methods are ``y[m, o, s] = δ_m + a_o + c_s + b_mo + d_ms + e_mos``: what an order and a seed do to both methods (0
unless a table says otherwise), method × order (std 2 points), method × seed (0, 1 and 2 points), the rest (2 points). Shares are of
replicates with ``p < 0.05``: size without a difference, power with one and the right sign, reversals with one and the wrong sign.
Replicates go through the functions that reports use, all at once, and the first of every design also through ``compare_methods`` itself:
the p values are the same.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from cglsuite import stats

ROOT = Path(__file__).parents[2]
STORED, PAGE = ROOT / "cglsuite" / "stats" / "error_rates.json", ROOT / "docs" / "reference" / "statistics.md"
BEGIN, END = "<!-- simulated: python tests/benchmarks/significance.py --write -->", "<!-- end of what is simulated -->"
ALPHA, HIGHEST = 0.05, 0.065
ORDER_STD, REST_STD = 0.02, 0.02
SEED_STDS = (0.0, 0.01, 0.02)
DIFFERENCE = 0.04
_DRAWS = 1999
_Values = NDArray[np.float64]
_Sides = tuple[_Values, _Values]


@dataclass(frozen=True)
class Table:
    """Shares in percent by row and column; ``None`` where there is nothing to simulate."""

    caption: str
    columns: list[str]
    rows: dict[str, list[float | None]]
    replicates: int


@dataclass(frozen=True)
class Design:
    """A campaign of two methods.

    Args:
        seeds: ``crossed``: the same in every order; ``own``: other ones in every order; ``one``: a single seed in all orders.
        all_orders: every order there is was run. per_order: seeds in each order.
        unshared: the methods were run in different orders (with own seeds), the second in that many.
    """

    name: str
    orders: int
    per_order: int
    seeds: Literal["crossed", "own", "one"] = "crossed"
    all_orders: bool = False
    unshared: int = 0

    @property
    def refused(self) -> str:
        """Why ``compare_methods`` gives no verdict; empty if it does."""
        return str(stats.compare_methods(frame_of(self, drawn(self, 0.02, 1, 0)), **self.options)["refused"].iloc[0])

    @property
    def options(self) -> dict[str, Any]:
        """Those of ``compare_methods``."""
        return {"orders_in_all": self.orders} if self.all_orders else {}

    @property
    def crossed(self) -> bool:
        """Whether orders and seeds are crossed random factors."""
        return self.seeds == "crossed" and self.orders > 1 and not self.all_orders


ADMISSIBLE = [
    Design("crossed, 3 orders × 3 seeds", 3, 3),
    Design("crossed, 5 orders × 3 seeds", 5, 3),
    Design("crossed, 10 orders × 3 seeds", 10, 3),
    Design("crossed, 5 orders × 5 seeds", 5, 5),
    Design("crossed, 10 orders × 5 seeds", 10, 5),
    Design("crossed, 30 orders × 4 seeds", 30, 4),
    Design("crossed, 30 orders × 5 seeds", 30, 5),
    Design("crossed, 120 orders (drawn) × 5 seeds", 120, 5),
    Design("all 6 orders × 3 seeds", 6, 3, all_orders=True),
    Design("all 120 orders × 3 seeds", 120, 3, all_orders=True),
    Design("all 120 orders × 5 seeds", 120, 5, all_orders=True),
    Design("own seeds, 3 orders × 1", 3, 1, "own"),
    Design("own seeds, 5 orders × 1", 5, 1, "own"),
    Design("own seeds, 10 orders × 1", 10, 1, "own"),
    Design("own seeds, 5 orders × 3", 5, 3, "own"),
    Design("own seeds, 5 orders of one, 10 of the other", 5, 1, "own", unshared=10),
]
CONDITIONAL = [
    Design("one seed, 10 orders: a claim on that seed", 10, 1, "one"),
    Design("one order, 5 seeds: a claim on that order", 1, 5),
]
INADMISSIBLE = [
    Design("crossed, 5 orders × 2 seeds", 5, 2),
    Design("crossed, 2 orders × 5 seeds", 2, 5),
    Design("crossed, 30 orders × 3 seeds", 30, 3),
    Design("crossed, 120 orders (drawn) × 3 seeds", 120, 3),
    Design("all 120 orders × 2 seeds", 120, 2, all_orders=True),
    Design("all 120 orders × 1 seed", 120, 1, "one", all_orders=True),
]
FIVE_CROSSED, OWN_FIVE, OWN_TEN = ADMISSIBLE[3], ADMISSIBLE[12], ADMISSIBLE[13]
APART = [ADMISSIBLE[1], ADMISSIBLE[3], ADMISSIBLE[4], ADMISSIBLE[6], OWN_FIVE, OWN_TEN, ADMISSIBLE[14]]
"""Designs on which Welch's test is measured."""


def noise(generator: np.random.Generator, shape: str, size: tuple[int, ...]) -> _Values:
    """Values with mean 0 and variance 1; ``collapses``: every fifth is 15 standard deviations of the others lower."""
    if shape == "skewed":
        return np.asarray(generator.exponential(1.0, size) - 1.0)
    if shape == "heavy":
        return np.asarray(generator.standard_t(4, size) / np.sqrt(2.0))
    if shape == "collapses":
        return np.asarray(generator.normal(0.0, 1.0, size) + 3.0 - 15.0 * (generator.random(size) < 0.2))
    return generator.normal(0.0, 1.0, size)


def drawn(
    design: Design,
    seed_std: float,
    n: int,
    seed: int,
    *,
    difference: float = 0.0,
    shape: str = "normal",
    claim: bool = False,
    shared: tuple[float, float] = (0.0, 0.0),
    apart: bool = False,
) -> _Sides:
    """Both methods' values ``[n, orders, seeds]``, the second of which is ``difference`` below in expectation.

    Args:
        claim: whether what is claimed is about the single seed or order that was run; then its own effect is part of the truth.
        shared: standard deviations of what an order and a seed do to any method. apart: methods have orders and seeds of their own.
    """
    generator = np.random.default_rng([seed, *design.name.encode(), int(1000 * seed_std), int(1000 * difference)])
    own = design.seeds == "own"

    def common(orders: int) -> _Values:
        by_order = shared[0] * generator.normal(size=(n, orders, 1))
        return np.asarray(by_order + shared[1] * generator.normal(size=(n, orders if own else 1, design.per_order)))

    both = common(design.orders) if any(shared) else np.zeros(1)
    whole = "normal" if shape == "collapses" else shape  # a cell collapses, not an order or a seed
    sides = []
    for side, orders in enumerate((design.orders, design.unshared or design.orders)):
        order = ORDER_STD * noise(generator, whole, (n, orders, 1))
        if design.all_orders:
            order = order - order.mean(axis=1, keepdims=True)  # over the whole population methods are alike
        if claim and design.orders == 1:
            order = 0.0 * order
        by_seed = seed_std * noise(generator, whole, (n, orders if own else 1, design.per_order))
        if claim and design.per_order == 1:
            by_seed = 0.0 * by_seed
        values = order + by_seed + REST_STD * noise(generator, shape, (n, orders, design.per_order))
        sides.append(values + (difference if side == 0 else 0.0) + (common(orders) if apart else both))
    return sides[0], sides[1]


def frame_of(design: Design, sides: Sequence[_Values]) -> pd.DataFrame:
    """The first replicate as ``compare_methods`` takes it."""
    rows = []
    for method, values in zip("abcdefg"[: len(sides)], sides, strict=True):
        mine = method if design.unshared else ""
        for (o, s), value in np.ndenumerate(values[0]):
            seed = f"{mine}{o}/{s}" if design.seeds == "own" else str(s)
            rows.append((method, f"{mine}{o}", seed, float(value)))
    return pd.DataFrame(rows, columns=["method", "order", "seed", "value"])


# --- tests of all replicates at once -----------------------------------------------------------------------------------------------

_Estimate = tuple[_Values, _Values, _Values]
"""Mean, standard error, degrees of freedom; float64 ``[n]``."""


def over(values: _Values) -> _Estimate:
    """Of independent units ``[n, units]``."""
    units = values.shape[1]
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(units), np.full(len(values), units - 1.0)


def estimate(design: Design, values: _Values) -> _Estimate:
    """Of the cells of a design ``[n, orders, seeds]``."""
    if design.crossed:
        return stats.quasi_f(values)
    return over(values.mean(axis=1 if design.seeds == "crossed" else 2))


def minus(first: _Estimate, second: _Estimate) -> _Estimate:
    """Welch and Satterthwaite."""
    (a, ea, fa), (b, eb, fb) = first, second
    return a - b, np.sqrt(ea**2 + eb**2), (ea**2 + eb**2) ** 2 / (ea**4 / fa + eb**4 / fb)


def p_of(found: _Estimate) -> _Values:
    return np.asarray(2.0 * scipy_stats.t.sf(abs(found[0] / found[1]), found[2]))


def outcome(design: Design, sides: _Sides, how: str = "t") -> tuple[_Values, _Values]:
    """Estimates and p values; those of the first replicate are also what ``compare_methods`` gives."""
    first, second = sides
    if how == "wilcoxon":
        differences = (first - second).mean(axis=2)
        p, walsh = signed_ranks(differences)
    elif how == "welch" or design.unshared:
        found = minus(estimate(design, first), estimate(design, second))
        p, walsh = p_of(found), found[0]
    else:
        found = estimate(design, first - second)
        p, walsh = p_of(found), found[0]
    shipped = stats.compare_methods(frame_of(design, sides), test=how, **design.options).iloc[0]
    if shipped["refused"] or not np.allclose([shipped["p"], shipped["estimate"]], [p[0], walsh[0]], rtol=1e-6):
        raise SystemExit(f"{design.name}: compare_methods gives p = {shipped['p']} {shipped['refused']}, the simulation {p[0]}")
    return walsh, p


def signed_ranks(differences: _Values) -> tuple[_Values, _Values]:
    """Wilcoxon's exact p values, and Hodges and Lehmann's estimates, of rows without ties."""
    n = differences.shape[1]
    ranks = abs(differences).argsort(axis=1).argsort(axis=1) + 1
    positive = (ranks * (differences > 0)).sum(axis=1)
    chances = np.ones(1)
    for rank in range(1, n + 1):
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2.0
    smaller = np.minimum(positive, n * (n + 1) // 2 - positive)
    i, j = np.triu_indices(n)
    return np.minimum(1.0, 2.0 * np.cumsum(chances)[smaller]), np.median((differences[:, i] + differences[:, j]) / 2.0, axis=1)


def tied_ranks(differences: _Values) -> _Values:
    """Wilcoxon's exact p values of rows with ties; zeros are dropped, and 1 stands where fewer than six are left."""
    d = differences.round(9)
    units = d.shape[1]
    zeros = (d == 0.0).sum(axis=1, keepdims=True)
    ranks = np.where(d == 0.0, 0.0, scipy_stats.rankdata(abs(d), axis=1) - zeros)
    flips = 1.0 - 2.0 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1)
    statistic, others = abs((np.sign(d) * ranks).sum(axis=1)), abs(ranks @ flips.T)
    p = np.where(units - zeros[:, 0] < stats.MIN_SCENARIOS, 1.0, (others >= statistic[:, None] - 1e-9).mean(axis=1))
    k = int((p < 1.0).argmax())
    if not np.isclose(stats.wilcoxon(d[k], np.zeros(units)).p, p[k]):
        raise SystemExit(f"wilcoxon gives p = {stats.wilcoxon(d[k], np.zeros(units)).p}, the simulation {p[k]}")
    return np.asarray(p)


def over_orders(sides: _Sides) -> tuple[_Values, _Values]:
    """Welch's test over means of orders, seeds averaged."""
    found = minus(*(over(side.mean(axis=2)) for side in sides))
    return found[0], p_of(found)


def over_cells(sides: _Sides) -> tuple[_Values, _Values]:
    """Welch's test with every cell as a unit."""
    found = minus(*(over(side.reshape(len(side), -1)) for side in sides))
    return found[0], p_of(found)


def share(found: tuple[_Values, _Values], sign: int = 0) -> float:
    """The share of significant replicates, in percent; with the sign of their estimate, where one is given."""
    values, p = found
    return percent((p < ALPHA) & ((np.sign(values) == sign) if sign else True))


def holm(p: _Values) -> _Values:
    """Adjusted over the last axis."""
    order = p.argsort(axis=-1)
    stepped = np.take_along_axis(p, order, axis=-1) * np.arange(p.shape[-1], 0, -1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(np.minimum(1.0, stepped), axis=-1), axis=-1)
    return adjusted


def percent(hits: Any) -> float:
    return round(100.0 * float(np.mean(hits)), 2)


# --- tables ------------------------------------------------------------------------------------------------------------------------


def designs(n: int, seed: int) -> Table:
    """The design's test of every admissible design."""
    rows: dict[str, list[float | None]] = {}
    for design in ADMISSIBLE:
        size = [share(outcome(design, drawn(design, std, n, seed))) for std in SEED_STDS]
        found = [outcome(design, drawn(design, std, n, seed, difference=DIFFERENCE)) for std in SEED_STDS]
        rows[design.name] = [*size, *(share(one, 1) for one in found), max(share(one, -1) for one in found)]
    for design in CONDITIONAL:
        rows[design.name] = [*(share(outcome(design, drawn(design, std, n, seed, claim=True))) for std in SEED_STDS), *[None] * 4]
    columns = [f"{what}{100 * std:.0f}" for what in ("size, method × seed ", "power at 4 points, ") for std in SEED_STDS]
    return Table("The test for each design.", [*columns, "reversed, at most"], rows, n)


def welch(n: int, seed: int) -> Table:
    """Welch's test over three kinds of unit, and beside the design's."""
    rows: dict[str, list[float | None]] = {}
    for design in APART:
        how: dict[str, Any] = {"shared": (0.04, 0.02)}
        alone = drawn(design, 0.02, n, seed, apart=True, **how)
        together = drawn(design, 0.02, n, seed, **how)
        ahead = drawn(design, 0.02, n, seed, difference=DIFFERENCE, **how)
        sizes = [share(over_cells(alone)), share(over_orders(alone)), share(outcome(design, alone, "welch"))]
        found = [outcome(design, ahead, test) for test in ("t", "welch")]
        sizes.append(share(outcome(design, together, "welch")))
        rows[design.name] = [*sizes, *(share(one, 1) for one in found), share(found[1], -1)]
    columns = ["size over cells, run apart", "size over order means, run apart", "size, run apart", "size, shared orders and seeds"]
    columns += ["power at 4 points, design's test", "power at 4 points, Welch", "reversed, Welch"]
    caption = (
        "Welch's test. The standard deviations of the effects of orders, seeds and method × seed are 4, 2 and 2 points. If run "
        "apart, each method has its own orders and seeds. Reports use the standard error of each method's own design (third "
        "column)."
    )
    return Table(caption, columns, rows, n)


def sharing(n: int, seed: int) -> Table:
    """What pairing buys on ten shared orders, by how much an order does to all methods."""
    rows: dict[str, list[float | None]] = {}
    design = OWN_TEN
    for std in (0.0, 0.02, 0.04, 0.08):
        generator = np.random.default_rng([seed, int(1000 * std)])
        by_order = std * generator.normal(size=(n, 10, 1))
        sides = tuple(true + by_order + REST_STD * generator.normal(size=(n, 10, 1)) for true in (0.02, 0.0))
        found = [outcome(design, (sides[0], sides[1]), test) for test in ("t", "welch")]
        rows[f"{100 * std:.0f}"] = [*(share(one, 1) for one in found), max(share(one, -1) for one in found)]
    caption = (
        "Ten shared orders, 2 points of noise per method, and a true difference of 2 points. Rows: the standard deviation, in "
        "points, of an order's effect on all methods."
    )
    return Table(caption, ["power, paired", "power, Welch", "reversed, at most"], rows, n)


def shapes(n: int, seed: int) -> Table:
    """Noise that is not normal."""
    rows: dict[str, list[float | None]] = {}
    twenty = Design("own seeds, 20 orders × 1", 20, 1, "own")
    cases = [("t", FIVE_CROSSED), ("t", OWN_FIVE), ("t", OWN_TEN), ("wilcoxon", OWN_TEN), ("wilcoxon", twenty)]
    cases += [("welch", FIVE_CROSSED), ("welch", OWN_FIVE), ("welch", OWN_TEN)]
    for shape in ("normal", "heavy", "skewed", "collapses"):
        for test, design in cases:
            size = share(outcome(design, drawn(design, 0.01, n, seed, shape=shape), test))
            ahead = outcome(design, drawn(design, 0.01, n, seed, shape=shape, difference=DIFFERENCE), test)
            name = {"t": "design's test", "wilcoxon": "Wilcoxon", "welch": "Welch"}[test]
            rows[f"{shape}: {name}, {design.name}"] = [size, share(ahead, 1), share(ahead, -1)]
    caption = (
        "Other noise distributions, with 1 point of method × seed. Heavy: Student's t with 4 degrees of freedom. Skewed: "
        "exponential. Collapses: one value in five is 30 points lower."
    )
    return Table(caption, ["size", "power at 4 points", "reversed"], rows, n)


def many(design: Design, methods: int, n: int, seed: int, shape: str, ahead: float) -> list[_Values]:
    """Values ``[n, orders, seeds]`` of each method, the first of which is ``ahead`` of the others in expectation; method × seed 1 point."""
    generator = np.random.default_rng([seed, *design.name.encode(), methods, len(shape), int(1000 * ahead)])
    whole, own = "normal" if shape == "collapses" else shape, design.seeds == "own"
    parts = (
        (ORDER_STD, whole, (design.orders, 1)),
        (0.01, whole, (design.orders if own else 1, design.per_order)),
        (REST_STD, shape, (design.orders, design.per_order)),
    )
    return [
        sum(std * noise(generator, kind, (n, *size)) for std, kind, size in parts) + (0.0 if k else ahead)  # type: ignore[misc]
        for k in range(methods)
    ]


def best(n: int, seed: int) -> Table:
    """Every pair of five methods, adjusted as campaign reports and leaderboards do, and the pairs with the highest mean."""
    rows: dict[str, list[float | None]] = {}
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]  # the first four have the first method
    for shape in ("normal", "heavy", "collapses"):
        for design in (FIVE_CROSSED, OWN_FIVE, OWN_TEN):
            row: list[float | None] = []
            for ahead in (0.0, DIFFERENCE):
                values = many(design, 5, n, seed, shape, ahead)
                found = [estimate(design, values[a] - values[b]) for a, b in pairs]
                apart = np.stack([one[0] for one in found], axis=1)
                p = holm(np.stack([p_of(one) for one in found], axis=1))
                shipped = stats.compare_methods(frame_of(design, values))["p_adjusted"]
                if not np.allclose(shipped, p[0], rtol=1e-6):
                    raise SystemExit(f"compare_methods gives adjusted p = {list(shipped)}, the simulation {p[0]}")
                first = np.stack([one.mean(axis=(1, 2)) for one in values], axis=1).argmax(axis=1)
                leading = (np.array(pairs)[None] == first[:, None, None]).any(axis=2)
                clear = p < ALPHA
                if ahead:
                    row += [percent(clear[:, :4] & (apart[:, :4] > 0.0)), percent((clear[:, :4] & (apart[:, :4] < 0.0)).any(axis=1))]
                else:
                    row += [percent(clear.any(axis=1)), percent((clear & leading).any(axis=1))]
            rows[f"{shape}: {design.name}"] = row
    columns = ["size, any pair of alike methods", "size, any below the best mean", "power, one ahead by 4 points"]
    caption = (
        "All pairs of five methods, tested with Holm's adjustment: key results, and the marks of a leaderboard, which compare "
        "the method with the best mean with every other one. Method × seed is 1 point."
    )
    columns.append("reversed, that one below any")
    return Table(caption, columns, rows, n)


def bound(n: int, seed: int) -> Table:
    """The warning that joint training is below another method, of one and of six methods."""
    rows: dict[str, list[float | None]] = {}
    for shape in ("normal", "heavy", "collapses"):
        for design in (FIVE_CROSSED, OWN_FIVE, OWN_TEN):
            row: list[float | None] = []
            for methods, ahead in ((1, 0.0), (6, 0.0), (6, DIFFERENCE)):
                *learners, joint = many(design, methods + 1, n, seed, shape, ahead)
                found = [estimate(design, one - joint) for one in learners]
                p = holm(np.stack([p_of(one) for one in found], axis=1))
                above = (p < ALPHA) & (np.stack([one[0] for one in found], axis=1) > 0.0)
                row.append(percent(above[:, 0] if ahead else above.any(axis=1)))
            rows[f"{shape}: {design.name}"] = row
    columns = ["one alike method", "any of six alike methods", "power, one of six ahead by 4 points"]
    caption = "The warning that joint training is significantly worse than another method, after Holm's adjustment over methods."
    return Table(caption, columns, rows, n)


def order_ranges(n: int, seed: int) -> Table:
    """AOPD beside its null, for as many orders as seeds, and the interval of AOPD over repeats; ten tasks."""
    rows: dict[str, list[float | None]] = {}
    few = min(n, 2000)
    sizes = [((5, 5), "normal"), ((10, 5), "normal"), ((24, 3), "normal"), ((10, 5), "heavy"), ((10, 5), "collapses")]
    for (orders, seeds), shape in sizes:
        row: list[float | None] = []
        for order_std in (0.0, 0.02, 0.04):
            generator = np.random.default_rng([seed, orders, seeds, len(shape), int(1000 * order_std)])
            values = order_std * generator.normal(size=(few, orders, 1, 10)) + 0.02 * noise(generator, shape, (few, orders, seeds, 10))
            over_orders, null = (expected_ranges(values, axis, seeds).mean(axis=(1, 2)) for axis in (1, 2))
            if not order_std:
                check_ranges(values[0], over_orders[0], null[0])
                mean, error, df = over(np.ptp(values, axis=1).mean(axis=2))
                covered = percent(abs(mean - mean.mean()) <= scipy_stats.t.ppf(0.975, df) * error)
                row += [round(100.0 * float((over_orders - null).mean()), 2), percent(over_orders > 1.25 * null)]
            else:
                row += [percent(over_orders > 1.25 * null)]
        rows[f"{shape}: {orders} orders × {seeds} seeds"] = [*row, covered]
    columns = ["AOPD minus its null without an effect, points", "AOPD above 1.25 times its null, no effect", "the same, order std 2 points"]
    columns += ["the same, order std 4 points", "interval of AOPD over seeds covers, no effect"]
    caption = (
        "AOPD of ten tasks over n orders, compared with its null value: the same statistic over the n seeds of one order. Pages "
        "show both values without a verdict. The standard deviation of a task between runs is 2 points."
    )
    return Table(caption, columns, rows, few)


def expected_ranges(values: _Values, axis: int, k: int) -> _Values:
    """The expected range over ``k`` of the levels of an axis."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    weights = [stats.expected_range(row, k) for row in np.triu(np.ones((ordered.shape[-1],) * 2))]  # of steps between neighbours
    return np.asarray((np.diff(ordered, axis=-1) * np.array(weights[1:])).sum(axis=-1))


def check_ranges(values: _Values, aopd: float, null: float) -> None:
    orders, seeds, items = values.shape
    index = pd.MultiIndex.from_product([[*map(str, range(orders))], range(seeds), range(items)], names=["order", "seed", "item"])
    frame = index.to_frame(index=False).assign(value=values.ravel())
    shipped = stats.expected_opd(frame, seeds)["opd"].mean(), stats.null_opd(frame).aopd
    if not np.allclose(shipped, [aopd, null]):
        raise SystemExit(f"expected_opd and null_opd give {shipped}, the simulation {aopd} and {null}")


def collapses(n: int, seed: int) -> Table:
    """Coverage of intervals of a mean where one repetition in five collapses by 30 points, beside noise of 2 points."""
    rows: dict[str, list[float | None]] = {}
    for units in (3, 5, 10, 20):
        generator = np.random.default_rng([seed, units])
        normal = 0.02 * generator.normal(size=(n, units))
        down = generator.random((n, units)) < 0.2
        values = normal - 0.3 * down
        mean, error, df = over(values)
        reach = scipy_stats.t.ppf(0.975, df) * error
        page = bca(values, generator) if units >= stats.BOOTSTRAP_FROM else (mean - reach, mean + reach)
        shipped = stats.mean_interval(values[0])
        if not np.allclose([shipped.low, shipped.high], [page[0][0], page[1][0]], atol=0.1 * (shipped.high - shipped.low)):
            raise SystemExit(f"mean_interval gives {shipped}, the simulation {page[0][0]} to {page[1][0]}")
        minority = 2 * down.sum(axis=1) < units
        some = minority & down.any(axis=1)
        found = (stats.collapsed(values, least=0.1) == down).all(axis=1)
        rows[f"{units}"] = [
            percent(abs(mean + 0.06) <= reach),
            percent((page[0] <= -0.06) & (page[1] >= -0.06)),
            percent(abs(bootstrap_t(values, generator) - 0.5) <= 0.475),
            percent(found[some]),
            percent(stats.collapsed(normal, least=0.1).any(axis=1)),
        ]
    caption = (
        "95% intervals of a mean if one repetition in five collapses by 30 points. Rows: number of repetitions. Pages show "
        "Student's t interval for fewer than ten repetitions, and otherwise a BCa bootstrap interval."
    )
    columns = ["t covers", "the page's interval covers", "bootstrap-t covers", "collapses named (of fewer than half)", "named without any"]
    return Table(caption, columns, rows, n)


def bca(values: _Values, generator: np.random.Generator) -> tuple[_Values, _Values]:
    """Efron's BCa intervals of means of rows at 95%."""
    units = values.shape[1]
    means = np.stack([redrawn(values, generator).mean(axis=1) for _ in range(_DRAWS)], axis=1)
    mean, spread = values.mean(axis=1, keepdims=True), values.std(axis=1)
    bias = scipy_stats.norm.ppf((means < mean).mean(axis=1).clip(1 / _DRAWS, 1 - 1 / _DRAWS))
    skew = ((values - mean) ** 3).sum(axis=1) / (6.0 * (units * spread**2) ** 1.5)
    ends = []
    for z in scipy_stats.norm.ppf((0.025, 0.975)):
        place = scipy_stats.norm.cdf(bias + (bias + z) / (1.0 - skew * (bias + z)))
        ends.append(np.array([np.quantile(row, at) for row, at in zip(means, place, strict=True)]))
    return ends[0], ends[1]


def bootstrap_t(values: _Values, generator: np.random.Generator) -> _Values:
    """Where Student's t at the true mean, -0.06, lies in its bootstrap distribution: 0 to 1."""
    place = np.zeros(len(values))
    mean, error, _ = over(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (mean + 0.06) / error
        for _ in range(_DRAWS):
            drawn_mean, drawn_error, _ = over(redrawn(values, generator))
            one = (drawn_mean - mean) / drawn_error
            place += np.where(np.isnan(one), 0.5, one <= t)
    return place / _DRAWS


def redrawn(values: _Values, generator: np.random.Generator) -> _Values:
    """Rows with units drawn anew."""
    return np.take_along_axis(values, generator.integers(0, values.shape[1], values.shape), axis=1)


def agreements(n: int, seed: int) -> Table:
    """Verdicts beside a published mean over 10 runs, margin 2 points."""
    rows: dict[str, list[float | None]] = {}
    for shape, (orders, seeds), std in (
        *(("normal", (units, 1), std) for units in (5, 10) for std in (0.01, 0.02, 0.04)),
        ("normal", (5, 5), 0.02),
        ("heavy", (10, 1), 0.02),
        ("collapses", (10, 1), 0.02),
        *(("skewed", (units, 1), 0.01) for units in (3, 5, 10)),
    ):
        row: list[float | None] = []
        for true in (0.0, 0.02, 0.04):
            generator = np.random.default_rng([seed, orders, seeds, int(1000 * std), int(1000 * true), len(shape)])
            if seeds > 1:
                parts = ((n, orders, 1), (n, 1, seeds), (n, orders, seeds))
                ours = stats.quasi_f(true + sum(std / np.sqrt(3.0) * noise(generator, shape, size) for size in parts))
            else:
                ours = over(true + std * noise(generator, shape, (n, orders)))
            theirs = over(std * noise(generator, shape, (n, 10)))
            same, different = agreement_of(ours, theirs, 0.02)
            if true == 0.0:
                check_agreement(ours, theirs, same, different)
            row += [percent(same < ALPHA), percent((same >= ALPHA) & (different < ALPHA))]
            if true == 0.04:
                row.append(percent((same >= ALPHA) & (different < ALPHA) & (ours[0] < theirs[0])))
        design = f"{orders} orders × {seeds} seeds" if seeds > 1 else f"{orders} orders"
        rows[f"{'' if shape == 'normal' else f'{shape}: '}{design}, std {100 * std:.0f}"] = row
    columns = [f"{verdict}, true {true}" for true in (0, 2, 4) for verdict in ("equivalent", "different")]
    caption = (
        "Agreement with a published mean over 10 runs at a margin of 2 points, by the true difference in points. All other "
        "cases are undecided. In crossed designs, orders, seeds and the residual each have a third of the variance."
    )
    return Table(caption, [*columns, "reversed, true 4"], rows, n)


def agreement_of(ours: _Estimate, theirs: _Estimate, margin: float) -> tuple[_Values, _Values]:
    """p values of both one-sided tests together, and of Welch's."""
    d, error, df = minus(ours, theirs)
    above, below = scipy_stats.t.sf((d + margin) / error, df), scipy_stats.t.cdf((d - margin) / error, df)
    return np.maximum(above, below), 2.0 * scipy_stats.t.sf(abs(d) / error, df)


def check_agreement(ours: _Estimate, theirs: _Estimate, same: _Values, different: _Values) -> None:
    mine = stats.MeanEstimate(mean=float(ours[0][0]), error=float(ours[1][0]), df=float(ours[2][0]), spread=1.0, n=(5,))
    found = stats.agreement(mine, float(theirs[0][0]), float(theirs[1][0]) * np.sqrt(10.0), 10, margin=0.02)
    if not np.allclose([found.p_equivalent, found.p_different], [same[0], different[0]], rtol=1e-6):
        raise SystemExit("agreement gives other p values than the simulation")


def offsets(n: int, seed: int) -> Table:
    """A table's offset: ten rows of one data set that share orders; the bootstrap's variance is that of infinitely many draws."""
    rows: dict[str, list[float | None]] = {}
    for units, shape in ((5, "normal"), (10, "normal"), (5, "heavy"), (10, "heavy"), (10, "collapses")):
        row: list[float | None] = []
        for true in (0.0, 0.03):
            generator = np.random.default_rng([seed, units, int(100 * true)])
            ours, theirs = (0.02 * generator.normal(size=(n, 1, k)) + 0.02 * noise(generator, shape, (n, 10, k)) for k in (units, 10))
            ours, printed = ours + true, theirs.std(axis=2, ddof=1) / np.sqrt(10)
            mean, error, df = over(ours.mean(axis=1))
            found = minus((mean, error, df), (theirs.mean(axis=(1, 2)), printed.mean(axis=1), np.full(n, 9.0)))
            check_offset(ours[0], theirs[0], printed[0], found)
            higher = (ours.mean(axis=2) > theirs.mean(axis=2)).sum(axis=1)
            result = found[0], p_of(found)
            row += [share(result), percent(abs(higher - 5) >= 4)] if not true else [share(result, 1), share(result, -1)]
        rows[f"{'' if shape == 'normal' else f'{shape}: '}our {units} orders, published 10"] = row
    columns = ["size, joint bootstrap", "size, sign test over rows", "power at 3 points, joint bootstrap", "reversed, joint bootstrap"]
    return Table("Tests for an offset of a whole table of ten rows that share orders.", columns, rows, n)


def check_offset(ours: _Values, theirs: _Values, printed: _Values, found: _Estimate) -> None:
    names = pd.MultiIndex.from_product([range(10), range(ours.shape[1])], names=["row", "unit"]).to_frame(index=False)
    published = pd.DataFrame({"row": range(10), "block": "one", "mean": theirs.mean(axis=1), "error": printed, "df": 9})
    shipped = stats.joint_offset(names.assign(value=ours.ravel()), published)
    reach = float(scipy_stats.t.ppf(0.975, found[2][0]) * found[1][0])
    if not np.isclose(shipped.mean, found[0][0]) or not np.isclose(shipped.high - shipped.mean, reach, rtol=0.1):
        raise SystemExit(f"joint_offset gives {shipped}, the simulation {found[0][0]} ± {reach}")


def mechanisms(n: int, seed: int) -> Table:
    """A change of settings that is said to explain a printed value 5 points away, checked on held-out repetitions."""
    from cglsuite.reports.studies.papers.compute import confirmation

    rows: dict[str, list[float | None]] = {}
    few = min(n, 2000)
    for units, shape in ((3, "normal"), (5, "normal"), (10, "normal"), (5, "heavy"), (5, "collapses")):
        row: list[float | None] = []
        for share in (0.0, 1.0):
            generator = np.random.default_rng([seed, units, len(shape), int(share)])
            order = 2.0 * generator.normal(size=(few, units))
            without, changed = order + noise(generator, shape, (few, units)), order + 5.0 * share + noise(generator, shape, (few, units))
            found = [confirmation(5.0, w.tolist(), c.tolist())["state"] == "confirmed" for w, c in zip(without, changed, strict=True)]
            row.append(percent(found))
        rows[f"{units} held-out repetitions, {shape}"] = row
    caption = (
        "Mechanisms: how often a change of settings is confirmed on held-out repetitions that share orders. The published value "
        "is 5 points away, and the noise is 1 point."
    )
    return Table(caption, ["confirmed, no effect", "confirmed, closes the gap"], rows, few)


def ratios(n: int, seed: int) -> Table:
    """Ratios of running times beside a printed one, which is taken as exact; the margin is a factor of 1.25."""
    from cglsuite.reports.studies.ledger.ratios import MARGIN, ratio_tests

    rows: dict[str, list[float | None]] = {}
    few, edge = min(n, 2000), float(np.log(MARGIN))
    typical = dict.fromkeys(("normal", "heavy"), 0.0) | {"skewed": float(np.log(2.0) - 1.0)}
    cases = ((3, 0.1, "normal"), (5, 0.1, "normal"), (10, 0.1, "normal"), (5, 0.3, "normal"), (10, 0.3, "normal"), (10, 0.1, "heavy"))
    for units, std, shape in (*cases, (5, 0.1, "skewed"), (10, 0.1, "skewed"), (30, 0.1, "skewed")):
        row: list[float | None] = []
        for true in (0.0, edge, float(np.log(2.0))):
            generator = np.random.default_rng([seed, units, int(10 * std), len(shape), int(100 * np.exp(true))])
            drawn = noise(generator, shape, (few, units))
            values = true + std * (drawn - typical[shape])
            found = [ratio_tests(np.exp(v), 1.0) for v in values]
            same = percent([one["p_equivalent"] <= ALPHA for one in found])
            different = percent([one["p_equivalent"] > ALPHA and one["p_different"] <= ALPHA for one in found])
            row += {0.0: [same, different], edge: [same]}.get(true, [different])
            if true == edge:  # of the mean of logarithms
                alone = [stats.agreement(stats.mean_estimate(true + std * v), 0.0, 0.0, 2, margin=edge).p_equivalent for v in drawn]
                row += [percent([p <= ALPHA for p in alone])]
        rows[f"{units} repetitions, std of a logarithm {std:g}, {shape}"] = row
    columns = ["equivalent, true factor 1", "different, true factor 1", "equivalent, true factor 1.25", "t tests alone, mean at 1.25"]
    caption = (
        "Ratios of running times compared with a published one, by the median ratio of our value to it. With skewed noise, the "
        "sign tests decide."
    )
    return Table(caption, [*columns, "different, true factor 2"], rows, few)


def conditional(n: int, seed: int) -> Table:
    """Agreement with a published mean over the same ten orders, with three init seeds of ours in each."""
    rows: dict[str, list[float | None]] = {}
    few = min(n, 2000)
    for order_std, shape in ((0.0, "normal"), (2.0, "normal"), (6.0, "normal"), (6.0, "heavy"), (6.0, "collapses")):
        row: list[float | None] = []
        for true in (0.0, 2.0, 4.0):
            generator = np.random.default_rng([seed, int(order_std), len(shape), int(true)])
            order = order_std * generator.normal(size=(few, 10, 1))
            ours, theirs = order + noise(generator, shape, (few, 10, 3)), order - true + noise(generator, shape, (few, 10, 1))
            means, stds = theirs.mean(axis=(1, 2)), theirs.std(axis=(1, 2), ddof=1)
            found = [stats.agreement_on_orders(o, m, s, 10, margin=2.0) for o, m, s in zip(ours, means, stds, strict=True)]
            plain = [
                stats.agreement(stats.mean_estimate(o.mean(axis=1)), m, s, 10, margin=2.0)
                for o, m, s in zip(ours, means, stds, strict=True)
            ]
            same = percent([one.p_equivalent <= ALPHA for one in found])
            different = percent([one.p_equivalent > ALPHA and one.p_different <= ALPHA for one in found])
            row += [same, different] if true != 4.0 else [different]
            row += [] if true else [percent([one.p_equivalent <= ALPHA for one in plain])]
        rows[f"{shape}, order std {order_std:g} points"] = row
    columns = ["equivalent, true 0", "different, true 0", "equivalent, true 0, orders as error"]
    columns += ["equivalent, true 2", "different, true 2", "different, true 4"]
    caption = (
        "Agreement conditional on ten orders that the paper also uses. We have three init seeds per order, and the paper has "
        "one. The margin is 2 points, and the standard deviation of a run within an order is 1 point."
    )
    return Table(caption, columns, rows, few)


def ranks(n: int, seed: int) -> Table:
    """Friedman's test, and then Nemenyi's, of methods in blocks; noise of 1 in a block."""
    rows: dict[str, list[float | None]] = {}
    for methods, blocks, shape in ((4, 3, ""), (4, 10, ""), (7, 5, ""), (4, 10, "heavy"), (4, 10, "skewed"), (4, 10, "collapses")):
        row: list[float | None] = []
        for ahead, shared in ((0.0, 0.0), (0.0, 1.0), (1.5, 0.0)):
            generator = np.random.default_rng([seed, methods, blocks, len(shape), int(10 * shared), int(10 * ahead)])
            values = noise(generator, shape, (n, blocks, methods)) + shared * generator.normal(size=(n, 1, methods))
            values[..., 0] += ahead
            any_pair, first_last = nemenyi(values)
            row += first_last if ahead else [any_pair]
        rows[f"{methods} methods, {blocks} blocks{f', {shape}' if shape else ''}"] = row
    columns = ["any pair of alike methods", "any pair, one seed in all blocks", "first found ahead of second by 1.5", "found behind"]
    caption = (
        "Friedman's test followed by Nemenyi's test: how often pairs of methods are called different. Pages refuse blocks that "
        "share a seed (second column, where the effect of the seed on a method is as large as the noise of a block)."
    )
    return Table(caption, columns, rows, n)


def nemenyi(values: _Values) -> tuple[float, list[float]]:
    """Percentages of replicates with any pair, with the first ahead of the second, and with it behind."""
    _, blocks, methods = values.shape
    average = (values.argsort(axis=2).argsort(axis=2) + 1).mean(axis=1)  # the highest rank is the best here
    statistic = 12.0 * blocks / (methods * (methods + 1)) * ((average - (methods + 1) / 2.0) ** 2).sum(axis=1)
    p = scipy_stats.chi2.sf(statistic, methods - 1)
    distance = stats.critical_difference(methods, blocks)
    names = [(f"m{m}", f"o{o}") for o in range(blocks) for m in range(methods)]
    try:
        shipped = stats.friedman(pd.DataFrame(names, columns=["method", "order"]).assign(value=values[0].ravel()))
    except stats.Refused:
        return 0.0, [0.0, 0.0]
    if not np.isclose(shipped.p, p[0], rtol=1e-6):
        raise SystemExit(f"friedman gives p = {shipped.p}, the simulation {p[0]}")
    separates, ahead = p < ALPHA, average[:, 0] - average[:, 1]
    return percent(separates & (np.ptp(average, axis=1) > distance)), [percent(separates & (sign * ahead > distance)) for sign in (1, -1)]


def categories(n: int, seed: int) -> Table:
    """Ranks of two categories of methods, which are drawn from one population, by how much methods differ in all scenarios."""
    rows: dict[str, list[float | None]] = {}
    sizes = [len(members) for members in stats.CATEGORIES.values()]
    few = min(n, 4000)
    kinds = ((0.0, "methods alike"), (1.0, "methods differ as much as within a scenario"), (3.0, "methods differ much more"))
    cases = [(scenarios, std, words, "normal") for scenarios in (4, 6, 10) for std, words in kinds]
    cases += [(10, 0.0, "methods alike", shape) for shape in ("heavy", "collapses")]
    for scenarios, std, words, shape in cases:
        row: list[float | None] = []
        for ahead in (0.0, 1.5):
            generator = np.random.default_rng([seed, scenarios, int(10 * std)])
            methods = std * generator.normal(size=(few, 1, sum(sizes)))
            methods[..., : sizes[0]] += ahead
            truth = methods[:, 0, : sizes[0]].mean(axis=1) - methods[:, 0, sizes[0] : sizes[0] + sizes[1]].mean(axis=1)
            values = methods + noise(generator, shape, (few, scenarios, sum(sizes)))
            place = (-values).argsort(axis=2).argsort(axis=2) + 1.0
            first, second = place[..., : sizes[0]], place[..., sizes[0] : sizes[0] + sizes[1]]
            pooled = p_of(minus(over(first.reshape(few, -1)), over(second.reshape(few, -1))))
            row += [] if ahead else [percent(pooled < ALPHA)]
            if scenarios < stats.MIN_SCENARIOS:
                row += [None] * (2 if ahead else 1)
                continue
            differences = first.mean(axis=2) - second.mean(axis=2)
            clear, right = tied_ranks(differences) < ALPHA, (differences.mean(axis=1) < 0.0) == (truth > 0.0)
            row += [percent(clear & right), percent(clear & ~right)] if ahead else [percent(clear)]
        rows[f"{'' if shape == 'normal' else f'{shape}: '}{scenarios} scenarios, {words}"] = row
    caption = (
        "How often two categories of methods (4 and 2 of 10) from the same population are called different. Over scenarios, the "
        "claim is about these methods only: if methods differ in all scenarios, so do their categories. Power and reversals "
        "refer to the true difference between these methods."
    )
    columns = ["Welch on pooled ranks, as printed", "Wilcoxon, paired over scenarios", "power of Wilcoxon, one category ahead by 1.5"]
    return Table(caption, [*columns, "reversed, Wilcoxon"], rows, few)


def scenarios(n: int, seed: int) -> Table:
    """Thirty scenarios of six pairs each over ten orders, of which some have three true differences of 3 points."""
    rows: dict[str, list[float | None]] = {}
    few = min(n, 2000)
    for some, shape in ((0, "normal"), (5, "normal"), (15, "normal"), (0, "heavy"), (5, "heavy"), (0, "collapses"), (5, "collapses")):
        generator = np.random.default_rng([seed, some])
        values = 0.02 * noise(generator, shape, (few, 30, 10, 4))
        values[:, :some, :, 0] += 0.03
        pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
        differences = np.stack([values[..., a] - values[..., b] for a, b in pairs], axis=2)
        adjusted = holm(scipy_stats.ttest_1samp(differences, 0.0, axis=3).pvalue)
        false = np.ones((30, 6), dtype=bool)
        false[:some, :3] = False
        alone, across = adjusted < ALPHA, np.zeros_like(adjusted, dtype=bool)
        for k in range(few):
            chosen, level = stats.across_families(list(adjusted[k]), ALPHA)
            across[k] = np.asarray(chosen)[:, None] & (adjusted[k] <= level)
        row: list[float | None] = []
        for claims in (alone, across):
            wrong, every = (claims & false).sum(axis=(1, 2)), claims.sum(axis=(1, 2))
            row += [percent(wrong > 0), percent(wrong / np.maximum(1, every))]
        row += [percent(claims[:, :some, :3]) if some else None for claims in (alone, across)]
        rows[f"{'' if shape == 'normal' else f'{shape}: '}{some} of 30 scenarios with differences"] = row
    columns = [f"{what}, {how}" for how in ("Holm per scenario", "over scenarios") for what in ("any false claim", "false among claims")]
    columns += ["power, Holm per scenario", "power, over scenarios"]
    caption = (
        "The headline findings: six pairs of four methods in each of 30 scenarios, with ten orders and three true differences of 3 points."
    )
    return Table(caption, columns, rows, few)


def splits(n: int, seed: int) -> Table:
    """Random splits as units: results of two splits correlate by the share of test items (Nadeau & Bengio 2003)."""
    rows: dict[str, list[float | None]] = {}
    for units, seeds, test in ((5, 1, 0.2), (10, 1, 0.2), (10, 1, 0.5), (30, 1, 0.2), (5, 5, 0.2), (10, 3, 0.2)):
        overlap = test / (1.0 - test)
        row: list[float | None] = []
        for true in (0.0, DIFFERENCE):
            generator = np.random.default_rng([seed, units, seeds, int(10 * test), int(100 * true)])
            split = np.sqrt(test) * generator.normal(size=(n, 1, 1)) + np.sqrt(1.0 - test) * generator.normal(size=(n, units, 1))
            values = true + 0.02 * split
            if seeds > 1:
                values = values + 0.01 * generator.normal(size=(n, 1, seeds)) + 0.02 * generator.normal(size=(n, units, seeds))
                plain, mended = stats.quasi_f(values), stats.quasi_f(values, (overlap, 0.0))
            else:
                plain = over(values[..., 0])
                mended = plain[0], plain[1] * np.sqrt(1.0 + overlap * units), plain[2]
            factors = ("split", "seed")[: 1 + (seeds > 1)]
            shipped = stats.mean_estimate(values[0] if seeds > 1 else values[0, :, 0], factors, overlap=overlap)
            if not np.allclose([shipped.error, shipped.df], [mended[1][0], mended[2][0]], rtol=1e-6):
                raise SystemExit("mean_estimate gives another error than the simulation")
            row += [share((e[0], p_of(e)), 1 if true else 0) for e in (plain, mended)]
            row += [share((mended[0], p_of(mended)), -1)] if true else []
        rows[f"{units} splits{f' × {seeds} seeds' if seeds > 1 else ''}, {100 * test:.0f}% of items in the test set"] = row
    columns = ["size as if independent", "size", "power at 4 points as if independent", "power at 4 points", "reversed"]
    return Table(
        "Random splits of one data set as units. The standard deviation of a difference over splits is 2 points.", columns, rows, n
    )


def selection(n: int, seed: int) -> Table:
    """Coverage of the interval of a setting that validation chose, for the mean of what the choice leads to."""
    rows: dict[str, list[float | None]] = {}
    few = min(n, 2000)
    for units, gap in ((5, 0.0), (10, 0.0), (5, 0.01), (10, 0.01), (10, 0.05)):
        generator = np.random.default_rng([seed, units, int(1000 * gap)])
        levels = -gap * np.arange(6)[:, None]
        common = 0.02 * generator.normal(size=(few, 6, units))
        values = levels + common + 0.02 * generator.normal(size=(few, 6, units))
        validation = levels + common + 0.02 * generator.normal(size=(few, 6, units))
        chosen = validation.mean(axis=2).argmax(axis=1)
        mine = values[np.arange(few), chosen]
        truth = float(levels[chosen, 0].mean())  # what a new test set would give, on average over choices
        mean, error, df = over(mine)
        alone = abs(mean - truth) <= scipy_stats.t.ppf(0.975, df) * error
        again = [stats.selected(values[k], validation[k], random_seed=k) for k in range(few)]
        rows[f"{units} repetitions, {'settings alike' if not gap else f'settings {100 * gap:g} points apart'}"] = [
            percent(alone),
            percent([one.low <= truth <= one.high for one in again]),
            round(100.0 * float(mean.mean() - truth), 2),
        ]
    for design, gap, shape in (
        *(((orders, seeds), gap, "normal") for orders, seeds in ((5, 3), (5, 5), (10, 5)) for gap in (0.0, 0.01, 0.05)),
        *(((5, 5), 0.01, shape) for shape in ("heavy", "collapses")),
    ):
        generator = np.random.default_rng([seed, *design, int(1000 * gap), len(shape)])
        levels = -gap * np.arange(6)[:, None, None]
        common = sum(
            std * generator.normal(size=(few, settings, *size))
            for settings in (1, 6)
            for std, size in ((0.02, (design[0], 1)), (0.01, (1, design[1])), (0.02, design))
        )
        values, validation = (levels + common + 0.02 * noise(generator, shape, (few, 6, *design)) for _ in range(2))
        chosen = validation.mean(axis=(2, 3)).argmax(axis=1)
        truth = float(levels[chosen, 0, 0].mean())
        mean, error, df = stats.quasi_f(values[np.arange(few), chosen])
        again = [stats.selected(values[k], validation[k], random_seed=k) for k in range(few)]
        words = "settings alike" if not gap else f"settings {100 * gap:g} points apart"
        rows[f"{design[0]} orders × {design[1]} seeds, {words}{'' if shape == 'normal' else f', {shape}'}"] = [
            percent(abs(mean - truth) <= scipy_stats.t.ppf(0.975, df) * error),
            percent([one.low <= truth <= one.high for one in again]),
            round(100.0 * float(mean.mean() - truth), 2),
        ]
    columns = ["choice taken as given covers", "chosen again in every draw covers", "optimism of the mean, points"]
    caption = (
        "95% intervals for the best of six settings, selected on validation data. Validation and test performance share the "
        "noise of a repetition. With crossed orders and seeds, the standard deviations for orders, seeds and the residual are "
        "2, 1 and 2 points, both for all settings together and for each setting."
    )
    return Table(caption, columns, rows, few)


TABLES: Mapping[str, Callable[[int, int], Table]] = {
    "designs": designs,
    "welch": welch,
    "sharing": sharing,
    "shapes": shapes,
    "best": best,
    "bound": bound,
    "order_ranges": order_ranges,
    "collapses": collapses,
    "splits": splits,
    "selection": selection,
    "agreements": agreements,
    "conditional": conditional,
    "mechanisms": mechanisms,
    "ratios": ratios,
    "offsets": offsets,
    "ranks": ranks,
    "categories": categories,
    "scenarios": scenarios,
}


# --- what is stored and shown ------------------------------------------------------------------------------------------------------


def as_stored(tables: Mapping[str, Table]) -> str:
    """The tables as JSON, a line per row."""
    parts = []
    for name, table in tables.items():
        rows = ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}: {json.dumps(shares)}" for row, shares in table.rows.items())
        facts = f'  "caption": {json.dumps(table.caption, ensure_ascii=False)},\n  "replicates": {table.replicates},\n'
        facts += f'  "columns": {json.dumps(table.columns, ensure_ascii=False)},\n'
        parts.append(f' "{name}": {{\n{facts}  "rows": {{\n{rows}\n  }}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def stored() -> dict[str, Table]:
    """The tables of the last ``--write``."""
    return {name: Table(**facts) for name, facts in json.loads(STORED.read_text(encoding="utf-8")).items()} if STORED.is_file() else {}


def section(tables: Mapping[str, Table]) -> str:
    """The part of docs/reference/statistics.md between :data:`BEGIN` and :data:`END`."""
    parts = []
    for table in tables.values():
        head = f"| | {' | '.join(table.columns)} |\n| --- |{' --- |' * len(table.columns)}"
        body = "\n".join(f"| {name} | {' | '.join('–' if v is None else f'{v:.1f}' for v in row)} |" for name, row in table.rows.items())
        parts.append(f"{table.caption} {table.replicates:,} replicates, in %.\n\n{head}\n{body}\n")
    return f"{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}"


def with_section(page: str, tables: Mapping[str, Table]) -> str:
    """The page with these tables."""
    before, _, rest = page.partition(BEGIN)
    return before + section(tables) + rest.partition(END)[2]


def shown(name: str, table: Table) -> str:
    """A table as text."""
    wide = max(map(len, table.rows))
    lines = [f"\n{name}: {table.caption} {table.replicates:,} replicates, %"]
    lines += [f"  {k + 1}: {column}" for k, column in enumerate(table.columns)]
    lines += [f"  {row:<{wide}}" + "".join("       –" if v is None else f"{v:8.2f}" for v in shares) for row, shares in table.rows.items()]
    return "\n".join(lines)


def missed(tables: Mapping[str, Table]) -> Iterable[str]:
    """Sizes above 6.5% of tests that give verdicts, reversals above 5%, and designs that should be refused."""
    for name, columns in (
        ("designs", [0, 1, 2]),
        ("welch", [2, 3]),
        ("best", [0, 1]),
        ("bound", [0, 1]),
        ("splits", [1]),
        ("ranks", [0]),
        ("conditional", [1, 3]),
        ("mechanisms", [0]),
        ("ratios", [2]),
    ):
        for row, shares in tables[name].rows.items() if name in tables else ():
            if (most := max(shares[k] or 0.0 for k in columns)) > 100 * HIGHEST:
                yield f"{name}: {row}: size {most:.1f}%"
    for name, table in tables.items():
        for k, column in enumerate(table.columns):
            if column.startswith("reversed") or column == "found behind":
                yield from (f"{name}: {row}: {column} {v[k]:.1f}%" for row, v in table.rows.items() if (v[k] or 0.0) > 5.0)
    yield from (f"{design.name} is not refused" for design in INADMISSIBLE if not design.refused)


def main(words: Sequence[str] | None = None) -> int:
    """Simulate, print, and store if asked; 1 if a size or a share of reversals is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(words)
    made = stored() if args.write else {}
    for name in args.only:
        made[name] = TABLES[name](args.replicates, args.seed)
        print(shown(name, made[name]), flush=True)
        made = {name: made[name] for name in TABLES if name in made}
        if args.write:
            STORED.write_text(as_stored(made), encoding="utf-8")
            PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    wrong = list(missed(made))
    print("\n" + ("\n".join(wrong) or "sizes at most 6.5%, reversals at most 5%, inadmissible designs refused: met"))
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
