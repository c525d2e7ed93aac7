"""Hyperparameter search over lists or ranges. Candidates are scored only on validation data, and there is one choice per scenario, method
and backbone.

The choice depends only on records. A candidate's score is the mean, over the search's seeds, of its validation performance. With the
whole stream as scope, that is the average performance after the last task; with the first k tasks, it is the average over these tasks
after task k, when later tasks are not known yet. Test accuracy is never read.

With a number of trials, that many points are drawn from each method's grid without replacement. Draws are deterministic and nested: the
first N draws of a longer search are the draws of a shorter one. The same holds for points drawn from ranges, by a Sobol sequence or at
random. All points are drawn before anything runs, so no draw depends on a result, and trials can run in parallel.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cglsuite.base.errors import UsageError, nearest
from cglsuite.base.hashing import canonical, digest
from cglsuite.base.inputs import quoted
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.store import Store

CRITERION = "mean over seeds of the validation average performance after the last task"
_FIRST = re.compile(r"first-tasks\((\d{1,6})\)")
_MIN_TASKS = 2
RANGES = ("float", "int", "log", "log-int")
"""The kinds of ranges: evenly spaced between the bounds or on a logarithmic scale; real or whole numbers."""
Sequencing = Literal["sobol", "random"]
"""The ways to draw points from ranges."""
_DRAWS_PER_TRIAL = 64
_EXACT = 2**53
logger = logging.getLogger(__name__)


def expand_grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the axes' values; the first axis varies slowest. Without axes, there is a single empty combination."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


@dataclass(frozen=True)
class Scope:
    """The tasks whose validation items a search may use: the first ``tasks`` of them, or all (None).

    A preset's default scope (not ``asked`` for by the campaign) covers all tasks if the stream is no longer than the scope.
    """

    tasks: int | None = None
    asked: bool = True

    def __str__(self) -> str:
        return "all" if self.tasks is None else f"first-tasks({self.tasks})"

    @property
    def criterion(self) -> str:
        """A description of how candidates are scored."""
        if self.tasks is None:
            return CRITERION
        return f"mean over seeds of the validation average performance of the first {self.tasks} tasks, after task {self.tasks}"

    def refuse_task_free(self) -> None:
        """Raise an error if the scope is partial, since a task-free stream has no first tasks.

        Raises:
            UsageError: the scope is a number of tasks.
        """
        if self.tasks is not None:
            raise UsageError(
                f"search.scope: {self} cannot be used with a task-free stream, which is validated only after the last step; "
                'expected scope = "all"'
            )

    def within(self, n_tasks: int | None) -> Scope:
        """Adapt the scope to a stream of ``n_tasks`` tasks (``None`` = unknown). A preset's default scope becomes all tasks if the stream
        has no later tasks.

        Raises:
            UsageError: see :meth:`check`.
        """
        if n_tasks is None or self.tasks is None:
            return self
        self.check(n_tasks)
        return Scope() if self.tasks >= n_tasks else self

    def check(self, n_tasks: int, place: str = "search.scope") -> None:
        """Raise an error if the scope leaves no unseen task.

        Raises:
            UsageError: the stream has no more tasks than the scope.
        """
        if self.asked and self.tasks is not None and self.tasks >= n_tasks:
            raise UsageError(
                f"{place}: {self} leaves no unseen task in a stream of {n_tasks} tasks; "
                f'expected fewer than {n_tasks} tasks, or scope = "all"'
            )

    def score(self, record: Record) -> float | None:
        """Return the validation score of a finished record, or ``None`` if it has no score.

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


def parse_scope(text: str) -> Scope:
    """Parse a scope written as ``all`` or ``first-tasks(k)``.

    Raises:
        ValueError: the text has a different form, or k is less than 2.
    """
    if text == "all":
        return Scope()
    if (match := _FIRST.fullmatch(text)) is None:
        raise ValueError(f'expected "all" or "first-tasks(k)", for example "first-tasks(2)" (given: {text[:80]!r})')
    if int(match[1]) < _MIN_TASKS:
        raise ValueError(
            f"{text}: expected at least {_MIN_TASKS} tasks: nothing can be forgotten with a single task, so a penalty or a "
            "memory would not affect the score"
        )
    return Scope(int(match[1]))


def scope_of(text: str | None, preset: str) -> Scope:
    """Return a campaign's scope, which defaults to the preset's.

    Raises:
        ValueError: see :func:`parse_scope`.
    """
    return parse_scope(text) if text is not None else dataclasses.replace(parse_scope(preset), asked=False)


