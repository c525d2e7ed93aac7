"""Observations of a method from within its process: forbidden acts, replaced code, kept views, changed inputs.

They explain failures; the judge's own measurements decide, since a method can tamper with its own process.
"""

from __future__ import annotations

import gc
import os
import sys
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch

from cglsuite.base.traces import STRICT, THREADS, Probe
from cglsuite.cells.process.numerical_state import NUMERICAL, RANDOM_STATES
from cglsuite.graphs import GraphSet, MessageGraph, SparseMatrix
from cglsuite.streams import Batch, QueryGroup, TaskView

__all__ = ["PROCESS_SETTINGS", "Acts", "Given"]

PROCESS_SETTINGS: tuple[Probe, ...] = tuple(probe for probe in (*STRICT, *NUMERICAL, THREADS) if probe not in RANDOM_STATES)
"""What a method shares with everything else in its process, besides random states, which are compared on their own."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_ACTS = {
    "socket.connect": "connects to a network address",
    "socket.bind": "opens a network address",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.kill": "sends a signal",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "shutil.rmtree": "removes a folder",
}


class Acts:
    """An audit hook that notes written files, reads of raw data, dataset loaders, and ``_ACTS``.

    Args:
        folder: the only folder that the method may write to.
        loaders: the modules of dataset loaders. data: the folders of raw data.
    """

    def __init__(self, folder: str, loaders: Iterable[str], data: Iterable[str]) -> None:
        self.folder = os.path.realpath(folder)
        self.own = ("/proc/self/", f"/proc/{os.getpid()}/", "/proc/cpuinfo", "/proc/meminfo")
        self.data = tuple(os.path.realpath(given) + os.sep for given in data)
        self.loaders = frozenset(loaders) - set(sys.modules)
        places = {name: name.replace(".", "/") for name in self.loaders}
        self._files = {name: (f"/{p}.py", f"/{os.path.dirname(p)}/__pycache__/{os.path.basename(p)}.") for name, p in places.items()}
        self.seen: dict[str, None] = {}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*arguments)
        elif event == "import" and arguments[0] in self.loaders:
            self._note_loader(arguments[0])
        elif event in _ACTS:
            self.seen[f"{_ACTS[event]}: {arguments[0]!r:.200}" if arguments else _ACTS[event]] = None

    def _note_loader(self, name: str) -> None:
        self.seen[f"imports a dataset's loader: {name}"] = None

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        with suppress(OSError, ValueError, TypeError):
            where = os.path.abspath(os.fsdecode(path))
            if where == os.devnull or where.startswith(self.folder):
                return
            if isinstance(flags, int) and flags & _WRITES:
                self.seen[f"writes the file {where}"] = None
            elif where.startswith(self.data):
                self.seen[f"reads raw data: {where}"] = None
            elif where.startswith("/proc/") and not where.startswith(self.own):
                self.seen[f"reads {where}"] = None
            else:
                # importlib.import_module raises no audit event, but the module's file is opened.
                for name, (source, compiled) in self._files.items():
                    if where.endswith(source) or compiled in where:
                        self._note_loader(name)

    def noted(self) -> list[str]:
        """All notes, including dataset loaders that were loaded without opening a file."""
        for name in sorted(self.loaders & set(sys.modules)):
            self._note_loader(name)
        return list(self.seen)


def _tensors(batch: Batch) -> Iterator[tuple[str, torch.Tensor]]:
    """The contents of a batch, without derived data."""
    graph = batch.graph
    named: dict[str, Any] = {"ids": batch.ids, "y": batch.y, "allowed": batch.allowed, "tasks": batch.tasks}
    if graph is not None:
        named["features"] = graph.features
        named |= graph.payload() if isinstance(graph, GraphSet) else {"edges": graph.edge_index}
    for name, value in named.items():
        if isinstance(value, SparseMatrix):
            yield name, value.values
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            yield name, value.detach()


def _batches(value: Any) -> list[Batch]:
    if isinstance(value, Batch):
        return [value]
    if isinstance(value, TaskView):
        return [value.train, value.validation]
    return [value.query] if isinstance(value, QueryGroup) else []


class Given:
    """The method's inputs: whether they are unchanged, and whether they are released."""

    def __init__(self) -> None:
        self._content: list[tuple[str, torch.Tensor, int]] = []
        self._alive: list[tuple[int, str, weakref.ref[Any]]] = []
        self.changed: dict[str, None] = {}
        self.kept: dict[str, None] = {}

    def note(self, value: Any, stage: int) -> None:
        """Register a view, query group or batch given in ``stage``."""
        holders = [value, *_batches(value)]
        for batch in _batches(value):
            self._content += [(name, tensor, _checksum(tensor)) for name, tensor in _tensors(batch)]
        if not isinstance(value, QueryGroup):  # queries are released once answered; graphs are shared
            self._alive += [(stage, type(holder).__name__, weakref.ref(holder)) for holder in holders]
        self._alive += [(stage + 1, type(b.graph).__name__, weakref.ref(b.graph)) for b in _batches(value) if _weak(b.graph)]

    def compare(self) -> None:
        """Note the tensors that have changed since they were given, and forget all of them."""
        for name, tensor, checksum in self._content:
            if _checksum(tensor) != checksum:
                self.changed[name] = None
        self._content.clear()

    def look(self, stage: int, lasting: Iterable[Any]) -> None:
        """Note objects of earlier stages that are still alive; ``lasting`` are graphs still in use by the stream."""
        gc.collect()
        shown = {id(graph) for graph in lasting}
        for given, what, reference in self._alive:
            if given < stage and (held := reference()) is not None and id(held) not in shown:
                self.kept[what] = None
        self._alive = [entry for entry in self._alive if entry[2]() is not None]


def _weak(graph: Any) -> bool:
    return isinstance(graph, MessageGraph | GraphSet)


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().data) if tensor.numel() else 0
