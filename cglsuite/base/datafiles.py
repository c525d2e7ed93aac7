"""Raw data files and the arrays derived from them: locate them, download missing files and verify checksums.

The *data root* is one or more folders of raw files provided by the user (``CGLSUITE_DATA``). Nothing is ever written to them. A file
is taken from the first folder that has it. The suite writes only to the *cache* (``CGLSUITE_CACHE``, else the platform's cache folder)::

    <cache>/downloads/   raw files downloaded from their public sources, each next to its ``.sha256``
    <cache>/derived/     arrays derived from raw files, one npz per content key
    <cache>/pins/        checksums of files without a published checksum, recorded at first read
    <cache>/checksums/   checksums of large files, so that each is hashed only once
    <cache>/staging/     short-lived folders in the layout that a library expects
    <cache>/locks/

Derived arrays are stored in one uncompressed npz file and verified when opened. Large ones are memory-mapped so that processes share them.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import shutil
import struct
import sys
import tempfile
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from cglsuite.base.atomic import new_file
from cglsuite.base.environment import variable
from cglsuite.base.errors import DataAbsentError, DataError, UsageError
from cglsuite.base.hashing import digest
from cglsuite.base.inputs import read_regular

__all__ = ["UNREADABLE", "DataRoot", "RawFile"]

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]


UNREADABLE = (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)
"""Exceptions that libraries raise on truncated or malformed files."""

_log = logging.getLogger(__name__)
_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 60
_STALE_S = 24 * 3600
_SETTLED_NS = 2_000_000_000
# What numpy and zipfile raise on a damaged npz; MemoryError: a damaged header can claim any shape.
_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class RawFile:
    """The content of a raw file, with its SHA-256 (hex)."""

    path: Path
    content: bytes
    sha256: str


class DataRoot:
    """Raw data files, local or downloaded, and a cache of arrays derived from them.

    Args:
        root: the read-only folder of raw files, or several in search order; ``None`` if there is none.
        cache: the folder to write to; ``None`` for the platform's cache folder.
        offline: never open a connection.
        verify: compare files with the checksums and sizes declared by loaders. ``False`` is meant for tests, which write tiny files
            in the real raw formats.

    Example:
        >>> DataRoot.from_environment().file("AmazonClothing20/amazon_clothing20.npz")  # doctest: +SKIP
    """

    def __init__(
        self, root: Path | Sequence[Path] | None = None, cache: Path | None = None, offline: bool = False, *, verify: bool = True
    ) -> None:
        roots = () if root is None else (root,) if isinstance(root, (str, os.PathLike)) else tuple(root)
        self.folders = tuple(dict.fromkeys(Path(folder).expanduser().absolute() for folder in roots))
        self.cache = Path(cache).expanduser().absolute() if cache is not None else platform_cache()
        self.offline = offline
        self.verify = verify

    @property
    def root(self) -> Path | None:
        """The first of the folders that hold raw files, or ``None`` if there are none."""
        return self.folders[0] if self.folders else None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> DataRoot:
        """Return the data root configured by ``CGLSUITE_DATA``, ``CGLSUITE_CACHE`` and ``CGLSUITE_OFFLINE``.

        Raises:
            UsageError: ``CGLSUITE_DATA`` names something that is not a folder, or ``CGLSUITE_OFFLINE`` is neither true nor false.
        """
        env = os.environ if environment is None else environment
        data, cache, offline = (variable(f"CGLSUITE_{name}", env) for name in ("DATA", "CACHE", "OFFLINE"))
        folders = _folders(data or "")
        for folder in folders:
            if not folder.expanduser().is_dir():
                which = f"CGLSUITE_DATA={data!r}" if len(folders) == 1 else f"CGLSUITE_DATA={data!r}: {str(folder)!r}"
                raise UsageError(
                    f"{which} is not a folder: set it to the folders that contain the data sets, separated by {os.pathsep!r}, or unset it"
                )
        return cls(folders, Path(cache) if cache else None, offline is True)

    def __repr__(self) -> str:
        folders = self.root if len(self.folders) < 2 else os.pathsep.join(map(str, self.folders))
        return f"DataRoot(root={folders}, cache={self.cache}, offline={self.offline}, verify={self.verify})"

    # Raw files

    def find(self, relative: str, *, sha256: str | None = None) -> Path | None:
        """Return the path of the verified file ``relative`` in the first data folder that has it or among earlier downloads, or ``None`` if
        it is missing.

        A damaged download counts as missing. Raises the same errors as :meth:`file`.
        """
        relative = _check_relative(relative)
        for folder in self.folders:
            if (present := folder / relative).exists():
                self._check_present(present, sha256)
                return present
        downloaded = self._downloads / relative
        if not downloaded.is_file():
            return None
        expected = sha256 or _recorded_checksum(downloaded)
        if self.verify and expected and (digest := self.sha256(downloaded)) != expected:
            _log.warning("%s is damaged (sha256 %s, expected %s) and is not used", downloaded, digest, expected)
            return None
        return downloaded

    def file(self, relative: str, *, sha256: str | None = None, urls: Iterable[str] = (), note: str = "") -> Path:
        """Return the path of the raw file ``relative``, downloading the file if it is missing.

        Args:
            relative: path below the data root, with forward slashes.
            sha256: expected checksum (hex). If it is unknown, the checksum of the first download is recorded and later ones must match it.
            urls: download addresses, tried in order.
            note: additional instructions for providing the file by hand.

        Raises:
            DataError: the file has a different checksum, or is missing and cannot be downloaded. The message explains which file to place
            where.
        """
        urls = tuple(urls)
        if (path := self.find(relative, sha256=sha256)) is not None:
            return path
        self._check_may_download([relative], sha256, urls, note)
        target = self._downloads / relative
        with self._lock(target):
            # Another process may have downloaded it while this one waited.
            path = self.find(relative, sha256=sha256)
            return path if path is not None else self._download(target, [relative], sha256, urls, note)

    def read(self, relative: str, *, sha256: str | None = None, pin: bool = False, urls: Iterable[str] = (), note: str = "") -> RawFile:
        """Read the raw file ``relative`` (see :meth:`file`) in a single pass, so that the checksum is that of the returned bytes.

        Args:
            pin: for files without a published checksum. The cache records the checksum at first read, and any other is an error later.

        Raises:
            DataError: see :meth:`file`; also if the file changed while it was read or since it was pinned.
        """
        path = self.file(relative, sha256=sha256, urls=urls, note=note)
        try:
            content = read_regular(path)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
        digest = hashlib.sha256(content).hexdigest()
        if self.verify and sha256 and digest != sha256:
            raise DataError(f"{path} has the wrong checksum: found sha256 {digest}, expected {sha256}. It changed while it was being read")
        if self.verify and pin:
            self._check_pin(relative, path, digest)
        return RawFile(path=path, content=content, sha256=digest)

    def unpacked(self, members: Mapping[str, str], *, urls: Iterable[str], sha256: str | None = None, note: str = "") -> dict[str, Path]:
        """Return the paths of raw files that are distributed in one zip archive, which is downloaded and unpacked if any are missing.

        Args:
            members: maps each path below the data root to a name inside the archive. No other members are unpacked.
            urls: download addresses of the archive, tried in order.
            sha256: expected checksum of the archive (hex); see :meth:`file`.
            note: additional instructions for providing the files by hand.

        Returns:
            The local path of each file, keyed by its path below the data root.

        Raises:
            DataError: a file is missing, and the archive cannot be downloaded or does not contain it.
        """
        urls = tuple(urls)
        paths = {relative: self.find(relative) for relative in members}
        absent = [relative for relative, path in paths.items() if path is None]
        if absent:
            self._check_may_download(absent, None, urls, note)
            archive = self._downloads / "archives" / urls[0].rpartition("/")[2]
            with self._lock(archive):
                paths = {relative: self.find(relative) for relative in members}
                if absent := [relative for relative, path in paths.items() if path is None]:
                    self._download(archive, absent, sha256, urls, note)
                    self._unpack(archive, {relative: members[relative] for relative in absent})
        return {relative: path if path is not None else self._downloads / relative for relative, path in paths.items()}

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 (hex) of a file, cached by its size, inode and timestamps. The digest of a file modified less than two seconds
        before it was read is not cached, since file-system clocks are too coarse to detect a further change.
        """
        try:
            with path.open("rb") as stream:
                status = os.fstat(stream.fileno())
                marks = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns, "inode": status.st_ino}
                state = {"path": str(path.absolute()), **marks}
                memo = self.cache / "checksums" / f"{digest(state)}.json"
                if (known := _read_memo(memo, state)) is not None:
                    return known
                began_ns = time.time_ns()
                computed = hashlib.file_digest(stream, "sha256").hexdigest()
                settled = os.fstat(stream.fileno()).st_ctime_ns == status.st_ctime_ns and began_ns - status.st_ctime_ns > _SETTLED_NS
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        if settled:
            _write_atomically(memo, json.dumps({**state, "sha256": computed}, sort_keys=True).encode())
        return computed

    # Derived arrays

    def derived(self, name: str, key: object, build: Callable[[], Arrays]) -> Arrays:
        """Return the arrays that ``build`` derives from raw files. They are built once per ``key`` and then read from the cache.

        Large arrays are memory-mapped, so processes that use the same data share one copy. Writing to the arrays does not change the
        cache.

        Args:
            name: the folder of the cache entry, such as the dataset's name.
            key: everything that determines the result (checksums of the raw files, the reader's version), as JSON-serialisable values.
            build: returns the arrays by name. It is called under a file lock, so that only one of several processes does the work.

        Raises:
            DataError: the cache cannot be used. A damaged entry is rebuilt. On a full disk the arrays are returned but not cached.
        """
        entry = self.cache / "derived" / _check_relative(name) / f"{digest(key)}.npz"
        if (arrays := _load(entry)) is not None:
            return arrays
        with self._lock(entry):
            if (arrays := _load(entry)) is None:
                arrays = build()
                _save(entry, arrays)
                # From now on this process uses the mapped arrays too, and the built ones are freed.
                arrays = _load(entry) or arrays
        return arrays

    @contextmanager
    def stage(self, files: Mapping[str, Path]) -> Iterator[Path]:
        """Provide raw ``files`` in a different layout, in a temporary folder of the cache (as links, or copies if links are impossible).

        Libraries that write next to their raw files (PyG's ``processed/``) write there and never into the data root.

        Args:
            files: maps each path inside the folder to a raw file.
        """
        parent = self._folder("staging")
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(prefix="stage-", dir=parent))
        try:
            for relative, source in files.items():
                target = folder / _check_relative(relative)
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    target.symlink_to(source.absolute())
                except (OSError, NotImplementedError):
                    shutil.copyfile(source, target)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # Internals

    @property
    def _downloads(self) -> Path:
        return self.cache / "downloads"

    def _check_present(self, path: Path, expected: str | None) -> None:
        if not path.is_file():
            raise DataError(f"{path} is not a file: expected a raw data file there")
        if self.verify and expected and (digest := self.sha256(path)) != expected:
            raise DataError(
                f"{path} has the wrong checksum: found sha256 {digest} ({path.stat().st_size:,} bytes), expected {expected}. The file is "
                "truncated or a different version: replace it, or delete it to have it downloaded"
            )

    def _check_pin(self, relative: str, path: Path, digest: str) -> None:
        pin = self.cache / "pins" / f"{relative}.sha256"
        try:
            pinned = read_regular(pin).decode("ascii", errors="replace").split()
        except FileNotFoundError:
            pinned = []
        except OSError as error:
            raise DataError(f"the checksum {pin} cannot be read: {error.strerror or error}") from error
        if pinned and pinned[0] != digest:
            raise DataError(
                f"{path} is not the file first read here: found sha256 {digest}, expected {pinned[0]}. It has no published checksum, "
                f"so the first file is the reference. Restore that file, or if the new one is correct, remove {pin}"
            )
        if not pinned:
            _log.info("%s: no checksum is published; later reads must match sha256 %s (%s)", path, digest, pin)
            _write_atomically(pin, f"{digest}  {path.name}\n".encode())

    def _check_may_download(self, relatives: list[str], sha256: str | None, urls: tuple[str, ...], note: str) -> None:
        if self.offline or not urls:
            why = "CGLSUITE_OFFLINE forbids downloads" if urls else "it has no public home to download it from"
            raise DataAbsentError(self._absent(relatives, why, sha256, urls, note))

    def _absent(self, relatives: list[str], why: str, sha256: str | None, urls: tuple[str, ...], note: str) -> str:
        where = str(self.root) if self.root is not None else "$CGLSUITE_DATA"
        what = f"the data file {relatives[0]} is" if len(relatives) == 1 else f"{len(relatives)} data files are"
        lines = [f"{what} absent: {why}. To provide {'it' if len(relatives) == 1 else 'them'} by hand, put"]
        lines += [f"  {where}/{relative}" for relative in relatives]
        lines.append(f"with sha256 {sha256}" if sha256 else "(no checksum is known)")
        lines += [f"from {url}" for url in urls]
        lines += [note] if note else []
        if len(self.folders) > 1:
            lines.append(f"or put it below one of the other folders searched: {', '.join(map(str, self.folders[1:]))}")
        if self.root is None:
            lines.append("and set CGLSUITE_DATA to the folder that you choose")
        return "\n".join(lines)

    def _download(self, target: Path, relatives: list[str], sha256: str | None, urls: tuple[str, ...], note: str) -> Path:
        expected = sha256 or _recorded_checksum(target)
        failures = []
        for url in urls:
            try:
                with new_file(target) as stream:
                    digest = _fetch(url, stream)
                    if self.verify and expected and digest != expected:
                        first = "" if sha256 else f" as in the first download (remove {_record(target)} to accept another)"
                        raise DataError(f"it has sha256 {digest}, expected {expected}{first}")
                _write_atomically(_record(target), f"{digest}  {target.name}\n".encode())
                return target
            # HTTPException: a server that breaks the protocol; ValueError: an address that is none.
            except (OSError, http.client.HTTPException, ValueError, DataError) as error:
                failures.append(f"{url}: {error or type(error).__name__}")
        raise DataAbsentError(self._absent(relatives, "the download failed - " + "; ".join(failures), sha256, urls, note))

    def _unpack(self, archive: Path, members: Mapping[str, str]) -> None:
        try:
            with zipfile.ZipFile(archive) as opened:
                for relative, name in members.items():
                    target = self._downloads / _check_relative(relative)
                    with opened.open(name) as source, new_file(target) as stream:
                        shutil.copyfileobj(source, stream, _CHUNK_BYTES)
                    _write_atomically(_record(target), f"{self.sha256(target)}  {target.name}\n".encode())
        except _DAMAGED as error:
            _record(archive).unlink(missing_ok=True)
            raise DataError(f"the downloaded archive {archive.name} could not be unpacked: {error}") from error
        finally:
            archive.unlink(missing_ok=True)

    def _folder(self, name: str) -> Path:
        folder = self.cache / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"the cache folder {folder} cannot be created ({error}): set CGLSUITE_CACHE to a writable folder") from error
        return folder

    def _lock(self, target: Path) -> AbstractContextManager[Any]:
        import filelock

        return filelock.FileLock(self._folder("locks") / f"{digest(str(target))}.lock")


