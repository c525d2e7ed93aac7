"""Merge one store into another. The result is the union of their records by key, and no record is silently lost or overwritten.

A finished record takes precedence over an unfinished one. Records with the same result count as one, even if their times differ. If two
finished records have different results, the target's record stays in ``cells``, and the other is stored as ``conflicts/KEY.SHA256.json``,
where SHA256 is the first twelve digits of the SHA-256 of its file. They contradict each other only if they have the same arithmetic, or do
not state it. Files are copied byte for byte, each with a single rename under the lease of its cell, so an interrupted merge can be
repeated. The source is never modified: files that cannot be read are reported and stay where they are.

Search outcomes are merged in the same way. Curves, and the notes on inputs of user code, have separate files, which are copied before the
records. Checkpoints are not merged, since they only save time.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.hashing import canonical
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.comparison import compare, may_differ
from cglsuite.cells.records.frame import Row, Summary, settings
from cglsuite.cells.records.record import Curves, NoCurvesError, Record
from cglsuite.cells.storage.layout import (
    CELLS,
    CONFLICTS,
    SHORT,
    FileCopy,
    copy_inputs,
    curves_path,
    write_curves,
)
from cglsuite.cells.storage.packed import PackedCopy
from cglsuite.cells.storage.store import Problem, Store, search_text
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


logger = logging.getLogger(__name__)
_SEARCH = "search-"
_SYNCED = hasattr(os, "sync")


Copy = FileCopy | PackedCopy


class Source(Protocol):
    """The interface of a merge source (a store or a publication)."""

    problems: list[Problem]

    def keys(self) -> list[str]:
        """Return the keys of all records."""

    def summaries(self, keys: Iterable[str] | None = None) -> Iterator[tuple[str, Summary | None]]:
        """Yield the keys and summaries of records, for listings."""

    def copies(self, key: str) -> Sequence[Copy]:
        """Return all copies of a record."""

    def stored_curves(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the first digits of the digest of all stored curves."""

    def curves_of(self, key: str, digest: str) -> Curves:
        """Return the stored curves with this key and digest."""

    def conflict_files(self) -> list[Path]:
        """Return the files of conflicting results."""

    def searches(self) -> list[str]:
        """Return the digests of all searches."""

    def get_search(self, digest: str) -> Mapping[str, Any] | None:
        """Return the outcome of a search."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Two finished records of one cell whose results differ.

    Args:
        differences: descriptions of the differences. here, there: the ``file`` and stated origin of the record in the target and in the
            source. kept: the file in the target that contains the source's record.
        other_arithmetic: the source's result may differ (:func:`cglsuite.cells.records.comparison.may_differ`) from every result of the
            cell in the target; then none of the results is wrong.
    """

    key: str
    label: str
    differences: list[str]
    here: dict[str, Any]
    there: dict[str, Any]
    kept: Path | str
    other_arithmetic: bool = False


