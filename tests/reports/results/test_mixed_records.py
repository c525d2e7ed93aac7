"""Reports over records that are not alike: other numbers of tasks, other units, a failure among them, task-free beside tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_records import made_record, made_results
from page_elements import texts
from report_lab import page_with

from cglsuite.base.hashing import digest
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store
from cglsuite.host import Catalogue
from cglsuite.reports.results import tables
from cglsuite.reports.results.results import CampaignResults, load_campaign_results
from cglsuite.reports.site import leaderboard as show_leaderboard
from cglsuite.reports.site.boards import boards

GRID = {"scenarios": ["toy/class-il@cglb-1"], "methods": ["bare", "si"]}
METHODS = ("bare", "joint")
Change = Callable[[Record], Mapping[str, Any] | None]


def changed(path: Path, change: Change, **campaign: Any) -> tuple[CampaignResults, Catalogue]:
    """Made results, in which ``change`` says for every record what differs (``None``: nothing)."""
    results, catalogue = made_results(path, **({"grid": GRID} | campaign))
    store = Store(path)
    for cell in results.cells:
        assert cell.record is not None
        if (facts := change(cell.record)) is not None:
            store.record_path(cell.record.key).unlink()
            store.put(replace(made_record(cell.planned, catalogue), **facts))
    return load_campaign_results(results.campaign, path, catalogue=catalogue), catalogue


def of_tasks(record: Record, n: int) -> dict[str, Any]:
    """The record as if its stream had ended after ``n`` tasks."""
    matrix = record.performance()[: n + 1, :n]
    return {"matrix": matrix, "tasks": list(record.tasks[:n]), "metrics": {"average_performance": float(matrix[-1].mean())}}


@pytest.mark.parametrize(("short", "expected"), [(1, 5), (2, 5), (3, 3), (4, 3)])
def test_a_mean_matrix_is_of_the_most_frequent_number_of_tasks(tmp_path: Path, short: int, expected: int) -> None:
    """Of five records ``short`` have three tasks, the others five; those of the rarer number have no part in the mean."""
    results, _ = changed(tmp_path, lambda r: of_tasks(r, 3) if r.cell["seeds"]["init"] < short else None)
    for group, matrix in tables.mean_matrices(results):
        assert matrix.shape == (expected + 1, expected)
        alike = [r.performance() for r in group.records if len(r.tasks) == expected]
        assert len(alike) == (5 - short if expected == 5 else short)
        np.testing.assert_allclose(matrix, np.mean(alike, axis=0))


def test_curves_count_the_records_that_have_a_task(tmp_path: Path) -> None:
    """Two of five records end after the third task."""
    results, _ = changed(tmp_path, lambda r: of_tasks(r, 3) if r.cell["seeds"]["init"] < 2 else None)
    frame = tables.curves(results)
    for _, group in frame.groupby("method"):
        assert group.set_index("task")["n"].to_dict() == {1: 5, 2: 5, 3: 5, 4: 3, 5: 3}
    row = frame[(frame.method == "bare") & (frame.task == 4)].iloc[0]
    group = next(g for g in results.groups if g.method == "bare")
    expected = [r.performance()[4, :4].mean() for r in group.records if len(r.tasks) == 5]
    assert row["mean"] == pytest.approx(np.mean(expected))
    assert row["std"] == pytest.approx(np.std(expected, ddof=1))


def scored(record: Record, performance: str, shift: float) -> dict[str, Any]:
    matrix = record.performance() + shift
    return {
        "scenario": dict(record.scenario) | {"performance": performance},
        "matrix": matrix,
        "metrics": {"average_performance": float(matrix[-1].mean())},
    }


@pytest.mark.parametrize(("real", "percent"), [([], True), (["bare"], False), (["si"], False), (["bare", "si"], False)])
def test_errors_are_never_shown_in_percent(tmp_path: Path, real: list[str], percent: bool) -> None:
    """One row scored by minus the mean absolute error is enough: a column has one unit, and fractions are in it as they are."""
    results, catalogue = changed(tmp_path, lambda r: scored(r, "negative-mae", -3.0) if r.cell["method"] in real else None)
    (board,) = boards(results, catalogue)
    column = board.column("average_performance")
    assert (column.scale, column.unit == "%") == ((100.0, True) if percent else (1.0, False))
    assert (column.bounds is None) == (not percent), "an interval of errors is not cut at 0"
    for row in board.rows:
        score = row.scores["average_performance"]
        assert (score.mean < 0) == (row.method in real)
        if row.method in real:
            assert score.low < score.mean < score.high < 0
    assert ("minus the mean absolute error" in board.performance) == bool(real)
    assert ("accuracy" in board.performance) == (set(real) != {"bare", "si"}) or not real
    page = page_with(show_leaderboard.leaderboard(results, catalogue))
    if real:
        mean = f"{board.rows[-1].scores['average_performance'].mean:.4f}".replace("-", "−")
        assert any(text.startswith(mean) for text in texts(page, "section.board td.number"))


@pytest.mark.parametrize("failed", [1, 3, 5])
def test_failures_are_counted_and_have_no_part_in_means(tmp_path: Path, failed: int) -> None:
    """Of bare's five cells some failed; where all did the method has no row and stands among the problems."""

    def fails(record: Record) -> dict[str, Any] | None:
        mine = record.cell["method"] == "bare" and record.cell["seeds"]["init"] < failed
        return {"status": "failed", "reason": "ValueError: no"} if mine else None

    results, catalogue = changed(tmp_path, fails)
    assert results.counts() == {"done": 10 - failed, "failed": failed}
    summary = tables.summary(results)
    n = summary[(summary.method == "bare") & (summary.metric == "average_performance")]["n"].tolist()
    assert n == ([5 - failed] if failed < 5 else [])
    (problem,) = tables.problems(results).to_dict("records")
    assert problem["reason"] == "ValueError: no"
    assert len(problem["seeds"].split("; ")) == failed
    (board,) = boards(results, catalogue)
    assert [row.method for row in board.rows if row.method == "bare"] == (["bare"] if failed < 5 else [])
    bare = next((row.scores["average_performance"] for row in board.rows if row.method == "bare"), None)
    if bare is not None:
        assert bare.units == 5 - failed
        assert bool(bare.refusal) == (5 - failed < 3), "an interval needs three"


