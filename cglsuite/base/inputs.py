"""Parsing of user input. Numbers, words and paths follow the same rules wherever they are entered.

Numbers are ASCII, finite and within bounds. The default bounds depend on the type: whole numbers up to 2^31 - 1 and real numbers up
to 1e30 in magnitude, so that tensors can represent every accepted value. Every parser raises a ValueError that states what was expected.
Callers add the value, where it was entered and its purpose.
"""

from __future__ import annotations

import codecs
import errno
import math
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cglsuite.base.entry_points import entry_points

__all__ = ["quoted", "real_number", "seed_number", "text_value", "truth_value", "whole_number"]

MAX_WHOLE = 2**31 - 1
MAX_REAL = 1e30
MAX_SEED = 2**63 - 1
"""The largest seed, which is the largest integer that tables and tensors can hold."""
MAX_PROCESSES = 1024
"""The maximum number of threads per cell and of worker processes."""
_MAX_TEXT = 100_000
_MAX_NAME = 255
_TOO_LONG = f"expected a shorter path: file systems take names of at most {_MAX_NAME} bytes"
_EXACT = 2**53
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TRUTH = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}
_ABSENT = {errno.ENOENT, errno.EACCES}
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def quoted(value: Any, limit: int = 60) -> str:
    """Format ``value`` for a message: its ``repr``, with non-printable characters escaped and long text shortened."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a number of more than {limit} digits"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def whole_number(value: Any, minimum: float | None = None, maximum: float | None = None) -> int:
    """Parse ``value`` (an int, a float without fraction, or ASCII text such as ``12`` or ``1e3``) as an int within the bounds."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("expected a whole number")
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.fullmatch(text):
            number = int(text)
        elif _REAL.fullmatch(text):
            number = _without_fraction(float(text))
        elif re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(_range("a whole number", minimum, maximum, MAX_WHOLE))
        else:
            raise ValueError("expected a whole number")
    else:
        number = value if isinstance(value, int) else _without_fraction(value)
    _check(number, "a whole number", minimum, maximum, MAX_WHOLE)
    return number


def real_number(value: Any, minimum: float | None = None, maximum: float | None = None, above: float | None = None) -> float:
    """Parse ``value`` (an int, a float, or ASCII text such as ``0.1`` or ``1e-3``) as a finite float within the bounds."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("expected a number")
    try:
        number = float(value) if not isinstance(value, str) or _REAL.fullmatch(value.strip()) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    if above is not None and not number > above:
        raise ValueError("expected a positive number" if above == 0 else f"expected more than {above:g}")
    _check(number, "a number", minimum, maximum, MAX_REAL)
    return number


def seed_number(value: Any) -> int:
    """Parse ``value`` as a seed from 0 to 2^63 - 1."""
    return whole_number(value, 0, MAX_SEED)


def truth_value(value: Any) -> bool:
    """Parse ``value`` (a bool, or text such as ``true``, ``no``, ``1``) as a bool."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    raise ValueError("expected true or false")


def text_value(value: Any) -> str:
    """Parse ``value`` as a single line of text: not empty and without control characters."""
    if not isinstance(value, str):
        raise ValueError("expected text")
    if not value.strip():
        raise ValueError("expected text that is not empty")
    if not value.isprintable():
        raise ValueError("expected text without control characters")
    if len(value) > _MAX_TEXT:
        raise ValueError(f"expected at most {_MAX_TEXT:,} characters")
    return value


def check_path(value: str | Path) -> Path:
    """Check that ``value`` is a valid path on this system. The path need not exist."""
    text = str(value)
    if not text.strip():
        raise ValueError("expected a path, not empty text")
    if "\0" in text:
        raise ValueError("expected a path without NUL characters")
    path = Path(value)
    if any(len(os.fsencode(part)) > _MAX_NAME for part in path.parts):
        raise ValueError(_TOO_LONG)
    try:
        path.expanduser().stat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(_TOO_LONG) from error
        if error.errno not in _ABSENT:
            raise ValueError(f"expected a path that can be used: {error.strerror}") from error
    except (RuntimeError, ValueError) as error:  # the user has no home folder; a lone surrogate
        raise ValueError(f"expected a path that can be used: {error}") from error
    return path


def read_regular(path: Path, max_bytes: int | None = None) -> bytes:
    """Read a regular file of at most ``max_bytes`` bytes. FIFOs and devices are refused without being read.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large (EINVAL; the message states the file type or size).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
            raise OSError(errno.EINVAL, f"it is {what}, not a regular file", str(path))
        if max_bytes is not None and status.st_size > max_bytes:
            raise OSError(errno.EINVAL, f"it has {status.st_size:,} bytes; expected at most {max_bytes:,}", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def check_regular(path: Path) -> None:
    """Raise an OSError (EINVAL) that names the file type if the path exists and is neither a regular file nor a folder."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'no file')}, not a regular file", str(path))


