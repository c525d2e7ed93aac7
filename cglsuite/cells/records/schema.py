"""The JSON schema of a record, which is validated with pydantic (imported on first use).

A file also has a digest of everything else, which :mod:`cglsuite.cells.records.record` checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from cglsuite.base.inputs import MAX_SEED
from cglsuite.cells.portable import NumericsWord
from cglsuite.specs import PERFORMANCE_RANGES

Row = list[float | None]
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{16,128}$")]
Words = Annotated[str, Field(max_length=100_000)]
"""Valid Unicode. Unlike ``str``, a type with bounds rejects lone surrogates, which no table can hold."""
Text = Annotated[Words, Field(min_length=1)]
MAX_COUNT = 2**53 - 1
"""The largest count: whole numbers up to this are exact in JSON and in columns of floats."""
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Amount = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Position = Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]
_ROUNDING = 1e-9  # rounding may put an area under a curve slightly above 1


class _Open(BaseModel):
    """Base of parts that later versions of the same schema may extend with new names."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class SeedsModel(_Open):
    """The seeds of a cell's three random axes: order, split and initialisation."""

    order: Seed
    split: Seed
    init: Seed


class CellModel(_Open):
    """A record's cell: names, seeds and every resolved value by dotted key."""

    scenario: Text
    preset: Text
    method: Text
    backbone: Text
    seeds: SeedsModel
    configuration: Annotated[dict[Words, Any], Field(max_length=4096)]
    threads: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    device: Text
    dtype: Text
    numerics: NumericsWord = "native"


class TaskModel(_Open):
    """A task in the stream: its classes and numbers of items."""

    classes: list[Position]
    n_train: Count
    n_validation: Count
    n_test: Count


class CurveModel(_Open):
    """The training of one task by epoch. It is stored next to the record (see :mod:`cglsuite.cells.records.record`)."""

    task: Position
    loss: Row
    monitor: Row
    best_epoch: Position | None


CURVES = TypeAdapter(list[CurveModel])


class TaskTrainingModel(_Open):
    """A record's summary of the training of one task: the number of epochs, the best epoch, and the first and last loss."""

    task: Position
    epochs: Count
    best_epoch: Position | None
    first_loss: float | None
    last_loss: float | None


class TrainingModel(_Open):
    """A record's trainings, and the digest of its curves and fingerprints; both are absent if no training was completed."""

    digest: Hex | None = None
    tasks: list[TaskTrainingModel] = Field(default_factory=list)


class SourceModel(_Open):
    """A distribution (absent for the core itself), its version and the hash of its sources."""

    version: Words
    source: Words


class MetricSourceModel(SourceModel):
    """The version and source hash of the code that computed the metrics in ``names``."""

    names: list[Text]


class StreamModel(_Open):
    """A task-free stream: the number of steps before each evaluation (one per row of the matrix), and the items of each latent task that
    had arrived by then.

    ``exposure`` (missing in older records): for each latent task, the number of training items that arrive 0, 1, 2, ... times.
    """

    evaluations: list[Count]
    delivered: list[list[Count]]
    exposure: list[list[Count]] = Field(default_factory=list)


class ProvenanceModel(_Open):
    """The code that computed a record, the task from which a resumed run started, and the tasks that the run trained itself.

    A record's ``timings_s`` cover its whole stream: ``trained_s`` were spent on the ``trained_tasks`` of this run, ``covered_s`` before
    the run, on tasks covered by checkpoints of an earlier attempt or of a cell that begins with the same tasks.
    """

    plugins: list[SourceModel]
    core: SourceModel
    metrics: list[MetricSourceModel] = Field(default_factory=list)
    resumed_from_task: Count
    trained_tasks: Count = 0
    trained_s: Amount = 0.0
    covered_s: Amount = 0.0
    stream: StreamModel | None = None
    counters: dict[Words, Count] = Field(default_factory=dict)
    inputs: dict[Words, Any] = Field(default_factory=dict)
    warnings: list[Words] = Field(default_factory=list)
    unclean: list[Words] = Field(default_factory=list)


