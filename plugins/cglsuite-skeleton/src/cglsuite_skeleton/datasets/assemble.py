"""Functions shared by the loaders: they validate recordings as arrays, and build datasets in which degenerate recordings are repaired and
counted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import DataError
from cglsuite.graphs import GraphData
from cglsuite_skeleton.layouts import Layout
from cglsuite_skeleton.preparation import Preparation
from cglsuite_skeleton.sequences import SkeletonSource

Array = np.ndarray[Any, Any]
SPINE = 1  # the joint that the published preparation centres on, counted from 0, in N-UCLA and in NTU RGB+D

_log = logging.getLogger(__name__)


def released(root: DataRoot, folders: Sequence[str], pattern: str) -> tuple[Path, list[Path]]:
    """Return the first of ``folders`` that contains files matching a pattern, with those files sorted by name, or no files if no folder has
    any.
    """
    for parent in root.folders:
        for name in folders:
            if files := sorted((parent / name).glob(pattern)):
                return parent / name, files
    return Path(), []


def stamps(reader: int, folder: Path, files: Sequence[Path]) -> dict[str, object]:
    """Return a cache key for thousands of files without reading them, because hashing would take longer than parsing."""
    states = {file.name: file.stat() for file in files}
    return {"reader": reader, "folder": str(folder), "files": {name: [s.st_size, s.st_mtime_ns] for name, s in states.items()}}


def pack(
    recordings: Sequence[Array], names: Sequence[str], y: Sequence[int], keys: Mapping[str, Sequence[int]], *, joints: int, classes: int
) -> dict[str, Array]:
    """Convert recordings to the canonical form in which they are cached.

    Args:
        recordings: float32 [L, M, V, C] each.
        names: recordings' names, for messages. y: class ids. keys: further integers per recording, by name.
        joints, classes: the expected numbers.

    Raises:
        DataError: there are no recordings, or a recording is empty, has a wrong number of joints, or a label out of range; it is named.
    """
    if not recordings:
        raise DataError("the data contain no sequences")
    for name, recording, label in zip(names, recordings, y, strict=True):
        if not recording.size:
            raise DataError(f"{name} is empty; expected at least 1 frame")
        if recording.ndim != 4 or recording.shape[2:] != (joints, 3):
            shape = " x ".join(map(str, recording.shape[2:]))
            raise DataError(f"{name} has {shape} numbers per person and frame; expected {joints} joints x 3 coordinates")
        if not 0 <= label < classes:
            raise DataError(f"{name} has label {label}; expected 0..{classes - 1}")
    return {
        "coordinates": np.concatenate(recordings).astype(np.float32, copy=False),
        "lengths": np.array([len(r) for r in recordings], dtype=np.int64),
        "y": np.array(y, dtype=np.int64),
        **{f"key.{key}": np.array(values, dtype=np.int64) for key, values in keys.items()},
    }


def skeleton_data(
    name: str, arrays: Mapping[str, Array], layout: Layout, n_classes: int, preparation: Preparation, centre: int | None = None
) -> GraphData:
    """Build the dataset from the arrays of :func:`pack`. Degenerate recordings are counted in its notes and logged in one line.

    Arrays named ``note.*`` are counts made by the reader.

    Raises:
        DataError: labels out of range, or inconsistent shapes; see :class:`cglsuite_skeleton.sequences.SkeletonSource`.
    """
    lengths = arrays["lengths"]
    coordinates, notes = repaired(arrays["coordinates"], lengths)
    notes |= {key.removeprefix("note."): int(count) for key, count in arrays.items() if key.startswith("note.") and count}
    if notes:
        _log.info("%s: %s", name, ", ".join(f"{key.replace('_', ' ')}: {count}" for key, count in notes.items()))
    source = SkeletonSource(torch.from_numpy(coordinates), torch.from_numpy(lengths), layout, preparation, centre, name)
    return GraphData(
        items=source,
        y=torch.from_numpy(arrays["y"]),
        n_classes=n_classes,
        keys={key.removeprefix("key."): torch.from_numpy(values) for key, values in arrays.items() if key.startswith("key.")},
        name=name,
        notes=notes,
    )


def repaired(coordinates: Array, lengths: Array) -> tuple[Array, dict[str, int]]:
    """Return positions in which all values are finite, and the number of degenerate recordings of each kind.

    A joint with a NaN or infinite coordinate takes its position from the previous frame of the recording, or 0 if there is none.

    Args:
        coordinates: float32 [F, M, V, C]. lengths: int64 [n].
    """
    of = np.repeat(np.arange(len(lengths)), lengths)
    lost = np.logical_not(np.isfinite(coordinates).all(axis=-1))
    if lost.any():
        first = (np.cumsum(lengths) - lengths)[of][:, None, None]
        last_seen = np.maximum.accumulate(np.where(lost, -1, np.arange(len(of))[:, None, None]), axis=0)
        held = np.take_along_axis(coordinates, np.maximum(last_seen, 0)[..., None], axis=0)
        coordinates = np.where((last_seen >= first)[..., None], held, np.float32(0))
    zero = np.logical_not(coordinates.any(axis=-1))
    if coordinates.shape[1] > 1:
        zero &= ~zero.all(axis=-1, keepdims=True)  # an absent person
    counts = {
        "sequences_of_one_frame": int((lengths == 1).sum()),
        "sequences_with_joints_at_zero": len(np.unique(of[zero.any(axis=(1, 2))])),
        "joints_at_zero": int(zero.sum()),
        "sequences_repaired": len(np.unique(of[lost.any(axis=(1, 2))])),
        "joints_repaired": int(lost.sum()),
    }
    return coordinates, {key: count for key, count in counts.items() if count}
