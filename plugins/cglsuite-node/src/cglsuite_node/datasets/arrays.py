"""Functions shared by the loaders: they convert raw files to cached arrays in canonical form, and arrays to
:class:`cglsuite.graphs.NodeData`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from cglsuite.base import datafiles
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, node_data
from cglsuite_node.datasets.specs import SIZES

Array = np.ndarray[Any, Any]

READER = 1  # part of the cache key: increment it when the output of a reader or of `node_arrays` changes
#: What readers raise on damaged files, including PyG and pickle.
UNREADABLE = (*datafiles.UNREADABLE, AttributeError, AssertionError, RuntimeError, pickle.UnpicklingError)


def load(
    root: DataRoot,
    name: str,
    files: Mapping[str, Path],
    read: Callable[[Path], dict[str, Array]],
    hyperparameters: Mapping[str, object] | None = None,
    hashes: Mapping[str, str] | None = None,
) -> NodeData:
    """Load the dataset ``name``, from ``files`` the first time and from the cache afterwards.

    Args:
        root: the data root, which contains the caches.
        name: the dataset's name, a key of ``SIZES``.
        files: maps names below the data root to paths, for all files that ``read`` reads.
        read: makes the arrays (:func:`cglsuite.graphs.node_arrays`) from a separate folder that contains ``files``.
        hyperparameters: further inputs of ``read``, as JSON types.
        hashes: SHA-256 (hex) by name of files already read; default: the hashes of ``files``.

    Raises:
        DataError: a file is truncated or malformed, or the sizes are not the dataset's; the message names the files.
    """
    key: dict[str, object] = {"reader": READER, "files": dict(hashes or {r: root.sha256(path) for r, path in files.items()})}
    if hyperparameters:
        key["settings"] = dict(hyperparameters)

    def build() -> dict[str, Array]:
        with root.stage(files) as folder, warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")  # silence third-party readers' warnings and progress
            try:
                for path in files.values():
                    if path.suffix == ".npz":
                        # NumPy leaves a truncated archive open; zipfile does not.
                        zipfile.ZipFile(path).close()
                return read(folder)
            except UNREADABLE as error:
                raise DataError(_unreadable(name, files, error)) from error
            except DataError as error:
                if any(str(path) in str(error) for path in files.values()):
                    raise
                raise DataError(f"{name}: {error} (read from {', '.join(map(str, files.values()))})") from error

    arrays = root.derived(name, key, build)
    try:
        data = node_data(name, arrays, SIZES[name].classes)
        if root.verify:
            _check_sizes(data, name)
    except DataError as error:
        raise DataError(f"{error} (read from {', '.join(map(str, files.values()))})") from error
    return data


def both_ways(pairs: Array) -> Array:
    """Return undirected ``pairs`` (integers [2, M]) in both directions, int64 [2, 2M]. Duplicates are removed later."""
    pairs = np.asarray(pairs).astype(np.int64, copy=False)
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def binary(table: Array, what: str) -> Array:
    """Convert a table of zeros and ones to a bool array of the same shape.

    Raises:
        DataError: any other value; the message names it and its row, and ``what`` a row is.
    """
    bad = (table != 0) & (table != 1)
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(len(table), -1).any(axis=1))[0])
        value = table[row][bad[row]].flat[0] if table.ndim > 1 else table[row]
        raise DataError(f"{what} {row} has the value {value}; expected 0 or 1")
    return cast(Array, table.astype(np.bool_))


def _check_sizes(data: NodeData, name: str) -> None:
    expected = SIZES[name]
    sizes = expected._replace(nodes=data.n_nodes, features=data.n_features)
    if expected.edges is not None:
        sizes = sizes._replace(edges=data.edge_index.shape[1])
    if sizes != expected:
        raise DataError(f"{name}: found {sizes}; expected {expected}. These files do not belong to this dataset")


def _unreadable(name: str, files: Mapping[str, Path], error: BaseException) -> str:
    """The damaged file among several; called only after a failure, because it reads them all."""
    damaged = [f"{path} ({reason})" for path in files.values() if (reason := _damage(path))]
    blame = f"damaged: {'; '.join(damaged)}" if damaged else f"among {', '.join(map(str, files.values()))}"
    return f"{name} cannot be read ({type(error).__name__}: {error}); {blame}. Replace the file, or remove it to have it downloaded"


def _damage(path: Path) -> str | None:
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                bad = archive.testzip()
            return f"bad checksum of {bad}" if bad else None
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                while stream.read(1 << 20):
                    pass
    except UNREADABLE as error:
        return str(error) or type(error).__name__
    return None
