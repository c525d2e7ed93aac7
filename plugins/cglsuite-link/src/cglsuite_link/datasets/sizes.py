"""Dataset sizes, which the loaders check. They are separate from the descriptions so that the texts do not enter any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """Sizes that a loader checks; the number of links is ``None`` if no source states it."""

    nodes: int
    links: int | None

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes" + ("" if self.links is None else f", {self.links:,} links")
