"""A memory whose every item, edge and byte is counted, and whose budget holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from cglsuite.errors import BudgetError
from cglsuite.graphs import GraphSet
from cglsuite.problems import MemoryItems

__all__ = ["MeteredMemory"]


class MeteredMemory:
    """Named shelves of memory items under one budget.

    Args:
        budget: items in all; ``None`` = unlimited, metered all the same.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self._shelves: dict[str, MemoryItems] = {}
        self.peak_items = 0
        self.peak_bytes = 0

    def put(self, shelf: str, items: MemoryItems) -> None:
        """Place ``items`` on a shelf (replacing what was there).

        Raises:
            BudgetError: the memory would hold more items than the budget; it is left as it was.
        """
        others = sum(len(v) for k, v in self._shelves.items() if k != shelf)
        if self.budget is not None and others + len(items) > self.budget:
            raise BudgetError(
                f"the memory would hold {others + len(items)} items; the scenario's budget is {self.budget} "
                "(scenario.memory_budget): keep fewer items per class or task"
            )
        self._shelves[shelf] = items
        self.peak_items = max(self.peak_items, others + len(items))
        self.peak_bytes = max(self.peak_bytes, self.bytes())

    def drop(self, shelf: str) -> None:
        """Empty a shelf."""
        self._shelves.pop(shelf, None)

    def __getitem__(self, shelf: str) -> MemoryItems:
        return self._shelves[shelf]

    def __contains__(self, shelf: str) -> bool:
        return shelf in self._shelves

    def __iter__(self) -> Iterator[str]:
        return iter(self._shelves)

    def __len__(self) -> int:
        """Number of items held."""
        return sum(map(len, self._shelves.values()))

    def all(self) -> list[MemoryItems]:
        """The items of all shelves, in the order in which the shelves were first filled."""
        return list(self._shelves.values())

    def bytes(self) -> int:
        """Bytes held."""
        return sum(v.bytes() for v in self._shelves.values())

    def usage(self) -> dict[str, int | None]:
        """Items, edges and bytes at their peak, and the budget. Items carry no edges of their own so far."""
        return {"items": self.peak_items, "edges": 0, "bytes": self.peak_bytes, "budget_items": self.budget}

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"shelves": {k: v.state() for k, v in self._shelves.items()}, "peak": [self.peak_items, self.peak_bytes]}

    def load_state(self, state: dict[str, Any], device: torch.device, like: GraphSet | None = None) -> None:
        """Go back to :meth:`state`, with ids and labels on ``device``; kept graphs are rebuilt as sets ``like`` this one."""
        self._shelves = {k: MemoryItems.from_state(v, device, like) for k, v in state["shelves"].items()}
        self.peak_items, self.peak_bytes = state["peak"]
