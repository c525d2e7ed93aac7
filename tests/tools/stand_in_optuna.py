"""Stands in for Optuna, which the suite does not install: the part of its interface that the documentation uses, with random draws."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["module"]


class TrialPruned(Exception):
    """As ``optuna.TrialPruned``."""


class MedianPruner:
    """Prunes a trial below the median of the finished ones at the same step."""

    def __init__(self, n_startup_trials: int = 5) -> None:
        self.n_startup_trials = n_startup_trials


class Trial:
    """As ``optuna.Trial``: what it suggested, and what it was told."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.params: dict[str, float] = {}
        self.intermediate_values: dict[int, float] = {}
        self.state, self.value = "RUNNING", float("nan")

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        share = self.study.draws.random()
        self.params[name] = low * (high / low) ** share if log else low + (high - low) * share
        return self.params[name]

    def report(self, value: float, step: int) -> None:
        assert step not in self.intermediate_values, step
        self.intermediate_values[step] = value

    def should_prune(self) -> bool:
        step, value = list(self.intermediate_values.items())[-1]
        others = [t.intermediate_values[step] for t in self.study.trials if t.state == "COMPLETE"]
        return len(others) >= self.study.pruner.n_startup_trials and value < statistics.median(others)


class Study:
    """As ``optuna.Study``."""

    def __init__(self, pruner: MedianPruner) -> None:
        self.pruner, self.draws = pruner, random.Random(0)
        self.trials: list[Trial] = []

    def optimize(self, objective: Callable[[Trial], float], n_trials: int) -> None:
        for _ in range(n_trials):
            self.trials.append(trial := Trial(self))
            try:
                trial.value, trial.state = objective(trial), "COMPLETE"
            except TrialPruned:
                trial.state = "PRUNED"

    @property
    def best_params(self) -> dict[str, float]:
        return max((t for t in self.trials if t.state == "COMPLETE"), key=lambda trial: trial.value).params


def create_study(*, direction: str, pruner: MedianPruner) -> Study:
    assert direction == "maximize"
    return Study(pruner)


def module() -> ModuleType:
    """A module to put in Optuna's place."""
    made: Any = ModuleType("optuna")
    made.TrialPruned, made.create_study = TrialPruned, create_study
    made.pruners = ModuleType("optuna.pruners")
    made.pruners.MedianPruner = MedianPruner
    return made  # type: ignore[no-any-return]
