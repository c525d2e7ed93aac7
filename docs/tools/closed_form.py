"""Computes the tables of docs/protocols/closed-form.md from records and plots its figure: ``python docs/tools/closed_form.py``.

The campaigns are ``reports/studies/closed-form*.toml``; their records are in ``reports/gallery/closed-form/records``. The records of
fine-tuning, ER and joint training are in ``reports/gallery/records``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cglsuite.cells.records.record import Record
from cglsuite.reports import load_campaign_results
from cglsuite.reports.kit.pictures import LIGHT, house_style, style_of
from cglsuite.stats import Refused, adjust, mean_estimate, paired_t

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "reports" / "gallery" / "closed-form" / "records"
PAGE = ROOT / "docs" / "protocols" / "closed-form.md"
PICTURE = ROOT / "docs" / "pictures" / "closed-form.png"
Some = Mapping[tuple[int, int, int], Record]
"""Records by order, split and init seed."""


@dataclass(frozen=True)
class Row:
    """One row of a table: the cells of one method in a campaign.

    Args:
        campaign: The path of its file below ``reports``, without the suffix.
        settings: The settings that select these cells.
    """

    campaign: str
    method: str
    settings: tuple[tuple[str, Any], ...] = ()


_BYTES, _ROWS = "studies/closed-form-bytes", "studies/closed-form-rows"
BEGIN = {
    "bare": Row("studies/closed-form", "bare"),
    "er-gnn": Row("studies/closed-form", "er-gnn"),
    "frozen-ncm": Row("studies/closed-form", "frozen-ncm"),
    "simple-cil": Row("studies/closed-form", "simple-cil"),
    "analytic-ridge": Row("studies/closed-form", "analytic-ridge"),
    "analytic-ridge, dual form": Row(_BYTES, "analytic-ridge", (("method.solver", "dual"), ("method.projection", 0))),
    "analytic-ridge, 100 random features": Row(_BYTES, "analytic-ridge", (("method.solver", "sums"), ("method.projection", 100))),
    "analytic-ridge, 8,192 random features": Row(_BYTES, "analytic-ridge", (("method.solver", "dual"), ("method.projection", 8192))),
    "analytic-ridge, no graph": Row(_ROWS, "analytic-ridge", (("method.hops", 0), ("method.neighbours", "all"))),
    "analytic-ridge, training nodes only": Row(_ROWS, "analytic-ridge", (("method.hops", 2), ("method.neighbours", "training"))),
    "replay, all rows": Row("studies/closed-form", "replay"),
    "joint, softmax regression": Row("studies/closed-form-softmax", "joint"),
    "bare, Kipf and Welling's recipe": Row("studies/closed-form-recipe", "bare"),
    "joint, Kipf and Welling's recipe": Row("studies/closed-form-recipe", "joint"),
    "joint, learning rate 0.0005": Row("begin/begin-citeseer-rate", "joint", (("training.lr", 5e-4),)),
    "joint": Row("studies/closed-form", "joint"),
}
"""Rows for BeGin's protocol."""
CGLB = {
    "bare": Row("studies/closed-form-cglb", "bare"),
    "er-gnn": Row("studies/closed-form-cglb", "er-gnn"),
    "pdgnns-tem": Row("studies/closed-form-cglb", "pdgnns-tem"),
    "frozen-ncm": Row("studies/closed-form-cglb", "frozen-ncm"),
    "simple-cil": Row("studies/closed-form-cglb", "simple-cil"),
    "analytic-ridge": Row("studies/closed-form-cglb", "analytic-ridge", (("method.balance", False),)),
    "analytic-ridge, class weights": Row("studies/closed-form-cglb", "analytic-ridge", (("method.balance", True),)),
    "joint, softmax regression": Row("studies/closed-form-softmax-cglb", "joint"),
    "joint": Row("studies/closed-form-cglb", "joint"),
}
"""Rows for CGLB's protocol, with and without global queries."""
GRAPHS = {name: BEGIN[name] for name in ("bare", "frozen-ncm", "simple-cil", "analytic-ridge", "joint")}
"""Rows for whole graphs."""
TABLES = {
    "cora/class-il@begin-2": BEGIN,
    "citeseer/class-il@begin-2": BEGIN,
    "aromaticity/class-il@begin-2": GRAPHS,
    "cora/class-il@cglb-2": CGLB,
    "cora/class-il@global-1": CGLB,
    "citeseer/class-il@cglb-2": CGLB,
    "amazon-clothing20/class-il@cglb-2": CGLB,
}
"""The rows of each table by scenario. On the page, a comment with the name of the scenario precedes each table."""

