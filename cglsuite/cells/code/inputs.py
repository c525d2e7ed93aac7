"""Inputs of user code in keys. A cell gets a second key if files or environment variables that it reads have changed since its record was
written.

The first key depends only on the design and the code. The inputs that a cell's user code has read are noted in the store, in
``inputs/ab/FIRST/KEY.json``, before the record is written. The next run of the cell compares them: if anything differs, the cell is planned
under a digest of its first key and the current inputs. Nothing is replaced, and with the old inputs the old record is found again. If a
file is missing, as on another machine, the record remains valid. Reading a store takes the record whose inputs match the current ones,
otherwise the latest. Digests of variables never leave the store; records name the variables.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import stat
import sys
import sysconfig
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from cglsuite.base.errors import UncleanError, UsageError
from cglsuite.base.hashing import digest
from cglsuite.cells.code.user import is_user_module, places
from cglsuite.cells.storage.layout import Digests, write_inputs
from cglsuite.host.frozen import Stamp, active, stamp_of

_READ = "read"


def second_key(first: str, digests: Digests) -> str:
    """Return the key of a cell whose inputs have changed since its first key: a digest of that key, the file names without folders, and the
    contents.
    """
    return digest([first, sorted([re.split("[/:]", name)[-1], content] for name, content in digests.items())])


# --- while a cell runs -----------------------------------------------------------------------------------------------------------------


class Reading:
    """Tracks the files and variables that one cell reads.

    Args:
        digests: the digests that the cell was planned with; empty under its first key.
        first: the cell's first key; ``None`` if nothing is noted, because its code is not the user's or nothing watches this process.
        modules: the user's modules that its key covers. Any other module of the plan that it imports is noted as a file, except
            modules in the key of a cell that this process has run before.
    """

    _foreseen: ClassVar[set[str]] = set()

    def __init__(self, digests: Digests, first: str | None, modules: Iterable[str] = ()) -> None:
        self.planned, self.first = digests, first
        self._foreseen.update(modules)
        self._before: dict[str, str | None] = {}

    def check(self) -> None:
        """Check that the inputs that were read are the ones that the cell was planned with.

        Raises:
            UsageError: a file or variable has changed since planning, or between two readings.
        """
        if self.first is None:
            return
        if unlike := _changed_inputs(self.planned, self.read()):
            raise UsageError(f"{shown(unlike[0])} changed after the cells were planned: run the same command again")

    def read(self) -> dict[str, str | None]:
        """Return all inputs that the cell depends on: those that this process has read since it started, and those of the checkpoint from
        which it resumed.
        """
        return {} if self.first is None else {**self._before, **imported(self._foreseen), **inputs_read()}

    def packed(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Add the inputs read so far to a checkpoint's payload."""
        return payload | {_READ: read} if (read := self.read()) else payload

    def unpacked(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        """Remove the inputs from a checkpoint's payload; ``None`` if they have changed since the checkpoint was saved."""
        before = payload.pop(_READ, {})
        if self.first is None:
            return payload
        if _changed_inputs(before, self.read()):
            return None
        self._before |= before
        return payload

    def written(self, store: Path, key: str) -> dict[str, Any]:
        """Write a note of the inputs to the store before the record of ``key`` is written, and return the inputs for the record's
        provenance.

        Returns:
            Files with their digests, the names of environment variables, the files that user code has written, and the first key if the
            record has a second one. Empty entries are omitted.
        """
        if self.first is None:
            return {}
        read = self.read()
        if read or self.planned:
            write_inputs(store, self.first, key, self.planned, read)
        files = {shown(name): content for name, content in sorted(read.items()) if variable_name(name) is None}
        facts = {
            "files": files,
            "variables": sorted(filter(None, map(variable_name, read))),
            "own_files": [shown(name) for name in written()],
            "first_key": self.first if self.planned else None,
        }
        return {name: value for name, value in facts.items() if value}


def _changed_inputs(then: Digests, read: Digests) -> list[str]:
    """Return the inputs that were read, or would now be read, with different content."""
    return [name for name, content in then.items() if (read[name] if name in read else present(name)) != content]


def shown(name: str) -> str:
    """Format the name of an input as in records, with ``~`` for the home folder."""
    home = str(Path.home())
    return f"~{name.removeprefix(home)}" if name.startswith(f"{home}/") else name


# What user code reads other than code: files that it opens, and environment variables that it looks up by name.
# A process that runs user code watches from the start. A file counts if a function or module of the user's is on the stack when it is
# opened; files that a library reads while it is imported do not count. Neither do folders of the system, of the interpreter and of
# libraries, the store, the suite's cache and data root, and files that user code itself has written. Bytecode counts as its source. Python
# reports only files that it opens itself and libraries that ``ctypes`` loads. :func:`input_file` declares others (``torch.jit.load``,
# ``torch.from_file``, Parquet, SQLite, files that a child process reads).

_WRITES = os.O_WRONLY | os.O_RDWR
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr/lib", "/usr/share")
_SET_BY_THE_SUITE = ("CGLSUITE_", "OMP_", "MKL_", "CUDA_VISIBLE_DEVICES", "SLURM_", "DASK_", "PYTHONPATH", "PYTHONHASHSEED")
_PLAIN: Any = type(os.environ)
_LOOKUPS = frozenset({"get", "getenv", "getenvb", "setdefault", "pop", "__contains__", "__getitem__"})
_IN_TEXT = frozenset({"expandvars", "convert", "substitute", "safe_substitute"})
_CALLERS = tuple(f"cglsuite.{room}." for room in ("campaigns", "cells", "cli", "commons", "host", "reports", "study", "testing"))
"""Callers that do not make a file count as read by user code. A script that runs cells does not open files on behalf of a method."""
_MAPPINGS = ("os", "collections.abc", "collections", "posixpath", "string")
"""Python modules through which a variable can be looked up by name: ``os.getenv``, ``ChainMap``, ``expandvars``, ``string.Template``."""
_SETTLED_NS = 2_000_000_000
"""The age from which a time stamp identifies a file's content, since clocks of file systems are coarse."""


def variable_name(name: str) -> str | None:
    """Return the name of the environment variable if the input is one; ``None`` if it is a file."""
    return name[1:] if name.startswith("$") else None


class _Watch:
    """The inputs that user code has read in this process."""

    def __init__(self, declared: dict[str, None]) -> None:
        self.on = False
        self.excluded: tuple[str, ...] = ()
        self.here = ""
        self.seen: dict[str, str | None] = {}
        self.unlike = set[str]()
        self.written = set[str]()
        self.declared = declared
        self.users: dict[str, bool] = {}
        self.digests: dict[str, tuple[Stamp, str]] = {}
        self.lock = threading.RLock()
        self.busy = threading.local()


_WATCH = _Watch({})
_HOOKED: list[bool] = []


@contextmanager
def watch(*excluded: Path) -> Iterator[None]:
    """Record what user code in this process reads within the block.

    Args:
        excluded: folders that do not count, in addition to those of the interpreter, its libraries and the system.
    """
    global _WATCH
    before = _WATCH
    _WATCH = _Watch(before.declared)
    _WATCH.excluded = _not_counted(excluded)
    if not _HOOKED:
        _HOOKED.append(True)
        sys.addaudithook(_on_event)  # permanent: a hook cannot be removed
    _WATCH.here = os.getcwd()
    os.environ.__class__ = os.environb.__class__ = _WATCHED
    _WATCH.on = True
    try:
        yield
    finally:
        _WATCH = before
        if not before.on:
            os.environ.__class__ = os.environb.__class__ = _PLAIN


def _not_counted(excluded: Iterable[Path]) -> tuple[str, ...]:
    from cglsuite.base.datafiles import DataRoot

    root = DataRoot.from_environment()
    folders = [str(folder) for folder in (*excluded, root.cache, *root.folders, *sysconfig.get_paths().values())]
    return (*_SYSTEM, *{os.path.abspath(folder) for folder in folders}, *{os.path.realpath(folder) for folder in folders})


def watching() -> bool:
    """Return whether a :func:`watch` block is active."""
    return _WATCH.on


def inputs_read() -> dict[str, str | None]:
    """Return the inputs that user code in this process has read, with the SHA-256 (hex) of their content at that time; ``None`` for missing
    files.

    Returns:
        A mapping from input names: ``./path`` for a file below the initial working directory, ``module:path`` for a file below the folder
        of the user's module that opened it, an absolute path, or ``$NAME`` for an environment variable.

    Raises:
        UsageError: a file or variable was read twice and changed in between.
    """
    with _WATCH.lock:
        if _WATCH.unlike:
            names = ", ".join(sorted(_WATCH.unlike))
            raise UsageError(f"{names} changed during training, so it is unknown which version the cells used. Run the same command again")
        return {**{name: present(name) for name in _WATCH.declared}, **_WATCH.seen}


def imported(foreseen: Collection[str]) -> dict[str, str]:
    """Return the planned modules that were imported other than by an import statement, such as by a pickle, an entry point or
    ``pydoc.locate``.

    Args:
        foreseen: the modules that are in keys.

    Returns:
        See :func:`inputs_read`.
    """
    bundle = active()
    names = sorted(bundle.served.difference(foreseen)) if bundle is not None else []
    return {_name_of(bundle.modules[name].path, name): bundle.modules[name].sha256 for name in names} if bundle is not None else {}


def written() -> list[str]:
    """Return the files that user code in this process has written. They are not inputs."""
    return sorted(_WATCH.written)


def present(name: str) -> str | None:
    """Return the current digest of an input; ``None`` if it is missing."""
    if (variable_of := variable_name(name)) is not None:
        value = os.environ.get(variable_of)
        return None if value is None else _digest_of_text(value)
    module, colon, inside = name.partition(":")
    if not colon or "/" in module:
        return _digest_of_file(os.path.join(_working_directory(), name))
    folder = _folder_of(module)
    return None if folder is None else _digest_of_file(os.path.join(folder, inside))


def input_file(path: str | os.PathLike[str]) -> Path:
    """Declare that the calling code depends on a file that Python does not open itself. Returns the path.

    When the file changes, cells of user code that this process trains, or has other processes train, are trained again. Files that user
    code opens with ``open``, :mod:`pathlib`, NumPy, :func:`torch.load` or pandas' text readers are tracked without it.

    Args:
        path: the file.

    Raises:
        UsageError: the file does not exist.
    """
    if not os.path.isfile(path):
        raise UsageError(f"input_file({os.fspath(path)!r}): the file does not exist; pass the path of a readable file")
    name = _name_of(os.path.abspath(path), _module_of(sys._getframe(1)))
    _WATCH.declared[name] = None
    if _WATCH.on:
        _note(name, present(name))
    return Path(path)


def declared() -> list[str]:
    """Return the files that :func:`input_file` declared in this process."""
    return list(_WATCH.declared)


def declare(names: Iterable[str]) -> None:
    """Record that files were read which another process declared."""
    for name in names:
        _note(name, present(name))


# --- files -----------------------------------------------------------------------------------------------------------------------------


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if not _WATCH.on or event not in ("open", "os.rename", "ctypes.dlopen", "resource.setrlimit"):
        return
    if event == "resource.setrlimit":
        _refuse_lower_limit(*args)
        return
    path, flags = (args[1], _WRITES) if event == "os.rename" else (args[0], args[2] if event == "open" else 0)
    if isinstance(path, (str, bytes, os.PathLike)) and not getattr(_WATCH.busy, "now", False):
        _note_access(path, isinstance(flags, int) and bool(flags & _WRITES))


def _refuse_lower_limit(number: int, limits: tuple[int, int]) -> None:
    """Refuse to lower a hard resource limit: it could not be raised again, and the process could then not write a record."""
    import resource

    hard = resource.getrlimit(number)[1]
    lower = limits[1] != hard and limits[1] != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or limits[1] < hard)
    if lower and _user_of(sys._getframe(2)) is not None:
        raise UncleanError(f"lowering a hard resource limit from {hard} to {limits[1]} cannot be undone: lower only the soft limit")


