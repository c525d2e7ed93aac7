"""Variance components as a table, whatever study computed them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from cglsuite import stats
from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.columns import Column, framed, label, words
from cglsuite.reports.kit.htmltable import exact_cell, number_cell, number_text, two_lines
from cglsuite.reports.kit.notices import Notes

__all__ = ["COMPONENT_NAMES", "components_table"]

COMPONENT_NAMES = {
    "order": "order",
    "method_order": "method × order",
    "seed": "seed",
    "method_seed": "method × seed",
    "order_seed": "order × seed",
    "rest": "rest",
}
"""Variance components in words."""


def components_table(found: Iterable[tuple[str, stats.VarianceComponents | stats.Refused, bool]], caption: str) -> Fragment:
    """Standard deviations and shares of the variance components, a row per scenario, or the reason for a refusal.

    Args:
        found: (scenario, its components, whether the performance is a fraction, which is shown in points).
    """
    notes = Notes()

    def counts(row: Any) -> Fragment:
        fitted = row[1]
        return join(notes.mark(f"{fitted.n_methods} × {fitted.n_orders} × {fitted.n_seeds}", "; ".join(fitted.notes)))

    columns = [
        label("scenario", lambda row: row[0]),
        words("methods × orders × seeds", counts, "number nowrap", "number"),
        *(Column(two_lines(COMPONENT_NAMES[name], "std (share)"), partial(_component, name=name)) for name in stats.COMPONENTS),
    ]
    shown = framed(found, columns, caption, refused=lambda row: (1, f"refused: {row[1]}") if isinstance(row[1], stats.Refused) else None)
    return join([shown, notes.listed()])


def _component(row: tuple[str, stats.VarianceComponents, bool], name: str) -> Fragment:
    _, fitted, fraction = row
    if name not in fitted.variances:
        return number_cell(None)
    deviation, share = fitted.variances[name] ** 0.5, f" ({number_text(100 * fitted.shares[name], 0)} %)"
    text = number_text(100 * deviation, 2) if fraction else number_text(deviation, 4)
    return exact_cell(text, element("span", share, class_="sd"), value=deviation)
