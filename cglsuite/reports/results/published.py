"""Compare our results with published ones and compute a verdict: equivalent, different or undecided (see :mod:`cglsuite.stats.compare`).

A published value is compared if data set, setting, method, backbone and metric definition match ("AF" means different things in two
papers). The preset must also follow that paper's protocol, with no overrides except for the settings that the table varies (see
:mod:`cglsuite.campaigns.reference.values`). A published value with known artefacts (``cglsuite.campaigns.reference.known_artefacts``) is
reported as an artefact, however close ours is, and is excluded from the adjustment of the other p values. A row gets no verdict if it
belongs to a different problem, if we have too few cells, or if our cells have one order or one seed where the paper averages over several.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.campaigns.reference.values import (
    ARTEFACT,
    UNITS,
    Paper,
    Result,
    demand_of,
    known_about,
    paper_named,
    paper_of,
    printed_deviation,
    printed_rows,
    remarks,
    repetitions_mean,
    require_comparable,
    shown_value,
    skew_note,
    unit_note,
    verdict_on,
)
from cglsuite.reports.kit.tables import as_rows
from cglsuite.reports.results.results import Group, Results
from cglsuite.reports.results.tables import summary
from cglsuite.reports.results.variants import orders_in_all, place_of
from cglsuite.stats import Layout, Refused, agreement_verdicts, layout, mean_estimate

_ORDER_UNITS = {"task": "task", "class": "class (aggregated)"}


def compare(results: Results) -> pd.DataFrame:
    """Compare every metric of every group with its published value. If several tables print a value, use the first.

    Returns:
        Columns preset, method, backbone, variant, metric, mean, std, n (ours, in percent), over (what we average over), published,
        published_std (in percent), printed (the digits in the paper), shown (the same in percent), paper, table,
        label, comparable, difference, low, high (its 90% interval, in points), margin, smallest_margin (points), p_equivalent, p_different,
        p_holm (adjusted over the rows of a table), verdict (one of :data:`cglsuite.stats.AGREEMENTS`, ``published artefact`` or ``no
        verdict``), reason (why there is no test), remarks (tuple; they do not affect the verdict), footnotes (tuple of known facts
        about the origin of the published value), unit_note (how the shown value was converted, or empty), row (index in
        :func:`cglsuite.campaigns.reference.published_results`). A row that is not ``comparable`` has a difference of NaN and no verdict.
    """
    groups = {(g.preset, g.method, g.backbone, g.variant): g for g in results.groups}
    rows = []
    for row in as_rows(summary(results)):
        group = groups[row["preset"], row["method"], row["backbone"], row["variant"]]
        printed = printed_rows(_result(results, group, row["metric"]))
        printed = printed[printed["unit"].isin([unit.name for unit in UNITS.values() if unit.point is not None])]
        if not printed.empty:
            identity = {name: row[name] for name in ("preset", "method", "backbone", "variant", "metric", "n")}
            match = {**as_rows(printed.iloc[:1])[0], "row": int(printed.index[0])}
            compared_row = identity | _compared(row, match) | _tested(results, group, row["metric"], match)
            known = known_about(match)
            rows.append(compared_row | ({"verdict": ARTEFACT} if known.artefacts and known.comparable else {}))
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    tables: Any = frame[frame["verdict"] == _OPEN].groupby(["paper", "table"], sort=False)
    for _, part in tables:
        verdicts, p = agreement_verdicts(part["p_equivalent"], part["p_different"])
        frame.loc[part.index, "verdict"], frame.loc[part.index, "p_holm"] = verdicts, p
    for place, same in frame[frame["verdict"] == "equivalent"].iterrows():
        frame.loc[place, "reason"] = skew_note(int(same["n"]), paper_named(same["paper"]).repeats)
    return frame.astype(dict.fromkeys(_TESTED, "float64"))


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`compare` that are reproducible here and not a known artefact."""
    return frame[~frame["footnotes"].map(bool).astype(bool)]


_OPEN = "to be judged"
_TESTED = ["low", "high", "margin", "smallest_margin", "p_equivalent", "p_different", "p_holm"]
_COLUMNS = ["preset", "method", "backbone", "variant", "metric", "mean", "std", "n", "over", "published", "published_std", "printed"]
_COLUMNS += ["shown", "paper", "table", "label", "comparable", "difference", *_TESTED, "verdict", "reason", "remarks", "footnotes"]
_COLUMNS += ["unit_note", "row"]


