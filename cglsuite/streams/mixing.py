"""Turn a mixture of latent tasks into batches, by choosing how many and which items of each task arrive at each step.

This module works for items of any kind. A mixing schedule is a function ``(steps, spans, **hyperparameters) -> mixture``:

* ``steps``: float64 [T], the mid-points t + ½ of the stream's steps;
* ``spans``: float64 [K + 1], the task boundaries if the latent tasks arrived one after another;
* ``mixture``: float64 [T, K], non-negative weights of the latent tasks. Rows need not sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.base.errors import SpecError

__all__ = [
    "Schedule",
    "allocate",
    "deal",
    "mid_steps",
    "mixing_entropy",
    "mixture_of",
    "overlap_index",
    "smallest_setting",
    "spans_of",
    "step_entropies",
]

Schedule = Callable[..., NDArray[np.float64]]
"""A mixing schedule maps ``(steps float64 [T], spans float64 [K + 1], **hyperparameters)`` to a mixture, float64 [T, K]."""
_DOUBLINGS, _HALVINGS = 40, 60


def spans_of(sizes: Tensor, batch: int) -> NDArray[np.float64]:
    """Return the boundaries between latent tasks that arrive one after another, in steps of ``batch`` items: float64 [K + 1].

    Args:
        sizes: int64 [K], the number of training items of each latent task.

    Raises:
        SpecError: if ``batch`` is not positive, or larger than a latent task.
    """
    if batch < 1:
        raise SpecError(f"training.batch_size = {batch}: expected at least 1 item per step")
    if bool((small := sizes < batch).any()):
        k = int(small.nonzero()[0])
        raise SpecError(
            f"training.batch_size = {batch}: latent task {k + 1} has only {int(sizes[k])} training items; "
            "lower training.batch_size or raise scenario.min_class_size"
        )
    return np.concatenate([[0.0], np.cumsum(-(-sizes.numpy() // batch), dtype=np.float64)])


def mid_steps(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mid-points of a stream's steps: float64 [T]."""
    out: NDArray[np.float64] = np.arange(round(spans[-1]), dtype=np.float64) + 0.5
    return out


