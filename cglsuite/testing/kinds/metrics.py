"""Conformance checks for metrics and measures: pure functions of the performance matrix or of predictions that match their specs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.cells.records.metric_values import called
from cglsuite.host import Catalogue, Entry
from cglsuite.specs import MeasureSpec
from cglsuite.streams import Answered
from cglsuite.streams.oracle import Oracle
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import disturb_randomness

_TASKS = 4
_CHANCE, _JOINT = 0.2, 0.95


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a metric."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry)
    yield Check(name="formula", action=lambda: _has_formula(spec))
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="factory")
    for setting in spec.settings:
        measure = partial(_value, catalogue, entry, setting)
        yield Check(name="value", action=partial(_has_values, spec, measure), where=setting)
        yield Check(name="pure", action=partial(_pure, measure), where=setting)
        yield Check(name="direction", action=partial(_directed, spec, measure), where=setting)


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the metric's values for each setting, so that two processes can be compared."""
    spec: Any = entry.spec
    for setting in spec.settings:
        matrices = [_matrix(setting, tasks, reached=0.9, lost=0.1) for tasks in (2, _TASKS)]
        yield f"its value in {setting}", repr([_value(catalogue, entry, setting, matrix) for matrix in matrices])


def _has_formula(spec: Any) -> None:
    if not spec.formula.strip():
        raise CheckFailed("the spec has no formula", "write one in terms of M[k,j], the performance on task j after task k")


def _matrix(setting: str, tasks: int, *, reached: float, lost: float) -> list[list[float]]:
    """Build a synthetic matrix [T + 1][T].

    Performance is chance before a task, ``reached`` right after it, and decreases by ``lost`` per later task; NaN without queries.
    """

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
        raise CheckFailed(
            "the metric modifies its input matrix", "copy the matrix before changing it: np.array(matrix, dtype=float)"
        ) from error


def _has_values(spec: Any, measure: Any) -> None:
    low, high = spec.range
    for tasks in (1, 2, _TASKS):
        value = measure(_matrix("task-il", tasks, reached=0.9, lost=0.1))
        if tasks > 1 and math.isnan(value) and not spec.undefined:
            raise CheckFailed(
                f"the metric is NaN for a complete matrix of {tasks} tasks",
                'return NaN only for incomplete matrices, or state when a complete matrix has no value: undefined="nothing is forgotten"',
            )
        if not math.isnan(value) and not low <= value <= high:
            raise CheckFailed(
                f"the metric is {value:g} for a matrix of {tasks} tasks, outside its range ({low:g}, {high:g})", "declare the correct range"
            )


def _pure(measure: Any) -> None:
    matrix = _matrix("task-il", _TASKS, reached=0.9, lost=0.1)
    values = [measure(matrix) for _ in range(2)]
    if repr(values[0]) != repr(values[1]):
        raise CheckFailed(f"two calls return {values[0]!r} and {values[1]!r}", "use only the arguments")


def _directed(spec: Any, measure: Any) -> None:
    """Check that a method that learns and remembers everything does not score worse than one that learns and retains little."""
    good = measure(_matrix("task-il", _TASKS, reached=0.9, lost=0.0))
    bad = measure(_matrix("task-il", _TASKS, reached=0.5, lost=0.15))
    if math.isnan(good) or math.isnan(bad):
        return
    if (good < bad) if spec.direction == "up" else (good > bad):
        raise CheckFailed(
            f"the metric is {good:g} for a method that forgets nothing and {bad:g} for one that forgets, but direction={spec.direction!r}",
            'set direction="up" if higher values are better, or "down" if lower values are better',
        )


_ITEMS, _OUTPUTS, _HITS_K = 60, 6, 5
_SAME = 1e-9
_FINDING = "make the measure a pure function of its argument: factory(answered) -> float, or OutputScores"


def measure_checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a measure."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry)
    yield Check(name="declaration", action=partial(_declared, spec))
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, measure_outcomes), after="declaration")
    for labels in spec.labels:
        for check, action in _OF_THE_FUNCTION.items():
            yield Check(name=check, action=partial(action, catalogue, spec, labels), where=labels, after="declaration")


def measure_outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the measure's values for correct predictions and for guesses, so that two processes can be compared."""
    spec: Any = entry.spec
    for labels in spec.labels:
        y, knowing, outputs = _case(labels, spec)
        values = [_measure_value(catalogue, spec, y, answers, outputs) for answers in (knowing, _guesses(labels, knowing))]
        yield f"its value for {labels} labels", repr(values)


def _declared(spec: MeasureSpec) -> None:
    if not spec.labels or not spec.levels:
        raise CheckFailed(
            "the measure does not declare both a kind of labels and a level",
            "declare the labels that it scores: labels=('single',), 'multi' or 'real'",
        )


