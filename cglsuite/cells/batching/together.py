"""Training several cells side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cglsuite.cells.batching.companies import MOST_SLOTS, company_of, side_by_side, why_alone
from cglsuite.cells.run import run_cell
from cglsuite.errors import NotApplicable, SpecError

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["run_cells"]


def run_cells(
    cells: Sequence[CellSpec],
    catalogue: Catalogue,
    store: Store,
    *,
    batch: int,
    progress: Callable[[int, int, int], None] | None = None,
    checkpoint_every_s: float | None = None,
) -> list[Record]:
    """The records of several cells, trained side by side in stacks of ``batch`` slots: :func:`cglsuite.cells.run_cell` for each.

    A record depends on its cell and on ``batch`` alone, not on the other cells or their number: bits included. It has another key than
    that of the cell trained by itself, and says so (``environment.numerics.arithmetic``). A cell that diverges or fails has a status of
    its own.

    Args:
        batch: the slots of a stack, at least 2.
        progress: called with (place among ``cells``, tasks learnt, tasks in all).
        checkpoint_every_s: see :func:`cglsuite.cells.run_cell`.

    Returns:
        a record per cell, in their order.

    Raises:
        SpecError: ``batch`` is out of range. NotApplicable: a cell cannot be batched; the message says why.
        UsageError: see :func:`cglsuite.cells.run_cell`.
        KeyboardInterrupt: passed on; checkpoints stay.
    """
    if not 2 <= batch <= MOST_SLOTS:
        raise SpecError(f"batch = {batch}: expected a number of slots from 2 to {MOST_SLOTS}")
    for cell in cells:
        if reason := why_alone(cell, catalogue):
            raise NotApplicable(f"{cell!r} cannot be batched: {reason}")
    stacked = [replace(cell, slots=batch) for cell in cells]
    companies: dict[str, list[int]] = {}
    for place, cell in enumerate(stacked):
        companies.setdefault(company_of(cell), []).append(place)

    def work(place: int) -> Callable[[], Record]:
        told = partial(progress, place) if progress is not None else None
        return partial(run_cell, stacked[place], catalogue, store, progress=told, checkpoint_every_s=checkpoint_every_s)

    records: dict[int, Record] = {}
    for places in companies.values():
        records |= dict(zip(places, side_by_side(stacked[places[0]], [work(place) for place in places]), strict=True))
    return [records[place] for place in range(len(cells))]
