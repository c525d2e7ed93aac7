"""The store: a folder with records in separate files, checkpoints for resuming, leases, and the outcomes of searches."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from stat import S_ISLNK
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from cglsuite.base.atomic import TEMPORARY_SUFFIX, in_the_way, make_folder, new_file, store_error, sweep_temporaries, write_atomic
from cglsuite.base.environment import variable
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.inputs import check_path, quoted, read_regular
from cglsuite.base.markup import displayed
from cglsuite.cells.records.comparison import compare, may_differ
from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.metric_values import completed, is_users
from cglsuite.cells.records.record import Curves, NewerSchemaError, NoCurvesError, Record
from cglsuite.cells.storage.index import Index, Mark, mark_of
from cglsuite.cells.storage.layout import (
    CELLS,
    CONFLICTS,
    CURVES,
    INPUTS,
    MAX_RECORD_BYTES,
    SUFFIX,
    FileCopy,
    curves_path,
    discard_curves,
    folders,
    is_key,
    key_of,
    misplaced,
    names_in,
    read_curves,
    read_record,
    read_record_file,
    record_files,
    record_names,
    shard_of,
    sidecar_names,
    write_curves,
)
from cglsuite.cells.storage.lease import LIFETIME_S, LONGEST_S, Attempt, Holder, Lease, has_locks, read_holder, withdraw
from cglsuite.cells.storage.packed import LocalFolder, Packed, PackedCopy, Problem
from cglsuite.host.frozen import CODE
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["Problem", "Records", "Store", "default_store", "is_key", "plan_lease", "search_text"]

# The records of a store: reading and writing one file per record, and listings that read few of them.
# The store may also contain shards of many records each (see :mod:`cglsuite.cells.storage.packed`), and a record may be in both. A finished
# copy takes precedence over an unfinished one; otherwise the copy with its own file does.

_Listed = TypeVar("_Listed", Summary, Row)
_Answer = TypeVar("_Answer")
_BATCH = 1000
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_FEW = 100
"""The maximum number of records that are read directly, which is as fast as opening an index."""


class UnreadableRecordError(StoreError):
    """A record exists but cannot be read, for example because it belongs to another user or the disk fails. Its cell is not run."""


def default_store() -> Path:
    """Return ``$CGLSUITE_STORE`` if it is set, otherwise ``.cglsuite`` in the current folder."""
    return Path(os.environ.get("CGLSUITE_STORE") or ".cglsuite")


def check_key(name: str) -> str:
    """Check that ``name`` is a valid key, and return it.

    Raises:
        StoreError: it cannot be a key.
    """
    if not is_key(name):
        raise StoreError(f"{name!r} is not a key: expected letters, digits, - and _")
    return name


class Records:
    """The records in a folder that several processes may share. This is the part of a :class:`cglsuite.cells.Store` that handles records.

    Args:
        path: the folder; ``None`` means :func:`default_store`.
        quarantine: move unreadable files to ``corrupt/``; otherwise they are reported and left in place. read: other stores whose finished
        records are reused; they are opened read-only; ``None`` means those in ``$CGLSUITE_READ``.
    """

    def __init__(self, path: str | Path | None = None, *, quarantine: bool = True, read: Iterable[str | Path] | None = None) -> None:
        named = default_store() if path is None else path
        if not isinstance(named, (str, os.PathLike)):
            raise UsageError(f"the store {quoted(named)}: expected the path of a folder")
        try:
            self.path = check_path(named).expanduser().absolute()
        except ValueError as error:
            raise UsageError(f"the store {quoted(str(named))}: {error}") from error
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise StoreError(f"the store {self.path} is a file; expected a folder")
        self.quarantine = quarantine
        self.problems: list[Problem] = []
        self._index = Index(self.path)
        self._packed = Packed(LocalFolder(self.path), lambda file, reason: self._report(Path(file), reason, None))
        self._reported: set[Path] = set()
        self._set_aside: set[str] = set()
        self._kept: dict[str, StoreError] = {}
        self._settled: dict[str, Record] = {}
        self.others: list[Records] = []
        """The other stores whose records are reused."""
        self.read_from(_from_environment() if read is None else read)

    def read_from(self, paths: Iterable[str | Path]) -> None:
        """Also use the finished records of other stores, unless they are already in use. Nothing is ever written to those stores.

        Raises:
            UsageError: there is no such store.
        """
        for named in paths:
            other = type(self)(named, quarantine=False, read=())
            if not os.path.isdir(other.path):
                why = in_the_way(other.path, write=False) or "name the folder that contains cells/"
                raise UsageError(f"there is no store to read at {other.path}: {why}")
            if all(os.path.realpath(other.path) != os.path.realpath(known.path) for known in (self, *self.others)):
                self.others.append(other)

    @property
    def read(self) -> list[Path]:
        """The folders of the other stores whose records are reused."""
        return [other.path for other in self.others]

    def index_file(self) -> Path | None:
        """Return the path of this machine's index of these records, if there is one. The file may be removed at any time."""
        return self._index.file()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), quarantine=self.quarantine, read=self.read), (self.path,)  # a folder: its state is read again

    # One record

    def record_path(self, key: str) -> Path:
        """Return the path of the existing or new record of ``key``; see :mod:`cglsuite.cells.storage.layout`."""
        sharded, flat = self.places(key)
        return flat if not os.path.exists(sharded) and os.path.exists(flat) else sharded

    def places(self, key: str) -> tuple[Path, Path]:
        """Return the two possible paths of the record of ``key``: sharded and flat."""
        sharded, flat = record_names(check_key(key))
        return self.path / CELLS / sharded, self.path / CELLS / flat

    def get(self, key: str) -> Record | None:
        """Return the record of ``key``, whatever its status, or ``None`` if it is missing or unreadable. An unreadable file is moved to
        ``corrupt/`` and reported, but a record with a later schema stays in place.
        """
        check_key(key)
        return None if key in self._set_aside else self._counting_record(key)

    def _counting_record(self, key: str) -> Record | None:
        """Return the record that counts among the copies of a key: in files, in shards and, if finished, in other stores."""
        record = self._stored_here(key)
        if self.others and (record is None or not record.done):
            theirs = [
                found for other in self.others if (found := other._counting_record(key)) is not None and (found.done or found.settled)
            ]
            return next((found for found in theirs if found.done), record or next(iter(theirs), None))
        return record

    def _stored_here(self, key: str) -> Record | None:
        record: Record | None = None
        self._kept.pop(key, None)
        for read in (*(partial(self._read, path) for path in self.places(key)), partial(self._packed_record, key)):
            if (other := read()) is not None and (other.done or record is None):
                record = other
            if record is not None and record.done:
                break
        if record is not None and record.training and record.beside is None:
            object.__setattr__(record, "beside", partial(self.curves_of, key, record.training["digest"]))
        return record

    def refuse_unreadable(self, key: str) -> None:
        """Raise an error if ``key`` has a record that cannot be read and so must not be replaced or removed.

        Raises:
            NewerSchemaError: a later version of the suite wrote it, so this version cannot read it; the message names the file.
            UnreadableRecordError: it cannot be read; the message names its owner and a remedy.
        """
        self._stored_here(key)
        self._refuse_kept(key)

    def _refuse_kept(self, key: str) -> None:
        if key in self._kept:
            raise type(self._kept[key])(f"{self._kept[key]}; the record is kept, and its cell is not run")

    def unreadable(self, key: str) -> str:
        """Explain why the last attempt to read the record of ``key`` failed, or return an empty string if it did not."""
        return str(self._kept.get(key, ""))

    def curves_of(self, key: str, digest: str) -> Curves:
        """Return the curves with this digest of the record of ``key``, from a separate file or from shards.

        Raises:
            NoCurvesError: there are none, or the stored ones have a different digest.
        """
        curves = read_curves(self.path, key, digest) or self._packed.curves().find(key, digest)
        for other in self.others if curves is None else ():
            with contextlib.suppress(NoCurvesError):
                return other.curves_of(key, digest)
        if curves is None:
            raise NoCurvesError(
                f"record {key[:12]}: its curves are not in {self.path}: they were not published with it, or were not stored "
                f"({curves_path(self.path, key, digest).relative_to(self.path)} is absent)"
            )
        return curves

    def stored_curves(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the digest, or its first digits, of all stored curves."""
        yield from sidecar_names(self.path)
        yield from self._packed.curves().names()

    def _packed_record(self, key: str) -> Record | None:
        """Return the record from the first readable shard; finished records take precedence."""
        latest: Record | None = None
        for copy in self._packed.copies(key):
            with contextlib.suppress(StoreError):
                record = self._readable(copy)[1]
                if record.done:
                    return record
                latest = latest or record
        return latest

    def _readable(self, copy: PackedCopy) -> tuple[bytes, Record]:
        """Return the result of :meth:`PackedCopy.read`; a failure is reported once per file."""
        try:
            return copy.read()
        except StoreError as error:
            if isinstance(error, NewerSchemaError):
                self._kept[copy.key] = NewerSchemaError(f"{copy}: {error}")
            self._report(Path(copy.path), f"record {copy.key[:12]}: {error}", None)
            raise

    def copies(self, key: str) -> list[FileCopy | PackedCopy]:
        """Return all existing copies of a record with any status: first those in files, then those in shards."""
        return [*(FileCopy(path, key) for path in self.places(key) if os.path.exists(path)), *self._packed.copies(key)]

    def cached(self, key: str) -> Record | None:
        """Return the record of ``key`` if it is a result (status ``done``).

        Raises:
            NewerSchemaError: see :meth:`refuse_unreadable`.
        """
        if (record := _if_done(self.get(key))) is None:
            self._refuse_kept(key)
        return record

    def outcome(self, key: str, since_ns: int | None = None) -> Record | None:
        """Return the record of ``key`` if it is a result or was written at or after ``since_ns``, the start of a run that does not try the
        cell again. Raises the same errors as :meth:`cached`.
        """
        if (record := self.get(key)) is None or not record.done:
            self._refuse_kept(key)
        return record if record is not None and (record.done or (since_ns is not None and self.attempted_since(key, since_ns))) else None

    def settled(self, key: str) -> Record | None:
        """Return the record of ``key`` if it is settled for some arithmetic (see :meth:`Record.settled_on`). It is not read again after a
        listing.
        """
        record = self._settled.pop(key, None) or self.get(key)
        return record if record is not None and record.settled_on(None) else None

    def find(self, keys: Iterable[str]) -> Iterator[tuple[str, Record | None]]:
        """Yield each key in ``keys`` once with its record from :meth:`get`, so that every file is read only once.

        Records are read lazily, so that counting thousands of them needs memory for only one.
        """
        for key in dict.fromkeys(keys):
            yield key, self.get(key)

    def put(self, record: Record, *, permit: Callable[[], bool] | None = None) -> bool:
        """Store ``record`` atomically, after its curves if they are available. A finished record is never replaced by an unfinished one,
        and a record with a later schema is never replaced. If a result is replaced by one with different arithmetic, the old result is
        stored as a conflict, since both are valid.

        Args:
            permit: called just before the rename, since a suspended runner may have lost its lease. If it returns False, the record is
                written only if there is none. Default: whether this object still holds its lease on the cell.

        Returns:
            Whether ``record`` is in the store now; if not, the existing record remains.

        Raises:
            StoreError: the disk is full or the folder cannot be written; an existing record remains. NewerSchemaError: see
                :meth:`refuse_unreadable`.
        """
        short = record.key[:12]
        known = self._stored_here(record.key)
        self._refuse_kept(record.key)
        if not record.done and _if_done(known) is not None:
            logger.warning("kept the finished record of %s; it was not replaced by one with status %s", short, record.status)
            return False
        if record.done and known is not None and known.done:
            self._keep_former(known, record)
        self._keep_curves(record)
        permit = permit or self._permit(record.key)
        if write_atomic(self.record_path(record.key), record.to_text().encode(), permit=permit, top=self.path):
            return True
        logger.warning("kept the record of %s: another runner has taken over its lease since this run started", short)
        return False

    def _keep_former(self, former: Record, record: Record) -> None:
        """Store a result that ``record`` replaces as a conflict if its arithmetic differs; on the same arithmetic a difference is
        reported."""
        if not (differences := compare(former, record)):
            return
        arithmetic = former.environment.get("arithmetic")
        if may_differ(former, record):
            content = former.to_text().encode()
            write_atomic(self.conflict_path(former.key, content), content)
            if (kept := self.kept_apart(record)) is not None:
                kept.unlink(missing_ok=True)  # it counts again
            logger.warning("%s: a result with different arithmetic was replaced and moved to %s/", record.label, CONFLICTS)
        elif arithmetic is not None and arithmetic == record.environment.get("arithmetic"):
            logger.warning("%s: a different result on the same arithmetic: %s", record.label, differences[0])

    def _keep_curves(self, record: Record) -> None:
        if not record.training:
            return
        if callable(record.beside) and curves_path(self.path, record.key, record.training["digest"]).exists():
            return
        with contextlib.suppress(NoCurvesError):
            write_curves(self.path, record.key, record.curves())

    def _permit(self, key: str) -> Callable[[], bool] | None:
        """Return the ``permit`` of :meth:`put` if the caller passes none."""
        return None

    @contextlib.contextmanager
    def set_aside(self, key: str) -> Iterator[None]:
        """Hide the record of ``key`` from this object within the block, so that the cell is run. The file remains until :meth:`put`
        replaces it. Raises the same errors as :meth:`refuse_unreadable`.
        """
        self.refuse_unreadable(key)
        self._set_aside.add(key)
        try:
            yield
        finally:
            self._set_aside.discard(key)

    def attempted_since(self, key: str, instant_ns: int) -> bool:
        """Return whether a record of ``key`` was written at or after ``instant_ns``, on the clock of this folder's file system."""
        return any(mark is not None and mark[1] >= instant_ns for mark in map(mark_of, self.places(key)))

    def moved_since(self, instant_ns: int) -> bool:
        """Return whether a record or a checkpoint was written after ``instant_ns``, by the modification times of their folders."""
        marks = map(mark_of, (*folders(self.path, self._report_unlisted), self.path / "checkpoints"))
        return any(mark is not None and mark[1] > instant_ns for mark in marks)

    def discard(self, key: str) -> None:
        """Remove the files that contain the record of ``key`` and its curves, if there are any. A packed record stays, since shards never
        change.

        Raises:
            NewerSchemaError: a later version of the suite wrote one of them; nothing is removed.
        """
        self.refuse_unreadable(key)
        try:
            for path in self.places(key):
                path.unlink(missing_ok=True)
            discard_curves(self.path, key)
        except OSError as error:
            raise store_error(error, Path(error.filename or self.path)) from error

    # Many records

    def present(self, keys: AbstractSet[str]) -> list[str]:
        """Return the sorted ``keys`` that have a record with any status. Folders are listed once, and no record is read."""
        shards = {shard_of(key) for key in keys}
        listed = (folder for folder in folders(self.path, self._report_unlisted) if folder.name in shards or folder.name == CELLS)
        present = {key_of(name) for folder in listed for name in names_in(folder, self._report_unlisted)}
        return sorted(keys & (present | set(self._packed.keys())))

    def record_files(self) -> list[Path]:
        """Return the files of records that are stored separately, sorted by key. A key may have two files (see
        :mod:`cglsuite.cells.storage.layout`). :meth:`keys` also includes records in shards.
        """
        return [self.path / CELLS / name for name in record_files(self.path, self._report_unlisted)]

    def conflict_files(self) -> list[Path]:
        """Return the sorted files of results that differ from the result with the same key in ``cells`` (see
        :mod:`cglsuite.commons.merging`).
        """
        return sorted(path for path in (self.path / CONFLICTS).glob(f"*{SUFFIX}") if not path.name.startswith("."))

    def conflict_path(self, name: str, content: bytes) -> Path:
        """Return the path at which ``content``, the record with the key ``name``, is stored as a conflict."""
        return self.path / CONFLICTS / f"{name}.{hashlib.sha256(content).hexdigest()[:12]}{SUFFIX}"

    def conflicts(self, key: str) -> Iterator[tuple[Path, Record]]:
        """Yield the readable results of ``key`` that are stored as conflicts, with their files."""
        for path in self.conflict_files():
            if path.name.startswith(f"{key}."):
                with contextlib.suppress(OSError, StoreError):
                    yield path, read_record_file(path, key)[1]

    def kept_apart(self, record: Record) -> Path | None:
        """Return the file that contains the result of ``record`` as a conflict, or None if there is no such file."""
        return next((path for path, kept in self.conflicts(record.key) if not compare(kept, record)), None)

    def keys(self) -> list[str]:
        """Return the sorted keys of all records with any status, including those in the other stores that are read. Misplaced files are
        reported.
        """
        for path in misplaced(self.path, self._report_unlisted):
            right = f"it is in the folder for different keys; move it to {shard_of(path.name)}/"
            self._report(path, right if is_key(key_of(path.name)) else "its name is not the key of a record; rename or remove it", None)
        theirs = itertools.chain.from_iterable(map(Records.keys, self.others))
        return sorted({*map(key_of, record_files(self.path, self._report_unlisted)), *self._packed.keys(), *theirs})

    def records(self) -> Iterator[Record]:
        """Yield all readable records, sorted by key."""
        return (record for key in self.keys() if (record := self._counting_record(key)) is not None)

    def summaries(self, keys: Iterable[str] | None = None) -> Iterator[tuple[str, Summary | None]]:
        """Yield each key in ``keys`` (default: all records) and the summary of its record, which is ``None`` if absent or unreadable.

        Files in this machine's index are not read again, so damage to them may go unnoticed until :meth:`get` reads them. A runner that
        must be certain calls :meth:`get` under its lease.
        """
        wanted = list(dict.fromkeys(self.keys() if keys is None else keys))
        if self.others:
            yield from self._summaries_of_all(wanted)
            return
        in_shards = self._packed.summaries(key for key in wanted if key not in self._set_aside)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            unpacked = self._in_files(batch, Summary, few=len(wanted) < _FEW)
            for key in batch:
                summary, packed = unpacked.get(key), in_shards.get(key)
                yield key, packed if packed is not None and (summary is None or (packed.done and not summary.done)) else summary

    def _summaries_of_all(self, wanted: Sequence[str]) -> Iterator[tuple[str, Summary | None]]:
        """Do the same with other stores being read: use theirs if they have a result and this one has none."""
        summaries = dict(self._alone(lambda: list(self.summaries(wanted))))
        for other in self.others:
            lacking = [key for key in wanted if (held := summaries[key]) is None or not held.done]
            theirs = other.summaries(key for key in lacking if key not in self._set_aside)
            summaries |= {
                key: summary
                for key, summary in theirs
                if summary is not None and (summary.done or (summary.settled and summaries[key] is None))
            }
        yield from summaries.items()

    def _alone(self, ask: Callable[[], _Answer]) -> _Answer:
        """Query this store without the other stores."""
        others, self.others = self.others, []
        try:
            return ask()
        finally:
            self.others = others

    def rows(self, keys: Iterable[str] | None = None) -> Iterator[Row]:
        """Yield the scalars of the records with ``keys`` (default: all), in no particular order. Unreadable records are skipped.

        Like :meth:`summaries`, it reads only the files that the index of this machine does not know, and no record in a shard.
        """
        wanted = list(dict.fromkeys(self.keys() if keys is None else keys))
        if self.others:
            rows = {row.key: row for row in self._alone(lambda: list(self.rows(wanted)))}
            for other in self.others:
                lacking = (key for key in wanted if key not in rows or not rows[key].done)
                theirs = other.rows(key for key in lacking if key not in self._set_aside)
                rows |= {row.key: row for row in theirs if row.done or (row.settled and row.key not in rows)}
            yield from rows.values()
            return
        in_shards, unpacked = set(self._packed.keys()), dict[str, Row | None]()
        for start in range(0, len(wanted), _BATCH):
            for key, row in self._in_files(wanted[start : start + _BATCH], Row, few=len(wanted) < _FEW).items():
                if row.done or key not in in_shards:
                    unpacked[key] = None
                    yield row
                else:
                    unpacked[key] = row
        rest = [key for key in wanted if unpacked.get(key, True) is not None and key not in self._set_aside]
        for row in self._packed.rows(rest):
            row_of_file = unpacked.get(row.key)
            yield row if row.done or row_of_file is None else row_of_file

    def completed_rows(self, catalogue: Catalogue, keys: Iterable[str] | None = None) -> Iterator[Row]:
        """Yield the :meth:`rows` of records. Metrics that are newer than a record are added, and user-defined metrics are recomputed with
        their current formulas, for which each record is read.
        """
        specs = {name: spec for name, spec in catalogue.specs(MetricSpec).items() if not spec.reference}
        if any(map(is_users, specs.values())):
            records = self.find(self.keys() if keys is None else keys)
            return (yield from (Row.of(completed(record, catalogue)) for _, record in records if record is not None))
        for row in self.rows(keys):
            newer = row.done and any(name not in row.metrics and row.setting in spec.settings for name, spec in specs.items())
            record = self._counting_record(row.key) if newer else None
            yield row if record is None else Row.of(completed(record, catalogue), row.sha256)

    def _in_files(self, keys: Sequence[str], kind: type[_Listed], *, few: bool) -> dict[str, _Listed]:
        """Return summaries or rows of records that have their own file: from the index, otherwise read and then indexed.

        Args:
            kind: what to list. few: there are so few records that opening the index is not worth it.
        """
        here = (self.path / CELLS).is_dir()  # a pulled store may have only shards
        for key in keys:
            self._kept.pop(key, None)
        marked = {key: place for key in keys if (place := self._name_and_mark(key)) is not None} if here else {}
        index = None if few or not marked else self._index
        held: dict[str, Any] = {}
        if index is not None:
            held = index.known(list(marked.values())) if kind is Summary else index.rows(list(marked.values()))
        read: list[tuple[str, Mark, Any]] = []
        listed: dict[str, _Listed] = {}
        for key, (name, mark) in marked.items():
            if (entry := held.get(name)) is None and (entry := self._read_listed(self.path / CELLS / name, kind)) is not None:
                read.append((name, mark, entry))
            flat = self.places(key)[1] if entry is None or not entry.done else None
            if flat is not None and flat.name != name and flat.exists():
                other = self._read_listed(flat, kind)
                entry = other if other is not None and (other.done or entry is None) else entry
            if entry is not None:
                listed[key] = entry
        if index is not None and read:
            index.add(read) if kind is Summary else index.add_rows(read)
        return listed

    def _name_and_mark(self, key: str) -> tuple[str, Mark] | None:
        """Return the name and mark of the file of ``key`` that :meth:`get` reads first; None if there is none or the key is set aside."""
        for name in record_names(check_key(key)):
            path = f"{self.path}/{CELLS}/{name}"
            if key not in self._set_aside and (mark := mark_of(path)) is not None:
                return name, mark
            try:
                if S_ISLNK(os.lstat(path).st_mode):
                    self._report(Path(path), "it is a broken link", None)
            except OSError as error:
                if error.errno not in _ABSENT:
                    self._unread(key, Path(path), error)
        return None

    def _read_listed(self, path: Path, kind: type[_Listed]) -> _Listed | None:
        with contextlib.suppress(OSError):
            if (record := self._read(path)) is not None:
                if record.settled:
                    self._settled[record.key] = record
                return kind.of(record, _sha256(path))
        return None

    def unfinished(self, keys: Iterable[str]) -> list[str]:
        """Return the ``keys`` without a result, in the given order; see :meth:`summaries`.

        Raises:
            NewerSchemaError: a later version of the suite wrote the record of one of them, which a run would replace.
            UnreadableRecordError: the record of one of them cannot be read.
        """
        unfinished = [key for key, summary in self.summaries(keys) if summary is None or not summary.done]
        if kept := [key for key in unfinished if key in self._kept]:
            error = self._kept[kept[0]]
            more = f", and {len(kept) - 1} others" if len(kept) > 1 else ""
            raise type(error)(
                f"{error}; the record is kept{more}. Nothing was run: make them readable, or choose another store with --store"
            )
        return unfinished

    def with_designs(self, designs: AbstractSet[str]) -> Iterator[Record]:
        """Yield the records with one of these ``designs``, sorted by key. Only these and new records are read."""
        unpacked = self.summaries(map(key_of, record_files(self.path, self._report_unlisted)))
        keys = {key for key, summary in unpacked if summary is not None and summary.design in designs} | self._packed.with_designs(designs)
        for key in self.keys() if keys else ():
            if key in keys and (record := self._counting_record(key)) is not None and record.design in designs:
                yield record
        for other in self.others:
            yield from (record for record in other.with_designs(designs) if record.key not in keys)

    def digests(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the SHA-256 (hex) of the content of every record file, sorted by key, followed by those of records in
        shards."""
        names = record_files(self.path, self._report_unlisted)
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            marks = [(name, mark) for name in batch if (mark := mark_of(f"{self.path}/{CELLS}/{name}")) is not None]
            known = self._index.known(marks) if len(names) >= _FEW else {}
            for name in batch:
                with contextlib.suppress(OSError):  # replaced or renamed at this moment, or not a regular file
                    yield key_of(name), known[name].sha256 if name in known else _sha256(self.path / CELLS / name)
        packed = self._packed.summaries(set(self._packed.keys()) - set(map(key_of, names)))
        yield from sorted((key, summary.sha256) for key, summary in packed.items())
        for other in self.others:
            yield from other.digests()

    # Unreadable files

    def _read(self, path: Path) -> Record | None:
        try:
            record = read_record(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._unread(path.stem, path, error)
        except NewerSchemaError as error:
            self._kept[path.stem] = NewerSchemaError(f"{path}: {error}")
            self._report(path, str(error), None)
        except StoreError as error:
            return self._quarantine(path, str(error))
        else:
            return record
        return None

    def _unread(self, key: str, path: Path, error: OSError) -> None:
        """Report a record that exists but cannot be read, so that nothing replaces it."""
        why = "; ".join(filter(None, [f"cannot be read: {error.strerror or error}", in_the_way(path, write=False)]))
        self._kept[key] = UnreadableRecordError(f"{path} {why}")
        self._report(path, why, None)

    def _report_unlisted(self, folder: Path, error: OSError) -> None:
        why = in_the_way(folder, write=False)
        self._report(folder, "; ".join(filter(None, [f"its records cannot be listed: {error.strerror or error}", why])), None)

    def _quarantine(self, path: Path, reason: str) -> Record | None:
        if not self.quarantine:
            self._report(path, reason, None)
            return None
        target = self.path / "corrupt" / path.name
        for n in range(1, 1000):
            if not target.exists():
                break
            target = target.with_name(f"{path.stem}.{n}{path.suffix}")
        try:
            make_folder(target.parent, self.path)
            os.replace(path, target)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = in_the_way(path, write=True) or str(error.strerror or error)
            self._kept[path.stem] = UnreadableRecordError(f"{path} is damaged ({reason}) and cannot be moved to corrupt/: {why}")
            self._report(path, reason, None)
            return None
        with contextlib.suppress(OSError, StoreError):
            # A runner may have written a good record between our reading and moving: restore it.
            record = read_record(target, path.stem)
            os.replace(target, path)
            return record
        self._report(path, reason, target)
        return None

    def _report(self, path: Path, reason: str, moved_to: Path | None) -> None:
        if path in self._reported and moved_to is None:
            return
        self._reported.add(path)
        self.problems.append(Problem(path, reason, moved_to))
        where = f"moved to {moved_to}" if moved_to else "left where it is"
        logger.warning("%s is ignored: %s (%s)", path, reason, where)


def _from_environment() -> list[str]:
    return [path for path in (variable("CGLSUITE_READ") or "").split(os.pathsep) if path.strip()]


def _if_done(record: Record | None) -> Record | None:
    return record if record is not None and record.done else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_regular(path, max_bytes=MAX_RECORD_BYTES)).hexdigest()


logger = logging.getLogger(__name__)
_MAGIC = b"cglsuite checkpoint 1"
_LEASE = ".lease"


class Store(Records):
    """A folder of records that several processes may share. Opening it writes nothing. Folders are created with their first file.

    Args:
        path: the folder; ``None`` means :func:`default_store`.
        quarantine, read: see :class:`Records`.

    ``problems`` lists the unreadable files found so far; each was logged once.
    """

    def __init__(self, path: str | Path | None = None, *, quarantine: bool = True, read: Iterable[str | Path] | None = None) -> None:
        super().__init__(path, quarantine=quarantine, read=read)
        self._watched: dict[str, Lease] = {}
        self._leases: WeakValueDictionary[str, Lease] = WeakValueDictionary()
        self._attempts: set[Path] = set()
        self._locks_tried = False
        self.saved = 0
        """Number of checkpoints that this object has saved."""

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return displayed("store_card", self)

    # Leases

    def _permit(self, key: str) -> Callable[[], bool] | None:
        lease = self._leases.get(key)
        return (lambda: lease.held) if lease is not None and lease.taken else None

    def lease(self, key: str, lifetime_s: float = LIFETIME_S) -> Lease | None:
        """Return a lease on ``key`` (a context manager), or None while another live runner holds it.

        Poll with the same store object while waiting: a runner on another machine counts as gone once this object has not seen its lease
        renewed for a lifetime. If a record of ``key`` is stored meanwhile, it is stored under this lease.
        """
        lease = self._watched.setdefault(key, Lease(self._lease_path(key), lifetime_s, self.path))
        if not lease.acquire():
            return None
        self._leases[key] = self._watched.pop(key)
        return lease

    def holder(self, key: str) -> Holder | None:
        """Return the holder of the lease on ``key``, if there is one, for display. The file is checked only once, so the holder may be
        ``silent``.
        """
        return read_holder(self._lease_path(key))

    def discard_stale_lease(self, key: str) -> bool:
        """Remove the lease on ``key`` if its holder is gone, as far as this object can tell, and return whether it is now free."""
        if not os.path.lexists(self._lease_path(key)):
            self._watched.pop(key, None)
            return True
        lease = self.lease(key)
        if lease is not None:
            lease.release()
        return lease is not None

    def warn_without_locks(self) -> None:
        """Warn once if the file system does not support file locks."""
        folder = self.path / "leases"
        if not self._locks_tried and not has_locks(folder, self.path):
            logger.warning(
                "the file system of %s does not support file locks: two runners that take over an abandoned cell at the same moment "
                "may both run it, which costs time but does not affect results",
                folder,
            )
        self._locks_tried = True

    def _lease_path(self, key: str) -> Path:
        return self._file("leases", key, _LEASE)

    # Attempts

    def attempt(self, key: str) -> Attempt:
        """Return a context manager for this process's attempt at the cell ``key``, which detects earlier attempts that died midway. The
        process must hold the lease.
        """
        path = self._file("attempts", key, ".txt")
        self._attempts.add(path)
        return Attempt(path, self.path)

    def withdraw_attempts(self) -> None:
        """Withdraw the attempts of this object. Called before the process exits properly without unwinding the stack."""
        for path in self._attempts:
            withdraw(path, os.getpid(), top=self.path)

    def withdraw_attempt(self, key: str, pid: int) -> None:
        """Withdraw the attempt of process ``pid`` on this machine, which was ended by its supervisor."""
        withdraw(self._file("attempts", key, ".txt"), pid, top=self.path)

    def forget_attempts(self, key: str) -> None:
        """Forget interrupted attempts at ``key``, since a record now states how the cell ended."""
        withdraw(self._file("attempts", key, ".txt"), os.getpid(), keep=False, top=self.path)

    # Checkpoints

    def checkpoint_path(self, prefix_key: str) -> Path:
        """Return the path of the checkpoint for ``prefix_key``."""
        return self._file("checkpoints", prefix_key, ".pt")

    def has_checkpoints(self) -> bool:
        """Return whether any checkpoint is saved."""
        return any((self.path / "checkpoints").glob("*.pt"))

    def save_checkpoint(self, prefix_key: str, payload: Mapping[str, Any]) -> None:
        """Store ``payload`` (tensors, str, int, float, bool, None, list, dict) atomically, with its checksum.

        Raises:
            StoreError: the disk is full or the folder cannot be written.
        """
        import torch

        path = self.checkpoint_path(prefix_key)
        body = _CountingStream()
        try:
            # Written often, so it must be cheap: the checksum detects damage after a crash of the machine.
            with new_file(path, durable=False, top=self.path) as file:
                file.write(_checkpoint_header(prefix_key, body))
                body.file = file
                torch.save(dict(payload), body)  # type: ignore[arg-type]
                file.seek(0)
                file.write(_checkpoint_header(prefix_key, body))
        except (OSError, RuntimeError) as error:
            failed = body.failed or error  # torch reports a failed write with its own message
            if not isinstance(failed, OSError):
                raise
            raise store_error(failed, path) from error
        self.saved += 1

    def load_checkpoint(self, prefix_key: str) -> dict[str, Any] | None:
        """Load the payload of ``prefix_key`` with tensors on the CPU, or return ``None`` if it is missing or damaged. A damaged file is
        moved to
        ``corrupt/`` and reported.
        """
        path = self.checkpoint_path(prefix_key)
        try:
            header, _, body = read_regular(path).partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "; ".join(filter(None, [f"cannot be read: {error.strerror or error}", in_the_way(path, write=False)]))
            self._report(path, f"{why}; its tasks are trained again", None)
            return None
        if not _is_header(header, prefix_key, body):
            self._quarantine(path, "a truncated, damaged or mismatched checkpoint; its tasks are trained again")
            return None
        import torch

        try:
            payload: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
        except Exception as error:  # noqa: BLE001 - torch may raise anything; a checkpoint only saves time
            self._quarantine(path, f"a checkpoint that torch cannot load ({type(error).__name__}: {error!s:.200})")
            return None
        return payload

    def drop_checkpoint(self, prefix_key: str) -> None:
        """Remove a checkpoint, if there is one."""
        with contextlib.suppress(OSError):
            self.checkpoint_path(prefix_key).unlink()

    def drop_checkpoints(self, prefix_keys: Iterable[str]) -> None:
        """Remove checkpoints, those with names that extend theirs after a ``-``, and abandoned leases on them."""
        for prefix_key in prefix_keys:
            path = self.checkpoint_path(prefix_key)
            for checkpoint in (path, *path.parent.glob(f"{prefix_key}-*{path.suffix}")):
                with contextlib.suppress(OSError):
                    checkpoint.unlink()
            for left in (self.path / "leases").glob(f"{prefix_key}-*{_LEASE}"):
                self.discard_stale_lease(left.stem)

    # Searches

    def put_search(self, digest: str, outcome: Mapping[str, Any]) -> Path:
        """Store the outcome of a hyperparameter search atomically, and return its path."""
        path = self._file("searches", digest, ".json")
        if os.path.lexists(path) and (why := in_the_way(path, write=False)):
            raise UnreadableRecordError(f"{path} cannot be read and will not be replaced: {why}")
        write_atomic(path, search_text(outcome), top=self.path)
        return path

    def get_search(self, digest: str) -> dict[str, Any] | None:
        """Return the stored outcome of a search, or ``None`` if it is missing or unreadable. An unreadable file is reported, and moved to
        ``corrupt/`` if it is damaged.
        """
        found = self._search_here(digest)
        theirs = (other.get_search(digest) for other in self.others if isinstance(other, Store)) if found is None else ()
        return next((outcome for outcome in theirs if outcome is not None), found)

    def _search_here(self, digest: str) -> dict[str, Any] | None:
        path = self._file("searches", digest, ".json")
        try:
            outcome = json.loads(read_regular(path))
            if not isinstance(outcome, dict):
                raise ValueError(f"expected an object, not {type(outcome).__name__}")
            return outcome
        except FileNotFoundError:
            return self._packed.searches().get(digest)
        except OSError as error:
            why = "; ".join(filter(None, [f"cannot be read: {error.strerror or error}", in_the_way(path, write=False)]))
            self._report(path, why, None)
            return None
        except ValueError as error:
            self._quarantine(path, f"an unreadable search outcome ({error})")
            return self._packed.searches().get(digest)

    def searches(self) -> list[str]:
        """Return the sorted digests of all searches with an outcome, including unreadable ones."""
        files = (path for path in (self.path / "searches").glob(f"*{SUFFIX}") if not path.name.startswith("."))
        theirs = (name for other in self.others if isinstance(other, Store) for name in other.searches())
        return sorted({*(path.stem for path in files), *self._packed.searches(), *theirs})

    def search_outcomes(self) -> list[dict[str, Any]]:
        """Return the outcomes of all searches, in the order of :meth:`searches`. Unreadable ones are omitted."""
        return [outcome for digest in self.searches() if (outcome := self.get_search(digest)) is not None]

    def trials(self) -> set[str]:
        """Return the keys of the cells that finished searches have scored."""
        return {key for outcome in self.search_outcomes() for row in outcome["candidates"] for key in row["keys"]}

    # Housekeeping

    def sweep(self) -> None:
        """Remove files that killed runners left behind: leases, attempts at cells that have a result, plans whose supervisors are gone, and
        temporary files older than an hour.

        A lease of another machine is removed once this object has not seen it renewed for a lifetime, so sweep again later. Nobody waits
        for a cell that has a record, so its lease is removed when it is more than an hour old.
        """
        sweep_temporaries(self.path)
        sweep_temporaries(self.path, pattern=f".*{TEMPORARY_SUFFIX}")
        for below in (f"{CELLS}/??", f"{CURVES}/??", f"{CODE}/??", f"{INPUTS}/??/*", "shards/??", "manifest/numbers"):
            sweep_temporaries(self.path, pattern=f"{below}/.*{TEMPORARY_SUFFIX}")
        sweep_temporaries(self.path, pattern=f"leases/*{_LEASE}.*")
        for plan in (self.path / "plans").glob("*.json"):
            if is_key(plan.stem) and (lease := self.lease(plan_lease(plan))) is not None:
                with lease:
                    plan.unlink(missing_ok=True)
        for attempt in (self.path / "attempts").glob("*.txt"):
            if is_key(attempt.stem) and (lease := self.lease(attempt.stem)) is not None:
                with lease:
                    if (record := self.get(attempt.stem)) is not None and record.done:
                        attempt.unlink(missing_ok=True)
        for left in (self.path / "leases").glob(f"*{_LEASE}"):
            if is_key(left.stem) and not self.discard_stale_lease(left.stem):
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > LONGEST_S and self.get(left.stem) is not None:
                        left.unlink()

    def _file(self, folder: str, name: str, suffix: str) -> Path:
        return self.path / folder / f"{check_key(name)}{suffix}"


def search_text(outcome: Mapping[str, Any]) -> bytes:
    """Serialise the outcome of a search for its file."""
    return (json.dumps(outcome, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def plan_lease(plan: Path) -> str:
    """Return the name of the lease that a supervisor holds as long as it needs the file ``plan``."""
    return f"plan-{plan.stem}"


class _CountingStream:
    """A stream that passes on and counts what is written, so that a checkpoint is never completely in memory."""

    def __init__(self) -> None:
        self.file: IO[bytes] | None = None
        self.size = self.checksum = 0
        self.failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write bytes or any buffer of bytes, and return their number."""
        if self.file is None:
            raise ValueError("nothing to write to")
        with memoryview(data).cast("B") as view:
            try:
                self.file.write(view)
            except OSError as error:
                self.failed = error
                raise
            self.size += len(view)
            self.checksum = zlib.crc32(view, self.checksum)
            return len(view)

    def flush(self) -> None:
        """Do nothing, since the file flushes itself."""


def _checkpoint_header(prefix_key: str, body: _CountingStream) -> bytes:
    """Return the first line of a checkpoint, whose length does not depend on the body."""
    # torch does not verify what it loads: without a checksum, a flipped bit would become a wrong result.
    return b"%s %s %020d %08x\n" % (_MAGIC, prefix_key.encode(), body.size, body.checksum)


def _is_header(line: bytes, prefix_key: str, body: bytes) -> bool:
    """Return whether this is the first line of a checkpoint with that body; earlier versions wrote its size without leading zeros."""
    start = b"%s %s " % (_MAGIC, prefix_key.encode())
    size, _, checksum = line.removeprefix(start).partition(b" ")
    return line.startswith(start) and size.isdigit() and int(size) == len(body) and checksum == b"%08x" % zlib.crc32(body)
