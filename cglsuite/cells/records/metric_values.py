"""Every metric of a performance matrix, by the catalogue's code. Imports no torch."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue

__all__ = ["completed", "metric_values", "metrics_from"]

logger = logging.getLogger(__name__)


def metric_values(
    catalogue: Catalogue,
    scenario: Mapping[str, Any],
    matrix: list[list[float]],
    *,
    joint: Any = None,
    stream: Mapping[str, Any] | None = None,
    names: Collection[str] | None = None,
) -> dict[str, float | None]:
    """Every metric of the catalogue; ``None`` if it does not apply to the scenario, lacks an input, or fails.

    Args:
        scenario: its switches, of which ``setting`` and ``performance`` are read.
        matrix: ``[T + 1][T]``, NaN where there was no query. joint: the matrix of joint training, if there is one.
        stream: the facts of its ``tasks``; for a task-free stream also evaluations and arrivals.
        names: only these metrics.
    """
    task_free = scenario.get("setting") == "task-free"
    out: dict[str, float | None] = {}
    for entry in catalogue.entries("metric"):
        spec = catalogue.metric(entry.name)
        if names is not None and entry.name not in names:
            continue
        applies = not spec.excluded(scenario) and not (spec.needs_joint and joint is None)
        more = {"stream": stream} if stream is not None and (task_free or spec.needs_tasks) else {}
        try:
            out[entry.name] = float(catalogue.resolve(entry)(matrix, joint=joint, **more)) if applies else None
        except Exception as error:  # noqa: BLE001 - keep the matrix: a metric can be recomputed once it is fixed
            where = f"metric {entry.name} of {entry.record.distribution}"
            logger.warning("%s failed: %s: %s", where, type(error).__name__, error)
            out[entry.name] = None
    return out


def completed(record: Record, catalogue: Catalogue) -> Record:
    """A finished record with the metrics that it lacks because they are newer than it; one that needs joint training is left out."""
    if not record.done:
        return record
    specs = catalogue.specs(MetricSpec).items()
    newer = [name for name, spec in specs if name not in record.metrics and not spec.needs_joint and not spec.excluded(record.scenario)]
    if not newer:
        return record
    return dataclasses.replace(record, metrics={**record.metrics, **metrics_from(record, catalogue, newer)})


def metrics_from(record: Record, catalogue: Catalogue, names: Collection[str]) -> dict[str, float | None]:
    """Some metrics of a finished record, computed again from its matrix; none that needs joint training."""
    stream = {**record.stream, "tasks": record.tasks}
    return metric_values(catalogue, record.scenario, record.performance().tolist(), stream=stream, names=names)
