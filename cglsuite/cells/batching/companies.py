"""Which cells may train as one stacked model, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.cells.keys import sources
from cglsuite.cells.records.describe import foreign_code
from cglsuite.hashing import digest
from cglsuite.learning.reproducibility.numerics import applied, numerics_of
from cglsuite.specs import NO_PRETRAINING

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["MOST_SLOTS", "company_of", "side_by_side", "why_alone"]

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


def side_by_side(cell: CellSpec, works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do ``works``, each of which runs one cell like ``cell``, in one company; their results in order.

    Raises:
        the first error that ended one of them, once all have ended.
    """
    from cglsuite.learning.batched.company import Company

    with applied(numerics_of(cell.device, cell.threads)):  # members come and go, and none may restore what another one still needs
        outcomes = Company(cell.slots).run(works)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.result for outcome in outcomes]
