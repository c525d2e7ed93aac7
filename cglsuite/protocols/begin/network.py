"""BeGin's network for whole graphs, assembled from the graph layers of :mod:`cglsuite.backbones`."""

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
    """The graph-level GCN of BeGin (Ko et al. 2025): symmetric convolutions, mean pooling, an MLP that halves its width.

    Args:
        in_features: features F of a node. For sparse indicators, the first convolution's linear map is the sum of their embeddings.
        outputs: number of outputs C.
        edge_features: features D of an edge, which messages carry (:class:`cglsuite.backbones.layers.EdgeGCNConv`); 0 = they carry none.
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
