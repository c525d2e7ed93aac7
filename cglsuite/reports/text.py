"""Small conversions of text for pages and status files."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["plain_text", "value_text"]

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain_text(text: str) -> str:
    """``text`` without terminal colours and other control characters."""
    return _CONTROL.sub("", _ANSI.sub("", text))


def value_text(value: Any) -> str:
    """Any setting in words."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(value_text(v) for v in value) if isinstance(value, (list, tuple)) else str(value)
