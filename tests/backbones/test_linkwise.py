"""GCN over pairs: the formula, its symmetry, and what it shares with the node-level encoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from cglsuite.backbones.linkwise import LinkGCN, link_gcn
from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph

EDGES = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
PAIRS = torch.tensor([[0, 1], [3, 2], [1, 3], [0, 2]])


def model(**changes: Any) -> LinkGCN:
    torch.manual_seed(0)
    hyperparameters: dict[str, Any] = {
        "layers": 2, "width": 4, "normalisation": "symmetric", "bias": False, "batch_norm": False, "dropout": 0.0, "input_dropout": 0.0,
        "predictor_layers": 3, "predictor_width": 5, "predictor_dropout": 0.0,
    }  # fmt: skip
    return link_gcn(3, 2, **(hyperparameters | changes))


def graph() -> MessageGraph:
    return MessageGraph(torch.rand(4, 3, generator=torch.Generator().manual_seed(1)), EDGES)


@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
def test_outputs_are_those_of_the_formula(normalisation: str) -> None:
    made, over = model(normalisation=normalisation), graph()
    p = torch.eye(4)
    p[EDGES[1], EDGES[0]] = 1
    if normalisation == "symmetric":
        scale = p.sum(dim=1).rsqrt()
        p = scale[:, None] * p * scale
    h = over.features
    for layer in made.body:
        h = functional.relu(p @ h @ layer.linear.weight)  # type: ignore[union-attr, operator]
    z = h[PAIRS[:, 0]] * h[PAIRS[:, 1]]
    for layer in made.predictor:
        z = functional.relu(layer(z))
    torch.testing.assert_close(made(over, PAIRS), made.head(z))
    torch.testing.assert_close(made.combine(made.encode(over), PAIRS), z)


def test_a_pair_has_the_same_outputs_either_way_round() -> None:
    made, over = model(batch_norm=True).eval(), graph()
    assert torch.equal(made(over, PAIRS), made(over, PAIRS.flip(1)))


def test_pairs_must_be_named() -> None:
    with pytest.raises(SpecError, match="scores pairs of nodes; expected ids"):
        model()(graph())


def test_one_predictor_layer_reads_the_product() -> None:
    made, over = model(predictor_layers=1), graph()
    h = made.encode(over)
    torch.testing.assert_close(made(over, PAIRS), made.head(h[PAIRS[:, 0]] * h[PAIRS[:, 1]]))
    assert made.head.in_features == 4


def test_parts_are_told_apart() -> None:
    tags = {(tag, name.partition(".")[0]) for tag, name, _ in model(batch_norm=True).tagged_parameters()}
    assert tags == {("body", "body"), ("norm", "norms"), ("body", "predictor"), ("head", "head")}


def test_attention_is_that_of_the_first_convolution() -> None:
    made, over = model(), graph()
    attention = made.edge_attention(over)
    _, target = over.edges_with_loops
    total = torch.zeros(4, 1).index_add(0, target, attention)
    torch.testing.assert_close(total, torch.ones(4, 1))
    assert made.hops == 2


def test_dropout_of_the_predictor_is_training_only() -> None:
    made, over = model(predictor_dropout=0.5), graph()
    assert torch.equal(made.eval()(over, PAIRS), made.eval()(over, PAIRS))
    made.train()
    assert not torch.equal(made(over, PAIRS), made(over, PAIRS))
