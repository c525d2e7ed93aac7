"""Published curves: a Parquet file with a row per record: key, digest, and JSON text (see :mod:`cglsuite.cells.records.curves`).

Row groups are small, so the curves of one record cost one of them. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cglsuite.base.errors import StoreError
from cglsuite.cells.records.curves import Curves, NoCurvesError

if TYPE_CHECKING:
    import pyarrow as pa

    from cglsuite.cells.storage.manifest import Piece

__all__ = ["CURVE_TABLE", "CurveTable", "CurveTables", "pack_curves"]

CURVE_TABLE = ".curves.parquet"
_GROUP = 64
_LEVEL = 9


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("key", pa.string()), ("digest", pa.string()), ("text", pa.binary())])


def pack_curves(rows: Iterable[tuple[str, Curves]]) -> bytes:
    """The bytes of a table of the curves of records by key, in the order given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, waiting = pa.BufferOutputStream(), list[tuple[str, str, bytes]]()
    with pq.ParquetWriter(sink, _schema(), compression="zstd", compression_level=_LEVEL) as writer:
        for key, curves in rows:
            waiting.append((key, curves.digest, curves.text))
            if len(waiting) == _GROUP:
                writer.write_table(_table(waiting))
                waiting.clear()
        if waiting:
            writer.write_table(_table(waiting))
    return bytes(sink.getvalue().to_pybytes())


def _table(rows: list[tuple[str, str, bytes]]) -> pa.Table:
    import pyarrow as pa

    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=_schema())


class CurveTable:
    """A table that is read, from a path or from its bytes as a buffer.

    Raises:
        StoreError: it is no Parquet file, or has other columns.
    """

    def __init__(self, source: Any, name: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.name = name
        try:
            self._file = pq.ParquetFile(source)
            if self._file.schema_arrow != _schema():
                raise StoreError(f"{name} has other columns than key, digest and text: it was not written by this suite")
            self.places = dict(self._places())
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{name} cannot be read: {error!s:.200}") from error

    def _places(self) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
        """(key, digest) of every row, and its row group and place in that."""
        for group in range(self._file.num_row_groups):
            names = self._file.read_row_group(group, columns=["key", "digest"])
            for place, name in enumerate(zip(names.column("key").to_pylist(), names.column("digest").to_pylist(), strict=True)):
                yield name, (group, place)

    def read(self, key: str, digest: str) -> Curves | None:
        """The curves of a record; None if they are not in the table.

        Raises:
            NoCurvesError: they have another digest.
        """
        if (at := self.places.get((key, digest))) is None:
            return None
        group, place = at
        text = self._file.read_row_group(group, columns=["text"]).column("text")[place].as_py()
        return Curves.read(text, digest, self.name)


class CurveTables:
    """The tables of a publication.

    Args:
        folder: where it is. report: called with the name of a table that cannot be used, and why.
    """

    def __init__(self, folder: Any, pieces: Iterable[Piece], report: Callable[[str, str], object]) -> None:
        self._folder = folder
        self._tables = [table for piece in pieces if (table := self._table(piece, report)) is not None]

    def find(self, key: str, digest: str) -> Curves | None:
        """The curves of a record that have this digest; None without them. Raises NoCurvesError if what is there has another."""
        return next((found for table in self._tables if (found := table.read(key, digest)) is not None), None)

    def read(self, key: str, digest: str) -> Curves:
        """The same; raises NoCurvesError without them."""
        if (found := self.find(key, digest)) is None:
            raise NoCurvesError(f"record {key[:12]}: its curves are not in {self._folder}")
        return found

    def names(self) -> Iterator[tuple[str, str]]:
        """The key and the digest of all curves."""
        return (name for table in self._tables for name in table.places)

    def _table(self, piece: Piece, report: Callable[[str, str], object]) -> CurveTable | None:
        import pyarrow as pa

        from cglsuite.cells.storage.manifest import place_of

        place = place_of(piece, CURVE_TABLE)
        name = f"{self._folder}/{place}"
        try:
            if (here := getattr(self._folder, "path", None)) is None:
                return CurveTable(pa.BufferReader(self._folder.read(place, most=piece.bytes)), name)
            if (size := self._folder.size(place)) is None:
                raise FileNotFoundError
            if size != piece.bytes:
                raise StoreError(f"{size:,} bytes instead of {piece.bytes:,}: truncated or altered")
            return CurveTable(here / place, name)
        except FileNotFoundError:
            report(name, "curves are missing: `cglsuite pull` brings them again")
        except StoreError as error:
            report(name, str(error))
        return None
