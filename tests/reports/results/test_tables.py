"""The numbers of a report, computed by hand on three records."""

from __future__ import annotations

import dataclasses
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_lab as lab

from cglsuite.base.markup import Fragment
from cglsuite.campaigns.campaign import Campaign
from cglsuite.campaigns.planning import plan_campaign
from cglsuite.cells.plan import PlannedCell, plan_cell
from cglsuite.cells.storage.store import Store
from cglsuite.reports.results import summary, tables
from cglsuite.reports.results.results import CampaignResults, ReportedCell, group_cells, load_campaign_results
from cglsuite.reports.studies import campaign as campaign_page
from cglsuite.specs import METRICS, MethodSpec

MATRIX = np.array([[0.5, 0.5], [0.9, 0.5], [0.7, 0.8]])


def one(frame: Any, **wanted: Any) -> Any:
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


CORA = "cora/task-il@begin-1"


def test_every_planned_cell_is_accounted_for(results: CampaignResults) -> None:
    """Done, failed, missing and N/A add up to the plan."""
    assert results.counts() == {"done": 18, "n/a": 3, "failed": 2, "missing": 1}
    assert len(results.used) == 18
    assert not results.left_out


def test_summary_by_hand(results: CampaignResults) -> None:
    """AP of bare: last rows have means 0.8, 0.81, 0.82; ewc lost one record; a metric without values has no row."""
    frame = tables.summary(results)
    row = one(frame, preset=CORA, method="bare", metric="average_performance")
    assert row["mean"] == pytest.approx(0.81)
    assert row["std"] == pytest.approx(0.01)
    assert (row["n"], row["records"]) == (3, 3)
    assert one(frame, preset=CORA, method="ewc", metric="average_performance")["n"] == 2
    assert one(frame, preset=CORA, method="bare", metric="forgetting_from_diagonal")["mean"] == pytest.approx(0.15)


def test_summary_agrees_with_the_standard_library(results: CampaignResults) -> None:
    """Mean and standard deviation against an independent implementation, for every row."""
    frame, values = tables.summary(results), results.frame
    for row in frame.to_dict(orient="records"):
        mine = values[(values.preset == row["preset"]) & (values.method == row["method"])][row["metric"]].dropna()
        assert row["mean"] == pytest.approx(statistics.fmean(mine))
        assert row["std"] == pytest.approx(statistics.stdev(mine) if len(mine) > 1 else math.nan, nan_ok=True)


def test_intransigence_pairs_equal_seeds(results: CampaignResults) -> None:
    """Joint is 0.05 better at equal seeds; where a joint record is missing, the pair is not counted."""
    frame = tables.summary(results)
    row = one(frame, preset=CORA, method="bare", metric="intransigence")
    assert (row["mean"], row["n"]) == (pytest.approx(0.05), 3)
    row = one(frame, preset="toy/class-il@cglb-1", method="bare", metric="intransigence")
    assert (row["mean"], row["n"], row["records"]) == (pytest.approx(0.05), 2, 3)


@pytest.mark.parametrize(("metric", "expected"), [("average_performance", [0.9, 0.75]), ("forgetting_from_diagonal", [math.nan, 0.2])])
def test_timeline_applies_a_metric_to_the_matrix_as_it_stood(metric: str, expected: list[float]) -> None:
    """After task k only k rows and columns are known."""
    np.testing.assert_allclose(tables.timeline(MATRIX, metric), expected)


def test_curves_end_where_the_summary_is(results: CampaignResults) -> None:
    """The last point of a curve is the metric itself; forgetting has no value after one task."""
    summary = tables.summary(results)
    for metric in tables.CURVES:
        curves = tables.curves(results, metric)
        last = curves[curves.task == 3]
        for row in last.to_dict(orient="records"):
            assert row["mean"] == pytest.approx(one(summary, preset=row["preset"], method=row["method"], metric=metric)["mean"])
    assert set(tables.curves(results, "forgetting_from_diagonal").task) == {2, 3}