def _folders(text: str) -> tuple[Path, ...]:
    """Split a value of ``CGLSUITE_DATA`` into folders, separated as in ``PATH``. A single folder may have the separator in its name."""
    if text and Path(text).expanduser().is_dir():
        return (Path(text),)
    return tuple(Path(part.strip()) for part in text.split(os.pathsep) if part.strip())


def platform_cache() -> Path:
    """Return this user's cache folder for the suite: below ``$XDG_CACHE_HOME`` if that is set, otherwise in the default location on Linux
    or macOS.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", "").strip())
    if folder.is_absolute():
        return folder / "cglsuite"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "cglsuite"


def _check_relative(relative: str) -> str:
    """Check that ``relative`` does not lead outside its folder, and return it."""
    path = PurePosixPath(relative)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in relative:
        raise UsageError(f"{relative!r}: expected a path below the data folder")
    return relative


def _record(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _recorded_checksum(target: Path) -> str | None:
    """Return the recorded checksum of the first download of ``target``, stored in the format of sha256sum."""
    try:
        words = _record(target).read_text(encoding="utf-8").split()
    except OSError:
        return None
    return words[0] if words and len(words[0]) == 64 else None


def _read_memo(memo: Path, state: Mapping[str, object]) -> str | None:
    try:
        memo_content = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(memo_content, dict) or any(memo_content.get(k) != v for k, v in state.items()):
        return None
    value = memo_content.get("sha256")
    return value if isinstance(value, str) else None


def _write_atomically(target: Path, content: bytes) -> None:
    """Write an auxiliary file that speeds up or protects later runs. On a full or read-only disk only this file is lost."""
    try:
        with new_file(target) as stream:
            stream.write(content)
    except OSError as error:
        _log.warning("%s could not be written: %s", target, error)


def _fetch(url: str, stream: IO[bytes]) -> str:
    """Download ``url`` to ``stream`` and return the SHA-256 (hex) of the content."""
    from tqdm import tqdm

    _log.info("downloading %s", url)
    total = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "cglsuite"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        length = answer.headers.get("Content-Length")
        expected = int(length) if length else None
        # disable=None: no progress bar if stderr is not a terminal.
        with tqdm(total=expected, unit="B", unit_scale=True, desc=url.rpartition("/")[2], disable=None) as bar:
            while chunk := answer.read(_CHUNK_BYTES):
                total.update(chunk)
                stream.write(chunk)
                bar.update(len(chunk))
            # Count the bytes here: a closed connection looks like the end of the file, and a disabled bar does not count.
            if expected is not None and stream.tell() != expected:
                raise OSError(f"the connection ended after {stream.tell():,} of {expected:,} bytes")
    return total.hexdigest()


def _load(entry: Path) -> Arrays | None:
    """Return the arrays of a cache entry, or ``None`` if it is missing or damaged."""
    try:
        with entry.open("rb") as file:
            return read_arrays(file)
    except FileNotFoundError:
        return None
    except _DAMAGED as error:
        _log.warning("the cache entry %s is damaged and will be rebuilt: %s", entry, error)
        return None


def _save(entry: Path, arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} of {entry.parent.name} has dtype {array.dtype}: expected plain numbers")
    try:
        with new_file(entry) as stream:
            write_arrays(stream, arrays)
    except OSError as error:
        _log.warning("the cache entry %s could not be written, so the data will be read again next time: %s", entry, error)


def _sweep(parent: Path) -> None:
    """Remove leftovers of killed processes from the staging folder."""
    for folder in parent.iterdir():
        try:
            if time.time() - folder.stat().st_mtime > _STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


_MAPPED_BYTES = 1 << 20
"""Arrays of at least this size are memory-mapped."""
_ALIGNMENT = 64
_NAMES = "__names__"
_LOCAL_HEADER_BYTES, _ZIP64_BYTES = 30, 20  # APPNOTE.TXT 4.3.7 and 4.5.3
_PADDING = 0xD935  # the extra field that other tools also use to align members


def write_arrays(stream: IO[bytes], arrays: Arrays) -> None:
    """Write numeric arrays to an npz file, with members aligned to 64 bytes.

    Args:
        stream: a seekable file.
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
    """Read the arrays in a file written by :func:`write_arrays` or ``numpy.savez``, and verify every checksum.

    Large arrays are memory-mapped copy-on-write: processes that read the same file share its pages until they write to them.

    Args:
        file: a file opened for reading in binary mode. It may be closed afterwards.

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
                # zipfile checks the CRC only at the end of a member: read to the end, whatever shape the header claims.
                if stream.read():
                    raise ValueError(f"{member.filename} is longer than its header states")
    # A damaged directory of the archive can hide a member.
    if (names := arrays.pop(_NAMES).tolist()) != sorted(arrays):
        raise ValueError(f"it should hold {names}")
    return arrays


def _mapped(file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any] | None:
    """Verify the checksum of a large member and return it as a memory-mapped array; ``None`` if it is small, compressed, unaligned or
    contains Python objects."""
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
            return None  # rejected by the caller, which reads it with NumPy
        if int(np.prod(shape, dtype=object)) * dtype.itemsize != member.file_size - header:
            raise ValueError(f"{member.filename} does not have the size that its header states")
        while stream.read(_CHUNK_BYTES):
            pass
    file.seek(member.header_offset)
    names, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER_BYTES)[26:])
    offset = member.header_offset + _LOCAL_HEADER_BYTES + names + extra + header
    if offset % dtype.itemsize:
        return None
    whole = np.memmap(file, dtype=dtype, mode="c", offset=offset, shape=shape, order="F" if by_columns else "C")
    return whole.view(np.ndarray)
