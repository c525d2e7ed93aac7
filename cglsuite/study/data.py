"""Write in-memory data to a data file, so that worker processes can read it. Files are cached by content."""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError, UsageError, nearest
from cglsuite.base.inputs import check_path, quoted
from cglsuite.base.markup import displayed
from cglsuite.cells.run import build_scenario
from cglsuite.cells.spec import resolve_scenario
from cglsuite.graphs import GraphData, GraphSource, LinkData, NodeData, PackedSource
from cglsuite.graphs.files.given import data_warnings
from cglsuite.graphs.files.named import name_of, named
from cglsuite.graphs.files.options import FileOptions
from cglsuite.graphs.files.tables import MASKS, UNUSED, arrays_of, plain_array, together
from cglsuite.host import load_catalogue
from cglsuite.specs import DatasetSpec, Seeds
from cglsuite.streams import TaskFreeStream, TaskStream, TaskView

_log = logging.getLogger(__name__)
_OF_SAVEZ = ("file", "allow_pickle")
"""Parameter names of :func:`numpy.savez`, which cannot be used as array names."""
_FORMS = (
    "the name of a data set, a path to a data file, pyg:<class>/<name>, ogb:<name>, a PyG Data (or a list or dataset of them), a NodeData, "
    "LinkData or GraphData, or a dict of arrays"
)


def as_data_file(data: Any, name: str = "") -> Path:
    """Return the path of a file that holds ``data``.

    Args:
        data: a path to a data file; ``"pyg:<class>/<name>"`` or ``"ogb:<name>"``; a PyG ``Data``, a list of them or a PyG dataset; a
            :class:`cglsuite.graphs.NodeData`, ``LinkData`` or ``GraphData``; or a mapping of names to arrays and tensors (see
            :mod:`cglsuite.graphs.files.tables`).
        name: the data set's name; default: the name of the ``NodeData``, ``LinkData`` or ``GraphData``, or else ``"data"``.

    Raises:
        UsageError: the type is not supported, or the name cannot be used as a file name.
        DataError: an array holds Python objects, or the graphs are inconsistent.
    """
    if isinstance(data, str) and data.startswith(LIBRARIES):
        data, known = load_from_library(data)
        name = name or known
    if isinstance(data, (str, Path)):
        return Path(data).expanduser().absolute()
    if isinstance(data, (NodeData, LinkData, GraphData)):
        name = name or data.name
        arrays = (
            _node_arrays(data) if isinstance(data, NodeData) else _link_arrays(data) if isinstance(data, LinkData) else _graph_arrays(data)
        )
    elif isinstance(data, Mapping):
        where = name or "data"
        arrays = {str(key): None if value is None else plain_array(f"{where}: {key}", value) for key, value in data.items()}
    elif _is_graph(data):
        arrays = arrays_of(data, name or "data")
    elif (graphs := _graphs(data)) is not None:
        name = name or str(getattr(data, "name", "")) or (type(data).__name__.lower() if not isinstance(data, Sequence) else "")
        where = name or "data"
        arrays = together(Path(where), [arrays_of(graph, f"{where}: graph {number}") for number, graph in enumerate(graphs)])
    else:
        raise UsageError(f"data is a {type(data).__name__}; expected {_FORMS}")
    unused = sorted(key for key, value in arrays.items() if value is None or key in _OF_SAVEZ)
    given = {key: value for key, value in arrays.items() if key not in unused} | ({UNUSED: np.array(unused)} if unused else {})
    return _write_arrays_file(given, name or "data")


