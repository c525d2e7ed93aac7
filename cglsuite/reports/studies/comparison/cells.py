"""Shared cells, captions and refusals of a comparison of methods: values in the metric's unit, with exact ones behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.htmltable import amount_cell, number_text, titled
from cglsuite.reports.kit.notices import notice

if TYPE_CHECKING:
    from cglsuite.reports.studies.comparison.compute import Comparison

__all__ = ["amount_text", "caption", "detectable_cell", "percent_text", "range_text", "refused", "showable", "unit", "unit_text"]


def amount_text(value: float, percent: bool) -> str:
    """A difference in page units."""
    return f"{value:g} point{'' if value == 1 else 's'}" if percent else f"{value:g}"


def unit(one: Comparison, digits: int = 1) -> tuple[int, float]:
    """The metric's unit: digits and scale; real-valued metrics have three digits more."""
    return digits if one.percent else digits + 3, one.scale


def unit_text(one: Comparison, value: float, digits: int = 1, plus: bool = False) -> str:
    """A value in the metric's unit."""
    return number_text(one.scale * value, unit(one, digits)[0], plus)


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


def showable(one: Comparison, value: float) -> bool:
    """Whether a difference can occur: two fractions are at most 100 points apart."""
    return not (one.percent and value > 1.0)


def detectable_cell(one: Comparison, value: float) -> Fragment:
    """The smallest difference that a test can be expected to find, unless none can be so large."""
    if not showable(one, value):
        return element("td", "cannot be shown", class_="quiet")
    return amount_cell(value, *unit(one))


def caption(one: Comparison, about: str) -> Fragment:
    """A table's caption: the scenario and a description."""
    return titled(one.name, f" – {about}")


def refused(one: Comparison, reason: str) -> Fragment:
    """Shown in place of a table that the data do not support."""
    return notice(f"{one.name}: refused: {reason}.")
