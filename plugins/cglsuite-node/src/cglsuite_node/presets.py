"""The node-level presets: every protocol's switches, and the defaults that a search on validation data chose."""

from __future__ import annotations

import dataclasses

from cglsuite import ScenarioSpec, TrainingSpec
from cglsuite_node.chosen import CHOSEN

__all__ = ["presets"]

_BEGIN = "Ko et al., BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning, ACM TIST 16(1), 2025"
_CGLB = "Zhang, Song & Tao, CGLB: Benchmark Tasks for Continual Graph Learning, NeurIPS 2022 Datasets and Benchmarks"

_BEGIN_SEARCHED = ("training.lr", "training.weight_decay", "backbone.dropout")
_BEGIN_TRAINING = TrainingSpec(
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
_BEGIN_BACKBONE = (
    ("batch_norm", True),
    ("bias", False),
    ("dropout", 0.5),
    ("head", "linear"),
    ("input_dropout", None),
    ("layers", 3),
    ("normalisation", "symmetric"),
    ("width", 256),
)
_CGLB_TRAINING = TrainingSpec(backbone="gcn", lr=5e-3, weight_decay=5e-4, epochs=200, carry_optimizer=True, class_balanced=True)
_CGLB_BACKBONE = (
    ("batch_norm", False),
    ("bias", False),
    ("dropout", 0.0),
    ("head", "convolution"),
    ("input_dropout", 0.0),
    ("layers", 2),
    ("normalisation", "none"),
    ("width", 256),
)


def _outputs(setting: str) -> str:
    return "task" if setting == "task-il" else "seen"


def _begin_defaults(per_class: int) -> dict[str, dict[str, object]]:
    """What the protocol itself fixes for a method: its "as benchmarked" sampling, budget and loss weights."""
    return {
        "ewc": {"method.fisher": "batch", "method.lambda": 1e4},
        "er-gnn": {"method.swap_weights": True, "method.neighbourhood": True, "method.per_class": per_class, "method.sampler": "cm"},
    }


def begin(
    dataset: str,
    setting: str,
    *,
    split: str = "official",
    budget: int | None,
    per_class: int,
    patience: int = 20,
) -> ScenarioSpec:
    """A class-arrival preset of BeGin's protocol, with the searched values of :mod:`cglsuite_node.chosen`."""
    name = f"{dataset}/{setting}@begin-1"
    defaults = _begin_defaults(per_class)
    for method, values in CHOSEN.get(name, {}).items():
        defaults[method] = {**defaults.get(method, {}), **values}
    return ScenarioSpec(
        name=name,
        summary=f"classes of {dataset} arrive two at a time in random order, whole graph at all times (BeGin)",
        citation=_BEGIN,
        dataset=dataset,
        setting=setting,
        protocol="begin-1",
        classes_per_task=2,
        class_order="random",
        edge_policy="full",
        feature_normalisation="row",
        split=split,
        train_outputs=_outputs(setting),
        accuracy="micro",
        memory_budget=budget,
        searched=_BEGIN_SEARCHED,
        training=dataclasses.replace(_BEGIN_TRAINING, plateau_patience=patience),
        backbone_settings=_BEGIN_BACKBONE,
        method_defaults=defaults,  # type: ignore[arg-type]
    )


def cglb(
    dataset: str,
    setting: str,
    *,
    edge_policy: str = "none",
    protocol: str = "cglb-1",
    classes_per_task: int = 2,
    undirected: bool = True,
) -> ScenarioSpec:
    """A class-arrival preset of CGLB's protocol."""
    alone = edge_policy == "none"
    where = "each task in its own subgraph" if alone else "edges between tasks kept"
    return ScenarioSpec(
        name=f"{dataset}/{setting}@{protocol}",
        summary=f"classes of {dataset} arrive {classes_per_task} at a time in native order, {where} (CGLB)",
        citation=_CGLB,
        dataset=dataset,
        setting=setting,
        protocol=protocol,
        classes_per_task=classes_per_task,
        class_order="native",
        min_class_size=5,
        edge_policy=edge_policy,
        undirected=undirected,
        split="per-class",
        split_ratio=(0.6, 0.2, 0.2),
        train_outputs=_outputs(setting),
        accuracy="macro",
        searched=("training.lr",),
        training=_CGLB_TRAINING,
        backbone_settings=_CGLB_BACKBONE,
        method_defaults={"ewc": {"method.fisher": "batch"}, "er-gnn": {"method.per_class": 100}},
        note="Queries arrive inside their own task's subgraph, so in class-IL the topology alone can give the task away." if alone else "",
    )


_CGLB_DATASETS = ("cora", "citeseer", "corafull", "amazon-clothing20", "ogbn-arxiv", "reddit", "ogbn-products", "synthetic-csbm")


def presets() -> list[ScenarioSpec]:
    """All presets of this package."""
    out = [cglb("pubmed", "class-il", classes_per_task=1)]  # three classes: one at a time, so task-IL would have nothing to tell apart
    for setting in ("task-il", "class-il"):
        out += [
            begin("cora", setting, budget=12, per_class=1),
            begin("citeseer", setting, budget=12, per_class=2, patience=50),
            begin("synthetic-csbm", setting, split="per-class", budget=60, per_class=6),
        ]
        for dataset in _CGLB_DATASETS:
            directed = dataset == "ogbn-arxiv"
            out.append(cglb(dataset, setting, undirected=not directed))
            out.append(cglb(dataset, setting, edge_policy="inter-task", protocol="cglb-inter-1", undirected=not directed))
    return out