@dataclass(kw_only=True)
class Merge:
    """The outcome of a merge or of a planned merge.

    Args:
        new: keys whose record was copied. finished: keys whose unfinished record was replaced by a finished one.
        same: the number of records with the same result in both. kept: keys whose unfinished record was not copied, since the target
            already has a record.
        held: keys of cells that a runner was computing in the target, with the runner's name; merge them again later.
        unreadable: files that cannot be read and stay where they are, with the reasons. searches: the number of search outcomes copied.
        curves: the number of records whose curves were copied.
        unlike_searches: files with search outcomes that differ from the target's.
    """

    source: str
    new: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    same: int = 0
    kept: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    held: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)
    searches: int = 0
    curves: int = 0
    unlike_searches: list[Path] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether everything in the source is in the target and no two results contradict each other."""
        return not (self.contradictions or self.held or self.unreadable or self.unlike_searches)

    @property
    def contradictions(self) -> list[Conflict]:
        """The conflicts between records whose results should be bit-identical."""
        return [conflict for conflict in self.conflicts if not conflict.other_arithmetic]


def merge(sources: Sequence[Store], target: Store, *, plan: bool = False) -> list[Merge]:
    """Merge all ``sources`` into ``target``, in the given order.

    Args:
        sources: stores opened with ``quarantine=False``, so that they move no files.
        plan: report what would be done, and write nothing. In this case, open ``target`` with ``quarantine=False`` as well.

    Raises:
        UsageError: a source does not exist, or is the target.
        StoreError: the target cannot be written. Files that were already copied stay there.
    """
    for source in sources:
        if not source.path.is_dir():
            raise UsageError(f"there is no store at {source.path}: name the folder that holds cells/")
        if target.path.exists() and source.path.samefile(target.path):
            raise UsageError(f"{source.path} is both a source and the target; expected different stores")
        refuse_inside(source.path, target.path)
    taken: dict[str, Copy] = {}
    merged = [Merging(source, target, source.path, plan=plan, taken=taken).merged() for source in sources]
    if not plan and _SYNCED:
        os.sync()  # once, instead of two waits for the disk per file
    return merged


def refuse_inside(source: Path, target: Path) -> None:
    """Refuse to write into the folders of a source's records, which must not be modified.

    Raises:
        UsageError: ``target`` is inside one of these folders.
    """
    if {(source / CELLS).resolve(), (source / "shards").resolve()} & {target.resolve(), *target.resolve().parents}:
        raise UsageError(f"{target} is inside the records of {source}, which must not be modified; name a folder outside of them")


class Merging:
    """The rules that decide what happens to each record when a source is merged into a store.

    This class copies files. Subclasses that store records elsewhere override the methods below ``Where records go``.

    Args:
        source: a publication, or a store opened with ``quarantine=False``. target: the store to merge into. name: the source's name in
            reports. plan: report what would be done, and write nothing.
        taken: the copies accepted so far, by key, if accepted records are not written to ``target`` immediately.
    """

    def __init__(
        self, source: Source, target: Store, name: Path | str, *, plan: bool = False, taken: dict[str, Copy] | None = None
    ) -> None:
        self.source, self.target, self.plan = source, target, plan
        self.taken: dict[str, Copy] = {} if taken is None else taken
        self.done = Merge(source=str(name))

    def merged(self) -> Merge:
        """Merge the source's curves, records and searches into the target, and return the outcome."""
        known = len(self.target.problems)
        self.copy_curves()
        if not self.plan:
            copy_inputs(Path(self.done.source), self.target.path)
        self.records()
        self.conflicts()
        self.searches()
        named = {str(problem.path) for problem in self.done.unreadable}
        self.done.unreadable += [p for p in (*self.source.problems, *self.target.problems[known:]) if str(p.path) not in named]
        return self.done

    def records(self) -> None:
        """Merge all records except stored conflicts."""
        keys = self.source.keys()
        there = {*self.target_keys(), *self.taken}
        both = [key for key in keys if key in there]
        for key in keys:
            if key not in there:
                self._merge_key(key)
        for (key, theirs), (_, ours) in zip(self.source.summaries(both), self.target_summaries(both), strict=True):
            if len(self.source.copies(key)) > 1 or (theirs is not None and not self._nothing_to_copy(key, theirs, ours)):
                self._merge_key(key)

    def _nothing_to_copy(self, key: str, theirs: Summary, ours: Summary | None) -> bool:
        """Return whether a key's summaries show that there is nothing to copy; if so, count the record."""
        if ours is None or (theirs.done and theirs.sha256 != ours.sha256):
            return False
        if theirs.sha256 == ours.sha256:
            self.done.same += 1
        else:
            self.done.kept.append(key)
        return True

    def _merge_key(self, key: str) -> None:
        """Copy those of the source's copies of ``key`` that the target needs."""
        for copy in self.source.copies(key):
            read = self._read(copy)
            if read is None:
                continue
            with self._leased(key) as leased:
                if leased:
                    self._take(copy, *read)

    def _take(self, copy: Copy, content: bytes, record: Record) -> None:
        here = self._target_record(record.key)
        if here is None and (place := self.blocked(record.key)) is not None:
            self.done.unreadable.append(Problem(place, f"it cannot be read, so {copy} was not copied to this path", None))
        elif here is None or (record.done and not here.done):
            (self.done.new if here is None else self.done.finished).append(record.key)
            self.accept(copy, content, record)
        elif not record.done:
            self.done.kept.append(record.key)
        else:
            self._compare(copy, content, record, here)

    def conflicts(self) -> None:
        """Store the source's conflicting results as conflicts in the target."""
        for path in self.source.conflict_files():
            key = path.name.partition(".")[0]
            copy = FileCopy(path, key)
            if not key.startswith(_SEARCH) and (read := self._read(copy)) is not None:
                with self._leased(key) as leased:
                    if leased:
                        self._compare(copy, *read, self._target_record(key))

    def copy_curves(self) -> None:
        """Copy the curves that the target lacks, before their records, so that no record is ever without its curves."""
        there = {(key, digest[:SHORT]) for key, digest in self.target.stored_curves()}
        for key, digest in self.source.stored_curves():
            if (key, digest[:SHORT]) in there:
                continue
            try:
                curves = self.source.curves_of(key, digest)
            except NoCurvesError as error:
                self.done.unreadable.append(Problem(curves_path(Path(self.done.source), key, digest), str(error)))
                continue
            self.done.curves += 1
            if not self.plan:
                write_curves(self.target.path, key, curves, durable=not _SYNCED)

    def _target_record(self, key: str) -> Record | None:
        """Return the target's record of ``key``, or a record that was accepted but is not stored yet."""
        return self.taken[key].read()[1] if key in self.taken else self.target_record(key)

    def _read(self, copy: Copy) -> tuple[bytes, Record] | None:
        try:
            return copy.read()
        except (OSError, StoreError) as error:
            if all(problem.path != copy.path for problem in self.done.unreadable):  # a shard holds many records
                logger.warning("%s was not merged and stays where it is: %s", copy, error)
                self.done.unreadable.append(Problem(copy.path, str(error), None))
            return None

    def _compare(self, copy: Copy, content: bytes, record: Record, current: Record | None) -> None:
        """Count the result if the target has the same one; otherwise store it as a conflict."""
        differences = ["cells/ has no record of this cell"] if current is None else compare(current, record, ("here", "there"))
        if not differences:
            self.done.same += 1
            return
        path = self.keep_conflict(copy, content, record)
        place = self.taken.get(record.key) or self.target_place(record.key)
        origin = {} if current is None else {"file": str(place), **_origin(current)}
        there = {"file": str(copy), **_origin(record)}
        others = [current, *self.target_kept_apart(record.key)] if current is not None else []
        excused = bool(others) and all(may_differ(other, record) for other in others if compare(other, record))
        self.done.conflicts.append(
            Conflict(
                key=record.key,
                label=record.label,
                differences=differences,
                here=origin,
                there=there,
                kept=path,
                other_arithmetic=excused,
            )
        )

    def searches(self) -> None:
        """Merge the outcomes of searches."""
        for name in self.source.searches():
            outcome = self.source.get_search(name)
            if outcome is None:
                continue  # reported by the source
            here = self.target_search(name)
            if here is None:
                self.done.searches += 1
                self.accept_search(name, outcome)
            elif here != outcome:
                self.done.unlike_searches.append(self.keep_search_conflict(name, outcome))
        for path in self.source.conflict_files():
            if path.name.startswith(_SEARCH):
                try:
                    self.done.unlike_searches.append(self.keep_conflict_of_search(path))
                except OSError as error:
                    self.done.unreadable.append(Problem(path, f"cannot be read: {error.strerror or error}"))

    # Where records go

    def target_keys(self) -> Iterable[str]:
        """Return the keys of the target's records."""
        return self.target.keys()

    def target_summaries(self, keys: Iterable[str]) -> Iterable[tuple[str, Summary | None]]:
        """Return the summaries of the target's records of ``keys``, in the same order."""
        return self.target.summaries(keys)

    def target_record(self, key: str) -> Record | None:
        """Return the target's record for ``key``."""
        return self.target.get(key)

    def target_kept_apart(self, key: str) -> Iterable[Record]:
        """Return the results of ``key`` that the target stores as conflicts."""
        return (record for _, record in self.target.conflicts(key))

    def target_place(self, key: str) -> Path | str:
        """Return the path of the target's record."""
        copies = self.target.copies(key)
        return next((str(copy) for copy in copies), self.target.record_path(key))

    def target_search(self, name: str) -> Mapping[str, Any] | None:
        """Return the target's outcome of a search."""
        return self.target.get_search(name)

    def blocked(self, key: str) -> Path | None:
        """Return the path of an unreadable file in place of the record, which blocks a new one, or None. Files from later versions block
        it, too.
        """
        place = self.target.record_path(key)
        try:
            self.target.refuse_unreadable(key)
        except StoreError:
            return place
        return place if place.exists() and not self.plan else None

    def accept(self, copy: Copy, content: bytes, record: Record) -> None:
        """Accept a record as the target's result."""
        if self.plan:
            self.taken[record.key] = copy
        self._write(self.target.record_path(record.key), content)

    def keep_conflict(self, copy: Copy, content: bytes, record: Record) -> Path | str:
        """Store a result that differs from the target's, unless it is already stored, and return its path."""
        path = self.target.kept_apart(record) or self.target.conflict_path(record.key, content)
        if not path.exists():
            self._write(path, content)
        return path

    def accept_search(self, name: str, outcome: Mapping[str, Any]) -> None:
        """Accept the outcome of a search."""
        if not self.plan:
            self.target.put_search(name, outcome)

    def keep_search_conflict(self, name: str, outcome: Mapping[str, Any]) -> Path:
        """Store a search outcome that differs from the target's, and return its path."""
        content = search_text(outcome)
        place = self.target.conflict_path(f"{_SEARCH}{name}", content)
        self._write(place, content)
        return place

    def keep_conflict_of_search(self, path: Path) -> Path:
        """Store a search outcome that is a conflict in the source, and return its path."""
        place = self.target.path / CONFLICTS / path.name
        self._write(place, read_regular(path))
        return place

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        """Hold the target's lease on ``key`` unless a runner holds it, and yield whether the merge may proceed. Plans need no lease."""
        lease = None if self.plan else self.target.lease(key)
        if lease is None and not self.plan:
            self.done.held.append((key, str(self.target.holder(key) or "another process")))
        with lease or contextlib.nullcontext():
            yield lease is not None or self.plan

    def _write(self, path: Path, content: bytes) -> None:
        if not self.plan:
            write_atomic(path, content, durable=not _SYNCED, top=self.target.path)


