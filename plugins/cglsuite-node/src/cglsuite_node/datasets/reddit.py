"""The Reddit dataset, loaded through PyG."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import NodeData, node_arrays
from cglsuite_node.datasets.arrays import Array, load

_FILES = ("reddit_data.npz", "reddit_graph.npz")
_URLS = ("https://data.dgl.ai/dataset/reddit.zip",)


def reddit(root: DataRoot) -> NodeData:
    """Load the Reddit dataset (see its spec). Raises DataError if a file is missing or damaged."""
    return load(root, "reddit", root.unpacked({f"Reddit/raw/{name}": name for name in _FILES}, urls=_URLS), _read)


def _read(folder: Path) -> dict[str, Array]:
    from torch_geometric.datasets import Reddit

    data = Reddit(str(folder / "Reddit"))[0]
    split = np.full(data.num_nodes, -1, dtype=np.int8)
    for code, mask in enumerate((data.train_mask, data.val_mask, data.test_mask)):
        split[mask.numpy()] = code
    return node_arrays(x=data.x.numpy(), edge_index=data.edge_index.numpy(), y=data.y.numpy(), split=split)
