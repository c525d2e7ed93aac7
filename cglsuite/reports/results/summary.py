"""Tables of a campaign's metrics, with one row per method and the definition of each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from cglsuite.base.markup import Content, Fragment, code_in_lines, element, join, several
from cglsuite.cells.records.record import Record
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import (
    as_rows,
    duration,
    empty,
    exact_cell,
    folded,
    head_cell,
    mean_std_cell,
    number_cell,
    number_text,
    row_head,
    table,
)
from cglsuite.reports.kit.text import notice, scenario_words, tile
from cglsuite.reports.results.guards import Guard, guards
from cglsuite.reports.results.measures import is_fraction, performance_name, performance_names, why_absent
from cglsuite.reports.results.results import Group, Results, axis_values, chosen_by_validation, drawn, families_of
from cglsuite.reports.results.variants import PresetVariant, changes_as_text, value_as_text
from cglsuite.specs import METRICS, MetricSpec


def summary(results: Results) -> Fragment:
    """Show one table per preset, with a row per method, the mean ± standard deviation of every metric, and n.

    Variants of a preset that have one row each share a table, with a column for each setting in which they differ.
    """
    from cglsuite.reports.results.tables import summary as compute

    frame = compute(results)
    if frame.empty:
        return empty(NOTHING_DONE)
    tables = [_summary_table(results, presets, frame[frame["preset"].isin(presets)]) for presets in _sharing_a_table(results, frame)]
    _, said = drawn(results)
    return join([*tables, element("p", f"Figures below: {said[0].lower()}{said[1:]}", class_="quiet") if said else None])


def _sharing_a_table(results: Results, frame: pd.DataFrame) -> list[list[str]]:
    """Return the presets that share each table, in the order of the frame."""
    tables: dict[Any, list[str]] = {}
    for preset, part in frame.groupby("preset", sort=False):
        variant = results.variants.get(str(preset))
        alone = variant is None or not variant.distinguishing or len(_rows_of(part)) > 1
        shared: Any = preset if variant is None or alone else (variant.base, tuple(variant.distinguishing), _shown(results, str(preset)))
        tables.setdefault(shared, []).append(str(preset))
    return list(tables.values())


def _rows_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the preset, method, backbone and method variant of each row of a table."""
    return list(frame[["preset", "method", "backbone", "variant"]].drop_duplicates().itertuples(index=False, name=None))


def _shown(results: Results, preset: str) -> tuple[str, tuple[str, ...]]:
    """Return a table's performance measure and backbones; rows for which they differ do not share a table."""
    return performance_text(results, preset), tuple(dict.fromkeys(g.backbone for g in results.groups if g.preset == preset))


def _summary_table(results: Results, presets: Sequence[str], frame: pd.DataFrame) -> Fragment:
    percent = in_percent(results, presets[0])
    present = set(frame["metric"])
    metrics = [name for name in ordered_metrics(results.metrics) if name in present]
    backbones = list(dict.fromkeys(frame["backbone"]))
    several = len(backbones) > 1
    settings = list(results.variants[presets[0]].distinguishing) if len(presets) > 1 else []
    by_group: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in as_rows(frame):
        by_group.setdefault((row["preset"], row["method"], row["backbone"], row["variant"]), {})[row["metric"]] = row
    rows: list[list[Fragment]] = []
    single: list[list[Fragment]] = []
    for family in families_of(group for group in results.groups if group.preset in presets):
        mine = [by_group.get((g.preset, g.method, g.backbone, g.variant), {}) for g in family]
        for group, by_metric in zip(family, mine, strict=True):
            changed = results.variants[group.preset].distinguishing if settings else {}
            values = [element("td", value_as_text(changed[name]), class_="number") for name in settings]
            n = len(group.records)
            cells = [_mean_std(by_metric.get(name), n, percent, bool(results.metrics[name].unit)) for name in metrics]
            name = row_head(group.method, group.variant, group.backbone if several else "")
            if by_metric:
                (single if len(family) > 1 else rows).append([name, *values, number_cell(n, digits=0), *cells])
        if len(family) > 1:
            rows.append(_sweep_row(results, family, mine, metrics, percent, several))
    details = "mean ± sample standard deviation over n records that differ only in their seeds"
    facts = [*([] if several else [f"backbone {backbones[0]}"]), f"performance is {performance_text(results, presets[0])}", details]
    head = [head_cell("method", "name"), *(head_cell(name.partition(".")[2] or name, "number") for name in settings)]
    head += [head_cell("n", "number"), *(_metric_head(results.metrics[name]) for name in metrics)]
    shown = table(
        head,
        rows,
        preset_caption(presets[0], [overrides for preset in presets for overrides in results.overrides_of(preset)], "; ".join(facts)),
    )
    if single:
        about = "A method with several settings has one row, with the range of their means."
        shown = join([shown, element("p", about, class_="quiet"), folded(f"All {len(single)} settings", table(head, single))])
    lacking = [_without_value(results, preset, frame[frame["preset"] == preset]) for preset in presets]
    return join([shown, *dict.fromkeys(lacking)])


