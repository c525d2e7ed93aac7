"""From shares to counts to items: largest remainders, decks, exposure, and streams that are the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cglsuite.base.errors import SpecError
from cglsuite.streams.mixing import (
    allocate,
    deal,
    mid_steps,
    mixing_entropy,
    mixture_of,
    overlap_index,
    smallest_setting,
    spans_of,
)


@st.composite
def mixtures(draw: st.DrawFn) -> NDArray[np.float64]:
    """Rows that sum to 1, some of them with equal shares, with none at all, or next to none."""
    n_steps, n_tasks = draw(st.integers(1, 12)), draw(st.integers(1, 7))
    weight = st.sampled_from([0.0, 1.0, 1.0, 2.0, 1e-12, 0.1, 1 / 3]) | st.floats(0, 1)
    rows = draw(st.lists(st.lists(weight, min_size=n_tasks, max_size=n_tasks), min_size=n_steps, max_size=n_steps))
    weights = np.array(rows, dtype=np.float64)
    weights[weights.sum(axis=1) < 1e-9] = 1.0
    return mixture_of(weights, "these weights")


# --- spans and shares ----------------------------------------------------------------------------------------------------------


def test_spans_are_whole_batches() -> None:
    assert spans_of(torch.tensor([20, 21, 10]), 10).tolist() == [0, 2, 5, 6]
    assert mid_steps(spans_of(torch.tensor([20, 10]), 10)).tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("sizes", "batch", "message"),
    [([20, 9], 10, "latent task 2 has only 9 training items; lower training.batch_size"), ([20], 0, "expected at least 1 item per step")],
)
def test_batches_that_do_not_fit(sizes: list[int], batch: int, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spans_of(torch.tensor(sizes), batch)


@pytest.mark.parametrize("row", [[0.0, 0.0], [1.0, -0.1], [1.0, np.nan], [np.inf, 1.0]])
def test_weights_that_are_no_shares(row: list[float]) -> None:
    with pytest.raises(SpecError, match=r"mine: the weights at step 1 are .* expected finite values ≥ 0, not all 0"):
        mixture_of(np.array([[1.0, 1.0], row]), "mine")


def test_weights_are_scaled_to_shares() -> None:
    assert mixture_of(np.array([[2.0, 6.0]]), "mine").tolist() == [[0.25, 0.75]]


def test_overlap_index_counts_steps_without_a_dominant_task() -> None:
    mixture = np.array([[0.9, 0.1], [0.89, 0.11], [0.5, 0.5], [0.0, 1.0]])
    assert overlap_index(mixture) == 0.5
    assert overlap_index(mixture, threshold=0.5) == 0


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [([[1, 0], [0, 1]], 0.0), ([[0.5, 0.5]], 1.0), ([[0.5, 0.5], [1, 0]], 0.5), ([[0.25, 0.25, 0.5, 0]], 1.5 / 2), ([[1.0]], 0.0)],
)
def test_mixing_entropy_by_hand(mixture: list[list[float]], expected: float) -> None:
    assert mixing_entropy(np.array(mixture, dtype=np.float64)) == pytest.approx(expected)


# --- counts --------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.integers(1, 25))
def test_counts_are_largest_remainders(mixture: NDArray[np.float64], batch: int) -> None:
    counts = allocate(mixture, batch).numpy()
    shares = mixture * batch
    assert counts.dtype == np.int64
    assert (counts.sum(axis=1) == batch).all()
    assert (np.abs(counts - shares) < 1 + 1e-6).all()
    parts = shares - np.floor(shares + 1e-9)
    rounded_up = counts > np.floor(shares + 1e-9)
    for row, up in zip(parts, rounded_up, strict=True):
        assert not up.any() or up.all() or row[up].min() >= row[~up].max() - 1e-9


def test_counts_by_hand() -> None:
    mixture = np.array([[0.25, 0.36, 0.39], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.05, 0.05, 0.9]])
    assert allocate(mixture, 10).tolist() == [[2, 4, 4], [5, 5, 0], [10, 0, 0], [1, 0, 9]]


def test_equal_remainders_take_turns() -> None:
    """A tenth of each batch from nine other tasks in equal parts: one item per step, and not always of the first of them."""
    mixture = np.tile([0.9, *[0.1 / 9] * 9], (18, 1))
    counts = allocate(mixture, 10)
    assert counts[:, 0].tolist() == [9] * 18
    assert counts.sum(dim=0).tolist() == [9 * 18, *[2] * 9]
    assert counts[:9, 1:].argmax(dim=1).tolist() == list(range(9))


def test_a_tie_goes_to_who_is_behind() -> None:
    """Two steps leave the first task 0.8 behind; at the third both remainders are ½, and it gets the item."""
    assert allocate(np.array([[0.35, 0.65], [0.45, 0.55], [0.5, 0.5]]), 1).tolist() == [[0, 1], [0, 1], [1, 0]]


# --- items ---------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.integers(1, 6), st.integers(0, 2**40), st.data())
def test_without_replacement_items_differ_by_one_at_most(mixture: NDArray[np.float64], batch: int, seed: int, data: st.DataObject) -> None:
    counts = allocate(mixture, batch)
    sizes = torch.tensor(data.draw(st.lists(st.integers(1, 20), min_size=counts.shape[1], max_size=counts.shape[1])))
    items = deal(counts, sizes, replacement=False, seed=seed)
    assert items.shape == (len(mixture), batch)
    offset = 0
    for k, size in enumerate(sizes.tolist()):
        drawn = (items >= offset) & (items < offset + size)
        assert drawn.sum(dim=1).tolist() == counts[:, k].tolist(), "each step holds what the counts say"
        times = torch.bincount(items[drawn] - offset, minlength=size)
        exposure = int(counts[:, k].sum())
        assert set(times.tolist()) <= {exposure // size, -(-exposure // size)}
        offset += size


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**40), st.booleans())
def test_the_same_seed_gives_the_same_items_whatever_else_was_drawn(seed: int, replacement: bool) -> None:
    counts, sizes = torch.tensor([[3, 1], [0, 4], [2, 2]]), torch.tensor([5, 4])
    state = torch.get_rng_state()
    one = deal(counts, sizes, replacement=replacement, seed=seed)
    torch.rand(3)
    assert torch.equal(one, deal(counts, sizes, replacement=replacement, seed=seed))
    torch.set_rng_state(state)


def test_a_tasks_deck_does_not_depend_on_the_others() -> None:
    """The k-th draw from a task is the same item, whatever the other tasks deliver in between."""

    def of_first(counts: list[list[int]]) -> list[int]:
        items = deal(torch.tensor(counts), torch.tensor([6, 50]), replacement=False, seed=7)
        return items[items < 6].sort().values.tolist()

    assert of_first([[3, 1], [0, 4], [1, 3]]) == of_first([[0, 4], [4, 0], [0, 4]])


def test_with_replacement_draws_are_independent() -> None:
    items = deal(torch.full((2_000, 1), 5), torch.tensor([50]), replacement=True, seed=0)
    times = torch.bincount(items.flatten(), minlength=50).double()
    # A chi-square variable with 49 degrees of freedom: within five standard deviations, and far from the 0 of equal counts.
    assert 49 - 5 * 98**0.5 < float(((times - 200) ** 2 / 200).sum()) < 49 + 5 * 98**0.5


def test_positions_within_a_step_are_shuffled() -> None:
    items = deal(torch.full((400, 2), 2), torch.tensor([100, 100]), replacement=False, seed=0)
    first = (items[:, 0] < 100).double().mean()
    assert 0.4 < float(first) < 0.6


def test_pinned_items() -> None:
    """The same on every machine: a change of this hash changes every task-free result there is."""
    mixture = mixture_of(np.array([[k + t % 3 + 1.0 for k in range(4)] for t in range(50)]), "pinned")
    counts, sizes = allocate(mixture, 7), torch.tensor([30, 40, 50, 60])
    found = [hashlib.sha256(deal(counts, sizes, replacement=r, seed=5).numpy().tobytes()).hexdigest()[:16] for r in (False, True)]
    assert found == PINNED


PINNED = ["8434ff073bd0f691", "aa7485eff578b580"]


# --- a setting from what is wanted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [1e-6, 0.3, 7.0, 1e5])
@pytest.mark.parametrize("target", [0.01, 2.0, 123.4])
def test_bisection_finds_the_smallest_value(start: float, target: float) -> None:
    """Of a rising measure, from wherever it starts; of a step, its edge."""
    found = smallest_setting(lambda v: v**2, target, start)
    assert target <= found**2 <= target * 1.003
    edge = smallest_setting(lambda v: float(v >= target), 1.0, start)
    assert target <= edge <= target * 1.002


def test_targets_out_of_reach_are_refused() -> None:
    with pytest.raises(SpecError, match="at most"):
        smallest_setting(lambda v: 0.5, 0.6, 1.0)
    with pytest.raises(SpecError, match="at most"):
        smallest_setting(lambda v: v, 3.0, 1.0, maximum=2.0)
    with pytest.raises(SpecError, match="at least"):
        smallest_setting(lambda v: 1.0 + v, 0.5, 1.0)


def test_bisection_to_as_many_digits_as_asked() -> None:
    assert smallest_setting(lambda v: v**2, 2.0, 1.0, digits=3) == 1.42
    assert smallest_setting(lambda v: v**2, 2.0, 1.0) == 1.415
    assert smallest_setting(lambda v: v**2, 2.0, 1.0, digits=8) == 1.4142136
