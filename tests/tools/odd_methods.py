"""Methods, metrics and a backbone that go wrong each in its own way, and how to put them into a catalogue beside what is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cglsuite import Catalogue, Method, MethodSpec, MetricSpec
from cglsuite.base.errors import NotApplicable
from cglsuite.host import Entry, PluginRecord
from cglsuite.specs import KINDS, PluginSpec
from cglsuite.streams import Batch, TaskView

__all__ = ["METHODS", "METRICS", "with_specs"]


class Raises(Method):
    """Fails while it learns the second task."""

    def before_task(self, view: TaskView) -> None:
        """Fail, once."""
        if view.position == 1:
            raise ValueError("no second task, please")


class FailsToBegin(Method):
    """Fails when it is made."""

    def setup(self) -> None:
        """Fail."""
        raise KeyError("lambda")


class Exits(Method):
    """Thinks that it owns the process."""

    def after_task(self, view: TaskView) -> None:
        """Leave."""
        sys.exit("had enough")


class LooksUpAnswers(Method):
    """Asks a query for its labels."""

    def predict(self, query: Batch) -> Tensor:
        """The labels, if there were any."""
        return torch.nn.functional.one_hot(self.problem.labels(query), self.problem.n_outputs).float()


class TakesAllMemory(Method):
    """Asks for more memory than any machine has."""

    def after_task(self, view: TaskView) -> None:
        """A few hundred terabytes."""
        torch.empty(2**46)


class RunsOut(Method):
    """Python's own error for the same."""

    def loss(self, batch: Batch) -> Tensor:
        """Nothing left."""
        raise MemoryError


class DeviceRunsOut(Method):
    """The device's error for the same."""

    def loss(self, batch: Batch) -> Tensor:
        """Nothing left there either."""
        raise torch.OutOfMemoryError("CUDA out of memory")


class NotHere(Method):
    """Finds out at work that it cannot run."""

    def before_task(self, view: TaskView) -> None:
        """Say so."""
        raise NotApplicable("this method needs edges, and there are none")


class Interrupts(Method):
    """Is interrupted by the user in the second task."""

    def after_task(self, view: TaskView) -> None:
        """Control-C."""
        if view.position == 1:
            raise KeyboardInterrupt


class ForgetsItself(Method):
    """Changes its weights while predicting."""

    def predict(self, query: Batch) -> Tensor:
        """A step while nobody looks."""
        next(iter(self.model.parameters())).data.mul_(1.001)
        return super().predict(query)


class TooMuchMemory(Method):
    """Keeps everything, whatever the budget."""

    def after_task(self, view: TaskView) -> None:
        """All training items."""
        self.memory.put(str(view.position), self.problem.sample(view.train, torch.arange(len(view.train)), "item"))


def failing_metric(matrix: Any, joint: Any = None) -> float:
    """Divides by nothing."""
    return 1 / 0


def half(matrix: Any, joint: Any = None) -> float:
    """Always one half."""
    return 0.5


def _method(name: str, cls: type[Method], **more: Any) -> MethodSpec:
    return MethodSpec(name=name, summary=name, factory=f"odd_methods:{cls.__name__}", **more)


METHODS = {
    spec.name: spec
    for spec in (
        _method("raises", Raises),
        _method("fails-to-begin", FailsToBegin),
        _method("exits", Exits),
        _method("looks-up-answers", LooksUpAnswers),
        _method("takes-all-memory", TakesAllMemory),
        _method("runs-out", RunsOut),
        _method("device-runs-out", DeviceRunsOut),
        _method("not-here", NotHere),
        _method("interrupts", Interrupts),
        _method("forgets-itself", ForgetsItself),
        _method("too-much-memory", TooMuchMemory),
        _method("needs-task", Method, needs=("task-id",)),
        _method("task-il-only", Method, settings=("task-il",)),
        _method("graphs-only", Method, levels=("GC",)),
        MethodSpec(name="absent", summary="absent", factory="odd_methods:Absent"),
    )
}
METRICS = {
    spec.name: spec
    for spec in (
        MetricSpec(name="failing", summary="fails", formula="1 / 0", direction="up", factory="odd_methods:failing_metric"),
        MetricSpec(name="absent", summary="absent", formula="-", direction="up", factory="odd_methods:absent"),
        MetricSpec(name="half", summary="half", formula="1 / 2", direction="up", factory="odd_methods:half"),
    )
}


def with_specs(catalogue: Catalogue, specs: Sequence[PluginSpec]) -> Catalogue:
    """The catalogue with further specs, as if a distribution ``odd 1.0`` provided them."""
    record = PluginRecord(distribution="odd", version="1.0", entry_point="odd", module="odd_methods", status="ok")
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind)]
    added = [Entry(kind=next(k for k, t in KINDS.items() if isinstance(s, t)), name=s.name, spec=s, record=record) for s in specs]
    return Catalogue([*catalogue.records, record], [*entries, *added])
