"""Methods across scenarios: who is best where, and each method's mean rank. Scores of different scenarios are never averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.htmltable import exact_cell, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.site.boards import Board, Row

__all__ = ["SHADES", "Standing", "across", "standings"]

SHADES = 5
"""Steps of the shading, from the worst (0) to the best score of a scenario."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method in all scenarios.

    Args:
        name: the method, with its backbone if any scenario has several. rows: by the board's preset. ranks: by preset; 1 is the best, ties
            share their mean rank.
    """

    name: str
    rows: Mapping[str, Row]
    ranks: Mapping[str, float]

    @property
    def mean_rank(self) -> float:
        """Over the scenarios in which it has a score."""
        return sum(self.ranks.values()) / len(self.ranks)


def standings(boards: Sequence[Board]) -> list[Standing]:
    """All methods with a score, best mean rank first; those that were run in more scenarios come before equals."""
    several = any(len(board.backbones) > 1 for board in boards)
    rows: dict[str, dict[str, Row]] = {}
    ranks: dict[str, dict[str, float]] = {}
    for board in boards:
        scored = [row for row in board.rows if board.first.name in row.scores]
        for row in scored:
            name = f"{row.group.label} × {row.group.backbone}" if several else row.group.label
            rows.setdefault(name, {})[board.preset] = row
            ranks.setdefault(name, {})[board.preset] = _rank(board, row, scored)
    found = [Standing(name=name, rows=rows[name], ranks=ranks[name]) for name in rows]
    return sorted(found, key=lambda one: (one.mean_rank, -len(one.ranks)))


def across(boards: Sequence[Board], *, heading: bool = True) -> Fragment | None:
    """A table of methods against scenarios, shaded within each scenario; ``None`` with fewer than two scenarios or methods.

    ``heading``: as a section of its own.
    """
    found = standings(boards)
    if len(boards) < 2 or len(found) < 2:
        return None
    head = [head_cell("method", "name"), head_cell("mean rank ↓", "number")]
    head += [
        head_cell(f"{board.title}, {board.first.label}{f' {board.first.unit}' if board.first.unit else ''}", "number") for board in boards
    ]
    rows = []
    for one in found:
        lacking = f" ({len(one.ranks)} of {len(boards)})" if len(one.ranks) < len(boards) else ""
        rank = exact_cell(f"{number_text(one.mean_rank, 1)}{lacking}", value=one.mean_rank)
        rows.append([row_head(one.name), rank, *(_score(board, one.rows.get(board.preset)) for board in boards)])
    about = "Ranks compare methods within a scenario; scores of different scenarios are not comparable and are never averaged. Darker is "
    about += "better within a column. Methods that were run in more scenarios have more ranks in their mean."
    if not heading:
        return element("div", table(head, rows, about), class_="across")
    title = element("h3", "Across scenarios", id="across-title")
    return element("section", title, table(head, rows, about), class_="across", aria_labelledby="across-title")


def _rank(board: Board, row: Row, scored: Sequence[Row]) -> float:
    sign = 1.0 if board.first.better == "up" else -1.0
    own = sign * row.scores[board.first.name].mean
    others = [sign * other.scores[board.first.name].mean for other in scored if other is not row]
    return 1.0 + sum(value > own for value in others) + 0.5 * sum(value == own for value in others)


def _score(board: Board, row: Row | None) -> Fragment:
    if row is None:
        return number_cell(None)
    column = board.first
    mean = row.scores[column.name].mean
    text = number_text(mean * column.scale, column.digits)
    return element("td", text, class_=f"number shade-{_shade(board, mean)}", data_value=repr(mean))


def _shade(board: Board, mean: float) -> int:
    """From 0, the worst score of the scenario, to ``SHADES - 1``, the best."""
    means = [row.scores[board.first.name].mean for row in board.rows if board.first.name in row.scores]
    low, high = (min(means), max(means)) if board.first.better == "up" else (max(means), min(means))
    share = (mean - low) / (high - low) if high != low else 0.5
    return min(SHADES - 1, int(share * SHADES))