def mixture_of(weights: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    """Normalise the weights of each step to sum to 1: float64 [T, K].

    Args:
        where: the name of the schedule for error messages.

    Raises:
        SpecError: if the weights of a step are negative, not finite, or all zero.
    """
    bad = ~np.isfinite(weights).all(axis=1) | (weights < 0).any(axis=1) | (weights.sum(axis=1) <= 0)
    if bad.any():
        step = int(np.flatnonzero(bad)[0])
        raise SpecError(f"{where}: the weights at step {step} are {weights[step].tolist()[:8]}; expected finite values ≥ 0, not all 0")
    out: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return out


def allocate(mixture: NDArray[np.float64], batch: int) -> Tensor:
    """Allocate the ``batch`` items of each step to the latent tasks by the largest-remainder method: int64 [T, K].

    Each task gets ``⌊α_k B⌋`` items, and the remaining items go to the tasks with the largest fractional parts. Ties are broken in favour
    of the task furthest behind its share so far (otherwise, equal small shares would go to the first task at every step), and then of the
    earlier task.
    """
    shares = mixture * batch
    whole = np.floor(shares + 1e-9)
    parts = (shares - whole).round(12)
    left = (batch - whole.sum(axis=1)).astype(np.int64)
    order = np.argsort(-parts, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    counts = whole + (rank < left[:, None])
    done, behind = 0, np.zeros(mixture.shape[1])
    for step in _tied(np.take_along_axis(parts, order, axis=1), left):
        behind += (shares[done:step] - counts[done:step]).sum(axis=0)
        done = step
        first = np.lexsort((-behind.round(9), -parts[step]))[: left[step]]
        counts[step] = whole[step]
        counts[step, first] += 1
    return torch.from_numpy(counts.astype(np.int64))


def _tied(descending: NDArray[np.float64], left: NDArray[np.int64]) -> list[int]:
    """Return the steps with ties: the smallest remainder that gets one of the ``left`` items (int64 [T]) equals the largest that gets
    none."""
    rows = np.flatnonzero((left > 0) & (left < descending.shape[1]))
    tied: list[int] = rows[descending[rows, left[rows] - 1] == descending[rows, left[rows]]].tolist()
    return tied


def deal(counts: Tensor, sizes: Tensor, *, replacement: bool, seed: int) -> Tensor:
    """Draw the items that arrive at each step, shuffled within the step. Positions are offsets into the concatenated tasks: int64 [T, B].

    Without replacement, each task has a deck that is reshuffled when it is used up, so the items of a task arrive equally often, up to a
    difference of one. With replacement, every draw is independent. The draws of task k depend only on (seed, k).

    Args:
        counts: int64 [T, K], the number of items per step and task. Rows sum to B. sizes: int64 [K], the number of items of each task.
    """
    n_steps, n_tasks = counts.shape
    batch = int(counts[0].sum())
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    out = torch.empty(n_steps * batch, dtype=torch.int64)
    # The task of each drawn item, in step order and sorted by task within a step.
    place = torch.repeat_interleave(torch.arange(n_steps * n_tasks) % n_tasks, counts.flatten())
    for k in range(n_tasks):
        where = (place == k).nonzero().flatten()
        out[where] = offsets[k] + _drawn(int(sizes[k]), where.numel(), replacement, _generator(seed, "deck", k))
    shuffle = torch.rand(n_steps, batch, generator=_generator(seed, "within steps", 0), dtype=torch.float64).argsort(dim=1, stable=True)
    return out.view(n_steps, batch).gather(1, shuffle)


def _drawn(size: int, n: int, replacement: bool, generator: torch.Generator) -> Tensor:
    if replacement:
        return torch.randint(size, (n,), generator=generator)
    decks = -(-n // size)
    return torch.rand(decks, size, generator=generator, dtype=torch.float64).argsort(dim=1, stable=True).flatten()[:n]


def _generator(seed: int, purpose: str, k: int) -> torch.Generator:
    words = [seed & 0xFFFFFFFF, int.from_bytes(purpose.encode()[:4], "little"), k]
    return torch.Generator().manual_seed(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1)))


def overlap_index(mixture: NDArray[np.float64], threshold: float = 0.9) -> float:
    """Compute the share of steps at which no latent task's weight reaches ``threshold``.

    Args:
        mixture: float64 [T, K], rows sum to 1.
    """
    return float((mixture.max(axis=1) < threshold).mean())


def mixing_entropy(mixture: NDArray[np.float64]) -> float:
    """Compute ``mean_t H(α(t)) / ln K``, which is 0 if every step has a single latent task and 1 if all tasks share every step equally.

    Args:
        mixture: float64 [T, K], rows sum to 1.
    """
    if mixture.shape[1] < 2:
        return 0.0
    return float(step_entropies(mixture).mean() / math.log(mixture.shape[1]))


def step_entropies(mixture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the entropy ``H(α(t)) = -Σ_k α_k(t) ln α_k(t)`` of each step in nats: float64 [T].

    Args:
        mixture: float64 [T, K], rows sum to 1.
    """
    shares = np.where(mixture > 0, mixture, 1.0)
    out: NDArray[np.float64] = -(mixture * np.log(shares)).sum(axis=1)
    return out


def smallest_setting(
    measure: Callable[[float], float],
    target: float,
    start: float,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    digits: int = 4,
) -> float:
    """Find the smallest value at which ``measure`` reaches ``target``, by bisection.

    Args:
        measure: a non-decreasing function, possibly a step function. start: the first value to try, above 0. minimum, maximum: bounds of
            the value. digits: number of significant digits of the result.

    Raises:
        SpecError: if the target is not reached within the bounds, or already exceeded at the lower one.
    """
    high, floor, ceiling = max(start, 1e-9), minimum or 0.0, maximum if maximum is not None else math.inf
    for _ in range(_DOUBLINGS):
        if measure(min(high, ceiling)) >= target or high >= ceiling:
            break
        high *= 2.0
    high = min(high, ceiling)
    if (reached := measure(high)) < target:
        raise SpecError(f"it reaches {reached:.3g} at most")
    low = high
    for _ in range(_HALVINGS):
        low = max(low / 2.0, floor)
        if measure(low) < target:
            break
        high = low
        if low <= max(floor, 1e-9):
            raise SpecError(f"it is {measure(low):.3g} at least")
    while high - low > 0.5 * 10.0**-digits * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if measure(middle) >= target else (middle, high)
    places = digits - 1 - math.floor(math.log10(high))
    rounded = math.ceil(high * 10.0**places - 1e-6) / 10.0**places
    return min(rounded, ceiling)
