"""Metrics against matrices by hand, loops, and what holds for every matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cglsuite.stats.metrics.matrix
from cglsuite.base.errors import UsageError
from cglsuite.stats.metrics import (
    average_performance,
    backward_transfer,
    excess_forgetting,
    forgetting_from_diagonal,
    forgetting_max,
    forgetting_max_any_stage,
    forward_transfer,
    intransigence,
    pooled_accuracy,
    pooled_accuracy_mean,
)

METRICS: dict[str, Callable[..., float]] = {name: getattr(cglsuite.stats.metrics, name) for name in cglsuite.stats.metrics.matrix.__all__}
METRICS["forgetting_max_any_stage"] = forgetting_max_any_stage
NAN = float("nan")

# Three tasks: row 0 untrained, row k after task k.
HAND = [
    [0.50, 0.40, 0.30],
    [0.90, 0.45, 0.20],
    [0.95, 0.80, 0.35],
    [0.70, 0.60, 0.85],
]
JOINT = [
    [0.5, 0.5, 0.5],
    [0.92, 0.5, 0.5],
    [0.0, 0.88, 0.5],
    [0.0, 0.0, 0.80],
]


def test_by_hand() -> None:
    assert average_performance(HAND) == pytest.approx((0.70 + 0.60 + 0.85) / 3)
    assert forgetting_from_diagonal(HAND) == pytest.approx(((0.90 - 0.70) + (0.80 - 0.60)) / 2)
    assert backward_transfer(HAND) == pytest.approx(((0.70 - 0.90) + (0.60 - 0.80)) / 2)
    # Task 1 was at its best (0.95) after task 2, not when it was learnt.
    assert forgetting_max(HAND) == pytest.approx(((0.95 - 0.70) + (0.80 - 0.60)) / 2)
    assert forward_transfer(HAND) == pytest.approx(((0.45 - 0.40) + (0.35 - 0.30)) / 2)
    assert intransigence(HAND, joint=JOINT) == pytest.approx(((0.92 - 0.90) + (0.88 - 0.80) + (0.80 - 0.85)) / 3)
    # A learner that cannot forget loses 6 points on task 1 and 2 on task 2, as more classes compete.
    frozen = [[NAN] * 3, [0.80, NAN, NAN], [0.78, 0.70, NAN], [0.74, 0.68, 0.60]]
    assert excess_forgetting(HAND, joint=frozen) == pytest.approx(((0.20 - 0.06) + (0.20 - 0.02)) / 2)
    assert excess_forgetting(frozen, joint=frozen) == 0


def brute_force(name: str, m: list[list[float]], joint: list[list[float]] | None = None) -> float:
    """The definitions of the methods' reference, in loops with their 1-based indices."""
    t = len(m[0])
    tasks, past = range(1, t + 1), range(1, t)

    def at(k: int, j: int) -> float:
        return m[k][j - 1]

    if name == "average_performance":
        return sum(at(t, j) for j in tasks) / t
    if name == "intransigence":
        assert joint is not None
        return sum(joint[j][j - 1] - at(j, j) for j in tasks) / t
    values = {
        "forgetting_from_diagonal": lambda j: at(j, j) - at(t, j),
        "backward_transfer": lambda j: at(t, j) - at(j, j),
        "forgetting_max": lambda j: max(at(k, j) for k in range(j, t)) - at(t, j),
        "forgetting_max_any_stage": lambda j: max(at(k, j) for k in past) - at(t, j),
        "forward_transfer": lambda j: at(j, j + 1) - at(0, j + 1),
    }[name]
    return sum(map(values, past)) / (t - 1)


accuracies = st.floats(0, 1)


@st.composite
def matrices(draw: st.DrawFn, smallest: int = 2) -> list[list[float]]:
    t = draw(st.integers(smallest, 6))
    return draw(st.lists(st.lists(accuracies, min_size=t, max_size=t), min_size=t + 1, max_size=t + 1))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]]]:
    m = draw(matrices())
    row = st.lists(accuracies, min_size=len(m[0]), max_size=len(m[0]))
    return m, draw(st.lists(row, min_size=len(m), max_size=len(m)))


