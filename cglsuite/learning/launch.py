"""Create the runner for a method, a backbone and a stream."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cglsuite.specs import ScenarioSpec, TrainingSpec

if TYPE_CHECKING:
    from cglsuite.learning.method import Method, MethodContext
    from cglsuite.learning.task_free_runner import TaskFreeRunner
    from cglsuite.learning.task_runner import TaskRunner
    from cglsuite.streams import TaskFreeStream, TaskStream


_TASKS, _TASK_FREE = "cglsuite.learning.task_runner:TaskRunner", "cglsuite.learning.task_free_runner:TaskFreeRunner"


def runner_reference(scenario: ScenarioSpec) -> str:
    """Return the import string (``"module:Class"``) of the runner for a scenario's streams."""
    return _TASKS if scenario.task_free is None else _TASK_FREE


def make_runner(
    stream: TaskStream | TaskFreeStream,
    make_method: Callable[[MethodContext], Method],
    make_backbone: Callable[..., Any],
    *,
    backbone_hyperparameters: Mapping[str, Any],
    method_hyperparameters: Mapping[str, Any],
    training: TrainingSpec,
    init_seed: int,
    identity: str,
    past_views: bool = False,
    device: str = "cpu",
    on_task: Callable[[int], None] = lambda k: None,
) -> TaskRunner | TaskFreeRunner:
    """Create the runner that trains one method on a stream.

    Args:
        make_backbone: creates the model from the number of input features, the number of outputs, and its settings as keyword arguments.
        identity: a text that identifies everything, except the tasks, that affects the run's results. It is part of checkpoint names.
        past_views: whether the method declared that it needs earlier views.
        on_task: called with the number of tasks learnt.
    """
    # Capture numbers, not the stream: the method has this function, and must not be able to reach the oracle through it.
    sizes, hyperparameters = (stream.n_features, stream.n_outputs), dict(backbone_hyperparameters)

    def build_model() -> Any:
        from cglsuite.graphs import uploaded

        made = make_backbone(*sizes, **hyperparameters)
        return made._apply(lambda part: uploaded(part, device))  # as `to` does, but queued

    module, _, name = runner_reference(stream.spec).partition(":")
    runner: TaskRunner | TaskFreeRunner = getattr(importlib.import_module(module), name)(
        stream,
        make_method,
        build_model,
        hyperparameters=dict(method_hyperparameters),
        training=training,
        init_seed=init_seed,
        identity=identity,
        past_views=past_views,
        device=device,
        on_task=on_task,
    )
    return runner
