"""Read an npz, a folder of CSV tables or a saved PyG ``Data`` into arrays with unified names, without running code from the file."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError, nearest
from cglsuite.base.inputs import check_regular, quoted
from cglsuite.graphs.files.csv_tables import read_folder
from cglsuite.graphs.files.options import FileOptions

Array = np.ndarray[Any, Any]
FORMATS = "an .npz file, a folder with nodes.csv and edges.csv, or a PyG Data saved with torch.save as .pt"
MASKS = ("train", "validation", "test")

UNUSED = "not used"
"""The name of an array of names: what data in memory held beside those that a file can hold."""
_ALIASES = {
    "features": "x",
    "attr": "x",
    "edges": "edge_index",
    "label": "y",
    "labels": "y",
    "train_mask": "train",
    "train_idx": "train",
    "train_index": "train",
    "val": "validation",
    "valid": "validation",
    "val_mask": "validation",
    "valid_mask": "validation",
    "validation_mask": "validation",
    "val_idx": "validation",
    "valid_idx": "validation",
    "val_index": "validation",
    "valid_index": "validation",
    "test_mask": "test",
    "test_idx": "test",
    "test_index": "test",
    "batch": "graph",
    "num_nodes": "n_nodes",
}
"""Names of the same arrays in other tools."""
_PARTS = ("data", "indices", "indptr", "shape")
_DAMAGED = (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, MemoryError, OverflowError, zipfile.BadZipFile, zlib.error)
_EXPANDED_BYTES = 2**30
"""Larger tensors must be stored in full rather than as one expanded row."""


def read_arrays(path: Path, options: FileOptions = FileOptions()) -> dict[str, Any]:  # noqa: B008 - frozen
    """Read the arrays of a data file by name: ``x`` (NumPy or SciPy sparse), ``edge_index``, ``y``, ``train``, ``validation``, ``test``,
    and any others under their own names. Entries that cannot be used are ``None``.

    Args:
        path: see :data:`FORMATS`.

    Raises:
        DataError: the file is missing, damaged or in an unsupported format, or reading it would run code.
    """
    if not path.exists():
        close = nearest(path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], 1)
        raise DataError(f"the data file {path} does not exist{f'; did you mean {close[0]}?' if close else ''}")
    try:
        check_regular(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if path.is_dir():
        return read_folder(path, options, _ALIASES)
    for name, value in (("id", options.id), ("keys", options.keys)):
        if value is not None:
            raise DataError(f"{path}: the option {name} = {value} applies only to folders of CSV tables; remove it")
    readers: dict[str, Callable[[Path], Mapping[str, Any]]] = {".npz": _npz, ".pt": _pyg, ".pth": _pyg}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        hint = f": name its folder, {path.parent}" if path.name in ("nodes.csv", "edges.csv", "links.csv", "graphs.csv") else ""
        raise DataError(f"{path}: unsupported format; expected {FORMATS}{hint}")
    return _renamed(path, reader(path))


def _renamed(path: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, values in arrays.items():
        known = _ALIASES.get(name, name)
        if known in out:
            raise DataError(f"{path} has two arrays for {known!r}, one of them named {name!r}; remove one of them")
        out[known] = values
    return out


def _npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            if not zipfile.is_zipfile(stream):  # numpy takes a single array, and any other file for a pickle
                raise ValueError("it is not a zip archive")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as opened:
                if twice := sorted({name for name in opened.files if opened.files.count(name) > 1}):
                    raise DataError(f"{path} contains two arrays named {twice[0]!r}; save it again with numpy.savez")
                arrays = {name: opened[name] for name in opened.files}
                arrays |= dict.fromkeys(arrays.pop(UNUSED, np.empty(0, np.str_)).reshape(-1).tolist())
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise DataError(f"{path} contains Python objects, which cannot be read without running code; save plain arrays") from error
        raise DataError(f"{path} is damaged or not an npz file ({error}): write it again with numpy.savez") from error
    except _DAMAGED as error:
        raise DataError(f"{path} is damaged or not an npz file ({error}): write it again with numpy.savez") from error
    return _without_parts(path, arrays)


def _without_parts(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Assemble sparse matrices from ``x_data``, ``x_indices``, ``x_indptr`` and ``x_shape``, or ``adj_*`` for an adjacency matrix."""
    for prefix in ("x", "attr", "adj"):
        names = [f"{prefix}_{part}" for part in _PARTS]
        present = [name for name in names if name in arrays]
        if not present:
            continue
        if len(present) < len(names):
            missing = ", ".join(name for name in names if name not in arrays)
            raise DataError(f"{path} has {', '.join(present)} but not {missing}; a SciPy CSR matrix needs all of its parts")
        matrix = _csr(path, prefix, *(arrays.pop(name) for name in names))
        if prefix == "adj":
            entries = matrix.tocoo()
            stored = entries.data != 0
            arrays["edge_index"] = np.stack([entries.row[stored], entries.col[stored]])
            if not np.isin(matrix.data, (0, 1)).all():
                arrays["edge_weight"] = entries.data[stored]
        else:
            arrays["x"] = matrix
    return arrays


