"""Guards: what makes methods hard to compare is told before the numbers, and not told where it is not so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_lab import CAMPAIGN, MATRIX, catalogue_of, page_of, record_of

from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign, plan_search
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.results import summary
from cglsuite.reports.results.guards import guards
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.studies.comparison import page as comparison_page
from cglsuite.reports.studies.comparison.compute import Question, study
from cglsuite.specs import MethodSpec, MetricSpec, PluginSpec, ScenarioSpec

GRID = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "ewc", "joint"]}
Change = Callable[[PlannedCell], dict[str, Any]]
Made = Callable[..., CampaignResults]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Results with a record of every cell, changed as ``change`` says."""

    def make(change: Change, *extra: tuple[str, PluginSpec], catalogue: Catalogue | None = None, **tables: Any) -> CampaignResults:
        catalogue = catalogue or catalogue_of(*extra)
        store, campaign = Store(tmp_path), CAMPAIGN | {"grid": GRID} | tables
        parsed = Campaign.parse(campaign)
        for search in plan_search(parsed, catalogue):
            for planned in search.cells:
                store.put(record_of(planned, **change(planned)))
        for planned in plan_campaign(parsed, catalogue, store=store):
            if planned.ready:
                store.put(record_of(planned, **change(planned)))
        return load_campaign_results(campaign, store, catalogue=catalogue)

    return make


def raised(planned: PlannedCell, by: dict[str, float], noise: float = 0.002) -> dict[str, Any]:
    """The matrix of a cell, raised by method, with noise by order seed."""
    order = planned.request.seeds.order
    return {"matrix": (np.array(MATRIX) - 0.2 + by.get(planned.request.method, 0.0) + noise * (order - 1)).tolist()}


def guard_texts(results: CampaignResults, kind: str) -> list[str]:
    return [guard.text for guard in guards(results) if guard.kind == kind]


def test_joint_below_a_method(made: Made) -> None:
    """The method that is above is named, by how much, and over how many cells; the one below is not."""
    results = made(lambda p: raised(p, {"ewc": 0.05, "bare": -0.05}, noise=0.01 if p.request.method == "ewc" else 0.002))
    assert guard_texts(results, "upper-bound") == [
        "Joint training is not an upper bound here: joint is below ewc (+5.0 points in 3 cells, significant)."
    ]
    assert "interpret the comparison with caution" in page_of(results, "overview", "progress")
    assert "It is a bound only for its network and training settings" in page_of(results, "overview", "progress")


def test_the_size_of_a_querys_graph(made: Made) -> None:
    """Said before the numbers and on the board, of presets that ask task by task on graphs of their own alone."""
    results = made(lambda p: raised(p, {}), set={"scenario.edge_policy": "none"})
    assert [text.split(",")[0] for text in guard_texts(results, "queries")] == ["Queries arrive task by task"]
    assert "Compare with pooled queries" in page_of(results, "overview", "progress")
    assert guard_texts(made(lambda p: raised(p, {}), set={"scenario.edge_policy": "full"}), "queries") == []


def test_many_comparisons_share_a_box(made: Made) -> None:
    """Five comparisons are warned of in one box: by what is wrong, and comparison by comparison where the numbers differ."""
    lengths = [1, 2, 3, 4, 5]
    axes = {"training.epochs": lengths}
    results = made(lambda p: raised(p, {"ewc": 0.01 * p.cell.configuration["training.epochs"]}), grid=GRID | {"axes": axes})
    page = page_of(results, "overview", "progress")
    assert [guard.kind for guard in guards(results)] == ["queries", "upper-bound"] * 5
    assert page.count('class="notice"') == 1
    assert "Interpret 5 comparisons with caution." in page
    assert page.count("Joint training is below another method in 5 comparisons. It is a bound only for its") == 1
    for n in lengths:
        assert f"joint is below ewc (+{n}.0 points in 3 cells, " in page


