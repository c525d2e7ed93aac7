"""Tables of a campaign's metrics: a row per method, and what each metric means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.htmltable import duration, empty, head_cell, mean_std_cell, number_cell, row_head, table
from cglsuite.reports.kit.notices import notice
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.measures import why_absent
from cglsuite.reports.results.overview import NOTHING_DONE, preset_caption
from cglsuite.reports.results.performance import is_fraction, performance_name, performance_names
from cglsuite.reports.results.variants import value_as_text
from cglsuite.specs import MetricSpec

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults


__all__ = ["ARROWS", "cell", "definitions", "in_percent", "ordered_metrics", "performance_text", "summary"]

_FIRST_METRICS = (
    "average_performance",
    "forgetting_from_diagonal",
    "forgetting_max",
    "backward_transfer",
    "forward_transfer",
    "intransigence",
    "a_auc",
    "a_auc_trained",
    "a_auc_node_weighted",
    "a_end",
    "af_s",
    "af_hard",
    "time_to_recover",
)


ARROWS = {"up": "↑", "down": "↓"}
"""Arrow that shows whether higher or lower is better."""


def summary(results: CampaignResults) -> Fragment:
    """One table per preset: a row per method, mean ± standard deviation of every metric, and n.

    Variants of a preset with one row each share a table, with a column for each setting in which they differ.
    """
    from cglsuite.reports.results.tables import summary as compute

    frame = compute(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    return join(_summary_table(results, presets, frame[frame["preset"].isin(presets)]) for presets in _sharing_a_table(results, frame))


def _sharing_a_table(results: CampaignResults, frame: pd.DataFrame) -> list[list[str]]:
    """The presets of each table, in the order of the frame."""
    tables: dict[Any, list[str]] = {}
    for preset, part in frame.groupby("preset", sort=False):
        variant = results.variants.get(str(preset))
        alone = variant is None or not variant.distinguishing or len(_rows_of(part)) > 1
        shared: Any = preset if variant is None or alone else (variant.base, tuple(variant.distinguishing), _shown(results, str(preset)))
        tables.setdefault(shared, []).append(str(preset))
    return list(tables.values())


def _rows_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """What each row of a table is of: preset, method, backbone, variant of the method."""
    return list(frame[["preset", "method", "backbone", "variant"]].drop_duplicates().itertuples(index=False, name=None))


def _shown(results: CampaignResults, preset: str) -> tuple[str, tuple[str, ...]]:
    """What a table says of performance and backbones: rows that differ in it do not share a table."""
    return performance_text(results, preset), tuple(dict.fromkeys(g.backbone for g in results.groups if g.preset == preset))


def _summary_table(results: CampaignResults, presets: Sequence[str], frame: pd.DataFrame) -> Fragment:
    percent = in_percent(results, presets[0])
    present = set(frame["metric"])
    metrics = [name for name in ordered_metrics(results.metrics) if name in present]
    backbones = list(dict.fromkeys(frame["backbone"]))
    several = len(backbones) > 1
    settings = list(results.variants[presets[0]].distinguishing) if len(presets) > 1 else []
    rows = []
    for preset, method, backbone, variant in _rows_of(frame):
        mine = frame[["preset", "method", "backbone", "variant"]].eq([preset, method, backbone, variant]).all(axis="columns")
        by_metric = {row["metric"]: row for row in as_rows(frame[mine])}
        records = int(frame.loc[mine, "records"].iloc[0])
        values = [element("td", value_as_text(results.variants[preset].distinguishing[name]), class_="number") for name in settings]
        cells = [_mean_std(by_metric.get(name), records, percent, bool(results.metrics[name].unit)) for name in metrics]
        rows.append([row_head(method, variant, backbone if several else ""), *values, number_cell(records, digits=0), *cells])
    details = "mean ± sample standard deviation over n records that differ only in their seeds"
    facts = [*([] if several else [f"backbone {backbones[0]}"]), f"performance is {performance_text(results, presets[0])}", details]
    head = [head_cell("method", "name"), *(head_cell(name.partition(".")[2] or name, "number") for name in settings)]
    head += [head_cell("n", "number"), *(_metric_head(results.metrics[name]) for name in metrics)]
    shown = table(
        head, rows, preset_caption(presets[0], [one for preset in presets for one in results.overrides_of(preset)], "; ".join(facts))
    )
    lacking = [_without_value(results, preset, frame[frame["preset"] == preset]) for preset in presets]
    return join([shown, *dict.fromkeys(lacking)])


def _without_value(results: CampaignResults, preset: str, frame: pd.DataFrame) -> Fragment | None:
    """The metrics of the setting that have no value for some or all of a preset's methods, with the reason."""
    known = {(row["metric"], row["method"], row["backbone"], row["variant"]) for row in as_rows(frame)}
    reasons: dict[tuple[str, str], list[str]] = {}
    groups = [group for group in results.groups if group.preset == preset]
    for name in ordered_metrics(results.metrics):
        spec = results.metrics[name]
        for group in groups:
            record = group.records[0]
            if not spec.excluded(record.scenario) and (name, group.method, group.backbone, group.variant) not in known:
                reasons.setdefault((name, why_absent(spec, record)), []).append(group.label)
    if not reasons:
        return None
    said = [
        element("li", element("code", name), f" ({'all methods' if len(who) == len(groups) else ', '.join(dict.fromkeys(who))}): {reason}")
        for (name, reason), who in reasons.items()
    ]
    return element("div", element("p", "Metrics without a value:"), element("ul", *said), class_="lacking")


