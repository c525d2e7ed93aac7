"""The page of a stream's anatomy. It formats what :mod:`cglsuite.reports.studies.anatomy.compute` computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.figures import Panel, cumulative_figure
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
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
    number_cell,
    number_text,
    titled,
    words,
)
from cglsuite.reports.kit.text import Notes, badge, key_box, notice, scenario_words
from cglsuite.reports.studies.anatomy.compute import WHOLE
from cglsuite.reports.studies.anatomy.figures import drift_figure, homophily_figure, share_figure
from cglsuite.reports.studies.anatomy.published import published_beside
from cglsuite.reports.studies.nodes import cumulative

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.studies.anatomy.compute import Anatomies, Anatomy

__all__ = ["degrees", "drift", "homophily", "message", "published", "scores", "shares", "sizes", "statistics_table"]

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


def message(found: Anatomies) -> Fragment:
    """Key results: sizes, homophily, drift, and how many published statistics agree; and the subjects without data."""
    lines = [element("li", element("strong", scenario_words(one.name)), ": ", "; ".join(_said(one)), ".") for one in found.shown]
    absent = [notice(f"{name} is left out: its raw data are not here.", reason) for name, reason in found.absent.items()]
    return join([key_box(lines) if lines else empty("No data set of this page is here."), *absent])


def _said(one: Anatomy) -> list[str]:
    nodes, n = one.groups["nodes"], len(one.groups)
    plural = f"{one.what}{'' if n == 1 else 'es' if one.what.endswith('s') else 's'}"
    said = [f"{n} {plural} of {_range(nodes, 0)} nodes"]
    known = one.groups["homophily"].dropna()
    if len(known):
        said.append(f"label homophily {_mean_of(one, 'homophily'):.2f} within a {one.what}, {one.whole['homophily']:.2f} in the full graph")
    if one.groups["cut"].notna().any():
        said.append(f"{100 * one.groups['cut'].mean():.0f} % of a {one.what}'s edges lead to others")
    if one.drift is not None and one.in_order:
        last, chance = one.drift.shift[-1], one.drift.chance[-1]
        said.append(
            f"from the first to the last {one.what} the mean of its {one.drift.of} moves by {last:.2f} of the items' spread, "
            f"where chance alone would move it by {chance:.2f}"
        )
    frame = published_beside(one)
    if len(frame):
        explained = int((frame["check"] == "holds").sum())
        more = f"; of the others {explained} differ by a cause that holds" if explained else ""
        said.append(f"{int(frame['equal'].sum())} of {len(frame)} published statistics are equal to ours{more}")
    return said


def _mean_of(one: Anatomy, name: str) -> float:
    """The mean over groups, and over orders where there are several."""
    return float(one.whole.get(f"mean_{name}", one.groups[name].mean()))


def _range(values: Any, digits: int) -> str:
    low, high = number_text(float(values.min()), digits), number_text(float(values.max()), digits)
    return low if low == high else f"{low} to {high}"


# --- tables ----------------------------------------------------------------------------------------------------------------------


def sizes(found: Anatomies) -> Fragment:
    """A row per group: items, nodes, edges, mean degree, classes, homophily; the whole data set first."""
    return join([_sizes(one) for one in found.shown]) if found.shown else empty("No data set of this page is here.")


def _sizes(one: Anatomy) -> Fragment:
    columns = [name for name in _COLUMNS if one.groups[name].notna().any() or name in one.whole]
    if (one.groups["items"] == one.groups["nodes"]).all():
        columns.remove("items")
    if one.level.startswith("G"):
        columns.remove("pairs")
    rows: list[Mapping[str, Any]] = [{"title": WHOLE, **one.whole}]
    rows += [{"title": name, **row} for name, row in zip(one.names, as_rows(one.groups), strict=True)]
    if len(one.orders) > 1:
        means = {name: one.whole.get(f"mean_{name}") for name in columns}
        rows.append({"title": f"mean over orders {', '.join(map(str, one.orders))}", **means})
    about = f" – {one.what}s of order {one.orders[0]}" if one.setting else f" – by {one.what}"
    return framed(rows, [label(one.what, "title"), *map(_counts, columns)], titled(scenario_words(one.name), about))


def _counts(name: str) -> Column:
    head, digits = _COLUMNS[name]
    return amount(head, lambda row: row.get(name), (digits, 100.0 if name == "cut" else 1.0))


def published(found: Anatomies) -> Fragment:
    """What papers print of these data sets beside what is counted here."""
    frames = {scenario_words(one.name): published_beside(one) for one in found.shown}
    if not any(map(len, frames.values())):
        return empty("No paper of the suite prints statistics of these data sets in these settings.")
    return statistics_table(frames)


def statistics_table(frames: Mapping[str, pd.DataFrame]) -> Fragment:
    """Published statistics beside ours, under a title each, with causes of deviations. Frames: see :func:`published_beside`."""
    notes = Notes()
    rows = [{**row, "title": title} for title, frame in frames.items() for row in as_rows(frame)]
    columns = [
        label("statistic", "quantity"),
        Column("published", lambda row: exact_cell(_printed(row["published"]), value=row["published"])),
        Column("ours", lambda row: exact_cell(_like(row["ours"]), value=row["ours"]) if _counted(row) else number_cell(None)),
        words("equal", lambda row: _yes(row["equal"]) if _counted(row) else "–"),
        words("cause of the deviation", lambda row: join(_explained(row)), "long"),
        words("paper", lambda row: join(notes.mark(f"{row['paper']}, {row['dataset']}", row["remark"])), "nowrap"),
    ]
    about = (
        "Equal: ours is the printed number, rounded or cut to its digits (AGALE prints 3K and 37K). Ours counts edges as the data list "
        "them. A cause is a rule that gives the printed number, computed from our counts or from other printed numbers; its badge is the "
        "result of that check. Footnotes are contradictions within the papers."
    )
    return join([framed(rows, columns, about, by="title"), notes.listed()])


def _counted(row: Mapping[str, Any]) -> bool:
    return bool(row["ours"] == row["ours"])


def _explained(row: Mapping[str, Any]) -> list[Content]:
    if not row["cause"]:
        return []
    kind = {"holds": "good", "fails": "bad"}.get(row["check"], "plain")
    return [f"{row['cause']} ", badge(row["check"], kind)]


def _yes(equal: bool) -> Fragment:
    return badge("yes", "good") if equal else badge("no", "note")


def _printed(value: float) -> str:
    """With the digits that it has."""
    return number_text(value, len(f"{value:.6f}".rstrip("0").partition(".")[2]))


def _like(value: float) -> str:
    return number_text(value, 0 if value == int(value) else 3 if value < 10 else 1)


def scores(found: Anatomies) -> Fragment:
    """Per task its label homophily and every method's score after the last task."""
    shown = [one for one in found.shown if len(one.scores)]
    if not shown:
        return empty("No records were given: name a campaign whose cells are done.")
    return join([_scores(one) for one in shown])


