"""The manifest of published shards: entries that are only ever added.

Below the folder of a publication::

    manifest/SHA256.json          an entry: what one call of publish has added
    manifest/numbers/00000001     the name of the first entry, and so on
    shards/AB/SHA256.jsonl.zst    records (see :mod:`cglsuite.cells.storage.shards`)
    shards/AB/SHA256.parquet      their scalars
    shards/AB/SHA256.searches.zst outcomes of searches
    shards/AB/SHA256.curves.parquet curves, on request (see :mod:`cglsuite.cells.storage.curve_tables`)

Every file is named by the SHA-256 of its bytes, and is never changed: two publishers write different files, whatever the file system. An
entry names its parents, the entries that were there before it, so a missing one is noticed. A number is created only where there is none.
Numbers order the entries, and lead readers to them that cannot list a folder (http). On a file system that cannot create a file
exclusively, two publishers may take one number; then one entry has none until the next call of publish gives it one. It is listed all the
same. No path is read from an entry: places follow from digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cglsuite.base.errors import StoreError
from cglsuite.base.validation import key_path, problem_text

__all__ = ["FORMAT", "Entry", "EntryModel", "Folder", "Manifest", "Piece", "ShardPieces", "entry_text", "number_entries", "read_manifest"]

FORMAT: Final = 2
"""The format of entries that list curves; others are of format 1."""
MANIFEST = "manifest"
NUMBERS = f"{MANIFEST}/numbers"
MOST_BYTES = 2**30
"""The largest file of a shard."""
_MOST_ENTRY = 2**24
_MOST_NUMBER = 2**20
_MOST_GAP = 16
"""So many numbers in a row may hold no name: some web servers have an answer for every address."""
_ENTRY = re.compile(r"([0-9a-f]{64})\.json", re.ASCII)
_MOST_ENTRIES = 100_000
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]


class Folder(Protocol):
    """A folder that holds a publication, here or elsewhere; names have ``/`` between their parts."""

    lists: bool
    """Whether it can be listed."""

    def read(self, name: str, *, most: int) -> bytes:
        """The content of a file of at most ``most`` bytes. Raises FileNotFoundError, or StoreError for another reason."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; empty if there is none."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one; return whether it was written. Raises StoreError."""


class NewerFormatError(StoreError):
    """An entry written by a later version of the suite."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Piece(_Strict):
    """A file of a shard, by the digest and the number of its bytes."""

    sha256: Sha256
    bytes: Annotated[int, Field(ge=1, le=MOST_BYTES)]


class ShardPieces(_Strict):
    """The two files of a shard."""

    records: Annotated[int, Field(ge=1, le=10**6)]
    jsonl: Piece
    parquet: Piece


