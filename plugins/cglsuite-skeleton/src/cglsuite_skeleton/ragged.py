"""Sequences of different lengths, concatenated along the frame axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequences:
    """Joint positions of n recordings.

    Args:
        coordinates: float32 [C, V, M, F], C coordinates of V joints of M persons in all F frames, recording by recording. Frames come last
            because drawing frames then copies short runs from one cached row per joint, the fastest layout measured.
        lengths: int64 [n], frames per recording, at least 1; they sum to F.
        ids: int64 [n], the recordings' ids in the dataset, which determine their random draws.
    """

    coordinates: Tensor
    lengths: Tensor
    ids: Tensor

    def __len__(self) -> int:
        return int(self.lengths.shape[0])

    @property
    def n_values(self) -> int:
        """The number of values per joint and frame, M · C."""
        return int(self.coordinates.shape[0] * self.coordinates.shape[2])

    def take(self, positions: Tensor) -> Sequences:
        """Copy the recordings at ``positions`` (int64 [m]) without the data of the others."""
        lengths = self.lengths[positions]
        first = (self.lengths.cumsum(0) - self.lengths)[positions]
        ends = lengths.cumsum(0)
        total = int(ends[-1]) if len(ends) else 0
        frames = torch.arange(total) + (first - (ends - lengths)).repeat_interleave(lengths)
        return Sequences(coordinates=self.coordinates.index_select(-1, frames), lengths=lengths, ids=self.ids[positions])

    @classmethod
    def joined(cls, parts: Sequence[Sequences]) -> Sequences:
        """Concatenate the recordings of all parts in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            coordinates=torch.cat([p.coordinates for p in parts], dim=-1),
            lengths=torch.cat([p.lengths for p in parts]),
            ids=torch.cat([p.ids for p in parts]),
        )
