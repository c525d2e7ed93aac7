"""The oracle holds every hidden label and scores answers; nothing that a method receives leads to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cglsuite.errors import LeakError

__all__ = ["Oracle", "Score"]


@dataclass(frozen=True, kw_only=True)
class Score:
    """How one task's queries were answered: ``accuracy`` under the scenario's rule, and items and hits per class (float64 [C])."""

    accuracy: float
    hits: Tensor
    counts: Tensor


@dataclass(frozen=True, kw_only=True)
class _Sheet:
    """The answers to one group of queries: labels, task positions and parts, in the order in which the items are asked."""

    y: Tensor
    tasks: Tensor
    test: Tensor


class Oracle:
    """Answers by opaque group token.

    Args:
        n_outputs: number of global classes C.
        rule: ``micro`` (over items) or ``macro`` (mean over the classes of the task).
    """

    def __init__(self, n_outputs: int, rule: str) -> None:
        self._sheets: dict[str, _Sheet] = {}
        self._n_outputs = n_outputs
        self._rule = rule

    def deposit(self, token: str, y: Tensor, tasks: Tensor, test: Tensor) -> None:
        """Keep the answers to the group ``token``; done by the stream's builder.

        Args:
            y: int64 [n] class ids. tasks: int64 [n] task positions. test: bool [n], a test item (else a validation item).
        """
        self._sheets[token] = _Sheet(y=y, tasks=tasks, test=test)

    def holds(self, token: str) -> bool:
        """Whether the answers of ``token`` are here already."""
        return token in self._sheets

    def grade(self, answers: Mapping[str, Tensor]) -> tuple[dict[int, Score], dict[int, Score]]:
        """Score decoded answers (int64 [n] class ids per token); all of them are in before any is scored.

        Returns:
            Scores by task position, of test items and of validation items.

        Raises:
            LeakError: an answer sheet with the wrong number of answers.
        """
        sheets = [self._sheets[token] for token in answers]
        for sheet, given in zip(sheets, answers.values(), strict=True):
            if given.shape != sheet.y.shape:
                raise LeakError(f"{list(given.shape)} answers to {list(sheet.y.shape)} queries: predict() must answer every query once")
        y, tasks, test = (torch.cat([getattr(s, name) for s in sheets]) for name in ("y", "tasks", "test"))
        right = torch.cat(list(answers.values())).to(y.device) == y
        # One count over (part, task, class) gives every score of the group at once.
        n_tasks = int(tasks.max()) + 1
        cell = (test.long() * n_tasks + tasks) * self._n_outputs + y
        shape = (2, n_tasks, self._n_outputs)
        counts = torch.bincount(cell, minlength=math.prod(shape)).view(shape).double()
        hits = torch.bincount(cell[right], minlength=math.prod(shape)).view(shape).double()
        validation, tested = ({k: self._score(hits[p, k], counts[p, k]) for k in _asked(counts[p])} for p in (0, 1))
        return tested, validation

    def _score(self, hits: Tensor, counts: Tensor) -> Score:
        if self._rule == "micro":
            accuracy = hits.sum() / counts.sum()
        else:
            accuracy = (hits[counts > 0] / counts[counts > 0]).mean()
        return Score(accuracy=float(accuracy), hits=hits, counts=counts)

    def monitor(self, tokens: Sequence[str], criterion: Callable[[Tensor], Tensor]) -> float:
        """``criterion`` of the hidden labels of ``tokens``, joined in order, as one scalar (a validation loss)."""
        return float(criterion(torch.cat([self._sheets[token].y for token in tokens])))


def _asked(counts: Tensor) -> list[int]:
    asked: list[int] = counts.sum(dim=1).nonzero().flatten().tolist()
    return asked
