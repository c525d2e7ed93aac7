"""Convert records to a tidy table with one row per record, and write tables to files."""

from __future__ import annotations

import io
import json
import logging
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import UnknownNameError
from cglsuite.base.hashing import canonical, digest, plain
from cglsuite.base.markup import csv_text
from cglsuite.cells.records.metric_values import metric_value
from cglsuite.cells.records.record import SETTLED, Matrix, NoCurvesError, Record, canonical_json
from cglsuite.cells.task_sharing import trainings
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.host import Catalogue


FORMATS = ("csv", "json", "parquet")
UPPER_BOUND = "joint"
"""The reference method, which trains jointly on all tasks so far."""
logger = logging.getLogger(__name__)


class Compared(NamedTuple):
    """A metric that compares with the method ``reference``, as a function ``(matrix, reference_matrix) -> float``."""

    reference: str
    function: Callable[[Any, Any], float]


def compared_metrics(catalogue: Catalogue, specs: Mapping[str, MetricSpec] | None = None) -> dict[str, Compared]:
    """Return every metric in the catalogue, or in ``specs``, that compares with the record of another method."""
    known = catalogue.specs(MetricSpec) if specs is None else specs
    return {name: Compared(spec.reference, catalogue.resolve(spec)) for name, spec in known.items() if spec.reference}


def results_frame(
    records: Iterable[Record | Row],
    *,
    compared: Mapping[str, Compared] | None = None,
    current: Collection[str] = (),
    trials: Collection[str] = (),
) -> pd.DataFrame:
    """Return a table with one row per record in a stable order. The columns are the identity, role, status, every metric, times, memory and
    ``configuration.*``.

    Args:
        records: any records or their rows, finished or not; duplicates share one row.
        compared: metrics by name that compare with another method (see :func:`compared_metrics`). Each fills its column from that method's
            record with the same scenario switches, backbone, seeds and code among ``records``; NaN if there is none, or if several
            different records match equally well.
        current: keys of records that the current code would produce. These count as having the same code, although the digest of the core
            differs between cells that reach different parts of it: a pre-trained cell also reaches the code for pre-training.
        trials: keys of records that a hyper-parameter search scored (:meth:`Store.trials`). Their ``role`` is ``trial``; that of other
            records is ``final``.
    """
    import pandas as pd

    converted = (record if isinstance(record, Row) else Row.of(record) for record in records)
    rows = sorted({row.key: row for row in converted}.values(), key=lambda row: row.order)
    metrics = [dict(row.metrics) for row in rows]
    partners = {name: _partners(rows, name, current) for name in {metric.reference: None for metric in (compared or {}).values()}}
    for name, (reference, function) in (compared or {}).items():
        for row, partner, values in zip(rows, partners[reference], metrics, strict=True):
            value = None if partner is None else metric_value(name, lambda: function, row.matrix, partner.matrix)  # noqa: B023
            values[name] = math.nan if value is None else value
    identity = pd.DataFrame([[_cell_value(row, name) for name in (*_IDENTITY, *_TAIL)] for row in rows], columns=[*_IDENTITY, *_TAIL])
    identity["role"] = ["trial" if row.key in trials else "final" for row in rows]
    measured = [
        _numbers(metrics, "{}"),
        _numbers([row.timings_s for row in rows], "{}_s"),
        _numbers([row.memory for row in rows], "memory_{}").rename(columns={"memory_peak_bytes": "peak_bytes"}),
        _numbers([row.parameters for row in rows], "{}_parameters").rename(columns={"method_bytes_parameters": "method_bytes"}),
    ]
    shown = pd.concat(measured, axis=1)
    shown = shown.loc[:, ~(shown.columns.duplicated() | shown.columns.isin(identity.columns))]  # a record may name a metric "key"
    configurations = _configurations([row.configuration for row in rows])
    return pd.concat([identity[[*_NAMES, "role", *_OUTCOME]], shown, identity[_TAIL], configurations], axis=1)


def reference_matrices(records: Iterable[Record], reference: str, *, current: Collection[str] = ()) -> dict[str, Matrix]:
    """Return the performance matrix of the method ``reference`` that each record is compared with, by the record's key. Records without a
    unique partner are omitted; see :func:`results_frame`.
    """
    rows = [Row.of(record) for record in records]
    return {row.key: other.matrix for row, other in zip(rows, _partners(rows, reference, current), strict=True) if other is not None}


