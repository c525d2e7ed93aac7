"""The page with the statistics of a stream. It formats the results of :mod:`cglsuite.reports.studies.anatomy.compute`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.reports.kit.figures import Panel, cumulative_figure, heat_map
from cglsuite.reports.kit.pictures import (
    ANNOTATED_TASKS,
    RASTER_DPI,
    Gallery,
    Theme,
    headline,
    labels_in,
    legend,
    mark_series,
    picture,
    plain_axes,
    point_texts,
    style_of,
    titled_figure,
    wrapped,
)
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    as_rows,
    crossed,
    empty,
    exact_cell,
    framed,
    label,
    mean_std,
    number,
    number_cell,
    number_text,
    titled,
    words,
)
from cglsuite.reports.kit.text import Notes, badge, key_box, notice, scenario_words
from cglsuite.reports.studies.anatomy.compute import WHOLE, Anatomies, Anatomy, Drift
from cglsuite.reports.studies.anatomy.published import published_beside
from cglsuite.reports.studies.nodes import cumulative

__all__ = ["degrees", "drift", "growth", "homophily", "message", "published", "scores", "shares", "sizes", "statistics_table", "theorem"]

_COLUMNS = {
    "items": ("items", 0),
    "nodes": ("nodes", 0),
    "edges": ("edges", 0),
    "pairs": ("linked pairs", 0),
    "mean_degree": ("mean degree", 2),
    "classes": ("classes", 0),
    "labels": ("labels per item", 2),
    "homophily": ("label homophily", 3),
    "cut": ("edges cut, %", 1),
}


# --- the message -----------------------------------------------------------------------------------------------------------------


def message(anatomies: Anatomies) -> Fragment:
    """Summarise the key results: homophily within tasks, drift, matching published statistics, sizes, and subjects without data."""
    lines = [element("li", element("strong", scenario_words(anatomy.name)), ": ", " ".join(_facts(anatomy))) for anatomy in anatomies.shown]
    absent = [
        notice(f"{name} is left out, because its raw data are not on this machine.", reason) for name, reason in anatomies.absent.items()
    ]
    return join([key_box(lines) if lines else empty("The raw data of this page are not on this machine."), *absent])


def _facts(anatomy: Anatomy) -> list[str]:
    """Sentences about a stream, the finding first and the sizes of its groups last."""
    what, said = anatomy.what, list[str]()
    plural = f"{what}{'es' if what.endswith('s') else 's'}"
    cut = anatomy.groups["cut"].notna().any()
    edges = f"{100 * anatomy.groups['cut'].mean():.0f}% of a {what}'s edges lead to other {plural}" if cut else ""
    if anatomy.groups["homophily"].notna().any():
        within, whole = (number_text(value, 2) for value in (_mean_of(anatomy, "homophily"), anatomy.whole["homophily"]))
        moves = "rises" if float(within) > float(whole) else "falls"
        finding = f"label homophily {moves} from {whole} in the full graph to {within} within {plural}"
        finding = f"label homophily is {whole} in the full graph and within {plural}" if within == whole else finding
        said.append(f"{finding}{f', and {edges}' if edges else ''}.")
    elif edges:
        said.append(f"{edges}.")
    if anatomy.drift is not None and anatomy.in_order:
        last, chance = (number_text(values[-1], 2) for values in (anatomy.drift.shift, anatomy.drift.chance))
        moved = f"The mean of the {anatomy.drift.of} moves by {last} of the items' spread from the first {what} to the last"
        said.append(f"{moved}; by chance it would move by {chance}.")
    frame = published_beside(anatomy)
    if len(frame):
        explained = int((frame["check"] == "holds").sum())
        more = f"; {explained} more {'differs' if explained == 1 else 'differ'} for a known reason" if explained else ""
        said.append(f"{int(frame['equal'].sum())} of {len(frame)} published statistics equal ours{more}.")
    sizes = f"{several(len(anatomy.groups), what, plural)} of {_range(anatomy.groups['nodes'], 0)} nodes"
    said = [f"{said[0][0].upper()}{said[0][1:]}", *said[1:]] if said else []
    return [*said[:-1], f"{said[-1][:-1]} [{sizes}]."] if said else [f"{sizes}."]


def _mean_of(anatomy: Anatomy, name: str) -> float:
    """The mean over groups, and over orders if there are several."""
    return float(anatomy.whole.get(f"mean_{name}", anatomy.groups[name].mean()))


def _range(values: Any, digits: int) -> str:
    low, high = number_text(float(values.min()), digits), number_text(float(values.max()), digits)
    return low if low == high else f"{low} to {high}"


# --- tables ----------------------------------------------------------------------------------------------------------------------


def sizes(anatomies: Anatomies) -> Fragment:
    """Tabulate items, nodes, edges, mean degree, classes and homophily per group. The first row is the whole data set."""
    return (
        join([_sizes(anatomy) for anatomy in anatomies.shown])
        if anatomies.shown
        else empty("The raw data of this page are not on this machine.")
    )


def _sizes(anatomy: Anatomy) -> Fragment:
    columns = [name for name in _COLUMNS if anatomy.groups[name].notna().any() or name in anatomy.whole]
    if (anatomy.groups["items"] == anatomy.groups["nodes"]).all():
        columns.remove("items")
    if anatomy.level.startswith("G"):
        columns.remove("pairs")
    rows: list[Mapping[str, Any]] = [{"title": WHOLE, **anatomy.whole}]
    rows += [{"title": name, **row} for name, row in zip(anatomy.names, as_rows(anatomy.groups), strict=True)]
    if len(anatomy.orders) > 1:
        means = {name: anatomy.whole.get(f"mean_{name}") for name in columns}
        rows.append({"title": f"mean over orders {', '.join(map(str, anatomy.orders))}", **means})
    about = f" – {anatomy.what}s of order {anatomy.orders[0]}" if anatomy.setting else f" – by {anatomy.what}"
    return framed(rows, [label(anatomy.what, "title"), *map(_counts, columns)], titled(scenario_words(anatomy.name), about))


def _counts(name: str) -> Column:
    head, digits = _COLUMNS[name]
    return amount(head, lambda row: row.get(name), (digits, 100.0 if name == "cut" else 1.0))


def published(anatomies: Anatomies) -> Fragment:
    """Compare the published statistics of these data sets with our counts."""
    frames = {scenario_words(anatomy.name): published_beside(anatomy) for anatomy in anatomies.shown}
    if not any(map(len, frames.values())):
        return empty("No paper of the suite prints statistics of these data sets in these settings.")
    return statistics_table(frames)


def statistics_table(frames: Mapping[str, pd.DataFrame]) -> Fragment:
    """Compare published statistics with ours, one table per title, with the causes of deviations. See :func:`published_beside` for the
    frames.
    """
    notes = Notes()
    rows = [{**row, "title": title} for title, frame in frames.items() for row in as_rows(frame)]
    columns = [
        label("statistic", "quantity"),
        Column("published", lambda row: exact_cell(_printed(row["published"]), value=row["published"])),
        Column("ours", lambda row: exact_cell(_format_like(row["ours"]), value=row["ours"]) if _counted(row) else number_cell(None)),
        words("equal", lambda row: (badge("yes", "good") if row["equal"] else badge("no", "note")) if _counted(row) else "–"),
        words("cause of the deviation", lambda row: join(_cause_text(row)), "long"),
        words("paper", lambda row: join(notes.mark(f"{row['paper']}, {row['dataset']}", row["remark"])), "nowrap"),
    ]
    about = (
        "Equal: our number is the printed one after rounding or truncating it to the printed digits (AGALE prints 3K and 37K). We count "
        "edges as the data list them. A cause is a rule that yields the printed number from our counts or from other printed numbers; its "
        "badge shows the result of that check. Footnotes list contradictions within the papers."
    )
    return join([framed(rows, columns, about, by="title"), notes.listed()])


def _counted(row: Mapping[str, Any]) -> bool:
    return bool(row["ours"] == row["ours"])


def _cause_text(row: Mapping[str, Any]) -> list[Content]:
    if not row["cause"]:
        return []
    kind = {"holds": "good", "fails": "bad"}.get(row["check"], "plain")
    return [f"{row['cause']} ", badge(row["check"], kind)]


def _printed(value: float) -> str:
    """A published number with its original digits."""
    return number_text(value, len(f"{value:.6f}".rstrip("0").partition(".")[2]))


def _format_like(value: float) -> str:
    return number_text(value, 0 if value == int(value) else 3 if value < 10 else 1)


def scores(anatomies: Anatomies) -> Fragment:
    """Tabulate the label homophily of each task with every method's score after the last task."""
    shown = [anatomy for anatomy in anatomies.shown if len(anatomy.scores)]
    if not shown:
        return empty("There are no records. Pass a campaign with finished cells.")
    return join([_scores(anatomy) for anatomy in shown])


