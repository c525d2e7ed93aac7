"""Compute the catalogue's metrics from a performance matrix. Does not import torch."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import said
from cglsuite.cells.code.user import is_ours
from cglsuite.cells.records.describe import metric_providers, metrics_by_different_code
from cglsuite.cells.records.record import Matrix, as_array
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue


logger = logging.getLogger(__name__)


def metric_values(
    catalogue: Catalogue,
    scenario: Mapping[str, Any],
    matrix: Matrix,
    *,
    joint: Matrix | None = None,
    stream: Mapping[str, Any] | None = None,
    names: Collection[str] | None = None,
) -> dict[str, float | None]:
    """Compute every metric in the catalogue. The value is ``None`` if a metric does not apply to the scenario, lacks an input, or fails.

    Args:
        scenario: its switches; ``setting`` and ``performance`` are read.
        matrix: ``[T + 1][T]``, NaN if there was no query. joint: the matrix of the method that metrics compare with, if there is one.
        stream: facts about its ``tasks``; for a task-free stream also evaluations and arrivals.
        names: compute only these metrics.
    """
    task_free = scenario.get("setting") == "task-free"
    out: dict[str, float | None] = {}
    for entry in catalogue.entries("metric"):
        spec = catalogue.metric(entry.name)
        if names is not None and entry.name not in names:
            continue
        applies = not spec.excluded(scenario) and not (spec.reference and joint is None)
        more = {"stream": stream} if stream is not None and (task_free or spec.needs_tasks) else {}
        name = f"{entry.name} of {entry.record.distribution}"
        out[entry.name] = metric_value(name, partial(catalogue.resolve, entry), matrix, joint, **more) if applies else None
    return out


def metric_value(name: str, function: Callable[[], Callable[..., Any]], matrix: Matrix, joint: Matrix | None, **more: Any) -> float | None:
    """Compute the metric ``name``, or return ``None`` if it fails.

    Args:
        function: imports the metric's function.
    """
    try:
        return called(function(), matrix, joint, **more)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - keep the matrix: a metric can be recomputed once it is fixed
        logger.warning("metric %s failed: %s: %s", name, type(error).__name__, said(error))
        return None


def called(function: Callable[..., Any], matrix: Matrix, joint: Matrix | None = None, **more: Any) -> float:
    """Call a metric's ``function`` with read-only copies of its inputs: float64 arrays, tuples and mappings.

    A metric therefore cannot change what a record stores, or what the next metric reads.
    """

    def sealed(rows: Matrix) -> Any:
        array = as_array(rows)
        array.flags.writeable = False
        return array

    return float(function(sealed(matrix), joint=None if joint is None else sealed(joint), **_read_only(more)))


def _read_only(value: Any) -> Any:
    """Return a read-only copy of JSON types."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: _read_only(inner) for name, inner in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_read_only, value))
    return value


def completed(record: Record, catalogue: Catalogue) -> Record:
    """Return a finished record with newer metrics added, and with user-defined metrics recomputed if their formulas have changed.

    A metric that compares with another method cannot be computed from the record alone. It is omitted, or keeps its stored value if
    :func:`cglsuite.cells.records.describe.unlike_metrics` reports that its code has changed.
    """
    if not record.done:
        return record
    specs = {name: spec for name, spec in catalogue.specs(MetricSpec).items() if not spec.reference}
    newer = [name for name, spec in specs.items() if name not in record.metrics and not spec.excluded(record.scenario)]
    others = [name for name in record.metrics if name in specs and is_users(specs[name])]
    changed = [name for name in others if name in metrics_by_different_code(record, catalogue, others)]
    if not newer and not changed:
        return record
    makers = [{**maker, "names": sorted(set(maker["names"]) - set(changed))} for maker in record.provenance.get("metrics") or ()]
    remaining = [maker for maker in makers if maker["names"]]
    return dataclasses.replace(
        record,
        metrics={**record.metrics, **metrics_from(record, catalogue, [*newer, *changed])},
        provenance={**record.provenance, "metrics": [*remaining, *metric_providers(catalogue, changed)]} if changed else record.provenance,
    )


def is_users(spec: MetricSpec) -> bool:
    """Return whether a metric is defined by a user, so that its code may change between two readings of a record."""
    return not is_ours(spec.factory)


def metrics_from(record: Record, catalogue: Catalogue, names: Collection[str]) -> dict[str, float | None]:
    """Recompute metrics of a finished record from its matrix. Only metrics that need no other record are supported."""
    stream = {**record.stream, "tasks": record.tasks}
    return metric_values(catalogue, record.scenario, record.matrix, stream=stream, names=names)
