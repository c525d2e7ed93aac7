"""Command output: data go to stdout as aligned text that fits the terminal or as JSON, and logs go to stderr."""

from __future__ import annotations

import itertools
import json
import logging
import os
import shutil
import sys
import textwrap
import time
import traceback
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click

from cglsuite.base.hashing import plain
from cglsuite.base.markup import escaped_json, plain_text, tidy

__all__ = [
    "configure_logging",
    "descriptions",
    "echo",
    "fits_terminal",
    "heading",
    "paragraph",
    "print_json",
    "properties",
    "release_logging",
    "table",
    "terminal_width",
    "tidy",
]

LOGGER = "cglsuite"
_UNLIMITED = 10_000
_LAST_COLUMN_MIN = 24
_MIDDLE_COLUMN_MAX = 18
_WIDE_CELL = 32
_READABLE = 120
_GAP = "  "


def terminal_width() -> int:
    """Return the width of the terminal, or ``COLUMNS`` if that is set. If stdout is a file or a pipe, the width is practically
    unlimited."""
    if os.environ.get("COLUMNS") or sys.stdout.isatty():
        return max(20, shutil.get_terminal_size().columns)
    return _UNLIMITED


def fits_terminal() -> bool:
    """Return whether stdout is a terminal rather than a file or a pipe."""
    return terminal_width() < _UNLIMITED


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None, indent: str = "") -> str:
    """Format rows as aligned columns that fit ``width`` (default: that of the terminal). Long cells are cut with ``…``.

    If the table is too wide, the last column is cut first, then long cells in the middle. Then columns before the last are dropped from
    right to left, so order them by importance. The first column is never cut, since users copy from it.
    """
    limit = terminal_width() if width is None else width
    lines = [[tidy(cell) for cell in line] for line in (header, *rows)]
    columns = list(range(len(header)))
    widths = [max(_shown_width(line[i]) for line in lines) for i in columns]
    full_last, widths[-1] = widths[-1], min(widths[-1], _LAST_COLUMN_MIN)
    if _table_width(columns, widths, indent) > limit:
        widths[1:-1] = [min(w, _MIDDLE_COLUMN_MAX) for w in widths[1:-1]]
    while len(columns) > 2 and _table_width(columns, widths, indent) > limit:
        del columns[-2]
    widths[-1] = max(1, min(full_last, widths[-1] + limit - _table_width(columns, widths, indent)))
    first, last = columns[0], columns[-1]
    shown = [[line[i] if i == first else _cut(line[i], widths[i]) for i in columns] for line in lines]
    text = [indent + _GAP.join(_pad(cell, widths[i] if i != last else 0) for i, cell in zip(columns, line, strict=True)) for line in shown]
    return "\n".join([click.style(text[0].rstrip(), bold=True), *(line.rstrip() for line in text[1:])])


def descriptions(header: Sequence[str], rows: Iterable[Sequence[Any]], *, indent: str = "  ") -> str:
    """Format rows as aligned columns. The last column contains prose, which is wrapped and moves below the others if there is no room."""
    limit = min(terminal_width(), _READABLE)
    lines = [[tidy(cell) for cell in line] for line in (header, *rows)]
    widths = [
        max((_shown_width(line[i]) for line in lines if _shown_width(line[i]) <= _WIDE_CELL), default=0) for i in range(len(header) - 1)
    ]
    column = len(indent) + sum(widths) + len(_GAP) * len(widths)
    rest = " " * column if limit - column >= _LAST_COLUMN_MIN else indent + " " * 4
    text: list[str] = []
    for *cells, prose in lines:
        first = indent + "".join(_pad(cell, w) + _GAP for cell, w in zip(cells, widths, strict=True))
        if _shown_width(first) == len(rest):
            text.append(paragraph(prose, first=first, rest=rest, width=limit))
            continue
        text.append(paragraph(first.strip(), first=indent, rest=indent + " " * (widths[0] + len(_GAP)), width=limit))
        if text[1:]:  # the title of a column without room is dropped
            text.append(paragraph(prose, first=rest, rest=rest, width=limit))
    return "\n".join([click.style(text[0].rstrip(), bold=True), *(line.rstrip() for line in text[1:])])


def properties(pairs: Iterable[tuple[str, Any]], *, indent: str = "  ", width: int | None = None) -> str:
    """Format pairs as ``name value`` lines, with aligned and wrapped values."""
    rows = [(tidy(name), tidy(value)) for name, value in pairs]
    column = max((len(name) for name, _ in rows), default=0)
    return "\n".join(
        paragraph(value, first=f"{indent}{name:<{column}}{_GAP}", rest=indent + " " * column + _GAP, width=width) for name, value in rows
    )


def paragraph(text: str, *, first: str = "", rest: str = "", width: int | None = None) -> str:
    """Wrap text at ``width`` (default: that of the terminal, at most 120) with a hanging indent."""
    limit = min(terminal_width(), _READABLE) if width is None else width
    return textwrap.fill(
        text, max(limit, len(rest) + 20), initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def echo(text: str) -> None:
    """Print text to stdout. Control sequences are removed, except the colours that commands use."""
    click.echo(plain_text(text, colours=True))


def heading(text: str) -> str:
    """Format the title of a section."""
    return click.style(text, bold=True)


def print_json(value: Any) -> None:
    """Print ``value`` to stdout as indented JSON. Non-finite numbers become null."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    click.echo(escaped_json(json.dumps(plain(value), indent=2, ensure_ascii=encoding != "utf8", allow_nan=False)))


def _table_width(columns: Sequence[int], widths: Sequence[int], indent: str) -> int:
    return len(indent) + sum(widths[i] for i in columns) + len(_GAP) * (len(columns) - 1)


def _shown_width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    return 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - _shown_width(text))


def _cut(text: str, width: int) -> str:
    if _shown_width(text) <= width:
        return text
    used = itertools.accumulate(map(_columns, text))
    length = sum(1 for _ in itertools.takewhile(lambda columns: columns < width, used))
    end = length if text[length] == " " else text.rfind(" ", length // 2, length)  # avoid breaking a word
    return text[: end if end > 0 else length].rstrip(" ,;:") + "…"


class _Plain(logging.Formatter):
    """Format log lines as ``warning: text``, like compilers and git. Tracebacks appear only at level INFO or finer (``-v``)."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
        if record.exc_info and record.exc_info[1] and logging.getLogger(LOGGER).isEnabledFor(logging.INFO):
            text += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return plain_text(text)


class _Json(logging.Formatter):
    """Format each log line as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line = {"time": stamp, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1]:
            line["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line)


class _Stderr(logging.Handler):
    """A logging handler that writes to the current ``sys.stderr``."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(self.format(record), err=True)
        except Exception:  # noqa: BLE001 - logging must not end the program
            self.handleError(record)


def configure_logging(verbosity: int = 0, as_json: bool = False) -> None:
    """Configure logging to stderr: warnings by default, progress and tracebacks as well with ``-v``, and everything with ``-vv``."""
    release_logging()
    logger = logging.getLogger(LOGGER)
    handler = _Stderr()
    handler.setFormatter(_Json() if as_json else _Plain())
    logger.addHandler(handler)
    logger.setLevel([logging.WARNING, logging.INFO][verbosity] if verbosity < 2 else logging.DEBUG)
    logger.propagate = False


def release_logging() -> None:
    """Undo :func:`configure_logging`, so that callers from Python keep their own logging."""
    logger = logging.getLogger(LOGGER)
    for handler in [h for h in logger.handlers if isinstance(h, _Stderr)]:
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
