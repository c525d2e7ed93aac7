"""Build tables from lists of columns. Each column has a head and a function that turns a row into a cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.text import Notes, value_text

Of = Callable[[Any], Any] | str
"""How to get a cell's value: a function of the row or the name of an item; if empty, the item with the name of the column's head."""


Unit = tuple[int, float] | Callable[[Any], tuple[int, float]]
"""The number of decimals and the scale factor, for a whole column or as a function of the row."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``cell`` creates the cell of a row. ``kind`` is the argument of :func:`head_cell` for a textual head. ``group`` is a title above the
    heads of neighbouring columns.
    """

    head: str | Fragment
    cell: Callable[[Any], Fragment]
    kind: str | None = "number"
    group: str = ""


def label(head: str, *of: Of) -> Column:
    """Create a column of row titles built by :func:`row_head` from the given values."""
    values = [_value(head, value) for value in of or ("",)]
    return Column(head, lambda row: row_head(*(value(row) for value in values)), "name")


def number(head: str, of: Of = "", digits: int | Callable[[Any], int] = 0, *, plus: bool = False, zero: bool = True) -> Column:
    """Create a column of numbers. A missing value, or a 0 if ``zero`` is false, is shown as a dash."""
    value = _value(head, of)

    def cell(row: Any) -> Fragment:
        shown = value(row)
        return number_cell(shown if zero else shown or None, digits(row) if callable(digits) else digits, plus=plus)

    return Column(head, cell)


def amount(head: str, of: Of, unit: Unit, *, plus: bool = False) -> Column:
    """Create a column of numbers in a unit, shown by :func:`amount_cell`."""
    value = _value(head, of)
    return Column(head, lambda row: amount_cell(value(row), *_unit(row, unit), plus=plus))


def interval(head: str, unit: Unit, low: str = "low", high: str = "high", *, plus: bool = False) -> Column:
    """Create a column of intervals in a unit. Two items of a row are the ends of its interval."""
    return Column(head, lambda row: interval_cell(row[low], row[high], *_unit(row, unit), plus=plus))


def mean_std(head: str, unit: Unit, mean: str = "mean", std: str = "std") -> Column:
    """Create a column of means with their standard deviations, in a unit."""

    def cell(row: Any) -> Fragment:
        digits, scale = _unit(row, unit)
        return mean_std_cell(row[mean], row[std], scale=scale, digits=digits)

    return Column(head, cell)


def words(head: str, of: Of = "", class_: str | None = None, kind: str | None = None) -> Column:
    """Create a column of texts or fragments in cells with the CSS class ``class_``."""
    value = _value(head, of)
    return Column(head, lambda row: element("td", value(row), class_=class_), kind)


def crossed(head: str, cells: Mapping[Any, Any], key: Any, cell: Callable[[Any], Fragment]) -> Column:
    """Create one column of a cross table.

    Args:
        cells: values by pair of row and column key; a missing pair is shown as a dash. key: the column's key. cell: creates the cell of a
            value.
    """
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
    """Build a table with a caption from a data frame or a list of rows.

    Args:
        none: text to show if there are no rows. by: the title of the group to which a row belongs; rows with an empty title have no group.
        refused: for a row that cannot be shown completely, the number of cells to show and the reason, which replaces the other cells.
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
    body = (row for name, some in groups.items() for row in ([[group_title(name, len(columns))]] if name else []) + some)
    above = [(name, len(list(some))) for name, some in itertools.groupby(column.group for column in columns)]
    return table(head, body, caption, above if len(above) > 1 else ())


# Tables as HTML: captions, heads and cells in our pages' style. A cell's ``data-value`` attribute has the exact value of its number.

_ONE_LINE = 60
"""The maximum number of characters of a row's title that does not wrap."""


def table(
    head: Sequence[Fragment], rows: Iterable[Sequence[Fragment]], caption: Content = None, above: Iterable[tuple[str, int]] = ()
) -> Fragment:
    """Build a table that scrolls sideways if it is too wide. A row with a single cell is a title for the rows below it.

    Args:
        above: titles over neighbouring columns, each with the number of columns that it spans.
    """
    groups = [element("th", name, colspan=n, scope="colgroup") if name else element("td", colspan=n) for name, n in above]
    body = [element("tr", *row, class_="group" if len(row) == 1 < len(head) else None) for row in rows]
    inner = element("table", element("thead", element("tr", *groups) if groups else None, element("tr", *head)), element("tbody", *body))
    # The caption is outside the scrolling box, so that it wraps on a phone.
    return element(
        "figure",
        element("figcaption", caption) if caption else None,
        element("div", inner, class_="scroll", tabindex=0, role="group", aria_label="table"),
        class_="table",
    )


