"""What pages show of task-free streams."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_elements import text_of, texts
from report_lab import Elements, assert_harmless, catalogue_of, page_with
from task_free_lab import EXTRA

from cglsuite.base.errors import UsageError
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.results.summary import definitions, summary
from cglsuite.reports.studies import campaign as show
from cglsuite.reports.studies import sweep as show_sweep
from cglsuite.reports.studies.comparison.compute import Question, study
from cglsuite.reports.studies.comparison.page import replication
from cglsuite.reports.studies.orders.compute import pool
from cglsuite.reports.studies.sweep import sweep
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free import page as task_free_page
from cglsuite.reports.studies.task_free.compute import STREAM_AXES, TaskFreeStudy, task_free_study


def test_the_page(small_study: TaskFreeStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number has its exact value behind it, nothing on the page is harmful, and every stream has its figures."""
    monkeypatch.setattr(stream_tables, "load_catalogue", lambda: catalogue_of(*EXTRA))
    plain = [getattr(task_free_page, name)(small_study) for name in task_free_page.__all__ if name not in {"contrast", "solved", "sweeps"}]
    page = page_with(*plain, task_free_page.solved(small_study, {"overlap": [0.5], "entropy": [2.0]}))
    assert_harmless(page)
    shown = {float(str(a["data-value"])) for _, a in Elements(page).found if a.get("data-value")}
    frame = stream_tables.streams(small_study)
    assert set(frame["overlap"]) | set(frame["entropy"]) | set(frame["never"]) <= shown
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3 * 3 + 3 * 2 + 2
    assert text_of(page, "figcaption", "Overlap index").endswith(" Hashes confirm that these are the streams of the records.")
    assert "none: it reaches 1 at most" in texts(page, "td.quiet")


@pytest.mark.nightly
def test_a_figure_of_progress_reads_the_records_of_its_own_preset(small_study: TaskFreeStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured, and in which unit, may differ from preset to preset."""
    asked: list[int] = []
    monkeypatch.setattr(task_free_page, "performance_name", lambda scenario: asked.append(id(scenario)) or "accuracy")
    task_free_page.performance(small_study)
    first = {group.preset: id(group.records[0].scenario) for group in reversed(small_study.groups)}
    assert len(first) > 1
    assert sorted(asked) == sorted(first.values())


@pytest.mark.nightly
def test_sweeps_along_settings_of_the_stream(task_free_results: Any) -> None:
    results, _ = task_free_results({"schedule.width": [0.5, 6.0], "training.batch_size": [3]})
    along = sweep(results, varying=STREAM_AXES)
    assert set(along.axes) == {"schedule.width", "training.batch_size"}
    assert set(along.measures) == {"aa", "af", "a_auc"}
    page = page_with(task_free_page.sweeps(along), task_free_page.sweeps(along, "af"), show_sweep.points(along, "aa"))
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 4


def test_other_reports_cope_with_task_free_records(task_free_results: Any) -> None:
    """The campaign's report shows latent tasks over steps and no curve after tasks; orders of tasks are refused."""
    results, _ = task_free_results({})
    one = results[0]
    page = page_with(summary(one), definitions(one), show.curves(one), show.matrices(one), show.matrix(one.used[0]))
    assert_harmless(page)
    assert "A task-free stream has no sequence of tasks. The notebook task_free_dynamics plots accuracy over its steps." in texts(
        page, "p.quiet"
    )
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 3
    legend = text_of(page, "figcaption", "performance on latent task k")
    assert legend.startswith("A[i,k]: ")
    assert "M[k,j]" not in legend
    assert "6.0 ± 0.0" in texts(page, "td.number")  # steps, not percent of a step
    assert one.frame["intransigence"].isna().all()
    with pytest.raises(UsageError, match="task-free"):
        pool(results)


def test_methods_are_compared_by_a_metric_of_their_streams(task_free_results: Any) -> None:
    """Without a named metric by A_AUC; a metric without a value is said once, not method by method."""
    one = task_free_results({})[0][0]
    assert study(one).question.metric == "a_auc"
    page = page_with(replication(study(one, Question(metric="average_performance"))))
    assert texts(page, "td.long")[-1] == "all methods: 3 records without a value"


def test_nothing_finished(results: CampaignResults) -> None:
    """A campaign without task-free cells: every part says so in words, and none is an empty place."""
    study = task_free_study([results])
    names = [name for name in task_free_page.__all__ if name not in {"contrast", "solved", "sweeps"}]
    parts = {name: getattr(task_free_page, name)(study) for name in names}
    parts["solved"] = task_free_page.solved(study, {"overlap": [0.5]})
    pages = {name: page_with(part) for name, part in parts.items()}
    assert {name for name, page in pages.items() if not re.search(r'<p class="quiet empty">No [^<]+\.</p>', page)} == {
        "overview",
        "problems",
        "provenance",
        "solved",
    }
    assert "No task-free cell of these campaigns is finished yet." in texts(pages["courses"], "p.quiet")
    page_with(*parts.values())
