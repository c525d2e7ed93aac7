"""Markdown made of values: escaped text, code, tables, links, so that no name or summary of a plugin can change a page's structure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["CATEGORIES", "LEVELS", "code", "link", "page_name", "prose", "table", "text", "value"]

LEVELS = {"NC": "nodes", "NR": "node regression", "LC": "links", "LP": "link prediction", "GC": "graphs", "GR": "graph regression"}
"""Problem level to what its items are."""
CATEGORIES = {
    "Reg": "regularisation",
    "Rep": "replay",
    "Reg+Rep": "regularisation and replay",
    "Iso": "parameter isolation",
    "dynamic": "dynamic graphs",
}
"""Category of a method, where its name is an abbreviation."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|])")


def text(given: Any) -> str:
    """Plain text as one line of Markdown that shows exactly that."""
    return _escaped(" ".join(str(given).split()))


def prose(given: str) -> str:
    """Text whose names in backquotes are code, as one line of Markdown."""
    return "".join(code(part) if i % 2 else _escaped(part) for i, part in enumerate(" ".join(given.split()).split("`")))


def _escaped(line: str) -> str:
    return _SPECIAL.sub(r"\\\1", line).replace("<", "&lt;").replace(">", "&gt;")


def code(given: Any) -> str:
    """A name or value in code; a dash where there is none."""
    line = " ".join(str(given).split()).replace("`", "'")
    return f"`{line}`" if line else "–"


def value(given: Any) -> str:
    """A setting's value as it is written on a command line, in code."""
    if given is None:
        return code("none")
    if isinstance(given, bool):
        return code(str(given).lower())
    if isinstance(given, tuple | list):
        pairs = bool(given) and all(isinstance(part, tuple | list) and len(part) == 2 for part in given)
        return code(", ".join(f"{p[0]}={p[1]}" if pairs else str(p) for p in given) or "()")
    return code(f"{given:g}" if isinstance(given, float) else given)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are Markdown already; empty where there are no rows."""
    body = ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *body]) + "\n"


def page_name(name: str) -> str:
    """A name of the catalogue as that of a file."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower())


def link(label: str, target: str, here: str) -> str:
    """A relative link from the page ``here`` to the page ``target`` (both below docs/), whose label is code."""
    return f"[{code(label)}]({posixpath.relpath(target, posixpath.dirname(here) or '.')})"
