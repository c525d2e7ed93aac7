"""The packed tier of a store: records in shards listed by a manifest, in addition to records in separate files.

A pulled store has both tiers, and a folder to which results are published has only this one. Shards are read-only, so new records are
written to separate files. If a key has several records, the first finished one in the order of the manifest's entries counts. If none is
finished, the first one counts.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import new_file, store_error
from cglsuite.base.errors import StoreError
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

    from cglsuite.cells.records.record import Curves
    from cglsuite.cells.storage.shards import CurveTables, Entry, Manifest, ShardPieces


_KEY = re.compile(r"[0-9a-f]{16,128}", re.ASCII)
_KEPT_BYTES = 2**28
"""The maximum number of bytes of decompressed frames in the cache. Every shard orders its records by key, so reading all records by key
alternates between all shards, and a plan's cells can be anywhere. A frame that is dropped too early is decompressed again for almost
every one of its records."""
MAX_BYTES = 2**30


@dataclass(frozen=True)
class Problem:
    """An unreadable file (a text if it is remote), the reason, and the path that it was moved to (None = not moved)."""

    path: Path | str
    reason: str
    moved_to: Path | None = None


class LocalFolder:
    """A local folder that contains a publication (see :class:`cglsuite.cells.storage.shards.Folder`)."""

    lists = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def read(self, name: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Return the content of a file."""
        path = self.path / name
        try:
            if path.stat().st_size > max_bytes:
                raise StoreError(f"{path} has {path.stat().st_size:,} bytes; expected at most {max_bytes:,}")
            return read_regular(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error

    def range(self, name: str, start: int, length: int) -> bytes:
        """Read a part of a file."""
        try:
            with open(self.path / name, "rb") as file:
                file.seek(start)
                return file.read(length)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / name} cannot be read: {error}") from error

    def size(self, name: str) -> int | None:
        """Return the size of a regular file in bytes, or None if there is no such file."""
        try:
            status = (self.path / name).stat()
        except OSError:
            return None
        return status.st_size if S_ISREG(status.st_mode) else None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        try:
            return [path.name for path in (self.path / folder).iterdir() if not path.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(f"{self.path / folder} cannot be listed: {error.strerror or error}") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically."""
        self._put(name, data, exclusive=False)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless it exists, and return whether it was written."""
        return self._put(name, data, exclusive=True)

    def _put(self, name: str, data: bytes, *, exclusive: bool) -> bool:
        path = self.path / name

        try:
            with new_file(path, settle=_name_once if exclusive else os.replace, top=self.path) as file:
                file.write(data)
        except FileExistsError:
            if exclusive:
                return False
            raise
        except OSError as error:
            raise store_error(error, path, "another DIR") from error
        return True


def _name_once(temporary: Path, path: Path) -> None:
    """Rename ``temporary`` to ``path`` unless that exists: by a link or, without links, by creating the file exclusively.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        with open(path, "xb") as file:
            file.write(temporary.read_bytes())
    temporary.unlink()


class PackedCopy:
    """A record in a shard."""

    def __init__(self, shard: _Shard, number: int, key: str, sha256: str) -> None:
        self._shard, self._number, self.key, self.sha256 = shard, number, key, sha256

    def __str__(self) -> str:
        return f"{self._shard.jsonl} (record {self.key[:12]})"

    @property
    def path(self) -> str:
        """The shard's file that contains the record, for reports."""
        return self._shard.jsonl

    def content(self) -> bytes:
        """Return the record's line after checking its digest.

        Raises:
            StoreError: the line is missing or damaged.
        """
        return self._shard.line(self._number, self.sha256)

    def read(self) -> tuple[bytes, Record]:
        """Return the line and the record parsed from it."""
        content = self.content()
        record = Record.from_json(content)
        if record.key != self.key:
            raise StoreError(f"its place in the shard contains the record of another key ({record.key[:16]})")
        return content, record


class _Frames:
    """A cache of decompressed frames of one folder's shards. Beyond ``_KEPT_BYTES`` the least recently used frames are dropped."""

    def __init__(self) -> None:
        self._bytes, self._held = 0, OrderedDict[Hashable, bytes]()

    def get(self, name: Hashable, read: Callable[[], bytes]) -> bytes:
        """Return the frame with this name from the cache, or else from ``read``."""
        if (content := self._held.get(name)) is None:
            content = read()
        self._bytes += len(content) - len(self._held.pop(name, b""))
        self._held[name] = content
        while self._bytes > _KEPT_BYTES and len(self._held) > 1:
            self._bytes -= len(self._held.popitem(last=False)[1])
        return content


class _Shard:
    """A shard of a folder; ``table`` holds what listings read."""

    def __init__(self, folder: Any, pieces: ShardPieces, frames: _Frames) -> None:
        from cglsuite.cells.storage import shards
        from cglsuite.cells.storage.shards import place_of

        self.folder, self.pieces, self._frames = folder, pieces, frames
        self._name = place_of(pieces.jsonl, shards.JSONL)
        self._parquet = place_of(pieces.parquet, shards.PARQUET)
        self._local = isinstance(folder, LocalFolder)
        if self._local and (size := folder.size(self._name)) != pieces.jsonl.bytes:
            state = "missing" if size is None else f"truncated or altered: {size:,} bytes instead of {pieces.jsonl.bytes:,}"
            raise StoreError(f"{self.jsonl} is {state}; its {pieces.records} records are skipped: `cglsuite pull` downloads them again")
        self.table = self._read([*shards.SUMMARY, *shards.PLACE])
        if self.table.num_rows != pieces.records:
            raise StoreError(f"{self.parquet} has {self.table.num_rows} rows, but the manifest says {pieces.records} records")
        self._places: dict[str, list[int]] | None = None

    @property
    def jsonl(self) -> str:
        return f"{self.folder}/{self._name}"

    @property
    def parquet(self) -> str:
        return f"{self.folder}/{self._parquet}"

    def _read(self, columns: list[str] | None) -> pa.Table:
        import pyarrow as pa

        from cglsuite.cells.storage.shards import read_table

        try:
            if self._local:
                if self.folder.size(self._parquet) is None:  # Arrow would wait for a process to write into a pipe
                    raise FileNotFoundError
                return read_table(self.folder.path / self._parquet, columns)
            return read_table(pa.BufferReader(self.folder.read(self._parquet, max_bytes=MAX_BYTES)), columns)
        except FileNotFoundError as error:
            raise StoreError(f"{self.parquet} is missing") from error
        except StoreError as error:
            raise StoreError(f"{self.parquet}: {error}") from error

    def rows(self, numbers: list[int]) -> Iterator[Row]:
        from cglsuite.cells.storage.shards import rows_of

        table = self._read(None)
        yield from rows_of(table if len(numbers) == table.num_rows else table.take(numbers))

    def line(self, number: int, sha256: str) -> bytes:
        from cglsuite.cells.storage.shards import PLACE, Position

        if self._places is None:
            self._places = {name: self.table.column(name).to_pylist() for name in PLACE}
        at = Position(*(self._places[name][number] for name in PLACE))
        frame = self._frames.get((self._name, at.frame), partial(self._frame, at.frame, at.frame_bytes, at.frame_size))
        line = frame[at.line : at.line + at.line_bytes]
        if hashlib.sha256(line).hexdigest() != sha256:
            raise StoreError("its bytes do not match the digest in its shard")
        return line

    def _frame(self, start: int, length: int, size: int) -> bytes:
        from cglsuite.cells.storage.shards import read_frame

        try:
            compressed = self.folder.range(self._name, start, length)
        except FileNotFoundError as error:
            raise StoreError("the shard is missing: `cglsuite pull` downloads it again") from error
        if len(compressed) != length:
            raise StoreError("the shard is truncated: `cglsuite pull` downloads it again")
        return read_frame(compressed, size)


class Packed:
    """The packed records in a folder.

    Args:
        folder: where the publication is. report: called with the name of a file that cannot be used, and the reason.
        manifest: the entries to read; default: all, reloaded whenever the manifest's folder changes.
    """

    def __init__(self, folder: Any, report: Callable[[str, str], object], manifest: Manifest | None = None) -> None:
        self.folder, self._report, self._frames = folder, report, _Frames()
        self._fixed = manifest
        self._state: object = None
        self._entries: dict[str, Entry] = {}
        self._shards: list[_Shard] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._others: dict[str, list[tuple[int, int]]] = {}
        self._searches: dict[str, Any] | None = None
        self._curves: CurveTables | None = None
        if manifest is not None:
            self._load(manifest)

    def _refresh(self) -> Packed:
        """Return this object, updated with shards that were added since."""
        if self._fixed is None:
            state = self._marks()
            if state != self._state:
                self._state = state
                if state is None:
                    self._shards, self._places, self._others, self._searches, self._curves = [], {}, {}, {}, None
                else:
                    from cglsuite.cells.storage.shards import read_manifest

                    manifest = read_manifest(self.folder, self._entries)
                    self._load(manifest)
        return self

    def _marks(self) -> object:
        marks = []
        for name in ("manifest", "manifest/numbers"):
            try:
                marks.append((self.folder.path / name).stat().st_mtime_ns)
            except OSError:
                marks.append(None)
        return marks if marks[0] is not None else None

    def _load(self, manifest: Manifest) -> None:
        from cglsuite.cells.storage.shards import PARQUET, place_of

        for name, reason in manifest.problems:
            self._report(f"{self.folder}/{name}", reason)
        known = {shard.pieces: shard for shard in self._shards}
        self._entries = {entry.name: entry for entry in manifest.entries}
        self._shards, self._places, self._others, self._searches, self._curves = [], {}, {}, None, None
        done: dict[str, bool] = {}
        for pieces in dict.fromkeys(pieces for entry in manifest.entries for pieces in entry.model.shards):
            try:
                shard = known.get(pieces) or _Shard(self.folder, pieces, self._frames)
            except StoreError as error:
                self._report(f"{self.folder}/{place_of(pieces.parquet, PARQUET)}", str(error))
                continue
            self._place(len(self._shards), shard, done)
            self._shards.append(shard)

    def _place(self, at: int, shard: _Shard, done: dict[str, bool]) -> None:
        keys, statuses = shard.table.column("key").to_pylist(), shard.table.column("status").to_pylist()
        for number, (key, status) in enumerate(zip(keys, statuses, strict=True)):
            finished = status == "done"
            if key not in self._places:
                if _KEY.fullmatch(key) is None:
                    self._report(shard.parquet, f"{key[:60]!r} is not the key of a record")
                    continue
                self._places[key], done[key] = (at, number), finished
            elif finished and not done[key]:
                self._others.setdefault(key, []).append(self._places[key])
                self._places[key], done[key] = (at, number), True
            else:
                self._others.setdefault(key, []).append((at, number))

    # Reading

    def __contains__(self, key: str) -> bool:
        return key in self._refresh()._places

    def keys(self) -> Iterable[str]:
        """Return the keys of all records."""
        return self._refresh()._places.keys()

    def entries(self) -> Mapping[str, Entry]:
        """Return the entries of the manifest by name."""
        return self._refresh()._entries

    def summaries(self, keys: Iterable[str]) -> dict[str, Summary]:
        """Return the summaries of the ``keys`` that have a record."""
        from cglsuite.cells.storage.shards import SUMMARY

        names = [name for name in SUMMARY if name != "key"]
        summaries: dict[str, Summary] = {}
        for shard, wanted in self._group_by_shard(keys):
            table = shard.table.select(SUMMARY)
            table = table if len(wanted) == table.num_rows else table.take(list(wanted.values()))
            columns = [table.column(name).to_pylist() for name in names]
            for key, values in zip(table.column("key").to_pylist(), zip(*columns, strict=True), strict=True):
                summaries[key] = Summary(**dict(zip(names, values, strict=True)))
        return summaries

    def with_designs(self, designs: Iterable[str]) -> set[str]:
        """Return the keys of the records with one of these ``designs``."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(sorted(designs), pa.string())
        tables = (shard.table for shard in self._refresh()._shards)
        return {key for table in tables for key in table.column("key").filter(pc.is_in(table.column("design"), wanted)).to_pylist()}

    def rows(self, keys: Iterable[str]) -> Iterator[Row]:
        """Yield the rows of the ``keys`` that have a record, shard by shard."""
        for shard, wanted in self._group_by_shard(keys):
            try:
                yield from shard.rows(list(wanted.values()))
            except StoreError as error:
                self._report(shard.parquet, str(error))

    def _group_by_shard(self, keys: Iterable[str]) -> Iterator[tuple[_Shard, dict[str, int]]]:
        places = self._refresh()._places
        groups: dict[int, dict[str, int]] = defaultdict(dict)
        for key in keys:
            if (place := places.get(key)) is not None:
                groups[place[0]][key] = place[1]
        for at, wanted in sorted(groups.items()):
            yield self._shards[at], dict(sorted(wanted.items(), key=lambda item: item[1]))

    def copies(self, key: str) -> list[PackedCopy]:
        """Return all copies of a record, the one that is used first."""
        fresh = self._refresh()
        if (place := fresh._places.get(key)) is None:
            return []
        copies = []
        for at, number in (place, *fresh._others.get(key, ())):
            shard = fresh._shards[at]
            copies.append(PackedCopy(shard, number, key, shard.table.column("sha256")[number].as_py()))
        return copies

    def repeated(self) -> list[str]:
        """Return the sorted keys that occur in several shards."""
        return sorted(self._refresh()._others)

    def searches(self) -> Mapping[str, Any]:
        """Return the outcomes of searches by digest. If two of them differ, the first is returned."""
        fresh = self._refresh()
        if fresh._searches is None:
            fresh._searches = {}
            for entry in fresh._entries.values():
                for name, outcome in self._outcomes(entry).items():
                    fresh._searches.setdefault(name, outcome)
        return fresh._searches

    def curves(self) -> CurveTables:
        """Return the curves that were published with records."""
        from cglsuite.cells.storage.shards import CurveTables

        fresh = self._refresh()
        if fresh._curves is None:
            pieces = dict.fromkeys(piece for entry in fresh._entries.values() for piece in entry.model.curves)
            fresh._curves = CurveTables(self.folder, pieces, self._report)
        return fresh._curves

    def _outcomes(self, entry: Entry) -> dict[str, Any]:
        from cglsuite.cells.storage.shards import SEARCHES, place_of, read_searches

        if (piece := entry.model.searches) is None:
            return {}
        place = place_of(piece, SEARCHES)
        try:
            return read_searches(self.folder.read(place, max_bytes=MAX_BYTES), piece.sha256)
        except FileNotFoundError:
            self._report(f"{self.folder}/{place}", "outcomes of searches are missing: `cglsuite pull` downloads them again")
        except StoreError as error:
            self._report(f"{self.folder}/{place}", str(error))
        return {}


class Published:
    """The packed records in a folder as a read-only store, for merges (see :class:`cglsuite.commons.merging.Source`)."""

    def __init__(self, folder: Any, manifest: Manifest) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.packed = Packed(folder, lambda file, reason: self.problems.append(Problem(file, reason)), manifest)

    def keys(self) -> list[str]:
        """Return the keys of all records, sorted."""
        return sorted(self.packed.keys())

    def summaries(self, keys: Iterable[str] | None = None) -> Iterator[tuple[str, Summary | None]]:
        """Yield the summary of each record in ``keys``."""
        wanted = self.keys() if keys is None else list(keys)
        summaries = self.packed.summaries(wanted)
        return ((key, summaries.get(key)) for key in wanted)

    def copies(self, key: str) -> list[PackedCopy]:
        """Return all copies of a record."""
        return self.packed.copies(key)

    def stored_curves(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the digest of all curves."""
        return self.packed.curves().names()

    def curves_of(self, key: str, digest: str) -> Curves:
        """Return a record's published curves; see :meth:`CurveTables.read`."""
        return self.packed.curves().read(key, digest)

    def conflict_files(self) -> list[Path]:
        """Return an empty list, since conflicting results are stored as copies of the same key here."""
        return []

    def searches(self) -> list[str]:
        """Return the digests of searches, sorted."""
        return sorted(self.packed.searches())

    def get_search(self, digest: str) -> Mapping[str, Any] | None:
        """Return the outcome of a search."""
        return self.packed.searches().get(digest)
