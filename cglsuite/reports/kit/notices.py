"""Notice boxes, the box of key results, tiles with a number, and badges of verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cglsuite.base.markup import Content, Fragment, element
from cglsuite.campaigns.reference.values import ARTEFACT

__all__ = ["Notes", "key_box", "notice", "tile", "verdict_badge"]


_COUNTED = re.compile(r"\b(cell|method|order|scenario|seed|stream|value)s\b")


def tile(value: Content, label: str) -> Fragment:
    """A number and its label, which counts in the plural: ``1, "methods"`` reads "1 method"."""
    return element("li", element("b", value), " ", element("span", _COUNTED.sub(r"\1", label) if value == 1 else label))


def key_box(lines: Iterable[Fragment]) -> Fragment:
    """The box of key results at the top of a page, from list items."""
    head = element("h2", "Key results", id="key-results")
    return element("section", head, element("ul", *lines), class_="key-results", aria_labelledby="key-results")


def notice(first: str, *rest: Content) -> Fragment:
    """A box with a sentence and an optional list."""
    listed = element("ul", *(element("li", text) for text in rest)) if rest else None
    return element("div", element("p", first), listed, class_="notice", role="note")


_VERDICTS = {"equivalent": "good", "different": "bad", ARTEFACT: "note"}


def verdict_badge(verdict: str, shown: str = "", title: str | None = None) -> Fragment:
    """How ours agrees with a published value.

    Args:
        shown: other words for it.
    """
    return element("span", shown or verdict, class_=f"badge {_VERDICTS.get(verdict, 'plain')}", title=title)


class Notes:
    """Footnotes of one table, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, content: Content, text: str) -> list[Content]:
        """The content with a reference to a note, if there is a note."""
        if not text:
            return [content]
        if text not in self.texts:
            self.texts.append(text)
        return [content, element("sup", f" {self.texts.index(text) + 1}")]

    def listed(self) -> Fragment | None:
        """All notes."""
        return element("ol", *(element("li", f"{text.rstrip('.')}.") for text in self.texts), class_="footnotes") if self.texts else None
