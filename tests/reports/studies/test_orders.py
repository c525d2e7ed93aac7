"""Order sensitivity from records: numbers by brute force, pooling, published values, refusals, and what the page shows."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_elements import text_of, texts
from report_lab import CAMPAIGN, EVIL, Elements, Tables, assert_harmless, catalogue_of, page_with, record_of

from cglsuite import stats
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.graphs.splits.orders import nth_permutation
from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.results.published import published_sensitivity
from cglsuite.reports.results.results import load_pooled_results
from cglsuite.reports.studies.orders import compute
from cglsuite.reports.studies.orders import compute as orders
from cglsuite.reports.studies.orders import page as show_orders
from cglsuite.reports.studies.orders.compute import OrderStudy, pool
from cglsuite.specs import METRICS, ScenarioSpec
from cglsuite.stats import metrics

UCLA = "nw-ucla/class-il@skeleton-1"
SPEC = ScenarioSpec(name=UCLA, summary=EVIL, dataset="toy", setting="class-il", n_tasks=3, class_order="native")
ALL = {"orders": "all-tasks", "init": [0, 1, 2]}
METHODS = ["bare", "ewc", "joint"]


def value(method: str, arrival: int, item: int, init: int) -> float:
    """A final accuracy: what comes last is best, methods differ, seeds make a little noise."""
    noise = np.random.default_rng([METHODS.index(method), arrival, item, init]).uniform(-0.05, 0.05)
    return float(np.clip(0.1 + 0.3 * arrival + 0.1 * METHODS.index(method) + noise, 0, 1))


def tasks_of(planned: PlannedCell) -> list[tuple[int, ...]]:
    """Three tasks of two classes in the order of a cell."""
    assert planned.cell is not None
    rule, seed = planned.cell.scenario.class_order, planned.request.seeds.order
    if rule == "all-tasks":
        return [(2 * k, 2 * k + 1) for k in nth_permutation(3, seed)]
    classes = list(range(6)) if rule == "native" else [int(c) for c in rule.split("|")[seed].split(",")]
    return [tuple(classes[k : k + 2]) for k in (0, 2, 4)]


def made(planned: PlannedCell, **changes: Any) -> Record:
    """A record with the accuracies of :func:`value` in its last row."""
    tasks, seeds, method = tasks_of(planned), planned.request.seeds, planned.request.method
    by_class = {c: value(method, k, c, seeds.init) for k, task in enumerate(tasks) for c in task}
    matrix = np.full((4, 3), 0.5)
    matrix[3] = [np.mean([by_class[c] for c in task]) for task in tasks]
    matrix[[1, 2, 3], [0, 1, 2]] = 0.95 * (1 - np.arange(3) / 50)
    matrix[3, 2] = np.mean([by_class[c] for c in tasks[2]])
    facts = [{"name": f"classes {t}", "classes": list(t), "n_train": 9, "n_validation": 1, "n_test": 1} for t in tasks]
    given: dict[str, Any] = {"matrix": matrix, "tasks": facts, "per_class": [[by_class[c] for c in range(6)]]}
    return record_of(planned, **(given | changes))


Study = Callable[..., OrderStudy]


@pytest.fixture
def study_of(tmp_path: Path) -> Study:
    """The study of campaigns that differ in their seeds; ``keep`` says which cells have a record, ``change`` what is special in it."""

    def make(*seeds: dict[str, Any], keep: Any = None, change: Any = None, **tables: Any) -> OrderStudy:
        catalogue, store = catalogue_of(("scenario", SPEC)), Store(tmp_path / "store")
        grid = {"scenarios": [UCLA], "methods": METHODS}
        given = [CAMPAIGN | {"name": f"toy-{n}", "grid": grid, "seeds": one} | tables for n, one in enumerate(seeds)]
        for one in given:
            for planned in plan_campaign(Campaign.parse(one), catalogue):
                if planned.ready and (keep is None or keep(planned)):
                    store.put(made(planned, **(change(planned) if change else {})))
        return pool(load_pooled_results(given[0], given[1:], store, catalogue=catalogue))

    return make


def brute_force(study: OrderStudy, method: str, unit: str) -> tuple[list[float], list[float]]:
    """AOPD and MOPD of every seed from the definition of :func:`value`, without any frame."""
    aopd, mopd = [], []
    for init in range(3):
        finals: dict[Any, list[float]] = {}
        for order in itertools.permutations(range(3)):
            for k, task in enumerate(order):
                values = {c: value(method, k, c, init) for c in (2 * task, 2 * task + 1)}
                if unit == "class":
                    for c, v in values.items():
                        finals.setdefault(c, []).append(v)
                else:
                    finals.setdefault(task, []).append(float(np.mean(list(values.values()))))
        ranges = [max(v) - min(v) for v in finals.values()]
        aopd.append(float(np.mean(ranges)))
        mopd.append(max(ranges))
    return aopd, mopd


def test_opd_by_brute_force(study_of: Study) -> None:
    """Both units, all methods; six orders, three repeats; the interval is Student's over repeats."""
    study = study_of(ALL)
    frame = orders.sensitivity(study).set_index(["unit", "method"])
    assert set(frame.index) == {(u, m) for u in ("task", "class") for m in METHODS}
    for (unit, method), row in frame.iterrows():
        aopd, mopd = brute_force(study, method, unit)
        assert (row["n_orders"], row["n_repeats"], row["seeds_shared"]) == (6, 3, True)
        assert row["aopd"] == pytest.approx(np.mean(aopd))
        assert row["aopd_std"] == pytest.approx(np.std(aopd, ddof=1))
        assert row["mopd"] == pytest.approx(np.mean(mopd))
        expected = stats.mean_interval(aopd, bounds=(0, 1))
        assert (row["aopd_low"], row["aopd_high"]) == pytest.approx((expected.low, expected.high))
        assert (row["k"], row["null_seeds"], row["null_orders"]) == (3, 3, 6)
        assert row["null_aopd"] < 0.1 < row["aopd_k"] < row["aopd"]
        assert row["half_low"] <= row["half_high"] <= row["aopd"] + 1e-12


