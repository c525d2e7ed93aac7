"""Backbones built from other libraries' convolutions, called as ``layer(x, edge_index)``, for every problem level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.layers import drop
from cglsuite.backbones.units import Units
from cglsuite.backbones.wiring import chained, layer_of, reading
from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, MessageGraph

CONVOLUTIONS = ("sage", "gcn", "gat", "gatv2", "gin", "transformer", "graph")
"""The convolutions of ``torch_geometric.nn`` that :func:`pyg` supports."""


class StockBackbone(Backbone):
    """A stack of [convolution → activation → dropout] layers followed by a linear head.

    It supports every problem level. Links are embedded as the product of their two node embeddings, and whole graphs as the mean over their
    nodes.

    Args:
        layers: modules called as ``layer(x, edge_index)``, where x is float32 [N, d], dense, and edge_index is int64 [2, E] with sources in
            the first row and targets in the second.
        width: number of output units of the last layer. outputs: number of outputs C.
        dropout: the dropout probability after each layer. activation: applied between layers.

    Example:
        >>> from torch_geometric.nn import TransformerConv  # doctest: +SKIP
        >>> StockBackbone([TransformerConv(500, 64), TransformerConv(64, 64)], 64, outputs=7)  # doctest: +SKIP
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        width: int,
        outputs: int,
        *,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = functional.relu,
    ) -> None:
        super().__init__()
        self.body = nn.ModuleList(layers)
        self.head = nn.Linear(width, outputs)
        self.dropout, self.activation = dropout, activation
        self.register_state_dict_post_hook(_without_computed)  # type: ignore[no-untyped-call]

    @property
    def hops(self) -> int:
        """The number of hops: one per layer."""
        return len(self.body)

    def encode(self, graph: MessageGraph | GraphSet) -> Tensor:
        """Compute the embeddings of all nodes, or of all graphs in a set: float32 [N, width]."""
        hidden, edge_index = graph.dense, graph.edge_index
        for i, layer in enumerate(self.body):
            hidden = self.gated(f"body.{i}", drop(self.activation(layer(hidden, edge_index)), self.dropout, self.training))
        return graph.pool(hidden, "mean") if isinstance(graph, GraphSet) else hidden

    def units(self) -> tuple[Units, ...]:
        """Return the units of each layer. Units of the same attention head belong together.

        Raises:
            NotApplicable: if a layer is not one that :func:`pyg` supports.
        """
        return chained([layer_of(f"body.{i}", layer) for i, layer in enumerate(self.body)], [reading("head", self.head)])

    def combine(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Compute the embeddings of the pairs ``ids`` (int64 [n, 2]): float32 [n, width]."""
        return hidden[ids[:, 0]] * hidden[ids[:, 1]]

    def readout(self, hidden: Tensor, graph: MessageGraph | GraphSet, ids: Tensor | None) -> Tensor:
        """Compute the outputs for nodes, graphs or pairs of nodes from the embeddings: float32 [n, C]."""
        if ids is not None and ids.dim() == 2:
            out: Tensor = self.head(self.combine(hidden, ids))
            return out
        return super().readout(hidden, graph, ids)


def _without_computed(model: nn.Module, state: dict[str, Tensor], prefix: str, metadata: object) -> None:
    """Remove weights computed by a parametrisation from a state dict. PyG's linear maps save them, but a masked network cannot load
    them."""
    for name, module in model.named_modules():
        for tensor in getattr(module, "parametrizations", ()):
            state.pop(f"{prefix}{name}.{tensor}", None)


def pyg(in_features: int, outputs: int, *, convolution: str, layers: int, width: int, heads: int, dropout: float) -> StockBackbone:
    """Build a backbone that stacks one of PyG's convolutions with its default settings.

    Args:
        in_features: number of node features F. outputs: number of outputs C.
        convolution: one of :data:`CONVOLUTIONS`. width: number of units per layer, over all heads. heads: number of attention heads, if the
            convolution has any.

    Raises:
        SpecError: if ``width`` is not a multiple of ``heads``.
    """
    from torch_geometric import nn as stock

    attention = {"gat": stock.GATConv, "gatv2": stock.GATv2Conv, "transformer": stock.TransformerConv}
    plain = {"sage": stock.SAGEConv, "gcn": stock.GCNConv, "graph": stock.GraphConv}
    if convolution in attention and width % heads:
        raise SpecError(
            f"backbone.width = {width} with backbone.heads = {heads}: expected the width to be a multiple of the number of heads"
        )

    def make(a: int, b: int) -> nn.Module:
        layer: nn.Module
        if convolution in attention:
            layer = attention[convolution](a, b // heads, heads=heads)
        elif convolution == "gin":
            layer = stock.GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b)))
        else:
            layer = plain[convolution](a, b)
        return layer

    return StockBackbone([make(a, b) for a, b in pairwise([in_features] + [width] * layers)], width, outputs, dropout=dropout)
