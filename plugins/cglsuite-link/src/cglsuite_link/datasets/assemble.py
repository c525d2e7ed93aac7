"""Functions shared by the loaders: they cache raw files as arrays, validate arrays as :class:`cglsuite.graphs.LinkData`, and compute time
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from cglsuite.base.datafiles import UNREADABLE, DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.sizes import Sizes

Array = np.ndarray[Any, Any]
READER = 1  # part of the cache key: increment it when a reader's output changes


def load(
    root: DataRoot,
    name: str,
    files: Mapping[str, Path],
    read: Callable[[Mapping[str, Path]], dict[str, Array]],
    hyperparameters: Mapping[str, object] | None = None,
    *,
    n_classes: int = 1,
    sizes: Sizes | None,
) -> LinkData:
    """Load the dataset ``name``, from ``files`` the first time and from the cache afterwards.

    Args:
        root: the data root, which contains the caches.
        name: the dataset's name.
        files: maps names below the data root to paths, for all files that ``read`` reads.
        read: makes the arrays of :func:`link_data` from ``files``.
        hyperparameters: further inputs of ``read``, as JSON types.
        n_classes: number of outputs.
        sizes: expected sizes, checked if checksums are verified; ``None`` if unknown.

    Raises:
        DataError: a file is truncated or malformed, or the sizes are not the dataset's; the message names the files.
    """
    key = {
        "reader": READER,
        "files": {relative: root.sha256(path) for relative, path in files.items()},
        "settings": dict(hyperparameters or {}),
    }
    where = f"(read from {', '.join(map(str, files.values()))})"

    def build() -> dict[str, Array]:
        try:
            return read(files)
        except UNREADABLE as error:
            raise DataError(
                f"{name} cannot be read ({type(error).__name__}: {error}) {where}. Replace the file, or remove it to download it again"
            ) from error
        except DataError as error:
            raise DataError(f"{name}: {error} {where}") from error

    try:
        arrays = root.derived(name, key, build)
        data = link_data(name, arrays, n_classes)
    except DataError as error:
        raise error if where in str(error) else DataError(f"{error} {where}") from error
    links = int(arrays.get("n_links", data.n_items))
    actual = Sizes(data.n_nodes, links if sizes is None or sizes.links is not None else None)
    if root.verify and sizes is not None and actual != sizes:
        raise DataError(f"{name}: found {actual}; expected {sizes}. These files do not belong to this dataset {where}")
    return data


def link_data(name: str, arrays: Mapping[str, Array], n_classes: int = 1) -> LinkData:
    """Build a validated dataset from the arrays of a reader.

    Args:
        arrays: ``links`` integers [2, M] and ``n_nodes`` (a number); optionally ``y`` int64 [M] or bool [M, C] (without it: link
            prediction), ``x`` float32 [N, F], ``node_types`` int64 [N], ``split`` int8 [M], further integers [M] as ``key.*``, and
            ``n_links``, how many links the source has, where that is not M.
            All labels of a link that has bool labels are known.

    Raises:
        DataError: see :class:`cglsuite.graphs.LinkData`.
    """
    links = _tensor(arrays["links"])
    y = torch.from_numpy(arrays["y"]) if "y" in arrays else torch.ones(links.shape[1], 1, dtype=torch.bool)
    return LinkData(
        links=links,
        y=y,
        n_classes=n_classes,
        n_nodes=int(arrays["n_nodes"]),
        x=torch.from_numpy(arrays["x"]) if "x" in arrays else None,
        known=torch.ones_like(y) if y.dtype == torch.bool else None,
        node_types=_tensor(arrays["node_types"]) if "node_types" in arrays else None,
        official_split=torch.from_numpy(arrays["split"]) if "split" in arrays else None,
        keys={key.removeprefix("key."): _tensor(values) for key, values in arrays.items() if key.startswith("key.")},
        name=name,
    )


def table(path: Path, separator: str, columns: Sequence[str], dtype: Any = np.int64) -> pd.DataFrame:
    """Read a text file that has no header and exactly ``columns``. Raises DataError if the number of columns differs."""
    frame = pd.read_csv(path, sep=separator, header=None, dtype=dtype)
    if frame.shape[1] != len(columns):
        raise DataError(f"{path.name} has {frame.shape[1]} columns; expected {len(columns)}: {', '.join(columns)}")
    return frame.set_axis(list(columns), axis=1)


def compact(links: Array) -> tuple[Array, int]:
    """Renumber links (integers [2, M]) over nodes 0..N-1 in ascending order of their ids. Returns int64 [2, M] and N."""
    ids, ends = np.unique(links, return_inverse=True)
    return ends.reshape(links.shape).astype(np.int64), len(ids)


def first_links(source: Array, target: Array, time: Array) -> Array:
    """Find the earliest link between each pair of nodes in either direction: positions (int64 [M']) sorted by time, then by position in the
    file.
    """
    order = np.argsort(time, kind="stable")
    low, high = np.minimum(source, target)[order], np.maximum(source, target)[order]
    _, first = np.unique(low * (high.max() + 1) + high, return_index=True)
    return order[np.sort(first)]


def without_loops(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Remove self-loops, which cannot be queried, from the arrays of a reader, and keep all nodes.

    Raises:
        DataError: no link is left.
    """
    stays = arrays["links"][0] != arrays["links"][1]
    if not stays.any():
        raise DataError("the data contain no link between two different nodes")
    per_link = {name: values[..., stays] for name, values in arrays.items() if name in ("links", "split") or name.startswith("key.")}
    return {**arrays, **per_link, "n_links": np.array(len(stays))}


def months(time: Array) -> Array:
    """Count calendar months (UTC) since the first one: int64 [M]; ``time`` is Unix time in seconds."""
    month: Array = time.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    since: Array = month - month.min()
    return since


def ranked_steps(time: Array, steps: int) -> Array:
    """Divide links into time steps with equal numbers of links: int64 [M]. Ties in time are broken by position in the file."""
    rank = np.empty(len(time), dtype=np.int64)
    rank[np.argsort(time, kind="stable")] = np.arange(len(time))
    return rank // (len(time) // steps + 1)


def equal_steps(period: Array, steps: int) -> Array:
    """Divide links into time steps of whole periods with nearly equal numbers of links: int64 [M].

    A period belongs to step ``floor(steps * c / (M + 1))``, where c is the number of links up to its end.

    Args:
        period: int64 [M], at least 0.
    """
    until = np.cumsum(np.bincount(period))
    return (steps * until // (len(period) + 1))[period]


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.int64, copy=False))
