"""The layout of a store. Records are in ``cells/ab/abcd….json``, sharded by the first two hex digits of the key.

Older stores are flat (``cells/abcd….json``). Both layouts can be read, even within one store. A key that already has a file keeps it, and a
new key gets a sharded file. Two files for one key can arise only from an older version of the suite or from copying by hand. Then a
finished record takes precedence over an unfinished one, and otherwise the sharded file takes precedence.
"""

from __future__ import annotations

import errno
import gzip
import json
import logging
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cglsuite.base.atomic import file_mode, give, make_folder, write_atomic
from cglsuite.base.errors import StoreError
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.record import Curves, NoCurvesError, Record

CELLS = "cells"
CONFLICTS = "conflicts"
SUFFIX = ".json"
_SHARD = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")


def is_key(name: str) -> bool:
    """Return whether ``name`` is a valid key, which is safe to use as a file name."""
    return _NAME.fullmatch(name) is not None


def shard_of(key: str) -> str:
    """Return the name of the folder below ``cells`` that ``key`` belongs to."""
    return key[:2]


def record_names(key: str) -> tuple[str, str]:
    """Return the two possible paths of a record relative to ``cells``: sharded and flat."""
    return f"{shard_of(key)}/{key}{SUFFIX}", f"{key}{SUFFIX}"


def key_of(name: str) -> str:
    """Return the key that the record file ``name`` belongs to (see :func:`record_names`)."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


Unread = Callable[[Path, OSError], object]
"""Called with a folder that cannot be listed; listing continues with the others."""


def folders(store: Path, unread: Unread) -> list[Path]:
    """Return the existing folders that may contain record files (``cells`` and its shards), sorted. Without ``cells``, there are none."""
    cells = store / CELLS
    try:
        with os.scandir(cells) as entries:
            return [
                cells,
                *(cells / name for name in sorted(e.name for e in entries if _SHARD.fullmatch(e.name) and _is_folder(e, unread))),
            ]
    except FileNotFoundError as error:
        if cells.is_symlink():
            unread(cells, error)
        return []
    except OSError as error:
        unread(cells, error)
        return []


def _is_folder(entry: os.DirEntry[str], unread: Unread) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # for example a link to itself
        unread(Path(entry.path), error)
        return False


def names_in(folder: Path, unread: Unread) -> list[str]:
    """Return the names of the record files in one folder. Temporary files are hidden and not listed."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        unread(folder, error)
        return []


def record_files(store: Path, unread: Unread) -> list[str]:
    """Return the paths of all record files relative to ``cells``, sorted by key. The sharded file of a key precedes the flat one."""
    names = []
    for folder in folders(store, unread):
        shard = "" if folder.name == CELLS else f"{folder.name}/"
        names += [shard + name for name in names_in(folder, unread) if is_key(key_of(name)) and shard in ("", f"{shard_of(name)}/")]
    return sorted(names, key=lambda name: (key_of(name), "/" not in name))


def misplaced(store: Path, unread: Unread) -> Iterator[Path]:
    """Yield files that no lookup finds because they were placed by hand, in another key's folder or under a name that is not a key."""
    for folder in folders(store, unread):
        prefix = ("", folder.name)[folder.name != CELLS]
        yield from (folder / name for name in names_in(folder, unread) if not is_key(key_of(name)) or not name.startswith(prefix))


# The curves of a store's records: ``curves/ab/KEY.DIGEST.json.gz``, with the first twelve digits of the digest that the record holds.
# A file is written before its record, so a runner that is killed between the two leaves a file that its next attempt writes again. Two
# different results of one cell have separate files. A file that is read must have the record's digest. Shards may contain curves as well
# (:mod:`cglsuite.cells.storage.shards`).

CURVES = "curves"
_SUFFIX = ".json.gz"
SHORT = 12
_LEVEL = 6


def curves_path(store: Path, key: str, digest: str) -> Path:
    """Return the path of the file with a record's curves, given their digest or its first digits."""
    return store / CURVES / shard_of(key) / f"{key}.{digest[:SHORT]}{_SUFFIX}"


def write_curves(store: Path, key: str, curves: Curves, *, durable: bool = True) -> None:
    """Write the curves file of a record.

    Raises:
        StoreError: the disk is full or the folder cannot be written.
    """
    content = gzip.compress(curves.text, _LEVEL, mtime=0)
    write_atomic(curves_path(store, key, curves.digest), content, durable=durable, top=store)


def read_curves(store: Path, key: str, digest: str) -> Curves | None:
    """Read the curves with the given digest (or its first digits). Returns ``None`` if there is no file.

    Raises:
        NoCurvesError: the file cannot be read, or contains different curves.
    """
    path = curves_path(store, key, digest)
    try:
        text = gzip.decompress(read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error) as error:
        raise NoCurvesError(f"{path} cannot be read: {error}") from error
    return Curves.read(text, digest, path)


def sidecar_names(store: Path) -> Iterator[tuple[str, str]]:
    """Yield the key and the first digits of the digest for every file of curves, in sorted order."""
    for path in sorted((store / CURVES).glob(f"??/*{_SUFFIX}")):
        key, _, digest = path.name.removesuffix(_SUFFIX).partition(".")
        if key and digest and path.parent.name == shard_of(key):
            yield key, digest


