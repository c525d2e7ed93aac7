"""Descriptions of a record's cell and code, and of how that code differs from the current code. Does not import torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import plain
from cglsuite.cells.code.sources import NUMERICAL_ROOMS, closure_digest
from cglsuite.host.discovery import BUILT_IN, normalised
from cglsuite.specs import CORE_MEASURES, switches

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue
    from cglsuite.specs import MeasureSpec, TaskFreeSpec


def describe(cell: CellSpec) -> dict[str, Any]:
    """Return a record's ``cell`` (names, seeds and every resolved setting) and ``scenario`` (every switch of the protocol)."""
    return {
        "cell": {
            "scenario": cell.scenario.name,
            "preset": cell.preset,
            "method": cell.method,
            "backbone": cell.backbone,
            "seeds": dataclasses.asdict(cell.seeds),
            "configuration": plain(cell.configuration),
            "threads": cell.threads,
            "device": cell.device,
            "dtype": cell.dtype,
            **({} if cell.numerics == "native" else {"numerics": cell.numerics}),
        },
        "scenario": plain(
            {
                **switches(cell.scenario),
                "training": switches(cell.scenario.training),
                **_stream(cell.scenario.task_free),
                **_measure(cell.scenario.measure),
            }
        ),
    }


def _measure(spec: MeasureSpec | None) -> dict[str, Any]:
    """Return a record's facts about a plugin's measure, so that reports need no plugin; empty for the core's measures."""
    if spec is None or spec in CORE_MEASURES:
        return {}
    bounds = [bound if math.isfinite(bound) else None for bound in spec.performance_range]
    return {"measure": {"label": spec.label or spec.name, "direction": spec.direction, "range": bounds, "unit": spec.unit}}


def _stream(task_free: TaskFreeSpec | None) -> dict[str, Any]:
    """Return a record's facts about how a task-free stream arrives; empty for a stream of tasks."""
    return (
        {}
        if task_free is None
        else {"stream": {**switches(task_free), "schedule_hyperparameters": dict(task_free.schedule_hyperparameters)}}
    )


def providers(used: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return a record's ``plugins`` and ``core``, derived from :func:`cglsuite.cells.keys.sources`."""
    return {"plugins": [{**source, "role": role} for role, source in used.items() if role != "core"], "core": used["core"]}


def foreign_code(used: Mapping[str, Mapping[str, str]]) -> str:
    """Return the third-party distributions in :func:`cglsuite.cells.keys.sources`, joined by commas; ``""`` if there are none."""
    return ",".join(sorted({normalised(source["distribution"]) for source in used.values()} - BUILT_IN))


def metric_providers(catalogue: Catalogue, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the ``metrics`` entry of a record's provenance: the distribution, version, source hash and ``names`` of each provider's
    metrics.

    They are not part of a cell's key, since a metric affects no training and can be recomputed from the matrix.
    """
    names_by_provider: dict[tuple[str, str, str], list[str]] = {}
    for name in names:
        entry = catalogue.get("metric", name)
        source = closure_digest(catalogue.metric(name).factory, (*NUMERICAL_ROOMS, "stats.metrics"))
        names_by_provider.setdefault((entry.record.distribution, entry.record.version, source), []).append(name)
    keys = ("distribution", "version", "source")
    return [{**dict(zip(keys, maker, strict=True)), "names": sorted(values)} for maker, values in sorted(names_by_provider.items())]


def metrics_by_different_code(record: Record, catalogue: Catalogue, names: Iterable[str]) -> set[str]:
    """Return the metrics in ``names`` whose stored value was computed, according to the record, by different code from the catalogue's."""
    then = {name: maker["source"] for maker in record.provenance.get("metrics") or () for name in maker["names"]}
    now = metric_providers(catalogue, [name for name in names if name in then])
    return {name for maker in now for name in maker["names"] if maker["source"] != then[name]}


def unlike_metrics(record: Record, catalogue: Catalogue) -> Iterator[str]:
    """Describe the metrics in a record whose code has changed since it was written. Yields nothing for records that do not identify the
    code.
    """
    for then in record.provenance.get("metrics") or ():
        known = [name for name in then["names"] if name in catalogue.names("metric")]
        for now in metric_providers(catalogue, known):
            if now["source"] != then["source"]:
                change = f"{then['version']} ({then['source'][:8]}), now {now['version']} ({now['source'][:8]})"
                yield f"metric {', '.join(now['names'])} by {now['distribution']} {change}"
