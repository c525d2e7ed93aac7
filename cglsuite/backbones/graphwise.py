"""Backbones for graph-level problems, which apply convolutions to nodes, pool nodes into graphs, and predict from the pooled vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.layers import FeatureLinear, GCNConv, GINEConv, drop, normalised
from cglsuite.backbones.units import Units, Wire
from cglsuite.backbones.wiring import Layer, chained, layer_of, normed, reading
from cglsuite.graphs import GraphSet, SparseMatrix
from cglsuite.graphs.message import Operator


class ResidualLayer(nn.Module):
    """Residual convolution over the nodes of all graphs: ``relu(P H W + b) [+ relu(H R + c)] → batch norm → dropout``."""

    def __init__(self, in_features: int, out_features: int, operator: Operator, residual: bool, batch_norm: bool, dropout: float) -> None:
        super().__init__()
        self.convolution = GCNConv(in_features, out_features, operator)
        self.residual = nn.Linear(in_features, out_features) if residual else None
        self.norm = nn.BatchNorm1d(out_features) if batch_norm else None
        self.dropout = dropout

    def forward(self, x: Tensor | SparseMatrix, graph: GraphSet) -> Tensor:
        """Apply the layer: float32 [N, in] to [N, out]."""
        hidden = functional.relu(self.convolution(x, graph))
        if self.residual is not None:
            own = x @ self.residual.weight.T + self.residual.bias if isinstance(x, SparseMatrix) else self.residual(x)
            hidden = hidden + functional.relu(own)
        if self.norm is not None:
            hidden = normalised(self.norm, hidden)
        return drop(hidden, self.dropout, self.training)

    def wired(self, name: str) -> Layer:
        """Return the units of this layer, which is called ``name`` in the model, with their parameters."""
        layer = layer_of(f"{name}.convolution", self.convolution)._replace(name=name)
        if self.residual is not None:
            beside = layer_of(f"{name}.residual", self.residual)
            layer = layer.with_writers(*beside.writers)._replace(readers=layer.readers + beside.readers)
        return layer if self.norm is None else layer.with_writers(*normed(f"{name}.norm"))


class Readout(nn.Module):
    """Pool the embeddings of nodes into graph embeddings: float32 [N, d] to [n, ``width``].

    ``weighted-sum-and-max`` is ``[Σ_v σ(a·h_v + b) h_v, max_v h_v]`` with learnt a and b. ``sum-and-max`` is the same with all weights 1.
    ``mean`` is the mean over the nodes of a graph.
    """

    def __init__(self, features: int, how: str) -> None:
        super().__init__()
        self.how = how
        self.weight = nn.Linear(features, 1) if how == "weighted-sum-and-max" else None
        self.repeats = 1 if how == "mean" else 2
        """How many times the readout contains each unit."""
        self.width = features * self.repeats

    def readers(self) -> tuple[Wire, ...]:
        """Return the wires of the pooling weights, which read the node units. The model calls this module ``pooling``."""
        return () if self.weight is None else (Wire("pooling.weight.weight", 1),)

    def forward(self, hidden: Tensor, graph: GraphSet) -> Tensor:
        """Pool node embeddings into graph embeddings: float32 [N, d] to [n, width]."""
        if self.how == "mean":
            return graph.pool(hidden, "mean")
        summands = hidden if self.weight is None else hidden * self.weight(hidden).sigmoid()
        return torch.cat([graph.pool(summands, "sum"), graph.pool(hidden, "max")], dim=1)


class Predictor(nn.Module):
    """The layers between the readout and the head: ``dropout → linear → ReLU → batch norm``, or only dropout if ``width`` is 0."""

    def __init__(self, in_features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.linear = nn.Linear(in_features, width) if width else None
        self.norm = nn.BatchNorm1d(width) if width else None
        self.width = width or in_features

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers: float32 [n, in] to [n, width]."""
        x = drop(x, self.dropout, self.training)
        if self.linear is None or self.norm is None:
            return x
        return normalised(self.norm, functional.relu(self.linear(x)))


