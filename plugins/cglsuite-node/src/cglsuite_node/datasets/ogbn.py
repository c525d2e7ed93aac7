"""The node-level datasets of OGB, read from their raw files. OGB's own processing fails under current versions of torch, and its reader
holds several copies of a file in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData, node_arrays
from cglsuite.protocols.begin.splits import with_begin_split
from cglsuite_node.datasets.arrays import Array, binary, both_ways, load

_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
_SPLIT = ("train", "valid", "test")
_URL = "https://snap.stanford.edu/ogb/data/nodeproppred"
_CITES = "relations/paper___cites___paper/edge"
_CHUNK = 1 << 18  # rows at a time: the file of edges of ogbn-products has 61.9 million


def arxiv(root: DataRoot, split_source: str = "original") -> NodeData:
    """Load ogbn-arxiv, directed as in the source, with the year of every paper (see its spec).

    Args:
        root: where ``ogbn_arxiv/`` is, and ``begin-splits/`` if BeGin's split is requested.
        split_source: ``original``: OGB's split by time; ``begin``: BeGin's split for time-IL (4 : 1 : 5).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """

    def read(folder: Path) -> dict[str, Array]:
        return _read(folder, "time", inverse=False, extra=("node_year",))

    data = _load(root, "arxiv", _csv(*_RAW, "node_year"), "time", read)
    return with_begin_split(root, data) if split_source == "begin" else data


def products(root: DataRoot) -> NodeData:
    """Load ogbn-products, with edges in both directions (see its spec). Raises DataError if a file is missing or damaged."""

    def read(folder: Path) -> dict[str, Array]:
        return _read(folder, "sales_ranking", inverse=True)

    return _load(root, "products", _csv(*_RAW), "sales_ranking", read)


def mag(root: DataRoot, min_per_part: int = 0) -> NodeData:
    """Load the papers of ogbn-mag and their citations, directed as in the source (see its spec).

    Args:
        root: where ``ogbn_mag/`` is.
        min_per_part: classes with fewer papers than this in any part of the official split are removed: their papers become unlabelled, and
            the other classes are renumbered in order. BeGin's task-IL and class-IL remove classes below 10, which leaves 257 of 349.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others; no class is left.
    """
    raw = _csv("num-node-dict", _CITES, "node-feat/paper/node-feat", "node-feat/paper/node_year", "node-label/paper/node-label")
    data = _load(root, "mag", raw, "time/paper", _read_mag)
    return _without_small_classes(data, min_per_part) if min_per_part > 0 else data


def proteins(root: DataRoot, split_source: str = "original") -> NodeData:
    """Load ogbn-proteins, with edges in both directions, 112 labels per protein and the species of each protein as its domain (see its
    spec).

    Features are the means of the eight features of a protein's edges (0 without edges), as in the OGB examples and in BeGin. Domains are
    the species in ascending order of their taxonomy ids.

    Args:
        root: where ``ogbn_proteins/`` is, and ``begin-splits/`` if BeGin's split is requested.
        split_source: ``original``: OGB's split by species; ``begin``: BeGin's split for domain-IL (4 : 1 : 5).

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    raw = _csv("edge", "edge-feat", "node_species", "node-label", "num-node-list")
    data = _load(root, "proteins", raw, "species", _read_proteins)
    return with_begin_split(root, data) if split_source == "begin" else data


def _csv(*names: str) -> list[str]:
    return [f"raw/{name}.csv.gz" for name in names]


def _load(root: DataRoot, short: str, raw: Iterable[str], rule: str, read: Callable[[Path], dict[str, Array]]) -> NodeData:
    below = [*raw, *(f"split/{rule}/{part}.csv.gz" for part in _SPLIT)]
    members = {f"ogbn_{short}/{name}": f"{short}/{name}" for name in below}
    note = f"Its folder {short}/ becomes ogbn_{short}/"
    files = root.unpacked(members, urls=[f"{_URL}/{short}.zip"], note=note)
    return load(root, f"ogbn-{short}", files, lambda folder: read(folder / f"ogbn_{short}"))


def _read(folder: Path, rule: str, *, inverse: bool, extra: tuple[str, ...] = ()) -> dict[str, Array]:
    raw = folder / "raw"
    n, m = (int(_column(raw / f"num-{what}-list.csv.gz")[0]) for what in ("node", "edge"))
    pairs = _table(raw / "edge.csv.gz", m, np.dtype(np.int32 if n < 2**31 else np.int64), "edge")
    x = _table(raw / "node-feat.csv.gz", n, np.dtype(np.float32), "node")
    edges = pairs.T
    if inverse:
        edges = np.concatenate([edges, edges[::-1]], axis=1)
        del pairs
    return node_arrays(
        x=x,
        edge_index=edges,
        y=_column(raw / "node-label.csv.gz"),
        split=_split(folder / "split" / rule, n),
        keys={name.removeprefix("node_"): _column(raw / f"{name}.csv.gz") for name in extra},
    )


