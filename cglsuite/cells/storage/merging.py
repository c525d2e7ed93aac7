"""Merge one store into another: the union of their records by key, in which nothing is lost or overwritten silently.

A finished record counts before an unfinished one. Records with the same result are one, however long they took. Of two finished records
with different results, that of the target stays in ``cells``, and the other is kept as ``conflicts/KEY.SHA256.json``, with the first twelve
digits of the SHA-256 of its file. Files are copied byte for byte, each in one rename under the lease of its cell, so an interrupted merge
can be repeated. The source is only read: what cannot be read is reported and stays where it is.

Outcomes of searches are merged likewise. Checkpoints are not: they only save time.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cglsuite.atomic import write_atomic
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.record import Record
from cglsuite.cells.records.rows import Summary
from cglsuite.cells.storage.layout import CONFLICTS, SUFFIX
from cglsuite.cells.storage.records import Problem, read_record_file
from cglsuite.cells.storage.store import Store
from cglsuite.errors import StoreError, UsageError
from cglsuite.inputs import read_regular

__all__ = ["Conflict", "Merge", "merge"]

logger = logging.getLogger(__name__)
_SEARCH = "search-"
_SYNCED = hasattr(os, "sync")


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Two finished records of one cell whose results differ.

    Args:
        differences: where, as text. here, there: ``file``, and what the record says of its origin, in the target and in the source.
        kept: the file in the target that holds the record of the source.
    """

    key: str
    label: str
    differences: list[str]
    here: dict[str, Any]
    there: dict[str, Any]
    kept: Path


