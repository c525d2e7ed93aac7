"""Surroundings of single nodes: who is in them, who hears whom, and that a centre's output follows from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_streams import tiny_data

from cglsuite.backbones.convolutional import gin
from cglsuite.graphs import MessageGraph
from cglsuite.graphs.egos import ego_graphs
from cglsuite.graphs.message import scipy_features
from cglsuite.graphs.pack import Pack


def lowest(graph: MessageGraph, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The neighbours of the lowest numbers."""
    return source.astype(np.float64)


def path(n: int = 6) -> MessageGraph:
    """0 - 1 - ... - n-1, both ways; the feature of a node is its number."""
    ahead = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return MessageGraph(torch.arange(n).float().unsqueeze(1), torch.cat([ahead, ahead.flip(0)], dim=1))


def parts(pack: Pack) -> list[tuple[list[int], set[tuple[int, int]]]]:
    """Each graph's nodes by their numbers (feature 0), and its edges between them."""
    out = []
    for i in range(len(pack)):
        own = pack.take(torch.tensor([i]))
        nodes = [int(v) for v in own.x[:, 0]]
        out.append((nodes, {(nodes[a], nodes[b]) for a, b in own.edge_index.T.tolist()}))
    return out


def test_by_hand() -> None:
    """One neighbour a hop, the lowest: 3 hears 2 and 2 hears 1; node 0 has only 1, which hears 0."""
    pack = ego_graphs(path(), torch.tensor([3, 0, 3]), (1, 1), lowest)
    assert parts(pack) == [([3, 2, 1], {(2, 3), (1, 2)}), ([0, 1], {(1, 0), (0, 1)}), ([3, 2, 1], {(2, 3), (1, 2)})]
    assert pack.sizes.tolist() == [3, 2, 3]
    assert pack.edge_start.tolist() == [0, 2, 4, 6]


def test_the_last_number_is_that_of_the_centre() -> None:
    pack = ego_graphs(path(), torch.tensor([2]), (1, 2), lowest)
    assert parts(pack) == [([2, 1, 3, 0], {(1, 2), (3, 2), (0, 1), (2, 3)})]


def test_a_node_without_neighbours_is_alone() -> None:
    graph = MessageGraph(torch.ones(3, 2), torch.tensor([[0, 1], [0, 0]]))
    pack = ego_graphs(graph, torch.tensor([2, 0]), (4,), lowest)
    assert pack.sizes.tolist() == [1, 2]
    assert pack.n_edges == 1, "a self-loop is no neighbour"


@pytest.mark.parametrize("sparse", [False, True])
def test_with_every_neighbour_the_output_is_that_of_the_whole_graph(sparse: bool) -> None:
    """GIN sums over neighbours, so that no degree outside the surroundings matters."""
    data = tiny_data(sparse=sparse)
    x = scipy_features(data.x) if sparse else data.x
    graph = MessageGraph(x, data.edge_index)
    model = gin(8, 4, layers=2, width=5, eps=0.0, batch_norm=False, dropout=0.0, head="linear").eval()
    centres = torch.tensor([5, 17, 5, 59, 30])
    pack = ego_graphs(graph, centres, (60, 60), lowest)
    alone = MessageGraph(scipy_features(pack.x) if sparse else pack.x, pack.edge_index)
    with torch.no_grad():
        torch.testing.assert_close(model(alone, pack.node_start[:-1]), model(graph, centres))


def test_packs_are_taken_and_joined() -> None:
    pack = ego_graphs(path(), torch.tensor([3, 0, 5]), (1, 1), lowest)
    again = pack.take(torch.tensor([2])).joined([pack.take(torch.tensor([0, 1])), pack.take(torch.tensor([], dtype=torch.int64))])
    assert parts(again) == [parts(pack)[i] for i in (2, 0, 1)]
    back = Pack.of(again.payload())
    assert parts(back) == parts(again)
