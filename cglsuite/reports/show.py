"""What notebooks put on the page: tables and figures of a campaign's results, ready to be displayed.

Every function here formats what :mod:`cglsuite.reports.tables` and :mod:`cglsuite.reports.published` compute, and nothing else. A number's
exact value stands in the attribute ``data-value`` of its cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.reports.markup import Content, Fragment, element, join
from cglsuite.reports.mime import FACTS

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
    "data_table",
    "definitions",
    "matrices",
    "matrix",
    "names",
    "overview",
    "problems",
    "provenance",
    "published",
    "resources",
    "searches",
    "settings",
    "summary",
]

_FIRST_METRICS = ("average_performance", "forgetting_from_diagonal", "forgetting_max", "backward_transfer", "forward_transfer", "intransigence")
_ARROWS = {"up": "↑", "down": "↓"}
_STATES = {"done": "good", "failed": "bad", "diverged": "bad", "timeout": "bad", "oom": "bad"}


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
    counts = results.counts()
    seconds = sum(float(r.timings_s.get("total") or 0.0) for r in results.records)
    tiles = [_tile(len(results.cells), "cells planned"), *(_tile(n, state) for state, n in counts.items())]
    tiles += [_tile(len({g.preset for g in results.groups}), "scenarios"), _tile(len({g.method for g in results.groups}), "methods")]
    tiles.append(_tile(_duration(seconds), "computed in all"))
    parts = [element("p", element("strong", results.title), class_="lead")]
    if results.campaign.description:
        parts.append(element("p", results.campaign.description))
    parts.append(element("ul", *tiles, class_="tiles"))
    return join([*parts, *_notices(results)])


def _tile(value: Content, label: str) -> Fragment:
    return element("li", element("b", value), element("span", label))


def _notices(results: CampaignResults) -> Iterable[Fragment]:
    lacking = {state: n for state, n in results.counts().items() if state in {"missing", "waiting"}}
    if lacking:
        told = ", ".join(f"{n} {state}" for state, n in lacking.items())
        yield _notice(f"This campaign is not finished: {told}. Means below are over what is there; n says how many records that is.")
    counted = {id(cell) for group in results.groups for cell in group.cells}
    stale = [cell.stale for cell in results.cells if cell.stale and id(cell) in counted]
    if stale:
        reasons = sorted(set(stale), key=stale.count, reverse=True)
        told = f"{len(stale)} of {len(results.used)} records are stale: made by other code, or on another class of machine, than would run now."
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
        return _empty("No cell of this campaign is finished yet.")
    return join(_summary_table(results, preset, part) for preset, part in frame.groupby("preset", sort=False))


def _summary_table(results: CampaignResults, preset: Any, frame: pd.DataFrame) -> Fragment:
    present = set(frame["metric"])
    names = [name for name in ordered_metrics(results.metrics) if name in present]
    head = [_th("method", "name"), _th("n", "number"), *(_metric_head(results.metrics[name]) for name in names)]
    rows, backbones = [], list(dict.fromkeys(frame["backbone"]))
    several = len(backbones) > 1
    for (method, backbone, variant), part in frame.groupby(["method", "backbone", "variant"], sort=False):
        by_metric = {row["metric"]: row for row in part.to_dict(orient="records")}
        records = int(part["records"].iloc[0])
        cells = [_row_head(method, variant, backbone if several else ""), _number(records, digits=0)]
        cells += [_mean_std(by_metric.get(name), records, _percent(results, str(preset))) for name in names]
        rows.append(cells)
    unit = "percent; " if _percent(results, str(preset)) else ""
    told = f"{unit}mean ± sample standard deviation over n records, which differ in their seeds only"
    caption = join([element("strong", preset), f" – {'' if several else f'backbone {backbones[0]}; '}{told}"])
    return _table(head, rows, caption)


def ordered_metrics(metrics: Mapping[str, Any]) -> list[str]:
    """Metric names, the field's usual ones first."""
    return [name for name in _FIRST_METRICS if name in metrics] + sorted(set(metrics) - set(_FIRST_METRICS))


def _metric_head(spec: MetricSpec) -> Fragment:
    label = f"{spec.label or spec.name} {_ARROWS[spec.direction]}"
    return element("th", label, element("br"), element("code", spec.name), class_="number", scope="col", title=f"{spec.formula}: {spec.summary}")


def _row_head(method: Any, variant: Any = "", backbone: Any = "") -> Fragment:
    more = ", ".join(str(part) for part in (variant, backbone) if part)
    return element("th", str(method), element("span", f" {more}", class_="quiet") if more else None, class_="name", scope="row")


