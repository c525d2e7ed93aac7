"""NTU RGB+D, the training part of the cross-subject protocol: the npz file commonly used in the literature, or raw ``.skeleton`` files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from cglsuite.base.datafiles import UNREADABLE, DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_skeleton.datasets.assemble import SPINE, Array, pack, released, skeleton_data, stamps
from cglsuite_skeleton.datasets.ntu_skeleton_files import read_skeleton
from cglsuite_skeleton.datasets.specs import NTU_CLASSES
from cglsuite_skeleton.layouts import layout_of
from cglsuite_skeleton.preparation import Preparation

#: The training subjects of the cross-subject protocol (Shahroudy et al. 2016).
TRAINING_SUBJECTS = frozenset({1, 2, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19, 25, 27, 28, 31, 34, 35, 38})

_NAME = "ntu-rgbd"
_FILE = "ntu_rgbd/NTU60_CS.npz"
_FOLDERS = ("ntu_rgbd/nturgb+d_skeletons", "ntu_rgbd")
_INCOMPLETE = "ntu_rgbd/NTU_RGBD_samples_with_missing_skeletons.txt"
_NOTE = (
    "NTU RGB+D is given for academic use on request (https://rose1.ntu.edu.sg/dataset/actionRecognition/). The npz is what the public "
    "preprocessing of https://github.com/Uason-Chen/CTR-GCN writes (x_train float32 [N, 300, 150], y_train one-hot [N, 60]); to read the "
    "raw files nturgb+d_skeletons/S001C001P001R001A001.skeleton and so on, set dataset.source = raw"
)
_JOINTS, _PERSONS = 25, 2
_SEQUENCE = re.compile(r"S(\d{3})C(?P<view>\d{3})P(?P<subject>\d{3})R(?P<episode>\d{3})A(?P<label>\d{3})")
_KEYS = ("subject", "view", "episode")
_READER = 1  # part of the cache key: increment it when a reader's output changes
_ROWS = 64  # of the npz at a time; all together take 7 GB


def ntu_rgbd(
    root: DataRoot,
    frames: int = 300,
    augmentation: str = "none",
    max_angle: int = 60,
    classes: int = 10,
    source: str = "prepared",
) -> GraphData:
    """Load the NTU RGB+D dataset (see its spec).

    Raises:
        DataError: missing or unreadable files, a wrong joint count, a label out of range, an empty sequence.
    """
    preparation = Preparation(frames=frames, augmentation=augmentation, max_angle=max_angle)
    if source == "raw":
        arrays, where = _raw(root, classes)
    else:
        where = root.file(_FILE, note=_NOTE)
        key = {"reader": _READER, "sha256": root.sha256(where), "classes": classes}
        arrays = root.derived(_NAME, key, lambda: _from_npz(where, classes))
    try:
        return skeleton_data(_NAME, arrays, layout_of(_NAME), classes, preparation, SPINE)
    except DataError as error:
        raise DataError(f"{error} (read from {where})") from error


def _raw(root: DataRoot, classes: int) -> tuple[dict[str, Array], Path]:
    folder, files = released(root, _FOLDERS, "*.skeleton")
    if not files:
        root.file(f"{_FOLDERS[0]}/S001C001P001R001A001.skeleton", note=_NOTE)  # names what is missing
    incomplete = _listed_as_incomplete(root)
    chosen = [file for file in files if file.stem not in incomplete and _wanted(file, classes)]
    return root.derived(_NAME, stamps(_READER, folder, chosen), lambda: _from_skeletons(chosen, folder, classes)), folder


def _listed_as_incomplete(root: DataRoot) -> frozenset[str]:
    """The names on the authors' list of samples with missing skeletons, if the list is with the data."""
    path = root.find(_INCOMPLETE)
    return frozenset() if path is None else frozenset(match[0] for match in _SEQUENCE.finditer(path.read_text(encoding="ascii")))


