"""Records as a tidy table, one row per record, and its files."""

from __future__ import annotations

import io
import json
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.atomic import write_atomic
from cglsuite.cells.records.record import Record
from cglsuite.errors import UnknownNameError
from cglsuite.hashing import canonical, plain
from cglsuite.plaintext import csv_text
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.host import Catalogue

__all__ = ["FORMATS", "UPPER_BOUND", "JointMetric", "joint_metrics", "render_frame", "results_frame", "write_frame"]

JointMetric = Callable[[Any, Any], float]
FORMATS = ("csv", "json", "parquet")
UPPER_BOUND = "joint"
"""The reference method, which trains on all tasks so far jointly."""
logger = logging.getLogger(__name__)


def joint_metrics(catalogue: Catalogue) -> dict[str, JointMetric]:
    """Name to function ``(matrix, joint) -> float`` of every metric in the catalogue that compares with the joint method."""
    return {name: catalogue.resolve(spec) for name, spec in catalogue.specs(MetricSpec).items() if spec.needs_joint}


def results_frame(records: Iterable[Record], *, joint: Mapping[str, JointMetric] | None = None) -> pd.DataFrame:
    """One row per record, in a stable order: identity, status, every metric, times, memory, and ``configuration.*``.

    Args:
        records: any records, finished or not; duplicates have one row.
        joint: functions ``(matrix, joint_matrix) -> float`` by metric name (see :func:`joint_metrics`). Each fills its column from the
            ``joint`` record of the same scenario switches, backbone and seeds among ``records``; NaN if there is none, or if several
            different ones match equally well.
    """
    import pandas as pd

    records = sorted({record.key: record for record in records}.values(), key=_order)
    metrics = [dict(record.metrics) for record in records]
    partners = _joint_partners(records) if joint else []
    for name, function in (joint or {}).items():
        for record, partner, row in zip(records, partners, metrics, strict=True):
            row[name] = math.nan if partner is None else float(function(record.performance(), partner.performance()))
    identity = pd.DataFrame([_identity(record) for record in records], columns=[*_IDENTITY, *_TAIL])
    measured = [
        _numbers(metrics, "{}"),
        _numbers([record.timings_s for record in records], "{}_s"),
        _numbers([record.memory for record in records], "memory_{}").rename(columns={"memory_peak_bytes": "peak_bytes"}),
        _numbers([record.parameters for record in records], "{}_parameters").rename(columns={"method_bytes_parameters": "method_bytes"}),
    ]
    configurations = [record.cell["configuration"] for record in records]
    names = sorted({name for row in configurations for name in row})
    values = {f"configuration.{name}": pd.Series([row.get(name) for row in configurations], dtype="object") for name in names}
    return pd.concat([identity[_IDENTITY], *measured, identity[_TAIL], pd.DataFrame(values)], axis=1)


_IDENTITY = ["scenario", "preset", "dataset", "setting", "protocol", "method", "backbone", "order_seed", "split_seed", "init_seed"]
_IDENTITY += ["status", "reason", "n_tasks", "validation_average_performance"]
_TAIL = ["threads", "device", "dtype", "core_version", "torch", "resumed_from_task", "design", "key"]


def _numbers(rows: Sequence[Mapping[str, float | None]], column: str) -> pd.DataFrame:
    """A column per name: float64, or nullable integers if all values are integers (counts and bytes)."""
    import pandas as pd

    frame = {}
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name) for row in rows]
        whole = all(v is None or isinstance(v, int) for v in values) and any(v is not None for v in values)
        frame[column.format(name)] = pd.Series(values, dtype="Int64" if whole else "float64")
    return pd.DataFrame(frame, index=range(len(rows)))


def _order(record: Record) -> tuple[Any, ...]:
    cell = record.cell
    seeds = cell["seeds"]
    return (cell["scenario"], cell["preset"], cell["method"], cell["backbone"], seeds["order"], seeds["split"], seeds["init"], record.key)


