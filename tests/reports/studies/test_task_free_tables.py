"""What streams deliver against what their schedules ask for, and settings solved for."""

from __future__ import annotations

import numpy as np
import pytest
from report_lab import catalogue_of
from task_free_lab import EXTRA
from tiny_task_free import blended

from cglsuite.base.errors import UnknownNameError
from cglsuite.reports.studies.task_free import compute as stream_tables
from cglsuite.reports.studies.task_free.compute import TaskFreeStudy
from cglsuite.streams.mixing import mid_steps, mixing_entropy, mixture_of, overlap_index


def test_streams_are_those_of_the_records(small_study: TaskFreeStudy) -> None:
    """Regenerated streams match the records; their numbers follow from mixture and counts."""
    frame = stream_tables.streams(small_study).set_index("preset")
    assert len(frame) == 3
    assert frame["same"].all()
    for preset, stream in small_study.streams.items():
        row = frame.loc[preset]
        expected = mixture_of(blended(mid_steps(stream.spans), stream.spans, **stream.hyperparameters), "x")
        np.testing.assert_allclose(stream.mixture, expected)
        assert row["overlap"] == (expected.max(axis=1) < 0.9).mean()
        assert row["overlap_delivered"] == ((stream.counts / 4).max(axis=1) < 0.9).mean()
        draws = np.concatenate(list(stream.draws))
        assert draws.sum() == stream.counts.sum() == 4 * row["steps"]
        assert [one.sum() for one in stream.draws] == stream.counts.sum(axis=0).tolist()
        assert (row["never"], row["most"], row["mean"]) == ((draws == 0).mean(), draws.max(), pytest.approx(draws.mean()))
        shares = stream_tables.exposure(stream).groupby("task")["share"].sum()
        assert shares.tolist() == pytest.approx([1.0] * 3)


def test_settings_reach_what_is_wanted(small_study: TaskFreeStudy) -> None:
    """The value gives at least the target, a little less does not; streams that differ in the setting alone are solved once."""
    catalogue = catalogue_of(*EXTRA)
    frame = stream_tables.solved_hyperparameters(small_study, {"overlap": [0.3, 0.7, 2.0], "entropy": [0.5]}, catalogue=catalogue)
    assert len(frame) == 4
    stream = next(iter(small_study.streams.values()))
    for row in frame.to_dict(orient="records"):
        if row["target"] > 1:
            assert "at most" in row["refused"]
            continue
        below = mixture_of(blended(mid_steps(stream.spans), stream.spans, width=0.99 * row["value"]), "x")
        measured = overlap_index(below, 0.9) if row["quantity"] == "overlap" else mixing_entropy(below)
        assert measured < row["target"] <= row[row["quantity"]]
    with pytest.raises(UnknownNameError, match="overlpa"):
        stream_tables.solved_hyperparameters(small_study, {"overlpa": [0.3]}, catalogue=catalogue)
    with pytest.raises(UnknownNameError, match="widht"):
        stream_tables.solved_hyperparameters(small_study, {"overlap": [0.3]}, "widht", catalogue=catalogue)
