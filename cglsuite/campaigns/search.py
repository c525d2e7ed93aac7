"""Hyper-parameter search: a grid of values, scored by validation only, one choice per scenario, method and backbone.

The choice is a pure function of records: the mean, over the search's seeds, of a validation score. Its scope is the whole stream (average
performance after the last task) or the first k tasks (average over these after task k, when later tasks are not known yet). Nothing here
reads a test accuracy.

With a number of trials, that many points are drawn from each method's grid without replacement. Draws are deterministic and nested: the
first N of a longer search are the draws of a shorter one.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cglsuite.base.errors import UsageError
from cglsuite.base.hashing import canonical, digest
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

__all__ = [
    "CRITERION",
    "Candidate",
    "Choice",
    "Scope",
    "Search",
    "best",
    "draw_trials",
    "expand_grid",
    "parse_scope",
    "scope_of",
    "search_digest",
]

CRITERION = "mean over seeds of the validation average performance after the last task"
_FIRST = re.compile(r"first-tasks\((\d{1,6})\)")
_LEAST_TASKS = 2
logger = logging.getLogger(__name__)


def expand_grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the axes' values; the first axis varies slowest. Without axes there is one empty combination."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


@dataclass(frozen=True)
class Scope:
    """The tasks whose validation items a search may see: the first ``tasks``, or all (None).

    A scope that nobody ``asked`` for, the preset's own, sees all tasks of a stream that is no longer than it.
    """

    tasks: int | None = None
    asked: bool = True

    def __str__(self) -> str:
        return "all" if self.tasks is None else f"first-tasks({self.tasks})"

    @property
    def criterion(self) -> str:
        """The score of a candidate, in words."""
        if self.tasks is None:
            return CRITERION
        return f"mean over seeds of the validation average performance of the first {self.tasks} tasks, after task {self.tasks}"

    def refuse_task_free(self) -> None:
        """Refuse all but the whole stream where there are no tasks.

        Raises:
            UsageError: the scope is a number of tasks.
        """
        if self.tasks is not None:
            raise UsageError(
                f"search.scope: {self} of a task-free stream: its validation items are asked after the last step alone; "
                'expected scope = "all"'
            )

    def within(self, n_tasks: int | None) -> Scope:
        """The scope in a stream of that many tasks (``None``: not known yet); all tasks where it is the preset's own and none were left.

        Raises:
            UsageError: see :meth:`check`.
        """
        if n_tasks is None or self.tasks is None:
            return self
        self.check(n_tasks)
        return Scope() if self.tasks >= n_tasks else self

    def check(self, n_tasks: int, where: str = "search.scope") -> None:
        """Refuse a scope that leaves no later task.

        Raises:
            UsageError: the stream has no more tasks than the scope.
        """
        if self.asked and self.tasks is not None and self.tasks >= n_tasks:
            raise UsageError(
                f"{where}: {self} of a stream of {n_tasks} tasks leaves no task that the search has not seen; "
                f'expected fewer than {n_tasks} tasks, or scope = "all"'
            )

    def score(self, record: Record) -> float | None:
        """The validation score of a finished record; None without one.

        Raises:
            UsageError: the record's stream has no more tasks than the scope.
        """
        if self.tasks is None:
            value = record.validation_average_performance()
            return value if math.isfinite(value) else None
        if not record.validation_matrix:
            return None
        n_tasks = len(record.validation_matrix[0])
        self.check(n_tasks, f"search.scope in {record.label}")
        row = record.validation_matrix[self.tasks]
        values = [value for value in row[: self.tasks] if value is not None]
        return math.fsum(values) / len(values) if values else None


def parse_scope(given: str) -> Scope:
    """The scope written as ``all`` or ``first-tasks(k)``.

    Raises:
        ValueError: it is neither, or k is less than 2.
    """
    if given == "all":
        return Scope()
    if (found := _FIRST.fullmatch(given)) is None:
        raise ValueError(f'expected "all" or "first-tasks(k)", for example "first-tasks(2)" (given: {given[:80]!r})')
    if int(found[1]) < _LEAST_TASKS:
        raise ValueError(
            f"{given}: expected at least {_LEAST_TASKS} tasks: nothing is forgotten on a single task, so a penalty or a memory has no "
            "effect on its score"
        )
    return Scope(int(found[1]))


def scope_of(given: str | None, preset: str) -> Scope:
    """The scope that a campaign asks for; without one, its preset's.

    Raises:
        ValueError: see :func:`parse_scope`.
    """
    return parse_scope(given) if given is not None else dataclasses.replace(parse_scope(preset), asked=False)


def draw_trials(points: Sequence[dict[str, Any]], trials: int | None, *names: str | None) -> list[dict[str, Any]]:
    """``trials`` of the points in drawn order; all of them in the grid's order if ``trials`` is None.

    The draw is without replacement and a function of the points and ``names`` (the search) alone: a point's rank is the hash of both.

    Raises:
        UsageError: there are fewer points than trials.
    """
    if trials is None:
        return list(points)
    if len(points) < trials:
        raise UsageError(
            f"trials = {trials}, but its grid has {len(points)} point{'s' * (len(points) != 1)}: every method gets the same number of "
            "trials; add values to its grid or lower search.trials"
        )
    return sorted(points, key=lambda point: digest(["trial", *names, point]))[:trials]


def best(scores: Sequence[Sequence[float | None]]) -> int | None:
    """The index of the candidate with the highest mean score; the first one if several are equal.

    A candidate without a score on some seed (it diverged, failed, or has no validation items) is excluded.

    Returns:
        None if every candidate is excluded.
    """
    means = [_mean(row) for row in scores]
    eligible = [i for i, mean in enumerate(means) if mean is not None]
    return max(eligible, key=lambda i: (means[i], -i), default=None)


def search_digest(
    scenario: str, method: str, backbone: str | None, grid: Sequence[tuple[Mapping[str, Any], Sequence[str]]], scope: str = "all"
) -> str:
    """The name of a search's outcome; ``grid`` holds the overrides of every candidate and the keys of its cells."""
    narrowed = [] if scope == "all" else [scope]
    return digest(["search", scenario, method, backbone, [[dict(overrides), list(keys)] for overrides, keys in grid], *narrowed])


