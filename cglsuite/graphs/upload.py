"""Transfers that do not block the host on an accelerator: queued copies, and counts of known size."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

_LARGEST = 2**26  # bytes; torch never gives pinned memory back, and a larger copy takes longer than the wait


def uploaded(x: Tensor, device: str | torch.device) -> Tensor:
    """Copy ``x`` (strided, any shape and dtype) to ``device``, or return ``x`` itself if it is already there.

    A tensor on the CPU reaches an accelerator through pinned memory: the copy is queued, and the host goes on. From ordinary memory it
    would first wait until the device has finished everything before.
    """
    there = torch.device(device)
    if x.device.type != "cpu" or there.type == "cpu" or x.nbytes > _LARGEST or not _can_pin():
        return x.to(there)
    return x.pin_memory().to(there, non_blocking=True)


def counted(values: Tensor, n: int) -> Tensor:
    """How often each of 0, ..., n - 1 occurs in ``values`` (int64 [m], nothing else): int64 [n]; unlike ``bincount``, without waiting for a
    GPU."""
    if values.device.type == "cpu":
        return torch.bincount(values, minlength=n)
    return torch.zeros(n, dtype=torch.int64, device=values.device).index_add_(0, values, torch.ones_like(values))


class Sent(NamedTuple):
    """A CPU tensor and its copy on an accelerator, so that its values are known without waiting for the accelerator."""

    here: Tensor
    there: Tensor
    version: int

    @classmethod
    def of(cls, x: Tensor, device: str | torch.device) -> Sent:
        """``x`` and its copy on ``device``."""
        there = uploaded(x, device)
        return cls(x, there, there._version)

    @property
    def equal(self) -> bool:
        """Return whether the copy is unchanged since it was created."""
        return self.there._version == self.version


@cache
def _can_pin() -> bool:
    """Return whether torch can pin memory for this machine's accelerator."""
    try:
        torch.zeros(1).pin_memory()
    except RuntimeError:
        return False
    return True
