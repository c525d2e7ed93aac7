"""Export the splits of a stream for use in other tools, as arrays in an npz file with a JSON description and SHA-256 hashes.

The npz file contains, for every task k = 0, 1, ..., T-1:

- ``classes_k``: int64, the task's global class ids, in order of arrival;
- ``train_k``, ``validation_k``, ``test_k``: int64, the global ids of the items (nodes) of each part, which are row numbers in the dataset;

and ``task_outputs``: bool [T, C], the outputs that belong to each task. Nothing is pickled, and equal splits give equal bytes.

Read it with :func:`read_export`, which checks all hashes, or without this package:

    >>> from cglsuite.streams.exported import read_export
    >>> splits = read_export("cora-task-il@begin-1-order0-split0.npz")  # doctest: +SKIP
    >>> splits.members(0, "train")  # doctest: +SKIP
    array([  5,  12, ...])
    >>> import numpy
    >>> numpy.load("cora-task-il@begin-1-order0-split0.npz")["train_0"]  # doctest: +SKIP
    array([  5,  12, ...])

The hash of an array covers its values in C order, little-endian: ``hashlib.sha256(array.tobytes()).hexdigest()``.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cglsuite.base.errors import DataError, UnknownNameError
from cglsuite.streams.stream import TaskStream

__all__ = ["FORMAT", "PARTS", "ExportedStream", "read_export"]

FORMAT = 1
"""The version of the file format."""
PARTS = ("train", "validation", "test")
"""The parts into which a task's items are split, as they appear in array names."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that zip files support; the real time would make files differ between runs
Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportedStream:
    """An export loaded by :func:`read_export`, with the ``metadata`` of the JSON file and the ``arrays`` of the npz file by name."""

    metadata: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def __len__(self) -> int:
        """Return the number of tasks T."""
        return int(self.task_outputs.shape[0])

    @property
    def task_outputs(self) -> Array:
        """The outputs that belong to each task: bool [T, C]."""
        return self.arrays["task_outputs"]

    def classes(self, k: int) -> Array:
        """Return the class ids (int64) of the task at position ``k``, in order of arrival.

        Raises:
            UnknownNameError: if there is no such task.
        """
        return self._of_task("classes", k)

    def members(self, k: int, part: str) -> Array:
        """Return the global ids (int64) of the ``train``, ``validation`` or ``test`` items of the task at position ``k``.

        Raises:
            UnknownNameError: if there is no such part or task.
        """
        if part not in PARTS:
            raise UnknownNameError("part", part, PARTS)
        return self._of_task(part, k)

    def _of_task(self, name: str, k: int) -> Array:
        if not 0 <= k < len(self):
            raise UnknownNameError("task position", str(k), map(str, range(len(self))))
        return self.arrays[f"{name}_{k}"]


def stream_arrays(stream: TaskStream) -> dict[str, Array]:
    """Return the splits of a stream as little-endian arrays, keyed by their names in the npz file (see the module docstring)."""
    arrays: dict[str, Array] = {"task_outputs": stream.task_outputs.cpu().numpy().astype(np.bool_)}
    for k, facts in enumerate(stream.tasks):
        arrays[f"classes_{k}"] = np.asarray(facts.classes, dtype="<i8")
        for part in PARTS:
            arrays[f"{part}_{k}"] = stream.members(k, part).cpu().numpy().astype("<i8")
    return arrays


def describe_arrays(arrays: Mapping[str, Array]) -> dict[str, dict[str, Any]]:
    """Return the ``dtype``, the ``shape`` and the SHA-256 (hex) of the values in C order of each array, by name."""
    return {name: {"dtype": a.dtype.str, "shape": list(a.shape), "sha256": _sha256(a.tobytes())} for name, a in sorted(arrays.items())}


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Serialise arrays to an uncompressed npz file. Equal arrays give equal bytes on any machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in sorted(arrays.items()):
            member = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            member.create_system = 3  # Python's default depends on the machine
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return buffer.getvalue()


def read_export(path: str | Path) -> ExportedStream:
    """Load an export and verify every hash.

    Args:
        path: the npz file or the JSON file next to it.

    Raises:
        DataError: if a file is missing, unreadable or in a different format, or its content does not match the hashes.
    """
    path = Path(path)
    stem = path.name.removesuffix(".npz").removesuffix(".json")  # other dots are part of the name
    npz, description = path.with_name(f"{stem}.npz"), path.with_name(f"{stem}.json")
    try:
        metadata = json.loads(description.read_bytes())
        content = npz.read_bytes()
        if metadata["format"] != FORMAT:
            raise ValueError(f"format {metadata['format']!r}, but this version reads format {FORMAT}: use the version that wrote it")
        whole, expected = metadata["file"]["sha256"], dict(metadata["arrays"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is not an export (an npz file and a JSON file of the same name): {type(error).__name__}: {error}"
        ) from error
    if _sha256(content) != whole:
        raise DataError(f"{npz}: its SHA-256 does not match {description.name}, so the file was changed or damaged; export it again")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    described = describe_arrays(arrays)
    if wrong := sorted(name for name in {*described, *expected} if described.get(name) != expected.get(name)):
        raise DataError(f"{npz}: {', '.join(wrong)} do not match the description in {description.name}; export the stream again")
    return ExportedStream(metadata=metadata, arrays=arrays)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
