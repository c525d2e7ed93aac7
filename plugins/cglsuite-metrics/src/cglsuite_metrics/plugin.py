"""The published metrics as a plugin; definitions and functions are in :mod:`cglsuite.stats.metrics`."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl
from cglsuite.specs import METRICS


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    """Metrics of streams of tasks, and of task-free streams."""
    return list(METRICS.values())
