"""Manage batch-norm running statistics, which can carry information from one task to another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class NormStatistics:
    """Apply the policy ``training.norm_statistics`` during a run.

    ``shared``: all tasks update the same statistics. ``frozen``: each task uses the statistics from its start unchanged, even in training.
    ``per-task``: the statistics are reset for every task. A query that names its task is normalised with that task's statistics (the latest
    ones if the task was not learnt), and any other query with the latest ones.
    """

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.of_task: dict[int, dict[str, Tensor]] = {}
        """The statistics that each task ended with, by position (``per-task`` only)."""
        self._frozen: list[str] = []

    def begin(self, model: nn.Module) -> None:
        """Prepare the norms of ``model`` for a new task."""
        norms = dict(_norms(model))
        if self.policy == "frozen":  # a model drawn for this task has no statistics yet
            self._frozen = [n for n, m in norms.items() if m.num_batches_tracked is not None and int(m.num_batches_tracked) > 0]
        elif self.policy == "per-task":
            for module in norms.values():
                module.reset_running_stats()

    def train(self, model: nn.Module) -> None:
        """Put ``model`` into training mode, except its frozen norms."""
        model.train()
        for name in self._frozen:
            model.get_submodule(name).eval()

    def end(self, position: int, model: nn.Module) -> None:
        """Save the statistics of the task at ``position`` after training on it (``per-task`` only)."""
        if self.policy == "per-task":
            self.of_task[position] = {n: b.clone() for n, b in _statistics(model)}

    @contextmanager
    def used(self, position: int, model: nn.Module) -> Iterator[None]:
        """Use the statistics of the task at ``position`` within the ``with`` block."""
        latest = {n: b.clone() for n, b in _statistics(model)}
        _put(model, self.of_task.get(position, latest))
        try:
            yield
        finally:
            _put(model, latest)

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Return the state to save in checkpoints."""
        return {str(k): kept for k, kept in self.of_task.items()}

    def restore(self, state: dict[str, dict[str, Tensor]], device: torch.device) -> None:
        """Restore the statistics from :meth:`state`."""
        self.of_task = {int(k): {n: b.to(device) for n, b in kept.items()} for k, kept in state.items()}


def _norms(model: nn.Module) -> Iterator[tuple[str, _BatchNorm]]:
    return ((n, m) for n, m in model.named_modules() if isinstance(m, _BatchNorm) and m.track_running_stats)


def _statistics(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, module in _norms(model):
        for buffer in _STATISTICS:
            value = getattr(module, buffer)
            if value is not None:
                yield f"{name}.{buffer}", value


def _put(model: nn.Module, values: dict[str, Tensor]) -> None:
    for name, current in _statistics(model):
        current.copy_(values[name])
