"""Few rows that cover many pairs: what stands for a full grid of methods and streams."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["covering"]
Row = TypeVar("Row")


def covering(rows: Sequence[Row], pairs: Callable[[Row], set[Hashable]]) -> list[Row]:
    """A subset of ``rows`` that has every pair which some row has: greedily, the row with most that is still missing first.

    The result depends on the rows and their order alone, and a new row whose pairs are new enters by itself.
    """
    of = [pairs(row) for row in rows]
    missing, chosen = set[Hashable]().union(*of), set[int]()
    while missing:
        best = max(range(len(rows)), key=lambda i: (len(of[i] & missing), -i))
        chosen.add(best)
        missing -= of[best]
    return [rows[i] for i in sorted(chosen)]
