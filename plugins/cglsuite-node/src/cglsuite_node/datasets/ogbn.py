"""ogbn-arxiv and ogbn-products, with OGB's readers of raw files (its processing fails under current torch)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.datafiles import DataRoot
from cglsuite.graphs.data import NodeData
from cglsuite_node.datasets.arrays import Array, load, pack

__all__ = ["arxiv", "products"]

_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
_SPLIT = ("train", "valid", "test")
_URL = "https://snap.stanford.edu/ogb/data/nodeproppred"


def arxiv(root: DataRoot) -> NodeData:
    """ogbn-arxiv, directed as given, with the year of every paper; see its spec. Raises DataError."""
    return _load(root, "arxiv", "time", inverse=False, extra=("node_year",))


def products(root: DataRoot) -> NodeData:
    """ogbn-products, both directions; see its spec. Raises DataError."""
    return _load(root, "products", "sales_ranking", inverse=True)


def _load(root: DataRoot, short: str, rule: str, *, inverse: bool, extra: tuple[str, ...] = ()) -> NodeData:
    below = [f"raw/{name}.csv.gz" for name in (*_RAW, *extra)] + [f"split/{rule}/{part}.csv.gz" for part in _SPLIT]
    members = {f"ogbn_{short}/{name}": f"{short}/{name}" for name in below}

    def read(folder: Path) -> dict[str, Array]:
        return _read(folder / f"ogbn_{short}", rule, inverse, extra)

    note = f"Its folder {short}/ becomes ogbn_{short}/"
    return load(root, f"ogbn-{short}", root.unpacked(members, urls=[f"{_URL}/{short}.zip"], note=note), read)


def _read(folder: Path, rule: str, inverse: bool, extra: tuple[str, ...]) -> dict[str, Array]:
    read_graphs = _ogb_reader()
    with contextlib.redirect_stdout(sys.stderr):  # it prints; stdout is data
        graph = read_graphs(str(folder / "raw"), add_inverse_edge=inverse, additional_node_files=list(extra))[0]
    split = np.full(graph["num_nodes"], -1, dtype=np.int8)
    for code, part in enumerate(_SPLIT):
        split[_column(folder / "split" / rule / f"{part}.csv.gz")] = code
    return pack(
        x=graph["node_feat"],
        edge_index=graph["edge_index"],
        y=_column(folder / "raw" / "node-label.csv.gz"),
        split=split,
        keys={name.removeprefix("node_"): graph[name] for name in extra},
    )


def _column(path: Path) -> Array:
    return pd.read_csv(path, header=None)[0].to_numpy()


def _ogb_reader() -> Callable[..., list[dict[str, Any]]]:
    """``ogb.io.read_graph_raw.read_csv_graph_raw``, imported without the thread in which ogb asks the network for a newer version."""
    before = sys.modules.get("outdated")
    sys.modules["outdated"] = _HIDDEN
    try:
        from ogb.io.read_graph_raw import read_csv_graph_raw
    finally:
        if before is None:
            del sys.modules["outdated"]
        else:
            sys.modules["outdated"] = before
    reader: Callable[..., list[dict[str, Any]]] = read_csv_graph_raw
    return reader


# A module without the name that ogb looks for: its import raises ImportError, which ogb expects.
_HIDDEN = ModuleType("outdated")
