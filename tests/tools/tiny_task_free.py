"""Tiny task-free streams and runners over them, for tests of the numerical rooms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from installed import installed
from numpy.typing import NDArray
from tiny_streams import tiny_data, tiny_model, tiny_spec

from cglsuite import Method, Seeds, TaskFreeSpec
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphData, NodeData
from cglsuite.learning.task_free_runner import TaskFreeRunner
from cglsuite.specs import resolve_hyperparameters
from cglsuite.streams import TaskFreeStream
from cglsuite.streams.build_task_free import build_task_free_stream

__all__ = ["blended", "catalogue_task_free_runner", "task_free_runner", "tiny_task_free_stream"]


def blended(steps: NDArray[np.float64], spans: NDArray[np.float64], width: float = 2.0) -> NDArray[np.float64]:
    """A Gaussian schedule, so that these tools need no plugin."""
    centres = (spans[1:] + spans[:-1]) / 2
    out: NDArray[np.float64] = np.exp(-((steps[:, None] - centres) ** 2) / (2 * width**2))
    return out


def tiny_task_free_stream(
    data: NodeData | GraphData | None = None, *, seeds: Seeds | None = None, task_free: Mapping[str, Any] | None = None, **changes: Any
) -> TaskFreeStream:
    """Three latent tasks of two classes, four items per step, an evaluation every third step."""
    data = data if data is not None else tiny_data(per_class=20)
    spec = TaskFreeSpec(**({"evaluate_every": 3, "schedule_factory": "tiny_task_free:blended"} | dict(task_free or {})))
    training = {"batch_size": 4, "epochs": 1, "lr": 0.05} | dict(changes.pop("training", {}))
    level = "GC" if isinstance(data, GraphData) else "NC"
    return build_task_free_stream(
        tiny_spec(setting="task-free", task_free=spec, training=training, level=level, **changes), data, seeds or Seeds()
    )


def task_free_runner(
    stream: TaskFreeStream, method: Any = Method, hyperparameters: Mapping[str, Any] | None = None, *, init_seed: int = 0, **more: Any
) -> TaskFreeRunner:
    """A runner of ``method`` over ``stream``."""
    return TaskFreeRunner(
        stream,
        method,
        tiny_model(stream),  # type: ignore[arg-type]
        hyperparameters=dict(hyperparameters or {}),
        training=stream.spec.training,
        init_seed=init_seed,
        identity="tiny",
        **more,
    )


def catalogue_task_free_runner(
    stream: TaskFreeStream, name: str, hyperparameters: Mapping[str, Any] | None = None, **more: Any
) -> TaskFreeRunner:
    """A runner of the installed method ``name`` with its defaults over ``stream``.

    Raises:
        NotApplicable: the method is not for task-free streams, or not for the stream's level.
    """
    catalogue = installed()
    entry = catalogue.get("method", name)
    spec: Any = entry.spec
    if "task-free" not in spec.settings or stream.spec.level not in spec.levels:
        raise NotApplicable(f"{name} is not for task-free {stream.spec.level}")
    resolved = resolve_hyperparameters(spec.hyperparameters, hyperparameters or {}, "method")
    return task_free_runner(stream, catalogue.resolve(entry), resolved, past_views="past-views" in spec.needs, **more)
