"""The environment variables of the core: their names, their valid values, and one function that reads them."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from cglsuite.base.errors import UsageError
from cglsuite.base.inputs import MAX_PROCESSES, check_path, quoted, read_device, real_number, text_value, truth_value, whole_number

_log = logging.getLogger(__name__)


def _path(text: str) -> str:
    return str(check_path(text))


def _paths(text: str) -> str:
    for part in text.split(os.pathsep):
        if part.strip():
            check_path(part)
    return text


VARIABLES: dict[str, tuple[Callable[[str], Any], str]] = {
    "CGLSUITE_CACHE": (_path, "the cache folder for data derived from raw files"),
    "CGLSUITE_CHECKPOINT_EVERY": (lambda text: real_number(text, maximum=1e9), "seconds of finished work that an interruption may cost"),
    "CGLSUITE_DATA_FILES": (text_value, "data files, separated as in PATH"),
    "CGLSUITE_DATA_OPTIONS": (text_value, "options of data files, a JSON object"),
    "CGLSUITE_PLUGIN_FILES": (text_value, "plugin files, separated as in PATH"),
    "CGLSUITE_DATA": (_paths, "folders of raw data, separated as in PATH"),
    "CGLSUITE_DEVICE": (read_device, "the device to train on"),
    "CGLSUITE_OFFLINE": (truth_value, "whether downloads are forbidden"),
    "CGLSUITE_PLUGINS_ALLOW": (text_value, "the only distributions whose plugins are loaded, separated by commas"),
    "CGLSUITE_PLUGINS_BLOCK": (text_value, "distributions whose plugins are not loaded, separated by commas"),
    "CGLSUITE_PLUGINS_TIMEOUT": (lambda text: real_number(text, maximum=1e9, above=0), "seconds that a step of a plugin may take"),
    "CGLSUITE_READ": (_paths, "additional stores to read results from, separated as in PATH"),
    "CGLSUITE_SET": (text_value, "overrides, as key=value;key=value"),
    "CGLSUITE_STORE": (_path, "the folder of records"),
    "CGLSUITE_STRICT": (truth_value, "whether a faulty plugin ends the command"),
    "CGLSUITE_WORKERS": (lambda text: whole_number(text, 1, MAX_PROCESSES), "the number of worker processes"),
}
"""Maps the name of each variable to its parser (whose ValueError says what was expected) and its description."""


def variable(name: str, environ: Mapping[str, str] | None = None) -> Any:
    """Return the value of one of :data:`VARIABLES`, or None if it is unset or blank.

    Raises:
        UsageError: the value is invalid. The message states what was expected.
    """
    text = (os.environ if environ is None else environ).get(name, "")
    if not text.strip():
        return None
    read, doc = VARIABLES[name]
    try:
        return read(text.strip())
    except ValueError as error:
        raise UsageError(f"{name}={quoted(text)}: {error} ({doc}); change it or unset it") from None


def check_environment(environ: Mapping[str, str] | None = None) -> None:
    """Validate every variable, so that every command reports an invalid one, and warn about misspelt names.

    Raises:
        UsageError: see :func:`variable`.
    """
    for name in VARIABLES:
        variable(name, environ)
    for name in os.environ if environ is None else environ:
        if name.startswith("CGLSUITE_") and name not in VARIABLES:
            close = difflib.get_close_matches(name, VARIABLES, n=1, cutoff=0.85)
            if close:
                _log.warning("the environment variable %s has no effect; did you mean %s?", name, close[0])
