"""BeGin's network for whole graphs, built from the graph layers in :mod:`cglsuite.backbones`."""

from __future__ import annotations

from itertools import pairwise

from cglsuite.backbones.graphwise import PooledConvolutions
from cglsuite.backbones.layers import EdgeGCNConv, GCNConv


def begin_graph_gcn(
    in_features: int,
    outputs: int,
    *,
    layers: int,
    width: int,
    batch_norm: bool,
    dropout: float,
    readout: str,
    predictor_layers: int,
    edge_features: int,
) -> PooledConvolutions:
    """Build the graph-level GCN of BeGin (Ko et al. 2025): symmetric convolutions, mean pooling, and an MLP whose layers halve in width.

    Args:
        in_features: number of node features F. For sparse indicators, the linear map of the first convolution sums their embeddings.
        outputs: number of outputs C.
        edge_features: number of edge features D that messages include (:class:`cglsuite.backbones.layers.EdgeGCNConv`); 0 = messages
            include no edge features.
    """
    sizes = [in_features] + [width] * layers
    body = [EdgeGCNConv(a, b, edge_features) if edge_features else GCNConv(a, b) for a, b in pairwise(sizes)]
    return PooledConvolutions(
        body,
        width,
        outputs,
        embedding=None,
        batch_norm=batch_norm,
        dropout=dropout,
        last_relu=True,
        readout=readout,
        predictor_layers=predictor_layers,
    )
