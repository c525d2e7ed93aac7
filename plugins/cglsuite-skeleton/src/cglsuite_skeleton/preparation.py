"""Conversion of recordings of different lengths to model inputs of fixed size: view augmentation, scaling and resampling.

As published for N-UCLA (the feeder of CTR-GCN, Chen et al., ICCV 2021), for all recordings at once and without a loop over them::

    X ← X - X[frame 0, joint 1]                        joint 1 counted from 0: the spine
    X ← X · R_y(β) · R_x(α)                            training: α, β integer degrees, uniform in [-60, 60]
    X ← 2 (X - min X) / (max X - min X) - 1            per axis, over all frames and joints of the recording
    X ← X[t_1], ..., X[t_T]                            training: a sorted sample without replacement of the frames, each 100 times there;
                                                       else ⌊linspace(0, L-1, T)⌋

The published code also draws a scale. The third step undoes it up to rounding, like the choice of the centre joint, so there is none here.
Cases that the publication leaves open: an axis without extent becomes 0 (not 0 / 0); if several persons are recorded, a person whose joints
are all exactly 0 in a frame is absent, is ignored in scaling, and has inputs of 0.

A recording's inputs are bit-identical whatever other recordings are prepared with it: all arithmetic is elementwise (blocking of matrix
products depends on sizes), minima and maxima are exact, and draws depend on (seed, recording, epoch).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cglsuite.base.errors import SpecError

Array = np.ndarray[Any, Any]
_REPEATS = 100
_RIGHT_ANGLES = 180


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Settings that define how recordings are turned into inputs.

    Args:
        frames: frames T of an input.
        augmentation: ``views`` (a new view and new frames in every training epoch), or ``none`` (training inputs are prepared like
            queries).
        max_angle: largest rotation in degrees.

    Raises:
        SpecError: a value is out of range.
    """

    frames: int
    augmentation: str = "views"
    max_angle: int = 60

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise SpecError(f"frames = {self.frames}: expected at least 1")
        if self.augmentation not in ("views", "none"):
            raise SpecError(f"augmentation = {self.augmentation!r}: expected 'views' or 'none'")
        if not 0 <= self.max_angle <= _RIGHT_ANGLES:
            raise SpecError(f"max_angle = {self.max_angle}: expected 0 to {_RIGHT_ANGLES} degrees")


def centred(coordinates: Array, lengths: Array, centre: int) -> Array:
    """Compute positions relative to the joint ``centre`` of the first person in the first frame of each recording: float32 [C, V, M, F]."""
    if not len(lengths):
        return coordinates
    absent = _absent(coordinates)
    origin = np.repeat(coordinates[:, centre, 0, _starts(lengths)], lengths, axis=-1)
    out: Array = coordinates - origin[:, None, None]
    if absent is not None:
        out[:, :, absent] = 0
    return out


def prepared(coordinates: Array, lengths: Array, frames: int) -> Array:
    """Compute inputs without augmentation: float32 [V, n, M, T, C].

    Args:
        coordinates: float32 [C, V, M, F]. lengths: int64 [n]. frames: T.
    """
    return _scaled_and_sampled(coordinates, lengths, even_frames(lengths, frames))


def augmented(coordinates: Array, lengths: Array, uniform: Array, max_angle: int) -> Array:
    """Compute the inputs of one training epoch: float32 [V, n, M, T, C].

    Args:
        coordinates: float32 [3, V, M, F]. lengths: int64 [n]. uniform: float64 [n, 2 + T], the recordings' :func:`draws`.
    """
    angles = (uniform[:, :2] * (2 * max_angle + 1)).astype(np.int64) - max_angle
    return _scaled_and_sampled(_rotated(coordinates, lengths, angles), lengths, drawn_frames(uniform[:, 2:], lengths))


def draws(seed: int, epoch: int, ids: Array, frames: int) -> Array:
    """Draw uniform numbers in [0, 1) for the recordings ``ids`` (int64 [n]): float64 [n, 2 + frames].

    One random stream per (seed, epoch) has a row for every recording of the dataset, so the draws of a recording depend on nothing else.
    """
    rows = int(ids.max()) + 1 if ids.size else 0
    stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
    table: Array = stream.random((rows, 2 + frames))
    return table[ids]


def even_frames(lengths: Array, frames: int) -> Array:
    """Select evenly spaced frames, int64 [n, T]. For a single L, the result ``floor(linspace(0, L-1, T))`` is bit-identical to NumPy's
    linspace; for several values of L, NumPy rounds differently.
    """
    last = (lengths - 1)[:, None]
    index = np.floor(np.arange(frames) * (last / max(frames - 1, 1))).astype(np.int64)
    if frames > 1:
        index[:, -1:] = last
    return index


