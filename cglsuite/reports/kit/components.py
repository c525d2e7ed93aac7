"""Variance components as a table, whatever study computed them."""

from __future__ import annotations

from collections.abc import Iterable

from cglsuite import stats
from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.htmltable import exact_cell, head_cell, number_cell, number_text, row_head, table, two_lines
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
    rows, notes = [], Notes()
    for name, fitted, fraction in found:
        if isinstance(fitted, stats.Refused):
            rows.append([row_head(name), element("td", f"refused: {fitted}", class_="long quiet", colspan=len(stats.COMPONENTS) + 1)])
            continue
        counts = f"{fitted.n_methods} × {fitted.n_orders} × {fitted.n_seeds}"
        cells = [element("td", *notes.mark(counts, "; ".join(fitted.notes)), class_="number nowrap")]
        for component in stats.COMPONENTS:
            if component not in fitted.variances:
                cells.append(number_cell(None))
                continue
            deviation, share = fitted.variances[component] ** 0.5, f" ({number_text(100 * fitted.shares[component], 0)} %)"
            text = number_text(100 * deviation, 2) if fraction else number_text(deviation, 4)
            cells.append(exact_cell(text, element("span", share, class_="sd"), value=deviation))
        rows.append([row_head(name), *cells])
    head = [head_cell("scenario", "name"), head_cell("methods × orders × seeds", "number")]
    head += [two_lines(COMPONENT_NAMES[component], "std (share)") for component in stats.COMPONENTS]
    return join([table(head, rows, caption), notes.listed()])
