"""Shards: many records in one pair of files that never change.

``*.jsonl.zst`` holds the records, one per line, as their files would hold them. It is a sequence of zstd frames of whole lines, so
``zstd -d`` decompresses all of it, and one record costs one frame. ``*.parquet`` holds a row per record: its scalars (see
:class:`cglsuite.cells.records.rows.Row`; ``metrics.NAME`` and so on are columns of numbers), the digest of its line, and where it is. A
listing or a table of results reads the Parquet file alone. Nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import StoreError
from cglsuite.cells.records.record import SCHEMA, Record
from cglsuite.cells.records.rows import GROUPS, Row, Summary

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "JSONL",
    "PARQUET",
    "SEARCHES",
    "Position",
    "Shard",
    "check",
    "is_line",
    "pack",
    "read_frame",
    "read_searches",
    "read_table",
    "rows_of",
]

JSONL, PARQUET, SEARCHES = ".jsonl.zst", ".parquet", ".searches.zst"
FRAME_BYTES = 2**20
"""The least size of a frame before compression, but for the last one."""
MOST_FRAME_BYTES = 2**28
_MOST_SEARCHES = 2**30
_LEVEL = 6
SUMMARY = (*(f.name for f in dataclasses.fields(Summary)), "key")
_SCALARS = tuple(f.name for f in dataclasses.fields(Row) if f.name not in {*GROUPS, "matrix"})
_TEXT = "status reason design sha256 key scenario preset dataset setting protocol method backbone device dtype core_version torch"
_NULLABLE = {"reason", "torch", "validation_average_performance"}
_TEXTS = {*_TEXT.split(), "configuration", "pairing", "made_by", "training"}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record is: its frame in the file (start and length), the frame's size once decompressed, and its line in that."""

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
    """Whether the bytes of a record's file can be a line of a shard: they are one, of today's schema."""
    return content.endswith(b"\n") and content.count(b"\n") == 1 and b'"schema":%d,"status":' % SCHEMA in content


def pack(rows: Sequence[Row], lines: Iterable[bytes]) -> Shard:
    """A shard of records, in the order given. The same records give the same bytes.

    Args:
        rows: with the digest of its line each. lines: see :func:`is_line`.
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
        for name in sorted({name for one in held for name in one}):
            columns[f"{group}.{name}"] = _numbers([one.get(name) for one in held])
            for one, lacking in zip(held, absent, strict=True):
                if name not in one:
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
    """The rows of a Parquet file (its bytes as a buffer, or a path), or these ``columns`` of them.

    Raises:
        StoreError: it is no Parquet file, or has other columns than :func:`pack` writes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(parquet)
        schema = file.schema_arrow
        for name in (*_SCALARS, *PLACE):
            if name not in schema.names or schema.field(name).type != _type(name):
                raise StoreError(f"its Parquet file has no column {name} of type {_type(name)}: it was not written by this suite")
        for field in schema:
            if field.name.partition(".")[0] in GROUPS and field.type not in (pa.int64(), pa.float64()):
                raise StoreError(f"its column {field.name} holds {field.type}; expected numbers")
        table: pa.Table = file.read(columns=None if columns is None else list(columns))
        for name in table.column_names:
            if name in (*_SCALARS, *PLACE) and name not in _NULLABLE and table.column(name).null_count:
                raise StoreError(f"its column {name} has empty fields")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise StoreError(f"its Parquet file cannot be read: {error!s:.200}") from error
    return table


def rows_of(table: pa.Table) -> Iterator[Row]:
    """The rows of a table that :func:`read_table` has read whole."""
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
    """A frame decompressed to exactly ``size`` bytes.

    Raises:
        StoreError: it is damaged, or has another size.
    """
    import pyarrow as pa

    if not 0 < size <= MOST_FRAME_BYTES:
        raise StoreError(f"a frame of {size:,} bytes; expected at most {MOST_FRAME_BYTES:,}")
    try:
        content: bytes = pa.Codec("zstd").decompress(compressed, decompressed_size=size, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"it cannot be decompressed: {error!s:.200}") from error
    if len(content) != size:
        raise StoreError(f"a frame has {len(content):,} bytes instead of {size:,}")
    return content


def check(jsonl: bytes, table: pa.Table) -> Iterator[str]:
    """What is wrong with a shard: every record is read, with its digest, schema and bounds, and compared with its row.

    Args:
        table: its Parquet file, whole.
    """
    columns = {name: table.column(name).to_pylist() for name in PLACE}
    end = 0
    frame, content = Position(0, 0, 0, 0, 0), b""
    for number, row in enumerate(rows_of(table)):
        position = Position(*(columns[name][number] for name in PLACE))
        if position.frame != frame.frame or number == 0:
            if position.frame != end or position.frame_bytes < 1 or end + position.frame_bytes > len(jsonl):
                yield f"record {row.key[:12]} is said to be where no frame begins"
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
        yield f"{name}: its bytes have the digest {sha256[:12]}, its row says {row.sha256[:12]}"
        return
    try:
        record = Record.from_json(line)
    except StoreError as error:
        yield f"{name}: {error}"
        return
    computed = Row.of(record, sha256)
    for column in dataclasses.fields(Row):
        stated, expected = getattr(row, column.name), getattr(computed, column.name)
        if stated != expected:
            yield f"{name}: its row says {column.name} {stated!r:.60}, the record {expected!r:.60}"
            return


def read_searches(content: bytes, sha256: str) -> dict[str, Any]:
    """The outcomes in a file of searches, by digest.

    Raises:
        StoreError: it was truncated or altered, or holds something else.
    """
    import pyarrow as pa

    if hashlib.sha256(content).hexdigest() != sha256:
        raise StoreError("outcomes of searches do not have the digest that they are named by: they were truncated or altered")
    try:
        text = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(_MOST_SEARCHES + 1)
        outcomes = json.loads(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"no outcomes of searches: {error}") from error
    if not isinstance(outcomes, dict) or not all(
        re.fullmatch(r"[0-9a-f]{16,128}", name, re.ASCII) and isinstance(one, dict) for name, one in outcomes.items()
    ):
        raise StoreError("no outcomes of searches: expected an object of objects by digest")
    return outcomes