def curves_frame(records: Iterable[Record]) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with one row per epoch of the records with stored curves, and the reasons why other curves cannot be read.

    ``monitor`` is NaN in epochs without one, and ``best`` marks the epoch whose state was selected.
    """
    import pandas as pd

    rows: list[list[Any]] = []
    absent: list[str] = []
    for record in records:
        seeds = record.cell["seeds"]
        names = [record.cell[name] for name in ("preset", "method", "backbone")]
        identity = [record.key, *names, *(seeds[axis] for axis in ("order", "split", "init"))]
        try:
            curves = record.training_curves()
        except NoCurvesError as error:
            absent.append(str(error))
            continue
        for curve in curves:
            for epoch, (loss, monitor) in enumerate(zip_longest(curve["loss"], curve["monitor"], fillvalue=None)):
                rows.append([*identity, curve["task"], epoch, loss, monitor, epoch == curve["best_epoch"]])
    frame = pd.DataFrame(rows, columns=["key", "preset", "method", "backbone", *_SEEDS, "task", "epoch", "loss", "monitor", "best"])
    return frame.astype({"loss": "float64", "monitor": "float64"}), absent


def long_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return a table with one row per finished record, stage and task, which states the performance on every task evaluated at that stage.

    Returns:
        Columns key, preset, method, backbone, order_seed, split_seed, init_seed, stage, task, performance. ``stage`` is the number of tasks
        learnt, 0 before training; in a task-free stream it is the number of steps. ``task`` counts from 1.
    """
    import pandas as pd

    rows: list[list[Any]] = []
    for record in records:
        if record.done:
            seeds = record.cell["seeds"]
            identity = [
                record.key,
                *(record.cell[name] for name in ("preset", "method", "backbone")),
                *map(seeds.get, ("order", "split", "init")),
            ]
            stages = record.stream.get("evaluations") or range(len(record.matrix))
            rows += [
                [*identity, stage, task, value]
                for stage, values in zip(stages, record.matrix, strict=True)
                for task, value in enumerate(values, 1)
                if value is not None
            ]
    return pd.DataFrame(rows, columns=["key", "preset", "method", "backbone", *_SEEDS, "stage", "task", "performance"])


_SEEDS = ["order_seed", "split_seed", "init_seed"]
_NAMES = ["scenario", "preset", "dataset", "setting", "protocol", "method", "backbone", *_SEEDS]
_OUTCOME = ["status", "reason", "n_tasks", "validation_average_performance"]
_IDENTITY = [*_NAMES, *_OUTCOME]
_TAIL = ["threads", "device", "dtype", "core_version", "torch", "resumed_from_task", "design", "key"]


def _cell_value(row: Row, name: str) -> Any:
    value = getattr(row, name)
    return math.nan if value is None and name == "validation_average_performance" else value


def _configurations(texts: Sequence[str]) -> pd.DataFrame:
    """Return a column per setting: values are looked up once per distinct configuration, of which there are few."""
    import numpy as np
    import pandas as pd

    distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    places = np.array([distinct[text] for text in texts], dtype=np.int64)
    values = [settings(text) for text in distinct]
    columns = {}
    for name in sorted({name for value in values for name in value}):
        held = np.empty(len(values), dtype=object)
        for place, configuration in enumerate(values):  # assigned one by one: NumPy would treat lists of equal length as a matrix
            held[place] = configuration.get(name)
        columns[f"configuration.{name}"] = pd.Series(held[places], dtype="object")
    return pd.DataFrame(columns)


def _numbers(rows: Sequence[Mapping[str, float | None]], column: str) -> pd.DataFrame:
    """Return a column per name: float64, or nullable integers if all values are integers (counts and bytes)."""
    import pandas as pd

    frame = {}
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name) for row in rows]
        whole = all(v is None or isinstance(v, int) for v in values) and any(v is not None for v in values)
        frame[column.format(name)] = pd.Series(values, dtype="Int64" if whole else "float64")
    return pd.DataFrame(frame, index=range(len(rows)))


def _partners(rows: Sequence[Row], reference: str, current: Collection[str]) -> list[Row | None]:
    """Return, for each row, the row of a method's finished record to compare it with; None if unfinished or without a unique match."""
    candidates: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.pairing and row.method == reference:
            candidates[row.pairing].append(row)
    closest = [_closest(row, candidates.get(row.pairing, ()), current) if row.pairing else [] for row in rows]
    _warn_of_several(rows, reference, closest)
    return [left[0] if len(left) == 1 else None for left in closest]


