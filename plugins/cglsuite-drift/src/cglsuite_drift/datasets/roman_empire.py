"""The Roman-empire dataset, read from the file of the original release."""

from __future__ import annotations

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import NodeData
from cglsuite_drift.datasets.assemble import node_data, part_codes, read_npz, reading
from cglsuite_drift.datasets.specs import SPLITS

_NAME = "roman-empire"
_FILE = "HeterophilousGraphDataset/roman_empire/raw/roman_empire.npz"
_URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data/roman_empire.npz"


def roman_empire(root: DataRoot, split_number: int = 0) -> NodeData:
    """Load the Roman-empire dataset (see its spec).

    The file holds ``node_features`` [N, 300], ``node_labels`` [N], ``edges`` [E, 2] (each once), and ``train_masks``, ``val_masks`` and
    ``test_masks`` [10, N].

    Args:
        root: where ``HeterophilousGraphDataset/roman_empire/raw/`` is.
        split_number: which of the ten splits becomes the official one.

    Raises:
        DataError: the file is missing or damaged.
    """
    path = root.file(_FILE, urls=[_URL])
    with reading(_NAME, path):
        x, y, edges, *masks = read_npz(path, "node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
        if {mask.shape for mask in masks} != {(SPLITS, len(y))}:
            raise DataError(f"{_NAME}: the masks have shapes {[mask.shape for mask in masks]}; expected {(SPLITS, len(y))}")
        split = part_codes([mask[split_number] for mask in masks])
        return node_data(_NAME, x=x, edges=edges.T, y=y, split=split, both_ways=True, verify=root.verify)
