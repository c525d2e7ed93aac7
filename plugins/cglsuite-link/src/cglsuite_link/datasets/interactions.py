"""First interactions between users of Ask Ubuntu, MathOverflow and CollegeMsg, as undirected links with timestamps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.assemble import Array, compact, first_links, load, months, table, without_loops
from cglsuite_link.datasets.specs import SIZES

_SHA256 = {
    "SXMathOverflow/sx-mathoverflow.txt.gz": "cdc635fda76dab06ab02ca242563fa333bb83d096571342ef0326d85ff0c04da",
    "CollegeMsg/CollegeMsg.txt.gz": "50ae2d98ed3bad9ddb18dbd495a89e5e10cfb8f7e86932827db29fc41b41f9fa",
}


def ask_ubuntu(root: DataRoot, skip_months: int = 18) -> LinkData:
    """Load the answers and comments of Ask Ubuntu (see its spec).

    Args:
        root: where ``SXAskUbuntu/`` is.
        skip_months: number of initial months to leave out; BeGin: 18.

    Raises:
        DataError: the file is missing or damaged; no link is left.
    """
    return _interactions(root, "ask-ubuntu", "SXAskUbuntu/sx-askubuntu.txt.gz", skip_months)


def math_overflow(root: DataRoot, skip_months: int = 0) -> LinkData:
    """Load the answers and comments of MathOverflow (see its spec and :func:`ask_ubuntu`). Raises DataError if a file is missing or
    damaged.
    """
    return _interactions(root, "math-overflow", "SXMathOverflow/sx-mathoverflow.txt.gz", skip_months)


def college_msg(root: DataRoot, skip_months: int = 0) -> LinkData:
    """Load messages between students (see its spec and :func:`ask_ubuntu`). Raises DataError if a file is missing or damaged."""
    return _interactions(root, "college-msg", "CollegeMsg/CollegeMsg.txt.gz", skip_months)


def _interactions(root: DataRoot, name: str, relative: str, skip_months: int) -> LinkData:
    url = f"https://snap.stanford.edu/data/{relative.rpartition('/')[2]}"
    path = root.file(relative, sha256=_SHA256.get(relative), urls=(url,))

    def read(files: Mapping[str, Path]) -> dict[str, Array]:
        return _read(files[relative], skip_months)

    sizes = SIZES.get(name) if not skip_months else None
    return load(root, name, {relative: path}, read, {"skip_months": skip_months}, sizes=sizes)


def _read(path: Path, skip_months: int) -> dict[str, Array]:
    source, target, time = table(path, " ", ("source", "target", "time")).to_numpy().T
    kept = first_links(source, target, time)
    month = months(time[kept])
    stays = month >= skip_months
    if not stays.any():
        raise DataError(f"no link remains after skipping the first {skip_months} months (skip_months)")
    kept, month = kept[stays], month[stays] - skip_months
    links, n = compact(np.stack([source[kept], target[kept]]))
    return without_loops({"links": links, "n_nodes": np.array(n), "key.time": time[kept], "key.month": month})
