"""Sparse-dense products with a stored transpose, used for aggregation and sparse input features instead of scatter operations.

``S @ H`` with S in CSR is about four times faster than gather-and-scatter on a CPU. The backward pass multiplies by the stored transpose.
It is itself differentiable and supports batching, so second-order and per-item gradients work.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.graphs.upload import uploaded

_PIECE = 2**24
"""The number of edges compared at a time."""
_PROBE = 64


class SparseMatrix:
    """A constant sparse float32 matrix [n, m] for products with dense matrices.

    Args:
        matrix: any SciPy sparse matrix. It is converted to canonical form (sorted, duplicates summed).
        device: the device on which products are computed.
        compact: on a CPU, keep 32-bit indices if the SciPy matrix has them. Products are bit-identical and take a third less memory; MKL,
            which computes them, otherwise converts 64-bit indices to 32 bits each time.
    """

    def __init__(self, matrix: scipy.sparse.spmatrix, device: str | torch.device = "cpu", *, compact: bool = False) -> None:
        forward = scipy.sparse.csr_matrix(matrix, dtype=np.float32)
        forward.sum_duplicates()
        index = np.int32 if compact and torch.device(device).type == "cpu" and forward.indices.dtype == np.int32 else np.int64
        self._begin(forward.indptr, forward.indices, forward.data, (int(forward.shape[0]), int(forward.shape[1])), device, index)

    @classmethod
    def canonical(
        cls, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], device: str | torch.device, *, compact: bool = False
    ) -> SparseMatrix:
        """Build a matrix from the arrays of a canonical CSR matrix (sorted within rows, without duplicates)."""
        small = compact and torch.device(device).type == "cpu" and max(*shape, len(indices)) < 2**31
        made = cls.__new__(cls)
        made._begin(indptr, indices, data, shape, device, np.int32 if small else np.int64)
        return made

    def _begin(
        self, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], device: str | torch.device, index: Any = np.int64
    ) -> None:
        """Initialise from the arrays of a canonical matrix."""
        self.shape = shape
        self._rows = _csr(indptr, indices, data, shape, device, index)
        if self._rows.device.type != "cpu":  # created here, because creating it later would wait for the device
            self._columns, self._permutation = _transpose(indptr, indices, data, shape, device, index)

    @classmethod
    def _from_parts(cls, rows: Tensor, columns: Tensor, permutation: Tensor) -> SparseMatrix:
        made = cls.__new__(cls)
        made.shape, made._rows, made._columns, made._permutation = (rows.shape[0], rows.shape[1]), rows, columns, permutation
        return made

    @classmethod
    def joined(cls, parts: Sequence[SparseMatrix], *, diagonal: bool) -> SparseMatrix:
        """Combine several matrices on their device, either along the diagonal or stacked vertically (with m columns each)."""
        crow, col = [torch.zeros(1, dtype=torch.int64, device=parts[0]._rows.device)], []
        stored = columns = 0
        for part in parts:
            crow.append(part._rows.crow_indices()[1:].long() + stored)
            col.append(part._rows.col_indices().long() + columns)
            stored += part.nnz
            columns += part.shape[1] if diagonal else 0
        made = cls.__new__(cls)
        made.shape = (sum(part.shape[0] for part in parts), columns if diagonal else parts[0].shape[1])
        values = torch.cat([part.values for part in parts])
        made._rows = torch.sparse_csr_tensor(torch.cat(crow), torch.cat(col), values, size=made.shape, check_invariants=False)
        return made

    @classmethod
    def identity(cls, n: int, device: str | torch.device = "cpu") -> SparseMatrix:
        """Create the identity matrix [n, n]."""
        return cls(scipy.sparse.identity(n, np.float32, "csr"), device)

    @cached_property
    def _columns(self) -> Tensor:
        """The transpose in CSR. It is computed on first use, because a graph that is only evaluated has no backward pass."""
        indptr, indices, data = self._host
        turned = scipy.sparse.csr_matrix((data, indices, indptr), self.shape).tocsc()
        return _csr(turned.indptr, turned.indices, turned.data, self.shape[::-1], self._rows.device, indices.dtype)

    @cached_property
    def _permutation(self) -> Tensor:
        """The permutation of the values from row order to the transpose's order: int64 [nnz]. It is as large as the transpose."""
        indptr, indices, data = self._host
        columns, permutation = _transpose(indptr, indices, data, self.shape, self._rows.device, indices.dtype)
        vars(self).setdefault("_columns", columns)
        return permutation

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        return int(self._rows.values().shape[0])

    @property
    def values(self) -> Tensor:
        """The stored values in row order: float32 [nnz]."""
        return self._rows.values()

    @property
    def csr(self) -> Tensor:
        """The matrix as a torch sparse CSR tensor."""
        return self._rows

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Return a matrix with the same pattern and new values (float32 [nnz], in row order), as used for dropout on sparse features."""
        rows, permutation = _with(self._rows, values), self._permutation
        return SparseMatrix._from_parts(rows, _with(self._columns, values[permutation]), permutation)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Compute ``self @ dense``: float32 [m, d] to float32 [n, d], differentiable with respect to ``dense``."""
        return _product(self, False, dense)

    @cached_property
    def _host(self) -> tuple[Any, Any, Any]:
        """Row pointers, columns and values as NumPy arrays (views if the matrix is on the CPU)."""
        crow, col = self._rows.crow_indices(), self._rows.col_indices()
        return crow.cpu().numpy(), col.cpu().numpy(), self._rows.values().detach().cpu().numpy()

    def rows(self, ids: Tensor) -> scipy.sparse.csr_matrix:
        """Return the rows ``ids`` (int64 [n], in any order, repeats allowed) on the CPU. The cost depends only on these rows."""
        pointers, columns, values = self._parts(ids)
        return scipy.sparse.csr_matrix((values, columns, pointers), (len(ids), self.shape[1]))

    def taken(self, ids: Tensor) -> SparseMatrix:
        """Return :meth:`rows` as a matrix on the same device."""
        return type(self).canonical(*self._parts(ids), (len(ids), self.shape[1]), self._rows.device)

    def _parts(self, ids: Tensor) -> tuple[Any, Any, Any]:
        """Return the row pointers, columns and values of some rows as NumPy arrays."""
        crow, col, values = self._host
        chosen = ids.cpu().numpy()
        counts = crow[chosen + 1] - crow[chosen]
        slots = spans(crow[chosen], counts)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        return pointers, col[slots], values[slots]

    def to(self, device: str | torch.device) -> SparseMatrix:
        """Return a copy of the matrix on another device, or the matrix itself if it is already there."""
        if _is_there(self._rows, device):
            return self
        permutation = uploaded(self._permutation, device)
        return SparseMatrix._from_parts(_moved(self._rows, device), _moved(self._columns, device), permutation)

    def bytes(self) -> int:
        """Memory used by the matrix, its transpose and the permutation, in bytes: two values, two columns and one position per entry."""
        index = self._rows.col_indices().element_size()
        return self.nnz * (2 * (4 + index) + 8) + (sum(self.shape) + 2) * index


