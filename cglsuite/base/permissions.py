"""Files that a group shares: what is made below a folder gets its mode and group, whatever the umask; and whose file is in the way."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from pathlib import Path

__all__ = ["TEMPORARY_SUFFIX", "file_mode", "give", "in_the_way", "make_folder", "owner"]

TEMPORARY_SUFFIX = ".tmp"
_HERE, _NO_REPLACE = -100, 1
"""``AT_FDCWD`` and ``RENAME_NOREPLACE`` of Linux."""
_LETTERS = {os.R_OK: "r", os.W_OK: "w", os.X_OK: "x"}


def make_folder(folder: Path, top: Path | None = None) -> None:
    """Make a folder and those above it that are missing; those below ``top`` get its mode and group.

    A folder appears with its mode, since another user's process may want to write into it at once. In a folder that its group may write,
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


def _make(place: Path, top: os.stat_result) -> None:
    mode = stat.S_IMODE(top.st_mode) | 0o700 | (stat.S_ISGID if top.st_mode & stat.S_IWGRP else 0)
    aside = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    os.mkdir(aside, 0o700)
    try:
        give(aside, top.st_gid, mode)
        _rename_to_new(aside, place)
    except OSError:
        aside.rmdir()
        if not os.path.isdir(place):
            raise


def _rename_to_new(folder: Path, place: Path) -> None:
    """Rename a folder to a name that nothing has.

    ``os.rename`` would replace an empty folder of that name, and a process that has just made it fails to write into it. Where the system
    or the file system cannot refuse this, that small risk stays.

    Raises:
        FileExistsError: the name is taken.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        if rename(_HERE, os.fsencode(folder), _HERE, os.fsencode(place), _NO_REPLACE) == 0:
            return
        if ctypes.get_errno() == errno.EEXIST:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    os.rename(folder, place)


def give(place: Path | int, group: int, mode: int) -> None:
    """Set group and mode of an own file or folder, or of an open one, as far as this user may."""
    with contextlib.suppress(OSError):
        status = os.stat(place)
        if status.st_gid != group:
            with contextlib.suppress(OSError):
                os.chown(place, -1, group)
        if stat.S_IMODE(status.st_mode) != mode or status.st_gid != group:  # a change of the group takes bits away
            os.chmod(place, mode)


def file_mode(top: Path) -> tuple[int, int] | None:
    """The group and the mode of files below ``top``; None if there is no such folder."""
    try:
        status = os.stat(top)
    except OSError:
        return None
    return status.st_gid, stat.S_IMODE(status.st_mode) & 0o666 | 0o600


def owner(status: os.stat_result) -> str:
    """The name of a file's owner."""
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
    """Which file or folder keeps this user from reading (or writing) ``path``, whose it is, and what changes that; empty if none does."""
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
            return _explained(place, status, needed)
    return ""


def _explained(place: Path, status: os.stat_result, needed: int) -> str:
    if needed & os.W_OK and os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"the file system of {place} is read-only"
    letters = "".join(letter for bit, letter in _LETTERS.items() if needed & bit)
    group, name = _group(status), owner(status)
    said = f"{place} belongs to {name} (group {group}, mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_uid == os.getuid():
        return f"{said}: chmod u+{letters} {place}"
    if status.st_gid in {os.getgid(), *os.getgroups()}:
        return f"{said}: {name} lets its group in by chmod g+{letters} {place}"
    return f"{said}: join the group {group} (then chmod g+{letters} {place}), or {name} lets everybody in by chmod o+{letters} {place}"
