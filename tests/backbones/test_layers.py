"""Layers against dense formulas on four nodes (0 ⇄ 1, 1 → 2, 0 → 2, a self-loop at 2, node 3 alone), and dropout's masks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.backbones.layers import FeatureLinear, GATConv, GCNConv, GINConv, drop, drop_features, segment_softmax
from cglsuite.graphs import MessageGraph, SparseMatrix

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
NEIGHBOURS = {0: [1], 1: [0], 2: [0, 1], 3: []}  # who a node hears, itself not counted
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 1.0]])
ADJACENCY = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]])


def graph(sparse: bool = False) -> MessageGraph:
    return MessageGraph(scipy.sparse.csr_matrix(X.numpy()) if sparse else X, EDGES)


def drawn(make: type[torch.nn.Module], *args: object, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    layer = make(*args)
    with torch.no_grad():
        for parameter in layer.parameters():
            if not parameter.any():  # biases begin at zero, where they would hide
                parameter.normal_()
    return layer


def both(layer: torch.nn.Module) -> tuple[Tensor, Tensor]:
    """The layer's output from dense and from sparse features."""
    return layer(X, graph()), layer(graph(True).features, graph(True))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("operator", ["sym", "sum-self"])
def test_gcn_equals_the_dense_formula(operator: str, bias: bool) -> None:
    layer = drawn(GCNConv, 3, 2, operator, bias)
    own = ADJACENCY + torch.eye(4)
    scale = torch.diag(own.sum(1).rsqrt()) if operator == "sym" else torch.eye(4)
    expected = scale @ own @ scale @ X @ layer.linear.weight + (layer.bias if bias else 0)
    for out in both(layer):
        torch.testing.assert_close(out, expected)
    assert sorted(n for n, _ in layer.named_parameters()) == (["bias", "linear.weight"] if bias else ["linear.weight"])


@pytest.mark.parametrize("eps", [0.0, 0.5, -1.0])
def test_gin_equals_the_dense_formula(eps: float) -> None:
    layer = drawn(GINConv, 3, 2, eps)
    expected = ((1 + eps) * torch.eye(4) + ADJACENCY) @ X @ layer.linear.weight + layer.bias
    for out in both(layer):
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(("heads", "concat"), [(1, True), (3, True), (3, False)])
def test_gat_equals_loops_over_heads_nodes_and_neighbours(heads: int, concat: bool) -> None:
    layer = drawn(GATConv, 3, 2, heads, concat)
    hidden, target, source = (X @ layer.linear.weight).view(4, heads, 2).detach(), layer.target.detach(), layer.source.detach()
    expected = torch.zeros(4, heads, 2)
    for h in range(heads):
        for i in range(4):
            heard = [*NEIGHBOURS[i], i]
            scores = [float(target[h] @ hidden[i, h] + source[h] @ hidden[j, h]) for j in heard]
            weights = np.exp([s if s > 0 else 0.2 * s for s in scores])
            for weight, j in zip(weights / weights.sum(), heard, strict=True):
                expected[i, h] += float(weight) * hidden[j, h]
    joined = expected.reshape(4, -1) if concat else expected.mean(dim=1)
    for out in both(layer):
        torch.testing.assert_close(out, joined + layer.bias)


def test_gat_attention_of_a_lonely_node_is_one() -> None:
    layer = drawn(GATConv, 3, 2, 1)
    torch.testing.assert_close(layer(X, graph())[3], X[3] @ layer.linear.weight + layer.bias)


def test_gat_attention_dropout_only_in_training() -> None:
    layer = drawn(GATConv, 3, 2, 2, True, 0.5)
    layer.eval()
    assert torch.equal(layer(X, graph()), layer(X, graph()))
    layer.train()
    torch.manual_seed(0)
    first = layer(X, graph())
    torch.manual_seed(1)
    assert not torch.equal(layer(X, graph()), first)


def test_segment_softmax_by_hand_and_at_extremes() -> None:
    score = torch.tensor([[0.0], [math.log(3.0)], [5.0], [1000.0], [1000.0]])
    out = segment_softmax(score, torch.tensor([0, 0, 2, 1, 1]), 4)
    torch.testing.assert_close(out.flatten(), torch.tensor([0.25, 0.75, 1.0, 0.5, 0.5]))