def sorted_csr(edges: Tensor, n_nodes: int) -> scipy.sparse.csr_matrix | None:
    """Build the adjacency matrix (bool [N, N]) of sorted edges (int64 [2, E], on the CPU) in one pass, without sorting.

    Return ``None`` unless the edges ascend by (source, target), without duplicates or self-loops.
    """
    source, target = edges.numpy()
    n_edges = len(source)
    if (source[1:_PROBE] < source[: _PROBE - 1][: max(0, n_edges - 1)]).any():  # most edges that are not in order end here
        return None
    for first in range(0, n_edges, _PIECE):
        before, after = source[first : first + _PIECE], source[first + 1 : first + _PIECE + 1]
        here, there = target[first : first + _PIECE], target[first + 1 : first + _PIECE + 1]
        n = len(after)
        if (before == here).any() or not ((before[:n] < after) | ((before[:n] == after) & (here[:n] < there))).all():
            return None
    index = np.int32 if max(n_nodes, n_edges) < 2**31 else np.int64
    pointers = np.searchsorted(source, np.arange(n_nodes + 1)).astype(index)
    return scipy.sparse.csr_matrix((np.ones(n_edges, np.bool_), target.astype(index), pointers), (n_nodes, n_nodes))


def spans(starts: Any, counts: Any) -> Any:
    """Concatenate the positions of CSR rows: ``starts[0], ..., starts[0] + counts[0] - 1, starts[1], ...`` (integer arrays)."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)


# Torch binds the arguments of a function that can be transformed by inspecting its signature at every call, which costs as much as a small
# product: transforms get that form, everything else the plain one. Without this (private) question every call takes the slower form.
_transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


def _product(matrix: SparseMatrix, transposed: bool, dense: Tensor) -> Tensor:
    if _transforming():
        product: Tensor = _TransformableProduct.apply(matrix, transposed, dense)  # type: ignore[no-untyped-call]
    elif dense.requires_grad and torch.is_grad_enabled():
        product = _Product.apply(matrix, transposed, dense)  # type: ignore[no-untyped-call]
    else:  # a function of autograd costs as much as a small product
        product = _written(matrix._columns if transposed else matrix._rows, dense)
    return product


def _written(sparse: Tensor, dense: Tensor) -> Tensor:
    """Compute ``sparse @ dense`` into an empty output. By default, torch fills one with zeros and copies it, as slow as the product."""
    out = dense.new_empty(sparse.shape[0], dense.shape[1])
    return torch.addmm(out, sparse, dense, beta=0, out=out)


class _Product(torch.autograd.Function):
    """The product ``S @ H`` (or ``Sᵀ @ H``). The backward pass is the same product with the transpose."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, transposed: bool, dense: Tensor) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        return _written(matrix._columns if transposed else matrix._rows, dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _product(ctx.matrix, not ctx.transposed, gradient)


