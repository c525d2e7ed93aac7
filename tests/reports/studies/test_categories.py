"""BeGin's Figure 7 on a page and from a campaign's records: the golden rows, ranks by SciPy, refusals in words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_records import CAMPAIGN, made_catalogue, made_results
from page_elements import text_of, texts
from page_numbers import exact_numbers, numbers
from report_lab import Elements, Tables, assert_harmless, page_with
from scipy import stats as scipy_stats

from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.campaigns.reference import published_results, welch_begin_fig7
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue, load_catalogue
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.results.tables import summary
from cglsuite.reports.studies import categories as show_category_ranks
from cglsuite.reports.studies import categories as study_module
from cglsuite.reports.studies.categories import (
    CategoryStudy,
    begin_figure_7,
    begin_levels,
    begin_ranks,
    category_study,
    compared_with_print,
    printed_tests,
)

CAMPAIGN_PARTS = ("overview", "boxes", "tests", "averages", "problems", "provenance")
DISAGREEING = {
    ("AP", "task-IL", "replay-based"): (-2.6631, -2.9043),
    ("AP", "task-IL", "parameter-isolation-based"): (2.9512, 2.7625),
    ("AP", "class-IL", "replay-based"): (3.7792, 3.9505),
}
"""The three tests of regularization against another category that the paper's tables do not give: t computed, t printed."""
CATEGORIES = {"regularization-based": ["si", "ewc"], "replay-based": ["er-gnn", "gem"], "parameter-isolation-based": ["packnet"]}
GRID = {
    "scenarios": ["cora/task-il@begin-1", "toy/class-il@cglb-1"],
    "methods": ["bare", "si", "ewc", "er-gnn", "gem", "packnet", "joint"],
    "backbones": ["gcn", "gat"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignResults, Catalogue]:
    return made_results(tmp_path_factory.mktemp("made"), grid=GRID)


@pytest.fixture(scope="module")
def study(made: tuple[CampaignResults, Catalogue]) -> CategoryStudy:
    return category_study(*made, categories=CATEGORIES)


def test_twelve_of_fifteen_tests_agree_to_every_printed_digit() -> None:
    """The other three are the known discrepancies, and nothing else."""
    panels = begin_figure_7()
    assert [(p.metric, p.setting) for p in panels] == [(m, s) for m in ("AP", "AF", "INT") for s in ("task-IL", "class-IL", "time-IL")]
    rows = [(p, row) for p in panels for row in printed_tests(p).to_dict("records")]
    assert len(rows) == len(welch_begin_fig7()) == 15
    unlike = {(p.metric, p.setting, r["second"]): (round(r["t"], 4), r["printed_t"]) for p, r in rows if not r["agrees"]}
    assert unlike == DISAGREEING
    assert all(r["first"] == "regularization-based" for _, r in rows if not r["agrees"])


@pytest.mark.nightly
def test_the_page_of_the_figure() -> None:
    """Computed and printed values side by side; the verdicts are counted, not typed."""
    page = page_with(show_category_ranks.begin_boxes(), show_category_ranks.begin_tests(), show_category_ranks.begin_averages())
    assert_harmless(page)
    assert text_of(page, "figcaption", "tests agree").startswith("12 of 15 tests agree to every printed digit;")
    shown = exact_numbers(page)
    for panel in begin_figure_7():
        assert numbers(printed_tests(panel)[["t", "p", "printed_t", "printed_p"]]) <= shown
        assert numbers(panel.averages[["rank", "n_scenarios"]]) <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    rows = [row for row in Tables(page).tables[0] if len(row) > 2]
    assert [row[6][0] for row in rows[1:]].count("yes") == 12


@pytest.mark.parametrize(("metric", "table"), [("AP", "4"), ("INT", "6")])
def test_average_ranks_of_published_methods(metric: str, table: str) -> None:
    """Thirteen methods (joint training is none of them), ties share the lowest rank: SciPy's ranks of the printed means."""
    panel = begin_ranks(metric, "task-IL")
    printed = published_results()
    mine = (printed["paper"] == "BeGin") & (printed["table"] == table) & (printed["problem"] == "NC") & (printed["metric"] == metric)
    mine &= (printed["setting"] == "task-IL") & printed["dataset"].isin(["Cora", "Citeseer", "ogbn-arxiv", "CoraFull"])
    wide = printed[mine & (printed["method"] != "Joint")].pivot(index="dataset", columns="method", values="mean")
    assert wide.shape == (4, 13)
    ranks = scipy_stats.rankdata(-wide.to_numpy() if metric == "AP" else wide.to_numpy(), method="min", axis=1)
    expected = dict(zip(wide.columns, ranks.mean(axis=0), strict=True))
    assert dict(zip(panel.averages["method"], panel.averages["rank"], strict=True)) == pytest.approx(expected)
    assert set(panel.averages["n_scenarios"]) == {4}


def test_average_ranks_over_all_levels() -> None:
    """Of the six methods that the tables have at every level, in every scenario with a printed mean: SciPy's ranks."""
    panels = {panel.setting: panel for panel in begin_levels() if panel.metric == "INT"}
    assert list(panels) == ["NC", "LC", "LP", "GC", "GR", "all levels"]
    printed = published_results()
    mine = (printed["paper"] == "BeGin") & (printed["table"] == "6") & (printed["metric"] == "INT")
    wide = printed[mine].pivot(index=["problem", "dataset", "setting"], columns="method", values="mean")
    common = wide[["Bare", "LwF", "EWC", "MAS", "GEM", "TWP"]]
    ranks = scipy_stats.rankdata(common.to_numpy(), method="min", axis=1, nan_policy="omit")
    averages = panels["all levels"].averages.set_index("method")
    assert averages["rank"].to_dict() == pytest.approx(dict(zip(common.columns, np.nanmean(ranks, axis=0), strict=True)))
    assert averages["n_scenarios"].to_dict() == common.notna().sum().to_dict()
    page = str(show_category_ranks.level_averages())
    assert exact_numbers(page) >= numbers(panels["all levels"].averages[["rank", "n_scenarios"]])


@pytest.mark.parametrize(("p", "shown"), [(0.0123, "0.012"), (0.001, "0.001"), (0.00099, "9.900e−04"), (0.5, "0.500")])
def test_small_p_values_are_powers_of_ten(p: float, shown: str) -> None:
    """As soon as the digits of a fraction would not hold them."""
    assert f">{shown}<" in str(show_category_ranks._p_cell(p, 3))


def test_unknown_panels() -> None:
    with pytest.raises(UnknownNameError, match="metric of Figure 7 'FWT'"):
        begin_ranks("FWT", "task-IL")
    with pytest.raises(UnknownNameError, match="setting of Figure 7 'domain-IL'"):
        begin_ranks("AP", "domain-IL")


def test_a_campaign_by_hand(made: tuple[CampaignResults, Catalogue], study: CategoryStudy) -> None:
    """Ranks of group means within a preset on a backbone, among the members of categories only; Welch's tests by SciPy."""
    panel = next(p for p in study.ranked if (p.metric, p.setting) == ("AP", "task-il"))
    frame = summary(made[0])
    frame = frame[(frame["metric"] == "average_performance") & frame["preset"].str.startswith("cora/task-il")]
    pooled: dict[str, list[float]] = {name: [] for name in CATEGORIES}
    for _, part in frame[frame["method"].isin(sum(CATEGORIES.values(), []))].groupby(["preset", "backbone"]):
        assert len(part) == 5
        ranks = dict(zip(part["method"], scipy_stats.rankdata(-part["mean"].to_numpy(), method="min"), strict=True))
        for name, members in CATEGORIES.items():
            pooled[name] += [ranks[m] for m in members]
    assert {name: sorted(panel.ranks.loc[panel.ranks["category"] == name, "rank"]) for name in CATEGORIES} == {
        name: sorted(values) for name, values in pooled.items()
    }
    row = panel.tests.iloc[0]
    expected = scipy_stats.ttest_ind(pooled["regularization-based"], pooled["replay-based"], equal_var=False)
    assert (row["t"], row["p"], row["df"]) == pytest.approx((expected.statistic, expected.pvalue, expected.df))
    assert "joint" not in set(panel.averages["method"])
    assert study.outside == ("bare", "joint")


def test_references_have_no_average_rank(made: tuple[CampaignResults, Catalogue]) -> None:
    """A method of the category ``reference`` is left out, as joint training is, and the ranks of the others close up."""
    results, catalogue = made
    control = dataclasses.replace(results, references=results.references | {"bare"})
    averages, fewer = (
        category_study(one, catalogue, categories=CATEGORIES).ranked[0].averages.set_index("method")["rank"] for one in (results, control)
    )
    assert set(averages.index) - set(fewer.index) == {"bare"}
    assert (fewer <= averages[fewer.index]).all()


@pytest.mark.nightly
def test_ranks_beside_those_of_the_printed_tables(made: tuple[CampaignResults, Catalogue], study: CategoryStudy) -> None:
    """The same methods on Cora with BeGin's backbone: SI has no printed value, joint training does not compete, and GAT is not printed."""
    frame = summary(made[0])
    mine = frame[(frame["metric"] == "average_performance") & (frame["preset"] == "cora/task-il@begin-1") & (frame["backbone"] == "gcn")]
    ours = dict(zip(mine["method"], mine["mean"], strict=True))
    table = published_results().query(
        "paper == 'BeGin' and dataset == 'Cora' and setting == 'task-IL' and metric == 'AP' and variant == ''"
    )
    names = {"bare": "Bare", "ewc": "EWC", "er-gnn": "ER-GNN", "gem": "GEM", "packnet": "PackNet"}
    printed = {name: float(table.loc[table["method"] == names[name], "mean"].iloc[0]) for name in names}
    found = compared_with_print(study)
    part = found[(found["metric"] == "AP") & (found["setting"] == "task-il")].set_index("category")
    members = {name: [m for m in some if m in printed] for name, some in CATEGORIES.items()}
    competing = [m for some in members.values() for m in some]
    for side, values in (("ours", ours), ("printed", printed)):
        ranks = dict(zip(competing, scipy_stats.rankdata([-values[m] for m in competing], method="min"), strict=True))
        for name, some in members.items():
            assert part.loc[name, side] == pytest.approx(sum(ranks[m] for m in some) / len(some)), (side, name)
    tau = scipy_stats.kendalltau(*([scipy_stats.rankdata([-v[m] for m in printed], method="min") for v in (ours, printed)])).statistic
    assert part["tau"].to_list() == pytest.approx([tau] * 3)
    assert set(part["methods"]) == {5}
    assert set(part["scenarios"]) == {1}
    page = page_with(show_category_ranks.beside(study))
    assert numbers(part[["ours", "printed"]]) <= exact_numbers(page)
    assert "Kendall's τ of 5 methods" in text_of(page, "tr.group", "AP, task-il")


@pytest.mark.plugins
def test_methods_of_isolation_take_part_by_what_plugins_declare() -> None:
    declared = study_module._declared(load_catalogue(), ["bare", "ewc", "gem", "packnet", "hat"])
    assert declared == {
        "regularization-based": ("ewc",),
        "replay-based": ("gem",),
        "parameter-isolation-based": ("packnet", "hat"),
    }


def test_categories_that_plugins_declare(made: tuple[CampaignResults, Catalogue]) -> None:
    """The toy plugin declares Reg and Rep for three methods; the others take no rank."""
    found = category_study(*made)
    alone, listed = (category_study(*made, given).ranked for given in ("average_performance", ["average_performance"]))
    assert [one.metric for one in alone] == [one.metric for one in listed]  # a text, as papermill's `-p metrics` gives it
    assert found.categories == {"regularization-based": ("si",), "replay-based": ("er-gnn", "gem")}
    assert found.outside == ("bare", "ewc", "packnet", "joint")
    page = page_with(show_category_ranks.overview(found), show_category_ranks.tests(found))
    assert "bare, ewc, packnet, joint" in texts(page, "dl.facts > dd")
    assert "refused: 2 ranks: a test needs at least 3 in each sample" in texts(page, "td.quiet")


def test_key_results_are_the_mean_ranks(study: CategoryStudy) -> None:
    """A line per metric and setting with two categories, with the numbers of the study."""
    lines = texts(page_with(show_category_ranks.overview(study)), ".key-results li")
    panels = [panel for panel in study.ranked if len(panel.categories) > 1]
    assert len(lines) == len(panels) > 1
    for line, panel in zip(lines, panels, strict=True):
        assert line.startswith(f"{panel.setting.replace('-il', '-IL')}, {panel.metric}: ")
        means = panel.ranks.groupby("category")["rank"].mean()
        leading, _, rest = line.partition(f"first with a mean rank of {means.min():.1f}")
        for name, mean in means.items():
            assert str(name) in leading if mean == means.min() else f"{name} {mean:.1f}" in rest
        best = panel.averages.sort_values("rank").iloc[0]
        assert str(best["method"]) in line.rpartition("Of single methods, ")[2]
        assert f"first ({best['rank']:.1f}) [" in line


@pytest.mark.nightly
def test_the_page_of_a_campaign(study: CategoryStudy) -> None:
    """Exact numbers behind every table, refusals in words, one figure per metric."""
    page = page_with(*(getattr(show_category_ranks, name)(study) for name in CAMPAIGN_PARTS))
    assert_harmless(page)
    shown = exact_numbers(page)
    for panel in study.ranked:
        assert numbers(panel.tests[["t", "df", "p", "estimate", "low", "high"]]) <= shown
        assert numbers(panel.averages[["rank"]]) <= shown
    assert len({panel.metric for panel in study.ranked}) == 3
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    assert "refused: 2 ranks: a test needs at least 3 in each sample" in texts(page, "td.quiet")  # packnet on two backbones


@pytest.mark.nightly
def test_the_rule_for_ties_is_named_and_matters(made: tuple[CampaignResults, Catalogue]) -> None:
    message = {ties: page_with(show_category_ranks.overview(category_study(*made, ties=ties))) for ties in ("min", "average", "max")}
    assert "the lowest of their ranks" in message["min"]
    assert "the average of their ranks" in message["average"]
    with pytest.raises(UnknownNameError, match="rule for ties"):
        category_study(*made, ties="first")
    with pytest.raises(UnknownNameError, match="average_performance"):
        category_study(*made, metrics=["average_performence"])
    with pytest.raises(UsageError, match="'si' is in the categories"):
        category_study(*made, categories={"x": ["si"], "y": ["si"]})


def test_a_method_twice_in_a_scenario_is_refused(made: tuple[CampaignResults, Catalogue], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variants of a method have two means: which of them is ranked is not for us to choose."""
    results, catalogue = made
    frame = summary(results)
    twice = frame[frame["method"] == "si"].assign(variant="strength=2")
    monkeypatch.setattr(study_module, "summary", lambda _: pd.concat([frame, twice], ignore_index=True))
    found = category_study(results, catalogue, categories=CATEGORIES)
    assert all("occur more than once" in panel.refused for panel in found.ranked)
    page = page_with(show_category_ranks.boxes(found), show_category_ranks.tests(found), show_category_ranks.averages(found))
    assert any(text.startswith("refused: 2 cells occur more than once: ") for text in texts(page, "td.quiet"))


def test_nothing_done_yet(tmp_path: Path) -> None:
    """The paper's figure stands there all the same."""
    catalogue = made_catalogue()
    results = load_campaign_results(CAMPAIGN | {"grid": GRID}, Store(tmp_path), catalogue=catalogue)
    found = category_study(results, catalogue)
    page = page_with(*(getattr(show_category_ranks, name)(found) for name in CAMPAIGN_PARTS))
    assert page.count("No cell of this campaign is finished yet.") == 4  # figures, tests, ranks, provenance
