"""The pull towards anchors against autograd, for parameters of any size and layout."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from cglsuite_methods.regularisation.penalty import in_importance_mode, protect, pull
from tiny_streams import assert_same_run, catalogue_runner, tiny_runner, tiny_stream
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.streams import TaskView


def parameter(name: str) -> nn.Parameter:
    shapes = {
        "scalar": (),
        "none": (0, 4),
        "vector": (7,),
        "long": (300_000,),
        "wide": (3, 200_000),
        "tall": (70_001, 4),
        "columns": (5, 6),
    }
    value = torch.randn(shapes[name], generator=torch.Generator().manual_seed(len(name)))
    return nn.Parameter(value.t().contiguous().t() if name == "columns" else value)


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize("name", ["scalar", "none", "vector", "long", "wide", "tall", "columns"])
def test_the_gradient_is_that_of_one_penalty_per_anchor(name: str, reached: bool) -> None:
    """It is added to the gradient of the loss; where the loss has none, it is the gradient."""
    theta = parameter(name)
    anchors = [(torch.rand_like(theta), torch.randn_like(theta)) for _ in range(3)]
    importance: dict[str, Tensor] = {}
    weighted: dict[str, Tensor] = {}
    for weights, anchor in anchors:
        protect(importance, weighted, {name: weights}, {name: anchor})
    before = torch.randn_like(theta) if reached else None
    theta.grad = None if before is None else before.clone()
    pull({name: theta}, importance, weighted, 1.5)
    penalty = 1.5 * torch.stack([(weights * (theta - anchor).square()).sum() for weights, anchor in anchors]).sum()
    (expected,) = torch.autograd.grad(penalty, theta)
    assert theta.grad is not None
    assert not theta.grad.requires_grad
    torch.testing.assert_close(theta.grad, expected if before is None else before + expected, rtol=1e-5, atol=1e-5)


class Estimating(Method):
    """Estimates under the mode that its hyperparameters ask for."""

    def after_task(self, view: TaskView) -> None:
        with in_importance_mode(self):
            self.outputs = self.forward(view.train)


@pytest.mark.parametrize("mode", ["evaluation", "training", None])
def test_importance_is_estimated_in_the_mode_that_is_asked_for(mode: str | None) -> None:
    """Training mode normalises by the items' own statistics, and leaves neither its mode nor the running statistics behind."""
    stream, given = tiny_stream(), {} if mode is None else {"importance_mode": mode}
    runner = tiny_runner(stream, Estimating, given, backbone={"dropout": 0.0, "batch_norm": True})
    view, model = stream.view(0), runner.method.model
    runner.problem.arrive(view)
    model.eval()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        evaluated = runner.method.forward(view.train)
        trained = copy.deepcopy(model).train()(view.train.graph, view.train.ids)
    runner.method.after_task(view)
    torch.testing.assert_close(runner.method.outputs, trained if mode == "training" else evaluated)
    assert not torch.allclose(trained, evaluated)
    assert not model.training
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())


@pytest.mark.parametrize(("name", "given"), [("ewc", {"fisher": "batch"}), ("mas", {"importance": "batch-squared"}), ("twp", {})])
def test_methods_with_importance_take_the_mode(name: str, given: dict[str, Any]) -> None:
    """Under batch norm the two modes protect differently; a run in training mode is the same run twice."""
    runs = [
        catalogue_runner(tiny_stream(), name, given | mode, backbone={"dropout": 0.5, "batch_norm": True}).run()
        for mode in ({}, {"importance_mode": "training"}, {"importance_mode": "training"})
    ]
    assert_same_run(runs[1], runs[2])
    with pytest.raises(AssertionError):
        assert_same_run(runs[0], runs[1])
