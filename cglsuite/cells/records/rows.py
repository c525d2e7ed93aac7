"""What listings and tables need of a record: a few facts (:class:`Summary`), and all of its scalars (:class:`Row`).

Both are small and can be kept outside the record, in the index of a store and in the Parquet files of a shard, so that a table of many
thousand records is made without reading them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cglsuite.base.hashing import canonical, digest
from cglsuite.cells.records.record import Matrix, Record
from cglsuite.cells.sharing.tasks import trainings

__all__ = ["GROUPS", "Row", "Summary", "settings"]

GROUPS = ("metrics", "timings_s", "memory", "parameters")
"""The fields of a row that map names to numbers."""
_SHORT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What listings need of a record.

    Args:
        tasks, trained: see :func:`cglsuite.cells.sharing.tasks.trainings`.
        sha256: of the bytes that hold the record (hex).
    """

    status: str
    reason: str | None
    design: str
    tasks: int
    trained: int
    sha256: str

    @classmethod
    def of(cls, record: Record, sha256: str) -> Summary:
        """The summary of ``record``, whose file has the digest ``sha256``."""
        return Summary(**_summary(record), sha256=sha256)

    @property
    def done(self) -> bool:
        """Whether the record is a result."""
        return self.status == "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Summary):
    """All scalars of a record, as the tables of results show them.

    Args:
        metrics, timings_s, memory, parameters: as in the record. configuration: canonical JSON, see :func:`settings`.
        matrix: the performance matrix, which metrics that compare with joint training read.
        pairing: digest of what a record and its joint record share; ``""`` if it has no partner. made_by, training: digests of the code
            and class of machine, and of the training switches.
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
        """The row of ``record``."""
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
            configuration=canonical(cell["configuration"]),
            pairing=_pairing(record),
            made_by=digest([record.provenance["core"], record.environment.get("torch"), cell["device"], cell["dtype"]])[:_SHORT],
            training=digest(record.scenario.get("training"))[:_SHORT],
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """The place of the record in a table: by names, then by seeds."""
        return (
            *(self.scenario, self.preset, self.method, self.backbone),
            *(self.order_seed, self.split_seed, self.init_seed, self.key),
        )

    @property
    def label(self) -> str:
        """As :attr:`Record.label`."""
        seeds = f"order {self.order_seed}, split {self.split_seed}, init {self.init_seed}"
        return f"{self.preset} × {self.method} ({seeds})"


@lru_cache(maxsize=4096)
def settings(configuration: str) -> Mapping[str, Any]:
    """The ``configuration`` of a row by dotted key. Records that differ in their seeds share one; do not change it."""
    values: Mapping[str, Any] = json.loads(configuration)
    return values


def _summary(record: Record) -> dict[str, Any]:
    tasks, trained = trainings(record)
    return {name: getattr(record, name) for name in ("status", "reason", "design")} | {"tasks": tasks, "trained": trained}


def _pairing(record: Record) -> str:
    """What a record and its joint record must share: the protocol's switches (except training, which is searched per method), data,
    backbone and seeds.

    A task-free stream has no "after task j" at which to compare: its records have no partner.
    """
    if not record.done or record.stream:
        return ""
    protocol = {name: value for name, value in record.scenario.items() if name not in {"training", "backbone_hyperparameters"}}
    data = {name: value for name, value in record.cell["configuration"].items() if name.startswith("dataset.")}
    return digest([record.cell["scenario"], protocol, data, record.cell["backbone"], record.cell["seeds"]])[:_SHORT]
