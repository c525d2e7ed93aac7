"""The processes in which methods run during checks, and the protocol between them and the judge.

Changes in folders that a method could write to are detected from outside, since C code can open files unnoticed by Python.
"""

from __future__ import annotations

import math
import os
import secrets
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cglsuite.base.datafiles import DataRoot
from cglsuite.base.errors import CglsuiteError, NotApplicable, PluginError
from cglsuite.base.hashing import digest
from cglsuite.base.helpers import module_path
from cglsuite.cells.keys import share_key
from cglsuite.cells.process import replacements_undone
from cglsuite.cells.run import build_stream, make_runner, numerics
from cglsuite.cells.spec import CellSpec
from cglsuite.host import Catalogue, Entry
from cglsuite.testing.findings import CheckFailed
from cglsuite.testing.judge.fork_server import ForkServer, ForkServerGone
from cglsuite.testing.judge.session import Channel, JudgeSession, Outcome, received_plain

if TYPE_CHECKING:
    from cglsuite.learning.result import RunResult


_LIMIT_S = 120.0
_Dialogue = tuple[str, str, Callable[[Channel, Callable[[], bool]], object]]
"""A name, a method's factory, and the function that communicates with the process that runs it."""


class Sandbox:
    """Runs methods in separate processes. Exiting the context manager terminates all of them.

    Args:
        limit_s: time limit in seconds for all requests to one process.
        path: the module search path of the processes. Default: that of this process.
    """

    def __init__(self, *, limit_s: float = _LIMIT_S, path: Sequence[str] | None = None) -> None:
        self.limit_s, self.path = limit_s, module_path() if path is None else list(path)
        self._fork_server = ForkServer()
        self._elsewhere: ForkServer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._fork_server.close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def run(self, catalogue: Catalogue, judge_sessions: Iterable[JudgeSession], *, elsewhere: bool = False) -> list[Outcome]:
        """Serve several judge sessions in one fresh process, in order.

        Args:
            elsewhere: use a process with a different hash seed, additional modules and environment variables, and a different parent.

        Raises:
            CheckFailed: the process ends, hangs, sends invalid data, or leaves processes behind.
            NotApplicable, Refused: see :meth:`JudgeSession.serve`.
        """
        outcomes = list[Outcome]()

        def serve(judge_session: JudgeSession, near: Channel, ready: Callable[[], bool]) -> None:
            outcomes.append(judge_session.serve(near, ready))

        def dialogues() -> Iterator[_Dialogue]:
            for judge_session in judge_sessions:
                yield judge_session.name, judge_session.method.factory, partial(serve, judge_session)

        self._talk(catalogue, dialogues(), elsewhere=elsewhere)
        return outcomes

    def snapshot(self, factory: str) -> Snapshot:
        """Take a snapshot of the folders that a method's process could write to, except its own."""
        folders = [server.folder for server in (self._fork_server, self._elsewhere) if server is not None]
        return snapshot_of(places_of(factory, self.path), folders)

    def agree(self, catalogue: Catalogue, entry: Entry, scenario: str) -> dict[str, list[float]]:
        """Return the first losses of a method on the CPU and the GPU, by device, computed in one process.

        Raises:
            CheckFailed: the method fails on one of the devices; also as for :meth:`run`.
        """
        losses = self._answered(catalogue, entry, {"devices": {"catalogue": catalogue, "method": entry.name, "scenario": scenario}})
        return {device: [float(v) for v in losses[device]] for device in ("cpu", "cuda")}

    def describe(self, catalogue: Catalogue, entry: Entry) -> str:
        """Return the docstring of a method's factory.

        Raises:
            CheckFailed: the factory cannot be imported; also as for :meth:`run`.
        """
        return str(self._answered(catalogue, entry, {"describe": str(getattr(entry.spec, "factory", ""))})["doc"])

    def _answered(self, catalogue: Catalogue, entry: Entry, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply of a fresh process to a single request."""
        answer, name = dict[str, Any](), f"{entry.kind} {entry.name!r} of {entry.provider}"

        def hear(near: Channel, ready: Callable[[], bool]) -> None:
            near.send(request)
            if not ready():
                raise CheckFailed(f"{name} hangs", "remove side effects from the import of the module")
            answer.update(received_plain(near.connection))

        self._talk(catalogue, [(name, str(getattr(entry.spec, "factory", "")), hear)])
        if answer.get("what") != "answered":
            raise CheckFailed(f"{name} fails: {answer.get('reason')}", "fix the error")
        return answer

    def _talk(self, catalogue: Catalogue, dialogues: Iterable[_Dialogue], *, elsewhere: bool = False) -> None:
        """Run all dialogues in order in one fresh process."""
        if elsewhere and self._elsewhere is None:
            self._elsewhere = ForkServer(elsewhere=True)
        server = self._elsewhere if elsewhere and self._elsewhere is not None else self._fork_server
        trial, name = server.begin(), "the method"
        deadline, ended, problem = time.monotonic() + self.limit_s, False, None

        def ready() -> bool:
            return server.ready(trial, max(0.0, deadline - time.monotonic()))

        try:
            near = Channel(trial.connection)
            for i, (current, factory, talk) in enumerate(dialogues):
                name = current
                if i == 0:
                    loaders = sorted(_loaders(catalogue, factory))
                    raw = [str(folder) for folder in DataRoot.from_environment().folders]
                    near.send({"path": self.path, "loaders": loaders, "data": raw})
                talk(near, ready)
        except (EOFError, ConnectionError):
            ended = True
        except (CglsuiteError, CheckFailed):
            raise
        except Exception as error:  # noqa: BLE001 - an invalid reply of any kind
            problem = error
        finally:
            try:
                status, left = server.end(trial, patient=ended)
            except ForkServerGone:
                server.close()
                if elsewhere:
                    self._elsewhere = None
                else:
                    self._fork_server = ForkServer()
                raise CheckFailed(f"{name} ends the process that started it", "do not send signals") from None
        if ended:
            raise CheckFailed(
                f"{name} ends its process ({_status_text(status)})", "raise an error that describes the problem; never end the process"
            )
        if problem is not None:
            raise CheckFailed(
                f"{name} returns data that cannot be read: {type(problem).__name__}: {problem!s:.200}", "do not modify the suite"
            )
        if left:
            processes = "a process" if left == 1 else f"{left} processes"
            raise CheckFailed(f"{name} leaves {processes} running", "do not start processes, or end those that you start")


def _loaders(catalogue: Catalogue, method: str) -> set[str]:
    """Return the modules of dataset loaders, which methods must not use. The method's own module is excluded."""
    factories = {str(getattr(entry.spec, "factory", "")).partition(":")[0] for entry in catalogue.entries("dataset")}
    return factories - {method.partition(":")[0], ""}


def _status_text(status: int) -> str:
    """Describe the wait status of a process."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"signal {signal.Signals(number).name}"
    return f"exit status {os.waitstatus_to_exitcode(status)}"


# Audit mode: a method runs in a process that receives only permitted data. Its predictions must be the same as in this process.
# Within one process, Python code can reach anything: it can walk frames, query the garbage collector, replace functions. The other process
# has no hidden data: labels of validation and test items never leave this one. A method whose predictions differ there depends on data
# that it must not use.


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The results of an audit.

    Args:
        matrix: the performance matrix of the predictions made in the other process, scored in this process.
        differences: descriptions of the differences from a run in this process.
        acts: forbidden actions of the method, such as writing files outside its working folder, opening network connections or starting
            processes.
    """

    matrix: list[list[float]]
    differences: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the predictions agree in both processes and the method did nothing forbidden."""
        return not self.differences and not self.acts


def audit(cell: CellSpec, catalogue: Catalogue, *, timeout_s: float = 600.0) -> Audit:
    """Run a cell in this process and again with its method in another process, and compare the results.

    Args:
        timeout_s: total time limit of the other process in seconds.

    Raises:
        NotApplicable: the stream is task-free, or message graphs have edge weights.
        PluginError: the method fails only in the other process, hangs there, or ends it.
    """
    if cell.scenario.task_free is not None:
        raise NotApplicable(f"{cell.preset}: audits support only streams of tasks, but this stream is task-free")
    if cell.weighted:
        raise NotApplicable(f"{cell.preset}: audits do not support edge weights; set backbone.edge_weight = false")
    identity = digest([share_key(cell, catalogue), build_stream(cell, catalogue).data_hash])
    judge_session = JudgeSession(cell, catalogue, build_stream(cell, catalogue), seed=secrets.randbits(31), identity=identity, probed=False)
    try:
        with Sandbox(limit_s=timeout_s) as method_sandbox:
            (there,) = method_sandbox.run(catalogue, [judge_session])
    except CheckFailed as failure:
        raise PluginError(f"{failure}, in a separate process that contains only permitted data; {failure.fix}") from None
    with numerics(cell), replacements_undone():
        here: RunResult = make_runner(cell, catalogue, build_stream(cell, catalogue)).run()
    none = [math.nan] * len(here.matrix[0])
    matrix = [there.matrix.get(row, none) for row in range(len(here.matrix))]
    return Audit(matrix=matrix, differences=tuple(_differences(here, there, matrix)), acts=tuple(map(str, there.notes["acts"])))


def _differences(expected: RunResult, outcome: Outcome, matrix: list[list[float]]) -> list[str]:
    differences = []
    for k, (prints, state) in enumerate(zip(expected.fingerprints, outcome.notes["states"], strict=True), start=1):
        if outcome.answers.get(k, "") != prints["answers"]:
            differences.append(f"after task {k} the predictions differ from those in this process")
        elif state != prints["state"]:
            differences.append(f"after task {k} the state differs from the one in this process, although the predictions are the same")
    if not differences and repr(expected.matrix) != repr(matrix):
        differences.append("the same predictions have different scores in this process: scores were tampered with")
    return differences


_DEEP, _SHARED, _SHALLOW = 6, 5, 2
_MAX_ENTRIES = 2000
"""The maximum number of entries examined per folder, the closest first."""
Snapshot = dict[str, dict[str, tuple[int, ...]]]
"""Maps each place and path to a stamp that changes with the entry. Stamps of folders change only with their names."""
_UNREAD, _READ = (0,), (1,)
"""Folder states, which record whether a folder's entries were examined."""


def places_of(factory: str, path: Sequence[str]) -> dict[str, int]:
    """Return the folders to examine and a depth for each: the current folder, that of the method's module, and shared folders.

    Args:
        factory: ``"module:class"``. The module is located on ``path`` but not imported.
    """
    places = {os.getcwd(): _DEEP}
    top = factory.partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(top, list(path))
    if spec is not None and spec.has_location and spec.origin:
        places[os.path.dirname(os.path.realpath(spec.origin))] = _DEEP
    shared = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", f"/run/user/{os.getuid()}")
    depths = {str(Path.home()): _SHALLOW, **dict.fromkeys(shared, _SHARED)}  # a home folder may be large and on another machine
    return {os.path.realpath(place): depth for place, depth in depths.items() if os.path.isdir(place)} | places


def snapshot_of(places: dict[str, int], but: Collection[str]) -> Snapshot:
    """Take a snapshot of everything below the places.

    Args:
        but: folders to exclude.
    """
    snapshot: Snapshot = {}
    for place, depth in places.items():
        left, number, files = deque([(place, 1)]), 0, snapshot.setdefault(place, {})
        while left and number < _MAX_ENTRIES:
            folder, level = left.popleft()
            if folder in files:
                files[folder] = _READ
            for entry in _entries(folder):
                number += 1
                if entry.path in but:
                    continue
                try:
                    is_folder, state = entry.is_dir(follow_symlinks=False), entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                files[entry.path] = _UNREAD if is_folder else (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
                if is_folder and level < depth:
                    left.append((entry.path, level + 1))
    return snapshot


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []


def changed(before: Snapshot, now: Snapshot) -> dict[str, list[str]]:
    """Return the new and changed paths by folder. Unchanged folders are omitted.

    If a folder was not examined before, its paths may also have existed before.
    """
    paths = {place: sorted(p for p in files if _differs(p, place, before.get(place, {}), files)) for place, files in now.items()}
    return {place: files for place, files in paths.items() if files}


def _differs(path: str, place: str, before: dict[str, tuple[int, ...]], now: dict[str, tuple[int, ...]]) -> bool:
    if path in before:
        return before[path] != now[path] and not {before[path], now[path]} <= {_UNREAD, _READ}
    folder = os.path.dirname(path)
    if folder == place or folder not in now:
        return True
    return before[folder] == _READ if folder in before else _differs(folder, place, before, now)
