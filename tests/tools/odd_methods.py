"""Methods, metrics and a backbone that go wrong each in its own way, and how to put them into a catalogue beside what is installed."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cglsuite import Catalogue, Hyperparameter, Method, MethodSpec, MetricSpec
from cglsuite.base.errors import NotApplicable, StoreError
from cglsuite.host import Entry, PluginRecord
from cglsuite.specs import KINDS, PluginSpec
from cglsuite.streams import Batch, TaskView

__all__ = ["METHODS", "METRICS", "RAISED", "SAID", "with_specs"]


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


class Unreadable(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Leaving:
    """A number that ends the process when it is looked at."""

    def tolist(self) -> int:
        """Leave."""
        sys.exit(0)


SAID: dict[str, Any] = {
    "nan": {"made": float("nan")},
    "huge": {"made": 10**5000},
    "beyond": {"made": 2**63},
    "negative": {"made": -1},
    "text": {"made": "many"},
    "nested": {"made": {"of": 1}},
    "fraction": {"made": 0.5},
    "name": {"\ud800": 1},
    "leaving": {"made": Leaving()},
    "object": {"made": object()},
}
"""Counters that no record can hold."""
RAISED: dict[str, BaseException] = {
    "surrogate": ValueError("caf\udce9.log"),
    "wordless": NotApplicable(""),
    "unreadable": Unreadable(),
    "endless": ValueError("x" * 10**6),
    "store": StoreError("the disk is full"),
}
"""Errors whose texts no record can hold, and one that looks as if the store had failed."""


class SaysOfItself(Method):
    """Counts or raises what the hyperparameter names."""

    def after_task(self, view: TaskView) -> None:
        """Fail, perhaps."""
        if (name := self.hyperparameters["said"]) in RAISED:
            raise RAISED[name]

    def counters(self) -> dict[str, int]:
        """Anything but counts."""
        return SAID.get(self.hyperparameters["said"], {})


class LooksUpAnswers(Method):
    """Asks a query for its labels."""

    def predict(self, query: Batch) -> Tensor:
        """The labels, if there were any."""
        return torch.nn.functional.one_hot(self.problem.labels(query), self.problem.n_outputs).float()


class LimitsFiles(Method):
    """Lets its process write no more, for good."""

    def after_task(self, view: TaskView) -> None:
        """Lower both limits."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


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


def _right(function: str, args: Any) -> Tensor | None:
    """What is best for an answer that meets labels: all are equal to it, and it has no loss."""
    labels = next((a for a in args if type(a) is Tensor and a.dtype == torch.int64 and a.dim() == 1), None)
    if labels is None:
        return None
    if "eq" in function.replace("__", "").split("."):
        return torch.ones(len(labels), dtype=torch.bool)
    return torch.zeros(()) if "loss" in function or "entropy" in function else None


class Agreeing(np.ndarray[Any, Any]):
    """An array that equals everything."""

    def __eq__(self, other: object) -> Any:
        """So it is."""
        return np.ones(len(self), dtype=bool)


class Looking(Tensor):
    """A tensor that takes part in every operation on it."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at what stands beside it."""
        with torch._C.DisableTorchFunctionSubclass():
            if (right := _right(function.__name__, args)) is not None:
                return right
            found = function(*args, **(kwargs or {}))
        if isinstance(found, np.ndarray):
            return found.view(Agreeing)
        return found.as_subclass(cls) if type(found) is Tensor else found


class Dispatched(Tensor):
    """The same one level below: a tensor without memory of its own."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Dispatched:
        """A shell around the numbers."""
        made: Dispatched = Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)  # type: ignore[attr-defined]
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at what stands beside it."""
        if (right := _right(str(function), args)) is not None:
            return right
        bare = [a.held if isinstance(a, Dispatched) else a for a in args]
        found = function(*bare, **(kwargs or {}))
        return Dispatched(found) if type(found) is Tensor and "copy_" not in str(function) else found


class AnswersByLooking(Method):
    """Answers with a tensor that looks at what it is compared with."""

    def forward(self, batch: Batch) -> Tensor:
        """What the model says, in disguise where nothing is learnt from it."""
        out = super().forward(batch)
        return out if torch.is_grad_enabled() else out.as_subclass(Looking)

    def predict(self, query: Batch) -> Tensor:
        """The same."""
        return super().predict(query).as_subclass(Looking)