def _mean_std(row: Mapping[str, Any] | None, records: int, percent: bool) -> Fragment:
    if row is None:
        return element("td", "–", class_="number quiet")
    scale, digits = (100.0, 1) if percent else (1.0, 4)
    std = "" if math.isnan(row["std"]) else f" ± {_signed(scale * row['std'], digits)}"
    fewer = f" (n={row['n']})" if row["n"] != records else ""
    value = _signed(scale * row["mean"], digits)
    return element("td", value, element("span", std + fewer, class_="sd"), class_="number", data_value=repr(float(row["mean"])))


def _percent(results: CampaignResults, preset: str) -> bool:
    """Whether this preset's base metric is a fraction: everywhere but in graph regression."""
    return all(g.records[0].scenario.get("level") != "GR" for g in results.groups if g.preset == preset)


def definitions(results: CampaignResults) -> Fragment:
    """What each metric is: label, name, formula, direction, sign."""
    rows = [
        [
            element("th", spec.label or name, class_="name", scope="row"),
            element("td", element("code", name)),
            element("td", element("code", spec.formula)),
            element("td", f"{_ARROWS[spec.direction]} {'higher' if spec.direction == 'up' else 'lower'} is better", class_="nowrap"),
            element("td", spec.summary, class_="long"),
        ]
        for name, spec in ((n, results.metrics[n]) for n in ordered_metrics(results.metrics))
    ]
    head = [_th(text) for text in ("label", "name", "definition", "direction", "in words")]
    caption = "M[k,j]: performance on task j after learning task k; row 0 is the untrained model; T is the last task."
    return _table(head, rows, caption) if rows else _empty("No plugin provides a metric.")


def published(results: CampaignResults) -> Fragment:
    """Ours beside what papers print, with the difference and whether it is within two published standard deviations."""
    from cglsuite.reports.published import BOUND, compare

    frame = compare(results)
    if frame.empty:
        return _empty("No paper prints a value for these presets, methods and metrics (or a switch of the preset was overridden).")
    head = [_th("method", "name"), _th("metric", "name"), _th("ours, %", "number"), _th("n", "number"), _th("published, %", "number")]
    head += [_th("difference", "number"), _th("in published std", "number"), _th("verdict"), _th("source"), _th("remark")]
    rows: list[list[Fragment]] = []
    for preset, part in frame.groupby("preset", sort=False):
        rows.append([element("th", str(preset), colspan=len(head), scope="colgroup", class_="group")])
        rows += [_published_row(results, row) for row in part.to_dict(orient="records")]
    judged = frame["agrees"].dropna()
    told = f"{int(judged.sum())} of {len(judged)} means lie within ±{BOUND:g} published standard deviations of the published mean"
    return _table(head, rows, f"{told}; difference = ours − published, in points.")


def _published_row(results: CampaignResults, row: Mapping[str, Any]) -> list[Fragment]:
    spread = "" if math.isnan(row["std"]) else f" ± {row['std']:.1f}"
    verdicts = {True: ("within 2 std", "good"), False: ("outside 2 std", "bad"), None: ("no deviation printed", "plain")}
    text, kind = verdicts[None if row["agrees"] is None else bool(row["agrees"])]
    spec = results.metrics[row["metric"]]
    return [
        _row_head(row["method"], row["variant"]),
        element("td", f"{row['label']} ", element("code", row["metric"]), class_="name", title=spec.formula),
        element("td", _signed(row["mean"], 1), element("span", spread, class_="sd"), class_="number", data_value=repr(float(row["mean"]))),
        _number(row["n"], digits=0),
        element("td", row["printed"], class_="number", data_value=repr(float(row["published"]))),
        _number(row["difference"], digits=1, plus=True),
        _number(row["deviations"], digits=1, plus=True),
        element("td", element("span", text, class_=f"badge {kind}")),
        element("td", f"{row['paper']}, table {row['table']}", class_="nowrap"),
        element("td", row["remark"], class_="quiet long") if row["remark"] else element("td"),
    ]


def problems(results: CampaignResults) -> Fragment:
    """Every cell without a result, with its reason."""
    from cglsuite.reports.tables import problems as compute

    frame = compute(results)
    if frame.empty:
        return _empty("Every planned cell has a result.")
    rows = [
        [
            element("th", row["method"], class_="name", scope="row"),
            element("td", row["preset"], class_="name"),
            element("td", _badge(row["state"])),
            element("td", row["reason"], class_="long"),
            element("td", row["seeds"], class_="mono"),
        ]
        for row in frame.to_dict(orient="records")
    ]
    return _table([_th(t) for t in ("method", "scenario", "state", "reason", "seeds (order/split/init)")], rows, None)


