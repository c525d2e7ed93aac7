"""The leaderboard on a page: its tables, a card for each method, and the records behind every row.

Formats what :mod:`cglsuite.reports.site.boards` computes. The same pieces serve the notebook and the index of a campaign, whose script adds
sorting and filtering; the content is complete without it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from cglsuite.base.hashing import canonical
from cglsuite.base.markup import Content, Fragment, code_in_lines, element, join, several
from cglsuite.campaigns.reference import queries_note
from cglsuite.reports.kit.tables import definition_list, empty, group_title, head_cell, number_cell, number_text, table
from cglsuite.reports.kit.text import value_text
from cglsuite.reports.results.results import axis_order
from cglsuite.reports.results.summary import NOTHING_DONE, derived_note
from cglsuite.reports.results.tables import promises
from cglsuite.reports.results.variants import note as tuning_note
from cglsuite.reports.results.variants import value_as_text
from cglsuite.reports.site.boards import LEVEL, SECTIONS, Board, Column, Family, Row, Score, axis_value, boards

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue, Entry
    from cglsuite.reports.results.results import Group, Results


_NOT_SIGNIFICANT = "not significant"


def anchor(kind: str, name: str) -> str:
    """Return the HTML id of an element on the page."""
    return f"{kind}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"


def _on_the_page(name: str) -> str:
    return f"#{anchor('method', name)}"


def _folded_below(board: Board, number: int) -> str:
    return f"#{anchor('records', board.preset)}-{number}"


@dataclass(frozen=True, kw_only=True)
class BoardContext:
    """How a page shows its boards. The default is a campaign's page, with method cards and the records behind rows.

    Args:
        method, records: the targets of a row's links. note: the text below the name of its method.
        name: the prefix of a board's ids; it keeps them unique if a page shows a board twice.
        alone: whether to leave out the records and everything about a campaign.
    """

    method: Callable[[str], str] = _on_the_page
    records: Callable[[Board, int], str] = _folded_below
    note: Callable[[Row], Fragment | None] = lambda row: None
    name: str = "board"
    alone: bool = False


_CAMPAIGN = BoardContext()


def leaderboard(results: Results, catalogue: Catalogue) -> Fragment:
    """Render every board of a campaign with its title, table and records."""
    shown = boards(results, catalogue)
    if not shown:
        return empty(NOTHING_DONE)
    return join([how_to_read(), *(board_section(results, board) for board in shown)])


def board_section(
    results: Results,
    board: Board,
    extra: Fragment | None = None,
    plot: bool = False,
    number: int | None = None,
    context: BoardContext = _CAMPAIGN,
) -> Fragment:
    """Render one board: its title, caption, table, ``extra``, the methods without a result, and the collapsed records.

    Args:
        plot, context: as for :func:`board_table`. number: identifies the board for the script.
    """
    name = anchor(context.name, board.preset)
    return element(
        "section",
        element("h3", board.title, id=f"{name}-title"),
        board_caption(results, board, campaign=not context.alone),
        board_table(board, plot=plot, context=context),
        extra,
        *_settings(board, context),
        None if context.alone else _without_result(results, board),
        None if context.alone else _records(board),
        class_="board",
        id=name,
        data_board=number,
        aria_labelledby=f"{name}-title",
    )


def how_to_read(machines: str = "on the machines listed under each table's provenance") -> Fragment:
    """Explain how to read all boards. ``machines`` names the machines whose times are shown."""
    said = (
        "Entries are mean ± sample standard deviation over n records that differ only in their seeds, with the "
        f"{LEVEL:.0%} interval of the mean in brackets. Rows are sorted by the mean of the first metric. Equal means share a rank; "
        f"incomplete methods and references have none. A difference between two rows need not be significant. "
        f"Times: wall-clock, {machines}."
    )
    tables = "Results under different protocols are not comparable, so each scenario and protocol has its own table."
    return join([element("p", tables, class_="note"), element("p", said, class_="note")])


def board_caption(results: Results, board: Board, *, campaign: bool = True) -> Fragment:
    """Describe a board's measure, intervals and overridden switches. With ``campaign``, also describe how its methods were tuned."""
    backbones = f"backbone {board.backbones[0]}; " if len(board.backbones) == 1 else ""
    variant = results.variants.get(board.preset)
    changed = (
        element("p", f"{variant.name} is {variant.base} with ", element("code", variant.changes_text), class_="note") if variant else None
    )
    design = f"intervals and tests: {board.design}" if board.design else "methods do not share one set of orders and seeds"
    facts = f" – {board.performance}; {backbones}{design}"
    parts = [element("p", element("code", board.preset), facts, class_="note quiet"), changed]
    if derived := derived_note(results, variant.base if variant else board.preset):
        parts.append(element("p", derived, class_="note"))
    if shown := next((row.records[0] for row in board.rows if row.records), None):
        parts.append(element("p", queries_note(board.preset, shown.scenario) or None, class_="note"))
    if campaign:
        tuning = tuning_note(results.searches, {board.name_of(row): row.records for row in board.rows})
        parts.append(element("p", tuning, class_="note quiet"))
    parts.append(element("p", _tests_note(board), class_="note quiet"))
    if board.machines > 1:
        warning = f"The records were made on {board.machines} classes of machine: times and peak memory are not comparable."
        parts.append(element("p", warning, class_="note"))
    return join(parts)