@dataclass(frozen=True)
class Range:
    """A range of values from ``low`` to ``high``, both inclusive. ``kind`` is one of :data:`RANGES`."""

    kind: str
    low: float
    high: float

    def at(self, share: float) -> float:
        """Return the value at a fraction (0 to 1) of the range.

        Real numbers are rounded (to four digits on a logarithmic scale, otherwise to four digits of the width), so that a value, and the
        keys of its cells, do not depend on a machine's logarithm.
        """
        low, high = self.low, self.high
        if self.kind == "int":
            value: float = math.floor(low + share * (high - low + 1))
        elif self.kind == "float":
            value = round(low + share * (high - low), 3 - math.floor(math.log10(high - low)))
        elif self.kind == "log":
            value = float(f"{low * (high / low) ** share:.4g}")
        else:  # each whole number stands for its rounding interval
            value = round((low - 0.5) * ((high + 0.5) / (low - 0.5)) ** share)
        return min(max(value, low), high)


def parse_range(table: Mapping[str, Any]) -> Range:
    """Parse a range written as ``{ log = [1e-4, 1e-1] }``, with a kind of :data:`RANGES` and two bounds.

    Raises:
        ValueError: the table is not a range.
    """
    known = f"expected one of {', '.join(RANGES)} with two bounds, as in {{ log = [1e-4, 1e-1] }}, or a list of values"
    if len(table) != 1:
        raise ValueError(f"{known} (given: {quoted(dict(table))})")
    ((kind, bounds),) = table.items()
    if kind not in RANGES:
        close = nearest(kind, (*RANGES, "choice"), 1)
        raise ValueError(f"unknown range {quoted(kind)}: {f'did you mean {close[0]}? ' if close else ''}{known}")
    whole, numbers = kind.endswith("int"), int if kind.endswith("int") else (int, float)
    if not isinstance(bounds, list) or len(bounds) != 2 or any(isinstance(b, bool) or not isinstance(b, numbers) for b in bounds):
        raise ValueError(f"{kind}: expected two {'whole ' * whole}numbers, the lower and the upper bound (given: {quoted(bounds)})")
    low, high = bounds
    if not (-_EXACT < low < high < _EXACT):
        raise ValueError(f"{kind}: expected a lower bound below the upper bound, both at most 2^53 (given: {quoted(bounds)})")
    if kind.startswith("log") and low <= 0:
        raise ValueError(f"{kind}: expected bounds above 0 (given: {quoted(bounds)}); use {'int' if whole else 'float'} for these")
    return Range(kind, low, high)


def draw_points(
    axes: Mapping[str, Sequence[Any] | Range],
    trials: int,
    draw: Sequencing,
    *names: str | None,
    same: Callable[[dict[str, Any]], str] = canonical,
) -> list[dict[str, Any]]:
    """Draw ``trials`` distinct points from a space of ranges and lists of values. Points are in the order in which they were drawn.

    The result depends only on the arguments; ``names`` (the search) shift the sequence.

    Args:
        same: maps a point to a text; points with equal texts are one trial.

    Raises:
        UsageError: the space has too few different points.
    """
    points: dict[str, dict[str, Any]] = {}
    for shares in itertools.islice(_unit_cube_points(list(axes), draw, names), _DRAWS_PER_TRIAL * trials):
        drawn = zip(axes.items(), shares, strict=True)
        point = {key: axis.at(u) if isinstance(axis, Range) else axis[int(u * len(axis))] for (key, axis), u in drawn}
        points.setdefault(same(point), point)
        if len(points) == trials:
            return list(points.values())
    raise _too_few_points(trials, f"{_DRAWS_PER_TRIAL * trials:,} draws from its ranges gave", len(points), "widen its ranges")


def _unit_cube_points(keys: Sequence[str], draw: Sequencing, names: Sequence[str | None]) -> Iterator[list[float]]:
    """Yield points of the unit cube, with a dimension per key: hashes of their index, or SciPy's Sobol sequence, shifted by a hash of the
    names.

    Hashes and unscrambled sequences are the same in every version of NumPy and SciPy.
    """

    def uniform(*what: Any) -> float:
        return int(digest(["share", *names, *what])[:13], 16) / 16**13

    if draw == "random":
        for n in itertools.count():
            yield [uniform(key, n) for key in keys]
    from scipy.stats import qmc

    sequence, shifts = qmc.Sobol(len(keys), scramble=False), [uniform(key) for key in keys]
    while True:
        yield [(float(u) + shift) % 1.0 for u, shift in zip(sequence.random(1)[0], shifts, strict=True)]


def _too_few_points(trials: int, place: str, points: int, advice: str) -> UsageError:
    return UsageError(
        f"trials = {trials}, but {place} {points} point{'s' * (points != 1)}: every method gets the same number of "
        f"trials; {advice} or lower search.trials"
    )


def draw_trials(points: Sequence[dict[str, Any]], trials: int | None, *names: str | None) -> list[dict[str, Any]]:
    """Draw ``trials`` of the points, or return all of them in the grid's order if ``trials`` is None.

    The draw is without replacement and depends only on the points and on ``names`` (the search): a point's rank is the hash of both.

    Raises:
        UsageError: there are fewer points than trials.
    """
    if trials is None:
        return list(points)
    if len(points) < trials:
        raise _too_few_points(trials, "its grid has", len(points), "add values to its grid")
    return sorted(points, key=lambda point: digest(["trial", *names, point]))[:trials]


