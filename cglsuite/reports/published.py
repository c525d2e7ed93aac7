"""Our results beside those that papers print, with a verdict that is computed and never typed.

A published value is compared where it exists for the same paper, data set, setting, method, backbone, and metric by definition (a paper's
"AF" is two different things in two papers), and only for an unchanged preset of that paper's protocol. What is known of how a published
value came about stands beside it (``cglsuite.reference.known_artefacts``), and never changes a verdict; only where a row belongs to another
problem altogether there is none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.reference import known_artefacts, published_results
from cglsuite.reports.rows import as_rows
from cglsuite.reports.tables import summary

if TYPE_CHECKING:
    from cglsuite.reports.results import CampaignResults

__all__ = ["BOUND", "compare", "published_sensitivity", "published_value"]

BOUND = 2.0
"""A mean of ours within this many published standard deviations of the published mean agrees with it."""

_PAPERS = {"begin-1": "BeGin", "cglb-1": "CGLB", "cglb-inter-1": "CGLB", "agale-1": "AGALE"}
"""By protocol, the paper whose protocol it is; presets of any other protocol are compared with nothing."""
_ORDER_PAPERS = {"skeleton-1": "SkeletonCGL"}
"""Likewise for papers that print how far results depend on orders."""
_ORDER_VARIANTS = {"task": "order=task", "class": "order=class (aggregated)"}
_ALIASES = {"continualgnn": "cgnn", "nwucla": "ucla", "nturgbd": "ntu", "graphgcn": "gcn"}
"""Our word for a method, data set or backbone to a paper's, where they differ."""
_LABELS = {
    "BeGin": {
        "average_performance": "AP",
        "forgetting_from_diagonal": "AF",
        "intransigence": "INT",
        "forward_transfer": "FWT",
    },
    "CGLB": {"average_performance": "AP", "backward_transfer": "AF"},
    "AGALE": {"average_performance": "AP", "backward_transfer": "AF"},
}
_PERCENT = {"%": 1.0, "fraction": 100.0}
_OTHER_SCALE = "std evidently on the 0-1 scale"
_NOT_A_REMARK = re.compile(r"base metric: .*|AF[<>]0 means forgetting|INT: lower is better|called .*|built upon .*|std evidently .*")


