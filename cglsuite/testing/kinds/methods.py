"""Conformance checks for methods on tiny streams of every level and setting that they declare.

The method runs in processes without access to hidden labels or scores. Findings depend on its predictions and states, and on how its
process ends.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import torch

from cglsuite.host import Catalogue, Entry, load_catalogue
from cglsuite.specs import PERFORMANCE_RANGES, Hyperparameter, MethodSpec
from cglsuite.streams import TaskFreeStream
from cglsuite.testing.apart import Judge
from cglsuite.testing.findings import Check, CheckFailed, CheckReport, Finding, OnFinding, performed, reported
from cglsuite.testing.judge.sandbox import Sandbox, Snapshot, changed
from cglsuite.testing.judge.session import JudgeSession, Outcome, Refused, State, digest_of
from cglsuite.testing.kinds.cases import PER_CLASS, Case
from cglsuite.testing.kinds.entries import entry_checks
from cglsuite.testing.streams import TINY_SCENARIOS, chance, tiny_catalogue

CATEGORIES = ("Reg", "Rep", "Reg+Rep", "Iso", "dynamic", "baseline", "reference", "other")
"""The categories by which reports group methods; authors may add others."""
_CATEGORY_SYNONYMS = {
    "regularisation": "Reg",
    "regularised": "Reg",
    "replay": "Rep",
    "rehearsal": "Rep",
    "memory": "Rep",
    "architecture": "dynamic",
    "isolation": "Iso",
}
HOARD_BYTES = 0.25
"""The allowed growth of the state outside the metered memory, in bytes per additional training item."""
_COPIES = 3
_SHARE_LEARNT = 0.25
_SMALL_BUDGET = 12
_TURNS = 3
_MIN_WRITTEN = 64


def examine_method(
    name: str,
    catalogue: Catalogue | None = None,
    *,
    quick: bool = False,
    scenarios: tuple[str, ...] = TINY_SCENARIOS,
    only: tuple[str, ...] = (),
    on_finding: OnFinding | None = None,
    judge: Judge | None = None,
    seed: int | None = None,
) -> CheckReport:
    """Run all checks of a method in a process that loads no plugin, and return the findings.

    Args:
        quick: run only one tiny stream per level and per setting instead of all combinations.
        scenarios: the tiny scenarios to run. Scenarios with a level or setting that the method does not declare are skipped.
        only: names of the checks to run; empty for all. A run that fails is always reported.
        on_finding: called with each finding immediately.
        judge: the judge process to use. By default, a new one is started.
        seed: the seed of the data that the method is tested on; random by default.
    """
    with ExitStack() as stack:
        return (judge or stack.enter_context(Judge())).examine(
            name, catalogue or load_catalogue(), quick=quick, scenarios=scenarios, only=only, on_finding=on_finding, seed=seed
        )


def judged(
    name: str,
    catalogue: Catalogue,
    method_sandbox: Sandbox,
    *,
    quick: bool = False,
    scenarios: tuple[str, ...] = TINY_SCENARIOS,
    only: tuple[str, ...] = (),
    on_finding: OnFinding | None = None,
    seed: int | None = None,
) -> CheckReport:
    """Run all checks of a method in this process while the method runs in ``method_sandbox``, and return the findings."""
    whole = tiny_catalogue(catalogue)
    entry = whole.get("method", name)
    declared = [s for s in scenarios if _declared_for(whole, entry, s)]
    drawn = secrets.randbits(31) | 1 if seed is None else seed
    selected = quick_scenarios(whole, declared) if quick else declared
    cases = [Case(method_sandbox=method_sandbox, catalogue=whole, method=name, scenario=s, seed=drawn) for s in selected]
    about = (performed(check.name, check.action) for check in _of_the_entry(whole, entry, method_sandbox) if not only or check.name in only)
    wanted = [name for name in _CHECKS if not only or name in only]
    in_streams = wanted or not only or "runs" in only
    runs = [_of_the_case(case, quick, wanted) for case in (cases if in_streams else ())]
    if in_streams and not cases:
        runs = [iter([_no_stream_finding(entry)])]
    devices = _of_devices(entry, cases) if not only or "device" in only else ()
    findings = (f for f in chain(about, *runs, devices) if not only or f.check in only or (f.check == "runs" and f.status != "ok"))
    return reported(entry, findings, on_finding)


def _no_stream_finding(entry: Entry) -> Finding:
    """Return the finding for a method that supports none of the selected streams."""
    spec: Any = entry.spec
    said = (
        f"it declares the levels {', '.join(spec.levels) or 'none'} and the settings {', '.join(spec.settings) or 'none'}: no such stream"
    )
    return Finding(check="runs", status="skipped", message=said)


def _declared_for(catalogue: Catalogue, entry: Entry, scenario: str) -> bool:
    method, spec = catalogue.method(entry.name), catalogue.scenario(scenario)
    return spec.level in method.levels and spec.setting in method.settings


def quick_scenarios(catalogue: Catalogue, scenarios: list[str]) -> list[str]:
    """Return a small subset of the scenarios that covers all their levels and settings."""
    covers = {s: {catalogue.scenario(s).level, catalogue.scenario(s).setting} for s in scenarios}
    open_, names = set().union(*covers.values()), list[str]()
    while open_:
        names.append(max(scenarios, key=lambda s: len(covers[s] & open_)))
        open_ -= covers[names[-1]]
    return names


# --- the entry -----------------------------------------------------------------------------------------------------------------


def _of_the_entry(catalogue: Catalogue, entry: Entry, method_sandbox: Sandbox) -> Iterator[Check]:
    spec: Any = entry.spec
    docstring = partial(method_sandbox.describe, catalogue, entry)
    yield from entry_checks(catalogue, entry, spec.hyperparameters, docstring=docstring)
    yield Check(name="declaration", action=lambda: _declared(spec))


def _declared(spec: MethodSpec) -> None:
    if not spec.levels or not spec.settings:
        raise CheckFailed(
            "the method does not declare both a level and a setting", "declare the problem levels and settings that it supports"
        )
    if spec.category not in CATEGORIES and (meant := _category_synonym(spec.category)):
        raise CheckFailed(
            f"unknown category {spec.category!r}; expected one of {', '.join(CATEGORIES)}, or a new category",
            f"use category={meant!r}, which the reports use to group methods",
        )


def _category_synonym(category: str) -> str:
    """Return the suite's category for a synonym or another spelling; an empty string for an author's own category."""
    plain = category.strip().lower().replace("z", "s")
    return _CATEGORY_SYNONYMS.get(plain) or next((known for known in CATEGORIES if known.lower() == plain), "")


# --- one scenario --------------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Trial:
    """A case with its reference run, a second run in the same process, the resumed runs, and a snapshot of folders."""

    case: Case
    first: Outcome
    again: Outcome
    before: Snapshot

    @cached_property
    def parts(self) -> list[_Part]:
        """The runs resumed from each state, up to the first run that differs from the reference run."""
        parts = list[_Part]()
        for part in _resumed_runs(self.case, self.first):
            parts.append(part)
            if part.elsewhere is not None:
                break
        return parts

    @cached_property
    def small(self) -> list[list[State]] | None:
        """The states under a small budget, for a stream and for one with twice the number of items; ``None`` if the method rejects it."""
        try:
            return [self.small_run(times) for times in (1, 2)]
        except Refused:
            return None

    def small_run(self, times: int) -> list[State]:
        """Return the states under a small budget for a stream with ``times`` times the usual number of items."""
        return self.case.run_one(per_class=times * PER_CLASS, training__epochs=1, scenario__memory_budget=_SMALL_BUDGET).states


def _of_the_case(case: Case, quick: bool, wanted: Sequence[str]) -> Iterator[Finding]:
    """Yield the finding of a run on a stream and, if it succeeds, those of the checks ``wanted``."""
    tried = list[_Trial]()
    first = performed("runs", partial(_runs, case, quick, tried), case.scenario)
    yield explained(first, case)
    if first.status == "ok":
        findings = (performed(check, partial(_CHECKS[check], tried[0]), case.scenario) for check in wanted)
        yield from (explained(finding, case, tried[0].first.matrix) for finding in findings)


def _runs(case: Case, quick: bool, tried: list[_Trial]) -> None:
    """Check that the method runs twice in one process and gets a finite score for every query."""
    before, first = case.folder_snapshot(), case.judge_session(probed=True)
    second: dict[str, Any] = {"turn": 1, "until": 1 if quick else None}

    def both() -> Iterator[JudgeSession]:
        yield first
        if not first.outcome.notes["settings"]:  # otherwise the second run would suffer
            yield case.judge_session(**second)

    alone, *more = case.run(both())
    two = more[0] if more else case.run_one(**second)
    if not any(math.isfinite(v) for row in alone.matrix.values() for v in row):
        raise CheckFailed("no entry of the performance matrix is finite", "return finite outputs from predict")
    if not all(math.isfinite(v) for losses in alone.losses for v in losses):
        raise CheckFailed("a loss is not finite", "lower the learning rate, or guard logarithms and divisions")
    tried.append(_Trial(case=case, first=alone, again=two, before=before))


def _learns(trial: _Trial) -> None:
    """Check that performance on a task right after training is above chance. Two more draws of the data are tried before failing."""
    case = trial.case
    draws = [_LearningCheck.of(case, trial.first)]
    if not draws[0].enough:
        others = (dataclasses.replace(case, seed=(case.seed + 2 * k) % 2**31 | 1) for k in (1, 2))
        draws += [_LearningCheck.of(other, other.run_one()) for other in others]
    mean, guess, needed = (sum(getattr(draw, part) for draw in draws) / len(draws) for part in ("mean", "guess", "needed"))
    if not mean >= needed:
        raise CheckFailed(
            f"mean performance right after training on a task is {mean:.3f} (chance is {guess:.3f}); expected at least {needed:.3f}",
            why_not_learnt(trial.first, case.hyperparameters, draws[0].tasks),
        )


@dataclass(frozen=True, kw_only=True)
class _LearningCheck:
    """Performance right after training for one draw of the data: the mean, chance, the threshold, and the tasks that reach it."""

    mean: float
    guess: float
    needed: float
    tasks: list[bool]

    @property
    def enough(self) -> bool:
        """Whether the threshold is reached."""
        return self.mean >= self.needed

    @classmethod
    def of(cls, case: Case, outcome: Outcome) -> _LearningCheck:
        """Compute the performance of a run on the stream of a case."""
        stream, _ = case.stream(case.cell())
        guesses, best, matrix = chance(stream), PERFORMANCE_RANGES[stream.spec.performance][1], outcome.matrix
        if isinstance(stream, TaskFreeStream):
            reached = [
                max((row[k] for e, row in matrix.items() if e and math.isfinite(row[k])), default=math.nan) for k in range(len(stream))
            ]
        else:
            reached = [matrix[k + 1][k] for k in range(len(stream))]
        known = [k for k, value in enumerate(reached) if math.isfinite(value)]  # random data may leave a task without one kind of test item
        mean, guess = (sum(values[k] for k in known) / max(1, len(known)) for values in (reached, guesses))
        tasks = [reached[k] >= guesses[k] + _SHARE_LEARNT * (best - guesses[k]) for k in known]
        return cls(mean=mean, guess=guess, needed=guess + _SHARE_LEARNT * (best - guess), tasks=tasks)


_ELSEWHERE = (
    "use sorted() for sets, and hashlib instead of hash(). Hashes of strings differ between processes, as do addresses, "
    "os.environ, os.getppid() and sys.modules"
)


def _repeatable(trial: _Trial) -> None:
    """Check that a second run gives the same losses, states and predictions.

    It uses other global random states and decoys. Every task is also repeated in a process with a different hash seed, modules, environment
    variables and parent.
    """
    case, first = trial.case, trial.first
    if not trial.first.notes["random"]:
        raise CheckFailed("the run changes global random states", "draw from self.context.generator(purpose), and never set global seeds")
    if not (differs := _difference(first, trial.again)):
        where = "under another hash seed (PYTHONHASHSEED), with other modules, variables and another parent process"
        if difference := _difference(first, case.run_one(until=1, elsewhere=True)):
            raise CheckFailed(f"{where}, it gives {difference}", _ELSEWHERE)
        for part in trial.parts:
            if part.elsewhere is not None and part.here is None:
                raise CheckFailed(f"{where}, {part.elsewhere}", _ELSEWHERE)
        return
    same, other = case.run_one(), case.run_one(turn=1)
    if difference := _difference(first, same):
        raise CheckFailed(f"a second run gives {difference}", "draw from self.context.generator(purpose), and sort the contents of sets")
    if difference := _difference(first, other):
        raise CheckFailed(
            f"with other hidden labels in the process, it gives {difference}",
            "do not use test labels; find out how the method accesses them",
        )
    raise CheckFailed(
        f"a second run in the same process gives {differs}", "do not keep state in modules or classes; every run starts from setup()"
    )


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The differences of a run resumed from a state: ``elsewhere`` (as for :meth:`Sandbox.run`) and, if there are any, ``here``."""

    elsewhere: CheckFailed | None
    here: CheckFailed | None = None


