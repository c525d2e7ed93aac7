"""Where the records of a store are: ``cells/ab/abcd….json``, sharded by the first two hex digits of the key.

Older stores are flat (``cells/abcd….json``). Both layouts are read, also within one store. A record stays where its key has a file; a key
without one gets a sharded file. Only an older version of the suite, or copying by hand, leaves two files of one key. Then a finished
record counts before an unfinished one, and of two alike the sharded one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["CELLS", "CONFLICTS", "SUFFIX", "folders", "key_of", "misplaced", "names_in", "record_files", "record_names", "shard_of"]

CELLS = "cells"
CONFLICTS = "conflicts"
SUFFIX = ".json"
_SHARD = re.compile(r"[0-9a-f]{2}")


def shard_of(key: str) -> str:
    """The name of the folder of ``key`` below ``cells``."""
    return key[:2]


def record_names(key: str) -> tuple[str, str]:
    """The two possible places of a record relative to ``cells``: sharded and flat."""
    return f"{shard_of(key)}/{key}{SUFFIX}", f"{key}{SUFFIX}"


def key_of(name: str) -> str:
    """The key of the record file ``name`` (see :func:`record_names`)."""
    return name.rpartition("/")[2].removesuffix(SUFFIX)


def folders(store: Path) -> list[Path]:
    """The existing folders that may hold record files: ``cells`` and its shards, sorted; empty without ``cells``."""
    cells = store / CELLS
    try:
        with os.scandir(cells) as entries:
            return [cells, *(cells / name for name in sorted(e.name for e in entries if _SHARD.fullmatch(e.name) and e.is_dir()))]
    except OSError:
        return []


def names_in(folder: Path) -> list[str]:
    """The file names of records in one folder; temporary files of writers are hidden and not listed."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith(".")]
    except OSError:
        return []


def record_files(store: Path) -> list[str]:
    """The names, relative to ``cells``, of all record files; sorted by key, the sharded file of a key before the flat one."""
    found = []
    for folder in folders(store):
        shard = "" if folder.name == CELLS else f"{folder.name}/"
        found += [shard + name for name in names_in(folder) if not shard or shard_of(name) == folder.name]
    return sorted(found, key=lambda name: (key_of(name), "/" not in name))


def misplaced(store: Path) -> Iterator[Path]:
    """Files in the folder of other keys, put there by hand: no key leads to them."""
    for folder in folders(store)[1:]:
        yield from (folder / name for name in names_in(folder) if shard_of(name) != folder.name)