def compare(results: CampaignResults) -> pd.DataFrame:
    """Every metric of every group for which a paper prints a value.

    Returns:
        Columns preset, method, backbone, variant, metric, mean, std, n (ours, in percent), published, published_std (in percent),
        printed (the digits in the paper), shown (the same, mean and deviation in one unit), paper, table, label, comparable, difference
        (points), deviations (in published standard deviations), agrees (None without a printed deviation), remark, footnotes (tuple of
        what is known of how the published value came about), unit_note (empty, or how the deviation was brought to the mean's unit).
        Where not ``comparable``, difference and deviations are NaN and agrees is None.
    """
    table, artefacts = _prepared(published_results()), known_artefacts()
    rows = []
    for row in as_rows(summary(results)):
        match = published_value(table, row["preset"], row["method"], row["backbone"], row["metric"], _edges(results, row))
        if match is not None:
            rows.append(
                {name: row[name] for name in ("preset", "method", "backbone", "variant", "metric", "n")} | _verdict(row, match, artefacts)
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = ["preset", "method", "backbone", "variant", "metric", "mean", "std", "n", "published", "published_std", "printed"]
_COLUMNS += ["shown", "paper", "table", "label", "comparable", "difference", "deviations", "agrees", "remark", "footnotes", "unit_note"]


def published_value(table: pd.DataFrame, preset: str, method: str, backbone: str, metric: str, edge_policy: str) -> dict[str, Any] | None:
    """The row of ``table`` that a result is comparable with, None where there is none or where a switch of the preset was overridden."""
    dataset, _, rest = preset.partition("/")
    setting, _, protocol = rest.partition("@")
    paper = _PAPERS.get(protocol, "")
    label = _LABELS.get(paper, {}).get(metric)
    if label is None or "+" in preset:
        return None
    variant = f"inter-task-edges={'true' if edge_policy == 'inter-task' else 'false'}"
    mine = (table.paper == paper) & (table.metric == label) & table.variant.isin(["", variant])
    mine &= (table.setting_key == setting) & (table.dataset_key == _dataset_key(dataset)) & (table.method_key == _method_key(method))
    mine &= (table.backbone_key == _word(backbone)) & table["mean"].notna() & table.unit.isin(list(_PERCENT))
    found = table[mine]
    return None if found.empty else as_rows(found.iloc[:1])[0]


def published_sensitivity(preset: str, method: str, backbone: str, unit: str) -> dict[str, dict[str, Any]]:
    """What a paper prints on the spread over orders for an unchanged preset of its protocol.

    Args:
        unit: ``task`` (the paper's task orders) or ``class`` (its class orders, among them the task orders).

    Returns:
        ``AOPD`` and ``MOPD`` to their rows of the published table, each with ``n_orders`` (None where the paper does not say) and
        ``remark``; empty where nothing is comparable.
    """
    dataset, _, rest = preset.partition("/")
    setting, _, protocol = rest.partition("@")
    table = _whole_table()
    mine = (table.paper == _ORDER_PAPERS.get(protocol, "")) & (table.variant == _ORDER_VARIANTS[unit]) & (table.setting_key == setting)
    mine &= (table.dataset_key == _dataset_key(dataset)) & (table.method_key == _method_key(method)) & table["mean"].notna()
    found = table[mine & (table.backbone_key == _method_key(backbone)) & (table.unit == "%")]
    rows = {}
    for row in as_rows(found):
        counted = re.search(r"over (\d+) (?:task|class) orders", row["note"])
        remarks = [part for part in row["note"].split("; ") if part.startswith("suspect: ")]
        rows[row["metric"]] = row | {"n_orders": int(counted[1]) if counted else None, "remark": "; ".join(remarks)}
    return rows


@lru_cache
def _whole_table() -> pd.DataFrame:
    return _prepared(published_results())


def _prepared(table: pd.DataFrame) -> pd.DataFrame:
    """The published table with names in the form in which they are matched."""
    return table.assign(
        dataset_key=table.dataset.map(_dataset_key),
        method_key=table.method.map(_method_key),
        backbone_key=table.backbone.map(_word),
        setting_key=table.setting.str.lower(),
    )


def _verdict(row: dict[str, Any], match: dict[str, Any], artefacts: pd.DataFrame) -> dict[str, Any]:
    scale = _PERCENT[match["unit"]]
    known = _known(match, artefacts)
    comparable = not any(kind == "not-comparable" for kind, _ in known)
    published, deviation = scale * match["mean"], _deviation(match, comparable)
    ours = 100.0 * row["mean"]
    difference = ours - published if comparable else np.nan
    judged = comparable and bool(np.isfinite(deviation)) and deviation > 0
    remarks = [part for part in match["note"].split("; ") if part and not _NOT_A_REMARK.fullmatch(part)]
    return {
        "mean": ours,
        "std": 100.0 * row["std"],
        "published": published,
        "published_std": deviation,
        **_texts(match, deviation),
        "paper": match["paper"],
        "table": match["table"],
        "label": match["metric"],
        "comparable": comparable,
        "difference": difference,
        "deviations": difference / deviation if judged else np.nan,
        "agrees": bool(abs(difference) <= BOUND * deviation + 1e-9) if judged else None,
        "remark": "; ".join(remarks),
        "footnotes": tuple(reason for _, reason in known),
    }


def _deviation(match: dict[str, Any], comparable: bool) -> float:
    """The printed deviation in percent; AGALE prints it on the 0 to 1 scale beside means in percent.

    A row that is not compared stays as printed: AGALE's joint training has 22.47 ± 0.47, which cannot mean 47 points.
    """
    return float(match["std"] * (100.0 if comparable and _OTHER_SCALE in match["note"] else _PERCENT[match["unit"]]))


def _texts(match: dict[str, Any], deviation: float) -> dict[str, str]:
    """What the paper prints, what is shown for it, and why that differs."""
    printed = str(match["printed"])
    if not np.isfinite(deviation) or deviation == _PERCENT[match["unit"]] * match["std"]:
        return {"printed": printed, "shown": printed, "unit_note": ""}
    told = (
        "the paper prints standard deviations on the scale from 0 to 1 beside means in percent; they are brought to points here (times 100)"
    )
    return {"printed": printed, "shown": f"{printed.partition(' ±')[0]} ± {deviation:g}", "unit_note": told}


def _known(match: dict[str, Any], artefacts: pd.DataFrame) -> list[tuple[str, str]]:
    """Kind and reason of every known artefact that concerns a published row."""
    where = ("paper", "problem", "setting", "dataset", "method", "metric")
    rows = as_rows(artefacts)
    return [(row["kind"], row["reason"]) for row in rows if all(not row[w] or match[w] in row[w].split("|") for w in where)]


def _edges(results: CampaignResults, row: dict[str, Any]) -> str:
    for group in results.groups:
        if (group.preset, group.method, group.variant) == (row["preset"], row["method"], row["variant"]):
            return str(group.records[0].scenario.get("edge_policy", ""))
    return ""


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9*]", "", name.lower())


def _method_key(name: str) -> str:
    """``EvolveGCN`` and ``evolve-gcn``, ``CGNN`` and ``continual-gnn`` are one method each."""
    return _ALIASES.get(_word(name), _word(name))


def _dataset_key(name: str) -> str:
    """``CoraFull-CL`` and ``corafull``, ``Arxiv-CL`` and ``ogbn-arxiv``, ``UCLA-CIL`` and ``nw-ucla`` are one data set each."""
    word = _word(re.sub(r"^ogb[ngl]-|-(?:cl|til|cil|multilabel)$", "", name.lower()))
    return _ALIASES.get(word, word)
