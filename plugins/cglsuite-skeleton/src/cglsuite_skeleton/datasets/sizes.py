"""Dataset sizes, which loaders check. Separate from the descriptions so that these texts are not part of any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """The sizes that a loader must find."""

    sequences: int
    frames: int
    joints: int
    classes: int

    def __str__(self) -> str:
        return f"{self.sequences:,} sequences, {self.frames:,} frames, {self.joints} joints, {self.classes} classes"
