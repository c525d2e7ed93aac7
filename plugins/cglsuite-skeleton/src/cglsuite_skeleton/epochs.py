"""Training inputs per epoch, cached per process.

One process runs many cells of a campaign that train on the same recordings with the same split seed but with other orders or methods, so
inputs are cached by (dataset, seed, recordings, epoch). Results never depend on the cache. Inputs for a GPU are cached in its memory, which
workers share, so that cache is small unless its size is set.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import quoted, real_number
from cglsuite.graphs import uploaded
from cglsuite_skeleton.preparation import Preparation, augmented, draws, prepared
from cglsuite_skeleton.ragged import Sequences

_VARIABLE = "CGLSUITE_AUGMENTATION_CACHE_MB"
_DEFAULT_MB = 1600
_OF_GPU = 32  # a worker's cache takes at most this part of a GPU's memory


class EpochCache:
    """A cache of the most recently used inputs, with a size in bytes that ``limit`` sets per device. Larger inputs are never cached."""

    def __init__(self, limit: Callable[[torch.device], int]) -> None:
        self.limit = limit
        self._kept: OrderedDict[tuple[str, int], Tensor] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int], make: Callable[[], Tensor]) -> Tensor:
        """Return the tensor cached under ``key``, or the result of ``make`` if there is none. Do not write to the tensor."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        size, limit = made.nbytes, self.limit(made.device)
        if size <= limit:
            with self._lock:
                if key not in self._kept:
                    self._kept[key] = made
                    self._bytes += size
                while self._bytes > limit:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return made

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def bytes(self) -> int:
        """Return the memory in use, in bytes."""
        return self._bytes


def _limit_bytes(device: torch.device) -> int:
    """The cache size that the environment allows; by default at most 1/32 of a GPU's memory.

    Raises:
        UsageError: the variable is not a number of megabytes.
    """
    given = os.environ.get(_VARIABLE, "").strip()
    if not given:
        of_gpu = torch.cuda.get_device_properties(device).total_memory // _OF_GPU if device.type == "cuda" else _DEFAULT_MB << 20
        return min(_DEFAULT_MB << 20, of_gpu)
    try:
        return int(real_number(given, 0, 1e9) * 2**20)
    except ValueError as error:
        raise UsageError(f"{_VARIABLE}={quoted(given)}: {error} (megabytes, such as {_DEFAULT_MB}; 0 disables the cache)") from None


KEPT = EpochCache(_limit_bytes)
"""The cache of this process."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingPart:
    """Recordings of the training set, with their preparation.

    Args:
        key: what determines the inputs of all epochs, for :data:`KEPT`; ``None`` to disable caching.
    """

    sequences: Sequences
    preparation: Preparation
    seed: int
    device: torch.device
    key: str | None = None

    @property
    def n_features(self) -> int:
        """The number F of features of a joint: persons × frames × coordinates."""
        return self.sequences.n_values * self.preparation.frames

    def plain(self) -> Tensor:
        """Return inputs without augmentation: float32 [V, n, M, T, C]."""
        own = self.sequences
        return self._tensor(prepared(own.coordinates.numpy(), own.lengths.numpy(), self.preparation.frames))

    def epoch(self, number: int) -> Tensor:
        """Return the inputs of epoch ``number``: float32 [V, n, M, T, C]."""
        return self._drawn(number) if self.key is None else KEPT.get((self.key, number), lambda: self._drawn(number))

    def _drawn(self, number: int) -> Tensor:
        own, how = self.sequences, self.preparation
        uniform = draws(self.seed, number, own.ids.numpy(), how.frames)
        return self._tensor(augmented(own.coordinates.numpy(), own.lengths.numpy(), uniform, how.max_angle))

    def _tensor(self, inputs: np.ndarray[Any, Any]) -> Tensor:
        return uploaded(torch.from_numpy(inputs), self.device)
