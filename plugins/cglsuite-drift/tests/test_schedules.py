"""Mixing schedules: their limits, closed forms computed by hand, and streams that deliver what the shares say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from cglsuite_drift import schedules
from cglsuite_drift.plugin import cglsuite_schedules
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from installed import installed
from numpy.typing import NDArray

from cglsuite.base.errors import SpecError
from cglsuite.specs import resolve_hyperparameters
from cglsuite.streams.mixing import allocate, deal, mid_steps, mixture_of, overlap_index, spans_of

Floats = NDArray[np.float64]
Spans = st.lists(st.integers(1, 30), min_size=1, max_size=8).map(lambda lengths: np.cumsum([0.0, *lengths]))


def made(schedule: Callable[..., Floats], spans: Any, **hyperparameters: Any) -> Floats:
    spans = np.asarray(spans, dtype=np.float64)
    return schedule(mid_steps(spans), spans, **hyperparameters)


def nearest_centre(spans: Floats) -> Floats:
    centres = (spans[1:] + spans[:-1]) / 2
    distance = np.abs(mid_steps(spans)[:, None] - centres)
    nearest = (distance == distance.min(axis=1, keepdims=True)).astype(np.float64)
    return nearest / nearest.sum(axis=1, keepdims=True)


@st.composite
def mixed(draw: st.DrawFn) -> tuple[str, Floats, Floats]:
    """A schedule's name, spans, and what it makes of them."""
    spans = draw(Spans)
    length, n_tasks = spans[-1], len(spans) - 1
    name = draw(st.sampled_from(["hard", "boundary-local", "global", "gaussian", "linear", "periodic", "real-time"]))
    hyperparameters: dict[str, Any] = {
        "boundary-local": {"window": draw(st.floats(0, 100))},
        "global": {"p": draw(st.floats(0, 1))},
        "gaussian": {"sigma": draw(st.floats(0, 1e6, exclude_min=True))},
        "periodic": {"period": draw(st.floats(1, float(length)))},
        "real-time": {"arrivals": [np.sort(np.array(draw(st.lists(st.integers(-5, 40), min_size=1)))) for _ in range(n_tasks)]},
    }.get(name, {})
    function = getattr(schedules, {"global": "global_mixing"}.get(name, name.replace("-", "_")))
    return name, spans, made(function, spans, **hyperparameters)


@examples(max_examples=60, deadline=None)
@given(mixed())
def test_every_schedule_gives_shares(case: tuple[str, Floats, Floats]) -> None:
    _, spans, mixture = case
    assert mixture.shape == (spans[-1], len(spans) - 1)
    assert mixture.dtype == np.float64
    assert (mixture >= 0).all()
    np.testing.assert_allclose(mixture.sum(axis=1), 1, atol=1e-9)


@examples(max_examples=60, deadline=None)
@given(mixed(), st.integers(1, 12), st.integers(0, 3), st.data())
def test_batches_are_full_and_every_item_comes_about_equally_often(
    case: tuple[str, Floats, Floats], batch: int, seed: int, data: st.DataObject
) -> None:
    """Counts sum to B at every step; each item of task k is drawn ⌊n_k/N_k⌋ or ⌈n_k/N_k⌉ times; the same seed deals the same items."""
    _, spans, shares = case
    short = [data.draw(st.integers(0, batch - 1)) for _ in range(len(spans) - 1)]
    sizes = torch.tensor([max(1, int(b - a) * batch - s) for (a, b), s in zip(pairwise(spans), short, strict=True)])
    counts = allocate(mixture_of(shares, "this schedule"), batch)
    assert (counts.sum(dim=1) == batch).all()
    items = deal(counts, sizes, replacement=False, seed=seed)
    times = torch.bincount(items.flatten(), minlength=int(sizes.sum()))
    for k, of_task in enumerate(times.split(sizes.tolist())):
        exposure = int(counts[:, k].sum()) / int(sizes[k])
        assert set(of_task.tolist()) <= {math.floor(exposure), math.ceil(exposure)}
    assert torch.equal(items, deal(counts, sizes, replacement=False, seed=seed))


