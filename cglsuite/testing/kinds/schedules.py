"""Conformance of a mixing schedule: a pure function of steps and spans that weights every latent task at every step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.streams.mixing import mid_steps, mixture_of
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Seen, examined
from cglsuite.testing.judge.sandbox import Sandbox
from cglsuite.testing.kinds.cases import Case
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.runs import disturb_randomness
from cglsuite.testing.streams import FINE_TUNING, tiny_catalogue

_SPANS = {"two latent tasks": (0.0, 6.0, 12.0), "five, of unequal size": (0.0, 3.0, 40.0, 41.0, 60.0, 64.0)}
_STREAM = "testing-nodes/task-free@testing-1"


def check_schedule(name: str, catalogue: Catalogue | None = None) -> None:
    """Check a schedule of the catalogue, for use in a test.

    Raises:
        CheckFailed: names every failed check and its fix.
        UnknownNameError: there is no such schedule.
    """
    examine_schedule(name, catalogue).raise_failures()


def examine_schedule(name: str, catalogue: Catalogue | None = None, *, seen: Seen | None = None, only: Sequence[str] = ()) -> CheckReport:
    """The findings of all checks of a schedule, or of those in ``only``; ``seen`` receives each immediately."""
    whole = catalogue or load_catalogue()
    entry = whole.get("schedule", name)
    return examined(entry, _checks(tiny_catalogue(whole), entry), seen, only)


def _checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters)
    for where, spans in _SPANS.items():
        array = np.asarray(spans)
        yield Check(name="weights", action=partial(_weights, catalogue, entry, array), where=where, after="factory")
        yield Check(name="pure", action=partial(_pure, catalogue, entry, array), where=where, after="factory")
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, outcomes), after="weights")
    yield Check(name="stream", action=partial(_streams, catalogue, entry), where=_STREAM, after="weights")
    yield Check(name="resumable", action=partial(_resumable, catalogue, entry), where=_STREAM, after="stream")


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """The schedule's weights, to compare between processes."""
    for where, spans in _SPANS.items():
        weights = np.ascontiguousarray(_called(catalogue, entry, np.asarray(spans)))
        yield f"its weights for {where}", hashlib.sha256(weights.tobytes()).hexdigest()


def _called(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> Any:
    """The schedule's weights for these spans, with default hyper-parameters and, if it follows dates, four dated items per step."""
    spec: Any = entry.spec
    factory: Callable[..., Any] = catalogue.resolve(entry)
    values = {h.name: h.default for h in spec.hyperparameters}
    if getattr(factory, "needs_arrivals", False):
        values["arrivals"] = [np.arange(4 * round(a), 4 * round(b)) // 3 for a, b in pairwise(spans)]
    return factory(mid_steps(spans), spans, **values)


def _weights(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> None:
    """The weights are float64 [T, K], finite, not negative and not all zero at any step, and every latent task arrives."""
    steps, tasks = round(float(spans[-1])), len(spans) - 1
    weights = _called(catalogue, entry, spans)
    what = f"factory(steps [{steps}], spans [{tasks + 1}])"
    form = f"return a NumPy array, float64 [{steps}, {tasks}]: a row per step, a column per latent task"
    if not isinstance(weights, np.ndarray):
        raise CheckFailed(f"{what} returns a {type(weights).__name__}; expected a NumPy array [{steps}, {tasks}]", form)
    if weights.shape != (steps, tasks):
        raise CheckFailed(f"{what} returns an array {list(weights.shape)}; expected [{steps}, {tasks}]", form)
    if weights.dtype != np.float64:
        raise CheckFailed(f"{what} returns {weights.dtype}; expected float64", "compute in float64, as the steps and spans are")
    shares = mixture_of(weights, f"schedule {entry.name!r}")
    if (absent := np.flatnonzero(shares.sum(axis=0) <= 0)).size:
        raise CheckFailed(
            f"latent task {int(absent[0]) + 1} of {tasks} has weight 0 at all {steps} steps; expected every latent task to arrive",
            "give each latent task some weight in its own span, spans[k] to spans[k + 1]",
        )


def _pure(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> None:
    """The weights are the same each time, whatever the global random state, and neither that state nor arguments change."""
    copy = spans.copy()
    disturb_randomness()
    before = Traces(RANDOM_STATES)
    first = np.array(_called(catalogue, entry, spans))
    if changes := before.changes():
        raise CheckFailed(
            f"it draws from global random states: {'; '.join(changes)}",
            "use np.random.default_rng(seed) with a seed that is a hyper-parameter",
        )
    if not np.array_equal(spans, copy):
        raise CheckFailed("it writes to the spans that it is given", "copy before changing: spans = spans.copy()")
    disturb_randomness()
    if not np.array_equal(first, np.array(_called(catalogue, entry, spans)), equal_nan=True):
        raise CheckFailed("two calls with the same arguments give different weights", "compute from the arguments alone; no module state")


def _case(catalogue: Catalogue, entry: Entry, method_sandbox: Sandbox) -> Case:
    overrides = {"stream.schedule": entry.name}
    if getattr(catalogue.resolve(entry), "needs_arrivals", False):
        overrides["schedule.key"] = "year"
    return Case(method_sandbox=method_sandbox, catalogue=catalogue, method=FINE_TUNING, scenario=_STREAM, seed=1, overrides=overrides)


def _streams(catalogue: Catalogue, entry: Entry) -> None:
    """A tiny task-free stream is built, and its steps deliver items of every latent task."""
    with Sandbox() as method_sandbox:
        case = _case(catalogue, entry, method_sandbox)
        stream: Any = case.stream(case.cell())[0]
    arrived = {int(k) for k in stream.counts.sum(dim=0).nonzero().flatten()}
    if missing := set(range(len(stream))) - arrived:
        raise CheckFailed(f"no step delivers items of latent task {min(missing) + 1}", "give it more weight in its own span")


def _resumable(catalogue: Catalogue, entry: Entry) -> None:
    """Fine-tuning stopped mid-stream and resumed in another process gives the same results as an uninterrupted run."""
    with Sandbox() as method_sandbox:
        case = _case(catalogue, entry, method_sandbox)
        first = case.run_one()
        middle = max(1, len(first.states) // 2)
        rest = case.run_one(resume=(middle, first.states[middle - 1]))
    if rest.losses != first.losses[middle:] or any(rest.answers[row] != first.answers[row] for row in rest.answers if row > middle):
        raise CheckFailed(
            f"a run resumed after evaluation {middle} of {len(first.states)} in another process gives different results",
            "compute from the arguments alone: a seed from time, the process id or hash() differs in every process",
        )
