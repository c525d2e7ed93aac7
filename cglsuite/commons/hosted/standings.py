"""A preset's boards of verified and unverified records, and summaries of these boards for other pages."""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cglsuite.base.markup import Fragment
from cglsuite.campaigns.reference.values import paper_of
from cglsuite.cells.records.metric_values import completed, metrics_from
from cglsuite.cells.records.record import Record, shared
from cglsuite.cells.storage.store import Store
from cglsuite.commons.submissions.staging import Mark, Marks
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.results.published import compare
from cglsuite.reports.results.results import Results, results_of
from cglsuite.reports.results.variants import record_variants
from cglsuite.reports.site.boards import Board, Row, boards
from cglsuite.reports.site.index import tasks_row
from cglsuite.reports.site.leaderboard import Used, settings_used
from cglsuite.specs import MetricSpec

LEVELS = ("verified", "unverified")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One row of a board, without its records, as other pages show it.

    Args:
        rank: the rank on its board (:attr:`cglsuite.reports.site.boards.Board.ranks`). records, rerun: the number of its records, and of
            those that were rerun.
        missing: the repetitions that most rows of the board have and this row lacks. reasons: why records are not verified, most
            frequent first, each with the number of records.
    """

    row: Row
    rank: int | None
    records: int
    rerun: int
    missing: int
    reasons: Sequence[tuple[str, int]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """The board of one level. ``results`` and the records of ``board`` are dropped once the preset's page is written."""

    level: str
    results: Results
    board: Board
    standings: Sequence[Standing]
    left_out: int
    compared: Sequence[Mapping[str, Any]]

    def without_records(self) -> Part:
        """Return the part without its records, for other pages."""
        rows = tuple(replace(row, group=replace(row.group, cells=())) for row in self.board.rows)
        standings = [replace(standing, row=row) for standing, row in zip(self.standings, rows, strict=True)]
        board = replace(self.board, rows=rows)
        return replace(self, board=board, standings=standings, results=replace(self.results, cells=()))


@dataclass(kw_only=True)
class Scenario:
    """A preset with its boards by verification level.

    Args:
        title: the display name. changes: the switches that differ from the preset of the same name, with their values; may be empty.
        level, setting, dataset, protocol: those of the scenario. paper: the paper that introduced the benchmark, or empty.
        parts: the boards by level, for levels with a record. used: the hyperparameters in the records, by method.
    """

    preset: str
    title: str
    dataset: str
    setting: str
    problem: str
    protocol: str
    paper: str
    changes: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    tasks: Sequence[Fragment] = ()
    used: dict[str, Used] = field(default_factory=dict)

    @property
    def first(self) -> Part:
        """The part that represents the scenario: verified records if there are any, otherwise unverified ones."""
        return next(self.parts[level] for level in LEVELS if level in self.parts)

    @property
    def methods(self) -> list[str]:
        """All distinct methods with a record."""
        return list(dict.fromkeys(s.row.method for part in self.parts.values() for s in part.standings))

    def best(self, level: str) -> Standing | None:
        """Return the top-ranked row on the board of a level, or None if there is none."""
        return next((standing for standing in self.parts[level].standings if standing.rank == 1), None) if level in self.parts else None

    def count(self, level: str) -> int:
        """Return the number of records on the board of a level."""
        return sum(standing.records for standing in self.parts[level].standings) if level in self.parts else 0


def scenario_of(preset: str, records: Sequence[Marked], catalogue: Catalogue, store: Path, *, is_board_store: bool = False) -> Scenario:
    """Return the boards of a preset, with verified and unverified records separate. Set ``is_board_store`` for a folder without marks."""
    first = records[0].record
    variants = record_variants((record.record for record in records), catalogue)
    nothing = results_of((), catalogue, store, variants=variants)
    protocol = str(first.cell["scenario"]).partition("@")[2]
    paper = paper_of(protocol)
    scenario = Scenario(
        preset=preset,
        title=nothing.preset_title(preset),
        dataset=str(first.cell["scenario"]).partition("/")[0],
        setting=str(first.scenario.get("setting") or ""),
        problem=str(first.scenario.get("level") or ""),
        protocol=protocol,
        paper=paper.name if paper is not None else "",
        changes=variants[preset].changes_text if preset in variants else "",
    )
    for level in LEVELS:
        of_level = [record for record in records if record.mark.level == level]
        if not of_level:
            continue
        results = results_of((marked.record for marked in of_level), catalogue, store, variants=variants)
        (board,) = boards(results, catalogue)
        if level == "unverified" and not is_board_store:
            board = replace(board, title=f"{board.title}, unverified")
        scenario.parts[level] = Part(
            level=level,
            results=results,
            board=board,
            standings=_standings(board, {marked.record.key: marked for marked in of_level}),
            left_out=len(results.left_out),
            compared=as_rows(compare(results)) if scenario.paper else (),
        )
        for group in results.groups:
            settings_used(group.method, [group], results.preset_title, scenario.used.setdefault(group.method, {}))
    scenario.tasks = tasks_row(scenario.first.board)
    return scenario


