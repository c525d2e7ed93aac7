"""The page on order sensitivity. It formats the results of :mod:`cglsuite.reports.studies.orders.compute`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.figures import MANY_POINTS, box_rows, mesh, spread_evenly
from cglsuite.reports.kit.pictures import (
    DASHES,
    Gallery,
    Theme,
    frameless,
    headline,
    ink_on,
    labels_in,
    legend,
    legend_columns,
    mark_series,
    picture,
    plain_axes,
    row_titles,
    style_of,
    text_points,
    titled_figure,
    wrapped,
)
from cglsuite.reports.kit.tables import (
    COMPONENT_NAMES,
    Column,
    as_rows,
    components_table,
    empty,
    framed,
    label,
    mean_std,
    number,
    number_cell,
    number_text,
    row_head,
    two_lines,
    words,
)
from cglsuite.reports.kit.text import Notes, key_box, notice, tile
from cglsuite.reports.results.measures import TASK_MEASURES
from cglsuite.reports.results.runs import problems, provenance
from cglsuite.reports.results.summary import notices
from cglsuite.reports.studies.orders import compute as orders
from cglsuite.reports.studies.orders.compute import Design, OrderStudy
from cglsuite.stats import af_bound

__all__ = [
    "bound",
    "comparisons",
    "component_shares",
    "components",
    "flips",
    "forgetting",
    "items",
    "left_out",
    "overview",
    "problems",
    "provenance",
    "sensitivity",
    "spreads",
]

_NOTHING = "No cell of these campaigns is finished yet."


# --- the study -------------------------------------------------------------------------------------------------------------------


def overview(study: OrderStudy) -> Fragment:
    """Show the runs, their numbers of orders and seeds, and warnings about the numbers."""
    first = study.results[0]
    planned = sum(len(result.cells) for result in study.results)
    tiles = [(planned, "cells planned"), (len(study.cells), "in use"), (study.cells["order"].nunique(), "orders")]
    tiles += [(study.cells["seed"].nunique(), "seeds (split/init)"), (len(study.methods), "methods"), (len(study.designs), "scenarios")]
    title = element("p", element("strong", first.title), class_="lead")
    description = element("p", first.campaign.description) if first.campaign.description else None
    twice = f" {study.repeated:,} cells were run in two of them (same order and seeds) and count once." if study.repeated else ""
    pooled = (
        [element("p", f"Pooled with: {'; '.join(result.title for result in study.results[1:])}.{twice}")] if len(study.results) > 1 else []
    )
    listed = element("ul", *(tile(value, label) for value, label in tiles), class_="tiles")
    return join([title, _message(study), description, *pooled, listed, *_notices(study)])


def _message(study: OrderStudy) -> Fragment | None:
    """Key results: per design how often the best method beats the next, and the lowest and highest AOPD against their nulls."""
    frame, wins, lines = orders.sensitivity(study).dropna(subset=["aopd"]), orders.win_tables(study), []
    for key, design in study.designs.items():
        part = frame[frame["design"] == key]
        part = part[part["unit"] == part["unit"].iloc[0]].sort_values("aopd", kind="stable") if len(part) else part
        said = [_best_of_orders(study, wins[key])] if key in wins else []
        said += [_range_of_aopd(design, as_rows(part))] if len(part) > 1 else []
        if any(said):
            lines.append(element("li", element("strong", design.title), f": {' '.join(filter(None, said))}"))
    return key_box(lines) if lines else None


def _range_of_aopd(design: Design, rows: Sequence[Mapping[str, Any]]) -> str:
    digits, scale = design.unit
    ends = rows[0], rows[-1]
    low, high = (f"{scale * row['aopd']:.{digits}f}" for row in ends)
    said = f"{ends[0]['method']} depends least on the order (AOPD {low}), {ends[1]['method']} most ({high})"
    about = f"per {rows[0]['unit']}, {rows[0]['n_orders']} orders"
    if any(row["no_null"] for row in ends):
        return f"{said} [{about}, without a null]."
    pairs = " and ".join(f"{scale * row['aopd_k']:.{digits}f} against a null of {scale * row['null_aopd']:.{digits}f}" for row in ends)
    return f"{said} [{about}; with {'/'.join(f'{k:.0f}' for k in dict.fromkeys(row['k'] for row in ends))} runs {pairs}]."


def _best_of_orders(study: OrderStudy, shares: pd.DataFrame) -> str:
    """The best learner by the share of orders in which it beats another; references do not compete."""
    competing = [name for name in shares.index if all(result.competes(str(name)) for result in study.results)]
    if len(competing) < 2:
        return ""
    among = shares.loc[competing, competing]
    first, second = among.sum(axis=1).sort_values(ascending=False, kind="stable").index[:2]
    return f"{first} is best: it beats {second}, the next best, in {100 * among.loc[first, second]:.0f}% of the orders."


def _notices(study: OrderStudy) -> Iterable[Fragment]:
    for result in study.results:
        yield from notices(result)
    for design, n in study.cells.groupby("design")["source"].nunique().items():
        if n > 1:
            title = study.designs[str(design)].title
            yield notice(f"{title}: its records were made by {n} versions of the code, which may explain differences between orders.")
    if study.contradicting:
        differing = f"{study.contradicting:,} of {study.repeated:,} cells that were run twice (same order and seeds) have different results"
        yield notice(f"{differing}. The first is used. On one machine with one version of the code they would be equal.")


# --- the spread over orders ------------------------------------------------------------------------------------------------------


def sensitivity(study: OrderStudy) -> Fragment:
    """Tabulate, per design and unit, the AOPD and MOPD of every method with interval, null and published values."""
    frame = orders.sensitivity(study)
    if frame.empty:
        return empty(_NOTHING)
    parts = frame.groupby(["design", "unit"], sort=False)
    return join(_sensitivity_table(study.designs[str(design)], str(unit), part) for (design, unit), part in parts)


def _sensitivity_table(design: Design, unit: str, frame: pd.DataFrame) -> Fragment:
    rows, notes = as_rows(frame), Notes()
    published = any(row["published"] for row in rows)
    ends = any(row[f"{name}_low"] == row[f"{name}_low"] for row in rows for name in ("aopd", "mopd"))
    draws = sorted(set(frame["k"].dropna()))
    drawn = f"k = {draws[0]:.0f}" if len(draws) == 1 else "k runs"

    def repeats(row: Mapping[str, Any]) -> Fragment:
        return join(notes.mark(number_text(row["n_repeats"], 0), "" if row["seeds_shared"] else _UNSHARED))

    columns = [label("method"), number("orders", "n_orders"), words("repeats", repeats, "number", "number")]
    for name in ("AOPD", "MOPD"):
        columns += _opd(design, name, drawn, notes, ends=ends, published=published)
    half = two_lines("AOPD, half", "5 to 95%")
    columns.append(_interval(half, design, notes, "half_", lambda row: "fewer than 4 orders: no halves"))
    details = [f"over {orders.UNITS[unit]}, per {unit}", f"{design.performance}, in points" if design.percent else design.performance]
    reasons = sorted(set(frame["aopd_refused"]) - {""})
    details += [] if ends or not reasons else [f"no interval ({reasons[0]})"]
    shown = framed(
        rows, columns, _caption(design, "; ".join(details)), refused=lambda row: row["refused"] and (1, f"refused: {row['refused']}")
    )
    return join([shown, notes.listed()])


def _unfit(row: Mapping[str, Any]) -> tuple[int, str] | None:
    return (1, f"refused: {row['refused']}") if row["refused"] else None


def _opd(design: Design, head: str, drawn: str, notes: Notes, *, ends: bool, published: bool) -> list[Column]:
    """The columns of an OPD, except empty ones."""
    name, unit = head.lower(), design.unit
    interval = _interval(two_lines(f"{head}, 95%", "interval"), design, notes, f"{name}_", lambda row: row[f"{name}_refused"])
    beside = Column(two_lines(head, "published"), lambda row: _printed(row["published"].get(head), row["n_orders"], notes))
    return [
        mean_std(head, unit, name, f"{name}_std"),
        *([interval] if ends else []),
        Column(two_lines(f"{head}, {drawn}", "orders | null"), lambda row: _with_null(row, name, unit, notes)),
        *([beside] if published else []),
    ]


_UNSHARED = "every order has its own seed, so this OPD includes all seed noise"


def _interval(head: str | Fragment, design: Design, notes: Notes, name: str, why: Callable[[Mapping[str, Any]], str]) -> Column:
    """A column of intervals between two items of a row; a dash, with a note on the reason, if there is none."""

    def cell(row: Mapping[str, Any]) -> Fragment:
        low, high, (digits, scale) = row[f"{name}low"], row[f"{name}high"], design.unit
        if low != low:
            return element("td", *notes.mark("–", why(row)), class_="number quiet")
        return element("td", " to ".join(number_text(scale * end, digits) for end in (low, high)), class_="number nowrap")

    return Column(head, cell)


def _with_null(row: Mapping[str, Any], name: str, unit: tuple[int, float], notes: Notes) -> Fragment:
    if row["no_null"]:
        return element("td", *notes.mark("–", row["no_null"]), class_="number quiet")
    basis = f"over {row['k']:.0f} orders, and over {row['k']:.0f} seeds of "
    basis += "one order" if row["null_orders"] == 1 else f"one order (mean of {row['null_orders']:.0f} orders)"
    if row["k"] < row["n_orders"]:
        basis += f"; expected value over all choices of {row['k']:.0f} of the {row['n_orders']:.0f} orders"
    (digits, scale), null = unit, row[f"null_{name}"]
    text = " | ".join(number_text(scale * value, digits) for value in (row[f"{name}_k"], null))
    return element("td", *notes.mark(text, basis), class_="number nowrap", data_value=repr(float(null)))


def _printed(row: Mapping[str, Any] | None, n_orders: float, notes: Notes) -> Fragment:
    if row is None:
        return number_cell(None)
    differs = row["n_orders"] is not None and row["n_orders"] != n_orders
    known = [f"{row['paper']}, table {row['table']}", "5 repeats" if "5 repeats" in row["note"] else ""]
    details = [", ".join(filter(None, known)), _OTHER_ORDERS.format(row["n_orders"]) if differs else "", row["remark"]]
    text = element("span", str(row["printed"]), class_="quiet" if differs else None)
    return element("td", *notes.mark(text, "; ".join(filter(None, details))), class_="number nowrap", data_value=repr(float(row["mean"])))


_OTHER_ORDERS = "over {} orders, different from ours: not comparable, since a range grows with the number of orders"


def _caption(design: Design, details: str) -> Fragment:
    parts: list[Content] = [element("strong", design.title), f"; {details}" if details else None]
    if design.changes:
        parts += [element("br"), f"{design.base} with ", element("code", design.changes_text)]
    return join(parts)


def items(study: OrderStudy) -> Gallery | Fragment:
    """Plot the OPD of every task or class with its null, one figure per design, unit and method."""
    pictures = []
    parts: Any = orders.items(study).groupby(["design", "unit", "method"], sort=False)
    for (key, unit, method), part in parts:
        design, n_orders, k = study.designs[key], int(part["n_orders"].iloc[0]), part["null_k"].dropna()
        look = {"title": f"{method}, {n_orders} orders", "unit": unit, "method": method, "percent": design.percent}
        details = "; ".join(
            f"{row['item']}: {design.scale * row['opd']:.0f}, null {design.scale * row['null']:.0f}" for row in as_rows(part)
        )
        null = f"line: {int(k.iloc[0])} seeds of one order" if len(k) else "no null: one seed per order"
        if len(k) and k.iloc[0] < n_orders:
            null = f"full colour: {int(k.iloc[0])} orders; {null}"
        alt = f"OPD per {unit} of {method} in {design.title}. {details}"
        pictures.append(picture(partial(range_figure, part, **look), alt, null, f"{design.title}, per {unit}"))
    return Gallery(tuple(pictures)) if pictures else empty("No design has an OPD.")


def spreads(study: OrderStudy) -> Gallery | Fragment:
    """Plot the AA of each method over orders and over the seeds of a single order, one figure per design."""
    pictures = []
    for key, design in study.designs.items():
        with suppress(stats.Refused):
            frame, _ = orders.order_scores(study, key)
            bars = [_spread(study, key, str(method), part) for method, part in frame.groupby("method", sort=False)]
            draw = partial(spread_figure, bars, title=design.title, order=study.methods, percent=design.percent)
            details = "; ".join(f"{s.label}: {design.scale * s.orders.min():.1f} to {design.scale * s.orders.max():.1f}" for s in bars)
            pictures.append(picture(draw, f"AA over orders in {design.title}. {details}"))
    return Gallery(tuple(pictures)) if pictures else empty("No design has two complete orders.")


def _spread(study: OrderStudy, design: str, method: str, part: pd.DataFrame) -> Spread:
    cells = study.of(design)
    cells = cells[cells["method"] == method]
    counts = cells.groupby("order", sort=False).size()
    most = cells[cells["order"] == counts.idxmax()]["aa"].to_numpy(dtype=np.float64)
    return Spread(method, part["value"].to_numpy(dtype=np.float64), most if most.size > 1 else most[:0])


def comparisons(study: OrderStudy) -> Fragment:
    """Tabulate, per design, every method's mean AA over orders, interval, mean rank and number of first ranks, with Kendall's W."""
    parts = []
    for key, design in study.designs.items():
        try:
            frame = orders.comparisons(study, key)
        except stats.Refused as refusal:
            parts.append(notice(f"{design.title}: refused: {refusal}"))
        else:
            parts.append(_comparison_table(study, design, frame))
    return join(parts) if parts else empty(_NOTHING)


def _comparison_table(study: OrderStudy, design: Design, frame: pd.DataFrame) -> Fragment:
    (digits, scale), notes = design.unit, Notes()
    columns = [
        *(label("method"), number("orders", "n_orders"), mean_std("AA ± std", design.unit)),
        _interval("95% interval", design, notes, "", lambda row: str(row["interval"])),
        *(number("lowest", lambda row: scale * row["lowest"], digits), number("highest", lambda row: scale * row["highest"], digits)),
        *(number("mean rank", "rank", 2), number("first, % of orders", lambda row: 100 * row["first"])),
    ]
    kinds = sorted(set(frame["interval"].dropna()) & {"BCa", "t"})
    details = (
        f"seeds averaged within an order; std and interval{' (' + ', '.join(kinds) + ')' if kinds else ''} over orders; ties share ranks"
    )
    try:
        details += f"; Kendall's W of the rankings: {orders.concordance(study, design.key):.2f}"
    except stats.Refused as refusal:
        details += f"; Kendall's W: refused ({refusal})"
    return join([framed(frame, columns, _caption(design, details)), notes.listed()])


def flips(study: OrderStudy) -> Gallery | Fragment:
    """Plot the share of orders in which one method beats another, one figure per design."""
    pictures = []
    for key, shares in orders.win_tables(study).items():
        title = study.designs[key].title
        pairs = [(a, b) for i, a in enumerate(shares.index) for b in shares.columns[i + 1 :]]
        details = "; ".join(f"{a} over {b}: {100 * shares.loc[a, b]:.0f}%" for a, b in pairs)
        alt = f"Share of orders in which the row's method beats the column's, {title}. {details}"
        pictures.append(picture(partial(win_figure, shares, title=title), alt))
    return Gallery(tuple(pictures)) if pictures else empty("A ranking needs two methods with the same orders.")


# --- forgetting ------------------------------------------------------------------------------------------------------------------


def forgetting(study: OrderStudy) -> Gallery | Fragment:
    """Plot AF against AA with the bound, one figure per design and one point per cell."""
    pictures = []
    for key, design in study.designs.items():
        cells = study.of(key).dropna(subset=["aa", "af"])
        if cells.empty or not design.percent:
            continue
        k = int(cells["n_tasks"].mode().iloc[0])
        part = cells[cells["n_tasks"] == k].rename(columns={"method": "label"})
        means = part.groupby("label", sort=False)[["aa", "af"]].mean()
        details = "; ".join(f"{label}: AA {100 * row['aa']:.1f}, AF {100 * row['af']:.1f}" for label, row in means.iterrows())
        alt = f"Average forgetting against average accuracy in {design.title}, {len(part):,} cells. Means: {details}"
        draw = partial(bound_figure, part, title=design.title, k=k, order=study.methods)
        pictures.append(picture(draw, alt, f"{len(part):,} cells, {k} tasks"))
    return Gallery(tuple(pictures)) if pictures else empty("No cell has both AA and AF as fractions.")


def bound(study: OrderStudy) -> Fragment:
    """Report whether every cell satisfies the bound on forgetting."""
    checked = orders.bound_checks(study)
    checked_rows = checked[checked["obeys"].notna()]
    broken = checked_rows[~checked_rows["obeys"].astype(bool)]
    skipped = checked[checked["obeys"].isna()]
    parts = [f"{len(checked_rows) - len(broken):,} of {len(checked_rows):,} cells satisfy the bound"]
    if len(checked_rows):
        parts.append(f"the closest is {100 * float(checked_rows['slack'].min()):.1f} points below it")
    parts += [f"{n} not checked: {reason}" for reason, n in skipped["reason"].value_counts().items()]
    if len(broken):
        named = [f"{study.designs[row['design']].title}, {row['method']}, record {row['key'][:12]}" for row in as_rows(broken)]
        return notice("; ".join(parts) + ". These violate the bound and cannot be right:", *named[:10])
    return element("p", "; ".join(parts) + ".")


# --- where the variance comes from -------------------------------------------------------------------------------------------------


def components(study: OrderStudy) -> Fragment:
    """Tabulate the variance components of every design as standard deviations (in points) and shares, or the reason for a refusal."""
    fitted = [(study.designs[key].title, parts, study.designs[key].percent) for key, parts in orders.components(study).items()]
    about = "Random effects on AA, orders crossed with seeds: standard deviation in points and share; methods are fixed effects."
    return components_table(fitted, about) if fitted else empty(_NOTHING)


def component_shares(study: OrderStudy) -> Gallery | Fragment:
    """Plot the variance components. The section is empty if every design was refused."""
    fitted = {key: result for key, result in orders.components(study).items() if isinstance(result, stats.VarianceComponents)}
    if not fitted:
        return empty("No design has enough data for variance components.")
    shares = {study.designs[key].title: result.shares for key, result in fitted.items()}
    details = "; ".join(
        f"{key}: " + ", ".join(f"{COMPONENT_NAMES[n]} {100 * s:.0f}%" for n, s in parts.items()) for key, parts in shares.items()
    )
    return Gallery((picture(partial(component_figure, shares), f"Shares of the variance of AA. {details}"),))


# --- what is missing, and who made it ----------------------------------------------------------------------------------------------


def left_out(study: OrderStudy) -> Fragment:
    """List the records that are not used, with the reasons."""
    frame = orders.left_out(study)
    if frame.empty:
        return element("p", "Every record is used in every table.")

    def methods(row: Mapping[str, Any]) -> str:
        everyone = set(row["methods"]) >= set(study.of(row["design"])["method"])
        return "all methods" if everyone else ", ".join(row["methods"])

    columns = [
        Column("scenario", lambda row: row_head(study.designs[row["design"]].title), None),
        *(words("method", methods, "long"), words("left out of", lambda row: "; ".join(row["what"]), "long")),
        words("reason", class_="long"),
    ]
    return framed(frame, columns, "Seeds: split/init.")


# Figures of order sensitivity, in the style of :mod:`cglsuite.reports.kit.figures`.


def range_figure(frame: pd.DataFrame, theme: Theme, *, title: str, unit: str, method: str, percent: bool = True) -> Figure:
    """Plot the OPD of every item of one method as a bar, with its null as a vertical line.

    Args:
        frame: columns item, opd, std, null and opd_k (NaN where there is no null), in the order from top to bottom. The bar has its
            full colour up to ``opd_k``, which is for the same number of runs as the null.
    """
    scale = 100.0 if percent else 1.0
    n, values = len(frame), scale * frame["opd"].to_numpy(dtype=np.float64)
    spread = scale * np.nan_to_num(frame["std"].to_numpy(dtype=np.float64))
    nulls = scale * frame["null"].to_numpy(dtype=np.float64)
    names = [str(item) for item in frame["item"]]
    left = 0.5 + 0.075 * max(map(len, names))
    inner, row, lines = 1.95, 0.25, wrapped(title, 2.6, 9.5)
    above, below = 0.16 + 0.17 * len(lines), 0.42
    width, height = left + inner + 0.42, row * n + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * n / height))
    y = np.arange(n)[::-1]
    equal = scale * frame["opd_k"].fillna(frame["opd"]).to_numpy(dtype=np.float64)
    look: dict[str, Any] = {"height": 0.62, "color": style_of(method, [method], theme)["color"], "linewidth": 0}
    axes.barh(y, values, alpha=0.4, **look)
    axes.barh(y, np.minimum(equal, values), **look)
    if spread.any():
        axes.hlines(y, values - spread, np.minimum(values + spread, scale), color=theme.ink, linewidth=1.0)
    known = np.isfinite(nulls)
    axes.vlines(nulls[known], y[known] - 0.42, y[known] + 0.42, color=theme.ground, linewidth=4.0)
    axes.vlines(nulls[known], y[known] - 0.42, y[known] + 0.42, color=theme.ink, linewidth=1.8)
    top = scale if percent else max(1e-9, 1.05 * float((values + spread).max()))
    for place, value in zip(y, values, strict=True):
        axes.text(1.03 * top, place, _digits(value, percent), ha="left", va="center", fontsize=8.5, color=theme.ink)
    axes.set_xlim(0, top)
    axes.set_ylim(-0.6, n - 0.4)
    axes.set_yticks(y, names)
    axes.set_ylabel(unit)
    axes.set_xlabel(f"OPD{', points' if percent else ''}")
    plain_axes(axes, theme, "x")
    headline(figure, lines, theme, points=9.5)
    return figure


def _digits(value: float, percent: bool) -> str:
    return f"{value:.0f}" if percent else f"{value:.2g}"


def bound_figure(frame: pd.DataFrame, theme: Theme, *, title: str, k: int, order: Sequence[str]) -> Figure:
    """Plot AF against AA, with one point per cell and the upper bound as a line.

    Args:
        frame: columns label, aa, af; fractions. k: number of tasks. order: labels in the order of the legend.
    """
    labels = labels_in(frame, order)
    columns = min(3, legend_columns([*labels, "bound"], (theme.width or 5.6) - 0.5))
    rows, height = int(np.ceil((len(labels) + 1) / columns)), 2.2 if theme.width else 3.3
    figure, axes = titled_figure(title, theme, 5.6, height, rows=rows, margins=0.78, below=0.45 if theme.width else 0.6, wrap=0.4)
    x = np.array([0.0, 1.0])
    bound = af_bound(x, k)
    low = min(-0.05, float(frame["af"].min()) - 0.03)
    axes.fill_between(100 * x, 100 * bound, 200.0, color=theme.rule, alpha=0.45, linewidth=0)
    axes.plot(100 * x, 100 * bound, color=theme.ink, linewidth=1.4, linestyle=DASHES[1])
    handles: list[Any] = [Line2D([], [], color=theme.ink, linewidth=1.4, linestyle=DASHES[1], label="bound")]
    as_image = len(frame) > MANY_POINTS
    for name in labels:
        part = frame[frame["label"] == name]
        style = style_of(name, order, theme) | {"linestyle": "none"}
        points = {**style, "markersize": 4.2, "markeredgewidth": 0.6, "alpha": 0.6, "rasterized": as_image}
        (dots,) = axes.plot(100 * part["aa"], 100 * part["af"], **points)
        mark_series(name, dots)
        handles.append(Line2D([], [], markersize=5.5, label=name, **style))
    axes.set_xlim(0, 100)
    axes.set_ylim(100 * low, 104)
    axes.set_xlabel("average accuracy (AA) after the last task, %")
    axes.set_ylabel(f"average forgetting ({TASK_MEASURES['af'].symbol}), %")
    plain_axes(axes, theme, "both")
    legend(figure, columns, handles=handles, handlelength=2.2, fontsize=text_points(theme), hides=() if as_image else labels)
    return figure


@dataclass(frozen=True)
class Spread:
    """The AA of one method over orders (float64 ``[n_orders]``) and over the seeds of a single order (``[n_seeds]``, may be empty)."""

    label: str
    orders: NDArray[np.float64]
    seeds: NDArray[np.float64]


def spread_figure(spreads: Sequence[Spread], theme: Theme, *, title: str, order: Sequence[str], percent: bool = True) -> Figure:
    """Plot every order as a point, the quartiles as a box and the mean as a line. The seeds of a single order are below in a lighter
    colour.
    """
    scale = 100.0 if percent else 1.0
    n, with_seeds = len(spreads), any(s.seeds.size for s in spreads)
    row, inner = (0.62 if with_seeds else 0.46), 4.4
    left, lines = 0.3 + 0.078 * max(len(s.label) for s in spreads), [] if theme.width else wrapped(title, 5.2, 10.5)
    inner = theme.width - left - 0.2 if theme.width else inner
    above, below = (0.22 if lines else 0.08) + 0.19 * len(lines), 0.48 + (0.24 if with_seeds else 0.0)
    width, height = left + inner + 0.2, row * n + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * n / height))
    colours = {s.label: str(style_of(s.label, order, theme)["color"]) for s in spreads}
    raised = 0.14 if with_seeds else 0.0
    box_rows(axes, [(s.label, scale * s.orders) for s in spreads], theme, colours=colours, height=0.44, raised=raised, whiskers=False)
    for place, spread in zip(range(n - 1, -1, -1), spreads, strict=True):
        spread_evenly(axes, scale * spread.orders, place + raised, color=colours[spread.label], markersize=3.6)
        if spread.seeds.size:
            spread_evenly(axes, scale * spread.seeds, place - 0.27, over=0.16, color=theme.quiet, markersize=2.6)
    axes.set_ylim(-0.55, n - 0.45)
    axes.set_xlabel(f"AA after the last task{', %' if percent else ''}")
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
    headline(figure, lines, theme)
    if with_seeds:
        marks: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}
        handles = [
            Line2D([], [], color=theme.ink, markersize=4.5, label="an order", **marks),
            Line2D([], [], color=theme.quiet, markersize=3.2, label="a seed of a single order", **marks),
        ]
        figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(left / width - 0.02, 0.0), ncols=2, frameon=False, fontsize=8.5)
    return figure


def win_figure(shares: pd.DataFrame, theme: Theme, *, title: str) -> Figure:
    """Plot the percentage of orders in which the row beats the column. Cells are blue if the row wins more often and orange if the column
    does.
    """
    names, n = [str(name) for name in shares.index], len(shares)
    side, text = 0.52, 0.078 * max(map(len, shares.index.map(str)))
    left, above, lines = 0.25 + text, 0.14 + text, wrapped(title, max(2.4, side * n + text), 9.5)
    head = 0.17 * len(lines) + 0.1
    width, height = max(left + side * n + 0.12, 2.2), side * 0.8 * n + above + head + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, 0.08 / height, side * n / width, side * 0.8 * n / height))
    colours = LinearSegmentedColormap.from_list("wins", [theme.lines[1], theme.ground, theme.lines[0]])
    values = shares.to_numpy(dtype=np.float64)
    mesh(axes, np.where(np.isfinite(values), values, 0.5), bounds=(0, 1), colours=colours, linecolor=theme.rule, linewidths=0.6)
    for (row, column), value in np.ndenumerate(values):
        if row != column:
            ink = ink_on(colours(value)[:3])
            axes.text(column + 0.5, row + 0.5, f"{100 * value:.0f}", ha="center", va="center", fontsize=8.5, color=ink)
    axes.xaxis.tick_top()
    places = [i + 0.5 for i in range(n)]
    axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 4 else 0)
    axes.set_yticks(places, names)
    axes.tick_params(colors=theme.ink)
    frameless(axes)
    headline(figure, lines, theme, points=9.5)
    return figure


_COMPONENT_LINES = dict(zip(COMPONENT_NAMES, (0, 1, 2, 3, 4, 6), strict=True))
"""Colours of the variance components; the residual is grey."""


def component_figure(shares: Mapping[str, Mapping[str, float]], theme: Theme) -> Figure:
    """Plot the share of each variance component, with one bar per design."""
    n, row, inner = len(shares), 0.5, 5.2
    below, above = 1.1, 0.1 + 0.26
    width, height = inner + 0.5, (row + 0.26) * n + below + above - 0.26
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.25 / width, below / height, inner / width, (height - below - above) / height))
    for place, (name, parts) in zip(range(n - 1, -1, -1), shares.items(), strict=True):
        begin = 0.0
        for component, share in parts.items():
            colour = theme.lines[_COMPONENT_LINES[component]]
            axes.barh(place, 100 * share, left=begin, height=0.6, color=colour, edgecolor=theme.ground, linewidth=1.2)
            if share > 0.06:
                ink = ink_on(tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
                axes.text(begin + 50 * share, place, f"{100 * share:.0f}", ha="center", va="center", fontsize=9, color=ink)
            begin += 100 * share
        axes.text(0, place + 0.36, name, ha="left", va="bottom", fontsize=9, color=theme.ink)
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.4, n - 1 + 0.4)
    axes.set_yticks([])
    axes.set_xlabel("share of the variance of AA, %")
    plain_axes(axes, theme)
    shown = [Patch(color=theme.lines[i], label=name) for i, name in zip(_COMPONENT_LINES.values(), COMPONENT_NAMES.values(), strict=True)]
    look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.15 / width, 0.0), "ncols": 3, "frameon": False}
    figure.legend(handles=shown, columnspacing=1.0, handlelength=1.2, fontsize=9, **look)
    return figure
