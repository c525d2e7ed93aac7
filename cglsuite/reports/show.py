"""What notebooks put on the page: tables and figures of a campaign's results, ready to be displayed.

Every function here formats what :mod:`cglsuite.reports.tables` and :mod:`cglsuite.reports.published` compute, and computes nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.reports.htmltable import duration, empty, head_cell, mean_std_cell, number_cell, row_head, table
from cglsuite.reports.markup import Content, Fragment, element, join
from cglsuite.reports.mime import FACTS
from cglsuite.reports.rows import as_rows
from cglsuite.reports.text import value_text

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports.figures import Gallery
    from cglsuite.reports.results import CampaignResults
    from cglsuite.specs import MetricSpec

__all__ = [
    "Facts",
    "cell",
    "curves",
    "definitions",
    "matrices",
    "matrix",
    "names",
    "ordered_metrics",
    "overview",
    "problems",
    "provenance",
    "published",
    "resources",
    "searches",
    "settings",
    "summary",
]

_FIRST_METRICS = (
    "average_performance",
    "forgetting_from_diagonal",
    "forgetting_max",
    "backward_transfer",
    "forward_transfer",
    "intransigence",
)
_ARROWS = {"up": "↑", "down": "↓"}
_STATES = {"done": "good", "failed": "bad", "diverged": "bad", "timeout": "bad", "oom": "bad"}
_FOLD_ABOVE = 12
_NOTHING_DONE = "No cell of this campaign is finished yet."


@dataclass(frozen=True)
class Facts:
    """A fragment, and lines for the foot of the page."""

    body: Fragment
    footer: tuple[str, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {FACTS: {"footer": list(self.footer)}, "text/html": self.body.source, "text/plain": "\n".join(self.footer)}


# --- the campaign ----------------------------------------------------------------------------------------------------------------


def overview(results: CampaignResults) -> Fragment:
    """What the campaign is, how far it is, and what a reader must know before the numbers."""
    seconds = sum(float(r.timings_s.get("total") or 0.0) for r in results.records)
    tiles = [_tile(len(results.cells), "cells planned"), *(_tile(n, state) for state, n in results.counts().items())]
    tiles += [_tile(len({g.preset for g in results.groups}), "scenarios"), _tile(len({g.method for g in results.groups}), "methods")]
    tiles.append(_tile(duration(seconds), "computed in all"))
    description = results.campaign.description
    parts = [element("p", element("strong", results.title), class_="lead"), element("p", description) if description else None]
    return join([*parts, element("ul", *tiles, class_="tiles"), *_notices(results)])


def _tile(value: Content, label: str) -> Fragment:
    return element("li", element("b", value), element("span", label))


def _notices(results: CampaignResults) -> Iterable[Fragment]:
    lacking = {state: n for state, n in results.counts().items() if state in {"missing", "waiting"}}
    if lacking:
        told = ", ".join(f"{n} {state}" for state, n in lacking.items())
        yield _notice(f"This campaign is not finished: {told}. Means below are over what is there; n says how many records that is.")
    counted = {id(c) for group in results.groups for c in group.cells}
    stale = [c.stale for c in results.cells if c.stale and id(c) in counted]
    if stale:
        told = (
            f"{len(stale)} of {len(results.used)} records are stale: other code, or another class of machine, than would run now made them."
        )
        reasons = sorted(set(stale), key=stale.count, reverse=True)
        yield _notice(told, *reasons[:3], *([f"and {len(reasons) - 3} more differences"] if len(reasons) > 3 else []))
    if results.left_out:
        yield _notice(f"{len(results.left_out)} finished cells are left out: other code made them than the rest of their group.")


def _notice(first: str, *rest: str) -> Fragment:
    listed = element("ul", *(element("li", text) for text in rest)) if rest else None
    return element("div", element("p", first), listed, class_="notice", role="note")


# --- results ---------------------------------------------------------------------------------------------------------------------


def summary(results: CampaignResults) -> Fragment:
    """One table per preset: a row per method, mean ± standard deviation of every metric, and n."""
    from cglsuite.reports.tables import summary as compute

    frame = compute(results)
    if frame.empty:
        return empty(_NOTHING_DONE)
    return join(_summary_table(results, str(preset), part) for preset, part in frame.groupby("preset", sort=False))


def _summary_table(results: CampaignResults, preset: str, frame: pd.DataFrame) -> Fragment:
    percent = _percent(results, preset)
    present = set(frame["metric"])
    metrics = [name for name in ordered_metrics(results.metrics) if name in present]
    backbones = list(dict.fromkeys(frame["backbone"]))
    several = len(backbones) > 1
    rows = []
    for (method, backbone, variant), part in frame.groupby(["method", "backbone", "variant"], sort=False):
        by_metric = {row["metric"]: row for row in as_rows(part)}
        records = int(part["records"].iloc[0])
        cells = [_mean_std(by_metric.get(name), records, percent) for name in metrics]
        rows.append([row_head(method, variant, backbone if several else ""), number_cell(records, digits=0), *cells])
    told = "mean ± sample standard deviation over n records, which differ in their seeds only"
    facts = [*([] if several else [f"backbone {backbones[0]}"]), *(["percent"] if percent else []), told]
    head = [head_cell("method", "name"), head_cell("n", "number"), *(_metric_head(results.metrics[name]) for name in metrics)]
    return table(head, rows, join([element("strong", preset), f" – {'; '.join(facts)}"]))


def ordered_metrics(metrics: Mapping[str, Any]) -> list[str]:
    """Metric names, the field's usual ones first."""
    return [name for name in _FIRST_METRICS if name in metrics] + sorted(set(metrics) - set(_FIRST_METRICS))


