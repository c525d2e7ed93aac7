"""Foreign text made safe for people and spreadsheets: without characters that control a terminal, hide or reorder text, or start a formula.

Names, summaries and reasons come from plugins, records and files. They pass through here on output: in log lines and printed lines
(:mod:`cglsuite.cli.output`), in HTML (:mod:`cglsuite.base.markup`) and in tables.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["csv_text", "escaped_json", "plain_text"]

_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[@-_]")
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
# Control characters but line feed, tab and carriage return; signs that reorder or hide text; surrogates; line and paragraph separators.
_STEERING = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_STEERING}]")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def plain_text(text: str, *, colours: bool = False) -> str:
    """``text`` on the same lines, without control sequences, control characters and signs that reorder or hide it.

    Args:
        colours: keep sequences that only set colours and weight, which our own headings have.
    """
    if text.isprintable():
        return text
    if colours:
        return "".join(part if n % 2 else plain_text(part) for n, part in enumerate(_COLOURS.split(text)))
    return _CONTROL.sub("", _LONE_RETURN.sub(" ", _ANSI.sub("", text)))


def csv_text(value: Any) -> str:
    """A text as a cell that no spreadsheet takes for a formula: one that begins like a formula gets an apostrophe in front."""
    text = plain_text(str(value))
    return f"'{text}" if _FORMULA.match(text) else text


def escaped_json(text: str) -> str:
    """JSON text with every character that :func:`plain_text` would drop written as an escape, so that it says the same."""
    return _CONTROL.sub(lambda match: "".join(f"\\u{unit:04x}" for unit in _utf16(match[0])), text)


def _utf16(character: str) -> tuple[int, ...]:
    number = ord(character)
    return (number,) if number < 0x10000 else (0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF))