def discard_curves(store: Path, key: str) -> None:
    """Remove the curves of ``key``, if there are any."""
    for path in (store / CURVES / shard_of(key)).glob(f"{key}.*{_SUFFIX}"):
        os.unlink(path)


# What cells of user code have read besides code: ``inputs/ab/FIRST/KEY.json``, by the first key of a cell and the key of its record.
# :mod:`cglsuite.cells.code.inputs` describes how they are used. A file is written before its record. Unlike records, these files never
# leave the store: they hold digests of environment variables, which may be secrets.

logger = logging.getLogger(__name__)
INPUTS = "inputs"
Digests = Mapping[str, str | None]
"""Inputs by name (see :func:`cglsuite.cells.code.inputs.inputs_read`) with their SHA-256 (hex), ``None`` if absent."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """A note in the store on a cell's inputs: its key, the inputs that it was planned with (none under its first key), and the inputs that
    it read.
    """

    key: str
    asked: Digests
    read: Digests
    written_ns: int

    def changes(self, now: Digests, declared: Iterable[str] = ()) -> list[str]:
        """Return the inputs that have changed or were declared since. Missing files do not count, since this may be a different machine."""
        differing = [n for n, digest in self.read.items() if now[n] != digest and (now[n] is not None or n.startswith("$"))]
        return [*differing, *(name for name in declared if name not in self.read)]

    def absent(self, now: Digests) -> list[str]:
        """Return the files that were read and are missing now."""
        return [name for name, digest in self.read.items() if digest is not None and now[name] is None]


def write_inputs(store: Path, first: str, key: str, digests: Digests, read: Digests) -> None:
    """Write the note on the inputs that the cell of ``key`` has read.

    Raises:
        StoreError: the folder cannot be written.
    """
    noted = {"asked": dict(digests), "read": dict(read)}
    write_atomic(store / INPUTS / shard_of(first) / first / f"{key}{SUFFIX}", json.dumps(noted, sort_keys=True).encode(), top=store)


def read_inputs(store: Path, first: str) -> list[Inputs]:
    """Read the notes of all cells that have the given first key, latest first. An unreadable file is logged and skipped."""
    noted_inputs = []
    for path in (store / INPUTS / shard_of(first) / first).glob(f"[0-9a-f]*{SUFFIX}"):
        try:
            noted = json.loads(read_regular(path))
            digests, read = dict(noted["asked"]), dict(noted["read"])
            noted_inputs.append(Inputs(key=path.stem, asked=digests, read=read, written_ns=path.stat().st_mtime_ns))
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read, so the files and variables that its cell depends on are unknown (%s)", path, error)
    return sorted(noted_inputs, key=lambda entry: entry.written_ns, reverse=True)


def noted_keys(store: Path, keys: Iterable[str]) -> set[str]:
    """Return those of ``keys`` (first keys) that have notes."""
    wanted = set(keys)
    shards = {shard_of(key) for key in wanted} & _names(store / INPUTS)
    return wanted & {name for shard in shards for name in _names(store / INPUTS / shard)}


def copy_inputs(source: Path, target: Path) -> None:
    """Copy notes from ``source`` for records that have none in ``target``."""
    for path in sorted((source / INPUTS).glob(f"??/*/[0-9a-f]*{SUFFIX}")):
        place = target / path.relative_to(source)
        if not place.exists():
            make_folder(place.parent, target)
            shutil.copy2(path, place)  # with its time, since reading a store uses the latest note
            if (shared := file_mode(target)) is not None:
                give(place, *shared)


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


# Read records that have their own file, and read one as a copy that a merge takes.


MAX_RECORD_BYTES = 2**28
"""Larger files are not records. The largest, from when curves were part of records, has a few million bytes."""


class FileCopy:
    """A record that is stored in a separate file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

    def __str__(self) -> str:
        return str(self.path)

    def content(self) -> bytes:
        """Return the bytes of the file."""
        return read_regular(self.path, max_bytes=MAX_RECORD_BYTES)

    def read(self) -> tuple[bytes, Record]:
        """Return the bytes and the record; see :func:`read_record`."""
        return read_record_file(self.path, self.key)


def read_record(path: Path, key: str | None = None) -> Record:
    """Read the record in a file that is named after its key, or belongs to ``key``.

    Raises:
        OSError: the file cannot be read. NewerSchemaError: a later version of the suite wrote it.
        StoreError: the file is damaged, is not a record, or contains the record of a different key.
    """
    return read_record_file(path, key)[1]


def read_record_file(path: Path, key: str | None = None) -> tuple[bytes, Record]:
    """Read a file, and return its content and the record in it; see :func:`read_record`."""
    try:
        content = read_regular(path, max_bytes=MAX_RECORD_BYTES)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise StoreError(error.strerror) from error
        raise
    record = Record.from_json(content)
    if record.key != (key or path.stem):
        raise StoreError(f"the file contains the record of another key ({record.key[:16]})")
    return content, record
