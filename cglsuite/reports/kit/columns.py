"""Tables as lists of columns: each has its head, and makes its cell of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cglsuite.base.markup import Content, Fragment, element
from cglsuite.reports.kit.htmltable import (
    amount_cell,
    empty,
    group_title,
    head_cell,
    interval_cell,
    mean_std_cell,
    number_cell,
    row_head,
    table,
)
from cglsuite.reports.kit.rows import as_rows

__all__ = ["Column", "amount", "crossed", "framed", "interval", "label", "mean_std", "number", "words"]

Of = Callable[[Any], Any] | str
"""What a cell shows of a row: a function of the row, or the name of an item; if empty, the item that the column's head names."""


Unit = tuple[int, float] | Callable[[Any], tuple[int, float]]
"""The digits of a number and what it is multiplied by, of a column or of each row."""


@dataclass(frozen=True)
class Column:
    """``cell`` makes the cell of a row; ``kind`` is that of :func:`head_cell`, for a head that is text."""

    head: str | Fragment
    cell: Callable[[Any], Fragment]
    kind: str | None = "number"


def label(head: str, *of: Of) -> Column:
    """The titles of rows: what :func:`row_head` makes of these values."""
    values = [_value(head, one) for one in of or ("",)]
    return Column(head, lambda row: row_head(*(value(row) for value in values)), "name")


def number(head: str, of: Of = "", digits: int | Callable[[Any], int] = 0, *, plus: bool = False, zero: bool = True) -> Column:
    """Numbers; a dash where there is none, and without ``zero`` in place of 0."""
    value = _value(head, of)

    def cell(row: Any) -> Fragment:
        shown = value(row)
        return number_cell(shown if zero else shown or None, digits(row) if callable(digits) else digits, plus=plus)

    return Column(head, cell)


def amount(head: str, of: Of, unit: Unit, *, plus: bool = False) -> Column:
    """Numbers as :func:`amount_cell` shows them, in a unit."""
    value = _value(head, of)
    return Column(head, lambda row: amount_cell(value(row), *_unit(row, unit), plus=plus))


def interval(head: str, unit: Unit, low: str = "low", high: str = "high", *, plus: bool = False) -> Column:
    """Intervals between two items of a row, in a unit."""
    return Column(head, lambda row: interval_cell(row[low], row[high], *_unit(row, unit), plus=plus))


def mean_std(head: str, unit: Unit, mean: str = "mean", std: str = "std") -> Column:
    """Means with their deviations, in a unit."""

    def cell(row: Any) -> Fragment:
        digits, scale = _unit(row, unit)
        return mean_std_cell(row[mean], row[std], scale=scale, digits=digits)

    return Column(head, cell)


def words(head: str, of: Of = "", class_: str | None = None, kind: str | None = None) -> Column:
    """Text or a fragment, in cells of a class."""
    value = _value(head, of)
    return Column(head, lambda row: element("td", value(row), class_=class_), kind)


def crossed(head: str, cells: Mapping[Any, Any], key: Any, cell: Callable[[Any], Fragment]) -> Column:
    """Cells of a table of keys against keys, from what there is of a row and ``key``; a dash where there is nothing."""
    return Column(head, lambda row: cell(cells[row, key]) if (row, key) in cells else number_cell(None))


def _value(head: str, of: Of) -> Callable[[Any], Any]:
    return of if callable(of) else lambda row: row[of or head]


def _unit(row: Any, unit: Unit) -> tuple[int, float]:
    return unit(row) if callable(unit) else unit


def framed(
    rows: pd.DataFrame | Iterable[Any],
    columns: Sequence[Column],
    caption: Content = None,
    *,
    none: str = "",
    by: Of | None = None,
    refused: Callable[[Any], tuple[int, str] | None] = lambda row: None,
) -> Fragment:
    """A table of rows.

    Args:
        none: shown in place of a table without rows. by: the title of the group that a row belongs to; rows of an empty title have none.
        refused: of a row that cannot be shown whole, how many of its cells are, and the reason, which takes the place of the others.
    """
    every = as_rows(rows) if isinstance(rows, pd.DataFrame) else list(rows)
    if none and not every:
        return empty(none)
    title = _value("", by) if by is not None else lambda row: ""
    groups: dict[str, list[Sequence[Fragment]]] = {}
    for row in every:
        shown, reason = refused(row) or (len(columns), "")
        cells = [column.cell(row) for column in columns[:shown]]
        cells += [element("td", reason, class_="quiet long", colspan=len(columns) - shown)] if shown < len(columns) else []
        groups.setdefault(str(title(row)), []).append(cells)
    head = [column.head if isinstance(column.head, Fragment) else head_cell(column.head, column.kind) for column in columns]
    body = (one for name, some in groups.items() for one in ([[group_title(name, len(columns))]] if name else []) + some)
    return table(head, body, caption)
