"""What streams show of themselves: facts, and no tensors."""

from __future__ import annotations

from collections.abc import Sequence

from cglsuite.base.markup import Fragment, card, grid
from cglsuite.streams import TaskFacts, TaskFreeStream
from cglsuite.streams.stream import Stream

__all__ = ["card_of", "task_grid"]


def card_of(stream: Stream) -> str:
    """The HTML of a stream's facts and of its tasks."""
    n, facts = len(stream), [("scenario", stream.spec.name)]
    sizes = [("outputs", str(stream.n_outputs)), ("features", str(stream.n_features)), ("data", stream.data_hash)]
    if not isinstance(stream, TaskFreeStream):
        return card(f"stream of {n} tasks", [*facts, *sizes], task_grid(stream.tasks))
    steps = [("steps", str(stream.n_steps)), ("items per step", str(stream.items.shape[1])), ("evaluations", str(len(stream.evaluations)))]
    return card(f"stream of {stream.n_steps} steps over {n} latent tasks", [*facts, *steps, *sizes], task_grid(stream.tasks))


def task_grid(tasks: Sequence[TaskFacts]) -> Fragment:
    """The facts of the tasks of a stream, a row each."""
    rows = ((k + 1, t.name, t.classes, t.n_train, t.n_validation, t.n_test) for k, t in enumerate(tasks))
    return grid(("task", "name", "classes", "training", "validation", "test"), rows)
