"""Sparsified ego graphs: one small graph per centre node, sufficient to compute the node's output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.graphs.message import MessageGraph, torch_csr
from cglsuite.graphs.pack import Pack
from cglsuite.graphs.sparse import spans

Ranking = Callable[[MessageGraph, NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
"""Maps (graph, sources int64 [m], targets int64 [m]) to float64 [m], one rank per edge; the in-edges of lowest rank are kept."""


def ego_graphs(graph: MessageGraph, centres: Tensor, fan_out: Sequence[int], ranking: Ranking) -> Pack:
    """Extract a sparse ego graph for each centre, sufficient for a network of ``len(fan_out)`` layers.

    Starting from a centre, every newly reached node keeps the k in-edges with the lowest ``ranking``, or all in-edges if there are fewer
    than k. Ties go to the lower node id. ``fan_out[i]`` is the k of layer i counted from the input, as in ``sample_neighbours``, but each
    centre has its own graph.

    Args:
        centres: int64 [n], nodes of ``graph``.

    Returns:
        n graphs with their features. The first node of each graph is its centre. The others are ordered by hop, and by id within a hop.
    """
    pointers, sources = graph.in_neighbours
    n_nodes, n = graph.n_nodes, int(centres.numel())
    # Several centres may reach a node, so it is identified by (centre, node), encoded as centre * N + node.
    frontier = np.arange(n, dtype=np.int64) * n_nodes + centres.cpu().numpy()
    reached, heard, hearing = [frontier], [], []
    for k in reversed(fan_out):
        nodes = frontier % n_nodes
        starts, degrees = pointers[nodes], pointers[nodes + 1] - pointers[nodes]
        rows = np.repeat(np.arange(len(nodes)), degrees)
        neighbours = sources[spans(starts, degrees)].astype(np.int64)
        first = _first_of_each(rows, degrees, ranking(graph, neighbours, nodes[rows]), k)
        rows, neighbours = rows[first], neighbours[first]
        hearing.append(frontier[rows])
        heard.append(frontier[rows] - nodes[rows] + neighbours)
        frontier = np.setdiff1d(heard[-1], np.concatenate(reached))
        reached.append(frontier)
    return _packed(graph, n, np.concatenate(reached), np.concatenate(heard), np.concatenate(hearing))


def _first_of_each(rows: Any, degrees: Any, rank: Any, k: int) -> Any:
    """Return the ascending positions of the k lowest ranks in each row. ``rows`` is ascending; row i has ``degrees[i]`` entries."""
    order = np.lexsort((rank, rows))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    return np.sort(order[place < k])


def _packed(graph: MessageGraph, n: int, reached: Any, heard: Any, hearing: Any) -> Pack:
    """Pack node pairs and their edges, one ego graph after the other."""
    n_nodes = graph.n_nodes
    order = np.argsort(reached // n_nodes, kind="stable")
    pairs = reached[order]
    by_number = np.argsort(pairs)
    by_graph = np.argsort(hearing // n_nodes, kind="stable")
    ends = [by_number[np.searchsorted(pairs, pair[by_graph], sorter=by_number)] for pair in (heard, hearing)]
    rows = graph.rows(torch.from_numpy(pairs % n_nodes))
    return Pack(
        x=rows if isinstance(rows, Tensor) else torch_csr(rows),
        edge_index=torch.from_numpy(np.stack(ends)),
        node_start=_starts(pairs // n_nodes, n),
        edge_start=_starts(hearing // n_nodes, n),
    )


def _starts(graph_of: Any, n: int) -> Tensor:
    counts = torch.bincount(torch.from_numpy(graph_of), minlength=n)
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
