"""Switches that nothing reads in a scenario, because of what its other switches say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cglsuite.base.errors import SpecError
from cglsuite.specs.scenario import ScenarioSpec

__all__ = ["check_effective", "inert"]

_OF_CLASSES = ("classes_per_task", "leftover", "drop_last", "min_class_size")
_OF_PLATEAUS = ("training.plateau_factor", "training.stop_ratio")
_BETWEEN_TASKS = ("plateau_patience", "plateau_factor", "stop_ratio", "monitor", "restore_best", "carry_optimizer", "norm_statistics")


def inert(spec: ScenarioSpec) -> dict[str, str]:
    """Dotted name of every switch that changes nothing in a scenario with these values, to the reason."""
    by_key = spec.setting in ("domain-il", "time-il") or (spec.setting == "task-free" and spec.task_key is not None)
    by_class = spec.setting in ("task-il", "class-il")
    free = spec.setting == "task-free"
    shared = f"all tasks of {spec.setting} share their outputs from the start"
    rules: Iterable[tuple[bool, str, Iterable[str]]] = (
        (by_key, f"tasks are the values of {spec.task_key}, not groups of classes", (f"scenario.{name}" for name in _OF_CLASSES)),
        (by_class, "tasks are groups of classes", ("scenario.task_key",)),
        (by_class or free, "tasks are no steps of time", ("scenario.task_bins",)),
        (by_key and not free, shared, ("scenario.train_outputs", "scenario.head")),
        (spec.split == "official", "the split is the dataset's own", ("scenario.split_ratio",)),
        (spec.level == "NC", "nodes are items with features of their own", ("scenario.node_features",)),
        (
            spec.level in ("GC", "GR"),
            "whole graphs come with their features and directed edges",
            ("scenario.node_features", "scenario.undirected"),
        ),
        (free, "a stream without tasks has one head from the start", ("scenario.head",)),
        (free, "task-free streams are over the graph once", ("scenario.replicas",)),
        (free, "a stream without tasks has no end of a task", (f"training.{name}" for name in _BETWEEN_TASKS)),
        (spec.training.plateau_patience is None, "the rate is constant (training.plateau_patience)", _OF_PLATEAUS),
    )
    found: dict[str, str] = {}
    for holds, reason, names in rules:
        if holds:
            found |= {name: reason for name in names if name not in found}
    return found


def check_effective(spec: ScenarioSpec, preset: ScenarioSpec, asked: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse requests for another value of a switch that nothing reads.

    Args:
        spec: the resolved scenario. preset: where it comes from. asked: by section (``scenario``, ``training``), the names asked for.

    Raises:
        SpecError: with the switch, the value, the reason, and what to do.
    """
    for name, reason in inert(spec).items():
        section, _, switch = name.partition(".")
        if switch not in asked.get(section, ()):
            continue
        given, before = (getattr(part if section == "scenario" else part.training, switch) for part in (spec, preset))
        if given != before:
            raise SpecError(
                f"{preset.name}: {name} = {_shown(given)} would change nothing: {reason}; leave it out (the preset has {_shown(before)})"
            )


def _shown(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
