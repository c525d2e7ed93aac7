"""How often tests find a difference where there is none, by simulation. A command, not a test.

    python tests/benchmarks/significance.py [--repetitions 2000] [--seed 0]

Two methods with the same expected performance are compared over and over; the share of comparisons with ``p < 0.05`` should be 5 %. The
default path of ``compare_methods`` is to stay between 3 and 7 %. Results are made as ``y[m, o, s] = a_o + b_{m,o} + e_{m,o,s}``: what an
order does to all methods (std 2 points), what it does to each in its own way (std of the row), and seeds (std of the row).

For contrast: the same data with all cells of all orders counted as replicates, and the recipe of BeGin's Figure 7 on categories of methods
that come from one same population.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from cglsuite import stats

ALPHA, LOWEST, HIGHEST = 0.05, 0.03, 0.07
ORDER_STD = 0.02


@dataclass(frozen=True)
class Design:
    """A simulated comparison: its name, orders and seeds per order of each method, and how results spread.

    Args:
        shared: both methods run in the same orders. interaction, seed: std of method × order and of seeds; times ``ratio`` for the second.
        shape: ``normal``, ``skewed`` (exponential, centred) or ``heavy`` (Student's t with 4 degrees of freedom, scaled).
    """

    name: str
    orders: tuple[int, int] = (5, 5)
    seeds: int = 3
    shared: bool = True
    interaction: float = 0.02
    seed: float = 0.02
    ratio: float = 1.0
    shape: str = "normal"


DEFAULT_PATH = [
    Design("shared orders, 5 × 3 seeds"),
    Design("shared orders, 3 × 5 seeds", orders=(3, 3), seeds=5),
    Design("shared orders, 10 × 1 seed", orders=(10, 10), seeds=1),
    Design("shared orders, unequal variances (1 : 4)", ratio=4.0),
    Design("unshared orders, 5 and 5 × 3 seeds", shared=False),
    Design("unshared orders, unequal variances (1 : 4)", shared=False, ratio=4.0),
    Design("unshared orders, 5 and 10, unequal variances (1 : 4)", shared=False, orders=(5, 10), ratio=4.0),
    Design("unshared orders, 10 and 5, unequal variances (1 : 4)", shared=False, orders=(10, 5), ratio=4.0),
    Design("one order, 5 seeds (claim on that order)", orders=(1, 1), seeds=5, interaction=0.0),
]
BEYOND_NORMAL = [
    Design("shared orders, heavy tails", shape="heavy"),
    Design("shared orders, skewed", shape="skewed"),
    Design("unshared orders, heavy tails", shared=False, shape="heavy"),
    Design("unshared orders, skewed", shared=False, shape="skewed"),
]
POOLED = [
    Design("5 orders × 3 seeds, interaction = seeds", seeds=3),
    Design("5 orders × 5 seeds, interaction = seeds", seeds=5),
    Design("5 orders × 3 seeds, interaction = 2 × seeds", interaction=0.04),
]


def noise(generator: np.random.Generator, shape: str, size: tuple[int, ...]) -> Any:
    """Values with mean 0 and variance 1."""
    if shape == "skewed":
        return generator.exponential(1.0, size) - 1.0
    if shape == "heavy":
        return generator.standard_t(4, size) / np.sqrt(2.0)
    return generator.normal(0.0, 1.0, size)


def campaigns(design: Design, repetitions: int, generator: np.random.Generator) -> pd.DataFrame:
    """As many campaigns of two methods with equal expectations: a0 and b0, a1 and b1, ...; columns method, order, seed, value."""
    parts = []
    common = ORDER_STD * noise(generator, design.shape, (repetitions, max(design.orders)))
    for number, (letter, n) in enumerate(zip("ab", design.orders, strict=True)):
        scale = design.ratio if number else 1.0
        effect = common[:, :n] if design.shared else ORDER_STD * scale * noise(generator, design.shape, (repetitions, n))
        effect = effect + design.interaction * scale * noise(generator, design.shape, (repetitions, n))
        values = 0.6 + effect[:, :, None] + design.seed * scale * noise(generator, design.shape, (repetitions, n, design.seeds))
        run, order, seed = (axis.ravel() for axis in np.indices(values.shape))
        mine = "" if design.shared else f"{letter}'s "
        names = {"method": [f"{letter}{r}" for r in run], "order": [f"{mine}order {o}" for o in order]}
        parts.append(pd.DataFrame({**names, "seed": seed, "value": values.ravel()}))
    return pd.concat(parts, ignore_index=True)


Test = Callable[[pd.DataFrame, list[tuple[str, str]]], Any]


def default_path(frame: pd.DataFrame, pairs: list[tuple[str, str]]) -> Any:
    """The p values of ``compare_methods``."""
    return stats.compare_methods(frame, pairs=pairs)["p"]


def wilcoxon_path(frame: pd.DataFrame, pairs: list[tuple[str, str]]) -> Any:
    """The same with Wilcoxon's signed ranks."""
    return stats.compare_methods(frame, pairs=pairs, test="wilcoxon")["p"]


def pooled_seeds(frame: pd.DataFrame, pairs: list[tuple[str, str]]) -> Any:
    """The p values of Welch's test where every cell counts as a replicate."""
    values = {name: part.to_numpy() for name, part in frame.groupby("method", sort=False)["value"]}
    return np.array([stats.welch(values[a], values[b]).p for a, b in pairs])


def pooled_pairs(frame: pd.DataFrame, pairs: list[tuple[str, str]]) -> Any:
    """The p values of the paired t-test where every cell counts as a pair."""
    values = {name: part.to_numpy() for name, part in frame.groupby("method", sort=False)["value"]}
    return np.array([stats.paired_t(values[a], values[b]).p for a, b in pairs])


def rate(design: Design, test: Test, repetitions: int, seed: int = 0) -> float:
    """The share of repetitions with p < 0.05."""
    frame = campaigns(design, repetitions, np.random.default_rng([seed, *design.name.encode()]))
    p = np.asarray(test(frame, [(f"a{r}", f"b{r}") for r in range(repetitions)]), dtype=np.float64)
    if np.isnan(p).any():
        raise SystemExit(f"{design.name}: {int(np.isnan(p).sum())} of {repetitions} comparisons were refused")
    return float((p < ALPHA).mean())


def nemenyi_rate(n_methods: int, n_orders: int, repetitions: int, seed: int = 0) -> float:
    """The share of repetitions in which Friedman's test and then any Nemenyi pair finds a difference between alike methods."""
    generator, found = np.random.default_rng([seed, n_methods, n_orders]), 0
    names = [(f"m{m}", f"o{o}") for o in range(n_orders) for m in range(n_methods)]
    frame = pd.DataFrame(names, columns=["method", "order"])
    for _ in range(repetitions):
        result = stats.friedman(frame.assign(value=generator.normal(size=len(frame))))
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


def table(title: str, rows: Iterable[tuple[str, float]], verdict: bool = False) -> bool:
    """Print rows as they come; whether all lie where they should."""
    print(f"\n{title}")
    good = True
    for name, share in rows:
        inside = LOWEST <= share <= HIGHEST
        good &= inside
        print(f"  {name:<56} {100 * share:5.1f} %" + ("" if not verdict else "  within 3 to 7 %" if inside else "  OUTSIDE"), flush=True)
    return good


def main() -> None:
    """Run every design and print the shares of false positives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    n, seed = args.repetitions, args.seed
    half = 100 * float(scipy_stats.norm.ppf(0.975)) * np.sqrt(ALPHA * (1 - ALPHA) / n)
    print(f"false positives at alpha = {ALPHA}, {n} repetitions; simulation error of a share of 5 %: ± {half:.1f} points")
    met = table("default path", ((d.name, rate(d, default_path, n, seed)) for d in DEFAULT_PATH), verdict=True)
    table("default path, values that are not normal", ((d.name, rate(d, default_path, n, seed)) for d in BEYOND_NORMAL))
    ten = Design("shared orders, 10 × 1 seed", orders=(10, 10), seeds=1)
    table("Wilcoxon's signed ranks", [(ten.name, rate(ten, wilcoxon_path, n, seed))])
    for name, test in (("Welch", pooled_seeds), ("paired t", pooled_pairs)):
        table(f"all cells as replicates: {name} (wrong)", ((d.name, rate(d, test, n, seed)) for d in POOLED))
    sizes = ((4, 3), (4, 10), (7, 5))
    table("Friedman, then Nemenyi: any pair", ((f"{k} methods, {o} orders", nemenyi_rate(k, o, n // 4, seed)) for k, o in sizes))
    told = ((0.0, "methods alike in all scenarios"), (1.0, "methods differ as much as within scenarios"), (3.0, "methods differ much more"))
    table("Figure 7's recipe, categories alike", ((name, figure_7_rate(std, n // 4, seed)) for std, name in told))
    print(f"\ndefault path between 3 and 7 %: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