def _resumed_runs(case: Case, first: Outcome) -> Iterator[_Part]:
    """Yield the runs resumed from each state except the last. Each run continues for one task."""
    for k, state in enumerate(first.states, start=1):
        if k == max(first.matrix):
            break
        elsewhere = _resumed(case, first, k, state, elsewhere=True)
        yield _Part(elsewhere=elsewhere, here=elsewhere and _resumed(case, first, k, state))


def _resumed(case: Case, first: Outcome, k: int, state: State, *, elsewhere: bool = False) -> CheckFailed | None:
    """Describe how a run resumed from the ``k``-th state differs from the first run; ``None`` if it does not."""
    advice = "list every attribute that later tasks need in `state`, and initialise it in setup()"
    is_kept = k < len(first.states)  # the state after the last evaluation of a task-free stream is not
    where = f"from the state after {'evaluation' if 'task-free' in case.scenario else 'task'} {k} in another process"
    try:
        part = case.run_one(turn=1 + k, resume=(k, state), until=1 if is_kept else None, elsewhere=elsewhere)
    except CheckFailed as failed:
        return failed
    if is_kept and part.losses[0] != first.losses[k]:
        return CheckFailed(f"a run resumed {where} gives different losses", advice)
    if is_kept and part.states[0].digest != first.states[k].digest:
        return CheckFailed(f"a run resumed {where} gives a different state", advice)
    if any(part.answers[row] != first.answers[row] for row in part.answers if row > k):
        return CheckFailed(f"a run resumed {where} gives different predictions", advice)
    return None


