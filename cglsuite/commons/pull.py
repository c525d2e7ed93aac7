"""Pull published records into a store: shards are copied, verified and kept as they are.

It is a merge of the publication into the store, by the rules of :mod:`cglsuite.commons.merging`. A shard is written to the store
once its bytes have the digest that the manifest states, and every record in it has its own digest, fits the schema and agrees with its row.
The entries of the manifest follow last: only then do the records count. So a pull that was cut off shows nothing, and the next one goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cglsuite.base.errors import StoreError, UsageError
from cglsuite.cells.records.record import Record
from cglsuite.cells.storage.packed import MOST_BYTES, LocalFolder, Problem, Published
from cglsuite.cells.storage.shards import (
    CURVE_TABLE,
    JSONL,
    PARQUET,
    SEARCHES,
    CurveTable,
    Entry,
    Manifest,
    Piece,
    ShardPieces,
    check,
    entry_place,
    number_entries,
    place_of,
    read_manifest,
    read_searches,
    read_table,
)
from cglsuite.cells.storage.store import Store
from cglsuite.commons.merging import Copy, Merge, Merging
from cglsuite.commons.places import RemoteFolder, open_place
from cglsuite.commons.publish import Progress

__all__ = ["Pull", "pull"]

_LEASE = "pull"
_SHOWN = 3


@dataclass(kw_only=True)
class Pull:
    """What a call of :func:`pull` did.

    Args:
        merge: what happened to each record that is new to the store's shards. entries: names of new entries of the manifest.
        shards, read_bytes: what was copied. faults: files that cannot be used, and why.
    """

    merge: Merge
    entries: list[str] = field(default_factory=list)
    shards: int = 0
    read_bytes: int = 0
    faults: list[Problem] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether all is in the store, and no two results differ."""
        return self.merge.clean and not self.faults


def pull(url: str, store: Store, *, progress: Progress = lambda *_: None) -> Pull:
    """Bring what is published at ``url`` into ``store``, which may be new.

    Args:
        url: a folder, ``s3://BUCKET/FOLDER``, ``http://`` or ``https://``.

    Raises:
        UsageError: ``url`` cannot be read by any means, or is the store. StoreError: nothing is published there, it cannot be read, the
            store cannot be written, or another pull is writing to it; what was copied is kept.
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

    def pulled(self, there: Manifest) -> Pull:
        mine = read_manifest(self.here)
        known = {entry.name: entry for entry in mine.entries}
        for name, reason in there.problems:
            self._fault(name, reason)
        new = self._fetch(there, known)
        source = Published(self.here, Manifest(entries=new))
        merging = _Adopting(source, self.store, str(self.place))
        done = Pull(merge=merging.merged(), faults=self.faults, shards=self.shards, read_bytes=self.read_bytes)
        for entry in new:
            if entry.name not in known:
                self.here.write(entry_place(entry.name), entry.content)
                done.entries.append(entry.name)
        number_entries(self.here, mine, [entry.name for entry in there.entries])
        # What was not copied is a fault already, and what was missing here has been brought.
        told = {str(problem.path) for problem in source.problems}
        done.merge.unreadable = [p for p in done.merge.unreadable if str(p.path) not in told and not self._brought(Path(p.path))]
        return done

    def _brought(self, path: Path) -> bool:
        return path.exists() and any(path.is_relative_to(self.store.path / folder) for folder in ("manifest", "shards"))

    def _fetch(self, there: Manifest, known: dict[str, Entry]) -> list[Entry]:
        """Copy what the store lacks; return the entries that are new, or had to be completed."""
        wanted = sum(len(entry.model.shards) for entry in there.entries)
        seen, changed = 0, []
        for entry in there.entries:
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
        """Copy and verify a shard unless it is here; whether it was copied."""
        if all(self._is_here(piece, ending) for piece, ending in ((pieces.jsonl, JSONL), (pieces.parquet, PARQUET))):
            return False
        import pyarrow as pa

        try:
            jsonl, parquet = self._copy(pieces.jsonl, JSONL), self._copy(pieces.parquet, PARQUET)
            table = read_table(pa.BufferReader(parquet))
            if table.num_rows != pieces.records:
                raise StoreError(f"its Parquet file has {table.num_rows} rows; the manifest says {pieces.records} records")
            wrong = list(check(jsonl, table))
            if wrong:
                more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
                raise StoreError("; ".join(wrong[:_SHOWN]) + more)
        except FileNotFoundError:
            self._fault(place_of(pieces.jsonl, JSONL), f"the shard is missing, although the manifest names it: {pieces.records} records")
            return False
        except StoreError as error:
            self._fault(place_of(pieces.jsonl, JSONL), f"{error}: {pieces.records} records are left out")
            return False
        self.here.write(place_of(pieces.jsonl, JSONL), jsonl)
        self.here.write(place_of(pieces.parquet, PARQUET), parquet)
        self.shards += 1
        return True

    def _searches(self, entry: Entry) -> bool:
        piece = entry.model.searches
        if piece is None or self._is_here(piece, SEARCHES):
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
        """Copy a table of curves; the digest of each is checked where it is read."""
        import pyarrow as pa

        if self._is_here(piece, CURVE_TABLE):
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

    def _is_here(self, piece: Piece, ending: str) -> bool:
        name = place_of(piece, ending)
        if self.here.size(name) != piece.bytes:
            return False
        with contextlib.suppress(FileNotFoundError, StoreError):
            return hashlib.sha256(self.here.read(name)).hexdigest() == piece.sha256
        return False

    def _copy(self, piece: Piece, ending: str) -> bytes:
        """A file of the publication, with the digest that the manifest states."""
        name = place_of(piece, ending)
        size = self.place.size(name)
        if size is not None and size != piece.bytes:
            raise StoreError(f"{name} has {size:,} bytes; the manifest says {piece.bytes:,}: it was truncated or altered")
        content = self.place.read(name, most=min(piece.bytes, MOST_BYTES))
        self.read_bytes += len(content)
        found = hashlib.sha256(content).hexdigest()
        if found != piece.sha256:
            raise StoreError(f"{name} has the digest {found[:12]} ({len(content):,} bytes): it was truncated or altered")
        return content

    def _fault(self, name: str, reason: str) -> None:
        self.faults.append(Problem(f"{self.place}/{name}", reason))


class _Adopting(Merging):
    """The merge of shards that the store has already, but whose records do not count yet: nothing is copied but unlike results."""

    def _bring(self, key: str) -> None:
        copies = self.source.copies(key)
        if len(copies) == 1 and self._is_new(key):  # it was read when its shard was verified
            self.done.new.append(key)
            self.taken[key] = copies[0]
        else:
            super()._bring(key)

    def _is_new(self, key: str) -> bool:
        return key not in self._there

    def records(self) -> None:
        self._there = set(self.target.keys())
        super().records()

    def curves(self) -> None:
        """Their tables are copied as they are."""

    def blocked(self, key: str) -> Path | None:
        return None

    def accept(self, copy: Copy, content: bytes, record: Record) -> None:
        self.taken[record.key] = copy

    def accept_search(self, name: str, outcome: object) -> None:
        pass

    @contextlib.contextmanager
    def _leased(self, key: str) -> Iterator[bool]:
        yield True  # no record is overwritten
