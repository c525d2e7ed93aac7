"""Settings that must change a result: every declared setting of every built-in method, and every training switch, over a tiny stream."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from installed import installed
from tiny_streams import catalogue_runner, tiny_data, tiny_graphs, tiny_runner, tiny_stream
from tiny_task_free import catalogue_task_free_runner, tiny_task_free_stream

from cglsuite import Method, TrainingSpec
from cglsuite.learning.result import RunResult
from cglsuite.specs import resolve_hyperparameters
from cglsuite.specs.hyperparameters import implicit_defaults

CATALOGUE = installed()
METHODS: dict[str, Any] = {e.name: e.spec for e in CATALOGUE.entries("method") if e.record.distribution == "cglsuite-methods"}

#: Memories smaller than a task, rare events made common, and weights that are felt within a few steps.
BASE: dict[str, dict[str, Any]] = {
    "continual-gnn": {"memory": 24, "replayed": 6, "fisher": "batch"},
    **{name: {"per_class": 2, "candidates": 4, "sampler": "cm"} for name in ("er-gnn", "ssrm")},
    "ewc": {"lambda": 100.0},
    "gem": {"per_task": 5},
    "joint": {"offline_epochs": 3, "offline_batch": 16},
    **{name: {"memory": 12} for name in ("er", "a-gem", "der++", "er-ace", "gss", "dmsg", "gdumb", "icarl")},
    **{name: {"memory": 40, "fan_out": 2} for name in ("ssm", "sem")},
    "mas-star": {"hard_buffer": 8, "mean_threshold": 3.0, "variance_threshold": 1.0},
    "cat": {"per_task": 6},
    "pdgnns-tem": {"per_class": 3},
    "delome": {"per_class": 3, "draws": 4, "hidden": 8},
    "puma": {"per_task": 6, "encoders": 2, "steps": 2, "width": 16},
    "pi-gnn": {"per_task": 30, "share": 0.3},
    "replay": {"fraction": 0.3},
    "twp": {"lambda_l": 100.0, "lambda_t": 100.0},
}
#: What a setting is changed to, and what else must hold for it to say something: ``method.setting`` to changes of base and of the setting.
CHANGED: dict[str, tuple[dict[str, Any], Any]] = {
    "a-gem.reference": ({}, 3),
    "hat.share": ({}, 0.9),
    "packnet.share": ({}, 0.9),
    "pi-gnn.share": ({}, 1.0),
    "continual-gnn.chunk": ({"fisher": "items"}, 4),
    **{
        f"{name}.{setting}": change
        for name in ("er-gnn", "ssrm")
        for setting, change in {
            "candidates": ({"distance": 2.0}, 2),
            "distance": ({"candidates": 99}, 2.0),
            "swap_weights": ({"sampler": "mf"}, True),
        }.items()
    },
    "gem.fraction": ({}, 0.1),
    "gdoc.alpha": ({}, 0.1),
    "gss.compared_batches": ({}, 2),
    "joint.only_last": ({}, True),
    "mas-star.variance_threshold": ({}, 1e-3),
    "mas-star.window": ({}, 2),
    "sem.curvature": ({}, "overlap"),
    "tpp.infer": ({"steps": 0}, "graph"),
    "analytic-ridge.hops": ({}, 1),
    "analytic-ridge.lambda": ({}, 100.0),
    "simple-cil.per_task": ({}, 5),
}
#: Hyperparameters that bound memory and change no number but for rounding, as their documentation says; that is tested as well.
NEUTRAL = {"chunk"}
#: Hyperparameters of the answers alone, which no state depends on.
OF_ANSWERS = {"task-guesser.evidence", "tpp.infer", "analytic-ridge.lambda", "teen.alpha", "teen.temperature"}


def other(setting: Any, value: Any) -> Any:
    """A permitted value that differs from ``value``."""
    if setting.type is bool:
        return not value
    if setting.choices:
        return next(c for c in setting.choices if c != value)
    if setting.type is int:
        return value + 3 if value < 20 else value // 2
    halved = value / 2 if value else 0.5
    return halved if setting.minimum is None or halved >= setting.minimum else value * 2


def cases() -> list[Any]:
    return [pytest.param(name, s, id=f"{name}.{s.name}") for name, spec in METHODS.items() for s in spec.hyperparameters]


def run(method: str, hyperparameters: dict[str, Any], free: bool) -> RunResult:
    if free:
        training = {"epochs": 2, "lr": 0.05}
        return catalogue_task_free_runner(tiny_task_free_stream(training=training), method, hyperparameters).run()
    training = {"epochs": 3, "lr": 0.05}
    policy, setting = ("inter-task", "class-il") if "class-il" in METHODS[method].settings else ("full", "task-il")
    base = {"base_classes": 4, "classes_per_task": 1} if method == "teen" else {}
    stream = tiny_stream(tiny_data(per_class=15), training=training, edge_policy=policy, setting=setting, **base)
    return catalogue_runner(stream, method, hyperparameters).run()


@cache
def result(method: str, hyperparameters: tuple[tuple[str, Any], ...], free: bool) -> RunResult:
    """What a run computed; kept, since a method's settings are compared with one base."""
    return run(method, dict(hyperparameters), free)


