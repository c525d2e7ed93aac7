"""Propagation on a hand-written graph of four nodes: 0 ⇄ 1, 1 → 2, 0 → 2, a self-loop at 2, and node 3 alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.errors import SpecError
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.message import scipy_features

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
    with pytest.raises(SpecError, match="propagation 'mean': expected sum, sum-self or sym"):
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