def ordered_metrics(metrics: Mapping[str, Any]) -> list[str]:
    """Metric names, with the most common ones first."""
    return [name for name in _FIRST_METRICS if name in metrics] + sorted(set(metrics) - set(_FIRST_METRICS))


def _metric_head(spec: MetricSpec) -> Fragment:
    label = f"{spec.label or spec.name}{f', {spec.unit}' if spec.unit else ''} {ARROWS[spec.direction]}"
    details = f"{spec.formula}: {spec.summary}"
    return element("th", label, element("br"), element("code", spec.name), class_="number", scope="col", title=details)


def _mean_std(row: Mapping[str, Any] | None, records: int, percent: bool, counted: bool) -> Fragment:
    """``counted``: the metric has its own unit and is shown unscaled."""
    if row is None:
        return number_cell(None)
    remark = f" (n={row['n']})" if row["n"] != records else ""
    scale, digits = (1.0, 1) if counted else (100.0, 1) if percent else (1.0, 4)
    return mean_std_cell(row["mean"], row["std"], scale=scale, digits=digits, remark=remark)


def in_percent(results: CampaignResults, preset: str) -> bool:
    """Whether this preset's base metric is a fraction: true except for graph regression."""
    return all(is_fraction(g.records[0]) for g in results.groups if g.preset == preset)


def performance_text(results: CampaignResults, preset: str) -> str:
    """A preset's performance measure and its unit."""
    name = performance_names(g.records[0] for g in results.groups if g.preset == preset)
    return f"{name} in percent" if in_percent(results, preset) else name


def definitions(results: CampaignResults) -> Fragment:
    """The definition of each metric: label, name, formula, direction, sign."""
    rows = []
    settings = {str(record.scenario.get("setting")) for record in results.used}
    kinds = {(r.scenario.get("setting"), r.scenario.get("performance")): r.scenario for r in results.used}.values()
    shown = {name: spec for name, spec in results.metrics.items() if not kinds or not all(spec.excluded(kind) for kind in kinds)}
    for name in ordered_metrics(shown):
        spec = shown[name]
        direction = f"{ARROWS[spec.direction]} {'higher' if spec.direction == 'up' else 'lower'} is better"
        cells = [element("td", element("code", text), class_="nowrap") for text in (name, spec.formula)]
        words = [element("td", direction, class_="nowrap"), element("td", spec.summary, class_="long")]
        rows.append([row_head(spec.label or name), *cells, *words])
    measured = performance_names(results.used)
    caption = "M[k,j]: performance on task j after learning task k; row 0 is the untrained model; T is the last task."
    if "task-free" in settings:
        details = "A[i,k]: performance on latent task k at evaluation i of a task-free stream; i = 0 is the untrained model, E the last."
        caption = details if settings == {"task-free"} else f"{caption} {details}"
    caption += f" Performance is {measured}, as defined by the scenario." if measured else ""
    head = [head_cell(text) for text in ("label", "name", "definition", "direction", "in words")]
    return table(head, rows, caption) if rows else empty("No plugin provides a metric.")


def cell(record: Record, catalogue: Catalogue) -> Fragment:
    """One record: its status, and its metrics with their definitions."""
    if not record.done:
        return notice(f"{record.label}: {record.status}", record.reason or "")
    percent = is_fraction(record)
    specs = catalogue.specs(MetricSpec)
    rows = []
    for name in ordered_metrics(specs):
        value, spec = record.metrics.get(name), specs[name]
        if value is not None or not spec.excluded(record.scenario):
            said = value is None and element("td", why_absent(spec, record), class_="quiet long")
            number = said or _mean_std({"mean": value, "std": math.nan, "n": 1}, 1, percent, bool(spec.unit))
            details = [element("td", element("code", spec.formula), class_="nowrap"), element("td", spec.summary, class_="long")]
            rows.append([row_head(f"{spec.label or name} {ARROWS[spec.direction]}"), number, *details])
    seconds = record.timings_s.get("total")
    head = [head_cell("metric", "name"), head_cell("%" if percent else "value", "number"), head_cell("definition"), head_cell("in words")]
    facts = [f"performance is {performance_name(record.scenario)}", *([duration(seconds)] if seconds else [])]
    return table(head, rows, join([element("strong", record.label), f" – {'; '.join(facts)}"]))