def options_by_name(files: Sequence[Path], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the data options of a call, keyed by the data set's name.

    Raises:
        UsageError: there is no data for the options, or an option is unknown.
    """
    if not options:
        return {}
    if not files:
        raise UsageError(f"{', '.join(sorted(options))}: these options describe data that you pass in, but no data was passed")
    said = FileOptions.of(options, "options of the data")
    return {name_of(files[0]): {name: value for name, value in asdict(said).items() if value is not None}}


def _is_graph(data: Any) -> bool:
    """Return whether the object is a homogeneous PyG ``Data`` with a graph."""
    return hasattr(data, "to_dict") and hasattr(data, "edge_index") and not hasattr(data, "edge_types")


def _graphs(data: Any) -> list[Any] | None:
    """Return the graphs in a list or a PyG dataset; ``None`` for any other object."""
    if not isinstance(data, Sequence) and not hasattr(type(data), "raw_dir"):
        return None
    graphs = [data[number] for number in range(len(data))]
    return graphs if graphs and all(map(_is_graph, graphs)) else None


def _write_arrays_file(arrays: Mapping[str, Any], name: str) -> Path:
    flat = dict(_with_parts(arrays))
    total = hashlib.sha256()
    for key, value in sorted(flat.items()):
        array = np.ascontiguousarray(value)
        total.update(f"{key}|{array.dtype.str}{array.shape}|".encode() + array.tobytes())
    file = re.sub(r"[/\\]", "-", name)
    path = DataRoot.from_environment().cache / "given" / total.hexdigest()[:16] / f"{file}.npz"
    try:
        check_path(path)
    except ValueError as error:
        raise UsageError(f"name = {quoted(name)}: {error}") from None
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


def _node_arrays(data: NodeData) -> dict[str, Any]:
    return {"x": plain_array("x", data.x), "edge_index": data.edge_index.numpy()} | _item_arrays(data)


def _link_arrays(data: LinkData) -> dict[str, Any]:
    arrays = {"links": data.links.numpy(), "n_nodes": np.array(data.n_nodes)} | _item_arrays(data)
    arrays |= {"base_edges": data.base_edges.numpy()} if data.base_edges.numel() else {}
    if data.multi_label and bool(data.y.all()) and data.n_classes == 1:
        arrays = {key: value for key, value in arrays.items() if key not in ("y", "known", "n_classes")}  # pairs to predict
    arrays |= {} if data.x is None else {"x": plain_array("x", data.x)}
    return arrays | ({} if data.node_types is None else {"node_types": data.node_types.numpy()})


def _graph_arrays(data: GraphData) -> dict[str, Any]:
    items = data.items
    if not isinstance(items, PackedSource):
        return _single_graphs(items) | _item_arrays(data)
    pack = items._pack
    arrays = {"x": plain_array("x", pack.x), "edge_index": pack.edge_index.numpy()} | _item_arrays(data)
    arrays |= {"graph": np.repeat(np.arange(data.n_items), np.diff(pack.node_start.numpy()))}
    return arrays if pack.edge_attr is None else arrays | {"edge_attr": pack.edge_attr.numpy()}


def _single_graphs(items: GraphSource) -> dict[str, Any]:
    """Return the graphs of any source as they appear in queries: not augmented and without self-loops."""
    graphs = [items.queries(torch.tensor([number]), "cpu") for number in range(len(items))]
    sizes = [graph.n_nodes for graph in graphs]
    starts = np.cumsum([0, *sizes])
    arrays = {
        "x": np.concatenate([graph.dense.numpy() for graph in graphs]),
        "edge_index": np.concatenate([graph.edge_index.numpy() + start for graph, start in zip(graphs, starts, strict=False)], axis=1),
        "graph": np.repeat(np.arange(len(graphs)), sizes),
    }
    if not any(graph.n_edge_features for graph in graphs):
        return arrays
    return arrays | {"edge_attr": np.concatenate([graph.edge_features.numpy() for graph in graphs if graph.edge_features is not None])}


def _item_arrays(data: NodeData | LinkData | GraphData) -> dict[str, Any]:
    """Return the arrays of a container that describe its items: labels, which labels are known, split and attributes."""
    arrays: dict[str, Any] = {"y": data.y.numpy(), "n_classes": np.array(data.n_classes)}
    if data.y.dim() == 1:
        arrays |= {"known": data.y.numpy() >= 0}
    elif data.known is not None:
        arrays |= {"known": data.known.numpy()}
    if data.official_split is not None:
        split = data.official_split.numpy()
        arrays |= {mask: split == part for part, mask in enumerate(MASKS)}
    return arrays | {key: values.numpy() for key, values in data.keys.items()}


# Data sets and streams by name, for inspection or for a custom training loop.


def load_dataset(name: str, **hyperparameters: Any) -> NodeData | LinkData | GraphData:
    """Load a data set by name (see ``cglsuite list datasets``).

    Args:
        hyperparameters: the data set's hyperparameters, such as ``n_nodes=400``.

    Raises:
        UnknownNameError: no plugin provides the data set. DataError: its files are missing or damaged.
    """
    _show_in_notebooks()
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
    **data_options: Any,
) -> TaskStream | TaskFreeStream:
    """Build the stream of a scenario. ``stream.view(k)`` is what a method sees of task ``k``, for ``k`` in ``range(len(stream))``.

    Args:
        scenario: a preset such as ``"cora/class-il@cglb-1"``; if you pass ``data``, the part after the slash is enough.
        data: your own data (see :func:`cglsuite.run`).
        order: seed of the class or task order. split: seed of the split.
        overrides: switches and data-set hyperparameters by dotted name.
        name: the name of ``data``. data_options: how to read what ``data`` does not specify (see :func:`cglsuite.run`).

    Raises:
        UsageError: the scenario is unknown or an override does not fit.
    """
    _show_in_notebooks()
    files = [] if data is None else [as_data_file(data, name)]
    with named(data=files, options=options_by_name(files, data_options)):
        catalogue = load_catalogue()
        for warning in data_warnings(catalogue.specs(DatasetSpec).values()):
            _log.warning("%s", warning)
        if files and "/" not in scenario:
            scenario = f"{next(r.provides['dataset'][0] for r in catalogue.records if r.source == files[0])}/{scenario}"
        resolved, seeds = resolve_scenario(catalogue, scenario, dict(overrides or {})), Seeds(order=order, split=split)
        return build_scenario(catalogue, resolved.spec, resolved.dataset_hyperparameters, seeds)


def _show_in_notebooks() -> None:
    """Register notebook cards for data sets and views if IPython is running. Their classes cannot, since keys cover their modules."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and (shell := ipython.get_ipython()) is not None:
        for kind, how in ((NodeData, "data_card"), (LinkData, "data_card"), (GraphData, "data_card"), (TaskView, "view_card")):
            shell.display_formatter.formatters["text/html"].for_type(kind, partial(displayed, how))


# PyG and OGB data sets by name (``pyg:Planetoid/PubMed``, ``ogb:ogbn-arxiv``), converted to data files in the cache.

LIBRARIES = ("pyg:", "ogb:")


def load_from_library(reference: str) -> tuple[Any, str]:
    """Load a data set from PyG or OGB, and return it with its name. The library downloads missing files to the cache.

    Args:
        reference: ``"pyg:<class>"`` or ``"pyg:<class>/<name>"`` of :mod:`torch_geometric.datasets`; ``"ogb:<name>"`` of a node-property
            data set.

    Returns:
        A PyG ``Data``, a list of them, or a dict of arrays; and the name in lower case.

    Raises:
        UsageError: there is no such data set.
        DataError: the library could not load it; the message quotes the library's error.
    """
    library, _, rest = reference.partition(":")
    kind, _, name = rest.partition("/")
    if any(part in ("", ".", "..") for part in rest.split("/")):
        raise UsageError(f"{reference}: expected pyg:CLASS, pyg:CLASS/NAME or ogb:NAME")
    root = DataRoot.from_environment()
    folder = root.cache / library / kind
    layout = Path(kind, name) if library == "pyg" else Path(kind.replace("-", "_"))
    _link_raw_files(root, layout, folder / (name if library == "pyg" else layout))
    files = f"its files into {layout}/ in a folder of CGLSUITE_DATA, in the library's layout"
    offline = _without_connections(f"{reference}: CGLSUITE_OFFLINE forbids the download; put {files}")
    with offline if root.offline else nullcontext():
        loaded = _pyg(reference, kind, name, folder) if library == "pyg" else _ogb(reference, kind, folder)
    return loaded, (name or kind).lower()


def _link_raw_files(root: DataRoot, layout: Path, place: Path) -> None:
    """Link raw files from CGLSUITE_DATA to where a library looks for them, leaving out files that the library generates."""
    for folder in root.folders:
        for file in sorted((folder / layout).rglob("*")):
            link = place / file.relative_to(folder / layout)
            if "processed" in link.parts or not file.is_file() or link.exists():
                continue
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)  # a broken link
            link.symlink_to(file)


