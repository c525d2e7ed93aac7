"""Methods compared: every number against SciPy or by hand from the records, refusals in words, and pages that say the same."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from made_records import CAMPAIGN, made_catalogue, made_record
from page_elements import text_of, texts
from page_numbers import exact_numbers, numbers
from report_lab import EVIL, Elements, Tables, assert_harmless, page_with
from scipy import stats as scipy_stats

from cglsuite import stats
from cglsuite.base.errors import UnknownNameError, UsageError
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.storage.store import Store
from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.results.results import load_campaign_results
from cglsuite.reports.site.boards import boards
from cglsuite.reports.studies import campaign as show_campaign
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison import page as show_comparison
from cglsuite.reports.studies.comparison.compute import Comparison, Question, Study, sentences
from cglsuite.specs import MetricSpec

GRID = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "si", "er-gnn"]}
LEVELS = {"bare": 0.60, "si": 0.62, "er-gnn": 0.62, "joint": 0.8}
EVIL_METRIC = MetricSpec(
    name="average", summary=EVIL, formula="mean", label=EVIL, direction="up", factory="cglsuite.stats.metrics:average_performance"
)


def value(method: str, order: int, init: int) -> float:
    """An average performance: methods two points apart, orders and seeds as noise of their own."""
    names = list(LEVELS)
    noise = np.random.default_rng([names.index(method), order, init]).normal(0, 0.004)
    return LEVELS[method] + np.random.default_rng([7, order]).normal(0, 0.02) + float(noise)


Make = Callable[..., Study]
OWN_SEEDS = {"order": [o for o in range(4) for _ in range(3)], "init": list(range(12))}
"""Four orders, each with three seeds of its own."""


@pytest.fixture
def study_of(tmp_path: Path) -> Make:
    """A study of records with the values of :func:`value`, whose orders differ by seed; ``keep`` says which cells have a record."""

    def make(question: Question | None = None, keep: Any = None, at: Any = value, extra: Any = (), tasks: int = 5, **tables: Any) -> Study:
        catalogue, store = made_catalogue(*extra), Store(tmp_path / "store")
        seeds = [{"order": o, "init": i} for o in range(4) for i in range(3)]
        given = CAMPAIGN | {"grid": GRID, "seeds": {name: [s[name] for s in seeds] for name in ("order", "init")}} | tables
        for planned in plan_campaign(Campaign.parse(given), catalogue):
            if planned.ready and (keep is None or keep(planned)):
                drawn = planned.request.seeds
                last = at(planned.request.method, drawn.order, drawn.init)
                changes = {"matrix": made_matrix(last, tasks), "metrics": {"average_performance": last, "average": last}}
                store.put(made_record(planned, catalogue, **changes | ({"tasks": task_order(drawn.order, tasks)} if tasks != 5 else {})))
        return comparison.study(load_campaign_results(given, store, catalogue=catalogue), question)

    return make


def made_matrix(last: float, tasks: int = 5) -> np.ndarray:
    """Tasks whose average performance after the last one is ``last``."""
    matrix = np.full((tasks + 1, tasks), 0.5)
    matrix[tasks] = last
    return matrix


def task_order(n: int, tasks: int) -> list[dict[str, Any]]:
    """The tasks in their n-th order."""
    order = list(itertools.permutations(range(tasks)))[n]
    return [{"name": str(k), "classes": [2 * k, 2 * k + 1], "n_train": 9, "n_validation": 1, "n_test": 1} for k in order]


def test_a_choice_over_crossed_orders_and_seeds(study_of: Make) -> None:
    """What the statistic says of settings × orders × seeds; a setting that lacks a cell is refused."""
    grid = {"scenarios": ["cora/task-il@begin-1"], "methods": ["bare", "si"], "axes": {"method.strength": [1.0, 2.0, 3.0]}}
    one, rng = only(study_of(grid=grid)), np.random.default_rng(0)
    one = dataclasses.replace(
        one,
        cells=one.cells.assign(value=rng.normal(0.7, 0.02, len(one.cells))),
        validation=dict(zip(one.cells["key"], rng.normal(0.7, 0.02, len(one.cells)), strict=True)),
    )
    family = next(family for family in one.families if len(family) > 1)
    cells = one.cells.assign(validation=one.cells["key"].map(one.validation)).set_index("method")
    tables = [
        np.stack([cells.loc[group.label].pivot(index="order", columns="seed", values=name) for group in family])
        for name in ("value", "validation")
    ]
    assert tables[0].shape == (3, 4, 3)
    found, expected = comparison.selection(one, family), stats.selected(*tables)
    assert (found.chosen, found.mean) == (expected.chosen, pytest.approx(expected.mean))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.1 * (expected.high - expected.low))
    lacking = dataclasses.replace(one, cells=one.cells[one.cells["key"] != family[1].records[0].key])
    with pytest.raises(stats.Refused, match="settings were run over different orders or seeds"):
        comparison.selection(lacking, family)


def only(study: Study) -> Comparison:
    (one,) = study.comparisons
    return one


def cells_of(method: str, orders: int = 4, seeds: int = 3) -> np.ndarray:
    """``[orders, seeds]``."""
    return np.array([[value(method, o, i) for i in range(seeds)] for o in range(orders)])


def order_means(method: str) -> np.ndarray:
    return np.asarray(cells_of(method).mean(axis=1))


def test_tests_are_quasi_fs_of_crossed_orders_and_seeds(study_of: Make) -> None:
    """Of the differences in their cells; Holm over the three pairs; means and intervals likewise."""
    one = only(study_of())
    assert (one.unit, one.methods, one.scale) == ("order × seed", ["bare", "si", "er-gnn"], 100.0)
    found = comparison.pairs(one).set_index(["first", "second"])
    p = []
    for (first, second), row in found.iterrows():
        mean, error, df = (float(x) for x in stats.quasi_f(cells_of(first) - cells_of(second)))
        expected = 2 * scipy_stats.t.sf(abs(mean / error), df)
        assert (row["statistic"], row["df"], row["p"]) == pytest.approx((mean / error, df, expected))
        assert (row["replicates"], row["averaged"], row["paired"], row["given"]) == ("4 orders × 3 seeds", "1", True, "")
        assert math.isnan(row["boot_low"])
        p.append(expected)
    assert found["p_adjusted"].to_numpy() == pytest.approx(stats.adjust(p))
    assert found.loc[("bare", "si"), "verdict"] == "si is better"
    assert found.loc[("si", "er-gnn"), "verdict"] == "no significant difference"
    table = comparison.means(one).set_index("method")
    mean, error, df = (float(x) for x in stats.quasi_f(cells_of("si")))
    low, high = scipy_stats.t.interval(0.95, df, loc=mean, scale=error)
    spread = stats.mean_estimate(cells_of("si"), ("order", "seed")).spread
    assert table.loc["si", ["mean", "std", "low", "high"]].to_list() == pytest.approx([mean, spread, low, high])
    assert table.loc["si", ["n", "cells", "interval", "replicates"]].to_list() == [12, 12, "quasi-F", "4 orders × 3 seeds"]


@pytest.mark.nightly
def test_one_seed_makes_no_unconditional_verdict(study_of: Make) -> None:
    """Ten orders with one seed: a paired test over orders, whose claim is about that seed."""
    study = study_of(seeds={"order": list(range(10)), "init": [0] * 10})
    found = comparison.pairs(only(study)).iloc[0]
    assert (found["test"], found["given"], found["verdict"]) == ("paired t", "seed 0", "si is better, with this one seed only")
    page = page_with(show_comparison.replication(study), show_comparison.differences(study))
    assert {"10 orders, with one seed", "Every claim is limited to this one seed."} <= set(texts(page, "td.long"))
    assert text_of(page, "figcaption", "declared pairs").endswith(". All verdicts hold with this one seed only")


@pytest.mark.nightly
def test_all_orders_are_the_population(study_of: Make) -> None:
    """The order term drops out of the test, and the page says so."""
    orders = {"orders": "all-tasks", "init": list(range(4))}
    six = {"scenario.n_tasks": 3, "scenario.classes_per_task": None}
    made: dict[str, Any] = {"seeds": orders, "set": {name: "none" if v is None else v for name, v in six.items()}, "tasks": 3}
    study = study_of(**made)
    one = only(study)
    assert (one.orders_in_all, one.unit) == (6, "seed")
    row = comparison.pairs(one).iloc[0]
    differences = cells_of("bare", 6, 4) - cells_of("si", 6, 4)
    assert row["p"] == pytest.approx(scipy_stats.ttest_1samp(differences.mean(axis=0), 0.0).pvalue)
    assert (row["population"], row["replicates"], row["averaged"]) == ("all 6 orders", "4 seeds", "6")
    assert (one.block, comparison.friedman(one).n_blocks) == ("seed", 4)
    plan = comparison.plans(one)
    assert plan["orders"].to_list() == [6]
    page = page_with(show_comparison.replication(study), show_comparison.differences(study))
    assert "The orders are the population: all 6 orders were run, so their effect does not count as error." in texts(page, "td.long")
    assert "4 seeds, over all 6 orders" in texts(page, "td.long")
    assert "The orders are the population (all 6 orders were run)" in text_of(page, "figcaption", "declared pairs")


@pytest.mark.nightly
def test_ten_orders_have_a_bootstrap_beside_the_t(study_of: Make) -> None:
    """And it is that of the differences."""
    one = only(study_of(seeds={"order": list(range(10)), "init": list(range(10))}))
    row = comparison.pairs(one).iloc[0]
    first, second = ([value(m, k, k) for k in range(10)] for m in ("bare", "si"))
    expected = stats.difference_interval(first, second, paired=True)
    assert (row["boot_low"], row["boot_high"]) == pytest.approx((expected.low, expected.high))
    page = page_with(show_comparison.differences(study_of(seeds={"order": list(range(10)), "init": list(range(10))})))
    assert "95% interval, bootstrap (BCa)" in texts(page, "th.number")
    assert {expected.low, expected.high} <= exact_numbers(page)


@pytest.mark.nightly
def test_ranks_and_components(study_of: Make) -> None:
    """Friedman's test of the means of orders with seeds of their own by SciPy; the mixed model is that of crossed cells."""
    own = only(study_of(seeds=OWN_SEEDS))
    found = comparison.friedman(own)
    means = [[np.mean([value(m, o, 3 * o + i) for i in range(3)]) for o in range(4)] for m in own.methods]
    expected = scipy_stats.friedmanchisquare(*means)
    assert (found.statistic, found.p, found.n_blocks) == pytest.approx((expected.statistic, expected.pvalue, 4))
    one = only(study_of())
    frame = one.cells.assign(order=one.cells["order"])[["method", "order", "seed", "value"]]
    assert dict(comparison.components(one).variances) == pytest.approx(dict(stats.variance_components(frame).variances))
    notes = comparison.components(one).notes
    page = page_with(show_comparison.components(study_of()))
    assert [tag for tag, _ in Elements(page).found].count("ol") == bool(notes)
    assert all(note in page for note in notes)


