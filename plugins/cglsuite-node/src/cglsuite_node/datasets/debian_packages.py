"""Packages of Debian 12: one-line descriptions as text, dependencies as edges, sections of the archive as classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import AttributedNodeData, node_arrays, node_data, tfidf
from cglsuite_node.datasets.arrays import UNREADABLE, Array
from cglsuite_node.datasets.grouped import grouped_split

READER = 1  # part of the cache key: increment it when the output of `_read` changes
TERMS = 5_000
"""The number of terms of the TF-IDF features."""
SHARES = (0.6, 0.2, 0.2)
"""The shares of training, validation and test."""

_NODES, _EDGES, _MINILM = (f"DebianPackages/{name}" for name in ("nodes.csv", "edges.npz", "all-minilm-l6-v2.npy"))
_SHA256 = {
    _NODES: "2a7989c3c39206fe5460fadc2f821e17ed23089571bd7d93efc5d7603749805d",
    _EDGES: "c6700cdf03364f3407b63ab64a4e6b51de746350ff7e2821e563c4912c42dd3a",
    _MINILM: "677bf78ef5cff755489a851c014b5305e35436eee5a0b6287a3ddfa7816d42e0",
}
_NOTE = (
    "The dataset is made from https://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz: nodes.csv (id, source, section, "
    "text, tags), edges.npz (source, target, relation: the first alternative of every dependency) and, for dataset.features=minilm, "
    "all-minilm-l6-v2.npy (float16 [N, 384], embeddings of the column text by all-MiniLM-L6-v2)"
)


def debian_packages(
    root: DataRoot,
    features: str = "tfidf",
    max_in_degree: int | None = None,
    grouping: str = "source",
    split_seed: int = 0,
    texts: str = "given",
) -> AttributedNodeData:
    """Load the Debian packages dataset (see its spec).

    Class c is the c-th section in alphabetical order. An edge leads from a package to one that it depends on, recommends or suggests. The
    key ``source`` numbers the source packages in order of appearance. Features are computed from the column ``text`` only; names of
    packages and tags, which give sections away, are not used.

    Args:
        root: where ``DebianPackages/`` is.
        features: ``tfidf``: float32 [N, 5000], sparse, unit rows, of the terms that occur most often in all texts (the first in the
            alphabet if several occur equally often); ``minilm``: float32 [N, 384], the file's embeddings.
        max_in_degree: drop the edges that lead to packages with more incoming edges than this; ``None``: keep all edges.
        grouping: ``source``: the official split has no source package in two parts; ``none``: every package is drawn by itself.
        split_seed: the seed of the official split (60% training, 20% validation, 20% test of every class; see
            :func:`cglsuite_node.datasets.grouped.grouped_split`).
        texts: ``shuffled``: descriptions, and the features computed from them, are permuted within each part of the split;
            ``shuffled-in-class``: within each class of each part.

    Raises:
        DataError: a file is missing or damaged, or the files do not belong together.
    """
    names = (_NODES, _EDGES, _MINILM) if features == "minilm" else (_NODES, _EDGES)
    files = {name: root.file(name, sha256=_SHA256[name], note=_NOTE) for name in names}
    key = {"reader": READER, "files": {name: root.sha256(path) for name, path in files.items()}, "features": features}
    arrays = dict(root.derived("debian-packages", key, lambda: _read(files)))
    y, source, edges = arrays["y"], arrays["key.source"], arrays["edge_index"]
    if max_in_degree is not None:
        arrays["edge_index"] = edges[:, np.bincount(edges[1], minlength=len(y))[edges[1]] <= max_in_degree]
    arrays["split"] = grouped_split(y, source if grouping == "source" else np.arange(len(y)), SHARES, split_seed)
    data = node_data("debian-packages", arrays, int(y.max()) + 1)
    text = pd.read_csv(files[_NODES], dtype=str, keep_default_na=False, usecols=["text"])["text"].to_numpy()
    x = data.x
    if texts != "given":
        order = _shuffled(arrays["split"] if texts == "shuffled" else arrays["split"].astype(np.int64) * data.n_classes + y, split_seed)
        text, rows = text[order], torch.from_numpy(order)
        x = x[rows] if x.layout == torch.strided else x.to_sparse_coo().index_select(0, rows).to_sparse_csr()
    return AttributedNodeData(**vars(data) | {"x": x}, text=tuple(text))


def _shuffled(group: Array, seed: int) -> Array:
    """Return an order (int64 [N]) that permutes the items of each group among their own positions."""
    draws = np.random.Generator(np.random.PCG64(seed)).random(len(group))
    order = np.empty(len(group), np.int64)
    order[np.argsort(group, kind="stable")] = np.lexsort((draws, group))
    return order


def _read(files: Mapping[str, Path]) -> dict[str, Array]:
    where = ", ".join(map(str, files.values()))
    try:
        table = pd.read_csv(files[_NODES], dtype=str, keep_default_na=False)
        # NumPy would leave a truncated archive open.
        with files[_EDGES].open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            edges = np.stack([archive["source"], archive["target"]])
        x = np.load(files[_MINILM], allow_pickle=False) if _MINILM in files else tfidf(table["text"].tolist(), TERMS)
        labels, sources = (pd.factorize(table[column], sort=column == "section")[0] for column in ("section", "source"))
        if x.shape[0] != len(table):
            raise DataError(f"{x.shape[0]} rows of features, but {len(table)} packages")
        return node_arrays(x=x, edge_index=edges, y=labels, keys={"source": sources})
    except UNREADABLE as error:
        raise DataError(f"debian-packages cannot be read ({type(error).__name__}: {error}); replace one of {where}") from error
    except DataError as error:
        raise DataError(f"debian-packages: {error} (read from {where})") from error
