"""The oracle scores predictions. Only the oracle has the hidden labels, and methods never receive a reference to it."""

from __future__ import annotations

import bisect
import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cglsuite.base.errors import DivergenceError, LeakError, PluginError
from cglsuite.streams.measures.answered import Answered, OutputScores
from cglsuite.streams.measures.core import core_measure

if TYPE_CHECKING:
    from cglsuite.specs import ScenarioSpec


_ROUNDING = 1e-9
EVERY_TASK, NO_TASK = -1, -2
"""Special values for an item's task: the item counts for every task, or for none."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The score for one task: performance under the scenario's measure, and the hits and items of each class (float64 [C])."""

    performance: float
    hits: Tensor
    counts: Tensor


@dataclass(frozen=True, kw_only=True)
class _Sheet:
    """The labels of one query group (int64 [n], bool or float32 [n, C]), with task positions and test flags, in query order."""

    y: Tensor
    tasks: Tensor
    test: Tensor


class Oracle:
    """Store the hidden labels of each query group under an opaque token, and score predictions.

    Args:
        n_outputs: number of global classes C.
        rule: the measure for the predictions on one part of one task, as ``"module:function"`` or the name of a built-in measure.
        hits_k: the K for measures such as Hits@K.
        lower_is_better: whether performance is minus the measure's value. bounds: the range of performance.
    """

    def __init__(
        self,
        n_outputs: int,
        rule: str,
        hits_k: int = 50,
        *,
        lower_is_better: bool = False,
        bounds: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        self._sheets: dict[str, _Sheet] = {}
        self._n_outputs = n_outputs
        self._rule = rule
        self._hits_k = hits_k
        self._sign = -1.0 if lower_is_better else 1.0
        self._bounds = bounds

    @classmethod
    def of(cls, spec: ScenarioSpec, n_outputs: int, hits_k: int = 50) -> Oracle:
        """Create the oracle for a scenario, with the measure from its resolved spec."""
        found = spec.measure
        if found is None:
            return cls(n_outputs, spec.performance, hits_k)
        return cls(n_outputs, found.factory, hits_k, lower_is_better=found.direction == "down", bounds=found.performance_range)

    def deposit(self, token: str, y: Tensor, tasks: Tensor, test: Tensor) -> None:
        """Store the labels of the query group ``token``. Called by the stream.

        Args:
            y: int64 [n] class ids, bool [n, C], or float32 [n, C].
            tasks: int64 [n] task positions. Use :data:`EVERY_TASK` for negative pairs, against which the links of every task are ranked,
                and :data:`NO_TASK` for items that are queried here but not scored.
            test: bool [n], true for test items and false for validation items.
        """
        self._sheets[token] = _Sheet(y=y, tasks=tasks, test=test)

    def holds(self, token: str) -> bool:
        """Return whether labels were deposited for ``token``."""
        return token in self._sheets

    def grade(
        self, answers: Mapping[str, Tensor], allowed: Mapping[str, Tensor] | None = None
    ) -> tuple[dict[int, Score], dict[int, Score]]:
        """Score the decoded predictions of all query groups together.

        Args:
            answers: maps each token to predictions: int64 [n] class ids, or float32 [n, C] scores for multi-label items.
            allowed: maps each token to the competing outputs, bool [C] or [n, C]. Only needed for multi-label items.

        Returns:
            The scores on test items and those on validation items, each by task position.

        Raises:
            LeakError: if a group has the wrong number of predictions.
            DivergenceError: if a predicted score is not finite.
        """
        sheets = [self._sheets[token] for token in answers]
        for sheet, given in zip(sheets, answers.values(), strict=True):
            if given.shape != sheet.y.shape:
                raise LeakError(
                    f"got predictions of shape {list(given.shape)} for {list(sheet.y.shape)} queries: predict() must return one per query"
                )
        permitted = [(allowed or {}).get(token, _all_of(sheet, self._n_outputs)) for token, sheet in zip(answers, sheets, strict=True)]
        if sheets[0].y.dim() == 2:
            return self._by_sheet(sheets, list(answers.values()), permitted)
        return self._by_class(sheets, list(answers.values()), permitted)

    def _by_class(self, sheets: list[_Sheet], answers: list[Tensor], allowed: list[Tensor]) -> tuple[dict[int, Score], dict[int, Score]]:
        """Score single-label items, counting hits for all parts and tasks in one pass."""
        # Everything from here on runs on the CPU, like the measures. On a GPU, every count and task would need a synchronisation.
        y, tasks, test = (torch.cat([getattr(s, name) for s in sheets]).cpu() for name in ("y", "tasks", "test"))
        given, competing = torch.cat(answers).cpu(), _on_host(allowed)
        # A single count over (part, task, class) gives the hits and items per class for all scores.
        n_tasks = int(tasks.max()) + 1
        part_task = test.long() * n_tasks + tasks
        cell = part_task * self._n_outputs + y
        shape = (2, n_tasks, self._n_outputs)
        counts = torch.bincount(cell, minlength=math.prod(shape)).view(shape).double()
        hits = torch.bincount(cell[given == y], minlength=math.prod(shape)).view(shape).double()
        order = part_task.argsort(stable=True)
        sizes = torch.bincount(part_task, minlength=2 * n_tasks).tolist()
        places = [place for place, size in enumerate(sizes) if size]
        sizes = [sizes[place] for place in places]
        # Split once for all tasks: with many tasks, indexing tensors for each of them would take as long as the measures.
        items = order[torch.tensor([0, *itertools.accumulate(sizes[:-1])])].tolist()
        labels, guesses, ends = y[order].split(sizes), given[order].split(sizes), list(itertools.accumulate(len(s.y) for s in sheets))
        hits_of, counts_of = hits.flatten(0, 1).unbind(), counts.flatten(0, 1).unbind()
        scores: tuple[dict[int, Score], dict[int, Score]] = ({}, {})
        for place, item, own, guessed in zip(places, items, labels, guesses, strict=True):
            test_part, k = divmod(place, n_tasks)
            scored = self._score(own, guessed, _outputs_of(competing, ends, item))
            scores[1 - test_part][k] = replace(scored, hits=hits_of[place], counts=counts_of[place])
        return scores

    def _by_sheet(self, sheets: list[_Sheet], answers: list[Tensor], allowed: list[Tensor]) -> tuple[dict[int, Score], dict[int, Score]]:
        """Score items with real-valued scores or targets, task by task. All items of a task are in the same query group."""
        scores: tuple[dict[int, Score], dict[int, Score]] = ({}, {})
        for sheet, answered, permitted in zip(sheets, answers, allowed, strict=True):
            y, tasks, test = sheet.y.cpu(), sheet.tasks.cpu(), sheet.test.cpu()  # as above
            given, outputs = answered.cpu(), permitted.cpu()
            if not bool(torch.isfinite(given).all()):
                raise DivergenceError("the predicted scores are not finite: lower training.lr or the method's weights")
            common = tasks == EVERY_TASK
            for k in tasks[tasks >= 0].unique().tolist():
                own = tasks == k
                columns = outputs if outputs.dim() == 1 else outputs[own][0]
                for part, which in ((0, test), (1, ~test)):
                    if bool((which & own).any()):
                        rows = which & (own | common)
                        scores[part][k] = self._score(y[rows], given[rows], columns)
        return scores

    def _score(self, y: Tensor, answers: Tensor, outputs: Tensor) -> Score:
        """Compute the score of one part of one task. The arguments are those of :class:`cglsuite.streams.Answered`."""
        found = self._measure(Answered(y=y, answers=answers, outputs=outputs, hits_k=self._hits_k))
        nothing = torch.zeros(self._n_outputs, dtype=torch.float64)
        if isinstance(found, OutputScores):
            counts = found.counted.double()
            value = float(found.values.sum() / counts.sum()) if bool(found.counted.any()) else math.nan
            score = Score(performance=self._sign * value, hits=self._sign * found.values, counts=counts)
        else:
            try:
                score = Score(performance=self._sign * float(found), hits=nothing, counts=nothing)
            except (TypeError, ValueError, RuntimeError):
                raise PluginError(f"the measure {self._rule} returned {found!r:.80}: expected a float or OutputScores") from None
        low, high = self._bounds
        if not math.isnan(score.performance) and not low - _ROUNDING <= score.performance <= high + _ROUNDING:
            raise PluginError(
                f"the measure {self._rule} returned a performance of {score.performance:g}; expected {low:g} to {high:g}: correct "
                "the function or the range in its MeasureSpec"
            )
        return score

    @cached_property
    def _measure(self) -> Callable[[Answered], Any]:
        """The measure's function, imported when predictions are first scored."""
        named = self._rule if ":" in self._rule else core_measure(self._rule)
        module, _, name = named.partition(":")
        function: Callable[[Answered], Any] = getattr(importlib.import_module(module), name)
        return function

    def monitor(self, tokens: Sequence[str], criterion: Callable[[Tensor], Tensor]) -> float:
        """Apply ``criterion`` to the concatenated hidden labels of ``tokens`` and return the scalar result (a validation loss)."""
        return float(criterion(torch.cat([self._sheets[token].y for token in tokens])))

    def performance(self, tokens: Sequence[str], answers: Tensor, allowed: Tensor) -> float:
        """Compute the performance on the items of ``tokens``, as if they were a single task. A schedule may monitor it.

        Links are ranked only against the negative pairs of the same token. The score is then the mean over tokens, weighted by their
        numbers of links.

        Args:
            answers: the decoded predictions for all items. allowed: the outputs that competed, bool [C] or [n, C].
        """
        sheets = [self._sheets[token] for token in tokens]
        y = torch.cat([sheet.y for sheet in sheets])
        if y.dim() == 2:
            columns = (allowed if allowed.dim() == 1 else allowed.any(dim=0)).cpu()
            if not bool(torch.isfinite(answers).all()):
                return math.nan
            if not any(bool((sheet.tasks == EVERY_TASK).any()) for sheet in sheets):
                return self._score(y.cpu(), answers.cpu(), columns).performance
            parts = zip(sheets, answers.cpu().split([len(sheet.y) for sheet in sheets]), strict=True)
            scored = [(self._score(s.y.cpu(), given, columns).performance, int((s.tasks >= 0).sum())) for s, given in parts]
            return sum(score * links for score, links in scored) / sum(links for _, links in scored)
        outputs = allowed if allowed.dim() == 1 else allowed.any(dim=0)
        return self._score(y.cpu(), answers.cpu(), outputs.cpu()).performance


def _all_of(sheet: _Sheet, n_outputs: int) -> Tensor:
    """Return a mask with all outputs, for query groups in which every output competes: bool [C]."""
    return torch.ones(n_outputs, dtype=torch.bool, device=sheet.y.device)


def _on_host(allowed: Sequence[Tensor]) -> Sequence[Tensor]:
    """Move the competing outputs of all query groups (bool [C] or [n, C]) to the CPU in a single copy."""
    if all(outputs.device.type == "cpu" for outputs in allowed):
        return allowed
    rows = [torch.atleast_2d(outputs) for outputs in allowed]
    parts = torch.cat(rows).cpu().split([len(part) for part in rows])
    return [part.view(outputs.shape) for part, outputs in zip(parts, allowed, strict=True)]


def _outputs_of(allowed: Sequence[Tensor], ends: Sequence[int], item: int) -> Tensor:
    """Return the outputs that competed for an item: bool [C].

    Args:
        allowed: for each query group, bool [C] or [n, C]. ends: the number of items up to and including each group. item: the position of
            the item among those of all groups.
    """
    sheet = bisect.bisect_right(ends, item)
    outputs = allowed[sheet]
    return outputs if outputs.dim() == 1 else outputs[item - (ends[sheet - 1] if sheet else 0)]