def _case(labels: str, spec: MeasureSpec) -> tuple[Tensor, Tensor, Tensor]:
    """Return hidden labels, correct predictions, and the competing outputs."""
    draws = torch.Generator().manual_seed(11)
    outputs = torch.arange(_OUTPUTS) < 4
    if labels == "single":
        y = torch.randint(0, 4, (_ITEMS,), generator=draws)
        return y, y.clone(), outputs
    if labels == "real":
        y = torch.randn(_ITEMS, _OUTPUTS, generator=draws)
        return y, y.clone(), outputs
    y = torch.rand(_ITEMS, 1 if spec.levels == ("LP",) else _OUTPUTS, generator=draws) < 0.3
    return y, y.float() + 0.1 * torch.rand(y.shape, generator=draws), outputs[: y.shape[1]]


def _guesses(labels: str, knowing: Tensor) -> Tensor:
    """Return uninformed predictions in the same form."""
    draws = torch.Generator().manual_seed(12)
    return torch.randint(0, 4, knowing.shape, generator=draws) if labels == "single" else torch.randn(knowing.shape, generator=draws)


def _measure_value(catalogue: Catalogue, spec: MeasureSpec, y: Tensor, answers: Tensor, outputs: Tensor) -> float:
    """Return the performance as computed by the oracle."""
    low, high = spec.performance_range
    oracle = Oracle(len(outputs), spec.factory, _HITS_K, lower_is_better=spec.direction == "down", bounds=(low, high))
    catalogue.resolve(spec)
    oracle.deposit("check", y, torch.zeros(len(y), dtype=torch.int64), torch.ones(len(y), dtype=torch.bool))
    tested, _ = oracle.grade({"check": answers}, {"check": outputs})
    return tested[0].performance


def _scores(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Check that correct predictions and guesses have finite values in the declared range. For a single item, the value may be NaN."""
    y, knowing, outputs = _case(labels, spec)
    for answers in (knowing, _guesses(labels, knowing)):
        if not math.isfinite(_measure_value(catalogue, spec, y, answers, outputs)):
            raise CheckFailed(f"the measure returns no value for {_ITEMS} items", "return NaN only for tasks without anything to score")
    _measure_value(catalogue, spec, y[:1], knowing[:1], outputs) if spec.levels != ("LP",) else None


def _measure_is_directed(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Check that correct predictions score better than guesses."""
    y, knowing, outputs = _case(labels, spec)
    right, guessed = (_measure_value(catalogue, spec, y, answers, outputs) for answers in (knowing, _guesses(labels, knowing)))
    if not right > guessed:
        raise CheckFailed(
            f"performance is {right:g} for correct predictions and {guessed:g} for guesses, with direction={spec.direction!r}",
            'set direction="down" if lower values are better (performance is then the negated value), or fix the function',
        )


def _measure_is_pure(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Check that the measure changes nothing, draws no random numbers, and depends only on its argument."""
    y, knowing, outputs = _case(labels, spec)
    answers = _guesses(labels, knowing)
    function: Callable[[Answered], Any] = catalogue.resolve(spec)
    before = [tensor.clone() for tensor in (y, answers, outputs)]
    disturb_randomness()
    with_state = Traces(RANDOM_STATES)
    function(Answered(y=y, answers=answers, outputs=outputs, hits_k=_HITS_K))
    if changes := with_state.changes():
        raise CheckFailed(f"scoring changes global random states: {'; '.join(changes)}", _FINDING)
    if any(not torch.equal(a, b) for a, b in zip(before, (y, answers, outputs), strict=True)):
        raise CheckFailed("the measure modifies its arguments", "clone tensors before changing them")
    disturb_randomness()
    values = [_measure_value(catalogue, spec, y, answers, outputs) for _ in range(2)]
    if values[0] != values[1]:
        raise CheckFailed(f"two calls with the same predictions give {values[0]:g} and {values[1]:g}", _FINDING)


def _without_order(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Check that the score does not depend on the order of items, which is shuffled in queries."""
    y, knowing, outputs = _case(labels, spec)
    answers = _guesses(labels, knowing)
    turned = torch.randperm(len(y), generator=torch.Generator().manual_seed(13))
    first, other = (
        _measure_value(catalogue, spec, y, answers, outputs),
        _measure_value(catalogue, spec, y[turned], answers[turned], outputs),
    )
    if not abs(first - other) <= _SAME * max(1.0, abs(first)):
        raise CheckFailed(f"a different order of items gives {other:g} instead of {first:g}", "make scores independent of the order")


_OF_THE_FUNCTION: dict[str, Callable[[Catalogue, MeasureSpec, str], object]] = {
    "value": _scores,
    "direction": _measure_is_directed,
    "pure": _measure_is_pure,
    "order": _without_order,
}