def _resumable(trial: _Trial) -> None:
    """Check that a run resumed for each task, in processes with only the previous state, gives the same results as an uninterrupted run."""
    for part in trial.parts:
        if part.here is not None:
            raise part.here


def _independent(trial: _Trial) -> None:
    """Check that the prediction for an item does not depend on the other items of the query."""
    for outcome in (trial.first, trial.again):
        outcome.probes.check(bool(trial.first.notes["plain"]))


def _out_of_reach(trial: _Trial) -> None:
    """Check that no object held by the method after a run gives access to hidden labels."""
    if path := trial.first.notes["leads_to"]:
        raise CheckFailed(f"hidden labels can be reached from the method through {path}", "store only views, batches and the context")


def _code_unchanged(trial: _Trial) -> None:
    """Check that the method does not replace functions of the suite or of torch, or change global settings."""
    if replaced := trial.first.notes["replaced"]:
        raise CheckFailed(f"the method replaces {', '.join(replaced[:3])}", "override methods of Method; do not patch the suite or torch")
    if settings := trial.first.notes["settings"]:
        raise CheckFailed(f"the method changes global settings: {', '.join(settings)}", "restore global settings")


def _inputs_unchanged(trial: _Trial) -> None:
    """Check that the method does not modify its inputs."""
    if changed := trial.first.notes["changed"]:
        raise CheckFailed(
            f"the method changes tensors of a view or of the data in place: {', '.join(changed)}", "clone tensors before changing them"
        )


