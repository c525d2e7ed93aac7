"""The published preparation: against a slow loop over recordings written from its formulas, and to the bit whatever else is prepared."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from cglsuite_skeleton.preparation import Preparation, augmented, centred, drawn_frames, draws, even_frames, prepared
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.base.errors import SpecError

Array = np.ndarray[Any, Any]
SPINE = 1


def recordings(lengths: list[int], persons: int = 1, joints: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Positions float32 [C, V, M, F] and lengths."""
    draw = np.random.default_rng(seed)
    return draw.normal(2.0, 1.0, (3, joints, persons, sum(lengths))).astype(np.float32), np.array(lengths)


def one_by_one(coordinates: Array, lengths: Array, frames: int, uniform: Array | None = None, max_angle: int = 60) -> list[Array]:
    """Every recording by itself, in double precision: [V, M, T, C] each."""
    out, start = [], 0
    for i, length in enumerate(lengths.tolist()):
        x = coordinates[..., start : start + length].astype(np.float64)
        start += length
        x = x - x[:, SPINE, 0, 0][:, None, None, None]
        index = [int(v) for v in np.linspace(0, length - 1, frames)]
        if uniform is not None:
            about_x, about_y = (math.radians(math.floor(u * (2 * max_angle + 1)) - max_angle) for u in uniform[i, :2])
            r_x = [[1, 0, 0], [0, math.cos(about_x), math.sin(about_x)], [0, -math.sin(about_x), math.cos(about_x)]]
            r_y = [[math.cos(about_y), 0, -math.sin(about_y)], [0, 1, 0], [math.sin(about_y), 0, math.cos(about_y)]]
            x = np.moveaxis(np.moveaxis(x, 0, -1) @ (np.array(r_y) @ np.array(r_x)), -1, 0)
            index = drawn(uniform[i, 2:], length)
        low, high = x.min(axis=(1, 2, 3), keepdims=True), x.max(axis=(1, 2, 3), keepdims=True)
        x = (x - low) / (high - low) * 2 - 1
        out.append(x[..., index].transpose(1, 2, 3, 0))
    return out


def drawn(uniform: Array, length: int) -> list[int]:
    """Floyd's sample of a list that holds every frame 100 times, sorted by frame."""
    items = list(range(length)) * max(100, math.ceil(len(uniform) / length))
    taken: list[int] = []
    for j, u in enumerate(uniform):
        last = len(items) - len(uniform) + j
        position = math.floor(u * (last + 1))
        taken.append(last if position in taken else position)
    assert len(set(taken)) == len(taken)
    return sorted(items[position] for position in taken)


@pytest.mark.parametrize("persons", [1, 2])
def test_inputs_of_queries_are_those_of_the_formulas(persons: int) -> None:
    coordinates, lengths = recordings([7, 2, 30, 52], persons)
    found = prepared(centred(coordinates, lengths, SPINE), lengths, 9)
    assert found.shape == (4, 4, persons, 9, 3)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    for i, expected in enumerate(one_by_one(coordinates, lengths, 9)):
        np.testing.assert_allclose(found[:, i], expected, atol=1e-5)


@pytest.mark.parametrize("persons", [1, 2])
def test_inputs_of_training_are_those_of_the_formulas(persons: int) -> None:
    coordinates, lengths = recordings([7, 2, 30, 52], persons)
    uniform = draws(3, 5, np.arange(4), 9)
    found = augmented(centred(coordinates, lengths, SPINE), lengths, uniform, 60)
    for i, expected in enumerate(one_by_one(coordinates, lengths, 9, uniform)):
        np.testing.assert_allclose(found[:, i], expected, atol=1e-5)


def test_the_centre_joint_does_not_matter() -> None:
    """Scaling to [-1, 1] undoes it: which joint is subtracted is a matter of rounding only."""
    coordinates, lengths = recordings([7, 30])
    uniform = draws(0, 0, np.arange(2), 9)
    first, second = (augmented(centred(coordinates, lengths, centre), lengths, uniform, 60) for centre in (1, 3))
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_a_recordings_bits_do_not_depend_on_the_others() -> None:
    coordinates, lengths = recordings([7, 1, 30, 52, 11, 3])
    coordinates = centred(coordinates, lengths, SPINE)
    starts = np.cumsum(lengths) - lengths
    plain, drawn_ = prepared(coordinates, lengths, 13), augmented(coordinates, lengths, draws(1, 2, np.arange(6), 13), 60)
    for chosen in ([0], [5], [1], [4, 2], [3, 1, 0, 5]):
        ids = np.array(chosen)
        part = np.concatenate([coordinates[..., starts[i] : starts[i] + lengths[i]] for i in chosen], axis=-1)
        np.testing.assert_array_equal(prepared(part, lengths[ids], 13), plain[:, ids])
        np.testing.assert_array_equal(augmented(part, lengths[ids], draws(1, 2, ids, 13), 60), drawn_[:, ids])


def test_draws_belong_to_seed_recording_and_epoch() -> None:
    all_of_them = draws(1, 2, np.arange(50), 5)
    np.testing.assert_array_equal(draws(1, 2, np.array([7, 49, 0]), 5), all_of_them[[7, 49, 0]])
    np.testing.assert_array_equal(draws(1, 2, np.array([7]), 5), all_of_them[[7]])
    assert len(np.unique(all_of_them)) == all_of_them.size
    for other in (draws(2, 2, np.arange(50), 5), draws(1, 3, np.arange(50), 5)):
        assert not np.isin(other, all_of_them).any()
    assert draws(0, 0, np.zeros(0, dtype=np.int64), 5).shape == (0, 7)


