"""What cells of user code have read besides code: ``inputs/ab/FIRST/KEY.json``, by the first key of a cell and the key of its record.

:mod:`cglsuite.cells.code.inputs` says what follows. A file is written before its record. Unlike records, these files stay in the store:
they hold digests of environment variables, which may be secrets.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cglsuite.base.atomic import write_atomic
from cglsuite.cells.storage.layout import SUFFIX, shard_of

__all__ = ["INPUTS", "Digests", "Inputs", "copy_inputs", "noted_keys", "read_inputs", "write_inputs"]

logger = logging.getLogger(__name__)
INPUTS = "inputs"
Digests = Mapping[str, str | None]
"""By witness (see :func:`cglsuite.cells.code.witnesses.witnessed`) its SHA-256 (hex), ``None`` where it is absent."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is noted of a cell: its key, the inputs that it was planned with (none under its first key), and what it has read."""

    key: str
    asked: Digests
    read: Digests
    written_ns: int

    def changes(self, now: Digests, declared: Iterable[str] = ()) -> list[str]:
        """The witnesses that differ now, or that were declared since. An absent file is none of them: this may be another machine."""
        differing = [n for n, digest in self.read.items() if now[n] != digest and (now[n] is not None or n.startswith("$"))]
        return [*differing, *(name for name in declared if name not in self.read)]

    def absent(self, now: Digests) -> list[str]:
        """The files that were read and are absent now."""
        return [name for name, digest in self.read.items() if digest is not None and now[name] is None]


def write_inputs(store: Path, first: str, key: str, asked: Digests, read: Digests) -> None:
    """Note what the cell of ``key`` has read.

    Raises:
        StoreError: the folder cannot be written.
    """
    noted = {"asked": dict(asked), "read": dict(read)}
    write_atomic(store / INPUTS / shard_of(first) / first / f"{key}{SUFFIX}", json.dumps(noted, sort_keys=True).encode())


def read_inputs(store: Path, first: str) -> list[Inputs]:
    """What is noted of all cells with this first key, the last first. An unreadable file is logged and left out."""
    found = []
    for path in (store / INPUTS / shard_of(first) / first).glob(f"[0-9a-f]*{SUFFIX}"):
        try:
            noted = json.loads(path.read_bytes())
            asked, read = dict(noted["asked"]), dict(noted["read"])
            found.append(Inputs(key=path.stem, asked=asked, read=read, written_ns=path.stat().st_mtime_ns))
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read: what its cell depends on besides code is unknown (%s)", path, error)
    return sorted(found, key=lambda one: one.written_ns, reverse=True)


def noted_keys(store: Path, keys: Iterable[str]) -> set[str]:
    """Those of some first keys of which something is noted."""
    wanted = set(keys)
    shards = {shard_of(key) for key in wanted} & _names(store / INPUTS)
    return wanted & {name for shard in shards for name in _names(store / INPUTS / shard)}


def copy_inputs(source: Path, target: Path) -> None:
    """Copy what ``source`` notes of records of which ``target`` notes nothing."""
    for path in sorted((source / INPUTS).glob(f"??/*/[0-9a-f]*{SUFFIX}")):
        place = target / path.relative_to(source)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)  # with its time: the last counts where a store is read


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
