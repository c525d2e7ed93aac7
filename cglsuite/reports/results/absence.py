"""Why a metric has no value, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.specs import MetricSpec

__all__ = ["why_absent"]


def why_absent(spec: MetricSpec, record: Record) -> str:
    """Why a metric has no value for a finished record; reads on from the metric's name."""
    if excluded := spec.excluded(record.scenario):
        return excluded
    if spec.needs_joint:
        return "needs joint in the same scenario, with the same backbone and seeds"
    if len(record.tasks) == 1:
        return "does not apply to a stream of one task"
    return f"is undefined here: {spec.undefined or 'entries of the performance matrix are missing'}"
