"""Wiki-CS: computer-science articles and the links between them. The domain of a link is the pair of areas of its endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import LinkData
from cglsuite_link.datasets.assemble import Array, load
from cglsuite_link.datasets.specs import SIZES

_FILE = "WikiCS/raw/data.json"
_URL = "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/data.json"
_AREAS = 10


def wiki_cs(root: DataRoot) -> LinkData:
    """Load the undirected links between different articles (see its spec).

    Args:
        root: where ``WikiCS/raw/data.json`` is.

    Raises:
        DataError: the file is missing or damaged, or its lists are inconsistent.
    """
    return load(root, "wiki-cs", {_FILE: root.file(_FILE, urls=(_URL,))}, _read, sizes=SIZES["wiki-cs"])


def _read(files: Mapping[str, Path]) -> dict[str, Array]:
    raw = json.loads(files[_FILE].read_text(encoding="utf-8"))
    x, area, lists = np.array(raw["features"], dtype=np.float32), np.array(raw["labels"], dtype=np.int64), raw["links"]
    n = len(area)
    if len(x) != n or len(lists) != n:
        raise DataError(
            f"data.json has {len(x):,} features, {n:,} labels and {len(lists):,} lists of links; expected the same number of each"
        )
    if area.min() < 0 or area.max() >= _AREAS:
        raise DataError(f"labels are {area.min()}..{area.max()}; expected 0..{_AREAS - 1}")
    source = np.repeat(np.arange(n), [len(targets) for targets in lists])
    target = np.array([node for targets in lists for node in targets], dtype=np.int64)
    if target.size and not (target.min() >= 0 and target.max() < n):
        raise DataError(f"links refer to nodes {target.min()}..{target.max()}; expected 0..{n - 1}")
    keys = np.unique(np.minimum(source, target) * n + np.maximum(source, target))
    links = np.stack(np.divmod(keys, n))
    links = links[:, links[0] != links[1]]
    low, high = np.sort(area[links], axis=0)
    # The position of (low, high) among the unordered pairs of areas in lexicographic order: 0..54.
    return {"links": links, "n_nodes": np.array(n), "x": x, "key.domain": low * (2 * _AREAS - low - 1) // 2 + high}