def test_excess_forgetting_after_every_task(tmp_path: Path) -> None:
    """By hand: AF after each task minus that of the reference under the same seeds, as in the summary at the end; also where a picture
    leaves the reference out. Without a record of it there is no curve, and the reason."""
    frozen = MethodSpec(name="frozen-ncm", summary="frozen", factory="json:loads", category="reference")
    excess = METRICS["excess_forgetting"]
    grid = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "frozen-ncm"]}
    catalogue, store = lab.catalogue_of(("method", frozen), ("metric", excess)), Store(tmp_path)
    campaign = Campaign.parse(lab.CAMPAIGN | {"grid": grid})
    for planned in plan_campaign(campaign, catalogue):
        seed, method = planned.request.seeds.order, planned.request.method
        matrix = [[0.5, 0.5, 0.5], [0.9, 0.5, 0.5], [0.8, 0.9, 0.5], [0.7 - 0.1 * seed, 0.8, 0.9]]
        if method == "frozen-ncm":
            matrix = [[0.3, 0.2, 0.2], [0.6, 0.2, 0.2], [0.6, 0.5, 0.2], [0.5, 0.5, 0.4]]
        if (seed, method) != (2, "frozen-ncm"):
            store.put(lab.record_of(planned, matrix=matrix))
    results = load_campaign_results(campaign, store, catalogue=catalogue)
    alone = dataclasses.replace(results, cells=tuple(c for c in results.cells if c.planned.request.method == "bare"))
    for frame in (tables.curves(results, excess.name), tables.curves(alone, excess.name, all_results=results)):
        bare = frame[frame.method == "bare"]
        assert bare.task.tolist() == [2, 3]
        assert bare["n"].tolist() == [2, 2]
        assert bare["mean"].tolist() == pytest.approx([0.1 - 0.0, (0.15 + 0.2) / 2 - 0.05])
    assert one(tables.summary(results), method="bare", metric=excess.name)["mean"] == pytest.approx(bare["mean"].iloc[-1])
    assert tables.curves(alone, excess.name).empty
    shown = campaign_page.curves(alone, excess.name)
    assert isinstance(shown, Fragment)
    assert shown.text == "Excess forgetting needs frozen-ncm in the same scenario, with the same backbone and seeds."


def test_mean_matrices_leave_out_what_could_not_be_asked(results: CampaignResults) -> None:
    """An entry that is NaN in all records stays NaN; the others are means over records."""
    group, matrix = tables.mean_matrices(results)[0]
    assert (group.preset, group.method, matrix.shape) == (CORA, "bare", (4, 3))
    assert math.isnan(matrix[1, 2])
    assert matrix[3].tolist() == pytest.approx([0.71, 0.81, 0.91])


def test_problems_name_state_reason_and_seeds(results: CampaignResults) -> None:
    """Equal reasons of one method share a row; N/A combinations say why."""
    frame = tables.problems(results)
    assert sorted(frame.state) == ["failed", "failed", "missing", "n/a"]
    na = one(frame, state="n/a")
    assert na["method"] == "packnet"
    assert "is defined for task-il" in na["reason"]
    assert na["seeds"] == "0/0/0; 1/0/1; 2/0/2"


def test_settings_show_what_differs_and_fold_what_is_shared(results: CampaignResults) -> None:
    """Only ewc has a strength; everything else is common to the preset."""
    frame = tables.configurations(results)
    assert [c for c in frame.columns if "." in c] == ["method.lambda"]
    assert one(frame, preset=CORA, method="ewc")["method.lambda"] == 1.0
    assert one(frame, preset=CORA, method="bare")["method.lambda"] is None
    assert tables.common_configuration(results, CORA)["training.lr"] == 0.001


def test_records_of_unlike_settings_are_never_averaged(load: Any) -> None:
    """A campaign with another strength has a group of its own that the old records do not enter."""
    results = load(set={"method.lambda": 5.0})
    assert not [g for g in results.groups if g.method == "ewc"]
    assert {g.method for g in results.groups} == {"bare", "joint", "packnet"}


def test_other_code_makes_records_stale_and_unlike_code_does_not_mix(load: Any, plan: list[PlannedCell], tmp_path: Any) -> None:
    """Where the code changed, old records are shown and marked; where some are new, only the new ones count."""
    results = load(source="c" * 64)
    assert all(cell.stale for cell in results.cells if cell.done)
    assert "core by cglsuite 0.1.0 (aaaaaaaa), now 0.1.0 (cccccccc)" in results.cells[0].stale
    assert len(results.used) == 18
    renewed = plan[0]
    again = plan_cell(renewed.request, lab.catalogue_of(source="c" * 64))
    store = Store(results.store)
    store.put(lab.record_of(again, source="c" * 64))
    mixed = load(source="c" * 64)
    bare = next(g for g in mixed.groups if g.method == "bare" and g.preset == CORA)
    assert [r.key for r in bare.records] == [again.key]
    assert len(mixed.left_out) == 2


def test_resources_and_sources(results: CampaignResults) -> None:
    """Means per group, and every distribution whose code made a record."""
    row = one(tables.resources(results), preset=CORA, method="bare")
    assert (row["n"], row["total_s"], row["training_s"]) == (3, 10.0, 8.0)
    assert sorted(set(tables.sources(results).distribution)) == ["cglsuite", "toy-plugin"]
    assert tables.conditions(results)["seeds (order/split/init)"] == "0/0/0; 1/0/1; 2/0/2"
    assert "GPU" not in tables.conditions(results)


def test_conditions_name_the_gpu(results: CampaignResults) -> None:
    there = {**results.used[0].environment, "gpu": "NVIDIA H200", "cuda": "13.0", "cudnn": 91902}
    cells = [
        dataclasses.replace(cell, record=cell.record and dataclasses.replace(cell.record, environment=there)) for cell in results.cells
    ]
    assert tables.conditions(dataclasses.replace(results, cells=tuple(cells)))["GPU"] == "NVIDIA H200, CUDA 13.0, cuDNN 9.19.2"


