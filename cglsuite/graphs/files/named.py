"""Which data files and plugin files the user named: environment variables, so that child processes see the same ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cglsuite.base.errors import UsageError

__all__ = ["DATA", "PLUGINS", "data_files", "named", "naming", "plugin_files"]

DATA, PLUGINS = "CGLSUITE_DATA_FILES", "CGLSUITE_PLUGIN_FILES"
"""Names of the environment variables; paths are separated as in ``PATH``."""


def data_files() -> list[Path]:
    """The data files that were named, absolute, without repetition."""
    return _named(DATA)


def plugin_files() -> list[Path]:
    """The plugin files that were named, absolute, without repetition."""
    return _named(PLUGINS)


def _named(variable: str) -> list[Path]:
    words = [word for word in os.environ.get(variable, "").split(os.pathsep) if word.strip()]
    return list(dict.fromkeys(Path(word).expanduser().absolute() for word in words))


def naming(*, data: Iterable[str | Path] = (), plugins: Iterable[str | Path] = ()) -> None:
    """Add files to those named, for this process and its children.

    Raises:
        UsageError: nothing is there, or a plugin file is no Python module.
    """
    for variable, paths in ((DATA, data), (PLUGINS, plugins)):
        known = _named(variable)
        for given in paths:
            path = Path(given).expanduser().absolute()
            if not path.exists():
                raise UsageError(f"{given}: there is no such file (in {path.parent})")
            if variable == PLUGINS and (path.suffix != ".py" or not path.stem.isidentifier()):
                raise UsageError(f"{given}: a plugin file is a Python module whose name can be imported, such as my_method.py")
            if os.pathsep in str(path):
                raise UsageError(f"{given}: expected a path without {os.pathsep!r}, which separates paths")
            known.append(path)
        if known:
            os.environ[variable] = os.pathsep.join(dict.fromkeys(map(str, known)))


@contextmanager
def named(*, data: Iterable[str | Path] = (), plugins: Iterable[str | Path] = ()) -> Iterator[None]:
    """:func:`naming` for the length of a block."""
    before = {variable: os.environ.get(variable) for variable in (DATA, PLUGINS)}
    try:
        naming(data=data, plugins=plugins)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