# --- gaussian ------------------------------------------------------------------------------------------------------------------


@examples(max_examples=60, deadline=None)
@given(Spans, st.sampled_from([1e-2, 1e-9, 1e-200, 5e-324]))
def test_sigma_to_zero_is_the_nearest_centre(spans: Floats, sigma: float) -> None:
    np.testing.assert_allclose(made(schedules.gaussian, spans, sigma=sigma), nearest_centre(spans), atol=1e-12)


@examples(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 20))
def test_sigma_to_zero_is_hard_where_latent_tasks_are_equal_in_size(n_tasks: int, length: int) -> None:
    spans = np.arange(n_tasks + 1) * float(length)
    np.testing.assert_array_equal(made(schedules.gaussian, spans, sigma=1e-3), made(schedules.hard, spans))


def test_sigma_to_zero_is_not_hard_where_they_are_not() -> None:
    """Centres 5 and 16: the border between them is at 10.5, the boundary at 10."""
    spans = np.array([0.0, 10.0, 22.0])
    assert made(schedules.gaussian, spans, sigma=1e-3)[9:12].tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert made(schedules.hard, spans)[9:12].tolist() == [[1, 0], [0, 1], [0, 1]]


@examples(max_examples=60, deadline=None)
@given(Spans)
def test_sigma_to_infinity_is_uniform(spans: Floats) -> None:
    for sigma in (1e9, math.inf):
        np.testing.assert_allclose(made(schedules.gaussian, spans, sigma=sigma), 1 / (len(spans) - 1), atol=1e-9)


def test_far_from_every_centre_shares_are_still_numbers() -> None:
    """Steps at hundreds of σ from the next centre, where every Gaussian by itself is 0."""
    mixture = made(schedules.gaussian, [0, 10_000, 20_000], sigma=3.0)
    assert np.isfinite(mixture).all()
    assert mixture[0].tolist() == [1, 0]


def test_gaussian_shares_by_hand() -> None:
    """Centres 2 and 6, σ = 2: at t = 3.5 the weights are e^(-2.25/8) and e^(-6.25/8), whose ratio is e^0.5."""
    share = made(schedules.gaussian, [0, 4, 8], sigma=2.0)[3]
    np.testing.assert_allclose(share, [1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5))])


@pytest.mark.parametrize(("lengths", "sigma", "tau"), [((60, 60), 12.0, 0.9), ((40, 90), 20.0, 0.9), ((300, 200), 31.5, 0.75)])
def test_overlap_index_has_a_closed_form_for_two_latent_tasks(lengths: tuple[int, int], sigma: float, tau: float) -> None:
    """The odds of the two are exp(d (t - b) / σ²), d the distance of the centres and b the point half-way between them, so that none
    reaches τ where |t - b| < σ² ln(τ / (1 - τ)) / d."""
    first, second = lengths
    d, b = (first + second) / 2, (first + (first + second) / 2) / 2
    half = sigma**2 * math.log(tau / (1 - tau)) / d
    total = first + second
    expected = sum(abs(t + 0.5 - b) < half for t in range(total)) / total
    assert abs(expected - 2 * half / total) < 1.01 / total, "the window lies within the stream"
    assert overlap_index(made(schedules.gaussian, [0, first, total], sigma=sigma), tau) == expected


def test_overlap_index_of_a_case_worked_by_hand() -> None:
    """Two tasks of 60 steps, σ = 12: 144 · ln 9 / 60 = 5.27 steps to each side of 60, which holds 5 + 5 mid-points of 120."""
    assert overlap_index(made(schedules.gaussian, [0, 60, 120], sigma=12.0)) == 10 / 120


# --- the others ----------------------------------------------------------------------------------------------------------------


def test_hard_follows_the_spans() -> None:
    assert made(schedules.hard, [0, 2, 3, 5]).argmax(axis=1).tolist() == [0, 0, 1, 2, 2]


