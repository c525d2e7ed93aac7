"""The sensitivity of results to settings. This module contains the page, its figures and their data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cglsuite.base.errors import UnknownNameError
from cglsuite.base.hashing import canonical
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.cells.records.record import Record
from cglsuite.reports.kit.figures import grid_picture
from cglsuite.reports.kit.pictures import (
    Gallery,
    Theme,
    labels_in,
    legend,
    mark_series,
    picture,
    plain_axes,
    point_texts,
    style_of,
    titled_figure,
)
from cglsuite.reports.kit.tables import as_rows, empty, head_cell, mean_std_cell, number_cell, number_text, row_head, table, titled
from cglsuite.reports.kit.text import key_box, listed, notice, scenario_words, tile
from cglsuite.reports.results.measures import is_fraction, measures_of, performance_bounds, performance_name, value_of
from cglsuite.reports.results.results import CampaignResults, Group
from cglsuite.reports.results.runs import problems, provenance
from cglsuite.reports.results.summary import notices
from cglsuite.reports.results.tables import mean_interval, mean_std
from cglsuite.reports.results.variants import order_of, value_as_text
from cglsuite.specs import MetricSpec

__all__ = ["BACKBONE", "Sweep", "curves", "grid", "overview", "points", "problems", "provenance", "sweep", "sweep_curves"]

_NOTHING = "No setting on the axes of the campaigns has two values among the finished cells."


def overview(study: Sweep) -> Fragment:
    """Introduce the campaigns and their axes, and show warnings about the numbers."""
    first, cells = study.results[0], study.cells
    tiles = [(sum(len(result.cells) for result in study.results), "cells planned"), (len(cells), "in use"), (len(study.methods), "methods")]
    tiles += [(cells[axis].nunique(), f"values of {axis}") for axis in study.axes]
    tiles += [(cells["order"].nunique(), "orders"), (cells["seed"].nunique(), "seeds (split/init)")]
    parts: list[Content] = [element("p", element("strong", _title(study)), class_="lead")]
    parts.append(element("p", first.campaign.description) if first.campaign.description else None)
    parts.append(_message(study))
    parts.append(element("ul", *(tile(value, label) for value, label in tiles), class_="tiles"))
    for campaign in study.results:
        parts += notices(campaign)
    uneven = unevenly_filled(sweep_curves(study))
    parts += [notice("The points of these curves have different numbers of repetitions:", *uneven[:8])] if uneven else []
    return join(parts)


def _title(study: Sweep) -> str:
    """The title of the page: the axes, and the campaign."""
    first, (*others, last) = study.results[0].title, study.axes or ("",)
    return f"Sensitivity to {' and '.join(filter(None, [', '.join(others), last]))}: {first}" if study.axes else first


def _message(study: Sweep) -> Fragment | None:
    """Key results: per design and method by how much the settings move its mean, from the most to the least, and which give its ends."""
    frame = sweep_curves(study, "aa")
    found = []
    for (design, label), part in frame.groupby(["design", "label"], sort=False):
        scale, unit, words = (100.0, "%", " points") if study.percent[str(design)] else (1.0, "", "")
        low, high = (as_rows(part.sort_values("mean", kind="stable"))[at] for at in (0, -1))
        if low["mean"] < high["mean"]:
            size = scale * (high["mean"] - low["mean"])
            best, worst = (f"{number_text(scale * row['mean'], 1)}{unit} at {_place(row)}" for row in (high, low))
            said = f": the settings move {study.measures['aa'].symbol} by {number_text(size, 1)}{words}, from {worst} to {best}."
            title = str(label) if frame["design"].nunique() == 1 else f"{label}, {_words(str(design))}"
            found.append((-size, element("li", element("strong", title), said)))
    lines = [line for _, line in sorted(found, key=lambda pair: pair[0])]
    return key_box((), lines, more="more line") if lines else None


_LEAST_SETTINGS, _MOST_SETTINGS = 3, 80


def grid(study: Sweep) -> Gallery | None:
    """Plot each method's mean at each setting as a heat map, or return ``None`` for fewer than three settings, where the curves suffice."""
    frame = sweep_curves(study, "aa")
    frame = frame[[study.percent[str(design)] for design in frame["design"]]]
    several = frame["design"].nunique() > 1
    cells = {
        (str(row["label"]), f"{_words(row['design'])}: {_place(row)}" if several else _place(row)): float(row["mean"])
        for row in as_rows(frame.sort_values(["design", "rest", "axis", "place"], kind="stable"))
    }
    if not _LEAST_SETTINGS <= len({setting for _, setting in cells}) <= _MOST_SETTINGS:
        return None
    what = f"Mean {study.measures['aa'].symbol}"
    about = "Means over records; –: no result, or a setting that the method does not have"
    return Gallery((grid_picture(cells, title=f"{what} by method and setting, %", what=what, caption=about, columns="settings"),))


