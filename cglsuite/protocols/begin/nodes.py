"""BeGin at node level: whole graph at all times or snapshots of it, random orders, official splits, micro accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from cglsuite.protocols.begin.table import CITATION, TRAINING, method_defaults, noted
from cglsuite.protocols.shared import trained_outputs
from cglsuite.specs import ScenarioSpec, Value

__all__ = ["node_preset"]

_SEARCHED = ("training.lr", "training.weight_decay", "backbone.dropout")
_BACKBONE = (
    ("batch_norm", True),
    ("bias", False),
    ("dropout", 0.5),
    ("head", "linear"),
    ("input_dropout", None),
    ("layers", 3),
    ("normalisation", "symmetric"),
    ("width", 256),
)


def _method_defaults(budget: int, per_class: int, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """The protocol's table at node level: memories are read in the graph, and rehearsal has budgets of its own."""
    defaults = method_defaults(budget, n_tasks, version)
    defaults["gem"] |= {"method.neighbourhood": True}
    return defaults | {
        "er-gnn": {"method.swap_weights": True, "method.neighbourhood": True, "method.per_class": per_class, "method.sampler": "cm"},
        "continual-gnn": {"method.memory": budget, "method.neighbourhood": True, "method.fisher": "batch"},
        "replay": {"method.neighbourhood": True},
    }


def node_preset(
    dataset: str,
    setting: str,
    *,
    budget: int,
    n_tasks: int,
    n_classes: int,
    name: str | None = None,
    patience: int = 20,
    training: dict[str, object] | None = None,
    backbone: dict[str, object] | None = None,
    chosen: Mapping[str, Mapping[str, Value]] | None = None,
    note: str = "",
    version: int = 1,
    **switches: object,
) -> ScenarioSpec:
    """A preset of BeGin's protocol at node level.

    Args:
        budget: items in memory, for all methods alike; ER-GNN keeps ``budget // n_classes`` per class (in time-IL per class and task),
            GEM ``budget // n_tasks`` per task.
        n_tasks, n_classes: number of tasks and classes. name: stands for the dataset in the preset's name.
        training, backbone: values that differ from the protocol's.
        chosen: per method, hyper-parameters that a search chose where the protocol has a grid.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: of the scenario, where they differ from the family's.
    """
    domains = setting in ("domain-il", "time-il")
    defaults = _method_defaults(budget, max(budget // (n_classes * (n_tasks if setting == "time-il" else 1)), 1), n_tasks, version)
    for method, values in (chosen or {}).items():
        defaults[method] = {**defaults.get(method, {}), **values}
    classes = switches.get("classes_per_task", 2)
    what = {
        "domain-il": f"domains of {dataset} arrive in random order, whole graph at all times",
        "time-il": f"nodes of {dataset} arrive by time, with the edges among nodes already present",
    }.get(setting, f"classes of {dataset} arrive {classes} at a time in random order, whole graph at all times")
    family: dict[str, object] = {
        "classes_per_task": 2,
        "class_order": "native" if setting == "time-il" else "random",
        "edge_policy": "snapshot" if setting == "time-il" else "full",
        "feature_normalisation": "none" if domains else "row",
        "split": "official",
        "train_outputs": trained_outputs(setting),
        "performance": "micro",
        "memory_budget": None if domains else budget,
        "drop_last": not domains and n_classes % int(str(classes)) > 0,  # BeGin leaves these classes out
    }
    return ScenarioSpec(
        name=f"{name or dataset}/{setting}@begin-{version}",
        summary=f"{what} (BeGin)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=f"begin-{version}",
        searched=_SEARCHED,
        training=dataclasses.replace(TRAINING, plateau_patience=patience, **(training or {})),  # type: ignore[arg-type]
        backbone_hyperparameters=tuple(sorted((dict(_BACKBONE) | (backbone or {})).items())),  # type: ignore[arg-type]
        method_defaults=defaults,
        note=noted(note, version),
        **(family | switches),  # type: ignore[arg-type]
    )