@pytest.mark.nightly
def test_power_by_hand(study_of: Make) -> None:
    """The level is the family's over its three pairs; orders are planned with as many seeds as there are."""
    study = study_of(Question(smallest=6.0, wanted=0.9))
    row = comparison.needs(only(study)).iloc[0]
    differences = cells_of("bare") - cells_of("si")
    estimate, how = stats.mean_estimate(differences, ("order", "seed")), {"alpha": 0.05 / 3, "wanted": 0.9}
    assert (row["n"], row["std"]) == (12, pytest.approx(estimate.spread))
    assert row["detectable"] == pytest.approx(estimate.error * stats.detectable_error(estimate.df, **how))
    assert row["needed"] == stats.orders_needed(stats.DifferenceVariances.observed(differences), 3, 0.06, **how)
    assert math.isnan(row["needed_bound"])
    plan = comparison.plans(only(study)).set_index("seeds")
    assert tuple(plan.index) == comparison.SEEDS_PLANNED
    fitted = stats.DifferenceVariances.of(comparison.components(only(study)))
    assert plan.loc[5, "orders"] == stats.orders_needed(fitted, 5, 0.06, **how)
    assert plan.loc[5, "cells"] == 5 * plan.loc[5, "orders"]
    assert plan["orders"].iloc[0] > plan["orders"].iloc[-1]