def titled(title: Content, *about: Content) -> Fragment:
    """Return a caption with the table's subject in bold, followed by further text."""
    return join([element("strong", title), *about])


def head_cell(text: str, kind: str | None = None) -> Fragment:
    """Return a column's head; ``kind`` is ``number``, ``name`` or empty."""
    return element("th", text, class_=kind, scope="col")


def two_lines(first: str, second: str) -> Fragment:
    """Return a column head that spans two lines."""
    return element("th", first, element("br"), element("span", second, class_="quiet"), class_="number nowrap", scope="col")


def row_head(method: Any, *more: Any) -> Fragment:
    """Create a row's title from the method (or a link to it) and details that distinguish the rows of one method. Only long texts wrap."""
    rest = ", ".join(str(part) for part in more if part)
    wraps = not isinstance(method, Fragment) and len(str(method)) + len(rest) > _ONE_LINE
    body = [method if isinstance(method, Fragment) else str(method), element("span", f" {rest}", class_="quiet") if rest else None]
    return element("th", *body, class_="name long" if wraps else "name", scope="row")


def group_title(text: str, columns: int) -> Fragment:
    """Return a title for the rows below it, which spans ``columns`` columns."""
    return element("th", text, colspan=columns, scope="colgroup")


def number_cell(value: Any, digits: int | None = None, plus: bool = False) -> Fragment:
    """Return a table cell with a number, or a dash if there is no number."""
    if value is None or value != value:
        return element("td", "–", class_="number quiet")
    text = f"{value:g}" if digits is None else number_text(value, digits, plus)
    return element("td", text, class_="number", data_value=repr(float(value)))


def mean_std_cell(mean: float, std: float, *, scale: float, digits: int, remark: str = "") -> Fragment:
    """Create a cell with ``mean ± std`` multiplied by ``scale``, without the ± part if ``std`` is NaN.

    The attribute ``data-value`` is the unscaled mean.
    """
    spread = "" if std != std else f" ± {number_text(scale * std, digits)}"
    shown = element("span", spread + remark, class_="sd")
    return element("td", number_text(scale * mean, digits), shown, class_="number", data_value=repr(float(mean)))


def exact_cell(*shown: Content, **numbers: float) -> Fragment:
    """Create a cell with exact numbers in data attributes, such as ``value``, ``low`` and ``high``."""
    return element("td", *shown, class_="number nowrap", **{f"data_{name}": repr(float(value)) for name, value in numbers.items()})


def amount_cell(value: float | None, digits: int, scale: float = 1.0, *, plus: bool = False, unit: str = "") -> Fragment:
    """Create a cell with a number multiplied by ``scale`` and its exact value in an attribute, or a dash if it is missing."""
    if value is None or value != value:
        return number_cell(None)
    return exact_cell(f"{number_text(scale * value, digits, plus)}{unit}", value=value)


def interval_cell(low: float, high: float, digits: int, scale: float = 1.0, *, plus: bool = False) -> Fragment:
    """Create a cell with the ends of an interval multiplied by ``scale`` and the exact ends in attributes, or a dash if it is missing."""
    if low != low:
        return number_cell(None)
    return exact_cell(" to ".join(number_text(scale * end, digits, plus) for end in (low, high)), low=low, high=high)


def p_cell(value: float) -> Fragment:
    """Return a cell with a p value to three digits, or a dash if there is none."""
    if value != value:
        return number_cell(None)
    return element("td", "< 0.001" if value < 0.001 else f"{value:.3f}", class_="number", data_value=repr(float(value)))


