"""Presets for BeGin's protocol (Ko et al. 2025) at every problem level, and the settings that they share.

- Node level: the whole graph at all times or snapshots of it, random orders, official splits, micro accuracy.
- Link level: link classification (ratings) and link prediction, as in BeGin's code and as in its paper.
- Graph level: random class orders, official or random splits, a plateau schedule on validation loss, micro accuracy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cglsuite.backbones import graph_hyperparameters as graphs
from cglsuite.protocols.shared import trained_outputs
from cglsuite.specs import BackboneSpec, Citation, LinkPredictionSpec, ScenarioSpec, TrainingSpec, Value

_NODE_SEARCHED = ("training.lr", "training.weight_decay", "backbone.dropout")
_NODE_BACKBONE = (
    ("batch_norm", True),
    ("bias", False),
    ("dropout", 0.5),
    ("head", "linear"),
    ("input_dropout", None),
    ("layers", 3),
    ("normalisation", "symmetric"),
    ("width", 256),
)


def _node_defaults(budget: int, per_class: int, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """Return the protocol's method defaults at node level. Memory items stay in the graph, and rehearsal methods have their own budgets."""
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
    selected: Mapping[str, Mapping[str, Value]] | None = None,
    note: str = "",
    version: int = 1,
    **switches: object,
) -> ScenarioSpec:
    """Build a preset for BeGin's protocol at node level.

    Args:
        budget: number of items in memory, the same for all methods. ER-GNN stores ``budget // n_classes`` items per class (in time-IL, per
            class and task), and GEM stores ``budget // n_tasks`` items per task.
        n_tasks, n_classes: numbers of tasks and classes. name: replaces the name of the dataset in the preset's name.
        training, backbone: values that differ from the protocol's.
        selected: for each method, the hyperparameters that a search selected where the protocol has a grid.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: scenario settings that differ from those of the other presets.
    """
    domains = setting in ("domain-il", "time-il")
    defaults = _node_defaults(budget, max(budget // (n_classes * (n_tasks if setting == "time-il" else 1)), 1), n_tasks, version)
    for method, values in (selected or {}).items():
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
        "drop_last": not domains and n_classes % int(str(classes)) > 0,  # BeGin omits these classes
    }
    return ScenarioSpec(
        name=f"{name or dataset}/{setting}@begin-{version}",
        summary=f"{what} (BeGin)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=f"begin-{version}",
        searched=_NODE_SEARCHED,
        training=dataclasses.replace(TRAINING, plateau_patience=patience, **(training or {})),  # type: ignore[arg-type]
        backbone_hyperparameters=tuple(sorted((dict(_NODE_BACKBONE) | (backbone or {})).items())),  # type: ignore[arg-type]
        method_defaults=defaults,
        note=noted(note, version),
        **(family | switches),  # type: ignore[arg-type]
    )


CITATION = Citation(
    authors=("Ko", "others"),
    title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
    year=2025,
    journal="ACM TIST 16(1)",
)
"""The paper."""
TRAINING = TrainingSpec(
    backbone="gcn",
    lr=1e-3,
    weight_decay=0.0,
    epochs=1000,
    plateau_patience=20,
    plateau_factor=0.1,
    stop_ratio=1e-3,
    monitor="validation-loss",
    restore_best=True,
)
"""Adam with a plateau schedule on the validation loss, keeping the best weights. Epochs, patience and batch size depend on the level."""


VERSIONS = (1, 2)
"""Versions of the presets. Where the first uses methods as originally published, the second follows the benchmark's code."""
FIRST_NOTE = "begin-2 follows the published code where this version does not: TWP as implemented."
"""The remark about the second version in the notes of first-version presets."""
_TWP: dict[str, Value] = {
    "method.lambda_l": 1e4,
    "method.lambda_t": 1e3,
    "method.beta": 0.01,
    "method.detach_beta": True,
    "method.topology_accumulates": True,
    "method.attention_norm": "norm",
    "method.attention_from": "degree-normalised",
    "method.double_loss": True,
}


def noted(note: str, version: int) -> str:
    """Return the note for a preset. Notes of the first version also mention the second one."""
    return " ".join(filter(None, (note, FIRST_NOTE if version == 1 else "")))


def method_defaults(budget: int | None, n_tasks: int, version: int = 1) -> dict[str, dict[str, Value]]:
    """Return the protocol's hyperparameters for each method. If the protocol has a grid for one, return the last value of the grid.

    Args:
        budget: number of items in memory; ``None`` = no limit. GEM stores ``budget // n_tasks`` items per task, but at least one.
        n_tasks: number of tasks.
        version: see :data:`VERSIONS`. The second version has TWP as implemented. The benchmark's script searches λ_t = 100 and 1000 (the
            default of 1e4 in its code is not used).
    """
    share: dict[str, Value] = {} if budget is None else {"method.per_task": max(budget // n_tasks, 1)}
    return {
        "ewc": {"method.fisher": "batch", "method.lambda": 1e4},
        "lwf": {"method.lambda": 1.0, "method.temperature": 2.0},
        "mas": {"method.importance": "batch", "method.lambda": 1.0},
        "twp": {"method.lambda_l": 1e4, "method.lambda_t": 100.0, "method.beta": 0.01} if version == 1 else dict(_TWP),
        "gem": {"method.margin": 0.5, **share},
        "packnet": {"method.as_begin": True},
        "piggyback": {"method.as_begin": True, "method.threshold": 0.01},
        "hat": {"method.as_begin": True, "training.norm_statistics": "shared"},
        "pi-gnn": {"method.beta": 1.0, **share},
        "cat": {"method.as_begin": True, **share},
    }


_LINK_BUILDER = "cglsuite.streams.links:build_link_stream"
_LINK_SEARCHED = ("training.lr", "training.weight_decay", "backbone.predictor_dropout")
_CLASSIFICATION = dataclasses.replace(TRAINING, backbone="link-gcn")
_LINK_BACKBONE: tuple[tuple[str, Value], ...] = (
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


def _link_defaults(budget: int | None, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """Return the protocol's method defaults at link level. Memory pairs stay in the graph, since isolated nodes would distort batch
    norm."""
    defaults = method_defaults(budget, n_tasks, version)
    defaults["gem"] |= {"method.neighbourhood": True}
    return defaults | {"replay": {"method.neighbourhood": True}}


def link_classification_preset(
    dataset: str, setting: str, *, n_tasks: int, budget: int, note: str = "", version: int = 1, **switches: Any
) -> ScenarioSpec:
    """Build a preset for link classification, in which tasks are pairs of classes or time steps with signed links.

    Args:
        n_tasks: number of tasks in the dataset. budget: number of items in memory, the same for all methods.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: scenario settings that differ from those of the other presets.
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
        builder=_LINK_BUILDER,
        classes_per_task=2,
        undirected=False,
        split_ratio=(0.8, 0.1, 0.1),
        train_outputs=trained_outputs(setting),
        memory_budget=budget,
        searched=_LINK_SEARCHED,
        training=_CLASSIFICATION,
        backbone_hyperparameters=_LINK_BACKBONE,
        method_defaults=_link_defaults(budget, n_tasks, version),
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
    """Build a preset for link prediction, in which tasks are domains in random order or time steps.

    Args:
        key: the attribute that defines the tasks. n_tasks: number of tasks in the dataset.
        paper: whether messages follow the paper or its code. In the paper, base edges and the task's own links (in time-IL, also those of
            earlier tasks) carry messages, except for the links that a step predicts. In its code, the training links of all domains do, or
            all of those up to the task's time.
        budget: number of items in memory, the same for all methods.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`. With ``paper``, only the first exists.
        hits_k: the K of Hits@K. negatives: number of unlinked pairs against which links are ranked; ``None`` = the number of test items.
        switches: scenario settings that differ from those of the other presets.
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
        builder=_LINK_BUILDER,
        labels="multi",
        performance="hits",
        level_spec=LinkPredictionSpec(hits_k=hits_k, negatives=negatives, exclude_targets=paper),
        task_key=key,
        train_outputs="seen",
        memory_budget=budget,
        searched=_LINK_SEARCHED,
        training=_prediction(stop_ratio),
        backbone_hyperparameters=_LINK_BACKBONE,
        method_defaults=_link_defaults(budget, n_tasks, version),
        note=note if paper else noted(note, version),
        **(family | switches),
    )


_GRAPH_BUILDER = "cglsuite.streams.graphwise:build_graph_stream"
GRAPH_NETWORK = BackboneSpec(
    name="begin-graph-gcn",
    summary="GCN with symmetric normalisation and an edge encoder (if edges have features), mean pooling, an MLP of halving width",
    citation=(
        CITATION,
        Citation(
            authors=("Hu", "others"),
            title="Open Graph Benchmark: Datasets for Machine Learning on Graphs",
            year=2020,
            booktitle="NeurIPS",
            note="edge encoder",
        ),
    ),
    factory="cglsuite.protocols.begin.network:begin_graph_gcn",
    levels=graphs.WHOLE_GRAPHS,
    hyperparameters=(
        graphs.layers(4),
        graphs.width(146),
        graphs.BATCH_NORM,
        graphs.DROPOUT,
        graphs.MEAN_READOUT,
        graphs.predictor_layers(2),
        graphs.EDGE_FEATURES,
    ),
)
"""BeGin's network for whole graphs."""
_TRAINING = dataclasses.replace(TRAINING, backbone=GRAPH_NETWORK.name, epochs=100, batch_size=128, plateau_patience=10, stop_ratio=1e-2)
_NO_BUDGET = "The size of the memory is not stated in the paper; there is no limit here."


def _graph_defaults(budget: int | None, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """Return the protocol's method defaults at graph level. TWP uses attention without degree normalisation, and HAT applies no gates."""
    defaults = method_defaults(budget, n_tasks, version)
    defaults["hat"] |= {"method.gates": "none"}
    return defaults | {"twp": {k: v for k, v in defaults["twp"].items() if k != "method.attention_from"}}


def graph_preset(
    dataset: str,
    setting: str,
    *,
    n_tasks: int,
    budget: int | None,
    edge_features: int = 0,
    dropout: float = 0.0,
    dataset_hyperparameters: tuple[tuple[str, Value], ...] = (),
    note: str = "",
    version: int = 1,
    **switches: object,
) -> ScenarioSpec:
    """Build a preset for BeGin's protocol at graph level.

    Args:
        n_tasks: number of tasks. GEM stores ``budget // n_tasks`` graphs per task.
        budget: number of graphs in memory, the same for all methods; ``None`` = no limit.
        edge_features: number of edge features in the dataset.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: scenario settings that differ from those of the other presets.
    """
    classes = setting in ("task-il", "class-il")
    what = {"domain-il": "domains of {} arrive in random order", "time-il": "graphs of {} arrive by time"}.get(
        setting, "classes of {} arrive " + f"{switches.get('classes_per_task', 2)} at a time in random order"
    )
    family: dict[str, object] = {
        "level": "GC",
        "classes_per_task": 2,
        "class_order": "native" if setting == "time-il" else "random",
        "split": "official",
        "train_outputs": trained_outputs(setting),
        "performance": "micro",
        "task_key": None if classes else "domain",
    }
    backbone: dict[str, Value] = {
        "batch_norm": True,
        "dropout": dropout,
        "edge_features": edge_features,
        "layers": 4,
        "predictor_layers": 2,
        "readout": "mean",
        "width": 146,
    }
    return ScenarioSpec(
        name=f"{dataset}/{setting}@begin-{version}",
        summary=f"{what.format(dataset)} (BeGin)",
        citation=CITATION,
        dataset=dataset,
        dataset_hyperparameters=dataset_hyperparameters,
        setting=setting,
        protocol=f"begin-{version}",
        builder=_GRAPH_BUILDER,
        memory_budget=budget,
        searched=("training.lr", "training.weight_decay", "backbone.dropout"),
        training=_TRAINING,
        backbone_hyperparameters=tuple(sorted(backbone.items())),
        method_defaults=_graph_defaults(budget, n_tasks, version),
        note=noted(" ".join(filter(None, [note, _NO_BUDGET if budget is None else ""])), version),
        **(family | switches),  # type: ignore[arg-type]
    )
