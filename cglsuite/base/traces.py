"""Snapshots of process-wide state, used to detect leftover threads and child processes or a changed environment. Does not import torch."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import gc
import logging
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from cglsuite.base.markup import several

GRACE_S = 1.0
"""How long threads and children that are still running may take to end by themselves, in seconds."""

SERVICES = (
    "tqdm",
    "filelock",
    "cglsuite.cells",
    "cglsuite.campaigns.executors",
    "ipykernel",
    "IPython",
    "zmq",
    "tornado",
    "anyio",
    "debugpy",
)
"""Packages whose threads belong to the suite or to the notebook and may start at any time."""
_TRACKER = "resource_tracker"  # Python's helper for each process that uses multiprocessing; it lives as long as the process
RELEVANT = ("CGLSUITE", "CUDA", "CUBLAS", "KMP_", "LD_", "MKL", "NUMEXPR", "OMP", "OPENBLAS", "PATH", "PYTHON", "PYTORCH", "TMP", "TORCH")
"""Prefixes of environment variables that other cells may depend on; new variables with other names are harmless."""
_BY_LIBRARIES = frozenset({"CUBLAS_WORKSPACE_CONFIG", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"})
_ABSENT = "absent"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h


@dataclass(frozen=True, kw_only=True)
class Probe:
    """How to read, describe and restore one piece of a process's global state.

    ``read`` returns the current value, ``describe`` returns one phrase per change from an old to a new value, and ``restore`` sets an old
    value (``None`` if that is impossible).
    """

    read: Callable[[], Any]
    describe: Callable[[Any, Any], list[str]]
    restore: Callable[[Any], object] | None = None


class Traces:
    """A snapshot of the values of several probes.

    Example:
        >>> before = Traces(SHARED)
        >>> random.seed(7)
        >>> before.changes()
        ["random's global state has changed"]
        >>> before.restore()
        >>> before.changes()
        []
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._values = [(probe, probe.read()) for probe in probes]

    def changes(self) -> list[str]:
        """Describe every change since the snapshot in one phrase each."""
        return [phrase for probe, value in self._values if (now := probe.read()) != value for phrase in probe.describe(value, now)]

    def restore(self) -> None:
        """Restore everything that can be restored."""
        for probe, value in self._values:
            if probe.restore is not None and probe.read() != value:
                with contextlib.suppress(OSError, ValueError):
                    probe.restore(value)


def setting(name: str, read: Callable[[], Any], restore: Callable[[Any], object] | None = None) -> Probe:
    """Create a probe for a single value. Its description of a change shows the old and the new value."""
    return Probe(read=read, describe=lambda before, now: [f"{name} is now {now} (was {before})"], restore=restore)


def opaque(name: str, read: Callable[[], Any], restore: Callable[[Any], object] | None = None) -> Probe:
    """Create a probe that reports changes of a value without showing the value."""
    return Probe(read=read, describe=lambda before, now: [f"{name} has changed"], restore=restore)


