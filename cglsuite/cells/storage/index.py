"""A disposable index of a store's records. With it, a finished campaign is recognised without reading the files.

It is an SQLite file in this machine's cache folder, never on a network file system, where locks are unreliable. Its name is derived
from the store's real path and identity, and from the versions of the index and of records. A row is valid only for a file of the same
size, times and inode; any other file is read and indexed again. Rows carry a checksum. If the file is missing, damaged, locked for long
or cannot be written, records are read instead: no result depends on the index, and it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cglsuite import __version__
from cglsuite.base.environment import variable
from cglsuite.base.hashing import digest
from cglsuite.cells.records.frame import Row, Summary
from cglsuite.cells.records.record import SCHEMA

if TYPE_CHECKING:
    import sqlite3


logger = logging.getLogger(__name__)
_FORMAT = 3
_PATIENCE_S = 2.0
"""Seconds to wait for another process that writes to the index."""
_RACY_NS = 2_000_000_000
"""The minimum age at which a file is indexed; a younger file may change again without a visible change of its times."""
_UNUSED_S = 90 * 86400.0
_CHUNK = 500
_LARGEST = 2**63 - 1
_NETWORK = (
    "9p acfs afs beegfs ceph cifs coda cvmfs davfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs pvfs2 smb3 smbfs "
    "virtiofs wekafs"
)
Mark = tuple[int, int, int, int]
"""Size, modification time, change time (ns) and inode of a file; if one differs, the file is read again."""


_Held = TypeVar("_Held", Summary, Row)
_FIELDS = tuple(field.name for field in dataclasses.fields(Summary))
_SCALARS = tuple(field.name for field in dataclasses.fields(Row) if field.name != "configuration")
_MARK = ("name", "size", "mtime_ns", "ctime_ns", "inode")
_TABLES = {"records": (*_MARK, *_FIELDS), "scalars": (*_MARK, "row", "configuration")}
"""The tables of the index: one for listings, and a larger one for tables of results (a row as JSON, and its configuration's digest)."""
_TEXTS = "CREATE TABLE texts (digest, text, PRIMARY KEY (digest)) WITHOUT ROWID"
_CREATE = [f"CREATE TABLE {t} ({', '.join(c)}, checksum, PRIMARY KEY (name)) WITHOUT ROWID" for t, c in _TABLES.items()] + [_TEXTS]
_VERSION = zlib.crc32(f"{_FORMAT} {SCHEMA} {__version__} {_CREATE} {[f.name for f in dataclasses.fields(Row)]}".encode()) & 0x7FFFFFFF


def mark_of(path: str | Path) -> Mark | None:
    """Return the :data:`Mark` of a file, or None if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _LARGEST


class Index:
    """The index of the store in the folder ``store``. Nothing is opened or written before the first use.

    Several processes may use it at the same time. Every operation opens the file anew, so nothing stays open in between.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path: Path | None = None
        self._sought = False
        self._kept: dict[str, tuple[Mark, Summary]] = {}
        """Rows that could not be written because there is no index file."""

    def known(self, marks: Sequence[tuple[str, Mark]]) -> dict[str, Summary]:
        """Return the indexed summaries of files with unchanged marks, by file name."""
        known = {name: self._kept[name][1] for name, mark in marks if name in self._kept and self._kept[name][0] == mark}
        with self._connection() as connection:
            for name, *values in self._marked_rows(connection, "records", marks):
                known[name] = Summary(**dict(zip(_FIELDS, values, strict=True)))
        return known

    def rows(self, marks: Sequence[tuple[str, Mark]]) -> dict[str, Row]:
        """Return the indexed scalars of files with unchanged marks, by file name."""
        rows: dict[str, Row] = {}
        with self._connection() as connection:
            held = list(self._marked_rows(connection, "scalars", marks))
            texts = _configurations(connection, {values[-1] for values in held}) if connection is not None else {}
            for name, row, configuration in held:
                with contextlib.suppress(ValueError, TypeError, KeyError):  # damaged: the record is read again
                    rows[name] = Row(**json.loads(row), configuration=texts[configuration])
        return rows

    def _marked_rows(
        self, connection: sqlite3.Connection | None, table: str, marks: Sequence[tuple[str, Mark]]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the name and values of the rows of ``table`` whose marks are unchanged."""
        wanted = dict(marks)
        names = list(wanted) if connection is not None else []
        for start in range(0, len(names), _CHUNK):
            chunk = names[start : start + _CHUNK]
            query = f"SELECT {', '.join(_TABLES[table])}, checksum FROM {table} WHERE name IN ({', '.join('?' * len(chunk))})"
            for row in connection.execute(query, chunk) if connection is not None else ():
                if row[-1] == _checksum(row[:-1]) and row[1:5] == wanted[row[0]]:
                    yield (row[0], *row[5:-1])

    def add(self, rows: Iterable[tuple[str, Mark, Summary]]) -> None:
        """Index the summaries of files, whose marks must have been taken *before* the files were read."""
        settled = _old_enough(rows)
        values = [(name, *mark, *(getattr(summary, field) for field in _FIELDS)) for name, mark, summary in settled]
        if not self._insert("records", values):
            self._kept.update((name, (mark, summary)) for name, mark, summary in settled)

    def add_rows(self, rows: Iterable[tuple[str, Mark, Row]]) -> None:
        """Index the scalars of files, whose marks must have been taken *before* the files were read."""
        values, texts = [], {}
        for name, mark, row in _old_enough(rows):
            facts = {field: getattr(row, field) for field in _SCALARS}
            texts[short := digest(row.configuration)] = row.configuration
            values.append((name, *mark, json.dumps(facts, separators=(",", ":"), allow_nan=False), short))
        self._insert("scalars", values, texts)

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]], texts: Mapping[str, str] | None = None) -> bool:
        """Insert ``rows``; return whether the file holds them now."""
        written = False
        if rows:
            with self._connection() as connection:
                if connection is not None:
                    marks = ", ".join("?" * (len(_TABLES[table]) + 1))
                    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", [(*row, _checksum(row)) for row in rows])
                    connection.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", (texts or {}).items())
                    connection.commit()
                    written = True
        return written

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the open index, or None if there is none. An error within the block closes it and, unless it was only busy, removes it."""
        import sqlite3

        connection: sqlite3.Connection | None = None
        path = self.file()
        try:
            if path is not None:
                connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level="IMMEDIATE")
                _prepare(connection)
        except sqlite3.Error as error:
            _remove_unusable(connection, path, error)
            connection = None
        try:
            yield connection
        except (sqlite3.Error, UnicodeError) as error:
            _remove_unusable(connection, path, error)
        finally:
            if connection is not None:
                connection.close()

    def file(self) -> Path | None:
        """Return the path of the index, or None if no local folder is writable or the store does not exist."""
        if not self._sought:
            self._sought = True
            try:
                real = self._store.resolve(strict=True)
                status = real.stat()
            except OSError:
                self._sought = False  # its first record may be written later
                return None
            folder = index_folder()
            if folder is not None:
                self._path = folder / f"{digest([str(real), status.st_dev, status.st_ino])[:32]}-{_VERSION:08x}.sqlite"
                if not self._path.exists():
                    _remove_unused(folder)
        return self._path


def _remove_unusable(connection: sqlite3.Connection | None, path: Path | None, error: Exception) -> None:
    """Remove an unusable index so that it is rebuilt; an index that another process is writing to is left alone."""
    if connection is not None:
        connection.close()
    busy = "locked" in str(error) or "busy" in str(error)
    logger.debug("the index %s cannot be used, so records are read instead: %s", path, error)
    if path is not None and not busy:
        with contextlib.suppress(OSError):
            path.unlink()


def _prepare(connection: sqlite3.Connection) -> None:
    # Writes do not wait for the disk: after a crash of the machine, the rows' checksums reveal damage.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:  # no other process was faster
        for table in (*_TABLES, "texts"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _CREATE:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.commit()


def _configurations(connection: sqlite3.Connection, digests: Set[str]) -> dict[str, str]:
    """Return the configurations with these digests; there are few, since records that differ only in seeds share one."""
    texts: dict[str, str] = {}
    names = sorted(map(str, digests))
    for start in range(0, len(names), _CHUNK):
        chunk = names[start : start + _CHUNK]
        rows = connection.execute(f"SELECT digest, text FROM texts WHERE digest IN ({', '.join('?' * len(chunk))})", chunk)
        texts.update((name, text) for name, text in rows if digest(text) == name)
    return texts


def _old_enough(rows: Iterable[tuple[str, Mark, _Held]]) -> list[tuple[str, Mark, _Held]]:
    limit = time.time_ns() - _RACY_NS
    return [row for row in rows if max(row[1][1:3]) < limit]


def _checksum(row: Sequence[object]) -> int:
    values = [int(value) if isinstance(value, bool) else value for value in row]
    return zlib.crc32(repr(values).encode(errors="replace"))


def index_folder() -> Path | None:
    """Return a folder for indexes on a local disk, in the cache folder or else in the temporary folder. Returns ``None`` if neither is
    suitable.
    """
    for folder in _candidates():
        try:
            if on_network(_nearest_existing(folder)):
                continue
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except OSError:
            continue
        foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
        if stat.S_ISDIR(status.st_mode) and not foreign and os.access(folder, os.W_OK):
            return folder
    return None


def _candidates() -> Iterator[Path]:
    from cglsuite.base.datafiles import platform_cache

    if folder := variable("CGLSUITE_CACHE"):
        yield Path(folder).expanduser().absolute() / "index"
    with contextlib.suppress(RuntimeError):  # no home folder
        yield platform_cache() / "index"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"cglsuite-index-{user}"


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def on_network(folder: Path, table: Path = Path("/proc/self/mountinfo")) -> bool:
    """Return whether ``folder`` is on a network file system, according to Linux's mount table; False if there is no such table."""
    try:
        lines = table.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    real, longest, kind = os.path.realpath(folder), -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = fields[4].encode(errors="surrogateescape").decode("unicode_escape", errors="replace") if "\\" in fields[4] else fields[4]
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # a later mount at the same point hides the earlier one
            longest, kind = len(point), after.split()[0]
    return kind in _NETWORK.split() or (kind.startswith("fuse.") and kind != "fuse.fuse-overlayfs")


def _remove_unused(folder: Path) -> None:
    """Remove indexes that have not been written for long: their stores are gone or were read only once."""
    limit = time.time() - _UNUSED_S
    for path in folder.glob("*.sqlite"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < limit:
                path.unlink()
