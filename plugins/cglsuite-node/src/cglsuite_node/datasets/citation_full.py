"""CoraFull, Cora_ML, CiteSeer (full) and DBLP, loaded through PyG."""

from __future__ import annotations

from pathlib import Path

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData, node_arrays
from cglsuite.protocols.begin.splits import with_begin_split
from cglsuite_node.datasets.arrays import Array, load

_URL = "https://github.com/abojchevski/graph2gauss/raw/master/data"


def corafull(root: DataRoot, split_source: str = "original") -> NodeData:
    """Load the CoraFull dataset (see its spec).

    Args:
        root: where ``CitationFull/cora/`` is, and ``begin-splits/`` if BeGin's split is requested.
        split_source: ``original``: no split, like the source; ``begin``: BeGin's split (6 : 2 : 2).

    Raises:
        DataError: a file is missing or damaged.
    """
    data = _load(root, "corafull", "cora")
    return with_begin_split(root, data) if split_source == "begin" else data


def cora_ml(root: DataRoot) -> NodeData:
    """Load the Cora_ML dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "citationfull-cora-ml", "cora_ml")


def citeseer(root: DataRoot) -> NodeData:
    """Load the full CiteSeer dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "citationfull-citeseer", "citeseer")


def dblp(root: DataRoot) -> NodeData:
    """Load the DBLP dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return _load(root, "citationfull-dblp", "dblp")


def _load(root: DataRoot, name: str, file: str) -> NodeData:
    relative = f"CitationFull/{file}/raw/{file}.npz"
    # No checksum, because the same arrays circulate in different archives. CRCs inside the npz and sizes are checked instead.
    files = {relative: root.file(relative, urls=[f"{_URL}/{file}.npz"])}

    def read(folder: Path) -> dict[str, Array]:
        from torch_geometric.datasets import CitationFull

        data = CitationFull(str(folder / "CitationFull"), file)[0]
        return node_arrays(x=data.x.numpy(), edge_index=data.edge_index.numpy(), y=data.y.numpy())

    return load(root, name, files, read)
