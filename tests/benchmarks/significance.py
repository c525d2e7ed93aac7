"""Size and power of the tests by simulation, for the designs that campaigns have. A command, not a test.

    python tests/benchmarks/significance.py [--repetitions 10000] [--seed 0]

Size: two methods of the same expected performance are compared over and over; the share of comparisons with ``p < 0.05`` is to be at most
6.5 % for every design that ``compare_methods`` admits. Power: the same with a true difference. The difference of two methods in a cell is
``d[o, s] = δ + A_o + B_s + E_os``: method × order (std 2 points), method × seed (0, 1 and 2 points: the columns), the rest (2 points), each
std being that of one method, so that a difference has √2 times as much. Simulated differences go through the functions that
``compare_methods`` uses, all at once, and the first of every design also through ``compare_methods`` itself: the p values are the same.

Below: what the tests replaced, other shapes of noise, agreement with a published value, offsets of tables, ranks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from cglsuite import stats

ALPHA, HIGHEST = 0.05, 0.065
ORDER_STD, REST_STD = 0.02, 0.02
SEED_STDS = (0.0, 0.01, 0.02)
DIFFERENCES = (0.02, 0.04)
_Values = NDArray[np.float64]


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
        return str(stats.compare_methods(*frames(self, drawn(self, 0.02, 1, 0)), **options(self))["refused"].iloc[0])


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
REPLACED = [Design("120 orders × 1 seed", 120, 1, "one"), Design("10 orders × 1 seed", 10, 1, "one"), *ADMISSIBLE[1:4]]
"""Designs for which the test used to be Student's t over means of orders."""


def noise(generator: np.random.Generator, shape: str, size: tuple[int, ...]) -> Any:
    """Values with mean 0 and variance 1."""
    if shape == "skewed":
        return generator.exponential(1.0, size) - 1.0
    if shape == "heavy":
        return generator.standard_t(4, size) / np.sqrt(2.0)
    return generator.normal(0.0, 1.0, size)


def drawn(
    design: Design, seed_std: float, repetitions: int, seed: int, *, difference: float = 0.0, shape: str = "normal", claim: bool = False
) -> tuple[_Values, _Values]:
    """Both methods' values ``[repetitions, orders, seeds]``, the second of which is ``difference`` below in expectation.

    Args:
        claim: whether what is claimed is about the single seed or order that was run; then its own effect is part of the truth.
    """
    generator = np.random.default_rng([seed, *design.name.encode(), int(1000 * seed_std), int(1000 * difference)])
    sides = []
    for side, n in enumerate((design.orders, design.unshared or design.orders)):
        own = design.seeds == "own"
        order = ORDER_STD * noise(generator, shape, (repetitions, n, 1))
        if design.all_orders:
            order = order - order.mean(axis=1, keepdims=True)  # over the whole population methods are alike
        if claim and design.orders == 1:
            order = 0.0 * order
        by_seed = seed_std * noise(generator, shape, (repetitions, n if own else 1, design.per_order))
        if claim and design.per_order == 1:
            by_seed = 0.0 * by_seed
        values = order + by_seed + REST_STD * noise(generator, shape, (repetitions, n, design.per_order))
        sides.append(values + (difference if side == 0 else 0.0))
    return sides[0], sides[1]


def frames(design: Design, sides: tuple[_Values, _Values]) -> tuple[pd.DataFrame]:
    """The first repetition as ``compare_methods`` takes it."""
    rows = []
    for method, values in zip("ab", sides, strict=True):
        mine = method if design.unshared else ""
        for (o, s), value in np.ndenumerate(values[0]):
            seed = f"{mine}{o}/{s}" if design.seeds == "own" else str(s)
            rows.append((method, f"{mine}{o}", seed, float(value)))
    return (pd.DataFrame(rows, columns=["method", "order", "seed", "value"]),)


def options(design: Design) -> dict[str, Any]:
    return {"orders_in_all": design.orders} if design.all_orders else {}


def p_values(design: Design, sides: tuple[_Values, _Values]) -> _Values:
    """Of all repetitions at once; that of the first is also what ``compare_methods`` gives."""
    first, second = sides
    if design.unshared:
        p = scipy_stats.ttest_ind(first.mean(axis=2), second.mean(axis=2), axis=1, equal_var=False).pvalue
    elif design.seeds == "crossed" and design.orders > 1 and not design.all_orders:
        mean, error, df = stats.quasi_f(first - second)
        p = 2.0 * scipy_stats.t.sf(abs(mean / error), df)
    else:
        p = scipy_stats.ttest_1samp((first - second).mean(axis=1 if design.seeds == "crossed" else 2), 0.0, axis=1).pvalue
    shipped = stats.compare_methods(*frames(design, sides), **options(design)).iloc[0]
    if shipped["refused"] or not np.isclose(shipped["p"], p[0], rtol=1e-6):
        raise SystemExit(f"{design.name}: compare_methods gives p = {shipped['p']} {shipped['refused']}, the simulation {p[0]}")
    return np.asarray(p, dtype=np.float64)