def test_power_over_one_factor(study_of: Make) -> None:
    """Of paired order means; detectable and needed are inverse to each other."""
    study = study_of(Question(smallest=2.0, wanted=0.9), seeds={"order": [0, 1, 2, 3], "init": [0, 1, 2, 3]})
    row = comparison.needs(only(study)).iloc[0]
    first, second = (np.array([value(m, k, k) for k in range(4)]) for m in ("bare", "si"))
    std, how = (first - second).std(ddof=1), {"alpha": 0.05 / 3, "wanted": 0.9}
    assert (row["n"], row["std"]) == (4, pytest.approx(std))
    assert row["detectable"] == pytest.approx(stats.detectable_difference(4, std, **how))
    assert row["needed"] == stats.units_needed(0.02, std, **how)
    assert row["needed_bound"] == stats.units_needed(0.02, stats.std_bound(std, 4), **how) >= row["needed"]


def test_differences_beyond_the_scale_cannot_be_shown(study_of: Make) -> None:
    """Three orders in which methods differ by up to 80 points find nothing that two fractions can differ by."""
    wild = {"bare": (0.1, 0.9, 0.2), "si": (0.9, 0.1, 0.8), "er-gnn": (0.1, 0.9, 0.201)}
    study = study_of(at=lambda method, order, _: wild[method][order], seeds={"order": [0, 1, 2], "init": [0, 1, 2]})
    needs = comparison.needs(only(study)).set_index(["first", "second"])["detectable"]
    assert needs["bare", "si"] > 1.0 > needs["bare", "er-gnn"]
    page = page_with(show_comparison.power(study))
    assert texts(page, "td").count("cannot be shown") == 2
    assert "can detect differences of" in page
    assert "in 1 of 3 pairs" in page


