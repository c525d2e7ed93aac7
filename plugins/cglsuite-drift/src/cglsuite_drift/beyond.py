"""Task-free streams that no paper has: nodes with several labels, and nodes and whole graphs with real targets.

Batches, evaluations and backbones are DRIFT's; latent tasks recur, or come and go as Gaussians, or follow the items' years.
"""

from __future__ import annotations

from typing import Any

from cglsuite import ScenarioSpec, TaskFreeSpec, TrainingSpec
from cglsuite.specs import Citation, Value

_CITATION = Citation(authors=("The cglsuite authors",), title="Task-free streams beyond single labels", year=2026, note="unpublished")
_NODES: dict[str, Any] = {
    "training": TrainingSpec(backbone="gcn", lr=5e-3, weight_decay=5e-4, epochs=1, batch_size=10, fan_out=(10, 25)),
    "backbone_hyperparameters": (("batch_norm", False), ("dropout", 0.0), ("layers", 2), ("width", 256)),
}
_GRAPHS: dict[str, Any] = {
    "training": TrainingSpec(backbone="begin-graph-gcn", lr=1e-3, epochs=1, batch_size=10),
    "level": "GR",
}
_TARGETS: dict[str, Any] = {
    "builder": "cglsuite.streams.task_free_targets:build_task_free_targets",
    "labels": "real",
    "performance": "negative-mae",
    "task_key": "domain",
    "split": "random",
}
_LABEL_SETS: dict[str, Any] = {
    "builder": "cglsuite.streams.build_task_free:build_task_free_stream",
    "level": "NC",
    "labels": "multi",
    "performance": "average-precision",
    "split": "node-consistent",
    "min_class_size": 50,
    "leftover": "join-last",
    **_NODES,
}
_WORDS = {"gaussian": "coming and going as Gaussians", "periodic": "recurring", "real-time": "as in the years of the items"}
_SEVERAL = "A node with labels of several latent tasks arrives once in each of them, always with all of its labels."
_REAL = "Targets have no classes, so no output is ever hidden. Metrics are those of the negative mean absolute error."


def _molecules(edge_features: int) -> dict[str, Any]:
    backbone: tuple[tuple[str, Value], ...] = (("edge_features", edge_features), ("layers", 2), ("width", 64))
    return {**_TARGETS, **_GRAPHS, "backbone_hyperparameters": backbone, "split_ratio": (0.8, 0.1, 0.1)}


#: Of each dataset: what a latent task is, the width σ of Gaussian streams, the steps between evaluations, the schedules, the switches.
_DATASETS: dict[str, tuple[str, float, int, tuple[str, ...], dict[str, Any]]] = {
    "pcg": ("pairs of labels", 20.0, 40, ("gaussian", "periodic"), _LABEL_SETS),
    "synthetic-node-targets": ("domains", 5.0, 10, tuple(_WORDS), {**_TARGETS, **_NODES, "level": "NR"}),
    "synthetic-graph-regression": ("domains", 5.0, 10, ("gaussian", "periodic"), _molecules(3)),
    "aqsol": ("domains", 60.0, 100, ("gaussian", "periodic"), _molecules(5)),
}


def _preset(dataset: str, schedule: str) -> ScenarioSpec:
    what, sigma, every, _, switches = _DATASETS[dataset]
    real = switches["labels"] == "real"
    hyperparameters: dict[str, tuple[tuple[str, Value], ...]] = {"gaussian": (("sigma", sigma),), "real-time": (("key", "year"),)}
    return ScenarioSpec(
        name=f"{dataset}/{schedule}@task-free-1",
        summary=f"{what} of {dataset} in batches of 10, no task boundaries, {_WORDS[schedule]}",
        citation=_CITATION,
        dataset=dataset,
        setting="task-free",
        protocol="task-free-1",
        class_order="native",
        edge_policy="full",
        memory_budget=100,
        task_free=TaskFreeSpec(
            schedule=schedule,
            schedule_hyperparameters=hyperparameters.get(schedule, ()),
            evaluate_every=every,
            mask="all" if real else "seen",
            query_graph="merged",
        ),
        note=_REAL if real else _SEVERAL,
        **{"split_ratio": (0.6, 0.2, 0.2), **switches},
    )


def beyond_presets() -> list[ScenarioSpec]:
    """Build the presets of every dataset under its schedules."""
    return [_preset(dataset, schedule) for dataset, (_, _, _, schedules, _) in _DATASETS.items() for schedule in schedules]
