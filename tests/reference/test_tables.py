"""The published tables as data: complete, spelt alike, and every printed value with a way to it or a reason why there is none."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from installed import installed

from cglsuite.campaigns.reference import dataset_statistics, known_artefacts, names, protocols, published_results, welch_begin_fig7
from cglsuite.campaigns.reference.reproduction import Selection, reproduction_of
from cglsuite.campaigns.reference.values import (
    MARGINS,
    PAPERS,
    UNITS,
    Recipe,
    dataset_key,
    known_about,
    margin_of,
    method_key,
    printed_deviation,
    published_error,
    repetitions_mean,
    verdict_on,
)
from cglsuite.stats import Refused

REASONS = (
    r"a running time on a part of the data set \((small 1x|medium 2x|large 4x)\); the paper does not say which",
    r"method (\S+) is not implemented here: no plugin provides it",
    r"no plugin provides a preset of [\w-]+( or [\w-]+)* for (\S+) in \S+ \(\w\w\)",
    r"self-supervised pre-training \(\w+\) is not implemented here",
    r"the paper's five groups of molecules are not public: .*",
    r"the published graph comes without the paper's node features: .*",
)
"""Every reason for which an installation with all built-in plugins has no cell for a printed value."""


def test_seeds_of_papers_are_counted_from_the_first() -> None:
    """Even steps from 0, of the task-free paper from 1, and as many on one axis as the paper repeats."""
    for paper in PAPERS:
        for axis, seeds in paper.seeds.items():
            first = 1 if paper.name == "DRIFT" else 0
            step = seeds[1] - seeds[0] if len(seeds) > 1 else 1
            assert seeds == tuple(first + step * i for i in range(len(seeds))), (paper.name, axis)
            assert step in (1, 1000)
        assert paper.repeats in (None, max(map(len, paper.seeds.values())))


def test_the_tables_are_complete() -> None:
    """Row counts as the sources have them; notes that say N/A are text."""
    assert (len(published_results()), len(dataset_statistics()), len(protocols()), len(welch_begin_fig7())) == (2656, 61, 390, 15)
    missing = published_results().query("paper == 'CGLB' and method == 'Joint' and metric == 'AF'")
    assert len(missing) > 0
    assert missing["note"].str.contains("N/A").all()


def test_every_known_artefact_concerns_a_published_row() -> None:
    """No row is spelt so that it matches nothing."""
    table, known = published_results(), known_artefacts()
    assert len(known) > 10
    assert set(known["kind"]) == {"artefact", "not-comparable", "unavailable", "remark"}
    for row in known.to_dict(orient="records"):
        rows = table
        for column in ("paper", "problem", "setting", "dataset", "method", "metric"):
            wanted = row[column].split("|") if row[column] else []
            assert set(wanted) <= set(rows[column]), row
            rows = rows[rows[column].isin(wanted)] if wanted else rows
        assert len(rows), row
        assert row["reason"]
        assert not row["reason"].endswith(".")


def test_every_unit_that_is_not_a_time_is_known() -> None:
    assert set(published_results()["unit"]) == {*UNITS, "s"}


def test_every_metric_of_a_paper_has_a_margin() -> None:
    """2 points for levels, 3 for differences and ranges; in the published unit."""
    assert {metric for paper in PAPERS for metric in paper.metrics.values()} == set(MARGINS)
    assert {MARGINS["average_performance"], MARGINS["a_auc"]} == {0.02}
    assert {MARGINS["backward_transfer"], MARGINS["aopd"]} == {0.03}
    found = {unit: margin_of("average_performance", UNITS[unit]) for unit in UNITS}
    assert found == {"%": 2.0, "fraction": 0.02, "-MAE": 0.02, "MAE": 0.02, "MAE x100": 2.0}


def printed(**changes: object) -> dict[str, object]:
    """BeGin's AP of Bare on Cora in task-IL: 90.3 ± 1.8."""
    where = "paper == 'BeGin' and dataset == 'Cora' and setting == 'task-IL' and method == 'Bare' and metric == 'AP'"
    rows = published_results().query(where)
    return {str(k): v for k, v in rows.iloc[0].items()} | changes


def test_what_a_published_deviation_amounts_to() -> None:
    """A printed zero stands for half a unit of its last digit; an unknown number of runs for the smallest that has a deviation."""
    assert published_error(printed(), 10) == (1.8, 10)
    assert published_error(printed(std=0.0, printed="90.3 ± 0.0"), 10) == (0.05, 10)
    assert published_error(printed(std=0.0, printed="90.3 ± 0.00"), None) == (pytest.approx(0.005), 2)
    assert published_error(printed(std=0.0, printed="90 ± 0"), 3) == (0.5, 3)


