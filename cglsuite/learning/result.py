"""What a run leaves, and where the states along the way are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

__all__ = ["Checkpoints", "RunResult", "numbers_in"]


class Checkpoints(Protocol):
    """Where states after tasks are kept, by prefix key."""

    def load(self, prefix: str) -> dict[str, Any] | None:
        """The payload saved under ``prefix``, or ``None``."""

    def save(self, prefix: str, payload: dict[str, Any]) -> None:
        """Keep a payload."""

    def drop(self, prefix: str) -> None:
        """Let go of a payload; an absent one is no matter."""


@dataclass(kw_only=True)
class RunResult:
    """What a run leaves: float matrices [T + 1][T] (NaN where not asked), curves, times, memory, and fingerprints per task.

    ``timings_s`` are those of the whole stream, whoever trained its first tasks; ``trained_s`` is what the ``trained_tasks`` took that
    this run trained itself. ``stream`` is for task-free streams: the ``evaluations`` to which the rows of the matrix belong, and the
    items of each latent task ``delivered`` by each of them. ``counters`` are what the method counted.
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
    stream: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)


def numbers_in(value: Any) -> int:
    """How many numbers a piece of state holds."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return 0
