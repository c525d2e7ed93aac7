"""Pure functions of the performance matrix (float64 [T + 1, T]; row 0 before training, row k after task k)."""

from __future__ import annotations

from cglsuite.metrics.matrix import (
    average_performance,
    backward_transfer,
    forgetting_from_diagonal,
    forgetting_max,
    forward_transfer,
    intransigence,
)

__all__ = [
    "average_performance",
    "backward_transfer",
    "forgetting_from_diagonal",
    "forgetting_max",
    "forward_transfer",
    "intransigence",
]
