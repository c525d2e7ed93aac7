"""Task-free streams deliver batches that mix items of latent tasks, without task boundaries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.streams.stream import Stream
from cglsuite.streams.views import Batch


class TaskFreeStream(Stream):
    """An ordered stream of batches. The items of latent tasks are mixed, and task boundaries are never announced.

    Attributes:
        mixture: float64 [T, K], the share of each latent task at each step. counts: int64 [T, K], the number of items of each latent task
            that arrive at each step.
        items: int64 [T, B], the global ids of the items that arrive at each step.
        evaluations: the numbers of steps after which queries are made: 0, Δ, 2Δ, ..., T. Test items are queried each time. After the last
            step, the validation items are queried too. They serve as the score in searches and are in no other graph.
        content: SHA-256 (hex) of the sequence of items.
    """

    mixture: NDArray[np.float64]
    counts: Tensor
    items: Tensor
    evaluations: Sequence[int]
    content: str

    def __repr__(self) -> str:
        size = f"{self.n_steps} steps of {self.items.shape[1]} items"
        return f"<TaskFreeStream of {self.spec.name}: {size}, {len(self)} latent tasks, {self.n_outputs} outputs>"

    @property
    def n_steps(self) -> int:
        """The number of steps T."""
        return int(self.items.shape[0])

    @abstractmethod
    def make_batch(self, step: int) -> Batch:
        """Create the batch of labelled items that arrive at ``step``."""

    @abstractmethod
    def everything(self) -> Batch:
        """Return all training items as one labelled batch, for methods that declare the need ``past-views`` (upper bounds)."""

    @abstractmethod
    def shown(self, made: int) -> Tensor:
        """Return the outputs that have occurred in the first ``made`` steps: bool [C]."""

    def delivered(self) -> list[list[int]]:
        """Return the number of items of each latent task that arrive before each evaluation: [E + 1][K]."""
        total = torch.cat([torch.zeros(1, len(self), dtype=torch.int64), self.counts.cumsum(0)])
        rows: list[list[int]] = total[list(self.evaluations)].tolist()
        return rows

    def exposure(self) -> list[list[int]]:
        """Count how many training items of each latent task arrive 0, 1, 2, ... times in the whole stream: [K][1 + maximum]."""
        members = [self.members(k, "train") for k in range(len(self))]
        draws = torch.bincount(self.items.flatten(), minlength=1 + max(int(ids.max()) for ids in members))
        return [torch.bincount(draws[ids]).tolist() for ids in members]
