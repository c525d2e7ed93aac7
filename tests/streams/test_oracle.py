"""The oracle: answers are scored by part, task and rule, by hand; a group is scored only if every query is answered."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from cglsuite.base.errors import DivergenceError, LeakError
from cglsuite.streams import Oracle
from cglsuite.streams.oracle import EVERY_TASK, NO_TASK

Y = torch.tensor([0, 0, 0, 1, 2, 2])
TASKS = torch.tensor([0, 0, 0, 0, 1, 1])
TEST = torch.tensor([True, True, True, True, True, False])
GIVEN = torch.tensor([0, 0, 2, 1, 2, 0])  # of task 0 right: two of three zeros, and the one


def oracle(rule: str = "micro", y: Tensor = Y, tasks: Tensor = TASKS, test: Tensor = TEST) -> Oracle:
    made = Oracle(3, rule)
    made.deposit("a", y, tasks, test)
    return made


def test_micro_counts_items() -> None:
    """Three of four test items of task 0, the one of task 1, and none of its validation items are right."""
    tested, validated = oracle().grade({"a": GIVEN})
    assert {k: score.performance for k, score in tested.items()} == {0: 0.75, 1: 1.0}
    assert {k: score.performance for k, score in validated.items()} == {1: 0.0}
    assert tested[0].hits.tolist() == [2.0, 1.0, 0.0]
    assert tested[0].counts.tolist() == [3.0, 1.0, 0.0]


def test_macro_averages_the_classes_that_occur() -> None:
    """Class 2 has no item in task 0 and does not count there."""
    tested, _ = oracle("macro").grade({"a": GIVEN})
    assert tested[0].performance == pytest.approx((2 / 3 + 1) / 2)


def test_groups_are_scored_together() -> None:
    """Items of one task may be spread over groups."""
    made = oracle()
    made.deposit("b", torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([True, True]))
    tested, _ = made.grade({"a": GIVEN, "b": torch.tensor([1, 0])})
    assert tested[0].performance == pytest.approx(4 / 6)


@pytest.mark.parametrize("n", [0, 5, 7])
def test_every_query_is_answered_once(n: int) -> None:
    with pytest.raises(LeakError, match=rf"got predictions of shape \[{n}\] for \[6\] queries: predict\(\) must return one per query"):
        oracle().grade({"a": torch.zeros(n, dtype=torch.int64)})


def test_only_deposited_groups_are_held() -> None:
    assert oracle().holds("a")
    assert not oracle().holds("b")


def test_a_monitor_sees_the_labels_of_its_groups_in_order() -> None:
    """It returns one number and never the labels."""
    made = oracle()
    made.deposit("b", torch.tensor([2]), torch.tensor([0]), torch.tensor([False]))
    seen: list[list[int]] = []

    def criterion(y: Tensor) -> Tensor:
        seen.append(y.tolist())
        return y.double().mean()

    assert made.monitor(["b", "a"], criterion) == pytest.approx((2 + 0 + 0 + 0 + 1 + 2 + 2) / 7)
    assert seen == [[2, 0, 0, 0, 1, 2, 2]]


def test_performance_is_over_all_labels_of_its_groups() -> None:
    """Four of six, whatever the tasks and parts; by class 2/3, 1/1 and 1/2 under macro."""
    assert oracle().performance(["a"], GIVEN, torch.ones(3, dtype=torch.bool)) == pytest.approx(4 / 6)
    assert oracle("macro").performance(["a"], GIVEN, torch.ones(3, dtype=torch.bool)) == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)


# --- real targets -------------------------------------------------------------------------------------------------------------------

REAL = torch.tensor([[1.0, 4.0, 0.0], [2.0, 0.0, 9.0]])


def test_negative_mean_absolute_error_of_the_outputs_that_compete() -> None:
    """Errors 1 and 0 in output 0, 2 and 2 in output 1; output 2 does not compete."""
    made = oracle("negative-mae", REAL, torch.tensor([0, 0]), torch.tensor([True, True]))
    answers = torch.tensor([[2.0, 2.0, 5.0], [2.0, 2.0, 5.0]])
    tested, _ = made.grade({"a": answers}, {"a": torch.tensor([True, True, False])})
    assert tested[0].performance == pytest.approx(-(0.5 + 2.0) / 2)
    assert tested[0].hits.tolist() == pytest.approx([-0.5, -2.0, 0.0])


def test_negative_root_mean_squared_error_is_the_root_of_the_mean_over_all_items() -> None:
    """Errors 1 and 0 in output 0, 2 and 2 in output 1; output 2 does not compete. The mean of the roots would be -(0.5 + 2) / 2."""
    made = oracle("negative-rmse", REAL, torch.tensor([0, 0]), torch.tensor([True, True]))
    answers = torch.tensor([[2.0, 2.0, 5.0], [2.0, 2.0, 5.0]])
    tested, _ = made.grade({"a": answers}, {"a": torch.tensor([True, True, False])})
    assert tested[0].performance == pytest.approx(-(math.sqrt(0.5) + 2.0) / 2)
    assert tested[0].hits.tolist() == pytest.approx([-math.sqrt(0.5), -2.0, 0.0])


def test_answers_that_are_not_finite_are_a_divergence_in_scores_and_nan_in_a_monitor() -> None:
    made = oracle("negative-mae", REAL, torch.tensor([0, 0]), torch.tensor([True, True]))
    answers, every = torch.full((2, 3), math.inf), torch.ones(3, dtype=torch.bool)
    with pytest.raises(DivergenceError, match="not finite"):
        made.grade({"a": answers}, {"a": every})
    assert math.isnan(made.performance(["a"], answers, every))


# --- pairs of nodes -------------------------------------------------------------------------------------------------------------------


def test_links_of_every_task_are_ranked_against_shared_pairs() -> None:
    """Two links of task 0, one of task 1, two pairs without a link for both, and an item that is scored elsewhere."""
    y = torch.tensor([[True], [True], [True], [False], [False], [True]])
    tasks = torch.tensor([0, 0, 1, EVERY_TASK, EVERY_TASK, NO_TASK])
    made = Oracle(1, "hits", hits_k=1)
    made.deposit("a", y, tasks, torch.ones(6, dtype=torch.bool))
    answers = torch.tensor([[0.9], [0.3], [0.4], [0.5], [0.1], [0.0]])  # the best pair without a link has 0.5
    tested, validated = made.grade({"a": answers}, {"a": torch.tensor([True])})
    assert {k: score.performance for k, score in tested.items()} == {0: 0.5, 1: 0.0}
    assert validated == {}