@contextmanager
def _without_connections(message: str) -> Iterator[None]:
    """Within the block, raise DataError with this message on every attempt to look up or connect to a host."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise DataError(message)

    with ExitStack() as stack:
        for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo"), (socket, "gethostbyname")):
            stack.enter_context(mock.patch.object(owner, name, refuse))
        yield


def _unloaded(reference: str, library: str, error: BaseException) -> DataError:
    said = str(error).strip().partition("\n")[0]
    why = type(error).__name__ + (f": {said}" if said else ", without a message: check the name of the data set")
    return DataError(f"{reference}: {library} could not load it ({why})")


def _pyg(reference: str, kind: str, name: str, folder: Path) -> Any:
    from torch_geometric import datasets

    loader = None if kind.startswith("_") else getattr(datasets, kind, None)
    if not inspect.isclass(loader):
        close = nearest(kind, datasets.__all__, 1)
        raise UsageError(f"{reference}: torch_geometric.datasets has no {kind}{f'; did you mean {close[0]}?' if close else ''}")
    takes = inspect.signature(loader).parameters
    if name and "name" not in takes:
        raise UsageError(f"{reference}: {kind} is a single data set, which takes no name: expected pyg:{kind}")
    if not name and "name" in takes and takes["name"].default is inspect.Parameter.empty:
        raise UsageError(f"{reference}: {kind} has several data sets: expected pyg:{kind}/NAME")
    arguments = ({"root": str(folder)} if "root" in takes else {}) | ({"name": name} if name else {})
    try:
        loaded: Any = loader(**arguments)
    except DataError:
        raise
    except Exception as error:
        raise _unloaded(reference, "PyG", error) from error
    return loaded[0] if len(loaded) == 1 else list(loaded)


def _ogb(reference: str, name: str, folder: Path) -> dict[str, Any]:
    from ogb.nodeproppred import NodePropPredDataset

    try:
        loaded = NodePropPredDataset(name, root=str(folder))
        graph, labels = loaded[0]
        split = loaded.get_idx_split()
    except DataError:
        raise
    except (Exception, SystemExit) as error:
        raise _unloaded(reference, "OGB", error) from error
    arrays = {"x": graph["node_feat"], "edge_index": graph["edge_index"], "y": labels}
    arrays |= {mask: np.asarray(split[part]) for mask, part in (("train", "train"), ("validation", "valid"), ("test", "test"))}
    year = graph.get("node_year")
    return arrays if year is None else {**arrays, "time": year.reshape(-1)}