def _place(row: Mapping[str, Any]) -> str:
    return ", ".join(sorted(filter(None, [f"{_short_key(row['axis'])} = {row['value']}", *str(row["rest"]).split(", ")])))


def _words(design: str) -> str:
    """A design with its scenario in words."""
    preset, times, rest = design.partition(" × ")
    return f"{scenario_words(preset)}{times}{rest}"


def curves(study: Sweep, metric: str = "aa") -> Gallery | Fragment:
    """Plot one figure per design and axis, with one line per method and its intervals."""
    frame = sweep_curves(study, metric)
    if frame.empty:
        return empty(_NOTHING)
    parts: Any = frame.groupby(["design", "axis", "rest"], sort=False)
    return Gallery(tuple(_curve(study, metric, d, a, r, part, _bounds(frame, d)) for (d, a, r), part in parts))


def _bounds(frame: pd.DataFrame, design: str) -> tuple[float, float]:
    """The shared vertical axis of a design's figures."""
    mine = frame[frame["design"] == design]
    ends = mine[["mean", "low", "high"]].to_numpy(dtype=np.float64)
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def _curve(study: Sweep, metric: str, design: str, axis: str, rest: str, part: pd.DataFrame, bounds: tuple[float, float]) -> Any:
    percent, name = study.percent[design], _short_key(axis)
    scale = 100.0 if percent else 1.0
    points = "; ".join(f"{row['label']} at {row['value']}: {scale * row['mean']:.1f}" for row in as_rows(part))
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    over = f"({', '.join(kinds)}) over {'/'.join(dict.fromkeys(part['unit']))}"
    drawn = f"Bars: 95% interval {over}." if kinds else "Too few units for intervals."
    measure = study.measures[metric]
    ylabel = f"{measure.axis}{', %' if percent else ''}"

    look: dict[str, Any] = {"title": f"{name} at {rest}" if rest else name, "xlabel": axis, "ylabel": ylabel}
    draw = partial(sweep_figure, part, **look, order=study.methods, percent=percent, bounds=bounds)
    alt = f"{measure.name} against {axis} ({rest or 'no other axis'}) in {design}. {points}"
    return picture(draw, alt, drawn, f"{_words(design)} – {study.performance[design]}")


def points(study: Sweep, metric: str = "aa") -> Fragment:
    """Tabulate the points of the curves, with one table per design and axis, one row per method and one column per value."""
    frame = sweep_curves(study, metric)
    if frame.empty:
        return empty(_NOTHING)
    parts: Any = frame.groupby(["design", "axis", "rest"], sort=False)
    return join(_table(study, metric, d, a, r, part) for (d, a, r), part in parts)


def _table(study: Sweep, metric: str, design: str, axis: str, rest: str, part: pd.DataFrame) -> Fragment:
    percent = study.percent[design]
    scale, digits = (100.0, 1) if percent else (1.0, 4)
    values = list(part.sort_values("place")["value"].drop_duplicates())
    by_place = {(row["label"], row["value"]): row for row in as_rows(part)}
    usual = int(part["n"].mode().iloc[0])
    labels = labels_in(part, study.methods)
    rows = [[row_head(label), *(_cell(by_place.get((label, value)), scale, digits, usual) for value in values)] for label in labels]
    sizes = [part[part["value"] == value]["parameters"].mean() for value in values]
    if len(set(sizes)) > 1:
        cells = [number_cell(size, 0) for size in sizes]
        rows.append([element("th", "parameters of the model", class_="name quiet", scope="row"), *cells])
    measured = f"{study.measures[metric].axis}{', %' if percent else ''} against {axis}{f', {rest}' if rest else ''}"
    about = f" – {measured}: mean ± std over {usual} {'/'.join(dict.fromkeys(part['unit']))}"
    return table([head_cell("method", "name"), *(head_cell(value, "number") for value in values)], rows, titled(_words(design), about))


def _cell(row: Any, scale: float, digits: int, usual: int) -> Fragment:
    if row is None:
        return number_cell(None)
    remark = f" (n={number_text(row['n'], 0)})" if row["n"] != usual else ""
    return mean_std_cell(row["mean"], row["std"], scale=scale, digits=digits, remark=remark)


# Curves over the values of a hyperparameter or switch.