def _sweep_row(
    results: Results,
    family: Sequence[Group],
    by_metric: Sequence[Mapping[str, Mapping[str, Any]]],
    metrics: Sequence[str],
    percent: bool,
    several: bool,
) -> list[Fragment]:
    """Summarise the settings of one method in a row: their number, the varied keys, and the range of their means."""
    axes = [name.partition(".")[2] or name for name in axis_values([group.records[0] for group in family])[0]]
    best = chosen_by_validation(family, results)
    how = f"validation chose {best.variant}" if best is not None else ""
    name = row_head(family[0].method, f"{len(family)} settings of {', '.join(axes)}", how, family[0].backbone if several else "")
    cells = []
    for metric in metrics:
        means = [float(values[metric]["mean"]) for values in by_metric if metric in values]
        scale, digits = _unit(percent, bool(results.metrics[metric].unit))
        ends = dict.fromkeys(number_text(scale * end, digits) for end in (min(means), max(means))) if means else ()
        cells.append(exact_cell(" to ".join(ends), low=min(means), high=max(means)) if means else number_cell(None))
    return [name, number_cell(sum(len(group.records) for group in family), digits=0), *cells]


def _without_value(results: Results, preset: str, frame: pd.DataFrame) -> Fragment | None:
    """List the metrics that have no value for some or all of a preset's methods, with the reason."""
    known = {(row["metric"], row["method"], row["backbone"], row["variant"]) for row in as_rows(frame)}
    reasons: dict[tuple[str, str], list[str]] = {}
    groups = [group for group in results.groups if group.preset == preset]
    run = {"", *(group.method for group in groups)}  # a metric that compares with a method that was not run does not count as missing
    for name in ordered_metrics(results.metrics):
        spec = results.metrics[name]
        for group in groups if spec.needs_joint or spec.reference in run else ():
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
    """Sort the names of metrics: first the suite's metrics (most common first), then those of plugins in alphabetical order."""
    return [name for name in METRICS if name in metrics] + sorted(set(metrics) - set(METRICS))


def _metric_head(spec: MetricSpec) -> Fragment:
    details = f"{spec.formula}: {spec.summary}"
    return element("th", spec.heading, element("br"), code_in_lines(spec.name), class_="number", scope="col", title=details)


def _mean_std(row: Mapping[str, Any] | None, records: int, percent: bool, counted: bool) -> Fragment:
    """Format a mean with its standard deviation. ``counted`` means that the metric has its own unit and is not scaled."""
    if row is None:
        return number_cell(None)
    remark = f" (n={row['n']})" if row["n"] != records else ""
    scale, digits = _unit(percent, counted)
    return mean_std_cell(row["mean"], row["std"], scale=scale, digits=digits, remark=remark)


def _unit(percent: bool, counted: bool) -> tuple[float, int]:
    """Return the scale factor and number of decimals for a metric."""
    return (1.0, 1) if counted else (100.0, 1) if percent else (1.0, 4)


def in_percent(results: Results, preset: str) -> bool:
    """Return whether performance in this preset is a fraction in all groups, in which case it is shown in percent."""
    return all(is_fraction(g.records[0]) for g in results.groups if g.preset == preset)


