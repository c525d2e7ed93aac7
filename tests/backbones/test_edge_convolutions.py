"""Convolutions whose messages carry edge features, and the backbones made of them, against slow loops over nodes and edges."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.graphwise import HalvingMLP, PooledConvolutions, gine
from cglsuite.backbones.layers import EdgeGCNConv, GINEConv, content_attention
from cglsuite.backbones.plugin import cglsuite_backbones
from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, SparseMatrix
from cglsuite.graphs.packed import PackedGraphs, PackedSource
from cglsuite.host.catalogue import Catalogue
from cglsuite.learning.gradients import per_item_gradients
from cglsuite.protocols.begin.network import begin_graph_gcn
from cglsuite.specs import BackboneSpec

FACTORIES: dict[str, Callable[..., PooledConvolutions]] = {"begin-graph-gcn": begin_graph_gcn, "gine": gine}
SPECS: dict[str, BackboneSpec] = {s.name: s for s in cglsuite_backbones() if s.name in FACTORIES}
EDGES = torch.tensor([[0, 1, 1, 2, 4, 5, 6, 4, 7], [1, 0, 2, 1, 5, 6, 4, 4, 8]])  # a path, a node alone, a directed cycle, one edge
SIZES = [3, 1, 3, 2]


def graphs(*, sparse: bool = False, bonds: bool = True) -> PackedGraphs:
    generator = torch.Generator().manual_seed(4)
    x, attr = torch.randn(9, 3, generator=generator), torch.randn(EDGES.shape[1], 2, generator=generator)
    x = x.to_sparse_csr() if sparse else x
    return PackedSource(x, EDGES, torch.tensor(SIZES), edge_attr=attr if bonds else None).queries(torch.arange(4), "cpu")


def dense(x: Tensor | SparseMatrix) -> Tensor:
    return x.csr.to_dense() if isinstance(x, SparseMatrix) else x


def stirred(model: Any) -> Any:
    """Biases and norms are drawn too, so that none of them hides."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                for tensor in (module.weight, module.running_var):
                    tensor.uniform_(0.5, 2, generator=generator)
                for tensor in (module.bias, module.running_mean):
                    tensor.normal_(generator=generator)
            elif isinstance(getattr(module, "bias", None), nn.Parameter):
                module.bias.normal_(generator=generator)
    return model.eval()


def build(name: str, **hyperparameters: Any) -> PooledConvolutions:
    """The spec's defaults, twelve wide and three deep, with two features of an edge."""
    made: PooledConvolutions = stirred(fresh(name, **hyperparameters))
    with torch.no_grad():
        for layer in made.predictor.layers:
            layer.bias.abs_()  # type: ignore[union-attr, operator] # so that few of its units are dead
    return made


def fresh(name: str, **hyperparameters: Any) -> PooledConvolutions:
    torch.manual_seed(0)
    defaults: dict[str, Any] = {h.name: h.default for h in SPECS[name].hyperparameters} | {"width": 12, "layers": 3, "edge_features": 2}
    return FACTORIES[name](3, 5, **(defaults | hyperparameters))


def heard_by(node: int, graph: GraphSet) -> list[tuple[int, Tensor]]:
    """(source, features) of the proper edges into a node."""
    proper = graph.edges_with_loops[:, : graph.n_edges]
    attr = graph.edge_features if graph.edge_features is not None else torch.zeros(graph.n_edges, 1)
    return [(int(s), attr[e]) for e, (s, t) in enumerate(proper.T.tolist()) if t == node]


def slow_edge_gcn(layer: EdgeGCNConv, x: Tensor, graph: GraphSet) -> Tensor:
    mapped = x @ layer.linear.weight + layer.linear.bias
    degree = torch.tensor([len(heard_by(v, graph)) + 1.0 for v in range(graph.n_nodes)])
    rows = []
    for i in range(graph.n_nodes):
        total = functional.relu(mapped[i] + layer.edges.weight[-1]) / degree[i]
        for j, attr in heard_by(i, graph):
            total = total + functional.relu(mapped[j] + attr @ layer.edges.weight[:-1]) / (degree[i] * degree[j]).sqrt()
        rows.append(total)
    return torch.stack(rows)