def sweep_figure(
    frame: pd.DataFrame,
    theme: Theme,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    order: Sequence[str],
    percent: bool,
    bounds: tuple[float, float],
) -> Figure:
    """Plot a metric against a hyperparameter or switch, with one line per method and its intervals.

    Args:
        frame: columns label, place (position of the value on the axis, 0-based), value (in words), mean, low, high (NaN: no interval).
        order: labels in the order of the legend. bounds: of the vertical axis.
    """
    scale = 100.0 if percent else 1.0
    labels = labels_in(frame, order)
    figure, axes = titled_figure(title, theme, 4.7, 2.45, rows=int(np.ceil(len(labels) / 2)))
    values = frame[["place", "value"]].drop_duplicates().sort_values("place")
    for label in labels:
        part = frame[frame["label"] == label].sort_values("place")
        look = style_of(label, order, theme)
        shift = min(0.05, 0.5 / len(labels)) * (labels.index(label) - (len(labels) - 1) / 2)
        x = part["place"].to_numpy(dtype=np.float64) + shift
        bars = axes.vlines(x, scale * part["low"], scale * part["high"], color=look["color"], linewidth=1.2, alpha=0.75)
        (line,) = axes.plot(x, scale * part["mean"], label=label, markersize=4.5, linewidth=1.6, **look)
        mark_series(label, line, bars, points=point_texts([f"{xlabel} {value}" for value in part["value"]], part["mean"], percent=percent))
    axes.set_xticks(values["place"].to_list(), values["value"].to_list())
    axes.set_ylim(scale * bounds[0], scale * bounds[1])
    axes.set_xlim(values["place"].min() - 0.4, values["place"].max() + 0.4)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    plain_axes(axes, theme, "y")
    legend(figure, 2, hides=labels)
    return figure


# How results depend on a setting, of a method, the backbone or the protocol: campaigns with axes, as tidy frames of curves.
# Everything here computes; :mod:`cglsuite.reports.studies.sweep` formats. Values are fractions.

BACKBONE = ("backbone.",)
"""Prefix of keys for the backbone's hyperparameters."""
_ORDER = "scenario.class_order"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The records of campaigns along their axes.

    Args:
        results: of every campaign. axes: dotted keys. cells: one row per record: design (everything that records
            share), label (method), order, seed, parameters (of the model), a column per measure and one per axis.
        measures: the measures drawn against an axis, by column name.
        percent: by design, whether performance is a fraction; bounds: of performance. performance: the name of the measure.
        methods: labels in campaign order, which determines their colours.
    """

    results: tuple[CampaignResults, ...]
    axes: tuple[str, ...]
    cells: pd.DataFrame
    measures: Mapping[str, MetricSpec]
    percent: Mapping[str, bool]
    bounds: Mapping[str, tuple[float, float] | None]
    performance: Mapping[str, str]
    methods: tuple[str, ...]


def sweep(results: Sequence[CampaignResults], axes: str | Sequence[str] = (), varying: Sequence[str] = ()) -> Sweep:
    """Collect the cells of all campaigns along the axes. A shared record counts once.

    Args:
        axes: dotted keys; none: the axes of the campaigns (``grid.axes``), or those with a prefix in ``varying`` where it is given. In both
            cases only keys with several values among the records of one scenario count. Without any axes,
            the backbone's hyperparameters are used.

    Raises:
        UnknownNameError: if no record has the axis.
        UsageError: if the records mix task-free streams and task streams.
    """
    sources = [(owner, group, record) for owner in results for group in owner.groups for record in group.records]
    records = list({record.key: record for _, _, record in sources}.values())
    known = sorted({name for record in records for name in record.cell["configuration"]})
    for name in listed(axes):
        if records and name not in known:
            raise UnknownNameError("key in axes", name, known)
    declared = tuple(dict.fromkeys(name for owner in results for name in owner.campaign.grid.further))
    swept, measures = tuple(listed(axes)) or _varying_keys(records, varying or declared or BACKBONE), measures_of(records)
    rows: dict[str, dict[str, Any]] = {}
    for owner, group, record in sources:
        if record.key not in rows:
            rows[record.key] = _row(owner, group, record, swept) | {name: value_of(measure, record) for name, measure in measures.items()}
    frame = pd.DataFrame(list(rows.values()), columns=["design", "method", "own", "order", "seed", *measures, "parameters", *swept])
    frame["label"] = _labels(frame, swept)
    by_design = [(row["design"], record) for row, record in zip(rows.values(), records, strict=True)]
    return Sweep(
        results=tuple(results),
        axes=swept,
        cells=frame,
        measures=measures,
        percent={design: is_fraction(record) for design, record in by_design},
        bounds={design: performance_bounds(record) for design, record in by_design},
        performance={design: performance_name(record.scenario) for design, record in by_design},
        methods=tuple(dict.fromkeys(frame["label"])),
    )


def _varying_keys(records: Iterable[Record], sections: Sequence[str]) -> tuple[str, ...]:
    values: dict[str, dict[str, set[str]]] = {}
    for record in records:
        family = f"{record.cell['scenario']} × {record.cell['backbone']}"
        for name, value in record.cell["configuration"].items():
            if name in sections or name.startswith(tuple(s for s in sections if s.endswith("."))):
                values.setdefault(name, {}).setdefault(family, set()).add(canonical(value))
    return tuple(sorted(name for name, families in values.items() if any(len(v) > 1 for v in families.values())))


def _row(results: CampaignResults, group: Group, record: Record, axes: Sequence[str]) -> dict[str, Any]:
    variant, configuration, seeds = results.variants.get(group.preset), record.cell["configuration"], record.cell["seeds"]
    changes = {n: v for n, v in (variant.changes if variant else {}).items() if n != _ORDER and n not in axes}
    changed = ", ".join(f"{name} = {value_as_text(value)}" for name, value in changes.items())
    return {
        "design": f"{record.cell['scenario']} × {group.backbone}" + (f" with {changed}" if changed else ""),
        "method": group.method,
        "own": canonical({n: v for n, v in configuration.items() if n.startswith("method.")}),
        "order": order_of(record),
        "seed": f"{seeds['split']}/{seeds['init']}",
        "parameters": record.parameters.get("model"),
        **{axis: _axis_value(configuration, axis) for axis in axes},
    }


def _axis_value(configuration: Mapping[str, Any], axis: str) -> Any:
    """A cell's value on an axis: ``"none"`` for None, NaN if the cell has no such setting (it belongs to another method)."""
    if axis not in configuration:
        return np.nan
    value = configuration[axis]
    return value_as_text(value) if value is None else value


