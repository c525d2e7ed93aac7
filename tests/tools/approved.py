"""Pages of tests as text that is committed: a change of a word, a number, a row, a class or a line of a figure shows in a diff.

``report_lab.page_with`` hands every page to :func:`note`. The fixture ``approved_pages`` of ``tests/reports`` compares the pages of a test
with those under ``tests/reports/approved``. If a change is meant, write them again and read the diff before you commit it::

    APPROVE_PAGES=1 python -m pytest tests/reports

A figure is the words in it and a digest of its SVG. Both hold for one version of Matplotlib, which the file names: under another version
they are left out of the comparison, since it may place and order the parts of a figure differently. Exact numbers are compared to six
digits.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import os
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib
from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, Tag

__all__ = ["Pages", "description", "note"]

FOLDER = Path(__file__).parents[1] / "reports" / "approved"
_QUIET = {"style", "script", "head"}
_FIGURE = re.compile(r"svg [0-9a-f]{12}( \[.*\])?|^source \{media=\(prefers-color-scheme: dark\).*\n", re.MULTILINE)
"""What a version of Matplotlib draws; a dark version of its own is there only where it differs in more than colours."""
_EXACT = re.compile(r"data-(?:value|low|high)=(-?\d[\d.]*(?:e[+-]?\d+)?)(?=[ }])")
"""The number behind a cell's text."""
_CLOSE = 1e-6
"""By this share of itself a number may differ: an optimiser, as of variance components, ends elsewhere on another processor."""
_pages: list[str] | None = None


def note(page: str) -> None:
    """Keep the description of a page for the test that runs, if its pages are compared."""
    if _pages is not None:
        _pages.append(description(page))


def description(page: str) -> str:
    """One line per element that has words or attributes of its own: tag and classes, attributes, words."""
    body = BeautifulSoup(page.replace("<wbr>", ""), "html.parser").body
    assert body is not None
    return "\n".join(line for element in body.find_all(True) if (line := _line(element)))


class Pages:
    """The pages of one test beside the approved ones; ``places`` are texts of a run (paths) and what stands for them."""

    def __init__(self, test: str, places: dict[str, str]) -> None:
        module, _, name = test.partition("::")
        self.path = FOLDER / Path(module).stem / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.txt"
        self.places = places

    def __enter__(self) -> Pages:
        global _pages
        _pages = []
        return self

    def __exit__(self, *_: object) -> None:
        global _pages
        self.shown, _pages = _pages or [], None

    def text(self) -> str:
        """What the test has shown, as its file has it; empty if nothing."""
        if not self.shown:
            return ""
        pages = "\n\n".join(self.shown)
        for place, name in self.places.items():
            pages = pages.replace(place, name)
        return f"matplotlib {matplotlib.__version__}\n\n{pages}\n"

    def check(self) -> None:
        """Compare, or with ``APPROVE_PAGES`` write.

        Raises:
            AssertionError: the pages differ from the approved ones.
        """
        text = self.text()
        if os.environ.get("APPROVE_PAGES"):
            self._write(text)
            return
        approved = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        if text.partition("\n")[0] != approved.partition("\n")[0] and approved and text:
            text, approved = (_FIGURE.sub("", one).partition("\n")[2] for one in (text, approved))
        lines = approved.splitlines()
        assert _settled(text.splitlines(), lines) == lines, (
            f"the pages of this test differ from {self.path.relative_to(FOLDER.parents[2])}; if that is meant: APPROVE_PAGES=1 pytest"
        )

    def _write(self, text: str) -> None:
        if text:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, encoding="utf-8")
        else:
            self.path.unlink(missing_ok=True)


def _settled(lines: list[str], approved: list[str]) -> list[str]:
    """The lines, with the approved one in place of one that differs in its exact numbers alone, by no more than :data:`_CLOSE`."""
    pairs = zip_longest(lines, approved[: len(lines)], fillvalue="")
    return [there if _EXACT.sub("", here) == _EXACT.sub("", there) and _close(here, there) else here for here, there in pairs]


def _close(here: str, there: str) -> bool:
    pairs = zip(_EXACT.findall(here), _EXACT.findall(there), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=_CLOSE, abs_tol=1e-12) for a, b in pairs)


def _line(element: Tag) -> str:
    if element.name in _QUIET or element.find_parent(["svg", *_QUIET]):
        return ""
    if element.name == "svg":
        return _figure(str(element))
    said = "".join(str(part) for part in element.children if isinstance(part, NavigableString) and not isinstance(part, Comment))
    words = " ".join(said.split())
    attributes = " ".join(_attribute(name, value) for name, value in sorted(element.attrs.items()) if name != "class")
    if not words and not attributes:
        return ""
    name = ".".join([element.name, *filter(None, element.get_attribute_list("class"))])
    return " ".join(filter(None, [name, f"{{{attributes}}}" if attributes else "", words]))


def _attribute(name: str, value: Any) -> str:
    text = " ".join(value) if isinstance(value, list) else str(value)
    if text.startswith("data:image/svg+xml;base64,"):
        return f"{name}={_figure(base64.b64decode(text.partition(',')[2]).decode())}"
    if name.startswith("data-"):
        text = _rounded(text)
    return f"{name}={text}"


def _figure(svg: str) -> str:
    words = [html.unescape(re.sub(r"<[^>]*>", "", one)).strip() for one in re.findall(r"<text\b.*?</text>", svg, flags=re.DOTALL)]
    return f"svg {hashlib.sha256(svg.encode()).hexdigest()[:12]} [{' | '.join(words)}]"


def _rounded(text: str) -> str:
    """A number to nine digits; other texts as they are."""
    try:
        return f"{float(text):.9g}"
    except ValueError:
        return text