def slow_gine(layer: GINEConv, x: Tensor, graph: GraphSet) -> Tensor:
    rows = []
    for i in range(graph.n_nodes):
        total = (1 + layer.eps) * x[i]
        for j, attr in heard_by(i, graph):
            total = total + (x[j] if layer.edges is None else functional.relu(x[j] + attr @ layer.edges.weight))
        hidden = layer.inner.weight @ total + layer.inner.bias
        if layer.norm is not None:
            hidden = by_running_statistics(layer.norm, hidden)
        rows.append(layer.outer.weight @ functional.relu(hidden) + layer.outer.bias)
    return torch.stack(rows)


def by_running_statistics(norm: Any, x: Tensor) -> Tensor:
    return (x - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias


# --- layers -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_edge_gcn_equals_a_loop(sparse: bool) -> None:
    torch.manual_seed(1)
    layer, graph = stirred(EdgeGCNConv(3, 4, 2)), graphs(sparse=sparse)
    found, expected = layer(graph.features, graph), slow_edge_gcn(layer, dense(graph.features), graph)
    torch.testing.assert_close(found, expected)
    parameters = list(layer.parameters())
    for mine, theirs in zip(
        torch.autograd.grad(found.pow(2).sum(), parameters), torch.autograd.grad(expected.pow(2).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def test_edge_gcn_by_hand() -> None:
    """One edge 0 → 1: node 1 hears ReLU(2 - 0.5) / √2 and its own ReLU(-3 + 1) / 2, node 0 its own ReLU(2 + 1)."""
    layer = EdgeGCNConv(1, 1, 1)
    with torch.no_grad():
        layer.linear.weight.fill_(1.0)
        layer.edges.weight.copy_(torch.tensor([[-0.25], [1.0]]))
    source = PackedSource(torch.tensor([[2.0], [-3.0]]), torch.tensor([[0], [1]]), torch.tensor([2]), edge_attr=torch.tensor([[2.0]]))
    graph = source.queries(torch.tensor([0]), "cpu")
    assert layer(graph.features, graph).flatten().tolist() == pytest.approx([3.0, 1.5 / 2**0.5])


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("eps", [0.0, 0.5, -1.0])
@pytest.mark.parametrize("bonds", [False, True])
def test_gine_equals_a_loop(bonds: bool, eps: float, batch_norm: bool) -> None:
    torch.manual_seed(1)
    layer, graph = stirred(GINEConv(3, 2 if bonds else 0, eps, batch_norm)), graphs(bonds=bonds)
    found, expected = layer(graph.features, graph), slow_gine(layer, dense(graph.features), graph)
    torch.testing.assert_close(found, expected)
    parameters = list(layer.parameters())
    for mine, theirs in zip(
        torch.autograd.grad(found.pow(2).sum(), parameters), torch.autograd.grad(expected.pow(2).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("hyperparameters", [{"edge_features": 3}, {"edge_features": 1}])
@pytest.mark.parametrize("name", FACTORIES)
def test_another_number_of_features_is_refused(name: str, hyperparameters: dict[str, Any]) -> None:
    given = hyperparameters["edge_features"]
    with pytest.raises(SpecError, match=rf"backbone.edge_features = {given}: the edges of this dataset have 2 features; expected 2"):
        build(name, **hyperparameters)(graphs())
    with pytest.raises(SpecError, match=rf"backbone.edge_features = {given}: the edges of this dataset have 0 features; expected 0"):
        build(name, **hyperparameters)(graphs(bonds=False))


@pytest.mark.parametrize("name", FACTORIES)
def test_graphs_without_any_edge(name: str) -> None:
    alone = graphs().take(torch.tensor([1, 1]))
    assert alone.n_edges == 0
    out = build(name)(alone)
    assert out.isfinite().all()
    assert torch.equal(out[0], out[1])


# --- backbones --------------------------------------------------------------------------------------------------------------------


def slowly(name: str, model: PooledConvolutions, graph: GraphSet) -> Tensor:
    """Outputs of the graphs of a set, float32 [n, C]: layer by layer as the papers say, then graph by graph."""
    state = dense(graph.features)
    if model.embedding is not None:
        state = state @ model.embedding.weight + model.embedding.bias
    for number, layer in enumerate(model.body):
        if name == "gine":
            state = slow_gine(layer, state, graph)  # type: ignore[arg-type]
        elif isinstance(layer, EdgeGCNConv):
            state = slow_edge_gcn(layer, state, graph)
        else:
            state = graph.propagate("sym", state @ layer.linear.weight) + layer.bias  # type: ignore[union-attr, operator]
        if len(model.norms):
            state = by_running_statistics(model.norms[number], state)
        if name != "gine" or number + 1 < len(model.body):
            state = functional.relu(state)
    pooled = torch.stack([part.mean(dim=0) for part in state.split(SIZES)])
    for linear in model.predictor.layers:
        pooled = functional.relu(linear(pooled))
    return model.head(pooled)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "hyperparameters", [{}, {"batch_norm": False}, {"layers": 1}, {"predictor_layers": 1}, {"edge_features": 0}, {"dropout": 0.5}]
)
@pytest.mark.parametrize("name", FACTORIES)
def test_outputs_equal_loops(name: str, hyperparameters: dict[str, Any]) -> None:
    model = build(name, **hyperparameters)
    for sparse in (False, True):
        graph = graphs(sparse=sparse)
        torch.testing.assert_close(model(graph), slowly(name, model, graph))
        torch.testing.assert_close(model(graph.take(torch.tensor([2, 0]))), slowly(name, model, graph)[[2, 0]])
    assert (model(graph).std(dim=0) > 1e-3).all(), "graphs differ in all outputs"


def test_the_published_sizes() -> None:
    """Four convolutions of 146 with batch norm, then 146 → 73 → 36 → outputs; for bonds, an encoder per convolution."""
    defaults: dict[str, Any] = {h.name: h.default for h in SPECS["begin-graph-gcn"].hyperparameters}
    plain = begin_graph_gcn(173, 2, **defaults)
    body = 173 * 146 + 3 * 146 * 146 + 4 * 146 + 4 * 2 * 146
    predictor = 146 * 73 + 73 + 73 * 36 + 36 + 36 * 2 + 2
    assert sum(p.numel() for p in plain.parameters()) == body + predictor
    with_bonds = begin_graph_gcn(173, 2, **(defaults | {"edge_features": 13}))
    assert sum(p.numel() for p in with_bonds.parameters()) == body + predictor + 4 * (13 + 1) * 146


@pytest.mark.parametrize(("width", "depth", "widths"), [(146, 2, [73, 36]), (300, 0, []), (3, 3, [1, 1, 1])])
def test_halving(width: int, depth: int, widths: list[int]) -> None:
    made = HalvingMLP(width, depth)
    assert [layer.out_features for layer in made.layers] == widths
    assert made.width == ([width, *widths])[-1]


@pytest.mark.parametrize("name", FACTORIES)
def test_dropout_follows_every_convolution(name: str) -> None:
    model, graph = build(name, dropout=0.5, batch_norm=False), graphs()
    torch.manual_seed(3)
    first = model.train()(graph)
    torch.manual_seed(3)
    assert torch.equal(model(graph), first)
    assert not torch.allclose(model(graph), first)
    assert torch.equal(model.eval()(graph), build(name, batch_norm=False)(graph))


@pytest.mark.parametrize("name", FACTORIES)
def test_batch_norm_sees_the_nodes_of_the_batch(name: str) -> None:
    model, graph = build(name, layers=1), graphs()
    model.norms[0].reset_running_stats()
    model.norms[0].momentum = 1.0
    before = model.body[0](model._entering(graph), graph)
    model.train()
    for inner in model.body.modules():
        inner.eval()
    model(graph)
    torch.testing.assert_close(model.norms[0].running_mean, before.mean(dim=0))
    torch.testing.assert_close(model.norms[0].running_var, before.var(dim=0))


@pytest.mark.parametrize("bonds", [0, 2])
@pytest.mark.parametrize("name", FACTORIES)
def test_edge_attention_by_loops(name: str, bonds: int) -> None:
    """softmax over the edges into a node of LeakyReLU(<what is sent, tanh(what the listener has)>)."""
    model, graph = build(name, edge_features=bonds), graphs()
    x = dense(graph.features)
    if name == "gine":
        hidden = x @ model.embedding.weight + model.embedding.bias  # type: ignore[union-attr]
        of_edges, of_loops = (model.body[0].edges.weight if bonds else None), None  # type: ignore[union-attr]
    else:
        linear = model.body[0].linear
        hidden = x @ linear.weight + (linear.bias if bonds else 0)  # type: ignore[union-attr, operator]
        of_edges, of_loops = (model.body[0].edges.weight[:-1], model.body[0].edges.weight[-1]) if bonds else (None, None)  # type: ignore[union-attr, index]
    score = []
    for e, (s, t) in enumerate(graph.edges_with_loops.T.tolist()):
        sent = hidden[s]
        if e < graph.n_edges and of_edges is not None:
            sent = sent + graph.edge_features[e] @ of_edges  # type: ignore[index, operator]
        if e >= graph.n_edges and of_loops is not None:
            sent = sent + of_loops
        score.append(functional.leaky_relu((sent * hidden[t].tanh()).sum(), 0.2))
    raw, target = torch.stack(score).exp(), graph.edges_with_loops[1]
    expected = torch.stack([raw[e] / raw[target == t].sum() for e, t in enumerate(target.tolist())])
    torch.testing.assert_close(model.edge_attention(graph).flatten(), expected)
    torch.testing.assert_close(content_attention(hidden, graph, of_edges, of_loops).flatten(), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("bonds", [0, 2])
@pytest.mark.parametrize("name", FACTORIES)
def test_gradients_item_by_item(name: str, bonds: int) -> None:
    """One batched backward pass gives what one pass per graph gives."""
    model, graph = build(name, edge_features=bonds), graphs(sparse=True)
    parameters = list(model.parameters())
    found = [torch.cat(parts) for parts in zip(*per_item_gradients(model(graph).pow(2).sum(dim=1), parameters, chunk=2), strict=True)]
    for i in range(len(graph)):
        value = model(graph.take(torch.tensor([i]))).pow(2).sum()
        alone = torch.autograd.grad(value, parameters, materialize_grads=True, allow_unused=True)
        for mine, theirs in zip(found, alone, strict=True):
            torch.testing.assert_close(mine[i], theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bonds", [0, 2])
@pytest.mark.parametrize("name", FACTORIES)
def test_second_order_gradients(name: str, bonds: int) -> None:
    """The gradient of the gradient's squared norm is that of the loops."""
    model, graph, labels = build(name, edge_features=bonds), graphs(bonds=bonds > 0), torch.tensor([0, 1, 2, 3])
    parameters = list(model.parameters())
    found = []
    for logits in (model(graph), slowly(name, model, graph)):
        slopes = torch.autograd.grad(functional.cross_entropy(logits, labels), parameters, create_graph=True)
        norm = torch.stack([s.pow(2).sum() for s in slopes]).sum()
        found.append(torch.autograd.grad(norm, parameters, materialize_grads=True, allow_unused=True))
    assert max(float(g.abs().max()) for g in found[0]) > 1e-3
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FACTORIES)
def test_it_learns_a_target_that_only_bonds_tell(name: str) -> None:
    """Paths of equal nodes whose bonds differ: with edge features they are told apart, without them they cannot be."""
    kinds = torch.tensor([[0.0], [1.0]]).repeat(4, 1).repeat_interleave(2, dim=0)
    edges = torch.stack([torch.arange(16), torch.arange(16).view(8, 2).flip(1).flatten()])
    graph = PackedSource(torch.ones(16, 3), edges, torch.full((8,), 2), edge_attr=kinds).queries(torch.arange(8), "cpu")
    labels = torch.tensor([0, 1] * 4)
    losses = {}
    for bonds in (1, 0):
        model = fresh(name, width=32, layers=2, edge_features=bonds).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(120):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(graph), labels)
            loss.backward()
            optimizer.step()
        losses[bonds] = float(loss.detach())
    assert losses[1] < 0.1
    assert losses[0] > 0.69


# --- the specs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FACTORIES)
def test_a_spec_declares_what_its_factory_takes(name: str) -> None:
    factory = Catalogue([], []).resolve(SPECS[name])
    assert factory is FACTORIES[name]
    keywords = {p.name for p in inspect.signature(factory).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords == {h.name for h in SPECS[name].hyperparameters}
    assert SPECS[name].levels == ("GC", "GR")
    assert SPECS[name].citation
    assert all(h.doc and h.effect for h in SPECS[name].hyperparameters)


@pytest.mark.parametrize("name", FACTORIES)
def test_every_choice_builds_a_model_that_runs(name: str) -> None:
    for hyperparameter in SPECS[name].hyperparameters:
        for value in hyperparameter.choices or ((True, False) if hyperparameter.type is bool else ()):
            assert build(name, **{hyperparameter.name: value})(graphs()).isfinite().all()
