"""Functions shared by the loaders: they convert raw arrays into validated :class:`cglsuite.graphs.NodeData`, with errors that name the
files.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import UNREADABLE
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData
from cglsuite_drift.datasets.specs import SIZES

Array = np.ndarray[Any, Any]
_SPARSE_BELOW = 0.05  # the share of non-zero features below which products with CSR are faster


@contextmanager
def reading(name: str, *files: Path) -> Iterator[None]:
    """Convert any error about an unreadable file of the dataset ``name`` into an error that names the file."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{error} (read from {', '.join(map(str, files))})") from error
    except UNREADABLE as error:
        raise DataError(
            f"{name} cannot be read ({type(error).__name__}: {error}). Its files are {', '.join(map(str, files))}: replace the "
            "damaged one, or remove it to have it downloaded"
        ) from error


def read_npz(path: Path, *keys: str) -> list[Array]:
    """Read the named arrays. Raises the errors of NumPy and zipfile for damaged files, and KeyError for a missing array."""
    zipfile.ZipFile(path).close()  # NumPy leaves a truncated archive open; zipfile does not
    with np.load(path, allow_pickle=False) as archive:
        return [archive[key] for key in keys]


def part_codes(masks: Sequence[Array]) -> Array:
    """Encode training, validation and test masks (0 and 1, [N] each) as int8 [N]: 0, 1, 2, or -1 for nodes in none of them.

    Raises:
        DataError: a node is in two parts.
    """
    table = np.stack([mask.astype(bool) for mask in masks])
    if (twice := table.sum(axis=0) > 1).any():
        raise DataError(f"node {int(np.flatnonzero(twice)[0])} is in more than one part of the split")
    codes: Array = np.where(table.any(axis=0), table.argmax(axis=0), -1).astype(np.int8)
    return codes


def node_data(
    name: str, *, x: Array, edges: Array, y: Array, split: Array | None = None, both_ways: bool, loops: bool = True, verify: bool
) -> NodeData:
    """Build the dataset, with CSR features if they are sparse, and with edges sorted by (source, target) and without duplicates.

    Args:
        name: a key of ``SIZES``.
        x: numbers [N, F]. edges: integers [2, E]. y: integers [N].
        split: int8 [N] as :func:`part_codes` makes it.
        both_ways: whether to add the reverse of every edge.
        loops: whether self-loops are kept.
        verify: whether sizes must agree with ``SIZES``.

    Raises:
        DataError: inconsistent shapes or values, or the sizes of another dataset.
    """
    n = len(y)
    source, target = edges.astype(np.int64)
    if edges.size and not (edges.min() >= 0 and edges.max() < n):
        raise DataError(f"{name}: edges refer to nodes {edges.min()}..{edges.max()}; expected 0..{n - 1}")
    keys = source * n + target
    if both_ways:
        keys = np.concatenate([keys, target * n + source])
    ends = np.stack(np.divmod(np.unique(keys), n))
    data = NodeData(
        x=_features(x),
        edge_index=torch.from_numpy(ends if loops else ends[:, ends[0] != ends[1]]),
        y=torch.from_numpy(y.astype(np.int64)),
        n_classes=SIZES[name].classes,
        official_split=None if split is None else torch.from_numpy(split),
        name=name,
    )
    sizes = SIZES[name]._replace(nodes=data.n_nodes, edges=data.edge_index.shape[1], features=data.n_features)
    if verify and sizes != SIZES[name]:
        raise DataError(f"{name}: found {sizes}; expected {SIZES[name]}. These files do not belong to this dataset")
    return data


def _features(x: Array) -> torch.Tensor:
    features = torch.from_numpy(x.astype(np.float32))
    if np.count_nonzero(x) >= _SPARSE_BELOW * x.size:
        return features
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return features.to_sparse_csr()
