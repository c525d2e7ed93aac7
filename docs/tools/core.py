"""Computes the tables of docs/protocols/core.md from records: ``python docs/tools/core.py``.

The campaign is ``reports/studies/core-1.toml``; its records are in ``reports/gallery/core-1/records``.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import closed_form
import numpy as np
from closed_form import ROOT, against_joint, amount, differences, p_value, spread, values

from cglsuite.cells.records.record import Record
from cglsuite.reports import load_campaign_results
from cglsuite.stats import adjust

CAMPAIGN = ROOT / "reports" / "studies" / "core-1.toml"
RECORDS = ROOT / "reports" / "gallery" / "core-1" / "records"
PAGE = ROOT / "docs" / "protocols" / "core.md"
REFERENCES = ("joint", "frozen-ncm", "bare")
ORDERS = 10
"""The number of repetitions of every cell."""


@cache
def records() -> dict[str, dict[str, dict[tuple[int, int, int], Record]]]:
    """The finished records by scenario, method and seeds, for scenarios in which every method has all repetitions."""
    results = load_campaign_results(CAMPAIGN, RECORDS)
    found: dict[str, dict[str, dict[tuple[int, int, int], Record]]] = {}
    for cell in results.cells:
        scenario, method = cell.planned.request.scenario, cell.planned.request.method
        of_method = found.setdefault(scenario, {}).setdefault(method, {})
        if cell.record is not None and cell.record.done:
            seeds = cell.record.cell["seeds"]
            of_method[seeds["order"], seeds["split"], seeds["init"]] = cell.record
    return {scenario: rows for scenario, rows in found.items() if all(len(some) == ORDERS for some in rows.values())}


@cache
def table(scenario: str) -> dict[str, dict[str, Any]]:
    """The values of each method, the learners first, each part sorted by AP.

    The p-values of the differences from joint training are adjusted by Holm's method over the methods.
    """
    rows = records()[scenario]
    found = {
        method: {
            "ap": values(some, "average_performance"),
            "af": values(some, "forgetting_from_diagonal"),
            "bytes": float(np.mean([record.memory["bytes"] + record.parameters["method_bytes"] for record in some.values()])),
            "ahead": differences(some, rows["joint"]),
        }
        for method, some in rows.items()
    }
    tested = [method for method in found if method != "joint"]
    for method, p in zip(tested, adjust([p_value(found[method]["ahead"]) for method in tested]), strict=True):
        found[method]["p"] = float(p)
    return dict(sorted(found.items(), key=lambda item: (item[0] in REFERENCES, -item[1]["ap"].mean())))


def lines(scenario: str) -> list[str]:
    """The table of a scenario as Markdown."""
    heads = ["method", "AP", "AF", "bytes stored", "vs. `joint`", "p"]
    text = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for method, one in table(scenario).items():
        size = "all items" if method == "joint" else amount(one["bytes"])
        text.append(f"| {' | '.join([f'`{method}`', spread(one['ap']), spread(one['af']), size, *against_joint(one)])} |")
    return text


def with_tables(text: str) -> str:
    """The page with updated tables and the digest of the campaign file."""
    before, mark, after = text.partition("SHA-256 `")
    text = before + mark + hashlib.sha256(CAMPAIGN.read_bytes()).hexdigest() + after[after.index("`") :]
    return closed_form.with_tables(text, {scenario: lines(scenario) for scenario in records()})


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
