"""Trials behind a ledger's rows beside those of the paper, and what more of them would have bought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cglsuite.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, head_cell, number_cell, row_head, table
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.tuning import best_of_n

if TYPE_CHECKING:
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = ["tuning"]


def tuning(ledger: Ledger) -> Fragment:
    """Trials per preset and method beside those of the paper, and the expected best of n trials of each search in the store."""
    from cglsuite.reports.results.runs import best_pictures

    frame = ledger.rows[ledger.rows["our_trials"].notna()]
    if frame.empty:
        return empty("No row has been compared: there is nothing to tune.")
    parts: list[Content] = [_trials(ledger)]
    curves = best_of_n(ledger.searches)
    if len(curves):
        parts.append(best_pictures(curves))
    else:
        parts.append(element("p", "No search in this store chose these values, so there is no curve of the best of n trials."))
    return join(parts)


def _trials(ledger: Ledger) -> Fragment:
    frame = ledger.rows[ledger.rows["our_trials"].notna()]
    distinct = frame[["preset", "method_here", "our_trials"]].drop_duplicates()
    presets = list(dict.fromkeys(distinct["preset"]))
    counts = {(row["method_here"], row["preset"]): int(row["our_trials"]) for row in as_rows(distinct)}
    methods = list(dict.fromkeys(distinct["method_here"]))
    head = [head_cell("method", "name"), *(head_cell(preset, "number") for preset in presets)]
    rows = [[row_head(method), *(number_cell(counts.get((method, preset)), 0) for preset in presets)] for method in methods]
    paper = ledger.reproduction.paper
    theirs = f"{paper.name}: {paper.trials}" if paper.trials else f"{paper.name} does not say how many it tried"
    unequal = " Methods with unequal numbers of trials were not tuned equally." if len(set(counts.values())) > 1 else ""
    about = f"Number of settings from which our hyper-parameters were chosen on validation data; 1: nobody chose. {theirs}.{unequal}"
    return table(head, rows, about)