def test_searches_say_what_was_chosen(results: CampaignResults) -> None:
    """Candidates, seeds, the choice and its score; where no candidate finished, that."""
    candidates = [
        {"overrides": {"method.lambda": 1e4}, "scores": [0.8, 0.9], "mean": 0.85},
        {"overrides": {}, "scores": [None], "mean": None},
    ]
    outcome = {"scenario": CORA, "method": "ewc", "backbone": None, "candidates": candidates, "chosen": 0}
    frame = tables.searches(dataclasses.replace(results, searches=(outcome, outcome | {"chosen": None})))
    assert frame.chosen.tolist() == ["method.lambda = 10000", "no candidate finished on every seed"]
    assert (frame.score[0], frame.trials[0], frame.seeds[0]) == (0.85, 2, 2)


def test_variants_name_what_tells_groups_apart(load: Any, plan: list[PlannedCell], toy_store: Store) -> None:
    """Two groups of one method that differ in a setting are shown apart, by that setting."""
    results = load()
    cell = next(c for c in results.cells if c.done and c.planned.request.method == "ewc")
    assert cell.record is not None
    overrides = cell.record.cell["configuration"] | {"method.lambda": 1e4}
    other = dataclasses.replace(
        cell, record=dataclasses.replace(cell.record, key="12" * 32, cell=cell.record.cell | {"configuration": overrides})
    )
    groups = group_cells([cell, other])
    assert [g.label for g in groups] == ["ewc (lambda=1)", "ewc (lambda=10000)"]


@pytest.mark.parametrize("second_share", [1.0, 0.5])
def test_variants_of_pre_training_are_named_by_scheme(load: Any, second_share: float) -> None:
    """A scheme's settings say nothing beside its name, unless the scheme was run with several."""
    cell = next(c for c in load().cells if c.done and c.planned.request.method == "ewc")
    assert cell.record is not None

    def trained(number: int, **settings: Any) -> ReportedCell:
        assert cell.record is not None
        configuration = cell.record.cell["configuration"] | {f"pretraining.{name}": value for name, value in settings.items()}
        record = dataclasses.replace(cell.record, key=f"{number:064d}", cell=cell.record.cell | {"configuration": configuration})
        return dataclasses.replace(cell, record=record)

    dgi = [trained(number, scheme="dgi", share=share) for number, share in enumerate((1.0, second_share))]
    labels = [group.label for group in group_cells([cell, *dgi, trained(2, scheme="graphcl", share=1.0, temperature=0.2)])]
    if second_share == 1.0:
        assert labels == ["ewc (scheme=none)", "ewc (scheme=dgi)", "ewc (scheme=graphcl)"]
    else:
        expected = ["scheme=none, share=–", "scheme=dgi, share=1", "scheme=dgi, share=0.5", "scheme=graphcl, share=1"]
        assert labels == [f"ewc ({words})" for words in expected]


def test_a_cell_that_is_named_twice_counts_once(results: CampaignResults) -> None:
    """However cells were collected: n is the number of records."""
    twice = group_cells([*results.cells, *results.cells])
    assert [len(group.records) for group in twice] == [len(group.records) for group in results.groups]
    assert [len({r.key for r in group.records}) for group in twice] == [len(group.records) for group in twice]


def test_definitions_are_of_the_metrics_that_the_records_have(results: CampaignResults) -> None:
    """A metric of task-free streams alone is not explained where there are none; before there are records, all are."""
    other = dataclasses.replace(results.metrics["average_performance"], name="a_auc", label="A-AUC", settings=("task-free",))
    with_other = dataclasses.replace(results, metrics=results.metrics | {"a_auc": other})
    assert "A-AUC" not in str(summary.definitions(with_other))
    for spec in results.metrics.values():
        assert str(spec.label) in str(summary.definitions(with_other))
    nothing = dataclasses.replace(with_other, cells=())
    assert not nothing.used
    assert "A-AUC" in str(summary.definitions(nothing))


def test_units_and_measures_are_those_of_the_preset(results: CampaignResults, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regression beside a classification: each is shown in its own unit, under its own name."""
    first, second = dict.fromkeys(group.preset for group in results.groups)
    in_first = {id(group.records[0]) for group in results.groups if group.preset == first}
    monkeypatch.setattr(summary, "is_fraction", lambda record: id(record) in in_first)
    monkeypatch.setattr(summary, "performance_names", lambda records: " and ".join(sorted({r.cell["preset"] for r in records})))
    assert (summary.in_percent(results, first), summary.in_percent(results, second)) == (True, False)
    assert summary.performance_text(results, first) == f"{first} in percent"
    assert summary.performance_text(results, second) == second


def test_a_notebook_that_changes_its_frame_changes_no_table(results: CampaignResults) -> None:
    """The bug: what was written into it was in every table below."""
    before, shown = results.frame, tables.resources(results)
    frame = results.frame
    frame["total_s"] = 0.0
    frame.pop("status")
    assert results.frame.equals(before)
    assert tables.resources(results).equals(shown)
