"""Task-free streams from records: streams dealt again, settings solved for, curves by hand, and what the page shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_lab import CAMPAIGN, EVIL, Elements, assert_harmless, catalogue_of, page_with, record_of, toy_engine
from tiny_flows import blended
from tiny_streams import tiny_data

from cglsuite import metrics, stats
from cglsuite.cells.campaign import Campaign
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.planning import plan_campaign
from cglsuite.cells.store import Store
from cglsuite.errors import UnknownNameError, UsageError
from cglsuite.graphs import NodeData
from cglsuite.hashing import plain
from cglsuite.host import Catalogue
from cglsuite.reports import flows, show, show_architecture, show_flows
from cglsuite.reports.architecture import sweep
from cglsuite.reports.flow_figures import Course
from cglsuite.reports.flows import FlowStudy, flow_study
from cglsuite.reports.order_study import pool
from cglsuite.reports.results import CampaignResults, load_pooled_results
from cglsuite.specs import DatasetSpec, Hyperparameter, MethodSpec, MetricSpec, OnlineSpec, ScenarioSpec, ScheduleSpec, TrainingSpec
from cglsuite.streams.mixing import mid_steps, mixing_entropy, mixture_of, overlap_index
from cglsuite.streams.online import build_batch_stream

NAME = "tiny/gaussian@drift-1"
ONLINE = OnlineSpec(schedule="blended", schedule_settings=(("width", 2.0),), evaluate_every=3)
SPEC = ScenarioSpec(
    name=NAME,
    summary=EVIL,
    dataset="tiny",
    setting="task-free",
    builder="cglsuite.streams.online:build_batch_stream",
    split="per-class",
    edge_policy="full",
    online=ONLINE,
    training=TrainingSpec(batch_size=4, epochs=1),
)
WIDTH = Hyperparameter(name="width", default=2.0, minimum=0, doc="width")
EXTRA = (
    ("dataset", DatasetSpec(name="tiny", summary="tiny", factory=f"{__name__}:load")),
    ("schedule", ScheduleSpec(name="blended", summary=EVIL, factory="tiny_flows:blended", hyperparameters=(WIDTH,))),
    ("scenario", SPEC),
    *(("method", MethodSpec(name=name, summary=name, factory="json:loads", settings=("task-free",))) for name in ("steady", "restless")),
    *(
        ("metric", MetricSpec(name=name, summary=name, formula="f(A)", label=label, direction="up", settings=("task-free",), **more))
        for name, label, factory, unit in (("a_auc", "A_AUC", "a_auc", ""), ("time_to_recover", "time", "time_to_recover", "steps"))
        for more in [{"factory": f"cglsuite.metrics:{factory}", "unit": unit}]
    ),
)
METHODS = ["steady", "restless"]
WIDTHS = [0.5, 2.0, 6.0]


def load(root: Any, **_: Any) -> NodeData:
    """The tiny graph as a dataset."""
    return tiny_data(per_class=20)


def curve(method: str, rows: int, seed: int) -> np.ndarray[Any, Any]:
    """Three latent tasks: one method rises to the end, the other has fallen by then."""
    line = np.linspace(0.2, 0.8, rows)[:, None] + 0.02 * np.arange(3) + 0.01 * seed
    if method == "restless":
        line[-1] -= 0.3
    return np.asarray(line)


def recorded(planned: PlannedCell, tampered: bool) -> Any:
    cell = planned.cell
    assert cell is not None
    stream = build_batch_stream(cell.scenario, load(None), cell.seeds)
    matrix = curve(planned.request.method, len(stream.evaluations), planned.request.seeds.init)
    tasks = [plain(facts) for facts in stream.tasks]
    facts = {"evaluations": list(stream.evaluations), "delivered": stream.delivered()}
    content = "f" * 64 if tampered else stream.content
    given = {"a_auc": metrics.a_auc(matrix), "time_to_recover": 6.0 if planned.request.method == "restless" else None}
    base = record_of(planned, matrix=np.ones((4, 3)))
    provenance = {**base.provenance, "stream": facts | {"content": content}}
    return dataclasses.replace(base, matrix=matrix, tasks=tasks, metrics=given, provenance=provenance)


Made = tuple[list[CampaignResults], Catalogue]
Make = Callable[..., Made]


@pytest.fixture
def results_of(tmp_path: Path) -> Make:
    """The results of campaigns over widths, and over whatever ``vary`` says one at a time."""

    def make(vary: dict[str, list[Any]] | None = None, *, tampered: bool = False, **tables: Any) -> Made:
        catalogue, store = catalogue_of(*EXTRA), Store(tmp_path / "store")
        engine = toy_engine(catalogue)
        first = CAMPAIGN | {"grid": {"scenarios": [NAME], "methods": METHODS}, "title": "Flows"} | tables
        given = [first, *flows.one_at_a_time(first, {"schedule.width": WIDTHS} if vary is None else vary)]
        for planned in (p for one in given for p in plan_campaign(Campaign.parse(one), catalogue, engine=engine)):
            if planned.ready:
                store.put(recorded(planned, tampered))
        return load_pooled_results(given[0], given[1:], store, catalogue=catalogue, engine=engine), catalogue

    return make


@pytest.fixture
def study(results_of: Make) -> FlowStudy:
    results, catalogue = results_of()
    return flow_study(results, catalogue=catalogue)


# --- the streams -----------------------------------------------------------------------------------------------------------------


def test_streams_are_those_of_the_records(study: FlowStudy) -> None:
    """What is dealt again has the content that the records say; its numbers follow from mixture and counts."""
    frame = flows.streams(study).set_index("preset")
    assert len(frame) == 3
    assert frame["same"].all()
    for preset, flow in study.flows.items():
        row = frame.loc[preset]
        expected = mixture_of(blended(mid_steps(flow.spans), flow.spans, **flow.settings), "x")
        np.testing.assert_allclose(flow.mixture, expected)
        assert row["overlap"] == (expected.max(axis=1) < 0.9).mean()
        assert row["overlap_delivered"] == ((flow.counts / 4).max(axis=1) < 0.9).mean()
        draws = np.concatenate(list(flow.draws))
        assert draws.sum() == flow.counts.sum() == 4 * row["steps"]
        assert [one.sum() for one in flow.draws] == flow.counts.sum(axis=0).tolist()
        assert (row["never"], row["most"], row["mean"]) == ((draws == 0).mean(), draws.max(), pytest.approx(draws.mean()))
        shares = flows.exposure(flow).groupby("task")["share"].sum()
        assert shares.tolist() == pytest.approx([1.0] * 3)


def test_records_of_another_stream_are_noticed(results_of: Make) -> None:
    results, catalogue = results_of(tampered=True)
    study = flow_study(results, catalogue=catalogue)
    assert not flows.streams(study)["same"].any()
    assert "data or code have changed" in page_with(show_flows.overview(study))


def test_streams_that_cannot_be_dealt_leave_the_curves(results_of: Make) -> None:
    """No data, no schedule; what the records say is shown all the same."""
    results, _ = results_of()
    study = flow_study(results, catalogue=catalogue_of(*(pair for pair in EXTRA if pair[0] != "dataset")))
    assert not study.flows
    assert len(study.not_dealt) == 3
    page = page_with(show_flows.overview(study), show_flows.streams(study), show_flows.accuracy(study), show_flows.overlap(study))
    assert "could not be dealt again" in page
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    assert not flow_study(results, deal=False).not_dealt


def test_titles_tell_streams_apart_over_campaigns(results_of: Make) -> None:
    """The first says in what they differ, the others how from the first."""
    results, catalogue = results_of({"schedule.width": [6.0], "stream.draw": ["with-replacement"]})
    study = flow_study(results, catalogue=catalogue)
    assert list(study.words.values()) == ["width = 2, draw = without-replacement", "width = 6", "draw = with-replacement"]
    assert {study.title(p) for p in study.flows} == {f"{NAME}, {words}" for words in study.words.values()}


def test_threshold_is_a_share(results_of: Make) -> None:
    with pytest.raises(UsageError, match="threshold"):
        flow_study(results_of()[0], threshold=0.0)
    results, catalogue = results_of()
    low, high = (flows.streams(flow_study(results, threshold=t, catalogue=catalogue))["overlap"] for t in (0.5, 0.99))
    assert (low <= high).all()


# --- a setting from what is wanted -----------------------------------------------------------------------------------------------


def test_settings_reach_what_is_wanted(study: FlowStudy) -> None:
    """The value gives at least the target, a little less does not; streams that differ in the setting alone are solved once."""
    catalogue = catalogue_of(*EXTRA)
    frame = flows.solved_settings(study, {"overlap": [0.3, 0.7, 2.0], "entropy": [0.5]}, catalogue=catalogue)
    assert len(frame) == 4
    flow = next(iter(study.flows.values()))
    for row in frame.to_dict(orient="records"):
        if row["target"] > 1:
            assert "at most" in row["refused"]
            continue
        below = mixture_of(blended(mid_steps(flow.spans), flow.spans, width=0.99 * row["value"]), "x")
        measured = overlap_index(below, 0.9) if row["quantity"] == "overlap" else mixing_entropy(below)
        assert measured < row["target"] <= row[row["quantity"]]
    with pytest.raises(UnknownNameError, match="overlpa"):
        flows.solved_settings(study, {"overlpa": [0.3]}, catalogue=catalogue)
    with pytest.raises(UnknownNameError, match="widht"):
        flows.solved_settings(study, {"overlap": [0.3]}, "widht", catalogue=catalogue)


# --- what methods make of it -----------------------------------------------------------------------------------------------------


def test_accuracy_along_the_stream(study: FlowStudy) -> None:
    """Mean over latent tasks, then over three seeds, with the interval of these three."""
    frame = flows.accuracy(study)
    assert set(frame["n"]) == {3}
    part = frame[(frame["preset"] == frame["preset"].iloc[0]) & (frame["label"] == "restless")]
    curves = [curve("restless", len(part), seed).mean(axis=1) for seed in range(3)]
    np.testing.assert_allclose(part["mean"], np.mean(curves, axis=0))
    interval = stats.mean_interval([c[0] for c in curves], bounds=(0.0, 1.0))
    assert (part["low"].iloc[0], part["high"].iloc[0]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert part["step"].tolist() == list(next(iter(study.flows.values())).evaluations)


def test_recoveries(study: FlowStudy) -> None:
    """What only rises has no dip; what falls in the end has one per latent task, which is never made good."""
    frame = flows.recoveries(study).set_index("label")
    assert set(frame.loc["steady", "dips"]) == {0}
    assert set(frame.loc["restless", "dips"]) == {3}
    assert set(frame.loc["restless", "recovered"]) == {0}
    assert np.isinf(frame.loc["restless", "steps"]).all()
    assert frame.loc["steady", "steps"].isna().all()


def test_overlap_points(results_of: Make) -> None:
    """Streams that differ in their schedule alone stand in one figure; another draw is another family, of one point."""
    results, catalogue = results_of({"schedule.width": WIDTHS, "stream.draw": ["with-replacement"]})
    study = flow_study(results, catalogue=catalogue)
    frame = flows.overlap_points(study)
    assert frame["key"].nunique() == 1
    assert len(frame) == 2 * 3
    for row in frame.to_dict(orient="records"):
        flow = study.flows[row["preset"]]
        values = [metrics.a_auc(curve(row["label"], len(flow.evaluations), seed)) for seed in range(3)]
        assert (row["mean"], row["overlap"]) == (pytest.approx(np.mean(values)), overlap_index(flow.mixture))


def test_sweeps_along_settings_of_the_stream(results_of: Make) -> None:
    results, _ = results_of({"schedule.width": [0.5, 6.0], "training.batch_size": [3]})
    along = sweep(results, varying=flows.STREAM_AXES)
    assert set(along.axes) == {"schedule.width", "training.batch_size"}
    assert set(along.measures) == {"aa", "af", "a_auc"}
    page = page_with(show_flows.sweeps(along), show_flows.sweeps(along, "af"), show_architecture.points(along, "aa"))
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 4


def test_course_of_a_stream() -> None:
    """Between which steps the middle nine tenths arrive: by linear interpolation between evaluations."""
    stream = {"evaluations": [0, 10, 20, 30], "delivered": [[0, 0, 0], [100, 0, 0], [100, 50, 0], [100, 100, 0]]}
    course = Course.of(stream, 4)
    np.testing.assert_allclose(course.arrival[0], [0.5, 9.5])
    np.testing.assert_allclose(course.arrival[1], [11.0, 29.0])
    assert np.isnan(course.arrival[2]).all()


# --- pages -----------------------------------------------------------------------------------------------------------------------


def test_the_page(study: FlowStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number has its exact value behind it, nothing on the page is harmful, and every stream has its figures."""
    monkeypatch.setattr(flows, "_installed", lambda: catalogue_of(*EXTRA))
    plain = [getattr(show_flows, name)(study) for name in show_flows.__all__ if name not in {"contrast", "solved", "sweeps"}]
    page = page_with(*plain, show_flows.solved(study, {"overlap": [0.5], "entropy": [2.0]}))
    assert_harmless(page)
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    frame = flows.streams(study)
    assert set(frame["overlap"]) | set(frame["entropy"]) | set(frame["never"]) <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3 * 3 + 3 * 2 + 1
    assert "By their hashes these are the streams of the records." in page
    assert "none: it reaches 1 at most" in page


