"""GCN for link-level problems, with a node encoder and a predictor on the product of the two node embeddings."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.convolutional import ConvolutionalBackbone
from cglsuite.backbones.layers import GCNConv, drop
from cglsuite.backbones.units import Units
from cglsuite.backbones.wiring import chained, layer_of, reading
from cglsuite.base.errors import SpecError
from cglsuite.graphs.message import Operator


class LinkGCN(ConvolutionalBackbone):
    """Link-level backbone that embeds a pair (u, v) as the product ``h_u ⊙ h_v`` of its node embeddings, followed by an MLP.

    The product is symmetric, so a pair has the same outputs in both directions.
    """

    def __init__(
        self,
        body: list[nn.Module],
        hidden: list[nn.Linear],
        head: nn.Linear,
        widths: list[int],
        *,
        predictor_dropout: float,
        **options: Any,
    ) -> None:
        super().__init__(body, head, widths, activation=functional.relu, convolutional_head=False, **options)
        self.predictor = nn.ModuleList(hidden)
        self.predictor_dropout = predictor_dropout

    def combine(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Compute the embeddings of the pairs ``ids`` (int64 [n, 2]) before the head from the node embeddings: float32 [n, d]."""
        joined = hidden[ids[:, 0]] * hidden[ids[:, 1]]
        for i, layer in enumerate(self.predictor):
            joined = drop(functional.relu(layer(joined)), self.predictor_dropout, self.training)
            joined = self.gated(f"predictor.{i}", joined)
        return joined

    def units(self) -> tuple[Units, ...]:
        """Return the units of each convolution, which both nodes of a pair share, and of each hidden layer of the predictor."""
        body = [self._layer(i) for i in range(len(self.body))]
        hidden = [layer_of(f"predictor.{i}", layer) for i, layer in enumerate(self.predictor)]
        return chained([*body, *hidden], [reading("head", self.head)])

    def readout(self, hidden: Tensor, graph: Any, ids: Tensor | None) -> Tensor:
        """Compute the outputs for the pairs ``ids`` (int64 [n, 2]): float32 [n, C].

        Raises:
            SpecError: if ``ids`` is ``None``, since there are too many pairs to score them all.
        """
        if ids is None:
            raise SpecError(f"{type(self).__name__} scores pairs of nodes; expected ids as int64 [n, 2]")
        out: Tensor = self.head(self.combine(hidden, ids))
        return out


def link_gcn(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    normalisation: str,
    bias: bool,
    batch_norm: bool,
    dropout: float,
    input_dropout: float,
    predictor_layers: int,
    predictor_width: int,
    predictor_dropout: float,
) -> LinkGCN:
    """GCN for links: ``layers`` convolutions, the product of the two node embeddings, and ``predictor_layers`` linear maps.

    A batch norm, a ReLU and dropout follow each convolution.

    Args:
        in_features: number of node features F. outputs: number of outputs C.
        normalisation: ``symmetric`` or ``none`` (sums over neighbours and self).
        predictor_layers: number of linear maps from the product to the outputs, including the head, with ReLU and dropout in between.
    """
    operator: Operator = "sym" if normalisation == "symmetric" else "sum-self"
    sizes = [in_features] + [width] * layers
    after = [width] + [predictor_width] * (predictor_layers - 1)
    return LinkGCN(
        [GCNConv(a, b, operator, bias) for a, b in pairwise(sizes)],
        [nn.Linear(a, b) for a, b in pairwise(after)],
        nn.Linear(after[-1], outputs),
        sizes[1:],
        batch_norm=batch_norm,
        dropout=dropout,
        input_dropout=input_dropout,
        predictor_dropout=predictor_dropout,
    )
