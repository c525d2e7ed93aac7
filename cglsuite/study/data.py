"""Data in memory as a data file, so that worker processes read what a notebook made; named by content, kept in the cache."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UsageError, nearest
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_scenario
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.files.named import named
from cglsuite.graphs.files.tables import arrays_of, together
from cglsuite.host import load_catalogue
from cglsuite.specs import Seeds
from cglsuite.streams import TaskFreeStream, TaskStream

__all__ = ["LIBRARIES", "as_data_file", "build_stream", "load_dataset", "load_from_library"]

_FORMS = (
    "the name of a data set, a path to a data file, pyg:<class>/<name>, ogb:<name>, a PyG Data (or a list of them), a NodeData, or a dict "
    "of arrays"
)


def as_data_file(data: Any, name: str = "") -> Path:
    """The path of a file with ``data``.

    Args:
        data: a path to a data file; ``"pyg:<class>/<name>"`` or ``"ogb:<name>"``; a PyG ``Data`` or a list of them; a
            :class:`cglsuite.graphs.NodeData`; or a mapping of names to arrays and tensors (see :mod:`cglsuite.graphs.files.tables`).
        name: the data set's name; default ``"data"``, or the name of a ``NodeData``.

    Raises:
        UsageError: another type.
        DataError: a list of graphs in which one lacks ``x``, ``edge_index`` or ``y``.
    """
    if isinstance(data, str) and data.startswith(LIBRARIES):
        data, known = load_from_library(data)
        name = name or known
    if isinstance(data, (str, Path)):
        return Path(data).expanduser().absolute()
    if isinstance(data, NodeData):
        arrays, name = _of_nodes(data), name or data.name
    elif isinstance(data, Mapping):
        arrays = {str(key): _plain(value) for key, value in data.items()}
    elif hasattr(data, "to_dict") and hasattr(data, "edge_index"):
        arrays = arrays_of(data)
        if "train_mask" in arrays and not {"val_mask", "test_mask"} <= arrays.keys():
            del arrays["train_mask"]  # of a graph that names training nodes only, as KarateClub: no split
    elif isinstance(data, Sequence) and data and all(hasattr(graph, "to_dict") for graph in data):
        arrays = together(Path(name or "data"), [arrays_of(graph) for graph in data])
    else:
        raise UsageError(f"data is a {type(data).__name__}; expected {_FORMS}")
    return _written(arrays, name or "data")


def _written(arrays: Mapping[str, Any], name: str) -> Path:
    flat = dict(_with_parts(arrays))
    total = hashlib.sha256()
    for key, value in sorted(flat.items()):
        array = np.ascontiguousarray(value)
        total.update(f"{key}|{array.dtype.str}{array.shape}|".encode() + array.tobytes())
    path = DataRoot.from_environment().cache / "given" / total.hexdigest()[:16] / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part.npz")
        np.savez(temporary, allow_pickle=False, **flat)
        temporary.replace(path)
    return path


def _with_parts(arrays: Mapping[str, Any]) -> Any:
    for key, value in arrays.items():
        if hasattr(value, "tocsr"):
            csr = value.tocsr()
            yield from ((f"{key}_data", csr.data), (f"{key}_indices", csr.indices), (f"{key}_indptr", csr.indptr))
            yield f"{key}_shape", np.array(csr.shape)
        else:
            yield key, np.asarray(value)


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _of_nodes(data: NodeData) -> dict[str, Any]:
    import scipy.sparse

    x: Any = data.x
    if str(x.layout) == "torch.sparse_csr":
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        x = scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))
    arrays = {"x": _plain(x), "edge_index": data.edge_index.numpy(), "y": data.y.numpy()}
    if data.official_split is not None:
        split = data.official_split.numpy()
        arrays |= {mask: split == part for part, mask in enumerate(("train", "validation", "test"))}
    return arrays | {key: values.numpy() for key, values in data.keys.items()}


# Data sets and streams by name, for a look around or a training loop of one's own.


def load_dataset(name: str, **hyperparameters: Any) -> NodeData | LinkData | GraphData:
    """The data set of that name (``cglsuite list datasets``).

    Args:
        hyperparameters: the data set's own, such as ``n_nodes=400``.

    Raises:
        UnknownNameError: no plugin provides it. DataError: its files are absent or damaged.
    """
    catalogue = load_catalogue()
    data: NodeData | LinkData | GraphData = catalogue.resolve(catalogue.get("dataset", name))(
        DataRoot.from_environment(), **hyperparameters
    )
    return data


def build_stream(
    scenario: str,
    data: Any = None,
    *,
    order: int = 0,
    split: int = 0,
    overrides: Mapping[str, Any] | None = None,
    name: str = "",
) -> TaskStream | TaskFreeStream:
    """The stream of a scenario: ``for k in range(len(stream)): stream.view(k)`` gives what a method sees of each task.

    Args:
        scenario: a preset such as ``"cora/class-il@cglb-1"``; with ``data`` the part after the slash is enough.
        data: data of your own (see :func:`cglsuite.run`).
        order: seed of the order of classes or tasks. split: seed of the split.
        overrides: switches and the data set's hyper-parameters by dotted name.
        name: the name of ``data``.

    Raises:
        UsageError: the scenario is unknown or an override does not fit.
    """
    files = [] if data is None else [as_data_file(data, name)]
    with named(data=files):
        catalogue = load_catalogue()
        if files and "/" not in scenario:
            scenario = f"{next(r.provides['dataset'][0] for r in catalogue.records if r.source == files[0])}/{scenario}"
        resolved, seeds = resolve_scenario(catalogue, scenario, dict(overrides or {})), Seeds(order=order, split=split)
        return build_scenario(catalogue, resolved.spec, resolved.dataset_hyperparameters, seeds)


# Data sets of PyG and OGB by name (``pyg:Planetoid/PubMed``, ``ogb:ogbn-arxiv``), as data files in the cache.

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
