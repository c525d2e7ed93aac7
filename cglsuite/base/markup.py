"""HTML fragments. Everything except other fragments is escaped, since names and reasons may come from plugins.

:func:`card` and :func:`grid` display objects in a notebook, without a stylesheet or script. Colours come from the notebook's theme.
"""

from __future__ import annotations

import html
import pkgutil
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_ROWS = 60
"""The maximum number of rows in a grid. A line below it counts the hidden rows."""
_VOID = {"br", "hr", "col", "wbr"}
_LEFT = "text-align:left"


@dataclass(frozen=True)
class Fragment:
    """A piece of HTML that Jupyter and the suite's pages display. ``str`` returns its source."""

    source: str

    def __str__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return self.source

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the fragment's text, for consoles and front ends without HTML."""
        printer.text(self.text)

    @property
    def text(self) -> str:
        """The fragment's plain text."""
        return _text_of(self.source)


Content = Fragment | str | int | float | None


def _text_of(source: str) -> str:
    """Return the plain text of HTML with one line per block and separated cells."""
    lines = re.sub(r"</(?:p|li|h[1-6]|tr|caption|figcaption|summary|div|ul|section)>|<br>", "\n", source)
    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"</t[hd]>", "  ", lines)))
    return "\n".join(line for line in (row.rstrip() for row in text.split("\n")) if line.strip())


def element(tag: str, *children: Content, **attributes: str | int | float | None) -> Fragment:
    """Build ``<tag ...>children</tag>``. Text and attribute values are escaped. Children and attributes that are ``None`` are omitted.

    Attribute names: ``class_`` for class, ``data_value`` for data-value.
    """
    written = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    opening = "".join(f' {name}="{_escape(value)}"' for name, value in written.items())
    if tag in _VOID:
        return Fragment(f"<{tag}{opening}>")
    return Fragment(f"<{tag}{opening}>{join(children)}</{tag}>")


def code_in_lines(name: str) -> Fragment:
    """Format a name as ``<code>`` that may wrap after underscores, so that a table column is no wider than one word."""
    words = name.split("_")
    return element("code", *(part for word in words[:-1] for part in (f"{word}_", element("wbr"))), words[-1])


def _escape(value: object) -> str:
    return html.escape(plain_text(str(value)))


def join(children: Iterable[Content]) -> Fragment:
    """Concatenate the children, with text escaped."""
    return Fragment("".join(c.source if isinstance(c, Fragment) else _escape(c) for c in children if c is not None))


def tidy(value: Any) -> str:
    """Convert any value to one line of text without control characters, since a plugin's summary may contain escape sequences."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(tidy(v) for v in value) or "none"
    return " ".join("".join(c if c.isspace() or unicodedata.category(c)[0] != "C" else "?" for c in str(value)).split())


def card(title: str, facts: Iterable[tuple[str, Any]] = (), *more: Content, summary: str = "") -> str:
    """Build the HTML for displaying an object: a title, a summary sentence, one line per fact, and optional content below."""
    rows = [element("tr", element("th", tidy(name), style=_LEFT), element("td", _cell(value), style=_LEFT)) for name, value in facts]
    head = element("p", element("strong", tidy(title)), element("br") if summary else None, tidy(summary) if summary else None)
    return element("div", head, element("table", element("tbody", *rows)) if rows else None, *more).source


def grid(header: Sequence[str], rows: Iterable[Sequence[Any]], max_rows: int = MAX_ROWS) -> Fragment:
    """Build a small table with at most ``max_rows`` rows. A last line states how many rows are hidden."""
    remaining = iter(rows)
    shown = [element("tr", *(element("td", _cell(cell), style=_LEFT) for cell in row)) for row in islice(remaining, max_rows)]
    left = sum(1 for _ in remaining)
    head = element("thead", element("tr", *(element("th", title, style=_LEFT) for title in header)))
    return join(
        [element("table", head, element("tbody", *shown)), element("p", f"and {left} more, {len(shown) + left} in all") if left else None]
    )


def fold(title: str, *content: Content) -> Fragment:
    """Build collapsible content that opens when its title is clicked."""
    return element("details", element("summary", title), *content)


def displayed(display_function: str, shown_object: object) -> str:
    """Return an object's notebook display, built by the named function of :mod:`cglsuite.study.display`, such as ``"store_card"``.

    The function is looked up by name on first use, since the objects belong to lower layers, which must not import display code.
    """
    return str(pkgutil.resolve_name(f"cglsuite.study.display:{display_function}")(shown_object))


def _cell(value: Any) -> Content:
    return value if isinstance(value, Fragment) else tidy(value)


# Making third-party text safe for people and spreadsheets: it must not control a terminal, hide or reorder text, or start a formula.
# Names, summaries and reasons come from plugins, records and files. They pass through here on output: in log lines and printed lines
# (:mod:`cglsuite.cli.output`), in HTML (:mod:`cglsuite.base.markup`) and in tables.

_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[@-_]")
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
# Control characters except LF, tab and CR; characters that reorder or hide text; surrogates; line and paragraph separators.
_STEERING = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_STEERING}]")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def plain_text(text: str, *, colours: bool = False) -> str:
    """Remove control sequences, control characters, and characters that reorder or hide text. Line breaks are preserved.

    Args:
        colours: keep sequences that only set colours and weight, which the suite's own headings use.
    """
    if text.isprintable():
        return text
    if colours:
        return "".join(part if n % 2 else plain_text(part) for n, part in enumerate(_COLOURS.split(text)))
    return _CONTROL.sub("", _LONE_RETURN.sub(" ", _ANSI.sub("", text)))


def csv_text(value: Any) -> str:
    """Make text safe for a spreadsheet cell by adding an apostrophe before anything that looks like a formula."""
    text = plain_text(str(value))
    return f"'{text}" if _FORMULA.match(text) else text


def escaped_json(text: str) -> str:
    """Escape every character in JSON text that :func:`plain_text` would remove, so that the value stays the same."""
    return _CONTROL.sub(lambda match: "".join(f"\\u{unit:04x}" for unit in _utf16(match[0])), text)


def _utf16(character: str) -> tuple[int, ...]:
    number = ord(character)
    return (number,) if number < 0x10000 else (0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF))


# Counts and sizes in sentences.

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def several(n: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun, such as ``1 cell`` or ``2 cells``. Pass ``plural`` for an irregular plural.

    Example:
        >>> several(1, "seed"), several(0, "seed"), several(3, "child process", "child processes")
        ('1 seed', '0 seeds', '3 child processes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def file_size(n_bytes: float) -> str:
    """Format a number of bytes in the largest decimal unit that fits, such as ``1.4 MB``.

    Example:
        >>> file_size(1_400_000), file_size(999)
        ('1.4 MB', '999 B')
    """
    return next((f"{n_bytes / unit:,.1f} {name}" for unit, name in _UNITS if n_bytes >= unit), f"{n_bytes:.0f} B")
