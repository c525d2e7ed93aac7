"""Arrays in one uncompressed npz file, verified when opened; large ones are mapped into memory, so that processes share them."""

from __future__ import annotations

import struct
import zipfile
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]

__all__ = ["read_arrays", "write_arrays"]

_MAPPED_BYTES = 1 << 20
"""Arrays of at least this size are mapped."""
_ALIGNMENT = 64
_CHUNK_BYTES = 1 << 20
_NAMES = "__names__"
_LOCAL_HEADER_BYTES, _ZIP64_BYTES = 30, 20  # APPNOTE.TXT 4.3.7 and 4.5.3
_PADDING = 0xD935  # the extra field that other tools use to align members


def write_arrays(stream: IO[bytes], arrays: Arrays) -> None:
    """Write arrays of plain numbers as an npz whose members begin at multiples of 64 bytes.

    Args:
        stream: a file that can seek.
    """
    import numpy as np

    names = np.array(sorted(arrays))
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {**arrays, _NAMES: names}.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            begin = stream.tell() + _LOCAL_HEADER_BYTES + len(member.filename.encode()) + _ZIP64_BYTES + 4
            padding = -begin % _ALIGNMENT
            member.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(member, "w", force_zip64=True) as opened:
                np.lib.format.write_array(opened, np.asarray(array), allow_pickle=False)


def read_arrays(file: IO[bytes]) -> Arrays:
    """The arrays of a file by :func:`write_arrays` or ``numpy.savez``, whose every byte has been compared with its checksum.

    Large arrays are mapped: processes that read the same file share its pages, and what one writes into its array is its own.

    Args:
        file: opened for reading in binary mode; it may be closed afterwards.

    Raises:
        OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile: the file is damaged.
    """
    import numpy as np

    arrays: Arrays = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            mapped = _mapped(file, archive, member)
            if mapped is not None:
                arrays[name] = mapped
                continue
            with archive.open(member) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
                # zipfile compares the CRC at the end of a member: go there, whatever shape the header claimed.
                if stream.read():
                    raise ValueError(f"{member.filename} is longer than its header says")
    # A damaged directory of the archive can hide a member.
    if (names := arrays.pop(_NAMES).tolist()) != sorted(arrays):
        raise ValueError(f"it should hold {names}")
    return arrays


def _mapped(file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any] | None:
    """A large member as a mapped array, after its checksum; ``None`` if it is small, compressed, of Python objects or not aligned."""
    import numpy as np

    if member.file_size < _MAPPED_BYTES or member.compress_type != zipfile.ZIP_STORED:
        return None
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            return None
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read_header(stream)
        header = stream.tell()
        if dtype.hasobject:
            return None  # refused where it is read
        if int(np.prod(shape, dtype=object)) * dtype.itemsize != member.file_size - header:
            raise ValueError(f"{member.filename} has another size than its header says")
        while stream.read(_CHUNK_BYTES):
            pass
    file.seek(member.header_offset)
    names, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER_BYTES)[26:])
    offset = member.header_offset + _LOCAL_HEADER_BYTES + names + extra + header
    if offset % dtype.itemsize:
        return None
    whole = np.memmap(file, dtype=dtype, mode="c", offset=offset, shape=shape, order="F" if by_columns else "C")
    return whole.view(np.ndarray)
