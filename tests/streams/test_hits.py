"""Hits@K: against a count by hand, how the oracle ranks links of a task against pairs that serve every task, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.base.errors import DivergenceError, SpecError
from cglsuite.streams import Oracle
from cglsuite.streams.measures.hits import check_k, hits_at
from cglsuite.streams.oracle import EVERY_TASK, NO_TASK

ALL = torch.tensor([True])


def test_hits_by_hand() -> None:
    """The second best negative scores 0.5: of five links two score more, one as much, which does not count."""
    positives = torch.tensor([0.9, 0.5, 0.6, 0.1, 0.4])
    negatives = torch.tensor([0.2, 0.5, 0.8, 0.3])
    assert hits_at(1, positives, negatives) == pytest.approx(1 / 5)
    assert hits_at(2, positives, negatives) == pytest.approx(2 / 5)
    assert hits_at(4, positives, negatives) == pytest.approx(4 / 5)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_hits_are_the_links_above_the_kth_negative(data: st.DataObject) -> None:
    scores = st.integers(-4, 4).map(lambda v: v / 2)
    positives = data.draw(st.lists(scores, min_size=1, max_size=12))
    negatives = data.draw(st.lists(scores, min_size=1, max_size=12))
    k = data.draw(st.integers(1, len(negatives)))
    threshold = sorted(negatives, reverse=True)[k - 1]
    found = hits_at(k, torch.tensor(positives), torch.tensor(negatives))
    assert found == pytest.approx(sum(p > threshold for p in positives) / len(positives))
    shifted = hits_at(k, torch.tensor(positives) * 2 + 3, torch.tensor(negatives) * 2 + 3)
    assert shifted == found, "ranks alone count"
    assert k == len(negatives) or found <= hits_at(k + 1, torch.tensor(positives), torch.tensor(negatives))


def test_more_than_there_are_is_refused_and_not_full_marks() -> None:
    message = r"scenario\.hits_k = 50: links are ranked against only 49 negative pairs, too few for Hits@50; expected at most 49"
    with pytest.raises(SpecError, match=message):
        check_k(50, 49)
    with pytest.raises(SpecError, match=message):
        hits_at(50, torch.zeros(3), torch.zeros(49))
    check_k(50, 50)


# --- the oracle -------------------------------------------------------------------------------------------------------------------
#
# Two tasks of two test links each, a validation link of the first, two pairs for the test and two for the validation, and a link that is
# not scored here.

TASKS = torch.tensor([0, EVERY_TASK, 1, 0, EVERY_TASK, 0, EVERY_TASK, NO_TASK, 1, EVERY_TASK])
TEST = torch.tensor([True, True, True, True, True, False, False, True, True, False])
EXIST = (TASKS != EVERY_TASK).unsqueeze(1)
GIVEN = torch.tensor([[0.9], [0.5], [0.4], [0.1], [0.3], [0.7], [0.8], [9.0], [0.2], [0.6]])


def oracle(rule: str = "hits", k: int = 1) -> Oracle:
    made = Oracle(1, rule, k)
    made.deposit("a", EXIST, TASKS, TEST)
    return made


def test_links_of_every_task_are_ranked_against_the_same_pairs() -> None:
    tested, validated = oracle().grade({"a": GIVEN}, {"a": ALL})
    assert {k: s.performance for k, s in tested.items()} == {0: 0.5, 1: 0.0}
    assert {k: s.performance for k, s in validated.items()} == {0: 0.0}
    tested, validated = oracle(k=2).grade({"a": GIVEN}, {"a": ALL})
    assert {k: s.performance for k, s in tested.items()} == {0: 0.5, 1: 0.5}
    assert {k: s.performance for k, s in validated.items()} == {0: 1.0}
    assert tested[0].counts.tolist() == [1.0]


def test_the_area_under_the_curve_takes_the_same_pairs() -> None:
    """Task 0: 0.9 is above both pairs, 0.1 above none; task 1: 0.4 is above one of two, 0.2 above none."""
    tested, _ = oracle("roc-auc").grade({"a": GIVEN}, {"a": ALL})
    assert {k: s.performance for k, s in tested.items()} == {0: 0.5, 1: 0.25}


def test_scores_that_are_not_finite_diverged() -> None:
    given = GIVEN.clone()
    given[3] = math.nan
    with pytest.raises(DivergenceError, match="the predicted scores are not finite"):
        oracle().grade({"a": given}, {"a": ALL})
    assert math.isnan(oracle().performance(["a"], given, ALL))


def test_what_a_schedule_monitors_is_ranked_token_by_token() -> None:
    """One token with one link of three above its only pair, one whose single link is: (1/3 · 3 + 1 · 1) / 4."""
    made = Oracle(1, "hits", 1)
    exist = torch.tensor([[True], [False], [True], [True]])
    made.deposit("x", exist, torch.tensor([0, EVERY_TASK, 0, 0]), torch.zeros(4, dtype=torch.bool))
    made.deposit("y", exist[:2], torch.tensor([1, EVERY_TASK]), torch.zeros(2, dtype=torch.bool))
    answers = torch.tensor([[5.0], [4.0], [3.0], [2.0], [1.0], [0.0]])
    assert made.performance(["x"], answers[:4], ALL) == pytest.approx(1 / 3)
    assert made.performance(["x", "y"], answers, ALL) == pytest.approx((1 / 3 * 3 + 1) / 4)