@settings(deadline=None)
@given(pairs())
def test_equal_to_brute_force(given_pair: tuple[list[list[float]], list[list[float]]]) -> None:
    m, joint = given_pair
    for name, metric in METRICS.items():
        assert metric(m, joint=joint) == pytest.approx(brute_force(name, m, joint), abs=1e-12), name


@settings(deadline=None)
@given(matrices())
def test_ranges_and_relations(m: list[list[float]]) -> None:
    assert 0 <= average_performance(m) <= 1
    for metric in (forgetting_from_diagonal, backward_transfer, forgetting_max, forward_transfer):
        assert -1 <= metric(m) <= 1
    assert backward_transfer(m) == -forgetting_from_diagonal(m)
    assert forgetting_max(m) >= forgetting_from_diagonal(m) - 1e-12
    assert -1 <= intransigence(m, joint=np.zeros_like(m)) <= 0
    assert 0 <= intransigence(m, joint=np.ones_like(m)) <= 1
    assert intransigence(m, joint=m) == 0


@settings(deadline=None)
@given(matrices(), st.floats(0.01, 0.5))
def test_directions(m: list[list[float]], gain: float) -> None:
    """A higher last row: more performance, less forgetting by every definition, as much transfer forward."""
    better = [*m[:-1], [v + gain for v in m[-1]]]
    assert average_performance(better) == pytest.approx(average_performance(m) + gain)
    assert forgetting_from_diagonal(better) == pytest.approx(forgetting_from_diagonal(m) - gain)
    assert backward_transfer(better) == pytest.approx(backward_transfer(m) + gain)
    assert forgetting_max(better) == pytest.approx(forgetting_max(m) - gain)
    assert forward_transfer(better) == pytest.approx(forward_transfer(m))


@settings(deadline=None)
@given(matrices())
def test_forgetting_of_a_monotone_history(m: list[list[float]]) -> None:
    """If every task is at its best when it is learnt, both definitions of forgetting agree and are not negative."""
    falling = np.array(m)
    for k in range(1, len(m)):
        falling[k] = np.where(np.arange(len(m[0])) < k - 1, np.minimum(falling[k], falling[k - 1]), falling[k])
    assert forgetting_max(falling) == pytest.approx(forgetting_from_diagonal(falling), abs=1e-12)
    assert forgetting_max(falling) >= 0


@settings(deadline=None)
@given(matrices())
def test_what_a_metric_does_not_read_does_not_matter(m: list[list[float]]) -> None:
    """Row 0 feeds forward transfer only; entries above the diagonal nothing but it."""
    changed = np.array(m)
    changed[0] = 0.123
    for k in range(1, len(m)):
        changed[k, k:] = NAN
    for metric in (average_performance, forgetting_from_diagonal, backward_transfer, forgetting_max):
        assert metric(changed) == pytest.approx(metric(m), abs=1e-12)
    assert intransigence(changed, joint=m) == pytest.approx(0, abs=1e-12)


def test_nan_where_a_needed_entry_could_not_be_asked() -> None:
    """Edge policies without future tasks leave NaN above the diagonal: forward transfer is then undefined, the rest is not."""
    unseen: Any = [[NAN] * 3, [0.9, NAN, NAN], [0.95, 0.8, NAN], [0.7, 0.6, 0.85]]
    assert math.isnan(forward_transfer(unseen))
    assert forgetting_max(unseen) == forgetting_max_any_stage(unseen) == pytest.approx(0.225)
    assert average_performance(unseen) == pytest.approx(2.15 / 3)
    assert math.isnan(average_performance([*HAND[:3], [0.7, NAN, 0.85]]))
    for metric in (forgetting_max, forgetting_max_any_stage):
        assert math.isnan(metric([HAND[0], [NAN, 0.45, 0.2], *HAND[2:]]))
    assert math.isnan(forgetting_from_diagonal([HAND[0], [NAN, 0.45, 0.2], *HAND[2:]]))
    assert math.isnan(intransigence(HAND, joint=[*JOINT[:3], [0, 0, NAN]]))