def _scores(anatomy: Anatomy) -> Fragment:
    scores = {(row["task"], row["label"]): row for row in as_rows(anatomy.scores)}
    shown = mean_std("", (1, 100.0) if anatomy.percent else (3, 1.0)).cell
    homophily = Column(_COLUMNS["homophily"][0], lambda task: _counts("homophily").cell(anatomy.groups.iloc[task]))
    columns = [label(anatomy.what, lambda task: anatomy.names[task]), *([homophily] if anatomy.groups["homophily"].notna().any() else [])]
    columns += [crossed(name, scores, name, shown) for name in dict.fromkeys(anatomy.scores["label"])]
    n = ", ".join(sorted({str(n) for n in anatomy.scores["n"]}))
    unit = ", %" if anatomy.percent else ""
    about = (
        f" – {anatomy.measure}{unit} on each task after the last; order {anatomy.orders[0]}, {n} record{'' if n == '1' else 's'} per method"
    )
    return framed(range(len(anatomy.names)), columns, titled(scenario_words(anatomy.name), about))


# --- figures ---------------------------------------------------------------------------------------------------------------------


def growth(anatomies: Anatomies) -> Gallery | Fragment:
    """Plot the growth of nodes, edges and classes from group to group, as in Figure 2 (a to c) of BeGin (Ko et al.)."""
    growing = [anatomy for anatomy in anatomies.shown if anatomy.in_order and len(anatomy.groups) > 1]
    return _gallery([_growth(anatomy) for anatomy in growing], "There is a single group, or the groups have no order.")


