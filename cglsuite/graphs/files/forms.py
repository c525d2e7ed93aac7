"""What the arrays of a data file amount to: nodes, links or whole graphs, their labels, splits and attributes, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite.graphs.files.tables import MASKS, Array

__all__ = ["Form", "form_of_arrays"]

_KNOWN = frozenset({"x", "edge_index", "y", "links", "graph", "n_nodes", "edge_attr", *MASKS})
_SMALLEST_SHARE = 1 / 3


@dataclass(frozen=True, kw_only=True)
class Form:
    """A data file's items in canonical arrays.

    Attributes:
        level: ``NC``, ``LC``, ``LP``, ``GC`` or ``GR``.
        labels: ``single``, ``multi`` or ``real``.
        n_nodes: number of nodes N.
        x: [N, F], NumPy or SciPy CSR; ``None`` where nodes of links have no features.
        edges: int64 [2, E]; of links [2, M].
        y: int64 [M] (-1 = no label), bool [M, C], or float32 [M, C]; ``None`` for links to be predicted.
        graph: int64 [N], each node's graph; ``None`` but for whole graphs.
        split: int8 [M], 0 training, 1 validation, 2 test, -1 unused; ``None`` where the file has no masks.
        keys: further int64 [M] by name.
        ignored: names of arrays that were not used.
    """

    level: str
    labels: str
    n_nodes: int
    x: Any
    edges: Array
    y: Any
    graph: Any = None
    split: Array | None = None
    keys: Mapping[str, Array] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of outputs C."""
        if self.y is None:
            return 1
        return int(self.y.max(initial=0)) + 1 if self.y.ndim == 1 else int(self.y.shape[1])


def form_of_arrays(path: Path, arrays: Mapping[str, Any]) -> Form:
    """The items of a file.

    Raises:
        DataError: an array is missing, or does not fit the others; the message names the file, the array, its shape and what was expected.
    """
    of_links, of_graphs = "links" in arrays, "graph" in arrays
    if of_links and of_graphs:
        raise DataError(f"{path} has links and graph: expected links (items are pairs of nodes) or graph (items are whole graphs)")
    need = ("links",) if of_links else ("x", "edge_index", "y")
    if missing := [name for name in need if name not in arrays]:
        there = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(
            f"{path} has no array {missing[0]!r}; it has {there}. Expected x [N, F], edge_index [2, E] and y [N] for nodes, "
            "links [2, M] for links, or x, edge_index, graph [N] and y [n] for whole graphs"
        )
    edges = _edges(path, "links" if of_links else "edge_index", arrays["links" if of_links else "edge_index"])
    n_nodes = _node_count(path, arrays, edges)
    _check_range(path, edges, n_nodes)
    graph = _graphs(path, arrays["graph"], edges, n_nodes) if of_graphs else None
    items = edges.shape[1] if of_links else n_nodes if graph is None else int(graph.max(initial=-1)) + 1
    y = _labels(path, arrays["y"], items, real=of_graphs) if "y" in arrays else None
    labels = "multi" if y is None or y.dtype == np.bool_ else "single" if y.ndim == 1 else "real"
    keys, ignored = _keys(path, arrays, items)
    return Form(
        level=("LP" if y is None else "LC") if of_links else "NC" if graph is None else "GR" if labels == "real" else "GC",
        labels=labels,
        n_nodes=n_nodes,
        x=_features(path, arrays["x"], n_nodes) if "x" in arrays else None,
        edges=edges,
        y=y,
        graph=graph,
        split=_split(path, arrays, items),
        keys=keys,
        ignored=ignored,
    )


def _node_count(path: Path, arrays: Mapping[str, Any], edges: Array) -> int:
    if "x" in arrays:
        if len(arrays["x"].shape) != 2:
            raise DataError(f"{path}: x has shape {list(arrays['x'].shape)}; expected [N, F], one row per node")
        return int(arrays["x"].shape[0])
    if "n_nodes" in arrays:
        return int(arrays["n_nodes"])
    return int(edges.max(initial=-1)) + 1


def _edges(path: Path, name: str, given: Any) -> Array:
    array = np.asarray(given)
    if array.ndim != 2 or array.shape[0] != 2:
        hint = f"; give {name}.T" if array.ndim == 2 and array.shape[1] == 2 else ""
        raise DataError(f"{path}: {name} has shape {list(array.shape)}; expected [2, E], sources above targets{hint}")
    return _whole(path, name, array)


def _check_range(path: Path, edges: Array, n_nodes: int) -> None:
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        hint = " (counted from 1? subtract 1)" if edges.min() == 1 and edges.max() == n_nodes else ""
        raise DataError(f"{path}: edges join nodes {edges.min()} to {edges.max()}; expected 0 to {n_nodes - 1}, the rows of x{hint}")


def _graphs(path: Path, given: Any, edges: Array, n_nodes: int) -> Array:
    graph = _whole(path, "graph", np.asarray(given).reshape(-1))
    if len(graph) != n_nodes:
        raise DataError(f"{path}: graph has {len(graph)} entries; expected one per node, {n_nodes}")
    if n_nodes and (graph[0] != 0 or (np.diff(graph) < 0).any() or (np.diff(graph) > 1).any()):
        raise DataError(f"{path}: graph must number the graphs 0, 0, 1, 1, 1, 2, ... with the nodes of each together")
    if edges.size and (graph[edges[0]] != graph[edges[1]]).any():
        position = int(np.flatnonzero(graph[edges[0]] != graph[edges[1]])[0])
        raise DataError(f"{path}: edge {position} joins nodes of two graphs")
    return graph


