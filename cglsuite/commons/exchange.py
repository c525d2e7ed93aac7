"""Publish the records of a store, and pull published records into one.

Publishing merges the store into the publication, and pulling merges the publication into the store. Both follow the rules of
:mod:`cglsuite.commons.merging`. Shards are written first and the manifest entry that names them last; an interrupted upload is therefore
never visible, and the next call resumes it, since the same records give the same shards. A pulled shard is written only if its bytes match
the digest in the manifest and every record in it matches its own digest, the schema and its row.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cglsuite import __version__
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.base.inputs import check_path, quoted
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.record import Curves, NoCurvesError, Record
from cglsuite.cells.storage.layout import CELLS
from cglsuite.cells.storage.packed import MAX_BYTES, LocalFolder, Problem, Published
from cglsuite.cells.storage.shards import (
    CURVE_TABLE,
    FORMAT,
    JSONL,
    PARQUET,
    SEARCHES,
    CurveTable,
    Entry,
    EntryModel,
    Manifest,
    Piece,
    ShardPieces,
    check,
    entry_place,
    entry_text,
    is_line,
    number_entries,
    pack,
    pack_curves,
    place_of,
    read_manifest,
    read_searches,
    read_table,
)
from cglsuite.cells.storage.store import Store
from cglsuite.commons.merging import Copy, Merge, Merging

Progress = Callable[[str, int, int], object]
"""Progress callback: called with the name of the current step, the number of items done and the total."""
MAX_RECORDS = 5000
_MAX_SHARD_BYTES = 2**26


@dataclass(kw_only=True)
class Publication:
    """The outcome of :func:`publish`.

    Args:
        merge: what happened to each record. entry: the name of the new manifest entry; None if there was nothing to add.
        records, shards, written_bytes: the numbers added. curves: the number of records whose curves were added.
    """

    merge: Merge
    entry: str | None = None
    records: int = 0
    shards: int = 0
    curves: int = 0
    written_bytes: int = 0


def publish(store: Store, url: str, *, curves: bool = False, progress: Progress = lambda *_: None) -> Publication:
    """Publish all records and search outcomes of ``store`` that are not yet in the publication at ``url``.

    Records of an earlier schema are converted to the current one. To rewrite and consolidate a publication, publish it to another folder.

    Args:
        url: a folder, or ``s3://BUCKET/FOLDER``. store: a store opened with ``quarantine=False``, so that it moves no files.
        curves: also publish curves that the store has and the publication lacks.

    Raises:
        UsageError: the store does not exist, or ``url`` cannot be published to.
        StoreError: the folder cannot be read or written, or its manifest was written by a later version.
    """
    place = open_place(url, writing=True)
    _check_different(store, place)
    progress("reading the manifest", 0, 1)
    manifest = read_manifest(place)
    for name, reason in manifest.newer:
        raise StoreError(f"{place}/{name}: {reason}; nothing was published")
    lost = _without_lost(place, manifest)
    seen = _LocalCopy(place, LocalFolder(store.path)) if isinstance(place, RemoteFolder) else place
    merging = _Publishing(store, Published(seen, manifest), progress)
    done = Publication(merge=merging.merged())
    done.merge.unreadable += [Problem(f"{place}/{name}", reason) for name, reason in (*manifest.problems, *lost)]
    pieces = []
    for rows, lines in merging.shards():
        packed = pack(rows, lines)
        shard = ShardPieces(
            records=packed.records,
            jsonl=_write_by_content(place, packed.jsonl, JSONL, done),
            parquet=_write_by_content(place, packed.parquet, PARQUET, done),
        )
        pieces.append(shard)
        done.records += packed.records
    done.shards = len(pieces)
    searches = _searches(place, merging.new_searches, done)
    tables = [_write_by_content(place, table, CURVE_TABLE, done) for table in merging.curve_tables()] if curves else []
    done.curves = merging.done.curves
    named = {str(problem.path) for problem in done.merge.unreadable}
    done.merge.unreadable += [problem for problem in store.problems if str(problem.path) not in named]
    if pieces or searches or tables:
        done.entry = _add_entry(place, manifest, pieces, searches, tables)
    number_entries(place, manifest, [done.entry] if done.entry else [])
    return done


def _check_different(store: Store, folder: LocalFolder | RemoteFolder) -> None:
    if not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name the folder that holds cells/")
    if isinstance(folder, LocalFolder) and folder.path.exists():
        if folder.path.samefile(store.path):
            raise UsageError(f"{store.path} is both the store and the place to publish to; expected different folders")
        if (folder.path / CELLS).exists():
            raise UsageError(
                f"{folder.path} is itself a store with records: publish to another folder, without {CELLS}/, or use `cglsuite merge`"
            )


def _without_lost(folder: LocalFolder | RemoteFolder, manifest: Manifest) -> list[tuple[str, str]]:
    """Remove shards with missing or truncated files from ``manifest``, so that their records are published again."""
    lost = []
    for number, entry in enumerate(manifest.entries):
        remaining = []
        for pieces in entry.model.shards:
            wrong = [
                (name, f"it has {size or 0:,} bytes, but the manifest lists {piece.bytes:,}")
                for piece, ending in ((pieces.jsonl, JSONL), (pieces.parquet, PARQUET))
                if (size := folder.size(name := place_of(piece, ending))) != piece.bytes
            ]
            lost += wrong
            remaining += [] if wrong else [pieces]
        if len(remaining) < len(entry.model.shards):
            model = EntryModel(**{**dict(entry.model), "format": FORMAT, "shards": remaining})
            manifest.entries[number] = Entry(name=entry.name, content=entry.content, model=model)
    return lost


def _write_by_content(folder: LocalFolder | RemoteFolder, data: bytes, ending: str, publication: Publication) -> Piece:
    """Write a file that is named by the digest of its content, unless it exists."""
    piece = Piece(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    if folder.size(place_of(piece, ending)) != len(data):
        folder.write(place_of(piece, ending), data)
        publication.written_bytes += len(data)
    return piece


def _searches(folder: LocalFolder | RemoteFolder, outcomes: Mapping[str, Any], publication: Publication) -> Piece | None:
    import pyarrow as pa

    if not outcomes:
        return None
    text = json.dumps(outcomes, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    return _write_by_content(folder, pa.Codec("zstd").compress(text, asbytes=True), SEARCHES, publication)


def _add_entry(
    folder: LocalFolder | RemoteFolder,
    manifest: Manifest,
    pieces: Sequence[ShardPieces],
    searches: Piece | None,
    curves: Sequence[Piece],
) -> str:
    """Add an entry to the manifest and return its name."""
    named = {parent for entry in manifest.entries for parent in entry.model.parents}
    heads = [entry.name for entry in manifest.entries if entry.name not in named]
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    content = entry_text(suite=__version__, written=written, parents=heads, shards=pieces, searches=searches, curves=curves)
    name = hashlib.sha256(content).hexdigest()
    folder.write(entry_place(name), content)
    return name


class _LocalCopy:
    """A remote publication that reads files from the local store if they have already been pulled."""

    def __init__(self, place: RemoteFolder, here: LocalFolder) -> None:
        self._place, self._target_record = place, here
        self.range = place.range

    def __str__(self) -> str:
        return str(self._place)

    def read(self, name: str, *, max_bytes: int) -> bytes:
        with contextlib.suppress(FileNotFoundError, StoreError):
            content = self._target_record.read(name, max_bytes=max_bytes)
            if hashlib.sha256(content).hexdigest() == name.rpartition("/")[2].partition(".")[0]:
                return content
        return self._place.read(name, max_bytes=max_bytes)


class _Publishing(Merging):
    """The merge of a store into a publication. The caller writes the accepted records in shards."""

    def __init__(self, store: Store, published: Published, progress: Progress) -> None:
        super().__init__(store, store, store.path)
        self.published, self._progress = published, progress
        self.new_searches: dict[str, Any] = {}
        self._apart_copies: dict[str, list[Copy]] = {}
        self._store = store

    def merged(self) -> Merge:
        done = super().merged()
        done.unreadable += self.published.problems
        return done

    def shards(self) -> Iterator[tuple[list[Row], list[bytes]]]:
        """Yield the accepted records as rows and lines, one shard at a time. The order is that of the table, so similar records are
        adjacent.
        """
        order = []
        for number, row in enumerate(self._store.rows(self.taken)):
            self._progress("listing records", number, len(self.taken))
            order.append((*(sys.intern(part) if isinstance(part, str) else part for part in row.order),))
        keys = [key for *_, key in sorted(order)]
        del order
        self.done.new = sorted(set(self.done.new) - (self.taken.keys() - set(keys)))  # what cannot be read is not published
        apart = [copy for copies in self._apart_copies.values() for copy in copies]
        rows: list[Row] = []
        lines: list[bytes] = []
        size = 0
        for number, (row, line) in enumerate(self._contents(keys, apart)):
            self._progress("packing records", number, len(keys) + len(apart))
            rows.append(row)
            lines.append(line)
            size += len(line)
            if len(rows) == MAX_RECORDS or size >= _MAX_SHARD_BYTES:
                yield rows, lines
                rows, lines, size = [], [], 0
        if rows:
            yield rows, lines

    def _contents(self, keys: Sequence[str], apart: Sequence[Copy]) -> Iterator[tuple[Row, bytes]]:
        for start in range(0, len(keys), MAX_RECORDS):
            chunk = keys[start : start + MAX_RECORDS]
            rows = {row.key: row for row in self._store.rows(chunk)}
            for key in chunk:
                if (content := self._content(self.taken[key], rows.get(key))) is not None:
                    yield content
        for copy in apart:
            if (content := self._content(copy, None)) is not None:
                yield content

    def _content(self, copy: Copy, row: Row | None) -> tuple[Row, bytes] | None:
        """Return a record's row and line. The record is parsed only if ``row`` does not match its bytes."""
        try:
            content = copy.content()
        except (OSError, StoreError) as error:
            self.done.unreadable.append(Problem(copy.path, str(error)))
            return None
        if row is not None and is_line(content) and hashlib.sha256(content).hexdigest() == row.sha256:
            return row, content
        if (read := self._read(copy)) is None:
            return None
        line = read[1].to_text().encode()
        return Row.of(read[1], hashlib.sha256(line).hexdigest()), line

    # Where records go

    def copy_curves(self) -> None:
        """Do nothing. Curves are written to separate tables after their records."""

    def curve_tables(self) -> Iterator[bytes]:
        """Yield tables of the curves of published records that are in the store but not in the publication."""
        there = {(key, digest) for key, digest in self.published.stored_curves()}
        waiting: list[tuple[str, Curves]] = []
        size = 0
        keys = self._store.keys()
        for number, key in enumerate(keys):
            self._progress("packing curves", number, len(keys))
            record = self._store.get(key)
            if record is None or not record.training or (key, record.training["digest"]) in there:
                continue
            try:
                waiting.append((key, record.curves()))
            except NoCurvesError:
                continue  # the store itself was published or merged without them
            self.done.curves += 1
            size += len(waiting[-1][1].text)
            if size >= _MAX_SHARD_BYTES:
                yield pack_curves(waiting)
                waiting, size = [], 0
        if waiting:
            yield pack_curves(waiting)

    def target_keys(self) -> Iterable[str]:
        return self.published.keys()

    def target_summaries(self, keys: Iterable[str]) -> Iterable[tuple[str, Summary | None]]:
        return self.published.summaries(keys)

    def target_record(self, key: str) -> Record | None:
        for copy in self.published.copies(key):
            with contextlib.suppress(StoreError):
                return copy.read()[1]
        return None

    def target_kept_apart(self, key: str) -> Iterator[Record]:
        for copy in (*self.published.copies(key), *self._apart_copies.get(key, ())):
            with contextlib.suppress(OSError, StoreError):
                yield copy.read()[1]

    def target_place(self, key: str) -> Path | str:
        return next(map(str, self.published.copies(key)), str(self.published.folder))

    def target_search(self, name: str) -> Mapping[str, Any] | None:
        return self.published.get_search(name)

    def blocked(self, key: str) -> Path | None:
        return None

    def _merge_key(self, key: str) -> None:
        copies = self.source.copies(key)
        if len(copies) == 1 and key not in self.published.packed:  # it is read once, when it is packed
            self.done.new.append(key)
            self.taken[key] = copies[0]
        else:
            super()._merge_key(key)

    def accept(self, copy: Copy, content: bytes, record: Record) -> None:
        self.taken[record.key] = copy

    def keep_conflict(self, copy: Copy, content: bytes, record: Record) -> Path | str:
        """Publish a different result alongside the existing one, unless it is already published."""
        for other in (*self.published.copies(record.key), *self._apart_copies.get(record.key, ())):
            with contextlib.suppress(OSError, StoreError):
                if not compare(other.read()[1], record):
                    return str(other)
        self._apart_copies.setdefault(record.key, []).append(copy)
        return str(self.published.folder)

    def accept_search(self, name: str, outcome: Mapping[str, Any]) -> None:
        self.new_searches[name] = outcome

    def keep_search_conflict(self, name: str, outcome: Mapping[str, Any]) -> Path:
        return self._store.path / "searches" / f"{name}.json"  # it stays there

    def keep_conflict_of_search(self, path: Path) -> Path:
        return path

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        yield True