def over_orders(_: Design, sides: tuple[_Values, _Values]) -> _Values:
    """The rule that was replaced: Student's t over means of orders, seeds averaged."""
    return np.asarray(scipy_stats.ttest_1samp((sides[0] - sides[1]).mean(axis=2), 0.0, axis=1).pvalue)


def over_cells(_: Design, sides: tuple[_Values, _Values]) -> _Values:
    """Every cell as a replicate."""
    return np.asarray(scipy_stats.ttest_1samp((sides[0] - sides[1]).reshape(len(sides[0]), -1), 0.0, axis=1).pvalue)


Test = Callable[[Design, tuple[_Values, _Values]], _Values]


def sizes(design: Design, n: int, seed: int, test: Test = p_values, **how: Any) -> list[float]:
    """The share of p < 0.05 by the std of method × seed."""
    return [float((test(design, drawn(design, std, n, seed, **how)) < ALPHA).mean()) for std in SEED_STDS]


def powers(design: Design, n: int, seed: int, difference: float) -> list[float]:
    """The share of p < 0.05 with the right sign."""
    shares = []
    for std in SEED_STDS:
        sides = drawn(design, std, n, seed, difference=difference)
        right = sides[0].mean(axis=(1, 2)) > sides[1].mean(axis=(1, 2))
        shares.append(float(((p_values(design, sides) < ALPHA) & right).mean()))
    return shares


def shown(shares: Iterable[float]) -> str:
    return "".join(f"{100 * share:7.1f}" for share in shares)


def size_and_power(n: int, seed: int) -> bool:
    """Print both for every admissible design; whether all sizes are in bounds."""
    columns = "".join(f"{100 * std:7.0f}" for std in SEED_STDS)
    print(f"\n{'admissible designs':<46}{'size, %':>21}" + "".join(f"   power at {100 * d:.0f} points, %" for d in DIFFERENCES))
    print(f"{'  std of method × seed, points':<46}{columns}" + f"{'':3}{columns}" * len(DIFFERENCES))
    met = True
    for design in ADMISSIBLE:
        found = sizes(design, n, seed)
        met &= max(found) <= HIGHEST
        power = "".join(f"{'':3}{shown(powers(design, n, seed, difference))}" for difference in DIFFERENCES)
        print(f"  {design.name:<44}{shown(found)}{power}{'' if max(found) <= HIGHEST else '  ABOVE 6.5 %'}", flush=True)
    for design in CONDITIONAL:
        found = sizes(design, n, seed, claim=True)
        met &= max(found) <= HIGHEST
        print(f"  {design.name:<44}{shown(found)}", flush=True)
    return met


def refusals() -> bool:
    """Print why designs have no verdict; whether all are refused."""
    print("\ninadmissible designs")
    reasons = [(design.name, design.refused) for design in INADMISSIBLE]
    for name, reason in reasons:
        print(f"  {name:<44}  {'refused: ' + reason if reason else 'NOT REFUSED'}")
    return all(reason for _, reason in reasons)


def agreements(n: int, seed: int) -> None:
    """Verdicts beside a published mean: ours over 5 or 10 orders, theirs over 10, margin 2 points."""
    print("\nagreement with a published mean over 10 runs, margin 2 points: equivalent / different / undecided, %")
    for ours, std in ((5, 0.01), (5, 0.02), (5, 0.04), (10, 0.01), (10, 0.02), (10, 0.04)):
        line = []
        for true in (0.0, 0.02, 0.04):
            counts = dict.fromkeys(stats.AGREEMENTS, 0)
            generator = np.random.default_rng([seed, ours, int(1000 * std), int(1000 * true)])
            for mine, theirs in zip(generator.normal(true, std, (n, ours)), generator.normal(0.0, std, (n, 10)), strict=True):
                estimate = stats.mean_estimate(mine, ("order",))
                found = stats.agreement(estimate, float(theirs.mean()), float(theirs.std(ddof=1)), 10, margin=0.02)
                counts[stats.agreement_verdicts([found.p_equivalent], [found.p_different])[0][0]] += 1
            line.append(f"true difference {100 * true:.0f}: " + " / ".join(f"{100 * c / n:.1f}" for c in counts.values()))
        print(f"  {ours:>2} orders, std {100 * std:.0f}   " + "   ".join(line), flush=True)


