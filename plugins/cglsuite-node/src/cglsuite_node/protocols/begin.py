"""BeGin's scenarios of node classification: its protocol on this package's datasets."""

from __future__ import annotations

import dataclasses
from typing import Any

from cglsuite import ScenarioSpec
from cglsuite.protocols.begin import VERSIONS, node_preset
from cglsuite_node.chosen import CHOSEN, TRIALS

__all__ = ["begin_presets"]


def begin_presets() -> list[ScenarioSpec]:
    """BeGin's scenarios of node classification, and the same protocol on the embedded graph and a stand-in."""
    return [preset for version in VERSIONS for preset in _presets(version)]


def _presets(version: int) -> list[ScenarioSpec]:
    def _preset(dataset: str, setting: str, *, name: str | None = None, **switches: Any) -> ScenarioSpec:
        """With the searched values of :mod:`cglsuite_node.chosen`, which searches of the first version found."""
        chosen = CHOSEN.get(f"{name or dataset}/{setting}@begin-1")
        preset = node_preset(dataset, setting, name=name, chosen=chosen, version=version, **switches)
        return preset if chosen is None else dataclasses.replace(preset, method_trials=TRIALS)

    out = []
    for setting in ("task-il", "class-il"):
        out += [
            _preset("cora", setting, budget=12, n_tasks=3, n_classes=7),
            _preset("citeseer", setting, budget=12, n_tasks=3, n_classes=6, patience=50),
            _preset("synthetic-csbm", setting, split="per-class", budget=60, n_tasks=5, n_classes=10),
            _preset("ogbn-arxiv", setting, budget=2000, n_tasks=8, n_classes=40, classes_per_task=5, feature_normalisation="none"),
            _preset(
                "ogbn-mag",
                setting,
                budget=8000,
                n_tasks=128,
                n_classes=257,
                feature_normalisation="none",
                dataset_hyperparameters=(("min_per_part", 10),),
                backbone={"dropout": 0.25},
            ),
        ]
    begins = (("split_source", "begin"),)
    years: dict[str, Any] = {"feature_normalisation": "none", "task_key": "year"}
    return [
        *out,
        _preset("corafull", "task-il", budget=210, n_tasks=35, n_classes=70, dataset_hyperparameters=begins),
        _preset(
            "ogbn-products",
            "class-il",
            budget=25000,
            n_tasks=9,
            n_classes=47,
            classes_per_task=5,
            feature_normalisation="none",
            training={"batch_size": 2000, "fan_out": (5, 10, 15)},
            backbone={"dropout": 0.25},
        ),
        # Years before 1998 form one step, which gives 24 steps up to 2020.
        _preset(
            "ogbn-arxiv",
            "time-il",
            budget=2000,
            n_tasks=24,
            n_classes=40,
            task_bins=tuple(range(1998, 2021)),
            dataset_hyperparameters=begins,
            **years,
        ),
        _preset("ogbn-mag", "time-il", budget=8000, n_tasks=10, n_classes=349, split="random", split_ratio=(0.4, 0.1, 0.5), **years),
        _preset(
            "ogbn-proteins",
            "domain-il",
            budget=2000,
            n_tasks=8,
            n_classes=112,
            labels="multi",
            performance="roc-auc",
            task_key="domain",
            dataset_hyperparameters=begins,
        ),
        _preset("twitch-gamers", "domain-il", name="twitch", budget=2000, n_tasks=21, n_classes=2, task_key="domain"),
        _preset(
            "twitch-musae",
            "domain-il",
            budget=2000,
            n_tasks=7,
            n_classes=2,
            task_key="domain",
            split="random",
            split_ratio=(0.4, 0.1, 0.5),
            feature_normalisation="row",
        ),
    ]
