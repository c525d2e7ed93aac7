"""One-hot encoding of categorical columns. A linear layer applied to it sums one embedding per column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.base.errors import DataError
from cglsuite.graphs.message import torch_csr


def one_hot(columns: Tensor, sizes: Sequence[int], name: str, *, sparse: bool = True) -> Tensor:
    """One-hot encode categorical columns and concatenate them. ``one_hot(x) @ W`` is ``Σ_k W_k[x_k]``, a sum of embeddings.

    This is OGB's encoder for atoms and bonds (Hu et al. 2020), where W stacks the embedding tables W_k.

    Args:
        columns: int64 [n, K], category ids. sizes: number of categories in each of the K columns.
        name: the dataset's name, used in error messages.
        sparse: whether to return CSR (for node features) or dense (for edge features).

    Returns:
        float32 [n, Σ sizes] with K ones per row.

    Raises:
        DataError: the dtype or shape is wrong, or a category is outside its column's range 0..size-1.

    Example:
        >>> one_hot(torch.tensor([[1, 0], [0, 2]]), (2, 3), "bonds", sparse=False).tolist()
        [[0.0, 1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0]]
    """
    if columns.dtype != torch.int64 or columns.dim() != 2 or columns.shape[1] != len(sizes):
        raise DataError(f"{name}: categories are {columns.dtype} {list(columns.shape)}; expected int64 [n, {len(sizes)}]")
    limits = torch.tensor(sizes, dtype=torch.int64)
    if bool((bad := (columns < 0) | (columns >= limits)).any()):
        row, column = bad.nonzero()[0].tolist()
        raise DataError(
            f"{name}: row {row} has category {int(columns[row, column])} in column {column}; expected 0..{sizes[column] - 1}; assign a "
            "separate id to unknown categories in the loader"
        )
    n, width = len(columns), int(limits.sum())
    places = columns + (limits.cumsum(0) - limits)
    if not sparse:
        return torch.zeros(n, width).scatter_(1, places, 1.0)
    parts = (np.ones(places.numel(), np.float32), places.flatten().numpy(), np.arange(n + 1) * len(sizes))
    return torch_csr(scipy.sparse.csr_matrix(parts, shape=(n, width)))
