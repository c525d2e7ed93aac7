"""The page on order sensitivity. It formats what :mod:`cglsuite.reports.studies.orders.compute` computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
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
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.results.summary import notices
from cglsuite.reports.studies.orders import compute as orders
from cglsuite.reports.studies.orders.figures import (
    Spread,
    bound_figure,
    component_figure,
    range_figure,
    spread_figure,
    win_figure,
)

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.studies.orders.compute import Design, OrderStudy

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
    """The runs, their numbers of orders and seeds, and warnings to read before the numbers."""
    first = study.results[0]
    planned = sum(len(one.cells) for one in study.results)
    tiles = [(planned, "cells planned"), (len(study.cells), "in use"), (study.cells["order"].nunique(), "orders")]
    tiles += [(study.cells["seed"].nunique(), "seeds (split/init)"), (len(study.methods), "methods"), (len(study.designs), "scenarios")]
    title = element("p", element("strong", first.title), class_="lead")
    description = element("p", first.campaign.description) if first.campaign.description else None
    twice = f" {study.repeated} cells were run in two of them (same order and seeds) and count once." if study.repeated else ""
    pooled = [element("p", f"Pooled with: {'; '.join(one.title for one in study.results[1:])}.{twice}")] if len(study.results) > 1 else []
    listed = element("ul", *(tile(value, label) for value, label in tiles), class_="tiles")
    return join([title, _message(study), description, *pooled, listed, *_notices(study)])


def _message(study: OrderStudy) -> Fragment | None:
    """Key results: per design the lowest and highest AOPD beside their nulls, and how often the best method beats the next."""
    frame, wins, lines = orders.sensitivity(study).dropna(subset=["aopd"]), orders.win_tables(study), []
    for key, design in study.designs.items():
        part = frame[frame["design"] == key]
        part = part[part["unit"] == part["unit"].iloc[0]].sort_values("aopd", kind="stable") if len(part) else part
        said = [_range_of_aopd(design, as_rows(part))] if len(part) > 1 else []
        said += [_best_of_orders(wins[key])] if key in wins else []
        if said:
            lines.append(element("li", element("strong", design.title), f": {'; '.join(filter(None, said))}."))
    return key_box(lines) if lines else None


def _range_of_aopd(design: Design, rows: Sequence[Mapping[str, Any]]) -> str:
    scale, digits = (100.0, 1) if design.percent else (1.0, 4)
    ends = rows[0], rows[-1]
    said = " to ".join(f"{scale * row['aopd']:.{digits}f} ({row['method']})" for row in ends)
    said = f"AOPD per {rows[0]['unit']} over {rows[0]['n_orders']} orders from {said}"
    if any(row["no_null"] for row in ends):
        return f"{said}, without a null"
    pairs = " and ".join(f"{scale * row['aopd_k']:.{digits}f} beside a null of {scale * row['null_aopd']:.{digits}f}" for row in ends)
    return f"{said}; with {'/'.join(f'{k:.0f}' for k in dict.fromkeys(row['k'] for row in ends))} runs {pairs}"


def _best_of_orders(shares: pd.DataFrame) -> str:
    """From the share of orders in which the row's method beats the column's; joint training does not compete."""
    competing = [name for name in shares.index if name != UPPER_BOUND]
    if len(competing) < 2:
        return ""
    among = shares.loc[competing, competing]
    first, second = among.sum(axis=1).sort_values(ascending=False, kind="stable").index[:2]
    return f"{first} beats {second}, the next best, in {100 * among.loc[first, second]:.0f} % of the orders"


def _notices(study: OrderStudy) -> Iterable[Fragment]:
    for one in study.results:
        yield from notices(one)
    for design, n in study.cells.groupby("design")["source"].nunique().items():
        if n > 1:
            title = study.designs[str(design)].title
            yield notice(f"{title}: its records were made by {n} versions of the code, which may explain differences between orders.")
    if study.contradicting:
        differing = f"{study.contradicting} of {study.repeated} cells that were run twice (same order and seeds) have different results"
        yield notice(f"{differing}. The first is used. On one machine with one version of the code they would be equal.")


# --- the spread over orders ------------------------------------------------------------------------------------------------------


def sensitivity(study: OrderStudy) -> Fragment:
    """One table per design and unit: AOPD and MOPD of every method with interval, null and published values."""
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
    columns = [label("method"), number("orders", "n_orders"), Column("repeats", lambda row: _repeats(row, notes))]
    for name in ("AOPD", "MOPD"):
        columns += _opd(design, name, drawn, notes, ends=ends, published=published)
    half = two_lines("AOPD, half", "5 to 95 %")
    columns.append(_interval(half, design, notes, "half_", lambda row: "fewer than 4 orders: no halves"))
    details = [f"over {orders.UNITS[unit]}, per {unit}", f"{design.performance}, in points" if design.percent else design.performance]
    reasons = sorted(set(frame["aopd_refused"]) - {""})
    details += [] if ends or not reasons else [f"no interval ({reasons[0]})"]
    shown = framed(rows, columns, _caption(design, "; ".join(details)), refused=_unfit)
    return join([shown, notes.listed()])


def _unfit(row: Mapping[str, Any]) -> tuple[int, str] | None:
    return (1, f"refused: {row['refused']}") if row["refused"] else None


def _unit(design: Design) -> tuple[int, float]:
    return (1, 100.0) if design.percent else (4, 1.0)


def _repeats(row: Mapping[str, Any], notes: Notes) -> Fragment:
    shown = notes.mark(number_text(row["n_repeats"], 0), "" if row["seeds_shared"] else _UNSHARED)
    return element("td", *shown, class_="number")


def _opd(design: Design, head: str, drawn: str, notes: Notes, *, ends: bool, published: bool) -> list[Column]:
    """The columns of an OPD, without those that would be empty."""
    name, unit = head.lower(), _unit(design)
    interval = _interval(two_lines(f"{head}, 95 %", "interval"), design, notes, f"{name}_", lambda row: row[f"{name}_refused"])
    beside = Column(two_lines(head, "published"), lambda row: _printed(row["published"].get(head), row["n_orders"], notes))
    return [
        mean_std(head, unit, name, f"{name}_std"),
        *([interval] if ends else []),
        Column(two_lines(f"{head}, {drawn}", "orders | null"), lambda row: _beside_null(row, name, unit, notes)),
        *([beside] if published else []),
    ]


_UNSHARED = "every order has a seed of its own, so this OPD counts the noise of seeds in full"


def _interval(head: str | Fragment, design: Design, notes: Notes, name: str, why: Callable[[Mapping[str, Any]], str]) -> Column:
    """The interval between two items of a row, or a dash with a note on why there is none."""

    def cell(row: Mapping[str, Any]) -> Fragment:
        low, high, (digits, scale) = row[f"{name}low"], row[f"{name}high"], _unit(design)
        if low != low:
            return element("td", *notes.mark("–", why(row)), class_="number quiet")
        return element("td", " to ".join(number_text(scale * end, digits) for end in (low, high)), class_="number nowrap")

    return Column(head, cell)


def _beside_null(row: Mapping[str, Any], name: str, unit: tuple[int, float], notes: Notes) -> Fragment:
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
    """One figure per design, unit and method: the OPD of every task or class, with its null."""
    frame = orders.items(study)
    if frame.empty:
        return empty("No design has an OPD.")
    pictures = []
    for (key, unit, method), part in frame.groupby(["design", "unit", "method"], sort=False):
        design = study.designs[str(key)]
        pictures.append(_item_picture(study, design, str(unit), str(method), part))
    return Gallery(tuple(pictures))


def _item_picture(study: OrderStudy, design: Design, unit: str, method: str, part: pd.DataFrame) -> Any:
    n_orders, k = int(part["n_orders"].iloc[0]), part["null_k"].dropna()
    title = f"{method}, {n_orders} orders"
    scale = 100.0 if design.percent else 1.0
    details = "; ".join(f"{row['item']}: {scale * row['opd']:.0f}, null {scale * row['null']:.0f}" for row in as_rows(part))

    def draw(theme: Theme) -> Any:
        return range_figure(part, theme, title=title, unit=unit, colour=study.methods.index(method), percent=design.percent)

    null = f"line: {int(k.iloc[0])} seeds of one order" if len(k) else "no null: one seed per order"
    if len(k) and k.iloc[0] < n_orders:
        null = f"full colour: {int(k.iloc[0])} orders; {null}"
    return picture(draw, f"OPD per {unit} of {method} in {design.title}. {details}", null, f"{design.title}, per {unit}")


def spreads(study: OrderStudy) -> Gallery | Fragment:
    """One figure per design: AA over orders by method, and over seeds of one same order."""
    pictures = []
    for key, design in study.designs.items():
        try:
            frame, _ = orders.order_scores(study, key)
        except stats.Refused:
            continue
        bars = [_spread(study, key, str(method), part) for method, part in frame.groupby("method", sort=False)]

        def draw(theme: Theme, bars: Sequence[Spread] = bars, design: Design = design) -> Any:
            return spread_figure(bars, theme, title=design.title, order=study.methods, percent=design.percent)

        scale = 100.0 if design.percent else 1.0
        details = "; ".join(f"{s.label}: {scale * s.orders.min():.1f} to {scale * s.orders.max():.1f}" for s in bars)
        pictures.append(picture(draw, f"AA over orders in {design.title}. {details}"))
    return Gallery(tuple(pictures)) if pictures else empty("No design has two complete orders.")


def _spread(study: OrderStudy, design: str, method: str, part: pd.DataFrame) -> Spread:
    cells = study.of(design)
    cells = cells[cells["method"] == method]
    counts = cells.groupby("order", sort=False).size()
    most = cells[cells["order"] == counts.idxmax()]["aa"].to_numpy(dtype=np.float64)
    return Spread(method, part["value"].to_numpy(dtype=np.float64), most if most.size > 1 else most[:0])


def comparisons(study: OrderStudy) -> Fragment:
    """One table per design: mean AA of every method over orders, its interval, mean rank, how often it ranked first, and Kendall's W."""
    parts = []
    for key, design in study.designs.items():
        try:
            frame = orders.comparisons(study, key)
        except stats.Refused as refusal:
            parts.append(notice(f"{design.title}: refused: {refusal}"))
            continue
        parts.append(_comparison_table(study, design, frame))
    return join(parts) if parts else empty(_NOTHING)


