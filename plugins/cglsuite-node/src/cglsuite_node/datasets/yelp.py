"""The Yelp dataset in the layout of GraphSAINT, with the same contents as the PyG class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, node_arrays
from cglsuite_node.datasets.arrays import Array, load
from cglsuite_node.datasets.specs import SIZES

_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
_PARTS = ("tr", "va", "te")
_NOTE = "The four files of GraphSAINT's Yelp; https://github.com/GraphSAINT/GraphSAINT says where they can be had"


def yelp(root: DataRoot, standardise: str = "none") -> NodeData:
    """Load the Yelp dataset of reviewers with 100 labels (see its spec).

    The PyG class cannot read nodes that are missing from ``class_map.json``; here, they are unlabelled.

    Args:
        root: where ``Yelp/raw/`` is.
        standardise: ``none``: the features in the file, as in PyG; ``train``: every feature is shifted and scaled to mean 0 and variance 1
            over the training nodes, as in GraphSAINT's loader (constant features are only shifted).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    files = {f"Yelp/raw/{name}": root.file(f"Yelp/raw/{name}", note=_NOTE) for name in _FILES}

    def read(folder: Path) -> dict[str, Array]:
        return _read(folder / "Yelp/raw", standardise)

    return load(root, "yelp", files, read, {"standardise": standardise})


def _read(folder: Path, standardise: str) -> dict[str, Array]:
    with np.load(folder / "adj_full.npz", allow_pickle=False) as f:
        adjacency = scipy.sparse.csr_matrix((f["data"], f["indices"], f["indptr"]), f["shape"]).tocoo()
    x = np.load(folder / "feats.npy", allow_pickle=False)
    n = len(x)
    if adjacency.shape != (n, n):
        raise DataError(f"adj_full.npz has shape {list(adjacency.shape)} and feats.npy has {n} rows; expected one row per node")
    split = _split(_json(folder / "role.json"), n)
    if standardise == "train":
        x = _standardised(x, split == 0)
    y = _multi_hot(_json(folder / "class_map.json"), n)
    return node_arrays(x=x, edge_index=np.stack([adjacency.row, adjacency.col]), y=y, split=split)


def _json(path: Path) -> dict[str, list[int]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} contains a {type(content).__name__}; expected an object")
    return content


def _split(role: dict[str, list[int]], n: int) -> Array:
    split = np.full(n, -1, dtype=np.int8)
    for code, part in enumerate(_PARTS):
        ids = np.asarray(role[part], dtype=np.int64)
        if ids.size and not (ids.min() >= 0 and ids.max() < n):
            raise DataError(f"role.json: {part} lists a node outside 0..{n - 1}")
        if (split[ids] >= 0).any():
            raise DataError(f"role.json: {part} lists node {int(ids[split[ids] >= 0][0])}, which is also in another part")
        split[ids] = code
    return split


def _multi_hot(class_map: dict[str, list[int]], n: int) -> Array:
    """Multi-hot labels, bool [n, C]; all False for nodes that are not named."""
    width = SIZES["yelp"].classes if not class_map else len(next(iter(class_map.values())))
    y = np.zeros((n, width), dtype=np.bool_)
    for node, row in class_map.items():
        if not 0 <= int(node) < n:
            raise DataError(f"class_map.json contains node {node}; expected 0..{n - 1}")
        if len(row) != width or any(value not in (0, 1) for value in row):
            raise DataError(f"class_map.json: the labels of node {node} are not {width} zeros and ones")
        y[int(node)] = row
    return y


def _standardised(x: Array, train: Array) -> Array:
    if not train.any():
        raise DataError("role.json: tr is empty, so features cannot be standardised over the training nodes")
    mean, deviation = x[train].mean(axis=0, dtype=np.float64), x[train].std(axis=0, dtype=np.float64)
    scaled: Array = (x - mean) / np.where(deviation > 0, deviation, 1.0)
    return scaled.astype(np.float32)