def _growth(anatomy: Anatomy) -> Any:
    known = [name for name in anatomy.growth if anatomy.growth[name].notna().all()]
    said = "; ".join(f"{name} {', '.join(number_text(n, 0) for n in anatomy.growth[name])}" for name in known)
    title = f"Growth of the data, {scenario_words(anatomy.name)}"
    draw = partial(growth_figure, anatomy.groups[known], anatomy.growth[known], title=title, item_name=anatomy.what)
    return picture(draw, f"Nodes, edges and classes of {anatomy.name} up to each {anatomy.what}: {said}")


def shares(anatomies: Anatomies) -> Gallery | Fragment:
    """Plot the share of every class in every group."""
    return _gallery(
        [_shares(anatomy) for anatomy in anatomies.shown if anatomy.shares is not None and len(anatomy.groups) > 1],
        "These data sets have no classes.",
    )


def _shares(anatomy: Anatomy) -> Any:
    every = anatomy.shares
    assert every is not None  # noqa: S101 - chosen by the caller
    classes = np.flatnonzero((every > 0).any(axis=0))
    table_, names = every[:, classes], [str(c) for c in classes]

    title = f"Share of labels by class (%)\n{scenario_words(anatomy.name)}"
    draw = partial(share_figure, table_, names, title=title, item_name=anatomy.what)
    few = zip(anatomy.names[:12], table_, strict=False)
    largest = [f"{name}: class {classes[int(row.argmax())]} {100 * row.max():.0f}%" for name, row in few]
    return picture(draw, f"Class shares by {anatomy.what} in {anatomy.name}. Largest: {'; '.join(largest)}")


def drift(anatomies: Anatomies) -> Gallery | Fragment:
    """Plot the drift of the mean features from group to group."""
    moving = [(anatomy, anatomy.drift) for anatomy in anatomies.shown if anatomy.drift is not None]
    return _gallery([_drift(anatomy, moved) for anatomy, moved in moving], "There is a single group, or there are no features.")


def _drift(anatomy: Anatomy, moved: Drift) -> Any:
    title = f"Mean of {moved.of}, {scenario_words(anatomy.name)}"
    shift = ", ".join(f"{value:.2f}" for value in moved.shift)
    alt = f"Drift of the mean {moved.of} in {anatomy.name}; distance from the first: {shift}"
    return picture(partial(drift_figure, moved, title=title, item_name=anatomy.what, in_order=anatomy.in_order), alt)


