"""Dataset sizes, which the loaders check. They are separate from the descriptions so that the texts do not enter any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """Sizes that a loader checks."""

    sequences: int
    frames: int
    joints: int
    classes: int

    def __str__(self) -> str:
        return f"{self.sequences:,} sequences, {self.frames:,} frames, {self.joints} joints, {self.classes} classes"