def _closest(row: Row, candidates: Sequence[Row], current: Collection[str]) -> list[Row]:
    """Return the candidates with the same code and machine class, preferably the same settings; only one if their matrices are equal."""
    alike = [c for c in candidates if len(c.matrix) == len(row.matrix)]
    left = [c for c in alike if c.made_by == row.made_by]
    if not left and row.key in current:
        left = [c for c in alike if c.key in current and (c.torch, c.device, c.dtype) == (row.torch, row.device, row.dtype)]
    left = [c for c in left if c.threads == row.threads] or left
    left = [c for c in left if c.training == row.training] or left
    left = [c for c in left if _same_settings(c.configuration, row.configuration)] or left
    return left[:1] if len(left) > 1 and len({canonical(c.matrix) for c in left}) == 1 else left


@lru_cache(maxsize=100_000)
def _same_settings(first: str, other: str) -> bool:
    """Return whether two configurations agree apart from the settings of their methods and of training, which are compared separately."""
    mine, theirs = settings(first), settings(other)
    names = {name for name in (*mine, *theirs) if not name.startswith(("method.", "training."))}
    return all(canonical(mine.get(name)) == canonical(theirs.get(name)) for name in names)


def _warn_of_several(rows: Sequence[Row], reference: str, closest: Sequence[Sequence[Row]]) -> None:
    """Warn once per scenario about rows that match several different records of the reference."""
    several: dict[str, list[tuple[Row, int]]] = defaultdict(list)
    for row, left in zip(rows, closest, strict=True):
        if len(left) > 1:
            several[row.preset].append((row, len(left)))
    for preset, variants in several.items():
        counts = sorted({n for _, n in variants})
        matches = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        label = variants[0][0].label
        concerned = label if len(variants) == 1 else f"each of {len(variants)} rows, the first {label}"
        logger.warning(
            "%s: several %s records (%s) match %s; none is used, and metrics that compare with %s are empty there. Narrow "
            "the records down, for example to those of one campaign",
            preset, reference, matches, concerned, reference,
        )  # fmt: skip


def render_frame(frame: pd.DataFrame, form: str) -> bytes:
    """Serialise the table as a ``csv``, ``json`` (an array of objects) or ``parquet`` file. NaN becomes an empty cell, or null in JSON.

    Text formats have 15 significant digits, which hides the noise of binary fractions: ``-0.005``. Parquet is exact.

    Raises:
        UnknownNameError: the format is unknown.
    """
    import pandas as pd
    from pandas.api.types import is_object_dtype, is_string_dtype

    if form not in FORMATS:
        raise UnknownNameError("format", form, FORMATS)
    if form != "parquet":
        frame = frame.assign(**{str(n): pd.Series([_short(v) for v in c], index=c.index, dtype=c.dtype) for n, c in frame.items()})
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


def _short(value: Any) -> Any:
    return float(f"{value:.15g}") if isinstance(value, float) else value


def write_frame(frame: pd.DataFrame, form: str, path: Path) -> None:
    """Write a table to a file atomically, in a format of :func:`render_frame`."""
    write_atomic(path, render_frame(frame, form), option="--output")


def _uniform(values: list[Any]) -> list[Any]:
    """Return a column of uniform type for columnar files: values of mixed types are written as JSON text."""
    values = [None if isinstance(v, float) and math.isnan(v) else v for v in values]
    kinds = {type(v) for v in values if v is not None}
    if kinds == {int, float}:
        return [None if v is None else float(v) for v in values]
    if len(kinds) < 2 and kinds <= {str, bool, int, float}:
        return values
    return [None if v is None else v if isinstance(v, str) else canonical(v) for v in values]


# What listings and tables need of a record: a few facts (:class:`Summary`), or all of its scalars (:class:`Row`).
# Both are small and can be stored outside the record, in the index of a store and in the Parquet files of a shard. A table of many
# thousand records can therefore be built without reading the records.

