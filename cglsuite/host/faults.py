"""Describe a plugin's fault in one line, and its fix in another."""

from __future__ import annotations

import dataclasses
import inspect
import re
import reprlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cglsuite.base.errors import UsageError, nearest
from cglsuite.host.discovery import BLOCK, Candidate
from cglsuite.specs import KINDS, Hyperparameter, PluginSpec

__all__ = ["PluginFault", "advice", "one_line", "shown", "traceback_of"]

_HOST = str(Path(__file__).resolve().parent)
_SPECS = str(Path(__file__).resolve().parents[1] / "specs")
_LONGEST = 400
_UNKNOWN_KEYWORD = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")


class PluginFault(Exception):
    """A plugin broke its contract; never leaves the host. ``fix=None`` means the general advice.

    ``function`` is the plugin's function that is at fault, if one is.
    """

    def __init__(self, error: str, fix: str | None = None, function: Any = None) -> None:
        super().__init__(error)
        self.error, self.fix, self.function = error, fix, function

    @property
    def text(self) -> str:
        """The error with the file and line of the function, unless a place is named already."""
        code = getattr(inspect.unwrap(self.function), "__code__", None) if callable(self.function) else None
        if code is None or ", line " in self.error:
            return self.error
        return f"{self.error} ({Path(code.co_filename).name}, line {code.co_firstlineno})"


def one_line(error: BaseException) -> str:
    """``Type: message (file.py, line 3)`` of any exception, even if its text cannot be shown."""
    if isinstance(error, SyntaxError) and error.filename:
        return _flat(f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}, line {error.lineno})")
    text, where = _text(str, error, "(its message cannot be shown)"), _place(error)
    return _flat(f"{type(error).__name__}: {text}" if text else type(error).__name__) + (f" ({where})" if where else "")


def shown(value: Any) -> str:
    """``type repr`` of an unexpected value, shortened; classes are named as classes."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, PluginSpec):
        return f"{type(value).__name__} {reprlib.repr(value.name)}"
    text = _text(reprlib.repr, value, "(which cannot be shown)")
    return _flat(text if text.startswith(type(value).__name__) else f"{type(value).__name__} {text}")


def _text(convert: Callable[[Any], str], value: Any, otherwise: str) -> str:
    try:
        return convert(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - foreign __str__ and __repr__; their failure is reported
        return otherwise


def traceback_of(error: BaseException) -> str:
    """The traceback as text, so that no frame is kept alive."""
    return "".join(traceback.format_exception(error))


def advice(error: BaseException, candidate: Candidate) -> str:
    """How a user can fix an exception raised by the plugin's code."""
    name, block = candidate.distribution, f"or block it: {BLOCK}={candidate.distribution}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        if error.name.partition(".")[0] == candidate.module.partition(".")[0]:
            return f"reinstall {name}: its entry point {candidate.entry_point.name!r} names a missing module; {block}"
        return f"install what provides the module {error.name!r} (a dependency that {name} should declare), {block}"
    if meant := _keyword(error):
        return meant
    if isinstance(error, UsageError):  # a spec refused its values, and said what it expects
        place = _place(error) or candidate.module
        return f"as its author, write what the message asks for ({place}); else try another version of {name}, {block}"
    if isinstance(error, SystemExit):
        return f"its authors must not end the process on import or in hooks; try another version of {name}, {block}"
    return f"try another version of {name} and tell its authors, {block}"


def _keyword(error: BaseException) -> str:
    """What to write in place of a keyword that a spec does not take; empty for any other error."""
    found = _UNKNOWN_KEYWORD.match(_text(str, error, "")) if isinstance(error, TypeError) else None
    spec = next((kind for kind in (*KINDS.values(), Hyperparameter) if found and kind.__name__ == found[1]), None)
    if found is None or spec is None:
        return ""
    takes = [field.name for field in dataclasses.fields(spec) if field.init]
    close = nearest(found[2], takes, 1)
    known = f"did you mean {close[0]}=?" if close else f"it takes {', '.join(takes)}"
    return f"{spec.__name__} has no {found[2]}=: {known} A keyword of a newer interface needs a newer cglsuite"


def _place(error: BaseException) -> str:
    """``file.py, line 3`` of the innermost frame outside the suite and the import machinery, else of the suite outside the host, if any."""
    frames = [
        frame
        for frame in reversed(traceback.extract_tb(error.__traceback__))
        if not frame.filename.startswith(("<", _HOST)) and "importlib" not in Path(frame.filename).parts
    ]
    frame = next((frame for frame in frames if not frame.filename.startswith(_SPECS)), frames[0] if frames else None)
    return "" if frame is None else f"{Path(frame.filename).name}, line {frame.lineno}"


def _flat(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