def performance_text(results: Results, preset: str) -> str:
    """Return the name of a preset's performance measure with its unit."""
    name = performance_names(g.records[0] for g in results.groups if g.preset == preset)
    return f"{name} in percent" if in_percent(results, preset) else name


def definitions(results: Results) -> Fragment:
    """Show the definition of each metric: its label, name, formula, direction and summary."""
    rows = []
    settings = {str(record.scenario.get("setting")) for record in results.used}
    kinds = {(r.scenario.get("setting"), r.scenario.get("performance")): r.scenario for r in results.used}.values()
    shown = {name: spec for name, spec in results.metrics.items() if not kinds or not all(spec.excluded(kind) for kind in kinds)}
    for name in ordered_metrics(shown):
        spec = shown[name]
        direction = f"{spec.arrow} {spec.better} is better"
        cells = [element("td", element("code", text), class_="nowrap") for text in (name, spec.formula)]
        words = [element("td", direction, class_="nowrap"), element("td", spec.summary, class_="long")]
        rows.append([row_head(spec.title), *cells, *words])
    measured = performance_names(results.used)
    caption = "M[k,j]: performance on task j after learning task k; row 0 is the untrained model; T is the last task."
    if "task-free" in settings:
        details = "A[i,k]: performance on latent task k at evaluation i of a task-free stream; i = 0 is the untrained model, E the last."
        caption = details if settings == {"task-free"} else f"{caption} {details}"
    caption += f" Performance is {measured}, as defined by the scenario." if measured else ""
    head = [head_cell(text) for text in ("label", "name", "definition", "direction", "in words")]
    return folded(several(len(rows), "metric"), table(head, rows, caption)) if rows else empty("No plugin provides a metric.")


def cell(record: Record, catalogue: Catalogue) -> Fragment:
    """Show one record: its metrics with their definitions, or its status if it is not finished."""
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
            rows.append([row_head(f"{spec.title} {spec.arrow}"), number, *details])
    seconds = record.timings_s.get("total")
    head = [head_cell("metric", "name"), head_cell("%" if percent else "value", "number"), head_cell("definition"), head_cell("in words")]
    facts = [f"performance is {performance_name(record.scenario)}", *([duration(seconds)] if seconds else [])]
    return table(head, rows, join([element("strong", record.label), f" – {'; '.join(facts)}"]))


# A campaign at a glance: its progress, and warnings to read before the numbers.

NOTHING_DONE = "No cell of this campaign is finished yet."
"""The text shown in place of numbers that do not exist yet."""
_MAX_CAUTIONS = 4
"""The maximum number of warning boxes about comparisons at the top of a page; more are combined into one box."""


def overview(results: Results, message: Fragment | None = None) -> Fragment:
    """Show the campaign's title, its description, ``message`` (such as its key results), progress tiles and warnings."""
    return join([heading(results, message), progress(results)])


def heading(results: Results, message: Fragment | None = None) -> Fragment:
    """Show the campaign's title, its description and ``message``. They come before the first figure."""
    description = element("p", results.description) if results.description else None
    return join([element("p", element("strong", results.title), class_="lead"), description, message])


def progress(results: Results) -> Fragment:
    """Show tiles with the numbers of cells, scenarios and methods, followed by warnings."""
    seconds = sum(float(r.timings_s.get("total") or 0.0) for r in results.records)
    tiles = [tile(len(results.cells), "cells planned"), *(tile(n, state) for state, n in results.counts().items())]
    tiles += [tile(len({g.preset for g in results.groups}), "scenarios"), tile(len({g.method for g in results.groups}), "methods")]
    tiles.append(tile(duration(seconds), "total compute time"))
    return join([element("ul", *tiles, class_="tiles"), *notices(results)])