def _csr(path: Path, prefix: str, data: Array, indices: Array, indptr: Array, shape: Array) -> Any:
    import scipy.sparse

    for part, values in (("indices", indices), ("indptr", indptr), ("shape", shape)):
        whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1 == 0).all())
        if not whole:
            raise DataError(f"{path}: {prefix}_{part} has dtype {values.dtype}; expected whole numbers, as in a SciPy CSR matrix")
    if shape.shape != (2,):
        raise DataError(
            f"{path}: {prefix}_shape has shape {list(shape.shape)}; expected [2], the numbers of rows and columns of a CSR matrix"
        )
    indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    try:
        matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{path}: {prefix}_data, _indices, _indptr and _shape do not form a valid CSR matrix ({error})") from error
    return matrix


# --- PyG ---------------------------------------------------------------------------------------------------------------------------


def _pyg(path: Path) -> dict[str, Any]:
    """Load the tensors of a saved ``Data``, or of a list of them (whole graphs). Only tensors and PyG's own containers are unpickled."""
    import pickle

    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

    known = {Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage}
    registered = {*torch.serialization.get_safe_globals()}  # by PyG itself; torch would drop these too when the reading ends
    try:
        with torch.serialization.safe_globals(list(known - registered)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about formats of its own
            data = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, *_DAMAGED, AttributeError, TypeError) as error:
        name = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it needs {name[1]}" if name else "it is damaged, or not written by torch.save"
        raise DataError(
            f"{path} cannot be read as PyG Data without running code from the file ({what}); save a plain Data or an npz"
        ) from error
    if isinstance(data, Data):
        return arrays_of(data, path)
    if isinstance(data, (list, tuple)) and data and all(isinstance(graph, Data) for graph in data):
        return together(path, [arrays_of(graph, f"{path}: graph {number}") for number, graph in enumerate(data)])
    raise DataError(
        f"{path} contains a {type(data).__name__}; expected a torch_geometric.data.Data, or a list of them if the items are whole graphs"
    )


def arrays_of(data: Any, where: str | Path) -> dict[str, Any]:
    """Convert the contents of a PyG ``Data`` to NumPy arrays or SciPy CSR matrices by name; ``None`` for anything else.

    A training mask without the other masks, as in KarateClub, does not count as a split.
    """
    out: dict[str, Any] = {}
    for name, value in data.to_dict().items():
        if type(value).__module__.startswith("torch") and hasattr(value, "layout"):
            out[name] = _array(f"{where}: {name}", value)
        elif isinstance(value, (bool, int, float, str, np.ndarray, np.generic)):
            out[name] = plain_array(f"{where}: {name}", value)
        elif value is not None:
            out[name] = None
    split = {name for name in out if _ALIASES.get(name, name) in MASKS}
    return {**out, "train_mask": None} if split == {"train_mask"} else out


def plain_array(where: str, value: Any) -> Any:
    """Convert a value to an array of numbers, truth values, dates or text. Sparse matrices are returned unchanged.

    Raises:
        DataError: the array contains Python objects or lists of unequal lengths.
    """
    if hasattr(value, "tocsr"):
        return value
    if hasattr(value, "detach"):
        return _array(where, value)
    if np.ma.is_masked(value):
        value = np.array(value.tolist(), dtype=object)  # None where it is masked
    try:
        array = np.asarray(value)
        if array.dtype == object:
            cells = [None if _is_missing(cell) else cell for cell in array.reshape(-1).tolist()]
            if all(isinstance(cell, str) or cell is None for cell in cells):
                cells = [cell or "" for cell in cells]
            elif all(isinstance(cell, datetime.date) or cell is None for cell in cells):
                cells = ["" if cell is None else cell.isoformat() for cell in cells]
            elif all(isinstance(cell, (int, float, np.number)) or cell is None for cell in cells) and None in cells:
                cells = [np.nan if cell is None else cell for cell in cells]
            array = np.array(cells).reshape(array.shape)
    except (ValueError, TypeError, OverflowError):
        raise DataError(
            f"{where} contains Python objects or lists of unequal lengths; expected an array of numbers, dates or text"
        ) from None
    if array.dtype.kind not in "biufcMUS":
        example = quoted(array.reshape(-1)[0]) if array.size else array.dtype
        raise DataError(f"{where} contains Python objects such as {example}; expected an array of numbers, dates or text")
    return array