class _TransformableProduct(torch.autograd.Function):
    """A variant of :class:`_Product` for ``torch.func`` transforms."""

    @staticmethod
    def forward(matrix: SparseMatrix, transposed: bool, dense: Tensor) -> Tensor:
        return torch.mm(matrix._columns if transposed else matrix._rows, dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[SparseMatrix, bool, Tensor], output: Tensor) -> None:
        ctx.matrix, ctx.transposed = inputs[0], inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, _product(ctx.matrix, not ctx.transposed, gradient)

    @staticmethod
    def vmap(info: Any, in_dims: Any, matrix: SparseMatrix, transposed: bool, dense: Tensor) -> tuple[Tensor, int]:
        # [B, m, d] -> [m, B * d]: a batch of products is one product with wider columns.
        batched = dense.movedim(in_dims[2], 1)
        m, b, d = batched.shape
        return _product(matrix, transposed, batched.reshape(m, b * d)).reshape(-1, b, d), 1


def _transpose(
    indptr: Any, indices: Any, data: Any, shape: tuple[int, int], device: str | torch.device, index: Any
) -> tuple[Tensor, Tensor]:
    """Compute the transpose of a canonical matrix in CSR, and the permutation of its values: int64 [nnz]."""
    # Converting the positions to CSC gives both.
    places = scipy.sparse.csr_matrix((np.arange(len(data), dtype=np.int64), indices, indptr), shape).tocsc()
    columns = _csr(places.indptr, places.indices, data[places.data], shape[::-1], device, index)
    return columns, uploaded(torch.from_numpy(np.ascontiguousarray(places.data)), device)


def _csr(indptr: Any, indices: Any, data: Any, shape: tuple[int, int], device: str | torch.device, index: Any = np.int64) -> Tensor:
    crow, col = (torch.from_numpy(np.ascontiguousarray(a, dtype=index)) for a in (indptr, indices))
    values = torch.from_numpy(np.ascontiguousarray(data, dtype=np.float32))
    _warn_once()
    return _moved(torch.sparse_csr_tensor(crow, col, values, size=shape, check_invariants=False), device)


@cache
def _warn_once() -> None:
    """Trigger and suppress torch's one-time warnings that CSR tensors are in beta and that invariant checks are off.

    The matrices in this module are canonical. Filtering warnings each time a small matrix is created would take longer than creating it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        nothing = torch.zeros(1, dtype=torch.int64)
        torch.sparse_csr_tensor(nothing, nothing[:0], torch.zeros(0), size=(0, 0), check_invariants=False)


def _moved(matrix: Tensor, device: str | torch.device) -> Tensor:
    """Move a CSR tensor to another device (unchanged if it is already there)."""
    if _is_there(matrix, device):
        return matrix
    there = torch.device(device)
    crow, col = (uploaded(part.long(), there) for part in (matrix.crow_indices(), matrix.col_indices()))
    values = uploaded(matrix.values(), there)
    return torch.sparse_csr_tensor(crow, col, values, size=matrix.shape, check_invariants=False)


def _is_there(x: Tensor, device: str | torch.device) -> bool:
    there = torch.device(device)
    return there.type == x.device.type and there.index in (None, x.device.index)


def _with(matrix: Tensor, values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, size=matrix.shape, check_invariants=False)
