"""Data sets of PyG and OGB by name (``pyg:Planetoid/PubMed``, ``ogb:ogbn-arxiv``), as data files in the cache."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UsageError, nearest

__all__ = ["LIBRARIES", "load_from_library"]

LIBRARIES = ("pyg:", "ogb:")


def load_from_library(reference: str) -> tuple[Any, str]:
    """The data that a reference names, and a name for them. The library downloads what it needs to the cache.

    Args:
        reference: ``"pyg:<class>"`` or ``"pyg:<class>/<name>"`` of :mod:`torch_geometric.datasets`; ``"ogb:<name>"`` of a node-property
            data set.

    Returns:
        A PyG ``Data``, a list of them, or a dict of arrays; the name in lower case.

    Raises:
        UsageError: no such data set.
        DataError: the library could not load it; the message is the library's own.
    """
    library, _, rest = reference.partition(":")
    kind, _, name = rest.partition("/")
    folder = DataRoot.from_environment().cache / library / kind
    loaded = _pyg(reference, kind, name, folder) if library == "pyg" else _ogb(reference, kind, folder)
    return loaded, (name or kind).lower()


def _pyg(reference: str, kind: str, name: str, folder: Path) -> Any:
    from torch_geometric import datasets

    if not (inspect.isclass(made := getattr(datasets, kind, None))):
        close = nearest(kind, datasets.__all__, 1)
        raise UsageError(f"{reference}: torch_geometric.datasets has no {kind}{f'; did you mean {close[0]}?' if close else ''}")
    takes = inspect.signature(made).parameters
    if name and "name" not in takes:
        raise UsageError(f"{reference}: {kind} takes no name; expected pyg:{kind}")
    given = ({"root": str(folder)} if "root" in takes else {}) | ({"name": name} if name else {})
    try:
        loaded: Any = made(**given)
    except Exception as error:
        raise DataError(f"{reference}: PyG could not load it ({type(error).__name__}: {error})") from error
    return loaded[0] if len(loaded) == 1 else list(loaded)


def _ogb(reference: str, name: str, folder: Path) -> dict[str, Any]:
    from ogb.nodeproppred import NodePropPredDataset

    try:
        loaded = NodePropPredDataset(name, root=str(folder))
        graph, labels = loaded[0]
        split = loaded.get_idx_split()
    except (Exception, SystemExit) as error:
        raise DataError(f"{reference}: OGB could not load it ({type(error).__name__}: {error})") from error
    arrays = {"x": graph["node_feat"], "edge_index": graph["edge_index"], "y": labels}
    arrays |= {mask: np.asarray(split[part]) for mask, part in (("train", "train"), ("validation", "valid"), ("test", "test"))}
    year = graph.get("node_year")
    return arrays if year is None else {**arrays, "time": year.reshape(-1)}
