"""The side effects of loading a plugin, found in the process that loaded it on trial. Imports no torch."""

from __future__ import annotations

import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cglsuite.base.traces import DESCRIPTORS, LEFT_RUNNING, STRICT, Traces, settled
from cglsuite.host.discovery import CORE
from cglsuite.host.plugin_records import Entry, PluginRecord

__all__ = ["Forks", "loaded_and_left"]

GRACE_S = 0.2
START_S = 0.02  # a thread is listed only once it runs
_SHARED_BY_ALL = frozenset({CORE, "numpy", "torch"})


class Forks:
    """Counts the forks of this process; in a copy of it, :attr:`is_copy`."""

    def __init__(self) -> None:
        self.count, self._begun_in = 0, os.getpid()
        os.register_at_fork(before=self._add)

    def _add(self) -> None:
        self.count += 1

    @property
    def is_copy(self) -> bool:
        """Whether this is a copy of the process in which this object was made."""
        return os.getpid() != self._begun_in


def loaded_and_left(
    load: Callable[[], tuple[PluginRecord, tuple[Entry, ...]]], forks: Forks
) -> tuple[PluginRecord, tuple[Entry, ...], list[str], bool]:
    """The result of ``load``, and one phrase per change of the process or leftover; changes are undone where possible.

    The last item says whether another plugin can be loaded here: not if descriptors are closed or code was replaced, which cannot be
    undone. A forked copy of the process that the plugin left running ends here.
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
        *settled(running, GRACE_S),
    ]
    replaced = [] if record.distribution == CORE else _replaced(record.source)  # its plugins lie in the folder of the core itself
    changes += [f"{name} was replaced" for name in replaced]
    running.restore()
    shared.restore()
    return record, entries, changes, not closed and not replaced


def _replaced(source: Path | None) -> list[str]:
    """Names of the standard library, the suite's core, NumPy and torch that ``source`` (a folder or file) has replaced."""
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
