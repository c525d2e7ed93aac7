"""Published numbers as data frames (sources and conventions: README.md in this folder), and their reproduction here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_TWINS = {"cglb": "global-1", "agale": "global-agale-1"}
"""For each family of class-IL protocols with per-task queries, the family with the same training and global queries."""

__all__ = [
    "dataset_statistics",
    "disagreements",
    "known_artefacts",
    "leak_of",
    "leaks",
    "mechanisms",
    "names",
    "protocols",
    "published_results",
    "queries_note",
    "statistic_causes",
    "welch_begin_fig7",
]


def published_results() -> pd.DataFrame:
    """One row per cell of a published result table.

    Returns:
        Text columns paper, table, problem, dataset, setting, variant, backbone, method, metric, unit, note; ``mean`` and ``std`` as
        float64 in that unit (NaN where nothing is printed); ``printed`` the cell's digits as they stand in the paper.
    """
    return _published_results().copy()


@cache
def _published_results() -> pd.DataFrame:
    import pandas as pd

    frame = _read("published_results.csv")
    printed = frame["mean"] + frame["std"].where(frame["std"] == "", " ± " + frame["std"])
    numbers = {name: pd.to_numeric(frame[name], errors="coerce").astype("float64") for name in ("mean", "std")}
    return frame.assign(**numbers, printed=printed)


def dataset_statistics() -> pd.DataFrame:
    """Sizes, classes and tasks of data sets as the papers print them; all columns are text."""
    return _read("dataset_statistics.csv")


def statistic_causes() -> pd.DataFrame:
    """Why printed statistics of data sets differ from a count of the data, each with a rule that is checked; all columns are text.

    Returns:
        Columns paper, dataset, setting (empty for all), quantity, rule, argument, cause. The rules are those of
        :data:`cglsuite.reports.studies.anatomy.published.RULES`; a cause without a rule is open.
    """
    return _read("statistic_causes.csv")


def protocols() -> pd.DataFrame:
    """Facts of experimental protocols: paper, dataset, setting, key, value; all text."""
    return _read("protocols.csv")


def welch_begin_fig7() -> pd.DataFrame:
    """The Welch tests printed in BeGin's Figure 7: ``t`` and ``p`` as float64."""
    return _read("welch_begin_fig7.csv").astype({"t": "float64", "p": "float64"})


def known_artefacts() -> pd.DataFrame:
    """Published rows known to have been produced differently from what the protocol says; all columns are text.

    Returns:
        Columns paper, problem, setting, dataset, method, metric (which rows of ``published_results`` it concerns: empty for all, several
        separated by ``|``), kind, reason. The kinds: ``artefact``; ``not-comparable`` for another problem altogether; ``unavailable`` where
        nobody can have the data; ``remark`` for what a reader should know and no verdict depends on.
    """
    return _read("known_artefacts.csv")


def mechanisms() -> pd.DataFrame:
    """Named reasons why values here differ from printed ones, each a change of settings that records confirm or refute; all text.

    Returns:
        Columns mechanism (its name), paper, problem, setting, dataset, method, metric (which rows of ``published_results`` it is about, as
        in :func:`known_artefacts`), change (the settings under which the published value is expected, ``key=value`` separated by ``;``),
        named (on which order seeds, repetitions (their seeds of order, split and initialisation, ``0/0/1``) or data sets it was found,
        separated by ``|``: it has to hold on others) and reason. See :mod:`cglsuite.reports.studies.papers.compute`.
    """
    return _read("mechanisms.csv")


def disagreements() -> pd.DataFrame:
    """Quantities for which two papers print different values, with the setting to cross with both protocols; all text.

    Returns:
        Columns problem, setting, dataset, method, metric (a printed label), presets, switch, values, given (other settings,
        ``key=value``), orders (seeds of order and initialisation): lists are separated by ``|``.
    """
    return _read("disagreements.csv")


def names() -> pd.DataFrame:
    """The names that papers use for data sets and methods that are named differently here: columns kind, printed, here; all text."""
    return _read("names.csv")


def leaks() -> pd.DataFrame:
    """How much the queries of class-IL presets reveal about their task, with order and split seed 0 (see ``cells.diagnostics.Leak``).

    Returns:
        Columns scenario, ``group`` (``task``: queries come task by task; ``all``), and float64 chance, alone, grouped, leak, low, high, p.
    """
    numbers = ("chance", "alone", "grouped", "leak", "low", "high", "p")
    return _read("leaks.csv").astype(dict.fromkeys(numbers, "float64"))


def leak_of(scenario: str) -> str:
    """The row of :func:`leaks` about a preset in words; empty if there is none. Imports no pandas."""
    row = _leaks().get(scenario)
    if row is None:
        return ""
    alone, grouped, leak, low, high = (100 * float(row[name]) for name in ("alone", "grouped", "leak", "low", "high"))
    return (
        f"{alone:.1f}% from a query's neighbourhood alone, {grouped:.1f}% with the mean of its query group: "
        f"{leak:+.1f} points [{low:+.1f}, {high:+.1f}]"
    )


def queries_note(preset: str, scenario: Mapping[str, Any]) -> str:
    """A caveat for scores where a query graph's size reveals the task, with the probe's accuracy and the twin preset; empty elsewhere.

    Args:
        preset: its name. scenario: its switches by name, as in a record.
    """
    named = {"query_grouping": "task", "query_edges": "own", **scenario}
    wanted = {"level": "NC", "edge_policy": "none", "query_grouping": "task", "query_edges": "own"}
    if any(named.get(name) != value for name, value in wanted.items()) or named.get("setting") not in ("class-il", "domain-il", "time-il"):
        return ""
    stem, _, protocol = preset.partition("+")[0].partition("@")
    family = protocol.partition("-")[0]
    twin = f"{stem}@{_TWINS[family]}" if family in _TWINS and named["setting"] == "class-il" else ""
    revealed = leak_of(f"{stem}@{protocol}")
    figure = f"A probe finds the task: {revealed}." if revealed else f"`cglsuite scenarios audit {stem}@{protocol}` measures how well."
    pooled = "scenario.query_grouping=pooled with scenario.query_edges=seen"
    return (
        "Queries come task by task, each group with a graph of its own, whose size tells the task: a method can score by that alone. "
        f"{figure} Compare with pooled queries: {f'{twin}, or {pooled}' if twin else pooled}."
    )


@cache
def _leaks() -> dict[str, dict[str, str]]:
    with resources.files(__name__).joinpath("leaks.csv").open(encoding="utf-8") as file:
        return {row["scenario"]: row for row in csv.DictReader(file)}


def _read(name: str) -> pd.DataFrame:
    import pandas as pd

    with resources.files(__name__).joinpath(name).open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)
