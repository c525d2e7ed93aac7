"""Example scenarios: BeGin's streams on a small embedded graph that trains in seconds. They do not reproduce the protocol of any paper."""

from __future__ import annotations

import dataclasses
from typing import Any

from cglsuite import ScenarioSpec
from cglsuite.protocols.begin import node_preset

_EPOCHS = 80
_NOTE = (
    "For examples, not for benchmarks. The network is narrower and shallower than BeGin's and has no batch normalisation, whose running "
    "statistics need more epochs than these."
)

_SIZE = (("n_nodes", 1000), ("homophily", 0.7))
_CLASSES: dict[str, Any] = {"dataset": "synthetic-csbm", "split": "per-class", "dataset_hyperparameters": _SIZE}
_DRIFT: dict[str, Any] = {"dataset": "synthetic-growing", "split": "random", "split_ratio": (0.4, 0.1, 0.5)}
#: In 16 dimensions the looks of a class in the five domains interfere; in the time steps bags of words change and new classes appear.
_SWITCHES: dict[str, dict[str, Any]] = {
    "task-il": _CLASSES,
    "class-il": _CLASSES,
    "domain-il": _DRIFT
    | {
        "task_key": "domain",
        "dataset_hyperparameters": (*_SIZE, ("drift", 1.0), ("features", "gaussian"), ("n_features", 16), ("signal", 0.8), ("years", 1)),
    },
    "time-il": _DRIFT
    | {
        "task_key": "year",
        "feature_normalisation": "row",
        "dataset_hyperparameters": (*_SIZE, ("avg_degree", 12.0), ("domains", 1), ("drift", 1.0), ("signal", 0.6), ("years", 5)),
    },
}
_SUMMARIES = {
    "domain-il": "domains of a small synthetic-growing, in which classes look different, arrive in random order",
    "time-il": "nodes of a small synthetic-growing arrive by year while classes change and new ones appear",
}


def _example(setting: str) -> ScenarioSpec:
    begin = node_preset(
        setting=setting,
        budget=60,
        n_tasks=5,
        n_classes=10,
        patience=_EPOCHS,  # decaying the rate earlier would end a task before convergence
        training={"epochs": _EPOCHS, "lr": 0.02},
        backbone={"width": 64, "layers": 2, "batch_norm": False},
        **_SWITCHES[setting],
    )
    return dataclasses.replace(
        begin,
        name=f"{begin.dataset}/{setting}@example-1",
        summary=f"{_SUMMARIES.get(setting, 'classes of a small synthetic-csbm arrive 2 at a time in random order')} "
        "(an example, no paper's protocol)",
        citation=("An example of cglsuite; streams follow", *begin.citations),
        protocol="example-1",
        search_scope="first-tasks(2)",
        method_defaults={**begin.method_defaults, "ewc": {"method.fisher": "items", "method.lambda": 1e6}},
        note=_NOTE,
    )


def example_presets() -> list[ScenarioSpec]:
    """Build the example presets in task-, class-, domain- and time-IL."""
    return [_example(setting) for setting in _SWITCHES]
