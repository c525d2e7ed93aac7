"""Atomic file writes that respect the mode and group of a shared folder. Readers see the old file or the new one, never a partial file.

Links are followed. Devices, pipes and open descriptors (``/dev/full``, ``/dev/stdout``) are written to and never replaced.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from cglsuite.base.errors import StoreError

TEMPORARY_SUFFIX = ".tmp"
_HERE, _NO_REPLACE = -100, 1
"""``AT_FDCWD`` and ``RENAME_NOREPLACE`` of Linux."""
_LETTERS = {os.R_OK: "r", os.W_OK: "w", os.X_OK: "x"}


def make_folder(folder: Path, top: Path | None = None) -> None:
    """Create a folder and its missing parents. New folders below ``top`` get its mode and group.

    A folder has its mode from the start, since another user's process may write to it immediately. In a group-writable folder,
    new files get the group of the folder (setgid).
    """
    if top is None or top not in folder.parents:
        folder.mkdir(parents=True, exist_ok=True)
        return
    top.mkdir(parents=True, exist_ok=True)
    status = os.stat(top)
    missing = [place for place in (folder, *folder.parents) if top in place.parents and not os.path.isdir(place)]
    for place in reversed(missing):
        _make(place, status)


def _make(path: Path, top: os.stat_result) -> None:
    mode = stat.S_IMODE(top.st_mode) | 0o700 | (stat.S_ISGID if top.st_mode & stat.S_IWGRP else 0)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    os.mkdir(aside, 0o700)
    try:
        give(aside, top.st_gid, mode)
        _rename_to_new(aside, path)
    except OSError:
        aside.rmdir()
        if not os.path.isdir(path):
            raise


def _rename_to_new(folder: Path, path: Path) -> None:
    """Rename a folder to an unused name.

    ``os.rename`` would replace an empty folder of that name, and a process that had just created it could not write there. If the system
    or the file system cannot prevent this, a small risk remains.

    Raises:
        FileExistsError: the name is taken.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        if rename(_HERE, os.fsencode(folder), _HERE, os.fsencode(path), _NO_REPLACE) == 0:
            return
        if ctypes.get_errno() == errno.EEXIST:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    os.rename(folder, path)


def give(path: Path | int, group: int, mode: int) -> None:
    """Set the group and mode of this user's file or folder, given as a path or open descriptor, as far as permissions allow."""
    with contextlib.suppress(OSError):
        status = os.stat(path)
        if status.st_gid != group:
            with contextlib.suppress(OSError):
                os.chown(path, -1, group)
        if stat.S_IMODE(status.st_mode) != mode or status.st_gid != group:  # changing the group clears mode bits
            os.chmod(path, mode)


def file_mode(top: Path) -> tuple[int, int] | None:
    """Return the group and mode that files below ``top`` should have, or None if that folder does not exist."""
    try:
        status = os.stat(top)
    except OSError:
        return None
    return status.st_gid, stat.S_IMODE(status.st_mode) & 0o666 | 0o600


def owner(status: os.stat_result) -> str:
    """Return the name of a file's owner."""
    try:
        import pwd

        return pwd.getpwuid(status.st_uid).pw_name
    except (ImportError, KeyError):
        return f"user {status.st_uid}"


def _group(status: os.stat_result) -> str:
    try:
        import grp

        return grp.getgrgid(status.st_gid).gr_name
    except (ImportError, KeyError):
        return str(status.st_gid)


def in_the_way(path: Path, *, write: bool) -> str:
    """Explain which file or folder prevents this user from reading (or writing) ``path``, who owns it, and how to fix it. Empty if access
    is possible.
    """
    chain = []
    for place in (*reversed(path.parents), path):
        try:
            chain.append((place, os.stat(place)))
        except OSError:
            break
    folders = [place for place, status in chain if stat.S_ISDIR(status.st_mode)]
    for place, status in chain:
        needed = os.X_OK if stat.S_ISDIR(status.st_mode) else 0 if write else os.R_OK
        needed |= os.R_OK if place == path and not write else 0
        needed |= os.W_OK if write and place == folders[-1] else 0
        if not os.access(place, needed):
            return _missing_permission(place, status, needed)
    return ""


def _missing_permission(path: Path, status: os.stat_result, needed: int) -> str:
    if needed & os.W_OK and os.statvfs(path).f_flag & os.ST_RDONLY:
        return f"the file system of {path} is read-only"
    letters = "".join(letter for bit, letter in _LETTERS.items() if needed & bit)
    group, name = _group(status), owner(status)
    said = f"{path} belongs to {name} (group {group}, mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_uid == os.getuid():
        return f"{said}: chmod u+{letters} {path}"
    if status.st_gid in {os.getgid(), *os.getgroups()}:
        return f"{said}: ask {name} to run chmod g+{letters} {path}"
    return f"{said}: join the group {group} (then chmod g+{letters} {path}), or ask {name} to run chmod o+{letters} {path}"


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MAX_LINKS = 40
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}