def _features(path: Path, given: Any, n_nodes: int) -> Any:
    import scipy.sparse

    x = given if scipy.sparse.issparse(given) else np.asarray(given)
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: x has type {x.dtype}; expected numbers")
    values: Any = x.data if scipy.sparse.issparse(x) else x
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = "" if scipy.sparse.issparse(x) else f", the first at node {int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])}"
        raise DataError(f"{path}: x holds {int((~np.isfinite(values)).sum())} NaN or infinite values{row}; impute them first")
    return x


def _labels(path: Path, given: Any, items: int, *, real: bool) -> Array:
    y = np.asarray(given)
    if y.ndim == 2 and y.shape[1] == 1 and not (real and y.dtype.kind == "f" and (y % 1 != 0).any()):
        y = y[:, 0]
    if y.ndim not in (1, 2) or len(y) != items:
        raise DataError(f"{path}: y has shape {list(y.shape)}; expected [{items}] (a class each) or [{items}, L] (labels each)")
    if y.dtype.kind not in "biuf":
        raise DataError(f"{path}: y has type {y.dtype}; expected whole numbers from 0, -1 where there is no label")
    fractions = y.dtype.kind == "f" and bool((np.nan_to_num(y) % 1 != 0).any())
    if y.ndim == 2 or fractions:
        if fractions or (y.ndim == 2 and not np.isin(y, (0, 1)).all()):
            if not real:
                what = "class numbers" if y.ndim == 1 else "0 and 1"
                raise DataError(f"{path}: y holds {_strange(y)}; expected {what} (real targets are for whole graphs)")
            return np.ascontiguousarray(y.reshape(items, -1), dtype=np.float32)
        return np.ascontiguousarray(y.astype(np.bool_))
    if y.dtype.kind == "f":
        y = np.where(np.isnan(y), -1, y)
    y = y.astype(np.int64)
    if y.size and y.min() < -1:
        raise DataError(f"{path}: y holds {y.min()}; expected classes from 0, and -1 where there is no label")
    classes = len(np.unique(y[y >= 0]))
    if classes == 0:
        raise DataError(f"{path}: y has no label at all: every entry is -1")
    if classes < _SMALLEST_SHARE * (int(y.max()) + 1):
        raise DataError(
            f"{path}: y names {classes} classes with numbers up to {y.max()}; expected them numbered 0 to {classes - 1}: "
            "y = numpy.unique(y, return_inverse=True)[1]"
        )
    return np.ascontiguousarray(y)


def _strange(y: Array) -> Any:
    wrong = y[(np.nan_to_num(y) % 1 != 0) | ~np.isfinite(y)] if y.ndim == 1 else y[~np.isin(y, (0, 1))]
    return wrong.flat[0]


def _split(path: Path, arrays: Mapping[str, Any], items: int) -> Array | None:
    given = [name for name in MASKS if name in arrays]
    if not given:
        return None
    if missing := [name for name in MASKS if name not in given]:
        raise DataError(f"{path} has {', '.join(given)} but no {missing[0]}: expected all of {', '.join(MASKS)}, or none")
    split = np.full(items, -1, dtype=np.int8)
    for part, name in enumerate(MASKS):
        mask = _mask(path, name, np.asarray(arrays[name]), items)
        if (twice := mask & (split >= 0)).any():
            other = MASKS[split[int(np.flatnonzero(twice)[0])]]
            raise DataError(f"{path}: item {int(np.flatnonzero(twice)[0])} is in {other} and in {name}; expected disjoint masks")
        if not mask.any():
            raise DataError(f"{path}: {name} is empty; expected at least one item")
        split[mask] = part
    return split


def _mask(path: Path, name: str, given: Array, items: int) -> Array:
    """bool [items], of a mask or of positions."""
    if given.shape == (items,) and (given.dtype == np.bool_ or np.isin(given, (0, 1)).all()):
        return given.astype(np.bool_)
    if given.ndim == 1 and given.dtype.kind in "iu" and (not given.size or (given.min() >= 0 and given.max() < items)):
        mask = np.zeros(items, dtype=np.bool_)
        mask[given] = True
        return mask
    raise DataError(f"{path}: {name} is {given.dtype} {list(given.shape)}; expected a mask bool [{items}], or positions below {items}")


def _keys(path: Path, arrays: Mapping[str, Any], items: int) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Whole numbers, one per item: attributes that a stream can be cut by. ``time`` must be one."""
    keys, ignored = {}, []
    for name in sorted(set(arrays) - _KNOWN):
        values = np.asarray(arrays[name]) if not hasattr(arrays[name], "tocsr") else np.empty(0)
        if values.ndim == 2 and values.shape[1:] == (1,):
            values = values[:, 0]
        if values.dtype.kind == "M":
            values = values.astype("datetime64[D]").astype(np.int64)
        fits = values.shape == (items,) and values.dtype.kind in "biuf" and bool((values % 1 == 0).all())
        if name == "time" and not fits:
            raise DataError(f"{path}: time is {values.dtype} {list(values.shape)}; expected whole numbers or dates, one per item [{items}]")
        if fits:
            keys[name] = np.ascontiguousarray(values.astype(np.int64))
        else:
            ignored.append(name)
    return keys, tuple(ignored)


def _whole(path: Path, name: str, array: Array) -> Array:
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.isfinite(array).all() and (array % 1 == 0).all()):
        raise DataError(f"{path}: {name} has type {array.dtype}; expected whole numbers")
    return np.ascontiguousarray(array.astype(np.int64))
