"""The pull towards anchors against autograd, for parameters of any size and layout."""

from __future__ import annotations

import pytest
import torch
from cglsuite_methods.penalty import protect, pull
from torch import Tensor, nn


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
