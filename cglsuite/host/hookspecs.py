"""The hooks that plugins implement, one per kind of spec. They have no arguments and return an iterable of frozen specs."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from collections.abc import Iterable

import pluggy

from cglsuite.specs import (
    KINDS,
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    MeasureSpec,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PretrainingSpec,
    ScenarioSpec,
    ScheduleSpec,
)

PROJECT = "cglsuite"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as the implementation of the hook with the same name."""
HOOKS: dict[str, str] = {f"{PROJECT}_{kind}s": kind for kind in KINDS}
"""The kind of spec that each hook returns, by hook name."""


@hookspec
def cglsuite_datasets() -> Iterable[DatasetSpec]:
    """Datasets: raw data with their licence, citation and loader."""


@hookspec
def cglsuite_scenarios() -> Iterable[ScenarioSpec]:
    """Scenarios: versioned presets with every switch of the protocol explicit."""


@hookspec
def cglsuite_backbones() -> Iterable[BackboneSpec]:
    """Backbones: the networks that methods train."""


@hookspec
def cglsuite_methods() -> Iterable[MethodSpec]:
    """Methods: algorithms that learn one task after another."""


@hookspec
def cglsuite_pretrainings() -> Iterable[PretrainingSpec]:
    """Self-supervised pre-training of the backbone before the first task."""


@hookspec
def cglsuite_measures() -> Iterable[MeasureSpec]:
    """Measures: functions that score predictions against the hidden labels of a task."""


@hookspec
def cglsuite_metrics() -> Iterable[MetricSpec]:
    """Metrics: pure functions of the performance matrix."""


@hookspec
def cglsuite_schedules() -> Iterable[ScheduleSpec]:
    """Mixing schedules: rules by which task-free streams blend their latent tasks."""


@hookspec
def cglsuite_encoders() -> Iterable[EncoderSpec]:
    """Encoders: functions that turn texts into features, once and before the stream."""


@hookspec
def cglsuite_notebooks() -> Iterable[NotebookSpec]:
    """Notebooks: parameterised reports and explorations."""


@hookspec
def cglsuite_executors() -> Iterable[ExecutorSpec]:
    """Executors: back ends that run cells."""


@hookspec
def cglsuite_commands() -> Iterable[CommandSpec]:
    """Commands: subcommands of ``cglsuite``."""
