"""GCN, GAT and GIN for node-level problems: stacks of convolutions with a linear or convolutional head."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.initial import redraw
from cglsuite.backbones.layers import GATConv, GCNConv, GINConv, drop, drop_features, normalised
from cglsuite.backbones.units import Units
from cglsuite.backbones.wiring import Layer, chained, layer_of, normed, reading
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.message import Operator


class ConvolutionalBackbone(Backbone):
    """A stack of [convolution → batch norm → activation → dropout] layers, followed by the head.

    Args:
        body: the hidden convolutions, in order.
        head: a linear map of the embeddings, or another convolution over all nodes.
        widths: the output width of each hidden convolution.
    """

    def __init__(
        self,
        body: list[nn.Module],
        head: nn.Module,
        widths: list[int],
        *,
        activation: Callable[[Tensor], Tensor],
        batch_norm: bool,
        dropout: float,
        input_dropout: float,
        convolutional_head: bool,
    ) -> None:
        super().__init__()
        self.body = nn.ModuleList(body)
        self.norms = nn.ModuleList([nn.BatchNorm1d(w) for w in widths] if batch_norm else [])
        self.head = head
        self.activation, self.dropout, self.input_dropout = activation, dropout, input_dropout
        self.convolutional_head = convolutional_head

    @property
    def hops(self) -> int:
        """The number of hops: one per convolution, including a convolutional head."""
        return len(self.body) + self.convolutional_head

    def encode(self, graph: MessageGraph) -> Tensor:
        """Compute the embeddings of all nodes before the head: float32 [N, width]."""
        entering = drop_features(graph.features, self.input_dropout, self.training)
        hidden: Tensor = self.body[0](entering, graph)
        for i in range(len(self.body)):
            if i > 0:
                hidden = self.body[i](hidden, graph)
            if len(self.norms):
                hidden = normalised(self.norms[i], hidden)
            hidden = self.gated(f"body.{i}", drop(self.activation(hidden), self.dropout, self.training))
        return hidden

    def units(self) -> tuple[Units, ...]:
        """Return the units of each hidden convolution. Units of the same attention head belong together.

        Raises:
            NotApplicable: if a layer is of an unknown kind, or the head is an attention layer, whose outputs depend on each other.
        """
        if isinstance(self.head, GATConv):
            raise NotApplicable(
                "the head is an attention layer, whose outputs depend on each other, so no single output can be protected: choose "
                "backbone.head=linear"
            )
        return chained([self._layer(i) for i in range(len(self.body))], [reading("head", self.head)])

    def _layer(self, i: int) -> Layer:
        layer = layer_of(f"body.{i}", self.body[i])
        return layer.with_writers(*normed(f"norms.{i}")) if len(self.norms) else layer

    def edge_attention(self, graph: MessageGraph) -> Tensor:
        """Compute the attention of the first convolution from the input features: float32 [E', heads]."""
        attend: Callable[[Tensor | SparseMatrix, MessageGraph], Tensor] | None = getattr(self.body[0], "edge_attention", None)
        return super().edge_attention(graph) if attend is None else attend(graph.features, graph)

    def edge_attention_from(self, graph: MessageGraph, embeddings: str) -> Tensor:
        """Compute the attention of the first convolution from ``embeddings``: float32 [E', heads].

        A layer with built-in attention uses that instead.
        """
        first = self.body[0]
        if isinstance(first, GCNConv):
            return first.edge_attention_from(graph.features, graph, embeddings)
        return self.edge_attention(graph) if isinstance(first, GATConv) else super().edge_attention_from(graph, embeddings)

    def readout(self, hidden: Tensor, graph: MessageGraph, ids: Tensor | None) -> Tensor:
        """Compute the outputs for the nodes ``ids`` (``None`` = all) from the embeddings: float32 [n, C]."""
        if not self.convolutional_head:
            return super().readout(hidden, graph, ids)
        out: Tensor = self.head(hidden, graph)
        return out if ids is None else out[ids]


def _sizes(in_features: int, width: int, layers: int, head: str) -> list[int]:
    """Return the input width and the output width of each hidden convolution."""
    hidden = layers - 1 if head == "convolution" else layers
    if hidden < 1:
        raise SpecError(
            f"backbone.layers = {layers} with backbone.head = {head}: expected at least 2, so that there is a convolution before the head"
        )
    return [in_features] + [width] * hidden


def _assemble(
    make: Callable[[int, int], nn.Module],
    make_head: Callable[[int, int], nn.Module],
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    head: str,
    batch_norm: bool,
    dropout: float,
    input_dropout: float,
    init: str,
    activation: Callable[[Tensor], Tensor] = functional.relu,
) -> ConvolutionalBackbone:
    """Build the backbone from layer factories. ``layers`` counts the convolutions, including a convolutional head.

    A linear head is initialised like ``torch.nn.Linear`` (uniform within 1/√width). A wider range can hurt: while the running statistics of
    batch norm settle, large head weights cause a large validation loss, on which a plateau schedule stops (with BeGin's protocol and joint
    training on Cora, one class order in five fell from 91 to 43% under Glorot initialisation).
    """
    sizes = _sizes(in_features, width, layers, head)
    body = [make(a, b) for a, b in pairwise(sizes)]
    last = make_head(sizes[-1], outputs) if head == "convolution" else nn.Linear(sizes[-1], outputs)
    model = ConvolutionalBackbone(
        body,
        last,
        sizes[1:],
        activation=activation,
        batch_norm=batch_norm,
        dropout=dropout,
        input_dropout=input_dropout,
        convolutional_head=head == "convolution",
    )
    redraw(model, init)
    return model


def gcn(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    normalisation: str,
    bias: bool,
    batch_norm: bool,
    dropout: float,
    input_dropout: float | None,
    head: str,
    init: str = "glorot",
) -> ConvolutionalBackbone:
    """GCN (Kipf & Welling 2017) with symmetric normalisation, or with plain sums over each node and its neighbours."""
    operator: Operator = "sym" if normalisation == "symmetric" else "sum-self"

    def make(a: int, b: int) -> nn.Module:
        return GCNConv(a, b, operator, bias)

    return _assemble(
        make,
        make,
        in_features,
        outputs,
        layers=layers,
        width=width,
        head=head,
        batch_norm=batch_norm,
        dropout=dropout,
        input_dropout=dropout if input_dropout is None else input_dropout,
        init=init,
    )


def gin(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    eps: float,
    batch_norm: bool,
    dropout: float,
    head: str,
    init: str = "glorot",
) -> ConvolutionalBackbone:
    """GIN (Xu et al. 2019) with a single linear map per layer instead of an MLP."""

    def make(a: int, b: int) -> nn.Module:
        return GINConv(a, b, eps)

    return _assemble(
        make,
        make,
        in_features,
        outputs,
        layers=layers,
        width=width,
        head=head,
        batch_norm=batch_norm,
        dropout=dropout,
        input_dropout=0.0,
        init=init,
    )


def gat(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    heads: int,
    dropout: float,
    attention_dropout: float,
    head: str,
    init: str = "glorot",
) -> ConvolutionalBackbone:
    """GAT (Veličković et al. 2018). Hidden layers concatenate ``heads`` heads of ``width`` units; a convolutional head averages them."""
    sizes = _sizes(in_features, heads * width, layers, head)
    body: list[nn.Module] = [GATConv(a, width, heads, True, attention_dropout) for a in sizes[:-1]]
    last: nn.Module
    if head == "convolution":
        last = GATConv(sizes[-1], outputs, heads, False, attention_dropout)
    else:
        last = nn.Linear(sizes[-1], outputs)
    model = ConvolutionalBackbone(
        body,
        last,
        sizes[1:],
        activation=functional.elu,
        batch_norm=False,
        dropout=dropout,
        input_dropout=dropout,
        convolutional_head=head == "convolution",
    )
    redraw(model, init)
    return model