def number_text(value: float, digits: int, plus: bool = False) -> str:
    """Format a number with thousands separators, a typographic minus sign, and no sign on a rounded zero.

    Numbers that differ only in their last bits, such as a mean computed in two ways, round to the same text.
    """
    text = f"{round(value, digits + 9):,.{digits}f}"
    if not any(c in "123456789" for c in text):
        return text.lstrip("-")
    return text.replace("-", "−") if text.startswith("-") else ("+" if plus else "") + text


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours, whichever is easiest to read."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def empty(text: str) -> Fragment:
    """Return a placeholder for an empty table or figure. A section that contains only placeholders is left off the page, and this reason is
    given.
    """
    return element("p", text, class_="quiet empty")


def folded(title: Content, *content: Content) -> Fragment:
    """Create collapsible content, which is shown when its title is clicked."""
    return element("details", element("summary", title), *content)


def definition_list(pairs: Iterable[tuple[Content, Content]]) -> Fragment:
    """Create a list of named facts, or an empty fragment if there are none."""
    parts = [part for name, fact in pairs for part in (element("dt", name), element("dd", fact))]
    return element("dl", *parts, class_="facts") if parts else Fragment("")


def data_table(frame: pd.DataFrame, caption: str | None = None) -> Fragment:
    """Render a data frame in the style of our pages, with escaped text and right-aligned numbers."""
    kinds = ["number" if frame[c].dtype.kind in "iuf" else None for c in frame.columns]
    head = [head_cell(str(c), kind) for c, kind in zip(frame.columns, kinds, strict=True)]
    rows = [[_cell(v, kind, i == 0) for i, (v, kind) in enumerate(zip(row, kinds, strict=True))] for row in frame.itertuples(index=False)]
    return table(head, rows, caption)


def _cell(value: Any, kind: str | None, first: bool) -> Fragment:
    if kind:
        return number_cell(value)
    return element("th", value_text(value), scope="row") if first else element("td", value_text(value))


# Rows of a data frame as plain mappings.


def as_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a data frame as mappings from column to value."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict(orient="records")]


# Variance components as a table, for all studies that compute them.

COMPONENT_NAMES = {
    "order": "order",
    "method_order": "method × order",
    "seed": "seed",
    "method_seed": "method × seed",
    "order_seed": "order × seed",
    "rest": "rest",
}
"""Names of the variance components in words."""


def refused_alike(results: Iterable[Any]) -> Fragment | None:
    """Return a reason to show in place of a table if all of several rows are refused for the same reason; otherwise return ``None``."""
    every = list(results)
    refused = len(every) > 1 and all(isinstance(result, stats.Refused) for result in every) and len(set(map(str, every))) == 1
    return empty(f"Refused in all {len(every)} scenarios: {every[0]}.") if refused else None


def components_table(fits: Iterable[tuple[str, stats.VarianceComponents | stats.Refused, bool]], caption: str) -> Fragment:
    """Show the standard deviation and share of each variance component, or the reason for a refusal, with one row per scenario.

    Args:
        fits: for each scenario its name, its components, and whether performance is a fraction, in which case it is shown in points.
    """
    fits, notes = list(fits), Notes()
    if (refused := refused_alike(fitted for _, fitted, _ in fits)) is not None:
        return refused

    def counts(row: Any) -> Fragment:
        fitted = row[1]
        return join(notes.mark(f"{fitted.n_methods} × {fitted.n_orders} × {fitted.n_seeds}", "; ".join(fitted.notes)))

    columns = [
        label("scenario", lambda row: row[0]),
        words("methods × orders × seeds", counts, "number nowrap", "number"),
        *(Column(two_lines(COMPONENT_NAMES[name], "std (share)"), partial(_component, name=name)) for name in stats.COMPONENTS),
    ]
    shown = framed(fits, columns, caption, refused=lambda row: (1, f"refused: {row[1]}") if isinstance(row[1], stats.Refused) else None)
    return join([shown, notes.listed()])


def _component(row: tuple[str, stats.VarianceComponents, bool], name: str) -> Fragment:
    _, fitted, fraction = row
    if name not in fitted.variances:
        return number_cell(None)
    deviation, share = fitted.variances[name] ** 0.5, f" ({number_text(100 * fitted.shares[name], 0)}%)"
    text = number_text(100 * deviation, 2) if fraction else number_text(deviation, 4)
    return exact_cell(text, element("span", share, class_="sd"), value=deviation)
