"""Data in memory as a data file, so that worker processes read what a notebook made; named by content, kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import UsageError
from cglsuite.graphs import NodeData
from cglsuite.graphs.files.tables import arrays_of, together
from cglsuite.study.libraries import LIBRARIES, load_from_library

__all__ = ["as_data_file"]

_FORMS = (
    "the name of a data set, a path to a data file, pyg:<class>/<name>, ogb:<name>, a PyG Data (or a list of them), a NodeData, or a dict "
    "of arrays"
)


def as_data_file(data: Any, name: str = "") -> Path:
    """The path of a file with ``data``.

    Args:
        data: a path to a data file; ``"pyg:<class>/<name>"`` or ``"ogb:<name>"``; a PyG ``Data`` or a list of them; a
            :class:`cglsuite.graphs.NodeData`; or a mapping of names to arrays and tensors (see :mod:`cglsuite.graphs.files.tables`).
        name: the data set's name; default ``"data"``, or the name of a ``NodeData``.

    Raises:
        UsageError: another type.
        DataError: a list of graphs in which one lacks ``x``, ``edge_index`` or ``y``.
    """
    if isinstance(data, str) and data.startswith(LIBRARIES):
        data, known = load_from_library(data)
        name = name or known
    if isinstance(data, (str, Path)):
        return Path(data).expanduser().absolute()
    if isinstance(data, NodeData):
        arrays, name = _of_nodes(data), name or data.name
    elif isinstance(data, Mapping):
        arrays = {str(key): _plain(value) for key, value in data.items()}
    elif hasattr(data, "to_dict") and hasattr(data, "edge_index"):
        arrays = arrays_of(data)
        if "train_mask" in arrays and not {"val_mask", "test_mask"} <= arrays.keys():
            del arrays["train_mask"]  # of a graph that names training nodes only, as KarateClub: no split
    elif isinstance(data, Sequence) and data and all(hasattr(graph, "to_dict") for graph in data):
        arrays = together(Path(name or "data"), [arrays_of(graph) for graph in data])
    else:
        raise UsageError(f"data is a {type(data).__name__}; expected {_FORMS}")
    return _written(arrays, name or "data")


def _written(arrays: Mapping[str, Any], name: str) -> Path:
    flat = dict(_with_parts(arrays))
    total = hashlib.sha256()
    for key, value in sorted(flat.items()):
        array = np.ascontiguousarray(value)
        total.update(f"{key}|{array.dtype.str}{array.shape}|".encode() + array.tobytes())
    path = DataRoot.from_environment().cache / "given" / total.hexdigest()[:16] / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part.npz")
        np.savez(temporary, allow_pickle=False, **flat)
        temporary.replace(path)
    return path


def _with_parts(arrays: Mapping[str, Any]) -> Any:
    for key, value in arrays.items():
        if hasattr(value, "tocsr"):
            csr = value.tocsr()
            yield from ((f"{key}_data", csr.data), (f"{key}_indices", csr.indices), (f"{key}_indptr", csr.indptr))
            yield f"{key}_shape", np.array(csr.shape)
        else:
            yield key, np.asarray(value)


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _of_nodes(data: NodeData) -> dict[str, Any]:
    import scipy.sparse

    x: Any = data.x
    if str(x.layout) == "torch.sparse_csr":
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        x = scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))
    arrays = {"x": _plain(x), "edge_index": data.edge_index.numpy(), "y": data.y.numpy()}
    if data.official_split is not None:
        split = data.official_split.numpy()
        arrays |= {mask: split == part for part, mask in enumerate(("train", "validation", "test"))}
    return arrays | {key: values.numpy() for key, values in data.keys.items()}