_LEASE = "pull"
_SHOWN = 3


@dataclass(kw_only=True)
class Pull:
    """The outcome of :func:`pull`.

    Args:
        merge: what happened to each record that was not yet in the store's shards. entries: the names of the new manifest entries.
        shards, read_bytes: the number of shards copied and of bytes read. faults: files that cannot be used, with the reasons.
    """

    merge: Merge
    entries: list[str] = field(default_factory=list)
    shards: int = 0
    read_bytes: int = 0
    faults: list[Problem] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether everything published is now in the store and no two results contradict each other."""
        return self.merge.clean and not self.faults


def pull(url: str, store: Store, *, progress: Progress = lambda *_: None) -> Pull:
    """Copy the publication at ``url`` into ``store``, which is created if it does not exist.

    Args:
        url: a folder, ``s3://BUCKET/FOLDER``, ``http://`` or ``https://``.

    Raises:
        UsageError: the form of ``url`` is not supported, or it is the store itself.
        StoreError: nothing is published there, it cannot be read, the store cannot be written, or another pull is writing to it. Files that
            were already copied stay in the store.
    """
    place = open_place(url, writing=False)
    if isinstance(place, LocalFolder) and place.path.exists() and store.path.exists() and place.path.samefile(store.path):
        raise UsageError(f"{store.path} is both the publication and the store; expected different folders")
    progress("reading the manifest", 0, 1)
    there = read_manifest(place)
    if not there.entries and not there.problems:
        raise StoreError(f"nothing is published at {place}: expected a folder with manifest/, which `cglsuite publish` writes")
    lease = store.lease(_LEASE)
    if lease is None:
        holder = store.holder(_LEASE) or "another process"
        raise StoreError(f"another pull into {store.path} is running ({holder}): try again once it has ended")
    with lease:
        return _Pulling(place, store, progress).pulled(there)


class _Pulling:
    def __init__(self, place: LocalFolder | RemoteFolder, store: Store, progress: Progress) -> None:
        self.place, self.store, self.progress = place, store, progress
        self.here = LocalFolder(store.path)
        self.faults: list[Problem] = []
        self.shards = self.read_bytes = 0

    def pulled(self, manifest: Manifest) -> Pull:
        mine = read_manifest(self.here)
        known = {entry.name: entry for entry in mine.entries}
        for name, reason in manifest.problems:
            self._fault(name, reason)
        new = self._fetch(manifest, known)
        source = Published(self.here, Manifest(entries=new))
        merging = _Adopting(source, self.store, str(self.place))
        done = Pull(merge=merging.merged(), faults=self.faults, shards=self.shards, read_bytes=self.read_bytes)
        for entry in new:
            if entry.name not in known:
                self.here.write(entry_place(entry.name), entry.content)
                done.entries.append(entry.name)
        number_entries(self.here, mine, [entry.name for entry in manifest.entries])
        # Files that were not copied are already reported as faults, and files that were missing here have been copied.
        reported = {str(problem.path) for problem in source.problems}
        done.merge.unreadable = [p for p in done.merge.unreadable if str(p.path) not in reported and not self._is_pulled(Path(p.path))]
        return done

    def _is_pulled(self, path: Path) -> bool:
        return path.exists() and any(path.is_relative_to(self.store.path / folder) for folder in ("manifest", "shards"))

    def _fetch(self, manifest: Manifest, known: dict[str, Entry]) -> list[Entry]:
        """Copy the files that the store lacks, and return the entries that are new or were incomplete."""
        wanted = sum(len(entry.model.shards) for entry in manifest.entries)
        seen, changed = 0, []
        for entry in manifest.entries:
            copied = self._searches(entry)
            for piece in entry.model.curves:
                copied |= self._curves(piece)
            for pieces in entry.model.shards:
                self.progress("copying shards", seen, wanted)
                copied |= self._shard(pieces)
                seen += 1
            if copied or entry.name not in known:
                changed.append(entry)
        return changed

    def _shard(self, pieces: ShardPieces) -> bool:
        """Copy and verify a shard unless the store already has it. Return whether it was copied."""
        if all(self._is_stored(piece, ending) for piece, ending in ((pieces.jsonl, JSONL), (pieces.parquet, PARQUET))):
            return False
        import pyarrow as pa

        try:
            jsonl, parquet = self._copy(pieces.jsonl, JSONL), self._copy(pieces.parquet, PARQUET)
            table = read_table(pa.BufferReader(parquet))
            if table.num_rows != pieces.records:
                raise StoreError(f"its Parquet file has {table.num_rows} rows, but the manifest lists {pieces.records} records")
            wrong = list(check(jsonl, table))
            if wrong:
                more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
                raise StoreError("; ".join(wrong[:_SHOWN]) + more)
        except FileNotFoundError:
            self._fault(place_of(pieces.jsonl, JSONL), f"the shard is missing, although the manifest names it: {pieces.records} records")
            return False
        except StoreError as error:
            self._fault(place_of(pieces.jsonl, JSONL), f"{error}: its {pieces.records} records are left out")
            return False
        self.here.write(place_of(pieces.jsonl, JSONL), jsonl)
        self.here.write(place_of(pieces.parquet, PARQUET), parquet)
        self.shards += 1
        return True

    def _searches(self, entry: Entry) -> bool:
        piece = entry.model.searches
        if piece is None or self._is_stored(piece, SEARCHES):
            return False
        try:
            content = self._copy(piece, SEARCHES)
            read_searches(content, piece.sha256)
        except FileNotFoundError:
            self._fault(place_of(piece, SEARCHES), "outcomes of searches are missing, although the manifest names them")
            return False
        except StoreError as error:
            self._fault(place_of(piece, SEARCHES), str(error))
            return False
        self.here.write(place_of(piece, SEARCHES), content)
        return True

    def _curves(self, piece: Piece) -> bool:
        """Copy a table of curves. The digest of each curve is checked when the curve is read."""
        import pyarrow as pa

        if self._is_stored(piece, CURVE_TABLE):
            return False
        name = place_of(piece, CURVE_TABLE)
        try:
            content = self._copy(piece, CURVE_TABLE)
            CurveTable(pa.BufferReader(content), name)
        except FileNotFoundError:
            self._fault(name, "curves are missing, although the manifest names them")
            return False
        except StoreError as error:
            self._fault(name, str(error))
            return False
        self.here.write(name, content)
        return True

    def _is_stored(self, piece: Piece, ending: str) -> bool:
        name = place_of(piece, ending)
        if self.here.size(name) != piece.bytes:
            return False
        with contextlib.suppress(FileNotFoundError, StoreError):
            return hashlib.sha256(self.here.read(name)).hexdigest() == piece.sha256
        return False

    def _copy(self, piece: Piece, ending: str) -> bytes:
        """Read a file of the publication, and check it against the digest in the manifest."""
        name = place_of(piece, ending)
        size = self.place.size(name)
        if size is not None and size != piece.bytes:
            raise StoreError(f"{name} has {size:,} bytes, but the manifest lists {piece.bytes:,}: the file was truncated or altered")
        content = self.place.read(name, max_bytes=min(piece.bytes, MAX_BYTES))
        self.read_bytes += len(content)
        digest = hashlib.sha256(content).hexdigest()
        if digest != piece.sha256:
            raise StoreError(
                f"{name} ({len(content):,} bytes) has the digest {digest[:12]}, which is not the one in the manifest: "
                "the file was truncated or altered"
            )
        return content

    def _fault(self, name: str, reason: str) -> None:
        self.faults.append(Problem(f"{self.place}/{name}", reason))


class _Adopting(Merging):
    """The merge of shards that are already copied but not yet in the manifest. Only conflicting results are copied as files."""

    def _merge_key(self, key: str) -> None:
        copies = self.source.copies(key)
        if len(copies) == 1 and self._is_new(key):  # it was read when its shard was verified
            self.done.new.append(key)
            self.taken[key] = copies[0]
        else:
            super()._merge_key(key)

    def _is_new(self, key: str) -> bool:
        return key not in self._there

    def records(self) -> None:
        self._there = set(self.target.keys())
        super().records()

    def copy_curves(self) -> None:
        """Do nothing. Tables of curves are copied as they are."""

    def blocked(self, key: str) -> Path | None:
        return None

    def accept(self, copy: Copy, content: bytes, record: Record) -> None:
        self.taken[record.key] = copy

    def accept_search(self, name: str, outcome: object) -> None:
        pass

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        yield True  # no record is overwritten


_Result = TypeVar("_Result")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)
_READ_ONLY = ("http", "https")
_REMOTE = ("s3", *_READ_ONLY)
STALLED_S = 60.0
"""The number of seconds for which a web server may send nothing before the transfer is stopped."""
_SLOWEST = 1000
"""The lowest average speed allowed for a transfer, in bytes per second."""
_CHUNK = 2**16
_CODINGS = ("identity", "gzip", "x-gzip", "deflate")
_ANY_HEADER = 47  # of gzip or zlib


def shown_url(url: str) -> str:
    """Return ``url`` without its user name and password."""
    return re.sub(r"://[^/@]*@", "://", url)


def open_place(url: str, *, writing: bool) -> LocalFolder | RemoteFolder:
    """Open the folder at ``url``: a path, or a ``file://``, ``s3://``, ``http://`` or ``https://`` address.

    Raises:
        UsageError: the scheme is not supported, a web server is to be written to, or a package needed for the scheme is not installed.
    """
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else "file"
    shown = quoted(shown_url(url), 200)
    if scheme == "file":
        try:
            path = check_path(url[len(match[0]) :] if match else url).expanduser().absolute()
        except ValueError as error:
            raise UsageError(f"{shown}: {error}") from error
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file: expected a folder")
        return LocalFolder(path)
    if scheme not in _REMOTE or not _host(url):
        raise UsageError(f"{shown}: expected a folder, s3://BUCKET/FOLDER, or (to pull from) http:// or https://")
    if writing and scheme in _READ_ONLY:
        raise UsageError(f"{shown}: cannot publish to a web server; publish to a folder or to s3://, and let the server serve that folder")
    return RemoteFolder(url.rstrip("/"), scheme, anonymous=not writing)


def _host(url: str) -> str:
    """Return the server or bucket of an address, or an empty string if the address is invalid, such as ``http://[::1``."""
    try:
        parts = urlsplit(url)
        return parts.netloc if parts.port is None or parts.port else ""
    except ValueError:
        return ""