def bits(found: RunResult, of: str = "state") -> list[str]:
    """Of every state, or of all answers given in it."""
    return [f[of] for f in found.fingerprints]


@pytest.mark.sampled(47)
@pytest.mark.plugins
@pytest.mark.parametrize(("method", "setting"), cases())
def test_a_setting_of_a_method_changes_its_result(method: str, setting: Any) -> None:
    """Or, where it is known to be neutral, nothing but how sums are rounded."""
    also, value = CHANGED.get(f"{method}.{setting.name}", ({}, None))
    spec = METHODS[method]
    base = implicit_defaults(spec.hyperparameters) | resolve_hyperparameters(spec.hyperparameters, BASE.get(method, {}) | also, "method")
    changed = base | {setting.name: other(setting, base[setting.name]) if value is None else value}
    assert changed != base
    free = not set(spec.settings) - {"task-free"} or setting.name in ("offline_epochs", "offline_batch")
    before, after = (result(method, tuple(sorted(s.items())), free) for s in (base, changed))
    if setting.name in NEUTRAL:
        losses = ([loss for curve in found.curves for loss in curve["loss"]] for found in (before, after))
        assert next(losses) == pytest.approx(next(losses), rel=1e-3)
    elif f"{method}.{setting.name}" in OF_ANSWERS:
        assert bits(before) == bits(after)
        assert bits(before, "answers") != bits(after, "answers")
    else:
        assert bits(before) != bits(after)


@pytest.mark.plugins
def test_no_case_is_of_a_setting_that_is_gone() -> None:
    assert {f"{name}.{s.name}" for name, spec in METHODS.items() for s in spec.hyperparameters} >= set(CHANGED)


MONITORED = {"monitor": "validation-loss", "epochs": 12, "lr": 0.2}
ON_PLATEAUS = MONITORED | {"plateau_patience": 0}
#: What a switch is changed to, and the switches with which it says something.
SWITCHES: dict[str, tuple[dict[str, Any], Any]] = {
    "optimizer": ({}, "sgd"),
    "lr": ({}, 0.01),
    "weight_decay": ({}, 0.1),
    "epochs": ({}, 3),
    "plateau_patience": (MONITORED, 0),
    "plateau_factor": (ON_PLATEAUS, 0.5),
    "stop_ratio": (ON_PLATEAUS, 0.5),
    "monitor": ({"epochs": 12, "lr": 0.2, "plateau_patience": 0, "monitor": "validation-loss"}, "validation-performance"),
    "restore_best": (MONITORED, True),
    "carry_optimizer": ({}, True),
    "class_balanced": ({}, True),
    "norm_statistics": ({}, "per-task"),
    "batch_size": ({}, 4),
    "fan_out": ({"batch_size": 8}, (1, 1)),
}
#: ``backbone`` is resolved before a stream is made.
ELSEWHERE = {"backbone"}


def trained(training: dict[str, Any], graphs: bool = False) -> list[str]:
    data: Any = tiny_graphs() if graphs else tiny_data(n_classes=4, per_class=9)
    return bits(tiny_runner(tiny_stream(data, training=training), Method).run())


def test_every_training_switch_has_a_case() -> None:
    assert set(SWITCHES) | ELSEWHERE == {f.name for f in dataclasses.fields(TrainingSpec)}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_training_switch_changes_a_result(name: str) -> None:
    base, value = SWITCHES[name]
    before, after = trained(base), trained(base | {name: value})
    assert before != after


@pytest.mark.parametrize("name", sorted(set(SWITCHES) - {"fan_out", "class_balanced"}))
def test_so_it_does_for_graphs(name: str) -> None:
    base, value = SWITCHES[name]
    assert trained(base, graphs=True) != trained(base | {name: value}, graphs=True)
