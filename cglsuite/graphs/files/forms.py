"""Validate the arrays of a data file and interpret them as nodes, links or whole graphs with labels, splits and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError
from cglsuite.base.inputs import whole_number
from cglsuite.graphs.files.labels import Items, read_labels
from cglsuite.graphs.files.named import name_of
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import MASKS, Array
from cglsuite.graphs.files.times import parsed_times, time_numbers

_KNOWN = frozenset({"x", "edge_index", "y", "known", "links", "graph", "n_nodes", "n_classes", *MASKS})
_OF_LINKS = frozenset({"base_edges", "node_types"})
_OF_GRAPHS = frozenset({"edge_attr"})
_OF_EDGES = frozenset({"edge_attr", "edge_weight"})


@dataclass(frozen=True, kw_only=True)
class Form:
    """The items of a data file as canonical arrays.

    Attributes:
        level: ``NC``, ``LC``, ``LP``, ``GC`` or ``GR``.
        labels: ``single``, ``multi`` or ``real``.
        n_nodes: number of nodes N.
        x: [N, F], NumPy or SciPy CSR; ``None`` for links between nodes without features.
        edges: int64 [2, E], or [2, M] for links.
        y: int64 [M] (-1 = no label), bool [M, C], or float32 [M, C]; ``None`` for links to be predicted.
        graph: int64 [N], each node's graph; ``None`` unless the items are whole graphs.
        split: int8 [M], 0 training, 1 validation, 2 test, -1 unused; ``None`` if the file has no masks.
        keys: additional int64 [M] attributes by name.
        ignored: names of arrays that were not used.
        known: bool [M, C], which labels of a multi-label link or graph are known; ``None`` if all are.
        base_edges: int64 [2, B], edges that are not items, in addition to the links. node_types: int64 [N], only for links.
        edge_attr: float32 [E, D], edge features of whole graphs. edge_weight: float32 [E], edge weights if the items are nodes.
        classes: class names, if the file uses names instead of numbers.
        time_unit: the unit of ``keys["time"]``; empty if times are plain numbers.
        declared_classes: number of outputs C if the file specifies it.
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
    known: Any = None
    base_edges: Any = None
    node_types: Any = None
    edge_attr: Any = None
    edge_weight: Any = None
    classes: tuple[str, ...] = ()
    time_unit: str = ""
    declared_classes: int | None = None

    @property
    def n_items(self) -> int:
        """Number of items M."""
        return self.edges.shape[1] if self.level in ("LC", "LP") else self.n_nodes if self.graph is None else len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of outputs C."""
        if self.declared_classes is not None:
            return self.declared_classes
        if self.y is None:
            return 1
        return int(self.y.max(initial=0)) + 1 if self.y.ndim == 1 else int(self.y.shape[1])


def form_of_arrays(path: Path, given: Mapping[str, Any], options: FileOptions = FileOptions()) -> Form:  # noqa: B008 - frozen
    """Build the items of a file from its arrays.

    Raises:
        DataError: an array is missing, inconsistent with the others or ambiguous. The message names the file, the array and
            what was expected.
    """
    arrays = {name: values for name, values in given.items() if values is not None}
    if "links" in arrays and "node_type" in arrays and "node_types" not in arrays:
        arrays["node_types"] = arrays.pop("node_type")  # PyG's name
        given = arrays | {name: None for name in given if name not in arrays and name != "node_type"}
    of_links, of_graphs = "links" in arrays, "graph" in arrays
    if of_links and of_graphs:
        raise DataError(
            f"{path} contains both 'links' and 'graph'; expected either 'links' (items are pairs of nodes) or 'graph' (items are "
            "whole graphs)"
        )
    need = ("links",) if of_links else ("x", "edge_index", "y")
    if missing := [name for name in need if name not in arrays]:
        there = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(
            f"{path} has no array {missing[0]!r}; it has {there}; expected x [N, F], edge_index [2, E] and y [N] for nodes, "
            "links [2, M] for links, or x, edge_index, graph [N] and y [n] for whole graphs"
        )
    edges = _edges(path, "links" if of_links else "edge_index", arrays["links" if of_links else "edge_index"])
    base = _edges(path, "base_edges", arrays["base_edges"]) if of_links and "base_edges" in arrays else None
    n_nodes = _node_count(path, arrays, edges if base is None else np.concatenate([edges, base], axis=1))
    _check_range(path, edges, n_nodes)
    graph = _graphs(path, arrays["graph"], edges, n_nodes) if of_graphs else None
    items = edges.shape[1] if of_links else n_nodes if graph is None else int(graph.max(initial=-1)) + 1
    kind: Items = "links" if of_links else "graphs" if of_graphs else "nodes"
    n_classes = _count(path, "n_classes", arrays["n_classes"]) if "n_classes" in arrays else None
    labels = None
    if "y" in arrays:
        labels = read_labels(str(path), name_of(path), arrays["y"], items, kind, options, arrays.get("known"), n_classes)
    weights = _weights(arrays, edges.shape[1], items) if kind == "nodes" else {}
    read = _KNOWN | (_OF_LINKS if of_links else _OF_GRAPHS if of_graphs else weights.keys())
    keys, ignored, unit = _keys(path, {name: values for name, values in arrays.items() if name not in read}, items, options.time_unit)
    level = (
        ("LP" if labels is None else "LC") if of_links else "NC" if graph is None else "GR" if labels and labels.kind == "real" else "GC"
    )
    return Form(
        level=level,
        labels="multi" if labels is None else labels.kind,
        n_nodes=n_nodes,
        x=_features(path, arrays["x"], n_nodes) if "x" in arrays else None,
        edges=edges,
        y=None if labels is None else labels.y,
        graph=graph,
        split=_split(path, arrays, items),
        keys=keys,
        ignored=tuple(sorted({*ignored, *(given.keys() - arrays.keys()), *({"edge_index"} & arrays.keys() if of_links else ())})),
        known=None if labels is None else labels.known,
        base_edges=base,
        node_types=_types(path, arrays["node_types"], n_nodes) if of_links and "node_types" in arrays else None,
        edge_attr=_edge_features(path, arrays["edge_attr"], edges.shape[1]) if of_graphs and "edge_attr" in arrays else None,
        edge_weight=next(iter(weights.values()), None),
        classes=() if labels is None else labels.classes,
        time_unit=unit,
        declared_classes=n_classes if labels is not None and labels.kind == "single" else None,
    )


def _node_count(path: Path, arrays: Mapping[str, Any], edges: Array) -> int:
    least = int(edges.max(initial=-1)) + 1
    if "x" in arrays:
        if len(arrays["x"].shape) != 2:
            raise DataError(f"{path}: x has shape {list(arrays['x'].shape)}; expected [N, F], one row per node")
        rows = int(arrays["x"].shape[0])
        if "n_nodes" in arrays and (given := _count(path, "n_nodes", arrays["n_nodes"])) != rows:
            raise DataError(f"{path}: n_nodes is {given}, but x has {rows} rows; expected one row per node: remove n_nodes, or fix x")
        return rows
    return _count(path, "n_nodes", arrays["n_nodes"]) if "n_nodes" in arrays else least


def _count(path: Path, name: str, given: Any) -> int:
    array = np.asarray(given)
    try:
        if array.size != 1 or array.dtype.kind not in "iuf":
            raise ValueError("expected a single whole number")
        return whole_number(array.reshape(-1)[0].item(), minimum=0)
    except ValueError as error:
        shown = repr(array.reshape(-1)[0].item()) if array.size == 1 else f"{array.dtype} {list(array.shape)}"
        raise DataError(f"{path}: {name} is {shown}; {error}") from None


def _types(path: Path, given: Any, n_nodes: int) -> Array:
    array = np.asarray(given).reshape(-1)
    if array.dtype.kind in "iuU":
        array = np.unique(array, return_inverse=True)[1]
    if len(array) != n_nodes:
        raise DataError(f"{path}: node_types has {len(array)} entries; expected one per node, {n_nodes}")
    return _whole(path, "node_types", array)


def _edge_features(path: Path, given: Any, n_edges: int) -> Array:
    array = np.asarray(given)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) != n_edges or array.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: edge_attr is {array.dtype} {list(array.shape)}; expected a numeric array [{n_edges}, D], one row per edge"
        )
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(narrow).all():
        row = int(np.flatnonzero(~np.isfinite(narrow).all(axis=1))[0])
        raise DataError(
            f"{path}: edge_attr of edge {row} contains {array[row][~np.isfinite(narrow[row])][0]}; expected finite float32 values"
        )
    return narrow


def _weights(arrays: Mapping[str, Any], n_edges: int, n_nodes: int) -> dict[str, Array]:
    """Return the edge weights (float32 [E]) by array name, or nothing if there are none or they are not finite numbers."""
    for name in [name for name in ("edge_weight", "weight") if name in arrays and n_edges]:
        array = np.asarray(arrays[name])
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        with np.errstate(over="ignore"):
            fits = array.shape == (n_edges,) and array.dtype.kind in "biuf" and np.isfinite(array.astype(np.float32)).all()
        if fits and (name == "edge_weight" or n_edges != n_nodes):  # else an attribute of nodes
            return {name: np.ascontiguousarray(array, dtype=np.float32)}
    return {}


def _edges(path: Path, name: str, given: Any) -> Array:
    array = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
    if array.ndim != 2 or array.shape[0] != 2:
        hint = f"; give {name}.T" if array.ndim == 2 and array.shape[1] == 2 else ""
        raise DataError(f"{path}: {name} has shape {list(array.shape)}; expected [2, E], with sources in row 0 and targets in row 1{hint}")
    return _whole(path, name, array)


def _check_range(path: Path, edges: Array, n_nodes: int) -> None:
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        hint = " (counted from 1? subtract 1)" if edges.min() == 1 and edges.max() == n_nodes else ""
        raise DataError(f"{path}: edges refer to nodes {edges.min()} to {edges.max()}; expected 0 to {n_nodes - 1}, the rows of x{hint}")


def _graphs(path: Path, given: Any, edges: Array, n_nodes: int) -> Array:
    graph = _whole(path, "graph", np.asarray(given).reshape(-1))
    if len(graph) != n_nodes:
        raise DataError(f"{path}: graph has {len(graph)} entries; expected one per node, {n_nodes}")
    if n_nodes and (graph[0] != 0 or (np.diff(graph) < 0).any() or (np.diff(graph) > 1).any()):
        raise DataError(
            f"{path}: expected graph to number the graphs consecutively from 0, as in 0, 0, 1, 1, 1, 2, ..., so that each graph's "
            "nodes are contiguous"
        )
    if edges.size and (graph[edges[0]] != graph[edges[1]]).any():
        position = int(np.flatnonzero(graph[edges[0]] != graph[edges[1]])[0])
        raise DataError(f"{path}: edge {position} connects nodes of two different graphs")
    return graph


def _features(path: Path, given: Any, n_nodes: int) -> Any:
    import scipy.sparse

    x = given if scipy.sparse.issparse(given) else np.asarray(given)
    if x.shape[1] == 0:
        raise DataError(f"{path}: x has no columns; expected at least one feature, such as numpy.ones((N, 1)); for links, x can be omitted")
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: x has dtype {x.dtype}; expected a numeric array")
    if x.dtype.kind == "f" and not scipy.sparse.issparse(x):
        x = x + np.zeros((), x.dtype)  # -0.0 is 0.0, as in a sparse matrix
    values: Any = x.data if scipy.sparse.issparse(x) else x
    if values.dtype.kind == "f" and values.dtype.itemsize > 4 and (large := np.abs(values) > np.finfo(np.float32).max).any():
        finite = values[large & np.isfinite(values)]
        if finite.size:
            raise DataError(f"{path}: x contains {finite[0]:g}, which float32 cannot represent; scale the features")
    if values.dtype == np.float64 and values.any() and (largest := np.abs(values).max()) < np.finfo(np.float32).tiny:
        raise DataError(f"{path}: the largest value in x is {largest:g}, which float32 cannot distinguish from 0; scale the features")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = "" if scipy.sparse.issparse(x) else f", the first at node {int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])}"
        raise DataError(
            f"{path}: x contains {int((~np.isfinite(values)).sum())} NaN or infinite values{row}; impute them before saving the file"
        )
    return x


def _split(path: Path, arrays: Mapping[str, Any], items: int) -> Array | None:
    given = [name for name in MASKS if name in arrays]
    if not given:
        return None
    if missing := [name for name in MASKS if name not in given]:
        raise DataError(f"{path} has {' and '.join(given)} but no {missing[0]}; expected either all of {', '.join(MASKS)} or none of them")
    split = np.full(items, -1, dtype=np.int8)
    for part, name in enumerate(MASKS):
        mask = _mask(path, name, np.asarray(arrays[name]), items)
        if (twice := mask & (split >= 0)).any():
            other = MASKS[split[int(np.flatnonzero(twice)[0])]]
            raise DataError(f"{path}: item {int(np.flatnonzero(twice)[0])} is in both {other} and {name}; expected disjoint masks")
        if not mask.any():
            raise DataError(f"{path}: {name} is empty; expected at least one item")
        split[mask] = part
    return split


def _mask(path: Path, name: str, given: Array, items: int) -> Array:
    """Convert a mask or positions to bool [items]."""
    if given.shape == (items,) and (given.dtype == np.bool_ or np.isin(given, (0, 1)).all()):
        return given.astype(np.bool_)
    if given.ndim == 1 and given.dtype.kind in "iu" and (not given.size or (given.min() >= 0 and given.max() < items)):
        mask = np.zeros(items, dtype=np.bool_)
        mask[given] = True
        return mask
    raise DataError(f"{path}: {name} is {given.dtype} {list(given.shape)}; expected a bool mask [{items}], or item positions below {items}")


def _keys(path: Path, arrays: Mapping[str, Any], items: int, unit: str | None) -> tuple[dict[str, Array], tuple[str, ...], str]:
    """Collect the integer attributes (one value per item) by which a stream can be divided into tasks, including ``time`` with its unit."""
    keys, ignored, time_unit = {}, [], ""
    for name in sorted(arrays):
        values: Array = np.asarray(arrays[name]) if not hasattr(arrays[name], "tocsr") else np.empty(0)
        if values.ndim == 2 and values.shape[1:] == (1,):
            values = values[:, 0]
        if name in _OF_EDGES:
            ignored.append(name)
        elif name == "time":
            if values.dtype.kind == "U" and values.shape == (items,):
                values = parsed_times(values.tolist(), lambda item: f"{path}: time of item {item}")
            if values.shape != (items,) or values.dtype.kind not in "biufM":
                raise DataError(
                    f"{path}: time is {values.dtype} {list(values.shape)}; expected whole numbers or dates, one per item [{items}]"
                )
            keys[name], time_unit = time_numbers(str(path), values, unit)
        elif values.dtype.kind == "M" and values.shape == (items,) and not np.isnat(values).any():
            keys[name] = time_numbers(f"{path}: {name}", values, unit)[0]
        elif name == "domain" and values.dtype.kind == "U" and values.shape == (items,) and (values != "").all():
            keys[name] = np.unique(values, return_inverse=True)[1].astype(np.int64)
        elif values.shape == (items,) and values.dtype.kind in "biuf" and _is_whole(values):
            keys[name] = np.ascontiguousarray(values.astype(np.int64))
        else:
            ignored.append(name)
    if unit is not None and not time_unit:
        raise DataError(f"{path}: time_unit = {unit} requires an array 'time' with dates, but the file has none; remove the option")
    return keys, tuple(ignored), time_unit


def _is_whole(values: Array) -> bool:
    if values.dtype.kind != "f":
        return values.dtype.kind != "u" or not values.size or int(values.max()) < 2**63
    return bool(np.isfinite(values).all() and (values % 1 == 0).all() and (np.abs(values) <= 2**53).all())


def _whole(path: Path, name: str, array: Array) -> Array:
    if array.dtype.kind not in "iuf" or not _is_whole(array):
        raise DataError(f"{path}: {name} has dtype {array.dtype}; expected whole numbers")
    return np.ascontiguousarray(array.astype(np.int64))
