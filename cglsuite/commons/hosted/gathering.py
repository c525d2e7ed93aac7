"""The records of a store by preset, each read once: memory holds a few thousand or those of one preset, whatever the size of the store.

Records are trimmed to what boards show. While the store is read, they are kept in a temporary folder of this process, a file per preset.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cglsuite.base.hashing import canonical
from cglsuite.cells.records.metric_values import completed, metrics_from
from cglsuite.cells.records.record import Record
from cglsuite.commons.submissions.marks import Mark, Marks
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from types import TracebackType

    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue

__all__ = ["Gathered", "Marked"]

_BATCH = 4000
"""So many records are in memory while a store is read."""
_PROVENANCE = ("core", "plugins", "metrics", "data", "resumed_from_task")


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """A finished record without what no board shows, its digest, and its mark."""

    record: Record
    digest: str
    mark: Mark


@dataclass(kw_only=True)
class _Preset:
    """Where the records of a preset are: those in memory, and the number of batches in the file."""

    path: Path
    waiting: list[Marked] = field(default_factory=list)
    number: int = 0


class Gathered:
    """The finished records of a store by preset; a context manager, whose end removes the temporary files.

    Args:
        store: a store, live or pulled. catalogue: its metrics are computed for records that lack them. The metrics of a record without a
            mark, which nobody has checked, are computed anew from its matrix.

    ``verified``, ``unverified`` and ``unfinished`` count records; ``faults`` says by key why a record cannot be shown. ``unmarked``: the
    store has no mark at all, so nobody has submitted to it.
    """

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self.verified = self.unverified = self.unfinished = 0
        self.faults: dict[str, str] = {}
        self._waiting = 0
        self._folder = tempfile.TemporaryDirectory(prefix="cglsuite-site-")
        self._presets: dict[str, _Preset] = {}
        self._shared: dict[str, Any] = {}
        marks, specs = Marks(store.path), catalogue.specs(MetricSpec)
        self.unmarked = not len(marks)
        ours = [name for name, spec in specs.items() if not spec.needs_joint]
        for record in store.records():
            if not record.done:
                self.unfinished += 1
                continue
            digest = record.digest
            mark = marks.of(record.key, digest)
            try:
                if marks.marked(record.key, digest):
                    metrics = completed(record, catalogue).metrics
                else:
                    metrics = {**record.metrics, **metrics_from(record, catalogue, ours)}
                one = Marked(record=self._trimmed(record, metrics), digest=digest, mark=mark)
            except Exception as error:  # noqa: BLE001 - a stranger's record: whatever is odd in it costs no other record its place
                self.faults[record.key] = f"{type(error).__name__}: {error}"
                continue
            self.verified += mark.verified
            self.unverified += not mark.verified
            self._add(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    @property
    def presets(self) -> list[str]:
        """The presets with a finished record, sorted."""
        return sorted(self._presets)

    def of(self, preset: str) -> Iterator[Marked]:
        """The records of a preset, sorted by key."""
        known = self._presets[preset]
        if known.number:
            with known.path.open("rb") as file:
                for _ in range(known.number):
                    yield from pickle.load(file)  # written above, in a folder of this process
        yield from known.waiting

    def _add(self, one: Marked) -> None:
        preset = str(one.record.cell["preset"])
        known = self._presets.get(preset)
        if known is None:
            known = self._presets[preset] = _Preset(path=Path(self._folder.name) / str(len(self._presets)))
        known.waiting.append(one)
        self._waiting += 1
        if self._waiting >= _BATCH:
            self._put_away()

    def _put_away(self) -> None:
        """Move the records in memory to the files of their presets."""
        for known in self._presets.values():
            if known.waiting:
                with known.path.open("ab") as file:
                    pickle.dump(known.waiting, file, protocol=pickle.HIGHEST_PROTOCOL)
                known.waiting = []
                known.number += 1
        self._shared.clear()
        self._waiting = 0

    def _trimmed(self, record: Record, metrics: Any) -> Record:
        """The record with equal parts shared among records, and without results per class."""
        provenance = {name: self._one(record.provenance[name]) for name in _PROVENANCE if name in record.provenance}
        if stream := record.stream:
            provenance["stream"] = self._one({name: stream[name] for name in ("evaluations", "delivered") if name in stream})
        cell = {**record.cell, "configuration": self._one(record.cell["configuration"])}
        return record.with_parts(
            cell=cell,
            scenario=self._one(record.scenario),
            tasks=self._one(record.tasks),
            metrics=metrics,
            per_class=[],
            validation_matrix=record.validation_matrix[-1:],
            provenance=provenance,
            environment=self._one({name: record.environment.get(name) for name in ("cpu", "cuda", "platform", "python", "torch")}),
        )

    def _one(self, value: Any) -> Any:
        return self._shared.setdefault(canonical(value), value)
