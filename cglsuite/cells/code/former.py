"""The rule by which keys held the user's code before it had one of its own: where it still vouches for a record, only its key is former.

Modules of plugins were followed and digested like the suite's own, so messages, annotations and docstrings were free.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

from cglsuite.cells.code.sources import Closure, Files
from cglsuite.cells.code.user import places, plugin_packages, user_code

__all__ = ["former_digest"]


def former_digest(roots: tuple[str, ...]) -> str | None:
    """The digest by the former rule of the user's factory or builder ``roots[0]``, as its sources are now.

    Args:
        roots: as :func:`cglsuite.cells.keys.references` has them: the plugin's module comes second, and held no code by that rule.

    Returns:
        ``None`` if that rule passed over code that counts now: other libraries of the user's, imports by computed names, compiled modules.
    """
    made, now = _Former(roots[:1], Files()), user_code(roots)
    if now.by_name or not made.files or not all(path.suffix == ".py" and made.followed(name) for name, path in now.files.items()):
        return None
    return made.digest


class _Former(Closure):
    def followed(self, name: str) -> bool:
        """Whether a module was followed: of the package of a root, of a plugin, or beside one, and of no library there."""
        top = name.partition(".")[0]
        if top == "cglsuite":
            return super()._followed(name)
        if top in (homes := {root.partition(":")[0].partition(".")[0] for root in self.roots}) or top in plugin_packages():
            return True
        return (home := _home(top)) not in _environment() and home in map(_home, homes) and top not in _installed(tuple(sys.path))

    _followed = followed


def _home(top: str) -> Path | None:
    return next((place.resolve().parent for place in places(top)), None)


def _environment() -> set[Path | None]:
    return {None, *(Path(os.path.realpath(path)) for path in sysconfig.get_paths().values())}


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> frozenset[str]:
    every = (file for one in importlib.metadata.distributions(path=list(path)) for file in one.files or ())
    return frozenset(file.parts[0].partition(".")[0] for file in every)
