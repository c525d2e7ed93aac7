"""BeGin at link level: ratings to be classified, links to be predicted, as its code has them and as its paper has them."""

from __future__ import annotations

import dataclasses
from typing import Any

from cglsuite.protocols.begin.table import CITATION, TRAINING, method_defaults, noted
from cglsuite.protocols.shared import trained_outputs
from cglsuite.specs import LinkPredictionSpec, ScenarioSpec, TrainingSpec, Value

__all__ = ["link_classification_preset", "link_prediction_preset"]

_BUILDER = "cglsuite.streams.links:build_link_stream"
_SEARCHED = ("training.lr", "training.weight_decay", "backbone.predictor_dropout")
_CLASSIFICATION = dataclasses.replace(TRAINING, backbone="link-gcn")
_BACKBONE: tuple[tuple[str, Value], ...] = (
    ("batch_norm", True),
    ("bias", False),
    ("dropout", 0.0),
    ("input_dropout", 0.0),
    ("layers", 3),
    ("normalisation", "symmetric"),
    ("predictor_dropout", 0.0),
    ("predictor_layers", 3),
    ("width", 256),
)


def _prediction(stop_ratio: float) -> TrainingSpec:
    return dataclasses.replace(
        _CLASSIFICATION,
        epochs=200,
        batch_size=32_768,
        plateau_patience=10,
        stop_ratio=stop_ratio,
        monitor="validation-performance",
    )


def _method_defaults(budget: int | None, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """The protocol's table at link level. Pairs in memory are read in the graph: standing alone they would teach batch norm the
    statistics of nodes without neighbours."""
    defaults = method_defaults(budget, n_tasks, version)
    defaults["gem"] |= {"method.neighbourhood": True}
    return defaults | {"replay": {"method.neighbourhood": True}}


def link_classification_preset(
    dataset: str, setting: str, *, n_tasks: int, budget: int, note: str = "", version: int = 1, **switches: Any
) -> ScenarioSpec:
    """A preset of link classification: two classes at a time, or steps of time whose label is the sign.

    Args:
        n_tasks: how many tasks the dataset forms. budget: items in memory, for all methods alike.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: of the scenario, where they differ from the family's.
    """
    time = setting == "time-il"
    family: dict[str, Any] = {
        "class_order": "native" if time else "random",
        "edge_policy": "snapshot" if time else "full",
        "labels": "multi" if time else "single",
        "performance": "roc-auc" if time else "micro",
        "task_key": "step" if time else None,
        "dataset_hyperparameters": (("labels", "sign"),) if time else (),
        "split": "random",
    }
    what = (
        f"directed links of {dataset} arrive by time, classified by sign, with the edges among those present"
        if time
        else f"classes of directed links of {dataset} arrive two at a time in random order, whole graph at all times"
    )
    return ScenarioSpec(
        name=f"{dataset}/{setting}@begin-{version}",
        summary=f"{what} (BeGin)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=f"begin-{version}",
        level="LC",
        builder=_BUILDER,
        classes_per_task=2,
        undirected=False,
        split_ratio=(0.8, 0.1, 0.1),
        train_outputs=trained_outputs(setting),
        memory_budget=budget,
        searched=_SEARCHED,
        training=_CLASSIFICATION,
        backbone_hyperparameters=_BACKBONE,
        method_defaults=_method_defaults(budget, n_tasks, version),
        note=noted(note, version),
        **(family | switches),
    )


def link_prediction_preset(
    dataset: str,
    setting: str,
    *,
    key: str,
    n_tasks: int,
    name: str | None = None,
    paper: bool = False,
    budget: int | None = None,
    stop_ratio: float = 1e-2,
    hits_k: int = 50,
    negatives: int | None = None,
    note: str = "",
    version: int = 1,
    **switches: Any,
) -> ScenarioSpec:
    """A preset of link prediction: domains in random order, or steps of time, ranked against pairs without a link.

    Args:
        key: what tells tasks apart. n_tasks: how many tasks the dataset forms.
        paper: as the paper has it: what carries messages are base edges and the task's own links (and in time-IL those of earlier tasks),
            without those that a step predicts; else as its code has it: the training links of all domains, or all up to the task's time.
        budget: items in memory, for all methods alike.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`; as the paper has it, there is the first only.
        hits_k: the K of Hits@K. negatives: pairs without a link that links are ranked against; ``None`` = as many as test items.
        switches: of the scenario, where they differ from the family's.
    """
    time, protocol = setting == "time-il", "begin-paper-1" if paper else f"begin-{version}"
    arriving = f"links of {name or dataset} arrive by {key}" + ("" if time else " in random order")
    edges = {
        (True, False): "messages along training links up to then",
        (True, True): "messages along training links up to then but those to be predicted",
        (False, False): "messages along the training links of all domains",
        (False, True): "messages along base edges and the task's own training links but those to be predicted",
    }[time, paper]
    family: dict[str, Any] = {
        "class_order": "native" if time else "random",
        "edge_policy": "snapshot" if time else "none" if paper else "full",
        "split": "random",
        "split_ratio": (0.8, 0.1, 0.1),
    }
    return ScenarioSpec(
        name=f"{name or dataset}/{setting}@{protocol}",
        summary=f"{arriving}, {edges} (BeGin{', as its paper has it' if paper else ''})",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=protocol,
        level="LP",
        builder=_BUILDER,
        labels="multi",
        performance="hits",
        level_spec=LinkPredictionSpec(hits_k=hits_k, negatives=negatives, exclude_targets=paper),
        task_key=key,
        train_outputs="seen",
        memory_budget=budget,
        searched=_SEARCHED,
        training=_prediction(stop_ratio),
        backbone_hyperparameters=_BACKBONE,
        method_defaults=_method_defaults(budget, n_tasks, version),
        note=note if paper else noted(note, version),
        **(family | switches),
    )
