"""Metrics as pure functions of the performance matrix: float64 [T + 1, T] for task streams, or [E + 1, K] for task-free streams."""

from __future__ import annotations

from cglsuite.stats.metrics.any_stage import forgetting_max_any_stage
from cglsuite.stats.metrics.curve import (
    RECOVERED,
    Dip,
    a_auc,
    a_auc_node_weighted,
    a_auc_trained,
    a_end,
    af_hard,
    af_s,
    dips,
    time_to_recover,
)
from cglsuite.stats.metrics.excess import excess_forgetting
from cglsuite.stats.metrics.matrix import (
    average_performance,
    backward_transfer,
    forgetting_from_diagonal,
    forgetting_max,
    forward_transfer,
    intransigence,
)
from cglsuite.stats.metrics.open_world import open_world_mean
from cglsuite.stats.metrics.pooled import pooled_accuracy, pooled_accuracy_mean

__all__ = [
    "RECOVERED",
    "Dip",
    "a_auc",
    "a_auc_node_weighted",
    "a_auc_trained",
    "a_end",
    "af_hard",
    "af_s",
    "average_performance",
    "backward_transfer",
    "dips",
    "excess_forgetting",
    "forgetting_from_diagonal",
    "forgetting_max",
    "forgetting_max_any_stage",
    "forward_transfer",
    "intransigence",
    "open_world_mean",
    "pooled_accuracy",
    "pooled_accuracy_mean",
    "time_to_recover",
]