def _identity(record: Record) -> dict[str, Any]:
    cell = record.cell
    return {
        "scenario": cell["scenario"],
        "preset": cell["preset"],
        "dataset": record.scenario.get("dataset", cell["scenario"].partition("/")[0]),
        "setting": record.scenario.get("setting", cell["scenario"].partition("/")[2].partition("@")[0]),
        "protocol": cell["scenario"].partition("@")[2],
        "method": cell["method"],
        "backbone": cell["backbone"],
        **{f"{axis}_seed": cell["seeds"][axis] for axis in ("order", "split", "init")},
        "status": record.status,
        "reason": record.reason,
        "n_tasks": len(record.matrix[0]) if record.matrix else len(record.tasks),
        "validation_average_performance": record.validation_average_performance(),
        **{name: cell[name] for name in ("threads", "device", "dtype")},
        "core_version": record.provenance["core"]["version"],
        "torch": record.environment.get("torch"),
        "resumed_from_task": record.provenance["resumed_from_task"],
        "design": record.design,
        "key": record.key,
    }


def _joint_partners(records: Sequence[Record]) -> list[Record | None]:
    """For each record, the finished ``joint`` record to compare it with; None if the record is unfinished or there is no match.

    A task-free stream has no "after task j" at which to compare: its records have no partner.
    """
    paired = [record.done and not record.stream for record in records]
    families = [_pairing(record) if pair else "" for record, pair in zip(records, paired, strict=True)]
    candidates: dict[str, list[Record]] = defaultdict(list)
    for record, family in zip(records, families, strict=True):
        if family and record.cell["method"] == UPPER_BOUND:
            candidates[family].append(record)
    return [_closest(r, candidates.get(family, ())) if family else None for r, family in zip(records, families, strict=True)]


def _pairing(record: Record) -> str:
    """What both records must share: the protocol's switches (except training, which is searched per method), data, backbone and seeds."""
    protocol = {name: value for name, value in record.scenario.items() if name not in {"training", "backbone_hyperparameters"}}
    data = {name: value for name, value in record.cell["configuration"].items() if name.startswith("dataset.")}
    return canonical([record.cell["scenario"], protocol, data, record.cell["backbone"], record.cell["seeds"]])


def _closest(record: Record, candidates: Sequence[Record]) -> Record | None:
    """The candidate with the same code and machine class, preferably the same training; None if several different ones remain."""
    left = [c for c in candidates if _made_by(c) == _made_by(record) and len(c.matrix) == len(record.matrix)]
    left = [c for c in left if c.cell["threads"] == record.cell["threads"]] or left
    left = [c for c in left if c.scenario.get("training") == record.scenario.get("training")] or left
    if len({canonical(c.matrix) for c in left}) > 1:
        logger.warning("%s: %d different joint records match, none is used: narrow the records down", record.label, len(left))
        return None
    return left[0] if left else None


def _made_by(record: Record) -> tuple[Any, ...]:
    return record.provenance["core"], record.environment.get("torch"), record.cell["device"], record.cell["dtype"]


def render_frame(frame: pd.DataFrame, form: str) -> bytes:
    """The table as the bytes of a ``csv``, ``json`` (an array of objects) or ``parquet`` file; NaN is empty, or null in JSON.

    Raises:
        UnknownNameError: another format.
    """
    import pandas as pd
    from pandas.api.types import is_object_dtype, is_string_dtype

    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    if form == "json":
        rows = [{str(k): plain(None if v is pd.NA else v) for k, v in row.items()} for row in frame.to_dict(orient="records")]
        return (json.dumps(rows, indent=1, allow_nan=False) + "\n").encode()
    columnar = frame.copy()
    for column in columnar.columns:
        if is_object_dtype(columnar[column]):
            columnar[column] = _uniform(columnar[column].tolist())
    if form == "csv":
        columnar = columnar.rename(columns=lambda name: csv_text(name))
        for column in columnar.columns:
            if is_object_dtype(columnar[column]) or is_string_dtype(columnar[column]):
                columnar[column] = columnar[column].map(lambda v: csv_text(v) if isinstance(v, str) else v)
        return columnar.to_csv(index=False, lineterminator="\n").encode()
    buffer = io.BytesIO()
    columnar.to_parquet(buffer, index=False)
    return buffer.getvalue()


def write_frame(frame: pd.DataFrame, form: str, path: Path) -> None:
    """:func:`render_frame` into a file, atomically."""
    write_atomic(path, render_frame(frame, form))


def _uniform(values: list[Any]) -> list[Any]:
    """A column of one type, for columnar files: values of mixed types are written as JSON text."""
    values = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
    kinds = {type(v) for v in values if v is not None}
    if kinds <= {str} or kinds == {bool} or kinds <= {int, float}:
        return values
    return [None if v is None else v if isinstance(v, str) else canonical(v) for v in values]
