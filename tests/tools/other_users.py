"""Work as another user of this machine, for tests that run as root: in a fork with other ids and another umask."""

from __future__ import annotations

import encodings.ascii
import grp
import os
import pickle
import pwd
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from filelock import FileLock, SoftFileLease, Timeout

__all__ = ["ALICE", "BOB", "LAB", "STUDENT", "as_user", "group_folder", "modes", "needs_root"]

ALICE, BOB, STUDENT, LAB = 40001, 40002, 40003, 40010
"""User ids that no account has, and the group of the first two."""
needs_root = pytest.mark.skipif(
    not hasattr(os, "setuid") or os.getuid() != 0, reason="files of two users can be made by root alone: run these tests as root"
)

_IMPORTED = (encodings.ascii, grp, pwd, FileLock, SoftFileLease, Timeout)
"""What a fork may need and could not import: Python may lie in a folder of root's."""
_FORKING = Lock()
"""filelock refuses a fork while another thread forks."""


def as_user(user: int, work: Callable[[], Any], *, umask: int = 0o022, group: int = LAB) -> Any:
    """What ``work`` returns, done by that user in a process of its own.

    Raises:
        AssertionError: it raised; the message is the traceback.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with _FORKING:
        child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            os.setgroups([group])
            os.setgid(user)  # a private group of the same number, as on most systems
            os.setuid(user)
            os.umask(umask)
            answer, status = (True, work()), 0
        except BaseException:  # noqa: BLE001 - told to the parent
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    worked, answer = pickle.loads(content)
    assert worked, answer
    return answer


@contextmanager
def group_folder(mode: int = 0o2770, group: int = LAB) -> Iterator[Path]:
    """A folder for a group, in a place that everybody can reach (those of pytest are root's alone)."""
    import shutil

    above = Path(tempfile.mkdtemp(prefix="shared-"))
    above.chmod(0o755)
    folder = above / "store"
    folder.mkdir()
    os.chown(folder, ALICE, group)
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(above)


def modes(folder: Path) -> dict[str, tuple[str, int]]:
    """Mode (octal) and group of everything below a folder."""
    return {str(path.relative_to(folder)): (f"{stat.S_IMODE(path.lstat().st_mode):04o}", path.lstat().st_gid) for path in folder.rglob("*")}