def _note_access(path: Any, writes: bool) -> None:
    _WATCH.busy.now = True
    try:
        file = os.path.abspath(os.fsdecode(path))
        if os.path.basename(os.path.dirname(file)) == "__pycache__":
            if writes or not file.endswith(".pyc"):
                return
            file = importlib.util.source_from_cache(file)
        if _is_relevant(file) and (frame := _user_of(sys._getframe(2))) is not None:
            name = _name_of(file, _module_of(frame))
            if writes:
                _forget(name)
            elif name not in _WATCH.written:
                _note(name, _digest_of_file(file))
    except (OSError, ValueError):
        return  # opening the file raises the same error
    finally:
        _WATCH.busy.now = False


def _is_relevant(name: str) -> bool:
    for folder in _WATCH.excluded:
        if name.startswith(folder + os.sep):
            top = name[len(folder) + 1 :].partition(os.sep)[0].partition(".")[0]
            # Data files of the user's installed packages count, wherever the package is installed.
            return os.path.basename(folder) in ("site-packages", "dist-packages") and top.isidentifier() and _is_user(top)
    return True


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _name_of(file: str, module: str) -> str:
    """Return the name of a file of a user's module, relative to the module, so that it stays the same if a project is moved or
    installed."""
    top = module.partition(".")[0]
    folder = _folder_of(top) if top != "__main__" else None
    if folder is not None and file.startswith(folder + os.sep):
        return f"{top}:{file[len(folder) + 1 :]}"
    here = _working_directory()
    return f"./{file[len(here) + 1 :]}" if file.startswith(here + os.sep) else file


