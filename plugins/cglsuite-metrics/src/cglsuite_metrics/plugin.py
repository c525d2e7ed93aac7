"""The published metrics as a plugin; they are defined and implemented in :mod:`cglsuite.stats.metrics`."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl
from cglsuite.specs import METRICS


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    """Metrics for task-based and task-free streams."""
    return list(METRICS.values())