def _mapping(name: Callable[[Any], str]) -> Callable[[Mapping[Any, Any], Mapping[Any, Any]], list[str]]:
    """Create a ``describe`` function that returns one phrase for all keys of a mapping whose values differ."""

    def describe(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> list[str]:
        return [name(", ".join(str(k) for k in sorted({*before, *now}, key=str) if before.get(k, _ABSENT) != now.get(k, _ABSENT)))]

    return describe


# Side effects of imports


_PAUSED = threading.Event()


def pause_collector() -> None:
    """Pause Python's cyclic garbage collector in a new process of the suite until :func:`resume_collector` is called.

    Modules and syntax trees are hundreds of thousands of objects, none of them garbage. Python searches all of them whenever their number
    grows by a quarter, which is a sixth of the run time of a short cell.
    """
    if gc.isenabled():
        gc.disable()
        _PAUSED.set()


def resume_collector() -> None:
    """Resume garbage collection after :func:`pause_collector`. Existing objects are exempt, since they live as long as the process."""
    if _PAUSED.is_set():
        _PAUSED.clear()
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def random_state_restored(*, but: str = "") -> Iterator[None]:
    """Restore Python's random state after every module that is imported within the block.

    Some libraries draw random numbers on import, such as rich, which scikit-learn imports if it is installed.

    Args:
        but: a top-level module or package. Importing it is not covered, only the imports that it makes.
    """
    finder = _Finder(but)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Delegates to the finders after it and executes Python source with :func:`_execute_source`."""

    def __init__(self, but: str) -> None:
        self._but = but

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if self not in sys.meta_path or fullname.partition(".")[0] == self._but:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (other.find_spec(fullname, path, target) for other in others if hasattr(other, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            vars(spec.loader)["exec_module"] = partial(_execute_source, spec.loader.exec_module)
        return spec


def _execute_source(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    before = random.getstate()
    try:
        execute(module)
    finally:
        random.setstate(before)


# Settings


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return _ABSENT


def _restore_environment(before: Mapping[str, str]) -> None:
    for name in os.environ.keys() - before.keys() - _BY_LIBRARIES:
        del os.environ[name]
    os.environ.update(before)


def _umask() -> int | None:
    """Return the umask, read without affecting other threads."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    return None


_SIGNALS = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
_TIMERS = {"ITIMER_REAL": signal.ITIMER_REAL, "ITIMER_VIRTUAL": signal.ITIMER_VIRTUAL, "ITIMER_PROF": signal.ITIMER_PROF}
_LIMITS = {name: number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"


def _handlers() -> dict[str, Any]:
    return {_signal_name(number): signal.getsignal(number) for number in _SIGNALS}


def _restore_handlers(before: Mapping[str, Any]) -> None:
    for number in _SIGNALS:
        wanted = before[_signal_name(number)]
        if wanted is not None and signal.getsignal(number) is not wanted:
            signal.signal(number, wanted)


def _restore_timers(before: Mapping[str, bool]) -> None:
    for name, number in _TIMERS.items():
        if not before[name]:
            signal.setitimer(number, 0)


def _restore_limits(before: Mapping[str, tuple[int, int]]) -> None:
    for name, limits in before.items():
        if resource.getrlimit(_LIMITS[name]) != limits:
            with contextlib.suppress(OSError, ValueError):  # a limit that cannot be restored does not prevent restoring the others
                resource.setrlimit(_LIMITS[name], limits)


def _restore_path(before: Sequence[str]) -> None:
    sys.path[:] = before


def _hooks() -> dict[str, Any]:
    return {
        "sys.excepthook": sys.excepthook,
        "sys.unraisablehook": sys.unraisablehook,
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "threading.excepthook": threading.excepthook,
    }


def _restore_hooks(before: Mapping[str, Any]) -> None:
    sys.excepthook, sys.unraisablehook = before["sys.excepthook"], before["sys.unraisablehook"]
    sys.settrace(before["sys.settrace"])
    sys.setprofile(before["sys.setprofile"])
    threading.excepthook = before["threading.excepthook"]


def _interpreter() -> dict[str, Any]:
    return {
        "garbage collection": gc.isenabled(),
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "logging.disable": logging.root.manager.disable,
    }


def _restore_interpreter(before: Mapping[str, Any]) -> None:
    (gc.enable if before["garbage collection"] else gc.disable)()
    sys.setrecursionlimit(before["recursion limit"])
    sys.setswitchinterval(before["switch interval"])
    logging.disable(before["logging.disable"])


def _identity(descriptor: int) -> tuple[int, int] | None:
    """Return the device and inode of the file behind a descriptor; ``None`` if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _describe_descriptors(before: Mapping[int, Any], now: Mapping[int, Any]) -> list[str]:
    closed = [str(n) for n, file in before.items() if file is not None and now.get(n) is None]
    moved = [str(n) for n, file in before.items() if file is not None and now.get(n) not in (None, file)]
    phrases = [("closed", closed), ("replaced", moved)]
    return [f"file descriptor {', '.join(numbers)} was {what}" for what, numbers in phrases if numbers]


def _open_descriptors() -> dict[int, tuple[int, int] | None]:
    with contextlib.suppress(OSError):
        numbers = map(int, os.listdir("/proc/self/fd"))
        return {n: file for n in numbers if (file := _identity(n)) is not None}
    return {n: _identity(n) for n in range(3)}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _BY_LIBRARIES}


_describe_environment = _mapping(lambda names: f"environment variables have changed ({names})")


def _describe_relevant(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    relevant = {name: value for name, value in now.items() if name in before or name.startswith(RELEVANT)}
    return _describe_environment(before, relevant) if relevant != before else []


PYTHON_RANDOM = opaque("random's global state", random.getstate, random.setstate)

_COMMON: tuple[Probe, ...] = (
    setting("the working folder", _folder, os.chdir),
    setting("the umask", _umask, os.umask),
    Probe(read=_handlers, describe=_mapping(lambda names: f"handlers of signals have changed ({names})"), restore=_restore_handlers),
    Probe(
        read=lambda: {name: signal.getitimer(number)[0] > 0 for name, number in _TIMERS.items()},
        describe=_mapping(lambda names: f"timers are set or were cleared ({names})"),
        restore=_restore_timers,
    ),
    Probe(
        read=lambda: {name: resource.getrlimit(number) for name, number in _LIMITS.items()},
        describe=_mapping(lambda names: f"limits of resources have changed ({names})"),
        restore=_restore_limits,
    ),
    opaque("sys.path", lambda: list(sys.path), _restore_path),
    Probe(read=_hooks, describe=_mapping(lambda names: f"hooks of Python have changed ({names})"), restore=_restore_hooks),
    Probe(
        read=_interpreter,
        describe=_mapping(lambda names: f"settings of Python have changed ({names})"),
        restore=_restore_interpreter,
    ),
    PYTHON_RANDOM,
)
SHARED: tuple[Probe, ...] = (
    *_COMMON,
    Probe(read=_environment, describe=_describe_relevant, restore=_restore_environment),
    Probe(read=lambda: {n: _identity(n) for n in range(3)}, describe=_describe_descriptors),
)
"""Global state of the process except threads and children. Excludes variables and descriptors that no other code uses."""

STRICT: tuple[Probe, ...] = (
    *_COMMON,
    Probe(read=_environment, describe=_describe_environment, restore=_restore_environment),
    Probe(read=lambda: os.fstat(1).st_size if _identity(1) else 0, describe=lambda before, now: ["file descriptor 1 was written to"]),
)
"""Probes for code that should change nothing: :data:`SHARED` plus all environment variables and output to file descriptor 1."""

DESCRIPTORS: tuple[Probe, ...] = (Probe(read=_open_descriptors, describe=_describe_descriptors),)
"""All open file descriptors. Reports any that were closed or replaced."""


# Threads and processes


def _threads() -> dict[int, str]:
    """Return the name of every thread that Python started, by identifier. Threads of :mod:`_thread` have no name and get negative keys."""
    known = dict(threading._active)  # type: ignore[attr-defined] # threading.enumerate() takes a lock that leftover threads may hold
    strangers = (type(threading.main_thread()), threading._DummyThread)
    raw = _thread._count() - sum(not isinstance(thread, strangers) for thread in known.values())
    named = {number: thread.name for number, thread in known.items() if not _is_service(thread)}
    return named | {-n: "unnamed" for n in range(1, raw + 1)}


def _is_service(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    home = str(getattr(target, "__module__", None) or type(thread).__module__)
    return home.startswith(SERVICES)


def _describe_threads(before: Mapping[int, str], now: Mapping[int, str]) -> list[str]:
    names = [name for number, name in now.items() if number not in before]
    return [f"{several(len(names), 'thread is', 'threads are')} still running ({', '.join(sorted(names))})"] if names else []


def _children(parent: int | None = None) -> dict[int, str]:
    """Return the commands of the running children of process ``parent`` (default: this one), by pid."""
    commands: dict[int, str] = {}
    for task in _list_folder(f"/proc/{parent or os.getpid()}/task"):
        for number in map(int, _text(f"/proc/{parent or os.getpid()}/task/{task}/children").split()):
            state = _text(f"/proc/{number}/stat").rpartition(")")[2].split()
            command = _text(f"/proc/{number}/cmdline").replace("\0", " ").strip()
            if state and state[0] not in "ZX" and _TRACKER not in command:
                commands[number] = command or "?"
    return commands


def _list_folder(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def _describe_children(before: Mapping[int, str], now: Mapping[int, str]) -> list[str]:
    commands = [f"{command:.60}" for number, command in now.items() if number not in before]
    number = several(len(commands), "child process is", "child processes are")
    return [f"{number} still running ({'; '.join(commands)})"] if commands else []


def _kill_children(but: Iterable[int] = ()) -> None:
    """End all descendants of this process, except the pids in ``but``."""
    for number in _descendants(os.getpid(), frozenset(but)):
        with contextlib.suppress(OSError):
            os.kill(number, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(number, 0)


def _descendants(parent: int, but: frozenset[int]) -> Iterator[int]:
    for number in _children(parent):
        if number not in but:
            yield from list(_descendants(number, but))
            yield number


def adopt_orphans() -> None:
    """Adopt orphaned descendants of this process, so that daemons are detected too (Linux)."""
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> None:
    """Arrange for this process to be killed when ``parent``, which forked it, ends (Linux). It exits immediately if ``parent`` has already
    ended.
    """
    _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_memory() -> None:
    """Prevent the user's other processes from reading this process's memory (Linux)."""
    _control_process(_PR_SET_DUMPABLE, 0)


def _control_process(option: int, value: int) -> None:
    """Call ``prctl`` on Linux; do nothing elsewhere."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


THREADS = Probe(read=_threads, describe=_describe_threads)
LEFT_RUNNING: tuple[Probe, ...] = (
    THREADS,
    Probe(read=_children, describe=_describe_children, restore=_kill_children),
)
"""Threads and child processes. On systems without ``/proc``, children are not detected."""


def still_running(traces: Traces, grace_s: float = GRACE_S) -> list[str]:
    """Return the threads and processes still running after garbage collection and at most ``grace_s`` seconds."""
    deadline = time.monotonic() + grace_s
    if not (left := traces.changes()):
        return left
    gc.collect()
    while (left := traces.changes()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def end_process(status: int) -> None:
    """Exit immediately with ``status`` if remaining threads would block a normal exit. Otherwise, return."""
    main = threading.main_thread()
    if any(t.is_alive() and not t.daemon and t is not main for t in list(threading._active.values())):  # type: ignore[attr-defined]
        logging.getLogger(__name__).warning("threads that a plugin left running end with this process")
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
