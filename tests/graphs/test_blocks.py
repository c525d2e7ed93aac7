"""Matrices over packed graphs that are cut out of one, against the same matrices made anew."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.blocks import BlockDiagonal, SideBySide, members
from cglsuite.graphs.pack import Pack

SIZES = torch.tensor([3, 1, 4, 2])
START = torch.tensor([0, 3, 4, 8, 10])
EDGES = torch.tensor([[0, 1, 1, 2, 4, 5, 6, 7, 7, 8, 9], [1, 0, 2, 1, 5, 6, 7, 4, 7, 9, 8]])  # a self-loop at 7; graph 1 has no edge
PACK = Pack(x=torch.eye(10), edge_index=EDGES, node_start=START, edge_start=torch.tensor([0, 4, 4, 9, 11]))


def same_matrix(one: SparseMatrix, other: SparseMatrix) -> None:
    assert one.shape == other.shape
    for mine, theirs in ((one._rows, other._rows), (one._columns, other._columns)):
        for part in ("crow_indices", "col_indices", "values"):
            assert torch.equal(getattr(mine, part)(), getattr(theirs, part)())
    assert torch.equal(one._permutation, other._permutation)


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
@given(ids=st.lists(st.integers(0, 3), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_blocks_that_are_taken_equal_the_matrix_of_the_graphs_packed_anew(kind: Any, ids: list[int]) -> None:
    """Values to the bit, the transpose for the backward pass included; graphs may come twice."""
    whole = MessageGraph(PACK.x, PACK.edge_index).operator(kind, "cpu")
    assert whole is not None
    taken = BlockDiagonal(whole, START).take(torch.tensor(ids), "cpu")
    part = PACK.take(torch.tensor(ids))
    anew = MessageGraph(part.x, part.edge_index).operator(kind, "cpu")
    if anew is None:  # only graph 1, several times: nobody hears another
        assert taken.nnz == (0 if kind == "sum" else len(ids))
    else:
        same_matrix(taken, anew)


def test_members_by_hand() -> None:
    made = members(START, "cpu")
    expected = torch.zeros(4, 10)
    for graph, (begin, end) in enumerate(zip(START[:-1].tolist(), START[1:].tolist(), strict=True)):
        expected[graph, begin:end] = 1
    assert torch.equal(made.csr.to_dense(), expected)
    hidden = torch.randn(10, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    torch.testing.assert_close(made @ hidden, expected @ hidden)
    (gradient,) = torch.autograd.grad((made @ hidden * torch.arange(4.0).unsqueeze(1)).sum(), hidden)
    assert gradient[:, 0].tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 3, 3]


LOOPED = MessageGraph(torch.randn(3, 2), torch.tensor([[0, 1, 1, 1, 2], [1, 0, 1, 2, 1]]))  # a self-loop at 1
LONELY = MessageGraph(torch.randn(2, 2), torch.empty(2, 0, dtype=torch.int64))
DOUBLED = MessageGraph(torch.randn(3, 2), torch.tensor([[0, 0, 2], [2, 2, 0]]))  # a parallel edge


def as_sparse(graph: MessageGraph) -> MessageGraph:
    assert isinstance(graph.features, torch.Tensor)
    return MessageGraph(scipy.sparse.csr_matrix(graph.features.numpy()), graph.edge_index)


@pytest.mark.parametrize("sparse", [False, True])
@given(parts=st.lists(st.sampled_from([LOOPED, LONELY, DOUBLED]), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_graphs_side_by_side_equal_the_graph_of_all_their_nodes(sparse: bool, parts: list[MessageGraph]) -> None:
    """Features, edges, and operators with their transposes, to the bit; graphs may come twice and may have no edges."""
    joined = SideBySide([as_sparse(g) for g in parts] if sparse else parts)
    edges = torch.cat([g.edge_index + start for g, start in zip(parts, joined.starts, strict=False)], dim=1)
    x = torch.cat([g.dense for g in parts])
    anew = MessageGraph(scipy.sparse.csr_matrix(x.numpy()) if sparse else x, edges)
    assert torch.equal(joined.dense, anew.dense)
    assert (joined.n_nodes, joined.n_edges) == (anew.n_nodes, anew.n_edges)
    assert torch.equal(joined.edge_index, anew.edge_index)
    assert torch.equal(joined.edges_with_loops, anew.edges_with_loops)
    for kind in ("sum", "sum-self", "sym"):
        mine, theirs = joined.operator(kind, "cpu"), anew.operator(kind, "cpu")
        if mine is None or theirs is None:
            assert mine is theirs
        elif kind != "sum":  # where a lonely graph has no row in A, it has explicit zeros here
            same_matrix(mine, theirs)
        assert torch.equal(joined.propagate(kind, x), anew.propagate(kind, x))


def test_a_transpose_is_made_on_first_use() -> None:
    """Not for graphs that are only evaluated; then equal to the transposed matrix."""
    matrix = SparseMatrix(scipy.sparse.random(5, 4, 0.5, "csr", random_state=0))
    dense = torch.randn(4, 3)
    with torch.no_grad():
        product = matrix @ dense
    assert not {"_columns", "_permutation"} & vars(matrix).keys()
    dense.requires_grad_()
    again = matrix @ dense
    assert torch.equal(again, product)
    again.sum().backward()
    assert "_columns" in vars(matrix)
    assert "_permutation" not in vars(matrix)  # only other values need it
    assert torch.equal(matrix._columns.to_dense(), matrix.csr.to_dense().T)
    tensors = (*((m.crow_indices(), m.col_indices(), m.values()) for m in (matrix.csr, matrix._columns)), (matrix._permutation,))
    assert matrix.bytes() == sum(t.numel() * t.element_size() for group in tensors for t in group)