def _scores(one: Anatomy) -> Fragment:
    scores = {(row["task"], row["label"]): row for row in as_rows(one.scores)}
    shown = mean_std("", (1, 100.0) if one.percent else (3, 1.0)).cell
    homophily = Column(_COLUMNS["homophily"][0], lambda task: _counts("homophily").cell(one.groups.iloc[task]))
    columns = [label(one.what, lambda task: one.names[task]), *([homophily] if one.groups["homophily"].notna().any() else [])]
    columns += [crossed(name, scores, name, shown) for name in dict.fromkeys(one.scores["label"])]
    n = ", ".join(sorted({str(n) for n in one.scores["n"]}))
    unit = ", %" if one.percent else ""
    about = f" – {one.measure}{unit} on each task after the last; order {one.orders[0]}, {n} record{'' if n == '1' else 's'} per method"
    return framed(range(len(one.names)), columns, titled(scenario_words(one.name), about))


# --- figures ---------------------------------------------------------------------------------------------------------------------


def shares(found: Anatomies) -> Gallery | Fragment:
    """The share of every class in every group."""
    return _gallery(
        [_shares(one) for one in found.shown if one.shares is not None and len(one.groups) > 1], "These data sets have no classes."
    )


def _shares(one: Anatomy) -> Any:
    every = one.shares
    assert every is not None  # noqa: S101 - chosen by the caller
    kept = np.flatnonzero((every > 0).any(axis=0))
    table_, names = every[:, kept], [str(c) for c in kept]

    def draw(theme: Theme) -> Any:
        return share_figure(table_, names, theme, title=f"Share of labels by class (%)\n{scenario_words(one.name)}", what=one.what)

    largest = [f"{one.names[k]}: class {kept[int(row.argmax())]} {100 * row.max():.0f} %" for k, row in _few(table_)]
    return picture(draw, f"Class shares by {one.what} in {one.name}. Largest: {'; '.join(largest)}")


