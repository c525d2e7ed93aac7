"""Shards: pairs of files that contain many records each and never change.

``*.jsonl.zst`` contains the records, one per line, in the form of separate record files. It is a sequence of zstd frames of whole lines, so
``zstd -d`` decompresses the whole file, and reading one record decompresses only one frame. ``*.parquet`` contains one row per record: its
scalars (see :class:`cglsuite.cells.records.frame.Row`; ``metrics.NAME`` and so on are numeric columns), the digest of its line, and its
position. A listing or a table of results reads only the Parquet file. Nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cglsuite.base.errors import StoreError
from cglsuite.base.inputs import key_path, problem_text
from cglsuite.cells.records.frame import GROUPS, Row, Summary
from cglsuite.cells.records.record import SCHEMA, Curves, NoCurvesError, Record

if TYPE_CHECKING:
    import pyarrow as pa


JSONL, PARQUET, SEARCHES = ".jsonl.zst", ".parquet", ".searches.zst"
FRAME_BYTES = 2**20
"""The minimum size of a frame before compression, except for the last frame."""
MAX_FRAME_BYTES = 2**28
_MAX_SEARCHES = _MAX_TABLE = 2**30
_LEVEL = 6
SUMMARY = (*(f.name for f in dataclasses.fields(Summary)), "key")
_SCALARS = tuple(f.name for f in dataclasses.fields(Row) if f.name not in {*GROUPS, "matrix"})
_TEXT = "status reason design sha256 key scenario preset dataset setting protocol method backbone device dtype core_version torch"
_NULLABLE = {"reason", "torch", "validation_average_performance"}
_TEXTS = {*_TEXT.split(), "configuration", "pairing", "made_by", "training"}


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a record: its frame in the file (start and length), the frame's decompressed size, and the record's line in the
    frame."""

    frame: int
    frame_bytes: int
    frame_size: int
    line: int
    line_bytes: int


PLACE = tuple(f.name for f in dataclasses.fields(Position))


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The two files of a shard, and the number of its records."""

    jsonl: bytes
    parquet: bytes
    records: int


def is_line(content: bytes) -> bool:
    """Return whether the content of a record's file is a valid line of a shard: a single line with the current schema."""
    return content.endswith(b"\n") and content.count(b"\n") == 1 and b'"schema":%d,"status":' % SCHEMA in content


