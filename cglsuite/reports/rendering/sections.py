"""A page's reading order: results first, and at the end how they were made.

Code, parameters and log lines move to the end. Sections with nothing to show are left out and listed there with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["Arranged", "LeftOut", "Log", "Source", "arrange"]

_HEADING = re.compile(r"\A\s*(#{1,6})\s+(.+?)\s*#*\s*$", re.MULTILINE)
_EMPTY = re.compile(r'\A\s*<p class="quiet empty">(.*?)</p>\s*\Z', re.DOTALL)
_PARAMETERS = {"parameters": "default parameters", "injected-parameters": "parameters of this page"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """The code of one cell. ``title`` is that of its section, or says that it holds parameters."""

    title: str
    cell: NotebookNode


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a cell wrote to the standard error stream; ``number`` counts from 1."""

    number: int
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A section without content; ``reason`` is HTML, as its cells gave it, possibly empty."""

    title: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Arranged:
    """A notebook in reading order.

    Args:
        body: text, outputs and :class:`Log` entries to refer to, in the notebook's order. sources, logs, left_out: for the end of the page.
    """

    body: tuple[NotebookNode | Log, ...]
    sources: tuple[Source, ...]
    logs: tuple[Log, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(kw_only=True)
class _Section:
    level: int
    title: str
    cells: list[NotebookNode]


def arrange(cells: Iterable[NotebookNode]) -> Arranged:
    """Sort the cells of an executed notebook into what a reader came for and how it was made.

    A section goes from a Markdown cell that begins with a heading to the next one. It is left out if its code cells showed nothing but
    empty-result notes and no subsection shows anything. Errors and printed text count as content.
    """
    sections = list(_sections(cells))
    kept = [_shows(sections, at) for at in range(len(sections))]
    logs = list[Log]()
    body: list[NotebookNode | Log] = []
    for section, keep in zip(sections, kept, strict=True):
        for cell in section.cells if keep else ():
            if cell.cell_type == "markdown":
                body.append(cell)
            for output in cell.get("outputs", ()):
                if _is_log(output):
                    logs.append(Log(number=len(logs) + 1, title=section.title, text="".join(output.text)))
                    body.append(logs[-1])
                else:
                    body.append(output)
    left_out = [_left_out(section) for section, keep in zip(sections, kept, strict=True) if not keep]
    return Arranged(body=tuple(body), sources=tuple(_sources(sections)), logs=tuple(logs), left_out=tuple(left_out))


def _sections(cells: Iterable[NotebookNode]) -> Iterator[_Section]:
    section = _Section(level=1, title="", cells=[])
    for cell in cells:
        heading = _HEADING.match(cell.source) if cell.cell_type == "markdown" else None
        if heading:
            if section.cells:
                yield section
            section = _Section(level=len(heading[1]), title=heading[2], cells=[])
        section.cells.append(cell)
    if section.cells:
        yield section


def _shows(sections: Sequence[_Section], at: int) -> bool:
    """Whether a section or one of its subsections has content; the page's head and sections of text always do."""
    section = sections[at]
    if section.level == 1 or _has_content(section):
        return True
    below = next((i for i in range(at + 1, len(sections)) if sections[i].level <= section.level), len(sections))
    return any(_has_content(inner) for inner in sections[at + 1 : below])


def _has_content(section: _Section) -> bool:
    code = [cell for cell in section.cells if cell.cell_type == "code" and cell.source.strip()]
    outputs = [output for cell in code for output in cell.get("outputs", ())]
    return not code or any(not _is_log(output) and _empty_reason(output) is None for output in outputs)


def _left_out(section: _Section) -> LeftOut:
    outputs = [output for cell in section.cells for output in cell.get("outputs", ())]
    reasons = dict.fromkeys(reason for output in outputs if (reason := _empty_reason(output)))
    return LeftOut(title=section.title, reason=" ".join(reasons))


def _sources(sections: Iterable[_Section]) -> Iterator[Source]:
    for section in sections:
        for cell in section.cells:
            tags = cell.metadata.get("tags", [])
            if cell.cell_type == "code" and cell.source.strip() and "hide-input" not in tags:
                named = next((_PARAMETERS[tag] for tag in tags if tag in _PARAMETERS), "")
                yield Source(title=named or section.title or "code", cell=cell)


def _is_log(output: Any) -> bool:
    return bool(output.output_type == "stream" and output.name == "stderr")


def _empty_reason(output: Any) -> str | None:
    """The text of an output that only says that there is nothing to show; ``None`` for any other."""
    shown = output.get("data", {}).get("text/html", "") if output.output_type in {"display_data", "execute_result"} else ""
    found = _EMPTY.match("".join(shown))
    return found[1].strip() if found else None