LEAST = 3
"""The smallest number of repetitions for which a row is shown."""


@cache
def loaded(campaign: str) -> tuple[Record, ...]:
    """The finished records of a campaign."""
    results = load_campaign_results(ROOT / "reports" / f"{campaign}.toml", RECORDS)
    return tuple(cell.record for cell in results.cells if cell.record is not None and cell.record.done)


@cache
def gallery() -> tuple[Record, ...]:
    """The gallery's finished runs of joint training on CiteSeer under BeGin's protocol, at any learning rate."""
    results = load_campaign_results(ROOT / "reports" / "begin" / "begin-citeseer-rate.toml", RECORDS.parents[1] / "records")
    return tuple(cell.record for cell in results.cells if cell.record is not None and cell.record.done)


def records(scenario: str, row: Row) -> Some:
    """The records of a row in a scenario."""
    found = {}
    for record in loaded(row.campaign) if row.campaign.startswith("studies") else gallery():
        cell, seeds = record.cell, record.cell["seeds"]
        alike = all(cell["configuration"].get(key) == value for key, value in row.settings)
        if alike and (cell["scenario"], cell["method"]) == (scenario, row.method):
            found[seeds["order"], seeds["split"], seeds["init"]] = record
    return found


def values(some: Some, metric: str) -> np.ndarray:
    """The values of a metric in percent, one per repetition."""
    return np.array([100 * some[seeds].metrics[metric] for seeds in sorted(some)])


def differences(one: Some, other: Some, metric: str = "average_performance") -> np.ndarray:
    """Paired differences in a metric over the repetitions that both have, in points, sorted by seeds."""
    shared = set(one) & set(other)
    a, b = (values({seeds: some[seeds] for seeds in shared}, metric) for some in (one, other))
    return a - b


def p_value(paired: np.ndarray) -> float:
    """The p-value of a paired t-test, or NaN if the test is refused, for example because the differences have no spread."""
    try:
        return paired_t(paired, np.zeros_like(paired)).p
    except Refused:
        return float("nan")


def interval(some: np.ndarray) -> tuple[float, float]:
    """The 95% Student's t interval of the mean."""
    return mean_estimate(some).interval(0.95)


def table(scenario: str) -> dict[str, dict[str, Any]]:
    """The values of each row: AP and AF of all repetitions, excess forgetting, bytes excluding the network, and paired differences in AP.

    Rows with fewer than three repetitions are omitted. The p-values of the differences from joint training are adjusted by Holm's method
    over the rows.
    """
    rows = TABLES[scenario]
    bare, joint, frozen = (records(scenario, rows[name]) for name in ("bare", "joint", "frozen-ncm"))
    found: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        if len(some := records(scenario, row)) >= LEAST:
            found[name] = {
                "ap": values(some, "average_performance"),
                "af": values(some, "forgetting_from_diagonal"),
                "excess": differences(some, frozen, "forgetting_from_diagonal"),
                "bytes": float(np.mean([record.memory["bytes"] + record.parameters["method_bytes"] for record in some.values()])),
                "gain": differences(some, bare),
                "ahead": differences(some, joint),
            }
    tested = [name for name in found if name != "joint" and np.isfinite(p_value(found[name]["ahead"]))]
    adjusted = adjust([p_value(found[name]["ahead"]) for name in tested])
    for name, p in zip(tested, adjusted, strict=True):
        found[name]["p"] = float(p)
    return found


# --- as text -----------------------------------------------------------------------------------------------------------------------


def amount(number: float) -> str:
    """A number of bytes in readable units."""
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:,.1f} {unit}" if number < 100 * size else f"{number / size:,.0f} {unit}"
    return f"{number:.0f} B"


def spread(some: np.ndarray) -> str:
    """Mean and standard deviation."""
    return f"{some.mean() + 0.0:.1f} ± {some.std(ddof=1):.1f}" if len(some) > 1 else "–"