def test_a_maximum_at_its_bound_has_no_interval(study_of: Study) -> None:
    """In two of three repeats a class is recognised in full after one order and not at all after another."""

    def change(planned: PlannedCell) -> dict[str, Any]:
        most = 0.9 if planned.request.seeds.init == 0 else 1.0
        return {"per_class": [[most * (c in tasks_of(planned)[2]) for c in range(6)]]}

    study = study_of(ALL, change=change)
    row = orders.sensitivity(study).set_index(["unit", "method"]).loc["class", "ewc"]
    assert row["mopd"] == pytest.approx((0.9 + 1.0 + 1.0) / 3)
    assert np.isnan(row["mopd_low"])
    assert row["mopd_refused"] == "2 of 3 repeats are at 100 points, the largest possible value"
    assert row["mopd_refused"] in page_with(show_orders.sensitivity(study))


@pytest.mark.nightly
def test_items_are_found_wherever_they_stand(study_of: Study) -> None:
    """Tasks by their classes, classes by their ids, in their natural order; their mean is the AOPD."""
    study = study_of(ALL)
    frame = orders.items(study)
    tasks = frame[(frame["unit"] == "task") & (frame["method"] == "ewc")]
    assert tasks["item"].tolist() == ["0,1", "2,3", "4,5"]
    classes = frame[(frame["unit"] == "class") & (frame["method"] == "ewc")]
    assert classes["item"].tolist() == list("012345")
    aopd = orders.sensitivity(study).set_index(["unit", "method"])["aopd"]
    assert tasks["opd"].mean() == pytest.approx(aopd["task", "ewc"])
    assert classes["opd"].mean() == pytest.approx(aopd["class", "ewc"])
    assert set(frame["null_k"]) == {3}


@pytest.mark.nightly
def test_class_orders_pool_with_task_orders(study_of: Study) -> None:
    """Other class orders count per class and not per task; one that arranges the same tasks counts in both."""
    extra = {"orders": [[0, 2, 1, 3, 4, 5], [0, 3, 1, 4, 2, 5], [1, 0, 2, 3, 4, 5]], "init": [0, 1, 2]}
    frame = orders.sensitivity(study_of(ALL, extra)).set_index(["unit", "method"])
    assert set(frame.loc["task"]["n_orders"]) == {7}
    assert set(frame.loc["class"]["n_orders"]) == {9}


