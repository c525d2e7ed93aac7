"""The published metrics, whose definitions and functions are :mod:`cglsuite.stats.metrics`, as a plugin."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl
from cglsuite.specs import METRICS


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    """Metrics of streams of tasks, and of task-free streams."""
    return list(METRICS.values())