def pack(rows: Sequence[Row], lines: Iterable[bytes]) -> Shard:
    """Pack records into a shard in the order of ``rows``. The same records give the same bytes.

    Args:
        rows: each with the digest of its line. lines: the lines themselves; see :func:`is_line`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    codec = pa.Codec("zstd", compression_level=_LEVEL)
    frames: list[bytes] = []
    positions: list[Position] = []
    waiting: list[bytes] = []
    start = 0

    def close() -> None:
        nonlocal start
        whole = b"".join(waiting)
        frames.append(codec.compress(whole, asbytes=True))
        at = 0
        for line in waiting:
            positions.append(Position(start, len(frames[-1]), len(whole), at, len(line)))
            at += len(line)
        start += len(frames[-1])
        waiting.clear()

    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= FRAME_BYTES:
            close()
            size = 0
    if waiting:
        close()
    sink = pa.BufferOutputStream()
    pq.write_table(_table(rows, positions), sink, compression="zstd")
    return Shard(jsonl=b"".join(frames), parquet=sink.getvalue().to_pybytes(), records=len(rows))


def _table(rows: Sequence[Row], positions: Sequence[Position]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in _SCALARS:
        columns[name] = pa.array([getattr(row, name) for row in rows], type=_type(name))
    for name in PLACE:
        columns[name] = pa.array([getattr(position, name) for position in positions], type=pa.int64())
    columns["matrix"] = pa.array([row.matrix for row in rows], type=pa.list_(pa.list_(pa.float64())))
    absent: list[list[str]] = [[] for _ in rows]
    for group in GROUPS:
        held = [getattr(row, group) for row in rows]
        for name in sorted({name for record in held for name in record}):
            columns[f"{group}.{name}"] = _numbers([record.get(name) for record in held])
            for held_row, lacking in zip(held, absent, strict=True):
                if name not in held_row:
                    lacking.append(f"{group}.{name}")
    columns["absent"] = pa.array([names or None for names in absent], type=pa.list_(pa.string()))
    return pa.table(columns)


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in _TEXTS:
        return pa.string()
    return {"validation_average_performance": pa.float64()}.get(name, pa.int64())


def _numbers(values: Sequence[float | None]) -> pa.Array:
    import pyarrow as pa

    whole = all(value is None or isinstance(value, int) for value in values) and any(value is not None for value in values)
    return pa.array([value if value is None or whole else float(value) for value in values], type=pa.int64() if whole else pa.float64())


def read_table(parquet: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file from a path or a buffer with its bytes, restricted to ``columns`` if any are named.

    Raises:
        StoreError: it is not a Parquet file, or its columns differ from those that :func:`pack` writes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(parquet)
        if (size := sum(file.metadata.row_group(n).total_byte_size for n in range(file.num_row_groups))) > _MAX_TABLE:
            raise StoreError(f"its Parquet file decompresses to {size:,} bytes; expected at most {_MAX_TABLE:,}")
        schema = file.schema_arrow
        for name in (*_SCALARS, *PLACE):
            if name not in schema.names or schema.field(name).type != _type(name):
                raise StoreError(f"its Parquet file has no column {name!r} of type {_type(name)}, so it was not written by cglsuite")
        for field in schema:
            if field.name.partition(".")[0] in GROUPS and field.type not in (pa.int64(), pa.float64()):
                raise StoreError(f"its column {field.name!r} contains {field.type}; expected numbers")
        table: pa.Table = file.read(columns=None if columns is None else list(columns))
        for name in table.column_names:
            if name in (*_SCALARS, *PLACE) and name not in _NULLABLE and table.column(name).null_count:
                raise StoreError(f"its column {name!r} has empty fields")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise StoreError(f"its Parquet file cannot be read: {error!s:.200}") from error
    return table


def rows_of(table: pa.Table) -> Iterator[Row]:
    """Yield the rows of a complete table from :func:`read_table`."""
    groups = {group: [name for name in table.column_names if name.startswith(f"{group}.")] for group in GROUPS}
    values = {
        name: table.column(name).to_pylist() for name in (*_SCALARS, "matrix", "absent", *(n for some in groups.values() for n in some))
    }
    short = {name: name.partition(".")[2] for some in groups.values() for name in some}
    for place in range(table.num_rows):
        lacking = values["absent"][place] or ()
        numbers: dict[str, Any] = {}
        for group, names in groups.items():
            numbers[group] = {short[name]: values[name][place] for name in names if name not in lacking}
        scalars = {name: values[name][place] for name in _SCALARS}
        yield Row(**scalars, **numbers, matrix=values["matrix"][place] or [])


def read_frame(compressed: bytes, size: int) -> bytes:
    """Decompress a frame to exactly ``size`` bytes.

    Raises:
        StoreError: the frame is damaged, or has a different size.
    """
    import pyarrow as pa

    if not 0 < size <= MAX_FRAME_BYTES:
        raise StoreError(f"a frame has {size:,} bytes; expected at most {MAX_FRAME_BYTES:,}")
    try:
        content: bytes = pa.Codec("zstd").decompress(compressed, decompressed_size=size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"it cannot be decompressed: {error!s:.200}") from error
    if len(content) != size:
        raise StoreError(f"a frame has {len(content):,} bytes instead of {size:,}")
    return content


def check(jsonl: bytes, table: pa.Table) -> Iterator[str]:
    """Yield the faults in a shard. Every record is read, validated (digest, schema and bounds), and compared with its row.

    Args:
        table: its complete Parquet file.
    """
    columns = {name: table.column(name).to_pylist() for name in PLACE}
    end = 0
    frame, content = Position(0, 0, 0, 0, 0), b""
    for number, row in enumerate(rows_of(table)):
        position = Position(*(columns[name][number] for name in PLACE))
        if position.frame != frame.frame or number == 0:
            if position.frame != end or position.frame_bytes < 1 or end + position.frame_bytes > len(jsonl):
                yield f"record {row.key[:12]} has a position where no frame begins"
                return
            end = position.frame + position.frame_bytes
            try:
                content, frame = read_frame(jsonl[position.frame : end], position.frame_size), position
            except StoreError as error:
                yield str(error)
                return
        yield from _differences(content[position.line : position.line + position.line_bytes], row)
    if end != len(jsonl):
        yield f"{len(jsonl) - end:,} bytes belong to no record"


def _differences(line: bytes, row: Row) -> Iterator[str]:
    name = f"record {row.key[:12]}"
    sha256 = hashlib.sha256(line).hexdigest()
    if sha256 != row.sha256:
        yield f"{name}: its bytes have the digest {sha256[:12]}, but its row says {row.sha256[:12]}"
        return
    try:
        record = Record.from_json(line)
    except StoreError as error:
        yield f"{name}: {error}"
        return
    computed = Row.of(record, sha256)
    for column in dataclasses.fields(Row):
        value, expected = getattr(row, column.name), getattr(computed, column.name)
        if value != expected:
            yield f"{name}: its row says {column.name} {value!r:.60}, but the record says {expected!r:.60}"
            return


def read_searches(content: bytes, sha256: str) -> dict[str, Any]:
    """Read the outcomes in a file of searches, by digest.

    Raises:
        StoreError: the file was truncated or altered, or is not a file of search outcomes.
    """
    import pyarrow as pa

    if hashlib.sha256(content).hexdigest() != sha256:
        raise StoreError("outcomes of searches do not match the digest in their name: they were truncated or altered")
    try:
        text = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(_MAX_SEARCHES + 1)
        outcomes = json.loads(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"not a file of search outcomes: {error}") from error
    if not isinstance(outcomes, dict) or not all(
        re.fullmatch(r"[0-9a-f]{16,128}", name, re.ASCII) and isinstance(outcome, dict) for name, outcome in outcomes.items()
    ):
        raise StoreError("not a file of search outcomes: expected an object of objects by digest")
    return outcomes


# Published curves: a Parquet file with a row per record: key, digest, and JSON text (see :mod:`cglsuite.cells.records.record`).
# Row groups are small, so reading the curves of one record reads one group. Nothing is unpickled.

CURVE_TABLE = ".curves.parquet"
_GROUP = 64
_CURVES_LEVEL = 9


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("key", pa.string()), ("digest", pa.string()), ("text", pa.binary())])


def pack_curves(rows: Iterable[tuple[str, Curves]]) -> bytes:
    """Serialise a table with the curves of records, in the order of ``rows``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, waiting = pa.BufferOutputStream(), list[tuple[str, str, bytes]]()
    with pq.ParquetWriter(sink, _schema(), compression="zstd", compression_level=_CURVES_LEVEL) as writer:
        for key, curves in rows:
            waiting.append((key, curves.digest, curves.text))
            if len(waiting) == _GROUP:
                writer.write_table(_curve_table(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(_curve_table(waiting))
    return bytes(sink.getvalue().to_pybytes())


def _curve_table(rows: list[tuple[str, str, bytes]]) -> pa.Table:
    import pyarrow as pa

    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=_schema())


class CurveTable:
    """A table of curves, read from a path or from a buffer with its bytes.

    Raises:
        StoreError: it is not a Parquet file, or has different columns.
    """

    def __init__(self, source: Any, name: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = name
        try:
            self._file = pq.ParquetFile(source)
            if self._file.schema_arrow != _schema():
                raise StoreError(f"{name} has columns other than 'key', 'digest' and 'text', so it was not written by cglsuite")
            self.places = dict(self._places())
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{name} cannot be read: {error!s:.200}") from error

    def _places(self) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
        """Yield the row group of every (key, digest), and its row in the group."""
        for group in range(self._file.num_row_groups):
            names = self._file.read_row_group(group, columns=["key", "digest"])
            for place, name in enumerate(zip(names.column("key").to_pylist(), names.column("digest").to_pylist(), strict=True)):
                yield name, (group, place)

    def read(self, key: str, digest: str) -> Curves | None:
        """Return the curves of a record, or None if they are not in the table.

        Raises:
            NoCurvesError: the stored curves have a different digest.
        """
        if (at := self.places.get((key, digest))) is None:
            return None
        group, place = at
        text = self._file.read_row_group(group, columns=["text"]).column("text")[place].as_py()
        return Curves.read(text, digest, self.name)


class CurveTables:
    """The tables of curves in a publication.

    Args:
        folder: where the publication is. report: called with the name of a table that cannot be used, and the reason.
    """

    def __init__(self, folder: Any, pieces: Iterable[Piece], report: Callable[[str, str], object]) -> None:
        self._folder = folder
        self._tables = [table for piece in pieces if (table := self._table(piece, report)) is not None]

    def find(self, key: str, digest: str) -> Curves | None:
        """Return the curves of a record if they have the given digest, or ``None`` if it has no curves. Raises NoCurvesError if they
        differ.
        """
        return next((curves for table in self._tables if (curves := table.read(key, digest)) is not None), None)

    def read(self, key: str, digest: str) -> Curves:
        """Return the curves of a record. Raises NoCurvesError if it has none."""
        if (curves := self.find(key, digest)) is None:
            raise NoCurvesError(f"record {key[:12]}: its curves are not in {self._folder}")
        return curves

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the key and the digest of all curves."""
        return (name for table in self._tables for name in table.places)

    def _table(self, piece: Piece, report: Callable[[str, str], object]) -> CurveTable | None:
        import pyarrow as pa

        place = place_of(piece, CURVE_TABLE)
        name = f"{self._folder}/{place}"
        try:
            if (here := getattr(self._folder, "path", None)) is None:
                return CurveTable(pa.BufferReader(self._folder.read(place, max_bytes=piece.bytes)), name)
            if (size := self._folder.size(place)) is None:
                raise FileNotFoundError
            if size != piece.bytes:
                raise StoreError(f"{size:,} bytes instead of {piece.bytes:,}: truncated or altered")
            return CurveTable(here / place, name)
        except FileNotFoundError:
            report(name, "curves are missing: `cglsuite pull` downloads them again")
        except StoreError as error:
            report(name, str(error))
        return None


# The manifest of published shards: entries that are only ever added.
# Below the folder of a publication::
#
#     manifest/SHA256.json            an entry: what one call of publish has added
#     manifest/numbers/00000001       the name of the first entry, and so on
#     shards/AB/SHA256.jsonl.zst      records
#     shards/AB/SHA256.parquet        the scalars of these records
#     shards/AB/SHA256.searches.zst   outcomes of searches
#     shards/AB/SHA256.curves.parquet curves, on request
#
# Every file is named by the SHA-256 of its bytes and never changes, so two publishers write different files on any file system. An entry
# names its parents, the entries that existed before it, so a missing entry is noticed. A number is created only if it does not exist.
# Numbers order the entries, and lead to them readers that cannot list a folder (http). On a file system that cannot create a file
# exclusively, two publishers may take the same number. Then one entry has no number until the next call of publish assigns one, but is
# still listed. No path is read from an entry: paths follow from digests.

FORMAT: Final = 2
"""The format of entries that list curves; entries without curves have format 1."""
MANIFEST = "manifest"
NUMBERS = f"{MANIFEST}/numbers"
MAX_BYTES = 2**30
"""The largest file of a shard."""
_MAX_ENTRY_BYTES = 2**24
_MAX_NUMBER = 2**20
_MAX_GAP = 16
"""The longest gap between numbered names; some web servers return a page for every address."""
_ENTRY = re.compile(r"([0-9a-f]{64})\.json", re.ASCII)
_MAX_ENTRIES = 100_000
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]


class Folder(Protocol):
    """The interface of a local or remote folder that contains a publication. Names use ``/`` as the separator."""

    lists: bool
    """Whether the folder's files can be listed."""

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """Return the content of a file of at most ``max_bytes`` bytes. Raises FileNotFoundError, or StoreError for any other reason."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder. There are none if the folder does not exist."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless it exists; return whether it was written. Raises StoreError."""


class NewerFormatError(StoreError):
    """An entry of a manifest was written by a later version of the suite."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Piece(_Strict):
    """A file of a shard, identified by its digest and number of bytes."""

    sha256: Sha256
    bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)]


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
    """An entry with its name, which is the SHA-256 (hex) of its bytes."""

    name: str
    content: bytes
    model: EntryModel


@dataclass(kw_only=True)
class Manifest:
    """The parsed content of a manifest.

    Args:
        entries: sorted by number, then those without a number by time and name. numbered: names with a number. last: the highest number.
        problems: the names of files that cannot be used, with the reason. newer: the problems that are entries of a later version of the
            suite.
    """

    entries: list[Entry] = field(default_factory=list)
    numbered: set[str] = field(default_factory=set)
    last: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    newer: list[tuple[str, str]] = field(default_factory=list)


def place_of(piece: Piece, ending: str) -> str:
    """Return the path of a piece relative to the folder of a publication."""
    return f"shards/{piece.sha256[:2]}/{piece.sha256}{ending}"


def entry_place(name: str) -> str:
    """Return the path of an entry relative to the folder of a publication."""
    return f"{MANIFEST}/{name}.json"


def entry_text(
    *, suite: str, written: str, parents: Iterable[str], shards: Sequence[ShardPieces], searches: Piece | None, curves: Sequence[Piece] = ()
) -> bytes:
    """Serialise a new entry."""
    facts: dict[str, Any] = {"suite": suite, "written": written, "parents": sorted(parents), "shards": list(shards), "searches": searches}
    model = EntryModel(**facts, format=FORMAT, curves=list(curves)) if curves else EntryModel(**facts, format=1)
    content = model.model_dump(exclude=None if curves else {"curves"})
    return (json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n").encode()


def read_manifest(folder: Folder, known: Mapping[str, Entry] | None = None) -> Manifest:
    """Read the manifest in ``folder``. An entry that cannot be read is reported as a problem, and the others are read.

    Args:
        known: entries that need not be read again, by name.

    Raises:
        StoreError: the folder cannot be read.
    """
    manifest = Manifest()
    numbers = _names_by_number(folder)
    manifest.last = max(numbers, default=0)
    ordered = list(dict.fromkeys(name for _, name in sorted(numbers.items())))
    manifest.numbered = set(ordered)
    listed = [match[1] for name in folder.names(MANIFEST) if (match := _ENTRY.fullmatch(name))] if folder.lists else []
    named_by = dict.fromkeys([*ordered, *sorted(listed)], f"a number in {NUMBERS}/")
    waiting = list(named_by)
    entries: dict[str, Entry] = {}
    while waiting:
        name = waiting.pop()
        try:
            entries[name] = (known or {}).get(name) or _entry(folder, name)
        except FileNotFoundError:
            manifest.problems.append((entry_place(name), f"it is missing, although {named_by[name]} names it"))
        except StoreError as error:
            manifest.problems.append((entry_place(name), str(error)))
            manifest.newer += manifest.problems[-1:] if isinstance(error, NewerFormatError) else []
        else:
            new = [parent for parent in entries[name].model.parents if parent not in named_by]
            named_by.update(dict.fromkeys(new, f"entry {name[:12]}"))
            waiting += new
        if len(named_by) > _MAX_ENTRIES:
            raise StoreError(f"the manifest has more than {_MAX_ENTRIES:,} entries: this is not a folder of published results")
    rest = sorted(entries.keys() - manifest.numbered, key=lambda name: (entries[name].model.written, name))
    manifest.entries = [entries[name] for name in (*ordered, *rest) if name in entries]
    return manifest


def number_entries(folder: Folder, manifest: Manifest, names: Sequence[str] = ()) -> None:
    """Assign numbers to all entries that have none, and then to ``names``."""
    number = manifest.last + 1
    for name in dict.fromkeys([*(e.name for e in manifest.entries), *names]):
        if name in manifest.numbered:
            continue
        while not folder.create(f"{NUMBERS}/{number:08d}", f"{name}\n".encode()):
            number += 1  # another publisher was faster
        manifest.numbered.add(name)
        manifest.last = number


def _names_by_number(folder: Folder) -> dict[int, str]:
    """Return the entry's name behind each number. Numbers that hold no name are skipped, since entries are also listed and name their
    parents."""
    if folder.lists:
        numbers = [int(name) for name in folder.names(NUMBERS) if re.fullmatch(r"[0-9]{8}", name, re.ASCII)]
        return {number: name for number in numbers if (name := _name_at(folder, number))}
    names: dict[int, str] = {}
    for number in range(1, _MAX_ENTRIES):
        name = _name_at(folder, number)
        if name is None or number - max(names, default=0) > _MAX_GAP:
            break
        if name:
            names[number] = name
    return names


def _name_at(folder: Folder, number: int) -> str | None:
    """Return the entry's name under a number: ``""`` if the number holds something else, None if it does not exist."""
    try:
        name = folder.read(f"{NUMBERS}/{number:08d}", max_bytes=_MAX_NUMBER).decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return name if re.fullmatch(r"[0-9a-f]{64}", name, re.ASCII) else ""


def _entry(folder: Folder, name: str) -> Entry:
    content = folder.read(entry_place(name), max_bytes=_MAX_ENTRY_BYTES)
    if hashlib.sha256(content).hexdigest() != name:
        raise StoreError("its content does not match the digest in its name: it was truncated or altered; copy it again from its source")
    return Entry(name=name, content=content, model=_model(content))


def _model(content: bytes) -> EntryModel:
    try:
        data: Any = json.loads(content)
    except ValueError as error:
        raise StoreError(f"not a JSON file: {error}") from error
    version = data.get("format") if isinstance(data, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
        raise NewerFormatError(
            f"the entry has format {version}, but this version of cglsuite supports formats up to {FORMAT}: upgrade cglsuite"
        )
    try:
        return EntryModel.model_validate(data)
    except ValidationError as error:
        problems = [f"{key_path(e['loc']) or 'entry'}: {problem_text(e)}" for e in error.errors(include_url=False)[:3]]
        raise StoreError(f"not an entry of a manifest: {'; '.join(problems)}") from error