def test_the_null_may_come_from_a_campaign_of_its_own(study_of: Study) -> None:
    """All orders with one seed, one order with five: no interval, and orders brought to five draws; what occurs in both counts once."""
    study = study_of(ALL | {"init": [0]}, {"orders": "native", "init": [0, 1, 2, 3, 4]})
    assert (study.repeated, study.contradicting) == (3, 0)
    assert len(study.cells) == 3 * (6 + 4)
    row = orders.sensitivity(study).set_index(["unit", "method"]).loc[("task", "bare")]
    assert (row["n_orders"], row["n_repeats"], row["k"], row["null_orders"]) == (6, 1, 5, 1)
    assert row["aopd_refused"] == "1 repeat: an interval needs at least 3"
    native = [[value("bare", k, c, init) for k, t in enumerate(((0, 1), (2, 3), (4, 5))) for c in t] for init in range(5)]
    means = np.array(native).reshape(5, 3, 2).mean(axis=2)
    assert row["null_aopd"] == pytest.approx(np.ptp(means, axis=0).mean())
    left = orders.left_out(study)
    assert any("4 seeds (0/1; 0/2 and 2 more): run with 1 of 6 orders" in reason for reason in left["reason"])
    assert isinstance(orders.components(study)[f"{UCLA} × gcn"], stats.Refused)


def test_orders_with_seeds_of_their_own(study_of: Study) -> None:
    """Order and seed go together: one repeat, no null, and the table says that seeds count in full."""
    study = study_of({"order": [0, 1, 2, 3], "init": [0, 1, 2, 3]}, set={"scenario.class_order": "all-tasks"})
    frame = orders.sensitivity(study)
    assert not frame["seeds_shared"].any()
    assert set(frame["n_repeats"]) == {1}
    assert frame["no_null"].str.contains("no order was run with more than one seed").all()
    page = page_with(show_orders.sensitivity(study))
    note = "every order has its own seed, so this OPD includes all seed noise."
    assert texts(page, "ol.footnotes > li").count(note) == 2
    refusal = orders.components(study)[f"{UCLA} × gcn"]
    assert "its own seed" in str(refusal)
    assert len(orders.comparisons(study, f"{UCLA} × gcn")) == 3


@pytest.mark.nightly
def test_what_is_missing_is_named(study_of: Study) -> None:
    """A repeat that lacks an order is left out of the OPD by name, its order of the ranks; the cell stands among the problems."""

    def keep(planned: PlannedCell) -> bool:
        seeds = planned.request.seeds
        return not (planned.request.method == "ewc" and seeds.order == 4 and seeds.init == 1)

    study = study_of(ALL, keep=keep)
    frame = orders.sensitivity(study).set_index(["unit", "method"])
    assert (frame.loc[("task", "ewc"), "n_repeats"], frame.loc[("task", "bare"), "n_repeats"]) == (2, 3)
    assert frame.loc[("task", "ewc"), "aopd_refused"] == "2 repeats: an interval needs at least 3"
    left = orders.left_out(study)
    ewc = left[left["methods"] == ("ewc",)]
    assert "seed 0/1: run with 5 of 6 orders, which may serve as a null" in set(ewc["reason"])
    assert any(reason == "order 4,5 | 0,1 | 2,3: its order lacks a cell" for reason in left["reason"])
    scores, _ = orders.order_scores(study, f"{UCLA} × gcn")
    assert scores["order"].nunique() == 5
    page = page_with(show_orders.overview(study), show_orders.left_out(study), show_orders.problems(study))
    assert text_of(page, "div.notice > p", "not finished").startswith("This campaign is not finished: 1 missing.")
    assert "not run yet" in texts(page, "td.long")