def test_a_verdict_needs_three_repetitions_of_ours() -> None:
    """And their spread may be zero beside a printed one; values are fractions, the row is in percent."""
    for n in (1, 2):
        with pytest.raises(Refused, match=f"{n} repetitions? of ours: a verdict needs at least 3"):
            repetitions_mean([0.9] * n)
    found = verdict_on(printed(), "average_performance", repetitions_mean([0.9, 0.9, 0.9]), 10)
    assert (found.difference, found.margin, found.df) == tuple(map(pytest.approx, (-0.3, 2.0, 9.0)))
    one = verdict_on(printed(), "average_performance", repetitions_mean([0.89, 0.90, 0.91]), 10)
    assert one.error == pytest.approx((1.0 / 3 + 1.8**2 / 10) ** 0.5)
    with pytest.raises(Refused, match="no standard deviation"):
        verdict_on(printed(std=float("nan")), "average_performance", repetitions_mean([0.9] * 3), 10)


@pytest.mark.parametrize(("mean", "ours"), [(0.0, 0.0), (100.0, 1.0), (90.0, 0.9), (100.0, 0.97), (90.0, 0.1 + 0.2 + 0.6)])
def test_no_spread_on_both_sides_is_no_agreement(mean: float, ours: float) -> None:
    """Wherever both values lie, and whether or not they are equal: there is no variance to test against."""
    row = printed(mean=mean, std=0.0, printed=f"{mean} ± 0.0")
    with pytest.raises(Refused, match="neither value has spread"):
        verdict_on(row, "average_performance", repetitions_mean([ours] * 5), 10)
    assert verdict_on(row, "average_performance", repetitions_mean([ours, ours, ours - 0.001]), 10).error > 0
    assert verdict_on(printed(mean=mean, std=0.1), "average_performance", repetitions_mean([ours] * 5), 10).error > 0


def test_deviations_in_the_unit_of_the_mean() -> None:
    """AGALE's are on the scale from 0 to 1 beside means in percent; of its joint training they cannot be."""
    rows = (
        published_results()
        .query("paper == 'AGALE' and dataset == 'PCG' and table == '3' and metric == 'AP'")
        .set_index("method", drop=False)
    )
    found = {method: {str(k): v for k, v in rows.loc[method].items()} for method in ("Bare", "Joint")}
    assert printed_deviation(found["Bare"]) == pytest.approx(4.0)
    assert printed_deviation(found["Joint"]) == 0.47
    assert not known_about(found["Joint"]).comparable
    assert known_about(found["Bare"]).artefacts


def test_names_are_printed_ones() -> None:
    """Each line renames something that a table prints, or is another word in a paper for that, and has one name only."""
    table, words = published_results(), names()
    for row in words.to_dict(orient="records"):
        printed = set(table[row["kind"]])
        tables = {name.lower() for name in printed} | set(words["here"][words["printed"].isin(printed)])
        assert row["printed"] in printed or row["here"] in tables, row
    assert not names().duplicated(["kind", "printed"]).any()


@pytest.mark.plugins
def test_names_here_are_installed() -> None:
    known = installed()
    assert [row for row in names().to_dict(orient="records") if row["here"] not in known.names(row["kind"])] == []


@pytest.mark.plugins
def test_a_pretrained_method_is_compared_with_joint_training_as_it_is() -> None:
    """Intransigence needs joint training, which cannot be pre-trained: all planned cells can be run, and Piggyback's alone use DGI."""
    known = installed()
    planned = reproduction_of(Selection(paper="BeGin", dataset="Cora", method="Piggyback", repeats=2), known).plan(known)
    assert [p.reason for p in planned if not p.ready] == []
    assert len(planned) == 4
    assert {(p.cell.method, p.cell.pretraining) for p in planned if p.cell} == {("piggyback", "dgi"), ("joint", "none")}


@pytest.mark.plugins
@pytest.mark.parametrize("paper", [paper.name for paper in PAPERS])
def test_every_printed_value_has_a_cell_or_a_reason(paper: str) -> None:
    """Nothing is left over, no reason is a crash, and what is called absent is absent under every spelling."""
    known = installed()
    wanted = reproduction_of(Selection(paper=paper, repeats=1), known)
    table = published_results().query(f"paper == '{paper}'")
    entries = (*wanted.entries, *wanted.times)
    assert len(entries) + wanted.unprinted == len(table)
    assert len(entries) == table["mean"].notna().sum()
    assert len(wanted.times) == (table["mean"].notna() & (table["unit"] == "s")).sum()
    methods = {method_key(name) for name in known.names("method")}
    presets = {(dataset_key(name.partition("/")[0]), name.partition("@")[2]) for name in known.names("scenario")}
    protocols_of = next(one.protocols for one in PAPERS if one.name == paper)
    used: Counter[str] = Counter()
    for entry in entries:
        if entry.recipe is not None:
            assert isinstance(entry.recipe, Recipe)
            assert entry.recipe.preset in known.names("scenario")
            assert entry.recipe.method in known.names("method")
            used["cell"] += 1
            continue
        matched = [pattern for pattern in REASONS if re.fullmatch(pattern, entry.reason)]
        assert len(matched) == 1, entry.reason
        used["reason"] += 1
        if entry.reason.startswith("method "):
            assert method_key(entry.row["method"]) not in methods
        if entry.reason.startswith("no preset"):
            assert not presets & {(dataset_key(entry.row["dataset"]), protocol) for protocol in protocols_of}
    assert used["cell"] > used["reason"] / 2