def _standings(board: Board, marked: Mapping[str, Marked]) -> list[Standing]:
    standings: list[Standing] = []
    for number, row in enumerate(board.rows):
        marks = [marked[record.key].mark for record in row.records]
        reasons = Counter(
            f"{name}: {reason}" if name else reason
            for mark in marks
            if not mark.verified
            for name, reason in mark.reasons.items()
            if name != "orders"
        )
        standings.append(
            Standing(
                row=row,
                rank=board.ranks.get(number),
                records=len(marks),
                rerun=sum(mark.rerun in ("bits", "tolerance") for mark in marks),
                missing=row.missing,
                reasons=reasons.most_common(3),
            )
        )
    return standings


# The records of a store by preset. Each is read once, and memory holds a few thousand records or those of one preset, regardless of the
# store. Records are trimmed to what boards show. While the store is read, they are kept in a temporary folder of this process, a file per
# preset.

_BATCH = 4000
"""The largest number of records in memory while a store is read."""
_MACHINE = ("cpu", "arithmetic", "cuda", "platform", "python", "torch")
_PROVENANCE = ("core", "plugins", "metrics", "data", "resumed_from_task")


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """A finished record reduced to the parts that boards show, with its digest and mark."""

    record: Record
    digest: str
    mark: Mark


@dataclass(kw_only=True)
class _Preset:
    """The records of a preset that are in memory, and the number of its batches on disk."""

    path: Path
    waiting: list[Marked] = field(default_factory=list)
    number: int = 0


class RecordsByPreset:
    """The finished records of a store by preset. A context manager that removes its temporary files on exit.

    Args:
        store: a store, live or pulled. catalogue: its metrics are computed for records that lack them. Records without a mark have not been
            checked, so their metrics are recomputed from the matrix.

    ``verified``, ``unverified`` and ``unfinished`` count records; ``faults`` maps a key to the reason why its record cannot be shown.
    ``unmarked``: the store has no marks, so nobody has submitted to it.
    """

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self.verified = self.unverified = self.unfinished = 0
        self.faults: dict[str, str] = {}
        self._waiting = 0
        self._folder = tempfile.TemporaryDirectory(prefix="cglsuite-site-")
        self._presets: dict[str, _Preset] = {}
        marks, specs = Marks(store.path), catalogue.specs(MetricSpec)
        self.unmarked = not len(marks)
        ours = [name for name, spec in specs.items() if not spec.reference]
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
                marked = Marked(record=self._compact_record(record, metrics), digest=digest, mark=mark)
            except Exception as error:  # noqa: BLE001 - a stranger's record: whatever is odd in it costs no other record its place
                self.faults[record.key] = f"{type(error).__name__}: {error}"
                continue
            self.verified += mark.verified
            self.unverified += not mark.verified
            self._add(marked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    @property
    def presets(self) -> list[str]:
        """The presets with a finished record, sorted."""
        return sorted(self._presets)

    def of(self, preset: str) -> Iterator[Marked]:
        """Yield the records of a preset, sorted by key."""
        known = self._presets[preset]
        if known.number:
            with known.path.open("rb") as file:
                for _ in range(known.number):
                    yield from pickle.load(file)  # written above, in a folder of this process
        yield from known.waiting

    def _add(self, marked: Marked) -> None:
        preset = str(marked.record.cell["preset"])
        known = self._presets.get(preset)
        if known is None:
            known = self._presets[preset] = _Preset(path=Path(self._folder.name) / str(len(self._presets)))
        known.waiting.append(marked)
        self._waiting += 1
        if self._waiting >= _BATCH:
            self._spill_to_disk()

    def _spill_to_disk(self) -> None:
        """Write the records in memory to their presets' temporary files."""
        for known in self._presets.values():
            if known.waiting:
                with known.path.open("ab") as file:
                    pickle.dump(known.waiting, file, protocol=pickle.HIGHEST_PROTOCOL)
                known.waiting = []
                known.number += 1
        self._waiting = 0

    def _compact_record(self, record: Record, metrics: Any) -> Record:
        """Return the record without per-class results and most of its provenance."""
        provenance = {name: record.provenance[name] for name in _PROVENANCE if name in record.provenance}
        if stream := record.stream:
            provenance["stream"] = shared({name: stream[name] for name in ("evaluations", "delivered") if name in stream})
        return record.with_parts(
            metrics=metrics,
            per_class=[],
            validation_matrix=record.validation_matrix[-1:],
            provenance=provenance,
            environment=shared({name: record.environment.get(name) for name in _MACHINE}),
        )