@pytest.mark.nightly
def test_classes_that_are_not_scored_everywhere(study_of: Study) -> None:
    """A class without test items in one order is left out by name, and so is everything when nothing is left."""

    def change(planned: PlannedCell) -> dict[str, Any]:
        if planned.request.seeds.order != 3:
            return {}
        accuracies = made(planned).per_class[0]
        return {"per_class": [[None, *accuracies[1:]]]}

    study = study_of(ALL, change=change)
    assert "0" not in set(orders.items(study).query("unit == 'class'")["item"])
    assert "class 0: scored in 15 of 18 cells" in set(orders.left_out(study)["reason"])
    empty = study_of(ALL, change=lambda planned: {"per_class": [[None] * 6]})
    refused = orders.sensitivity(empty).set_index(["unit", "method"])["refused"]
    assert refused["class", "bare"] == "no item was scored in every order"
    assert "refused: no item was scored in every order" in texts(page_with(show_orders.sensitivity(empty)), "td")


@pytest.mark.nightly
def test_classes_that_never_arrive_count_if_they_are_scored(study_of: Study) -> None:
    """An output without a class is no item, and nothing is missing; one that is scored all the same is an item like the others."""
    silent = study_of(ALL, change=lambda planned: {"per_class": [[*made(planned).per_class[0], None]]})
    assert not any(reason.startswith("class 6") for reason in orders.left_out(silent)["reason"])
    scored = study_of(ALL, change=lambda planned: {"per_class": [[*made(planned).per_class[0], 0.5]]})
    for study, found in ((silent, False), (scored, True)):
        assert ("6" in set(orders.items(study).query("unit == 'class'")["item"])) is found


@pytest.mark.nightly
def test_two_results_of_one_cell_are_told(study_of: Study) -> None:
    """The same order and seeds in two campaigns must give the same accuracies."""

    def change(planned: PlannedCell) -> dict[str, Any]:
        assert planned.cell is not None
        return {"matrix": np.full((4, 3), 0.25)} if planned.cell.scenario.class_order == "native" else {}

    study = study_of(ALL, {"orders": "native", "init": [0]}, change=change)
    assert (study.repeated, study.contradicting) == (3, 3)
    assert text_of(page_with(show_orders.overview(study)), "div.notice > p", "run twice").startswith("3 of 3 cells that were run twice")


def test_ranks_and_components(study_of: Study) -> None:
    """Methods are a step of 0.1 apart, noise 0.05: the ranking stands; AA differs by order hardly at all, by seed a little."""
    study = study_of(ALL)
    key = f"{UCLA} × gcn"
    shares = orders.win_tables(study)[key]
    assert shares.loc["joint", "bare"] == 1.0
    assert orders.concordance(study, key) == pytest.approx(1.0)
    table = orders.comparisons(study, key).set_index("method")
    assert table["rank"].to_dict() == {"bare": 3.0, "ewc": 2.0, "joint": 1.0}
    assert table["first"].to_dict() == {"bare": 0.0, "ewc": 0.0, "joint": 1.0}
    scores, _ = orders.order_scores(study, key)
    bare = scores[scores["method"] == "bare"]["value"]
    assert (table.loc["bare", "mean"], table.loc["bare", "std"]) == pytest.approx((bare.mean(), bare.std(ddof=1)))
    found = orders.components(study)[key]
    assert isinstance(found, stats.VarianceComponents)
    assert (found.n_methods, found.n_orders, found.n_seeds) == (3, 6, 3)
    assert f"Shares of the variance of AA. {study.designs[key].title}: " in page_with(show_orders.component_shares(study))


def test_bound_on_every_cell(study_of: Study) -> None:
    """All obey; forgetting that no accuracies between 0 and 1 can give does not, and is named."""
    study = study_of(ALL)
    checked = orders.bound_checks(study)
    assert len(checked) == 54
    assert checked["obeys"].all()
    record = study.results[0].used[0]
    row = study.cells[study.cells["key"] == record.key].iloc[0]
    assert row["af"] == pytest.approx(METRICS["forgetting_max"].loss(metrics.forgetting_max(record.performance())))
    closest = 100 * checked["slack"].astype(float).min()
    assert closest < 100 * checked["slack"].astype(float).max() - 1  # else the next line would hold for any cell
    bound = f"54 of 54 cells satisfy the bound; the closest is {closest:.1f} points below it"
    assert text_of(page_with(show_orders.bound(study)), "p", "satisfy the bound").startswith(bound)
    broken = study.cells.assign(af=study.cells["af"].where(study.cells["key"] != record.key, 8.1))
    shown = page_with(show_orders.bound(dataclasses.replace(study, cells=broken)))
    assert "These violate the bound and cannot be right" in shown
    assert "bare" in shown