def _metric_head(spec: MetricSpec) -> Fragment:
    label = f"{spec.label or spec.name} {_ARROWS[spec.direction]}"
    told = f"{spec.formula}: {spec.summary}"
    return element("th", label, element("br"), element("code", spec.name), class_="number", scope="col", title=told)


def _mean_std(row: Mapping[str, Any] | None, records: int, percent: bool) -> Fragment:
    if row is None:
        return number_cell(None)
    remark = f" (n={row['n']})" if row["n"] != records else ""
    return mean_std_cell(row["mean"], row["std"], scale=100.0 if percent else 1.0, digits=1 if percent else 4, remark=remark)


def _percent(results: CampaignResults, preset: str) -> bool:
    """Whether this preset's base metric is a fraction: everywhere but in graph regression."""
    return all(_is_fraction(g.records[0]) for g in results.groups if g.preset == preset)


def _is_fraction(record: Record) -> bool:
    return record.scenario.get("level") != "GR"


def definitions(results: CampaignResults) -> Fragment:
    """What each metric is: label, name, formula, direction, sign."""
    rows = []
    for name in ordered_metrics(results.metrics):
        spec = results.metrics[name]
        direction = f"{_ARROWS[spec.direction]} {'higher' if spec.direction == 'up' else 'lower'} is better"
        cells = [element("td", element("code", text), class_="nowrap") for text in (name, spec.formula)]
        words = [element("td", direction, class_="nowrap"), element("td", spec.summary, class_="long")]
        rows.append([row_head(spec.label or name), *cells, *words])
    caption = "M[k,j]: performance on task j after learning task k; row 0 is the untrained model; T is the last task."
    head = [head_cell(text) for text in ("label", "name", "definition", "direction", "in words")]
    return table(head, rows, caption) if rows else empty("No plugin provides a metric.")


def published(results: CampaignResults) -> Fragment:
    """Ours beside what papers print, with the difference and whether it is within two published standard deviations."""
    from cglsuite.reports.published import BOUND, compare

    frame = compare(results)
    if frame.empty:
        return empty("No paper prints a value for these presets, methods and metrics (or a switch of the preset was overridden).")
    head = [head_cell("method", "name"), head_cell("metric", "name"), head_cell("ours, %", "number"), head_cell("n", "number")]
    head += [head_cell(t, "number") for t in ("published, %", "difference", "in published std")]
    head += [head_cell("verdict"), head_cell("source")]
    if frame["remark"].any():
        head.append(head_cell("remark"))
    rows: list[list[Fragment]] = []
    for preset, part in frame.groupby("preset", sort=False):
        rows.append([_group_title(str(preset), len(head))])
        rows += [_published_row(results, row)[: len(head)] for row in as_rows(part)]
    judged = frame["agrees"].dropna()
    told = f"{int(judged.sum())} of {len(judged)} means lie within ±{BOUND:g} published standard deviations of the published mean"
    return table(head, rows, f"{told}; difference = ours − published, in points.")


