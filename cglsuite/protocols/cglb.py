"""Presets for CGLB's protocol (Zhang, Song & Tao 2022) at node and graph level, and their shared parts. Importing it does not import torch.

- Node level: native order, with or without edges between tasks, Adam state carried over, class-balanced loss and accuracy.
- Graph level: canonical atom features, residual sums, Adam state carried over, native order, class-balanced loss and accuracy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from cglsuite.protocols.shared import TOPOLOGY_NOTE, trained_outputs
from cglsuite.specs import Citation, ScenarioSpec, TrainingSpec, Value

__all__ = [
    "CITATION",
    "GRAPH_BACKBONE",
    "GRAPH_TRAINING",
    "VERSIONS",
    "graph_method_defaults",
    "graph_preset",
    "method_defaults",
    "node_preset",
]

_TRAINING = TrainingSpec(backbone="gcn", lr=5e-3, weight_decay=5e-4, epochs=200, carry_optimizer=True, class_balanced=True)
_SAMPLED = dataclasses.replace(_TRAINING, batch_size=2000, fan_out=(10, 25))
_NODE_BACKBONE = (
    ("batch_norm", False),
    ("bias", False),
    ("dropout", 0.0),
    ("head", "convolution"),
    ("input_dropout", 0.0),
    ("layers", 2),
    ("normalisation", "none"),
    ("width", 256),
)
_NODE_NAMES = {1: ("cglb-1", "cglb-inter-1"), 2: ("cglb-2", "cglb-inter-2")}
_NODE_FIRST = (
    "cglb-2 and cglb-inter-2 follow the published code where this version does not: smaller initial weights (LwF has its own), GEM's "
    "memories without the outputs of later classes, and TWP as implemented."
)


def node_preset(
    dataset: str,
    setting: str,
    *,
    edge_policy: str = "none",
    classes_per_task: int = 2,
    undirected: bool = True,
    drop_last: bool = False,
    sampled: bool = False,
    version: int = 1,
) -> ScenarioSpec:
    """Build a preset for CGLB's protocol at node level, in which classes arrive in native order.

    Args:
        edge_policy: ``none`` (``cglb-1``) or ``inter-task`` (``cglb-inter-1``).
        version: see :data:`cglsuite.protocols.cglb.VERSIONS`.
        drop_last: whether to omit the classes that do not fill a task.
        sampled: whether to train on sampled neighbourhoods in batches of 2000, as the paper does on large graphs.
    """
    alone = edge_policy == "none"
    protocol = _NODE_NAMES[version][0 if alone else 1]
    first = method_defaults() | {"er-gnn": {"method.per_class": 100}}
    where = "each task in its own subgraph" if alone else "edges between tasks kept"
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{protocol}",
        summary=f"classes of {dataset} arrive {classes_per_task} at a time in native order, {where} (CGLB)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=protocol,
        classes_per_task=classes_per_task,
        drop_last=drop_last,
        class_order="native",
        min_class_size=5,
        edge_policy=edge_policy,
        undirected=undirected,
        split="per-class",
        split_ratio=(0.6, 0.2, 0.2),
        train_outputs=trained_outputs(setting),
        performance="macro",
        searched=("training.lr",),
        training=_SAMPLED if sampled else _TRAINING,
        backbone_hyperparameters=_NODE_BACKBONE if version == 1 else tuple(sorted((*_NODE_BACKBONE, ("init", "linear")))),
        method_defaults=first if version == 1 else node_method_defaults(),
        note=" ".join(filter(None, (TOPOLOGY_NOTE if alone else "", _NODE_FIRST if version == 1 else ""))),
    )


GRAPH_TRAINING = TrainingSpec(
    backbone="graph-gcn",
    optimizer="adam",
    lr=1e-3,
    weight_decay=0.0,
    epochs=100,
    batch_size=128,
    carry_optimizer=True,
    class_balanced=True,
)
"""CGLB's training protocol at graph level."""
GRAPH_BACKBONE: tuple[tuple[str, Value], ...] = (
    ("batch_norm", True),
    ("dropout", 0.0),
    ("layers", 2),
    ("normalisation", "none"),
    ("predictor_width", 64),
    ("readout", "weighted-sum-and-max"),
    ("residual", True),
    ("width", 64),
)
"""CGLB's network at graph level, as hyperparameters of the backbone ``graph-gcn``."""