def homophily(anatomies: Anatomies) -> Gallery | Fragment:
    """Plot the label homophily of each group and of the whole graph, together with the methods' scores if there are records."""
    shown = [anatomy for anatomy in anatomies.shown if anatomy.groups["homophily"].notna().any()]
    return _gallery([_homophily(anatomy) for anatomy in shown], "Label homophily is defined for labelled nodes only.")


def _homophily(anatomy: Anatomy) -> Any:
    values = anatomy.groups["homophily"].to_numpy(dtype=np.float64)
    scored = anatomy.scores if anatomy.percent else anatomy.scores.iloc[:0]
    order = list(dict.fromkeys(scored["label"])) if len(scored) else []

    look: dict[str, Any] = {
        "title": f"Label homophily, {scenario_words(anatomy.name)}",
        "item_name": anatomy.what,
        "ylabel": anatomy.measure,
    }
    draw = partial(homophily_figure, values, anatomy.whole["homophily"], scored, order=order, **look)
    said = ", ".join(f"{value:.2f}" for value in values)
    return picture(draw, f"Label homophily by {anatomy.what} in {anatomy.name}: {said}; full graph {anatomy.whole['homophily']:.2f}")


def theorem(anatomies: Anatomies) -> Fragment:
    """Compare AGALE's Theorem 1 with the data: the share of edges that are at least as homophilous in their task as in the whole graph."""
    shown = [anatomy for anatomy in anatomies.shown if anatomy.groups["single_edges"].notna().any()]
    rows = [
        {"title": scenario_words(anatomy.name), "group": name, **row}
        for anatomy in shown
        for name, row in zip(anatomy.names, as_rows(anatomy.groups), strict=True)
    ]
    columns = [
        *(label("task", "group"), number("edges with a single-label end", "single_edges"), amount("kept, %", "single_kept", (1, 100.0))),
        *(number("other edges", "several_edges"), amount("kept, %", "several_kept", (1, 100.0))),
        amount("published bound, %", "several_claimed", (1, 100.0)),
    ]
    about = (
        "Kept: the edge is at least as homophilous with respect to the labels of its task as with respect to all labels. Theorem 1 of "
        "AGALE: all edges with a single-label end are kept, and the others with a probability of at least 1 − (1 − h)^K, where h is their "
        "homophily in the whole graph and K the number of labels per task (mean over these edges). The second part is not true in general."
    )
    return framed(rows, columns, about, by="title", none="The theorem applies only to multi-label nodes in tasks.")


def degrees(anatomies: Anatomies) -> Gallery | Fragment:
    """Plot the distributions of degree and node homophily for the whole data set and for its first, middle and last groups."""
    return _gallery([_degrees(anatomy) for anatomy in anatomies.shown], "The raw data of this page are not on this machine.")