def _acts(trial: _Trial) -> None:
    """Check that the method does not write files, open connections, start processes, or read data itself."""
    if acts := trial.first.notes["acts"] or [f"writes the file {path}" for path in _files_changed(trial)]:
        raise CheckFailed("; ".join(acts[:5]), "do not write files or open connections; keep results in `state` and counters()")


def _files_changed(trial: _Trial) -> list[str]:
    """Return the files in the folders that the method changed.

    Other processes may also write there. The method is therefore run a few more times on different data, followed by an equally long time
    without runs. A place counts if it changes whenever the method runs and never otherwise. A file that is written only if it is missing
    counts if it is as large as the output of the first run and no other run writes anything.
    """
    case, now = trial.case, trial.case.folder_snapshot()
    files = changed(trial.before, now)
    once = _as_large_as(trial.first.notes.get("written", 0), trial.before, now, files)
    for turn in range(_TURNS):
        if not files:
            break
        began, before = time.monotonic(), now
        again = dataclasses.replace(case, seed=(case.seed + 2 + 2 * turn) % 2**31 | 1).run_one()
        once = [] if again.notes.get("written", 0) else once
        after = case.folder_snapshot()
        time.sleep(time.monotonic() - began)
        now = case.folder_snapshot()
        by_others = changed(after, now)
        files = {place: paths for place, paths in changed(before, after).items() if place in files and place not in by_others}
    return sorted({path for paths in files.values() for path in paths} | set(once))


