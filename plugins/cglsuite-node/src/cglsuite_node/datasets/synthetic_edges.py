"""Edge classification on the embedded graph, formulated on its line graph."""

from __future__ import annotations

from typing import Any

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData, line_graph
from cglsuite.specs import resolve_hyperparameters
from cglsuite_node.datasets.specs import CSBM_EDGE_HYPERPARAMETERS
from cglsuite_node.datasets.synthetic import synthetic_csbm


def synthetic_csbm_edges(root: DataRoot, **given: Any) -> NodeData:
    """Turn every edge of a contextual stochastic block model into a node whose class is the pair of communities that the edge connects.

    K communities give K (K + 1) / 2 classes; class ids number the pairs (a, b), a ≤ b, row by row. There are no self-loops.

    Args:
        root: not read; the graph is generated.
        parameters: those of ``synthetic-csbm``, with smaller defaults.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(CSBM_EDGE_HYPERPARAMETERS, given, "synthetic-csbm-edges"))
    data = synthetic_csbm(root, **hyperparameters)
    a, b = data.y[data.edge_index].sort(dim=0).values
    k = data.n_classes
    pair = a * k - a * (a - 1) // 2 + (b - a)
    return line_graph(data, pair, n_classes=k * (k + 1) // 2)
