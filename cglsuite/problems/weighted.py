"""Message graphs with edge weights, for the backbone hyperparameter ``edge_weight``. Cells without it never import this module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.message import Operator
from cglsuite.graphs.weights import WeightedNodeData


class WeightedMessageGraph(MessageGraph):
    """A message graph whose propagation operators use edge weights, as PyG's ``gcn_norm`` (Kipf & Welling 2017) does.

    Let W[i, j] be the weight of the edge j → i, and L the diagonal matrix of self-loop weights, which are 1 for nodes without a self-loop.
    ``sum`` is W·H (without self-loops), ``sum-self`` is (W + L)·H, and ``sym`` is D^-1/2 (W + L) D^-1/2 · H, where D contains the row sums
    of W + L.

    All other operations on edges would lose the weights, so they raise an error: attention, sampled and stored subgraphs, and layers of
    other libraries.
    """

    weights: Tensor
    """float32 [E], non-negative edge weights, on the CPU."""
    loops: Tensor
    """float32 [N], the weights of self-loops, on the CPU."""

    @classmethod
    def of(cls, graph: MessageGraph, weights: Tensor, loops: Tensor) -> WeightedMessageGraph:
        """Create a weighted graph from a message graph, with the same nodes and edges."""
        made = cls.__new__(cls)
        vars(made).update(features=graph.features, device=graph.device, _edges=graph._edges, _operators={}, weights=weights, loops=loops)
        return made

    @property
    def plain(self) -> MessageGraph:
        """The graph without its weights."""
        return MessageGraph(self.features, self._edges, self.device)

    def operator(self, kind: Operator, device: str | torch.device) -> SparseMatrix | None:
        """Compute the matrix used by :meth:`propagate`, or ``None`` for ``sum`` without edges, which is zero."""
        if kind not in ("sum", "sum-self", "sym"):
            raise SpecError(f"unknown propagation {kind!r}; expected 'sum', 'sum-self' or 'sym'")
        source, target = self._edges.cpu().numpy()
        proper = source != target
        weights = self.weights.numpy()[proper]
        adjacency = scipy.sparse.csr_matrix((weights, (target[proper], source[proper])), (self.n_nodes, self.n_nodes))
        if kind == "sum":
            return SparseMatrix(adjacency, device, compact=True) if adjacency.nnz else None
        adjacency = adjacency + scipy.sparse.diags(self.loops.numpy(), format="csr")
        if kind == "sym":
            degrees = np.asarray(adjacency.sum(axis=1)).ravel()
            scale = scipy.sparse.diags(np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0))
            adjacency = scale @ adjacency @ scale
        return SparseMatrix(adjacency, device, compact=True)

    def bytes(self) -> int:
        """Return the memory use of features, edges, weights and operators in bytes."""
        return super().bytes() + (self.weights.numel() + self.loops.numel()) * 4

    def _refused(self) -> NoReturn:
        raise NotApplicable(
            "backbone.edge_weight = true: edge weights are not supported by attention, sampled or stored neighbours, or subgraphs; "
            "set it to false"
        )

    edge_index = edges_with_loops = in_neighbours = neighbourhood = property(_refused)


def use_weights(stream: Any) -> None:
    """Make a stream's message graphs use the edge weights of its dataset from now on.

    With ``scenario.undirected``, an edge gets the larger of the weights of its two directions.

    Raises:
        NotApplicable: if the items are not nodes, or the dataset has no edge weights.
    """
    data, unweighted = stream.data, getattr(stream, "graph", None)
    if not isinstance(data, WeightedNodeData) or unweighted is None:
        raise NotApplicable("backbone.edge_weight = true: the edges of this stream have no weights")

    def graph(nodes: Tensor, edges: Tensor | None = None) -> WeightedMessageGraph:
        made = unweighted(nodes, edges)
        ends = nodes[made._edges]
        weights = data.weights_of(ends, 0.0)
        if stream.spec.undirected:
            weights = torch.maximum(weights, data.weights_of(ends.flip(0), 0.0))
        return WeightedMessageGraph.of(made, weights, data.weights_of(nodes.expand(2, -1), 1.0))

    stream.graph = graph


def unite_weights(problem: Any) -> None:
    """Make an adapter preserve edge weights in unions of message graphs from now on.

    Raises:
        NotApplicable: if weighted graphs are joined with a graph whose edge weights are unknown, such as a stored neighbourhood.
    """
    unite = problem._union

    def union(graphs: Sequence[MessageGraph]) -> tuple[MessageGraph, list[int]]:
        parts = [_weighted(graph) for graph in graphs]
        united, sizes = unite([part.plain for part in parts])
        weights, loops = (torch.cat([getattr(part, name) for part in parts]) for name in ("weights", "loops"))
        return WeightedMessageGraph.of(united, weights, loops), sizes

    problem._union = union


def _weighted(graph: MessageGraph) -> WeightedMessageGraph:
    if isinstance(graph, WeightedMessageGraph):
        return graph
    if graph.n_edges:
        raise NotApplicable(
            "backbone.edge_weight = true: stored neighbourhoods have no edge weights; set it to false, or store items without neighbours"
        )
    return WeightedMessageGraph.of(graph, torch.ones(0), torch.ones(graph.n_nodes))
