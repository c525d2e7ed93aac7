"""Convert NumPy arrays to a validated :class:`cglsuite.graphs.NodeData`, the last step of node-level loaders."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import NodeData

Array = np.ndarray[Any, Any]


SPARSE_BELOW = 0.05


def node_arrays(
    *,
    x: Array | scipy.sparse.spmatrix,
    edge_index: Array,
    y: Array,
    split: Array | None = None,
    keys: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Convert arrays to the canonical form in which they are cached and hashed.

    Features become float32, in CSR format (sorted columns, no stored zeros) if less than 5% of them are non-zero. Edges are sorted by
    (source, target) and deduplicated. NaN labels become -1.

    Args:
        x: [N, F], dense or sparse.
        edge_index: integers [2, E], directed as in the source. Self-loops are kept.
        y: [N] or [N, 1] class ids, or bool [N, C], the labels of multi-label nodes.
        split: int [N], 0 training, 1 validation, 2 test, -1 none.
        keys: additional integer attributes [N] by name.

    Raises:
        DataError: an edge refers to a node outside the graph, or a label is not an integer.
    """
    n = x.shape[0]
    arrays = _features(x)
    arrays["edge_index"] = _edges(edge_index, n)
    arrays["y"] = y if y.dtype == np.bool_ and y.ndim == 2 else _labels(y)
    if split is not None:
        arrays["split"] = np.asarray(split, dtype=np.int8)
    for name, values in (keys or {}).items():
        arrays[f"key.{name}"] = np.asarray(values).reshape(-1).astype(np.int64)
    return arrays


def node_data(name: str, arrays: Mapping[str, Array], n_classes: int) -> NodeData:
    """Build a validated dataset from the arrays of :func:`node_arrays`.

    Raises:
        DataError: features are NaN, labels are outside ``-1..n_classes-1``, or shapes are inconsistent; see
            :class:`cglsuite.graphs.NodeData`.
    """
    split = arrays.get("split")
    return NodeData(
        x=_feature_tensor(arrays),
        edge_index=_int64(arrays["edge_index"]),
        y=torch.from_numpy(arrays["y"]) if arrays["y"].dtype == np.bool_ else _int64(arrays["y"]),
        n_classes=n_classes,
        official_split=None if split is None else torch.from_numpy(split),
        keys={key.removeprefix("key."): _int64(values) for key, values in arrays.items() if key.startswith("key.")},
        name=name,
    )


def _features(x: Array | scipy.sparse.spmatrix) -> dict[str, Array]:
    if not scipy.sparse.issparse(x):
        dense = np.asarray(x, dtype=np.float32)
        if np.count_nonzero(dense) >= SPARSE_BELOW * dense.size:
            return {"x": np.ascontiguousarray(dense)}
        x = dense
    csr = scipy.sparse.csr_matrix(x, dtype=np.float32)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if csr.nnz >= SPARSE_BELOW * csr.shape[0] * csr.shape[1]:
        return {"x": csr.toarray()}
    return {"x_indptr": csr.indptr, "x_indices": csr.indices, "x_values": csr.data, "x_shape": np.array(csr.shape)}


def _edges(edge_index: Array, n: int) -> Array:
    edges = np.asarray(edge_index)
    if edges.size and not (edges.min() >= 0 and edges.max() < n):
        raise DataError(f"edges refer to nodes {edges.min()}..{edges.max()}; expected 0..{n - 1}")
    key = edges[0].astype(np.int64)
    key *= n
    key += edges[1].astype(np.int64, copy=False)
    key.sort()
    first = np.ones(len(key), np.bool_)  # np.unique takes four times as long
    np.not_equal(key[1:], key[:-1], out=first[1:])
    if not first.all():
        key = key[first]
    # 64 bits, as the dataset has them: what is cached is mapped into memory, not converted.
    out = np.empty((2, len(key)), np.int64)
    np.divmod(key, n, out=(out[0], out[1]))
    return out


def _labels(y: Array) -> Array:
    labels = np.asarray(y).reshape(-1)
    if np.issubdtype(labels.dtype, np.floating):
        labels = np.where(np.isnan(labels), -1, labels)
        if (labels % 1 != 0).any():
            raise DataError(f"the label of node {int(np.flatnonzero(labels % 1)[0])} is not an integer")
    return labels.astype(np.int64)


def _feature_tensor(arrays: Mapping[str, Array]) -> torch.Tensor:
    if "x" in arrays:
        return torch.from_numpy(arrays["x"])
    rows, columns = (int(size) for size in arrays["x_shape"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            _int64(arrays["x_indptr"]),
            _int64(arrays["x_indices"]),
            torch.from_numpy(arrays["x_values"]),
            size=(rows, columns),
            check_invariants=True,
        )


def _int64(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.int64, copy=False))