class GraphGCN(Backbone):
    """Graph-level backbone with residual graph convolutions, a readout, and a predictor whose last linear map is the head."""

    def __init__(self, layers: list[ResidualLayer], readout: Readout, predictor: Predictor, outputs: int) -> None:
        super().__init__()
        self.body = nn.ModuleList(layers)
        self.pooling = readout
        self.predictor = predictor
        self.head = nn.Linear(predictor.width, outputs)

    def encode(self, graph: GraphSet) -> Tensor:
        """Compute the embeddings of the graphs directly before the head: float32 [n, d]."""
        hidden: Tensor = self.gated("body.0", self.body[0](graph.features, graph))
        for i, layer in enumerate(self.body[1:], start=1):
            hidden = self.gated(f"body.{i}", layer(hidden, graph))
        return self.gated("predictor", self.predictor(self.pooling(hidden, graph)))

    def units(self) -> tuple[Units, ...]:
        """Return the units of each residual layer, and of the predictor's hidden layer, if any."""
        layers = [layer.wired(f"body.{i}") for i, layer in enumerate(self.body) if isinstance(layer, ResidualLayer)]
        if self.predictor.linear is None:
            return chained(layers, [*self.pooling.readers(), reading("head", self.head, self.pooling.repeats)])
        predictor = layer_of("predictor.linear", self.predictor.linear)._replace(
            name="predictor", readers=(*self.pooling.readers(), reading("predictor.linear", self.predictor.linear, self.pooling.repeats))
        )
        return chained([*layers, predictor.with_writers(*normed("predictor.norm"))], [reading("head", self.head)])

    def edge_attention(self, graph: GraphSet) -> Tensor:
        """Compute attention from the first convolution and the input features: float32 [E', 1]."""
        first: GCNConv = self.body[0].convolution  # type: ignore[assignment]
        return first.edge_attention(graph.features, graph)


def graph_gcn(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    normalisation: str,
    residual: bool,
    batch_norm: bool,
    dropout: float,
    readout: str,
    predictor_width: int,
) -> GraphGCN:
    """Build the graph-level GCN of CGLB (Zhang et al. 2022) with the layer of DGL-LifeSci, except that dropout follows the norm.

    Args:
        in_features: number of node features F.
        outputs: number of outputs C.
        normalisation: ``symmetric`` or ``none`` (sums over neighbours and self).
        readout: see :class:`Readout`.
        predictor_width: number of hidden units between readout and head; 0 = the head directly follows the readout.
    """
    operator: Operator = "sym" if normalisation == "symmetric" else "sum-self"
    body = [ResidualLayer(width if i else in_features, width, operator, residual, batch_norm, dropout) for i in range(layers)]
    pooling = Readout(width, readout)
    return GraphGCN(body, pooling, Predictor(pooling.width, predictor_width, dropout), outputs)


