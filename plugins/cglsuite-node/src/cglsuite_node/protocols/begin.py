"""BeGin's node-classification scenarios: its protocol on the datasets of this package, with hyperparameters selected by searches.

The hyperparameters were selected on validation average performance, in two campaigns. ``bare``, ``ewc`` and ``joint``:
reports/begin/begin-nc-search.toml, two class orders, learning rate 1e-3 or 5e-3 and λ 1e2 or 1e4, dropout 0.5, no weight decay. The
others: reports/begin/begin-nc-methods-search.toml, one class order, at most six settings (dropout 0, 0.25 or 0.5; λ of LwF and MAS 0.1 or
1; β of TWP 0 or 0.01), learning rate 1e-3, no weight decay. λ = 1 won for LwF and MAS throughout.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from cglsuite import ScenarioSpec
from cglsuite.protocols.begin import VERSIONS, node_preset
from cglsuite.specs import Value

_REGRESSION = "The paper has no node regression: this is its protocol for nodes, with the loss and the measure of its graph regression."


def begin_presets() -> list[ScenarioSpec]:
    """Build BeGin's node-classification scenarios, and the same protocol on the embedded graph and a stand-in dataset."""
    return [preset for version in VERSIONS for preset in _presets(version)]


def _presets(version: int) -> list[ScenarioSpec]:
    def _preset(dataset: str, setting: str, *, name: str | None = None, **switches: Any) -> ScenarioSpec:
        """A preset with the searched values of :mod:`cglsuite_node.protocols.begin`, which are from searches of the first version."""
        selected = SEARCHED.get(f"{name or dataset}/{setting}@begin-1")
        preset = node_preset(dataset, setting, name=name, selected=selected, version=version, **switches)
        return preset if selected is None else dataclasses.replace(preset, method_trials=TRIALS)

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
    random: dict[str, Any] = {"split": "random", "split_ratio": (0.4, 0.1, 0.5)}
    embedded: dict[str, Any] = {"budget": 60, "n_classes": 10, **random}
    targets: dict[str, Any] = {"level": "NR", "labels": "real", "performance": "negative-mae", "budget": 60, "n_classes": 1, **random}
    return [
        *out,
        _preset("synthetic-node-targets", "time-il", n_tasks=6, task_key="year", note=_REGRESSION, **targets),
        _preset("synthetic-node-targets", "domain-il", n_tasks=5, task_key="domain", note=_REGRESSION, **targets),
        _preset("synthetic-growing", "time-il", n_tasks=6, task_key="year", **embedded),
        _preset("synthetic-growing", "domain-il", n_tasks=5, task_key="domain", **embedded),
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
        _preset("ogbn-mag", "time-il", budget=8000, n_tasks=10, n_classes=349, **random, **years),
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
            feature_normalisation="row",
            **random,
        ),
    ]


TRIALS = {"bare": 2, "joint": 2, "ewc": 4, "lwf": 6, "mas": 6, "twp": 6, "gem": 3, "er-gnn": 3}
"""The number of settings tried for each method: unequal, like BeGin's (18 for Bare, 36 for most others)."""

_RATE: dict[str, Value] = {"training.lr": 1e-3}


def _values(
    *, ewc_lambda: float, lwf: float, mas: float, twp: tuple[float, float], gem: float, er_gnn: float
) -> dict[str, dict[str, Value]]:
    """Method defaults: the λ of EWC, and the dropout of each other method (for TWP with its β)."""
    return {
        "bare": _RATE,
        "joint": _RATE,
        "ewc": _RATE | {"method.lambda": ewc_lambda},
        "lwf": _RATE | {"backbone.dropout": lwf, "method.lambda": 1.0},
        "mas": _RATE | {"backbone.dropout": mas, "method.lambda": 1.0},
        "twp": _RATE | {"backbone.dropout": twp[0], "method.beta": twp[1]},
        "gem": _RATE | {"backbone.dropout": gem},
        "er-gnn": _RATE | {"backbone.dropout": er_gnn},
    }


SEARCHED: dict[str, dict[str, dict[str, Value]]] = {
    "cora/task-il@begin-1": _values(ewc_lambda=1e2, lwf=0.25, mas=0.0, twp=(0.0, 0.01), gem=0.25, er_gnn=0.5),
    "cora/class-il@begin-1": _values(ewc_lambda=1e4, lwf=0.0, mas=0.0, twp=(0.5, 0.0), gem=0.25, er_gnn=0.25),
    "citeseer/task-il@begin-1": _values(ewc_lambda=1e4, lwf=0.5, mas=0.25, twp=(0.25, 0.01), gem=0.5, er_gnn=0.5),
    "citeseer/class-il@begin-1": _values(ewc_lambda=1e2, lwf=0.5, mas=0.25, twp=(0.25, 0.0), gem=0.5, er_gnn=0.5),
}
