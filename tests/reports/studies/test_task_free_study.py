"""Task-free cells pooled: regenerated streams, distinguishing titles, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from page_elements import text_of, texts
from report_lab import Elements, catalogue_of, page_with
from task_free_lab import EXTRA, NAME

from cglsuite.base.errors import UsageError
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.results import CampaignResults
from cglsuite.reports.studies.sweep import sweep
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free import page as task_free_page
from cglsuite.reports.studies.task_free.compute import task_free_study


def test_records_of_another_stream_are_noticed(task_free_results: Any) -> None:
    results, catalogue = task_free_results(tampered=True)
    study = task_free_study(results, catalogue=catalogue)
    assert not stream_tables.streams(study)["same"].any()
    changed = "These streams differ from those of the records, because data or code have changed:"
    assert changed in texts(page_with(task_free_page.overview(study)), "div.notice > p")


def test_streams_that_cannot_be_dealt_leave_the_curves(task_free_results: Any) -> None:
    """No data, no schedule; what the records say is shown all the same."""
    results, _ = task_free_results()
    study = task_free_study(results, catalogue=catalogue_of(*(pair for pair in EXTRA if pair[0] != "dataset")))
    assert not study.streams
    assert len(study.not_rebuilt) == 3
    page = page_with(
        task_free_page.overview(study), task_free_page.streams(study), task_free_page.performance(study), task_free_page.overlap(study)
    )
    assert text_of(page, "div.notice > p", "regenerated") == (
        "These streams could not be regenerated, so only facts from the records are shown:"
    )
    assert sum(tag == "img" for tag, _ in Elements(page).found) == 4
    assert not task_free_study(results, deal=False).not_rebuilt


def test_titles_tell_streams_apart_over_campaigns(task_free_results: Any) -> None:
    """The first says in what they differ, the others how from the first."""
    results, catalogue = task_free_results({"schedule.width": [6.0], "stream.draw": ["with-replacement"]})
    study = task_free_study(results, catalogue=catalogue)
    assert list(study.words.values()) == ["width = 2, draw = without-replacement", "width = 6", "draw = with-replacement"]
    assert {study.title(p) for p in study.streams} == {f"{scenario_words(NAME)}, {words}" for words in study.words.values()}


def test_threshold_is_a_share(task_free_results: Any) -> None:
    with pytest.raises(UsageError, match="threshold"):
        task_free_study(task_free_results()[0], threshold=0.0)
    results, catalogue = task_free_results()
    low, high = (stream_tables.streams(task_free_study(results, threshold=t, catalogue=catalogue))["overlap"] for t in (0.5, 0.99))
    assert (low <= high).all()


def test_streams_of_tasks_are_left_out(task_free_results: Any, results: CampaignResults) -> None:
    own, catalogue = task_free_results({})
    study = task_free_study([*own, results], catalogue=catalogue)
    assert study.other == len(results.used)
    assert set(study.words) == {group.preset for group in study.groups}  # streams of tasks are named by no value of theirs
    assert len(study.records) == 6
    with pytest.raises(UsageError, match="analyse them separately"):
        sweep([*own, results])