class HalvingMLP(nn.Module):
    """An MLP of ``depth`` [linear → ReLU] layers, each half as wide as the previous one: float32 [n, in] to [n, ``width``]."""

    def __init__(self, in_features: int, depth: int) -> None:
        super().__init__()
        widths = [max(1, in_features >> i) for i in range(depth + 1)]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.width = widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers: float32 [n, in] to [n, width]."""
        for i in range(len(self.layers)):
            x = self.step(i, x)
        return x

    def step(self, i: int, x: Tensor) -> Tensor:
        """Apply the i-th layer, including its ReLU."""
        out: Tensor = functional.relu(self.layers[i](x))
        return out


class PooledConvolutions(Backbone):
    """Graph-level backbone that stacks [convolution → batch norm → ReLU → dropout] layers, a readout, an MLP and the head.

    Args:
        body: convolutions that are called with (float32 [N, in], graphs) and all output ``width`` units.
        embedding: a linear map applied to the features before the first convolution. ``None`` = no embedding.
        last_relu: whether a ReLU also follows the last convolution.
    """

    def __init__(
        self,
        body: Sequence[nn.Module],
        width: int,
        outputs: int,
        *,
        embedding: FeatureLinear | None,
        batch_norm: bool,
        dropout: float,
        last_relu: bool,
        readout: str,
        predictor_layers: int,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.body = nn.ModuleList(body)
        self.norms = nn.ModuleList([nn.BatchNorm1d(width) for _ in body] if batch_norm else [])
        self.dropout, self.last_relu = dropout, last_relu
        self.pooling = Readout(width, readout)
        self.predictor = HalvingMLP(self.pooling.width, predictor_layers)
        self.head = nn.Linear(self.predictor.width, outputs)

    def encode(self, graph: GraphSet) -> Tensor:
        """Compute the embeddings of the graphs directly before the head: float32 [n, d]."""
        entering = self._entering(graph)
        if isinstance(entering, Tensor) and self.embedding is not None and not isinstance(self.body[0], GINEConv):
            entering = self.gated("embedding", entering)
        hidden = self._convolved(0, entering, graph)
        for i in range(len(self.body)):
            if i > 0:
                hidden = self._convolved(i, hidden, graph)
            if len(self.norms):
                hidden = normalised(self.norms[i], hidden)
            if self.last_relu or i + 1 < len(self.body):
                hidden = functional.relu(hidden)
            hidden = drop(hidden, self.dropout, self.training)
            if i + 1 == len(self.body) or not isinstance(self.body[i + 1], GINEConv):
                hidden = self.gated(f"body.{i}", hidden)
        embedded: Tensor = self.pooling(hidden, graph)
        for i in range(len(self.predictor.layers)):
            embedded = self.gated(f"predictor.{i}", self.predictor.step(i, embedded))
        return embedded

    def _convolved(self, i: int, entering: Tensor | SparseMatrix, graph: GraphSet) -> Tensor:
        """Apply the i-th convolution. If it has a hidden layer, the gate of its input units scales the sum over neighbours."""
        convolution = self.body[i]
        if not isinstance(convolution, GINEConv) or isinstance(entering, SparseMatrix):
            out: Tensor = convolution(entering, graph)
            return out
        heard = self.gated("embedding" if i == 0 else f"body.{i - 1}", convolution.gathered(entering, graph))
        mapped: Tensor = convolution.mapped(self.gated(f"body.{i}.inner", convolution.hidden(heard)))
        return mapped

    def units(self) -> tuple[Units, ...]:
        """Return the units of the embedding, of each convolution (including its hidden layer, if any), and of the predictor."""
        layers = [] if self.embedding is None else [layer_of("embedding", self.embedding)]
        for i, convolution in enumerate(self.body):
            name = f"body.{i}"
            if isinstance(convolution, GINEConv):
                if layers and convolution.edges is not None:  # messages add edge features to the incoming units
                    layers[-1] = layers[-1].with_writers(Wire(f"{name}.edges.weight", 1))
                inner = layer_of(f"{name}.inner", convolution.inner)
                layers.append(inner if convolution.norm is None else inner.with_writers(*normed(f"{name}.norm")))
                layer = layer_of(f"{name}.outer", convolution.outer)._replace(name=name)
            else:
                layer = layer_of(name, convolution)
            layers.append(layer.with_writers(*normed(f"norms.{i}")) if len(self.norms) else layer)
        hidden = [layer_of(f"predictor.layers.{i}", layer)._replace(name=f"predictor.{i}") for i, layer in enumerate(self.predictor.layers)]
        if not hidden:
            return chained(layers, [*self.pooling.readers(), reading("head", self.head, self.pooling.repeats)])
        first = reading("predictor.layers.0", self.predictor.layers[0], self.pooling.repeats)
        hidden[0] = hidden[0]._replace(readers=(*self.pooling.readers(), first))
        return chained([*layers, *hidden], [reading("head", self.head)])

    def _entering(self, graph: GraphSet) -> Tensor | SparseMatrix:
        return graph.features if self.embedding is None else self.embedding(graph.features)

    def edge_attention(self, graph: GraphSet) -> Tensor:
        """Compute attention from the first convolution: float32 [E', 1]."""
        attend: Callable[[Tensor | SparseMatrix, GraphSet], Tensor] = self.body[0].edge_attention  # type: ignore[assignment]
        return attend(self._entering(graph), graph)


def gine(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    eps: float,
    batch_norm: bool,
    dropout: float,
    readout: str,
    predictor_layers: int,
    edge_features: int,
) -> PooledConvolutions:
    """GIN with edge features (Hu et al. 2020): a linear embedding followed by :class:`cglsuite.backbones.layers.GINEConv` layers.

    No ReLU follows the last convolution.

    Args:
        in_features: number of node features F. outputs: number of outputs C.
        edge_features: number of edge features D that messages include; 0 = messages include no edge features.
    """
    return PooledConvolutions(
        [GINEConv(width, edge_features, eps, batch_norm) for _ in range(layers)],
        width,
        outputs,
        embedding=FeatureLinear(in_features, width),
        batch_norm=batch_norm,
        dropout=dropout,
        last_relu=False,
        readout=readout,
        predictor_layers=predictor_layers,
    )
