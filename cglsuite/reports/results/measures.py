"""Compute performance and forgetting metrics for plots against settings, and explain why a metric has no value."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cglsuite.base.errors import UsageError
from cglsuite.cells.records.record import Record
from cglsuite.specs import CORE_MEASURES, METRICS, PERFORMANCE_RANGES, MetricSpec


def stream_facts(record: Record) -> dict[str, Any]:
    """Return the stream information that task-free metrics need in addition to the performance matrix."""
    return {**record.stream, "tasks": record.tasks}


TASK_MEASURES: Mapping[str, MetricSpec] = {"aa": METRICS["average_performance"], "af": METRICS["forgetting_max"]}
TASK_FREE_MEASURES: Mapping[str, MetricSpec] = {"aa": METRICS["a_end"], "af": METRICS["af_s"], "a_auc": METRICS["a_auc"]}


def value_of(spec: MetricSpec, record: Record) -> float:
    """Compute one of the suite's metrics from a record's performance matrix."""
    more = {"stream": stream_facts(record)} if record.stream or spec.needs_tasks else {}
    return float(pkgutil.resolve_name(spec.factory)(record.performance(), **more))


def measures_of(records: Iterable[Record]) -> Mapping[str, MetricSpec]:
    """Return the metrics that apply to the records, all of which must have the same kind of stream.

    Raises:
        UsageError: the records mix task-free streams and task streams.
    """
    kinds = {bool(record.stream) for record in records}
    if len(kinds) > 1:
        raise UsageError(
            "task-free streams and streams of tasks cannot be analysed together, because their metrics are not comparable; analyse "
            "them separately"
        )
    return TASK_FREE_MEASURES if kinds == {True} else TASK_MEASURES


def why_absent(spec: MetricSpec, record: Record) -> str:
    """Explain why a metric has no value for a finished record. The text can follow the name of the metric."""
    if excluded := spec.excluded(record.scenario):
        return excluded
    if spec.reference:
        return f"needs {spec.reference} in the same scenario, with the same backbone and seeds"
    if len(record.tasks) == 1:
        return "does not apply to a stream of one task"
    return f"is undefined here: {spec.undefined or 'entries of the performance matrix are missing'}"


# A scenario's performance measure: its name, whether it is shown in percent, and what guessing scores.

_NAMES = {spec.name: spec.label for spec in CORE_MEASURES}


def performance_name(scenario: Mapping[str, Any]) -> str:
    """Return the name of the performance measure that a scenario's switches select.

    Example:
        >>> performance_name({"performance": "micro"})
        'accuracy'
    """
    if isinstance(measure := scenario.get("measure"), dict):
        minus = "minus " if measure["direction"] == "down" else ""
        unit = f" ({measure['unit']})" if measure["unit"] else ""
        return f"{minus}{measure['label']}{unit}"
    if scenario.get("performance") == "hits":
        return f"Hits@{scenario.get('hits_k')}"
    return _NAMES.get(str(scenario.get("performance")), "performance")


def performance_names(records: Iterable[Record]) -> str:
    """Return the distinct names of the records' performance measures, joined by \"or\"."""
    return " or ".join(dict.fromkeys(performance_name(record.scenario) for record in records))


def is_fraction(record: Record) -> bool:
    """Return whether performance is a unitless fraction between -1 and 1, which is shown in percent.

    This is not the case for real-valued targets and for some measures of plugins.
    """
    if isinstance(measure := record.scenario.get("measure"), dict):
        return not measure["unit"] and all(bound is not None and -1.0 <= bound <= 1.0 for bound in measure["range"])
    return math.isfinite(PERFORMANCE_RANGES.get(record.scenario.get("performance", ""), (0.0, 1.0))[0])


def performance_bounds(record: Record) -> tuple[float, float] | None:
    """Return the lowest and highest possible performance, or ``None`` if performance is not a fraction."""
    if not is_fraction(record):
        return None
    measure = record.scenario.get("measure")
    return (float(measure["range"][0]), float(measure["range"][1])) if isinstance(measure, dict) else (0.0, 1.0)


def metric_bounds(spec: MetricSpec, records: Iterable[Record]) -> tuple[float, float] | None:
    """Return the bounds to which the interval of a metric's mean is clipped.

    The bounds are the metric's range, which is declared for performance between 0 and 1.

    Returns:
        ``None`` if performance exceeds that range, except for metrics whose range equals that of performance.
    """
    if spec.unit:
        return spec.range
    ends = {performance_bounds(record) for record in records}
    bounds = ends.pop() if len(ends) == 1 else None
    return spec.range if bounds == (0.0, 1.0) else bounds if spec.range == (0.0, 1.0) else None


def chance_after_tasks(record: Record) -> NDArray[np.float64] | None:
    """Compute the expected average performance of uniform random guessing after each task.

    In task-IL the guess is among the task's own classes, otherwise among all classes seen so far. Under ROC-AUC, guessing scores 0.5.

    Returns:
        float64 ``[T]``, or ``None`` where it is undefined: for task-free streams, measures that depend on prevalence (average precision)
        or on the number of candidates (Hits@K), real-valued targets, plugins' measures, and records without the classes of their tasks.
    """
    measure, tasks = record.scenario.get("performance"), [task.get("classes") or () for task in record.tasks]
    if record.stream or not tasks:
        return None
    if measure == "roc-auc":
        return np.full(len(tasks), 0.5)
    if measure not in ("micro", "macro") or not all(tasks):
        return None
    if record.scenario.get("setting") == "task-il":
        chance = np.array([1.0 / len(set(classes)) for classes in tasks])
        return np.asarray(chance.cumsum() / np.arange(1, len(chance) + 1))
    seen = [set[int]().union(*tasks[: k + 1]) for k in range(len(tasks))]
    return np.array([1.0 / len(classes) for classes in seen])


def mean_chance(records: Iterable[Record]) -> NDArray[np.float64] | None:
    """Compute the average of :func:`chance_after_tasks` over records.

    Returns:
        float64 ``[T]``, or ``None`` if it is undefined for a record or if records have different numbers of tasks.
    """
    chances = [chance_after_tasks(record) for record in records]
    known = [chance for chance in chances if chance is not None]
    if not known or len(known) < len(chances) or len({chance.size for chance in known}) > 1:
        return None
    return np.asarray(np.mean(known, axis=0))
