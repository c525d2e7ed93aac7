"""Attention over edges against slow loops written from the formulas: values, gradients, what it costs those who do not ask."""

from __future__ import annotations

import math
from typing import Any

import pytest
import scipy.sparse
import torch
from torch import Tensor, nn

from cglsuite.backbones import Backbone, layers
from cglsuite.backbones.convolutional import ConvolutionalBackbone, gat, gcn, gin
from cglsuite.backbones.plugin import cglsuite_backbones
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 1.0]])
DEFAULTS = {s.name: {h.name: h.default for h in s.hyperparameters if h.name != "edge_weight"} for s in cglsuite_backbones()}
FACTORIES: dict[str, Any] = {"gcn": gcn, "gat": gat, "gin": gin}


def graph(sparse: bool = False) -> MessageGraph:
    return MessageGraph(scipy.sparse.csr_matrix(X.numpy()) if sparse else X, EDGES)


def build(name: str, **hyperparameters: Any) -> ConvolutionalBackbone:
    torch.manual_seed(0)
    model: ConvolutionalBackbone = FACTORIES[name](3, 5, **(DEFAULTS[name] | {"width": 3} | hyperparameters))
    return model


def slowly(name: str, model: ConvolutionalBackbone) -> Tensor:
    """Edge by edge, head by head; then a softmax over the edges into each node. float32 [E', heads], differentiable."""
    layer = model.body[0]
    mapped = X @ layer.linear.weight
    heads = layer.heads if name == "gat" else 1
    edges = graph().edges_with_loops.T.tolist()
    rows = []
    for j, i in edges:
        row = []
        for h in range(heads):
            if name == "gat":
                own = mapped.view(4, heads, -1)[:, h]
                score = layer.target[h] @ own[i] + layer.source[h] @ own[j]
            else:
                score = mapped[j] @ mapped[i].tanh()
            row.append(score if score > 0 else 0.2 * score)
        rows.append(torch.stack(row))
    weight = torch.stack(rows).exp()
    return torch.stack([w / sum(weight[e] for e, (_, k) in enumerate(edges) if k == i) for w, (_, i) in zip(weight, edges, strict=True)])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", FACTORIES)
def test_attention_equals_a_loop_over_edges(name: str, sparse: bool) -> None:
    model = build(name)
    found, expected = model.edge_attention(graph(sparse)), slowly(name, model)
    assert found.shape == (8, 8 if name == "gat" else 1)  # 4 proper edges and 4 self-loops
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    mine, theirs = (torch.autograd.grad(a.pow(2).sum(), parameters, materialize_grads=True, allow_unused=True) for a in (found, expected))
    assert mine[[n for n, _ in model.named_parameters()].index("body.0.linear.weight")].abs().max() > 1e-3
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_by_hand() -> None:
    """One edge 0 → 1 between nodes with W h = 2 and -1: scores -0.2·2·tanh 1 and tanh 1 of the self-loop at 1."""
    layer = layers.GCNConv(1, 1)
    with torch.no_grad():
        layer.linear.weight.fill_(1.0)
    pair = MessageGraph(torch.tensor([[2.0], [-1.0]]), torch.tensor([[0], [1]]))
    edge, own = math.exp(-0.4 * math.tanh(1)), math.exp(math.tanh(1))
    torch.testing.assert_close(
        layer.edge_attention(pair.features, pair).flatten(), torch.tensor([edge / (edge + own), 1.0, own / (edge + own)])
    )


@pytest.mark.parametrize("name", FACTORIES)
def test_the_edges_into_a_node_share_one(name: str) -> None:
    attention = build(name).edge_attention(graph())
    total = torch.zeros(4, attention.shape[1]).index_add(0, graph().edges_with_loops[1], attention)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_blocks_of_edges_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product over edges is made in blocks, forwards and backwards."""
    a, b = (torch.randn(30, 4, generator=torch.Generator().manual_seed(s)).requires_grad_() for s in (0, 1))
    source, target = torch.randint(30, (2, 200), generator=torch.Generator().manual_seed(2))
    weight = torch.randn(200, generator=torch.Generator().manual_seed(3))
    expected = (a[source] * b[target]).sum(dim=1)
    wanted = torch.autograd.grad((expected * weight).sum(), (a, b))
    for block in (7, 200, 10_000):
        monkeypatch.setattr(layers, "_BLOCK", block)
        found = layers._EdgeProduct.apply(a, b, source, target)
        torch.testing.assert_close(found, expected)
        for mine, theirs in zip(torch.autograd.grad((found * weight).sum(), (a, b)), wanted, strict=True):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", FACTORIES)
def test_it_is_deterministic_and_free_of_dropout(name: str) -> None:
    """In training mode too, under the deterministic algorithms that cells run with."""
    dropout = {h: 0.5 for h in ("dropout", "input_dropout", "attention_dropout") if h in DEFAULTS[name]}
    model = build(name, **dropout).train()
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        first, second = model.edge_attention(graph()), model.edge_attention(graph())
        first.pow(2).sum().backward()
    finally:
        torch.set_deterministic_debug_mode(before)
    assert torch.equal(first, second)
    assert torch.equal(first, model.eval().edge_attention(graph()))
    assert torch.equal(first, build(name).edge_attention(graph()))


@pytest.mark.parametrize("name", FACTORIES)
def test_a_graph_without_edges_listens_to_itself(name: str) -> None:
    alone = MessageGraph(X, torch.empty(2, 0, dtype=torch.int64))
    assert torch.equal(build(name).edge_attention(alone), torch.ones(4, 8 if name == "gat" else 1))


@pytest.mark.parametrize("name", FACTORIES)
def test_nobody_else_pays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoding and predicting compute no attention of this kind (GAT's own apart) and list no loops for it."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("edge attention was computed")

    model = build(name)
    monkeypatch.setattr(layers, "content_attention", refuse)
    monkeypatch.setattr(ConvolutionalBackbone, "edge_attention", refuse)
    asked = graph()
    model(asked).sum().backward()
    assert ("edges_with_loops" in vars(asked)) == (name == "gat")


def test_a_backbone_without_it_says_so() -> None:
    class Plain(Backbone):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3, 2)

        def encode(self, graph: MessageGraph) -> Tensor:
            assert isinstance(graph.features, Tensor)
            return graph.features

    with pytest.raises(NotApplicable, match=r"backbone Plain does not compute attention over edges: implement edge_attention\(graph\)"):
        Plain().edge_attention(graph())

    class Odd(nn.Module):
        """A convolution of somebody else's."""

    odd = build("gcn")
    odd.body[0] = Odd()
    with pytest.raises(NotApplicable, match="ConvolutionalBackbone does not compute attention"):
        odd.edge_attention(graph())
