"""Example scenarios: BeGin's streams on a small embedded graph that trains in seconds. Not a paper's protocol."""

from __future__ import annotations

import dataclasses

from cglsuite import ScenarioSpec
from cglsuite.protocols.begin import node_preset

_EPOCHS = 80
_NOTE = (
    "For examples, not for benchmarks. The network is narrower and shallower than BeGin's and has no batch normalisation, whose running "
    "statistics need more epochs than these."
)


def _example(setting: str) -> ScenarioSpec:
    begin = node_preset(
        "synthetic-csbm",
        setting,
        split="per-class",
        budget=60,
        n_tasks=5,
        n_classes=10,
        patience=_EPOCHS,  # decaying the rate earlier would end a task before convergence
        dataset_hyperparameters=(("n_nodes", 1000), ("homophily", 0.7)),
        training={"epochs": _EPOCHS, "lr": 0.02},
        backbone={"width": 64, "layers": 2, "batch_norm": False},
    )
    return dataclasses.replace(
        begin,
        name=f"synthetic-csbm/{setting}@example-1",
        summary="classes of a small synthetic-csbm arrive 2 at a time in random order (an example, no paper's protocol)",
        citation=("An example of cglsuite; streams follow", *begin.citations),
        protocol="example-1",
        search_scope="first-tasks(2)",
        method_defaults={**begin.method_defaults, "ewc": {"method.fisher": "items", "method.lambda": 1e6}},
        note=_NOTE,
    )


def example_presets() -> list[ScenarioSpec]:
    """Example presets in task-IL and class-IL."""
    return [_example(setting) for setting in ("task-il", "class-il")]