@pytest.mark.nightly
def test_published_values(study_of: Study) -> None:
    """By paper, data set, unit, method and backbone, and only for the unchanged preset; unlike numbers of orders are said to be unlike."""
    found = published_sensitivity(UCLA, "bare", "graph-gcn", "task")
    assert (found["AOPD"]["printed"], found["AOPD"]["n_orders"]) == ("96.74 ± 0.72", 120)
    assert (found["MOPD"]["mean"], found["MOPD"]["std"]) == (100.0, 0.0)
    assert published_sensitivity("ntu-rgbd/class-il@skeleton-1", "replay", "graph-gcn", "class")["AOPD"]["mean"] == 50.52
    assert published_sensitivity(UCLA, "mas", "graph-gcn", "task")["MOPD"]["remark"].startswith("suspect: ")
    for other in [
        (UCLA, "joint", "graph-gcn", "task"),
        (UCLA, "bare", "st-gcn", "task"),
        ("nw-ucla/class-il@mine-1", "bare", "gcn", "task"),
    ]:
        assert published_sensitivity(*other) == {}
    study = study_of(ALL)
    assert orders.sensitivity(study).set_index(["unit", "method"]).loc[("class", "ewc"), "published"]["AOPD"]["mean"] == 100.0
    page = page_with(show_orders.sensitivity(study))
    assert "96.74 ± 0.72" in texts(page, "td.number span.quiet")
    assert "over 120 orders, different from ours: not comparable" in text_of(
        page, "ol.footnotes > li", "SkeletonCGL, table 2, 5 repeats; over 120"
    )
    changed = orders.sensitivity(study_of(ALL, set={"training.epochs": 7}))
    assert not changed["published"].map(bool).any()
    page = page_with(show_orders.sensitivity(study_of(ALL, set={"training.epochs": 7})))
    assert not [text for text in texts(page, "th, td, li") if "published" in text]


def test_the_page_shows_the_numbers_and_runs_nothing(study_of: Study) -> None:
    """Every section, with exact values behind the numbers, figures in both themes, and hostile strings as text."""
    study = study_of(ALL)
    sections = ["overview", "sensitivity", "items", "spreads", "comparisons", "flips", "components", "component_shares", "forgetting"]
    sections += ["bound", "left_out", "problems", "provenance"]
    page = page_with(*(getattr(show_orders, name)(study) for name in sections))
    assert set(sections) == set(show_orders.__all__)
    assert_harmless(page)
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    frame = orders.sensitivity(study)
    assert {*frame["aopd"], *frame["mopd"], *frame["null_aopd"]} <= shown
    assert set(orders.comparisons(study, f"{UCLA} × gcn")["mean"]) <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 2 * 3 + 4
    captions = Tables(page).captions
    assert any("over task orders, per task" in caption for caption in captions)
    alts = " ".join(str(a.get("alt")) for tag, a in Elements(page).found if tag == "img")
    assert re.search(r"OPD per task of bare in nw-ucla · class-IL · SkeletonCGL 1 × gcn\. 0,1: \d+, null \d+", alts)


@pytest.mark.nightly
def test_key_results_name_the_ends_and_the_winner(study_of: Study) -> None:
    """The lowest and the highest AOPD per task, as many runs beside the null, and how often the best method beats the next."""
    study, key = study_of(ALL), f"{UCLA} × gcn"
    (line,) = texts(page_with(show_orders.overview(study)), ".key-results li")
    frame = orders.sensitivity(study).set_index(["design", "unit", "method"]).loc[key].loc["task"].sort_values("aopd")
    (low, first), *_, (high, last) = frame.iterrows()
    share = orders.win_tables(study)[key].loc["ewc", "bare"]
    best = f"ewc is best: it beats bare, the next best, in {100 * share:.0f}% of the orders."
    assert line.startswith(f"nw-ucla · class-IL · SkeletonCGL 1 × gcn: {best} {low} depends least on the order ")
    assert f"(AOPD {100 * first['aopd']:.1f}), {high} most ({100 * last['aopd']:.1f}) [per task, 6 orders; " in line
    assert line.endswith(f"{100 * last['aopd_k']:.1f} against a null of {100 * last['null_aopd']:.1f}].")