def _origin(record: Record) -> dict[str, Any]:
    """Return the machine, libraries and data with which a record was computed."""
    environment = {name: record.environment.get(name) for name in ("cpu", "cpu_capability", "arithmetic", "torch", "python", "platform")}
    return {**environment, "data": record.provenance.get("data"), "seconds": record.timings_s.get("total")}


Group = tuple[str, str, str]
"""Scenario, method and backbone."""
_FACTS = ("device", "dtype", "threads", "torch", "core_version")
_SEEDS = ("order_seed", "split_seed", "init_seed")
_LEVELS = ("order", "split", "seed")
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting that differs between A and B for all cells of a group. A value is ``None`` if that side lacks the setting."""

    scenario: str
    method: str
    backbone: str
    name: str
    a: Any
    b: Any


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """The mean difference A minus B of one metric over the cells that both sides share.

    Args:
        place: the values of further axes, if the group has several points. n: the number of pairs. a, b: the means. estimate, low, high:
            the difference and its confidence interval at :data:`LEVEL`; the interval is NaN if it cannot be computed, and ``why`` is the
            reason. equal: the number of pairs with bit-identical values.
    """

    scenario: str
    method: str
    backbone: str
    place: Mapping[str, Any]
    metric: str
    n: int
    equal: int
    a: float
    b: float
    estimate: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The cells that two sides share and the cells that only one side has.

    Args:
        only_a, only_b: the labels of cells that only one side has. both: the number of cells that both sides share.
        unpaired: groups that are not compared because a cell has several counterparts, with the reason.
    """

    settings: Sequence[Setting]
    only_a: Sequence[str]
    only_b: Sequence[str]
    both: int
    means: Sequence[MeanDifference]
    unpaired: Sequence[str] = field(default=())


