"""Files to arrays: an npz, a folder of CSV tables or a saved PyG ``Data``, under the names that the suite uses. Runs no code of a file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "MASKS", "Array", "arrays_of", "read_arrays", "together"]

Array = np.ndarray[Any, Any]
FORMATS = "an .npz file, a folder with nodes.csv and edges.csv, or a PyG Data saved with torch.save as .pt"
MASKS = ("train", "validation", "test")

_ALIASES = {
    "features": "x",
    "attr": "x",
    "edges": "edge_index",
    "label": "y",
    "labels": "y",
    "train_mask": "train",
    "val": "validation",
    "valid": "validation",
    "val_mask": "validation",
    "validation_mask": "validation",
    "test_mask": "test",
    "batch": "graph",
}
"""Names that other tools give to the same arrays."""
_PARTS = ("data", "indices", "indptr", "shape")
_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of a data file by name: ``x`` (NumPy or SciPy sparse), ``edge_index``, ``y``, ``train``, ``validation``, ``test``, and
    further ones under their own names.

    Args:
        path: see :data:`FORMATS`.

    Raises:
        DataError: nothing is there, it is damaged, of another format, or needs code of its own to be read.
    """
    if not path.exists():
        close = nearest(path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], 1)
        raise DataError(f"there is no data file {path}{f'; did you mean {close[0]}?' if close else ''}")
    readers: dict[str, Callable[[Path], Mapping[str, Any]]] = {".npz": _npz, ".pt": _pyg, ".pth": _pyg}
    reader = _folder if path.is_dir() else readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: data are read from {FORMATS}")
    return _renamed(path, reader(path))


def _renamed(path: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, values in arrays.items():
        known = _ALIASES.get(name, name)
        if known in out:
            raise DataError(f"{path} has two arrays that stand for {known!r}, one of them {name!r}: leave one out")
        out[known] = values
    return out


def _npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):  # numpy takes a single array, and any other file for a pickle
                raise ValueError("it is no zip archive")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as opened:
                arrays = {name: opened[name] for name in opened.files}
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} holds arrays of Python objects, which only running code could read: save plain numbers") from error
        raise DataError(f"{path} is damaged or no npz file ({error}): write it again with numpy.savez") from error
    except _DAMAGED as error:
        raise DataError(f"{path} is damaged or no npz file ({error}): write it again with numpy.savez") from error
    return _without_parts(path, arrays)


