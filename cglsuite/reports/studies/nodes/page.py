"""The page of single nodes predicted better or worse than the mean of their task.

Formats what :mod:`cglsuite.reports.studies.nodes.compute` computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.figures import Panel, cumulative_figure
from cglsuite.reports.kit.htmltable import empty, head_cell, mean_std_cell, number_cell, row_head, table
from cglsuite.reports.kit.notices import key_box
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results.overview import preset_caption
from cglsuite.reports.studies.nodes.compute import ATTRIBUTES, GROUPS, cumulative, group_summary

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.studies.nodes.compute import NodeItems

__all__ = ["message", "node_distributions", "node_groups"]


def message(items: NodeItems) -> Fragment:
    """Key results: per method what the nodes that are predicted better than their task's mean have, beside the others."""
    lines = []
    rows = {(row["method"], row["group"]): row for row in as_rows(group_summary(items.frame))}
    for method in dict.fromkeys(method for method, _ in rows):
        better, worse = rows[method, "better"], rows[method, "worse"]
        said = [
            f"{words} {better[f'{name}_mean']:.2f} against {worse[f'{name}_mean']:.2f}"
            for name, words in ATTRIBUTES.items()
            if better[f"{name}_n"] and worse[f"{name}_n"] and better[f"{name}_mean"] != worse[f"{name}_mean"]
        ]
        counts = f"{better['n']} items are predicted better than the mean of their task, {worse['n']} worse"
        lines.append(element("li", element("strong", method), f": {counts}{'; mean ' if said else ''}{', '.join(said)}."))
    return key_box(lines)


def node_groups(items: NodeItems) -> Fragment:
    """Per method, the items better and worse than the mean of their task: their number, and mean ± deviation of their attributes."""
    rows: list[list[Fragment]] = []
    head = [head_cell("method", "name"), head_cell("answered"), head_cell("items", "number"), head_cell("share, %", "number")]
    head += [head_cell(words, "number") for words in ATTRIBUTES.values()]
    frame = group_summary(items.frame)
    for row in as_rows(frame):
        cells = [element("td", _answered(row["group"])), number_cell(row["n"], 0), number_cell(100 * row["share"], 1)]
        for name in ATTRIBUTES:
            known = int(row[f"{name}_n"])
            remark = f" (n={known})" if known != row["n"] else ""
            digits = 3 if name == "homophily" else 2
            cells.append(
                mean_std_cell(row[f"{name}_mean"], row[f"{name}_std"], scale=1.0, digits=digits, remark=remark)
                if known
                else number_cell(None)
            )
        rows.append([row_head(row["method"]), *cells])
    runs = items.frame[["order", "split", "init"]].drop_duplicates()
    seeds = "; ".join(f"{row['order']}/{row['split']}/{row['init']}" for row in as_rows(runs))
    score = "F1 of the predicted set of labels" if items.several_labels else "1 for the right class, else 0"
    about = f"mean ± sample standard deviation over items; an item's score: {score}; seeds (order/split/init): {seeds}"
    return table(head, rows, preset_caption(items.preset, [items.variant] if items.variant else [], about))


def node_distributions(items: NodeItems) -> Gallery | Fragment:
    """One figure per method: the distributions of homophily, degree and, where it varies, number of labels in both groups of items.

    A method that answers all items of a task equally well has no groups, and no figure.
    """
    frame, summary = items.frame, as_rows(group_summary(items.frame))
    quantities = ["homophily", *(["labels"] if frame["labels"].nunique() > 1 else []), "degree"]

    def one(method: str) -> Any:
        part = frame[frame["method"] == method]
        panels = [_node_panel(part, frame[name], name) for name in quantities]
        said = [
            f"{ATTRIBUTES[name]}: " + ", ".join(f"{row['group']} {row[f'{name}_mean']:.2f}" for row in summary if row["method"] == method)
            for name in quantities
        ]
        sizes = ", ".join(f"{int(part[group].sum())} {group}" for group in GROUPS)

        def draw(theme: Theme) -> Any:
            return cumulative_figure(panels, theme, title=method, order=[_answered(group) for group in GROUPS])

        alt = f"Distributions for {method} in {items.preset}, {sizes} than the mean of their task. Means: {'; '.join(said)}"
        return picture(draw, alt, group=scenario_words(items.preset))

    grouped = frame[frame[list(GROUPS)].any(axis=1)]
    pictures = tuple(one(str(method)) for method in dict.fromkeys(grouped["method"]))
    return Gallery(pictures) if pictures else empty("Every method answers all items of a task equally well.")


def _answered(group: str) -> str:
    return f"{group} than the mean"


def _node_panel(part: pd.DataFrame, everything: pd.Series, name: str) -> Any:
    """The distributions of one attribute in both groups; the axis is the same for all methods."""
    values = {group: part.loc[part[group], name].dropna().to_numpy(dtype=np.float64) for group in GROUPS}
    curves = {_answered(group): cumulative(some) for group, some in values.items() if some.size}
    if name == "homophily":
        bounds = (0.0, 1.0)
    else:
        bounds = (0.9 * float(everything.min()), 1.1 * max(float(everything.max()), 1.0))
    return Panel(ATTRIBUTES[name], curves, bounds, logarithmic=name == "degree")
