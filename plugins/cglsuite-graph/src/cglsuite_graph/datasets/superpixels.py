"""MNIST and CIFAR10 as superpixel graphs, read from the files of the PyG class GNNBenchmarkDataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_graph.datasets.assemble import UNREADABLE, Array, check_sizes, graph_data, start_of

_URL = "https://data.pyg.org/datasets/benchmarking-gnns"
_FIELDS = ("x", "pos", "edge_index", "edge_attr", "y")
_CLASSES = 10
_READER = 1  # part of the cache key: increment it when the reader's output changes


def mnist(root: DataRoot, edge_features: bool = False) -> GraphData:
    """Load MNIST superpixels, with the intensity and position of each node; see :func:`cifar10`."""
    return _superpixels(root, "mnist", edge_features)


def cifar10(root: DataRoot, edge_features: bool = False) -> GraphData:
    """Load CIFAR10 superpixels, with the colour and position of each node (see its spec).

    Args:
        edge_features: whether edges carry their distance.

    Raises:
        DataError: the file is missing, damaged, holds anything but tensors, or has other fields.
    """
    return _superpixels(root, "cifar10", edge_features)


def _superpixels(root: DataRoot, name: str, edge_features: bool) -> GraphData:
    stem = f"{name.upper()}_v2"
    relative = f"{name.upper()}/raw/{stem}.pt"
    path = root.unpacked({relative: f"{stem}.pt"}, urls=[f"{_URL}/{stem}.zip"])[relative]
    arrays = root.derived(name, {"reader": _READER, "sha256": root.sha256(path)}, lambda: read_benchmark_file(path))
    data = graph_data(
        name,
        x=arrays["x"],
        edge_index=arrays["edge_index"],
        edge_attr=arrays["edge_attr"] if edge_features else None,
        sizes=arrays["sizes"],
        y=arrays["y"],
        n_classes=_CLASSES,
        split=arrays["split"],
        keys={"row": np.arange(len(arrays["y"]))},
    )
    return check_sizes(data, root, path)


def read_benchmark_file(path: Path) -> dict[str, Array]:
    """Read all graphs of the training, validation and test parts and concatenate them.

    The file is a torch pickle, which is read by torch's restricted reader. The reader creates only tensors, numbers and containers; a file
    with anything else is rejected without running any code.

    Returns:
        ``x`` float32 [N, F] (features, then position), ``edge_index`` int32 [2, E], ``edge_attr`` float32 [E, D], ``sizes`` int32 [n],
        ``y`` int64 [n], ``split`` int8 [n].

    Raises:
        DataError: the file is damaged, holds anything but tensors in containers, or has other parts or fields.
    """
    try:
        parts = torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise DataError(
            f"{path} is truncated or contains objects other than tensors, so it was not read ({type(error).__name__}: {error}). "
            "Replace the file"
        ) from error
    _check_form(parts, path)
    graphs = [graph for part in parts for graph in part]
    sizes = np.array([len(graph["x"]) for graph in graphs])
    edges = np.array([graph["edge_index"].shape[1] for graph in graphs])
    edge_index = _joined(graphs, "edge_index", 1) + np.repeat(start_of(sizes)[:-1], edges)
    return {
        "x": np.concatenate([_joined(graphs, "x"), _joined(graphs, "pos")], axis=1, dtype=np.float32),
        "edge_index": edge_index.astype(np.int32),
        "edge_attr": _joined(graphs, "edge_attr").reshape(edge_index.shape[1], -1).astype(np.float32),
        "sizes": sizes.astype(np.int32),
        "y": _joined(graphs, "y").astype(np.int64),
        "split": np.repeat(np.arange(3, dtype=np.int8), [len(part) for part in parts]),
    }


def _check_form(parts: Any, path: Path) -> None:
    if not isinstance(parts, (list, tuple)) or len(parts) != 3 or not all(isinstance(part, (list, tuple)) and part for part in parts):
        raise DataError(f"{path}: expected three lists of graphs (training, validation, test)")
    for graph in (graph for part in parts for graph in part):
        if not isinstance(graph, Mapping) or not all(isinstance(graph.get(name), torch.Tensor) for name in _FIELDS):
            raise DataError(f"{path}: a graph is missing one of the tensors {', '.join(_FIELDS)}")


def _joined(graphs: Sequence[Mapping[str, torch.Tensor]], name: str, dim: int = 0) -> Array:
    joined: Array = torch.cat([graph[name] for graph in graphs], dim=dim).numpy()
    return joined
