"""Records in files of their own: reading one, and one as a copy that a merge takes."""

from __future__ import annotations

import errno
from pathlib import Path

from cglsuite.base.errors import StoreError
from cglsuite.base.inputs import read_regular
from cglsuite.cells.records.record import Record

__all__ = ["FileCopy", "read_record", "read_record_file"]


class FileCopy:
    """A record with a file of its own."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

    def __str__(self) -> str:
        return str(self.path)

    def content(self) -> bytes:
        """The bytes of the file."""
        return read_regular(self.path)

    def read(self) -> tuple[bytes, Record]:
        """The bytes and the record; see :func:`read_record`."""
        return read_record_file(self.path, self.key)


def read_record(path: Path, key: str | None = None) -> Record:
    """The record in a file that is named after its key, or after ``key``.

    Raises:
        OSError: it cannot be read. NewerSchemaError: a later version of the suite wrote it.
        StoreError: it is damaged, is no record, or is the record of another key.
    """
    return read_record_file(path, key)[1]


def read_record_file(path: Path, key: str | None = None) -> tuple[bytes, Record]:
    """The content of a file, and the record in it; see :func:`read_record`."""
    try:
        content = read_regular(path)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise StoreError(error.strerror) from error
        raise
    record = Record.from_json(content)
    if record.key != (key or path.stem):
        raise StoreError(f"the record of another key ({record.key[:16]}) under this name")
    return content, record