def read_text(content: bytes) -> str:
    """Read a text file in UTF-8, with or without a byte-order mark, or in UTF-16 or UTF-32 with one, as Windows editors write them.

    Raises:
        ValueError: it has a different encoding or contains NUL characters.
    """
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    encoding = next((name for mark, name in marks.items() if content.startswith(mark)), "utf-8-sig")
    nul = ValueError("it holds NUL characters, as UTF-16 without a byte-order mark does: save it as UTF-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-8-sig" and b"\0" in content:
            raise nul from error
        line = content[: error.start].count(b"\n") + 1
        wrong = f"line {line} has the byte 0x{content[error.start]:02x}"
        raise ValueError(f"it is not in {'UTF-8' if encoding == 'utf-8-sig' else encoding.upper()} ({wrong}): save it as UTF-8") from error
    if "\0" in text:
        raise nul
    return text


def _without_fraction(number: float) -> int:
    if not math.isfinite(number):
        raise ValueError("expected a finite whole number")
    if number != int(number) or abs(number) > _EXACT:
        raise ValueError("expected a whole number")
    return int(number)


def _check(number: float, expected_kind: str, minimum: float | None, maximum: float | None, limit: float) -> None:
    low, high = -limit if minimum is None else minimum, limit if maximum is None else maximum
    if number < low:
        raise ValueError(f"expected at least {_plain(low)}")
    if number > high:
        raise ValueError(f"expected at most {_plain(high)}")


def _range(expected_kind: str, minimum: float | None, maximum: float | None, limit: float) -> str:
    low, high = -limit if minimum is None else minimum, limit if maximum is None else maximum
    return f"expected {expected_kind} from {_plain(low)} to {_plain(high)}"


def _plain(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


# --- devices ------------------------------------------------------------------------------------------------------------------------

DEVICES = "cglsuite.devices"
"""The entry-point group for accelerators other than CPU and CUDA; see :class:`cglsuite.cells.device.Accelerator`."""
_BUILT_IN = ("auto", "cpu", "cuda")
_NUMBERED = re.compile(r"cuda:\d+", re.ASCII)


def device_names() -> tuple[str, ...]:
    """Return the names of all devices except ``cuda:N``: first the built-in ones, then those provided by installed distributions."""
    return (*_BUILT_IN, *sorted({point.name for point in entry_points(DEVICES)} - set(_BUILT_IN)))


def read_device(text: str) -> str:
    """Return ``text`` after checking that it names a device.

    Raises:
        ValueError: it does not. The message states what was expected.
    """
    # Entry points are searched for unknown names only, since that reads the metadata of every distribution.
    if text in _BUILT_IN or _NUMBERED.fullmatch(text) or text in (words := device_names()):
        return text
    raise ValueError(f"expected one of {', '.join(words)}, or cuda:N for the N-th GPU, from 0")


def kind_of(device: str) -> str:
    """Return the kind of a device, such as ``cuda`` for ``cuda:1``."""
    return "cuda" if _NUMBERED.fullmatch(device) else device


_EXPECTED = {
    "missing": "missing",
    "extra_forbidden": "unknown key",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected text",
    "list_type": "expected a list",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "literal_error": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "string_too_long": "expected at most {max_length} characters",
    "string_unicode": "expected Unicode text",
    "too_long": "expected at most {max_length} item(s)",
    "too_short": "expected at least {min_length} item(s)",
    "string_too_short": "expected text that is not empty",
    "string_pattern_mismatch": "expected text of the form {pattern}",
}
_COMPLETE = {"missing", "extra_forbidden", "value_error"}
"""Error types whose text is complete without the offending value."""


def key_path(location: Sequence[str | int]) -> str:
    """Format a location, so that ``("seeds", "order", 0)`` becomes ``seeds.order[0]``."""
    parts = [f"[{part}]" if isinstance(part, int) else part if part.isprintable() else quoted(part) for part in location]
    return ".".join(parts).replace(".[", "[")


def problem_text(error: Mapping[str, Any]) -> str:
    """Describe one error from ``pydantic.ValidationError.errors()``, with the expected and the actual value.

    A ``ValueError`` from the suite's validators already contains both.
    """
    kind, context, value = error["type"], error.get("ctx", {}), error.get("input")
    text = str(context["error"]) if kind == "value_error" else _EXPECTED.get(kind, error["msg"]).format_map(context)
    return text if kind in _COMPLETE or isinstance(value, Mapping) else f"{text} (given: {quoted(value)})"
