"""The user's data files, their options, and plugin files, stored in environment variables so that child processes inherit them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cglsuite.base.errors import DataError, UsageError
from cglsuite.base.inputs import check_path, check_regular, quoted
from cglsuite.graphs.files.options import FileOptions

DATA, PLUGINS, OPTIONS = "CGLSUITE_DATA_FILES", "CGLSUITE_PLUGIN_FILES", "CGLSUITE_DATA_OPTIONS"
"""Names of the environment variables. Paths are separated as in ``PATH``; options are a JSON object of objects, by data set."""
Options = Mapping[str, Mapping[str, Any]]


def data_files() -> list[Path]:
    """Return the absolute paths of the data files specified by the user, without duplicates."""
    return _named(DATA)


def plugin_files() -> list[Path]:
    """Return the absolute paths of the plugin files specified by the user, without duplicates."""
    return _named(PLUGINS)


def _named(variable: str) -> list[Path]:
    words = [word for word in os.environ.get(variable, "").split(os.pathsep) if word.strip()]
    return list(dict.fromkeys(Path(word).expanduser().absolute() for word in words))


def name_of(path: Path) -> str:
    """Return the name of a file's data set, which is the normalised file name.

    Raises:
        DataError: the file name contains no letter or digit.
    """
    name = re.sub(r"[^a-z0-9._+-]+", "-", path.name.lower() if path.is_dir() else path.stem.lower()).strip("-._+")
    if not name:
        raise DataError(f"{path}: the file name must contain a letter or digit, since the data set is named after the file")
    return name


def options_of(path: Path) -> FileOptions:
    """Return the user's options for a data file."""
    name = name_of(path)
    return FileOptions.of(data_options().get(name, {}), f"options of the data set {name}")


def data_options() -> dict[str, dict[str, Any]]:
    """Return the user's options by data set.

    Raises:
        UsageError: the environment variable does not contain a JSON object of objects.
    """
    text = os.environ.get(OPTIONS, "")
    if not text.strip():
        return {}
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(inner, dict) for inner in given.values()):
        raise UsageError(f'{OPTIONS} is not a JSON object of objects such as {{"photo": {{"labels": "multi"}}}}')
    return given


def naming(*, data: Iterable[str | Path] = (), plugins: Iterable[str | Path] = (), options: Options | None = None) -> None:
    """Register files and options (by data set) for this process and its children.

    Raises:
        UsageError: a file is missing, a plugin file is not a Python module, or an option is unknown or belongs to no data file.
    """
    for variable, paths in ((DATA, data), (PLUGINS, plugins)):
        known = _named(variable)
        for given in paths:
            try:
                check_regular(path := check_path(given).expanduser().absolute())
            except ValueError as error:
                raise UsageError(f"{quoted(str(given))}: {error}") from None
            except FileNotFoundError:
                raise UsageError(f"{given}: no such file in {path.parent}") from None
            except OSError as error:
                raise UsageError(f"{given}: {error.strerror or error}; expected a file or a folder") from None
            if variable == PLUGINS and (path.suffix != ".py" or not path.stem.isidentifier()):
                raise UsageError(f"{given}: a plugin file must be a Python module with an importable name, such as my_method.py")
            if os.pathsep in str(path):
                raise UsageError(f"{given}: the path must not contain {os.pathsep!r}, which is the separator between paths")
            known.append(path)
        if known:
            os.environ[variable] = os.pathsep.join(dict.fromkeys(map(str, known)))
    if options:
        _name_options(options)


def _name_options(options: Options) -> None:
    known = data_options()
    files = {name_of(path) for path in data_files()}
    for name, values in options.items():
        if name not in files:
            there = ", ".join(sorted(files)) or "none"
            raise UsageError(f"options were given for the data set {name}, but no data file has this name; the data files are {there}")
        FileOptions.of(values, f"options of the data set {name}")
        known[name] = {**known.get(name, {}), **values}
    os.environ[OPTIONS] = json.dumps(known, sort_keys=True)


@contextmanager
def named(*, data: Iterable[str | Path] = (), plugins: Iterable[str | Path] = (), options: Options | None = None) -> Iterator[None]:
    """Context manager that applies :func:`naming` within its block."""
    before = {variable: os.environ.get(variable) for variable in (DATA, PLUGINS, OPTIONS)}
    try:
        naming(data=data, plugins=plugins, options=options)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
