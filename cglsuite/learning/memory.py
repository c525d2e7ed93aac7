"""A replay memory that counts its items, edges and bytes and enforces a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from cglsuite.base.errors import BudgetError
from cglsuite.graphs import GraphSet
from cglsuite.problems import MemoryItems


class MeteredMemory:
    """Replay memory organised in named shelves that share one budget.

    Every item counts as one. A node stored with its surroundings counts as the number of nodes in them. A budget thus means the same for
    methods that store nodes and methods that store subgraphs. Extra tensors of items count as bytes but do not use up the budget.

    Args:
        budget: the maximum total number of items; ``None`` = unlimited but still metered.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._shelves: dict[str, MemoryItems] = {}
        self._free: set[str] = set()
        self.peak_items = 0
        self.peak_edges = 0
        self.peak_bytes = 0
        self.peak_extra_bytes = 0

    def put(self, shelf: str, items: MemoryItems, *, surroundings_free: bool = False) -> None:
        """Put ``items`` on a shelf, replacing its contents.

        Args:
            surroundings_free: charge only the centre nodes to the budget, as some benchmarks do. All nodes still count as memory use.

        Raises:
            BudgetError: if the memory would exceed the budget. Its contents stay unchanged.
        """
        free = self._free - {shelf} | ({shelf} if surroundings_free else set())
        others = {k: v for k, v in self._shelves.items() if k != shelf}
        charged = sum(len(v) if k in free else _size(v) for k, v in [*others.items(), (shelf, items)])
        if self.budget is not None and charged > self.budget:
            raise BudgetError(
                f"the memory would hold {charged} items; the scenario's budget is {self.budget} "
                "(scenario.memory_budget): keep fewer items per class or task"
            )
        self._shelves[shelf], self._free = items, free
        self.peak_items = max(self.peak_items, sum(map(_size, self._shelves.values())))
        self.peak_edges = max(self.peak_edges, sum(v.edges for v in self._shelves.values()))
        self.peak_bytes = max(self.peak_bytes, self.bytes())
        self.peak_extra_bytes = max(self.peak_extra_bytes, sum(v.extra_bytes for v in self._shelves.values()))

    def drop(self, shelf: str) -> None:
        """Remove a shelf and its items. Unknown names are ignored."""
        self._shelves.pop(shelf, None)
        self._free.discard(shelf)

    def __getitem__(self, shelf: str) -> MemoryItems:
        return self._shelves[shelf]

    def __contains__(self, shelf: str) -> bool:
        return shelf in self._shelves

    def __iter__(self) -> Iterator[str]:
        return iter(self._shelves)

    def __len__(self) -> int:
        """The number of stored items."""
        return sum(map(len, self._shelves.values()))

    def all(self) -> list[MemoryItems]:
        """Return the items of all shelves, in the order in which the shelves were first filled."""
        return list(self._shelves.values())

    def bytes(self) -> int:
        """Return the memory use in bytes."""
        return sum(v.bytes() for v in self._shelves.values())

    def usage(self) -> dict[str, int | None]:
        """Return the budget and the peak numbers of items, edges and bytes. A subgraph counts as one item per node.

        If items have extra tensors, ``extra_bytes`` is the peak number of bytes that they use.
        """
        usage = {"items": self.peak_items, "edges": self.peak_edges, "bytes": self.peak_bytes, "budget_items": self.budget}
        return usage | ({"extra_bytes": self.peak_extra_bytes} if self.peak_extra_bytes else {})

    def state(self) -> dict[str, Any]:
        """Return the state to save in checkpoints."""
        return {
            "shelves": {k: v.state() for k, v in self._shelves.items()},
            "free": sorted(self._free),
            "peak": [self.peak_items, self.peak_edges, self.peak_bytes, *([self.peak_extra_bytes] if self.peak_extra_bytes else [])],
        }

    def load_state(self, state: dict[str, Any], device: torch.device, like: GraphSet | None = None) -> None:
        """Restore the memory from :meth:`state`, with ids and labels on ``device``. Stored graphs are rebuilt in the type of ``like``."""
        self._shelves = {k: MemoryItems.from_state(v, device, like) for k, v in state["shelves"].items()}
        self._free = set(state["free"])
        self.peak_items, self.peak_edges, self.peak_bytes, self.peak_extra_bytes = [*state["peak"], 0][:4]


def _size(items: MemoryItems) -> int:
    return int(items.sizes.sum())