class EnvironmentModel(_Open):
    """The machine and its libraries. ``arithmetic`` is a digest of how they round (absent if not measured)."""

    arithmetic: Hex | None = None
    torch: Words | None = None


class MeasureModel(_Open):
    """The measure of a plugin, with the bounds of performance; ``None`` if it is unbounded."""

    range: Annotated[list[float | None], Field(min_length=2, max_length=2)]
    label: Words = ""
    unit: Words = ""
    direction: Literal["up", "down"] = "up"


class ScenarioModel(_Open):
    """The switches of the protocol. Those listed here are read by name."""

    dataset: Text | None = None
    setting: Text | None = None
    level: Text | None = None
    labels: Text | None = None
    performance: Text | None = None
    measure: MeasureModel | None = None


def performance_bounds(scenario: Mapping[str, Any]) -> tuple[float, float]:
    """Return the bounds of performance according to a record's ``scenario``."""
    measure, rule = scenario.get("measure"), scenario.get("performance")
    if isinstance(measure, dict):
        low, high = measure["range"]
        return (-math.inf if low is None else low, math.inf if high is None else high)
    return PERFORMANCE_RANGES.get(rule, (0.0, 1.0)) if isinstance(rule, str) else (0.0, 1.0)


class RecordModel(BaseModel):
    """A record without its digest."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    schema_: Annotated[Literal[4], Field(alias="schema")]
    key: Hex
    design: Hex
    status: Literal["done", "failed", "diverged", "timeout", "oom", "skipped", "unclean"]
    reason: Words | None
    cell: CellModel
    scenario: ScenarioModel
    matrix: list[Row]
    validation_matrix: list[Row]
    per_class: list[Row]
    tasks: list[TaskModel]
    training: TrainingModel
    metrics: dict[Words, float | None]
    timings_s: dict[Words, Amount | None]
    memory: dict[Words, Amount | None]
    parameters: dict[Words, Amount | None]
    provenance: ProvenanceModel
    environment: EnvironmentModel

    @model_validator(mode="after")
    def _consistent(self) -> RecordModel:
        n_tasks = len(self.matrix[0]) if self.matrix else len(self.tasks)
        n_rows = len(self.provenance.stream.evaluations) if self.provenance.stream else n_tasks + 1
        for name, matrix in (("matrix", self.matrix), ("validation_matrix", self.validation_matrix)):
            if matrix and (len(matrix) != n_rows or any(len(row) != n_tasks for row in matrix)):
                shape = f"{len(matrix)} rows of {sorted({len(row) for row in matrix})}"
                raise ValueError(f"{name}: {shape} entries; expected {n_rows} rows (the first before training) of {n_tasks} tasks")
        if self.status == "done" and not (self.matrix and n_tasks):
            raise ValueError("matrix: empty, but the status is done")
        if self.tasks and self.matrix and len(self.tasks) != n_tasks:
            raise ValueError(f"tasks: {len(self.tasks)} entries for a matrix of {n_tasks} tasks")
        if self.training.tasks and self.training.digest is None:
            raise ValueError("training.digest: missing, but there are trainings")
        if self.status != "done" and not self.reason:
            raise ValueError(f"reason: missing, but the status is {self.status}")
        return self

    @model_validator(mode="after")
    def _within_bounds(self) -> RecordModel:
        rule, measure = self.scenario.performance, self.scenario.measure
        bounds = performance_bounds({"performance": rule, **({} if measure is None else {"measure": {"range": measure.range}})})
        # A plugin's measure may be accompanied by accuracies per class.
        by_class = (min(bounds[0], 0.0), max(bounds[1], 1.0)) if measure is not None else bounds
        for name, matrix in (("matrix", self.matrix), ("validation_matrix", self.validation_matrix), ("per_class", self.per_class)):
            low, high = by_class if name == "per_class" else bounds
            values = [v for row in matrix for v in row if v is not None]
            if values and not (low - _ROUNDING <= min(values) and max(values) <= high + _ROUNDING):
                wrong = next(v for v in values if not low - _ROUNDING <= v <= high + _ROUNDING)
                expected = f"at most {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"
                raise ValueError(f"{name}: an entry of {wrong:g}; expected {expected} for {rule or 'performance'}")
        return self
