"""Dataset sizes, which loaders check. Separate from the descriptions so that these texts are not part of any key."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """The sizes that a loader must find; ``None`` if no source gives the number of links."""

    nodes: int
    links: int | None

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes" + ("" if self.links is None else f", {self.links:,} links")