def _comparison_table(study: OrderStudy, design: Design, frame: pd.DataFrame) -> Fragment:
    (digits, scale), notes = _unit(design), Notes()
    columns = [
        *(label("method"), number("orders", "n_orders"), mean_std("AA ± std", _unit(design))),
        _interval("95 % interval", design, notes, "", lambda row: str(row["interval"])),
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
    """One figure per design: the share of orders in which one method beats another."""
    pictures = []
    for key, shares in orders.win_tables(study).items():
        title = study.designs[key].title

        def draw(theme: Theme, shares: pd.DataFrame = shares, title: str = title) -> Any:
            return win_figure(shares, theme, title=title)

        pairs = [(a, b) for i, a in enumerate(shares.index) for b in shares.columns[i + 1 :]]
        details = "; ".join(f"{a} over {b}: {100 * shares.loc[a, b]:.0f} %" for a, b in pairs)
        pictures.append(picture(draw, f"Share of orders in which the row's method beats the column's, {title}. {details}"))
    return Gallery(tuple(pictures)) if pictures else empty("A ranking needs two methods with the same orders.")


# --- forgetting ------------------------------------------------------------------------------------------------------------------


def forgetting(study: OrderStudy) -> Gallery | Fragment:
    """One figure per design: AF against AA, a point per cell, with the bound."""
    pictures = []
    for key, design in study.designs.items():
        cells = study.of(key).dropna(subset=["aa", "af"])
        if cells.empty or not design.percent:
            continue
        k = int(cells["n_tasks"].mode().iloc[0])
        part = cells[cells["n_tasks"] == k].rename(columns={"method": "label"})

        def draw(theme: Theme, part: pd.DataFrame = part, title: str = design.title, k: int = k) -> Any:
            return bound_figure(part, theme, title=title, k=k, order=study.methods)

        means = part.groupby("label", sort=False)[["aa", "af"]].mean()
        details = "; ".join(f"{label}: AA {100 * row['aa']:.1f}, AF {100 * row['af']:.1f}" for label, row in means.iterrows())
        pictures.append(
            picture(
                draw,
                f"Average forgetting against average accuracy in {design.title}, {len(part)} cells. Means: {details}",
                f"{len(part)} cells, {k} tasks",
            )
        )
    return Gallery(tuple(pictures)) if pictures else empty("No cell has both AA and AF as fractions.")


def bound(study: OrderStudy) -> Fragment:
    """Whether every cell obeys the bound on forgetting."""
    checked = orders.bound_checks(study)
    asked = checked[checked["obeys"].notna()]
    broken = asked[~asked["obeys"].astype(bool)]
    skipped = checked[checked["obeys"].isna()]
    parts = [f"{len(asked) - len(broken)} of {len(asked)} cells obey the bound"]
    if len(asked):
        parts.append(f"the closest is {100 * float(asked['slack'].min()):.1f} points below it")
    parts += [f"{n} not checked: {reason}" for reason, n in skipped["reason"].value_counts().items()]
    if len(broken):
        named = [f"{study.designs[row['design']].title}, {row['method']}, record {row['key'][:12]}" for row in as_rows(broken)]
        return notice("; ".join(parts) + ". These violate the bound and cannot be right:", *named[:10])
    return element("p", "; ".join(parts) + ".")


# --- where the variance comes from -------------------------------------------------------------------------------------------------


def components(study: OrderStudy) -> Fragment:
    """One table: variance components of every design as standard deviations in points and shares, or the reason for a refusal."""
    fitted = [(study.designs[key].title, one, study.designs[key].percent) for key, one in orders.components(study).items()]
    about = "Random effects on AA, orders crossed with seeds: standard deviation in points and share; methods are fixed effects."
    return components_table(fitted, about) if fitted else empty(_NOTHING)


def component_shares(study: OrderStudy) -> Gallery | Fragment:
    """The variance components as a figure; empty if every design was refused."""
    fitted = {key: result for key, result in orders.components(study).items() if isinstance(result, stats.VarianceComponents)}
    if not fitted:
        return empty("No design has enough data for variance components.")
    shares = {study.designs[key].title: result.shares for key, result in fitted.items()}
    details = "; ".join(
        f"{key}: " + ", ".join(f"{COMPONENT_NAMES[n]} {100 * s:.0f} %" for n, s in one.items()) for key, one in shares.items()
    )
    return Gallery((picture(lambda theme: component_figure(shares, theme), f"Shares of the variance of AA. {details}"),))


# --- what is missing, and who made it ----------------------------------------------------------------------------------------------


def left_out(study: OrderStudy) -> Fragment:
    """Records that are not used, with the reason."""
    frame = orders.left_out(study)
    if frame.empty:
        return element("p", "Every record is used in every table.")

    def methods(row: Mapping[str, Any]) -> str:
        everyone = set(row["methods"]) >= set(study.of(row["design"])["method"])
        return "all methods" if everyone else ", ".join(row["methods"])

    columns = [
        Column("scenario", lambda row: row_head(study.designs[row["design"]].title), None),
        *(
            words("method", methods, "long"),
            words("left out of", lambda row: "; ".join(row["what"]), "long"),
            words("reason", class_="long"),
        ),
    ]
    return framed(frame, columns, "Seeds: split/init.")


def problems(study: OrderStudy) -> Fragment:
    """Every planned cell without a result, with its reason, campaign by campaign."""
    return show_runs.each_problems(study.results)


def provenance(study: OrderStudy) -> Facts:
    """Code and environment of the records, campaign by campaign, with lines for the page footer."""
    return show_runs.each_provenance(study.results)
