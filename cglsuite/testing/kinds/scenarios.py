"""Conformance checks for scenarios and mixing schedules.

A scenario's stream must be reproducible, its parts must not overlap, and views must not give access to hidden labels. A schedule must be a
pure function of steps and spans that returns the weight of every latent task at every step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cglsuite.base.errors import NotApplicable
from cglsuite.base.traces import Traces
from cglsuite.cells.process import RANDOM_STATES
from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.cells.spec import CellSpec, resolve_cell
from cglsuite.host import Catalogue, Entry
from cglsuite.specs import Seeds
from cglsuite.streams import TaskFreeStream, TaskStream
from cglsuite.streams.mixing import mid_steps, mixture_of
from cglsuite.testing.apart import same_everywhere
from cglsuite.testing.findings import Check, CheckFailed
from cglsuite.testing.judge.audited import path_to
from cglsuite.testing.judge.sandbox import Sandbox
from cglsuite.testing.kinds.cases import Case
from cglsuite.testing.kinds.datasets import load_offline
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import FINE_TUNING, FORBIDDEN, disturb_randomness, finite, stream_content

_LARGEST_RUN = 20_000
_PARTS = ("train", "validation", "test")
Stream = TaskStream | TaskFreeStream


def checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a scenario. Checks whose raw files are missing are skipped."""
    built: Callable[[], Stream] = cache(partial(_built, catalogue, entry))
    yield from entry_checks(catalogue, entry, cited=not _embedded(catalogue, entry))
    yield Check(name="names", action=lambda: _cell(catalogue, entry))
    yield Check(name="builds", after="names", action=built)
    yield Check(name="parts", after="builds", action=lambda: _parts(built()))
    yield Check(name="repeatable", after="builds", action=lambda: _repeatable(catalogue, entry, built()))
    yield Check(name="processes", after="repeatable", action=partial(same_everywhere, catalogue, entry, outcomes))
    yield Check(name="queries", after="builds", action=lambda: _queries(built()))
    yield Check(name="no way to answers", after="builds", action=lambda: _out_of_reach(built()))
    yield Check(name="runs", after="builds", action=lambda: _runs(catalogue, entry, built()))


def outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the content of the first views and queries, so that two processes can be compared."""
    for name, content in stream_content(_built(catalogue, entry)):
        yield f"its stream ({name})", hashlib.sha256(content).hexdigest()


def _embedded(catalogue: Catalogue, entry: Entry) -> bool:
    spec: Any = entry.spec
    return spec.dataset in catalogue.names("dataset") and catalogue.dataset(spec.dataset).embedded


def _cell(catalogue: Catalogue, entry: Entry) -> CellSpec:
    """Return a cell with plain fine-tuning. Also check that the scenario's dataset, backbone and schedule are in the catalogue."""
    spec: Any = entry.spec
    named = entry.name.partition("/")[0]
    if named != spec.dataset and not f"{named}-".startswith(f"{spec.dataset}-") and not f"{spec.dataset}-".startswith(f"{named}-"):
        raise CheckFailed(
            f"the name starts with {named}, but the data set is {spec.dataset}",
            f"start the name with the data set or a variant of it ({spec.dataset}/..., {spec.dataset}-small/...), or set dataset={named!r}",
        )
    if spec.dataset not in catalogue.names("dataset"):
        raise CheckFailed(
            f"the data set {spec.dataset!r} of the scenario is unknown: no installed plugin provides it",
            f"provide a DatasetSpec named {spec.dataset!r} in this package (cglsuite_datasets), or add the "
            f"distribution that provides it to "
            "the dependencies",
        )
    return resolve_cell(catalogue, entry.name, FINE_TUNING, seeds=Seeds())


def _built(catalogue: Catalogue, entry: Entry) -> Stream:
    spec: Any = entry.spec
    load_offline(catalogue, catalogue.get("dataset", spec.dataset), dict(_cell(catalogue, entry).dataset_hyperparameters))
    return build_stream(_cell(catalogue, entry), catalogue)


def _parts(stream: Stream) -> None:
    """Check that every task has training and test items and, if tasks consist of classes, that no class is in two tasks.

    No test item may be a training or validation item of its task, or a training item of another task.
    """
    if stream.spec.setting in ("task-il", "class-il") and (shared := (stream.task_outputs.sum(dim=0) > 1).nonzero().flatten().tolist()):
        of = [k + 1 for k in range(len(stream)) if bool(stream.task_outputs[k, shared[0]])]
        raise CheckFailed(
            f"class {shared[0]} is in {len(of)} tasks ({', '.join(map(str, of))}); expected every class in a single task for "
            f"{stream.spec.setting}",
            "assign each class to one task, or declare setting='domain-il'",
        )
    ids = [{part: stream.members(k, part) for part in _PARTS} for k in range(len(stream))]
    for k, parts in enumerate(ids):
        if empty := [part for part in ("train", "test") if not parts[part].numel()]:
            raise CheckFailed(f"task {k + 1} of {len(ids)} has no {empty[0]} items", "choose another split or other tasks")
        total = torch.cat(list(parts.values()))
        if total.numel() != total.unique().numel():
            raise CheckFailed(f"the parts of task {k + 1} overlap", "assign every item of a task to one part")
    trained = torch.cat([parts["train"] for parts in ids])
    for k, parts in enumerate(ids):
        if common := int(torch.isin(parts["test"], trained).sum()):
            raise CheckFailed(
                f"{common} test items of task {k + 1} are training items of another task",
                "split the items once, before forming tasks, so that an item has the same part in every task (split=node-consistent)",
            )