_VERDICTS = {True: ("within 2 std", "good"), False: ("outside 2 std", "bad"), None: ("no deviation printed", "plain")}


def _published_row(results: CampaignResults, row: Mapping[str, Any]) -> list[Fragment]:
    text, kind = _VERDICTS[None if row["agrees"] is None else bool(row["agrees"])]
    metric = results.metrics[row["metric"]]
    return [
        row_head(row["method"], row["variant"]),
        element("td", f"{row['label']} ", element("code", metric.name), class_="name", title=metric.formula),
        mean_std_cell(row["mean"], row["std"], scale=1.0, digits=1),
        number_cell(row["n"], digits=0),
        element("td", row["printed"].replace("-", "−"), class_="number", data_value=repr(float(row["published"]))),
        number_cell(row["difference"], digits=1, plus=True),
        number_cell(row["deviations"], digits=1, plus=True),
        element("td", element("span", text, class_=f"badge {kind}")),
        element("td", f"{row['paper']}, table {row['table']}", class_="nowrap"),
        element("td", row["remark"], class_="quiet long"),
    ]


def _group_title(text: str, columns: int) -> Fragment:
    return element("th", text, colspan=columns, scope="colgroup")


def problems(results: CampaignResults) -> Fragment:
    """Every cell without a result, with its reason."""
    from cglsuite.reports.tables import problems as compute

    frame = compute(results)
    if frame.empty:
        return empty("Every planned cell has a result.")
    rows = []
    for row in as_rows(frame):
        badge = element("span", row["state"], class_=f"badge {_STATES.get(row['state'], 'note')}")
        cells = [element("td", row["preset"], class_="name"), element("td", badge), element("td", row["reason"], class_="long")]
        rows.append([row_head(row["method"]), *cells, element("td", row["seeds"], class_="mono")])
    return table([head_cell(t) for t in ("method", "scenario", "state", "reason", "seeds (order/split/init)")], rows)


# --- figures ---------------------------------------------------------------------------------------------------------------------


def curves(results: CampaignResults, metric: str = "average_performance") -> Gallery | Fragment:
    """One figure per preset: ``metric`` after every task, a line per method."""
    from cglsuite.reports.figures import Gallery, Theme, curve_figure, picture
    from cglsuite.reports.tables import curves as compute

    frame = compute(results, metric)
    if frame.empty:
        return empty("Nothing to draw: no finished cell has a value.")
    frame = frame.assign(label=_labels(frame))
    order = list(dict.fromkeys(frame["label"]))
    spec = results.metrics.get(metric)
    label = f"{metric} {_ARROWS[spec.direction]}" if spec else metric  # the name says the definition, a paper's label would not

    def one(preset: str, part: pd.DataFrame) -> Any:
        percent = _percent(results, preset)
        last = as_rows(part[part["task"] == part["task"].max()])
        ends = "; ".join(f"{row['label']} {(100.0 if percent else 1.0) * row['mean']:.1f}" for row in last)

        def draw(theme: Theme) -> Any:
            return curve_figure(part, theme, title=preset, ylabel=f"{label}{', %' if percent else ''}", order=order, percent=percent)

        return picture(draw, alt=f"{label} over tasks, {preset}. After the last task: {ends}")

    return Gallery(tuple(one(str(preset), part) for preset, part in frame.groupby("preset", sort=False)))


def _labels(frame: pd.DataFrame) -> list[str]:
    """Method, with variant and, where there are several, the backbone."""
    several = frame["backbone"].nunique() > 1
    return [", ".join(filter(None, [row["method"], row["backbone"] if several else "", row["variant"]])) for row in as_rows(frame)]


