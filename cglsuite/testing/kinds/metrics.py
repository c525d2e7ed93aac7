"""Conformance of a metric: a pure function of the performance matrix, with the declared range and direction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from cglsuite.cells.records.metric_values import called
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Seen, examined
from cglsuite.testing.kinds.entries import entry_checks

_TASKS = 4
_CHANCE, _JOINT = 0.2, 0.95


def check_metric(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a metric of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix.
        UnknownNameError: there is no such metric.
    """
    examine_metric(name, catalogue).raise_failures()


def examine_metric(name: str, catalogue: Catalogue | None = None, *, seen: Seen | None = None, only: Sequence[str] = ()) -> CheckReport:
    """The findings of all checks of a metric, or of those in ``only``; ``seen`` receives each immediately."""
    whole = catalogue or load_catalogue()
    entry = whole.get("metric", name)
    return examined(entry, chain(entry_checks(whole, entry), _of_the_function(whole, entry)), seen, only)


def _of_the_function(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    spec: Any = entry.spec
    yield Check(name="formula", action=lambda: _has_formula(spec))
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="factory")
    for setting in spec.settings:
        measure = partial(_value, catalogue, entry, setting)
        yield Check(name="value", action=partial(_has_values, spec, measure), where=setting)
        yield Check(name="pure", action=partial(_pure, measure), where=setting)
        yield Check(name="direction", action=partial(_directed, spec, measure), where=setting)


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """The metric's values by setting, to compare between processes."""
    spec: Any = entry.spec
    for setting in spec.settings:
        matrices = [_matrix(setting, tasks, reached=0.9, lost=0.1) for tasks in (2, _TASKS)]
        yield f"its value in {setting}", repr([_value(catalogue, entry, setting, matrix) for matrix in matrices])


def _has_formula(spec: Any) -> None:
    if not spec.formula.strip():
        raise CheckFailed("the spec has no formula", "write it with M[k,j], the performance on task j after task k")


def _matrix(setting: str, tasks: int, *, reached: float, lost: float) -> list[list[float]]:
    """A synthetic matrix [T + 1][T]: chance before a task, ``reached`` right after it, minus ``lost`` per later task; NaN without
    queries."""

    def cell(k: int, j: int) -> float:
        if k > j:
            return max(0.0, reached - lost * (k - 1 - j))
        return math.nan if setting == "class-il" else _CHANCE

    return [[cell(k, j) for j in range(tasks)] for k in range(tasks + 1)]


def _value(catalogue: Catalogue, entry: Entry, setting: str, matrix: list[list[float]]) -> float:
    spec: Any = entry.spec
    tasks = len(matrix[0])
    joint = _matrix(setting, tasks, reached=_JOINT, lost=0.0) if spec.reference else None
    more: dict[str, Any] = {}
    facts = [{"name": str(k), "classes": [k], "n_train": 10, "n_validation": 5, "n_test": 5} for k in range(tasks)]
    if spec.needs_tasks:
        more["stream"] = {"tasks": facts}
    if setting == "task-free":
        delivered = [[10 * max(0, min(1, after - k)) for k in range(tasks)] for after in range(tasks + 1)]
        more["stream"] = {"evaluations": [10 * after for after in range(tasks + 1)], "delivered": delivered, "tasks": facts}
    try:
        return called(catalogue.resolve(entry), matrix, joint, **more)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise CheckFailed("it modifies its input matrix", "copy before changing: np.array(matrix, dtype=float)") from error


def _has_values(spec: Any, measure: Any) -> None:
    low, high = spec.range
    for tasks in (1, 2, _TASKS):
        value = measure(_matrix("task-il", tasks, reached=0.9, lost=0.1))
        if tasks > 1 and math.isnan(value) and not spec.undefined:
            raise CheckFailed(
                f"it is NaN for a complete matrix of {tasks} tasks",
                'NaN is for incomplete matrices; if a complete matrix can have no value, say when: undefined="nothing is forgotten"',
            )
        if not math.isnan(value) and not low <= value <= high:
            raise CheckFailed(f"it is {value:g} for a matrix of {tasks} tasks; range = ({low:g}, {high:g})", "declare its true range")


def _pure(measure: Any) -> None:
    matrix = _matrix("task-il", _TASKS, reached=0.9, lost=0.1)
    values = [measure(matrix) for _ in range(2)]
    if repr(values[0]) != repr(values[1]):
        raise CheckFailed(f"two calls give {values[0]!r} and {values[1]!r}", "compute from the arguments alone")


def _directed(spec: Any, measure: Any) -> None:
    """A method that learns and keeps everything must not score worse than one that learns little and forgets it."""
    good = measure(_matrix("task-il", _TASKS, reached=0.9, lost=0.0))
    bad = measure(_matrix("task-il", _TASKS, reached=0.5, lost=0.15))
    if math.isnan(good) or math.isnan(bad):
        return
    if (good < bad) if spec.direction == "up" else (good > bad):
        raise CheckFailed(
            f"it is {good:g} for a method that forgets nothing and {bad:g} for one that forgets, but direction={spec.direction!r}",
            'set direction="up" if higher is better, "down" if lower is',
        )