def _degrees(anatomy: Anatomy) -> Any:
    names = list(dict.fromkeys([WHOLE, anatomy.names[0], anatomy.names[len(anatomy.names) // 2], anatomy.names[-1]]))
    top = max(float(anatomy.degrees[WHOLE].max(initial=1.0)), 1.0)
    curves = {name: cumulative(anatomy.degrees[name]) for name in names}
    panels = [Panel("degree", curves, (0.0, 1.1 * top), logarithmic=not anatomy.level.startswith("G"))]
    valued = {name: anatomy.homophilies[name] for name in names if name in anatomy.homophilies and anatomy.homophilies[name].size}
    if valued:
        panels.append(Panel("label homophily of nodes", {name: cumulative(values) for name, values in valued.items()}, (0.0, 1.0)))
    unit = "graphs" if anatomy.level.startswith("G") else "nodes"

    draw = partial(cumulative_figure, panels, title=f"Degrees, {scenario_words(anatomy.name)}", order=names, unit=unit)
    means = ", ".join(f"{name} {anatomy.degrees[name].mean():.1f}" for name in names if anatomy.degrees[name].size)
    return picture(draw, f"Distribution of degrees in {anatomy.name}. Means: {means}")


def _gallery(pictures: Sequence[Any], otherwise: str) -> Gallery | Fragment:
    return Gallery(tuple(pictures)) if pictures else empty(otherwise)


# Figures: class shares over time, drift of the mean features, and homophily of tasks with scores.


_NUMBERED = 40
"""The number of groups above which only some points of a path are numbered."""


def share_figure(shares: NDArray[np.float64], classes: Sequence[str], theme: Theme, *, title: str, item_name: str) -> Figure:
    """Plot the share of every class in every group as a heat map, with one row per class and one column per group.

    Args:
        shares: float64 [G, C]. classes: names of the columns. title: may contain line breaks. what: the noun for one group.
    """
    n_groups, n_classes = shares.shape
    annotated = n_groups <= ANNOTATED_TASKS and n_classes <= 24
    cell = (0.4, 0.26) if annotated else (max(0.07, min(0.4, 5.0 / n_groups)), max(0.06, min(0.26, 4.2 / n_classes)))
    inner = (cell[0] * n_groups, cell[1] * n_classes)
    left, right, below, above = 0.66, 0.14 if annotated else 0.7, 0.46, 0.36
    lines = [line for part in title.split("\n") for line in wrapped(part, max(inner[0] + right + 0.5, 3.4), 9.5)]
    width, height = max(inner[0] + left + right, 3.6), inner[1] + below + above + 0.17 * (len(lines) - 1)
    figure = Figure(figsize=(width, height), dpi=RASTER_DPI)
    axes = figure.add_axes((left / width, below / height, inner[0] / width, inner[1] / height))
    scale = ((left + inner[0] + 0.12) / width, below / height, 0.12 / width, inner[1] / height)
    top = max(0.01, float(shares.max()))
    heat_map(axes, shares.T, theme, bounds=(0.0, top), percent=True, bar=None if annotated else scale)
    _spaced_ticks(axes.set_xticks, [str(k + 1) for k in range(n_groups)], cell[0], 0.24)
    _spaced_ticks(axes.set_yticks, classes, cell[1], 0.16)
    axes.set_xlabel(item_name)
    axes.set_ylabel("class")
    plain_axes(axes, theme)
    headline(figure, lines, theme, points=9.5, left=0.06)
    return figure


def _spaced_ticks(place: Any, names: Sequence[str], cell: float, room: float) -> None:
    """Put ticks in the middle of cells, as many as fit."""
    step = max(1, int(np.ceil(room / cell)))
    shown = list(range(0, len(names), step))
    place([i + 0.5 for i in shown], [names[i] for i in shown])


def growth_figure(alone: pd.DataFrame, so_far: pd.DataFrame, theme: Theme, *, title: str, item_name: str) -> Figure:
    """Plot one panel per column. Bars show single groups, and the line shows all groups so far."""
    inner, plot_height, gap, left, below = 1.85, 1.75, 0.72, 0.66, 0.86
    width = left + len(so_far.columns) * (inner + gap) - gap + 0.14
    lines = wrapped(title, width - 0.4, 10.5)
    height = plot_height + below + 0.44 + 0.19 * len(lines)
    figure, x = Figure(figsize=(width, height)), np.arange(1, len(so_far) + 1)
    for k, name in enumerate(so_far):
        place = ((left + k * (inner + gap)) / width, below / height, inner / width, plot_height / height)
        axes = figure.add_axes(place)
        axes.bar(x, alone[name], color=theme.rule, width=0.72, label=f"of the {item_name}")
        axes.plot(x, so_far[name], color=theme.lines[0], marker="o", markersize=3.5, linewidth=1.6, label="of all so far")
        axes.set_title(f"({'abc'[k]}) {name}", loc="left", fontsize=9, color=theme.ink)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlim(0.4, len(x) + 0.6)
        axes.set_ylim(0, None)
        axes.set_xlabel(item_name)
        plain_axes(axes, theme, "y", floor=True)
    headline(figure, lines, theme)
    legend(figure, 2, left=0.55, handles=figure.axes[0].get_legend_handles_labels()[0][::-1])
    return figure


def drift_figure(drift: Drift, theme: Theme, *, title: str, item_name: str, in_order: bool) -> Figure:
    """Plot the numbered group means in their principal plane (left) and their distance from the first, compared with chance (right)."""
    n = len(drift.shift)
    lines = wrapped(title, 6.4, 10.5)
    inner, plot_height, below, above, gap, left = 2.75, 2.4, 0.86, 0.24 + 0.19 * len(lines), 0.75, 0.62
    width, height = left + 2 * inner + gap + 0.14, plot_height + below + above
    figure = Figure(figsize=(width, height))
    plane = figure.add_axes((left / width, below / height, inner / width, plot_height / height))
    places = drift.places if drift.places.shape[1] == 2 else np.column_stack([drift.places[:, 0], np.zeros(n)])
    if in_order:
        plane.plot(places[:, 0], places[:, 1], color=theme.rule, linewidth=1.3, zorder=1)
    plane.plot(places[:, 0], places[:, 1], linestyle="none", marker="o", markersize=4.5, color=theme.lines[0], zorder=2)
    every = max(1, int(np.ceil(n / _NUMBERED)))
    for k in range(0, n, every):
        plane.annotate(str(k + 1), places[k], xytext=(4, 3), textcoords="offset points", fontsize=8, color=theme.ink)
    plane.margins(0.12)
    parts = [f"component {d + 1} ({100 * share:.0f}%)" for d, share in enumerate(drift.explained)]
    plane.set_xlabel(parts[0])
    plane.set_ylabel(parts[1] if len(parts) > 1 else "")
    for axis in (plane.xaxis, plane.yaxis):
        axis.set_major_locator(MaxNLocator(4))
    if len(parts) < 2:
        plane.set_yticks([])
    plain_axes(plane, theme, "both", floor=True)
    distance = figure.add_axes(((left + inner + gap) / width, below / height, inner / width, plot_height / height))
    x = np.arange(1, n + 1)
    distance.bar(x, drift.shift, color=theme.lines[0], width=0.7, label=f"from {item_name} 1")
    distance.step(
        np.r_[0.5, x + 0.5], np.r_[drift.chance[:1], drift.chance], where="pre", color=theme.lines[1], linewidth=1.6, label="by chance"
    )
    distance.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    distance.set_xlim(0.4, n + 0.6)
    distance.set_xlabel(item_name)
    distance.set_ylabel("distance / spread of items")
    plain_axes(distance, theme, "y", floor=True)
    headline(figure, lines, theme)
    legend(figure, 2, left=left + inner + gap - 0.1)
    return figure


def homophily_figure(
    homophily: NDArray[np.float64],
    overall: float,
    scores: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    item_name: str,
    order: Sequence[str],
    ylabel: str = "score",
) -> Figure:
    """Plot the label homophily of each group as bars and of the whole graph as a dashed line. The final scores of methods are lines.

    Args:
        homophily: float64 [G]. scores: columns label, task (from 0), mean (fractions); may be empty. order: labels.
        ylabel: the axis label of the scores.
    """
    n = len(homophily)
    labels = labels_in(scores, order) if len(scores) else []
    figure, axes = titled_figure(title, theme, 6.2, 2.6, rows=int(np.ceil((len(labels) + 2) / 3)), margins=0.76)
    x = np.arange(1, n + 1)
    axes.bar(x, 100 * homophily, color=theme.rule, width=0.72, label="label homophily")
    axes.axhline(100 * overall, color=theme.ink, linestyle=(0, (5, 2)), linewidth=1.3, label="homophily, full graph")
    for name in labels:
        part = scores[scores["label"] == name].sort_values("task")
        look = style_of(name, order, theme)
        (line,) = axes.plot(part["task"] + 1, 100 * part["mean"], markersize=4.5, linewidth=1.5, label=name, **look)
        where = [f"{item_name} {task + 1:.0f}" for task in part["task"]]
        mark_series(name, line, points=point_texts(where, part["mean"], part["std"], percent=True))
    low = min(0.0, 100 * float(scores["mean"].min())) if len(scores) else 0.0
    axes.set_ylim(1.05 * low, 104)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    axes.set_xlim(0.4, n + 0.6)
    axes.set_xlabel(item_name)
    axes.set_ylabel(f"homophily; {ylabel} (%)" if labels else "label homophily (%)")
    plain_axes(axes, theme, "y", floor=True)
    legend(figure, 3, hides=labels)
    return figure