def matrices(results: CampaignResults) -> Gallery | Fragment:
    """The mean performance matrix of every preset and method as a heat map."""
    from cglsuite.reports.figures import Gallery
    from cglsuite.reports.tables import mean_matrices

    pictures = []
    for group, values in mean_matrices(results):
        percent, n = _percent(results, group.preset), len(group.records)
        last = ", ".join("–" if math.isnan(v) else f"{(100.0 if percent else 1.0) * v:.1f}" for v in values[-1])
        alt = f"Mean performance matrix of {group.label} on {group.preset} over {n} records. After the last task: {last}"
        pictures.append(_matrix_picture(values, f"{group.label}, n = {n}", alt, percent, group.preset))
    return Gallery(tuple(pictures)) if pictures else empty(_NOTHING_DONE)


def matrix(record: Record) -> Gallery | Fragment:
    """One record's performance matrix as a heat map."""
    from cglsuite.reports.figures import Gallery

    if not record.done:
        return empty("There is no matrix: the cell did not finish.")
    alt = f"Performance matrix of {record.label}"
    return Gallery((_matrix_picture(record.performance(), str(record.cell["method"]), alt, _is_fraction(record), record.label),))


def _matrix_picture(values: Any, title: str, alt: str, percent: bool, group: str) -> Any:
    import numpy as np

    from cglsuite.reports.figures import Theme, matrix_figure, picture

    finite = values[np.isfinite(values)]
    bounds = (0.0, 1.0) if percent or not finite.size else (float(finite.min()), float(finite.max()))

    def draw(theme: Theme) -> Any:
        return matrix_figure(values, title, theme, percent=percent, bounds=bounds)

    return picture(draw, alt, group=group)


# --- how it was done -------------------------------------------------------------------------------------------------------------


def resources(results: CampaignResults) -> Fragment:
    """Time and memory per group, means over its records."""
    from cglsuite.reports.tables import resources as compute

    frame = compute(results)
    if frame.empty:
        return empty(_NOTHING_DONE)
    parts = ("training", "method", "evaluation", "framework")
    numbers = ["n", "total, s", *(f"{name}, %" for name in parts), "peak memory, MB", "kept items", "kept, kB", "extra parameters"]
    rows: list[list[Fragment]] = []
    for preset, part in frame.groupby("preset", sort=False):
        rows.append([_group_title(str(preset), len(numbers) + 1)])
        for row in as_rows(part):
            cells = [number_cell(row["n"], 0), number_cell(row["total_s"], 1)]
            cells += [number_cell(100 * row[f"{name}_s"] / row["total_s"] if row["total_s"] else None, 1) for name in parts]
            cells += [number_cell(row["peak_bytes"] / 1e6, 0), number_cell(row["memory_items"], 0)]
            cells += [number_cell(row["memory_bytes"] / 1e3, 1), number_cell(row["method_parameters"], 0)]
            rows.append([row_head(row["method"], row["variant"]), *cells])
    head = [head_cell("method", "name"), *(head_cell(text, "number") for text in numbers)]
    return table(head, rows, "Means per cell. Kept: what the method's metered memory holds in the end.")


def searches(results: CampaignResults) -> Fragment:
    """What the campaign's hyper-parameter searches chose, and by what."""
    from cglsuite.reports.tables import searches as compute

    frame = compute(results)
    if frame.empty:
        return empty("This campaign searches no hyper-parameters, or its searches have not finished.")
    rows = []
    for row in as_rows(frame):
        counts = [number_cell(row["candidates"], 0), number_cell(row["seeds"], 0)]
        chosen = [element("td", element("code", row["chosen"]), class_="long"), number_cell(100 * row["score"], 1)]
        rows.append([row_head(row["method"], row["backbone"]), element("td", row["scenario"], class_="name"), *counts, *chosen])
    head = [head_cell("method", "name"), head_cell("scenario", "name"), head_cell("candidates", "number"), head_cell("seeds", "number")]
    head += [head_cell("chosen"), head_cell("validation AP, %", "number")]
    return table(head, rows, "Searched by the mean validation average performance after the last task.")