def _as_large_as(written: int, before: Snapshot, now: Snapshot, files: dict[str, list[str]]) -> list[str]:
    """Return the new files with exactly as many bytes as the process wrote, or none if the number is small enough to match by chance."""
    for place, paths in files.items():
        new = {p: now[place][p][1] for p in paths if p not in before.get(place, {}) and len(now[place][p]) > 1}
        same = [path for path, size in new.items() if size == written]
        if written >= _MIN_WRITTEN and (same or sum(new.values()) == written):
            return same or list(new)
    return []


def _within_budget(trial: _Trial) -> str:
    """Check that the method respects a small budget or rejects it with an error, and stores no items outside the metered memory."""
    advice = "keep items only in self.memory, and set other attributes that hold items to None in after_task"
    notes, past = trial.first.notes, "past-views" in trial.case.catalogue.method(trial.case.method).needs
    if notes["holds"]:
        raise CheckFailed(f"after the last task, the method still holds items outside its memory ({notes['holds']})", advice)
    if notes["kept"] and not past:
        raise CheckFailed(f"after a task has ended, its {' and '.join(notes['kept'])} are still referenced", advice)
    for states in [trial.first.states, *(trial.small or [])]:
        if (copied := max(state.copied for state in states)) >= _COPIES:
            raise CheckFailed(f"the state outside the memory contains features of training items (at least {copied} items)", advice)
        if beyond := max(state.oversized for state in states):
            raise CheckFailed(f"items in memory contain {beyond} additional values", "store items as returned by self.problem.sample")
        if more := max(state.stuffed for state in states):
            raise CheckFailed(
                f"the extras of items in memory contain the features of {more} more training items than there are items",
                "store in extra only data about the item of the same row",
            )
    if trial.small is not None:
        _small(trial, trial.small, advice)
    return _carried_sizes(trial.first.states)


