"""A plugin in order: one spec of every kind. Three of its factories lead nowhere, which listing does not look at."""

from __future__ import annotations

from collections.abc import Iterator

from cglsuite import (
    BackboneSpec,
    CommandSpec,
    DatasetSpec,
    EncoderSpec,
    ExecutorSpec,
    Hyperparameter,
    MeasureSpec,
    MethodSpec,
    MetricSpec,
    NotebookSpec,
    PretrainingSpec,
    ScenarioSpec,
    ScheduleSpec,
    TrainingSpec,
    hookimpl,
)

_STRENGTH = Hyperparameter(name="strength", default=0.5, minimum=0, doc="how strongly the old weights pull")
_ORDER = Hyperparameter(name="order", default="native", choices=("native", "random"), doc="the order of the items")
_LIMIT = Hyperparameter(name="limit", default=None, kind=int, optional=True, minimum=1, doc="items at most")


@hookimpl
def cglsuite_datasets() -> list[DatasetSpec]:
    return [
        DatasetSpec(name="tiny", summary="four nodes", factory="healthy:load", licence="CC0-1.0", embedded=True, hyperparameters=(_LIMIT,))
    ]


@hookimpl
def cglsuite_scenarios() -> tuple[ScenarioSpec, ...]:
    return (
        ScenarioSpec(
            name="tiny/task-il@test-1",
            summary="two tasks of two classes",
            dataset="tiny",
            setting="task-il",
            training=TrainingSpec(epochs=3),
            method_defaults={"zeta": {"method.strength": 2.0}},
        ),
    )


@hookimpl
def cglsuite_backbones() -> list[BackboneSpec]:
    return [BackboneSpec(name="line", summary="one linear layer", factory="healthy:load")]


@hookimpl
def cglsuite_methods() -> Iterator[MethodSpec]:
    yield MethodSpec(name="zeta", summary="comes first here, last when sorted", factory="healthy:load", hyperparameters=(_STRENGTH, _ORDER))
    yield MethodSpec(name="alpha", summary="comes last here", factory="healthy:lod", citation="Someone, Something, Somewhere 2020")


@hookimpl
def cglsuite_pretrainings() -> list[PretrainingSpec]:
    return [PretrainingSpec(name="hides", summary="s", factory="healthy_parts:share")]


@hookimpl
def cglsuite_measures():
    return [MeasureSpec(name="share", summary="s", factory="healthy_parts:share", labels=("single",))]


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    return [MetricSpec(name="mean", summary="the mean", factory="healthy:load", formula="mean of row T", direction="up", range=(0.0, 1.0))]


@hookimpl
def cglsuite_notebooks() -> list[NotebookSpec]:
    return [NotebookSpec(name="look", summary="look around", path="healthy_notebooks:look.ipynb", interactive=True)]


@hookimpl
def cglsuite_schedules() -> list[ScheduleSpec]:
    return [ScheduleSpec(name="even", summary="all at once", factory="healthy:load")]


@hookimpl
def cglsuite_encoders() -> list[EncoderSpec]:
    return [EncoderSpec(name="blank", summary="says nothing", factory="healthy:load")]


@hookimpl
def cglsuite_executors() -> list[ExecutorSpec]:
    return [ExecutorSpec(name="here", summary="runs here", factory="no_such_module_anywhere:Here")]


@hookimpl
def cglsuite_commands() -> list[CommandSpec]:
    return [CommandSpec(name="wave", summary="Say hello.", factory="healthy_commands:wave")]


def load() -> str:
    """What the factories of this plugin point to."""
    return "loaded"
