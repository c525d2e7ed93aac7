"""Conformance of a measure: a pure function of the answers to a task, with the declared range and direction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.specs import MeasureSpec
from cglsuite.streams import Answered
from cglsuite.streams.oracle import Oracle
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Seen, examined
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.runs import disturb_randomness

_ITEMS, _OUTPUTS, _HITS_K = 60, 6, 5
_SAME = 1e-9
_FINDING = "a measure is a pure function of its argument: factory(answered) -> float, or OutputScores"


def check_measure(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a measure of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every check that does not hold, with what to do.
        UnknownNameError: there is no such measure.
    """
    examine_measure(name, catalogue).raise_failures()


def examine_measure(name: str, catalogue: Catalogue | None = None, *, seen: Seen | None = None, only: Sequence[str] = ()) -> CheckReport:
    """The findings of all checks of a measure, or of those in ``only``; ``seen`` receives each immediately."""
    whole = catalogue or load_catalogue()
    entry = whole.get("measure", name)
    return examined(entry, _checks(whole, entry), seen, only)


def _checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry)
    yield Check(name="declaration", action=partial(_declared, spec))
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="declaration")
    for labels in spec.labels:
        for check, action in _OF_THE_FUNCTION.items():
            yield Check(name=check, action=partial(action, catalogue, spec, labels), where=labels, after="declaration")


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """The measure's values for correct answers and for guesses, to compare between processes."""
    spec: Any = entry.spec
    for labels in spec.labels:
        y, knowing, outputs = _case(labels, spec)
        values = [_value(catalogue, spec, y, answers, outputs) for answers in (knowing, _guesses(labels, knowing))]
        yield f"its value for {labels} labels", repr(values)


def _declared(spec: MeasureSpec) -> None:
    if not spec.labels or not spec.levels:
        raise CheckFailed("it declares no kind of labels or no level", "name what it scores: labels=('single',), 'multi' or 'real'")


def _case(labels: str, spec: MeasureSpec) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden labels, correct answers, and the outputs that compete."""
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
    """Uninformed answers in the same form."""
    draws = torch.Generator().manual_seed(12)
    return torch.randint(0, 4, knowing.shape, generator=draws) if labels == "single" else torch.randn(knowing.shape, generator=draws)


def _value(catalogue: Catalogue, spec: MeasureSpec, y: Tensor, answers: Tensor, outputs: Tensor) -> float:
    """The performance as the oracle computes it."""
    low, high = spec.performance_range
    oracle = Oracle(len(outputs), spec.factory, _HITS_K, lower_is_better=spec.direction == "down", bounds=(low, high))
    catalogue.resolve(spec)
    oracle.deposit("check", y, torch.zeros(len(y), dtype=torch.int64), torch.ones(len(y), dtype=torch.bool))
    tested, _ = oracle.grade({"check": answers}, {"check": outputs})
    return tested[0].performance


def _scores(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Correct answers and guesses have a finite value in the declared range; a single item has one or none."""
    y, knowing, outputs = _case(labels, spec)
    for answers in (knowing, _guesses(labels, knowing)):
        if not math.isfinite(_value(catalogue, spec, y, answers, outputs)):
            raise CheckFailed(f"{_ITEMS} items have no value", "NaN is for tasks without anything to score")
    _value(catalogue, spec, y[:1], knowing[:1], outputs) if spec.levels != ("LP",) else None


def _directed(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """Correct answers score better than guesses."""
    y, knowing, outputs = _case(labels, spec)
    right, guessed = (_value(catalogue, spec, y, answers, outputs) for answers in (knowing, _guesses(labels, knowing)))
    if not right > guessed:
        raise CheckFailed(
            f"performance is {right:g} for right answers and {guessed:g} for guesses, under direction={spec.direction!r}",
            'declare direction="down" where lower values are better (performance is then minus the value), or correct the function',
        )


def _pure(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """The measure changes nothing, draws no random numbers, and depends only on its argument."""
    y, knowing, outputs = _case(labels, spec)
    answers = _guesses(labels, knowing)
    function: Callable[[Answered], Any] = catalogue.resolve(spec)
    before = [tensor.clone() for tensor in (y, answers, outputs)]
    disturb_randomness()
    with_state = Traces(RANDOM_STATES)
    function(Answered(y=y, answers=answers, outputs=outputs, hits_k=_HITS_K))
    if changes := with_state.changes():
        raise CheckFailed(f"scoring changes global randomness: {'; '.join(changes)}", _FINDING)
    if any(not torch.equal(a, b) for a, b in zip(before, (y, answers, outputs), strict=True)):
        raise CheckFailed("it writes to what it is given", "clone before you change a tensor")
    disturb_randomness()
    values = [_value(catalogue, spec, y, answers, outputs) for _ in range(2)]
    if values[0] != values[1]:
        raise CheckFailed(f"the same answers are given {values[0]:g} and {values[1]:g}", _FINDING)


def _without_order(catalogue: Catalogue, spec: MeasureSpec, labels: str) -> None:
    """The order of items, which is shuffled in queries, has no effect."""
    y, knowing, outputs = _case(labels, spec)
    answers = _guesses(labels, knowing)
    turned = torch.randperm(len(y), generator=torch.Generator().manual_seed(13))
    first, other = _value(catalogue, spec, y, answers, outputs), _value(catalogue, spec, y[turned], answers[turned], outputs)
    if not abs(first - other) <= _SAME * max(1.0, abs(first)):
        raise CheckFailed(f"the same items in another order give {other:g} instead of {first:g}", "score items, not their places")


_OF_THE_FUNCTION: dict[str, Callable[[Catalogue, MeasureSpec, str], object]] = {
    "value": _scores,
    "direction": _directed,
    "pure": _pure,
    "order": _without_order,
}
