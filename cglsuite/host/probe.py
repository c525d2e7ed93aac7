"""The child process of ``plugins doctor``, which loads the selected plugins and logs every step and side effect.

Each line of the report file is one JSON object, written before the step it announces, so that a process that exits, crashes or
hangs leaves the name of the step. Run with its three arguments by :mod:`cglsuite.host.doctor`; its standard
output is a file that should stay empty, so that direct writes to it are detected.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any

from cglsuite.base.errors import PluginError
from cglsuite.base.helpers import restart_time_limit
from cglsuite.base.traces import DESCRIPTORS, LEFT_RUNNING, STRICT, Traces, end_process, random_state_restored, still_running
from cglsuite.host.catalogue import Catalogue
from cglsuite.host.discovery import CORE, Candidate, Entry, PluginRecord, find_candidates
from cglsuite.host.loading import load_plugin
from cglsuite.specs import KINDS

HEAVY = ("torch", "torch_geometric")
"""Modules that listing must not import, since importing them takes seconds."""


def main(report: str, plugins: str, deep: str) -> None:
    """Load plugins and report on them.

    Args:
        report: the file to write.
        plugins: JSON list of candidate keys (distribution, entry-point name, value).
        deep: ``"1"`` to import every factory as well.
    """
    keys = {tuple(key) for key in json.loads(plugins)}
    place, forks = Path(report).resolve(), Forks()

    def write(**what: Any) -> None:
        if not forks.is_copy:
            with place.open("a", encoding="utf-8") as file:  # opened for each line: a plugin may close open files
                file.write(dumps(what) + "\n")

    before = set(sys.modules)
    records: list[PluginRecord] = []
    entries: list[Entry] = []
    left: list[tuple[tuple[str, ...], list[str]]] = []
    tried: list[tuple[str, ...]] = []
    for candidate in (c for c in find_candidates() if c.key in keys):
        load = partial(load_plugin, candidate, partial(_announce, write, candidate))
        with random_state_restored(but=candidate.module.partition(".")[0]):  # what it imports may draw, itself it may not
            record, provided, changes, usable = load_and_find_changes(load, forks)
        records.append(record)
        entries.extend(provided)
        left += [(candidate.key, changes)] if changes else []
        tried.append(candidate.key)
        if not usable:
            break
    heavy = [name for name in HEAVY if name in sys.modules and name not in before]
    catalogue = Catalogue(records, entries)
    write(
        records=[record.as_json() for record in records],
        tried=tried,
        left=left,
        collisions=[(collision.problem, collision.remedy) for collision in catalogue.collisions],
        heavy=heavy,
        factories=_examined_factories(catalogue, write) if deep == "1" else [],
    )
    end_process(0)


def _announce(write: Callable[..., None], candidate: Candidate, stage: str) -> None:
    restart_time_limit()
    write(stage=stage, plugin=candidate.key)


def _examined_factories(catalogue: Catalogue, write: Callable[..., None]) -> list[str]:
    """Return the faults of the plugins' factories."""
    messages = []
    for kind in KINDS:
        for entry in catalogue.entries(kind):
            restart_time_limit()
            write(stage=f"factory of {kind} {entry.name}")
            try:
                catalogue.resolve(entry)
            except PluginError as error:
                messages.append(str(error))
    return messages


# The side effects of loading a plugin, found in the process that loaded it on trial. Imports no torch.

GRACE_S = 0.2
START_S = 0.02  # a thread is listed only once it runs
_SHARED_BY_ALL = frozenset({CORE, "numpy", "torch"})


class Forks:
    """Count the forks of this process. In a forked copy, :attr:`is_copy` is true."""

    def __init__(self) -> None:
        self.count, self._begun_in = 0, os.getpid()
        os.register_at_fork(before=self._add)

    def _add(self) -> None:
        self.count += 1

    @property
    def is_copy(self) -> bool:
        """Whether this process is a fork of the one in which this object was created."""
        return os.getpid() != self._begun_in


def load_and_find_changes(
    load: Callable[[], tuple[PluginRecord, tuple[Entry, ...]]], forks: Forks
) -> tuple[PluginRecord, tuple[Entry, ...], list[str], bool]:
    """Call ``load``. Return its result with one phrase for each change of global state and each leftover. Changes are undone if possible.

    The last item is whether another plugin can be loaded here. It is false if descriptors were closed or code was replaced, since that
    cannot be undone. A forked copy of the process that the plugin left running ends here.
    """
    shared, descriptors, running, forked = Traces(STRICT), Traces(DESCRIPTORS), Traces(LEFT_RUNNING), forks.count
    record, entries = load()
    if forks.is_copy:
        os._exit(0)
    time.sleep(START_S)
    changes = [
        *shared.changes(),
        *(closed := descriptors.changes()),
        *(["the process was forked"] if forks.count > forked else []),
        *still_running(running, GRACE_S),
    ]
    replaced = [] if record.distribution == CORE else _replaced(record.source)  # its plugins lie in the folder of the core itself
    changes += [f"{name} was replaced" for name in replaced]
    running.restore()
    shared.restore()
    return record, entries, changes, not closed and not replaced


def _replaced(source: Path | None) -> list[str]:
    """Return the names in the standard library, the suite's core, NumPy and torch that ``source`` (a folder or file) has replaced."""
    if source is None:
        return []
    home = str(source) + (os.sep if source.is_dir() else "")
    return sorted(name for name, code in _code() if code.co_filename.startswith(home))


def _code() -> Iterator[tuple[str, types.CodeType]]:
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if name != "__main__" and (top in _SHARED_BY_ALL or top in sys.stdlib_module_names) and isinstance(module, types.ModuleType):
            for attribute, value in list(vars(module).items()):
                yield from _of(f"{name}.{attribute}", value)
                if issubclass(type(value), type) and value.__module__ == name:
                    for inner, member in list(vars(value).items()):
                        yield from _of(f"{name}.{attribute}.{inner}", member)


def _of(name: str, value: Any) -> Iterator[tuple[str, types.CodeType]]:
    # By its type alone: lazy objects, such as torch's backends, do or warn about things when any attribute is asked for.
    function = value.__func__ if type(value) in (classmethod, staticmethod, types.MethodType) else value
    if type(function) is types.FunctionType:
        yield name, function.__code__


if __name__ == "__main__":
    main(*sys.argv[1:])
