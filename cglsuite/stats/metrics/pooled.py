"""Accuracy over the test items of several tasks, computed from the performance matrix and the sizes of the tasks; NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cglsuite.base.errors import UsageError
from cglsuite.stats.metrics.matrix import _checked


def pooled_accuracy(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Mapping[str, Any] | None = None) -> float:
    """``Σ_j n_j M[T, j] / Σ_j n_j`` with n_j test items: the accuracy over all test items after the last task if M is micro accuracy.

    >>> pooled_accuracy([[0.5, 0.5], [0.9, 0.5], [0.7, 0.8]], stream={"tasks": [{"n_test": 30}, {"n_test": 10}]})
    0.725

    Raises:
        UsageError: ``stream`` has no ``tasks`` with ``n_test``, or their number differs from the number of columns.
    """
    return float(_pooled(matrix, stream)[-1])


def pooled_accuracy_mean(matrix: ArrayLike, joint: ArrayLike | None = None, stream: Mapping[str, Any] | None = None) -> float:
    """``mean_k Σ_{j≤k} n_j M[k, j] / Σ_{j≤k} n_j``: :func:`pooled_accuracy` over the tasks learnt so far, averaged over stages.

    Raises:
        UsageError: ``stream`` has no ``tasks`` with ``n_test``, or their number differs from the number of columns.
    """
    return float(_pooled(matrix, stream).mean())


def _pooled(matrix: ArrayLike, stream: Mapping[str, Any] | None) -> NDArray[np.float64]:
    """Return the mean over learnt tasks, weighted by their number of test items, for each stage k = 1..T: float64 [T]."""
    m = _checked(matrix)[1:]
    counts = np.array([task["n_test"] for task in (stream or {}).get("tasks", ())], dtype=np.float64)
    if counts.shape != (m.shape[1],):
        raise UsageError(
            f"stream has {len(counts)} tasks with n_test, but the matrix has {m.shape[1]} columns; expected one task per column"
        )
    learnt = np.tri(m.shape[0], dtype=bool)
    return np.asarray(np.where(learnt, m * counts, 0.0).sum(axis=1) / np.where(learnt, counts, 0.0).sum(axis=1))
