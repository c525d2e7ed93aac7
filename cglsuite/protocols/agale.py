"""Presets for AGALE's protocol (Zhao, Bartos & Khosla 2024) for nodes, links and whole graphs. Importing it does not import torch.

The paper covers nodes. Of links and whole graphs, everything that concerns classes is the same: tasks of two classes that may share items,
its Algorithm 2 for splits, growing heads, average precision, and training. What differs is stated at :func:`link_preset` and
:func:`graph_preset`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from cglsuite.protocols.shared import TOPOLOGY_NOTE, trained_outputs
from cglsuite.specs import Citation, ScenarioSpec, TrainingSpec, Value

__all__ = ["CITATION", "graph_preset", "link_preset", "node_preset"]

CITATION = Citation(
    authors=("Zhao", "Bartos", "Khosla"), title="AGALE: A Graph-Aware Continual Learning Evaluation Framework", year=2024, journal="TMLR"
)
"""The paper."""
_TRAINING = TrainingSpec(
    backbone="gcn",
    lr=1e-2,
    weight_decay=5e-4,
    epochs=999,
    plateau_patience=100,
    plateau_factor=0.0,  # the first plateau ends the task
    monitor="validation-loss",
    restore_best=True,
)
_NETWORK: dict[str, Value] = {"batch_norm": False, "dropout": 0.0, "layers": 2, "normalisation": "symmetric", "width": 256}
_NODES: dict[str, Value] = {"bias": True, "head": "convolution", "input_dropout": 0.0}
_LINKS: dict[str, Value] = {"bias": True, "input_dropout": 0.0, "predictor_dropout": 0.0, "predictor_layers": 1}
_GRAPHS: dict[str, Value] = {"predictor_width": 0, "readout": "mean", "residual": False}

_MULTI_LABEL = "cglsuite.streams.labelled_graphs:build_labelled_graph_stream"
_METHODS: dict[str, dict[str, Value]] = {
    "ewc": {"method.lambda": 1e4},
    "mas": {"method.lambda": 1e4},
    "er-gnn": {"method.per_class": 1000, "method.sampler": "cm"},
}
_METHODS_AS_IMPLEMENTED: dict[str, dict[str, Value]] = _METHODS | {
    "ewc": {"method.lambda": 1e4, "method.fisher": "last-step"},
    "mas": {"method.lambda": 1e4, "method.importance": "batch-squared"},
    "evolve-gcn": {"method.start": "drawn"},
}
_FIRST = (
    "agale-2 follows the published code where this version does not: the importances of EWC and MAS, and EvolveGCN, whose weights do not "
    "evolve there."
)


def node_preset(
    dataset: str, setting: str, *, multi: bool, consistent: bool = False, version: int = 1, class_order: str = "random"
) -> ScenarioSpec:
    """Build a preset of the AGALE protocol: Algorithms 1 and 2, growing heads, and no edges between tasks.

    Args:
        multi: whether items have any number of labels, rather than one class.
        consistent: split nodes once for all tasks, so that none is training data in one and test data in another.
        version: the second has the importances of EWC and MAS, and EvolveGCN, as the published code implements them.
        class_order: the orders of classes printed in the paper, if there are any.
    """
    protocol = "agale-consistent-1" if consistent else f"agale-{version}"
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{protocol}",
        summary=f"classes of {dataset} arrive two at a time, each task in its own subgraph, "
        + ("every node in one part throughout" if consistent else "split task by task")
        + " (AGALE)",
        citation=CITATION,
        dataset=dataset,
        setting=setting,
        protocol=protocol,
        search_scope="first-tasks(2)" if consistent else "all",
        labels="multi" if multi else "single",
        performance="average-precision" if multi else "micro",
        classes_per_task=2,
        leftover="join-last",
        min_class_size=50,
        class_order=class_order,
        edge_policy="none",
        split="node-consistent" if consistent else "task-wise",
        split_ratio=(0.6, 0.1, 0.3),
        train_outputs=trained_outputs(setting),
        head="growing",
        training=_TRAINING,
        backbone_hyperparameters=_sorted(_NODES),
        method_defaults=_METHODS if version == 1 else _METHODS_AS_IMPLEMENTED,
        note=TOPOLOGY_NOTE
        + (" A multi-label node may be training data in one task and test data in another." if multi and not consistent else "")
        + (f" {_FIRST}" if version == 1 and not consistent else ""),
    )


def link_preset(dataset: str, setting: str, **switches: Any) -> ScenarioSpec:
    """Build a preset of AGALE's second version for link classification.

    A task contains the links with any of its classes. Only these links carry messages, so a task is a subgraph of its own, as in the
    paper. All nodes are in every graph. The product of the embeddings of both ends takes the place of a node's embedding.

    Args:
        switches: scenario settings that differ from those of the other presets.
    """
    return dataclasses.replace(
        node_preset(dataset, setting, multi=False, version=2),
        summary=f"classes of links of {dataset} arrive two at a time, messages along the task's own links, split task by task (AGALE)",
        level="LC",
        builder="cglsuite.streams.links:build_link_stream",
        training=dataclasses.replace(_TRAINING, backbone="link-gcn"),
        backbone_hyperparameters=_sorted(_LINKS),
        note=f"{TOPOLOGY_NOTE} The paper has no links: its protocol, applied to them.",
        **switches,
    )


def graph_preset(dataset: str, setting: str, *, multi: bool, consistent: bool = False, **switches: Any) -> ScenarioSpec:
    """Build a preset of AGALE's second version for graph classification.

    A task contains the graphs with any of its classes, which are undefined if labels are unknown. The protocol's removal of edges between
    tasks has no meaning, because there are no edges between graphs, and a graph does not reveal its task. The mean of a graph's nodes takes
    the place of a node's embedding.

    Args:
        multi, consistent: as in :func:`node_preset`.
        switches: scenario settings that differ from those of the other presets.
    """
    parent = node_preset(dataset, setting, multi=multi, consistent=consistent, version=1 if consistent else 2)
    overlap = " A graph with several labels may be training data in one task and test data in another." if multi and not consistent else ""
    return dataclasses.replace(
        parent,
        summary=f"classes of graphs of {dataset} arrive two at a time, "
        + ("every graph in one part throughout" if consistent else "split task by task")
        + " (AGALE)",
        level="GC",
        builder=_MULTI_LABEL if multi else "cglsuite.streams.graphwise:build_graph_stream",
        edge_policy="full",
        training=dataclasses.replace(_TRAINING, backbone="graph-gcn"),
        backbone_hyperparameters=_sorted(_GRAPHS),
        method_defaults={method: values for method, values in parent.method_defaults.items() if method != "evolve-gcn"},
        note=f"The paper has no whole graphs: its protocol, applied to them.{overlap}",
        **switches,
    )


def _sorted(level: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted((_NETWORK | level).items()))