def notices(results: Results) -> Iterable[Fragment]:
    """Yield warnings about unfinished, stale and left-out cells, and about methods that are hard to compare."""
    lacking = {state: n for state, n in results.counts().items() if state in {"missing", "waiting"}}
    if lacking:
        unfinished = ", ".join(f"{n} {state}" for state, n in lacking.items())
        yield notice(f"This campaign is not finished: {unfinished}. Means below are over the available records; n is their number.")
    counted = {id(c) for group in results.groups for c in group.cells}
    stale = [c.stale for c in results.cells if c.stale and id(c) in counted]
    if stale:
        summary = f"{len(stale):,} of {len(results.used):,} records are stale: they come from different code or another class of machine."
        reasons = sorted(set(stale), key=stale.count, reverse=True)
        yield notice(summary, *reasons[:3], *([f"and {len(reasons) - 3} more differences"] if len(reasons) > 3 else []))
    if results.left_out:
        yield notice(f"{len(results.left_out)} finished cells are left out, because different code produced them.")
    for name in dict.fromkeys(c.planned.request.scenario for c in results.cells):
        if text := derived_note(results, name):
            yield notice(text)
    yield from _warning_notices(guards(results))


def _warning_notices(warnings: Sequence[Guard]) -> Iterable[Fragment]:
    """Yield one notice per set of warnings, headed by the comparisons that share it, or a single notice if there are many."""
    of_board: dict[str, list[str]] = {}
    for guard in warnings:
        of_board.setdefault(_comparison_name(guard), []).append(f"{guard.text} {guard.advice}")
    shared: dict[tuple[str, ...], list[str]] = {}
    for board, texts in of_board.items():
        shared.setdefault(tuple(texts), []).append(board)
    if len(shared) > _MAX_CAUTIONS:
        yield notice(f"Interpret {len(of_board)} comparisons with caution.", *_by_kind(warnings))
        return
    for said, boards in shared.items():
        yield notice(f"{'; '.join(boards)}: interpret the comparison with caution.", *said)


def _by_kind(warnings: Iterable[Guard]) -> Iterable[Content]:
    """Yield one line per advice, with the warning that its comparisons share or a collapsed list of each comparison's warning."""
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for guard in warnings:
        kinds.setdefault((guard.summary, guard.advice), {})[_comparison_name(guard)] = guard.text
    for (summary, advice), texts in kinds.items():
        count = f"{len(texts)} comparison{'' if len(texts) == 1 else 's'}"
        if len(set(texts.values())) == 1:
            yield f"{next(iter(texts.values()))} {advice} ({count})"
            continue
        listed = element("ul", *(element("li", f"{board}: {text}") for board, text in texts.items()))
        folded = element("details", element("summary", "All warnings"), listed)
        yield join([f"{summary.capitalize()} in {count}. {advice} ", folded])


def _comparison_name(guard: Guard) -> str:
    return f"{guard.preset} × {guard.backbone}"


def derived_note(results: Results, name: str) -> str:
    """Return a note that names the preset from which a scenario was derived. The note is empty for a preset."""
    specs = (c.planned.cell.scenario for c in results.cells if c.planned.request.scenario == name and c.planned.cell is not None)
    parent = next((spec.derived_from for spec in specs), "")
    if not parent:
        return ""
    return f"{name} is derived from {parent}, so no paper has values for it. Compare its methods with each other, not with a paper."


def preset_caption(preset: str, variants: Sequence[PresetVariant], details: str = "") -> Fragment:
    """Write a table caption with the preset in words, ``details`` and the overrides. Several variants share the name of their preset."""
    title = variants[0].title if len(variants) == 1 else variants[0].base if variants else preset
    parts: list[Content] = [element("strong", scenario_words(title)), f" – {details}" if details else None]
    if not variants:
        return join([parts[0], " ", element("code", preset), *parts[1:]])
    if len(variants) == 1:
        (variant,) = variants
        return join([*parts, element("br"), f"{variant.name} is {variant.base} with ", element("code", variant.changes_text)])
    common = {name: value for name, value in variants[0].changes.items() if name not in variants[0].distinguishing}
    parts += [element("br"), f"{', '.join(variant.name for variant in variants)}: {variants[0].base} with the values below"]
    parts += [" and ", element("code", changes_as_text(common))] if common else []
    return join(parts)