_GRAPH_NAMES = {1: "cglb-1", 2: "cglb-2"}
_GRAPH_FIRST = (
    "cglb-2 follows the published code where this version does not: importance of EWC, MAS and TWP in training mode, GEM's memories "
    "without the outputs of later classes, LwF's loss among the task's own classes, TWP as implemented."
)


def graph_preset(dataset: str, setting: str, what: str, *, note: str = "", version: int = 1, **switches: object) -> ScenarioSpec:
    """Build a preset for CGLB's protocol at graph level.

    Args:
        version: see :data:`cglsuite.protocols.cglb.VERSIONS`.
        switches: scenario settings that differ from those of the other presets.
    """
    family: dict[str, object] = {
        "classes_per_task": 2,
        "class_order": "native",
        "split": "per-class",
        "split_ratio": (0.8, 0.1, 0.1),
        "train_outputs": trained_outputs(setting),
        "performance": "macro",
    }
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{_GRAPH_NAMES[version]}",
        summary=f"{what} (CGLB)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=_GRAPH_NAMES[version],
        level="GC",
        builder="cglsuite.streams.graphwise:build_graph_stream",
        searched=("training.lr",),
        training=GRAPH_TRAINING,
        backbone_hyperparameters=GRAPH_BACKBONE,
        method_defaults=method_defaults() if version == 1 else graph_method_defaults(),
        note=" ".join(filter(None, (note, _GRAPH_FIRST if version == 1 else ""))),
        **(family | switches),  # type: ignore[arg-type]
    )


CITATION = Citation(
    authors=("Zhang", "Song", "Tao"),
    title="CGLB: Benchmark Tasks for Continual Graph Learning",
    year=2022,
    booktitle="NeurIPS Datasets and Benchmarks",
)
"""The paper."""
VERSIONS = (1, 2)
"""Versions of the presets. Where the first uses methods as originally published, the second follows the benchmark's code."""


def method_defaults() -> dict[str, dict[str, Value]]:
    """Return the hyperparameters that the published code sets for each method."""
    return {
        "ewc": {"method.fisher": "batch"},
        "mas": {"method.importance": "batch-squared"},
        "gem": {"method.per_task": 100},
    }


_TWP: dict[str, Value] = {
    "method.lambda_l": 1e4,
    "method.lambda_t": 1e4,
    "method.detach_beta": True,
    "method.topology_accumulates": True,
    "method.attention_norm": "norm",
    "method.double_loss": True,
}


def node_method_defaults() -> dict[str, dict[str, Value]]:
    """Return the second version's method defaults at node level, with the published code's variants of LwF, GEM and TWP."""
    return _extended(
        {
            "er-gnn": {"method.per_class": 100},
            "gem": {"method.memory_outputs": "until-task"},
            "lwf": {"backbone.init": "fan-in-normal"},
            "twp": _TWP | {"method.attention_from": "propagated"},
        }
    )


def graph_method_defaults() -> dict[str, dict[str, Value]]:
    """Return the second version's method defaults at graph level, with the published code's variants of LwF, GEM, TWP and importance."""
    training: dict[str, Value] = {"method.importance_mode": "training"}
    return _extended(
        {
            "ewc": training,
            "mas": training,
            "twp": _TWP | training,
            "gem": {"method.memory_outputs": "until-task"},
            "lwf": {"method.own_task_loss": True},
        }
    )


def _extended(more: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
    first = method_defaults()
    return {method: {**first.get(method, {}), **more.get(method, {})} for method in {**first, **more}}
