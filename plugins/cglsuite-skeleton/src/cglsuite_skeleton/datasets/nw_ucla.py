"""Northwestern-UCLA Multiview Action 3D: an npz file with all sequences, or the released folder with one JSON file per sequence."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np

from cglsuite.base.datafiles import UNREADABLE, DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_skeleton.datasets.assemble import SPINE, Array, pack, released, skeleton_data, stamps
from cglsuite_skeleton.datasets.sizes import Sizes
from cglsuite_skeleton.datasets.specs import SIZES
from cglsuite_skeleton.layouts import layout_of
from cglsuite_skeleton.preparation import Preparation

_NAME = "nw-ucla"
_SIZES = SIZES[_NAME]
_FILE = "nw_ucla/nw_ucla_skeleton.npz"
_FOLDERS = ("nw_ucla/all_sqe", "nw_ucla")
_NOTE = (
    "or the JSON files of the skeleton release (all_sqe.zip, to be had through the home page of https://github.com/Uason-Chen/CTR-GCN) as "
    "nw_ucla/all_sqe/a01_s01_e00_v01.json and so on. The npz holds their content in the order of their names: coords float32 [F, 20, 3], "
    "length int32 [N], label int8 [N] from 0, subject, view, episode int8 [N]"
)
_KEYS = ("subject", "view", "episode")
_READER = 1  # part of the cache key: increment it when a reader's output changes
_SEQUENCE = re.compile(r"a\d+_s(?P<subject>\d+)_e(?P<episode>\d+)_v(?P<view>\d+)")


def nw_ucla(root: DataRoot, frames: int = 52, augmentation: str = "views", max_angle: int = 60) -> GraphData:
    """Load the N-UCLA dataset (see its spec). Both forms of the data have the same content.

    Raises:
        DataError: missing or unreadable files, a wrong joint count, a label out of range, an empty sequence.
    """
    preparation = Preparation(frames=frames, augmentation=augmentation, max_angle=max_angle)
    arrays, where = _arrays(root)
    try:
        data = skeleton_data(_NAME, arrays, layout_of(_NAME), _SIZES.classes, preparation, SPINE)
    except DataError as error:
        raise DataError(f"{error} (read from {where})") from error
    sizes = Sizes(len(data.items), len(arrays["coordinates"]), _SIZES.joints, _SIZES.classes)
    if root.verify and sizes != _SIZES:
        raise DataError(f"{_NAME}: found {sizes}; expected {_SIZES}. These files do not belong to this dataset (read from {where})")
    return data


def _arrays(root: DataRoot) -> tuple[dict[str, Array], Path]:
    path = root.find(_FILE)
    folder, files = released(root, _FOLDERS, "*.json")
    if path is None and files:
        return root.derived(_NAME, stamps(_READER, folder, files), lambda: _from_json(files)), folder
    path = path or root.file(_FILE, note=_NOTE)
    return root.derived(_NAME, {"reader": _READER, "sha256": root.sha256(path)}, lambda: _from_npz(path)), path


def _from_npz(path: Path) -> dict[str, Array]:
    try:
        zipfile.ZipFile(path).close()  # NumPy leaves a truncated archive open; zipfile does not
        with np.load(path, allow_pickle=False) as archive:
            coords, lengths, label = archive["coords"], archive["length"].astype(np.int64), archive["label"]
            keys = {key: archive[key].tolist() for key in _KEYS}
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({type(error).__name__}: {error}). Replace the file") from error
    if coords.ndim != 3 or lengths.ndim != 1 or (lengths < 0).any() or lengths.sum() != len(coords):
        raise DataError(f"{path}: coords has shape {list(coords.shape)} and length sums to {lengths.sum()}; expected [F, 20, 3] and F")
    if {len(values) for values in (label, *keys.values())} != {len(lengths)}:
        raise DataError(f"{path}: label, subject, view and episode must have one entry for each of {len(lengths)} sequences")
    parts = np.split(coords[:, None], np.cumsum(lengths)[:-1])
    return pack(
        parts, [f"{path}: sequence {i}" for i in range(len(parts))], label.tolist(), keys, joints=_SIZES.joints, classes=_SIZES.classes
    )


def _from_json(files: list[Path]) -> dict[str, Array]:
    recordings, labels = [], []
    keys: dict[str, list[int]] = {key: [] for key in _KEYS}
    for file in files:
        match = _SEQUENCE.fullmatch(file.stem)
        if match is None:
            raise DataError(f"{file}: expected a file name such as a01_s01_e00_v01.json (action, subject, episode, view)")
        recording, label = _read_json(file)
        recordings.append(recording[:, None])
        labels.append(label - 1)
        for key in _KEYS:
            keys[key].append(int(match[key]))
    return pack(recordings, [str(file) for file in files], labels, keys, joints=_SIZES.joints, classes=_SIZES.classes)


def _read_json(file: Path) -> tuple[Array, int]:
    """Positions float32 [L, V, C] and the released label, 1 to 10."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        recording, label = np.array(content["skeletons"], dtype=np.float32), int(content["label"])
    except UNREADABLE as error:
        raise DataError(f"{file} cannot be read ({type(error).__name__}: {error}). Replace the file") from error
    if not 1 <= label <= _SIZES.classes:
        raise DataError(f"{file} has label {label}; expected 1..{_SIZES.classes}")
    return recording, label
