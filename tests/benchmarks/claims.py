"""How often the ledger's verdicts are wrong, by simulation. A command, not a test; a test of the documentation reads its stored output.

    python tests/benchmarks/claims.py [--replicates 2000] [--seed 0] [--write]

Claims: a block of five methods in the same orders. Print has ten orders, and its pairs are separated as the ledger separates them; ours
are new runs, so an order moves all methods alike and each a little. A reversal is false where the truth has the claim's sign or no sign.
Shapes: normal; crossed (orders and seeds in step, both move a method); heavy (Student's t with 4 degrees of freedom); outliers (one run in
ten collapses by ten standard deviations, whatever the method). Equivalence: two means that differ by exactly the margin are called
equivalent in at most 5%; beside print over two or three runs Welch's test alone would do so more often the noisier our runs are.
Shares: tables whose rows have true differences with or without outliers. ``--write`` stores the figures in ``claims.json`` next to this
file and puts them into docs/reference/statistics.md.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from cglsuite import stats

STORED = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "statistics.md"
BEGIN, END = "<!-- simulated: python tests/benchmarks/claims.py --write -->", "<!-- end of what is simulated of claims -->"
SHAPES = ("normal", "crossed", "heavy", "outliers")
RUNS = (3, 5, 10)
STEPS = (0.0, 1.0, 2.0, 4.0)
METHODS, PRINTED_RUNS, ORDER_STD, OWN_STD = 5, 10, 2.0, 2.0
FIRST, SECOND = np.array(list(combinations(range(METHODS), 2))).T
CHECKED, MARGIN, ERROR = 20, 2.0, 0.8
TABLES = (("close", 0.5, 0.0), ("15% off by 2.5 points", 0.5, 0.15), ("wide", 2.0, 0.0))
"""By name: the standard deviation of true differences, in points, and the share of rows that are off by 2.5 more."""
_Values = NDArray[np.float64]


def runs(generator: np.random.Generator, means: _Values, n: int, shape: str, replicates: int) -> _Values:
    """Points ``[replicates, methods, n]``: the same orders for all methods."""
    size = (replicates, means.size, n)
    own = generator.standard_t(4, size) / np.sqrt(2.0) if shape == "heavy" else generator.normal(0.0, 1.0, size)
    if shape == "crossed":  # a method's own spread is from its order and from its seed
        own = (own + generator.normal(0.0, 1.0, size)) / np.sqrt(2.0)
    if shape == "outliers":
        own = own - 10.0 * (generator.random(size) < 0.1)
    return means[None, :, None] + ORDER_STD * generator.normal(0.0, 1.0, (replicates, 1, n)) + OWN_STD * own


def holm(p: _Values) -> _Values:
    """Adjusted within rows; NaN is no part of its row's family."""
    order, known = np.argsort(p, axis=1), np.isfinite(p)
    steps = known.sum(axis=1, keepdims=True) - np.arange(p.shape[1])
    highest = np.maximum.accumulate(np.take_along_axis(p, order, axis=1) * np.maximum(steps, 1), axis=1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(highest, 1.0), axis=1)
    return np.where(known, adjusted, np.nan)


def claims_in(printed: _Values, ours: _Values) -> tuple[_Values, _Values, _Values]:
    """By replicate and pair: what print claims (1 and -1 by which is better, 0 = nothing), ours in the same sense, and our adjusted p."""
    means, deviations = printed.mean(axis=2), printed.std(axis=2, ddof=1)
    sides = [(means[:, side], deviations[:, side], PRINTED_RUNS) for side in (FIRST, SECOND)]
    p = holm(scipy_stats.ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue)
    claimed = np.where(p <= 0.05, np.sign(means[:, FIRST] - means[:, SECOND]), 0.0)
    differences = ours[:, FIRST] - ours[:, SECOND]
    test = scipy_stats.ttest_1samp(differences, 0.0, axis=2).pvalue
    return claimed, claimed * differences.mean(axis=2), holm(np.where(claimed != 0.0, test, np.nan))


