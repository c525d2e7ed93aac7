"""BeGin at graph level: random class orders, official or random splits, a plateau schedule on validation loss, micro accuracy."""

from __future__ import annotations

import dataclasses

from cglsuite.backbones import graph_hyperparameters as graphs
from cglsuite.protocols.begin.table import CITATION, TRAINING, method_defaults, noted
from cglsuite.protocols.shared import trained_outputs
from cglsuite.specs import BackboneSpec, Citation, ScenarioSpec, Value

__all__ = ["GRAPH_NETWORK", "graph_preset"]

_BUILDER = "cglsuite.streams.graphwise:build_graph_stream"
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


def _method_defaults(budget: int | None, n_tasks: int, version: int) -> dict[str, dict[str, Value]]:
    """The protocol's table at graph level: TWP's attention has no degree-normalised form, and HAT's gates are computed but not applied."""
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
    """A preset of BeGin's protocol at graph level.

    Args:
        n_tasks: how many tasks there are; of the budget GEM keeps ``budget // n_tasks`` graphs per task.
        budget: graphs in memory, for all methods alike; ``None``: no limit.
        edge_features: features of an edge of the dataset.
        version: see :data:`cglsuite.protocols.begin.VERSIONS`.
        switches: of the scenario, where they differ from the family's.
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
        builder=_BUILDER,
        memory_budget=budget,
        searched=("training.lr", "training.weight_decay", "backbone.dropout"),
        training=_TRAINING,
        backbone_hyperparameters=tuple(sorted(backbone.items())),
        method_defaults=_method_defaults(budget, n_tasks, version),
        note=noted(" ".join(filter(None, [note, _NO_BUDGET if budget is None else ""])), version),
        **(family | switches),  # type: ignore[arg-type]
    )
