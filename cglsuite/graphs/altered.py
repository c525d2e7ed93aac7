"""Functions that derive graphs from other graphs: replace the features, or extract subgraphs around random nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs.collection import GraphSet
from cglsuite.graphs.message import MessageGraph, scipy_features
from cglsuite.graphs.pack import Pack, taken_rows
from cglsuite.graphs.packed import PackedGraphs
from cglsuite.graphs.sparse import SparseMatrix
from cglsuite.graphs.upload import uploaded


def replaced(graph: Any, features: Tensor | SparseMatrix) -> Any:
    """Return a copy of a message graph or set of graphs with new features. Edges and operators are shared with ``graph``.

    Gradients flow through dense features, so outputs can be differentiated with respect to them.

    Args:
        features: float32 [N, F], one row per node.

    Raises:
        SpecError: the number of rows differs from the number of nodes.
        NotApplicable: the graphs compute their features, as skeleton sequences do.
    """
    if features.shape[0] != graph.n_nodes:
        raise SpecError(f"features have {features.shape[0]} rows; expected {graph.n_nodes}, one per node of the graph")
    described = getattr(type(graph), "features", None)
    if isinstance(described, property):
        raise NotApplicable(f"{type(graph).__name__} computes its own features, so they cannot be replaced")
    made = object.__new__(type(graph))
    vars(made).update(vars(graph))
    vars(made).pop("dense", None)
    vars(made)["features"] = uploaded(features, graph.device) if isinstance(features, Tensor) else features.to(graph.device)
    return made


def graph_of_nodes(graphs: GraphSet) -> Tensor:
    """Return the index of the graph that each node belongs to: int64 [N]."""
    probe = torch.zeros(graphs.n_nodes, 1, device=graphs.device, requires_grad=True)
    with torch.enable_grad():
        numbered = graphs.pool(probe, "sum") * torch.arange(len(graphs), device=graphs.device, dtype=probe.dtype).unsqueeze(1)
        (number,) = torch.autograd.grad(numbered.sum(), probe)
    return number.flatten().round().to(torch.int64)


def subgraphs(graph: Any, keep: float, generator: torch.Generator) -> tuple[Any, Tensor]:
    """Extract the subgraph around a random node of a message graph, or of each graph in a set, by breadth-first search.

    Nodes are selected in order of their distance from the start node, with ties broken at random. If the search reaches too few nodes, the
    rest are drawn at random.

    Args:
        keep: fraction of each graph's nodes to keep, in (0, 1]. At least one node is kept.
        generator: a CPU generator.

    Returns:
        The subgraph, of the same type as ``graph``, and the ids of the kept nodes in ``graph``, ascending: int64 [m].

    Raises:
        NotApplicable: the graphs have a fixed layout, as skeleton sequences do.
    """
    if isinstance(graph, PackedGraphs):
        pack = graph._pack
        kept = _nearest(pack.edge_index, pack.node_start, keep, generator)
        return PackedGraphs(_induced(pack, kept), graph.device), uploaded(kept, graph.device)
    if not isinstance(graph, MessageGraph):
        raise NotApplicable(f"{type(graph).__name__} has a fixed layout, so nodes cannot be removed")
    edges = graph.edge_index.cpu()
    kept = _nearest(edges, torch.tensor([0, graph.n_nodes]), keep, generator)
    x = graph.rows(kept)
    made = MessageGraph(x, _renumbered(edges, kept, graph.n_nodes)[0], graph.device)
    return made, uploaded(kept, graph.device)


def _nearest(edge_index: Tensor, node_start: Tensor, keep: float, generator: torch.Generator) -> Tensor:
    """Select the nodes to keep from graphs packed one after the other: int64 [m], ascending."""
    if not 0 < keep <= 1:
        raise SpecError(f"keep = {keep!r}; expected a fraction in (0, 1]")
    sizes = node_start.diff()
    n = int(node_start[-1])
    starts = node_start[:-1] + (torch.rand(len(sizes), generator=generator) * sizes).long().clamp(max=sizes - 1)
    distance = _distances(edge_index.numpy(), starts.numpy(), n)
    chance = torch.rand(n, generator=generator).numpy()
    graph_of = np.repeat(np.arange(len(sizes)), sizes.numpy())
    order = np.lexsort((chance, distance, graph_of))
    rank = np.arange(n) - np.repeat(node_start[:-1].numpy(), sizes.numpy())
    wanted = np.ceil(keep * sizes.numpy()).astype(np.int64)
    return torch.from_numpy(np.sort(order[rank < np.repeat(wanted, sizes.numpy())]))


def _distances(edges: np.ndarray, starts: np.ndarray, n: int) -> np.ndarray:
    """Hops from the nearest of ``starts``, ignoring edge directions: int64 [n]; n for unreachable nodes."""
    source, target = edges
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    neighbours = scipy.sparse.csr_matrix((np.ones(len(ends[0]), np.int32), ends), (n, n))
    distance = np.full(n, n, dtype=np.int64)
    distance[starts] = 0
    front = np.zeros(n, np.int32)
    front[starts] = 1
    for hop in range(1, n):  # one iteration per hop
        reached = (neighbours @ front > 0) & (distance == n)
        if not reached.any():
            break
        distance[reached] = hop
        front = reached.astype(np.int32)
    return distance


def _renumbered(edges: Tensor, kept: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The edges among the nodes ``kept`` (ascending), renumbered, and a mask of these edges: bool [E]."""
    place = torch.full((n,), -1, dtype=torch.int64)
    place[kept] = torch.arange(len(kept))
    ends = place[edges]
    inside = (ends >= 0).all(dim=0)
    return ends[:, inside], inside


def _induced(pack: Pack, kept: Tensor) -> Pack:
    """The subgraphs of a pack on the nodes ``kept`` (ascending)."""
    n = int(pack.node_start[-1])
    edges, inside = _renumbered(pack.edge_index, kept, n)
    zero = torch.zeros(1, dtype=torch.int64)
    before_node = torch.cat([zero, torch.zeros(n, dtype=torch.int64).index_fill(0, kept, 1).cumsum(0)])
    before_edge = torch.cat([zero, inside.long().cumsum(0)])
    return Pack(
        x=taken_rows(pack.x, kept),
        edge_index=edges,
        node_start=before_node[pack.node_start],
        edge_start=before_edge[pack.edge_start],
        edge_attr=None if pack.edge_attr is None else pack.edge_attr[inside],
    )


def permuted_rows(features: Tensor | SparseMatrix, order: Tensor) -> Tensor | SparseMatrix:
    """Select the rows ``order`` (int64 [m]) of dense or sparse features, on the same device."""
    if isinstance(features, Tensor):
        return features[uploaded(order, features.device)]
    return SparseMatrix(features.rows(order), features.csr.device)


def masked_rows(features: Tensor | SparseMatrix, kept: Tensor) -> Tensor | SparseMatrix:
    """Set the feature rows for which ``kept`` (bool [N], on the CPU) is false to 0."""
    if isinstance(features, Tensor):
        return features * uploaded(kept, features.device).unsqueeze(1).to(features.dtype)
    rows = scipy_features(features.csr.cpu())
    return SparseMatrix(scipy.sparse.diags(kept.numpy().astype(np.float32)) @ rows, features.csr.device)