def test_ranks_that_contradict_means_say_so(study_of: Make) -> None:
    """One method is ahead in 15 of 16 orders and collapses in the last: the test's own direction, with a note."""
    seeds = {"order": list(range(16)), "init": list(range(16))}
    at = {"bare": lambda o: 0.5, "si": lambda o: 0.0 if o == 15 else 0.51 + 0.0001 * o, "er-gnn": lambda o: 0.4 + 0.001 * o}
    study = study_of(Question(test="wilcoxon"), at=lambda method, order, _: at[method](order), seeds=seeds)
    row = comparison.pairs(only(study)).set_index(["first", "second"]).loc["bare", "si"]
    assert (row["better"], row["estimate"] < 0 < row["g"]) == ("si", True)
    assert math.isnan(row["boot_low"]), "a bootstrap of means beside a test of ranks"
    page = page_with(show_comparison.differences(study))
    assert "by ranks; the means differ in the opposite direction" in page
    assert " points below si (" in " ".join(sentences(only(study))), "bare has the higher mean"


def test_effects_without_measure_are_no_numbers(study_of: Make) -> None:
    at = {"bare": 0.5, "si": 0.6, "er-gnn": 0.7}
    noise = lambda method, order: 1e-11 * order * (2 if method == "si" else 1)  # noqa: E731
    study = study_of(at=lambda method, order, _: at[method] + noise(method, order), seeds={"order": [0, 1, 2], "init": [0, 1, 2]})
    assert abs(comparison.pairs(only(study))["g"]).min() > 1e6
    assert "larger than can be shown" in page_with(show_comparison.differences(study))


