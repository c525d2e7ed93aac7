"""Metrics of task-free streams, computed from the accuracy on every latent task at every evaluation; NumPy only.

Below, ``A[i, k]`` is the performance on latent task k at evaluation i, where i = 0 is the untrained model and i = E is after the last step.
Latent tasks are not announced, and evaluations take place at fixed steps, so there is no diagonal. ``stream`` describes the stream as
stored in a record: ``evaluations`` (number of steps before each evaluation, [E + 1]), ``delivered`` (number of items of each latent task
that had arrived, [E + 1][K]) and ``tasks`` (one entry per latent task, with ``n_test``). Entries that could not be evaluated are NaN, and
so are all metrics that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError

RECOVERED = 0.9
"""A latent task counts as recovered at this share of its best performance."""
Stream = Mapping[str, Any]


def _checked(matrix: ArrayLike) -> NDArray[np.float64]:
    try:
        a = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"not a performance curve ({error}); expected shape [E + 1, K], where row 0 is before training") from error
    if a.ndim != 2 or a.shape[0] < 2 or a.shape[1] == 0:
        raise UsageError(f"the curve has shape {a.shape}; expected [E + 1, K] with at least one evaluation after the start of training")
    return a


def _part(stream: Stream | None, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if stream is None or name not in stream:
        raise UsageError(f"stream has no {name!r}, but this metric is for task-free streams; expected stream={{..., {name!r}: ...}}")
    part = np.asarray(stream[name], dtype=np.float64)
    if part.shape != shape:
        raise UsageError(f"stream[{name!r}] has shape {part.shape}, which does not match the shape of the curve, {shape}")
    return part


def a_auc(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``A_AUC = mean_{i≥0} mean_k A[i, k]``, over all evaluations, including the one before training. Higher is better.

    All evaluations have the same weight. Including the untrained model lowers the value compared with :func:`a_auc_trained`. The effect is
    larger if there are fewer evaluations.

    >>> a_auc([[0.25, 0.25], [1.0, 0.5], [0.5, 1.0]])
    0.5833333333333334
    """
    return float(_checked(matrix).mean())


def a_auc_trained(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``mean_{i≥1} mean_k A[i, k]``: like :func:`a_auc`, but without the untrained model. Higher is better.

    >>> a_auc_trained([[0.25, 0.25], [1.0, 0.5], [0.5, 1.0]])
    0.75
    """
    return float(_checked(matrix)[1:].mean())


def a_auc_node_weighted(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``mean_{i≥0} Σ_k n_k A[i, k] / Σ_k n_k`` with n_k test items in latent task k, as in DRIFT's code. Higher is better.

    If A is micro accuracy, this is the pooled accuracy, averaged over evaluations.

    Raises:
        UsageError: ``stream`` has no ``tasks`` with ``n_test``, or their number differs from the number of columns.
    """
    a = _checked(matrix)
    counts = [task["n_test"] for task in (stream or {}).get("tasks", ())]
    weights = _part({"n_test": counts} if counts else None, "n_test", (a.shape[1],))
    return float((a @ weights).mean() / weights.sum())


def a_end(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``A_end = mean_k A[E, k]``, the mean after the last step; higher is better. Also called AA."""
    return float(_checked(matrix)[-1].mean())


def af_s(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``AF_s = mean_k (A[E, k] - max_i A[i, k])``, at most 0; negative = forgetting.

    >>> af_s([[0.25, 0.25], [1.0, 0.5], [0.5, 1.0]])
    -0.25
    """
    a = _checked(matrix)
    return float((a[-1] - a.max(axis=0)).mean())


def af_hard(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None) -> float:
    """``AF = mean_k (A[E, k] - A[e_k, k])``, where e_k is the first evaluation after all of latent task k has arrived; negative =
    forgetting.

    In a hard stream, this is backward transfer averaged over all K tasks, with 0 for the last task (as reported by DRIFT). NaN if a latent
    task never arrives.

    Raises:
        UsageError: ``stream`` has no ``delivered``, or its shape is wrong.
    """
    a = _checked(matrix)
    delivered = _part(stream, "delivered", a.shape)
    if (delivered[-1] <= 0).any():
        return float("nan")
    complete = (delivered >= delivered[-1]).argmax(axis=0)
    return float((a[-1] - a[complete, np.arange(a.shape[1])]).mean())


@dataclass(frozen=True, kw_only=True)
class Dip:
    """A fall of latent task ``task`` (0-based) below a share of its ``best`` at step ``start``, with recovery at ``end`` (``None``: never).

    ``least`` is the lowest performance in between.
    """

    task: int
    start: int
    end: int | None
    best: float
    least: float

    @property
    def steps(self) -> float:
        """The number of steps until recovery; infinite if the stream ended first."""
        return float("inf") if self.end is None else float(self.end - self.start)


def dips(matrix: ArrayLike, stream: Stream | None, recovered: float = RECOVERED) -> list[Dip]:
    """Find every fall of a latent task below ``recovered`` times its best performance so far, and the time of recovery.

    The best performance is tracked from the latent task's first arrival, since a model that has not seen the task only guesses. NaN entries
    are skipped.

    Raises:
        UsageError: ``stream`` has no ``evaluations`` or no ``delivered``, or a shape is wrong.
    """
    a = _checked(matrix)
    steps = _part(stream, "evaluations", a.shape[:1])
    arrived = _part(stream, "delivered", a.shape) > 0
    return [dip for k in range(a.shape[1]) for dip in _dips_of(k, a[:, k], arrived[:, k], steps, recovered)]


def _dips_of(task: int, values: NDArray[np.float64], arrived: NDArray[np.bool_], steps: NDArray[np.float64], recovered: float) -> list[Dip]:
    dips: list[Dip] = []
    best, since, least = 0.0, -1, np.inf
    for i in np.flatnonzero(arrived & np.isfinite(values)):
        value, low = float(values[i]), bool(values[i] < recovered * best)
        if low and since < 0:
            since, least = int(i), np.inf
        if low:
            least = min(least, value)
        elif since >= 0:
            dips.append(Dip(task=task, start=int(steps[since]), end=int(steps[i]), best=best, least=least))
            since = -1
        best = max(best, value)
    if since >= 0:
        dips.append(Dip(task=task, start=int(steps[since]), end=None, best=best, least=least))
    return dips


def time_to_recover(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Stream | None = None, recovered: float = RECOVERED) -> float:
    """Median number of steps from a latent task's fall below 90% of its best to its recovery, over all :func:`dips`. Lower is better.

    A dip without recovery counts as infinite, so failing to recover never improves the value. NaN if there are no dips, or if at least half
    of them never recover. The resolution is the number of steps between evaluations.
    """
    lengths = [dip.steps for dip in dips(matrix, stream, recovered)]
    value = float(np.median(lengths)) if lengths else float("nan")
    return value if np.isfinite(value) else float("nan")