def _few(rows: Any, most: int = 12) -> list[tuple[int, Any]]:
    return [(k, rows[k]) for k in range(min(len(rows), most))]


def drift(found: Anatomies) -> Gallery | Fragment:
    """How the mean features move from group to group."""
    return _gallery([_drift(one) for one in found.shown if one.drift is not None], "There is a single group, or there are no features.")


def _drift(one: Anatomy) -> Any:
    moved = one.drift

    def draw(theme: Theme) -> Any:
        title = f"Mean of {moved.of}, {scenario_words(one.name)}" if moved else ""
        return drift_figure(moved, theme, title=title, what=one.what, in_order=one.in_order) if moved else None

    shift = ", ".join(f"{value:.2f}" for value in (moved.shift if moved else ()))
    return picture(draw, f"Drift of the mean {moved.of if moved else ''} in {one.name}; distance from the first: {shift}")


def homophily(found: Anatomies) -> Gallery | Fragment:
    """Label homophily per group beside the whole graph's, with the methods' scores where there are records."""
    shown = [one for one in found.shown if one.groups["homophily"].notna().any()]
    return _gallery([_homophily(one) for one in shown], "Label homophily is defined for labelled nodes only.")


def _homophily(one: Anatomy) -> Any:
    values = one.groups["homophily"].to_numpy(dtype=np.float64)
    scored = one.scores if one.percent else one.scores.iloc[:0]
    order = list(dict.fromkeys(scored["label"])) if len(scored) else []

    def draw(theme: Theme) -> Any:
        title = f"Label homophily, {scenario_words(one.name)}"
        return homophily_figure(values, one.whole["homophily"], scored, theme, title=title, what=one.what, order=order, ylabel=one.measure)

    said = ", ".join(f"{value:.2f}" for value in values)
    alt = f"Label homophily by {one.what} in {one.name}: {said}; full graph {one.whole['homophily']:.2f}"
    return picture(draw, alt)


def degrees(found: Anatomies) -> Gallery | Fragment:
    """Distributions of degree and of node homophily: the whole data set, and the first, the middle and the last group."""
    return _gallery([_degrees(one) for one in found.shown], "No data set of this page is here.")


def _degrees(one: Anatomy) -> Any:
    names = [WHOLE, *_three(one.names)]
    top = max(float(one.degrees[WHOLE].max(initial=1.0)), 1.0)
    panels = [
        Panel(
            "degree", {name: cumulative(one.degrees[name]) for name in names}, (0.0, 1.1 * top), logarithmic=not one.level.startswith("G")
        )
    ]
    valued = {name: one.homophilies[name] for name in names if name in one.homophilies and one.homophilies[name].size}
    if valued:
        panels.append(Panel("label homophily of nodes", {name: cumulative(values) for name, values in valued.items()}, (0.0, 1.0)))
    unit = "graphs" if one.level.startswith("G") else "nodes"

    def draw(theme: Theme) -> Any:
        return cumulative_figure(panels, theme, title=f"Degrees, {scenario_words(one.name)}", order=names, unit=unit)

    means = ", ".join(f"{name} {one.degrees[name].mean():.1f}" for name in names if one.degrees[name].size)
    return picture(draw, f"Distribution of degrees in {one.name}. Means: {means}")


def _three(names: Sequence[str]) -> list[str]:
    """The first, the middle and the last."""
    return list(dict.fromkeys([names[0], names[len(names) // 2], names[-1]]))


def _gallery(pictures: Sequence[Any], otherwise: str) -> Gallery | Fragment:
    return Gallery(tuple(pictures)) if pictures else empty(otherwise)
