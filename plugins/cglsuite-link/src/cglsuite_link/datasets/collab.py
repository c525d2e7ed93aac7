"""ogbl-collab: co-authors by year, read from the raw files of OGB, because OGB's own processing fails under current versions of torch."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.assemble import Array, load, without_loops
from cglsuite_link.datasets.specs import SIZES

_PARTS = ("train", "valid", "test")
_FEATURES, _NODES = "raw/node-feat.csv.gz", "raw/num-node-list.csv.gz"
_URL = "http://snap.stanford.edu/ogb/data/linkproppred/collab.zip"


def ogbl_collab(root: DataRoot) -> LinkData:
    """Load all collaborations of ogbl-collab, including those in its validation and test years (see its spec).

    Args:
        root: where ``ogbl_collab/`` is.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the others.
    """
    below = [_FEATURES, _NODES, *(f"split/time/{part}.pt" for part in _PARTS)]
    members = {f"ogbl_collab/{name}": f"collab/{name}" for name in below}
    files = root.unpacked(members, urls=[_URL], note="Its folder collab/ becomes ogbl_collab/")
    return load(root, "ogbl-collab", files, _read, sizes=SIZES["ogbl-collab"])


def _read(files: Mapping[str, Path]) -> dict[str, Array]:
    x = pd.read_csv(files[f"ogbl_collab/{_FEATURES}"], header=None, dtype=np.float32).to_numpy()
    n = int(pd.read_csv(files[f"ogbl_collab/{_NODES}"], header=None)[0].iloc[0])
    if len(x) != n:
        raise DataError(f"node-feat.csv.gz has {len(x):,} rows; expected {n:,}, one per author")
    parts = [_part(files[f"ogbl_collab/split/time/{part}.pt"]) for part in _PARTS]
    arrays = {
        "links": np.concatenate([edges for edges, _ in parts]).T,
        "n_nodes": np.array(n),
        "x": x,
        "split": np.repeat(np.arange(3, dtype=np.int8), [len(edges) for edges, _ in parts]),
        "key.year": np.concatenate([years for _, years in parts]),
    }
    return without_loops(arrays)


def _part(path: Path) -> tuple[Array, Array]:
    """The links (int64 [m, 2]) and years (int64 [m]) of a file of OGB's split; only plain arrays are unpickled."""
    try:
        with torch.serialization.safe_globals(_plain_arrays()):
            content = torch.load(path, weights_only=True)
    except (RuntimeError, AttributeError, pickle.UnpicklingError) as error:
        raise DataError(f"{path.name} is truncated or does not contain arrays ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict) or not {"edge", "year"} <= content.keys():
        raise DataError(f"{path.name} does not contain the arrays 'edge' and 'year'")
    edges, years = (np.asarray(content[key], dtype=np.int64) for key in ("edge", "year"))
    if edges.ndim != 2 or edges.shape[1] != 2 or years.shape != edges.shape[:1]:
        raise DataError(f"{path.name}: 'edge' has shape {list(edges.shape)} and 'year' {list(years.shape)}; expected [m, 2] and [m]")
    return edges, years


def _plain_arrays() -> list[Any]:
    """The names in a pickle of numeric arrays, under the old and the new name of NumPy's module."""
    rebuild = np.empty(0).__reduce__()[0]
    kinds = [type(np.dtype(kind)) for kind in (np.int64, np.int32, np.float64, np.float32)]
    names = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
    return [np.ndarray, np.dtype, *kinds, *((rebuild, name) for name in names)]
