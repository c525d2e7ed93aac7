"""Gives two metrics the same name."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    return [MetricSpec(name="double", summary=s, factory="twice:f", formula="x", direction="up") for s in ("one", "two")]
