"""The measures plotted against settings: one of performance and one of forgetting; and why a metric has no value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import UsageError
from cglsuite.stats import metrics

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.specs import MetricSpec

__all__ = ["TASK_FREE_MEASURES", "TASK_MEASURES", "Measure", "measures_of", "stream_facts", "why_absent"]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number computed from a record: metric name, label with the better direction, and whether it lies between 0 and 1."""

    name: str
    label: str
    of: Callable[[Record], float]
    share: bool = False


def stream_facts(record: Record) -> dict[str, Any]:
    """The facts that metrics of task-free streams receive in addition to the matrix."""
    return {**record.stream, "tasks": record.tasks}


def _task_free(name: str, label: str, share: bool) -> Measure:
    function = getattr(metrics, name)
    return Measure(name=name, label=label, share=share, of=lambda r: float(function(r.performance(), stream=stream_facts(r))))


TASK_MEASURES: Mapping[str, Measure] = {
    "aa": Measure(name="average_performance", label="AA ↑", share=True, of=lambda r: metrics.average_performance(r.performance())),
    "af": Measure(name="forgetting_max", label="AF_max ↓", of=lambda r: metrics.forgetting_max(r.performance())),
}
TASK_FREE_MEASURES: Mapping[str, Measure] = {
    "aa": _task_free("a_end", "AA ↑", True),
    "af": _task_free("af_s", "AF_s ↑", False),
    "a_auc": _task_free("a_auc", "A_AUC ↑", True),
}


def measures_of(records: Iterable[Record]) -> Mapping[str, Measure]:
    """The measures for records of one kind of stream.

    Raises:
        UsageError: the records mix task-free streams and task streams.
    """
    kinds = {bool(record.stream) for record in records}
    if len(kinds) > 1:
        raise UsageError("this analysis mixes task-free streams and task streams: their metrics are not comparable; take one at a time")
    return TASK_FREE_MEASURES if kinds == {True} else TASK_MEASURES


def why_absent(spec: MetricSpec, record: Record) -> str:
    """Why a metric has no value for a finished record; reads on from the metric's name."""
    if excluded := spec.excluded(record.scenario):
        return excluded
    if spec.needs_joint:
        return "needs joint in the same scenario, with the same backbone and seeds"
    if len(record.tasks) == 1:
        return "does not apply to a stream of one task"
    return f"is undefined here: {spec.undefined or 'entries of the performance matrix are missing'}"
