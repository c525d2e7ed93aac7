"""Cosines of items' gradients against the gradients themselves, wherever a weight is used and however features are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import scipy.sparse
import torch
from cglsuite_methods.gradients.products import gradient_similarity, products_of
from torch import Tensor, nn

from cglsuite.backbones import convolutional
from cglsuite.backbones.layers import FeatureLinear
from cglsuite.graphs import MessageGraph, SparseMatrix

GRAPH = torch.tensor([[0, 1, 1, 2, 3, 4, 5, 0], [1, 0, 2, 1, 4, 3, 6, 6]])
OPTIONS: dict[str, dict[str, Any]] = {
    "gcn": {"normalisation": "symmetric", "bias": True, "batch_norm": False, "dropout": 0.0, "input_dropout": 0.0},
    "gin": {"eps": 0.0, "batch_norm": True, "dropout": 0.0},
    "gat": {"heads": 2, "dropout": 0.0, "attention_dropout": 0.0},
}


def one_by_one(losses: Tensor, references: int, parameters: Sequence[Tensor]) -> Tensor:
    """The cosines of gradients that are laid side by side."""
    rows = []
    for loss in losses:
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True, allow_unused=True)
        rows.append(torch.cat([g.flatten() for g in gradients]))
    return torch.stack([torch.stack([torch.cosine_similarity(a, b, dim=0) for b in rows[:references]]) for a in rows[references:]])


def compared(model: nn.Module, outputs: Callable[[], Tensor], chunk: int = 2, formed: str = "") -> None:
    """Both ways agree, and of the weights of feature maps the gradients of the map ``formed`` alone are formed."""
    model.eval()
    with products_of(model) as products:
        losses = outputs().pow(2).sum(dim=1)
    parameters = list(model.parameters())
    differentiated: list[tuple[int, ...]] = []
    original = torch.autograd.grad

    def watched(values: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        differentiated.append(tuple(id(x) for x in inputs))
        return original(values, inputs, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.autograd, "grad", watched)
        found = gradient_similarity(losses, 3, parameters, chunk, products)
    torch.testing.assert_close(found, one_by_one(losses, 3, parameters), atol=2e-6, rtol=1e-5)
    maps = {name: module for name, module in model.named_modules() if isinstance(module, FeatureLinear)}
    assert {name for name, module in maps.items() if id(module.weight) in differentiated[0]} == ({formed} if formed else set())


@pytest.mark.parametrize("chunk", [1, 16])
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "gin", "gat"])
def test_backbones(kind: str, sparse: bool, edges: bool, chunk: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 40) * (torch.rand(7, 40) < 0.4)
    graph = MessageGraph(scipy.sparse.csr_matrix(x.numpy()) if sparse else x, GRAPH if edges else GRAPH[:, :0])
    assert isinstance(graph.features, SparseMatrix) is sparse
    model = getattr(convolutional, kind)(40, 9, layers=2, width=30, head="convolution", **OPTIONS[kind])
    compared(model, lambda: model(graph), chunk)


class Twice(nn.Module):
    """A feature map that is applied twice, and one whose weight is also read by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = FeatureLinear(20, 20)
        self.read = FeatureLinear(20, 20)

    def forward(self, x: Tensor, by_hand: bool = False) -> Tensor:
        """float32 [n, 20] to [n, 20]."""
        hidden: Tensor = self.read(self.twice(self.twice(x).tanh()).tanh())
        return hidden + x @ self.read.weight if by_hand else hidden


@pytest.mark.parametrize("by_hand", [False, True])
def test_weights_with_several_uses_are_differentiated_for(by_hand: bool) -> None:
    torch.manual_seed(1)
    model, x = Twice(), torch.randn(7, 20)
    with products_of(model) as products:
        losses = model(x, by_hand).pow(2).sum(dim=1)
    assert len(products) == 3
    found = gradient_similarity(losses, 3, list(model.parameters()), 2, products)
    torch.testing.assert_close(found, one_by_one(losses, 3, list(model.parameters())), atol=2e-6, rtol=1e-5)
    if not by_hand:
        compared(model, lambda: model(x), formed="twice")


def test_large_outputs_of_small_weights_are_not_kept() -> None:
    """Of 60 rows the products would take more than the gradients of a weight of 3 x 2."""
    torch.manual_seed(2)
    model, x = nn.Sequential(FeatureLinear(3, 2), nn.Tanh()), torch.randn(60, 3)
    compared(model, lambda: model(x)[:7], formed="0")


def test_an_item_without_gradient_points_nowhere() -> None:
    model = FeatureLinear(12, 4, bias=False)
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    x[[0, 4]] = 0
    with products_of(model) as products:
        losses = model(x).pow(2).sum(dim=1)
    found = gradient_similarity(losses, 2, [model.weight], 3, products)
    assert found[:, 0].tolist() == [0, 0, 0]
    assert found[2].tolist() == [0, 0]
    assert found[0, 1] != 0


def test_nothing_is_watched_afterwards() -> None:
    model = FeatureLinear(4, 3)
    with products_of(model) as products:
        model(torch.ones(2, 4))
    model(torch.ones(2, 4))
    assert len(products) == 1
