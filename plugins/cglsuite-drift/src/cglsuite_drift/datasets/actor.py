"""The Actor (film) dataset, read from the original files of Geom-GCN."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData
from cglsuite_drift.datasets.assemble import Array, node_data, part_codes, read_npz, reading

_NAME = "actor"
_FOLDER = "Actor/raw"
_URL = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
_NODES, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"
_SHA256 = {
    _EDGES: "997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e",
    _NODES: "1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8",
}
_SHA256_OF_SPLITS = (
    "4505a41d4e90abd94d1ec22571ce528b09ad7cf20d87f764aebd4177590767f5",
    "1871b0d24e3977c41e378fd24acc8025b63f86b77739be77a5b558d1287f207d",
    "d26680e911ef3ecc9fc2a26d90c9d35028c63aadd7a5aea774649d1496c282cb",
    "6755ad5f6a0be8594b344af3d2261eed935b83b73c4d70136e1a7beea7f78cb0",
    "328fdca62b25074f21f2922518e042f24b3b8a1fc378f9dfb2cae36439aed902",
    "5b3161a8dc8de4b2e651ebd56d68e768d1377044895b325566117fe26ab81cb7",
    "e251b38abd4d7931b5e9ae5aba99dcdf87f0be283bdf6e65421274a1c9ef1df6",
    "12164ef9f5620a2f12a387f4f2b8636859d42201101d6d32829ade62d5a98326",
    "405cd1f7f631f678119f8bf2405809e86614d532985beb59566fcf95abd35b3f",
    "505691c5d41bb37b20d085415dcdde2e8e68b5bc4e1feb2c0e361308002012bb",
)


def actor(root: DataRoot, split_number: int = 0) -> NodeData:
    """Load the Actor dataset (see its spec).

    Args:
        root: where ``Actor/raw/`` is: a table of nodes (id, ids of its keywords, label), a table of edges, and ten splits as npz.
        split_number: which of the ten splits becomes the official one.

    Raises:
        DataError: a file is missing or damaged.
    """
    nodes = root.file(f"{_FOLDER}/{_NODES}", sha256=_SHA256[_NODES], urls=[f"{_URL}/new_data/film/{_NODES}"])
    links = root.file(f"{_FOLDER}/{_EDGES}", sha256=_SHA256[_EDGES], urls=[f"{_URL}/new_data/film/{_EDGES}"])
    file = f"film_split_0.6_0.2_{split_number}.npz"
    parts = root.file(f"{_FOLDER}/{file}", sha256=_SHA256_OF_SPLITS[split_number], urls=[f"{_URL}/splits/{file}"])
    with reading(_NAME, nodes, links, parts):
        x, y = _read_nodes(nodes)
        edges = np.loadtxt(links, dtype=np.int64, delimiter="\t", skiprows=1, ndmin=2).reshape(-1, 2).T
        masks = read_npz(parts, "train_mask", "val_mask", "test_mask")
        return node_data(_NAME, x=x, edges=edges, y=y, split=part_codes(masks), both_ways=False, verify=root.verify)


def _read_nodes(path: Path) -> tuple[Array, Array]:
    """Keywords bool [N, F] and labels int64 [N], by node id.

    Raises:
        ValueError: a line that is not in the format. DataError: ids that are not 0..N-1.
    """
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    ids = np.array([int(node) for node, _, _ in rows], dtype=np.int64)
    if not np.array_equal(np.sort(ids), np.arange(len(ids))):
        raise DataError(f"{_NAME}: found {len(ids)} nodes whose ids are not 0..{len(ids) - 1}")
    y = np.empty(len(ids), dtype=np.int64)
    y[ids] = [int(label) for _, _, label in rows]
    words = [np.array(keywords.split(","), dtype=np.int64) for _, keywords, _ in rows]
    columns = np.concatenate(words)
    if columns.min() < 0:
        raise DataError(f"{_NAME}: found a keyword with id {columns.min()}; expected ids of at least 0")
    x = np.zeros((len(ids), int(columns.max()) + 1), dtype=bool)
    x[np.repeat(ids, [len(w) for w in words]), columns] = True
    return x, y
