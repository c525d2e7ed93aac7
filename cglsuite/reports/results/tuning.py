"""How methods were tuned: trials and scope of the campaign's searches, how certain a choice is, and what more trials bought.

Pure functions of results; :mod:`cglsuite.reports.results.runs` renders them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cglsuite.campaigns.search import parse_scope
from cglsuite.stats import expected_best

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record

__all__ = ["UNTUNED", "best_of_n", "lead", "note", "searches_of", "trials_of", "tuned_tasks", "tuning_columns"]

UNTUNED = "average_performance_untuned"
"""The column of the average performance without the tasks that the search saw."""


def searches_of(outcomes: Sequence[Mapping[str, Any]], cell: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The outcomes of searches that chose values for a record's cell."""
    return [
        outcome
        for outcome in outcomes
        if outcome["chosen"] is not None
        and (outcome["scenario"], outcome["method"]) == (cell["scenario"], cell["method"])
        and outcome["backbone"] in (None, cell["backbone"])
    ]


def trials_of(outcomes: Sequence[Mapping[str, Any]], cell: Mapping[str, Any]) -> int:
    """The number of settings tried for a cell: 1 if no search of the campaign tuned it."""
    return max((len(outcome["candidates"]) for outcome in searches_of(outcomes, cell)), default=1)


def tuned_tasks(outcomes: Sequence[Mapping[str, Any]], scenario: str) -> int | None:
    """The largest number of first tasks that a search saw in a scenario; None if none was restricted to the first tasks."""
    scopes = [parse_scope(outcome.get("scope", "all")).tasks for outcome in outcomes if outcome["scenario"] == scenario]
    return max((k for k in scopes if k is not None), default=None)


def tuning_columns(outcomes: Sequence[Mapping[str, Any]], records: Mapping[str, Record], keys: Sequence[str]) -> pd.DataFrame:
    """The columns ``trials`` and, where a search saw the first tasks alone, :data:`UNTUNED`: a row per key."""
    columns: dict[str, Any] = {"trials": pd.array([trials_of(outcomes, records[key].cell) for key in keys], dtype="Int64")}
    untuned = [_untuned(records[key], tuned_tasks(outcomes, records[key].cell["scenario"])) for key in keys]
    if any(math.isfinite(value) for value in untuned):
        columns[UNTUNED] = untuned
    return pd.DataFrame(columns, index=range(len(keys)))


def _untuned(record: Record, tasks: int | None) -> float:
    if tasks is None or not record.matrix:
        return math.nan
    later = record.performance()[-1, tasks:]
    later = later[np.isfinite(later)]
    return float(later.mean()) if later.size else math.nan


def note(searches: Sequence[Mapping[str, Any]], records: Mapping[str, Sequence[Record]]) -> str:
    """Trials and scope of the searches behind a board, as text; that there was none, if so. ``records``: by the label of their method."""
    if not records:
        return ""
    cells = {label: some[0].cell for label, some in records.items()}
    trials = {label: trials_of(searches, cell) for label, cell in cells.items()}
    found = {label: searches_of(searches, cell) for label, cell in cells.items()}
    if not any(found.values()):
        return "Trials: no search in this campaign; hyper-parameters are the preset's, the method's defaults or set by hand."
    if len(set(trials.values())) == 1:
        said = f"Trials: {next(iter(trials.values()))} for every method"
    else:
        said = "Trials: " + ", ".join(f"{label} {n}" for label, n in trials.items())
    outcomes = [outcome for some in found.values() for outcome in some]
    scopes = sorted({outcome.get("scope", "all") for outcome in outcomes})
    said += "; scored on validation items of " + " or ".join("all tasks" if s == "all" else f"the {_scope_words(s)}" for s in scopes)
    return f"{said}.{_elsewhere(outcomes, records, scopes)}"


def _scope_words(scope: str) -> str:
    return f"first {parse_scope(scope).tasks} tasks, then restarted from scratch"


def _elsewhere(outcomes: Sequence[Mapping[str, Any]], records: Mapping[str, Sequence[Record]], scopes: Sequence[str]) -> str:
    """That the grid has orders in which the tuned tasks are not the first ones."""
    if scopes == ["all"]:
        return ""
    seen = {seeds["order"] for outcome in outcomes for seeds in outcome.get("seeds", ())}
    others = sorted({record.cell["seeds"]["order"] for some in records.values() for record in some} - seen)
    if not others:
        return ""
    listed = ", ".join(map(str, others[:5])) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return f" The search saw no order seed {listed}: in these orders its tasks may come at any place, if the order is random."


def lead(outcome: Mapping[str, Any]) -> tuple[float, float]:
    """The lead of the choice over the next best candidate: mean and standard error of the differences, paired by seed.

    NaN where there is no other finished candidate; the standard error also with one seed.
    """
    rows = [row for row in outcome["candidates"] if row["mean"] is not None]
    if outcome["chosen"] is None or len(rows) < 2:
        return math.nan, math.nan
    chosen = outcome["candidates"][outcome["chosen"]]
    second = max((row for row in rows if row is not chosen), key=lambda row: row["mean"])
    differences = np.subtract(chosen["scores"], second["scores"])
    error = float(differences.std(ddof=1) / math.sqrt(differences.size)) if differences.size > 1 else math.nan
    return float(differences.mean()), error


def best_of_n(searches: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The expected best validation score of n of a search's N trials: columns scenario, label, n, mean, std, trials, excluded.

    Candidates that did not finish on every seed are left out and counted in ``excluded``. ``std`` is over the subsets of n trials.
    """
    frames = []
    for outcome in searches:
        scores = [row["mean"] for row in outcome["candidates"] if row["mean"] is not None]
        if not scores:
            continue
        label = outcome["method"] + (f" × {outcome['backbone']}" if outcome["backbone"] else "")
        facts = {"scenario": outcome["scenario"], "label": label, "trials": len(outcome["candidates"])}
        frames.append(expected_best(scores).assign(**facts, excluded=len(outcome["candidates"]) - len(scores)))
    columns = ["scenario", "label", "n", "mean", "std", "trials", "excluded"]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