def _badge(state: str) -> Fragment:
    return element("span", state, class_=f"badge {_STATES.get(state, 'note')}")


# --- figures ---------------------------------------------------------------------------------------------------------------------


def curves(results: CampaignResults, metric: str = "average_performance") -> Gallery | Fragment:
    """One figure per preset: ``metric`` after every task, a line per method."""
    from cglsuite.reports.figures import Gallery, curve_figure, picture
    from cglsuite.reports.tables import curves as compute

    frame = compute(results, metric)
    if frame.empty:
        return _empty("Nothing to draw: no finished cell has more than one task.")
    frame = frame.assign(label=_labels(frame))
    order = list(dict.fromkeys(frame["label"]))
    spec = results.metrics.get(metric)
    label = (spec.label if spec else "") or metric
    pictures = []
    for preset, part in frame.groupby("preset", sort=False):
        percent = _percent(results, str(preset))
        ylabel = f"{label}{', %' if percent else ''}"
        last = part[part["task"] == part["task"].max()]
        scale = 100.0 if percent else 1.0
        ends = "; ".join(f"{row.label} {scale * row.mean:.1f}" for row in last[["label", "mean"]].itertuples(index=False))
        pictures.append(
            picture(
                lambda theme, part=part, preset=preset, ylabel=ylabel, percent=percent: curve_figure(  # type: ignore[misc]
                    part, theme, title=str(preset), ylabel=ylabel, order=order, percent=percent
                ),
                alt=f"{label} over tasks, {preset}. After the last task: {ends}",
            )
        )
    return Gallery(tuple(pictures))


def matrices(results: CampaignResults) -> Gallery | Fragment:
    """The mean performance matrix of every preset and method as a heat map."""
    from cglsuite.reports.figures import Gallery, matrix_figure, picture
    from cglsuite.reports.tables import mean_matrices

    pictures = []
    for group, matrix in mean_matrices(results):
        percent = _percent(results, group.preset)
        n = len(group.records)
        scale = 100.0 if percent else 1.0
        last = ", ".join("–" if math.isnan(v) else f"{scale * v:.1f}" for v in matrix[-1])
        pictures.append(
            picture(
                lambda theme, group=group, matrix=matrix, percent=percent, n=n: matrix_figure(  # type: ignore[misc]
                    matrix, f"{group.label}, n = {n}", theme, percent=percent, bounds=None if percent else _bounds(matrix)
                ),
                alt=f"Mean performance matrix of {group.label} on {group.preset} over {n} records. After the last task: {last}",
                group=group.preset,
            )
        )
    return Gallery(tuple(pictures)) if pictures else _empty("No cell of this campaign is finished yet.")