def test_each_variant_has_its_own_joint(made: Made) -> None:
    """Joint training at a method's settings bounds it, and each pair is named once; memory and tuning name a whole method once."""
    axes = {"training.lr": [0.001, 0.01]}
    raised_by = {("joint", 0.01): 0.1, ("ewc", 0.001): 0.05}
    searched = ScenarioSpec(name="toy/class-il@own-1", summary="s", dataset="toy", setting="class-il", searched=("training.lr",))

    def change(planned: PlannedCell) -> dict[str, Any]:
        by = raised_by.get((planned.request.method, planned.request.overrides["training.lr"]), 0.0)
        return raised(planned, {planned.request.method: by}, noise=0.01 if planned.request.method == "ewc" else 0.002)

    results = made(change, ("scenario", searched), grid=GRID | {"scenarios": [searched.name], "axes": axes})
    (text,) = guard_texts(results, "upper-bound")
    assert (
        text == "Joint training is not an upper bound here: joint (lr=0.001) is below ewc (lr=0.001) (+5.0 points in 3 cells, significant)."
    )


def test_joint_below_by_chance(made: Made) -> None:
    """A difference whose interval holds zero is not called one of training."""
    results = made(lambda p: raised(p, {"ewc": 0.001}, noise=0.03 if p.request.method == "ewc" else 0.002))
    (text,) = guard_texts(results, "upper-bound")
    assert text.startswith("Joint training may not be an upper bound here")
    assert "within chance" in text


def test_one_certain_method_is_enough(made: Made) -> None:
    """Several methods are above the bound: that one of them is so beyond chance convicts it, whatever the others are."""
    spread = {"ewc": 0.01, "bare": 0.03}
    results = made(lambda p: raised(p, {"ewc": 0.05, "bare": 0.001}, noise=spread.get(p.request.method, 0.002)))
    (text,) = guard_texts(results, "upper-bound")
    assert text.startswith("Joint training is not an upper bound here: joint is below bare ")
    assert "within chance" in text
    assert "significant" in text


@pytest.mark.parametrize(("methods", "says"), [(["ewc", "joint"], "significant"), (["bare", "ewc", "joint"], "within chance")])
def test_methods_above_joint_are_a_family(made: Made, methods: list[str], says: str) -> None:
    """p = .038 of one method, which does not survive Holm's adjustment over two."""
    grid = GRID | {"methods": methods}
    results = made(lambda p: raised(p, {"ewc": 0.03}, noise=0.0124 if p.request.method == "ewc" else 0.002), grid=grid)
    (text,) = guard_texts(results, "upper-bound")
    assert f"ewc (+3.0 points in 3 cells, {says})" in text


def test_joint_below_in_one_cell(made: Made) -> None:
    """One cell is too few for a test, and the guard says so."""
    results = made(lambda p: raised(p, {"ewc": 0.05}), seeds={"order": [0], "init": [0]})
    assert guard_texts(results, "upper-bound")[0].endswith("ewc (+5.0 points in 1 cell, too few or too equal to test).")


def test_joint_above_all(made: Made) -> None:
    """No guard where the upper bound is one, nor where there is no joint."""
    assert guard_texts(made(lambda p: raised(p, {"joint": 0.1})), "upper-bound") == []
    without = guards(made(lambda p: raised(p, {}), grid=GRID | {"methods": ["bare", "ewc"]}))
    assert [guard.kind for guard in without] == ["queries"]


@pytest.mark.parametrize(("items", "expected"), [((100, 109), False), ((100, 120), True), ((0, 120), False)])
def test_unequal_memory(made: Made, items: tuple[int, int], expected: bool) -> None:
    """Methods that keep something are compared with each other; up to ten percent counts as equal, and no memory is none."""
    kept = dict(zip(("bare", "ewc"), items, strict=True)) | {"joint": 5000}
    memory = {"peak_bytes": 10**8, "edges": 0, "bytes": 0, "budget_items": None}
    results = made(lambda p: raised(p, {"joint": 0.1}) | {"memory": memory | {"items": kept[p.request.method]}})
    texts = guard_texts(results, "memory")
    assert texts == (["Methods use replay memories of different sizes (peak number of items): bare 100, ewc 120."] if expected else [])


