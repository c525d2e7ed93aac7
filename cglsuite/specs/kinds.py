"""The kinds of components that plugins provide."""

from __future__ import annotations

from cglsuite.specs.metric import MetricSpec
from cglsuite.specs.plugins import (
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    MeasureSpec,
    MethodSpec,
    NotebookSpec,
    PluginSpec,
    PretrainingSpec,
    ScheduleSpec,
)
from cglsuite.specs.scenario import ScenarioSpec

KINDS: dict[str, type[PluginSpec]] = {
    spec.kind: spec
    for spec in (
        *(DatasetSpec, ScenarioSpec, BackboneSpec, MethodSpec, PretrainingSpec, MetricSpec, MeasureSpec, ScheduleSpec, EncoderSpec),
        *(NotebookSpec, ExecutorSpec, CommandSpec),
    )
}
"""The spec of each kind, in the order in which they are listed."""
