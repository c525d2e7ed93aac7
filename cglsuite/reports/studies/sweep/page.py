"""The page on sensitivity to settings. It formats what :mod:`cglsuite.reports.studies.sweep.compute` computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, head_cell, mean_std_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import key_box, notice, tile
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.overview import notices
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.studies.sweep import compute
from cglsuite.reports.studies.sweep.figures import sweep_figure

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.studies.sweep.compute import Sweep

__all__ = ["curves", "overview", "points", "problems", "provenance"]

_NOTHING = "No setting on the axes of the campaigns has two values among the finished cells."


def overview(study: Sweep) -> Fragment:
    """The campaigns, their axes, and warnings to read before the numbers."""
    first, cells = study.results[0], study.cells
    tiles = [(sum(len(one.cells) for one in study.results), "cells planned"), (len(cells), "in use"), (len(study.methods), "methods")]
    tiles += [(cells[axis].nunique(), f"values of {axis}") for axis in study.axes]
    tiles += [(cells["order"].nunique(), "orders"), (cells["seed"].nunique(), "seeds (split/init)")]
    parts: list[Content] = [element("p", element("strong", _title(study)), class_="lead")]
    parts.append(element("p", first.campaign.description) if first.campaign.description else None)
    parts.append(_message(study))
    parts.append(element("ul", *(tile(value, label) for value, label in tiles), class_="tiles"))
    for one in study.results:
        parts += notices(one)
    uneven = compute.unevenly_filled(compute.sweep_curves(study))
    parts += [notice("The points of these curves have different numbers of repetitions:", *uneven[:8])] if uneven else []
    return join(parts)


def _title(study: Sweep) -> str:
    """What the page is about: the axes, and the campaign."""
    first, (*others, last) = study.results[0].title, study.axes or ("",)
    return f"Sensitivity to {' and '.join(filter(None, [', '.join(others), last]))}: {first}" if study.axes else first


def _message(study: Sweep) -> Fragment | None:
    """Key results: per design and method the lowest and the highest mean, and where they are."""
    frame = compute.sweep_curves(study, "aa")
    lines = []
    for (design, label), part in frame.groupby(["design", "label"], sort=False):
        scale, unit = (100.0, " %") if study.percent[str(design)] else (1.0, "")
        low, high = (as_rows(part.sort_values("mean", kind="stable"))[at] for at in (0, -1))
        if low["mean"] < high["mean"]:
            ends = " to ".join(f"{scale * row['mean']:.1f}{unit} at {_place(row)}" for row in (low, high))
            said = f": mean {study.measures['aa'].label.split()[0]} goes from {ends}."
            lines.append(element("li", element("strong", f"{_words(str(design))}, {label}"), said))
    return key_box(lines) if lines else None


def _place(row: Mapping[str, Any]) -> str:
    name = str(row["axis"]).partition(".")[2] or row["axis"]
    return ", ".join(sorted(filter(None, [f"{name} = {row['value']}", *str(row["rest"]).split(", ")])))


def _words(design: str) -> str:
    """A design with its scenario in words."""
    preset, times, rest = design.partition(" × ")
    return f"{scenario_words(preset)}{times}{rest}"


def curves(study: Sweep, metric: str = "aa") -> Gallery | Fragment:
    """One figure per design and axis: a line per method, with intervals."""
    frame = compute.sweep_curves(study, metric)
    if frame.empty:
        return empty(_NOTHING)
    parts = frame.groupby(["design", "axis", "rest"], sort=False)
    return Gallery(tuple(_curve(study, metric, (str(d), str(a), str(r)), part, _bounds(frame, str(d))) for (d, a, r), part in parts))


def _bounds(frame: pd.DataFrame, design: str) -> tuple[float, float]:
    """The shared vertical axis of a design's figures."""
    mine = frame[frame["design"] == design]
    ends = mine[["mean", "low", "high"]].to_numpy(dtype=np.float64)
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin


def _curve(study: Sweep, metric: str, where: tuple[str, str, str], part: pd.DataFrame, bounds: tuple[float, float]) -> Any:
    design, axis, rest = where
    percent, name = study.percent[design], axis.partition(".")[2] or axis
    scale = 100.0 if percent else 1.0
    points = "; ".join(f"{row['label']} at {row['value']}: {scale * row['mean']:.1f}" for row in as_rows(part))
    kinds = sorted(set(part["interval"]) & {"BCa", "t"})
    drawn = (
        f"Bars: 95 % interval ({', '.join(kinds)}) over {'/'.join(dict.fromkeys(part['unit']))}."
        if kinds
        else "Too few units for intervals."
    )
    measure = study.measures[metric]
    ylabel = f"{measure.label}{', %' if percent else ''}"

    def draw(theme: Theme) -> Any:
        title = f"{name} at {rest}" if rest else name
        return sweep_figure(part, theme, title=title, xlabel=axis, ylabel=ylabel, order=study.methods, percent=percent, bounds=bounds)

    alt = f"{measure.name} against {axis} ({rest or 'no other axis'}) in {design}. {points}"
    return picture(draw, alt, drawn, f"{_words(design)} – {study.performance[design]}")


def points(study: Sweep, metric: str = "aa") -> Fragment:
    """The same points as tables: one per design and axis, a row per method, a column per value."""
    frame = compute.sweep_curves(study, metric)
    if frame.empty:
        return empty(_NOTHING)
    return join(
        _table(study, metric, str(d), str(a), str(r), part) for (d, a, r), part in frame.groupby(["design", "axis", "rest"], sort=False)
    )


def _table(study: Sweep, metric: str, design: str, axis: str, rest: str, part: pd.DataFrame) -> Fragment:
    percent = study.percent[design]
    scale, digits = (100.0, 1) if percent else (1.0, 4)
    values = list(part.sort_values("place")["value"].drop_duplicates())
    labels = [label for label in study.methods if (part["label"] == label).any()]
    by_place = {(row["label"], row["value"]): row for row in as_rows(part)}
    usual = int(part["n"].mode().iloc[0])
    rows = [[row_head(label), *(_cell(by_place.get((label, value)), scale, digits, usual) for value in values)] for label in labels]
    sizes = [part[part["value"] == value]["parameters"].mean() for value in values]
    if len(set(sizes)) > 1:
        cells = [number_cell(size, 0) for size in sizes]
        rows.append([element("th", "parameters of the model", class_="name quiet", scope="row"), *cells])
    unit = "/".join(dict.fromkeys(part["unit"]))
    label = study.measures[metric].label
    about = f" – {label}{', %' if percent else ''} against {axis}{f', {rest}' if rest else ''}: mean ± std over {usual} {unit}"
    head = [head_cell("method", "name"), *(head_cell(value, "number") for value in values)]
    return table(head, rows, join([element("strong", _words(design)), about]))


def _cell(row: Any, scale: float, digits: int, usual: int) -> Fragment:
    if row is None:
        return number_cell(None)
    remark = f" (n={number_text(row['n'], 0)})" if row["n"] != usual else ""
    return mean_std_cell(row["mean"], row["std"], scale=scale, digits=digits, remark=remark)


def problems(study: Sweep) -> Fragment:
    """Every planned cell without a result, with its reason, campaign by campaign."""
    return show_runs.each_problems(study.results)


def provenance(study: Sweep) -> Facts:
    """Code and environment of the records, campaign by campaign, with lines for the page footer."""
    return show_runs.each_provenance(study.results)
