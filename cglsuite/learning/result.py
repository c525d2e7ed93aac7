"""The results of a run and its stages, and the interface for storing checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from cglsuite.graphs.message import stored_bytes

Rows = dict[str, float]
"""Performance by task content, so that orders with a common prefix of tasks can share rows."""


@dataclass(kw_only=True)
class Scores:
    """The scores of one evaluation: test and validation performance by task, hits and items per class, and a hash of the predictions."""

    rows: Rows = field(default_factory=dict)
    validation: Rows = field(default_factory=dict)
    hits: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    answers: str = ""


@dataclass(kw_only=True)
class Stage:
    """The results of one evaluation, saved with the state.

    ``timings_s`` count from the start of the stream. They include the time for saving this stage, which is added after saving.
    """

    scores: Scores
    curve: dict[str, Any]
    timings_s: dict[str, float]
    memory: dict[str, int | None]
    state: str

    def payload(self) -> dict[str, Any]:
        """Convert the stage to nested dicts for checkpoints. Curves and rows are not copied, since copying takes longer than saving."""
        return {**vars(self), "scores": dict(vars(self.scores))}

    @classmethod
    def from_payload(cls, values: dict[str, Any]) -> Stage:
        """Create a stage from its :meth:`payload`."""
        return cls(**{**values, "scores": Scores(**values["scores"])})


class Checkpoints(Protocol):
    """Interface for storing a run's states by the key of the task prefix."""

    def load(self, prefix: str) -> dict[str, Any] | None:
        """Return the payload saved under ``prefix``, or ``None`` if there is none."""

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Save ``payload`` under ``prefix``."""

    def drop(self, prefix: str) -> None:
        """Remove the payload saved under ``prefix``, if there is one."""


@dataclass(kw_only=True)
class RunResult:
    """The result of a run: performance matrices, training curves, times, memory use and fingerprints.

    The matrices are float [T + 1][T], with NaN for tasks that were not queried.

    ``timings_s`` cover the whole stream, including tasks trained by another run. ``trained_s`` is the time that this run spent on the
    ``trained_tasks`` it trained itself. ``covered_s`` is the time of the first ``resumed_from_task`` tasks, which were loaded from
    checkpoints. A task-free stream is resumed from an evaluation (``stream["resumed_from_evaluation"]``). Its tasks are latent, so the two
    task counts are in proportion to the number of steps, and the count of resumed tasks is rounded down.

    ``parameters`` counts the parameters of the newly built ``model``, the additional numbers of the ``method`` (in its state and on its
    model, without its metered memory), and the bytes of those numbers (``method_bytes``).

    ``stream`` is set for task-free streams. It contains the ``evaluations`` to which the rows of the matrix belong, and the number of items
    of each latent task that were ``delivered`` before each of them. ``counters`` are those that the method returned.
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
    """The size of a model: the number of its parameters, and the memory used by parameters and buffers in bytes."""

    parameters: int
    bytes: int

    @classmethod
    def of(cls, model: nn.Module) -> Size:
        """Compute the size of ``model``."""
        return cls(sum(p.numel() for p in model.parameters()), bytes_in([*model.parameters(), *model.buffers()]))


def numbers_in(value: Any) -> int:
    """Count the elements of all tensors in a nested state."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return 0


def bytes_in(value: Any) -> int:
    """Return the memory use of all tensors in a nested state, in bytes."""
    if isinstance(value, Tensor):
        return stored_bytes(value)
    if isinstance(value, dict):
        return sum(map(bytes_in, value.values()))
    if isinstance(value, list):
        return sum(map(bytes_in, value))
    return 0