def chance(p: float) -> str:
    """A p-value as text."""
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def lines(scenario: str) -> list[str]:
    """The table of a scenario as Markdown."""
    heads = ["method", "n", "AP", "AF", "excess forgetting", "bytes stored", "vs. `bare`", "vs. `joint`", "p"]
    text = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for name, one in table(scenario).items():
        method, comma, rest = name.partition(",")
        scores = [spread(one[key]) for key in ("ap", "af", "excess")]
        size = "all items" if method == "joint" else amount(one["bytes"])
        gain = f"{one['gain'].mean():+.1f}" if one["gain"].size and name != "bare" else "–"
        text.append(f"| {' | '.join([f'`{method}`{comma}{rest}', str(len(one['ap'])), *scores, size, gain, *against_joint(one)])} |")
    return text


def against_joint(one: Mapping[str, Any]) -> list[str]:
    """The difference of a row from joint training with its interval, and the p-value."""
    if "p" not in one:
        return ["–", "–"]
    ends = ", ".join(f"{end:+.1f}" for end in interval(one["ahead"]))
    return [f"{one['ahead'].mean():+.1f} [{ends}]", chance(one["p"])]


def with_tables(text: str, tables: Mapping[str, list[str]] | None = None) -> str:
    """The page with updated tables: the lines of each scenario's table, by default of those of this page."""
    for scenario, table_lines in ({name: lines(name) for name in TABLES} if tables is None else tables).items():
        before, mark, after = text.partition(f"<!-- records of {scenario} -->\n")
        if mark:
            rest = after.lstrip("\n").splitlines()
            first = next((i for i, line in enumerate(rest) if not line.startswith("|")), len(rest))
            text = "\n".join([f"{before}{mark}", *table_lines, "", "\n".join(rest[first:]).strip(), ""])
    return text


# --- the figure -------------------------------------------------------------------------------------------------------------------

_PANELS = {"cora/class-il@begin-2": "Cora", "citeseer/class-il@begin-2": "CiteSeer"}
_LINES = {"joint": (" joint training", "-"), "joint, Kipf and Welling's recipe": (" joint training, other recipe", "--")}
_SHOWN = (*tuple(BEGIN)[:8], "replay, all rows")


def shown() -> dict[str, dict[str, list[float]]]:
    """The numbers in the figure: for each data set and row, the bytes, the mean AP and the ends of its interval."""
    found: dict[str, dict[str, list[float]]] = {}
    for scenario, dataset in _PANELS.items():
        rows = table(scenario)
        there = [(name, rows[name]) for name in (*_SHOWN, *_LINES) if name in rows]
        found[dataset] = {n: [round(one["bytes"]), *(round(v, 2) for v in (one["ap"].mean(), *interval(one["ap"])))] for n, one in there}
    return found


def picture(numbers: Mapping[str, Mapping[str, list[float]]]) -> Figure:
    """Plot AP against stored bytes, one panel per data set. Lines show joint training with two recipes, and bands their intervals."""
    with mpl.rc_context(house_style(LIGHT)):
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        panels = figure.subplots(1, len(numbers), sharey=True)
        for axis, (dataset, rows) in zip(panels, numbers.items(), strict=True):
            for name, (label, dash) in _LINES.items():
                _, mean, low, high = rows[name]
                axis.axhspan(low, high, color="0.85", alpha=0.6)
                axis.axhline(mean, color="0.4", linewidth=1, linestyle=dash)
                axis.text(0.5, mean, label, va="bottom", color="0.3", fontsize=8)
            for name in (n for n in _SHOWN if n in rows):
                size, mean, low, high = rows[name]
                look = style_of(name, _SHOWN, LIGHT) | {"linestyle": ""}
                axis.errorbar(max(size, 1), mean, [[mean - low], [high - mean]], capsize=2, label=name, **look)
            axis.set(xscale="log", xlim=(0.3, 1e9), title=dataset, xlabel="bytes stored, excluding the network (0 shown as 1)")
        panels[0].set_ylabel("average performance (%)")
        handles = {label: handle for axis in panels for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(handles.values(), handles, loc="outside right upper", fontsize=8)
    return figure


def main() -> None:
    """Write the tables of the page, and the figure with its numbers as metadata."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    numbers = shown()
    picture(numbers).savefig(PICTURE, dpi=120, metadata={"Description": json.dumps(numbers)})


if __name__ == "__main__":
    main()
