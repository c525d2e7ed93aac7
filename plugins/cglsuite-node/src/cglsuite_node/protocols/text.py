"""Graphs with text: classes arrive in random order, splits keep items of one origin together, and queries do not reveal their task."""

from __future__ import annotations

import dataclasses

from cglsuite import ScenarioSpec, TrainingSpec
from cglsuite.protocols import TOPOLOGY_NOTE, trained_outputs
from cglsuite.specs import Citation, Value

_LLM4GCL = Citation(
    authors=("Cheng", "Li", "Li", "others"),
    title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
    year=2025,
    arxiv="2505.18697",
)
_TRAINING = TrainingSpec(backbone="gcn", lr=5e-3, weight_decay=5e-4, epochs=200)
_BACKBONE: tuple[tuple[str, Value], ...] = (
    ("batch_norm", False),
    ("bias", True),
    ("dropout", 0.0),
    ("head", "convolution"),
    ("input_dropout", 0.0),
    ("layers", 2),
    ("normalisation", "symmetric"),
    ("width", 256),
)
_NOTE = "Tasks and shots are those of LLM4GCL for 37 classes. Splits, networks and training differ, so values are not comparable."


def text_presets() -> list[ScenarioSpec]:
    """Build task-IL, class-IL and few-shot class-IL on the Debian packages dataset, with tasks as in LLM4GCL for 37 classes."""
    class_il = _preset("class-il")
    few_shot = dataclasses.replace(
        class_il,
        name="debian-packages/class-il@text-few-shot-1",
        summary="13 sections of debian-packages in random order, then 4 at a time with 5 training items each (few-shot)",
        protocol="text-few-shot-1",
        base_classes=13,
        shots=5,
        leftover="drop",
    )
    return [_preset("task-il"), class_il, few_shot]


def _preset(setting: str) -> ScenarioSpec:
    named = setting == "task-il"
    return ScenarioSpec(
        name=f"debian-packages/{setting}@text-1",
        summary="sections of debian-packages arrive 4 at a time in random order, each task in its own subgraph"
        + ("" if named else ", asked about all tasks at once among the edges between them"),
        citation=_LLM4GCL,
        dataset="debian-packages",
        setting=setting,
        protocol="text-1",
        search_scope="first-tasks(2)",
        classes_per_task=4,
        leftover="join-last",
        class_order="random",
        edge_policy="none",
        query_grouping="task" if named else "pooled",
        query_edges="own" if named else "seen",
        split="official",
        train_outputs=trained_outputs(setting),
        performance="micro",
        searched=("training.lr", "training.weight_decay", "backbone.dropout"),
        training=_TRAINING,
        backbone_hyperparameters=_BACKBONE,
        note=f"{TOPOLOGY_NOTE} {_NOTE}" if named else _NOTE,
    )