def _tests_note(board: Board) -> str | None:
    """What the significance tests of a board say, and how sweeps take part in them."""
    return " ".join(filter(None, [_sweeps_note(board), _tested(board)])) or None


def _sweeps_note(board: Board) -> str | None:
    """State how the settings of a sweep are shown, and which of them is compared."""
    swept = [family for family in board.families if family.swept]
    if not swept:
        return None
    said = ["The settings of a method share a row, which shows the range of their means. All settings are listed below the table."]
    if any(family.selected is not None for family in swept):
        said.append("The setting chosen by validation is compared with other methods.")
    if unchosen := [family.method for family in swept if family.selected is None]:
        said.append(f"Validation performance was not recorded for {', '.join(dict.fromkeys(unchosen))}: the best setting by test")
        said.append("performance is optimistic and is not compared with other methods.")
    return " ".join(said)


def _tested(board: Board) -> str | None:
    verdicts = [row.verdict for row in board.rows if row.verdict is not None]
    if not verdicts:
        return None
    best, tested = verdicts[0].best, [v for v in verdicts if v.significant is not None]
    if not tested:
        return f"No method can be tested: {verdicts[0].summary}"
    learners = [row.verdict for row in board.compared if row.verdict in tested and not row.reference]
    beaten = sum(bool(v.significant) for v in learners)
    refused = len(verdicts) - len(tested)
    tests = " or ".join(dict.fromkeys(v.test for v in tested))
    family = f"{tests}, Holm over all pairs, α = {1 - LEVEL:.2g}"
    untested = f" {refused} without a test." if refused else ""
    claim = (
        f"{best} beats {beaten or 'none'} of {several(len(learners), 'other method')} in {board.first.label} " if learners else "Tests: "
    )
    return f"{claim}({family}).{untested}"


def board_table(board: Board, plot: bool = False, context: BoardContext = _CAMPAIGN) -> Fragment:
    """Render a board's table with one row per method. The exact values are in ``data-value``.

    ``plot`` draws the intervals of the first column.
    ``data-column`` in the head names the columns, ``data-row`` the rows, as the page's script needs them.
    """
    axis = _Axis(board) if plot else None
    head = [
        _text_head("method"),
        _number_head("rank", "rank", "by the first metric; equal means share a rank"),
        _number_head("n", "records", "number of records behind the row; the link leads to them"),
    ]
    head += [_column_head(board.first, True)]
    pictured = f"{LEVEL:.0%} interval; of a sweep its settings" if board.axes else f"{LEVEL:.0%} interval"
    head += [element("th", f"{board.first.label}, {pictured}", axis.scale(), scope="col", class_="plot")] if axis else []
    head += [_column_head(column, False) for column in board.columns[1:]]
    head += [_text_head(name) for name in board.texts]
    bodies = []
    for section, families in itertools.groupby(board.families, key=lambda family: family.section):
        rows = [element("tr", group_title(SECTIONS[section], len(head)), class_="group")] if section else []
        for family in families:
            if family.swept:
                cells = _sweep_cells(family, board, axis, context)
                rows.append(element("tr", *cells, data_rows=" ".join(map(str, family.numbers)), data_chosen=_number_of_selected(family)))
            else:
                rows.append(element("tr", *_row_cells(family.rows[0], board, axis, family.numbers[0], context), data_row=family.numbers[0]))
        bodies.append(element("tbody", *rows))
    inner = element("table", element("thead", element("tr", *head)), *bodies)
    label = f"Leaderboard of {board.title}"
    return element("div", inner, class_="scroll", tabindex=0, role="region", aria_label=label)