def _table(path: Path, n: int, dtype: np.dtype[Any], what: str) -> Array:
    """The numbers in a file, [n, columns], read in pieces, since a pandas table of a whole file takes several times the memory.

    Raises:
        DataError: another number of rows than ``n``, one per ``what``.
    """
    read, out = 0, np.empty((0, 0), dtype)
    wide = np.int64 if dtype.kind == "i" else np.float64
    with pd.read_csv(path, header=None, dtype=wide, chunksize=_CHUNK) as pieces:
        for piece in pieces:
            values = piece.to_numpy()
            if not read:
                out = np.empty((n, values.shape[1]), dtype)
            if read + len(values) <= n:
                if dtype.kind == "i" and values.size and not (values.min() >= 0 and values.max() <= np.iinfo(dtype).max):
                    raise DataError(f"{path.name} refers to nodes {values.min()}..{values.max()}; expected 0..{np.iinfo(dtype).max}")
                out[read : read + len(values)] = values
            read += len(values)
    if read != n:
        raise DataError(f"{path.name} has {read:,} rows; expected {n:,}, one per {what}")
    return out


def _read_mag(folder: Path) -> dict[str, Array]:
    # Read papers only: OGB's reader would read all relations (21 million edges) and their types.
    raw = folder / "raw"
    n = int(pd.read_csv(raw / "num-node-dict.csv.gz")["paper"].iloc[0])
    x = pd.read_csv(raw / "node-feat/paper/node-feat.csv.gz", header=None, dtype=np.float32).to_numpy()
    if len(x) != n:
        raise DataError(f"node-feat/paper/node-feat.csv.gz has {len(x):,} rows; expected {n:,}, one per paper")
    return node_arrays(
        x=x,
        edge_index=pd.read_csv(raw / f"{_CITES}.csv.gz", header=None, dtype=np.int64).to_numpy().T,
        y=_column(raw / "node-label/paper/node-label.csv.gz"),
        split=_split(folder / "split/time/paper", n),
        keys={"year": _column(raw / "node-feat/paper/node_year.csv.gz")},
    )


def _read_proteins(folder: Path) -> dict[str, Array]:
    raw = folder / "raw"
    n = int(_column(raw / "num-node-list.csv.gz")[0])
    pairs, x = _incident_means(raw, n)
    species = _column(raw / "node_species.csv.gz")
    labels = pd.read_csv(raw / "node-label.csv.gz", header=None, dtype=np.float64).to_numpy()
    return node_arrays(
        x=x,
        edge_index=both_ways(pairs),
        y=binary(labels, "the label row of node"),
        split=_split(folder / "split/species", n),
        keys={"domain": np.unique(species, return_inverse=True)[1]},
    )


def _incident_means(raw: Path, n: int) -> tuple[Array, Array]:
    """The edges in one direction (int32 [2, M]), and per node the mean features of its edges (float32 [n, F])."""
    pairs: list[Array] = []
    total, count = np.zeros((n, 0)), np.zeros(n)
    with (
        pd.read_csv(raw / "edge.csv.gz", header=None, dtype=np.int64, chunksize=_CHUNK) as edges,
        pd.read_csv(raw / "edge-feat.csv.gz", header=None, dtype=np.float64, chunksize=_CHUNK) as features,
    ):
        for some_edges, some_features in zip(edges, features, strict=True):
            ends, values = some_edges.to_numpy().T, some_features.to_numpy()
            if ends.shape[1] != len(values):
                raise DataError("edge.csv.gz and edge-feat.csv.gz differ in length; expected one row of edge features per edge")
            if ends.min() < 0 or ends.max() >= n:
                raise DataError(f"edges refer to nodes {ends.min()}..{ends.max()}; expected 0..{n - 1}")
            if not pairs:
                total = np.zeros((n, values.shape[1]))
            for end in ends:
                count += np.bincount(end, minlength=n)
                for column in range(values.shape[1]):
                    total[:, column] += np.bincount(end, weights=values[:, column], minlength=n)
            pairs.append(ends.astype(np.int32))
    return np.concatenate(pairs, axis=1), (total / np.maximum(count, 1)[:, None]).astype(np.float32)


def _without_small_classes(data: NodeData, least: int) -> NodeData:
    """``data`` restricted to classes with at least ``least`` nodes in every part of the official split, renumbered in order."""
    assigned = data.official_split
    counts = torch.stack([torch.bincount(data.y[(assigned == part) & (data.y >= 0)], minlength=data.n_classes) for part in range(3)])
    kept = (counts.amin(dim=0) >= least).nonzero().flatten()
    if not kept.numel():
        raise DataError(f"{data.name}: no class has at least {least} nodes in every part of the official split; lower min_per_part")
    renumbered = torch.full((data.n_classes + 1,), -1, dtype=torch.int64)  # the last entry serves the label -1
    renumbered[kept] = torch.arange(kept.numel())
    return dataclasses.replace(data, y=renumbered[data.y], n_classes=kept.numel())


def _split(folder: Path, n: int) -> Array:
    split = np.full(n, -1, dtype=np.int8)
    for code, part in enumerate(_SPLIT):
        split[_column(folder / f"{part}.csv.gz")] = code
    return split


def _column(path: Path) -> Array:
    return pd.read_csv(path, header=None)[0].to_numpy()
