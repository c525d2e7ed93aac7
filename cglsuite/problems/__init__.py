"""Problem adapters, one per level: the reason why one implementation of a method serves all levels."""

from __future__ import annotations

from cglsuite.problems.node import MemoryItems, NodeProblem

__all__ = ["MemoryItems", "NodeProblem"]
