"""Python helper processes. They can import whatever this process can, are unaffected by the current folder, and end with their parent.

A helper holds the reading end of a pipe, its lifeline, and only the parent holds the other end. When the parent ends for any reason, the
pipe closes, and the kernel kills the helper and its process group regardless of the code that it is running (on Linux; elsewhere, a thread
does this).
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import weakref
from typing import Any

_START = (
    "import json, sys; lifeline, limit_s, sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from cglsuite.base.helpers import begin; begin(lifeline, limit_s)"
)
_limit_s = 0.0


def module_path() -> list[str]:
    """Return ``sys.path`` for another process, with absolute paths. An interactive session's current folder comes last, so that it does
    not shadow other modules."""
    return [os.path.abspath(p) for p in sys.path if p] + ([os.getcwd()] if "" in sys.path else [])


class Helper(subprocess.Popen[Any]):
    """A process that runs a module as ``python -m`` does. It is killed when this object is released or this process ends.

    Args:
        words: the module and its arguments. limit_s: seconds after which the process ends by itself, or 0: see :func:`restart_time_limit`.
        options: keyword arguments of :class:`subprocess.Popen`.
    """

    def __init__(self, *words: str, limit_s: float = 0.0, pass_fds: tuple[int, ...] = (), **options: Any) -> None:
        reading, writing = os.pipe()
        weakref.finalize(self, os.close, writing)
        start = json.dumps([reading, limit_s, module_path()])
        try:
            super().__init__([sys.executable, "-P", "-c", _START, start, *words], pass_fds=(reading, *pass_fds), **options)
        finally:
            os.close(reading)


def run_helper(*words: str, limit_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a helper until it ends and return its exit status and output.

    Raises:
        subprocess.TimeoutExpired: it has ended, but a process that it started keeps its output open.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Helper(*words, limit_s=limit_s, text=True, **pipes, **options) as helper:
        output, errors = helper.communicate(timeout=2 * limit_s)
    return subprocess.CompletedProcess(words, helper.returncode, output, errors)


def begin(lifeline: int, limit_s: float) -> None:
    """Run the module named by the first argument. Called inside a helper process."""
    global _limit_s
    os.set_inheritable(lifeline, False)
    _end_with(lifeline)
    _limit_s = limit_s
    restart_time_limit()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)


def restart_time_limit() -> None:
    """Restart this helper's time limit, after which SIGALRM ends it."""
    signal.setitimer(signal.ITIMER_REAL, _limit_s)


def _end_with(lifeline: int) -> None:
    group = os.getpgrp() == os.getpid()
    if hasattr(fcntl, "F_SETSIG"):  # a signal needs no thread, which third-party code that holds the GIL would block
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid() if group else os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:
            os._exit(1)
    else:
        threading.Thread(target=_wait_and_end, args=(lifeline, group), daemon=True).start()


def _wait_and_end(lifeline: int, group: bool) -> None:
    os.read(lifeline, 1)
    (os.killpg if group else os.kill)(os.getpid(), signal.SIGKILL)
