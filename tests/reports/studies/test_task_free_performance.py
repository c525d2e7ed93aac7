"""Curves, falls and overlap by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from task_free_lab import WIDTHS, curve

from cglsuite import stats
from cglsuite.reports.studies.task_free import compute as performance_tables
from cglsuite.reports.studies.task_free.compute import TaskFreeStudy, task_free_study
from cglsuite.stats import metrics
from cglsuite.streams.mixing import overlap_index


def test_accuracy_along_the_stream(small_study: TaskFreeStudy) -> None:
    """Mean over latent tasks, then over three seeds, with the interval of these three."""
    frame = performance_tables.performance(small_study)
    assert set(frame["n"]) == {3}
    part = frame[(frame["preset"] == frame["preset"].iloc[0]) & (frame["label"] == "restless")]
    curves = [curve("restless", len(part), seed).mean(axis=1) for seed in range(3)]
    np.testing.assert_allclose(part["mean"], np.mean(curves, axis=0))
    interval = stats.mean_interval([c[0] for c in curves], bounds=(0.0, 1.0))
    assert (part["low"].iloc[0], part["high"].iloc[0]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert part["step"].tolist() == list(next(iter(small_study.streams.values())).evaluations)


def test_recoveries(small_study: TaskFreeStudy) -> None:
    """What only rises has no dip; what falls in the end has one per latent task, which is never made good."""
    frame = performance_tables.recoveries(small_study).set_index("label")
    assert set(frame.loc["steady", "dips"]) == {0}
    assert set(frame.loc["restless", "dips"]) == {3}
    assert set(frame.loc["restless", "recovered"]) == {0}
    assert np.isinf(frame.loc["restless", "steps"]).all()
    assert frame.loc["steady", "steps"].isna().all()


def test_overlap_points(task_free_results: Any) -> None:
    """Streams that differ in their schedule alone stand in one figure; another draw is another family, of one point."""
    results, catalogue = task_free_results({"schedule.width": WIDTHS, "stream.draw": ["with-replacement"]})
    study = task_free_study(results, catalogue=catalogue)
    frame = performance_tables.overlap_points(study)
    assert frame["key"].nunique() == 1
    assert len(frame) == 2 * 3
    for row in frame.to_dict(orient="records"):
        stream = study.streams[row["preset"]]
        values = [metrics.a_auc(curve(row["label"], len(stream.evaluations), seed)) for seed in range(3)]
        assert (row["mean"], row["overlap"]) == (pytest.approx(np.mean(values)), overlap_index(stream.mixture))
