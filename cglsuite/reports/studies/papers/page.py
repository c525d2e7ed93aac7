"""The page of all ledgers. It formats the results of :mod:`cglsuite.reports.studies.papers.compute`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.kit.sentences import join_names
from cglsuite.reports.kit.tables import (
    Column,
    amount_cell,
    as_rows,
    empty,
    exact_cell,
    folded,
    framed,
    head_cell,
    interval,
    interval_cell,
    label,
    mean_std_cell,
    number,
    number_cell,
    number_text,
    row_head,
    table,
    titled,
    words,
)
from cglsuite.reports.kit.text import Notes, badge, key_box, notice, tile
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.studies.ledger import claims
from cglsuite.reports.studies.ledger import page as ledger
from cglsuite.reports.studies.ledger.compute import RULE, survivors
from cglsuite.reports.studies.papers.compute import DIFFERENT, SUMMARY, Crossing, Papers, misses, plain_reason, share

__all__ = [
    "cells",
    "compared",
    "disagreements",
    "equivalence",
    "headlines",
    "margins",
    "mechanisms",
    "missed",
    "not_run",
    "not_runnable",
    "offsets",
    "overview",
    "provenance",
    "shares",
    "tables",
]

_STATES = {"confirmed": "good", "refuted": "bad", "named": "note", "no records": "plain"}
_COUNTS = SUMMARY[2:]


def overview(papers: Papers) -> Fragment:
    """Summarise the outcome in a few sentences, and show the counts over all tables and the rule for verdicts."""
    tiles = [tile(papers.totals[name], name) for name in _COUNTS if papers.totals[name] or name in ("printed", "run")]
    parts: list[Content] = [element("p", element("strong", papers.title), class_="lead")]
    parts.append(key_box(element("li", text) for text in headlines(papers)))
    parts += [element("ul", *tiles, class_="tiles"), element("p", f"{RULE[0].upper()}{RULE[1:]}.")]
    stale = papers.rows[papers.rows["stale"] != ""]
    if len(stale):
        parts.append(notice(f"{len(stale):,} rows use records produced by different code or on another class of machine."))
    return join(parts)


def grid(papers: Papers) -> Gallery | None:
    """Plot the differences between our values and the printed ones as a heat map."""
    return ledger.grid(papers.rows)


def headlines(papers: Papers) -> list[str]:
    """Return the key results: claims, progress, disagreements between papers, tables that deviate overall, and rows with a single run."""
    n = papers.totals
    tested = sum(n[name] for name in ("equivalent", *DIFFERENT, "undecided"))
    lines = claims.headlines(papers.claims)
    if tested:
        said = f"{n['equivalent']} of {tested} tested values are equivalent to the printed ones ({100 * (share(n) or 0.0):.0f}%), "
        different = n[DIFFERENT[0]] + n[DIFFERENT[1]]
        said += f"{different} {'differs' if different == 1 else 'differ'} ({n[DIFFERENT[0]]} with a confirmed mechanism) and "
        said += f"{n['undecided']} are undecided"
        notes = [f"{survivors(papers.rows)} equivalent after Holm over their table", *(f"{n[v]} {v}" for v in stats.PRECISIONS if n[v])]
        lines.append(f"{said} [{'; '.join(notes)}].")
    said = f"{n['run']:,} of {n['printed']:,} printed values have been run; "
    lines.append(f"{said}{n['reachable']:,} can be computed with the data present here.")
    lines += [text for crossing in papers.crossings if (text := answer(crossing))]
    off = [row for row in as_rows(papers.offsets) if row["low"] == row["low"] and row["low"] * row["high"] > 0]
    if len(papers.offsets):
        named = [f"{row['paper']}'s table {row['table']} ({row['metric']} {number_text(row['mean'], 1, plus=True)} points)" for row in off]
        lines.append(f"{len(off) or 'None'} of {several(len(papers.offsets), 'table')} {'is' if len(off) < 2 else 'are'} off overall"
                     f"{f': {join_names(named)}' if named else ''}.")  # fmt: skip
    if n["n = 1"]:
        lines.append(f"{several(n['n = 1'], 'value')} {'is' if n['n = 1'] == 1 else 'are'} based on one repetition and without a verdict.")
    return lines


def answer(crossing: Crossing) -> str:
    """State what the crossed setting shows about a disagreement. The text is empty if there are no records."""
    effects, between = crossing.effects, crossing.protocols
    if len(crossing.printed) < 2 or effects["effect"].isna().any() or between["difference"].isna().any():
        return ""
    question = crossing.question
    printed = " and ".join(f"{row['paper']} {row['mean']:.1f}" for row in as_rows(crossing.printed))
    first, *_, last = question["values"].split("|")
    moved = " and ".join(f"{number_text(row['effect'], 1, plus=True)} points under {row['paper']}" for row in as_rows(effects))
    apart = between["difference"].abs().max()
    return (
        f"Changing only {question['switch']} from {first} to {last} moves {question['method']} on {question['dataset']} "
        f"in {question['setting']} by {moved}, where the papers print different values ({printed}). "
        f"With the same value, the protocols are at most {apart:.1f} points apart."
    )


# --- tables ----------------------------------------------------------------------------------------------------------------------


def tables(papers: Papers) -> Fragment:
    """Tabulate, per paper and table, how many printed values can be computed, were run and agree with ours."""
    if papers.summary.empty:
        return empty("There are no published values to reproduce here.")
    parts: Any = papers.summary.groupby("paper", sort=False)
    rows: list[Mapping[str, Any]] = []
    for paper, part in parts:
        rows += [{**row, "title": f"table {row['table']}"} for row in as_rows(part)]
        if len(part) > 1:
            rows.append({"paper": paper, "title": "all tables", **{name: int(part[name].sum()) for name in _COUNTS}})
    rows.append({"paper": "", "title": "all papers", **papers.totals})
    columns = [label("table", "title")]
    columns += [number(name.replace(" = ", _UNBROKEN), name, zero=False) for name in _COUNTS if name != "failed" or papers.totals[name]]
    columns.append(Column("share", lambda row: amount_cell(share(row), 0, 100.0, unit="%")))
    about = (
        "Printed: values in the table. Reachable: values that the data and methods here can give. Run: values that we computed. No "
        "verdict: one or two repetitions, or nothing printed to test against. n = 1: rows with a single repetition, which also count in "
        "other columns. Share: the equivalent rows among those with a test. A mechanism counts if it is confirmed on repetitions or data "
        "sets other than those on which it was found."
    )
    return framed(rows, columns, about, by="paper")


_UNBROKEN = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"


def cells(papers: Papers) -> Fragment:
    """Tabulate the numbers of planned and finished cells and the hours per paper and data set."""
    if papers.cells.empty:
        return empty("No cell is planned.")
    rows = [*as_rows(papers.cells), {"paper": "", "dataset": "all papers", **{name: papers.cells[name].sum() for name in _HOURS}}]
    numbers = [number(head, of, 1 if "hours" in of else 0, zero=False) for of, head in _HOURS.items()]
    about = (
        "Cells shared by several tables count once per paper. Hours are for one worker. For missing cells, they are estimated from records "
        "of the same preset and method; the time of cells without such a record is unknown."
    )
    return framed(rows, [label("data set", "dataset"), *numbers], about, by="paper")


_HOURS = {"planned": "cells planned", "done": "done", "missing": "to run", "absent": "without data", "hours": "hours run"}
_HOURS |= {"expected_hours": "hours to run", "untimed": "without estimate"}


def offsets(papers: Papers) -> Fragment:
    """Tabulate, by metric, whether a table deviates overall."""
    return ledger.offset_table(papers.offsets)


def shares(papers: Papers) -> Fragment:
    """Tabulate the share of rows within the margin, by table and metric."""
    return ledger.share_table(papers.shares)


def margins(papers: Papers) -> Fragment:
    """Tabulate, by table and metric, the margins, the gaps between methods, and the share of equivalent rows at several margins."""
    return ledger.margin_table(papers.margins)


def equivalence(papers: Papers) -> Gallery | Fragment:
    """Plot the share of equivalent rows against the margin."""
    return ledger.equivalence_curves(papers.margins)


# --- rows ------------------------------------------------------------------------------------------------------------------------


def missed(papers: Papers) -> Fragment:
    """List all values that differ, with the mechanisms that explain the differences."""
    rows = misses(papers)
    explained = int((rows["mechanism"] != "").sum())
    about = f"{len(rows):,} values differ, the largest difference first; {explained} have a mechanism that holds on held-out repetitions."
    notes = Notes()
    columns = [
        *(*_PLACE, ledger.printed(notes), ledger.OURS, ledger.count("n", notes), ledger.DIFFERENCE),
        *(interval("90% interval", ledger.unit, plus=True), ledger.P_HOLM, Column("mechanism", _mechanism, None)),
    ]
    return join([framed(rows, columns, about, none="No value differs."), notes.listed()])


def _mechanism(row: Mapping[str, Any]) -> Fragment:
    return element("td", row["mechanism"] or "none confirmed", class_="long" if row["mechanism"] else "quiet long")


def _place_of(row: Mapping[str, Any]) -> Fragment:
    variant = element("span", f" {row['variant']}", class_="quiet") if row["variant"] else None
    return join([f"{row['paper']}, table {row['table']}: {row['dataset']}, {row['setting']}", variant])


_PLACE = [label("method"), words("where", _place_of, "name", "name"), words("metric")]


def compared(papers: Papers) -> Fragment:
    """List all compared values, collapsed by paper, data set and setting."""
    return ledger.by_dataset(papers.rows, _folded)


def _folded(title: str, part: pd.DataFrame) -> Fragment:
    notes = Notes()
    columns = [
        *(*_PLACE, ledger.verdict(notes), ledger.printed(notes), ledger.OURS, ledger.count("n", notes), ledger.DIFFERENCE),
        number("smallest margin", "smallest_margin", ledger.digits),
    ]
    return folded(titled(title, f": {ledger.counted(part)}"), framed(part, columns), notes.listed())


# --- why -------------------------------------------------------------------------------------------------------------------------


def mechanisms(papers: Papers) -> Fragment:
    """List every named mechanism with the rows on which it was checked."""
    rows = [
        {**paper_ledger.rows.loc[check["row"]].to_dict(), **check}
        for paper_ledger in papers.ledgers
        for check in as_rows(papers.checks[paper_ledger.reproduction.paper.name])
    ]
    columns = [
        label("row", "method", lambda row: f"{row['paper']}, {row['dataset']}, {row['setting']}, {row['metric']}"),
        words("state", lambda row: badge(row["state"], _STATES[row["state"]])),
        *(number("repetitions", "n", zero=False), number("held out", "held_out", zero=False)),
        *(number(head, of, ledger.digits, plus=True) for head, of in (("gap", "gap"), ("left", "left"), ("effect, held out", "effect"))),
        *(interval("95% interval", ledger.unit, plus=True), words("why", class_="quiet long")),
    ]
    about = (
        "Gap: published − ours over the repetitions with records both with and without the change. Left: the gap that remains with the "
        "change. A mechanism closes the gap if at most half of it remains. It is confirmed if it closes the gap on at least three held-out "
        "repetitions."
    )
    none = "No named mechanism applies to a value that was run."
    return framed(rows, columns, about, none=none, by=lambda row: f"{row['mechanism']} ({row['change']}): {row['reason']}")


def disagreements(papers: Papers) -> Fragment:
    """Tabulate each disagreement: the printed values, and our values under both values of the crossed setting."""
    if not papers.crossings:
        return empty("This selection contains no value that two papers print differently.")
    return join(_crossing(crossing) for crossing in papers.crossings)


def _crossing(crossing: Crossing) -> Fragment:
    question = crossing.question
    values = question["values"].split("|")
    head = [head_cell("protocol", "name"), head_cell("printed", "number")]
    head += [head_cell(f"ours, {question['switch'].partition('.')[2]} = {value}", "number") for value in values]
    head += [head_cell("n", "number"), head_cell("difference", "number"), head_cell("95% interval", "number"), head_cell("what is known")]
    rows = []
    printed = {row["preset"]: row for row in reversed(as_rows(crossing.printed))}
    ours = {(row["preset"], row["value"]): row for row in as_rows(crossing.ours)}
    for row in as_rows(crossing.effects):
        theirs = printed.get(row["preset"])
        cells = [exact_cell(theirs["printed"], value=theirs["mean"]) if theirs else number_cell(None)]
        cells += [_our_mean(ours[row["preset"], value]) for value in values]
        cells += [number_cell(row["n"], 0), number_cell(row["effect"], 1, plus=True), interval_cell(row["low"], row["high"], 1, plus=True)]
        known = element("td", theirs["artefact"] if theirs else "", class_="quiet long")
        rows.append([row_head(row["paper"], row["preset"]), *cells, known])
    between = [number_cell(row["difference"], 1, plus=True) for row in as_rows(crossing.protocols)]
    difference = crossing.printed["mean"].iloc[-1] - crossing.printed["mean"].iloc[0] if len(crossing.printed) > 1 else None
    blank = [number_cell(None), number_cell(None), number_cell(None), element("td", "")]
    rows.append([row_head("difference of the protocols"), number_cell(difference, 1, plus=True), *between, *blank])
    title = f"{question['method']} on {question['dataset']} in {question['setting']}, {question['metric']}"
    said = answer(crossing)
    settings = f"; {question['given']}" if question["given"] else ""
    about = f" – in percent; mean ± standard deviation over order seeds{settings}. {said or 'Records are missing.'}"
    return table(head, rows, titled(title, about))


def _our_mean(numbers: Mapping[str, Any]) -> Fragment:
    """Our mean with its deviation; a dash without records."""
    return mean_std_cell(numbers["mean"], numbers["std"], scale=1.0, digits=1) if numbers["n"] else number_cell(None)


def not_run(papers: Papers) -> Fragment:
    """Count, by preset, the printed values with cells that have not run yet."""
    rows = papers.rows[papers.rows["verdict"] == "not run"]
    parts: Any = rows.groupby(["paper", "preset"], sort=False)["method"]
    shown = parts.agg(values="size", methods=lambda some: ", ".join(dict.fromkeys(some))).reset_index()
    columns = [label("preset"), words("paper"), number("values"), words("methods", class_="long")]
    return framed(shown, columns, none="Every row that can be run here has been run.")


def not_runnable(papers: Papers) -> Fragment:
    """List the values that cannot be reproduced by reason, most frequent first."""
    rows = papers.rows
    return ledger.unreached(rows.assign(reason=rows["reason"].map(plain_reason)))


def provenance(papers: Papers) -> Facts:
    """Describe the code versions that produced the records, with lines for the page footer."""
    results = [results for paper_ledger in papers.ledgers for results in paper_ledger.results]
    return ledger.provenance_of(papers.title, len(papers.rows), results)
