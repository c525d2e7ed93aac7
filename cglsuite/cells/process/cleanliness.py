"""Check that a cell leaves its process unchanged, and attribute changes to code. A record from an unclean process is refused.

The process checks itself, which finds careless changes: a seed, a default, a thread, a patched function. Malicious code can hide from
it; therefore no two foreign distributions share a worker process (:mod:`cglsuite.campaigns.executors.worker`).
"""

from __future__ import annotations

import dataclasses
import importlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from torch import Tensor

from cglsuite.base.errors import UncleanError
from cglsuite.base.traces import LEFT_RUNNING, SHARED, Traces, settled
from cglsuite.cells.keys import sources
from cglsuite.cells.process.code_census import CodeCensus
from cglsuite.cells.process.numerical_state import NUMERICAL
from cglsuite.cells.records.describe import foreign_code

if TYPE_CHECKING:
    from cglsuite.cells.spec import CellSpec
    from cglsuite.host import Catalogue

__all__ = ["ROLES", "Watch"]

ROLES = ("dataset", "scenario", "schedule", "backbone", "method", "pretraining", "measure")
"""The roles whose code runs in a cell, besides the core and the metrics."""

_LOADED_LATE = ("cglsuite.learning.task_runner", "cglsuite.learning.task_free_runner", "cglsuite.streams.oracle")
_DEPTH = 4  # a dataset is a dataclass of tensors, lists of them, and dataclasses such as splits


class Watch:
    """Compares the process, while one cell runs in it, with its state at the start.

    Changes are undone where possible, reported once, and kept in :attr:`found`.

    Args:
        cell: the running cell. catalogue: gives the providers of its code.
    """

    def __init__(self, cell: CellSpec, catalogue: Catalogue) -> None:
        self._used = sources(cell, catalogue)
        self._census = _census()
        self._census.renew()
        self._before, self._running = Traces((*SHARED, *NUMERICAL)), Traces(LEFT_RUNNING)
        metrics = {f"metric {entry.name}": {"distribution": entry.record.distribution} for entry in catalogue.entries("metric")}
        self._foreign = bool(foreign_code({**self._used, **metrics}))
        self.found: list[str] = []

    @property
    def foreign(self) -> bool:
        """Whether foreign code takes part, including metrics."""
        return self._foreign

    def look(self, *roles: str) -> None:
        """Compare settings, random states and code if any code is foreign.

        Args:
            roles: the roles whose code has run: ``"dataset"``, ``"scenario"``, ``"backbone"``, ``"method"``, ...
        """
        if self._foreign:
            self._note(self._changes(self._before), roles)

    @contextmanager
    def inside(self, data: Any, *roles: str) -> Iterator[Callable[[], None]]:
        """Also compare at the end of the block, for all code, with the cell's settings at the start of the block.

        Yields a function to call before a state is kept for other cells; it raises :class:`UncleanError` if something was found.

        Args:
            data: the dataset, which cells share: foreign code must not change its tensors and arrays in place.
        """
        self._census.extend()
        before = Traces((*SHARED, *NUMERICAL))
        versions = list(_versions(data)) if self._foreign else []

        def look() -> None:
            in_place = self._foreign and list(_versions(data)) != versions
            self._note(self._changes(before) + (["the dataset was changed in place"] if in_place else []), roles)

        def verify() -> None:
            look()
            if self.found:
                raise UncleanError(self.found[-1])

        try:
            yield verify
        finally:
            look()

    def finish(self, *roles: str) -> None:
        """Compare settings and random states, and end remaining threads and child processes; the method must no longer be
        referenced."""
        changes = self._before.changes()
        if left := settled(self._running):
            self._running.restore()
        if changes:
            self._before.restore()
        self._note(changes + left, roles)

    def _changes(self, before: Traces) -> list[str]:
        replaced, changes = [f"{name} was replaced" for name in self._census.undo()], before.changes()
        if changes:
            before.restore()
        return replaced + changes

    def _note(self, changes: list[str], roles: tuple[str, ...]) -> None:
        if changes and (sentence := self._sentence(changes, roles)) not in self.found:
            self.found.append(sentence)

    def _sentence(self, changes: list[str], roles: tuple[str, ...]) -> str:
        parties = {role: self._used[role] for role in roles if role in self._used}
        foreign = {role: source for role, source in parties.items() if foreign_code({role: source})}
        named = [f"{r} {s['name']!r} of {s['distribution']} {s['version']}" for r, s in (foreign or parties).items()]
        return f"{' or '.join(named) or 'a plugin'} changed global state of the process: {'; '.join(changes)}"


@cache
def _census() -> CodeCensus:
    """One per process: all cells are compared with the code that the first one found loaded."""
    for name in _LOADED_LATE:
        importlib.import_module(name)
    return CodeCensus()


def _versions(data: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The version counter of every tensor in ``data``, and a checksum per array."""
    if isinstance(data, Tensor):
        yield -1 if data.is_inference() else data._version
    elif isinstance(data, np.ndarray):
        yield zlib.crc32(np.ascontiguousarray(data).view(np.uint8).data) if data.size and data.dtype != object else 0
    elif depth and scipy.sparse.issparse(data):
        yield from _versions(getattr(data, "data", None), depth - 1)
    elif depth and dataclasses.is_dataclass(data):
        for field in dataclasses.fields(data):
            yield from _versions(getattr(data, field.name, None), depth - 1)
    elif depth and isinstance(data, (list, tuple, Mapping)):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _versions(part, depth - 1)
