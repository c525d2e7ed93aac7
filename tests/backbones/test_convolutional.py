"""Whole backbones against formulas by hand: order of the parts, heads, batch norm, tags, and the specs that describe them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.backbones import Backbone
from cglsuite.backbones.convolutional import ConvolutionalBackbone, gat, gcn, gin
from cglsuite.backbones.plugin import cglsuite_backbones
from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph
from cglsuite.host.catalogue import Catalogue
from cglsuite.specs import BackboneSpec

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
X = torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0], [0.0, 3.0, 1.0]])
OWN = torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
SYM = torch.diag(OWN.sum(1).rsqrt()) @ OWN @ torch.diag(OWN.sum(1).rsqrt())
SPECS = {s.name: s for s in cglsuite_backbones() if {"NC", "NR"} == {*s.levels}}  # others: test_graphwise.py, test_linkwise.py
FACTORIES = {"gcn": gcn, "gat": gat, "gin": gin}
IDS = torch.tensor([2, 0])


def graph(sparse: bool = False) -> MessageGraph:
    return MessageGraph(scipy.sparse.csr_matrix(X.numpy()) if sparse else X, EDGES)


def build(name: str, **hyperparameters: Any) -> ConvolutionalBackbone:
    """The backbone with its spec's defaults, three wide; biases and norms are drawn too, so that none of them hides."""
    torch.manual_seed(0)
    defaults = {h.name: h.default for h in SPECS[name].hyperparameters if h.name != "edge_weight"} | {"width": 3}
    model = FACTORIES[name](3, 5, **(defaults | hyperparameters))  # type: ignore[operator]
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_()
    return model


@pytest.mark.parametrize("head", ["linear", "convolution"])
@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
def test_gcn_by_formula(head: str, normalisation: str) -> None:
    """Two convolutions: P relu(P X W0 + b0) W1 + b1; a linear head follows the second one or is preceded by one convolution."""
    model = build("gcn", head=head, normalisation=normalisation)
    p = SYM if normalisation == "symmetric" else OWN
    hidden = X
    for layer in model.body:
        hidden = functional.relu(p @ hidden @ layer.linear.weight + layer.bias)
    if head == "linear":
        expected = hidden @ model.head.weight.T + model.head.bias
    else:
        expected = p @ hidden @ model.head.linear.weight + model.head.bias
    assert len(model.body) == (2 if head == "linear" else 1)
    torch.testing.assert_close(model.encode(graph()), hidden)
    torch.testing.assert_close(model(graph()), expected)
    torch.testing.assert_close(model(graph(), IDS), expected[IDS])


def test_gin_and_gat_by_formula() -> None:
    model = build("gin", eps=0.5)
    hidden = X
    for layer in model.body:
        hidden = functional.relu((OWN + 0.5 * torch.eye(4)) @ hidden @ layer.linear.weight + layer.bias)
    torch.testing.assert_close(model(graph()), hidden @ model.head.weight.T + model.head.bias)

    attentive = build("gat", heads=2)
    hidden = X
    for layer in attentive.body:
        hidden = functional.elu(layer(hidden, graph()))  # the layer itself is checked against loops
    assert hidden.shape == (4, 6)
    torch.testing.assert_close(attentive(graph()), hidden @ attentive.head.weight.T + attentive.head.bias)
    assert build("gat", heads=2, head="convolution")(graph()).shape == (4, 5)


