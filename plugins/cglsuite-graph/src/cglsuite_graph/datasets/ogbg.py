"""Graph-level datasets of OGB, read from raw files: gzipped CSV files over all graphs, with the numbers of nodes and edges per graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite.protocols.begin.splits import begin_array, begin_split
from cglsuite_graph.datasets import atoms
from cglsuite_graph.datasets.assemble import Array, Categories, both_ways, check_sizes, graph_data, reading, start_of

_URL = "https://snap.stanford.edu/ogb/data/graphproppred"
_FILES = ("edge", "edge-feat", "num-node-list", "num-edge-list", "graph-label")
_CHUNK = 1 << 20  # rows of edges at a time: ogbg-ppa has 358 million
_READER = 1  # part of the cache key: increment it when the reader's output changes


def ppa(root: DataRoot, edge_features: bool = True) -> GraphData:
    """Load the 40,700 graphs of ogbg-ppa that BeGin sampled, in its 11 domains (see its spec).

    The source has no node features; features here are in-degree and out-degree.

    Args:
        edge_features: whether edges carry their seven features.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    name = "ogbg-ppa"
    graphs = begin_array(root, name, "sampled_indices").astype(np.int64)
    domain, split = begin_array(root, name, "domain_info"), begin_split(root, name)
    if len({len(graphs), len(domain), len(split)}) != 1 or (np.diff(graphs) <= 0).any():
        raise DataError(
            "begin-splits/ogbg-ppa_metadata_domainIL.npz: sampled_indices must be in ascending order, and every array must have one "
            "entry per index"
        )
    paths = _raw(root, "ogbg_ppa", "ogbg_ppi_medium", f"{_URL}/ogbg_ppi_medium.zip", _FILES)
    arrays = root.derived(name, _key(root, paths) | {"graphs": root.sha256(_begin(root))}, lambda: read_chosen(paths, graphs))
    edge_index = both_ways(arrays["pairs"])
    data = graph_data(
        name,
        x=atoms.degrees(edge_index, int(arrays["sizes"].sum())),
        edge_index=edge_index,
        edge_attr=np.repeat(arrays["edge_attr"], 2, axis=0) if edge_features else None,
        sizes=arrays["sizes"],
        y=arrays["y"],
        n_classes=37,
        split=split,
        keys={"row": graphs, "domain": domain},
    )
    return check_sizes(data, root, "ogbg_ppa/raw")


