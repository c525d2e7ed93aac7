"""Propagation on a hand-written graph of four nodes: 0 ⇄ 1, 1 → 2, 0 → 2, a self-loop at 2, and node 3 alone."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.base.errors import SpecError
from cglsuite.graphs import MessageGraph, SparseMatrix, message
from cglsuite.graphs.message import Operator, scipy_features
from cglsuite.graphs.splits.partition import symmetrised

EDGES = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 2, 2]])
HIDDEN = torch.tensor([[1.0, 0.5], [10.0, 0.25], [100.0, 2.0], [1000.0, 4.0]])
NONE = torch.empty(2, 0, dtype=torch.int64)


def graph(edges: torch.Tensor = EDGES, n: int = 4) -> MessageGraph:
    return MessageGraph(torch.eye(n), edges)


@pytest.mark.parametrize("edges", [EDGES, EDGES[:, [4, 2, 3, 0, 1]]], ids=["as written", "in another order"])
def test_sum_by_hand(edges: torch.Tensor) -> None:
    """Node 2 hears 0 and 1 and, its self-loop being dropped, not itself; node 3 hears nobody."""
    assert graph(edges).propagate("sum", HIDDEN).tolist() == [[10.0, 0.25], [1.0, 0.5], [11.0, 0.75], [0.0, 0.0]]


def test_sum_self_by_hand() -> None:
    """An existing self-loop does not count twice."""
    assert graph().propagate("sum-self", HIDDEN).tolist() == [[11.0, 0.75], [11.0, 0.75], [111.0, 2.75], [1000.0, 4.0]]


def test_symmetric_normalisation_by_hand() -> None:
    """Row sums of A + I: 2, 2, 3, 1."""
    out = graph().propagate("sym", HIDDEN)
    six = math.sqrt(6)
    expected = [[5.5, 0.375], [5.5, 0.375], [11 / six + 100 / 3, 0.75 / six + 2 / 3], [1000.0, 4.0]]
    torch.testing.assert_close(out, torch.tensor(expected))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_operators_equal_dense_matrices(n: int, pairs: set[tuple[int, int]]) -> None:
    kept = [(a, b) for a, b in sorted(pairs) if a < n and b < n]
    edges = torch.tensor(kept, dtype=torch.int64).view(-1, 2).T
    adjacency = torch.zeros(n, n)
    for source, target in kept:
        if source != target:
            adjacency[target, source] = 1
    own = adjacency + torch.eye(n)
    scale = torch.diag(own.sum(dim=1).pow(-0.5))
    hidden = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
    made = graph(edges, n)
    for kind, dense in (("sum", adjacency), ("sum-self", own), ("sym", scale @ own @ scale)):
        torch.testing.assert_close(made.propagate(kind, hidden), dense @ hidden)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["sum", "sum-self", "sym"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 9), (30, 40), (200, 3000)])
def test_sorted_edges_make_the_operator_of_large_graphs_to_the_bit(n: int, m: int, kind: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """With parallel edges, self-loops and nodes that hear nobody; values, indices and their dtypes."""
    edges = torch.randint(0, n, (2, m), generator=torch.Generator().manual_seed(n + m))
    edges = torch.cat([edges, edges[:, : m // 3]], dim=1)
    by_sorting = graph(edges, n).operator(kind, "cpu")
    monkeypatch.setattr(message, "_SORTED", -1)
    monkeypatch.delattr(message, "sorted_operator")
    by_counting = graph(edges, n).operator(kind, "cpu")
    if by_counting is None or by_sorting is None:
        assert by_counting is by_sorting
        assert n == 1
        return
    for one, other in ((by_sorting.csr, by_counting.csr), (by_sorting._columns, by_counting._columns)):
        assert torch.equal(one.crow_indices(), other.crow_indices())
        assert torch.equal(one.col_indices(), other.col_indices())
        assert one.values().numpy().tobytes() == other.values().numpy().tobytes()
    assert torch.equal(by_sorting._permutation, by_counting._permutation)


@pytest.mark.nightly
def test_small_matrices_are_made_without_a_warning() -> None:
    """Torch's own, which come once per process, are not heard."""
    code = "import torch, warnings; warnings.simplefilter('error'); from cglsuite.graphs import MessageGraph; "
    code += "print(MessageGraph(torch.eye(3), torch.tensor([[0, 1], [1, 2]])).operator('sym', 'cpu').nnz)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "5\n"


@pytest.mark.parametrize("edges", [NONE, torch.tensor([[1, 2], [1, 2]])], ids=["no edges", "self-loops only"])
def test_without_proper_edges_sums_vanish_and_self_terms_stay(edges: torch.Tensor) -> None:
    made = graph(edges)
    assert made.propagate("sum", HIDDEN).tolist() == torch.zeros(4, 2).tolist()
    assert made.propagate("sum-self", HIDDEN).tolist() == HIDDEN.tolist()
    assert made.propagate("sym", HIDDEN).tolist() == HIDDEN.tolist()
    assert made.edges_with_loops.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_edges_with_loops_has_one_loop_per_node() -> None:
    assert graph().edges_with_loops.tolist() == [[0, 1, 1, 0, 0, 1, 2, 3], [1, 0, 2, 2, 0, 1, 2, 3]]


def test_operators_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    original = MessageGraph.operator
    monkeypatch.setattr(MessageGraph, "operator", lambda self, kind, device: (prepared.append(kind), original(self, kind, device))[1])
    made = graph()
    before = made.bytes()
    for _ in range(3):
        made.propagate("sym", HIDDEN)
    assert prepared == ["sym"]
    assert before == 4 * 4 * 4 + 5 * 2 * 8
    assert made.bytes() > before


