"""A plugin file with the tiny streams and two methods, so that any process can plan a campaign over them."""

from __future__ import annotations

from typing import Any

from cglsuite import DatasetSpec, MethodSpec, ScenarioSpec, hookimpl
from cglsuite.learning.method import Method
from cglsuite.specs import LEVELS, SETTINGS, ScheduleSpec

CAMPAIGN = """
name = "tiny"
title = "Two methods on a tiny stream"
plugins = ["{plugin}"]
[grid]
scenarios = ["testing-nodes/class-il@testing-1"]
methods = ["testing-fine-tuning", "testing-decay"]
[seeds]
order = [0, 1]
init = [0, 1]
[set]
training.epochs = 5
scenario.class_order = "random"
[run]
device = "cpu"
workers = 1
"""


class Decaying(Method):
    """Plain training with a penalty on the squared norm of the parameters."""

    def loss(self, batch: Any) -> Any:
        return super().loss(batch) + 0.01 * sum(p.square().sum() for p in self.model.parameters())


def _specs(kind: type) -> list[Any]:
    from cglsuite.testing.streams import tiny_specs

    return [spec for spec in tiny_specs() if isinstance(spec, kind)]


@hookimpl
def cglsuite_datasets() -> list[DatasetSpec]:
    """The tiny data sets."""
    return _specs(DatasetSpec)


@hookimpl
def cglsuite_scenarios() -> list[ScenarioSpec]:
    """The tiny streams."""
    return _specs(ScenarioSpec)


@hookimpl
def cglsuite_schedules() -> list[ScheduleSpec]:
    """The schedule of the tiny task-free streams."""
    return _specs(ScheduleSpec)


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    """Fine-tuning with and without weight decay."""
    factory = "cglsuite.testing.staged.notebook_study:Decaying"
    summary = "plain training with a penalty on the norm of the weights"
    return [*_specs(MethodSpec), MethodSpec(name="testing-decay", summary=summary, factory=factory, levels=LEVELS, settings=SETTINGS)]