def _bounds(matrix: Any) -> tuple[float, float]:
    import numpy as np

    finite = matrix[np.isfinite(matrix)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _labels(frame: pd.DataFrame) -> list[str]:
    """Method, with variant and, where there are several, the backbone."""
    several = frame["backbone"].nunique() > 1
    columns = frame[["method", "backbone", "variant"]].itertuples(index=False)
    return [", ".join(part for part in (m, b if several else "", v) if part) for m, b, v in columns]


# --- how it was done -------------------------------------------------------------------------------------------------------------


def resources(results: CampaignResults) -> Fragment:
    """Time and memory per group, means over its records."""
    from cglsuite.reports.tables import resources as compute

    frame = compute(results)
    if frame.empty:
        return _empty("No cell of this campaign is finished yet.")
    head = [_th("method", "name"), _th("n", "number"), _th("total, s", "number"), _th("training, %", "number"), _th("method, %", "number")]
    head += [_th("evaluation, %", "number"), _th("framework, %", "number"), _th("peak memory, MB", "number")]
    head += [_th("kept items", "number"), _th("kept, kB", "number"), _th("extra parameters", "number")]
    rows: list[list[Fragment]] = []
    for preset, part in frame.groupby("preset", sort=False):
        rows.append([element("th", str(preset), colspan=len(head), scope="colgroup", class_="group")])
        for row in part.to_dict(orient="records"):
            shares = [_number(100 * row[f"{name}_s"] / row["total_s"], digits=1) for name in ("training", "method", "evaluation", "framework")]
            sizes = [_number(row["peak_bytes"] / 1e6, digits=0), _number(row["memory_items"], digits=0)]
            sizes += [_number(row["memory_bytes"] / 1e3, digits=1), _number(row["method_parameters"], digits=0)]
            rows.append([_row_head(row["method"], row["variant"]), _number(row["n"], 0), _number(row["total_s"], 1), *shares, *sizes])
    return _table(head, rows, "Means per cell. Kept: what the method's metered memory holds in the end.")


def searches(results: CampaignResults) -> Fragment:
    """What the campaign's hyper-parameter searches chose, and by what."""
    from cglsuite.reports.tables import searches as compute

    frame = compute(results)
    if frame.empty:
        return _empty("This campaign searches no hyper-parameters (or its searches have not finished).")
    rows = [
        [
            element("th", row["method"], class_="name", scope="row"),
            element("td", row["scenario"], class_="name"),
            _number(row["candidates"], 0),
            _number(row["seeds"], 0),
            element("td", element("code", row["chosen"]), class_="long"),
            _number(100 * row["score"], 1),
        ]
        for row in frame.to_dict(orient="records")
    ]
    head = [_th("method", "name"), _th("scenario", "name"), _th("candidates", "number"), _th("seeds", "number"), _th("chosen")]
    return _table([*head, _th("validation AP, %", "number")], rows, "Chosen by the mean validation average performance after the last task.")


def settings(results: CampaignResults) -> Fragment:
    """Per preset: the settings that all methods share, folded, and a table of those in which they differ."""
    from cglsuite.reports.tables import common_settings
    from cglsuite.reports.tables import settings as compute

    frame = compute(results)
    if frame.empty:
        return _empty("No cell of this campaign is finished yet.")
    parts = []
    for preset, part in frame.groupby("preset", sort=False):
        names = [c for c in part.columns if "." in str(c) and part[c].notna().any()]
        several = part["backbone"].nunique() > 1
        rows = [
            [_row_head(row["method"], row["variant"], row["backbone"] if several else ""), *(element("td", _value(row[name])) for name in names)]
            for row in part.to_dict(orient="records")
        ]
        parts.append(_table([_th("method", "name"), *(_th(str(n)) for n in names)], rows, join([element("strong", str(preset))])))
        shared = common_settings(results, str(preset))
        facts = [element("dt", element("code", name)) for name in shared]
        listed = [x for dt, value in zip(facts, shared.values(), strict=True) for x in (dt, element("dd", _value(value)))]
        parts.append(element("details", element("summary", f"{len(shared)} settings that they share"), element("dl", *listed, class_="facts")))
    return join(parts)


def provenance(results: CampaignResults) -> Facts:
    """Whose code made the records, on what, with which seeds; and lines for the foot of the page."""
    from cglsuite import __version__
    from cglsuite.reports.tables import sources

    frame = sources(results)
    rows = [
        [
            element("th", row["distribution"], class_="name", scope="row"),
            element("td", row["version"]),
            element("td", element("code", str(row["source"])[:12]), title=row["source"]),
            _number(row["records"], 0),
            element("td", row["provides"], class_="long"),
        ]
        for row in frame.to_dict(orient="records")
    ]
    head = [_th("distribution", "name"), _th("version"), _th("source"), _th("records", "number"), _th("provides")]
    table = _table(head, rows, "Code that made the records (source: the beginning of the SHA-256 over its files).") if rows else None
    used = results.used
    facts = {
        "seeds (order/split/init)": _unique(f"{s['order']}/{s['split']}/{s['init']}" for s in (r.cell["seeds"] for r in used)),
        "device": _unique(f"{r.cell['device']}, {r.cell['threads']} thread(s), {r.cell['dtype']}" for r in used),
        "machine": _unique(f"{r.environment.get('cpu')}, {r.environment.get('platform')}" for r in used),
        "Python and torch": _unique(f"Python {r.environment.get('python')}, torch {r.environment.get('torch')}" for r in used),
        "data (content hash)": _unique(f"{r.scenario.get('dataset')} {str(r.provenance.get('data') or 'unknown')[:12]}" for r in used),
    }
    listed = [x for name, text in facts.items() if text for x in (element("dt", name), element("dd", text))]
    plugins = ", ".join(f"{name} {version}" for name, version in results.plugins if name != "cglsuite")
    footer = (
        f"Campaign {results.campaign.name}: {len(used)} records of {len(results.cells)} planned cells.",
        f"cglsuite {__version__}" + (f" with {plugins}." if plugins else "."),
    )
    return Facts(join([table, element("dl", *listed, class_="facts")]), footer)


# --- exploring -------------------------------------------------------------------------------------------------------------------


def names(catalogue: Catalogue, kind: str) -> Fragment:
    """The catalogue's entries of a kind: name, what it is, who provides it."""
    rows = [
        [
            element("th", element("code", entry.name), class_="name", scope="row"),
            element("td", entry.spec.summary, class_="long"),
            element("td", entry.provider, class_="quiet nowrap"),
        ]
        for entry in catalogue.entries(kind)
    ]
    return _table([_th(kind, "name"), _th("what it is"), _th("provided by")], rows, None) if rows else _empty(f"No plugin provides a {kind}.")


def cell(record: Record, catalogue: Catalogue) -> Fragment:
    """One record: how it ended, and its metrics with their definitions."""
    if not record.done:
        return _notice(f"{record.label}: {record.status}", record.reason or "")
    percent = record.scenario.get("level") != "GR"
    specs: dict[str, Any] = {entry.name: entry.spec for entry in catalogue.entries("metric")}
    rows = []
    for name in ordered_metrics(specs):
        value = record.metrics.get(name)
        if value is not None:
            label = element("th", f"{specs[name].label or name} {_ARROWS[specs[name].direction]}", class_="name", scope="row")
            number = _number(value, 4) if not percent else element("td", _signed(100 * value, 1), class_="number", data_value=repr(float(value)))
            rows.append([label, number, element("td", element("code", specs[name].formula)), element("td", specs[name].summary, class_="long")])
    seconds = record.timings_s.get("total")
    caption = join([element("strong", record.label), f" – {_duration(seconds)}" if seconds else None])
    return _table([_th("metric", "name"), _th("%" if percent else "value", "number"), _th("definition"), _th("in words")], rows, caption)


def matrix(record: Record) -> Gallery | Fragment:
    """One record's performance matrix as a heat map."""
    from cglsuite.reports.figures import Gallery, matrix_figure, picture

    if not record.done:
        return _empty("There is no matrix: the cell did not finish.")
    values, percent = record.performance(), record.scenario.get("level") != "GR"
    bounds = None if percent else _bounds(values)
    name = str(record.cell["method"])
    alt = f"Performance matrix of {record.label}"
    return Gallery((picture(lambda theme: matrix_figure(values, name, theme, percent=percent, bounds=bounds), alt, record.label),))


# --- building blocks -------------------------------------------------------------------------------------------------------------


def data_table(frame: pd.DataFrame, caption: str | None = None) -> Fragment:
    """Any data frame as a table in our pages' style; its text is escaped, numbers are right-aligned."""
    kinds = ["number" if frame[c].dtype.kind in "iuf" else None for c in frame.columns]
    head = [_th(str(c), kind) for c, kind in zip(frame.columns, kinds, strict=True)]
    rows = [
        [_number(v) if kind else element("th" if i == 0 else "td", _value(v), scope="row" if i == 0 else None) for i, (v, kind) in enumerate(zip(row, kinds, strict=True))]
        for row in frame.itertuples(index=False)
    ]
    return _table(head, rows, caption)


def _table(head: Sequence[Fragment], rows: Iterable[Sequence[Fragment]], caption: Content) -> Fragment:
    body = [element("tr", *row, class_="group" if len(row) == 1 < len(head) else None) for row in rows]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    # The caption stays out of the box that scrolls, so that it wraps on a phone.
    return element(
        "figure",
        element("figcaption", caption) if caption else None,
        element("div", table, class_="scroll", tabindex=0, role="region", aria_label="table"),
        class_="table",
    )


def _th(text: str, kind: str | None = None) -> Fragment:
    return element("th", text, class_=kind, scope="col")


def _number(value: Any, digits: int | None = None, plus: bool = False) -> Fragment:
    if value is None or value != value:
        return element("td", "–", class_="number quiet")
    if digits is None:
        text = f"{value:g}"
    else:
        text = _signed(value, digits, plus)
    return element("td", text, class_="number", data_value=repr(float(value)))


def _signed(value: float, digits: int, plus: bool = False) -> str:
    """A number with a true minus sign and no minus before a rounded zero."""
    text = f"{value:,.{digits}f}".replace(",", "\u202f")
    if not any(c in "123456789" for c in text):
        return text.lstrip("-")
    return text.replace("-", "−") if text.startswith("-") else ("+" if plus else "") + text


def _value(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(_value(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _unique(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _empty(text: str) -> Fragment:
    return element("p", text, class_="quiet")