def test_tuned_by_the_protocol_beside_defaults(made: Made) -> None:
    """Real numbers that the protocol sets are tuning; a variant of an algorithm, or a method without settings, is not."""
    other = MethodSpec(
        name="mine", summary="mine", factory="json:loads", hyperparameters=catalogue_of().get("method", "ewc").spec.hyperparameters
    )
    tuned = ScenarioSpec(
        name="toy/domain-il@cglb-1",
        summary="t",
        dataset="toy",
        setting="domain-il",
        task_key="k",
        method_defaults={"ewc": {"method.lambda": 5.0}},
    )
    grid = {"scenarios": [tuned.name], "methods": ["bare", "ewc", "mine"]}
    results = made(lambda p: raised(p, {}), ("method", other), ("scenario", tuned), grid=grid)
    expected = "Tuned methods are compared with untuned ones. Hyperparameters set by the protocol: ewc; defaults or set by hand: mine."
    assert guard_texts(results, "search") == [expected]
    by_hand = made(
        lambda p: raised(p, {}),
        ("method", other),
        ("scenario", tuned),
        grid=grid,
        override=[{"match": {"method": "ewc"}, "set": {"method.lambda": 7.0}}],
    )
    assert guard_texts(by_hand, "search") == []


def test_tuned_in_the_campaign_beside_defaults(made: Made) -> None:
    """A search of a method's own settings leaves out methods that have none; one of training leaves out everybody else."""
    validation = {"validation_matrix": MATRIX}
    search: dict[str, Any] = {"seeds": {"order": [50], "init": [50]}, "methods": {"ewc": {"lambda": [1.0, 2.0]}}}
    left_open = ScenarioSpec(
        name="toy/domain-il@cglb-1", summary="t", dataset="toy", setting="domain-il", task_key="k", searched=("training.lr",)
    )
    tables = {"grid": GRID | {"scenarios": [left_open.name]}, "search": search}
    own = made(lambda p: raised(p, {"joint": 0.1}) | validation, ("scenario", left_open), **tables)
    assert own.searches[0]["chosen"] is not None
    assert guard_texts(own, "search") == []
    search["methods"] = {"ewc": {"training.lr": [0.01, 0.02]}}
    shared = made(lambda p: raised(p, {"joint": 0.1}) | validation, ("scenario", left_open), **tables)
    expected = "Tuned methods are compared with untuned ones. Hyperparameters searched in this campaign: ewc; "
    expected += "defaults or set by hand: bare, joint."
    assert guard_texts(shared, "search") == [expected]


def test_a_metric_without_a_value_is_told_in_words(made: Made) -> None:
    """Below the table the metrics of the setting that have no value, with the reason; the comparison says the same."""
    fwt = MetricSpec(
        name="forward_transfer",
        summary="s",
        formula="f",
        direction="up",
        factory="cglsuite.stats.metrics:forward_transfer",
        settings=("domain-il",),
    )
    results = made(lambda p: raised(p, {"joint": 0.1}), ("metric", fwt), grid=GRID | {"methods": ["bare", "ewc"]})
    shown = str(summary.summary(results))
    assert "intransigence</code> (all methods): needs joint in the same scenario" in shown
    assert "forward_transfer" not in shown
    asked = study(results, Question(metric="forward_transfer"))
    expected = "no method has a value: forward_transfer does not apply to class-il, only to domain-il"
    assert expected in str(comparison_page.means(asked))
    assert expected in str(comparison_page.differences(asked))


def test_what_records_warn_of(made: Made) -> None:
    """Each warning once, with the methods and cells concerned."""

    def change(planned: PlannedCell) -> dict[str, Any]:
        plain = record_of(planned)
        said = ["not used: edge_weight"] + ["the loss of task 1 (7e+29) stays"] * (planned.request.method == "ewc")
        return {"provenance": {**plain.provenance, "warnings": said}}

    results = made(change)
    cells = len([cell for group in results.groups for cell in group.cells])
    assert guard_texts(results, "values") == [
        f"Warnings in the records: not used: edge_weight (all methods; {cells} cells); "
        f"the loss of task 1 (7e+29) stays (ewc; {cells // 3} cells)."
    ]
    assert "the loss of task 1 (7e+29) stays" in "".join(map(str, summary.notices(results)))
    assert guard_texts(made(lambda planned: {}), "values") == []
