"""GCN for graph-level problems: residual convolutions over the nodes, a readout per graph, a predictor."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.layers import GCNConv, drop, normalised
from cglsuite.graphs import GraphSet
from cglsuite.graphs.message import Operator

__all__ = ["GraphGCN", "Predictor", "Readout", "ResidualLayer", "graph_gcn", "normalised"]


class ResidualLayer(nn.Module):
    """``relu(P H W + b) [+ relu(H R + c)] → batch norm → dropout`` over the nodes of all graphs: float32 [N, in] to [N, out]."""

    def __init__(self, in_features: int, out_features: int, operator: Operator, residual: bool, batch_norm: bool, dropout: float) -> None:
        super().__init__()
        self.convolution = GCNConv(in_features, out_features, operator)
        self.residual = nn.Linear(in_features, out_features) if residual else None
        self.norm = nn.BatchNorm1d(out_features) if batch_norm else None
        self.dropout = dropout

    def forward(self, x: Tensor, graph: GraphSet) -> Tensor:
        """float32 [N, in] to [N, out]."""
        hidden = functional.relu(self.convolution(x, graph))
        if self.residual is not None:
            hidden = hidden + functional.relu(self.residual(x))
        if self.norm is not None:
            hidden = normalised(self.norm, hidden)
        return drop(hidden, self.dropout, self.training)


class Readout(nn.Module):
    """From nodes to graphs, float32 [N, d] to [n, ``width``].

    ``weighted-sum-and-max`` is ``[Σ_v σ(a·h_v + b) h_v, max_v h_v]`` with learnt a and b, ``sum-and-max`` the same with weights of 1,
    ``mean`` the mean over a graph's nodes.
    """

    def __init__(self, features: int, how: str) -> None:
        super().__init__()
        self.how = how
        self.weight = nn.Linear(features, 1) if how == "weighted-sum-and-max" else None
        self.width = features if how == "mean" else 2 * features

    def forward(self, hidden: Tensor, graph: GraphSet) -> Tensor:
        """float32 [N, d] to [n, width]."""
        if self.how == "mean":
            return graph.pool(hidden, "mean")
        summands = hidden if self.weight is None else hidden * self.weight(hidden).sigmoid()
        return torch.cat([graph.pool(summands, "sum"), graph.pool(hidden, "max")], dim=1)


class Predictor(nn.Module):
    """What lies between readout and head: ``dropout → linear → ReLU → batch norm``, or the dropout alone where ``width`` is 0."""

    def __init__(self, in_features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.linear = nn.Linear(in_features, width) if width else None
        self.norm = nn.BatchNorm1d(width) if width else None
        self.width = width or in_features

    def forward(self, x: Tensor) -> Tensor:
        """float32 [n, in] to [n, width]."""
        x = drop(x, self.dropout, self.training)
        if self.linear is None or self.norm is None:
            return x
        return normalised(self.norm, functional.relu(self.linear(x)))


class GraphGCN(Backbone):
    """Residual graph convolutions, a readout, a predictor whose last linear map is the head."""

    def __init__(self, layers: list[ResidualLayer], readout: Readout, predictor: Predictor, outputs: int) -> None:
        super().__init__()
        self.body = nn.ModuleList(layers)
        self.pooling = readout
        self.predictor = predictor
        self.head = nn.Linear(predictor.width, outputs)

    def encode(self, graph: GraphSet) -> Tensor:
        """Embeddings of the graphs, right before the head: float32 [n, d]."""
        hidden = graph.features
        for layer in self.body:
            hidden = layer(hidden, graph)
        embedded: Tensor = self.predictor(self.pooling(hidden, graph))
        return embedded

    def edge_attention(self, graph: GraphSet) -> Tensor:
        """Attention read off the first convolution, from the input features: float32 [E', 1]."""
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
    """The graph-level GCN of CGLB (Zhang et al. 2022), whose layer is that of DGL-LifeSci; dropout follows the norm here.

    Args:
        in_features: features F of a node.
        outputs: number of outputs C.
        normalisation: ``symmetric`` or ``none`` (sums over neighbours and self).
        readout: see :class:`Readout`.
        predictor_width: hidden units between readout and head; 0 = the head follows the readout.
    """
    operator: Operator = "sym" if normalisation == "symmetric" else "sum-self"
    body = [ResidualLayer(width if i else in_features, width, operator, residual, batch_norm, dropout) for i in range(layers)]
    pooling = Readout(width, readout)
    return GraphGCN(body, pooling, Predictor(pooling.width, predictor_width, dropout), outputs)
