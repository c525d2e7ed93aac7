"""The pre-trained weights that a cell's models start from, kept for other cells that share them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import digest
from cglsuite.cells.keys import execution
from cglsuite.specs import NO_PRETRAINING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.learning.pretraining.weights import Pretrained
    from cglsuite.streams import TaskFreeStream, TaskStream


_AFTERWARDS = ("scenario.class_order", "pretraining.transfer", "training.norm_statistics")
_MOST_KEPT = 4
_KEPT: OrderedDict[str, Pretrained] = OrderedDict()
"""The latest pre-trained weights of this process. They do not depend on the method, and a worker runs a scenario's cells in succession."""


def first_backbone(cell: CellSpec, catalogue: Catalogue, stream: TaskStream | TaskFreeStream) -> Callable[..., Any]:
    """The factory of a cell's models: the backbone's own, or one that starts models from pre-trained weights.

    Raises:
        what :func:`cglsuite.learning.pretraining.pretrain` raises.
    """
    make_backbone: Callable[..., Any] = catalogue.resolve(catalogue.get("backbone", cell.backbone))
    if cell.pretraining == NO_PRETRAINING:
        return make_backbone
    from cglsuite.learning.pretraining.weights import pretrain, transferred

    name = _identity(cell, catalogue, stream.tasks[0].content, stream.data_hash)
    if name not in _KEPT:
        weights = pretrain(
            stream,  # type: ignore[arg-type]  # a task-free stream has no pre-training: the cell would not have been resolved
            catalogue.resolve(catalogue.get("pretraining", cell.pretraining)),
            make_backbone,
            backbone_hyperparameters=cell.backbone_arguments,
            hyperparameters=cell.pretraining_hyperparameters,
            training=cell.scenario.training,
            init_seed=cell.seeds.init,
            device=cell.device,
        )
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.popitem(last=False)
        _KEPT[name] = weights
    _KEPT.move_to_end(name)
    return transferred(make_backbone, _KEPT[name], frozen=cell.pretraining_hyperparameters["transfer"] == "frozen")


def pretraining_facts(cell: CellSpec, catalogue: Catalogue, tasks: Sequence[Mapping[str, Any]], data_hash: str | None) -> dict[str, Any]:
    """A record's facts about pre-training: its name, epochs, losses, seconds and a digest of the weights; empty without one."""
    if cell.pretraining == NO_PRETRAINING or not tasks:
        return {}
    facts = _KEPT.get(_identity(cell, catalogue, tasks[0]["content"], data_hash))
    if facts is None:
        return {}
    return {
        "scheme": cell.pretraining,
        "epochs": len(facts.curve.loss),
        "best_epoch": facts.curve.best_epoch,
        "loss": [facts.curve.loss[0], facts.curve.loss[facts.curve.best_epoch]],
        "seconds": facts.seconds,
        "state": digest({name: value.flatten().tolist() for name, value in sorted(facts.state.items())}),
    }


def _identity(cell: CellSpec, catalogue: Catalogue, first: str, data_hash: str | None) -> str:
    """Everything that pre-trained weights depend on: the cell without its method, later tasks, their orders, and the use of the weights."""
    settings = {key: value for key, value in cell.configuration.items() if not key.startswith("method.") and key not in _AFTERWARDS}
    inputs = execution(cell, catalogue)
    inputs["sources"] = {role: source for role, source in inputs["sources"].items() if role != "method"}
    return digest([cell.scenario.builder, settings, cell.seeds.split, cell.seeds.init, cell.dtype, inputs, first, data_hash])