@given(st.integers(1, 400), st.integers(1, 310))
@settings(max_examples=200, deadline=None)
def test_even_frames_are_numpys_truncated_linspace(length: int, frames: int) -> None:
    """Whatever other lengths stand beside it: NumPy itself rounds otherwise when a length of 1 is among several."""
    found = even_frames(np.array([length, 1, 17]), frames)
    np.testing.assert_array_equal(found[0], np.linspace(0, length - 1, frames).astype(np.int64))
    assert not found[1].any()


@given(st.integers(1, 80), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_drawn_frames_are_sorted_in_range_and_without_replacement(length: int, frames: int, seed: int) -> None:
    found = drawn_frames(np.random.default_rng(seed).random((3, frames)), np.array([length, 1, 5]))
    assert (np.diff(found, axis=1) >= 0).all()
    assert found.min() >= 0
    assert (found.max(axis=1) < [length, 1, 5]).all()


def test_frames_are_drawn_without_replacement_evenly() -> None:
    """As many draws as there are items take every frame 100 times; over many draws every frame comes as often."""
    whole = drawn_frames(np.random.default_rng(0).random((4, 300)), np.full(4, 3))
    assert all(Counter(row.tolist()) == {0: 100, 1: 100, 2: 100} for row in whole)
    many = np.bincount(drawn_frames(np.random.default_rng(1).random((20_000, 10)), np.full(20_000, 4)).ravel())
    assert many / many.sum() == pytest.approx([0.25] * 4, abs=0.01)


def test_more_frames_than_a_hundred_copies() -> None:
    assert drawn_frames(np.random.default_rng(0).random((2, 300)), np.array([1, 2])).shape == (2, 300)


def test_angles_are_whole_degrees_of_either_sign() -> None:
    """A bone along y, turned about x: y and z give the angle away."""
    lengths = np.ones(20_000, dtype=np.int64)
    uniform = draws(0, 0, np.arange(20_000), 1)
    degrees = np.floor(uniform[:, 0] * 121) - 60
    assert (degrees.min(), degrees.max(), len(np.unique(degrees))) == (-60, 60, 121)
    bones = np.zeros((3, 3, 1, 20_000), dtype=np.float32)
    bones[1, 1], bones[1, 2] = 1, -1
    found = augmented(bones, lengths, uniform, 60)[:, :, 0, 0]  # [V, n, C]
    # z = y sin(angle) spans an axis of its own: after scaling only its sign is left.
    np.testing.assert_array_equal(found[1, :, 2], np.sign(degrees).astype(np.float32))
    assert (found[1, :, 1] == 1).all()


def test_no_angle_draws_frames_only() -> None:
    coordinates, lengths = recordings([30])
    found = augmented(coordinates, lengths, draws(0, 0, np.arange(1), 5), 0)
    whole = prepared(coordinates, lengths, 30)
    assert all((whole == found[..., t : t + 1, :]).all(axis=(0, 1, 2, 4)).any() for t in range(5))


def test_degenerate_recordings() -> None:
    """One frame; all joints at one place; a plane; a single extended axis."""
    coordinates, lengths = recordings([1, 3, 4])
    coordinates[..., 1:4] = 5
    coordinates[2, ..., 4:] = -1.25
    plain = prepared(coordinates, lengths, 6)
    turned = augmented(coordinates, lengths, draws(0, 0, np.arange(3), 6), 60)
    for found in (plain, turned):
        assert np.isfinite(found).all()
        assert not found[:, 1].any()
        assert (found[:, 0] == found[:, 0, :, :1]).all()
        assert (found.min(), found.max()) == (-1, 1)
    assert not plain[:, 2, ..., 2].any()


def test_extremes_are_exact() -> None:
    coordinates, lengths = recordings([40, 50, 60], seed=4)
    found = prepared(coordinates, lengths, 60)
    assert (found[:, 2].min(axis=(0, 1, 2)) == -1).all()
    assert (found[:, 2].max(axis=(0, 1, 2)) == 1).all()
    assert np.abs(found).max() == 1


def test_a_person_who_is_not_there_has_no_part() -> None:
    coordinates, lengths = recordings([6, 4], persons=2)
    coordinates[:, :, 1, 2:4] = 0  # leaves for two frames
    coordinates[:, :, 1, 6:] = 0  # never there
    relative = centred(coordinates, lengths, SPINE)
    assert not relative[:, :, 1, 2:4].any()
    found = prepared(relative, lengths, 6)
    assert not found[:, 0, 1, 2:4].any()
    assert found[:, 0, 1, :2].all()
    assert not found[:, 1, 1].any()
    alone = prepared(centred(coordinates[:, :, :1, 6:], lengths[1:], SPINE), lengths[1:], 6)
    np.testing.assert_array_equal(found[:, 1:, :1], alone)
    nobody = prepared(np.zeros((3, 4, 2, 5), dtype=np.float32), np.array([5]), 3)
    assert not nobody.any()


def test_no_recordings() -> None:
    nothing, lengths = np.zeros((3, 4, 1, 0), dtype=np.float32), np.zeros(0, dtype=np.int64)
    assert centred(nothing, lengths, 1).shape == nothing.shape
    assert prepared(nothing, lengths, 7).shape == (4, 0, 1, 7, 3)
    assert augmented(nothing, lengths, draws(0, 0, lengths, 7), 60).shape == (4, 0, 1, 7, 3)


@pytest.mark.parametrize("wrong", [{"frames": 0}, {"frames": 1, "augmentation": "view"}, {"frames": 1, "max_angle": 181}])
def test_values_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=next(reversed(wrong))):
        Preparation(**wrong)
