"""The fork server: a process that has imported only torch and the suite and forks a fresh process for every trial.

The server runs no methods, holds no data and is always single-threaded. A fork is therefore equivalent to a new process but takes only
milliseconds. The server adopts the processes that a trial leaves behind, ends them, and reports their number.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from cglsuite.base.errors import PluginError
from cglsuite.base.helpers import Helper
from cglsuite.base.traces import adopt_orphans, end_with_parent

_HIDDEN = ("CGLSUITE_DATA", "CGLSUITE_CACHE", "CGLSUITE_STORE", "CGLSUITE_CHECK_SEED")
_ELSEWHERE = {"PYTHONHASHSEED": "1", "CGLSUITE_ELSEWHERE": "1", "CHECKED_ELSEWHERE": "1"}
_MODULES = ("colorsys", "graphlib", "sched", "stringprep")
"""Unused modules without import side effects, loaded to vary the process."""
_PATIENCE_S, _POLL_S = 5.0, 0.02
_LIMIT_S = 3600.0
"""The time limit after which a trial ends itself, in seconds. The sandbox's limit is lower."""


class ForkServerGone(PluginError):
    """The fork server itself has ended."""


@dataclass(kw_only=True)
class Trial:
    """A process forked for one trial, with the connection to it."""

    connection: Connection
    pid: int
    folder: str


class ForkServer:
    """The judge's handle to the fork server. Exiting the context manager ends the server and all its processes.

    Args:
        elsewhere: give its processes a different hash seed from workers, as well as additional modules and environment variables. A method
            that depends on any of these gives different results there.
    """

    def __init__(self, *, elsewhere: bool = False) -> None:
        mine, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="cglsuite-check-")
        environment = {k: v for k, v in os.environ.items() if k not in _HIDDEN}
        environment |= {"CGLSUITE_OFFLINE": "1", "PYTHONHASHSEED": "0"} | (_ELSEWHERE if elsewhere else {})
        number = theirs.fileno()
        self._process = Helper(
            "cglsuite.testing.judge.fork_server", str(number), *(_MODULES if elsewhere else ()),
            cwd=self._folder.name, env=environment, pass_fds=(number,),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        self._control = mine
        self._read = b""
        self._count = 0

    @property
    def folder(self) -> str:
        """The parent folder of all trial folders."""
        return self._folder.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def begin(self) -> Trial:
        """Fork a process in an empty folder. Only one such process exists at a time."""
        self._count += 1
        folder = Path(self._folder.name, f"trial-{self._count}")
        folder.mkdir()
        mine, theirs = Pipe()
        socket.send_fds(self._control, [f"{folder}\n".encode()], [theirs.fileno()])
        theirs.close()
        return Trial(connection=mine, pid=int(self._line()["pid"]), folder=str(folder))

    def ready(self, trial: Trial, timeout_s: float) -> bool:
        """Wait for a message from a trial and return whether one arrived in time.

        Raises:
            EOFError: its process has ended and no message is left.
        """
        said = wait([trial.connection, self._control], timeout_s)
        if trial.connection in said or not said:
            return bool(said)
        if trial.connection.poll(0):  # its last messages
            return True
        raise EOFError

    def end(self, trial: Trial, *, patient: bool) -> tuple[int, int]:
        """End a trial's process and its children. Return its wait status and the number of processes that it left behind.

        Args:
            patient: the process is exiting by itself, so wait briefly for its exit status.
        """
        ended = bool(wait([self._control], _PATIENCE_S if patient else 0))
        trial.connection.close()
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(trial.pid, signal.SIGKILL)
        answer = self._line()
        return int(answer["status"]), int(answer["left"])

    def _line(self) -> dict[str, int]:
        while b"\n" not in self._read:
            try:
                got = self._control.recv(4096)
            except ConnectionError:
                got = b""
            if not got:
                raise ForkServerGone("the process that starts methods ended unexpectedly, possibly for lack of memory")
            self._read += got
        line, _, self._read = self._read.partition(b"\n")
        answer: dict[str, int] = json.loads(line)
        return answer


# --- the server's side --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fork one process per message on the socket in the first argument until the judge ends and the socket closes.

    The other arguments are modules to import.
    """
    sys.dont_write_bytecode = True
    for module in sys.argv[2:]:
        importlib.import_module(module)
    from cglsuite.testing.judge.audited import serve, warm_up

    warm_up()
    adopt_orphans()
    server_pid = os.getpid()
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            end_with_parent(server_pid)  # no trial outlives the server
            signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
            control.close()
            os.setsid()
            os.chdir(data.decode().strip())
            serve(descriptors[0])
            os._exit(0)
        os.close(descriptors[0])
        control.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        status, left = _end_of(pid, control), _end_descendants()
        with contextlib.suppress(ConnectionError):
            control.sendall(json.dumps({"status": status, "left": left}).encode() + b"\n")


def _end_of(pid: int, control: socket.socket) -> int:
    """Wait for a trial's exit status. Kill the trial if the judge has ended."""
    trial: list[int] = [os.pidfd_open(pid)] if hasattr(os, "pidfd_open") else []
    try:
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if control.fileno() in select.select([control.fileno(), *trial], [], [], None if trial else _POLL_S)[0]:
                os.kill(pid, signal.SIGKILL)
                return os.waitpid(pid, 0)[1]
        return ended[1]
    finally:
        for descriptor in trial:
            os.close(descriptor)


def _end_descendants() -> int:
    """End all descendants left behind by a trial and return their number."""
    ended = 0
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            left = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        except OSError:
            return ended
        if not left:
            return ended
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            ended += 1


if __name__ == "__main__":
    main()
