"""The multi-label graphs used by AGALE: PCG, DBLP, HumanGo and BlogCatalog."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.io

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.graphs import NodeData, node_arrays
from cglsuite_node.datasets.arrays import UNREADABLE, Array, binary, both_ways, load
from cglsuite_node.datasets.specs import SIZES
from cglsuite_node.datasets.structural import structural_features

_URL = "https://github.com/Tianqi-py/MLGNC/raw/HEAD/data"
_SHA256 = {
    "PCG/edges_undir.csv": "43bd76942bb327f5bb76172987831915a405c4d68b84918a77b29212d5a725d2",
    "PCG/features.csv": "75565f7c8ff4687ee2bcd6e387291a8a69858a9207b789f36ab5eb953c5ce3a3",
    "PCG/labels.csv": "6e13687788b68a667fc0c2ef8a28504cfe6dd454f6202d2176a863eb28874005",
    "HumanGo/edge_list.csv": "130a7add7b404f9a062baf1daba96a76f805abc543804be410d36ed3a9723305",
    "HumanGo/features.csv": "5f15a5a3f7d042e6e3eb125f7cfc47d43f36044f22e98d9192529e24c60343f1",
    "HumanGo/labels.csv": "bd1079a042f803784b3155d42cc94e27c3f8b1b80d50269aeb71a83297fdb9ec",
    "BlogCatalog/blogcatalog.mat": "d4f4fb89ce1ccd4b7e2a183386c000773cc9362cc61f1be5b246a6d9c259da8f",
    "DBLPMultiLabel/dblp.edgelist": "0473d2c379efa56245f9e468f31084951b8873bfc6726c68d45594d6a6b0e2c4",
    "DBLPMultiLabel/labels.txt": "87047188907764bdbc7286fc672551014578d81ff3a0179da2f5588266fe2361",
    "PCG/agale_class_orders.json": "f10ccc34ee1f6a362490d22a0ee3749af23d74c9eace3785cb3faddfba043232",
    "DBLPMultiLabel/agale_class_orders.json": "eb0804aab2124abb7ec3d0af697aee5d55b6519a3828a9829203f52d474530c8",
}
_ORDERS = {"pcg": "PCG/agale_class_orders.json", "dblp-multilabel": "DBLPMultiLabel/agale_class_orders.json"}
_ORDERS_NOTE = (
    "It holds what the subgraph analysis of https://github.com/Tianqi-py/AGALE prints, as JSON: "
    '{"orders": [[[class, class], ...], ...], ...}, per order a list of tasks, per task a list of classes'
)


def pcg(root: DataRoot) -> NodeData:
    """Load the PCG dataset of proteins and their phenotypes (see its spec). Raises DataError if a file is missing or damaged."""
    return _load_csv(root, "pcg", "PCG", "pcg_removed_isolated_nodes", "edges_undir.csv", header=None)


def humango(root: DataRoot) -> NodeData:
    """Load the HumanGo dataset of proteins and their subcellular locations (see its spec). Raises DataError if a file is missing or
    damaged.
    """
    return _load_csv(root, "humango", "HumanGo", "HumanGo", "edge_list.csv", header=0)


def dblp(root: DataRoot) -> NodeData:
    """Load the DBLP dataset of co-authors and their areas, with structural features (see its spec). Raises DataError if a file is missing
    or damaged.
    """
    files = _files(root, "DBLPMultiLabel", "dblp", ("dblp.edgelist", "labels.txt"))

    def read(folder: Path) -> dict[str, Array]:
        pairs = _ids(pd.read_csv(folder / "DBLPMultiLabel/dblp.edgelist", header=None, sep=r"\s+"), "edge")
        return _without_features(pairs, _labels(folder / "DBLPMultiLabel/labels.txt"))

    return load(root, "dblp-multilabel", files, read)


def blogcatalog(root: DataRoot) -> NodeData:
    """Load the BlogCatalog dataset of bloggers and their interests, with structural features (see its spec). Raises DataError if a file is
    missing or damaged.
    """
    files = _files(root, "BlogCatalog", "", ("blogcatalog.mat",))

    def read(folder: Path) -> dict[str, Array]:
        try:
            with (folder / "BlogCatalog/blogcatalog.mat").open("rb") as stream:
                content = scipy.io.loadmat(stream)
        except scipy.io.matlab.MatReadError as error:  # not derived from other readers' errors
            raise ValueError(str(error)) from error
        network, group = content["network"], content["group"]
        if network.shape != (group.shape[0], group.shape[0]):
            raise DataError(f"network has shape {list(network.shape)} and group {list(group.shape)}; expected [N, N] and [N, C]")
        return _without_features(np.stack(network.nonzero()), binary(group.toarray(), "the label row of node"))

    return load(root, "blogcatalog", files, read)


def agale_orders(root: DataRoot, dataset: str) -> list[list[int]]:
    """Return the three class orders of the AGALE study, each a permutation of the classes.

    A task consists of two consecutive classes; if the number of classes is odd, the last class joins the last task. Presets do not read
    files, so they take the same orders from :data:`cglsuite_node.datasets.specs.AGALE_ORDERS`.

    Args:
        root: where ``<dataset's folder>/agale_class_orders.json`` is.
        dataset: ``pcg`` or ``dblp-multilabel``.

    Raises:
        UnknownNameError: unknown dataset.
        DataError: the file is missing, or holds anything but permutations of the classes.
    """
    if dataset not in _ORDERS:
        raise UnknownNameError("dataset with class orders of AGALE", dataset, _ORDERS)
    relative = _ORDERS[dataset]
    path = root.file(relative, sha256=_SHA256[relative], note=_ORDERS_NOTE)
    try:
        tasks = json.loads(path.read_text(encoding="utf-8"))["orders"]
        orders = [[int(c) for task in order for c in task] for order in tasks]
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({type(error).__name__}: {error}). Replace it") from error
    for order in orders:
        if sorted(order) != list(range(SIZES[dataset].classes)):
            raise DataError(f"{path}: the order {order} is not a permutation of the classes 0..{SIZES[dataset].classes - 1}")
    return orders


def _files(root: DataRoot, folder: str, remote: str, names: tuple[str, ...]) -> dict[str, Path]:
    """Files by name below the data root, published in the folder ``remote``."""
    at = f"{_URL}/{remote}" if remote else _URL
    note = f"The dataset is in that folder: {', '.join(names)}" if len(names) > 1 else ""
    return {
        f"{folder}/{name}": root.file(f"{folder}/{name}", sha256=_SHA256[f"{folder}/{name}"], urls=[f"{at}/{name}"], note=note)
        for name in names
    }


def _load_csv(root: DataRoot, name: str, folder: str, remote: str, edges: str, header: int | None) -> NodeData:
    def read(stage: Path) -> dict[str, Array]:
        pairs = _ids(pd.read_csv(stage / folder / edges, header=header, usecols=[0, 1]), "edge")
        x = pd.read_csv(stage / folder / "features.csv", header=None).to_numpy(dtype=np.float32)
        return node_arrays(x=x, edge_index=both_ways(pairs), y=_labels(stage / folder / "labels.csv"))

    return load(root, name, _files(root, folder, remote, (edges, "features.csv", "labels.csv")), read)


def _ids(table: pd.DataFrame, what: str) -> Array:
    """The two columns of node ids, which are decimals in HumanGo: int64 [2, M]."""
    if table.shape[1] != 2:
        raise DataError(f"an {what} has {table.shape[1]} columns; expected the ids of two nodes")
    values = table.to_numpy(dtype=np.float64)
    bad = ~(values % 1 == 0).all(axis=1)  # NaN too
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"{what} {row} connects {values[row].tolist()}; expected the ids of two nodes")
    return np.ascontiguousarray(values.T).astype(np.int64)


def _labels(path: Path) -> Array:
    return binary(pd.read_csv(path, header=None).to_numpy(dtype=np.float64), "the label row of node")


def _without_features(pairs: Array, y: Array) -> dict[str, Array]:
    edge_index = both_ways(pairs)
    if edge_index.size and not (edge_index.min() >= 0 and edge_index.max() < len(y)):
        raise DataError(f"edges refer to nodes {edge_index.min()}..{edge_index.max()}; expected 0..{len(y) - 1}")
    return node_arrays(x=structural_features(pairs, len(y)), edge_index=edge_index, y=y)
