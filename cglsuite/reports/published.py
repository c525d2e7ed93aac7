"""Our results beside those that papers print, with a verdict that is computed and never typed.

A published value is compared where it exists for the same paper, data set, setting, method, backbone, and metric by definition (a paper's
"AF" is two different things in two papers), and only for an unchanged preset of that paper's protocol.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.reference import published_results
from cglsuite.reports.rows import as_rows
from cglsuite.reports.tables import summary

if TYPE_CHECKING:
    from cglsuite.reports.results import CampaignResults

__all__ = ["BOUND", "compare", "published_value"]

BOUND = 2.0
"""A mean of ours within this many published standard deviations of the published mean agrees with it."""

_PAPERS = {"begin": "BeGin", "cglb": "CGLB", "agale": "AGALE"}
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
_NOT_A_REMARK = re.compile(r"base metric: .*|AF[<>]0 means forgetting|INT: lower is better|called .*|built upon .*|std evidently .*")


def compare(results: CampaignResults) -> pd.DataFrame:
    """Every metric of every group for which a paper prints a value.

    Returns:
        Columns preset, method, backbone, variant, metric, mean, std, n (ours, in percent), published, published_std (in percent),
        printed, paper, table, label, difference (points), deviations (in published standard deviations), agrees (None without a printed
        deviation), remark.
    """
    table = _prepared(published_results())
    rows = []
    for row in as_rows(summary(results)):
        match = published_value(table, row["preset"], row["method"], row["backbone"], row["metric"], _edges(results, row))
        if match is not None:
            rows.append({name: row[name] for name in ("preset", "method", "backbone", "variant", "metric", "n")} | _verdict(row, match))
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = ["preset", "method", "backbone", "variant", "metric", "mean", "std", "n", "published", "published_std", "printed"]
_COLUMNS += ["paper", "table", "label", "difference", "deviations", "agrees", "remark"]


def published_value(table: pd.DataFrame, preset: str, method: str, backbone: str, metric: str, edge_policy: str) -> dict[str, Any] | None:
    """The row of ``table`` that a result is comparable with, None where there is none or where a switch of the preset was overridden."""
    dataset, _, rest = preset.partition("/")
    setting, _, protocol = rest.partition("@")
    paper = _PAPERS.get(protocol.partition("-")[0], "")
    label = _LABELS.get(paper, {}).get(metric)
    if label is None or "+" in preset:
        return None
    variant = f"inter-task-edges={'true' if edge_policy == 'inter-task' else 'false'}"
    mine = (table.paper == paper) & (table.metric == label) & table.variant.isin(["", variant])
    mine &= (table.setting_key == setting) & (table.dataset_key == _dataset_key(dataset)) & (table.method_key == _word(method))
    mine &= (table.backbone_key == _word(backbone)) & table["mean"].notna() & table.unit.isin(list(_PERCENT))
    found = table[mine]
    return None if found.empty else as_rows(found.iloc[:1])[0]


def _prepared(table: pd.DataFrame) -> pd.DataFrame:
    """The published table with names in the form in which they are matched."""
    return table.assign(
        dataset_key=table.dataset.map(_dataset_key),
        method_key=table.method.map(_word),
        backbone_key=table.backbone.map(_word),
        setting_key=table.setting.str.lower(),
    )


def _verdict(row: dict[str, Any], match: dict[str, Any]) -> dict[str, Any]:
    scale = _PERCENT[match["unit"]]
    published = scale * match["mean"]
    # AGALE prints deviations on the 0 to 1 scale beside means in percent.
    deviation = match["std"] * (100.0 if "std evidently on the 0-1 scale" in match["note"] else scale)
    ours = 100.0 * row["mean"]
    difference = ours - published
    known = bool(np.isfinite(deviation)) and deviation > 0
    remarks = [part for part in match["note"].split("; ") if part and not _NOT_A_REMARK.fullmatch(part)]
    return {
        "mean": ours,
        "std": 100.0 * row["std"],
        "published": published,
        "published_std": deviation,
        "printed": match["printed"],
        "paper": match["paper"],
        "table": match["table"],
        "label": match["metric"],
        "difference": difference,
        "deviations": difference / deviation if known else np.nan,
        "agrees": bool(abs(difference) <= BOUND * deviation + 1e-9) if known else None,
        "remark": "; ".join(remarks),
    }


def _edges(results: CampaignResults, row: dict[str, Any]) -> str:
    for group in results.groups:
        if (group.preset, group.method, group.variant) == (row["preset"], row["method"], row["variant"]):
            return str(group.records[0].scenario.get("edge_policy", ""))
    return ""


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9*]", "", name.lower())


def _dataset_key(name: str) -> str:
    """``CoraFull-CL`` and ``corafull``, ``Arxiv-CL`` and ``ogbn-arxiv`` are one data set each."""
    return _word(re.sub(r"^ogb[ngl]-|-(?:cl|til|cil)$", "", name.lower()))
