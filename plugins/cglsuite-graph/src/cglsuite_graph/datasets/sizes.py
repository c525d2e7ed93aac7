"""Dataset sizes, which loaders check. Separate from the descriptions so that these texts are not part of any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """The sizes that a loader must find; ``outputs`` are classes, labels or targets."""

    graphs: int
    outputs: int

    def __str__(self) -> str:
        return f"{self.graphs:,} graphs, {self.outputs} output{'s' if self.outputs > 1 else ''}"
