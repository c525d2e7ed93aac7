"""A cell of a report, and which cells of one design belong together: those that trained in a stack (:func:`cglsuite.cells.run_cells`) stand
beside those that trained by themselves.

A stack adds up in another order, so results of the two agree in distribution and not to the bit. They are pooled only where that was
tested: two one-sided tests (:func:`cglsuite.stats.agreement`) put the difference of the average performances within the margin of the
ledger. Otherwise they stand apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.reports.results.performance import is_fraction

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.cells.records.record import Record

__all__ = ["Part", "ReportedCell", "by_arithmetic", "told_apart"]

_ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class ReportedCell:
    """One planned cell and its record, if the store has one.

    ``state``: the record's status (``done``, ``failed``, ...); ``missing``, ``n/a`` or ``waiting`` (for its search) if there is none.
    ``stale``: empty, or how the record's code or machine class differs from the current one.
    """

    planned: PlannedCell
    state: str
    reason: str = ""
    record: Record | None = None
    stale: str = ""

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.record is not None and self.record.done


@dataclass(frozen=True, kw_only=True)
class Part:
    """Cells over which a mean is meaningful.

    Args:
        said: what tells them from the other parts; empty if nothing does. pooled: what the test of equivalence said; empty if none was
            made.
    """

    cells: Sequence[ReportedCell]
    said: str = ""
    pooled: str = ""


def told_apart(members: Sequence[Sequence[ReportedCell]]) -> list[Part]:
    """The parts of one configuration, whose ``members`` are given by arithmetic, each of one code and class of machine.

    Stale results give way to current ones. A repetition that was run both ways counts once, as the cell by itself.
    """
    current = [some for some in members if not some[0].stale] or list(members)
    by_slots = dict(sorted((_slots(some), some) for some in current))
    first, *others = by_slots.items()
    parts, cells, tests = list[Part](), list(first[1]), list[str]()
    for slots, some in others:
        if said := _equivalent(first[1], some):
            seen = {_repetition(cell) for cell in cells}
            cells += [cell for cell in some if _repetition(cell) not in seen]
            tests.append(f"batched in {slots} slots: {said}")
        else:
            parts.append(Part(cells=some, said=f"batched in {slots} slots"))
    name = f"batched in {first[0]} slots" if parts and first[0] else ""
    return [Part(cells=cells, said=name, pooled="; ".join(tests)), *parts]


def by_arithmetic(cells: Sequence[ReportedCell]) -> list[list[ReportedCell]]:
    """The cells by the number of slots of their stacks; those that trained by themselves are one such group."""
    found: dict[int, list[ReportedCell]] = defaultdict(list)
    for cell in cells:
        if cell.record is not None:
            found[_slots([cell])].append(cell)
    return list(found.values())


def _slots(cells: Sequence[ReportedCell]) -> int:
    return int(_record(cells[0]).cell.get("slots") or 0)


def _record(cell: ReportedCell) -> Record:
    if cell.record is None:
        raise TypeError("a cell of a group has no record")
    return cell.record


def _repetition(cell: ReportedCell) -> tuple[Any, ...]:
    return tuple(sorted(_record(cell).cell["seeds"].items()))


def _equivalent(one: Sequence[ReportedCell], other: Sequence[ReportedCell]) -> str:
    """What the test found, if both sets of cells are equivalent; empty if they are not, or there are too few of them to tell."""
    from cglsuite.reference.values import LEAST_RUNS, MARGINS, own_mean
    from cglsuite.stats import Refused, agreement

    if min(len(one), len(other)) < LEAST_RUNS or not is_fraction(_record(one[0])):
        return ""
    margin = MARGINS["average_performance"]
    ours, theirs = (own_mean(_performances(some)) for some in (one, other))
    try:
        found = agreement(ours, theirs.mean, theirs.spread, len(other), margin=margin, alpha=_ALPHA)
    except Refused:
        return ""
    if found.p_equivalent > _ALPHA:
        return ""
    low, high = (-100.0 * end for end in (found.high, found.low))
    return (
        f"equivalent to those that trained by themselves: {100 * (1 - 2 * _ALPHA):.0f} % interval of the difference in average performance "
        f"{low:+.1f} to {high:+.1f}, within ±{100 * margin:.0f} points"
    )


def _performances(cells: Sequence[ReportedCell]) -> list[float]:
    return [float(np.nanmean(np.asarray(_record(cell).matrix[-1], dtype=np.float64))) for cell in cells]
