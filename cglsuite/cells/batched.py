"""Which cells may train as one stacked model, which of them belong together, and the call that trains them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cglsuite.cells.keys import sources
from cglsuite.cells.records.describe import foreign_code
from cglsuite.errors import NotApplicable, SpecError
from cglsuite.hashing import digest
from cglsuite.specs import NO_PRETRAINING

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["MOST_SLOTS", "company_of", "run_cells", "side_by_side", "why_alone"]

MOST_SLOTS = 64
"""Of one stack: beyond, its matrices leave every cache, and nothing is gained."""
_STACKED = ("cglsuite.backbones.convolutional:gcn", "cglsuite.backbones.convolutional:gin")
_BY_SEED = ("random", "all-tasks", "random-tasks", "latin-tasks", "latin-classes")
"""Values of ``scenario.class_order`` with which the order seed chooses the classes of tasks."""
_OWN_ORDER = ("scenario.class_order",)
_RATES = ("training.lr", "training.weight_decay")


def why_alone(cell: CellSpec, catalogue: Catalogue) -> str:
    """Why a cell cannot be batched; empty if it can. It depends on nothing but the cell."""
    method, scenario, training = catalogue.method(cell.method), cell.scenario, cell.scenario.training
    if not method.batchable:
        return f"method {cell.method!r} is not batchable"
    needed = {} if method.batchable is True else method.batchable
    for name, value in needed.items():
        if cell.method_hyperparameters.get(name) != value:
            return f"method {cell.method!r} is batchable only with method.{name} = {value!r}"
    if foreign := foreign_code(sources(cell, catalogue)):
        return f"code of {foreign} takes part, which has a process of its own"
    if scenario.task_free is not None:
        return "a task-free stream has no stacked form"
    if (scenario.level, scenario.labels) != ("NC", "single"):
        return f"level {scenario.level} with {scenario.labels} labels has no stacked form; expected nodes with single labels"
    if catalogue.backbone(cell.backbone).factory not in _STACKED:
        return f"backbone {cell.backbone!r} has no stacked form; expected gcn or gin"
    if cell.pretraining != NO_PRETRAINING:
        return "pre-trained weights have no stacked form"
    if training.batch_size is not None or training.fan_out:
        return "mini-batches have no stacked form (training.batch_size, training.fan_out)"
    if scenario.edge_policy != "full" and (scenario.class_order in _BY_SEED or "|" in str(scenario.class_order)):
        return f"cells of other orders have other graphs (scenario.edge_policy = {scenario.edge_policy})"
    return ""


def company_of(cell: CellSpec) -> str:
    """A name that cells have in common which train well together: they differ in seeds, rates and real settings of the method, and in the
    order of classes where their graph is the same."""
    apart = set(_RATES) | {f"method.{name}" for name, value in cell.method_hyperparameters.items() if isinstance(value, float)}
    if cell.scenario.edge_policy == "full":
        apart |= set(_OWN_ORDER)
    settings = {name: value for name, value in cell.configuration.items() if name not in apart}
    names = [cell.scenario.name, cell.scenario.builder, cell.method, cell.backbone, cell.device, cell.threads, cell.slots]
    return digest([*names, settings])


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
    from cglsuite.cells.run import run_cell

    stacked = [replace(cell, slots=batch) for cell in cells]
    companies: dict[str, list[int]] = {}
    for place, cell in enumerate(stacked):
        companies.setdefault(company_of(cell), []).append(place)

    def work(place: int) -> Callable[[], Record]:
        told = partial(progress, place) if progress is not None else None
        return partial(run_cell, stacked[place], catalogue, store, progress=told, checkpoint_every_s=checkpoint_every_s)

    records: dict[int, Record] = {}
    for places in companies.values():
        for start in range(0, len(places), batch):
            chosen = places[start : start + batch]
            records |= dict(zip(chosen, side_by_side(stacked[chosen[0]], [work(place) for place in chosen]), strict=True))
    return [records[place] for place in range(len(cells))]


def side_by_side(cell: CellSpec, works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do ``works``, each of which runs one cell like ``cell``, in one company; their results in order.

    Raises:
        the first error that ended one of them, once all have ended.
    """
    from cglsuite.cells.run import numerics
    from cglsuite.learning.batched.company import Company

    with numerics(cell):  # members come and go, and none may restore what another one still needs
        outcomes = Company(cell.slots).run(works)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.result for outcome in outcomes]
