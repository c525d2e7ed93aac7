"""Every built-in backbone names its units truly, with and without norms, residual maps, edge features, predictors and kinds of heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
from tiny_streams import tiny_graphs
from torch import nn

from cglsuite.backbones import Backbone, StockBackbone, Units, Wire
from cglsuite.backbones.convolutional import gat, gcn, gin
from cglsuite.backbones.graphwise import gine, graph_gcn
from cglsuite.backbones.linkwise import link_gcn
from cglsuite.backbones.stock import pyg
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.learning.isolation import along
from cglsuite.protocols.begin.network import begin_graph_gcn
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.kinds.backbones import check_units

NODES = {"layers": 3, "width": 4, "dropout": 0.5}
FACTORIES: dict[str, tuple[Callable[..., Backbone], Mapping[str, Any]]] = {
    "gcn, norms": (gcn, NODES | {"normalisation": "symmetric", "bias": False, "batch_norm": True, "input_dropout": None, "head": "linear"}),
    "gcn head": (gcn, NODES | {"normalisation": "none", "bias": True, "batch_norm": False, "input_dropout": 0.0, "head": "convolution"}),
    "gin": (gin, NODES | {"eps": 0.1, "batch_norm": True, "head": "convolution"}),
    "gat": (gat, NODES | {"heads": 2, "attention_dropout": 0.1, "head": "linear"}),
    "pyg transformer": (pyg, NODES | {"convolution": "transformer", "heads": 2}),
    "pyg sage": (pyg, NODES | {"convolution": "sage", "heads": 1}),
}
PAIRS = NODES | {"normalisation": "symmetric", "bias": True, "input_dropout": 0.0, "predictor_width": 6, "predictor_dropout": 0.0}
GRAPHS = {"layers": 2, "width": 4, "dropout": 0.0}
RESIDUAL = GRAPHS | {"normalisation": "symmetric"}
OF_SETS: dict[str, tuple[Callable[..., Backbone], Mapping[str, Any]]] = {
    f"graph-gcn, {readout}, {width}": (
        graph_gcn,
        RESIDUAL | {"residual": width > 0, "batch_norm": width > 0, "readout": readout, "predictor_width": width},
    )
    for readout in ("weighted-sum-and-max", "sum-and-max", "mean")
    for width in (0, 3)
} | {
    f"gine, {depth}": (
        gine,
        GRAPHS | {"eps": 0.0, "batch_norm": True, "readout": "sum-and-max", "predictor_layers": depth, "edge_features": 0},
    )
    for depth in (0, 2)
}


def nodes() -> MessageGraph:
    torch.manual_seed(0)
    return MessageGraph(torch.randn(9, 5), torch.randint(9, (2, 20)))


def settled(model: Backbone) -> Backbone:
    """With running statistics, biases and affine parameters that are not 0 and 1, so that norms matter."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, 0.5)
    return model.eval()


@torch.no_grad()
def checked(model: Backbone, *inputs: Any) -> tuple[Units, ...]:
    check_units(settled(model), lambda: model(*inputs).detach())
    return model.units()


@pytest.mark.parametrize("name", FACTORIES)
def test_units_of_node_level_networks(name: str) -> None:
    factory, settings = FACTORIES[name]
    units = checked(factory(5, 3, **settings), nodes())
    assert [u.name for u in units] == [f"body.{i}" for i in range(len(units))]
    assert len(units) == (2 if settings.get("head") == "convolution" else 3)


@pytest.mark.parametrize("layers", [1, 3])
def test_units_of_a_pair_are_those_of_both_ends(layers: int) -> None:
    model = link_gcn(5, 3, **PAIRS | {"predictor_layers": layers, "batch_norm": layers > 1})
    units = checked(model, nodes(), torch.randint(9, (6, 2)))
    assert [u.name for u in units] == ["body.0", "body.1", "body.2", *(f"predictor.{i}" for i in range(layers - 1))]


@pytest.mark.parametrize("name", OF_SETS)
def test_units_of_graph_level_networks(name: str) -> None:
    factory, settings = OF_SETS[name]
    graphs = tiny_graphs().items.queries(torch.arange(8), "cpu")
    checked(factory(graphs.n_features, 3, **settings), graphs)


class Bonds:
    """A set of graphs whose edges carry two features; a double."""

    def __init__(self, graphs: Any) -> None:
        self.graphs = graphs
        self.edge_features = torch.rand(graphs.n_edges, 2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graphs, name)


@pytest.mark.parametrize("depth", [0, 1])
def test_features_of_edges_write_units(depth: int) -> None:
    """GIN adds them to the units that enter a convolution, a GCN to those that leave it."""
    graphs = Bonds(tiny_graphs().items.queries(torch.arange(8), "cpu"))
    options = GRAPHS | {"readout": "sum-and-max", "predictor_layers": depth, "edge_features": 2}
    units = checked(gine(graphs.n_features, 3, **options, eps=0.0, batch_norm=True), graphs)
    assert Wire("body.0.edges.weight", 1) in units[0].writers
    units = checked(begin_graph_gcn(graphs.n_features, 3, **options, batch_norm=True), graphs)
    assert any(Wire("body.0.edges.weight", 1) in u.writers for u in units)


def test_attention_heads_belong_together_and_an_attention_head_is_refused() -> None:
    model = gat(5, 3, **FACTORIES["gat"][1])
    assert [u.together for u in model.units()] == [4, 4, 4]
    with pytest.raises(NotApplicable, match=r"backbone\.head=linear"):
        gat(5, 3, **{**FACTORIES["gat"][1], "head": "convolution"}).units()


def test_layers_that_are_not_known_are_refused() -> None:
    with pytest.raises(NotApplicable, match=r"body\.0 is a Tanh"):
        StockBackbone([nn.Tanh()], 5, 3).units()
    with pytest.raises(NotApplicable, match="Backbone does not name its units"):
        Backbone().units()


class Wrong(StockBackbone):
    """Names of its first layer what a test says, and applies gates as a test says."""

    change: Any = None

    def units(self) -> tuple[Units, ...]:
        first, *rest = super().units()
        return (self.change(first), *rest)


def lies() -> Iterator[tuple[str, Callable[[Units], Units]]]:
    yield "but the model has no such parameter", lambda u: u._replace(writers=(Wire("nothing", 0),))
    yield "expected 4", lambda u: u._replace(width=4, readers=())
    yield "changes outputs", lambda u: u._replace(writers=(Wire("body.0.lin_l.weight", 0), Wire("head.bias", None)), width=u.width)
    yield "does not change any output", lambda u: u._replace(name="elsewhere")


@pytest.mark.parametrize(("message", "change"), [pytest.param(*lie, id=lie[0]) for lie in lies()])
def test_untrue_units_are_found(message: str, change: Callable[[Units], Units]) -> None:
    from torch_geometric.nn import SAGEConv

    torch.manual_seed(0)
    model = Wrong([SAGEConv(5, 3)], 3, 3).eval()
    model.change = change
    graph = nodes()
    with torch.no_grad(), pytest.raises(CheckFailed, match=message):
        check_units(model, lambda: model(graph))


def test_values_lie_along_the_wire() -> None:
    values = torch.tensor([1.0, 2.0])
    assert along(Wire("p", 1, 2), torch.zeros(3, 4), values).tolist() == [[1.0, 2.0, 1.0, 2.0]]
    assert along(Wire("p", 0), torch.zeros(2, 4), values).tolist() == [[1.0], [2.0]]
    assert along(Wire("p", None), torch.zeros(1, 2), values).tolist() == [[1.0, 2.0]]
