"""HTML fragments that escape whatever is not a fragment itself: names and reasons from plugins are only ever text.

:func:`card` and :func:`grid` are what objects show of themselves in a notebook: no stylesheet, no script, colours left to the theme.
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

from cglsuite.base.plaintext import plain_text

__all__ = ["MOST_ROWS", "Content", "Fragment", "card", "displayed", "element", "fold", "grid", "join", "tidy"]

MOST_ROWS = 60
"""A grid shows no more rows than this, and says how many there are."""
_VOID = {"br", "hr", "col"}
_LEFT = "text-align:left"


@dataclass(frozen=True)
class Fragment:
    """A piece of HTML. Jupyter and our pages show it; ``str`` is its source."""

    source: str

    def __str__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return self.source

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Its text, for consoles and front ends that show no HTML."""
        printer.text(_text_of(self.source))


Content = Fragment | str | int | float | None


def _text_of(source: str) -> str:
    """The text of HTML, a line per block, cells apart."""
    lines = re.sub(r"</(?:p|li|h[1-6]|tr|caption|figcaption|summary|div|ul|section)>|<br>", "\n", source)
    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"</t[hd]>", "  ", lines)))
    return "\n".join(line for line in (one.rstrip() for one in text.split("\n")) if line.strip())


def element(tag: str, *children: Content, **attributes: str | int | float | None) -> Fragment:
    """``<tag ...>children</tag>``; text and attribute values are escaped, ``None`` is left out.

    Attribute names: ``class_`` for class, ``data_value`` for data-value.
    """
    given = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items() if v is not None}
    opening = "".join(f' {name}="{_escaped(value)}"' for name, value in given.items())
    if tag in _VOID:
        return Fragment(f"<{tag}{opening}>")
    return Fragment(f"<{tag}{opening}>{join(children)}</{tag}>")


def _escaped(value: object) -> str:
    return html.escape(plain_text(str(value)))


def join(children: Iterable[Content]) -> Fragment:
    """The children one after the other, text escaped."""
    return Fragment("".join(c.source if isinstance(c, Fragment) else _escaped(c) for c in children if c is not None))


def tidy(value: Any) -> str:
    """One line of text for any value: no line breaks, no control characters (escape sequences of strangers' summaries included)."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(tidy(v) for v in value) or "none"
    return " ".join("".join(c if c.isspace() or unicodedata.category(c)[0] != "C" else "?" for c in str(value)).split())


def card(title: str, facts: Iterable[tuple[str, Any]] = (), *more: Content, summary: str = "") -> str:
    """The source of what an object shows of itself: a title, a sentence, a line per fact, and whatever comes below."""
    rows = [element("tr", element("th", tidy(name), style=_LEFT), element("td", _cell(value), style=_LEFT)) for name, value in facts]
    head = element("p", element("strong", tidy(title)), element("br") if summary else None, tidy(summary) if summary else None)
    return element("div", head, element("table", element("tbody", *rows)) if rows else None, *more).source


def grid(header: Sequence[str], rows: Iterable[Sequence[Any]], most: int = MOST_ROWS) -> Fragment:
    """A small table with at most ``most`` rows, and a line with the number of hidden ones."""
    remaining = iter(rows)
    shown = [element("tr", *(element("td", _cell(cell), style=_LEFT) for cell in row)) for row in islice(remaining, most)]
    left = sum(1 for _ in remaining)
    head = element("thead", element("tr", *(element("th", title, style=_LEFT) for title in header)))
    return join(
        [element("table", head, element("tbody", *shown)), element("p", f"and {left} more, {len(shown) + left} in all") if left else None]
    )


def fold(title: str, *content: Content) -> Fragment:
    """What is shown when its title is clicked."""
    return element("details", element("summary", title), *content)


def displayed(how: str, thing: object) -> str:
    """What a notebook shows of ``thing``: ``how`` names the function below :mod:`cglsuite.study.display`, as ``"records:store_card"``.

    It is found by name when it is first needed: the objects lie in rooms below their display, and what computes imports no texts.
    """
    return str(pkgutil.resolve_name(f"cglsuite.study.display.{how}")(thing))


def _cell(value: Any) -> Content:
    return value if isinstance(value, Fragment) else tidy(value)