def _repeatable(catalogue: Catalogue, entry: Entry, first: Stream) -> None:
    disturb_randomness()
    before = Traces(RANDOM_STATES)
    again = _built(catalogue, entry)
    same = [t.content for t in again.tasks] == [t.content for t in first.tasks] and stream_content(again) == stream_content(first)
    if before.changes():
        raise CheckFailed("building the stream changes global random states", "draw from a torch.Generator seeded by the scenario's seeds")
    if not same:
        raise CheckFailed("two builds of the stream differ", "derive all random draws from seeds.order and seeds.split")


def _queries(stream: Stream) -> None:
    """Check that queries have no labels, and that the label of every final query is among the competing outputs."""
    last = stream.evaluations[-1] if isinstance(stream, TaskFreeStream) else len(stream)
    groups = stream.make_queries(last)
    if missing := set(range(len(stream))) - {k for group in groups for k in group.tasks}:
        raise CheckFailed(f"after the last task, there is no query for task {min(missing) + 1}", "query the test items of every task")
    for group in groups:
        if group.query.y is not None:
            raise CheckFailed("a query contains labels", "set y=None; only the oracle has the labels")
    if isinstance(stream, TaskFreeStream):
        return
    for group in groups:
        items, allowed = stream.asked(group.token), group.query.allowed
        if items.y.dim() == 1 and not items.y.is_floating_point():
            rows = allowed if allowed.dim() == 2 else allowed.expand(len(items.y), -1)
            answerable = rows.cpu().gather(1, items.y.cpu()[:, None]).squeeze(1)
            if not bool(answerable[items.test.cpu()].all()):
                raise CheckFailed("the label of a test item is not among the competing outputs", "include all outputs of learnt tasks")


def _out_of_reach(stream: Stream) -> None:
    views = [stream.make_batch(0)] if isinstance(stream, TaskFreeStream) else [stream.view(0)]
    queries = [g.query for g in stream.make_queries(stream.evaluations[-1] if isinstance(stream, TaskFreeStream) else len(stream))]
    for wanted in FORBIDDEN:
        for what in (*views, *queries):
            if (path := path_to(wanted, what)) is not None:
                raise CheckFailed(
                    f"a {type(what).__name__} gives access to the stream's {wanted.__name__} through {path}",
                    "copy the data that views need",
                )


def _runs(catalogue: Catalogue, entry: Entry, stream: Stream) -> None:
    """Check that fine-tuning runs through the scenario with one epoch per task."""
    items = sum(t.n_train for t in stream.tasks)
    if items > _LARGEST_RUN:
        raise NotApplicable(f"the stream has {items} training items; this check is limited to {_LARGEST_RUN}")
    cell = resolve_cell(catalogue, entry.name, FINE_TUNING, overrides={"training.epochs": 1}, seeds=Seeds())
    with numerics(cell):
        finite(make_runner(cell, catalogue, build_stream(cell, catalogue)).run())


_SPANS = {"two latent tasks": (0.0, 6.0, 12.0), "five, of unequal size": (0.0, 3.0, 40.0, 41.0, 60.0, 64.0)}
_STREAM = "testing-nodes/task-free@testing-1"


def schedule_checks(catalogue: Catalogue, entry: Entry) -> Iterator[Check]:
    """Yield the checks of a schedule."""
    spec: Any = entry.spec
    yield from entry_checks(catalogue, entry, spec.hyperparameters)
    for where, spans in _SPANS.items():
        array = np.asarray(spans)
        yield Check(name="weights", action=partial(_weights, catalogue, entry, array), where=where, after="factory")
        yield Check(name="pure", action=partial(_pure, catalogue, entry, array), where=where, after="factory")
    yield Check(name="processes", action=partial(same_everywhere, catalogue, entry, schedule_outcomes), after="weights")
    yield Check(name="stream", action=partial(_streams, catalogue, entry), where=_STREAM, after="weights")
    yield Check(name="resumable", action=partial(_resumable, catalogue, entry), where=_STREAM, after="stream")