@pytest.mark.parametrize("edges", [EDGES, NONE])
def test_an_unknown_operator_is_refused(edges: torch.Tensor) -> None:
    with pytest.raises(SpecError, match="unknown propagation 'mean'; expected 'sum', 'sum-self' or 'sym'"):
        graph(edges).propagate("mean", HIDDEN)  # type: ignore[arg-type]


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_and_isolated_copies(sparse: bool) -> None:
    x = torch.tensor([[1.0, 0], [0, 2], [3, 0], [0, 0]])
    made = MessageGraph(scipy.sparse.csr_matrix(x.numpy()) if sparse else x, EDGES)
    assert (made.n_nodes, made.n_edges, made.n_features) == (4, 5, 2)
    rows = made.rows(torch.tensor([2, 0, 2]))
    assert isinstance(rows, torch.Tensor) is not sparse
    np.testing.assert_array_equal(rows.toarray() if sparse else rows.numpy(), [[3, 0], [1, 0], [3, 0]])
    alone = made.isolated(torch.tensor([2, 0, 2]))
    assert (alone.n_nodes, alone.n_edges) == (3, 0)
    assert isinstance(alone.features, SparseMatrix) is sparse
    np.testing.assert_array_equal(
        alone.features.csr.to_dense() if isinstance(alone.features, SparseMatrix) else alone.features, x[[2, 0, 2]]
    )


def test_scipy_features_shares_memory() -> None:
    x = torch.tensor([[1.0, 0], [0, 2]]).to_sparse_csr()
    view = scipy_features(x)
    np.testing.assert_array_equal(view.toarray(), [[1, 0], [0, 2]])
    assert np.shares_memory(view.data, x.values().numpy())


def test_gradients_flow_along_reversed_edges() -> None:
    """d(out_2)/dh by hand under ``sum``: nodes 0 and 1."""
    hidden = HIDDEN.clone().requires_grad_()
    graph().propagate("sum", hidden)[2].sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def operator_as_before(n: int, edges: torch.Tensor, kind: str) -> scipy.sparse.csr_matrix:
    """The operator, by the shortest way and with 64-bit indices."""
    source, target = edges.numpy()
    proper = source != target
    loops = np.arange(n if kind != "sum" else 0)
    source, target = np.concatenate([source[proper], loops]), np.concatenate([target[proper], loops])
    adjacency = scipy.sparse.csr_matrix((np.ones(source.size, np.float32), (target, source)), (n, n))
    if kind == "sym":
        scale = 1.0 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel())
        adjacency.data *= np.repeat(scale, np.diff(adjacency.indptr))
        adjacency.data *= scale[adjacency.indices]
    return adjacency


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30),
    st.sampled_from(["sum", "sum-self", "sym"]),
    st.sampled_from(["given", "unique", "both ways"]),
    st.booleans(),
    st.integers(1, 5),
)
def test_operators_are_the_same_in_every_bit(
    n: int, pairs: list[tuple[int, int]], kind: Operator, form: str, sampled: bool, block: int
) -> None:
    """Sorted or not, with parallel edges or without, whether in-neighbours were prepared before or not, block by block."""
    edges = torch.tensor([pair for pair in pairs if max(pair) < n], dtype=torch.int64).view(-1, 2).T
    if form == "unique" and edges.numel():
        edges = edges.unique(dim=1)
    elif form == "both ways":
        edges = symmetrised(edges, n)
    whole = MessageGraph(torch.zeros(n, 1), edges)
    if sampled:
        _ = whole.in_neighbours
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "_BLOCK", block)
        made = whole.operator(kind, "cpu")
    expected = operator_as_before(n, edges, kind)
    if made is None:
        assert not (edges[0] != edges[1]).any()
        return
    assert made.csr.col_indices().dtype == torch.int32
    for found, wanted in zip((made.csr.crow_indices(), made.csr.col_indices(), made.values), _parts(expected), strict=True):
        assert found.tolist() == wanted.tolist()
    hidden = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    plain = SparseMatrix(expected)
    for matrices in ((made, plain), (made.with_values(made.values * 2), plain.with_values(plain.values * 2))):
        products = []
        for matrix in matrices:
            given_hidden = hidden.clone().requires_grad_()
            product = matrix @ given_hidden
            product.square().sum().backward()
            products.append((product.detach(), given_hidden.grad))
        assert torch.equal(products[0][0], products[1][0])
        assert torch.equal(products[0][1], products[1][1])  # type: ignore[arg-type]


def _parts(matrix: scipy.sparse.csr_matrix) -> tuple[Any, Any, Any]:
    return matrix.indptr, matrix.indices, matrix.data


def test_operators_with_short_indices_join_and_move_like_others() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    first, second = (MessageGraph(torch.zeros(3, 1), part).operator("sum-self", "cpu") for part in (edges, edges.flip(0)))
    assert first is not None
    assert second is not None
    joined = SparseMatrix.joined([first, second], diagonal=True)
    assert joined.csr.to_dense().tolist() == torch.block_diag(first.csr.to_dense(), second.csr.to_dense()).tolist()
    assert joined.csr.col_indices().dtype == torch.int64
    assert first.bytes() < SparseMatrix(scipy.sparse.csr_matrix(first.csr.to_dense().numpy())).bytes()