def offsets(n: int, seed: int) -> None:
    """False positives of a table's offset: ten rows of one data set that share orders, nothing being off."""
    print("\noffset of a table of 10 rows that share orders, nothing off, false positives, %: joint bootstrap, sign test")
    for units in (5, 10):
        generator, joint, signs = np.random.default_rng([seed, units]), 0, 0
        names = pd.MultiIndex.from_product([range(10), range(units)], names=["row", "unit"]).to_frame(index=False)
        for _ in range(n):
            ours = generator.normal(0, 0.02, (1, units)) + generator.normal(0, 0.02, (10, units))
            theirs = generator.normal(0, 0.02, (1, 10)) + generator.normal(0, 0.02, (10, 10))
            rows = {
                "row": range(10),
                "block": "one",
                "mean": theirs.mean(axis=1),
                "error": theirs.std(axis=1, ddof=1) / np.sqrt(10),
                "df": 9,
            }
            found = stats.joint_offset(names.assign(value=ours.ravel()), pd.DataFrame(rows))
            joint += found.certain
            signs += scipy_stats.binomtest(found.higher, found.rows).pvalue < ALPHA
        print(f"  our {units:>2} orders, published 10{'':<22}{shown([joint / n, signs / n])}", flush=True)


def nemenyi_rate(n_methods: int, n_orders: int, repetitions: int, seed: int = 0, *, seed_std: float = 0.0) -> float:
    """The share of repetitions in which Friedman's test and then any Nemenyi pair finds a difference between alike methods.

    Args:
        seed_std: of what the one seed that all orders share does to a method, beside noise of 1 within an order.
    """
    generator, found = np.random.default_rng([seed, n_methods, n_orders]), 0
    names = [(f"m{m}", f"o{o}") for o in range(n_orders) for m in range(n_methods)]
    frame = pd.DataFrame(names, columns=["method", "order"])
    for _ in range(repetitions):
        values = generator.normal(size=(n_orders, n_methods)) + seed_std * generator.normal(size=n_methods)
        result = stats.friedman(frame.assign(value=values.ravel()))
        found += result.separates and float(result.nemenyi.to_numpy().min()) < ALPHA
    return found / repetitions


def figure_7_rate(method_std: float, repetitions: int, seed: int = 0) -> float:
    """The share in which Figure 7's test tells regularization from replay, all ten methods being drawn from one population.

    Args:
        method_std: how far methods differ from each other in all scenarios, beside a std of 1 within a scenario.
    """
    generator, found = np.random.default_rng([seed, int(100 * method_std)]), 0
    methods = [m for members in stats.CATEGORIES.values() for m in members]
    names = [(f"s{s}", m) for s in range(4) for m in methods]
    frame = pd.DataFrame(names, columns=["scenario", "method"])
    for _ in range(repetitions):
        values = method_std * generator.normal(size=len(methods)) + generator.normal(size=(4, len(methods)))
        tests = stats.category_tests(stats.category_ranks(frame.assign(value=values.ravel())))
        found += bool(tests["p"].iloc[0] < ALPHA)
    return found / repetitions


def table(title: str, rows: Iterable[tuple[str, list[float]]]) -> None:
    """Print rows as they come."""
    print(f"\n{title}")
    for name, shares in rows:
        print(f"  {name:<44}{shown(shares)}", flush=True)


def main() -> None:
    """Run every design and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    n, seed = args.repetitions, args.seed
    half = 100 * float(scipy_stats.norm.ppf(0.975)) * np.sqrt(ALPHA * (1 - ALPHA) / n)
    print(f"level {ALPHA}, {n} repetitions; simulation error of a share of 5 %: ± {half:.1f} points")
    print(f"std of method × order {100 * ORDER_STD:.0f} points, of the rest {100 * REST_STD:.0f} points, per method")
    met = size_and_power(n, seed)
    met &= refusals()
    table("replaced: Student's t over means of orders, size, %", ((d.name, sizes(d, n, seed, over_orders)) for d in REPLACED))
    table("all cells as replicates, size, %", ((d.name, sizes(d, n, seed, over_cells)) for d in ADMISSIBLE[1:4]))
    five = [ADMISSIBLE[3], ADMISSIBLE[9], ADMISSIBLE[12]]
    for shape in ("heavy", "skewed"):
        table(f"{shape} noise, size, %", ((d.name, sizes(d, n, seed, shape=shape)) for d in five))
    few = max(n // 10, 200)
    agreements(few, seed)
    offsets(few, seed)
    ranks = ((4, 3, 0.0), (4, 10, 0.0), (7, 5, 0.0), (4, 10, 0.5), (4, 10, 1.0))
    rows = ((f"{k} methods, {o} orders, shared seed's std {s:g}", [nemenyi_rate(k, o, few, seed, seed_std=s)]) for k, o, s in ranks)
    table("Friedman, then Nemenyi: any pair of alike methods, %", rows)
    alike = (
        (0.0, "methods alike in all scenarios"),
        (1.0, "methods differ as much as within scenarios"),
        (3.0, "methods differ much more"),
    )
    table("Figure 7's recipe, categories alike, %", ((name, [figure_7_rate(std, few // 2, seed)]) for std, name in alike))
    print(f"\nsize at most 6.5 % for every admissible design, and every other design refused: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
