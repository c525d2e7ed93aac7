"""`learns` is decided on three draws of the data where one is not enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.kinds import methods


@dataclass
class ACase:
    """Stands for a method in a stream; notes the seeds that it runs with."""

    seed: int
    ran: list[int] = field(default_factory=list)
    hyperparameters: tuple[()] = ()

    def run_one(self) -> None:
        self.ran.append(self.seed)


def decide(seed: int, *means: float) -> list[int]:
    """The further seeds that were run, where the draws have these means; 0.5 is needed."""
    case: Any = ACase(seed)
    draws = [methods._LearningCheck(mean=mean, guess=0.25, needed=0.5, tasks=[mean >= 0.5]) for mean in means]
    trial: Any = mock.Mock(case=case, first=None)
    with (
        mock.patch.object(methods._LearningCheck, "of", side_effect=draws),
        mock.patch.object(methods, "why_not_learnt", return_value="a fix"),
    ):
        methods._learns(trial)
    return case.ran


def test_one_draw_is_enough() -> None:
    assert decide(5, 0.5) == []


def test_two_more_are_drawn_in_doubt() -> None:
    assert decide(5, 0.48, 0.9, 0.6) == [7, 9]
    assert decide(2**31 - 1, 0.48, 0.9, 0.6) == [1, 3]


def test_the_mean_decides() -> None:
    with pytest.raises(CheckFailed, match=r"is 0\.480 \(chance is 0\.250\); expected at least 0\.500"):
        decide(5, 0.3, 0.52, 0.62)
