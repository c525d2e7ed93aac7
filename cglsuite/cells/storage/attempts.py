"""Who began a cell and never said how it ended: how a cell is known that takes down whoever runs it.

A runner writes a line when it begins a cell, and takes it away whenever it stops in order: with a record, with an error, on Ctrl-C, when
its supervisor lets go. The line of one that was killed in the middle stays. A saved checkpoint clears the lines of all who fell before it,
so that a long cell may be preempted as often as it makes progress.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cglsuite.atomic import write_atomic
from cglsuite.cells.job import job_name

__all__ = ["MOST_TAKEOVERS", "Attempt"]

MOST_TAKEOVERS = 3
"""A cell is taken over this often from runners that fell in the middle of it; then it is recorded as failed."""


class Attempt:
    """This process's attempt at one cell, as a ``with`` block; to be begun by the holder of the cell's lease only.

    Args:
        path: the file with a line per attempt.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fallen: Sequence[str] = ()

    def __enter__(self) -> Attempt:
        self.fallen = _read(self.path)
        job = f" of {job}" if (job := job_name()) else ""
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        self._write([*self.fallen, f"{runner(os.getpid())}{job}, begun {began}"])
        return self

    def progressed(self) -> None:
        """Work is saved: those who fell before count no more."""
        if self.fallen:
            own = _read(self.path)[-1:]
            self.fallen = ()
            self._write(own)

    def finished(self) -> None:
        """There is a record: nobody fell."""
        self.fallen = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        withdraw(self.path, os.getpid(), keep=bool(self.fallen))

    def _write(self, lines: Sequence[str]) -> None:
        write_atomic(self.path, "".join(f"{line}\n" for line in lines).encode(), durable=False)


def withdraw(path: Path, pid: int, *, keep: bool = True) -> None:
    """Take away the line of process ``pid`` of this machine, which stopped in order; without ``keep`` all lines."""
    with contextlib.suppress(OSError):
        lines = _read(path)
        left = [line for line in lines if not line.startswith(f"{runner(pid)} ") and not line.startswith(f"{runner(pid)},")] if keep else []
        if left:
            write_atomic(path, "".join(f"{line}\n" for line in left).encode(), durable=False)
        else:
            path.unlink(missing_ok=True)


def runner(pid: int) -> str:
    """A process as lines name it."""
    return f"process {pid} on {socket.gethostname()[:64]}"


def _read(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