def _working_directory() -> str:
    """Return the working directory when watching began, since code may change it."""
    return _WATCH.here if _WATCH.on else os.getcwd()


def _folder_of(top: str) -> str | None:
    """Return the folder that holds a package or a single module."""
    folders = [place for place in places(top) if place.exists()]
    if not folders:
        return None
    return os.path.abspath(folders[0] if folders[0].is_dir() else folders[0].parent)


def _note(name: str, digest: str | None) -> None:
    with _WATCH.lock:
        if _WATCH.seen.setdefault(name, digest) != digest:
            _WATCH.unlike.add(name)


def _forget(name: str) -> None:
    with _WATCH.lock:
        _WATCH.written.add(name)
        _WATCH.seen.pop(name, None)
        _WATCH.unlike.discard(name)


def _digest_of_file(name: str) -> str | None:
    stamp = stamp_of(name)
    known = _WATCH.digests.get(name)
    if known is not None and known[0] == stamp:
        return known[1]
    busy, _WATCH.busy.now = getattr(_WATCH.busy, "now", False), True
    try:
        if stamp is None or not stat.S_ISREG(os.stat(name).st_mode):
            return None
        with open(name, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            now = os.fstat(stream.fileno())
    except OSError:
        return None
    finally:
        _WATCH.busy.now = busy
    if time.time_ns() - now.st_ctime_ns > _SETTLED_NS and stamp_of(name) == stamp:
        _WATCH.digests[name] = stamp, digest
    return digest


# --- environment variables -------------------------------------------------------------------------------------------------------------


def _note_lookup(self: Any, key: Any) -> Any:
    try:
        value = _PLAIN.__getitem__(self, key)
    except KeyError:
        _note_variable(key, None, sys._getframe(1))
        raise
    _note_variable(key, value, sys._getframe(1))
    return value


def _iterate_variables(self: Any) -> Iterator[Any]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _MAPPINGS:
        frame = frame.f_back
    _WATCH.busy.copied = frame and (id(frame), frame.f_lasti)
    names: Iterator[Any] = _PLAIN.__iter__(self)
    return names


def _set(self: Any, key: Any, value: Any) -> None:
    _PLAIN.__setitem__(self, key, value)
    if isinstance(key, (str, bytes)) and _kind(sys._getframe(1)) == "user":
        _forget(f"${os.fsdecode(key)}")


_WATCHED = type("_Environ", (_PLAIN,), {"__getitem__": _note_lookup, "__iter__": _iterate_variables, "__setitem__": _set})


def _note_variable(key: Any, value: str | bytes | None, frame: FrameType | None) -> None:
    if not isinstance(key, (str, bytes)):
        return
    key = os.fsdecode(key)
    if key.startswith(_SET_BY_THE_SUITE) or f"${key}" in _WATCH.written:
        return
    while frame is not None and frame.f_globals.get("__name__") in _MAPPINGS:
        if frame.f_code.co_name not in _LOOKUPS | _IN_TEXT:
            return  # all variables are copied or searched
        frame = frame.f_back
    if frame is None or getattr(_WATCH.busy, "copied", None) == (id(frame), frame.f_lasti):
        return  # ``dict(os.environ)``: one instruction reads all names, and then each value
    if _kind(frame) == "user":
        _note(f"${key}", None if value is None else _digest_of_text(os.fsdecode(value)))


def _digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


# --- who reads -------------------------------------------------------------------------------------------------------------------------


def _user_of(frame: FrameType | None) -> FrameType | None:
    """Return the user code on whose behalf a library opens a file; ``None`` for imports and for files that the suite or a library opens
    itself."""
    while frame is not None and (kind := _kind(frame)) != "user":
        frame = None if kind == "suite" else frame.f_back
    return frame


def _kind(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    if not isinstance(name, str):
        return "library"
    if name == "cglsuite.host.frozen":  # where a module asks its loader for data
        return "library"
    if name == "importlib._bootstrap" or name.startswith(_CALLERS):
        return "suite"
    if name == "__main__":  # for a class pickled by value, the globals are its own
        return "library" if frame.f_globals is vars(sys.modules["__main__"]) else "user"
    return "user" if _is_user(name.partition(".")[0], frame.f_globals.get("__file__")) else "library"


def _is_user(top: str, file: Any = None) -> bool:
    """Return whether a module is user code; a module known only by its file counts if the file does."""
    if top not in _WATCH.users:
        busy, _WATCH.busy.now = getattr(_WATCH.busy, "now", False), True
        try:
            loose = isinstance(file, str) and not places(top) and _is_relevant(os.path.abspath(file))
            _WATCH.users[top] = loose or is_user_module(top)
        finally:
            _WATCH.busy.now = busy
    return _WATCH.users[top]
