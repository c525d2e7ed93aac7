"""Amazon-Clothing with the 20 test classes of its few-shot split. It has its own reader because PyG does not include this dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData, node_arrays
from cglsuite_node.datasets.arrays import Array, load

_FILE = "AmazonClothing20/amazon_clothing20.npz"
_SHA256 = "02e610c26b7b53d8d193f3a5f8ff92e8719826c0f184885bb94497feba5597ed"
_NOTE = (
    "It is made from https://github.com/kaize0409/GPN_Graph-Few-shot, few_shot_data/Amazon_clothing_{test.mat,network}: the subgraph "
    "induced on the nodes of test.mat with classes renumbered 0..19, as npz with adj_*, attr_* (CSR: data, indices, indptr, shape), labels"
)


def amazon_clothing20(root: DataRoot) -> NodeData:
    """Load Amazon-Clothing with 20 classes and word counts as features (see its spec). Raises DataError if a file is missing or damaged."""
    return load(root, "amazon-clothing20", {_FILE: root.file(_FILE, sha256=_SHA256, note=_NOTE)}, _read)


def _read(folder: Path) -> dict[str, Array]:
    with np.load(folder / _FILE, allow_pickle=False) as archive:
        adjacency, x = (
            scipy.sparse.csr_matrix(
                (archive[f"{kind}_data"], archive[f"{kind}_indices"], archive[f"{kind}_indptr"]), archive[f"{kind}_shape"]
            )
            for kind in ("adj", "attr")
        )
        labels = archive["labels"]
    return node_arrays(x=x, edge_index=np.stack(adjacency.nonzero()), y=labels)
