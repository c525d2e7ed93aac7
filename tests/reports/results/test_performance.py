"""What guessing would score, from the classes that compete; and where intervals of a metric are cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from cglsuite.cells.records.record import Record
from cglsuite.reports.results.measures import chance_after_tasks, mean_chance, metric_bounds
from cglsuite.specs import MetricSpec

CLASSES = ([3, 1], [0, 2, 4], [5])


def record(setting: str = "class-il", performance: str = "micro", classes: Any = CLASSES, stream: Any = None) -> Record:
    tasks = [{"classes": list(one)} for one in classes]
    scenario = {"setting": setting, "performance": performance}
    return cast("Record", SimpleNamespace(scenario=scenario, tasks=tasks, stream=stream or {}))


@pytest.mark.parametrize("performance", ["micro", "macro"])
def test_accuracy(performance: str) -> None:
    """In class-IL 1 over the classes seen so far; in task-IL the mean over tasks of 1 over their own; shared classes count once."""
    np.testing.assert_allclose(cast("Any", chance_after_tasks(record("class-il", performance))), [1 / 2, 1 / 5, 1 / 6])
    own = [1 / 2, (1 / 2 + 1 / 3) / 2, (1 / 2 + 1 / 3 + 1) / 3]
    np.testing.assert_allclose(cast("Any", chance_after_tasks(record("task-il", performance))), own)
    for setting in ("domain-il", "time-il"):
        np.testing.assert_allclose(cast("Any", chance_after_tasks(record(setting, performance, [[0, 1, 2]] * 3))), [1 / 3] * 3)


def test_roc_auc_is_a_half_for_everybody() -> None:
    np.testing.assert_array_equal(cast("Any", chance_after_tasks(record("domain-il", "roc-auc", [[], []]))), [0.5, 0.5])


@pytest.mark.parametrize("performance", ["average-precision", "hits", "negative-mae", "someones-measure"])
def test_undefined_measures(performance: str) -> None:
    assert chance_after_tasks(record(performance=performance)) is None


def test_undefined_records() -> None:
    """Of streams without tasks, and of tasks without classes."""
    assert chance_after_tasks(record(stream={"evaluations": [0]})) is None
    assert chance_after_tasks(record(classes=[[0, 1], []])) is None
    assert chance_after_tasks(record(classes=[])) is None


def test_the_mean_over_records() -> None:
    """Orders differ in the sizes of their tasks; a record without chance, or of another length, leaves none."""
    np.testing.assert_allclose(
        cast("Any", mean_chance([record(), record(classes=CLASSES[::-1])])), [(1 / 2 + 1) / 2, (1 / 5 + 1 / 4) / 2, 1 / 6]
    )
    assert mean_chance([record(), record(performance="hits")]) is None
    assert mean_chance([record(), record(classes=CLASSES[:2])]) is None
    assert mean_chance([]) is None


@pytest.mark.parametrize(
    ("scenario", "declared", "unit", "bounds"),
    [
        ({"performance": "micro"}, (0.0, 1.0), "", (0.0, 1.0)),
        ({"performance": "micro"}, (-1.0, 1.0), "", (-1.0, 1.0)),
        ({"performance": "negative-mae"}, (0.0, 1.0), "", None),
        ({"performance": "negative-mae"}, (0.0, np.inf), "steps", (0.0, np.inf)),
        ({"measure": {"unit": "", "range": [-1, 1]}}, (0.0, 1.0), "", (-1.0, 1.0)),
        ({"measure": {"unit": "", "range": [-1, 1]}}, (-1.0, 1.0), "", None),
        ({"measure": {"unit": "eV", "range": [None, 0]}}, (0.0, 1.0), "", None),
    ],
)
def test_bounds_of_a_metric(scenario: dict[str, Any], declared: tuple[float, float], unit: str, bounds: Any) -> None:
    """Declared ranges are for performance between 0 and 1; another measure's average lies where the measure does."""
    spec = MetricSpec(name="m", summary="s", formula="f", direction="up", factory="a:b", range=declared, unit=unit)
    assert metric_bounds(spec, [cast("Record", SimpleNamespace(scenario=scenario))]) == bounds