class RemoteFolder:
    """A remote folder, accessed with fsspec (see :class:`cglsuite.cells.storage.shards.Folder`).

    Args:
        anonymous: read buckets anonymously if this machine has no credentials.
    """

    def __init__(self, url: str, scheme: str, *, anonymous: bool) -> None:
        import fsspec

        self.shown = shown_url(url)
        self.lists = scheme not in _READ_ONLY
        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        try:
            if not self.lists:
                options["client_kwargs"] = _client()
            if scheme == "s3" and anonymous and not _has_credentials():
                options["anon"] = True
            self._files, self._root = fsspec.core.url_to_fs(url, **options)
        except ImportError as error:
            extra = "cglsuite[s3]" if scheme == "s3" else "fsspec[http]"
            raise UsageError(
                f"{self.shown}: the library that reads this address is not installed; run python -m pip install '{extra}' ({error})"
            ) from error

    def __str__(self) -> str:
        return self.shown

    def _done(self, action: str, name: str, call: Callable[[], _Result]) -> _Result:
        """Run ``call`` and turn failures, except for FileNotFoundError, into errors that name the file."""
        try:
            return call()
        except (FileNotFoundError, FileExistsError, StoreError):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {shown_url(str(error)):.200}" if str(error) else type(error).__name__
            raise StoreError(
                f"{self.shown}/{name} cannot be {action}: {message}. Existing files were not changed; try again later"
            ) from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if the file does not exist or the server does not report its size."""
        try:
            info = self._done("looked up", name, lambda: self._files.info(self._path(name)))
        except FileNotFoundError:
            return None
        size = info.get("size")
        return size if isinstance(size, int) else None

    def read(self, name: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Return the content of a file, which may have at most ``max_bytes`` bytes."""
        size = self.size(name)
        if size is not None and size > max_bytes:
            raise StoreError(f"{self.shown}/{name} has {size:,} bytes; expected at most {max_bytes:,}")
        if not self.lists:
            return self._done("read", name, lambda: self._body(name, max_bytes))
        # Request no more bytes than the bucket has declared.
        part = {"start": 0, "end": size} if size else {}
        content: bytes = self._done("read", name, lambda: self._files.cat_file(self._path(name), **part))
        if len(content) > max_bytes:
            raise StoreError(f"{self.shown}/{name} is larger than {max_bytes:,} bytes; expected no more")
        return content

    def range(self, name: str, start: int, length: int) -> bytes:
        """Return ``length`` bytes of a file, beginning at ``start``."""
        if not self.lists:
            return self._done("read", name, lambda: self._body(name, length, {"Range": f"bytes={start}-{start + length - 1}"}))
        content: bytes = self._done("read", name, lambda: self._files.cat_file(self._path(name), start=start, end=start + length))
        return content

    def _body(self, name: str, max_bytes: int, headers: Mapping[str, str] | None = None) -> bytes:
        """Read a web server's response in decompressed chunks, up to ``max_bytes`` bytes."""
        from fsspec.asyn import sync

        async def body() -> bytes:
            session, url = await self._files.set_session(), self._path(name)
            async with session.get(self._files.encode_url(url), headers=headers, **self._files.kwargs) as answer:
                self._files._raise_not_found_for_status(answer, url)
                coding = answer.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
                if coding not in _CODINGS:
                    raise StoreError(f"{self.shown}/{name} has the content encoding {quoted(coding)}; expected 'gzip' or no encoding")
                inflate = None if coding == "identity" else zlib.decompressobj(_ANY_HEADER)
                content, came, began = bytearray(), 0, time.monotonic()
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    came += len(chunk)
                    content += chunk if inflate is None else inflate.decompress(chunk, max_bytes + 1 - len(content))
                    if max(came, len(content)) > max_bytes + (_CHUNK if inflate else 0) or len(content) > max_bytes:
                        raise StoreError(f"{self.shown}/{name} is larger than {max_bytes:,} bytes; expected no more")
                    if (waited := time.monotonic() - began) > STALLED_S + came / _SLOWEST:
                        raise StoreError(
                            f"{self.shown}/{name} was downloading too slowly ({came:,} bytes in {waited:.0f} s), so the "
                            "download was stopped; try again later"
                        )
                return bytes(content)

        try:
            content: bytes = sync(self._files.loop, body)
        except TimeoutError as error:
            raise StoreError(f"{self.shown}/{name} cannot be read: the server has sent nothing for {STALLED_S:g} s") from error
        return content

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        try:
            names = self._done("listed", folder, lambda: self._files.ls(self._path(folder), detail=False))
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in names]

    def write(self, name: str, data: bytes) -> None:
        """Write ``data`` to a file. In a bucket, a partially written object is never visible."""
        self._put(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless it exists. A server without conditional writes may overwrite a file created in the meantime."""
        if self.size(name) is not None:
            return False
        try:
            self._put(name, data, mode="create")
        except FileExistsError:
            return False
        return True

    def _put(self, name: str, data: bytes, **how: str) -> None:
        try:
            self._done("written", name, lambda: self._files.pipe_file(self._path(name), data, **how))
        except FileNotFoundError as error:
            raise StoreError(f"{self.shown}/{name} cannot be written: {error}: create the bucket first") from error


def _client() -> dict[str, Any]:
    """Return options for the HTTP client: no automatic decompression, and a timeout for servers that stop responding."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=STALLED_S, sock_read=STALLED_S)
    return {"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}, "timeout": timeout}


def _has_credentials() -> bool:
    """Return whether this machine has AWS credentials for buckets."""
    from botocore.session import get_session

    return get_session().get_credentials() is not None