def best(scores: Sequence[Sequence[float | None]]) -> int | None:
    """Return the index of the candidate with the highest mean score. Ties go to the first candidate.

    A candidate without a score on some seed (it diverged, failed, or has no validation items) is excluded.

    Returns:
        None if every candidate is excluded.
    """
    means = [_mean(row) for row in scores]
    eligible = [i for i, mean in enumerate(means) if mean is not None]
    return max(eligible, key=lambda i: (means[i], -i), default=None)


def shared_seeds(searched: Iterable[Mapping[str, int]], grid: Iterable[Mapping[str, int]]) -> list[str]:
    """Return the seeds (``order/split/init``) that a search and the grid share. For these, the settings were chosen on the same order,
    split and initialisation as the final comparison.
    """

    def places(seeds: Iterable[Mapping[str, int]]) -> set[tuple[int, ...]]:
        return {tuple(seed[axis] for axis in ("order", "split", "init")) for seed in seeds}

    return ["/".join(map(str, place)) for place in sorted(places(searched) & places(grid))]


def overlap_text(shared: Sequence[str], max_names: int = 5) -> str:
    """Describe :func:`shared_seeds` in a sentence. Returns an empty string if there are none."""
    if not shared:
        return ""
    listed = ", ".join(shared[:max_names]) + (f" and {len(shared) - max_names} more" if len(shared) > max_names else "")
    return f"The search used seeds of the grid (order/split/init {listed}), so the settings of these results were chosen on the same seeds."


def search_digest(
    scenario: str, method: str, backbone: str | None, grid: Sequence[tuple[Mapping[str, Any], Sequence[str]]], scope: str = "all"
) -> str:
    """Return the name under which a search's outcome is stored. ``grid`` contains the overrides of every candidate and the keys of its
    cells.
    """
    narrowed = [] if scope == "all" else [scope]
    return digest(["search", scenario, method, backbone, [[dict(overrides), list(keys)] for overrides, keys in grid], *narrowed])


def _mean(scores: Sequence[float | None]) -> float | None:
    values = [s for s in scores if s is not None and math.isfinite(s)]
    return math.fsum(values) / len(values) if values and len(values) == len(scores) else None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate: its overrides, and one cell per seed."""

    overrides: Mapping[str, Any]
    cells: Sequence[PlannedCell]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The result of a search. ``overrides`` is None if no candidate finished on every seed."""

    overrides: Mapping[str, Any] | None
    outcome: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search for one combination of scenario, method and backbone.

    Args:
        points: the number of grid points from which the candidates were drawn. drawn: how they were drawn, if from ranges.
    """

    scenario: str
    method: str
    backbone: str | None
    candidates: Sequence[Candidate]
    scope: Scope = Scope()
    points: int | None = None
    drawn: Sequencing | None = None

    @property
    def cells(self) -> list[PlannedCell]:
        """The cells of all candidates."""
        return [cell for candidate in self.candidates for cell in candidate.cells]

    @property
    def label(self) -> str:
        """A one-line label for display."""
        return f"{self.scenario} × {self.method}" + (f" × {self.backbone}" if self.backbone else "")

    @property
    def digest(self) -> str:
        """The name of the outcome's file. It changes whenever a candidate's cells change."""
        grid = [(c.overrides, [p.key for p in c.cells]) for c in self.candidates]
        return search_digest(self.scenario, self.method, self.backbone, grid, str(self.scope))

    def choose(self, store: Store) -> Choice | None:
        """Return the choice based on the records in ``store``, or the stored choice if they were deleted. Returns ``None`` while cells are
        missing.
        """
        records = {p.key: store.get(p.key) for p in self.cells if p.ready}
        if any(record is None for record in records.values()):
            stored = store.get_search(self.digest)
            return None if stored is None else Choice(overrides=stored.get("overrides"), outcome=stored)
        return self._choice({key: record for key, record in records.items() if record is not None})

    def choose_and_store(self, store: Store) -> Choice | None:
        """Call :meth:`choose`, and store the choice with the complete grid and all scores."""
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
        place = best(table)
        overrides = None if place is None else dict(self.candidates[place].overrides)
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
            **({"drawn": self.drawn} if self.drawn else {}),
            "seeds": [dataclasses.asdict(p.request.seeds) for p in self.candidates[0].cells] if self.candidates else [],
            "candidates": rows,
            "chosen": place,
            "overrides": overrides,
        }
        return Choice(overrides=overrides, outcome=outcome)


def _score(scope: Scope, record: Record | None) -> float | None:
    return None if record is None or not record.done else scope.score(record)