def _without_parts(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Sparse matrices in parts (``x_data``, ``x_indices``, ``x_indptr``, ``x_shape``; ``adj_...`` of an adjacency matrix) put together."""
    for prefix in ("x", "attr", "adj"):
        names = [f"{prefix}_{part}" for part in _PARTS]
        present = [name for name in names if name in arrays]
        if not present:
            continue
        if len(present) < len(names):
            missing = ", ".join(name for name in names if name not in arrays)
            raise DataError(f"{path} has {', '.join(present)} but not {missing}: the parts of a SciPy CSR matrix belong together")
        matrix = _csr(path, prefix, *(arrays.pop(name) for name in names))
        if prefix == "adj":
            arrays["edge_index"] = np.stack(matrix.nonzero())
        else:
            arrays["x"] = matrix
    return arrays


def _csr(path: Path, prefix: str, data: Array, indices: Array, indptr: Array, shape: Array) -> Any:
    import scipy.sparse

    try:
        matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{path}: {prefix}_data, _indices, _indptr and _shape are no CSR matrix ({error})") from error
    return matrix


# --- tables ------------------------------------------------------------------------------------------------------------------------


def _folder(path: Path) -> dict[str, Any]:
    """``nodes.csv``, a row per node, and ``edges.csv`` or ``links.csv`` (``source``, ``target``); ``graphs.csv`` where items are graphs."""
    nodes = _table(path / "nodes.csv")
    names = {str(value): row for row, value in enumerate(nodes.pop("id"))} if "id" in nodes else None
    if names is not None and len(names) != len(nodes):
        raise DataError(f"{path / 'nodes.csv'}: ids in column id repeat: every node needs its own")
    links, graphs = path / "links.csv", path / "graphs.csv"
    if links.is_file():
        table = _table(links)
        ends = _ends(links, table, names)  # before the columns: one that is missing is not told of as a feature
        return {**_columns(links, table, {"source", "target"}), "links": ends, **_features_only(path, nodes)}
    if graphs.is_file():
        if "graph" not in nodes:
            raise DataError(f"{path / 'nodes.csv'}: with graphs.csv expected a column graph, the row (from 0) of each node's graph")
        features = _features_only(path, nodes.drop(columns="graph"))
        edges = {"edge_index": _ends(path / "edges.csv", _table(path / "edges.csv"), names), "graph": nodes["graph"].to_numpy()}
        return {**_columns(graphs, _table(graphs), set()), **features, **edges}
    return {**_columns(path / "nodes.csv", nodes, set()), "edge_index": _ends(path / "edges.csv", _table(path / "edges.csv"), names)}


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path)
    except FileNotFoundError as error:
        raise DataError(f"{path} is absent: a folder of data holds nodes.csv with edges.csv or links.csv") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is no CSV table with a header ({error})") from error


def _ends(path: Path, table: pd.DataFrame, names: Mapping[str, int] | None) -> Array:
    if missing := [column for column in ("source", "target") if column not in table]:
        raise DataError(
            f"{path} has the columns {', '.join(map(str, table.columns))}; expected source and target ({missing[0]} is missing)"
        )
    ends = table[["source", "target"]]
    if names is None:
        return np.ascontiguousarray(ends.to_numpy().T)
    rows = ends.astype(str).apply(lambda column: column.map(names))
    if rows.isna().to_numpy().any():
        row, column = np.argwhere(rows.isna().to_numpy())[0]
        raise DataError(f"{path}, row {row + 2}: {ends.columns[column]} {ends.iloc[row, column]!r} is no id of nodes.csv")
    return np.ascontiguousarray(rows.to_numpy(dtype=np.int64).T)


def _columns(path: Path, table: pd.DataFrame, skip: set[str]) -> dict[str, Any]:
    """What the columns of a table of items stand for: ``y`` or ``y_*``, ``split`` or masks, ``time``; the others are features."""
    table = table.drop(columns=[column for column in skip if column in table])
    out: dict[str, Any] = {}
    taken: list[str] = []
    for column in table.columns:
        name = _ALIASES.get(str(column), str(column))
        if name in ("y", "time", *MASKS):
            out[name] = _classes(table[column]) if name == "y" else table[column].to_numpy()
            taken.append(column)
    labels = [column for column in table.columns if str(column).startswith("y_")]
    if labels:
        if "y" in out:
            raise DataError(f"{path} has a column y and columns y_...: expected one class per row, or one column per label")
        out["y"] = _numbers(path, table[labels])
    if "split" in table:
        out |= _masks(path, table["split"])
    features = table.drop(columns=[*taken, *labels, *(["split"] if "split" in table else [])])
    if len(features.columns):
        out["x"] = _numbers(path, features)
    return out


def _features_only(path: Path, nodes: pd.DataFrame) -> dict[str, Any]:
    return {"x": _numbers(path / "nodes.csv", nodes)} if len(nodes.columns) else {"n_nodes": np.array(len(nodes))}


def _numbers(path: Path, table: pd.DataFrame) -> Array:
    for column in table.columns:
        if table[column].dtype.kind not in "biuf":
            example = next(iter(table[column].dropna()), "")
            raise DataError(f"{path}: column {column!r} holds {example!r}; expected numbers: encode it, or leave it out")
    return np.asarray(table.to_numpy(dtype=np.float64))


def _classes(column: pd.Series[Any]) -> Array:
    """Numbers as they are; words as positions in their sorted list, an empty cell as -1."""
    import pandas as pd

    if column.dtype.kind in "biuf":
        return column.to_numpy()
    return np.asarray(pd.factorize(column, sort=True)[0])


def _masks(path: Path, column: pd.Series[Any]) -> dict[str, Array]:
    words = column.fillna("").astype(str).str.strip().replace({"val": "validation", "valid": "validation", "none": ""})
    if unknown := sorted(set(words) - {*MASKS, ""}):
        raise DataError(f"{path}: column split holds {unknown[0]!r}; expected {', '.join(MASKS)} or nothing")
    return {mask: (words == mask).to_numpy() for mask in MASKS}


# --- PyG ---------------------------------------------------------------------------------------------------------------------------


def _pyg(path: Path) -> dict[str, Any]:
    """The tensors of a saved ``Data``, or of a list of them (whole graphs). Only tensors and PyG's own containers are unpickled."""
    import pickle

    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

    known = {Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage}
    registered = {*torch.serialization.get_safe_globals()}  # by PyG itself; torch would drop these too when the reading ends
    try:
        with torch.serialization.safe_globals(list(known - registered)):
            data = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, *_DAMAGED) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path} is no saved PyG Data that can be read without running its code ({first}): save Data, or an npz") from error
    if isinstance(data, Data):
        return arrays_of(data)
    if isinstance(data, (list, tuple)) and data and all(isinstance(graph, Data) for graph in data):
        return together(path, [arrays_of(graph) for graph in data])
    raise DataError(f"{path} holds a {type(data).__name__}; expected a torch_geometric.data.Data, or a list of them for whole graphs")


def arrays_of(data: Any) -> dict[str, Any]:
    """The tensors of a PyG ``Data`` by name, as NumPy arrays or SciPy CSR matrices."""
    import scipy.sparse
    import torch

    out: dict[str, Any] = {}
    for name, value in data.to_dict().items():
        if not isinstance(value, torch.Tensor):
            continue
        if value.layout != torch.strided:
            csr = value.to_sparse_csr()
            parts = (csr.values().numpy(), csr.col_indices().numpy(), csr.crow_indices().numpy())
            out[name] = scipy.sparse.csr_matrix(parts, shape=tuple(value.shape))
        else:
            out[name] = value.detach().numpy()
    return out


def together(path: Path, graphs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The arrays of several graphs as those of one disjoint union, with each node's graph. ``path`` names them in messages."""
    graphs = list(graphs)
    for number, graph in enumerate(graphs):
        if missing := [name for name in ("x", "edge_index", "y") if name not in graph]:
            raise DataError(f"{path}: graph {number} has no {missing[0]}; expected x, edge_index and y in every one")
    sizes = np.array([len(graph["x"]) for graph in graphs])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return {
        "x": np.concatenate([graph["x"] for graph in graphs]),
        "edge_index": np.concatenate([graph["edge_index"] + start for graph, start in zip(graphs, starts, strict=True)], axis=1),
        "graph": np.repeat(np.arange(len(graphs)), sizes),
        "y": np.stack([np.asarray(graph["y"]).reshape(-1) for graph in graphs]),
    }