def _row_cells(row: Row, board: Board, axis: _Axis | None, number: int, context: BoardContext) -> list[Fragment]:
    cells = [_method_cell(row, context), _rank_cell(board, number), _records_cell(row, board, number, context)]
    scores = [_score_cell(row.scores.get(column.name), column, len(row.records)) for column in board.columns]
    cells += [scores[0], *([axis.cell(row.scores.get(board.first.name))] if axis else []), *scores[1:]]
    return cells + [element("td", row.texts[name], class_="nowrap") for name in board.texts]


# --- sweeps: the settings of one method ----------------------------------------------------------------------------------------------


def _number_of_selected(family: Family) -> int | None:
    return next((number for number, row in zip(family.numbers, family.rows, strict=True) if row is family.selected), None)


def _sweep_cells(family: Family, board: Board, axis: _Axis | None, context: BoardContext) -> list[Fragment]:
    """A sweep in one row: its axes, the range of each column, and the setting chosen on validation."""
    many = f" {len(family.rows)} settings of {', '.join(_short_setting(name) for name in family.axes)}"
    link = element("a", family.method, href=context.method(family.method))
    selected, best = family.selected, family.best(board.first)
    if selected is not None:
        said = f"{selected.group.variant} chosen by validation"
    else:
        said = f"best of {len(family.rows)} by test performance (optimistic): {best.group.variant}" if best is not None else ""
    title = selected.verdict.summary if selected is not None and selected.verdict is not None else None
    about = [element("span", many, class_="quiet"), element("br"), element("span", said, class_="why")]
    if selected is not None and selected.verdict is not None and selected.verdict.significant is False:
        about += [element("br"), element("span", _NOT_SIGNIFICANT, class_="badge note", title=title)]
    records = sum(len(row.records) for row in family.rows)
    below = f"#{_settings_anchor(board, family, context)}"
    unfolding = element("a", str(records), href=below, aria_label=f"{records} records in {len(family.rows)} settings of {family.method}")
    cells = [
        element("th", link, *about, class_="name", scope="row", title=title),
        _rank_cell(board, _number_of_selected(family)),
        element("td", unfolding, class_="number", data_value=records),
    ]
    scores = [_range_cell(family, column) for column in board.columns]
    plot = [element("td", sweep_picture(family, board.first, axis.ends), class_="plot")] if axis else []
    cells += [scores[0], *plot, *scores[1:]]
    return cells + [
        element("td", ", ".join(dict.fromkeys(row.texts[name] for row in family.rows)), class_="nowrap") for name in board.texts
    ]


def _range_cell(family: Family, column: Column) -> Fragment:
    """A range from the smallest to the largest mean, with the setting chosen on validation."""
    ends = family.range(column)
    if ends is None:
        return number_cell(None)
    shown: list[Content] = [" to ".join(dict.fromkeys(_shown(end, column) for end in ends))]
    score = family.selected.scores.get(column.name) if family.selected is not None else None
    if score is not None:
        spread = f" ± {_shown(score.std, column)}" if score.std == score.std else ""
        shown += [element("br"), element("span", f"chosen {_shown(score.mean, column)}{spread}", class_="interval")]
    return element("td", *shown, class_="number nowrap", data_low=repr(ends[0]), data_high=repr(ends[1]))


def _settings(board: Board, context: BoardContext) -> list[Fragment]:
    """Render the sweeps of a board, collapsed, each with its picture and one row per setting with the values on the axes."""
    parts = []
    for family in board.families:
        if not family.swept:
            continue
        head = [head_cell(_short_setting(name), "name") for name in family.axes] + [
            _number_head("n", "records", "number of records behind the row")
        ]
        head += [_column_head(column, False) for column in board.columns]
        rows = []
        for number, row in zip(family.numbers, family.rows, strict=True):
            first, *others = [value_as_text(value) for value in row.settings.values()]
            values = [element("th", first, context.note(row), class_="name", scope="row"), *(element("td", value) for value in others)]
            scores = [_short_score(row.scores.get(column.name), column) for column in board.columns]
            rows.append(element("tr", *values, _records_cell(row, board, number, context), *scores, data_row=number))
        inner = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
        shown = element("div", inner, class_="scroll", tabindex=0, role="region", aria_label=f"Settings of {family.method}")
        title = f"{family.method}: {len(family.rows)} settings of {', '.join(map(_short_setting, family.axes))}"
        name = _settings_anchor(board, family, context)
        parts.append(
            element(
                "details", element("summary", title), sweep_picture(family, board.first, labelled=True), shown, class_="settings", id=name
            )
        )
    return parts


_SMALL, _LARGE = (160.0, 46.0), (460.0, 170.0)
"""Width and height of a sweep's picture, in a row and enlarged."""
_MAX_LABELS = 12


