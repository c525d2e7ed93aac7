"""Graphs with other features, and subgraphs by breadth-first search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch

from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph, PackedSource, SparseMatrix, replaced, subgraphs
from cglsuite.graphs.altered import graph_of_nodes, masked_rows, permuted_rows

PATH = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 1, 2, 3, 4]])


def path(x: object = None) -> MessageGraph:
    return MessageGraph(torch.eye(6) if x is None else x, PATH)  # type: ignore[arg-type]


def packed() -> object:
    """A path of three nodes, a single node, and a triangle."""
    edges = torch.tensor([[0, 1, 1, 2, 4, 5, 6, 5, 6, 4], [1, 0, 2, 1, 5, 6, 4, 4, 5, 6]])
    source = PackedSource(torch.arange(14.0).view(7, 2), edges, torch.tensor([3, 1, 3]), edge_attr=torch.arange(10.0).view(10, 1))
    return source.training(torch.arange(3), 0, "cpu")


def test_operators_are_shared_and_features_are_new() -> None:
    graph = path()
    before = graph.prepared("sym")
    other = replaced(graph, 2 * torch.eye(6))
    assert other.prepared("sym") is before
    assert torch.equal(other.dense, 2 * torch.eye(6))
    assert torch.equal(graph.dense, torch.eye(6))
    assert other.edge_index is graph.edge_index


def test_dense_features_are_converted_once_per_graph_even_if_asked_before() -> None:
    graph = path(scipy.sparse.identity(6, np.float32, "csr"))
    assert torch.equal(graph.dense, torch.eye(6))
    assert torch.equal(replaced(graph, torch.ones(6, 6)).dense, torch.ones(6, 6))


def test_gradients_reach_the_features() -> None:
    x = torch.ones(6, 2, requires_grad=True)
    replaced(path(), x).propagate("sum", replaced(path(), x).features).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad[:, 0], torch.tensor([1.0, 2.0, 2.0, 2.0, 2.0, 1.0]))  # the degrees


def test_a_set_of_graphs_pools_the_new_features() -> None:
    graphs: object = packed()
    other = replaced(graphs, torch.ones(7, 2))
    assert torch.equal(other.mean_features(), torch.ones(3, 2))
    assert torch.equal(graph_of_nodes(other), torch.tensor([0, 0, 0, 1, 2, 2, 2]))


def test_another_number_of_nodes_is_refused() -> None:
    with pytest.raises(SpecError, match="features have 5 rows; expected 6, one per node"):
        replaced(path(), torch.ones(5, 2))


@pytest.mark.parametrize("seed", range(8))
def test_a_search_keeps_the_nearest_nodes(seed: int) -> None:
    """On a path that is an interval around the start, unless it ends before."""
    part, kept = subgraphs(path(), 0.5, torch.Generator().manual_seed(seed))
    assert kept.tolist() == list(range(int(kept[0]), int(kept[0]) + 3))
    assert torch.equal(part.dense, torch.eye(6)[kept])
    assert part.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]] or sorted(zip(*part.edge_index.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1)
    ]  # fmt: skip


def test_starts_differ_and_everything_may_be_kept() -> None:
    draws = torch.Generator().manual_seed(0)
    assert len({tuple(subgraphs(path(), 0.3, draws)[1].tolist()) for _ in range(40)}) > 3
    part, kept = subgraphs(path(), 1.0, draws)
    assert kept.tolist() == [0, 1, 2, 3, 4, 5]
    assert part.n_edges == 10


def test_where_the_search_ends_others_are_taken_at_random() -> None:
    apart = MessageGraph(torch.eye(6), torch.tensor([[0, 1], [1, 0]]))
    for seed in range(10):
        assert len(subgraphs(apart, 0.5, torch.Generator().manual_seed(seed))[1]) == 3


def test_every_graph_of_a_set_is_cut_by_itself() -> None:
    graphs: object = packed()
    for seed in range(10):
        part, kept = subgraphs(graphs, 0.6, torch.Generator().manual_seed(seed))
        assert len(part) == 3
        assert torch.equal(graph_of_nodes(part), torch.tensor([0, 0, 1, 2, 2]))
        assert torch.equal(part.features, torch.arange(14.0).view(7, 2)[kept])
        assert (
            part.edge_features.shape[0]
            == part.edge_index.shape[1]
            == (4 if {0, 1} <= set(kept.tolist()) or {1, 2} <= set(kept.tolist()) else 2)
        )


@pytest.mark.parametrize("keep", [0.0, -1.0, 1.1])
def test_a_share_that_is_none_is_refused(keep: float) -> None:
    with pytest.raises(SpecError, match="expected a fraction in \\(0, 1\\]"):
        subgraphs(path(), keep, torch.Generator())


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_exchanged_and_masked_in_either_form(sparse: bool) -> None:
    x = torch.arange(1.0, 13.0).view(6, 2)
    given = SparseMatrix(scipy.sparse.csr_matrix(x.numpy())) if sparse else x
    order, kept = torch.tensor([5, 4, 3, 2, 1, 0]), torch.tensor([True, False, True, True, False, True])

    def shown(features: object) -> torch.Tensor:
        return features.csr.to_dense() if isinstance(features, SparseMatrix) else features  # type: ignore[return-value]

    assert torch.equal(shown(permuted_rows(given, order)), x[order])
    assert torch.equal(shown(masked_rows(given, kept)), x * kept.unsqueeze(1))