def test_gradients_of_every_layer_agree_between_sparse_and_dense_features() -> None:
    for layer in (drawn(GCNConv, 3, 2, "sym"), drawn(GINConv, 3, 2, 0.5), drawn(GATConv, 3, 2, 2)):
        gradients = []
        for out in both(layer):
            layer.zero_grad()
            out.pow(2).sum().backward()
            gradients.append([p.grad.clone() for p in layer.parameters()])
        for dense, sparse in zip(*gradients, strict=True):
            assert dense.abs().sum() > 0
            torch.testing.assert_close(dense, sparse)


def test_linear_is_glorot_uniform_with_zero_bias() -> None:
    torch.manual_seed(0)
    layer = FeatureLinear(300, 100)
    bound = math.sqrt(6 / 400)
    assert layer.weight.abs().max() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert layer.bias is not None
    assert not layer.bias.any()
    assert FeatureLinear(2, 2, bias=False).bias is None


# --- dropout ----------------------------------------------------------------------------------------------------------------------

N = 200_003  # not a multiple of four: one drawn number serves four entries


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.6, 0.99])
def test_the_share_kept_and_the_expectation(p: float) -> None:
    torch.manual_seed(0)
    out = drop(torch.ones(N), p, True)
    kept = out > 0
    deviation = math.sqrt(p * (1 - p) / N)
    assert float(kept.float().mean()) == pytest.approx(1 - p, abs=5 * deviation)
    assert float(out.mean()) == pytest.approx(1.0, abs=5 * deviation / (1 - p))
    assert float(out[kept].min()) == float(out[kept].max()) == pytest.approx(1 / (1 - p), rel=1e-3)
    for lane in range(4):
        assert float(kept[lane::4].float().mean()) == pytest.approx(1 - p, abs=10 * deviation)


@pytest.mark.parametrize("p", [1e-6, 1e-5, 1e-4])
def test_a_small_probability_drops_little(p: float) -> None:
    """Rounded to a multiple of 2^-16, it must not wrap around."""
    torch.manual_seed(0)
    assert float((drop(torch.ones(N), p, True) == 0).float().mean()) < 10 * p + 1e-4


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8])
def test_neighbouring_entries_are_dropped_independently(lag: int) -> None:
    """Four entries share one drawn number: their bits must not be related."""
    torch.manual_seed(1)
    kept = (drop(torch.ones(N), 0.5, True) > 0).double() - 0.5
    assert abs(float((kept[lag:] * kept[:-lag]).mean())) < 5 * 0.25 / math.sqrt(N)


def test_dropout_follows_torchs_generator_and_is_off_in_evaluation() -> None:
    x = torch.randn(50, 3)
    torch.manual_seed(4)
    one = drop(x, 0.5, True)
    torch.manual_seed(4)
    assert torch.equal(drop(x, 0.5, True), one)
    assert not torch.equal(drop(x, 0.5, True), one)
    assert drop(x, 0.5, False) is x
    assert drop(x, 0.0, True) is x
    assert drop(torch.zeros(0, 3), 0.5, True).shape == (0, 3)


def test_the_gradient_passes_where_entries_are_kept() -> None:
    x = torch.ones(40, requires_grad=True)
    torch.manual_seed(0)
    out = drop(x, 0.5, True)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, out.detach())
    assert set(x.grad.tolist()) == {0.0, 2.0}


def test_dropout_of_sparse_features_keeps_the_pattern() -> None:
    features = graph(True).features
    assert isinstance(features, SparseMatrix)
    torch.manual_seed(0)
    dropped = drop_features(features, 0.5, True)
    assert isinstance(dropped, SparseMatrix)
    dense = dropped.csr.to_dense()
    assert dropped.nnz == features.nnz
    assert ((dense == 0) | (dense == 2 * X)).all()
    torch.testing.assert_close(dropped @ torch.eye(3), dense)
    assert drop_features(features, 0.5, False) is features
    assert drop_features(features, 0.0, True) is features
    # With the same draws the dense values get the same mask.
    torch.manual_seed(0)
    assert torch.equal(drop(features.values, 0.5, True), dropped.values)
