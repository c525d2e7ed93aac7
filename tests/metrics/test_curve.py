"""Metrics of task-free streams against curves by hand, loops, and what holds for every curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cglsuite.base.errors import UsageError
from cglsuite.stats.metrics import (
    Dip,
    a_auc,
    a_auc_node_weighted,
    a_auc_trained,
    a_end,
    af_hard,
    af_s,
    backward_transfer,
    dips,
    time_to_recover,
)

NAN = float("nan")
# Two latent tasks, five evaluations after the untrained one.
CURVE = [
    [0.2, 0.3],
    [1.0, 0.2],
    [0.5, 0.6],
    [0.8, 0.4],
    [0.9, 1.0],
    [0.7, 0.8],
]
STREAM: dict[str, Any] = {
    "evaluations": [0, 10, 20, 30, 40, 45],
    "delivered": [[0, 0], [60, 40], [100, 100], [100, 200], [100, 250], [100, 250]],
    "tasks": [{"n_test": 30}, {"n_test": 10}],
}
ALL: list[Callable[..., float]] = [a_auc, a_auc_trained, a_auc_node_weighted, a_end, af_s, af_hard, time_to_recover]


def test_by_hand() -> None:
    means = [0.25, 0.6, 0.55, 0.6, 0.95, 0.75]
    assert a_auc(CURVE, stream=STREAM) == pytest.approx(sum(means) / 6)
    assert a_auc_trained(CURVE, stream=STREAM) == pytest.approx(sum(means[1:]) / 5)
    pooled = [(3 * a + b) / 4 for a, b in CURVE]
    assert a_auc_node_weighted(CURVE, stream=STREAM) == pytest.approx(sum(pooled) / 6)
    assert a_end(CURVE, stream=STREAM) == pytest.approx(0.75)
    assert af_s(CURVE, stream=STREAM) == pytest.approx(((0.7 - 1.0) + (0.8 - 1.0)) / 2)
    # All of task 1 has arrived by step 20, all of task 2 by step 40.
    assert af_hard(CURVE, stream=STREAM) == pytest.approx(((0.7 - 0.5) + (0.8 - 1.0)) / 2)


def test_dips_by_hand() -> None:
    """Task 1 falls below 0.9 at step 20, is back at 40, and falls for good; so does task 2 after its fall at step 30 was made good."""
    found = dips(CURVE, STREAM)
    assert found == [
        Dip(task=0, start=20, end=40, best=1.0, least=0.5),
        Dip(task=0, start=45, end=None, best=1.0, least=0.7),
        Dip(task=1, start=30, end=40, best=0.6, least=0.4),
        Dip(task=1, start=45, end=None, best=1.0, least=0.8),
    ]
    # Half of them last: the median of 10, 20, ∞, ∞ is not finite.
    assert math.isnan(time_to_recover(CURVE, stream=STREAM))
    assert time_to_recover(CURVE[:5], stream={name: part[:5] for name, part in STREAM.items()}) == 15.0
    assert time_to_recover(CURVE, stream=STREAM, recovered=0.75) == 10.0  # of 10, 10, ∞


def test_no_dip_no_time() -> None:
    """A curve that only rises has nothing to recover; so has one that was high only before the latent task arrived."""
    assert math.isnan(time_to_recover([[0.1], [0.5], [0.9]], stream={"evaluations": [0, 1, 2], "delivered": [[0], [1], [2]]}))
    late = {"evaluations": [0, 1, 2, 3], "delivered": [[0], [0], [0], [5]]}
    assert dips([[1.0], [1.0], [0.5], [0.5]], late) == []


def test_entries_that_could_not_be_asked_are_passed_over() -> None:
    stream = {"evaluations": [0, 1, 2, 3], "delivered": [[0], [1], [2], [3]]}
    assert dips([[NAN], [1.0], [NAN], [0.5]], stream) == [Dip(task=0, start=3, end=None, best=1.0, least=0.5)]
    assert math.isnan(a_auc([[0.1, NAN], [0.5, 0.5]]))


def test_in_a_hard_stream_af_is_backward_transfer_with_the_last_task() -> None:
    """One evaluation after each of three equal tasks: the mean runs over K tasks in place of K - 1."""
    matrix = [[0.5, 0.4, 0.3], [0.9, 0.45, 0.2], [0.95, 0.8, 0.35], [0.7, 0.6, 0.85]]
    delivered = [[0, 0, 0], [9, 0, 0], [9, 9, 0], [9, 9, 9]]
    assert af_hard(matrix, stream={"delivered": delivered}) == pytest.approx(backward_transfer(matrix) * 2 / 3)


def test_a_latent_task_that_never_arrives_has_no_af() -> None:
    assert math.isnan(af_hard([[0.5, 0.5], [0.6, 0.6]], stream={"delivered": [[0, 0], [5, 0]]}))


curves = st.integers(2, 7).flatmap(lambda e: st.integers(1, 4).flatmap(lambda k: arrays(np.float64, (e, k), elements=st.floats(0, 1))))


def stream_of(matrix: Any, seed: int) -> dict[str, Any]:
    """Random deliveries that reach every latent task."""
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, 5, matrix.shape)
    rows[0] = 0
    rows[-1] += 1
    counts = rows.cumsum(axis=0)
    tasks = [{"n_test": int(n)} for n in draw.integers(1, 9, matrix.shape[1])]
    return {"evaluations": [3 * i for i in range(len(matrix))], "delivered": counts.tolist(), "tasks": tasks}


@settings(deadline=None)
@given(curves, st.integers(0, 1000))
def test_bounds(matrix: Any, seed: int) -> None:
    """Averages lie within the extremes, forgetting from the best is never positive, times are positive."""
    stream = stream_of(matrix, seed)
    for metric in (a_auc, a_auc_trained, a_auc_node_weighted, a_end):
        assert matrix.min() - 1e-12 <= metric(matrix, stream=stream) <= matrix.max() + 1e-12
    assert -1 <= af_s(matrix, stream=stream) <= 0
    assert af_s(matrix, stream=stream) <= af_hard(matrix, stream=stream) + 1e-12 <= 1 + 1e-12
    time = time_to_recover(matrix, stream=stream)
    assert math.isnan(time) or 3 <= time <= stream["evaluations"][-1]


@settings(deadline=None)
@given(curves, st.integers(0, 1000))
def test_against_loops(matrix: Any, seed: int) -> None:
    stream, (rows, columns) = stream_of(matrix, seed), matrix.shape
    counts = stream["delivered"]
    total = 0.0
    for k in range(columns):
        done = next(i for i in range(rows) if counts[i][k] == counts[-1][k])
        total += matrix[-1][k] - matrix[done][k]
    assert af_hard(matrix, stream=stream) == pytest.approx(total / columns, abs=1e-12)
    starts = set()
    for k in range(columns):
        best, below = 0.0, False
        for i in range(rows):
            if counts[i][k]:
                low = matrix[i][k] < 0.9 * best
                if low and not below:
                    starts.add((k, 3 * i))
                below, best = low, max(best, matrix[i][k])
    assert {(dip.task, dip.start) for dip in dips(matrix, stream)} == starts


@settings(deadline=None)
@given(curves)
def test_latent_tasks_of_equal_size_weigh_alike(matrix: Any) -> None:
    stream = {"tasks": [{"n_test": 7}] * matrix.shape[1]}
    assert a_auc_node_weighted(matrix, stream=stream) == pytest.approx(a_auc(matrix), abs=1e-12)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("wrong", [[], [[0.5]], [0.5, 0.5], [[0.1, 0.2], [0.3]], "abc", [[], []]])
def test_what_is_no_curve_is_refused(metric: Callable[..., float], wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"E \+ 1, K"):
        metric(wrong, stream=STREAM)


@pytest.mark.parametrize(("metric", "part"), [(af_hard, "delivered"), (time_to_recover, "evaluations"), (a_auc_node_weighted, "n_test")])
def test_what_is_needed_of_the_stream_is_named(metric: Callable[..., float], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        metric(CURVE)
    with pytest.raises(UsageError, match="shape"):
        metric(CURVE, stream={"delivered": [[1]], "evaluations": [1], "tasks": [{"n_test": 1}]})
