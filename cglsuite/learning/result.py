"""The results of a run and of its stages, and checkpoint storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from cglsuite.graphs.message import stored_bytes

Rows = dict[str, float]
"""Performance by task content: rows of a shared prefix are comparable across orders."""


@dataclass(kw_only=True)
class Scores:
    """The scores of one evaluation: rows of test and validation performance, hits and items per class, and a hash of the predictions."""

    rows: Rows = field(default_factory=dict)
    validation: Rows = field(default_factory=dict)
    hits: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    answers: str = ""


@dataclass(kw_only=True)
class Stage:
    """The results of one evaluation, saved with the state. ``timings_s`` count from the start of the stream, and include saving this
    stage once that is done."""

    scores: Scores
    curve: dict[str, Any]
    timings_s: dict[str, float]
    memory: dict[str, int | None]
    state: str

    def payload(self) -> dict[str, Any]:
        """Convert the stage to nested dicts for checkpoints. Curves and rows are not copied, because that takes longer than saving."""
        return {**vars(self), "scores": dict(vars(self.scores))}

    @classmethod
    def from_payload(cls, values: dict[str, Any]) -> Stage:
        """Restore a stage from its :meth:`payload`."""
        return cls(**{**values, "scores": Scores(**values["scores"])})


class Checkpoints(Protocol):
    """Storage for the states after each task, by prefix key."""

    def load(self, prefix: str) -> dict[str, Any] | None:
        """Load the payload saved under ``prefix``, or return ``None``."""

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Save a payload under a prefix."""

    def drop(self, prefix: str) -> None:
        """Remove a payload, if there is one."""


@dataclass(kw_only=True)
class RunResult:
    """The result of a run: float matrices [T + 1][T] (NaN without queries), curves, times, memory use, and fingerprints per task.

    ``timings_s`` cover the whole stream, including tasks that another run trained. Of these, ``trained_s`` were spent on the
    ``trained_tasks`` that this run trained itself, and ``covered_s`` on the first ``resumed_from_task`` tasks, covered by checkpoints. A
    task-free stream is resumed from an evaluation (``stream["resumed_from_evaluation"]``); its tasks are latent, and these two numbers
    are as many of them as that part of its steps would hold, rounded down where it was covered.

    ``parameters`` counts the parameters of the ``model`` when built, the additional numbers of the ``method`` (in its state and on its
    model, without its metered memory), and the bytes of these (``method_bytes``).

    ``stream`` is set for task-free streams: the ``evaluations`` to which the rows of the matrix belong, and the items of each latent task
    ``delivered`` by each of them. ``counters`` are the method's.
    """

    matrix: list[list[float]]
    validation_matrix: list[list[float]]
    per_class: list[float]
    curves: list[dict[str, Any]] = field(default_factory=list)
    timings_s: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int | None] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    fingerprints: list[dict[str, str]] = field(default_factory=list)
    resumed_from_task: int = 0
    trained_tasks: int = 0
    trained_s: float = 0.0
    covered_s: float = 0.0
    stream: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)


class Size(NamedTuple):
    """The size of a model: its number of parameters, and the bytes of its parameters and buffers."""

    parameters: int
    bytes: int

    @classmethod
    def of(cls, model: nn.Module) -> Size:
        """Compute the size of ``model``."""
        return cls(sum(p.numel() for p in model.parameters()), bytes_in([*model.parameters(), *model.buffers()]))


def numbers_in(value: Any) -> int:
    """Count the values in a piece of state."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return 0


def bytes_in(value: Any) -> int:
    """Count the bytes of the tensors in a piece of state."""
    if isinstance(value, Tensor):
        return stored_bytes(value)
    if isinstance(value, dict):
        return sum(map(bytes_in, value.values()))
    if isinstance(value, list):
        return sum(map(bytes_in, value))
    return 0