def test_boundary_local_by_hand() -> None:
    """A window of 4 steps around the boundary at 5 crosses in shares of 1/8, 3/8, 5/8, 7/8; one of 5 in 0, 1/5, ..., as at 7/10 - 1/2."""
    later = made(schedules.boundary_local, [0, 5, 10], window=4.0)[:, 1]
    assert later.tolist() == [0, 0, 0, 1 / 8, 3 / 8, 5 / 8, 7 / 8, 1, 1, 1]
    later = made(schedules.boundary_local, [0, 5, 10], window=5.0)[:, 1]
    np.testing.assert_allclose(later, [0, 0, 0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], atol=1e-12)


@examples(max_examples=60, deadline=None)
@given(Spans, st.floats(0, 60))
def test_boundary_local_takes_as_much_as_it_gives(spans: Floats, window: float) -> None:
    """Where no window reaches over the stream's ends or another window, every task delivers what it has, and none is repeated."""
    assume(window <= np.diff(spans).min())
    np.testing.assert_allclose(made(schedules.boundary_local, spans, window=window).sum(axis=0), np.diff(spans), atol=1e-9)


@examples(max_examples=60, deadline=None)
@given(Spans)
def test_limits_that_are_hard(spans: Floats) -> None:
    hard = made(schedules.hard, spans)
    np.testing.assert_array_equal(made(schedules.boundary_local, spans, window=0.0), hard)
    np.testing.assert_allclose(made(schedules.boundary_local, spans, window=1e-9), hard, atol=1e-6)
    np.testing.assert_array_equal(made(schedules.global_mixing, spans, p=0.0), hard)
    np.testing.assert_allclose(made(schedules.periodic, spans, period=float(spans[-1])), hard, atol=1e-9)


def test_global_by_hand() -> None:
    mixture = made(schedules.global_mixing, [0, 2, 4, 6], p=0.3)
    np.testing.assert_allclose(mixture[0], [0.7, 0.15, 0.15])
    np.testing.assert_allclose(mixture[5], [0.15, 0.15, 0.7])
    assert made(schedules.global_mixing, [0, 3], p=0.3).tolist() == [[1.0]] * 3


def test_global_reaches_every_other_task() -> None:
    """3.5% of ten items is less than one item: equal remainders must not always fall to the same task."""
    spans = np.arange(31) * 10.0
    counts = allocate(made(schedules.global_mixing, spans, p=0.1), 10)
    visits = counts.sum(dim=0)
    assert (visits >= 90 + 9).all()
    assert (visits <= 90 + 11).all()


def test_linear_by_hand() -> None:
    """Centres 2, 6 and 11: alone before the first, 1/8 of the way at t = 2.5, alone at t = 11 and after."""
    mixture = made(schedules.linear, [0, 4, 8, 14])
    np.testing.assert_allclose(mixture[[0, 2, 5, 8, 12]], [[1, 0, 0], [7 / 8, 1 / 8, 0], [1 / 8, 7 / 8, 0], [0, 0.5, 0.5], [0, 0, 1]])


def test_periodic_by_hand() -> None:
    """Tasks of 8 and 4 steps; with a period of 6 they take 4 and 2 steps of each, with one of 3 two and one."""
    assert made(schedules.periodic, [0, 8, 12], period=6.0).argmax(axis=1).tolist() == [0, 0, 0, 0, 1, 1] * 2
    assert made(schedules.periodic, [0, 8, 12]).argmax(axis=1).tolist() == [0, 0, 1] * 4
    np.testing.assert_allclose(made(schedules.periodic, [0, 8, 12], period=1.0), [[2 / 3, 1 / 3]] * 12)
    np.testing.assert_allclose(made(schedules.periodic, [0, 9, 12], period=2.0), [[1, 0], [0.5, 0.5]] * 6)


@examples(max_examples=60, deadline=None)
@given(Spans, st.integers(1, 6))
def test_over_whole_periods_every_task_delivers_its_span(spans: Floats, rounds: int) -> None:
    assume(spans[-1] >= rounds)
    mixture = made(schedules.periodic, spans, period=float(spans[-1]) / rounds)
    np.testing.assert_allclose(mixture.sum(axis=0), np.diff(spans), atol=1e-6)


