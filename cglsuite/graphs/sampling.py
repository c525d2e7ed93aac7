"""Neighbour sampling: draws the part of a large graph needed to compute the outputs of a few nodes, anew for every batch.

Compiled samplers (pyg-lib, torch-sparse) are not used even if installed, because they draw different neighbours for the same seed, and a
record must not depend on optional packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cglsuite.graphs.message import MessageGraph
from cglsuite.graphs.sparse import spans
from cglsuite.graphs.upload import uploaded


def sample_neighbours(graph: MessageGraph, ids: Tensor, fan_out: Sequence[int], generator: torch.Generator) -> tuple[MessageGraph, Tensor]:
    """Sample a subgraph from which a network of ``len(fan_out)`` layers computes the outputs of ``ids`` (Hamilton et al. 2017).

    Starting from ``ids``, every node reached for the first time receives messages from at most k of its in-neighbours, drawn uniformly
    without replacement. ``fan_out[i]`` is the k of layer i, counted from the input: the last entry applies to ``ids`` themselves, the first
    to the outermost hop.

    All layers share one graph, the union of the edges of all hops, so a node has the same neighbours in every layer. Self-loops do not
    count as neighbours; the propagation operators add them. Sums over neighbours are therefore exact if no node has more than k of them.
    Symmetric normalisation uses the degrees of the *sampled* graph, in which nodes of the outermost hop have no in-edges, so outputs differ
    from those on the whole graph even if every neighbour is kept.

    Args:
        graph: the whole graph; its in-neighbours are computed on the first call and cached.
        ids: int64 [n], repeats allowed.
        fan_out: number of neighbours per node for each layer, at least 1.
        generator: a CPU generator. Equal states give equal samples on every device.

    Returns:
        The subgraph on the device of ``graph`` (first ``ids``, then the other nodes by hop, ascending within a hop), and the positions of
        ``ids`` in it: int64 [n].
    """
    pointers, sources = graph.in_neighbours
    frontier, positions = _first_seen(ids.cpu().numpy())
    reached: list[Any] = []
    heard, hearing, n = [], [], 0
    with graph.scratch() as place:  # node to position in the subgraph
        for k in (*reversed(fan_out), None):
            reached.append(frontier)
            place[frontier] = np.arange(n, n + len(frontier))
            if k is None:
                break
            slots, rows = _draw(pointers, frontier, k, generator)
            heard.append(sources[slots])
            hearing.append(rows + n)
            n += len(frontier)
            frontier = np.unique(heard[-1][place[heard[-1]] < 0])
        nodes = np.concatenate(reached)
        edges = torch.from_numpy(np.stack([place[np.concatenate(heard)], np.concatenate(hearing)]))
        place[nodes] = -1  # a batch costs what it reaches, not what the graph holds
    taken = torch.from_numpy(nodes)
    x = graph.features[uploaded(taken, graph.device)] if isinstance(graph.features, Tensor) else graph.features.taken(taken)
    return MessageGraph(x, edges, graph.device), uploaded(torch.from_numpy(positions), graph.device)


def _first_seen(ids: Any) -> tuple[Any, Any]:
    """Return the distinct ids in order of first occurrence, and each id's position among them."""
    ascending, first, position = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return ascending[order], np.argsort(order)[position.reshape(-1)]


def _draw(pointers: Any, nodes: Any, k: int, generator: torch.Generator) -> tuple[Any, Any]:
    """Draw neighbours. Return their CSR positions, and the row in ``nodes`` that each was drawn for: both int64 [m]."""
    starts = pointers[nodes]
    degrees = pointers[nodes + 1] - starts
    few, many = np.flatnonzero(degrees <= k), np.flatnonzero(degrees > k)
    drawn = starts[many, None] + distinct_ranks(degrees[many], k, generator)
    slots = np.concatenate([spans(starts[few], degrees[few]), drawn.reshape(-1)])
    return slots, np.concatenate([np.repeat(few, degrees[few]), np.repeat(many, k)])


def distinct_ranks(sizes: Any, k: int, generator: torch.Generator) -> Any:
    """Draw ``k`` distinct numbers from ``0..size-1`` for every size (integers [n], each at least k), uniformly over subsets: int64 [n, k].

    This is Floyd's algorithm, vectorised over rows: the i-th number is drawn from ``0..size-k+i`` and replaced with ``size-k+i`` if it has
    already been drawn. It needs n·k draws regardless of the sizes.
    """
    if len(sizes) == 0:
        return np.empty((0, k), dtype=np.int64)
    uniform = torch.rand(k, len(sizes), dtype=torch.float64, generator=generator).numpy()
    last = sizes - k + np.arange(k)[:, None]
    chosen = (uniform * (last + 1)).astype(np.int64)
    for i in range(1, k):
        taken = (chosen[:i] == chosen[i]).any(axis=0)
        np.copyto(chosen[i], last[i], where=taken)
    return chosen.T