def test_other_reports_cope_with_task_free_records(results_of: Make) -> None:
    """The campaign's report shows latent tasks over steps and no curve after tasks; orders of tasks are refused."""
    results, _ = results_of({})
    one = results[0]
    page = page_with(show.summary(one), show.definitions(one), show.curves(one), show.matrices(one), show.matrix(one.used[0]))
    assert_harmless(page)
    assert "stream_dynamics draws accuracy over its steps" in page
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    assert "A[i,k]" in page
    assert "M[k,j]" not in page
    assert "6.0" in page  # steps, not percent of a step
    assert one.frame["intransigence"].isna().all()
    with pytest.raises(UsageError, match="task-free"):
        pool(results)


def test_streams_of_tasks_are_left_out(results_of: Make, results: CampaignResults) -> None:
    own, catalogue = results_of({})
    study = flow_study([*own, results], catalogue=catalogue)
    assert study.other == len(results.used)
    assert len(study.records) == 6
    with pytest.raises(UsageError, match="one at a time"):
        sweep([*own, results])


def test_nothing_finished(results: CampaignResults) -> None:
    """A campaign without task-free cells: every part says so."""
    study = flow_study([results])
    parts = [getattr(show_flows, name)(study) for name in show_flows.__all__ if name not in {"contrast", "solved", "sweeps"}]
    page = page_with(*parts, show_flows.solved(study, {"overlap": [0.5]}))
    assert "No task-free cell of these campaigns is finished yet." in page