def _is_missing(cell: Any) -> bool:
    """Return whether a cell of an object array is a missing value as written by pandas and other tools."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _array(where: str, value: Any) -> Any:
    """Convert a tensor to a NumPy array or SciPy CSR matrix.

    Raises:
        DataError: neither of them supports the tensor's layout or dtype.
    """
    import scipy.sparse
    import torch

    kind = str(value.dtype).removeprefix("torch.")
    if value.is_quantized or value.is_complex() or value.device.type == "meta" or value.is_nested:
        what = "no values (device meta)" if value.device.type == "meta" else "nested" if value.is_nested else kind
        raise DataError(f"{where} is an unsupported tensor ({what}); expected real or whole numbers on the CPU, such as float32 or int64")
    value = value.detach().cpu().resolve_neg()
    if value.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        what = str(value.layout).removeprefix("torch.")
        raise DataError(f"{where} is a tensor with layout {what}; expected a dense tensor, or a sparse matrix in COO, CSR or CSC format")
    if value.layout != torch.strided:
        if value.dim() != 2 or (value.layout == torch.sparse_coo and value.sparse_dim() != 2):
            raise DataError(
                f"{where} is a sparse tensor of shape {list(value.shape)} that has dense dimensions or is not a matrix; expected a "
                "sparse matrix [N, F]"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that CSR is in beta
            csr = value.to_sparse_csr()
        parts = (_array(where, csr.values()), csr.col_indices().numpy(), csr.crow_indices().numpy())
        return scipy.sparse.csr_matrix(parts, shape=tuple(value.shape))
    if (whole := value.numel() * value.element_size()) > max(_EXPANDED_BYTES, 4 * value.untyped_storage().nbytes()):
        stored = value.untyped_storage().nbytes()
        shown = f"{where} has shape {list(value.shape)} ({whole:,} bytes)"
        raise DataError(f"{shown}, but only {stored:,} bytes are stored because it is an expanded view; save only the stored values")
    if value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.to(torch.float32)  # bfloat16 and float8 fit
    return value.numpy()


def together(path: Path, graphs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Combine the arrays of several graphs into one disjoint union with the graph index of each node. ``path`` is used in error messages.

    A single graph with one label per node is returned unchanged.
    """
    graphs = list(graphs)
    if len(graphs) == 1 and _of_nodes(graphs[0]):
        return dict(graphs[0])
    for number, graph in enumerate(graphs):
        if missing := [name for name in ("x", "edge_index", "y") if graph.get(name) is None]:
            raise DataError(f"{path}: graph {number} has no {missing[0]}; expected x, edge_index and y in every graph")
        _check_like(f"{path}: graph {number}", graph, graphs[0])
    if all(map(_of_nodes, graphs)):
        raise DataError(
            f"{path}: y of every graph has one label per node; expected shape [1] or [1, L], the labels of the whole graph. If the nodes "
            "are the items, combine the graphs into a single Data with torch_geometric.data.Batch.from_data_list"
        )
    if unlike := next((n for n, graph in enumerate(graphs) if np.size(graph["y"]) != np.size(graphs[0]["y"])), None):
        raise DataError(
            f"{path}: graph {unlike} has {np.size(graphs[unlike]['y'])} labels, but graph 0 has {np.size(graphs[0]['y'])}; expected y of "
            "shape [1] or [1, L] in every graph"
        )
    sizes = np.array([graph["x"].shape[0] for graph in graphs])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    out: dict[str, Any] = {
        "x": np.concatenate([_dense(graph["x"]) for graph in graphs]),
        "edge_index": np.concatenate([graph["edge_index"] + start for graph, start in zip(graphs, starts, strict=True)], axis=1),
        "graph": np.repeat(np.arange(len(graphs)), sizes),
        "y": np.stack([np.asarray(graph["y"]).reshape(-1) for graph in graphs]),
    }
    for name in sorted({name for graph in graphs for name in graph} - out.keys() - {"num_nodes", "n_nodes"}):
        values: list[Any] = [graph.get(name) for graph in graphs]
        if name == "edge_attr" and all(np.ndim(value) in (1, 2) for value in values):
            rows = [np.asarray(value).reshape(len(value), -1) for value in values]
            out[name] = np.concatenate(rows) if len({row.shape[1] for row in rows}) == 1 else None
        elif all(value is not None and np.size(value) == 1 for value in values):
            out[name] = np.array([np.asarray(value).reshape(-1)[0] for value in values])
        else:
            out[name] = None
    return out


def _of_nodes(graph: Mapping[str, Any]) -> bool:
    """Return whether the labels of a graph are node labels."""
    x: Any = graph.get("x")
    y: Any = graph.get("y")
    return x is not None and np.ndim(y) in (1, 2) and len(np.asarray(y)) == x.shape[0] > 1


def _check_like(where: str, graph: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    """Raise an error for a graph without nodes, with another number of features than the first graph, or with edges to missing nodes."""
    x, edges = graph["x"], graph["edge_index"]
    if len(x.shape) != 2 or x.shape[0] == 0:
        raise DataError(f"{where} has x of shape {list(x.shape)}; expected [n, F] with at least one node; remove empty graphs")
    if x.shape[1:] != first["x"].shape[1:]:
        raise DataError(
            f"{where} has {x.shape[1]} features, but graph 0 has {first['x'].shape[1]}; expected the same number in every graph"
        )
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise DataError(f"{where} has edge_index of shape {list(edges.shape)}; expected [2, E]")
    if edges.size and (edges.min() < 0 or edges.max() >= x.shape[0]):
        raise DataError(f"{where} has edges between node ids {edges.min()} and {edges.max()}; expected ids 0 to {x.shape[0] - 1}")


def _dense(x: Any) -> Array:
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x)