def _small(trial: _Trial, small: list[list[State]], advice: str) -> None:
    charged = max(state.charged for states in small for state in states)
    if charged > _SMALL_BUDGET:
        raise CheckFailed(f"the method stored {charged} items with a budget of {_SMALL_BUDGET}", advice)
    first, two = (states[-1] for states in small)
    if hoards := [hoard for hoard in _HOARDS if hoard.beyond(first, two)]:
        four = trial.small_run(4)[-1]  # a longer stream may need one more copy of the model, but only once
        if hoards := [hoard for hoard in hoards if hoard.beyond(two, four)]:
            raise CheckFailed(hoards[0].text(first, two, four), advice)


@dataclass(frozen=True, kw_only=True)
class _Hoard:
    """A part of a method's state that must not grow with the number of training items.

    Args:
        what: description of the part. unit: unit of its size. size: its size in a state. growth: its growth between two states; by default,
            the difference between their sizes.
    """

    what: str
    unit: str
    size: Callable[[State], int]
    growth: Callable[[State, State], int] | None = None

    def beyond(self, fewer: State, more: State) -> bool:
        """Return whether the part grows too much between a state and another state after more training items."""
        grows = self.size(more) - self.size(fewer) if self.growth is None else self.growth(fewer, more)
        return grows > HOARD_BYTES * (more.trained - fewer.trained)

    def text(self, first: State, two: State, four: State) -> str:
        """Describe the sizes of the part."""
        return (
            f"{self.what} with the training items: {self.size(first)}, {self.size(two)} and {self.size(four)} {self.unit} for "
            f"{first.trained}, {two.trained} and {four.trained} of them; expected at most {HOARD_BYTES:g} {self.unit} per item"
        )


_HOARDS = (
    _Hoard(what="the state outside the memory grows", unit="bytes", size=lambda state: state.carried),
    _Hoard(
        what="the extra of an item in memory grows",
        unit="bytes",
        size=lambda state: state.extras,
        growth=lambda fewer, more: more.extras - more.items * fewer.row,  # more items may be kept, each with as much as before
    ),
    _Hoard(
        what="the number of nodes that no edge joins to the item whose free surroundings they are grows",
        unit="nodes",
        size=lambda state: state.loose,
    ),
)


def _carried_sizes(states: list[State]) -> str:
    """Describe the sizes of a method's state."""
    last, tasks = states[-1], len(states)
    growth = (last.beside - states[0].beside) / max(1, tasks - 1)
    return (
        f"memory {last.charged} items, {last.memory} bytes; outside it {last.beside} bytes of state ({growth:+.0f} per task) "
        f"and {last.model} of the model"
    )


def _difference(first: Outcome, second: Outcome) -> str:
    """Describe the first difference between two runs over their common length; an empty string if there is none."""
    for k, (a, b) in enumerate(zip(first.states, second.states, strict=False)):
        if first.losses[k] != second.losses[k]:
            return f"different losses in task {k + 1}"
        if a.digest != b.digest:
            return f"a different state after task {k + 1}"
    for row in sorted(first.answers.keys() & second.answers.keys()):
        if first.answers[row] != second.answers[row]:
            return f"a different prediction after task {row}"
    return ""


_OF_THE_ENTRY = ("factory", "documentation", "listing", "declaration")
_CHECKS: dict[str, Callable[[_Trial], object]] = {
    "learns": _learns,
    "repeatable": _repeatable,
    "resumable": _resumable,
    "independent answers": _independent,
    "no way to answers": _out_of_reach,
    "code unchanged": _code_unchanged,
    "inputs unchanged": _inputs_unchanged,
    "memory budget": _within_budget,
    "acts": _acts,
}
"""The checks for every scenario in which the method runs, by name."""

METHOD_CHECKS = (*_OF_THE_ENTRY, "runs", *_CHECKS, "device")
"""The names of all checks of methods."""


def _of_devices(entry: Entry, cases: list[Case]) -> Iterator[Finding]:
    """Yield the findings of device checks on one stream of tasks per level."""
    if not torch.cuda.is_available():
        return
    levels: dict[str, Case] = {}
    for case in cases:
        spec = case.catalogue.scenario(case.scenario)
        if spec.setting != "task-free":
            levels.setdefault(spec.level, case)
    for case in levels.values():
        yield performed("device", partial(_devices_agree, entry, case), case.scenario)


