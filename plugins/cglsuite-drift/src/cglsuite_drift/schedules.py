"""Mixing schedules, which set the share of each latent task in every step of a task-free stream. They use only NumPy and do not depend on
the items.

All have the form ``schedule(steps, spans, **hyperparameters) -> mixture`` (see :mod:`cglsuite.streams.mixing`) with

* ``steps``: float64 [T], the mid-points t + ½ of the steps;
* ``spans``: float64 [K + 1], the boundaries of K latent tasks in sequence: task k from ``spans[k]`` to
  ``spans[k + 1]``, with the boundary between tasks k and k + 1 at ``spans[k + 1]`` and the centre of task k half-way;
* ``mixture``: float64 [T, K], rows sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cglsuite.base.errors import SpecError

Floats = NDArray[np.float64]


def hard(steps: Floats, spans: Floats) -> Floats:
    """Assign every step to the latent task whose span contains it: ``α_k(t) = 1`` where ``s_k ≤ t < s_{k+1}``, else 0."""
    one_hot: Floats = np.eye(len(spans) - 1)[np.searchsorted(spans[1:-1], steps, side="right")]
    return one_hot


def boundary_local(steps: Floats, spans: Floats, window: float = 5.0) -> Floats:
    """Use hard boundaries, except that shares shift linearly from one task to the next within ``window`` steps around every boundary.

    ``α_k(t) = r_k(t) - r_{k+1}(t)`` with ``r_k(t) = clip(½ + (t - s_k) / w, 0, 1)``, the progress of the transition at the boundary ``s_k``
    (``r_0 = 1``, ``r_K = 0``). Half-way through a window, the two neighbouring tasks have equal shares. If windows are wider than a span
    and overlap, three or more tasks mix. Nothing is repeated or discarded: a task gives as much to its neighbours' spans as it takes from
    them.

    Args:
        window: w, width of a transition in steps, half on each side; up to 1 equals ``hard``.

    Raises:
        SpecError: a negative or infinite window.
    """
    if not 0 <= window < math.inf:
        raise SpecError(f"schedule.window = {window!r}: expected a number of steps, 0 or more")
    # Boundaries lie half a step from the nearest mid-points, so all windows of at most one step are the same.
    passed = np.clip(0.5 + (steps[:, None] - spans[None, 1:-1]) / max(window, 1.0), 0.0, 1.0)
    ends = np.ones((len(steps), 1))
    return -np.diff(np.concatenate([ends, passed, 0 * ends], axis=1), axis=1)


def global_mixing(steps: Floats, spans: Floats, p: float = 0.1) -> Floats:
    """Take a share ``p`` of every step from all other latent tasks, past and future, in equal parts.

    ``α_k(t) = 1 - p`` for the task whose span contains t, ``p / (K - 1)`` for each other task.

    Args:
        p: share of the other tasks; 0 is ``hard``.

    Raises:
        SpecError: p outside [0, 1].
    """
    if not 0 <= p <= 1:
        raise SpecError(f"schedule.p = {p!r}: expected a share between 0 and 1")
    own = hard(steps, spans)
    n_tasks = own.shape[1]
    return own if n_tasks == 1 else (1 - p) * own + p / (n_tasks - 1) * (1 - own)


def gaussian(steps: Floats, spans: Floats, sigma: float = 20.0) -> Floats:
    """Weight each latent task by a Gaussian around the centre of its span, with the same width for all tasks.

    ``α_k(t) ∝ exp(-(t - μ_k)² / 2σ²)`` with ``μ_k = (s_k + s_{k+1}) / 2``. For σ → 0, every step belongs to the nearest centre, which
    equals ``hard`` if the latent tasks have equal sizes; for σ → ∞, all shares are equal.

    Args:
        sigma: σ in steps.

    Raises:
        SpecError: σ is not positive.
    """
    if not sigma > 0:
        raise SpecError(f"schedule.sigma = {sigma!r}: expected a positive number of steps (for σ → 0, use the schedule 'hard')")
    squared = (steps[:, None] - (spans[1:] + spans[:-1]) / 2) ** 2
    squared -= squared.min(axis=1, keepdims=True)  # the nearest task has weight 1, so no row vanishes
    with np.errstate(over="ignore"):  # σ² could underflow although σ does not; what overflows has no weight
        weights = np.exp(-0.5 * (squared / sigma) / sigma)
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def linear(steps: Floats, spans: Floats) -> Floats:
    """Drift linearly: a latent task has share 1 at its centre, and between two centres the shares move linearly from one task to the next.

    Only the first task occurs before the first centre, and only the last task after the last centre.
    """
    centres = (spans[1:] + spans[:-1]) / 2
    return np.stack([np.interp(steps, centres, corner) for corner in np.eye(len(centres))], axis=1)


def periodic(steps: Floats, spans: Floats, period: float | None = None) -> Floats:
    """Repeat all latent tasks in every ``period`` steps, in order, each for a time proportional to its span.

    The share of a task in a step is the part of ``[t - ½, t + ½]`` that lies within the task's turns, so turns shorter than a step still
    count. Over whole periods, a task contributes as much as in ``hard``.

    Args:
        period: in steps; a period as long as the stream equals ``hard``. ``None``: a quarter of the stream.

    Raises:
        SpecError: the period is below 1 step, or longer than the stream, which would omit the last tasks.
    """
    length = float(spans[-1])
    period = length / 4 if period is None else period
    if not 1 <= period <= length:
        raise SpecError(f"schedule.period = {period!r}: expected a number of steps between 1 and {length:g}, the length of the stream")
    edges = np.append(steps - 0.5, steps[-1] + 0.5)
    rounds, phase = np.divmod(edges, period)
    turns = np.clip(phase[:, None] * (length / period) - spans[None, :-1], 0.0, np.diff(spans))  # of the current round, so far
    time = (rounds[:, None] * np.diff(spans) + turns) * (period / length)
    return _normalised(np.diff(time, axis=0))


def real_time(steps: Floats, spans: Floats, *, arrivals: Sequence[NDArray[np.int64]], key: str = "time") -> Floats:
    """Compute the shares from the timestamps of the items.

    All training items are sorted by time and spread evenly over the steps. The share of a latent task in a step is its share of the items
    there. Items with equal times are mixed evenly. Within a task, items are still shuffled, so the time of an item does not determine its
    step.

    Args:
        arrivals: for each latent task, the times of its training items, ascending; the stream reads them from the attribute ``key``.
        key: name of the attribute, which the stream looks up.
    """
    times, at = np.unique(np.concatenate(arrivals), return_inverse=True)
    of = np.repeat(np.arange(len(arrivals)), [len(a) for a in arrivals])
    counts = np.zeros((len(times) + 1, len(arrivals)))
    np.add.at(counts, (at.reshape(-1) + 1, of), 1.0)
    arrived = counts.cumsum(axis=0)  # of each task by each time
    total = arrived.sum(axis=1)
    edges = np.append(steps - 0.5, steps[-1] + 0.5) * (total[-1] / spans[-1])
    by_step = np.stack([np.interp(edges, total, column) for column in arrived.T], axis=1)
    return _normalised(np.diff(by_step, axis=0))


real_time.needs_arrivals = True  # type: ignore[attr-defined]


def _normalised(weights: Floats) -> Floats:
    weights = np.maximum(weights, 0.0)  # differences of running sums can fall short of 0 by rounding
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def sigma_for_overlap(spans: Floats, overlap: float, threshold: float = 0.9) -> float:
    """Find the smallest σ for which no latent task's weight reaches ``threshold`` in at least a share ``overlap`` of the steps.

    A wider Gaussian lowers the largest share of every step, so the overlap index increases with σ.

    Args:
        spans: float64 [K + 1], in steps.
        overlap: the target overlap index, above 0 and at most 1; it has a resolution of 1 / T.
        threshold: the share τ at which a latent task dominates a step.

    Raises:
        SpecError: no σ reaches the overlap, or every σ exceeds it.
    """
    from cglsuite.streams.mixing import mid_steps, overlap_index, smallest_setting

    steps = mid_steps(spans)

    def reached(sigma: float) -> float:
        return overlap_index(gaussian(steps, spans, sigma), threshold)

    widest = 1e3 * float(spans[-1])
    most = reached(widest)
    if not 0 < overlap <= most:
        raise SpecError(
            f"overlap = {overlap!r}: expected a value above 0 and at most {most:g}, the maximum for {len(spans) - 1} latent tasks"
        )
    return smallest_setting(reached, overlap, 1.0, maximum=widest, digits=8)