def sweep_picture(family: Family, column: Column, ends: tuple[float, float] | None = None, *, labelled: bool = False) -> Fragment | None:
    """Draw the means of a sweep as a curve (one axis), a heat map (two axes) or points (more axes). The chosen setting is framed.

    Args:
        ends: the scale shared by the rows of a board (default: the range of the means). labelled: draw it large, with axis values.
    """
    scored = [row for row in family.rows if column.name in row.scores]
    limits = family.range(column)
    if limits is None:
        return None
    low, high = ends or limits
    shares = {id(row): _share(row.scores[column.name].mean, low, high) for row in scored}
    texts = {id(row): f"{row.group.variant}: {_shown(row.scores[column.name].mean, column)}" for row in scored}
    drawn = {1: _curve, 2: _heat_map}.get(len(family.axes), _points)(family, column, scored, shares, texts, labelled)
    width, height, parts = drawn
    words = f"{column.label} over {len(family.rows)} settings of {', '.join(map(_short_setting, family.axes))}: "
    words += " to ".join(_shown(end, column) for end in limits)
    size = {"width": f"{width:g}", "height": f"{height:g}"}
    return element("svg", *parts, class_="sweep", viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=words, **size)


_Drawn = tuple[float, float, list[Content]]


def _share(value: float, low: float, high: float) -> float:
    """The place of a value between two ends, from 0 to 1; values outside are at an end."""
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def _curve(
    family: Family, column: Column, scored: Sequence[Row], shares: Mapping[int, float], texts: Mapping[int, str], labelled: bool
) -> _Drawn:
    """A curve with a point per value in order, joined by lines if all values are numbers."""
    width, height = _LARGE if labelled else _SMALL
    left, right, top, bottom = (48.0, 12.0, 10.0, 34.0) if labelled else (6.0, 6.0, 5.0, 5.0)
    step = (width - left - right) / max(1, len(family.rows) - 1)
    x = {id(row): left + place * step for place, row in enumerate(family.rows)}
    y = {id(row): top + (1.0 - shares[id(row)]) * (height - top - bottom) for row in scored}
    parts: list[Content] = []
    if all(isinstance(axis_value(row, family.axes[0]), (int, float)) for row in scored):
        parts.append(element("polyline", points=" ".join(f"{x[id(row)]:.1f},{y[id(row)]:.1f}" for row in scored)))
    for row in scored:
        frame = "chosen" if row is family.selected else None
        place: dict[str, Any] = {"cx": f"{x[id(row)]:.1f}", "cy": f"{y[id(row)]:.1f}", "r": 5 if frame else 3}
        parts.append(element("circle", element("title", texts[id(row)]), class_=frame, **place))
    if labelled:
        every = -(-len(family.rows) // _MAX_LABELS)
        for row in family.rows[::every]:
            value = value_as_text(row.settings[family.axes[0]])
            parts.append(element("text", value, x=f"{x[id(row)]:.1f}", y=height - 18, text_anchor="middle"))
        parts.append(
            element("text", _short_setting(family.axes[0]), x=f"{(left + width - right) / 2:.1f}", y=height - 3, text_anchor="middle")
        )
        low, high = family.range(column) or (0.0, 0.0)
        for end, at in ((high, top + 4), (low, height - bottom + 4)):
            parts.append(element("text", _shown(end, column), x=left - 10, y=f"{at:g}", text_anchor="end"))
    return width, height, parts


def _heat_map(
    family: Family, column: Column, scored: Sequence[Row], shares: Mapping[int, float], texts: Mapping[int, str], labelled: bool
) -> _Drawn:
    """A heat map with a cell per pair of values, darker for higher means; ``labelled`` writes the means into it."""
    rows, columns = ([*dict.fromkeys(value_as_text(row.settings[name]) for row in _rows_along(family, name))] for name in family.axes)
    wide, tall = (46.0, 24.0) if labelled else (min(16.0, _SMALL[0] / len(columns)), min(12.0, 2 * _SMALL[1] / len(rows)))
    left, top = (10.0 + 7.0 * max(map(len, rows)), 38.0) if labelled else (0.0, 0.0)
    parts: list[Content] = []
    for row in scored:
        down, across = (value_as_text(value) for value in row.settings.values())
        x, y, share = left + columns.index(across) * wide, top + rows.index(down) * tall, shares[id(row)]
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{wide - 1:.1f}", "height": f"{tall - 1:.1f}"}
        frame = "chosen" if row is family.selected else None
        parts.append(element("rect", element("title", texts[id(row)]), class_=frame, fill_opacity=f"{0.06 + 0.6 * share:.2f}", **place))
        if labelled:
            shown = _shown(row.scores[column.name].mean, column)
            parts.append(element("text", shown, x=f"{x + wide / 2:.1f}", y=f"{y + tall / 2 + 4:.1f}", text_anchor="middle"))
    if labelled:
        parts.append(element("text", f"{_short_setting(family.axes[0])} ↓  {_short_setting(family.axes[1])} →", x=0, y=12))
        parts += [element("text", v, x=f"{left + (n + 0.5) * wide:.1f}", y=top - 6, text_anchor="middle") for n, v in enumerate(columns)]
        parts += [element("text", v, x=left - 6, y=f"{top + (n + 0.5) * tall + 4:.1f}", text_anchor="end") for n, v in enumerate(rows)]
    return max(left + len(columns) * wide, 150.0 if labelled else 0.0), top + len(rows) * tall, parts


def _rows_along(family: Family, axis: str) -> list[Row]:
    """The rows sorted along one axis."""
    return sorted(family.rows, key=lambda row: axis_order(row.settings[axis]))


def _points(
    family: Family, column: Column, scored: Sequence[Row], shares: Mapping[int, float], texts: Mapping[int, str], labelled: bool
) -> _Drawn:
    """Points of all settings on one scale."""
    width, height = (_LARGE[0], 30.0) if labelled else (_SMALL[0], 18.0)
    parts: list[Content] = [element("line", x1=6, x2=width - 6, y1=height / 2, y2=height / 2)]
    for row in scored:
        frame = "chosen" if row is family.selected else None
        place: dict[str, Any] = {"cx": f"{6 + shares[id(row)] * (width - 12):.1f}", "cy": height / 2, "r": 5 if frame else 3}
        parts.append(element("circle", element("title", texts[id(row)]), class_=frame, **place))
    return width, height, parts


def _settings_anchor(board: Board, family: Family, context: BoardContext) -> str:
    return f"{anchor(f'settings-{context.name}', board.preset)}-{min(family.numbers)}"


def _short_setting(name: str) -> str:
    """A setting's name without its section."""
    return name.partition(".")[2] or name


def _text_head(name: str) -> Fragment:
    return element("th", element("span", name, class_="label"), class_="name", scope="col", data_column=name)


def _number_head(label: str, name: str, tooltip: str) -> Fragment:
    return element("th", label, class_="number", scope="col", title=tooltip, data_column=name)


def _column_head(column: Column, first: bool) -> Fragment:
    explanation = f"{column.formula}: {column.summary}" if column.formula else column.summary
    sort = {"up": "descending", "down": "ascending"}.get(column.better) if first else None
    inner = [element("span", column.heading, class_="label"), element("br"), code_in_lines(column.name)]
    return element("th", *inner, class_="number", scope="col", title=explanation, data_column=column.name, aria_sort=sort)


def _method_cell(row: Row, context: BoardContext) -> Fragment:
    variant = element("span", f" {row.group.variant}", class_="quiet") if row.group.variant else None
    mark = None
    if row.verdict is not None and row.verdict.significant is False:
        mark = join([element("br"), element("span", _NOT_SIGNIFICANT, class_="badge note", title=row.verdict.summary)])
    link = element("a", row.method, href=context.method(row.method))
    below = (mark, missing_badge(row.missing, len(row.records)), context.note(row))
    return element("th", link, variant, *below, class_="name", scope="row", title=row.verdict.summary if row.verdict else None)


def missing_badge(missing: int, records: int) -> Fragment | None:
    """Show, on a line below the method's name, how many repetitions of a row are missing."""
    if not missing:
        return None
    text = f"{missing} of {missing + records} repetitions missing"
    return join([element("br"), element("span", text, class_="badge note", title="most methods of this board have them")])


def _rank_cell(board: Board, number: int | None) -> Fragment:
    """A rank, marked where rows share it; a dash for rows without one."""
    rank = board.ranks.get(-1 if number is None else number)
    if rank is None:
        return number_cell(None)
    tied = sum(other == rank for other in board.ranks.values()) > 1
    return element("td", f"{rank}{'=' if tied else ''}", class_="number", data_value=rank, title="equal means" if tied else None)


def _records_cell(row: Row, board: Board, number: int, context: BoardContext) -> Fragment:
    n = len(row.records)
    link = element("a", str(n), href=context.records(board, number), aria_label=f"{n:,} records of {row.group.label}")
    return element("td", link, class_="number", data_value=n)


def _score_cell(score: Score | None, column: Column, records: int) -> Fragment:
    if score is None:
        return number_cell(None)
    shown: list[Content] = [_shown(score.mean, column)]
    if score.std == score.std:
        shown.append(element("span", f" ± {_shown(score.std, column)}", class_="sd"))
    if score.n != records:
        shown.append(element("span", f" (n={score.n})", class_="sd"))
    exact = {"value": score.mean, "std": score.std, "low": score.low, "high": score.high}
    data = {f"data_{name}": repr(value) for name, value in exact.items() if value == value}
    explanation = None
    if score.kind:
        shown += [element("br"), element("span", f"[{_shown(score.low, column)}, {_shown(score.high, column)}]", class_="interval")]
        explanation = f"{LEVEL:.0%} interval of the mean over {score.over} ({score.kind})"
    elif score.refusal:
        explanation = f"no interval: {score.refusal}"
    return element("td", *shown, class_="number", title=explanation, data_n=score.n, **data)


def _short_score(score: Score | None, column: Column) -> Fragment:
    """Mean and deviation; the exact numbers and the interval are in the download."""
    if score is None:
        return number_cell(None)
    spread = f" ± {_shown(score.std, column)}" if score.std == score.std else ""
    return element("td", f"{_shown(score.mean, column)}{spread}", class_="number")


def _shown(value: float, column: Column) -> str:
    return number_text(value * column.scale, column.digits)


class _Axis:
    """The shared scale of a board's first-column intervals, and the drawings of cells on it.

    One bad row does not squeeze the others: ends beyond three interquartile ranges from the quartiles are off the scale.
    """

    WIDTH, HEIGHT, MARGIN = 160.0, 18.0, 12.0

    def __init__(self, board: Board) -> None:
        scores = [row.scores[board.first.name] for row in board.rows if board.first.name in row.scores]
        ends = [end for s in scores for end in (s.mean, s.low, s.high) if end == end]
        if len(ends) > 3:
            first, _, third = quantiles(ends, n=4, method="inclusive")
            ends = [end for end in ends if abs(end - min(third, max(first, end))) <= 3.0 * (third - first)]
        self._low, self._high = self.ends = (min(ends), max(ends)) if ends else (0.0, 1.0)
        self._column = board.first

    def scale(self) -> Fragment:
        """Draw the axis of the cells below, labelled with two or more round numbers."""
        ticks, digits = _ticks(self._low * self._column.scale, self._high * self._column.scale)
        parts = [self._line(self.MARGIN, self.WIDTH - self.MARGIN, 16, "rail")]
        for tick in ticks:
            x = self._x(tick / self._column.scale)
            parts += [element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=13, y2=16, class_="rail")]
            parts.append(element("text", number_text(tick, digits), x=f"{x:.1f}", y=10, text_anchor="middle"))
        return self._picture(parts, f"scale from {_shown(self._low, self._column)} to {_shown(self._high, self._column)}")

    def cell(self, score: Score | None) -> Fragment:
        """Draw a dot at the mean and a line for the interval. An arrow at the edge stands for a mean off the scale."""
        if score is None:
            return element("td", class_="plot")
        middle = self.HEIGHT / 2
        parts = [self._line(self.MARGIN, self.WIDTH - self.MARGIN, middle, "rail")]
        words = f"mean {_shown(score.mean, self._column)}"
        if score.kind:
            parts.append(self._line(self._x(score.low), self._x(score.high), middle, "range"))
            words += f", interval {_shown(score.low, self._column)} to {_shown(score.high, self._column)}"
        if self._low <= score.mean <= self._high:
            parts.append(element("circle", cx=f"{self._x(score.mean):.1f}", cy=middle, r=4))
        else:
            edge, tip = (self.MARGIN, 2.0) if score.mean < self._low else (self.WIDTH - self.MARGIN, self.WIDTH - 2.0)
            parts.append(element("polygon", points=f"{edge:g},{middle - 5:g} {edge:g},{middle + 5:g} {tip:g},{middle:g}"))
            words += ", off the scale"
        return element("td", self._picture(parts, words), class_="plot")

    def _picture(self, parts: Sequence[Fragment], words: str) -> Fragment:
        box = f"0 0 {self.WIDTH:g} {self.HEIGHT:g}"
        return element("svg", *parts, viewBox=box, width=f"{self.WIDTH:g}", height=f"{self.HEIGHT:g}", role="img", aria_label=words)

    def _x(self, value: float) -> float:
        return self.MARGIN + _share(value, self._low, self._high) * (self.WIDTH - 2 * self.MARGIN)

    def _line(self, start: float, end: float, y: float, kind: str) -> Fragment:
        return element("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=y, y2=y, class_=kind)


def _ticks(low: float, high: float) -> tuple[list[float], int]:
    """Round numbers between two ends, two to five if there are two, and the digits that they need."""
    if not high > low:
        return [low], 1
    power = math.floor(math.log10(high - low))
    for step in (factor * 10.0**p for p in (power, power - 1) for factor in (5.0, 2.0, 1.0)):
        ticks = [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(ticks) > 1:
            break
    return ticks, max(0, -math.floor(math.log10(step)))


def _without_result(results: Results, board: Board) -> Fragment | None:
    """The campaign's methods without a row on this board, with the reason."""
    shown = {(row.method, row.group.backbone) for row in board.rows}
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for cell in results.cells:
        who = (cell.planned.request.method, cell.planned.backbone)
        if cell.planned.cell is not None:
            here = cell.planned.cell.preset == board.preset
        else:  # the cell was not resolved, so its variant of the preset is unknown
            here = cell.planned.request.scenario == board.scenario and (not who[1] or who[1] in board.backbones)
        if here and not cell.done and who not in shown:
            reasons.setdefault(who, {})[f"{cell.state}: {cell.reason}" if cell.reason else cell.state] = None
    if not reasons:
        return None
    items = [element("li", element("strong", method), f" – {'; '.join(texts)}") for (method, _), texts in reasons.items()]
    return element("div", element("p", "Without a result here:"), element("ul", *items), class_="lacking")


def _records(board: Board) -> Fragment:
    """List all records of a board, collapsed, with key, seeds, sources and the number of their environment."""
    every = [record for row in board.rows for record in row.records]
    environments = {canonical(_environment(record)): _environment(record) for record in every}
    numbers = {text: number for number, text in enumerate(environments, start=1)}
    parts = []
    for number, row in enumerate(board.rows):
        name = f"{anchor('records', board.preset)}-{number}"
        if row.settings:
            machines = {record.key: numbers[canonical(_environment(record))] for record in row.records}
            parts.append(_records_of_setting(row, machines, name))
            continue
        title = element("p", element("strong", row.group.label), f" × {row.group.backbone}", id=name)
        rows = [_record_row(record, numbers[canonical(_environment(record))]) for record in row.records]
        names = ("seeds (order/split/init)", "key", "code (core; plugins)", "data", "made on")
        parts += [title, table([head_cell(text) for text in names], rows)]
    items = [element("li", "; ".join(f"{name} {value}" for name, value in environment.items())) for environment in environments.values()]
    where = [element("p", "Made on:"), element("ol", *items)]
    return element("details", element("summary", f"Provenance of {len(every):,} records"), *parts, *where, class_="provenance")


def _records_of_setting(row: Row, machines: Mapping[str, int], name: str) -> Fragment:
    """List the records of one setting of a sweep, with the seeds and the key of each below the facts that they share."""
    shared: dict[str, list[Record]] = {}
    for record in row.records:
        short, _ = _code_hashes(record)
        data = str(record.provenance.get("data") or "unknown")[:8]
        shared.setdefault(f"code {short}; data {data}; made on {machines[record.key]}", []).append(record)
    parts: list[Content] = []
    for origin, records in shared.items():
        parts += [f" – {origin}", *(part for r in records for part in (element("br"), element("code", f"{_seeds(r)} {r.key}")))]
    return element("p", element("strong", row.group.label), f" × {row.group.backbone}", *parts, id=name)


def _seeds(record: Record) -> str:
    seeds = record.cell["seeds"]
    return f"{seeds['order']}/{seeds['split']}/{seeds['init']}"


def _code_hashes(record: Record) -> tuple[str, str]:
    """Show the shortened hashes of the code that produced a record. Each shows the full hash and the role on hover."""
    core, plugins = record.provenance["core"], record.provenance["plugins"]
    parts = [f"cglsuite {core['version']}"]
    parts += [f"{p.get('role', 'plugin')}: {p.get('distribution', 'unknown')} {p['version']}" for p in plugins]
    hashes = "; ".join(f"{name} {source}" for name, source in zip(parts, (core["source"], *(p["source"] for p in plugins)), strict=True))
    return "; ".join([str(core["source"])[:8], *dict.fromkeys(str(p["source"])[:8] for p in plugins)]), hashes


def _record_row(record: Record, machine: int) -> list[Fragment]:
    short, hashes = _code_hashes(record)
    return [
        element("th", _seeds(record), scope="row", class_="mono"),
        element("td", element("code", record.key), class_="key"),
        element("td", element("code", short), title=hashes, class_="nowrap"),
        element("td", element("code", str(record.provenance.get("data") or "unknown")[:8])),
        number_cell(machine, 0),
    ]


def _environment(record: Record) -> dict[str, str]:
    known = {name: record.environment.get(name) for name in ("cpu", "cuda", "platform", "python", "torch")}
    cell = {"device": record.cell["device"], "threads": record.cell["threads"], "dtype": record.cell["dtype"]}
    return {name: str(value) for name, value in (cell | known | {"the same bits": promises([record])}).items() if value is not None}


# --- cards -----------------------------------------------------------------------------------------------------------------------


def method_cards(results: Results, catalogue: Catalogue) -> Fragment:
    """Render a card for each method with a result: its summary, citations, provider, and all hyperparameter values in these records."""
    known = {entry.name: entry for entry in catalogue.entries("method")}
    methods = list(dict.fromkeys(group.method for group in results.groups))
    cards = [_card(name, known.get(name), results) for name in methods]
    return join(cards) if cards else empty("No method has a result yet.")


def _card(name: str, entry: Entry | None, results: Results) -> Fragment:
    spec: Any = entry.spec if entry is not None else None
    category = str(getattr(spec, "category", "other")) if spec else "not installed"
    head: list[Content] = [
        element("strong", name),
        " ",
        element("span", category, class_="badge plain"),
        element("span", _summary(spec), class_="said"),
    ]
    facts = method_facts(entry)
    facts["records made by"] = "; ".join(_providers(name, results))
    hyperparameters = settings_table(getattr(spec, "hyperparameters", ()), settings_used(name, results.groups, results.preset_title))
    return element(
        "details", element("summary", *head), definition_list(facts.items()), hyperparameters, class_="card", id=anchor("method", name)
    )


def method_facts(entry: Entry | None) -> dict[str, str]:
    """Return the facts that a method's plugin declares about it. The result is empty if no plugin provides the method."""
    if entry is None:
        return {}
    spec: Any = entry.spec
    return {
        "computes": spec.summary,
        "cites": "; ".join(map(str, spec.citations)) or "nothing",
        "provided by": entry.provider,
        "problem levels": value_text(spec.levels),
        "settings": value_text(spec.settings),
        "needs": value_text(spec.needs) or "only the view of its task",
    }


def _summary(spec: Any) -> str:
    return f" {spec.summary}" if spec else " no installed plugin provides it any more"


def _providers(method: str, results: Results) -> list[str]:
    """The distributions, versions and sources of the method in the records."""
    makers: dict[str, None] = {}
    for record in results.used:
        if record.cell["method"] == method:
            for part in record.provenance["plugins"]:
                if part.get("role") == "method":
                    makers[f"{part.get('distribution', 'unknown')} {part['version']} (source {str(part['source'])[:12]})"] = None
    return list(makers)


Used = dict[str, dict[str, list[str]]]
"""By setting and value, as text, the titles of the presets whose records use it."""


def settings_used(method: str, groups: Iterable[Group], title: Callable[[str], str], used: Used | None = None) -> Used:
    """Collect the hyperparameters of a method in the records of ``groups``, and add them to ``used``."""
    used = {} if used is None else used
    for group in groups:
        if group.method == method:
            for key, value in group.records[0].cell["configuration"].items():
                section, _, name = key.partition(".")
                if section == "method":
                    used.setdefault(name, {}).setdefault(value_text(value), []).append(title(group.preset))
    return used


def settings_table(declared: Iterable[Any], used: Used) -> Fragment:
    """Render the hyperparameters that a method declares, with the values used in the records."""
    left = dict(used)
    rows = [_setting_row(h.name, value_text(h.default), h.doc, left.pop(h.name, {})) for h in declared]
    rows += [_setting_row(name, "–", "no longer declared", values) for name, values in left.items()]
    if not rows:
        return element("p", "This method has no hyperparameters.", class_="quiet")
    return table([head_cell("setting", "name"), head_cell("default"), head_cell("in these records"), head_cell("what it is")], rows)


_NAMED = 3
"""The most scenarios that are named with a value of theirs; more are counted."""


def _setting_row(name: str, default: str, doc: str, used: Mapping[str, Sequence[str]]) -> list[Fragment]:
    names = {value: list(dict.fromkeys(presets)) for value, presets in used.items()}
    where = {value: ", ".join(some) if len(some) <= _NAMED else several(len(some), "scenario") for value, some in names.items()}
    texts = list(used) if len(used) < 2 else [f"{value} ({where[value]})" for value in used]
    cells = [element("td", text, class_=kind) for text, kind in ((default, "nowrap"), ("; ".join(texts) or "–", "long"), (doc, "long"))]
    return [element("th", element("code", name), class_="name", scope="row"), *cells]