def _mean(scores: Sequence[float | None]) -> float | None:
    values = [s for s in scores if s is not None and math.isfinite(s)]
    return math.fsum(values) / len(values) if values and len(values) == len(scores) else None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One point of the grid: its overrides, and its cells, one per seed."""

    overrides: Mapping[str, Any]
    cells: Sequence[PlannedCell]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The choice of a search. ``overrides`` is None if no candidate finished on every seed."""

    overrides: Mapping[str, Any] | None
    outcome: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search of one (scenario, method, backbone). ``points``: of the grid from which the candidates were drawn."""

    scenario: str
    method: str
    backbone: str | None
    candidates: Sequence[Candidate]
    scope: Scope = Scope()
    points: int | None = None

    @property
    def cells(self) -> list[PlannedCell]:
        """All cells of all candidates."""
        return [cell for candidate in self.candidates for cell in candidate.cells]

    @property
    def label(self) -> str:
        """One line for display."""
        return f"{self.scenario} × {self.method}" + (f" × {self.backbone}" if self.backbone else "")

    @property
    def digest(self) -> str:
        """The name of the outcome's file; any change to a candidate's cells changes it."""
        grid = [(c.overrides, [p.key for p in c.cells]) for c in self.candidates]
        return search_digest(self.scenario, self.method, self.backbone, grid, str(self.scope))

    def choose(self, store: Store) -> Choice | None:
        """The choice by the records in ``store``, or the stored choice if they were deleted; None while cells are missing."""
        records = {p.key: store.get(p.key) for p in self.cells if p.ready}
        if any(record is None for record in records.values()):
            stored = store.get_search(self.digest)
            return None if stored is None else Choice(overrides=stored.get("overrides"), outcome=stored)
        return self._choice({key: record for key, record in records.items() if record is not None})

    def settle(self, store: Store) -> Choice | None:
        """:meth:`choose`, and store the choice with the whole grid and its scores."""
        choice = self.choose(store)
        if choice is not None:
            path = store.put_search(self.digest, choice.outcome)
            for row in choice.outcome["candidates"]:
                if row["mean"] is None:
                    logger.warning(
                        "search %s: %s is excluded (%s)", self.label, canonical(row["overrides"]), ", ".join(sorted(set(row["statuses"])))
                    )
            logger.info(
                "search %s: %s (%s)", self.label, canonical(choice.overrides) if choice.overrides else "no candidate finished", path
            )
        return choice

    def _choice(self, records: Mapping[str, Record]) -> Choice:
        widths = [len(record.validation_matrix[0]) for record in records.values() if record.done and record.validation_matrix]
        scope = self.scope.within(min(widths, default=None))
        table = [[_score(scope, records.get(p.key)) for p in candidate.cells] for candidate in self.candidates]
        chosen = best(table)
        overrides = None if chosen is None else dict(self.candidates[chosen].overrides)
        rows = [
            {
                "overrides": dict(candidate.overrides),
                "scores": scores,
                "mean": _mean(scores),
                "keys": [p.key for p in candidate.cells],
                "statuses": [records[p.key].status if p.key in records else p.state for p in candidate.cells],
            }
            for candidate, scores in zip(self.candidates, table, strict=True)
        ]
        outcome = {
            "search": 1,
            "scenario": self.scenario,
            "method": self.method,
            "backbone": self.backbone,
            "criterion": scope.criterion,
            "scope": str(scope),
            "trials": len(self.candidates),
            "points": len(self.candidates) if self.points is None else self.points,
            "seeds": [dataclasses.asdict(p.request.seeds) for p in self.candidates[0].cells] if self.candidates else [],
            "candidates": rows,
            "chosen": chosen,
            "overrides": overrides,
        }
        return Choice(overrides=overrides, outcome=outcome)


def _score(scope: Scope, record: Record | None) -> float | None:
    return None if record is None or not record.done else scope.score(record)
