"""Real targets: losses, distillation, classes of methods that ask for some, and answers, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_graphs import graph_variant
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.problems import GraphProblem, GraphRegressionProblem, problem_class
from cglsuite.problems.node import NodeProblem
from cglsuite.problems.node_regression import NodeRegressionProblem
from cglsuite.problems.regression import RealOutputs
from cglsuite.streams import Batch

LOGITS = torch.tensor([[1.0, 2.0, -1.0], [0.0, 3.0, 1.0]])
Y = torch.tensor([[0.5, 0.0, -1.0], [2.0, 3.5, 0.0]])
SHARED = torch.tensor([True, False, True])


def problem(n_outputs: int = 3) -> GraphRegressionProblem:
    return GraphRegressionProblem(n_outputs=n_outputs, n_tasks=2, task_ids=False, class_balanced=False)


def batch(allowed: Tensor = SHARED, y: Tensor | None = Y) -> Batch:
    return Batch(graph=None, ids=torch.arange(2), allowed=allowed, y=y)


def test_the_kind_of_labels_chooses_the_problem() -> None:
    assert problem_class("GR", "real") is GraphRegressionProblem
    assert problem_class("NR", "real") is NodeRegressionProblem
    assert NodeRegressionProblem.__mro__[1:3] == (RealOutputs, NodeProblem)
    assert (GraphRegressionProblem.kind, GraphProblem.kind) == ("real", "single-label")


def test_the_loss_by_hand() -> None:
    """The mean over items of the mean absolute error over the outputs that compete; output 1 does not compete."""
    made = problem()
    assert made.loss(LOGITS, batch(), "none").tolist() == [0.25, 1.5]
    assert float(made.loss(LOGITS, batch())) == 0.875
    assert float(made.loss(LOGITS, batch(), "sum")) == 1.75


def test_outputs_that_differ_by_item() -> None:
    allowed = torch.tensor([[True, True, False], [False, False, True]])
    assert problem().loss(LOGITS, batch(allowed), "none").tolist() == [1.25, 1.0]


def test_a_query_has_no_loss() -> None:
    with pytest.raises(SpecError, match="so it has no labels: only the oracle has them"):
        problem().loss(LOGITS, batch(y=None))


def test_the_gradient_does_not_reach_other_outputs() -> None:
    logits = LOGITS.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(problem().loss(logits, batch()), logits)
    assert gradient.tolist() == [[0.25, 0.0, 0.0], [-0.25, 0.0, 0.25]]


def test_distillation_by_hand() -> None:
    """The mean over items of the mean squared difference; of groups the sum. A single output teaches, as others do."""
    made, new = problem(), LOGITS + torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, -2.0]])
    assert float(made.distill(LOGITS, new, SHARED)) == pytest.approx(((1 + 9) / 2 + (0 + 4) / 2) / 2)
    groups = torch.tensor([[True, False, False], [False, True, True]])
    assert float(made.distill(LOGITS, new, groups)) == pytest.approx((1 + 0) / 2 + ((4 + 9) / 2 + (1 + 4) / 2) / 2)
    assert float(made.distill(LOGITS, new, SHARED, temperature=20.0)) == float(made.distill(LOGITS, new, SHARED))
    single = new[:, :1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(made.distill(LOGITS[:, :1], single, torch.tensor([True])), single)
    assert gradient.flatten().tolist() == [1.0, 0.0]


def test_all_items_are_of_the_first_output_that_is_asked_for() -> None:
    made = problem()
    assert [made.has_output(batch(torch.tensor([False, True, True])), c).tolist() for c in range(3)] == [
        [False] * 2,
        [True] * 2,
        [False] * 2,
    ]


def test_answers_are_the_outputs_themselves() -> None:
    assert problem().decode(LOGITS, SHARED).tolist() == [[1.0, 0.0, -1.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("variant", ["regression domain-il", "regression of two targets"])
def test_performance_is_minus_the_mean_absolute_error_of_the_task(variant: str) -> None:
    """In the unit of the targets, over the test items of each task; perfect answers score 0."""
    stream = graph_variant(variant)
    made = problem(stream.n_outputs)
    (group,) = stream.make_queries(len(stream))
    asked = stream.asked(group.token)
    shift = torch.arange(len(asked.ids)) % 5 / 4.0
    scores, _ = stream.oracle.grade(
        {group.token: made.decode(asked.y + shift.unsqueeze(1), group.query.allowed)}, {group.token: group.query.allowed}
    )
    for k, score in scores.items():
        assert score.performance == pytest.approx(-float(shift[asked.test & (asked.tasks == k)].mean()), rel=1e-5)
    perfect, _ = stream.oracle.grade({group.token: asked.y}, {group.token: group.query.allowed})
    assert [s.performance for s in perfect.values()] == [0.0, 0.0, 0.0]


def test_memories_keep_targets_and_come_back() -> None:
    stream = graph_variant("regression of two targets")
    made = problem(2)
    for k in range(2):
        made.arrive(stream.view(k))
    view: Any = stream.view(0)
    items = made.sample(view.train, torch.tensor([3, 1]), "item")
    recalled = made.recall(items, stream.view(1))
    assert torch.equal(recalled.y, view.train.y[[3, 1]])  # type: ignore[arg-type]
    together = made.merge([stream.view(1).train, replace(recalled, cache={})])
    assert len(together) == len(stream.view(1).train) + 2
    assert made.loss(together.y.clone(), together) == 0  # type: ignore[union-attr]