@pytest.mark.parametrize("head", ["linear", "convolution"])
@pytest.mark.parametrize("name", FACTORIES)
def test_sparse_features_equal_dense_ones(name: str, head: str) -> None:
    model = build(name, head=head)
    torch.testing.assert_close(model(graph(True)), model(graph()))


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_batch_norm_sees_all_nodes_before_the_activation(name: str) -> None:
    """In training by the batch's own moments (biased variance), in evaluation by the running ones (momentum 0.1, unbiased)."""
    model = build(name, batch_norm=True, layers=1)
    norm = model.norms[0]
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    before = (SYM if name == "gcn" else OWN) @ X @ model.body[0].linear.weight + model.body[0].bias

    def normal(mean: Tensor, variance: Tensor) -> Tensor:
        return functional.relu((before - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias)

    mean, variance = before.mean(0), before.var(0, unbiased=False)
    torch.testing.assert_close(model.train().encode(graph()), normal(mean, variance))
    running = (0.1 * mean, 0.9 + 0.1 * before.var(0))
    torch.testing.assert_close(norm.running_mean, running[0])
    torch.testing.assert_close(norm.running_var, running[1])
    torch.testing.assert_close(model.eval().encode(graph()), normal(*running))
    torch.testing.assert_close(norm.running_mean, running[0])


def test_dropout_comes_after_the_activation_and_on_the_input_where_asked() -> None:
    """Seeded, the masks can be drawn outside in the same order."""
    from cglsuite.backbones.layers import drop

    for given, expected_input in ((None, 0.5), (0.25, 0.25), (0.0, 0.0)):
        model = build("gcn", layers=1, dropout=0.5, input_dropout=given).train()
        torch.manual_seed(3)
        out = model.encode(graph())
        torch.manual_seed(3)
        entering = drop(X, expected_input, True)
        expected = drop(functional.relu(SYM @ entering @ model.body[0].linear.weight + model.body[0].bias), 0.5, True)
        torch.testing.assert_close(out, expected)
        assert torch.equal(model.eval().encode(graph()), model.encode(graph()))


@pytest.mark.parametrize("name", FACTORIES)
def test_depth_and_width(name: str) -> None:
    for layers in (1, 2, 4):
        model = build(name, layers=layers, width=7)
        assert len(model.body) == layers
        assert model.encode(graph()).shape == (4, 7 * (8 if name == "gat" else 1))
        assert model(graph()).shape == (4, 5)


@pytest.mark.parametrize("name", FACTORIES)
def test_a_single_convolution_as_head_is_refused_or_works(name: str) -> None:
    """One layer with a convolutional head leaves no body: a model or a clear error, not an index error once it trains."""
    try:
        model = build(name, layers=1, head="convolution")
    except SpecError as error:
        assert "layers" in str(error)  # noqa: PT017 - either outcome will do
    else:
        torch.testing.assert_close(model(graph()), model.head(X, graph()))


def test_tags_name_every_parameter_once() -> None:
    model = build("gcn", batch_norm=True, layers=2)
    tagged = {name: tag for tag, name, _ in model.tagged_parameters()}
    assert tagged == {
        "body.0.linear.weight": "body",
        "body.0.bias": "body",
        "body.1.linear.weight": "body",
        "body.1.bias": "body",
        "norms.0.weight": "norm",
        "norms.0.bias": "norm",
        "norms.1.weight": "norm",
        "norms.1.bias": "norm",
        "head.weight": "head",
        "head.bias": "head",
    }
    assert {n: p for _, n, p in model.tagged_parameters()} == dict(model.named_parameters())
    convolutional = build("gat", head="convolution")
    assert {t for t, n, _ in convolutional.tagged_parameters() if n.startswith("head.")} == {"head"}


def test_a_backbone_must_encode() -> None:
    class Half(Backbone):
        pass

    with pytest.raises(NotImplementedError, match=r"Half must implement encode\(graph\)"):
        Half()(graph())


def test_weights_are_drawn_in_order() -> None:
    """Convolutions from Glorot's uniform distribution, then the linear head as torch starts one: stored results rest on the order."""
    torch.manual_seed(0)
    model = gcn(
        2, 2, layers=2, width=2, normalisation="symmetric", bias=True, batch_norm=True, dropout=0.0, input_dropout=0.0, head="linear"
    )
    torch.manual_seed(0)
    weights = [torch.nn.init.xavier_uniform_(torch.empty(2, 2)) for _ in range(2)]
    head = torch.nn.Linear(2, 2)
    for layer, weight in zip([model.body[0].linear, model.body[1].linear], weights, strict=True):
        assert torch.equal(layer.weight, weight)
    assert torch.equal(model.head.weight, head.weight)
    assert torch.equal(model.head.bias, head.bias)
    assert not any(layer.bias.any() for layer in model.body)


@pytest.mark.parametrize("name", FACTORIES)
def test_a_linear_head_starts_small(name: str) -> None:
    """Within 1/√width: a wider start misleads a plateau schedule while batch norm settles."""
    torch.manual_seed(0)
    defaults = {h.name: h.default for h in SPECS[name].hyperparameters if h.name != "edge_weight"}
    head = FACTORIES[name](3, 400, **defaults).head  # type: ignore[operator]
    width = head.weight.shape[1]
    for parameter in (head.weight, head.bias):
        assert 0.95 / width**0.5 < float(parameter.detach().abs().max()) <= 1 / width**0.5


# --- the specs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_declares_what_its_factory_takes(name: str) -> None:
    spec = SPECS[name]
    factory = Catalogue([], []).resolve(spec)
    assert factory is FACTORIES[name]
    keywords = {p.name for p in inspect.signature(factory).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == {h.name for h in spec.hyperparameters} - {"edge_weight"}  # which is of the message graphs
    assert spec.levels == ("NC", "NR")
    assert spec.citation


def test_every_backbone_of_the_core_is_tested_here_or_beside() -> None:
    assert set(SPECS) == set(FACTORIES)
    beside = {"graph-gcn", "begin-graph-gcn", "gine", "link-gcn", "pyg", "sgc"}
    assert {s.name for s in cglsuite_backbones()} == {*FACTORIES, *beside}
    assert all(isinstance(s, BackboneSpec) for s in SPECS.values())


@pytest.mark.parametrize("name", SPECS)
def test_every_choice_builds_a_model_that_runs(name: str) -> None:
    for hyperparameter in (h for h in SPECS[name].hyperparameters if h.name != "edge_weight"):
        for value in hyperparameter.choices or ((True, False) if hyperparameter.type is bool else ()):
            assert build(name, **{hyperparameter.name: value}).eval()(graph()).isfinite().all()
