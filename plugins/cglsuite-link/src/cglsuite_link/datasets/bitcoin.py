"""Trust ratings from -10 to 10 with timestamps, from Bitcoin-OTC and Bitcoin-Alpha."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite.protocols.begin.splits import with_begin_split
from cglsuite_link.datasets.assemble import Array, compact, equal_steps, load, table
from cglsuite_link.datasets.specs import RATING_CLASSES, SIZES

_SHA256 = {
    "otc": "76bd9d8f1d3ff9a1813d9fc8e6902a0ee4d0a2f8c1003842dbc9ec79149ab60c",
    "alpha": "1b2a970f327d0ceba0c57bd5919670257cbe4cc0704e2ddac09abc4b08e2ca4d",
}
_FOLDER = {"otc": "BitcoinOTC", "alpha": "BitcoinAlpha"}
_COLUMNS = ("source", "target", "rating", "time")
_PERIOD_S = 14 * 24 * 3600
_CLASSES = len(set(RATING_CLASSES.values()))


def otc(root: DataRoot, labels: str = "classes", steps: int = 7, split_source: str = "begin") -> LinkData:
    """Load the Bitcoin-OTC dataset (see its spec).

    Args:
        root: where ``BitcoinOTC/`` is, and ``begin-splits/`` if BeGin's split is requested.
        labels: ``classes`` = six classes of ratings, none for the ratings 1 and 2; ``sign`` = one label, whether the rating is negative.
        steps: number of time steps (key ``step``).
        split_source: ``begin``: BeGin's split (8 : 1 : 1); ``original``: no split, like the source.

    Raises:
        DataError: a file is missing, damaged, or inconsistent with the other, or a rating is 0 or outside -10..10.
    """
    data = _bitcoin(root, "otc", labels, steps)
    return with_begin_split(root, data) if split_source == "begin" else data


def alpha(root: DataRoot, labels: str = "classes", steps: int = 7) -> LinkData:
    """Load the Bitcoin-Alpha dataset (see its spec and :func:`otc`). Raises DataError if a file is missing or damaged."""
    return _bitcoin(root, "alpha", labels, steps)


def _bitcoin(root: DataRoot, short: str, labels: str, steps: int) -> LinkData:
    name, relative = f"bitcoin-{short}", f"{_FOLDER[short]}/raw/soc-sign-bitcoin{short}.csv"
    url = f"https://snap.stanford.edu/data/soc-sign-bitcoin{short}.csv.gz"
    path = root.find(relative, sha256=_SHA256[short])
    if path is None:
        relative += ".gz"
        path = root.file(relative, urls=(url,), note=f"The unpacked file serves as well, as {relative.removesuffix('.gz')}")

    def read(files: Mapping[str, Path]) -> dict[str, Array]:
        return _read(files[relative], labels, steps)

    hyperparameters = {"labels": labels, "steps": steps}
    return load(root, name, {relative: path}, read, hyperparameters, n_classes=_CLASSES if labels == "classes" else 1, sizes=SIZES[name])


def _read(path: Path, labels: str, steps: int) -> dict[str, Array]:
    rows = table(path, ",", _COLUMNS, np.float64)
    rating = rows["rating"].to_numpy()
    bad = ~np.isin(rating, [*range(-10, 0), *range(1, 11)])
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(f"row {row + 1} has the rating {rating[row]:g}; expected a nonzero integer from -10 to 10")
    if rows["time"].isna().any():
        raise DataError(f"row {int(np.flatnonzero(rows['time'].isna())[0]) + 1} has no time; expected Unix time in seconds")
    rating, time = rating.astype(np.int64), rows["time"].to_numpy().astype(np.int64)
    links, n = compact(rows[["source", "target"]].to_numpy(dtype=np.int64).T)
    classes = np.full(21, -1)
    classes[[10 + value for value in RATING_CLASSES]] = list(RATING_CLASSES.values())
    # Rounded to the nearest period as in BeGin, so the first is half as long.
    period = np.rint((time - time.min()) / _PERIOD_S).astype(np.int64)
    return {
        "links": links,
        "n_nodes": np.array(n),
        "y": classes[rating + 10] if labels == "classes" else (rating < 0)[:, None],
        "key.rating": rating,
        "key.time": time,
        "key.step": equal_steps(period, steps),
    }