def compare_rows(a: Iterable[Row], b: Iterable[Row], metrics: Sequence[str], catalogue: Catalogue) -> Comparison:
    """Compare the finished records of two sides.

    Cells are paired if they share scenario, method, backbone, seeds, and the values of every setting that varies within a side.
    """
    sides = _rows_by_group(a), _rows_by_group(b)
    differing: list[Setting] = []
    only: tuple[list[str], list[str]] = [], []
    means: list[MeanDifference] = []
    unpaired: list[str] = []
    both = 0
    for group in sorted(sides[0].keys() | sides[1].keys()):
        rows = [side.get(group, []) for side in sides]
        varying = sorted({name for part in rows for name in _varying(part)})
        differing += _settings(group, rows, varying) if all(rows) else []
        alike: tuple[dict[str, Row], dict[str, Row]] = {}, {}
        twice = False
        for part, known in zip(rows, alike, strict=True):
            for row in part:
                name = canonical([[getattr(row, seed) for seed in _SEEDS], _point(row, varying)])
                twice |= name in known
                known[name] = row
        if twice:
            unpaired.append(f"{' × '.join(group)}: several records have the same settings and seeds; name a campaign instead of the store")
            continue
        for labels, known, other in ((only[0], alike[0], alike[1]), (only[1], alike[1], alike[0])):
            labels += [_label(row, varying) for name, row in known.items() if name not in other]
        pairs = [(alike[0][name], alike[1][name]) for name in alike[0] if name in alike[1]]
        both += len(pairs)
        axes = [name for name in varying if not _follows_seeds(rows, name)]
        for point, paired in _by_point(pairs, axes):
            means += [_mean(group, point, paired, metric, catalogue) for metric in metrics]
    return Comparison(settings=differing, only_a=only[0], only_b=only[1], both=both, means=[m for m in means if m.n], unpaired=unpaired)