def store_error(error: OSError, path: Path, option: str = "--store") -> StoreError:
    """Return a :class:`StoreError` for ``error`` with ``path`` and advice; ``option`` is the command-line option for the folder."""
    if error.errno in _FULL:
        advice = f"the disk or quota is full: free some space, or name another folder with {option}; finished work is kept"
    elif error.errno in _CLOSED:
        why = in_the_way(path.absolute(), write=True) or "change its permissions"
        advice = f"the folder cannot be written: {why}, or name another one with {option}"
    else:
        advice = f"nothing was changed; name another folder with {option} if this one cannot be used"
    return StoreError(f"cannot write {path}: {error.strerror or error}; {advice}")


@contextlib.contextmanager
def new_file(
    path: Path, *, durable: bool = True, settle: Callable[[Path, Path], object] | None = None, top: Path | None = None
) -> Iterator[IO[bytes]]:
    """Open a temporary file in the same folder for writing. It is renamed to ``path`` if the block ends without an exception.

    A process killed at any moment leaves the old file or the new one, and at worst a hidden ``.*.tmp`` file that nothing reads. If ``path``
    is not a regular file, the content is written to it when the block ends.

    Args:
        durable: wait until the data are on disk. Otherwise a crash of the machine (not of the process) may leave a damaged file,
            which is acceptable only for files with a checksum.
        settle: renames its first argument, the temporary path, to its second; ``None`` means ``os.replace``.
        top: a group's folder above the file. The file and the folders created for it get its mode and group.

    Raises:
        OSError: the write failed. The old file is unchanged and no temporary file remains.
    """
    if (through := _descriptor(path)) is not None:
        content = io.BytesIO()
        with open(through, "wb") as device:
            yield content
            device.write(content.getbuffer())
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    top = None if top is None else Path(os.path.realpath(top))
    make_folder(path.parent, top)
    shared = file_mode(top) if top is not None and top in path.parents else None
    try:
        # Not mkstemp: its mode 0600 would hide the records of a shared store from the rest of the lab, whatever the umask.
        with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
            if shared is not None:
                give(file.fileno(), *shared)
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        (settle or os.replace)(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


def _descriptor(path: Path) -> int | None:
    """Return a descriptor to write to if ``path`` is a device, a pipe or a file that this process has open, else None.

    Raises:
        OSError: it cannot be written to: it is a pipe without a reader, a socket or a disk.
    """
    if (number := _open_here(path)) is not None:
        return os.dup(number)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise OSError(errno.EINVAL, "it is neither a file nor a pipe", str(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe without a reader: start the reading process first", str(path)) from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor


def _open_here(path: Path) -> int | None:
    """Follow the links of ``path`` to the file descriptor that it refers to (``/dev/stdout``, ``/dev/fd/3``); None if it refers to none."""
    place = os.fspath(path)
    for _ in range(_MAX_LINKS):
        folder, name = os.path.realpath(os.path.dirname(place) or "."), os.path.basename(place)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(name) if name.isascii() and name.isdigit() else None
        try:
            place = os.path.join(folder, os.readlink(place))
        except OSError:  # not a link
            return None
    return None


def write_atomic(
    path: Path,
    data: bytes | memoryview,
    *,
    durable: bool = True,
    option: str = "--store",
    permit: Callable[[], bool] | None = None,
    top: Path | None = None,
) -> bool:
    """Write ``data`` to ``path`` atomically with :func:`new_file`.

    Args:
        permit: called just before the rename; if it returns False, an existing file is kept.
        option: the command-line option for the folder, used in the advice of errors. top: see :func:`new_file`.

    Returns:
        Whether ``data`` are now at ``path``. Without permission they are written only if there was no file.

    Raises:
        StoreError: the disk is full or the folder cannot be written; the old file is unchanged and no temporary file remains.
    """
    written = True

    def settle(temporary: Path, path: Path) -> None:
        nonlocal written
        if permit is None or permit():
            os.replace(temporary, path)
        else:
            written = _rename_if_absent(temporary, path)

    try:
        with new_file(path, durable=durable, settle=settle, top=top) as file:
            file.write(data)
    except OSError as error:
        raise store_error(error, path, option) from error
    return written


def _rename_if_absent(temporary: Path, path: Path) -> bool:
    """Rename ``temporary`` to ``path`` if ``path`` does not exist. A link never replaces a file, so there is no race."""
    try:
        os.link(temporary, path)
    except OSError:  # the name is taken, or the file system does not support links
        return False
    finally:
        temporary.unlink()
    return True


def _sync_folder(folder: Path) -> None:
    # Flush the folder so that the rename reaches the disk; some file systems do not support that.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep_temporaries(folder: Path, older_than_s: float = 3600.0, *, pattern: str = f"*/.*{TEMPORARY_SUFFIX}") -> None:
    """Remove temporary files that killed processes left below ``folder``. Files recent enough to be in use are left alone."""
    limit = time.time() - older_than_s
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < limit:
                path.rmdir() if path.is_dir() else path.unlink()
