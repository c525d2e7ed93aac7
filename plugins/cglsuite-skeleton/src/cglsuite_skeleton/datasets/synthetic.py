"""The embedded dataset: motions of one person on any layout, bit-identical on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from cglsuite.base.datafiles import DataRoot
from cglsuite.graphs import GraphData
from cglsuite.specs import resolve_hyperparameters
from cglsuite_skeleton.datasets.assemble import Array, skeleton_data
from cglsuite_skeleton.datasets.specs import MOTION_HYPERPARAMETERS
from cglsuite_skeleton.layouts import Layout, layout_of
from cglsuite_skeleton.preparation import Preparation

_NAME = "synthetic-motion"
_SHORTEST, _LONGEST = 16, 48  # frames of a sequence
_HARMONICS = 2
_REACH = 0.5  # amplitudes common to all motions
_SHARE = 0.2  # amplitudes specific to a class
_JITTER = 0.2  # of a coordinate in a frame, per unit of noise
_TURN = 0.5  # largest heading in radians, in both directions
_GRID = 4096  # positions are rounded to 1 / this, so the last bit of a library's sine does not matter


def synthetic_motion(root: DataRoot, **given: Any) -> GraphData:
    """Generate the motions of :func:`sample_motion`. ``root`` is not used.

    Raises:
        UnknownNameError, SpecError: a parameter that the spec does not declare, a value out of range, or an invalid layout.
    """
    hyperparameters: dict[str, Any] = dict(resolve_hyperparameters(MOTION_HYPERPARAMETERS, given, _NAME))
    preparation = Preparation(**{key: hyperparameters.pop(key) for key in ("frames", "augmentation", "max_angle")})
    layout = layout_of(hyperparameters.pop("layout"))
    return skeleton_data(_NAME, sample_motion(layout, **hyperparameters), layout, hyperparameters["n_classes"], preparation)


def sample_motion(layout: Layout, *, n_classes: int, per_class: int, noise: float, seed: int) -> dict[str, Array]:
    """Sample sequences whose class determines how each joint moves, and return their arrays (see
    :func:`cglsuite_skeleton.datasets.assemble.pack`).

    Bones of length 1 lead outward from the centre joint in random directions. Relative to its parent, a joint moves by ``Σ_h a_h cos hθ +
    b_h sin hθ``, together with its descendants. Amplitudes are the sum of a common part, a class part and a sequence part that is
    proportional to ``noise``; θ runs over the sequence with an individual tempo and phase. Every sequence has an individual length, size
    and heading, and noise in every coordinate. For the parameters, see ``MOTION_HYPERPARAMETERS``.
    """
    class_draws, sequence_draws, noise_draws = (np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(3))
    joints, n = layout.n_joints, n_classes * per_class
    bones = _between(class_draws, -1, 1, (joints, 3))
    bones /= np.sqrt((bones * bones).sum(axis=1, keepdims=True))
    shape = (2 * _HARMONICS, joints, 3)
    common, own = _between(class_draws, -_REACH, _REACH, shape), _between(class_draws, -_SHARE, _SHARE, (n_classes, *shape))

    y = np.repeat(np.arange(n_classes), per_class)
    lengths = _between(sequence_draws, _SHORTEST, _LONGEST + 1, n).astype(np.int64)
    tempo, phase, size, turn = (_between(sequence_draws, *bounds, n) for bounds in ((0.8, 1.2), (-0.1, 0.1), (0.8, 1.2), (-_TURN, _TURN)))
    waves = common + own[y] + noise * _between(sequence_draws, -_REACH, _REACH, (n, *shape))

    of = np.repeat(np.arange(n), lengths)
    frame = np.arange(len(of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    angle = 2 * np.pi * (tempo[of] * frame / lengths[of] + phase[of])
    local = np.repeat(bones[None], len(of), axis=0)
    for h in range(_HARMONICS):
        for wave, course in ((2 * h, np.cos((h + 1) * angle)), (2 * h + 1, np.sin((h + 1) * angle))):
            local += waves[of, wave] * course[:, None, None]
    position = _turned(_outward(layout, local) * size[of][:, None, None], turn[of])
    position += _JITTER * noise * _bell(noise_draws, position.shape)
    coordinates = (np.round(position * _GRID) / _GRID).astype(np.float32)
    return {"coordinates": coordinates[:, None], "lengths": lengths, "y": y}


def _outward(layout: Layout, local: Array) -> Array:
    """Positions from each joint's offset to its parent: float64 [F, V, 3]; the centre is at 0."""
    hops = layout.hops().numpy()
    out = np.zeros_like(local)
    for joint in np.argsort(hops[layout.centre], kind="stable")[1:]:
        nearer = (hops[joint] == 1) & (hops[layout.centre] < hops[layout.centre, joint])
        out[:, joint] = out[:, int(np.flatnonzero(nearer)[0])] + local[:, joint]
    return out


def _turned(position: Array, angle: Array) -> Array:
    """Positions float64 [F, V, 3], rotated about the y axis by ``angle`` (float64 [F])."""
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y, z = (position[..., axis] for axis in range(3))
    return np.stack([x * cos + z * sin, y, z * cos - x * sin], axis=-1)


def _between(draws: np.random.Generator, low: float, high: float, size: Any) -> Array:
    """Uniform draws in [low, high)."""
    drawn: Array = low + (high - low) * draws.random(size)
    return drawn


def _bell(draws: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Noise with mean 0 and variance 1: a centred sum of twelve uniforms, which needs no library's logarithm."""
    out = np.full(size, -6.0)
    for _ in range(12):
        out += draws.random(size)
    return out
