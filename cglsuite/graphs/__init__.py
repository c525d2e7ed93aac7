"""Pure functions and plain containers of graphs: data, sparse products, partitions, orders, splits, edge policies."""

from __future__ import annotations

from cglsuite.graphs.collection import GraphData, GraphSet, GraphSource
from cglsuite.graphs.data import NodeData
from cglsuite.graphs.links import LinkData
from cglsuite.graphs.message import MessageGraph
from cglsuite.graphs.sparse import SparseMatrix

__all__ = ["GraphData", "GraphSet", "GraphSource", "LinkData", "MessageGraph", "NodeData", "SparseMatrix"]
