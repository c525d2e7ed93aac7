"""How the oracle scores ranked answers to items with any number of labels, against scikit-learn and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from tiny_streams import node_numbers, tiny_data, variant_stream
from torch import Tensor

from cglsuite.base.errors import DivergenceError, LeakError
from cglsuite.streams import Oracle

EVERY = torch.ones(3, dtype=torch.bool)
# Column 0 ranks 1, 0, 1, 0: precision 1 and 2/3; column 1 has no positive; column 2 has no negative.
Y = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=torch.bool)
GIVEN = torch.tensor([[0.9, 0.1, -3.0], [0.7, 0.2, 5.0], [0.5, 0.3, 0.0], [0.1, 0.4, 1.0]])


def oracle(rule: str, y: Tensor = Y, tasks: list[int] | None = None, test: list[bool] | None = None) -> Oracle:
    made = Oracle(y.shape[1], rule)
    made.deposit("a", y, torch.tensor(tasks or [0] * len(y)), torch.tensor(test or [True] * len(y)))
    return made


# --- by hand ----------------------------------------------------------------------------------------------------------------------


def test_average_precision_by_hand() -> None:
    """A label without a positive counts as 0, one without a negative as 1."""
    tested, validated = oracle("average-precision").grade({"a": GIVEN}, {"a": EVERY})
    assert validated == {}
    assert tested[0].hits.tolist() == pytest.approx([(1 + 2 / 3) / 2, 0.0, 1.0])
    assert tested[0].counts.tolist() == [1, 1, 1]
    assert tested[0].performance == pytest.approx(((1 + 2 / 3) / 2 + 0 + 1) / 3)


def test_area_under_the_curve_by_hand() -> None:
    """Three of four pairs of column 0 are in order; the others have no pair and do not count."""
    tested, _ = oracle("roc-auc").grade({"a": GIVEN}, {"a": EVERY})
    assert tested[0].hits.tolist() == pytest.approx([3 / 4, 0.0, 0.0])
    assert tested[0].counts.tolist() == [1, 0, 0]
    assert tested[0].performance == pytest.approx(3 / 4)


def test_equal_scores_are_chance() -> None:
    """Average precision is then the prevalence, the area one half."""
    level = torch.zeros(4, 3)
    assert oracle("average-precision").grade({"a": level}, {"a": EVERY})[0][0].hits.tolist() == pytest.approx([0.5, 0.0, 1.0])
    assert oracle("roc-auc").grade({"a": level}, {"a": EVERY})[0][0].performance == pytest.approx(0.5)


@pytest.mark.parametrize(("rule", "expected"), [("average-precision", 0.0), ("roc-auc", math.nan)])
def test_a_task_in_which_no_label_can_be_ranked(rule: str, expected: float) -> None:
    """Without any positive: nothing was found, or there is nothing to compare."""
    tested, _ = oracle(rule).grade({"a": GIVEN}, {"a": torch.tensor([False, True, False])})
    assert tested[0].performance == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("rule", "expected"), [("average-precision", 1.0), ("roc-auc", math.nan)])
def test_a_single_item(rule: str, expected: float) -> None:
    y = torch.tensor([[True, True, False]])
    tested, _ = oracle(rule, y).grade({"a": GIVEN[:1]}, {"a": torch.tensor([True, True, False])})
    assert tested[0].performance == pytest.approx(expected, nan_ok=True)


def test_only_what_competes_counts() -> None:
    """Labels that the item has but that do not compete are neither asked for nor held against it."""
    first = torch.tensor([True, False, False])
    for rule, expected in (("average-precision", 5 / 6), ("roc-auc", 3 / 4)):
        (score,) = oracle(rule).grade({"a": GIVEN}, {"a": first})[0].values()
        assert score.performance == pytest.approx(expected)
        assert score.counts.tolist() == [1, 0, 0]


def test_outputs_of_each_task_or_of_all() -> None:
    """Items of two tasks on one sheet, in any order: [n, C] gives each task its own labels, [C] gives both the same."""
    y = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]], dtype=torch.bool)
    answers = torch.tensor([[0.1, 0.6, 0.3], [0.9, 0.2, 0.8], [0.3, 0.9, 0.7], [0.8, 0.4, 0.1]])
    tasks = torch.tensor([1, 0, 1, 0])
    own = torch.tensor([[False, True, True], [True, False, False]])
    made = oracle("average-precision", y, tasks.tolist())
    tested, _ = made.grade({"a": answers}, {"a": own[tasks]})
    # Task 0 (items 1, 3): label 1 of item 1 is ranked second (1/2); label 2 of both (1). Task 1 (items 0, 2): label 0 second (1/2).
    assert {k: s.performance for k, s in tested.items()} == pytest.approx({0: (1 / 2 + 1) / 2, 1: 1 / 2})
    assert {k: s.counts.tolist() for k, s in tested.items()} == {0: [0, 1, 1], 1: [1, 0, 0]}
    shared, _ = made.grade({"a": answers}, {"a": EVERY})
    # Task 0: label 0 second of two as well. Task 1: label 1 first, label 2 of nobody.
    assert {k: s.performance for k, s in shared.items()} == pytest.approx({0: (1 / 2 + 1 / 2 + 1) / 3, 1: (1 / 2 + 1 + 0) / 3})


def test_test_and_validation_items_are_ranked_apart() -> None:
    tested, validated = oracle("average-precision", test=[True, False, True, False]).grade({"a": GIVEN}, {"a": EVERY})
    assert tested[0].hits.tolist() == [1.0, 0.0, 1.0]  # both have label 0
    assert validated[0].hits.tolist() == [0.0, 0.0, 1.0]  # neither has


def test_several_sheets() -> None:
    made = oracle("average-precision")
    made.deposit("b", ~Y, torch.tensor([2] * 4), torch.tensor([True] * 4))
    tested, _ = made.grade({"b": -GIVEN, "a": GIVEN}, {"a": EVERY, "b": torch.tensor([True, False, False])})
    assert set(tested) == {0, 2}
    assert tested[2].performance == pytest.approx(5 / 6)


# --- against scikit-learn -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 25), st.integers(1, 6), st.integers(0, 10_000), st.floats(0.05, 0.9), st.booleans())
def test_scores_equal_scikit_learns(n: int, n_labels: int, seed: int, density: float, tied: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    y = torch.rand(n, n_labels, generator=generator) < density
    answers = torch.randn(n, n_labels, generator=generator)
    answers = answers.round() if tied else answers
    allowed = torch.rand(n_labels, generator=generator) < 0.7
    allowed[0] = True
    for rule, score in (("average-precision", average_precision_score), ("roc-auc", roc_auc_score)):
        expected = {}
        for c in allowed.nonzero().flatten().tolist():
            column = y[:, c].numpy()
            if column.any() and (rule == "average-precision" or not column.all()):
                expected[c] = score(column, answers[:, c].numpy())
            elif rule == "average-precision":
                expected[c] = 0.0
        (found,) = oracle(rule, y).grade({"a": answers}, {"a": allowed})[0].values()
        assert found.performance == pytest.approx(np.mean(list(expected.values())) if expected else math.nan, nan_ok=True)
        assert found.counts.nonzero().flatten().tolist() == sorted(expected)
        assert {c: float(found.hits[c]) for c in expected} == pytest.approx(expected)


@pytest.mark.parametrize("rule", ["average-precision", "roc-auc"])
@pytest.mark.parametrize("name", ["multi task-il", "multi class-il", "multi class-il consistent"])
def test_streams_are_scored_among_the_labels_that_compete(name: str, rule: str) -> None:
    """Of an item asked in class-IL every label seen so far counts, whichever task it came with; in task-IL those of the task."""
    stream, y = variant_stream(name, performance=rule), tiny_data(per_class=15, multi_label=True).y
    answers = torch.randn(90, 6, generator=torch.Generator().manual_seed(3))
    groups = stream.make_queries(2)
    tested, validated = stream.oracle.grade(
        {g.token: answers[node_numbers(g.query.graph, g.query.ids)] for g in groups}, {g.token: g.query.allowed for g in groups}
    )
    score = average_precision_score if rule == "average-precision" else roc_auc_score
    for part, scores in (("test", tested), ("validation", validated)):
        for k in range(2):
            ids = stream.members(k, part)
            columns = [2 * k, 2 * k + 1] if name == "multi task-il" else [0, 1, 2, 3]
            expected = [score(y[ids, c].numpy(), answers[ids, c].numpy()) for c in columns]
            assert scores[k].performance == pytest.approx(np.mean(expected))


# --- bad answers ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_a_divergence(bad: float) -> None:
    answers = GIVEN.clone()
    answers[2, 1] = bad
    with pytest.raises(DivergenceError, match="the predicted scores are not finite: lower training.lr"):
        oracle("average-precision").grade({"a": answers}, {"a": EVERY})


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (4, 2), (4,), (4, 3, 1)])
def test_every_item_is_answered_for_every_label(shape: tuple[int, ...]) -> None:
    with pytest.raises(LeakError, match=r"for \[4, 3\] queries: predict\(\) must return one per query"):
        oracle("average-precision").grade({"a": torch.zeros(shape)}, {"a": EVERY})


def test_monitor_joins_label_sets() -> None:
    made = oracle("average-precision")
    made.deposit("b", ~Y, torch.tensor([0] * 4), torch.tensor([False] * 4))
    assert made.monitor(["b", "a"], lambda y: (y == torch.cat([~Y, Y])).all().float()) == 1.0
