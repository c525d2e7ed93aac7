"""The metric specs: what each says of range, direction and needs holds for what its factory computes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from cglsuite_metrics.plugin import cglsuite_metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from installed import installed

from cglsuite import MetricSpec
from cglsuite.host import Catalogue

ALL = {spec.name: spec for spec in cglsuite_metrics()}
SPECS = {name: spec for name, spec in ALL.items() if "task-free" not in spec.settings}
TASK_FREE = {name: spec for name, spec in ALL.items() if "task-free" in spec.settings}

# After three tasks: what the definitions give, worked out by hand.
MATRIX = [[0.50, 0.40, 0.30], [0.90, 0.45, 0.20], [0.95, 0.80, 0.35], [0.70, 0.60, 0.85]]
JOINT = [[0.5, 0.5, 0.5], [0.92, 0.5, 0.5], [0.0, 0.88, 0.5], [0.0, 0.0, 0.80]]
EXPECTED = {
    "average_performance": 2.15 / 3,
    "forgetting_from_diagonal": 0.2,
    "backward_transfer": -0.2,
    "forgetting_max": 0.225,
    "forgetting_max_any_stage": 0.225,
    "forward_transfer": 0.05,
    "intransigence": 0.05 / 3,
    "excess_forgetting": ((0.9 - 0.7) - (0.92 - 0.0) + (0.8 - 0.6) - (0.88 - 0.0)) / 2,
    "open_world_mean": (0.45 + 0.35) / 2,
    "pooled_accuracy": (20 * 0.7 + 10 * 0.6 + 10 * 0.85) / 40,
    "pooled_accuracy_mean": (0.9 + (20 * 0.95 + 10 * 0.8) / 30 + (20 * 0.7 + 10 * 0.6 + 10 * 0.85) / 40) / 3,
}
SIZES = (20, 10, 10)
# A change for the better in each metric's own eyes: (row, column, by how much), of the matrix.
BETTER = {
    "average_performance": (3, 0, 0.1),
    "forgetting_from_diagonal": (3, 0, 0.1),
    "backward_transfer": (3, 0, 0.1),
    "forgetting_max": (2, 0, -0.1),
    "forgetting_max_any_stage": (2, 0, -0.1),
    "forward_transfer": (1, 1, 0.1),
    "intransigence": (2, 1, 0.1),
    "excess_forgetting": (3, 0, 0.1),
    "open_world_mean": (1, 1, 0.1),
    "pooled_accuracy": (3, 0, 0.1),
    "pooled_accuracy_mean": (2, 0, 0.04),
}

# The same for a task-free stream: two latent tasks, four evaluations after the untrained one.
CURVE = [[0.20, 0.30], [1.00, 0.20], [0.50, 0.60], [0.95, 0.40], [0.85, 0.50]]
STREAM = {
    "evaluations": [0, 10, 20, 30, 40],
    "delivered": [[0, 0], [60, 40], [100, 100], [100, 200], [100, 250]],
    "tasks": [{"n_test": 30}, {"n_test": 10}],
}
TASK_FREE_EXPECTED = {
    "a_auc": 0.55,
    "a_auc_trained": 0.625,
    "a_auc_node_weighted": (3 * 3.5 + 2.0) / 4 / 5,
    "a_end": 0.675,
    "af_s": -0.125,
    "af_hard": 0.175,
    "time_to_recover": 10.0,
}
TASK_FREE_BETTER = dict.fromkeys(TASK_FREE_EXPECTED, (4, 0, 0.04)) | {"time_to_recover": None}


def compute(name: str, matrix: Any, joint: Any = None) -> float:
    tasks = [{"n_test": n} for n, _ in zip(itertools.chain(SIZES, itertools.repeat(10)), matrix[0], strict=False)]
    more = {"stream": {"tasks": tasks}} if SPECS[name].needs_tasks else {}
    value = Catalogue([], []).resolve(SPECS[name])(np.array(matrix), joint=joint, **more)
    assert isinstance(value, float)
    return value


def test_every_metric_has_its_expectations_here() -> None:
    assert set(SPECS) == set(EXPECTED) == set(BETTER)
    assert set(TASK_FREE) == set(TASK_FREE_EXPECTED) == set(TASK_FREE_BETTER)


@pytest.mark.parametrize("name", SPECS)
def test_by_hand(name: str) -> None:
    assert compute(name, MATRIX, JOINT) == pytest.approx(EXPECTED[name])


@pytest.mark.parametrize("name", SPECS)
def test_the_direction_is_the_declared_one(name: str) -> None:
    row, column, change = BETTER[name]
    better = np.array(MATRIX)
    better[row, column] += change
    gain = compute(name, better, JOINT) - compute(name, MATRIX, JOINT)
    assert gain * {"up": 1, "down": -1}[SPECS[name].direction] > 0


@settings(deadline=None)
@given(
    st.integers(2, 5).flatmap(lambda t: st.lists(st.lists(st.floats(0, 1), min_size=t, max_size=t), min_size=2 * t + 2, max_size=2 * t + 2))
)
def test_values_are_in_the_declared_range(rows: list[list[float]]) -> None:
    matrix, joint = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for name, spec in SPECS.items():
        assert spec.range[0] <= compute(name, matrix, joint) <= spec.range[1], name


@pytest.mark.parametrize("name", SPECS)
def test_the_declared_range_is_reached(name: str) -> None:
    """Both ends: over all matrices of two tasks that hold nothing but the ends of performance, which a correlation has at -1 and 1."""
    ends = (-1.0, 1.0) if name == "open_world_mean" else (0.0, 1.0)
    tables = [np.reshape(bits, (3, 2)) for bits in itertools.product(ends, repeat=6)]
    values = [compute(name, table, joint) for table in tables for joint in (tables if SPECS[name].reference else tables[:1])]
    assert (min(values), max(values)) == SPECS[name].range


@pytest.mark.parametrize("name", SPECS)
def test_what_is_needed_is_declared(name: str) -> None:
    """A metric that declares no need of the joint matrix does not read it; one that does is unknown without it."""
    without = compute(name, MATRIX)
    assert math.isnan(without) if SPECS[name].reference else without == compute(name, MATRIX, JOINT)


def compute_task_free(name: str, curve: Any, stream: Any = STREAM) -> float:
    value = Catalogue([], []).resolve(TASK_FREE[name])(np.array(curve), joint=None, stream=stream)
    assert isinstance(value, float)
    return value


# Task 1 falls at step 20 and is back at 30; task 2 falls at step 30 and stays: the shorter curve has the first fall alone.
@pytest.mark.parametrize("name", TASK_FREE)
def test_task_free_by_hand(name: str) -> None:
    if name == "time_to_recover":
        shorter = {part: values[:4] for part, values in STREAM.items()} | {"delivered": [[r[0]] for r in STREAM["delivered"][:4]]}
        assert compute_task_free(name, [row[:1] for row in CURVE[:4]], shorter) == TASK_FREE_EXPECTED[name]
        assert math.isnan(compute_task_free(name, CURVE))
        return
    assert compute_task_free(name, CURVE) == pytest.approx(TASK_FREE_EXPECTED[name])


@pytest.mark.parametrize("name", [n for n, change in TASK_FREE_BETTER.items() if change])
def test_the_direction_of_task_free_metrics(name: str) -> None:
    row, column, change = TASK_FREE_BETTER[name]
    better = np.array(CURVE)
    better[row, column] += change
    gain = compute_task_free(name, better) - compute_task_free(name, CURVE)
    assert gain * {"up": 1, "down": -1}[TASK_FREE[name].direction] > 0


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=5, max_size=5))
def test_task_free_values_are_in_the_declared_range(curve: list[list[float]]) -> None:
    for name, spec in TASK_FREE.items():
        value = compute_task_free(name, curve)
        assert math.isnan(value) or spec.range[0] <= value <= spec.range[1], name


@pytest.mark.parametrize("name", [name for name in TASK_FREE if name not in ("time_to_recover", "af_hard")])
def test_the_declared_range_of_task_free_metrics_is_reached(name: str) -> None:
    curves = [np.reshape(bits, (5, 2)) for bits in itertools.product((0.0, 1.0), repeat=10)]
    values = [value for curve in curves if not math.isnan(value := compute_task_free(name, curve))]
    assert (min(values), max(values)) == TASK_FREE[name].range


@pytest.mark.parametrize("name", TASK_FREE)
def test_task_free_specs_say_what_they_are(name: str) -> None:
    spec = TASK_FREE[name]
    assert spec.settings == ("task-free",)
    assert spec.formula
    assert spec.label != spec.name
    assert not spec.needs_joint
    assert bool(spec.unit) == (spec.range[1] > 1)


@pytest.mark.parametrize("name", SPECS)
def test_specs_say_what_they_are(name: str) -> None:
    spec = SPECS[name]
    assert isinstance(spec, MetricSpec)
    assert spec.formula
    assert spec.citation
    assert spec.label
    # A published label is never the name: three papers call three things AF.
    assert spec.label != spec.name


def test_forward_transfer_is_for_settings_whose_classes_are_known_before() -> None:
    assert SPECS["forward_transfer"].settings == ("domain-il", "time-il")
    restricted = {"pooled_accuracy", "pooled_accuracy_mean", "forgetting_max_any_stage", "forward_transfer", "open_world_mean"}
    assert all("class-il" in s.settings and "task-il" in s.settings for n, s in SPECS.items() if n not in restricted)


def test_pooled_accuracy_is_for_accuracy_over_items_without_task_ids() -> None:
    for name in ("pooled_accuracy", "pooled_accuracy_mean"):
        spec = SPECS[name]
        assert spec.excluded({"setting": "class-il", "performance": "micro"}) == ""
        assert spec.excluded({"setting": "task-il", "performance": "micro"}).startswith("does not apply to task-il")
        assert spec.excluded({"setting": "class-il", "performance": "macro"}) == "does not apply where performance is macro, only to micro"


def test_pooled_accuracy_equals_that_of_the_items() -> None:
    """Over whole numbers of right answers, as long as tasks are learnt: what later tasks' entries hold does not count."""
    right = np.array([[0, 0, 0], [15, 3, 1], [12, 8, 2], [9, 7, 10]])
    matrix = right / np.array(SIZES)
    assert compute("pooled_accuracy", matrix) == pytest.approx(26 / 40)
    assert compute("pooled_accuracy_mean", matrix) == pytest.approx((15 / 20 + 20 / 30 + 26 / 40) / 3)
    unasked = np.where(np.tri(4, 3, -1, dtype=bool), matrix, np.nan)
    assert compute("pooled_accuracy_mean", unasked) == compute("pooled_accuracy_mean", matrix)


def test_the_installed_package_provides_them() -> None:
    catalogue = installed("cglsuite-metrics")
    assert catalogue.names("metric") == sorted(ALL)
    assert {e.record.distribution for e in catalogue.entries("metric")} == {"cglsuite-metrics"}