def molhiv_graphs(root: DataRoot, split: Array | None, keys: Mapping[str, Array]) -> GraphData:
    """Load ogbg-molhiv from the raw files of OGB, with the features that OGB provides.

    Args:
        split, keys: passed to :func:`cglsuite_graph.datasets.assemble.graph_data`; one entry per graph.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    name = "ogbg-molhiv"
    paths = _raw(root, "ogbg_molhiv", "hiv", f"{_URL}/csv_mol_download/hiv.zip", (*_FILES, "node-feat"))
    arrays = root.derived(f"{name}-raw", _key(root, paths), lambda: read_chosen(paths, None))
    y = arrays["y"][:, None] > 0
    return graph_data(
        name,
        x=Categories(arrays["x"], atoms.OGB_ATOMS),
        edge_index=both_ways(arrays["pairs"]),
        edge_attr=Categories(np.repeat(arrays["edge_attr"], 2, axis=0), atoms.OGB_BONDS),
        sizes=arrays["sizes"],
        y=y,
        n_classes=1,
        known=np.ones_like(y),
        split=split,
        keys={"row": np.arange(len(y)), **keys},
    )


def read_chosen(paths: Mapping[str, Path], graphs: Array | None) -> dict[str, Array]:
    """Read the selected graphs in chunks, with nodes numbered over all of them.

    Args:
        paths: the raw files by name, ``node-feat`` where there is one.
        graphs: ascending positions of the graphs (int64 [n]); ``None`` for all.

    Returns:
        ``sizes`` int32 [n], ``y`` int64 [n], ``pairs`` int32 [2, B] (each edge as the file gives it, once), ``edge_attr`` float32 [B, D],
        and ``x`` float32 [N, F] if there are node features.

    Raises:
        DataError: a file is damaged, or inconsistent with the others.
    """
    nodes, edges, labels = (_column(paths[name]) for name in ("num-node-list", "num-edge-list", "graph-label"))
    if not len(nodes) == len(edges) == len(labels) or (graphs is not None and graphs.size and graphs[-1] >= len(nodes)):
        last = "" if graphs is None else f", and graph {graphs[-1]} is wanted"
        raise DataError(
            f"{paths['num-node-list'].parent}: found {len(nodes)} node counts, {len(edges)} edge counts and {len(labels)} labels{last}"
        )
    chosen = np.ones(len(nodes), np.bool_) if graphs is None else np.isin(np.arange(len(nodes)), graphs)
    sizes = nodes[chosen]
    shift = np.zeros(len(nodes), np.int64)
    shift[chosen] = start_of(sizes)[:-1]
    pairs, kinds = _edges(paths, start_of(edges), nodes, chosen, shift)
    arrays = {"sizes": sizes.astype(np.int32), "y": labels[chosen], "pairs": pairs, "edge_attr": kinds}
    if "node-feat" in paths:
        with reading(paths["node-feat"]):
            x = pd.read_csv(paths["node-feat"], header=None, dtype=np.float32).to_numpy()
        if len(x) != nodes.sum():
            raise DataError(f"{paths['node-feat']}: has {len(x):,} rows; expected {nodes.sum():,}, one per node")
        arrays["x"] = x[np.repeat(chosen, nodes)]
    return arrays


def _edges(paths: Mapping[str, Path], start: Array, nodes: Array, chosen: Array, shift: Array) -> tuple[Array, Array]:
    pairs, kinds = [np.zeros((2, 0), np.int32)], []
    seen = 0
    with (
        reading(paths["edge"]),
        pd.read_csv(paths["edge"], header=None, dtype=np.int64, chunksize=_CHUNK) as some,
        pd.read_csv(paths["edge-feat"], header=None, dtype=np.float32, chunksize=_CHUNK) as features,
    ):
        for piece, described in zip(some, features, strict=True):
            ends, values = piece.to_numpy().T, described.to_numpy()
            of = np.searchsorted(start, np.arange(seen, seen + ends.shape[1]), "right") - 1
            seen += ends.shape[1]
            if ends.shape[1] != len(values) or seen > start[-1]:
                raise DataError(
                    f"{paths['edge']} and the files next to it differ in length; expected {start[-1]:,} edges with one row of features each"
                )
            if ends.min() < 0 or (ends >= nodes[of]).any():
                raise DataError(
                    f"{paths['edge']}: an edge refers to a node that its graph does not have; nodes are numbered within each graph"
                )
            kept = chosen[of]
            pairs.append((ends + shift[of])[:, kept].astype(np.int32))
            kinds.append(values[kept])
    if seen != start[-1]:
        raise DataError(f"{paths['edge']}: found {seen:,} edges; expected {start[-1]:,}. The file is truncated; replace it")
    return np.concatenate(pairs, axis=1), np.concatenate(kinds)


def _raw(root: DataRoot, folder: str, inside: str, url: str, names: tuple[str, ...]) -> dict[str, Path]:
    members = {f"{folder}/raw/{name}.csv.gz": f"{inside}/raw/{name}.csv.gz" for name in names}
    paths = root.unpacked(members, urls=[url], note=f"Its folder {inside}/ becomes {folder}/")
    return {name: paths[f"{folder}/raw/{name}.csv.gz"] for name in names}


def _key(root: DataRoot, paths: Mapping[str, Path]) -> dict[str, object]:
    return {"reader": _READER, "files": {name: root.sha256(path) for name, path in paths.items()}}


def _begin(root: DataRoot) -> Path:
    return root.file("begin-splits/ogbg-ppa_metadata_domainIL.npz")


def _column(path: Path) -> Array:
    with reading(path):
        column: Array = pd.read_csv(path, header=None, dtype=np.int64)[0].to_numpy()
    return column