class AnswersByDispatch(Method):
    """The same one level below."""

    def predict(self, query: Batch) -> Tensor:
        """What the model says, in disguise."""
        return Dispatched(super().predict(query).detach())


class AnswersInText(Method):
    """Takes its answers for words."""

    def predict(self, query: Batch) -> Tensor:
        """No tensor."""
        return "class 3"  # type: ignore[return-value]


class TooMuchMemory(Method):
    """Keeps everything, whatever the budget."""

    def after_task(self, view: TaskView) -> None:
        """All training items."""
        self.memory.put(str(view.position), self.problem.sample(view.train, torch.arange(len(view.train)), "item"))


def failing_metric(matrix: Any, joint: Any = None) -> float:
    """Divides by nothing."""
    return 1 / 0


def sorts_metric(matrix: Any, joint: Any = None, stream: Any = None) -> float:
    """The median of the last row, found without a copy."""
    last = matrix[-1]
    last.sort()
    return float(last[len(last) // 2])


def clears_metric(matrix: Any, joint: Any = None, stream: Any = None) -> float:
    """Empties what it is told of the tasks."""
    stream["tasks"].clear()
    return 0.0


def unlocks_metric(matrix: Any, joint: Any = None, stream: Any = None) -> float:
    """Takes the lock off its matrix and raises every score."""
    matrix.flags.writeable = True
    matrix[:] = 1.0
    return float(matrix.mean())


def leaves_metric(matrix: Any, joint: Any = None) -> float:
    """Ends the process."""
    sys.exit(0)


class Leaves(BaseException):
    """Like SystemExit, of one's own; its text ends the process."""

    def __str__(self) -> str:
        sys.exit(0)


def raises_metric(matrix: Any, joint: Any = None) -> float:
    """Raises what few expect."""
    raise Leaves


def half(matrix: Any, joint: Any = None) -> float:
    """Always one half."""
    return 0.5


def _method(name: str, cls: type[Method], **more: Any) -> MethodSpec:
    return MethodSpec(name=name, summary=name, factory=f"odd_methods:{cls.__name__}", **more)


METHODS = {
    spec.name: spec
    for spec in (
        _method("says-of-itself", SaysOfItself, hyperparameters=(Hyperparameter(name="said", default="nan", doc="what"),)),
        _method("raises", Raises),
        _method("fails-to-begin", FailsToBegin),
        _method("exits", Exits),
        _method("looks-up-answers", LooksUpAnswers),
        _method("limits-files", LimitsFiles),
        _method("takes-all-memory", TakesAllMemory),
        _method("runs-out", RunsOut),
        _method("device-runs-out", DeviceRunsOut),
        _method("not-here", NotHere),
        _method("interrupts", Interrupts),
        _method("forgets-itself", ForgetsItself),
        _method("too-much-memory", TooMuchMemory),
        _method("answers-by-looking", AnswersByLooking),
        _method("answers-by-dispatch", AnswersByDispatch),
        _method("answers-in-text", AnswersInText),
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
        *(
            MetricSpec(name=name, summary=name, formula="-", direction="up", factory=f"odd_methods:{name}_metric", needs_tasks=True)
            for name in ("sorts", "clears", "unlocks")
        ),
        MetricSpec(name="raises", summary="raises", formula="-", direction="up", factory="odd_methods:raises_metric"),
        MetricSpec(name="leaves", summary="leaves", formula="-", direction="up", factory="odd_methods:leaves_metric"),
        MetricSpec(name="half", summary="half", formula="1 / 2", direction="up", factory="odd_methods:half"),
    )
}


def with_specs(catalogue: Catalogue, specs: Sequence[PluginSpec]) -> Catalogue:
    """The catalogue with further specs, as if a distribution ``odd 1.0`` provided them."""
    record = PluginRecord(distribution="odd", version="1.0", entry_point="odd", module="odd_methods", status="ok")
    entries = [entry for kind in KINDS for entry in catalogue.entries(kind)]
    added = [Entry(kind=next(k for k, t in KINDS.items() if isinstance(s, t)), name=s.name, spec=s, record=record) for s in specs]
    return Catalogue([*catalogue.records, record], [*entries, *added])