def _wanted(file: Path, classes: int) -> bool:
    match = _SEQUENCE.fullmatch(file.stem)
    if match is None:
        raise DataError(f"{file}: expected a file name such as S001C001P001R001A001.skeleton (setup, camera, person, repetition, action)")
    return int(match["subject"]) in TRAINING_SUBJECTS and 1 <= int(match["label"]) <= classes


def _from_skeletons(files: list[Path], folder: Path, classes: int) -> dict[str, Array]:
    """Recordings from ``.skeleton`` files; those without any body, of which the release has some, are left out and counted."""
    recordings = {file: read_skeleton(file, _JOINTS, _PERSONS) for file in files}
    kept = [file for file in files if len(recordings[file])]
    if not kept:
        raise DataError(
            f"{folder} contains no recording of the first {classes} classes by a training subject of the cross-subject protocol"
        )
    fields = [m for m in (_SEQUENCE.fullmatch(file.stem) for file in kept) if m is not None]
    keys = {key: [int(m[key]) for m in fields] for key in _KEYS}
    arrays = pack(
        [recordings[f] for f in kept], [str(f) for f in kept], [int(m["label"]) - 1 for m in fields], keys, joints=_JOINTS, classes=classes
    )
    return arrays | {"note.recordings_without_body": np.array(len(files) - len(kept))}


def _from_npz(path: Path, classes: int) -> dict[str, Array]:
    """Recordings from an npz: the rows of the first classes, each up to its last non-zero frame."""
    try:
        with zipfile.ZipFile(path) as archive:
            with archive.open("y_train.npy") as stream:
                y = _labels(np.lib.format.read_array(stream, allow_pickle=False), path)
            with archive.open("x_train.npy") as stream:
                recordings = dict(_rows(stream, path, np.flatnonzero(y < classes), len(y)))
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({type(error).__name__}: {error}). Replace the file") from error
    if not recordings:
        raise DataError(f"{path} contains no sequence of the first {classes} classes")
    names = [f"{path}: row {row} of x_train" for row in recordings]
    return pack(list(recordings.values()), names, [int(y[row]) for row in recordings], {}, joints=_JOINTS, classes=classes)


def _labels(one_hot: Array, path: Path) -> Array:
    """Labels from one-hot rows [N, 60]: the position of the 1, int64 [N]."""
    if one_hot.ndim != 2 or one_hot.shape[1] != NTU_CLASSES or not np.array_equal(np.sort(one_hot)[:, -2:], [[0, 1]] * len(one_hot)):
        raise DataError(f"{path}: y_train has shape {list(one_hot.shape)}; expected one-hot rows of {NTU_CLASSES} classes")
    labels: Array = one_hot.argmax(axis=1)
    return labels


def _rows(stream: IO[bytes], path: Path, wanted: Array, n: int) -> Iterator[tuple[int, Array]]:
    """Reads an array's rows from an npz in chunks, and yields the ``wanted`` rows (ascending) as (row, float32 [L, M, V, C])."""
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, column_major, dtype = header(stream)
    if column_major or len(shape) != 3 or shape[0] != n or shape[2] % (3 * _PERSONS) or dtype.kind != "f":
        raise DataError(
            f"{path}: x_train has type {dtype} and shape {list(shape)}; expected a numeric array of shape [{n}, T, "
            f"{3 * _PERSONS * _JOINTS}], "
            "one row per label"
        )
    size = dtype.itemsize * shape[1] * shape[2]
    for start in range(0, n, _ROWS):
        count = min(_ROWS, n - start)
        content = stream.read(count * size)
        if len(content) < count * size:
            raise EOFError("x_train is truncated")
        block = np.frombuffer(content, dtype=dtype).reshape(count, *shape[1:])
        for row in wanted[(wanted >= start) & (wanted < start + count)]:
            frames = block[row - start]
            length = int(np.flatnonzero(frames.any(axis=1))[-1:].sum() + frames.any())
            yield int(row), frames[:length].reshape(length, _PERSONS, shape[2] // (3 * _PERSONS), 3).astype(np.float32)