class EntryModel(_Strict):
    """An entry of the manifest."""

    format: Literal[1, 2]
    suite: str
    written: str
    parents: list[Sha256]
    shards: list[ShardPieces]
    searches: Piece | None
    curves: list[Piece] = Field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry and its name, the SHA-256 (hex) of its bytes."""

    name: str
    content: bytes
    model: EntryModel


@dataclass(kw_only=True)
class Manifest:
    """What a manifest says.

    Args:
        entries: by number, then those without one by time and name. numbered: names with a number. last: the highest number.
        problems: name of a file, and why it cannot be used. newer: the problems that are entries of a later version of the suite.
    """

    entries: list[Entry] = field(default_factory=list)
    numbered: set[str] = field(default_factory=set)
    last: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    newer: list[tuple[str, str]] = field(default_factory=list)


def place_of(piece: Piece, ending: str) -> str:
    """Where a file is, below the folder of a publication."""
    return f"shards/{piece.sha256[:2]}/{piece.sha256}{ending}"


def entry_place(name: str) -> str:
    """Where an entry is."""
    return f"{MANIFEST}/{name}.json"


def entry_text(
    *, suite: str, written: str, parents: Iterable[str], shards: Sequence[ShardPieces], searches: Piece | None, curves: Sequence[Piece] = ()
) -> bytes:
    """The bytes of a new entry."""
    facts: dict[str, Any] = {"suite": suite, "written": written, "parents": sorted(parents), "shards": list(shards), "searches": searches}
    model = EntryModel(**facts, format=FORMAT, curves=list(curves)) if curves else EntryModel(**facts, format=1)
    content = model.model_dump(exclude=None if curves else {"curves"})
    return (json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n").encode()


def read_manifest(folder: Folder, known: Mapping[str, Entry] | None = None) -> Manifest:
    """The manifest in ``folder``; an entry that cannot be read is a problem, and the others are read.

    Args:
        known: entries that need not be read again, by name.

    Raises:
        StoreError: the folder cannot be read at all.
    """
    manifest = Manifest()
    numbers = _numbers(folder)
    manifest.last = max(numbers, default=0)
    ordered = list(dict.fromkeys(name for _, name in sorted(numbers.items())))
    manifest.numbered = set(ordered)
    listed = [match[1] for name in folder.names(MANIFEST) if (match := _ENTRY.fullmatch(name))] if folder.lists else []
    named_by = dict.fromkeys([*ordered, *sorted(listed)], f"a number in {NUMBERS}/")
    waiting = list(named_by)
    found: dict[str, Entry] = {}
    while waiting:
        name = waiting.pop()
        try:
            found[name] = (known or {}).get(name) or _entry(folder, name)
        except FileNotFoundError:
            manifest.problems.append((entry_place(name), f"it is missing, although {named_by[name]} names it"))
        except StoreError as error:
            manifest.problems.append((entry_place(name), str(error)))
            manifest.newer += manifest.problems[-1:] if isinstance(error, NewerFormatError) else []
        else:
            new = [parent for parent in found[name].model.parents if parent not in named_by]
            named_by.update(dict.fromkeys(new, f"entry {name[:12]}"))
            waiting += new
        if len(named_by) > _MOST_ENTRIES:
            raise StoreError(f"the manifest has more than {_MOST_ENTRIES:,} entries: this is no publication of results")
    rest = sorted(found.keys() - manifest.numbered, key=lambda name: (found[name].model.written, name))
    manifest.entries = [found[name] for name in (*ordered, *rest) if name in found]
    return manifest


def number_entries(folder: Folder, manifest: Manifest, names: Sequence[str] = ()) -> None:
    """Give a number to every entry that has none, and to ``names`` after them."""
    number = manifest.last + 1
    for name in dict.fromkeys([*(e.name for e in manifest.entries), *names]):
        if name in manifest.numbered:
            continue
        while not folder.create(f"{NUMBERS}/{number:08d}", f"{name}\n".encode()):
            number += 1  # another publisher was faster
        manifest.numbered.add(name)
        manifest.last = number


def _numbers(folder: Folder) -> dict[int, str]:
    """The name behind each number. What does not hold a name is left out: entries are listed too, and name their parents."""
    if folder.lists:
        given = [int(name) for name in folder.names(NUMBERS) if re.fullmatch(r"[0-9]{8}", name, re.ASCII)]
        return {number: name for number in given if (name := _name_at(folder, number))}
    found: dict[int, str] = {}
    for number in range(1, _MOST_ENTRIES):
        name = _name_at(folder, number)
        if name is None or number - max(found, default=0) > _MOST_GAP:
            break
        if name:
            found[number] = name
    return found


def _name_at(folder: Folder, number: int) -> str | None:
    """The name that a number holds: ``""`` if it holds something else, None if there is no such number."""
    try:
        name = folder.read(f"{NUMBERS}/{number:08d}", most=_MOST_NUMBER).decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return name if re.fullmatch(r"[0-9a-f]{64}", name, re.ASCII) else ""


def _entry(folder: Folder, name: str) -> Entry:
    content = folder.read(entry_place(name), most=_MOST_ENTRY)
    if hashlib.sha256(content).hexdigest() != name:
        raise StoreError(
            "its content does not have the digest that it is named by: it was truncated or altered; copy it again from its origin"
        )
    return Entry(name=name, content=content, model=_model(content))


def _model(content: bytes) -> EntryModel:
    try:
        data: Any = json.loads(content)
    except ValueError as error:
        raise StoreError(f"not a JSON file: {error}") from error
    version = data.get("format") if isinstance(data, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
        raise NewerFormatError(f"an entry of format {version}; this version of cglsuite reads up to {FORMAT}: upgrade it")
    try:
        return EntryModel.model_validate(data)
    except ValidationError as error:
        problems = [f"{key_path(e['loc']) or 'entry'}: {problem_text(e)}" for e in error.errors(include_url=False)[:3]]
        raise StoreError(f"not an entry of a manifest: {'; '.join(problems)}") from error
