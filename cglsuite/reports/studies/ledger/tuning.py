"""From how many settings the hyper-parameters behind the ledger's rows were chosen, and what more trials would have bought."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cglsuite.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, head_cell, number_cell, row_head, table
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.tuning import best_of_n

if TYPE_CHECKING:
    from cglsuite.cells.plan import PlannedCell
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = ["Tuning", "tuning"]


@dataclass(frozen=True)
class Tuning:
    """Searches in the store that chose the values with which a ledger's cells are run, and what presets say of earlier ones.

    Args:
        searches: their outcomes. declared: by preset and method, the number of settings from which the preset's values were chosen.
    """

    searches: tuple[Mapping[str, Any], ...]
    declared: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, outcomes: Sequence[Mapping[str, Any]], cells: Iterable[PlannedCell]) -> Tuning:
        """A search counts if the values that it chose are those of a planned cell of its scenario and method."""
        configurations: dict[tuple[str, str], Mapping[str, Any]] = {}
        declared: dict[tuple[str, str], int] = {}
        for planned in cells:
            if planned.cell is not None:
                place = planned.request.scenario, planned.request.method
                configurations.setdefault(place, planned.cell.configuration)
                declared.setdefault(place, planned.cell.scenario.method_trials.get(planned.request.method, 1))
        used = [o for o in outcomes if o["overrides"] and _holds(o["overrides"], configurations.get((o["scenario"], o["method"]), {}))]
        return cls(tuple(used), declared)

    def trials(self, preset: str, method: str) -> int:
        """The number of settings from which a method's values were chosen; 1 if nobody chose."""
        found = [len(o["candidates"]) for o in self.searches if (o["scenario"], o["method"]) == (preset, method)]
        return max(found, default=self.declared.get((preset, method), 1))


def _holds(chosen: Mapping[str, Any], configuration: Mapping[str, Any]) -> bool:
    """Whether a cell has all the values that a search chose; short names stand for those of any section."""
    full = {name: next((key for key in configuration if name in (key, key.partition(".")[2])), None) for name in chosen}
    return all(key is not None and configuration[key] == chosen[name] for name, key in full.items())


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
