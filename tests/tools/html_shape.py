"""Pieces of HTML taken apart: their tags, which must be balanced, and the text that people see."""

from __future__ import annotations

from html.parser import HTMLParser

__all__ = ["EVIL", "EVIL_SHOWN", "Shape"]

EVIL = "<img src=x onerror=alert(1)>\x1b[31m & 'co'"
EVIL_SHOWN = "<img src=x onerror=alert(1)>?[31m & 'co'"
"""The same as people should see it."""
_VOID = {"br", "wbr"}


class Shape(HTMLParser):
    """The tags of a piece of HTML, which must be balanced, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open += [] if tag in _VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"
