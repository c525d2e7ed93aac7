"""Initial weights against torch's own and against the distributions that their names stand for."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cglsuite.backbones.convolutional import gat, gcn, gin
from cglsuite.backbones.layers import GATConv
from cglsuite.backbones.plugin import cglsuite_backbones
from cglsuite.base.errors import SpecError

SPECS = {spec.name: spec for spec in cglsuite_backbones()}
WIDE: dict[str, Any] = {"width": 200, "head": "convolution"}


def built(name: str, in_features: int = 600, outputs: int = 40, **given: Any) -> Any:
    factory: Any = {"gcn": gcn, "gat": gat, "gin": gin}[name]
    defaults = {h.name: h.default for h in SPECS[name].hyperparameters if not h.implicit}
    torch.manual_seed(3)
    return factory(in_features, outputs, **(defaults | WIDE | given))


def is_uniform(drawn: Tensor, bound: float) -> bool:
    """Within the bound, close to it, and with the standard deviation of a uniform draw."""
    n, drawn = drawn.numel(), drawn.detach()
    near = float(drawn.abs().max()) <= bound and float(drawn.abs().max()) > bound * (1 - 20 / n)
    return near and abs(float(drawn.std()) - bound / math.sqrt(3)) < 4 * bound / math.sqrt(n)


def is_normal(drawn: Tensor, sd: float) -> bool:
    """The second and the fourth moment of a normal draw, within five standard errors."""
    drawn = drawn.detach()
    n, second, fourth = drawn.numel(), float(drawn.pow(2).mean()) / sd**2, float(drawn.pow(4).mean()) / sd**4
    return abs(second - 1) < 5 * math.sqrt(2 / n) and abs(fourth - 3) < 5 * math.sqrt(96 / n)


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_linear_is_how_torch_starts_a_linear_map(name: str) -> None:
    model = built(name, init="linear")
    for layer in [*model.body, model.head]:
        inputs, outputs = layer.linear.weight.shape
        reference = nn.Linear(inputs, outputs)
        assert is_uniform(layer.linear.weight, 1 / math.sqrt(inputs))
        assert is_uniform(layer.bias, 1 / math.sqrt(inputs))
        assert float(layer.linear.weight.detach().std()) == pytest.approx(float(reference.weight.detach().std()), rel=0.02)


def test_a_linear_head_is_drawn_like_any_map() -> None:
    model = built("gcn", head="linear", init="fan-in-normal")
    assert is_normal(model.head.weight, 1 / math.sqrt(200))
    assert is_uniform(model.head.bias, 1 / math.sqrt(200))


NORMAL = [("xavier-normal", lambda i, o: math.sqrt(4 / (i + o))), ("fan-in-normal", lambda i, o: i**-0.5)]


@pytest.mark.parametrize(("init", "sd"), NORMAL)
def test_normal_forms(init: str, sd: Any) -> None:
    model = built("gcn", bias=False, init=init)
    for layer in [*model.body, model.head]:
        assert is_normal(layer.linear.weight, sd(*layer.linear.weight.shape))


@pytest.mark.parametrize(("init", "of_map"), NORMAL)
def test_attention_vectors_are_drawn_as_torch_draws_their_tensor(init: str, of_map: Any) -> None:
    """Published code holds them as [1, heads, units], for which torch counts heads · units inputs and units outputs."""
    model = built("gat", width=80, heads=8, init=init)
    layer = model.body[0]
    assert is_normal(layer.linear.weight, of_map(*layer.linear.weight.shape))
    reference = nn.init.xavier_normal_(torch.empty(1, 8, 80_000), gain=math.sqrt(2))
    for vector in (layer.target, layer.source):
        assert is_normal(vector, float(reference.std()) * math.sqrt(1000))


def test_glorot_draws_nothing() -> None:
    """The default leaves weights and the state of the generator as they were before there was a choice."""
    for name in ("gcn", "gat", "gin"):
        one = built(name)
        after = torch.get_rng_state()
        other = built(name, init="glorot")
        assert torch.equal(torch.get_rng_state(), after)
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_another_form_is_refused() -> None:
    with pytest.raises(SpecError, match=r"backbone.init = 'he': expected 'glorot', 'linear'"):
        built("gcn", init="he")


def test_attention_is_drawn_from_both_sides_of_0() -> None:
    """Glorot's bound of a vector of d entries: sqrt(6 / (1 + d)), for what a node sends as for what it receives."""
    torch.manual_seed(3)
    layer = GATConv(5, 99, heads=40)
    for drawn in (layer.target.detach(), layer.source.detach()):
        assert is_uniform(drawn, math.sqrt(6 / 100))
        assert abs(float(drawn.mean())) < 5 * math.sqrt(6 / 100) / math.sqrt(3 * drawn.numel())
    assert not torch.equal(layer.target, layer.source)