def _devices_agree(entry: Entry, case: Case) -> None:
    """Check that three training steps without dropout give nearly the same loss on CPU and GPU."""
    losses = case.method_sandbox.agree(case.catalogue, entry, case.scenario)
    if not torch.allclose(torch.tensor(losses["cpu"]), torch.tensor(losses["cuda"]), rtol=1e-3, atol=1e-4):
        raise CheckFailed(
            f"losses differ between the CPU ({losses['cpu']}) and the GPU ({losses['cuda']})", "create tensors on self.problem.device"
        )


# Explaining a failed check of a method: the performance matrix, the command that repeats the check, and advice for the likely cause.

_MIN_FALL = 0.1
"""The fraction by which a loss must fall for training to count as working."""


def explained(finding: Finding, case: Case, matrix: Mapping[int, Sequence[float]] | None = None) -> Finding:
    """Add the run's performance matrix (by stage, float [T] each) and the command that repeats the check to a failed finding."""
    if finding.status != "failed":
        return finding
    where = case.scenario.partition("@")[0]
    words = ["cglsuite", "check", "--kind", "method", case.method, "--only", finding.check, "--where", where, "--seed", str(case.seed)]
    return replace(finding, evidence=_matrix_text(matrix or {}), replay=shlex.join(words))


def _matrix_text(matrix: Mapping[int, Sequence[float]]) -> str:
    """Format the matrix as aligned text, with one row per stage and a dash for tasks that were not queried."""
    if not matrix:
        return ""
    tasks = len(next(iter(matrix.values())))
    head = f"{'after':>6}" + "".join(f"{f'task {k + 1}':>8}" for k in range(tasks))
    rows = [
        f"{k or 'none':>6}" + "".join(f"{f'{v:.3f}' if math.isfinite(v) else '-':>8}" for v in row) for k, row in sorted(matrix.items())
    ]
    return "\n".join([head, *rows])


def why_not_learnt(run: Outcome, hyperparameters: Iterable[Hyperparameter], learnt: Sequence[bool]) -> str:
    """Return advice for a method that failed to learn.

    Args:
        run: the measured run. hyperparameters: the method's hyperparameters.
        learnt: for each tested task, whether performance right after training on it was good enough.
    """
    losses = run.losses[0] if run.losses else []
    fell = f"from {losses[0]:.3g} to {losses[-1]:.3g}" if losses else "unknown"
    if any(learnt[:1]):
        weights = ", ".join(f"method.{h.name}" for h in hyperparameters if h.type is float)
        return (
            "it learns the first task and not the later ones: what protects earlier tasks leaves no room for new ones. Lower the weight of "
            f"the penalty{f' ({weights})' if weights else ''}, scale it to the loss, or free what is frozen"
        )
    if len(run.states) > 1 and _model_digest(run.states[0]) == _model_digest(run.states[1]):
        return (
            f"the model is the same after task 1 and after task 2 (loss of task 1: {fell}), so that no step changes it: check that loss() "
            "reaches the parameters, that they are in the optimiser (model.parameters() with requires_grad), and that no hook undoes steps"
        )
    if losses and losses[0] < 0:
        return f"the loss of task 1 is negative ({fell}): check its sign, loss() returns what is to be minimised"
    if losses and losses[-1] < losses[0] - _MIN_FALL * abs(losses[0]):
        return (
            f"the loss of task 1 falls ({fell}) and the predictions stay wrong: check that predict() gives the outputs that loss() trains, "
            "a row per item in the order of the query and a column per class"
        )
    return (
        f"the loss of task 1 does not fall ({fell}): check its sign, that it reaches all parameters, and whether a term that does not "
        "depend on the data outweighs the rest; else raise training.lr"
    )


def _model_digest(state: State) -> str:
    return digest_of(state.payload["state"]["method"]["model"])
