"""Where the records of a store are: ``cells/ab/abcd….json``, sharded by the first two hex digits of the key.

Older stores are flat (``cells/abcd….json``). Both layouts are read, also within one store. A record stays where its key has a file; a key
without one gets a sharded file. Only an older version of the suite, or copying by hand, leaves two files of one key. Then a finished
record counts before an unfinished one, and of two alike the sharded one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = [
    "CELLS",
    "CONFLICTS",
    "SUFFIX",
    "folders",
    "is_key",
    "key_of",
    "misplaced",
    "names_in",
    "record_files",
    "record_names",
    "shard_of",
]

CELLS = "cells"
CONFLICTS = "conflicts"
SUFFIX = ".json"
_SHARD = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")


def is_key(name: str) -> bool:
    """Whether ``name`` can be a key: then it names a file and leads to no other folder."""
    return _NAME.fullmatch(name) is not None


def shard_of(key: str) -> str:
    """The name of the folder of ``key`` below ``cells``."""
    return key[:2]


def record_names(key: str) -> tuple[str, str]:
    """The two possible places of a record relative to ``cells``: sharded and flat."""
    return f"{shard_of(key)}/{key}{SUFFIX}", f"{key}{SUFFIX}"


def key_of(name: str) -> str:
    """The key of the record file ``name`` (see :func:`record_names`)."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


Unread = Callable[[Path, OSError], object]
"""Told of a folder that cannot be listed; the others are."""


def folders(store: Path, unread: Unread) -> list[Path]:
    """The existing folders that may hold record files: ``cells`` and its shards, sorted; empty without ``cells``."""
    cells = store / CELLS
    try:
        with os.scandir(cells) as entries:
            return [
                cells,
                *(cells / name for name in sorted(e.name for e in entries if _SHARD.fullmatch(e.name) and _is_folder(e, unread))),
            ]
    except FileNotFoundError:
        return []
    except OSError as error:
        unread(cells, error)
        return []


def _is_folder(entry: os.DirEntry[str], unread: Unread) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link to itself, say
        unread(Path(entry.path), error)
        return False


def names_in(folder: Path, unread: Unread) -> list[str]:
    """The file names of records in one folder; temporary files of writers are hidden and not listed."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        unread(folder, error)
        return []


def record_files(store: Path, unread: Unread) -> list[str]:
    """The names, relative to ``cells``, of all record files; sorted by key, the sharded file of a key before the flat one."""
    found = []
    for folder in folders(store, unread):
        shard = "" if folder.name == CELLS else f"{folder.name}/"
        found += [shard + name for name in names_in(folder, unread) if is_key(key_of(name)) and shard in ("", f"{shard_of(name)}/")]
    return sorted(found, key=lambda name: (key_of(name), "/" not in name))


def misplaced(store: Path, unread: Unread) -> Iterator[Path]:
    """Files in the folder of other keys or with names that are no keys, put there by hand: no key leads to them."""
    for folder in folders(store, unread):
        own = ("", folder.name)[folder.name != CELLS]
        yield from (folder / name for name in names_in(folder, unread) if not is_key(key_of(name)) or not name.startswith(own))
