"""Runners that started a cell and died in it: how a cell that kills its runners is recognised.

A runner writes a line when it starts a cell and removes it on every orderly stop: a record, an error, Ctrl-C, or release by its
supervisor. The line of a runner that was killed stays. A saved checkpoint clears the lines of earlier runners, so a long cell may be
preempted any number of times as long as it makes progress.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cglsuite.base.atomic import write_atomic
from cglsuite.cells.job import job_name

__all__ = ["MOST_TAKEOVERS", "Attempt"]

MOST_TAKEOVERS = 3
"""How often a cell is taken over from runners that died in it before it is recorded as failed."""


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
        """Work is saved, so earlier failures no longer count."""
        if self.fallen:
            own = _read(self.path)[-1:]
            self.fallen = ()
            self._write(own)

    def finished(self) -> None:
        """A record is stored, so earlier failures no longer count."""
        self.fallen = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        withdraw(self.path, os.getpid(), keep=bool(self.fallen))

    def _write(self, lines: Sequence[str]) -> None:
        write_atomic(self.path, "".join(f"{line}\n" for line in lines).encode(), durable=False)


def withdraw(path: Path, pid: int, *, keep: bool = True) -> None:
    """Remove the line of process ``pid`` on this machine, which stopped in an orderly way; without ``keep`` remove all lines."""
    with contextlib.suppress(OSError):
        lines = _read(path)
        left = [line for line in lines if not line.startswith(f"{runner(pid)} ") and not line.startswith(f"{runner(pid)},")] if keep else []
        if left:
            write_atomic(path, "".join(f"{line}\n" for line in left).encode(), durable=False)
        else:
            path.unlink(missing_ok=True)


def runner(pid: int) -> str:
    """How a line names a process."""
    return f"process {pid} on {socket.gethostname()[:64]}"


def _read(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