@dataclass(kw_only=True)
class Merge:
    """What a merge did, or would do.

    Args:
        new: keys whose record was copied. finished: keys whose unfinished record was replaced by a finished one.
        same: number of records with the same result in both. kept: keys whose unfinished record was not copied, since there is one.
        held: keys that a runner of the target was at, with its name; to be merged again later.
        unreadable: files that were left where they are, and why. searches: outcomes of searches copied.
        unlike_searches: files that hold outcomes of searches that differ from the target's.
    """

    source: Path
    new: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    same: int = 0
    kept: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    held: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)
    searches: int = 0
    unlike_searches: list[Path] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether everything in the source is in the target, and no two results differ."""
        return not (self.conflicts or self.held or self.unreadable or self.unlike_searches)


def merge(sources: Sequence[Store], target: Store, *, plan: bool = False) -> list[Merge]:
    """Merge every one of ``sources``, in this order, into ``target``.

    Args:
        sources: stores that move nothing (``quarantine=False``).
        plan: report what would be done, and write nothing; then ``target`` moves nothing either.

    Raises:
        UsageError: a source does not exist, or is the target. StoreError: the target cannot be written; what was copied is kept.
    """
    for source in sources:
        if not source.path.is_dir():
            raise UsageError(f"there is no store at {source.path}: name the folder that holds cells/")
        if target.path.exists() and source.path.samefile(target.path):
            raise UsageError(f"{source.path} is both a source and the target; expected different stores")
    planned: dict[str, Path] | None = {} if plan else None
    merged = [_Merging(source, target, planned).merged() for source in sources]
    if not plan and _SYNCED:
        os.sync()  # once, instead of two waits for the disk per file
    return merged


class _Merging:
    """The merge of one store into another; ``planned``: the records that a plan would have copied so far, None to copy them."""

    def __init__(self, source: Store, target: Store, planned: dict[str, Path] | None) -> None:
        self.source, self.target, self.planned = source, target, planned
        self.done = Merge(source=source.path)

    def merged(self) -> Merge:
        known = len(self.target.problems)
        self.records()
        self.conflicts()
        self.searches()
        named = {problem.path for problem in self.done.unreadable}
        self.done.unreadable += [p for p in (*self.source.problems, *self.target.problems[known:]) if p.path not in named]
        return self.done

    def records(self) -> None:
        keys = self.source.keys()
        there = set(self.target.keys())
        both = [key for key in keys if key in there]
        for key in keys:
            if key not in there:
                self._bring(key)
        for (key, theirs), (_, ours) in zip(self.source.summaries(both), self.target.summaries(both), strict=True):
            if len(self._files(key)) > 1 or (theirs is not None and not self._settled(key, theirs, ours)):
                self._bring(key)

    def _settled(self, key: str, theirs: Summary, ours: Summary | None) -> bool:
        """Whether the summaries of a key's records say that there is nothing to copy; then that is counted."""
        if ours is None or (theirs.done and theirs.sha256 != ours.sha256):
            return False
        if theirs.sha256 == ours.sha256:
            self.done.same += 1
        else:
            self.done.kept.append(key)
        return True

    def _files(self, key: str) -> list[Path]:
        return [path for path in self.source.places(key) if path.exists()]

    def _bring(self, key: str) -> None:
        """Copy what the target needs of the source's files of ``key``."""
        for path in self._files(key):
            read = self._read(path, key)
            if read is None:
                continue
            with self._leased(key) as leased:
                if leased:
                    self._take(path, *read)

    def _take(self, path: Path, content: bytes, record: Record) -> None:
        here = self._here(record.key)
        place = self.target.record_path(record.key)
        if here is None and place.exists() and self.planned is None:
            self.done.unreadable.append(Problem(place, f"it cannot be read, and {path} was not copied into its place", None))
        elif here is None or (record.done and not here.done):
            (self.done.new if here is None else self.done.finished).append(record.key)
            self._write(place, content)
            if self.planned is not None:
                self.planned[record.key] = path
        elif not record.done:
            self.done.kept.append(record.key)
        else:
            self._compare(path, content, record, here)

    def conflicts(self) -> None:
        """What the source itself keeps as conflicts is kept as such."""
        for path in self.source.conflict_files():
            key = path.name.partition(".")[0]
            if not key.startswith(_SEARCH) and (read := self._read(path, key)) is not None:
                with self._leased(key) as leased:
                    if leased:
                        self._compare(path, *read, self._here(key))

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        """Hold the target's lease on ``key``, unless a runner holds it; yields whether it is held. A plan needs none."""
        lease = self.target.lease(key) if self.planned is None else None
        if lease is None and self.planned is None:
            self.done.held.append((key, str(self.target.holder(key) or "another process")))
        with lease or contextlib.nullcontext():
            yield lease is not None or self.planned is not None

    def _here(self, key: str) -> Record | None:
        """The target's record of ``key``, or the one that a plan would have copied."""
        if self.planned is not None and key in self.planned:
            return read_record_file(self.planned[key], key)[1]
        return self.target.get(key)

    def _read(self, path: Path, key: str) -> tuple[bytes, Record] | None:
        try:
            return read_record_file(path, key)
        except (OSError, StoreError) as error:
            logger.warning("%s is not merged: %s (left where it is)", path, error)
            self.done.unreadable.append(Problem(path, str(error), None))
            return None

    def _compare(self, path: Path, content: bytes, record: Record, here: Record | None) -> None:
        """Count a result that the target has, and keep another one apart."""
        differences = ["cells/ holds no record of this cell"] if here is None else compare(here, record, ("here", "there"))
        if not differences:
            self.done.same += 1
            return
        kept = self._alike(record) or self._apart(record.key, content)
        if not kept.exists():
            self._write(kept, content)
        place = self.planned.get(record.key) if self.planned is not None else None
        origin = {} if here is None else {"file": str(place or self.target.record_path(record.key)), **_origin(here)}
        there = {"file": str(path), **_origin(record)}
        self.done.conflicts.append(
            Conflict(key=record.key, label=record.label, differences=differences, here=origin, there=there, kept=kept)
        )

    def _alike(self, record: Record) -> Path | None:
        """The file that holds the result of ``record`` as a conflict, if the target has it."""
        for path in self.target.conflict_files():
            if path.name.startswith(f"{record.key}."):
                with contextlib.suppress(OSError, StoreError):
                    if not compare(read_record_file(path, record.key)[1], record):
                        return path
        return None

    def _apart(self, name: str, content: bytes) -> Path:
        return self.target.path / CONFLICTS / f"{name}.{hashlib.sha256(content).hexdigest()[:12]}{SUFFIX}"

    def _write(self, place: Path, content: bytes) -> None:
        if self.planned is None:
            write_atomic(place, content, durable=not _SYNCED)

    def searches(self) -> None:
        for path in sorted((self.source.path / "searches").glob(f"*{SUFFIX}")):
            if path.name.startswith("."):
                continue
            try:
                content = read_regular(path)
            except OSError as error:
                self.done.unreadable.append(Problem(path, f"cannot be read: {error.strerror or error}", None))
                continue
            if self.source.get_search(path.stem) is None:
                continue  # reported by the store
            place = self.target.path / "searches" / path.name
            if self.target.get_search(path.stem) is None:
                self.done.searches += 1
            elif read_regular(place) == content:
                continue
            else:
                place = self._apart(f"{_SEARCH}{path.stem}", content)
                self.done.unlike_searches.append(place)
            self._write(place, content)
        for path in self.source.conflict_files():
            if path.name.startswith(_SEARCH):
                place = self.target.path / CONFLICTS / path.name
                self.done.unlike_searches.append(place)
                self._write(place, path.read_bytes())


def _origin(record: Record) -> dict[str, Any]:
    """What a record says of the machine, the libraries and the data that it was computed with."""
    environment = {name: record.environment.get(name) for name in ("cpu", "cpu_capability", "torch", "python", "platform")}
    return {**environment, "data": record.provenance.get("data"), "seconds": record.timings_s.get("total")}
