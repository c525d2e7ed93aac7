"""The text format of the ``.skeleton`` files of NTU RGB+D, with one recording per file.

::

    103                              frames
    1                                bodies in this frame
    72057594037931101 0 1 1 0 ...    tracking id and nine more fields of this body
    25                               joints
    x y z depth_x ... state          twelve fields per joint, the first three its position in metres
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cglsuite.base.errors import DataError

Array = np.ndarray[Any, Any]
_FIELDS = 12


class _Lines:
    """A cursor over the lines of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text(encoding="ascii").splitlines()
        self.read = 0

    def take(self, count: int) -> list[str]:
        """Return the next ``count`` lines."""
        lines = self.lines[self.read : self.read + count]
        if len(lines) < count:
            raise DataError(f"{self.path} ends after {len(self.lines)} lines, in the middle of a frame. The file is truncated; replace it")
        self.read += count
        return lines

    def number(self) -> int:
        """Parse the next line as a count."""
        (line,) = self.take(1)
        if not line.strip().isdigit():
            raise DataError(f"{self.path}, line {self.read}: found {line[:40]!r}; expected a count")
        return int(line)


def read_skeleton(path: Path, joints: int, persons: int) -> Array:
    """Read the positions of the ``persons`` who move most, in descending order of motion: float32 [L, M, V, 3].

    Bodies are identified by tracking id. Frames without any of these bodies are left out; absent persons are at 0. L is 0 if no body was
    recorded.

    Raises:
        DataError: the file is truncated, malformed, or has a wrong number of joints.
    """
    try:
        tracks = _tracks(_Lines(path), joints)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({type(error).__name__}: {error}). Replace it") from error
    chosen = sorted(tracks, key=lambda track: -energy(track[1]))[:persons]
    frames = np.unique([frame for track in chosen for frame in track[0]]).astype(np.int64)
    out = np.zeros((len(frames), persons, joints, 3), dtype=np.float32)
    for person, (present, positions) in enumerate(chosen):
        out[np.searchsorted(frames, present), person] = positions
    return out


def _tracks(lines: _Lines, joints: int) -> list[tuple[list[int], Array]]:
    """For every body, in order of appearance, its frames and its positions there, float32 [L, V, 3]."""
    bodies: dict[str, dict[int, list[str]]] = {}
    for frame in range(lines.number()):
        for _ in range(lines.number()):
            (fields,) = lines.take(1)
            if (count := lines.number()) != joints:
                raise DataError(f"{lines.path}, line {lines.read}: found {count} joints; expected {joints}")
            bodies.setdefault(fields.split()[0], {})[frame] = lines.take(joints)
    return [(list(frames), _positions(lines, list(frames.values()), joints)) for frames in bodies.values()]


def _positions(lines: _Lines, blocks: list[list[str]], joints: int) -> Array:
    fields = [line.split() for block in blocks for line in block]
    if (bad := next((f for f in fields if len(f) != _FIELDS), None)) is not None:
        raise DataError(f"{lines.path}: a joint has {len(bad)} fields ({' '.join(bad)[:40]!r}); expected {_FIELDS}")
    return np.array([f[:3] for f in fields], dtype=np.float32).reshape(len(blocks), joints, 3)


def energy(positions: Array) -> float:
    """Compute how much a body moves: the standard deviation over its frames and joints, summed over axes, as in the reader of ST-GCN.

    Args:
        positions: float32 [L, V, 3].
    """
    return float(positions.astype(np.float64).std(axis=(0, 1)).sum())
