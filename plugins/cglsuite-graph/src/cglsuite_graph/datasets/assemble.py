"""Functions shared by the loaders: they name damaged files in errors, store graphs as cached arrays, and turn arrays into datasets."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base import datafiles
from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData, PackedSource, one_hot
from cglsuite_graph.datasets.sizes import Sizes
from cglsuite_graph.datasets.specs import SIZES

Array = np.ndarray[Any, Any]
#: What readers raise on damaged files, including pandas, pyarrow and pickle.
UNREADABLE = (*datafiles.UNREADABLE, AttributeError, RuntimeError, pickle.UnpicklingError)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Categories:
    """Categorical features: integers [N, K], where column k has values in ``0..sizes[k]-1``. Models receive one-hot indicators."""

    columns: Array
    sizes: tuple[int, ...]

    def __getitem__(self, rows: Array) -> Categories:
        """The features of some rows (a mask or positions)."""
        return Categories(self.columns[rows], self.sizes)


Features = Array | Categories


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert any error of a reader inside the ``with`` block into a DataError that names the file."""
    try:
        yield
    except UNREADABLE as error:
        raise DataError(f"{path} is truncated or has the wrong format ({type(error).__name__}: {error}). Replace the file") from error


def start_of(sizes: Array) -> Array:
    """Return the offsets of n consecutive groups of ``sizes``, followed by the end of the last group: int64 [n + 1]."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def both_ways(pairs: Array) -> Array:
    """Return undirected edges (integers [2, B]) in both directions, with the two directions of an edge adjacent: [2, 2 B]."""
    return np.stack([pairs, pairs[::-1]], axis=2).reshape(2, -1)


def taken(sizes: Array, edge_index: Array, chosen: Array) -> tuple[Array, Array, Array]:
    """Select the nodes and edges of the chosen graphs, in order, and renumber the edges.

    Args:
        sizes: nodes of each graph, integers [n]. edge_index: integers [2, E] over all nodes, within graphs.
        chosen: bool [n].

    Returns:
        nodes bool [N], edges bool [E], and integers [2, E'].
    """
    nodes = np.repeat(chosen, sizes)
    edges = nodes[edge_index[0]]
    place = np.cumsum(nodes, dtype=np.int64) - 1
    return nodes, edges, place[edge_index[:, edges]]


def graph_data(
    name: str,
    *,
    x: Features,
    edge_index: Array,
    sizes: Array,
    y: Array,
    n_classes: int,
    edge_attr: Features | None = None,
    known: Array | None = None,
    split: Array | None = None,
    keys: Mapping[str, Array] | None = None,
    notes: Mapping[str, int] | None = None,
) -> GraphData:
    """Build and validate the dataset, as the last step of every loader.

    Args:
        x: features of all nodes, graph by graph: numbers [N, F], or categories, which become sparse indicators.
        edge_index: integers [2, E], directed edges numbered over all nodes. edge_attr: their features.
        sizes: integers [n], nodes of each graph.
        y: class ids [n], bool [n, C], or real targets [n, C]. known: bool [n, C], which labels are known.
        split: [n], 0 training, 1 validation, 2 test, -1 unused. keys: further integers [n] by name.
        notes: counts for the record; zeros are left out.

    Raises:
        DataError: inconsistent shapes, an empty graph, a feature or target that is not finite, or an edge between two graphs.
    """
    counted = {key: int(count) for key, count in (notes or {}).items() if count}
    if counted:
        _log.info("%s: %s", name, ", ".join(f"{key.replace('_', ' ')}: {count}" for key, count in counted.items()))
    return GraphData(
        items=PackedSource(
            _tensor(x, name, sparse=True),
            _int64(edge_index),
            _int64(sizes),
            name,
            edge_attr=None if edge_attr is None else _tensor(edge_attr, f"{name}, edges", sparse=False),
        ),
        y=torch.from_numpy(_labels(y)),
        n_classes=n_classes,
        known=None if known is None else torch.from_numpy(known),
        official_split=None if split is None else torch.from_numpy(np.asarray(split).astype(np.int8)),
        keys={key: _int64(values) for key, values in (keys or {}).items()},
        name=name,
        notes=counted,
    )


def check_sizes(data: GraphData, root: DataRoot, where: object) -> GraphData:
    """Return ``data`` after checking its size against the named dataset if ``root`` verifies.

    Raises:
        DataError: unexpected numbers of graphs or classes; the message names the files, ``where``.
    """
    expected, sizes = SIZES[data.name], Sizes(data.n_items, data.n_classes)
    if root.verify and sizes != expected:
        raise DataError(f"{data.name}: found {sizes}; expected {expected}. These files do not belong to this dataset (read from {where})")
    return data


def _labels(y: Array) -> Array:
    if y.dtype == np.bool_:
        return y
    return y.astype(np.int64 if y.ndim == 1 else np.float32)


def _tensor(features: Features, name: str, *, sparse: bool) -> torch.Tensor:
    if isinstance(features, Categories):
        return one_hot(_int64(features.columns), features.sizes, name, sparse=sparse)
    return torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))


def _int64(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64))
