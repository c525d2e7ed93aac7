"""The page of all ledgers. It formats what :mod:`cglsuite.reports.studies.papers.compute` computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import (
    empty,
    exact_cell,
    group_title,
    head_cell,
    mean_std_cell,
    number_cell,
    number_text,
    row_head,
    table,
)
from cglsuite.reports.kit.notices import Notes, key_box, notice, tile
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.studies.ledger.judging import JUDGED, RULE, saturated
from cglsuite.reports.studies.ledger.page import (
    count_cell,
    interval_cell,
    offset_table,
    p_cell,
    printed_cell,
    provenance_of,
    unit_digits,
    unreached,
    verdict_cell,
)
from cglsuite.reports.studies.papers.compute import DIFFERENT, SUMMARY, misses, plain_reason, share

if TYPE_CHECKING:
    from cglsuite.reports.results.runs import Facts
    from cglsuite.reports.studies.papers.compute import Papers
    from cglsuite.reports.studies.papers.disagreements import Crossing

__all__ = [
    "cells",
    "compared",
    "disagreements",
    "headlines",
    "mechanisms",
    "missed",
    "not_run",
    "not_runnable",
    "offsets",
    "overview",
    "provenance",
    "tables",
]

_STATES = {"confirmed": "good", "refuted": "bad", "named": "note", "no records": "plain"}
_COUNTS = SUMMARY[2:]


def overview(papers: Papers) -> Fragment:
    """What came out in a few sentences, the counts of all tables, and the rule of verdicts."""
    tiles = [tile(papers.totals[name], name) for name in _COUNTS if papers.totals[name] or name in ("printed", "run")]
    parts: list[Content] = [element("p", element("strong", papers.title), class_="lead")]
    parts.append(key_box(element("li", text) for text in headlines(papers)))
    parts += [element("ul", *tiles, class_="tiles"), element("p", f"{RULE[0].upper()}{RULE[1:]}.")]
    stale = papers.rows[papers.rows["stale"] != ""]
    if len(stale):
        parts.append(notice(f"{len(stale)} rows use records made by different code or on another class of machine."))
    return join(parts)


def headlines(papers: Papers) -> list[str]:
    """The state of the campaign, what two papers disagree on, tables that are off as a whole, and rows that rest on one run."""
    n = papers.totals
    tested = sum(n[name] for name in ("equivalent", *DIFFERENT, "undecided"))
    said = f"Of {n['printed']} printed values {n['reachable']} can be reached with the data at hand, and {n['run']} have been run."
    if tested:
        part = share(n) or 0.0
        full = int(saturated(papers.rows).sum())
        bound = f"; {full} of them with 100 % on both sides, the largest possible value" if full else ""
        said += f" Of the {tested} that have a test, {n['equivalent']} are equivalent ({100 * part:.0f} %{bound}), "
        said += (
            f"{n[DIFFERENT[0]] + n[DIFFERENT[1]]} different ({n[DIFFERENT[0]]} with a confirmed mechanism) and {n['undecided']} undecided."
        )
    lines = [said, *(text for one in papers.crossings if (text := answer(one)))]
    off = [row for row in as_rows(papers.offsets) if row["low"] == row["low"] and row["low"] * row["high"] > 0]
    if len(papers.offsets):
        named = "; ".join(f"{row['paper']}, table {row['table']}, {row['metric']}: {number_text(row['mean'], 1, plus=True)}" for row in off)
        lines.append(f"{len(off)} of {len(papers.offsets)} tables are off as a whole{f' ({named})' if named else ''}.")
    if n["n = 1"]:
        lines.append(f"{n['n = 1']} values rest on one repetition, and have no verdict.")
    return lines


def answer(one: Crossing) -> str:
    """What the crossed setting says about a disagreement, in one sentence; empty without records."""
    effects, between = one.effects, one.protocols
    if len(one.printed) < 2 or effects["effect"].isna().any() or between["difference"].isna().any():
        return ""
    asked = one.question
    printed = " and ".join(f"{row['mean']:.1f} ({row['paper']})" for row in as_rows(one.printed))
    first, *_, last = asked["values"].split("|")
    moved = " and ".join(f"{number_text(row['effect'], 1, plus=True)} points under {row['paper']}" for row in as_rows(effects))
    apart = between["difference"].abs().max()
    return (
        f"{printed} are printed for {asked['method']} on {asked['dataset']} in {asked['setting']}: {asked['switch']} from {first} to "
        f"{last} alone moves our value by {moved}, and with the same value the protocols are at most {apart:.1f} points apart."
    )


# --- tables ----------------------------------------------------------------------------------------------------------------------


def tables(papers: Papers) -> Fragment:
    """Per paper and table: how many printed values are reached, run and agree."""
    if papers.summary.empty:
        return empty("There are no published values to reproduce here.")
    names = _shown(papers)
    head = [head_cell("table", "name"), *(head_cell(_unbroken(name), "number") for name in names), head_cell("share", "number")]
    rows: list[list[Fragment]] = []
    parts: Any = papers.summary.groupby("paper", sort=False)
    for paper, part in parts:
        rows.append([group_title(str(paper), len(head))])
        rows += [[row_head(f"table {row['table']}"), *_counted(row, names)] for row in as_rows(part)]
        if len(part) > 1:
            rows.append([row_head("all tables"), *_counted({name: int(part[name].sum()) for name in _COUNTS}, names)])
    rows.append([row_head("all papers"), *_counted(papers.totals, names)])
    about = (
        "Printed: values in the table. Reachable: with the data and methods at hand. Run: with a value of ours. No verdict: one or two "
        "repetitions, or nothing printed to test against. n = 1: rows over a single repetition, whatever else they are. Share: of the rows "
        "that have a test, those that are equivalent. A mechanism counts if it is confirmed on repetitions or data sets on which it was "
        "not found."
    )
    return table(head, rows, about)


def _shown(papers: Papers) -> list[str]:
    """The counts that the table has columns for: failures only where there are any."""
    return [name for name in _COUNTS if name != "failed" or papers.totals[name]]


def _unbroken(name: str) -> str:
    return name.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _counted(row: Mapping[str, Any], names: Iterable[str]) -> list[Fragment]:
    return [*(number_cell(row[name] or None, 0) for name in names), _percent(share(row))]


def _percent(part: float | None) -> Fragment:
    return number_cell(None) if part is None else exact_cell(f"{100 * part:.0f} %", value=part)


def cells(papers: Papers) -> Fragment:
    """Per paper and data set: the plan, what was run, and hours."""
    if papers.cells.empty:
        return empty("No cell is planned.")
    names = ("planned", "done", "missing", "absent", "hours", "expected_hours", "untimed")
    titles = ("cells planned", "done", "to run", "without data", "hours run", "hours to run", "of unknown time")
    head = [head_cell("data set", "name"), *(head_cell(text, "number") for text in titles)]
    rows: list[list[Fragment]] = []
    parts: Any = papers.cells.groupby("paper", sort=False)
    for paper, part in parts:
        rows.append([group_title(str(paper), len(head))])
        rows += [[row_head(row["dataset"]), *_amounts(row, names)] for row in as_rows(part)]
    rows.append([row_head("all papers"), *_amounts({name: papers.cells[name].sum() for name in names}, names)])
    about = (
        "Cells that several tables share count once per paper. Hours of one worker: those of the records, and as many as the missing cells "
        "will take if they are like the records of their preset and method; cells without such a record are of unknown time."
    )
    return table(head, rows, about)


def _amounts(row: Mapping[str, Any], names: Iterable[str]) -> list[Fragment]:
    return [number_cell(row[name] or None, 1 if "hours" in name else 0) for name in names]


def offsets(papers: Papers) -> Fragment:
    """By table and metric: whether it is off as a whole."""
    return offset_table(papers.offsets)


# --- rows ------------------------------------------------------------------------------------------------------------------------


def missed(papers: Papers) -> Fragment:
    """Every value that differs, with the mechanisms that explain it."""
    rows = misses(papers)
    if rows.empty:
        return empty("No value differs.")
    head = [head_cell("method", "name"), head_cell("where", "name"), head_cell("metric")]
    head += [head_cell(text, "number") for text in ("published", "ours", "n", "difference", "90 % interval", "p, Holm")]
    head.append(head_cell("mechanism"))
    explained = int((rows["mechanism"] != "").sum())
    about = f"{len(rows)} values differ, the largest difference first; {explained} have a mechanism that holds on what it was not found on."
    notes = Notes()
    return join([table(head, [_miss(row, notes) for row in as_rows(rows)], about), notes.listed()])


def _miss(row: Mapping[str, Any], notes: Notes) -> list[Fragment]:
    digits = unit_digits(row["unit"])
    mechanism = element("td", row["mechanism"] or "none confirmed", class_="long" if row["mechanism"] else "quiet long")
    return [
        *_place(row),
        *_means(row, notes),
        number_cell(row["difference"], digits, plus=True),
        interval_cell(row, digits),
        p_cell(row["p_holm"]),
        mechanism,
    ]


def _place(row: Mapping[str, Any]) -> list[Fragment]:
    where = f"{row['paper']}, table {row['table']}: {row['dataset']}, {row['setting']}"
    variant = element("span", f" {row['variant']}", class_="quiet") if row["variant"] else None
    return [row_head(row["method"]), element("td", where, variant, class_="name"), element("td", row["metric"])]


def _means(row: Mapping[str, Any], notes: Notes) -> list[Fragment]:
    ours = mean_std_cell(row["our_mean"], row["our_std"], scale=1.0, digits=unit_digits(row["unit"]))
    return [printed_cell(row, notes), ours, count_cell(row, notes)]


def compared(papers: Papers) -> Fragment:
    """All compared values, folded by paper, data set and setting."""
    rows = papers.rows[papers.rows["verdict"].isin(JUDGED)]
    if rows.empty:
        return empty("No row has been compared: no cell has a result.")
    parts: Any = rows.groupby(["paper", "dataset", "setting"], sort=False)
    return join(_folded(f"{paper}, {dataset} in {setting}", part) for (paper, dataset, setting), part in parts)


def _folded(title: str, part: pd.DataFrame) -> Fragment:
    counts = part["verdict"].value_counts()
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in JUDGED if verdict in counts)
    head = [head_cell("method", "name"), head_cell("where", "name"), head_cell("metric"), head_cell("verdict")]
    head += [head_cell(text, "number") for text in ("published", "ours", "n", "difference", "smallest margin")]
    notes = Notes()
    shown = table(head, [_compared(row, notes) for row in as_rows(part)])
    return element("details", element("summary", element("strong", title), f": {said}"), shown, notes.listed())


def _compared(row: Mapping[str, Any], notes: Notes) -> list[Fragment]:
    digits = unit_digits(row["unit"])
    return [
        *_place(row),
        verdict_cell(row, notes),
        *_means(row, notes),
        number_cell(row["difference"], digits, plus=True),
        number_cell(row["smallest_margin"], digits),
    ]


# --- why -------------------------------------------------------------------------------------------------------------------------


def mechanisms(papers: Papers) -> Fragment:
    """Every named mechanism with the rows on which it was checked."""
    rows: list[list[Fragment]] = []
    numbers = ("repetitions", "held out", "gap", "left", "effect, held out", "95 % interval")
    head = [head_cell("row", "name"), head_cell("state"), *(head_cell(text, "number") for text in numbers), head_cell("why")]
    for ledger in papers.ledgers:
        checks = papers.checks[ledger.reproduction.paper.name]
        parts: Any = checks.groupby(["mechanism", "change", "reason"], sort=False)
        for (name, change, reason), part in parts:
            rows.append([group_title(f"{name} ({change}): {reason}", len(head))])
            rows += [_check(row, ledger.rows.loc[row["row"]].to_dict()) for row in as_rows(part)]
    if not rows:
        return empty("No named mechanism is about a value that was run.")
    about = (
        "Gap: published − ours over the repetitions that have a record with the change and one without; left: what the change leaves of "
        "it. A mechanism closes the gap where at most half is left. It is confirmed where it closes on three repetitions or more that "
        "were held out."
    )
    return table(head, rows, about)


def _check(check: Mapping[str, Any], row: Mapping[str, Any]) -> list[Fragment]:
    digits = unit_digits(row["unit"])
    badge = element("td", element("span", check["state"], class_=f"badge {_STATES[check['state']]}"))
    name = row_head(row["method"], f"{row['paper']}, {row['dataset']}, {row['setting']}, {row['metric']}")
    counts = [number_cell(check["n"] or None, 0), number_cell(check["held_out"] or None, 0)]
    sizes = [number_cell(check[column], digits, plus=True) for column in ("gap", "left", "effect")]
    return [name, badge, *counts, *sizes, interval_cell(check, digits), element("td", check["why"], class_="quiet long")]


def disagreements(papers: Papers) -> Fragment:
    """A table per value that two papers print differently: what is printed, and ours with either value of the crossed setting."""
    if not papers.crossings:
        return empty("No value that two papers print differently is part of this selection.")
    return join(_crossing(one) for one in papers.crossings)


def _crossing(one: Crossing) -> Fragment:
    asked = one.question
    values = asked["values"].split("|")
    head = [head_cell("protocol", "name"), head_cell("printed", "number")]
    head += [head_cell(f"ours, {asked['switch'].partition('.')[2]} = {value}", "number") for value in values]
    head += [head_cell("n", "number"), head_cell("difference", "number"), head_cell("95 % interval", "number"), head_cell("what is known")]
    rows = []
    for effect in as_rows(one.effects):
        printed = one.printed[one.printed["preset"] == effect["preset"]]
        shown = printed["printed"].iloc[0] if len(printed) else "–"
        cell = exact_cell(shown, value=printed["mean"].iloc[0]) if len(printed) else number_cell(None)
        mine = one.ours[one.ours["preset"] == effect["preset"]].set_index("value")
        ours = [_own(mine.loc[value]) for value in values]
        known = printed["artefact"].iloc[0] if len(printed) else ""
        rows.append(
            [
                row_head(effect["paper"], effect["preset"]),
                cell,
                *ours,
                number_cell(effect["n"], 0),
                number_cell(effect["effect"], 1, plus=True),
                interval_cell(effect, 1),
                element("td", known, class_="quiet long"),
            ]
        )
    between = [number_cell(row["difference"], 1, plus=True) for row in as_rows(one.protocols)]
    difference = one.printed["mean"].iloc[-1] - one.printed["mean"].iloc[0] if len(one.printed) > 1 else None
    blank = [number_cell(None), number_cell(None), number_cell(None), element("td", "")]
    rows.append([row_head("difference of the protocols"), number_cell(difference, 1, plus=True), *between, *blank])
    title = f"{asked['method']} on {asked['dataset']} in {asked['setting']}, {asked['metric']}"
    said = answer(one)
    settings = f"; {asked['given']}" if asked["given"] else ""
    about = f" – in percent; mean ± standard deviation over order seeds{settings}. {said or 'Records are missing.'}"
    return table(head, rows, join([element("strong", title), about]))


def _own(numbers: pd.Series) -> Fragment:
    """Our mean with its deviation; a dash without records."""
    return mean_std_cell(numbers["mean"], numbers["std"], scale=1.0, digits=1) if numbers["n"] else number_cell(None)


def not_run(papers: Papers) -> Fragment:
    """By preset: how many values wait for cells."""
    rows = papers.rows[papers.rows["verdict"] == "not run"]
    if rows.empty:
        return empty("Every row that can be run here has been run.")
    shown = []
    parts: Any = rows.groupby(["paper", "preset"], sort=False)
    for (paper, preset), part in parts:
        methods = ", ".join(dict.fromkeys(part["method"]))
        shown.append([row_head(preset), element("td", paper), number_cell(len(part), 0), element("td", methods, class_="long")])
    return table([head_cell("preset", "name"), head_cell("paper"), head_cell("values", "number"), head_cell("methods")], shown)


def not_runnable(papers: Papers) -> Fragment:
    """By reason: what cannot be reached, the most frequent first."""
    rows = papers.rows
    return unreached(rows.assign(reason=rows["reason"].map(plain_reason)))


def provenance(papers: Papers) -> Facts:
    """Code that made the records behind the rows, with lines for the page footer."""
    results = [one for ledger in papers.ledgers for one in ledger.results]
    return provenance_of(papers.title, len(papers.rows), results)