def test_references_win_no_orders(study_of: Study) -> None:
    """A method of the category ``reference`` is not named as the best or the next best, as joint training is not."""
    study = study_of(ALL)
    control = tuple(dataclasses.replace(result, references=result.references | {"ewc"}) for result in study.results)
    (line,) = texts(page_with(show_orders.overview(dataclasses.replace(study, results=control))), ".key-results li")
    assert "beats" not in line


def test_equal_titles_are_told_apart_by_part_of_the_hash(study_of: Study) -> None:
    one = next(iter(study_of(ALL).designs.values()))
    twins = [dataclasses.replace(one, name=f"{one.base}+{n}2345678", changes={"training.lr": n}) for n in (1, 2)]
    marked = compute._marked({twin.key: twin for twin in twins})
    assert [design.mark for design in marked.values()] == [" (1234)", " (2234)"]
    assert [design.mark for design in compute._marked({one.key: one, twins[0].key: twins[0]}).values()] == ["", ""]


def test_spreads_in_words(study_of: Study) -> None:
    """The text of a figure says from which mean over an order to which each method goes, in percent."""
    study, key = study_of(ALL), f"{UCLA} × gcn"
    scores, _ = orders.order_scores(study, key)
    parts = {m: part["value"] for m, part in scores.groupby("method")}
    expected = "; ".join(f"{m}: {100 * parts[m].min():.1f} to {100 * parts[m].max():.1f}" for m in METHODS)
    assert all(part.min() < part.max() for part in parts.values())
    alts = [str(a.get("alt")) for tag, a in Elements(page_with(show_orders.spreads(study))).found if tag == "img"]
    assert set(alts) == {f"AA over orders in {study.designs[key].title}. {expected}"}


def test_nothing_done_yet(study_of: Study) -> None:
    """Every section says so."""
    study = study_of(ALL, keep=lambda planned: False)
    page = page_with(*(getattr(show_orders, name)(study) for name in show_orders.__all__))
    assert "No cell of these campaigns is finished yet." in texts(page, "p.quiet")
    assert text_of(page, "div.notice > p", "not finished").startswith("This campaign is not finished: 54 missing.")


@pytest.mark.parametrize(("n_seeds", "said"), [(3, "full colour: 3 orders; line: 3 seeds of one order"), (6, "line: 6 seeds of one order")])
def test_a_null_of_as_many_runs_needs_no_second_range(study_of: Study, n_seeds: int, said: str) -> None:
    """Of six orders: beside three seeds of one order the range over three orders is told apart, beside six there is nothing to tell."""
    study = study_of({"orders": "all-tasks", "init": list(range(n_seeds))}, grid={"scenarios": [UCLA], "methods": ["bare"]})
    gallery = show_orders.items(study)
    assert isinstance(gallery, Gallery)
    assert {one.caption for one in gallery.pictures} == {said}


@pytest.mark.nightly
def test_one_method(study_of: Study) -> None:
    """No ranking, but OPD, spread and components."""
    study = study_of(ALL, grid={"scenarios": [UCLA], "methods": ["bare"]})
    assert orders.win_tables(study) == {}
    assert orders.comparisons(study, f"{UCLA} × gcn")["rank"].isna().all()
    found = orders.components(study)[f"{UCLA} × gcn"]
    assert isinstance(found, stats.VarianceComponents)
    assert set(found.variances) == {"order", "seed", "rest"}
    page = page_with(*(getattr(show_orders, name)(study) for name in show_orders.__all__))
    assert "A ranking needs two methods with the same orders." in texts(page, "p.quiet")
    assert text_of(page, "figcaption", "Kendall's W").endswith("Kendall's W: refused (a ranking needs at least 2 methods, but there is 1)")