def settings(results: CampaignResults) -> Fragment:
    """Per preset: the settings in which methods differ, and, folded, those that they share."""
    from cglsuite.reports.tables import common_settings
    from cglsuite.reports.tables import settings as compute

    frame = compute(results)
    if frame.empty:
        return empty(_NOTHING_DONE)
    parts = []
    for preset, part in frame.groupby("preset", sort=False):
        several = part["backbone"].nunique() > 1
        rows = []
        for row in as_rows(part):
            own = [f"{name} = {value_text(value)}" for name, value in row.items() if "." in name and value is not None]
            listed = (
                join(x for text in own for x in (element("code", text), element("br"))) if own else element("span", "none", class_="quiet")
            )
            rows.append([row_head(row["method"], row["variant"], row["backbone"] if several else ""), element("td", listed, class_="long")])
        shared = common_settings(results, str(preset))
        folded = element("summary", f"{len(shared)} settings that they share")
        parts.append(table([head_cell("method", "name"), head_cell("settings of its own")], rows, element("strong", str(preset))))
        parts.append(element("details", folded, _facts({name: value_text(value) for name, value in shared.items()}, code=True)))
    return join(parts)


def provenance(results: CampaignResults) -> Facts:
    """Whose code made the records, on what, with which seeds; and lines for the foot of the page."""
    from cglsuite import __version__
    from cglsuite.reports.tables import conditions, sources

    rows = []
    for row in as_rows(sources(results)):
        source = element("td", element("code", row["source"][:12]), title=row["source"])
        counted = [number_cell(row["records"], 0), element("td", row["provides"], class_="long")]
        rows.append([row_head(row["distribution"]), element("td", row["version"]), source, *counted])
    head = [
        head_cell("distribution", "name"),
        head_cell("version"),
        head_cell("source"),
        head_cell("records", "number"),
        head_cell("provides"),
    ]
    told = "Code that made the records; source: the beginning of the SHA-256 over its files."
    plugins = ", ".join(f"{name} {version}" for name, version in results.plugins if name != "cglsuite")
    footer = (
        f"Campaign {results.campaign.name}: {len(results.used)} records of {len(results.cells)} planned cells.",
        f"cglsuite {__version__}" + (f" with {plugins}." if plugins else "."),
    )
    return Facts(join([table(head, rows, told) if rows else empty(_NOTHING_DONE), _facts(conditions(results))]), footer)


def _facts(pairs: Mapping[str, str], code: bool = False) -> Fragment:
    named = [(element("code", name) if code else name, text) for name, text in pairs.items() if text]
    return element("dl", *(part for name, text in named for part in (element("dt", name), element("dd", text))), class_="facts")


# --- exploring -------------------------------------------------------------------------------------------------------------------


def names(catalogue: Catalogue, kind: str) -> Fragment:
    """The catalogue's entries of a kind: name, what it is, who provides it."""
    rows = []
    for entry in catalogue.entries(kind):
        told = [element("td", entry.spec.summary, class_="long"), element("td", entry.provider, class_="quiet nowrap")]
        rows.append([row_head(entry.name), *told])
    if not rows:
        return empty(f"No plugin provides a {kind}.")
    listed = table([head_cell(kind, "name"), head_cell("what it is"), head_cell("provided by")], rows)
    return listed if len(rows) <= _FOLD_ABOVE else element("details", element("summary", f"{len(rows)} {kind}s"), listed)


def cell(record: Record, catalogue: Catalogue) -> Fragment:
    """One record: how it ended, and its metrics with their definitions."""
    if not record.done:
        return _notice(f"{record.label}: {record.status}", record.reason or "")
    percent = _is_fraction(record)
    specs: dict[str, Any] = {entry.name: entry.spec for entry in catalogue.entries("metric")}
    rows = []
    for name in ordered_metrics(specs):
        value, spec = record.metrics.get(name), specs[name]
        if value is not None:
            number = mean_std_cell(value, math.nan, scale=100.0 if percent else 1.0, digits=1 if percent else 4)
            told = [element("td", element("code", spec.formula), class_="nowrap"), element("td", spec.summary, class_="long")]
            rows.append([row_head(f"{spec.label or name} {_ARROWS[spec.direction]}"), number, *told])
    seconds = record.timings_s.get("total")
    head = [head_cell("metric", "name"), head_cell("%" if percent else "value", "number"), head_cell("definition"), head_cell("in words")]
    return table(head, rows, join([element("strong", record.label), f" – {duration(seconds)}" if seconds else None]))
