"""Sparse products against dense matrices: values, first and second derivatives, batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.graphs import SparseMatrix

# 0 2 0 1
# 0 0 0 0
# 3 0 4 0
HAND = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 4, 0]], dtype=np.float32)


def random_pair(n: int, m: int, seed: int = 0, share: float = 0.4) -> tuple[SparseMatrix, torch.Tensor]:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, m)) < share, rng.standard_normal((n, m)), 0).astype(np.float32)
    return SparseMatrix(scipy.sparse.csr_matrix(dense)), torch.from_numpy(dense)


def test_product_by_hand() -> None:
    product = SparseMatrix(scipy.sparse.csr_matrix(HAND)) @ torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    assert product.tolist() == [[1020.0], [0.0], [403.0]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 4), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 1.0]))
def test_product_and_gradient_equal_dense_ones(n: int, m: int, d: int, seed: int, share: float) -> None:
    sparse, dense = random_pair(n, m, seed, share)
    one = torch.randn(m, d, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    other = one.detach().clone().requires_grad_()
    weight = torch.randn(n, d, generator=torch.Generator().manual_seed(seed + 1))
    torch.testing.assert_close(sparse @ one, dense @ other)
    ((sparse @ one) * weight).sum().backward()
    ((dense @ other) * weight).sum().backward()
    torch.testing.assert_close(one.grad, other.grad)


def test_double_backward_equals_the_dense_one() -> None:
    """A penalty on a gradient norm (as in topology-aware methods) needs the product's derivative to have one itself."""
    sparse, dense = random_pair(5, 4)
    start = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))

    def second(product: SparseMatrix | torch.Tensor) -> torch.Tensor:
        hidden = start.clone().requires_grad_()
        (gradient,) = torch.autograd.grad((product @ hidden).pow(3).sum(), hidden, create_graph=True)
        (out,) = torch.autograd.grad(gradient.pow(2).sum(), hidden)
        return out

    assert second(dense).abs().max() > 0
    torch.testing.assert_close(second(sparse), second(dense))


@pytest.mark.parametrize("place", [0, 1, 2, -1])
def test_vmap_over_any_dimension(place: int) -> None:
    sparse, dense = random_pair(5, 4)
    batch = torch.randn(7, 4, 3, generator=torch.Generator().manual_seed(2))
    moved = batch.movedim(0, place)
    torch.testing.assert_close(torch.func.vmap(lambda h: sparse @ h, in_dims=place)(moved), dense @ batch)


def test_vmap_within_vmap_and_gradients_per_item() -> None:
    sparse, dense = random_pair(5, 4)
    batch = torch.randn(2, 3, 4, 2, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(torch.func.vmap(torch.func.vmap(lambda h: sparse @ h))(batch), dense @ batch)

    hidden = batch[0, 0].clone().requires_grad_()
    directions = torch.eye(10).view(10, 5, 2)

    def rows(product: SparseMatrix | torch.Tensor) -> torch.Tensor:
        out = product @ hidden
        (jacobian,) = torch.func.vmap(lambda v: torch.autograd.grad(out, hidden, v, retain_graph=True))(directions)
        return jacobian

    assert rows(sparse).shape == (10, 4, 2)
    torch.testing.assert_close(rows(sparse), rows(dense))


def test_what_is_not_canonical_is_made_so() -> None:
    """Repeated entries add up, unsorted ones are sorted, other formats and types are converted; the given matrix means what it meant."""
    repeated = scipy.sparse.coo_matrix(([1.0, 1.0, 1.0, 3.0, 4.0], ([0, 0, 0, 2, 2], [1, 3, 1, 0, 2])), (3, 4))
    unsorted = scipy.sparse.csr_matrix((np.array([1, 2, 4, 3], np.float32), np.array([3, 1, 2, 0]), np.array([0, 2, 2, 4])), shape=(3, 4))
    twice = scipy.sparse.csr_matrix(
        (np.array([1, 1, 1, 4, 3], np.float32), np.array([3, 1, 1, 2, 0]), np.array([0, 3, 3, 5])), shape=(3, 4)
    )
    for given_matrix in (repeated, unsorted, twice, scipy.sparse.csc_matrix(HAND.astype(np.float64)), scipy.sparse.csr_matrix(HAND)):
        made = SparseMatrix(given_matrix)
        assert made.nnz == 4
        assert made.csr.to_dense().tolist() == HAND.tolist()
        assert made.values.tolist() == [2, 1, 3, 4]
        assert made.csr.values().dtype == torch.float32
        np.testing.assert_array_equal(given_matrix.toarray(), HAND)


def test_with_values_changes_both_directions_and_leaves_the_original() -> None:
    """The transpose that the backward pass uses must carry the new values too, in its own order."""
    matrix = SparseMatrix(scipy.sparse.csr_matrix(HAND))
    changed = matrix.with_values(torch.tensor([5.0, 6.0, 7.0, 8.0]))
    expected = torch.tensor([[0.0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 8, 0]])
    assert torch.equal(changed.csr.to_dense(), expected)
    hidden = torch.zeros(4, 1, requires_grad=True)
    (changed @ hidden).backward(torch.tensor([[1.0], [10.0], [100.0]]))
    assert hidden.grad is not None
    assert hidden.grad.flatten().tolist() == (expected.T @ torch.tensor([1.0, 10.0, 100.0])).tolist() == [700.0, 5.0, 800.0, 6.0]
    assert matrix.values.tolist() == [2, 1, 3, 4]
    hidden.grad = None
    (matrix @ hidden).backward(torch.tensor([[1.0], [10.0], [100.0]]))
    assert hidden.grad.flatten().tolist() == [300.0, 2.0, 400.0, 1.0]


def test_sizes_devices_and_bytes() -> None:
    matrix = SparseMatrix(scipy.sparse.csr_matrix(HAND))
    assert matrix.shape == (3, 4)
    assert matrix.to("cpu") is matrix
    # Both directions: 4 values of 4 bytes and 4 indices of 8, row pointers of 3 + 1 and 4 + 1 entries; and a permutation of 4.
    assert matrix.bytes() == 2 * 4 * (4 + 8) + (4 + 5) * 8 + 4 * 8
    empty = SparseMatrix(scipy.sparse.csr_matrix((2, 3), dtype=np.float32))
    assert (empty @ torch.ones(3, 2)).tolist() == [[0, 0], [0, 0]]