def schedule_outcomes(catalogue: Catalogue, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the schedule's weights, so that two processes can be compared."""
    for where, spans in _SPANS.items():
        weights = np.ascontiguousarray(_called(catalogue, entry, np.asarray(spans)))
        yield f"its weights for {where}", hashlib.sha256(weights.tobytes()).hexdigest()


def _called(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> Any:
    """Return the schedule's weights for these spans with default hyperparameters, and four dated items per step if it uses dates."""
    spec: Any = entry.spec
    factory: Callable[..., Any] = catalogue.resolve(entry)
    values = {h.name: h.default for h in spec.hyperparameters}
    if getattr(factory, "needs_arrivals", False):
        values["arrivals"] = [np.arange(4 * round(a), 4 * round(b)) // 3 for a, b in pairwise(spans)]
    return factory(mid_steps(spans), spans, **values)


def _weights(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> None:
    """Check that the weights are float64 [T, K], finite, non-negative and not all zero at any step, and that every latent task occurs."""
    steps, tasks = round(float(spans[-1])), len(spans) - 1
    weights = _called(catalogue, entry, spans)
    what = f"factory(steps [{steps}], spans [{tasks + 1}])"
    form = f"return a NumPy array, float64 [{steps}, {tasks}], with one row per step and one column per latent task"
    if not isinstance(weights, np.ndarray):
        raise CheckFailed(f"{what} returns a {type(weights).__name__}; expected a NumPy array [{steps}, {tasks}]", form)
    if weights.shape != (steps, tasks):
        raise CheckFailed(f"{what} returns an array {list(weights.shape)}; expected [{steps}, {tasks}]", form)
    if weights.dtype != np.float64:
        raise CheckFailed(f"{what} returns {weights.dtype}; expected float64", "compute in float64, the dtype of the steps and spans")
    shares = mixture_of(weights, f"schedule {entry.name!r}")
    if (absent := np.flatnonzero(shares.sum(axis=0) <= 0)).size:
        raise CheckFailed(
            f"latent task {int(absent[0]) + 1} of {tasks} has weight 0 at all {steps} steps; expected every latent task to occur",
            "give each latent task a positive weight in its own span, spans[k] to spans[k + 1]",
        )


def _pure(catalogue: Catalogue, entry: Entry, spans: NDArray[np.float64]) -> None:
    """Check that weights do not depend on global random states, and that neither these states nor the arguments are changed."""
    copy = spans.copy()
    disturb_randomness()
    before = Traces(RANDOM_STATES)
    first = np.array(_called(catalogue, entry, spans))
    if changes := before.changes():
        raise CheckFailed(
            f"the schedule draws from global random states: {'; '.join(changes)}",
            "use np.random.default_rng(seed) with the seed as a hyperparameter",
        )
    if not np.array_equal(spans, copy):
        raise CheckFailed("the schedule modifies its argument `spans`", "copy it before changing it: spans = spans.copy()")
    disturb_randomness()
    if not np.array_equal(first, np.array(_called(catalogue, entry, spans)), equal_nan=True):
        raise CheckFailed("two calls with the same arguments give different weights", "use only the arguments, and no module state")


def _case(catalogue: Catalogue, entry: Entry, method_sandbox: Sandbox) -> Case:
    overrides = {"stream.schedule": entry.name}
    if getattr(catalogue.resolve(entry), "needs_arrivals", False):
        overrides["schedule.key"] = "year"
    return Case(method_sandbox=method_sandbox, catalogue=catalogue, method=FINE_TUNING, scenario=_STREAM, seed=1, overrides=overrides)


def _streams(catalogue: Catalogue, entry: Entry) -> None:
    """Check that a tiny task-free stream can be built, and that its steps deliver items of every latent task."""
    with Sandbox() as method_sandbox:
        case = _case(catalogue, entry, method_sandbox)
        stream: Any = case.stream(case.cell())[0]
    arrived = {int(k) for k in stream.counts.sum(dim=0).nonzero().flatten()}
    if missing := set(range(len(stream))) - arrived:
        raise CheckFailed(f"no step delivers items of latent task {min(missing) + 1}", "give the latent task more weight in its own span")


def _resumable(catalogue: Catalogue, entry: Entry) -> None:
    """Check that fine-tuning stopped mid-stream and resumed in another process gives the same results as an uninterrupted run."""
    with Sandbox() as method_sandbox:
        case = _case(catalogue, entry, method_sandbox)
        first = case.run_one()
        middle = max(1, len(first.states) // 2)
        rest = case.run_one(resume=(middle, first.states[middle - 1]))
    if rest.losses != first.losses[middle:] or any(rest.answers[row] != first.answers[row] for row in rest.answers if row > middle):
        raise CheckFailed(
            f"a run resumed after evaluation {middle} of {len(first.states)} in another process gives different results",
            "use only the arguments; seeds from the time, the process id or hash() differ between processes",
        )
