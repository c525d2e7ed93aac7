"""Graph containers and pure functions for sparse products, splits, class orders, edge policies and user files.

Importing this package does not import torch. Its names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.lazily import lazily

if TYPE_CHECKING:
    from cglsuite.graphs.altered import replaced, subgraphs
    from cglsuite.graphs.attributed import AttributedNodeData
    from cglsuite.graphs.categories import one_hot
    from cglsuite.graphs.collection import GraphData, GraphSet, GraphSource, Pooling
    from cglsuite.graphs.data import NodeData
    from cglsuite.graphs.egos import Ranking, ego_graphs
    from cglsuite.graphs.encoders import tfidf
    from cglsuite.graphs.linegraph import line_graph
    from cglsuite.graphs.links import LinkData
    from cglsuite.graphs.loading.node_arrays import node_arrays, node_data
    from cglsuite.graphs.message import MessageGraph, Operator
    from cglsuite.graphs.pack import Pack
    from cglsuite.graphs.packed import PackedSource
    from cglsuite.graphs.sparse import SparseMatrix
    from cglsuite.graphs.targets import NodeTargetData
    from cglsuite.graphs.upload import counted, uploaded

__all__ = [
    "AttributedNodeData",
    "GraphData",
    "GraphSet",
    "GraphSource",
    "LinkData",
    "MessageGraph",
    "NodeData",
    "NodeTargetData",
    "Operator",
    "Pack",
    "PackedSource",
    "Pooling",
    "Ranking",
    "SparseMatrix",
    "counted",
    "ego_graphs",
    "line_graph",
    "node_arrays",
    "node_data",
    "one_hot",
    "replaced",
    "subgraphs",
    "tfidf",
    "uploaded",
]

__getattr__, __dir__ = lazily(__name__, __file__)
