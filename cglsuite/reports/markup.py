"""HTML fragments that escape whatever is not a fragment itself: names and reasons from plugins are only ever text."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Fragment", "element", "join"]

_VOID = {"br", "hr", "col"}


@dataclass(frozen=True)
class Fragment:
    """A piece of HTML. Jupyter and our pages show it; ``str`` is its source."""

    source: str

    def __str__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return self.source


Content = Fragment | str | int | float | None


def element(tag: str, *children: Content, **attributes: str | int | float | None) -> Fragment:
    """``<tag ...>children</tag>``; text and attribute values are escaped, ``None`` is left out.

    Attribute names: ``class_`` for class, ``data_value`` for data-value.
    """
    given = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    opening = "".join(f' {name}="{html.escape(str(value))}"' for name, value in given.items())
    if tag in _VOID:
        return Fragment(f"<{tag}{opening}>")
    return Fragment(f"<{tag}{opening}>{join(children)}</{tag}>")


def join(children: Iterable[Content]) -> Fragment:
    """The children one after the other, text escaped."""
    return Fragment("".join(c.source if isinstance(c, Fragment) else html.escape(str(c)) for c in children if c is not None))