def test_real_time_by_hand() -> None:
    """Twelve items in six steps, two per step in order of time; the four of time 3 come evenly mixed."""
    arrivals = [np.array([0, 0, 1, 1, 3, 3, 3, 8]), np.array([1, 1, 3, 9])]
    mixture = made(schedules.real_time, [0, 4, 6], arrivals=arrivals)
    np.testing.assert_allclose(mixture[:, 1], [0, 0.5, 0.5, 0.25, 0.25, 0.5])


def test_real_time_of_tasks_that_follow_each_other_is_hard() -> None:
    arrivals = [np.arange(0, 30), np.arange(30, 40), np.arange(40, 60)]
    np.testing.assert_allclose(made(schedules.real_time, [0, 3, 4, 6], arrivals=arrivals), made(schedules.hard, [0, 3, 4, 6]), atol=1e-9)


def test_a_stream_that_follows_the_years_of_its_items() -> None:
    from tiny_streams import tiny_data
    from tiny_task_free import tiny_task_free_stream

    task_free = {"schedule_factory": "cglsuite_drift.schedules:real_time", "schedule": "real-time"}
    data = tiny_data(per_class=20, keys={"year": [2001, 2002, 2003, 2004]})
    stream = tiny_task_free_stream(data, task_free={**task_free, "schedule_hyperparameters": (("key", "year"),)})
    assert (stream.counts.sum(dim=1) == 4).all()
    # Every class has as many items of each year, so that all latent tasks come at all times.
    assert stream.counts[0].max() < 4
    with pytest.raises(SpecError, match="schedule 'real-time' requires the attribute 'time'; the dataset .* has only these: year"):
        tiny_task_free_stream(data, task_free=task_free)


# --- σ from the overlap that is wanted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [0.01, 0.3, 0.92, 1.0])
@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_sigma_for_overlap_is_the_smallest_that_suffices(overlap: float, threshold: float) -> None:
    spans = np.array([0.0, 30.0, 50.0, 95.0, 120.0])
    sigma = schedules.sigma_for_overlap(spans, overlap, threshold)
    assert overlap_index(made(schedules.gaussian, spans, sigma=sigma), threshold) >= overlap
    assert overlap_index(made(schedules.gaussian, spans, sigma=sigma * (1 - 1e-6)), threshold) < overlap


def test_sigma_for_overlap_has_a_closed_form_for_two_latent_tasks() -> None:
    """Ten of 120 mid-points within σ² ln 9 / 60 of the boundary: the fifth on each side is 4.5 steps away."""
    sigma = schedules.sigma_for_overlap(np.array([0.0, 60.0, 120.0]), 10 / 120)
    assert sigma == pytest.approx(math.sqrt(4.5 * 60 / math.log(9)), rel=1e-6)


