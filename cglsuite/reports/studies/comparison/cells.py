"""Shared cells, captions and refusals of a comparison of methods: values in the metric's unit, with exact ones behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.htmltable import exact_cell, number_cell, number_text
from cglsuite.reports.kit.notices import notice

if TYPE_CHECKING:
    from cglsuite.reports.studies.comparison.compute import Comparison

__all__ = ["amount", "caption", "percent_text", "range_text", "refused", "unit_cell", "unit_text"]


def amount(value: float, percent: bool) -> str:
    """A difference in page units."""
    return f"{value:g} point{'' if value == 1 else 's'}" if percent else f"{value:g}"


def unit_text(one: Comparison, value: float, digits: int = 1, plus: bool = False) -> str:
    """A value in the metric's unit."""
    return number_text(one.scale * value, digits if one.percent else digits + 3, plus)


def percent_text(share: float) -> str:
    """A share in percent.

    Example:
        >>> percent_text(0.95)
        '95 %'
    """
    return f"{100 * share:g} %"


def range_text(one: Comparison, low: float, high: float) -> str:
    """Both ends of an interval of a difference."""
    return f"{unit_text(one, low, plus=True)} to {unit_text(one, high, plus=True)}"


def unit_cell(one: Comparison, value: float, digits: int = 1, plus: bool = False) -> Fragment:
    """A value in the metric's unit, with the exact one behind it; a dash if there is none."""
    if value != value:
        return number_cell(None)
    return exact_cell(unit_text(one, value, digits, plus), value=value)


def caption(one: Comparison, about: str) -> Fragment:
    """A table's caption: the scenario and a description."""
    return join([element("strong", one.name), f" – {about}"])


def refused(one: Comparison, reason: str) -> Fragment:
    """Shown in place of a table that the data do not support."""
    return notice(f"{one.name}: refused: {reason}.")