def _rows_by_group(rows: Iterable[Row]) -> dict[Group, list[Row]]:
    groups = defaultdict[Group, list[Row]](list)
    for row in sorted((row for row in rows if row.done), key=lambda row: row.order):
        groups[row.preset, row.method, row.backbone].append(row)
    return groups


def _values(row: Row) -> dict[str, Any]:
    return {**settings(row.configuration), **{name: getattr(row, name) for name in _FACTS}}


def _varying(rows: Sequence[Row]) -> list[str]:
    """Return the names of the settings that differ between the cells of one side."""
    values = [_values(row) for row in rows]
    names = {name for value in values for name in value}
    return [name for name in names if len({canonical(value.get(name)) for value in values}) > 1]


def _settings(group: Group, rows: Sequence[Sequence[Row]], varying: Sequence[str]) -> list[Setting]:
    first, second = (_values(part[0]) for part in rows)
    names = dict(zip(("scenario", "method", "backbone"), group, strict=True))
    return [
        Setting(**names, name=name, a=first.get(name), b=second.get(name))
        for name in sorted(first.keys() | second.keys())
        if name not in varying and canonical(first.get(name)) != canonical(second.get(name))
    ]


def _point(row: Row, names: Sequence[str]) -> dict[str, Any]:
    values = _values(row)
    return {name: values.get(name) for name in names}


def _follows_seeds(rows: Sequence[Sequence[Row]], name: str) -> bool:
    """Return whether a varying setting is determined by the seeds, like a class order. Such a setting is not an axis."""
    by_seeds = defaultdict[tuple[int, ...], set[str]](set)
    for row in (row for part in rows for row in part):
        by_seeds[tuple(getattr(row, seed) for seed in _SEEDS)].add(canonical(_values(row).get(name)))
    return all(len(values) == 1 for values in by_seeds.values())


def _by_point(pairs: Sequence[tuple[Row, Row]], axes: Sequence[str]) -> list[tuple[dict[str, Any], list[tuple[Row, Row]]]]:
    points: dict[str, tuple[dict[str, Any], list[tuple[Row, Row]]]] = {}
    for pair in pairs:
        point = _point(pair[0], axes)
        points.setdefault(canonical(point), (point, []))[1].append(pair)
    return list(points.values())


def _label(row: Row, varying: Sequence[str]) -> str:
    place = "".join(f", {name}={value}" for name, value in _point(row, varying).items() if name not in _FACTS)
    return row.label if not place else f"{row.label[:-1]}{place})"


def _mean(group: Group, point: Mapping[str, Any], pairs: Sequence[tuple[Row, Row]], metric: str, catalogue: Catalogue) -> MeanDifference:
    import pandas as pd

    from cglsuite.stats import compare_methods

    values = [(first, second, first.metrics.get(metric), second.metrics.get(metric)) for first, second in pairs]
    known = [(first, second, x, y) for first, second, x, y in values if x is not None and y is not None]
    names: dict[str, Any] = dict(zip(("scenario", "method", "backbone"), group, strict=True))
    names |= {"place": point, "metric": metric, "n": len(known), "equal": sum(x == y for *_, x, y in known)}
    if not known:
        return MeanDifference(**names, a=math.nan, b=math.nan, estimate=math.nan)
    a, b = math.fsum(x for _, _, x, _ in known) / len(known), math.fsum(y for *_, y in known) / len(known)
    frame = pd.DataFrame(
        [
            {"method": side, "value": entry[2 + place], **dict(zip(_LEVELS, (getattr(entry[place], seed) for seed in _SEEDS), strict=True))}
            for place, side in enumerate(("A", "B"))
            for entry in known
        ]
    )
    spec = catalogue.specs(MetricSpec).get(metric)
    [tested] = compare_methods(frame, higher_is_better=spec is None or spec.direction == "up", alpha=1 - LEVEL).to_dict(orient="records")
    if tested["refused"]:
        why = "equal in all pairs" if names["equal"] == len(known) else str(tested["refused"])
        return MeanDifference(**names, a=a, b=b, estimate=a - b, why=why)
    numbers: dict[str, Any] = {name: float(tested[name]) for name in ("estimate", "low", "high", "p")}
    return MeanDifference(**names, a=a, b=b, **numbers)
