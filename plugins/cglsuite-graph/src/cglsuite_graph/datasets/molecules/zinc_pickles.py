"""ZINC-12k from the official files: three pickles of molecules, and the indices of the subset."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot, RawFile
from cglsuite.base.errors import DataError
from cglsuite.base.pickles import read_pickle
from cglsuite.graphs import GraphData
from cglsuite_graph.datasets.assemble import Array, Categories, check_sizes, graph_data, reading, start_of
from cglsuite_graph.datasets.molecules.regression import size_domain

_PARTS = ("train", "val", "test")
_FIELDS = ("atom_type", "bond_type", "logP_SA_cycle_normalized")
_ATOM_TYPES, _BOND_TYPES = 28, 4
_READER = 1  # part of the cache key: increment it when the reader's output changes
_NOTE = (
    "They are the pickles of molecules.zip of https://github.com/graphdeeplearning/benchmarking-gnns (data/molecules) and the .index files "
    "beside it, in the layout of PyG's class ZINC"
)


def zinc(root: DataRoot) -> GraphData:
    """Load ZINC-12k with 28 types of atoms and 4 types of bonds (see its spec).

    Raises:
        DataError: a file is missing, damaged, holds anything but tensors, or does not fit the others.
    """
    name = "zinc"
    files = [f"ZINC/raw/{part}.{kind}" for part in _PARTS for kind in ("pickle", "index")]
    # No checksums are published for these files: the checksums of the first read are recorded.
    raw = {relative: root.read(relative, pin=True, note=_NOTE) for relative in files}
    key = {"reader": _READER, "files": {relative: file.sha256 for relative, file in raw.items()}}
    arrays = root.derived(name, key, lambda: _read(raw))
    data = graph_data(
        name,
        x=Categories(arrays["atoms"][:, None], (_ATOM_TYPES,)),
        edge_index=arrays["edge_index"],
        edge_attr=Categories(arrays["bonds"][:, None], (_BOND_TYPES,)),
        sizes=arrays["sizes"],
        y=arrays["y"][:, None],
        n_classes=1,
        split=arrays["split"],
        keys={"row": arrays["row"], "domain": size_domain(arrays["sizes"])},
    )
    return check_sizes(data, root, "ZINC/raw")


def _read(raw: Mapping[str, RawFile]) -> dict[str, Array]:
    molecules: list[Mapping[str, torch.Tensor]] = []
    rows, split = [], []
    for code, part in enumerate(_PARTS):
        molecule_file, index = (raw[f"ZINC/raw/{part}.{kind}"] for kind in ("pickle", "index"))
        with reading(index.path):
            row = np.array(index.content.decode("utf-8").replace("\n", "").strip(",").split(","), dtype=np.int64)
        pickled = read_molecules(molecule_file)
        if row.min() < 0 or row.max() >= len(pickled):
            held = f"{molecule_file.path.name} holds {len(pickled):,}"
            raise DataError(f"{index.path} refers to molecule {row.max()}; {held}. The two files do not belong together")
        molecules += [pickled[i] for i in row]
        rows.append(row)
        split.append(np.full(len(row), code, np.int8))
    sizes = np.array([len(m["atom_type"]) for m in molecules])
    edges = [m["bond_type"].nonzero().T for m in molecules]
    bonds = [m["bond_type"][e[0], e[1]] for m, e in zip(molecules, edges, strict=True)]
    shift = np.repeat(start_of(sizes)[:-1], [e.shape[1] for e in edges])
    arrays = {
        "row": np.concatenate(rows),
        "split": np.concatenate(split),
        "sizes": sizes.astype(np.int32),
        "atoms": torch.cat([m["atom_type"].reshape(-1) for m in molecules]).numpy().astype(np.int16),
        "edge_index": (torch.cat(edges, dim=1).numpy() + shift).astype(np.int32),
        "bonds": torch.cat(bonds).numpy().astype(np.int16),
        "y": torch.stack([m["logP_SA_cycle_normalized"].reshape(-1)[0] for m in molecules]).numpy().astype(np.float64),
    }
    for what, bound in (("atoms", _ATOM_TYPES), ("bonds", _BOND_TYPES)):
        if arrays[what].min() < 0 or arrays[what].max() >= bound:
            raise DataError(f"ZINC/raw: found type {arrays[what].max()} among the {what}; expected a value below {bound}")
    return arrays


def read_molecules(file: RawFile) -> Sequence[Mapping[str, torch.Tensor]]:
    """Read the molecules of one pickle, each as a mapping of tensors.

    Pickles can run any code; this reader creates only tensors and containers and rejects everything else (:mod:`cglsuite.base.pickles`).

    Raises:
        DataError: the file is damaged, names anything else, or lacks a field.
    """
    path = file.path
    with reading(path):
        molecules = read_pickle(file.content, _NAMES)
    if not isinstance(molecules, (list, tuple)):
        raise DataError(f"{path}: expected a list of molecules, found {type(molecules).__name__}")
    for i, molecule in enumerate(molecules):
        if not isinstance(molecule, Mapping) or not all(isinstance(molecule.get(name), torch.Tensor) for name in _FIELDS):
            raise DataError(f"{path}: molecule {i} is missing one of the tensors {', '.join(_FIELDS)}")
    return molecules


def _storage(content: Any) -> Any:
    if type(content) is not bytes:
        raise pickle.UnpicklingError("a tensor has a storage that does not consist of bytes")
    storage = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(storage, (torch.TypedStorage, torch.UntypedStorage)):
        raise pickle.UnpicklingError(f"a tensor has a {type(storage).__name__} as its storage")
    return storage


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> torch.Tensor:
    counts = [offset, *(size if type(size) is tuple else [None]), *(stride if type(stride) is tuple else [None])]
    if not isinstance(storage, torch.TypedStorage) or not all(type(n) is int and n >= 0 for n in counts) or len(size) != len(stride):
        raise pickle.UnpicklingError("a tensor has an invalid shape")
    # torch checks them against the size of the storage.
    return torch._utils._rebuild_tensor_v2(storage, offset, size, stride, False, OrderedDict())  # type: ignore[no-any-return]


_NAMES: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): lambda *_: {},
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch.storage", "_load_from_bytes"): _storage,
}