@pytest.mark.parametrize(
    ("spans", "overlap", "threshold", "message"),
    [
        ([0, 30, 60], 0.0, 0.9, "overlap = 0.0: expected a value above 0 and at most 1, the maximum for 2 latent tasks"),
        ([0, 30, 60], 1.1, 0.9, "overlap = 1.1: expected a value above 0 and at most 1"),
        ([0, 30, 60], 0.2, 0.4, "overlap = 0.2: expected a value above 0 and at most 0, the maximum for 2 latent tasks"),
        ([0, 30], 0.2, 0.9, "at most 0, the maximum for 1 latent tasks"),
    ],
)
def test_an_overlap_that_no_sigma_gives(spans: list[int], overlap: float, threshold: float, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        schedules.sigma_for_overlap(np.array(spans, dtype=np.float64), overlap, threshold)


# --- what is offered, and what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "hyperparameters", "message"),
    [
        (schedules.gaussian, {"sigma": 0.0}, "schedule.sigma = 0.0: expected a positive number of steps"),
        (schedules.gaussian, {"sigma": -1.0}, "schedule.sigma = -1.0: expected a positive number"),
        (schedules.gaussian, {"sigma": math.nan}, "schedule.sigma = nan: expected a positive number"),
        (schedules.global_mixing, {"p": -0.1}, r"schedule.p = -0.1: expected a share between 0 and 1"),
        (schedules.global_mixing, {"p": 1.1}, r"schedule.p = 1.1: expected a share between 0 and 1"),
        (schedules.boundary_local, {"window": -1.0}, "schedule.window = -1.0: expected a number of steps, 0 or more"),
        (schedules.boundary_local, {"window": math.inf}, "schedule.window = inf: expected a number of steps"),
        (
            schedules.periodic,
            {"period": 0.5},
            "schedule.period = 0.5: expected a number of steps between 1 and 20, the length of the stream",
        ),
        (
            schedules.periodic,
            {"period": 21.0},
            "schedule.period = 21.0: expected a number of steps between 1 and 20, the length of the stream",
        ),
    ],
)
def test_settings_out_of_range(schedule: Callable[..., Floats], hyperparameters: dict[str, float], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        made(schedule, [0, 10, 20], **hyperparameters)


@pytest.mark.parametrize("spec", cglsuite_schedules(), ids=lambda s: s.name)
def test_specs_lead_to_functions_that_take_their_settings(spec: Any) -> None:
    function = installed("cglsuite", "cglsuite-drift").resolve(spec)
    hyperparameters = resolve_hyperparameters(spec.hyperparameters, {}, spec.name)
    extra = {"arrivals": [np.arange(5), np.arange(9)]} if getattr(function, "needs_arrivals", False) else {}
    np.testing.assert_allclose(made(function, [0, 10, 20], **hyperparameters, **extra).sum(axis=1), 1)
    assert all(h.doc and h.effect for h in spec.hyperparameters)


def test_the_settings_are_checked_when_a_cell_is_resolved() -> None:
    by_name = {spec.name: spec for spec in cglsuite_schedules()}
    for name, setting, value in (
        ("gaussian", "sigma", -1),
        ("global", "p", 1.5),
        ("boundary-local", "window", -2),
        ("periodic", "period", 0),
    ):
        with pytest.raises(SpecError, match=rf"schedule\.{name}\.{setting} = {value}"):
            resolve_hyperparameters(by_name[name].hyperparameters, {setting: value}, f"schedule.{name}")


@pytest.mark.realdata
def test_the_stream_of_corafull_is_the_papers() -> None:
    """From the classes of CoraFull: overlap 0.04, 0.38 and 0.92 at σ = 3, 10 and 20 (as printed); what is never and most often drawn."""
    from cglsuite.base.datafiles import DataRoot
    from cglsuite.graphs.splits.partition import per_class_split

    path = DataRoot.from_environment().find("CoraFullTopology/corafull_topology.npz")
    if path is None:
        pytest.skip("needs CoraFullTopology/corafull_topology.npz")
    with np.load(path, allow_pickle=False) as archive:
        y = torch.from_numpy(archive["labels"].astype(np.int64))
    trained = per_class_split(y, torch.arange(70), (0.6, 0.2, 0.2), 0) == 0
    sizes = torch.bincount(y[trained] // 2)
    spans = spans_of(sizes, 10)
    assert len(sizes) == 35
    assert overlap_index(made(schedules.gaussian, spans, sigma=3.0)) == pytest.approx(0.04, abs=0.005)
    assert overlap_index(made(schedules.gaussian, spans, sigma=10.0)) == pytest.approx(0.38, abs=0.01)
    mixture = made(schedules.gaussian, spans, sigma=20.0)
    assert overlap_index(mixture) == pytest.approx(0.92, abs=0.005)
    drawn = allocate(mixture, 10).sum(dim=0)
    assert float((sizes - drawn).clamp(min=0).sum() / sizes.sum()) == pytest.approx(0.12, abs=0.01)
    assert float((drawn / sizes).max()) == pytest.approx(3.7, abs=0.1)
