"""One worker process as its supervisor sees it: start, events, end, last output."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import signal
import site
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from cglsuite.campaigns.executors.base import ExecutorError

__all__ = ["WorkerProcess", "held_signals", "worker_environment"]


class WorkerProcess:
    """One worker: its process, the pipe it reports through, its output, and its current cell.

    Args:
        index: its number on this machine. place, of: where in the plan it begins, among all workers of all machines.
    """

    def __init__(self, plan: Path, store: Path, index: int, place: int, of: int, environment: Mapping[str, str]) -> None:
        self.index = index
        self.held: str | None = None
        self.since = 0.0
        """When the held cell began (``time.monotonic()``)."""
        self.overdue = False
        self.finished_s = math.inf
        self.foreign = ""
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._partial = b""
        reading, writing = os.pipe()
        level = logging.getLogger("cglsuite").getEffectiveLevel()
        facts = {"store": store, "index": place, "of": of, "events": writing, "log-level": level}
        words = [str(plan), *(word for name, value in facts.items() for word in (f"--{name}", str(value)))]
        try:
            # In a session of its own, since the supervisor handles Ctrl-C on the terminal. Never a fork of this process.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cglsuite.campaigns.executors.worker", *words],
                stdin=subprocess.PIPE,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                start_new_session=True,
                env=dict(environment),
            )
        except OSError as error:
            os.close(reading)
            self.output.close()
            raise ExecutorError(f"cannot start a worker process: {error}") from error
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        self.events_descriptor = reading

    def events(self) -> Iterator[dict[str, Any]]:
        """The events since the last call."""
        while True:
            try:
                chunk = os.read(self.events_descriptor, 65536)
            except BlockingIOError:
                return
            if not chunk:
                return
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def has_ended(self) -> bool:
        """Whether the process has ended. It is not reaped, so that its pid and group id are not reused before :meth:`kill`."""
        if self.process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: children of an ended worker are not ended
            return self.process.poll() is not None
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def kill(self) -> None:
        """End the worker and every process that it started."""
        if self.process.returncode is None:  # once it is reaped, its pid may be reused
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def let_go(self) -> None:
        """Close the lifeline: the worker then ends itself."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self) -> None:
        """Release the worker's resources in this process."""
        self.let_go()
        os.close(self.events_descriptor)
        self.output.close()

    def last_words(self, limit: int = 400) -> str:
        """The tail of the worker's output."""
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - 4096))
        lines = [line.strip() for line in self.output.read().decode(errors="replace").splitlines() if line.strip()]
        text = " | ".join(lines[-6:])
        return text[-limit:]

    def how_it_died(self) -> str:
        """How the process ended, as one sentence."""
        code = self.process.returncode
        if code >= 0:
            return f"worker exited with status {code} in the middle of the cell"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        hint = ""
        if -code == signal.SIGKILL:
            hint = "; sent by a user, or by the kernel because memory ran out: see the kernel's log"
        return f"worker died with signal {-code} ({name}{hint})"


def worker_environment(threads: int) -> dict[str, str]:
    """This process's environment with the number of threads, one hash seed, and the suite importable as here, as from a source tree."""
    environment = dict(os.environ) | {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment.setdefault("PYTHONHASHSEED", "0")  # a set of texts has one order in all workers; records name the seed
    root = str(Path(__file__).resolve().parents[3])
    installed = {str(Path(folder).resolve()) for folder in (*site.getsitepackages(), site.getusersitepackages())}
    if root not in installed:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return environment


# Hold signals back while processes are started or ended, so that none is leaked.

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Inside, SIGINT, SIGTERM, SIGQUIT and SIGUSR1 are only recorded; they are raised at the end, under the previous handlers.

    An ignored signal stays ignored, and outside the main thread, which alone runs handlers, nothing is held. The handlers are exchanged
    and the signals not blocked, because a child would inherit a blocked signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    formers = {number: signal.getsignal(number) for number in _ENDING}
    held = {number: former for number, former in formers.items() if former not in (None, signal.SIG_IGN)}
    # Blocked for the moment of the exchange: a handler that raises in the middle of it would leave the others exchanged.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:
        signal.signal(number, note)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        for number, former in held.items():
            signal.signal(number, former)
        for noted in dict.fromkeys(came):
            signal.raise_signal(noted)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
