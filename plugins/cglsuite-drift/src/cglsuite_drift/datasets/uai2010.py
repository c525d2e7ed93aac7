"""The UAI2010 dataset. It has its own reader because PyG can parse the format but has no class for this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData
from cglsuite_drift.datasets.assemble import Array, node_data, read_npz, reading

_NAME = "uai2010"
_FILE = "UAI2010/uai2010.npz"
_SHA256 = "4165f2857276c7aa64580577488cf76b01757d842ada07fb3369cfa953de723f"
_NOTE = (
    "It is made from https://github.com/EdisonLeeeee/GraphData, datasets/uai.npz: the same arrays without pickles, as npz with adj_*, "
    "attr_* (CSR: data, indices, indptr, shape), labels"
)


def uai2010(root: DataRoot) -> NodeData:
    """Load the UAI2010 dataset, with binary word features (see its spec). Raises DataError if the file is missing or damaged."""
    path = root.file(_FILE, sha256=_SHA256, note=_NOTE)
    with reading(_NAME, path):
        (y,) = read_npz(path, "labels")
        ends, shape = _entries(path, "adj")
        words, (n, width) = _entries(path, "attr")
        if not shape == (len(y), len(y)) == (n, n):
            raise DataError(
                f"{_NAME}: sizes do not match: {len(y)} labels, an adjacency matrix of shape {shape}, and features for {n} nodes"
            )
        x = np.zeros((n, width), dtype=bool)
        x[tuple(words)] = True
        return node_data(_NAME, x=x, edges=ends, y=y, both_ways=True, loops=False, verify=root.verify)


def _entries(path: Path, kind: str) -> tuple[Array, tuple[int, int]]:
    """Rows and columns of the nonzero entries (int64 [2, M]) of a CSR matrix in the file, and its shape.

    Raises:
        ValueError: the three arrays do not form a matrix. DataError: an entry is not a number.
    """
    values, columns, pointers, (height, width) = read_npz(path, *(f"{kind}_{part}" for part in ("data", "indices", "indptr", "shape")))
    if not np.isfinite(values).all():
        raise DataError(f"{_NAME}: {kind}_data contains {int((~np.isfinite(values)).sum())} NaN or infinite values")
    if len(pointers) != height + 1 or not len(values) == len(columns) == pointers[-1]:
        raise ValueError(
            f"{kind}_* contain {len(values)} values in {len(pointers) - 1} rows; expected {pointers[-1]} values in {height} rows"
        )
    rows = np.repeat(np.arange(height), np.diff(pointers))
    return np.stack([rows, columns.astype(np.int64)])[:, values != 0], (int(height), int(width))
