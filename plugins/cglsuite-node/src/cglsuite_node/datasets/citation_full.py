"""CoraFull, Cora_ML, CiteSeer (full) and DBLP, through PyG."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cglsuite.datafiles import DataRoot
from cglsuite.graphs.data import NodeData
from cglsuite_node.datasets.arrays import Array, load, pack

__all__ = ["citeseer", "cora_ml", "corafull", "dblp"]

_URL = "https://github.com/abojchevski/graph2gauss/raw/master/data"
_BEGIN_SPLIT = "begin-splits/corafull_metadata_allIL.npz"
_BEGIN_SHA256 = "faf50bebfcc5c1d52d6ddc00657efdfdbf07730d0894c0b9498a8254cee1bf26"


def corafull(root: DataRoot) -> NodeData:
    """CoraFull with BeGin's split where that file is present; see its spec. Raises DataError."""
    return _load(root, "corafull", "cora", _BEGIN_SPLIT)


def cora_ml(root: DataRoot) -> NodeData:
    """Cora_ML; see its spec. Raises DataError."""
    return _load(root, "citationfull-cora-ml", "cora_ml")


def citeseer(root: DataRoot) -> NodeData:
    """CiteSeer in full; see its spec. Raises DataError."""
    return _load(root, "citationfull-citeseer", "citeseer")


def dblp(root: DataRoot) -> NodeData:
    """DBLP; see its spec. Raises DataError."""
    return _load(root, "citationfull-dblp", "dblp")


def _load(root: DataRoot, name: str, file: str, split_file: str | None = None) -> NodeData:
    relative = f"CitationFull/{file}/raw/{file}.npz"
    # No checksum: the same arrays circulate in several packings. What is read is checked by the CRCs inside the npz and by its sizes.
    files = {relative: root.file(relative, urls=[f"{_URL}/{file}.npz"])}
    if split_file is not None and (split := root.find(split_file, sha256=_BEGIN_SHA256)) is not None:
        files[split_file] = split

    def read(folder: Path) -> dict[str, Array]:
        from torch_geometric.datasets import CitationFull

        data = CitationFull(str(folder / "CitationFull"), file)[0]
        split = _begin_split(folder / split_file) if split_file in files else None
        return pack(x=data.x.numpy(), edge_index=data.edge_index.numpy(), y=data.y.numpy(), split=split)

    return load(root, name, files, read)


def _begin_split(path: Path) -> Array:
    """BeGin's residues 0..9 (its ``inner_tvt_splits``): 0-5 training, 6-7 validation, 8-9 test."""
    with np.load(path, allow_pickle=False) as archive:
        residue = archive["inner_tvt_splits"] % 10
    return np.select([residue < 6, residue < 8], [0, 1], 2).astype(np.int8)
