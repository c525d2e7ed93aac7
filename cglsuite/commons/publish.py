"""Publish the records of a store: those that a publication lacks become new shards and one new entry of its manifest.

It is a merge of the store into the publication, by the rules of :mod:`cglsuite.commons.merging`. Shards are written first, the entry
that names them last, so a publication that was cut off shows nothing of it; the same records give the same shards, so the next call writes
only what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cglsuite import __version__
from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.records.comparison import compare
from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.record import Curves, NoCurvesError, Record
from cglsuite.cells.storage.layout import CELLS
from cglsuite.cells.storage.packed import LocalFolder, Problem, Published
from cglsuite.cells.storage.shards import (
    CURVE_TABLE,
    FORMAT,
    JSONL,
    PARQUET,
    SEARCHES,
    Entry,
    EntryModel,
    Manifest,
    Piece,
    ShardPieces,
    entry_place,
    entry_text,
    is_line,
    number_entries,
    pack,
    pack_curves,
    place_of,
    read_manifest,
)
from cglsuite.cells.storage.store import Store
from cglsuite.commons.merging import Copy, Merge, Merging
from cglsuite.commons.places import RemoteFolder, open_place

__all__ = ["Progress", "publish"]

Progress = Callable[[str, int, int], object]
"""Called with what is being done, how much of it is done, and how much there is."""
MOST_RECORDS = 5000
_MOST_SHARD_BYTES = 2**26


@dataclass(kw_only=True)
class Publication:
    """What a call of :func:`publish` did.

    Args:
        merge: what happened to each record. entry: the name of the new entry of the manifest; None if there was nothing to add.
        records, shards, curves, written_bytes: what is new; ``curves`` counts the records whose curves were added.
    """

    merge: Merge
    entry: str | None = None
    records: int = 0
    shards: int = 0
    curves: int = 0
    written_bytes: int = 0


def publish(store: Store, url: str, *, curves: bool = False, progress: Progress = lambda *_: None) -> Publication:
    """Publish all records and outcomes of searches in ``store`` that the publication at ``url`` lacks.

    Records of an earlier schema are published as those of today's. So a publication is written anew, and as one, by publishing it to
    another folder.

    Args:
        url: a folder, or ``s3://BUCKET/FOLDER``. store: it moves nothing (``quarantine=False``).
        curves: publish the curves too that the store keeps and the publication lacks.

    Raises:
        UsageError: there is no store, or nothing can be published to ``url``.
        StoreError: the folder cannot be read or written, or its manifest was written by a later version.
    """
    place = open_place(url, writing=True)
    _check_different(store, place)
    progress("reading the manifest", 0, 1)
    manifest = read_manifest(place)
    for name, reason in manifest.newer:
        raise StoreError(f"{place}/{name}: {reason}; nothing was published")
    lost = _without_lost(place, manifest)
    seen = _Nearby(place, LocalFolder(store.path)) if isinstance(place, RemoteFolder) else place
    merging = _Publishing(store, Published(seen, manifest), progress)
    done = Publication(merge=merging.merged())
    done.merge.unreadable += [Problem(f"{place}/{name}", reason) for name, reason in (*manifest.problems, *lost)]
    pieces = []
    for rows, lines in merging.shards():
        packed = pack(rows, lines)
        shard = ShardPieces(
            records=packed.records,
            jsonl=_written(place, packed.jsonl, JSONL, done),
            parquet=_written(place, packed.parquet, PARQUET, done),
        )
        pieces.append(shard)
        done.records += packed.records
    done.shards = len(pieces)
    searches = _searches(place, merging.new_searches, done)
    tables = [_written(place, table, CURVE_TABLE, done) for table in merging.curve_tables()] if curves else []
    done.curves = merging.done.curves
    named = {str(problem.path) for problem in done.merge.unreadable}
    done.merge.unreadable += [problem for problem in store.problems if str(problem.path) not in named]
    if pieces or searches or tables:
        done.entry = _add_entry(place, manifest, pieces, searches, tables)
    number_entries(place, manifest, [done.entry] if done.entry else [])
    return done


def _check_different(store: Store, place: LocalFolder | RemoteFolder) -> None:
    if not store.path.is_dir():
        raise UsageError(f"there is no store at {store.path}: name the folder that holds cells/")
    if isinstance(place, LocalFolder) and place.path.exists():
        if place.path.samefile(store.path):
            raise UsageError(f"{store.path} is both the store and the place to publish to; expected different folders")
        if (place.path / CELLS).exists():
            raise UsageError(
                f"{place.path} is a store with records of its own: publish to a folder without {CELLS}/, or use `cglsuite merge`"
            )


def _without_lost(place: LocalFolder | RemoteFolder, manifest: Manifest) -> list[tuple[str, str]]:
    """Take shards whose files are missing or truncated out of ``manifest``, so that their records are published again."""
    lost = []
    for number, entry in enumerate(manifest.entries):
        kept = []
        for pieces in entry.model.shards:
            wrong = [
                (name, f"it has {size or 0:,} bytes; the manifest says {piece.bytes:,}")
                for piece, ending in ((pieces.jsonl, JSONL), (pieces.parquet, PARQUET))
                if (size := place.size(name := place_of(piece, ending))) != piece.bytes
            ]
            lost += wrong
            kept += [] if wrong else [pieces]
        if len(kept) < len(entry.model.shards):
            model = EntryModel(**{**dict(entry.model), "format": FORMAT, "shards": kept})
            manifest.entries[number] = Entry(name=entry.name, content=entry.content, model=model)
    return lost


def _written(place: LocalFolder | RemoteFolder, data: bytes, ending: str, done: Publication) -> Piece:
    """Write a file that is named by its content, unless it is there."""
    piece = Piece(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    if place.size(place_of(piece, ending)) != len(data):
        place.write(place_of(piece, ending), data)
        done.written_bytes += len(data)
    return piece


def _searches(place: LocalFolder | RemoteFolder, outcomes: Mapping[str, Any], done: Publication) -> Piece | None:
    import pyarrow as pa

    if not outcomes:
        return None
    text = json.dumps(outcomes, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    return _written(place, pa.Codec("zstd").compress(text, asbytes=True), SEARCHES, done)


def _add_entry(
    place: LocalFolder | RemoteFolder,
    manifest: Manifest,
    pieces: Sequence[ShardPieces],
    searches: Piece | None,
    curves: Sequence[Piece],
) -> str:
    """Add an entry; return its name."""
    named = {parent for entry in manifest.entries for parent in entry.model.parents}
    heads = [entry.name for entry in manifest.entries if entry.name not in named]
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    content = entry_text(suite=__version__, written=written, parents=heads, shards=pieces, searches=searches, curves=curves)
    name = hashlib.sha256(content).hexdigest()
    place.write(entry_place(name), content)
    return name


class _Nearby:
    """A publication elsewhere, of which the store that is published has pulled some files: those are read here."""

    def __init__(self, place: RemoteFolder, here: LocalFolder) -> None:
        self._place, self._here = place, here
        self.range = place.range

    def __str__(self) -> str:
        return str(self._place)

    def read(self, name: str, *, most: int) -> bytes:
        with contextlib.suppress(FileNotFoundError, StoreError):
            content = self._here.read(name, most=most)
            if hashlib.sha256(content).hexdigest() == name.rpartition("/")[2].partition(".")[0]:
                return content
        return self._place.read(name, most=most)


class _Publishing(Merging):
    """The merge of a store into a publication. What is taken is written by the caller, in shards."""

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
        """What was taken, a shard at a time: rows and lines, in the order of tables, so that similar records are neighbours."""
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
            if len(rows) == MOST_RECORDS or size >= _MOST_SHARD_BYTES:
                yield rows, lines
                rows, lines, size = [], [], 0
        if rows:
            yield rows, lines

    def _contents(self, keys: Sequence[str], apart: Sequence[Copy]) -> Iterator[tuple[Row, bytes]]:
        for start in range(0, len(keys), MOST_RECORDS):
            chunk = keys[start : start + MOST_RECORDS]
            rows = {row.key: row for row in self._store.rows(chunk)}
            for key in chunk:
                if (made := self._content(self.taken[key], rows.get(key))) is not None:
                    yield made
        for copy in apart:
            if (made := self._content(copy, None)) is not None:
                yield made

    def _content(self, copy: Copy, row: Row | None) -> tuple[Row, bytes] | None:
        """A record's row and line; the record is read only if ``row`` is not that of these bytes."""
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

    def curves(self) -> None:
        """They follow their records, in tables of their own."""

    def curve_tables(self) -> Iterator[bytes]:
        """The curves of published records that the store keeps and the publication lacks, a table at a time."""
        there = {(key, digest) for key, digest in self.published.kept_curves()}
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
            if size >= _MOST_SHARD_BYTES:
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

    def target_place(self, key: str) -> Path | str:
        return next(map(str, self.published.copies(key)), str(self.published.folder))

    def target_search(self, name: str) -> Mapping[str, Any] | None:
        return self.published.get_search(name)

    def blocked(self, key: str) -> Path | None:
        return None

    def _bring(self, key: str) -> None:
        copies = self.source.copies(key)
        if len(copies) == 1 and key not in self.published.packed:  # it is read once, when it is packed
            self.done.new.append(key)
            self.taken[key] = copies[0]
        else:
            super()._bring(key)

    def accept(self, copy: Copy, content: bytes, record: Record) -> None:
        self.taken[record.key] = copy

    def keep_apart(self, copy: Copy, content: bytes, record: Record) -> Path | str:
        """Publish it beside the other one, unless one with this result is published already."""
        for other in (*self.published.copies(record.key), *self._apart_copies.get(record.key, ())):
            with contextlib.suppress(OSError, StoreError):
                if not compare(other.read()[1], record):
                    return str(other)
        self._apart_copies.setdefault(record.key, []).append(copy)
        return str(self.published.folder)

    def accept_search(self, name: str, outcome: Mapping[str, Any]) -> None:
        self.new_searches[name] = outcome

    def keep_search_apart(self, name: str, outcome: Mapping[str, Any]) -> Path:
        return self._store.path / "searches" / f"{name}.json"  # it stays there

    def keep_conflict_of_search(self, path: Path) -> Path:
        return path

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        yield True