def _result(results: Results, group: Group, metric: str) -> Result:
    record, variant = group.records[0], results.variants.get(group.preset)
    changes = tuple(variant.changes) if variant else ()
    return Result(
        preset=variant.base if variant else group.preset,
        setting=str(record.scenario["setting"]),
        level=str(record.scenario["level"]),
        method=group.method,
        backbone=group.backbone if "training.backbone" in changes else None,
        metric=metric,
        configuration=record.cell["configuration"],
        changes=changes,
    )


def published_sensitivity(preset: str, method: str, backbone: str, unit: str) -> dict[str, dict[str, Any]]:
    """Return the published spread over orders for an unchanged preset that follows a paper's protocol.

    Args:
        unit: ``task`` (the paper's task orders) or ``class`` (its class orders, which include the task orders).

    Returns:
        A mapping from ``AOPD`` and ``MOPD`` to their rows in the published table, each with ``n_orders`` (None if the paper does not
        state it) and ``remark``. It is empty if nothing is comparable.
    """
    paper, rows = paper_of(preset.partition("@")[2]), {}
    if paper is None or not paper.orders:
        return {}
    setting = preset.partition("/")[2].partition("@")[0]
    for metric in paper.metrics.values():
        result = Result(preset=preset, setting=setting, level="GC", method=method, backbone=backbone, metric=metric, configuration={})
        for row in as_rows(printed_rows(result)):
            if demand_of(row).orders == paper.orders[_ORDER_UNITS[unit]]:
                counted = re.search(r"over (\d+) (?:task|class) orders", row["note"])
                suspicions = [part for part in row["note"].split("; ") if part.startswith("suspect: ")]
                rows[row["metric"]] = row | {"n_orders": int(counted[1]) if counted else None, "remark": "; ".join(suspicions)}
    return rows


def _compared(row: dict[str, Any], match: dict[str, Any]) -> dict[str, Any]:
    scale = UNITS[match["unit"]].to_points
    known = known_about(match)
    published, ours = scale * match["mean"], 100.0 * row["mean"]
    place = {"paper": match["paper"], "table": match["table"], "row": match["row"], "label": match["metric"]}
    printed = {"printed": str(match["printed"]), "shown": shown_value(match, percent=True), "unit_note": unit_note(match, percent=True)}
    numbers = {"mean": ours, "std": 100.0 * row["std"], "published": published, "published_std": scale * printed_deviation(match)}
    notes = {"comparable": known.comparable, "remarks": remarks(match), "footnotes": (*known.artefacts, *known.unavailable)}
    return place | printed | numbers | notes | {"difference": ours - published if known.comparable else np.nan}


def _tested(results: Results, group: Group, metric: str, match: dict[str, Any]) -> dict[str, Any]:
    """Test a mean against the published one, in points; rows that can be tested get an open verdict."""
    values = results.frame.set_index("key")[metric]
    rows = [place_of(record) | {"value": float(values[record.key])} for record in group.records]
    row: dict[str, Any] = {"over": "", "reason": "", "verdict": _OPEN}
    try:
        require_comparable(match)
        design = layout(pd.DataFrame(rows).dropna(subset="value"), orders_in_all(group.records))
        row["over"] = design.description
        _require_same_spread(design, paper_named(match["paper"]), str(group.records[0].scenario["setting"]))
        ours = repetitions_mean(list(design.values)) if design.values.ndim == 1 else mean_estimate(design.values, design.factors)
        verdict = verdict_on(match, metric, ours, paper_named(match["paper"]).repeats)
    except Refused as refusal:
        return row | {"verdict": "no verdict", "reason": str(refusal)}
    scale = UNITS[match["unit"]].to_points
    points = {name: scale * getattr(verdict, name) for name in ("low", "high", "margin", "smallest_margin")}
    return row | points | {"p_equivalent": verdict.p_equivalent, "p_different": verdict.p_different}


def _require_same_spread(design: Layout, paper: Paper, setting: str) -> None:
    """Refuse to compare a paper's mean over several orders or seeds with cells that all have the same order or seed."""
    several = {axis for axis, seeds in paper.seeds.items() if len(set(seeds)) > 1}
    if "order" in design.given and "order" in several and setting != "time-il":
        raise Refused(f"our cells have one order, but the published mean is over {paper.spread}")
    if "seed" in design.given and "init" in several:
        raise Refused(f"our cells have one seed, but the published mean is over {paper.spread}")
    if "order" in design.factors and "order" not in several and not paper.orders:
        raise Refused(f"our cells have several orders, but the published mean is over {paper.spread}")