def as_the_ledger(printed: _Values, ours: _Values) -> list[str]:
    """The verdicts of one block by the functions that the ledger uses, pairs in the order of :data:`FIRST`."""
    pairs = stats.printed_pairs(printed.mean(axis=1), printed.std(axis=1, ddof=1), [PRINTED_RUNS] * METHODS)
    claims = [pair for pair in pairs if pair.p_holm <= 0.05]
    tests = [stats.paired_t(ours[pair.better], ours[pair.worse]) for pair in claims]
    return stats.claim_verdicts([test.estimate for test in tests], [test.p for test in tests])[0] if tests else []


def claims(replicates: int, seed: int) -> list[dict[str, Any]]:
    """By shape, number of runs and true step between neighbours: shares of claims in percent, and blocks with a false verdict."""
    rows = []
    for shape, n, step in product(SHAPES, RUNS, STEPS):
        generator = np.random.default_rng([seed, SHAPES.index(shape), n, int(step)])
        truth = -step * np.arange(METHODS, dtype=np.float64)
        printed, ours = (runs(generator, truth, size, shape, replicates) for size in (PRINTED_RUNS, n))
        claimed, difference, p = claims_in(printed, ours)
        separated = p <= 0.05
        verdicts = np.where(difference > 0, np.where(separated, 0, 1), np.where(separated, 3, 2))
        names = [[stats.CLAIM_VERDICTS[v] for v in row[c != 0]] for row, c in zip(verdicts[:CHECKED], claimed[:CHECKED], strict=True)]
        assert names == [as_the_ledger(printed[i], ours[i]) for i in range(len(names))]
        right, made = claimed * (truth[FIRST] - truth[SECOND]) > 0, claimed != 0
        share = {
            name: round(100 * float(((verdicts == k) & made).sum() / max(made.sum(), 1)), 1) for k, name in enumerate(stats.CLAIM_VERDICTS)
        }
        reversed_, confirmed = made & (verdicts == 3), made & (verdicts == 0)
        false = reversed_ & (right | (truth[FIRST] == truth[SECOND])), confirmed & ~right
        blocks = {
            name: round(100 * float(some.any(axis=1).mean()), 2)
            for name, some in zip(("false_reversals", "false_confirmations"), false, strict=True)
        }
        rows.append({"shape": shape, "runs": n, "step": step, "claims": int(made.sum()), **share, **blocks})
    return rows


def equivalence(replicates: int, seed: int) -> list[dict[str, Any]]:
    """By printed runs, and our runs and deviation: how often means that differ by 0 and by the margin are called equivalent, in percent."""
    rows = []
    for printed_runs, n, spread in product((2, 3, 10), (5, 10), (1.0, 4.0)):
        generator = np.random.default_rng([seed, printed_runs, n, int(spread)])
        shares = {}
        for what, difference in (("nothing differs", 0.0), ("the margin", MARGIN)):
            ours = difference + spread * generator.normal(0.0, 1.0, (replicates, n))
            theirs = generator.normal(0.0, 1.0, (replicates, printed_runs))
            found = [
                stats.agreement(stats.mean_estimate(mine), float(their.mean()), float(their.std(ddof=1)), printed_runs, margin=MARGIN)
                for mine, their in zip(ours, theirs, strict=True)
            ]
            shares[what] = round(100 * float(np.mean([one.p_equivalent <= 0.05 for one in found])), 1)
            shares[f"{what}, Welch alone"] = round(100 * float(np.mean([o.low >= -MARGIN and o.high <= MARGIN for o in found])), 1)
        rows.append({"printed runs": printed_runs, "runs": n, "spread": spread, **shares})
    return rows


