"""Indicators of categorical columns, against embedding tables, and categories that are refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from cglsuite.base.errors import DataError
from cglsuite.graphs.categories import one_hot

SIZES = (2, 3)
COLUMNS = torch.tensor([[1, 0], [0, 2], [1, 1]])


def test_by_hand() -> None:
    expected = [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0]]
    assert one_hot(COLUMNS, SIZES, "tiny", sparse=False).tolist() == expected
    sparse = one_hot(COLUMNS, SIZES, "tiny")
    assert sparse.layout == torch.sparse_csr
    assert sparse.dtype == torch.float32
    assert sparse.to_dense().tolist() == expected


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 6), st.integers(0, 99))
def test_a_linear_map_is_a_sum_of_embeddings(sizes: list[int], n: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    columns = torch.stack([torch.randint(0, k, (n,), generator=generator) for k in sizes], dim=1)
    tables = [torch.randn(k, 3, generator=generator) for k in sizes]
    expected = sum(functional.embedding(columns[:, i], table) for i, table in enumerate(tables))
    for sparse in (False, True):
        indicators = one_hot(columns, sizes, "tiny", sparse=sparse)
        assert indicators.shape == (n, sum(sizes))
        torch.testing.assert_close(indicators.to_dense() @ torch.cat(tables), expected)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([[0, 0], [1, 3]], r"bonds: row 1 has category 3 in column 1; expected 0\.\.2; assign a separate id to unknown categories"),
        ([[-1, 0]], r"bonds: row 0 has category -1 in column 0; expected 0\.\.1"),
        ([[0], [1]], r"bonds: categories are torch.int64 \[2, 1\]; expected int64 \[n, 2\]"),
        ([[0.0, 1.0]], r"bonds: categories are torch.float32 \[1, 2\]; expected int64"),
        ([0, 1], r"bonds: categories are torch.int64 \[2\]; expected int64"),
    ],
)
def test_what_is_refused(columns: list[list[float]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        one_hot(torch.tensor(columns), SIZES, "bonds")