@pytest.mark.nightly
def test_a_declared_family(study_of: Make) -> None:
    """Against one method there are two pairs, and only the methods asked for take part."""
    one = only(study_of(Question(against="bare")))
    assert one.tests[["first", "second"]].to_numpy().tolist() == [["si", "bare"], ["er-gnn", "bare"]]
    two = only(study_of(Question(methods=("si", "er-gnn"), adjustment="benjamini-hochberg")))
    assert two.methods == ["si", "er-gnn"]
    assert two.tests["p_adjusted"].to_list() == pytest.approx(two.tests["p"].to_list())
    progress = page_with(show_comparison.progress(study_of(Question(against="bare"))))
    assert text_of(progress, "dd", "every other method").startswith("every other method against bare per scenario")


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ({"metric": "average_performence"}, UnknownNameError, "average_performance"),
        ({"methods": ("ewc",)}, UnknownNameError, "method of this campaign 'ewc'"),
        ({"test": "z"}, UnknownNameError, "test 'z'"),
        ({"adjustment": "bonferroni"}, UnknownNameError, "adjustment 'bonferroni'"),
        ({"alpha": 5.0}, UsageError, "alpha = 5.0"),
        ({"wanted": 80.0}, UsageError, "wanted = 80.0"),
        ({"smallest": 0.0}, UsageError, "smallest interesting difference 0"),
    ],
)
def test_wrong_questions(study_of: Make, question: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        study_of(Question(**question))


@pytest.mark.nightly
def test_missing_cells_are_refused_in_words(study_of: Make) -> None:
    """One method lacks an order: its pairs have no p value anywhere, the third is tested, and ranks are refused."""
    study = study_of(keep=lambda p: not (p.request.method == "si" and p.request.seeds.order == 2))
    frame = comparison.pairs(only(study))
    assert frame["refused"].map(bool).to_list() == [True, False, True]
    assert frame["p"].isna().to_list() == [True, False, True]
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    (table,) = [t[1:] for t in Tables(page).tables if t[1][0][0] == "first − second"]
    texts = [" ".join(text for text, _ in row) for row in table[1:]]
    assert "1 of 4 orders were run with only one of the methods" in texts[0]
    assert [value for _, value in table[1]][:10] == [None] * 10  # Welch's test, as if run separately, has numbers
    assert [value for _, value in table[1]][12:15] == pytest.approx(frame.iloc[0][["beside_statistic", "beside_df", "beside_p"]].to_list())
    friedman = text_of(page, "td.long.quiet", "(order × method)")
    assert friedman.startswith("refused: 1 of 12 values (order × method) are missing: ")
    assert text_of(page, "figcaption", "declared pairs").partition(" – ")[2].startswith("3 declared pairs: 1 significant; 2 refused.")


def test_one_order_makes_claims_on_that_order_only(study_of: Make) -> None:
    study = study_of(seeds={"order": [0] * 5, "init": list(range(5))})
    assert only(study).unit == "seed"
    page = page_with(show_comparison.replication(study), show_comparison.differences(study), show_comparison.plans(study))
    assert "Every claim is limited to this one order." in texts(page, "td.long")
    assert text_of(page, "figcaption", "declared pairs").endswith(". All verdicts hold in this one order only")
    assert "refused: 1 order: variance components need at least 3" in texts(page, "td.quiet")


def test_two_orders_have_no_test(study_of: Make) -> None:
    """Everything that needs three units says so, and no p value stands on the page."""
    study = study_of(seeds={"order": [0, 1], "init": [0, 1]})
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    assert texts(page, "td.quiet").count("2 orders: a test needs at least 3 in each sample") == 3
    assert "refused: 2 blocks: Friedman's test needs at least 3" in texts(page, "td.quiet")
    assert only(study).tests["p"].isna().all()
    assert "No scenario allows Friedman's test: the table above gives the reasons." in texts(page, "p.quiet")


def test_the_campaign_report_has_the_declared_test(study_of: Make) -> None:
    """Welch's, declared: its verdicts, its key results, and the digest of its question in the header."""
    results = study_of().results
    welch = comparison.study(results, Question(test="welch"))
    key = comparison.key_results(welch)
    assert key is not None
    head = page_with(show_campaign.overview(results, None, "welch"), show_campaign.progress(results, "welch"))
    assert [welch.question.digest] == [text for text in texts(head, "dd") if len(text) == 12]
    assert text_of(head, "dd", "run separately").startswith("Welch's t-test, which treats methods as if they had been run separately")
    assert str(key) in str(show_campaign.overview(results, None, "welch"))
    assert str(show_campaign.differences(results, "welch")) == str(show_comparison.differences(welch))
    usual = page_with(show_campaign.progress(results))
    assert Question().digest not in welch.question.digest
    assert text_of(usual, "dd", "paired t-test")


@pytest.mark.nightly
def test_both_tests_fit_a_window_of_1280_pixels(study_of: Make, tmp_path: Path) -> None:
    """The table of pairs has the columns of two tests and does not scroll; nor does it where a bootstrap adds one."""
    page = tmp_path / "pairs.html"
    with chromium.started() as browser:
        for seeds in (OWN_SEEDS, {"order": list(range(10)), "init": list(range(10))}):
            page.write_text(page_with(show_comparison.differences(study_of(seeds=seeds))), encoding="utf-8")
            browser.open(page, width=1280)
            table, box = browser.run("const t = document.querySelector('table'); return [t.scrollWidth, t.parentElement.clientWidth]")
            assert table <= box


def test_blocks_that_share_seeds_have_no_friedman_test(study_of: Make) -> None:
    """Neither crossed ones nor a single seed; their ranks are shown."""
    for seeds in ({"order": [0, 1, 2, 3], "init": [0] * 4}, {"order": [0, 0, 1, 1, 2, 2], "init": [0, 1] * 3}):
        study = study_of(seeds=seeds)
        with pytest.raises(stats.Refused, match="orders share seeds, so they are not independent"):
            comparison.friedman(only(study))
        assert any("refused: orders share seeds" in text for text in texts(page_with(show_comparison.ranks(study)), "td.quiet"))
        assert comparison.block_ranks(only(study)).shape[0] == 3
    order = only(study_of(seeds={"order": [0] * 4, "init": [0, 1, 2, 3]}))
    assert comparison.friedman(order).n_blocks == 4


@pytest.mark.nightly
def test_equal_results_are_refused(study_of: Make) -> None:
    """Without any spread there is neither test nor power."""
    study = study_of(at=lambda method, order, init: 0.5)
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    refused = texts(page, "td.quiet")
    assert refused.count("the difference is the same in all 12 cells, so there is no variance to test against") == 3
    assert "refused: all 3 methods are tied in all 4 blocks, so there are no ranks to compare" in refused


@pytest.mark.nightly
def test_methods_without_a_significant_difference(study_of: Make) -> None:
    """Where Friedman's test finds nothing, pairs are not examined."""
    generator = np.random.default_rng(4)
    noise = {(m, o, i): generator.normal(0.5, 0.02) for m in GRID["methods"] for o in range(4) for i in range(12)}
    study = study_of(at=lambda method, order, init: float(noise[method, order, init]), seeds=OWN_SEEDS)
    page = page_with(show_comparison.ranks(study), show_comparison.rank_diagrams(study))
    assert not comparison.friedman(only(study)).separates
    assert "no significant difference" in texts(page, "td")
    assert texts(page, "figure figcaption")[-1] == "Friedman's test finds no significant difference: one bar joins all"


@pytest.mark.nightly
def test_distributions_have_every_cell_and_rank(study_of: Make) -> None:
    """A point per cell in the metric's unit, and per order and method its rank, with their means in words."""
    study = study_of()
    one = only(study)
    values, ranked = show_comparison.distributions(study), show_comparison.rank_spreads(study)
    assert isinstance(values, Gallery)
    assert isinstance(ranked, Gallery)
    texts_of = {name: 100 * cells_of(name).ravel() for name in one.methods}
    (shown,) = [picture.alt for picture in values.pictures]
    said = "; ".join(f"{name} {v.min():.1f} to {v.max():.1f}, mean {v.mean():.1f}" for name, v in texts_of.items())
    assert shown == f"AP, % in {one.name}: {said}."
    points = re.findall(r"data-series=\"([^\"]*)\" data-points='([^']*)'", values.pictures[0].light)
    assert {name: sorted(json.loads(given)) for name, given in points} == {
        name: sorted(f"{value:.1f}" for value in v) for name, v in texts_of.items()
    }
    table = comparison.block_ranks(one)
    shown_ranks = np.stack([order_means(m) for m in one.methods], axis=1).argsort(axis=1)[:, ::-1].argsort(axis=1) + 1.0
    assert table.mean(axis=1).to_dict() == pytest.approx(dict(zip(one.methods, shown_ranks.mean(axis=0), strict=True)))
    best = table.mean(axis=1).idxmin()
    assert ranked.pictures[0].alt.startswith(f"rank, 1 = best in {one.name}: {best} ")


@pytest.mark.nightly
def test_intervals_end_where_the_metric_ends_as_on_the_leaderboard(study_of: Make) -> None:
    """Close to 1 the interval of the mean is cut at 1, on both pages."""
    near = (0.999, 0.95, 0.998, 0.94)
    share = MetricSpec(
        name="average", summary="s", formula="f", direction="up", factory="cglsuite.stats.metrics:average_performance", range=(0, 1)
    )
    study = study_of(Question(metric="average"), at=lambda _, order, init: near[order] + 0.0001 * init, extra=(("metric", share),))
    frame = comparison.means(only(study)).set_index("method")
    assert frame["high"].tolist() == [1.0] * 3
    (board,) = boards(study.results, made_catalogue(("metric", share)))
    ends = {row.method: (row.scores["average"].low, row.scores["average"].high) for row in board.rows}
    assert ends == {method: (row["low"], row["high"]) for method, row in frame.iterrows()}
    assert all(low < 0.97 for low, _ in ends.values())


def test_the_page_says_what_the_functions_compute(study_of: Make) -> None:
    """Every number of every table stands on the page with its exact value, hostile strings as text, one figure per scenario and kind."""
    study = study_of(Question(metric="average"), extra=(("metric", EVIL_METRIC),))
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    assert_harmless(page)
    assert text_of(page, "dd", EVIL)
    one, shown = only(study), exact_numbers(page)
    pairs, means, needs, plans = comparison.pairs(one), comparison.means(one), comparison.needs(one), comparison.plans(one)
    columns = ["estimate", "low", "high", "statistic", "df", "p", "p_adjusted", "g", "g_low", "g_high"]
    assert numbers(pairs[columns]) <= shown
    assert numbers(means[["cells", "mean", "std", "low", "high"]]) <= shown
    assert numbers(needs[["n", "std", "detectable", "needed", "needed_bound"]]) <= shown
    assert numbers(plans[["seeds", "std", "orders", "cells"]]) <= shown
    own = study_of(Question(metric="average"), extra=(("metric", EVIL_METRIC),), seeds=OWN_SEEDS)
    friedman = comparison.friedman(only(own))
    assert {friedman.statistic, friedman.p, friedman.critical_difference} <= exact_numbers(page_with(show_comparison.ranks(own)))
    assert {v**0.5 for v in comparison.components(one).variances.values()} <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    (table,) = [t[1:] for t in Tables(page).tables if t[1][0][0] == "first − second"]
    assert [row[0][0] for row in table[1:]] == ["bare − si", "bare − er-gnn", "si − er-gnn"]
    for row, (_, computed) in zip(table[1:], pairs.iterrows(), strict=True):
        assert float(row[3][0].replace("−", "-")) == pytest.approx(100 * computed["estimate"], abs=0.05)
        assert row[1][0] == computed["verdict"]


ERROR = MetricSpec(
    name="average", summary="the error", formula="mean", label="MAE", direction="down",
    factory="cglsuite.stats.metrics:average_performance", unit="eV", range=(0.0, math.inf),
)  # fmt: skip
FOUR = {"grid": GRID | {"methods": [*GRID["methods"], "joint"]}}
TEN_ORDERS = {"seeds": {"order": list(range(10)), "init": [0] * 10}}
ODD: dict[str, tuple[Question, dict[str, Any]]] = {
    "an error in a unit": (Question(metric="average", smallest=0.01), {"extra": (("metric", ERROR),)}),
    "ranks of signs against one method": (
        Question(test="wilcoxon", against="bare", adjustment="benjamini-hochberg", alpha=0.1, smallest=2.5, wanted=0.9), TEN_ORDERS | FOUR
    ),
    "splits": (Question(), {"seeds": {"order": [0] * 6, "split": list(range(6)), "init": [0] * 6}}),
    "seeds of one order": (Question(), {"seeds": {"order": [0] * 5, "init": list(range(5))}} | FOUR),
    "orders that are not shared": (
        Question(smallest=0.5), {"keep": lambda p: (p.request.method == "si") == (p.request.seeds.order < 5)} | TEN_ORDERS
    ),
    "one method": (Question(methods=("bare",)), {}),
    "a reference without values": (Question(against="si"), {"at": lambda m, o, i: math.nan if m == "si" else value(m, o, i)}),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ODD)
def test_every_section_under_another_question(study_of: Make, name: str) -> None:
    """All tables and figures where values are errors, tests are others, cells vary in splits or seeds alone, or pairs share no order."""
    question, tables = ODD[name]
    study = study_of(question, **tables)
    page_with(*(getattr(show_comparison, section)(study) for section in show_comparison.__all__))


@pytest.mark.nightly
def test_lower_errors_are_better(study_of: Make) -> None:
    """By hand: in the metric's unit, no points; intervals end at its range."""
    error = only(study_of(ODD["an error in a unit"][0], **ODD["an error in a unit"][1]))
    assert (error.percent, error.higher_is_better, error.bounds) == (False, False, (0.0, math.inf))
    assert error.tests.iloc[0]["verdict"] == "bare is better"
    size = float(np.mean(cells_of("si") - cells_of("bare")))
    assert f"bare is best with average 0.5929: it beats si by {size:.4f}" in " ".join(sentences(error))
    gallery = show_comparison.distributions(study_of(ODD["an error in a unit"][0], **ODD["an error in a unit"][1]))
    assert isinstance(gallery, Gallery)
    bare = cells_of("bare")
    assert f": bare {bare.min():.4f} to {bare.max():.4f}, mean {bare.mean():.4f};" in gallery.pictures[0].alt


def test_nothing_done_yet(study_of: Make) -> None:
    study = study_of(keep=lambda planned: False)
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    assert texts(page, "p.quiet").count("No cell of this campaign is finished yet.") == 9


def test_a_metric_without_values(study_of: Make) -> None:
    """No joint training, no intransigence: told instead of computed."""
    study = study_of(Question(metric="intransigence"))
    page = page_with(*(getattr(show_comparison, name)(study) for name in show_comparison.__all__))
    assert texts(page, "div.notice > p")[0].startswith(
        "cora · task-IL · BeGin 1 × gcn: refused: no method has a value: intransigence needs joint"
    )
    assert "all methods: 12 records without a value" in texts(page, "td.long")


def test_the_message_names_the_best_learner_and_sizes(study_of: Make) -> None:
    """The box at the top says what the table of differences says: who is best, by how much, and how many pairs differ."""
    study = study_of()
    [one] = study.comparisons
    frame = one.tests
    significant = frame[frame["verdict"] != stats.NO_DIFFERENCE]
    assert 0 < len(significant) < len(frame)  # bare against the others; not si against er-gnn
    said = " ".join(sentences(one))
    means = comparison.means(one).set_index("method")["mean"]
    gap = 100 * (means["si"] - means["bare"])
    assert said.startswith(f"si is best with average performance {100 * means['si']:.1f}%: it beats bare by {gap:.1f} points (p = ")
    assert "shows no significant difference from er-gnn (" in said
    assert said.endswith(f"[Holm, α = 0.05]. {len(significant)} of {len(frame)} pairs of methods differ.")
    assert said in texts(page_with(show_comparison.overview(study)), "section.key-results li")[0]


def test_the_message_about_one_reference_method(study_of: Make) -> None:
    """Where all are compared with one method, the message is about that one."""
    [one] = study_of(Question(against="bare")).comparisons
    said = " ".join(sentences(one))
    assert said.startswith("bare has average performance ")
    assert " points below " in said


def test_the_message_says_why_nothing_is_tested(study_of: Make) -> None:
    """One method alone has no pair."""
    [one] = study_of(Question(methods=("bare",))).comparisons
    assert " ".join(sentences(one)) == "Nothing is tested (only one method has a value, but a comparison needs at least two)."


def test_one_method_may_be_given_as_a_string() -> None:
    """Papermill's ``-p methods bare`` passes a string."""
    assert Question(methods="bare").methods == ("bare",)
    assert Question(methods=["bare", "ewc"]).methods == ("bare", "ewc")
