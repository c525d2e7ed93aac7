"""Dataset sizes, which the loaders check. They are separate from the descriptions so that the texts do not enter any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """Sizes that a loader checks; ``outputs`` counts classes, labels or targets."""

    graphs: int
    outputs: int

    def __str__(self) -> str:
        return f"{self.graphs:,} graphs, {self.outputs} output{'s' if self.outputs > 1 else ''}"