def _labels(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """The method, numbered if one point has several of its configurations (a search may choose another one at every point)."""
    points = [canonical([None if pd.isna(row[a]) else row[a] for a in axes]) for _, row in frame.iterrows()]
    counted = frame.assign(point=points).groupby(["design", "method", "point"])["own"].nunique()
    several = set(counted[counted > 1].index.get_level_values("method"))
    numbers = frame.groupby("method")["own"].transform(lambda settings: pd.factorize(settings)[0] + 1)
    named = zip(frame["method"], numbers, strict=True)
    return [f"{method} (configuration {number})" if method in several else method for method, number in named]


def sweep_curves(study: Sweep, metric: str = "aa") -> pd.DataFrame:
    """Compute a metric against every axis with the other axes fixed. If an axis is a setting of one method, only that method has a curve.

    Orders are the unit of replication: seeds within an order are averaged. If a point has a single order, its seeds are the units.

    Returns:
        Columns design, axis, rest (the other axes as text), label, place (index of the value on the curve), value (as text), mean,
        std, low, high, interval (kind, or why it is missing), n, unit (orders or seeds), parameters (mean of the model's). Axes with a
        single value beside the rest have no rows; cells whose metric is undefined do not count.
    """
    rows: list[dict[str, Any]] = []
    for axis in study.axes:
        others = [other for other in study.axes if other != axis]
        cells = study.cells.dropna(subset=[metric, axis])
        rest = [
            ", ".join(f"{_short_key(other)} = {value_as_text(row[other])}" for other in others if not pd.isna(row[other]))
            for _, row in cells.iterrows()
        ]
        for (design, held), part in cells.assign(rest=rest).groupby(["design", "rest"], sort=False):
            values = sorted(set(part[axis]), key=_value_order)
            if len(values) < 2:
                continue
            identity = {"design": design, "axis": axis, "rest": held}
            bounds = study.bounds[str(design)] if study.measures[metric].quantity == "performance" else None
            for (label, value), point in part.groupby(["label", axis], sort=False):
                position = {"label": label, "place": values.index(value), "value": value_as_text(value)}
                rows.append(identity | position | _point(point, metric, bounds))
    columns = ["design", "axis", "rest", "label", "place", "value", "mean", "std", "low", "high", "interval", "n", "unit", "parameters"]
    return pd.DataFrame(rows, columns=columns)


def _short_key(axis: str) -> str:
    return axis.partition(".")[2] or axis


def _value_order(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value))


def _point(cells: pd.DataFrame, metric: str, bounds: tuple[float, float] | None) -> dict[str, Any]:
    several = cells["order"].nunique() > 1
    units = (cells.groupby("order", sort=False)[metric].mean() if several else cells[metric]).to_numpy(dtype=np.float64)
    unit = "orders" if several else "seeds"
    return mean_std(units) | mean_interval(units, unit=unit, bounds=bounds) | {"unit": unit, "parameters": cells["parameters"].mean()}


def unevenly_filled(curves: pd.DataFrame) -> list[str]:
    """Describe curves with different numbers of units at their points, because differences along such a curve may come from orders."""
    notes = []
    for (design, axis, rest, label), part in curves.groupby(["design", "axis", "rest", "label"], sort=False):
        counts = Counter(part["n"])
        if len(counts) > 1:
            where = f"{design}, {_short_key(str(axis))}{f' ({rest})' if rest else ''}, {label}"
            notes.append(f"{where}: from {min(counts)} to {max(counts)} {'/'.join(dict.fromkeys(part['unit']))} per point")
    return notes