GROUPS = ("metrics", "timings_s", "memory", "parameters")
"""The fields of a row that map names to numbers."""
_SHORT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The fields of a record that are shown in listings.

    Args:
        tasks, trained: see :func:`cglsuite.cells.task_sharing.trainings`.
        sha256: digest (hex) of the record's bytes.
    """

    status: str
    reason: str | None
    design: str
    tasks: int
    trained: int
    sha256: str

    @classmethod
    def of(cls, record: Record, sha256: str) -> Summary:
        """Return the summary of ``record``, whose file has the digest ``sha256``."""
        return Summary(**_summary(record), sha256=sha256)

    @property
    def done(self) -> bool:
        """Whether the record holds a result."""
        return self.status == "done"

    @property
    def settled(self) -> bool:
        """Whether the record may be :attr:`Record.settled`."""
        return self.status in SETTLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Summary):
    """All scalars in a record, as shown in tables of results.

    Args:
        metrics, timings_s, memory, parameters: as in the record. configuration: canonical JSON, see :func:`settings`.
        matrix: the performance matrix, which metrics that compare with another method read.
        pairing: digest of what a record and its partner have in common; ``""`` if it has none. made_by, training: digests of the code and
            class of machine, and of the training switches.
    """

    key: str
    scenario: str
    preset: str
    dataset: str
    setting: str
    protocol: str
    method: str
    backbone: str
    order_seed: int
    split_seed: int
    init_seed: int
    n_tasks: int
    validation_average_performance: float | None
    threads: int
    device: str
    dtype: str
    core_version: str
    torch: str | None
    resumed_from_task: int
    metrics: Mapping[str, float | None]
    timings_s: Mapping[str, float | None]
    memory: Mapping[str, float | None]
    parameters: Mapping[str, float | None]
    matrix: Matrix
    configuration: str
    pairing: str
    made_by: str
    training: str

    @classmethod
    def of(cls, record: Record, sha256: str = "") -> Row:
        """Return the row of ``record``."""
        cell = record.cell
        validation = record.validation_average_performance()
        return Row(
            **_summary(record),
            sha256=sha256,
            key=record.key,
            **{name: cell[name] for name in ("scenario", "preset", "method", "backbone", "threads", "device", "dtype")},
            dataset=record.scenario.get("dataset", cell["scenario"].partition("/")[0]),
            setting=record.scenario.get("setting", cell["scenario"].partition("/")[2].partition("@")[0]),
            protocol=cell["scenario"].partition("@")[2],
            **{f"{axis}_seed": cell["seeds"][axis] for axis in ("order", "split", "init")},
            n_tasks=len(record.matrix[0]) if record.matrix else len(record.tasks),
            validation_average_performance=None if math.isnan(validation) else validation,
            core_version=record.provenance["core"]["version"],
            torch=record.environment.get("torch"),
            resumed_from_task=record.provenance["resumed_from_task"],
            **{name: getattr(record, name) for name in GROUPS},
            matrix=record.matrix,
            configuration=sys.intern(canonical_json(cell["configuration"])),
            pairing=_pairing_key(record),
            made_by=_code_of(record),
            training=digest(record.scenario.get("training"))[:_SHORT],
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """The key by which the record is sorted in a table: names, then seeds."""
        return (
            *(self.scenario, self.preset, self.method, self.backbone),
            *(self.order_seed, self.split_seed, self.init_seed, self.key),
        )

    @property
    def label(self) -> str:
        """A one-line label for display; see :attr:`Record.label`."""
        seeds = f"order {self.order_seed}, split {self.split_seed}, init {self.init_seed}"
        return f"{self.preset} × {self.method} ({seeds})"


@lru_cache(maxsize=4096)
def settings(configuration: str) -> Mapping[str, Any]:
    """Parse the ``configuration`` of a row into values by dotted key. Records that differ only in seeds share the mapping, so do not modify
    it.
    """
    values: Mapping[str, Any] = json.loads(configuration)
    return values


def _summary(record: Record) -> dict[str, Any]:
    tasks, trained = trainings(record)
    return {name: getattr(record, name) for name in ("status", "reason", "design")} | {"tasks": tasks, "trained": trained}


def _code_of(record: Record) -> str:
    machine = [record.environment.get("torch"), record.cell["device"], record.cell["dtype"], *filter(None, [record.cell.get("numerics")])]
    return digest([record.provenance["core"], *machine])[:_SHORT]


def _pairing_key(record: Record) -> str:
    """Return what a record and that of a reference must have in common: the protocol's switches (except training, which is searched per
    method), data, backbone and seeds.

    A task-free stream has no "after task j" at which to compare, so its records have no partner.
    """
    if not record.done or record.stream:
        return ""
    protocol = {name: value for name, value in record.scenario.items() if name not in {"training", "backbone_hyperparameters"}}
    data = {name: value for name, value in record.cell["configuration"].items() if name.startswith("dataset.")}
    return digest([record.cell["scenario"], protocol, data, record.cell["backbone"], record.cell["seeds"]])[:_SHORT]
