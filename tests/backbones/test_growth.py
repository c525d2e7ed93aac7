"""Outputs that are drawn when their class arrives, head by head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cglsuite.backbones import Backbone
from cglsuite.backbones.convolutional import gat, gcn, gin
from cglsuite.backbones.growth import redraw_outputs
from cglsuite.backbones.layers import FeatureLinear
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph

ARRIVING = torch.tensor([False, False, True, False, True])
COMMON: dict[str, Any] = {"layers": 2, "width": 3}
GCN: dict[str, Any] = {"normalisation": "symmetric", "bias": True, "batch_norm": True, "dropout": 0.0, "input_dropout": 0.0}
GAT: dict[str, Any] = {"heads": 2, "dropout": 0.0, "attention_dropout": 0.0}


def _over_features() -> Backbone:
    model = gcn(4, 5, head="linear", **COMMON, **GCN)
    model.head = FeatureLinear(3, 5)
    return model


MODELS: dict[str, Callable[[], Backbone]] = {
    "gcn, linear": lambda: gcn(4, 5, head="linear", **COMMON, **GCN),
    "gcn, convolution": lambda: gcn(4, 5, head="convolution", **COMMON, **GCN),
    "gcn, convolution without bias": lambda: gcn(4, 5, head="convolution", **COMMON, **(GCN | {"bias": False})),
    "gin, linear": lambda: gin(4, 5, head="linear", eps=0.0, batch_norm=False, dropout=0.0, **COMMON),
    "gin, convolution": lambda: gin(4, 5, head="convolution", eps=0.5, batch_norm=False, dropout=0.0, **COMMON),
    "gat, linear": lambda: gat(4, 5, head="linear", **COMMON, **GAT),
    "sparse linear": _over_features,
}


def graph() -> MessageGraph:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    return MessageGraph(x, torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))


def drawn(name: str, seed: int) -> Backbone:
    """A model whose biases are not all alike."""
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.head.parameters():
            if parameter.dim() == 1:
                parameter.normal_()
    return model


def by_output(parameter: Tensor) -> Tensor:
    """The parameter with its outputs along the first axis."""
    return parameter if parameter.shape[0] == 5 else parameter.T


@pytest.mark.parametrize("name", MODELS)
def test_arriving_outputs_come_from_the_new_draw_and_nothing_else_does(name: str) -> None:
    mine, fresh = drawn(name, 0), drawn(name, 1)
    before = {n: p.detach().clone() for n, p in mine.named_parameters()}
    objects = dict(mine.named_parameters())
    redraw_outputs(mine, fresh, ARRIVING)
    new = dict(fresh.named_parameters())
    for n, parameter in mine.named_parameters():
        assert parameter is objects[n]  # an optimiser goes on holding it
        assert parameter.requires_grad
        if n.startswith("head."):
            assert torch.equal(by_output(parameter)[ARRIVING], by_output(new[n])[ARRIVING])
            assert torch.equal(by_output(parameter)[~ARRIVING], by_output(before[n])[~ARRIVING])
            assert not torch.equal(by_output(parameter)[ARRIVING], by_output(before[n])[ARRIVING])
        else:
            assert torch.equal(parameter, before[n])


@pytest.mark.parametrize("name", MODELS)
def test_outputs_that_were_there_answer_as_before(name: str) -> None:
    mine, fresh = drawn(name, 0), drawn(name, 1)
    with torch.no_grad():
        before = mine(graph())
        redraw_outputs(mine, fresh, ARRIVING)
        after = mine(graph())
    assert torch.equal(after[:, ~ARRIVING], before[:, ~ARRIVING])
    assert (after[:, ARRIVING] != before[:, ARRIVING]).any(dim=0).all()


def test_no_output_arrives() -> None:
    mine = drawn("gcn, linear", 0)
    before = [p.detach().clone() for p in mine.parameters()]
    redraw_outputs(mine, drawn("gcn, linear", 1), torch.zeros(5, dtype=torch.bool))
    assert all(torch.equal(a, b) for a, b in zip(mine.parameters(), before, strict=True))


@pytest.mark.parametrize("name", ["gcn, linear", "gcn, convolution"])
def test_an_optimiser_forgets_what_it_knew_of_arriving_outputs(name: str) -> None:
    """Its moments of all other numbers stay, so do those of a model that it does not hold."""
    mine = drawn(name, 0)
    optimizer = torch.optim.Adam(mine.parameters(), lr=0.1)
    mine(graph()).pow(2).sum().backward()
    optimizer.step()
    moments = {n: {m: v.clone() for m, v in optimizer.state[p].items()} for n, p in mine.named_parameters()}
    redraw_outputs(mine, drawn(name, 1), ARRIVING, optimizer)
    for n, parameter in mine.named_parameters():
        for m, value in optimizer.state[parameter].items():
            old = moments[n][m]
            if n.startswith("head.") and value.shape == parameter.shape:
                assert not by_output(value)[ARRIVING].any()
                assert torch.equal(by_output(value)[~ARRIVING], by_output(old)[~ARRIVING])
                assert by_output(old)[ARRIVING].any()
            else:
                assert torch.equal(value, old)
    held = len(optimizer.state)
    redraw_outputs(drawn(name, 2), drawn(name, 3), ARRIVING, optimizer)
    assert len(optimizer.state) == held


@pytest.mark.parametrize("head", ["gat", "several layers"])
def test_heads_whose_outputs_cannot_be_told_apart(head: str) -> None:
    model = gat(4, 5, head="convolution", **COMMON, **GAT)
    if head != "gat":
        model.head = nn.Sequential(nn.Linear(3, 5))
    expected = "GATConv" if head == "gat" else "Sequential"
    with pytest.raises(NotApplicable, match=rf"scenario.head = growing: a {expected} head cannot initialise .* expected 'fixed'"):
        redraw_outputs(model, model, ARRIVING)