def drawn_frames(uniform: Array, lengths: Array) -> Array:
    """Draw frames at random, int64 [n, T]: a sorted sample without replacement from 100 copies of each of L frames.

    If this is fewer than T frames, more copies are used. Floyd's algorithm, vectorised over recordings: the j-th draw takes one of the
    first N - T + j + 1 items, or the last of them if it is already taken; every subset of T of N items is equally likely.

    Args:
        uniform: float64 [n, T] in [0, 1). lengths: int64 [n].
    """
    n, frames = uniform.shape
    size = lengths * np.maximum(_REPEATS, -(-frames // lengths))
    taken = np.empty((frames, n), dtype=np.int64)
    for j in range(frames):
        last = size - frames + j
        drawn = (uniform[:, j] * (last + 1)).astype(np.int64)
        taken[j] = np.where((taken[:j] == drawn).any(axis=0), last, drawn)
    return np.sort((taken % lengths).T, axis=1)


def _rotated(coordinates: Array, lengths: Array, angles: Array) -> Array:
    """Positions rotated as X · R_y(β) · R_x(α), a product of two plane rotations: float32 [3, V, M, F].

    Args:
        angles: int64 [n, 2], degrees about x and about y.
    """
    (cos_x, cos_y), (sin_x, sin_y) = (np.repeat(table[angles.T], lengths, axis=1) for table in (_COSINES, _SINES))
    x, y, z = coordinates
    out, turned, term = np.empty_like(coordinates), np.empty_like(x), np.empty_like(x)  # allocation costs more than arithmetic
    np.multiply(x, cos_y, out=out[0])
    out[0] += np.multiply(z, sin_y, out=term)
    np.multiply(z, cos_y, out=turned)
    turned -= np.multiply(x, sin_y, out=term)
    np.multiply(y, cos_x, out=out[1])
    out[1] -= np.multiply(turned, sin_x, out=term)
    np.multiply(y, sin_x, out=out[2])
    out[2] += np.multiply(turned, cos_x, out=term)
    return out


def _by_degree(function: Any) -> Array:
    """A function's values at all integer degrees, float32 [361]; entry d, which may be negative, is for d degrees."""
    return np.array([function(math.radians(d if d <= _RIGHT_ANGLES else d - 361)) for d in range(361)], dtype=np.float32)


_COSINES, _SINES = _by_degree(math.cos), _by_degree(math.sin)


def _scaled_and_sampled(coordinates: Array, lengths: Array, index: Array) -> Array:
    """The frames ``index`` (int64 [n, T], within each recording), scaled to [-1, 1]: float32 [V, n, M, T, C]."""
    (n, frames), (axes, joints, persons, _) = index.shape, coordinates.shape
    out = np.empty((joints, n, persons, frames, axes), dtype=np.float32)
    if not n:
        return out
    starts, absent = _starts(lengths), _absent(coordinates)
    flat = (index + starts[:, None]).ravel()
    low, half, one = (np.repeat(part, frames, axis=1) for part in _box(coordinates, starts, absent))
    for axis in range(axes):
        values = np.take(coordinates[axis], flat, axis=-1)
        values -= low[axis]
        values /= half[axis]
        values -= one[axis]
        if absent is not None:
            values[:, absent[:, flat]] = 0
        out[..., axis] = values.reshape(joints, persons, n, frames).swapaxes(1, 2)
    return out


def _box(coordinates: Array, starts: Array, absent: Array | None) -> tuple[Array, Array, Array]:
    """Per axis and recording, each float32 [C, n]: minimum, half the extent, and the 1 to subtract (0 without extent)."""
    low, high = coordinates.min(axis=1), coordinates.max(axis=1)
    if absent is not None:
        low[:, absent], high[:, absent] = np.inf, -np.inf
    low = np.minimum.reduceat(low.min(axis=1), starts, axis=1)
    high = np.maximum.reduceat(high.max(axis=1), starts, axis=1)
    half = (high - low) * np.float32(0.5)  # exact, so the maximum becomes exactly 2 and then 1
    extended = half > 0
    # Without extent every value is the minimum. If nobody is present, the minimum is infinite and the value 0.
    return np.where(low < np.inf, low, 0), np.where(extended, half, 1), extended.astype(np.float32)


def _absent(coordinates: Array) -> Array | None:
    """Masks of absent persons, bool [M, F]; ``None`` if only one person is recorded, who is always present."""
    return None if coordinates.shape[2] == 1 else np.logical_not(coordinates.any(axis=(0, 1)))


def _starts(lengths: Array) -> Array:
    starts: Array = np.cumsum(lengths) - lengths
    return starts