def test_a_task_at_its_best_before_it_is_learnt_tells_both_definitions_apart() -> None:
    """By hand, for the second of three tasks: 0.95 after the first. The untrained model's row 0 counts for neither."""
    m = [[1.0, 1.0, 1.0], [0.9, 0.95, 0.2], [0.8, 0.8, 0.3], [0.7, 0.6, 0.85]]
    assert forgetting_max(m) == pytest.approx((0.2 + 0.2) / 2)
    assert forgetting_max_any_stage(m) == pytest.approx((0.2 + 0.35) / 2)


def test_null_in_a_stored_matrix_is_nan() -> None:
    stored: Any = [[None, None], [0.9, None], [0.7, 0.8]]
    assert average_performance(stored) == pytest.approx(0.75)
    assert math.isnan(forward_transfer(stored))


def test_a_single_task_can_only_be_performed() -> None:
    single = [[0.5], [0.75]]
    assert average_performance(single) == 0.75
    assert intransigence(single, joint=[[0.5], [0.875]]) == 0.125
    for metric in (forgetting_from_diagonal, backward_transfer, forgetting_max, forward_transfer):
        assert math.isnan(metric(single))


def test_intransigence_without_joint_training_is_not_known() -> None:
    assert math.isnan(intransigence(HAND))
    assert math.isnan(intransigence(HAND, joint=None))
    assert math.isnan(excess_forgetting(HAND))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "wrong",
    [[], [[]], [0.5, 0.5], [[0.5, 0.5]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 4, [[[0.5]], [[0.5]]], [[0.5, 0.5], [0.5], [0.5, 0.5]]],
    ids=["empty", "no tasks", "one row", "row 0 only", "square", "too many rows", "three dimensions", "ragged"],
)
def test_a_matrix_of_another_shape_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"performance matrix .*expected .*\[T \+ 1, T\]"):
        METRICS[name](wrong, joint=HAND)


def test_the_joint_matrix_must_be_of_the_same_tasks() -> None:
    with pytest.raises(UsageError, match=r"the joint matrix has shape \(3, 2\), but the matrix has shape \(4, 3\)"):
        intransigence(HAND, joint=[row[:2] for row in HAND[:3]])
    with pytest.raises(UsageError, match=r"the joint matrix has shape \(3, 2\), but the matrix has shape \(4, 3\)"):
        excess_forgetting(HAND, joint=[row[:2] for row in HAND[:3]])


@settings(deadline=None)
@given(matrices(), st.lists(st.integers(1, 50), min_size=10, max_size=10))
def test_pooled_accuracy_in_loops(m: list[list[float]], sizes: list[int]) -> None:
    stream = {"tasks": [{"n_test": n} for n, _ in zip(sizes, m[0], strict=False)]}
    stages = [sum(n * a for n, a in zip(sizes[:k], m[k], strict=False)) / sum(sizes[:k]) for k in range(1, len(m))]
    assert pooled_accuracy(m, stream=stream) == pytest.approx(stages[-1], abs=1e-12)
    assert pooled_accuracy_mean(m, stream=stream) == pytest.approx(sum(stages) / len(stages), abs=1e-12)
    equal = {"tasks": [{"n_test": 7}] * len(m[0])}
    assert pooled_accuracy(m, stream=equal) == pytest.approx(average_performance(m), abs=1e-12)


def test_pooled_accuracy_needs_the_sizes_of_the_tasks() -> None:
    with pytest.raises(UsageError, match="0 tasks with n_test, but the matrix has 3 columns"):
        pooled_accuracy(HAND)
    with pytest.raises(UsageError, match="2 tasks with n_test, but the matrix has 3 columns"):
        pooled_accuracy_mean(HAND, stream={"tasks": [{"n_test": 1}] * 2})


def test_the_given_matrix_is_left_alone() -> None:
    array = np.array(HAND)
    for metric in METRICS.values():
        metric(array, joint=array)
    pooled_accuracy(array, stream={"tasks": [{"n_test": 1}] * 3})
    np.testing.assert_array_equal(array, HAND)