def shares(replicates: int, seed: int) -> list[dict[str, Any]]:
    """Tables of 20 rows in four presets: the true share within the margin, the model's with its coverage, and that of TOST row by row."""
    rows, blocks = [], np.repeat(np.arange(4), 5)
    for (name, spread, outliers), correlation in product(TABLES, (0.0, 0.6)):
        generator = np.random.default_rng([seed, *name.encode(), int(10 * correlation)])
        size = (replicates, blocks.size)
        true = spread * generator.normal(size=size) + 2.5 * np.sign(generator.normal(size=size)) * (generator.random(size) < outliers)
        common = generator.normal(size=(replicates, 4))[:, blocks]
        seen = true + ERROR * (np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * generator.normal(size=size))
        right = (np.abs(true) <= MARGIN).mean(axis=1)
        one_by_one = (np.abs(seen) + scipy_stats.norm.ppf(0.95) * ERROR < MARGIN).mean()
        for scale in stats.PRIOR_SCALES:
            found = stats.share_within(
                seen, np.full(size, ERROR), np.full(size, MARGIN), blocks.tolist(), scale=scale, draws=400, seed=seed
            )
            held = np.mean([share.low <= truth <= share.high for share, truth in zip(found, right, strict=True)])
            numbers = {"true": right.mean(), "model": np.mean([share.mean for share in found]), "covered": held, "one by one": one_by_one}
            numbers |= {"width": np.mean([share.high - share.low for share in found])}
            place = {"rows": name, "correlation": correlation, "scale": scale}
            rows.append(place | {what: round(100 * float(value), 1) for what, value in numbers.items()})
    return rows


def section(figures: dict[str, Any]) -> str:
    """The part of docs/reference/statistics.md between :data:`BEGIN` and :data:`END`."""
    by_design: dict[str, dict[float, dict[str, Any]]] = {}
    for row in figures["claims"]:
        by_design.setdefault(f"{row['shape']}, {row['runs']}", {})[row["step"]] = row
    n = f"{figures['replicates']:,}"
    lines = [
        f"Claims, simulated with {n} blocks of five methods whose expected values are one step apart. Published means are over 10 orders.",
        "The effect of an order has a standard deviation of 2 points on all methods, plus 2 points on each method. The table shows how",
        "many claims are confirmed or have the opposite sign, and the largest share of blocks with a false reversal, including steps of 0.",
        "",
        "| claims: shape, runs of ours | confirmed, %: step 1, 2, 4 points | opposite sign, % | blocks with a false reversal, % |",
        "| --- | --- | --- | --- |",
    ]
    for name, steps in by_design.items():
        shown = [", ".join(f"{steps[step][verdict]:.1f}" for step in STEPS[1:]) for verdict in ("confirmed", "opposite sign")]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} | {max(row['false_reversals'] for row in steps.values()):.2f} |")
    lines += [
        "",
        f"Equivalence to published means over few runs with a standard deviation of 1, at a margin of {MARGIN:g} ({n} replicates):",
        "",
        "| printed runs, ours, our deviation | equivalent where nothing differs, % (Welch alone) | at the margin, % (Welch alone) |",
        "| --- | --- | --- |",
    ]
    for row in figures["equivalence"]:
        shown = [f"{row[what]:.1f} ({row[f'{what}, Welch alone']:.1f})" for what in ("nothing differs", "the margin")]
        lines.append(f"| {row['printed runs']}, {row['runs']}, {row['spread']:g} | {shown[0]} | {shown[1]} |")
    lines += [
        "",
        f"Shares of tables within the margin, simulated with {n} tables of 20 rows in four presets, a standard error of {ERROR:g} points",
        f"and a margin of {MARGIN:g}. Covered: how often the 95% interval contains the true share. One by one: the share of rows that are",
        "equivalent according to their own two one-sided tests.",
        "",
        "| rows, correlation of errors, prior scale | true share, % | the model's, % | covered, % | width | one by one, % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in figures["shares"]:
        shown = [f"{row[name]:.1f}" for name in ("true", "model", "covered", "width", "one by one")]
        lines.append(f"| {row['rows']}, {row['correlation']:g}, {row['scale']:g} | {' | '.join(shown)} |")
    return "\n".join([BEGIN, "", *lines, "", END])


def with_section(page: str, figures: dict[str, Any]) -> str:
    """The page with these figures."""
    before, _, rest = page.partition(BEGIN)
    return before + section(figures) + rest.partition(END)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    parts = {part.__name__: part(given.replicates, given.seed) for part in (claims, equivalence, shares)}
    for name, rows in parts.items():
        print(name, *(" ".join(f"{value}" for value in row.values()) for row in rows), sep="\n")
    figures = {"replicates": given.replicates, "seed": given.seed, **parts}
    if given.write:
        STORED.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


if __name__ == "__main__":
    main()
