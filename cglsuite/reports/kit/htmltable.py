"""Tables as HTML: captions, heads and cells in our pages' style; a number's exact value stands in its cell's ``data-value``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Content, Fragment, element
from cglsuite.reports.kit.text import value_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "data_table",
    "definition_list",
    "duration",
    "empty",
    "exact_cell",
    "group_title",
    "head_cell",
    "mean_std_cell",
    "number_cell",
    "number_text",
    "row_head",
    "table",
    "two_lines",
]

_ONE_LINE = 60
"""Characters of a row's title that stay on one line."""


def table(head: Sequence[Fragment], rows: Iterable[Sequence[Fragment]], caption: Content = None) -> Fragment:
    """A table that scrolls sideways if it is too wide; a row with a single cell is a title for the rows below it."""
    body = [element("tr", *row, class_="group" if len(row) == 1 < len(head) else None) for row in rows]
    inner = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    # The caption is outside the scrolling box, so that it wraps on a phone.
    return element(
        "figure",
        element("figcaption", caption) if caption else None,
        element("div", inner, class_="scroll", tabindex=0, role="group", aria_label="table"),
        class_="table",
    )


def head_cell(text: str, kind: str | None = None) -> Fragment:
    """A column's title; ``kind`` is ``number``, ``name`` or nothing."""
    return element("th", text, class_=kind, scope="col")


def two_lines(first: str, second: str) -> Fragment:
    """A column's head of two lines."""
    return element("th", first, element("br"), element("span", second, class_="quiet"), class_="number nowrap", scope="col")


def row_head(method: Any, *more: Any) -> Fragment:
    """A row's title: the method, and what distinguishes it from others of the same name. A long one wraps, a short one does not."""
    rest = ", ".join(str(part) for part in more if part)
    wraps = len(str(method)) + len(rest) > _ONE_LINE
    body = [str(method), element("span", f" {rest}", class_="quiet") if rest else None]
    return element("th", *body, class_="name long" if wraps else "name", scope="row")


def group_title(text: str, columns: int) -> Fragment:
    """The title of the rows below it, across ``columns``."""
    return element("th", text, colspan=columns, scope="colgroup")


def number_cell(value: Any, digits: int | None = None, plus: bool = False) -> Fragment:
    """A number, or a dash if there is none."""
    if value is None or value != value:
        return element("td", "–", class_="number quiet")
    text = f"{value:g}" if digits is None else number_text(value, digits, plus)
    return element("td", text, class_="number", data_value=repr(float(value)))


def mean_std_cell(mean: float, std: float, *, scale: float, digits: int, remark: str = "") -> Fragment:
    """``mean ± std`` multiplied by ``scale``; ``data-value`` is the unscaled mean. No ± if ``std`` is NaN."""
    spread = "" if std != std else f" ± {number_text(scale * std, digits)}"
    shown = element("span", spread + remark, class_="sd")
    return element("td", number_text(scale * mean, digits), shown, class_="number", data_value=repr(float(mean)))


def exact_cell(*shown: Content, **numbers: float) -> Fragment:
    """A cell with exact numbers behind its text: ``value``, ``low``, ``high``."""
    return element("td", *shown, class_="number nowrap", **{f"data_{name}": repr(float(value)) for name, value in numbers.items()})


def number_text(value: float, digits: int, plus: bool = False) -> str:
    """A number with thin spaces between thousands, a true minus sign, and no sign before a rounded zero."""
    text = f"{value:,.{digits}f}".replace(",", "\u202f")
    if not any(c in "123456789" for c in text):
        return text.lstrip("-")
    return text.replace("-", "−") if text.startswith("-") else ("+" if plus else "") + text


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads well."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def empty(text: str) -> Fragment:
    """Shown in place of a table or a figure without content; a section of nothing else is left out of the page, with this as the reason."""
    return element("p", text, class_="quiet empty")


def definition_list(pairs: Iterable[tuple[Content, Content]]) -> Fragment:
    """Facts, each under its name; nothing where there are none."""
    parts = [part for name, fact in pairs for part in (element("dt", name), element("dd", fact))]
    return element("dl", *parts, class_="facts") if parts else Fragment("")


def data_table(frame: pd.DataFrame, caption: str | None = None) -> Fragment:
    """Any data frame in our pages' style: text escaped, numbers right-aligned."""
    kinds = ["number" if frame[c].dtype.kind in "iuf" else None for c in frame.columns]
    head = [head_cell(str(c), kind) for c, kind in zip(frame.columns, kinds, strict=True)]
    rows = [[_cell(v, kind, i == 0) for i, (v, kind) in enumerate(zip(row, kinds, strict=True))] for row in frame.itertuples(index=False)]
    return table(head, rows, caption)


def _cell(value: Any, kind: str | None, first: bool) -> Fragment:
    if kind:
        return number_cell(value)
    return element("th", value_text(value), scope="row") if first else element("td", value_text(value))
