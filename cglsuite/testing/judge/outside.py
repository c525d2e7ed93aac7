"""What changes in the folders that a method could write to, seen from outside: code in C opens files that Python does not hear of."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

__all__ = ["Look", "changed", "looked_at", "places_of"]

_DEEP, _SHARED, _SHALLOW = 6, 5, 2
_MOST = 2000
"""Entries of a folder that are looked at; those nearer to it come first."""
Look = dict[str, dict[str, tuple[int, ...]]]
"""By place and path, what tells whether an entry has changed; folders change with their names only."""
_UNREAD, _READ = (0,), (1,)
"""Of folders: whether their entries were looked at."""


def places_of(factory: str, path: Sequence[str]) -> dict[str, int]:
    """Folders with the depth to which they are looked at: the current one, that of the method's module, and those that all processes share.

    Args:
        factory: ``"module:class"``; the module is looked for on ``path`` and not imported.
    """
    places = {os.getcwd(): _DEEP}
    top = factory.partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(top, list(path))
    if spec is not None and spec.has_location and spec.origin:
        places[os.path.dirname(os.path.realpath(spec.origin))] = _DEEP
    shared = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", f"/run/user/{os.getuid()}")
    depths = {str(Path.home()): _SHALLOW, **dict.fromkeys(shared, _SHARED)}  # a home may be large and on another machine
    return {os.path.realpath(place): depth for place, depth in depths.items() if os.path.isdir(place)} | places


def looked_at(places: dict[str, int], but: Collection[str]) -> Look:
    """What lies below the places.

    Args:
        but: folders that are left out.
    """
    looked: Look = {}
    for place, depth in places.items():
        left, number, found = deque([(place, 1)]), 0, looked.setdefault(place, {})
        while left and number < _MOST:
            folder, level = left.popleft()
            if folder in found:
                found[folder] = _READ
            for entry in _entries(folder):
                number += 1
                if entry.path in but:
                    continue
                try:
                    is_folder, state = entry.is_dir(follow_symlinks=False), entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                found[entry.path] = _UNREAD if is_folder else (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
                if is_folder and level < depth:
                    left.append((entry.path, level + 1))
    return looked


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []


def changed(before: Look, now: Look) -> dict[str, list[str]]:
    """By place, the paths that are new or hold something else; places without any are left out.

    A path in a folder that was not looked at before may have been there all along.
    """
    paths = {place: sorted(p for p in found if _differs(p, place, before.get(place, {}), found)) for place, found in now.items()}
    return {place: found for place, found in paths.items() if found}


def _differs(path: str, place: str, before: dict[str, tuple[int, ...]], now: dict[str, tuple[int, ...]]) -> bool:
    if path in before:
        return before[path] != now[path] and not {before[path], now[path]} <= {_UNREAD, _READ}
    folder = os.path.dirname(path)
    if folder == place or folder not in now:
        return True
    return before[folder] == _READ if folder in before else _differs(folder, place, before, now)