def test_a_stream_without_tasks_beside_one_with_tasks(tmp_path: Path) -> None:
    """Rows of its matrix are evaluations: it has no curve over tasks, and a matrix of its own shape."""

    def free(record: Record) -> dict[str, Any] | None:
        if record.cell["method"] != "si":
            return None
        delivered = [[0] * 5, *([k] * 5 for k in (12, 24, 36))]
        stream = {"evaluations": [0, 3, 6, 9], "delivered": delivered, "content": "e" * 64}
        provenance = {**record.provenance, "stream": stream}
        matrix = tuple(tuple(0.25 + 0.1 * row for _ in range(5)) for row in range(4))
        return {"matrix": matrix, "provenance": provenance, "metrics": {"average_performance": 0.55}}

    results, _ = changed(tmp_path, free)
    assert {g.method: g.task_free for g in results.groups} == {"bare": False, "si": True}
    assert set(tables.curves(results).method) == {"bare"}
    means = {g.method: m for g, m in tables.mean_matrices(results)}
    assert {name: m.shape for name, m in means.items()} == {"bare": (6, 5), "si": (4, 5)}
    assert means["si"][:, 0] == pytest.approx([0.25, 0.35, 0.45, 0.55])
    summary = tables.summary(results)
    assert summary[(summary.method == "si") & (summary.metric == "average_performance")]["mean"].tolist() == pytest.approx([0.55])


@pytest.mark.parametrize("stale", [False, True])
def test_joint_training_is_the_partner_of_a_method_that_reaches_other_parts_of_the_core(tmp_path: Path, stale: bool) -> None:
    """A pretrained cell's digest of the core covers what pretrains, joint training's does not; where the code of one is old, none pairs."""

    def reaches_more(record: Record) -> dict[str, Any] | None:
        if record.cell["method"] != "bare":
            return None
        facts = {"provenance": record.provenance | {"core": record.provenance["core"] | {"source": "c" * 64}}}
        return facts | ({"key": digest(["old", record.key])} if stale else {})

    results, _ = changed(tmp_path, reaches_more, grid=GRID | {"methods": list(METHODS)})
    assert {bool(cell.stale) for cell in results.cells if cell.planned.request.method == "bare"} == {stale}
    gap = results.frame.query("method == 'bare'").sort_values("init_seed")["intransigence"]
    own, upper = ([c.record.performance() for c in results.cells if c.record is not None and c.record.cell["method"] == m] for m in METHODS)
    expected = [np.nanmean(np.diag(b[1:]) - np.diag(a[1:])) for a, b in zip(own, upper, strict=True)]
    assert gap.isna().all() if stale else gap.tolist() == pytest.approx(expected)
