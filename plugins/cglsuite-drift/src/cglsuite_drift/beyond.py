"""Task-free streams that no paper has: links, nodes with several labels, and nodes and whole graphs with real targets.

Latent tasks recur, or come and go as Gaussians, or are periods of time. In real time, training graphs do not contain the future.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cglsuite import ScenarioSpec, TaskFreeSpec, TrainingSpec
from cglsuite.specs import Citation, LinkPredictionSpec, Value

_CITATION = Citation(authors=("The cglsuite authors",), title="Task-free streams beyond single labels", year=2026, note="unpublished")
_BUILDER = "cglsuite.streams.task_free_time:build_task_free_time_stream"
_NODES: dict[str, Any] = {
    "training": TrainingSpec(backbone="gcn", lr=5e-3, weight_decay=5e-4, epochs=1, batch_size=10, fan_out=(10, 25)),
    "backbone_hyperparameters": (("batch_norm", False), ("dropout", 0.0), ("layers", 2), ("width", 256)),
}
_GRAPHS: dict[str, Any] = {
    "training": TrainingSpec(backbone="begin-graph-gcn", lr=1e-3, epochs=1, batch_size=10),
    "level": "GR",
}
_TARGETS: dict[str, Any] = {
    "builder": _BUILDER,
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
_LINKS: dict[str, Any] = {
    "builder": _BUILDER,
    "labels": "multi",
    "training": TrainingSpec(backbone="link-gcn", lr=5e-3, epochs=1, batch_size=100),
    "backbone_hyperparameters": (("batch_norm", False), ("dropout", 0.0), ("layers", 2), ("predictor_layers", 2), ("width", 64)),
}
_RATINGS: dict[str, Any] = {
    **_LINKS,
    "dataset_hyperparameters": (("labels", "sign"),),
    "level": "LC",
    "task_key": "step",
    "undirected": False,
    "performance": "roc-auc",
    "node_features": "degrees",
}
_INTERACTIONS: dict[str, Any] = {
    **_LINKS,
    "level": "LP",
    "split": "random",
    "split_ratio": (0.8, 0.1, 0.1),
    "performance": "hits",
    "training": replace(_LINKS["training"], batch_size=50),
}
_WORDS = {"gaussian": "coming and going as Gaussians", "periodic": "recurring", "real-time": "in their own time"}
_SEVERAL = "A node with labels of several latent tasks arrives once in each of them, always with all of its labels."
_FUTURE = "Training graphs contain only what has arrived."
_OUTPUTS = "A link exists or not, or has one sign or the other, so no output is ever hidden."
_REAL = "Targets have no classes, so no output is ever hidden. Metrics are those of the negative mean absolute error."


def _molecules(edge_features: int) -> dict[str, Any]:
    backbone: tuple[tuple[str, Value], ...] = (("edge_features", edge_features), ("layers", 2), ("width", 64))
    return {**_TARGETS, **_GRAPHS, "backbone_hyperparameters": backbone, "split_ratio": (0.8, 0.1, 0.1)}


#: Of each dataset: what a latent task is, the width σ of Gaussian streams, the steps between evaluations, the schedules, the switches.
_DATASETS: dict[str, tuple[str, float, int, tuple[str, ...], dict[str, Any]]] = {
    "bitcoin-otc": ("periods", 30.0, 20, tuple(_WORDS), {**_RATINGS, "split": "official"}),
    "synthetic-signed-links": ("periods", 3.0, 5, tuple(_WORDS), {**_RATINGS, "split": "random", "split_ratio": (0.8, 0.1, 0.1)}),
    "college-msg": (
        "months",
        30.0,
        20,
        ("periodic", "real-time"),
        {**_INTERACTIONS, "task_key": "month", "node_features": "log-degrees", "level_spec": LinkPredictionSpec(hits_k=50)},
    ),
    "synthetic-temporal-links": (
        "domains",
        3.0,
        5,
        tuple(_WORDS),
        {**_INTERACTIONS, "task_key": "domain", "level_spec": LinkPredictionSpec(hits_k=50, negatives=400)},
    ),
    "pcg": ("pairs of labels", 20.0, 40, ("gaussian", "periodic"), _LABEL_SETS),
    "synthetic-node-targets": ("domains", 5.0, 10, tuple(_WORDS), {**_TARGETS, **_NODES, "level": "NR"}),
    "synthetic-graph-regression": ("domains", 5.0, 10, ("gaussian", "periodic"), _molecules(3)),
    "aqsol": ("domains", 60.0, 100, ("gaussian", "periodic"), _molecules(5)),
}

#: The attribute whose values are the latent tasks in real time, and the one by whose values items arrive.
_TIMES = {
    "bitcoin-otc": ("step", "time"),
    "synthetic-signed-links": ("step", "step"),
    "college-msg": ("month", "time"),
    "synthetic-temporal-links": ("step", "step"),
    "synthetic-node-targets": ("year", "year"),
}


def _preset(dataset: str, schedule: str) -> ScenarioSpec:
    what, sigma, every, _, switches = _DATASETS[dataset]
    timed, hidden = schedule == "real-time", "task_key" not in switches
    period, time = _TIMES.get(dataset, ("", ""))
    hyperparameters: dict[str, tuple[tuple[str, Value], ...]] = {"gaussian": (("sigma", sigma),), "real-time": (("key", time),)}
    if timed:
        what, switches = f"{period}s", {**switches, "task_key": period}
    note = _SEVERAL if hidden else _REAL if switches["labels"] == "real" else _OUTPUTS
    return ScenarioSpec(
        name=f"{dataset}/{schedule}@task-free-1",
        summary=f"{what} of {dataset} in batches of {switches['training'].batch_size}, no task boundaries, {_WORDS[schedule]}",
        citation=_CITATION,
        dataset=dataset,
        setting="task-free",
        protocol="task-free-1",
        class_order="native",
        edge_policy="snapshot" if timed else "full",
        memory_budget=100,
        task_free=TaskFreeSpec(
            schedule=schedule,
            schedule_hyperparameters=hyperparameters.get(schedule, ()),
            evaluate_every=every,
            mask="seen" if hidden else "all",
            query_graph="merged",
        ),
        note=f"{note} {_FUTURE}" if timed else note,
        **{"split_ratio": (0.6, 0.2, 0.2), **switches},
    )


def beyond_presets() -> list[ScenarioSpec]:
    """Build the presets of every dataset under its schedules."""
    return [_preset(dataset, schedule) for dataset, (_, _, _, schedules, _) in _DATASETS.items() for schedule in schedules]
