"""Accelerator operations that do not block the host: asynchronous copies, and counts of known size."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

_LARGEST = 2**26  # bytes; torch never gives pinned memory back, and a larger copy takes longer than the wait


def uploaded(x: Tensor, device: str | torch.device) -> Tensor:
    """Copy ``x`` (strided, any shape and dtype) to ``device``, or return ``x`` itself if it is already there.

    A CPU tensor is copied to an accelerator through pinned memory, so the copy is queued and the host continues. With pageable memory, the
    host would wait until the device has finished all previous work.
    """
    there = torch.device(device)
    if x.device.type != "cpu" or there.type == "cpu" or x.nbytes > _LARGEST or not _can_pin():
        return x.to(there)
    return x.pin_memory().to(there, non_blocking=True)


def counted(values: Tensor, n: int) -> Tensor:
    """Count each of 0, ..., n - 1 in ``values`` (int64 [m], no other values) without waiting for a GPU, unlike ``bincount``: int64 [n]."""
    if values.device.type == "cpu":
        return torch.bincount(values, minlength=n)
    return torch.zeros(n, dtype=torch.int64, device=values.device).index_add_(0, values, torch.ones_like(values))


class Sent(NamedTuple):
    """A CPU tensor together with its copy on an accelerator, so that its values can be read without waiting for the accelerator."""

    here: Tensor
    there: Tensor
    version: int

    @classmethod
    def of(cls, x: Tensor, device: str | torch.device) -> Sent:
        """Pair ``x`` with its copy on ``device``."""
        there = uploaded(x, device)
        return cls(x, there, there._version)

    @property
    def equal(self) -> bool:
        """Whether the copy is unchanged since it was created."""
        return self.there._version == self.version


@cache
def _can_pin() -> bool:
    """Return whether torch can pin memory for this machine's accelerator."""
    try:
        torch.zeros(1).pin_memory()
    except RuntimeError:
        return False
    return True
