"""Published results as data frames, and their reproduction with this suite. README.md in this folder lists sources and conventions."""

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
    """Return the published results, with one row per cell of a printed table.

    Returns:
        Text columns paper, table, problem, dataset, setting, variant, backbone, method, metric, unit, note. ``mean`` and ``std`` are
        float64 in that unit (NaN if nothing is printed). ``printed`` contains the cell's digits as they appear in the paper.
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
    """Return the sizes, classes and tasks of data sets as printed in the papers. All columns are text."""
    return _read("dataset_statistics.csv")


def statistic_causes() -> pd.DataFrame:
    """Return the reasons why printed statistics of data sets differ from counts of the data, with a rule to check each reason. All columns
    are text.

    Returns:
        Columns paper, dataset, setting (empty for all), quantity, rule, argument, cause. The rules are those of
        :data:`cglsuite.reports.studies.anatomy.published.RULES`; a cause without a rule is unverified.
    """
    return _read("statistic_causes.csv")


def protocols() -> pd.DataFrame:
    """Return facts about experimental protocols, with the columns paper, dataset, setting, key and value. All columns are text."""
    return _read("protocols.csv")


def welch_begin_fig7() -> pd.DataFrame:
    """Return the Welch tests printed in BeGin's Figure 7, with ``t`` and ``p`` as float64."""
    return _read("welch_begin_fig7.csv").astype({"t": "float64", "p": "float64"})


def known_artefacts() -> pd.DataFrame:
    """Return published rows that are known to deviate from the stated protocol. All columns are text.

    Returns:
        Columns paper, problem, setting, dataset, method, metric (the affected rows of ``published_results``: empty for all, several
            separated by ``|``), kind, reason. The kinds are ``artefact``; ``not-comparable`` for a different problem; ``unavailable`` if
            the data cannot be obtained; and ``remark`` for information that affects no verdict.
    """
    return _read("known_artefacts.csv")


def mechanisms() -> pd.DataFrame:
    """Return named reasons why our values differ from printed ones. Each is a change of settings that records confirm or refute. All
    columns are text.

    Returns:
        Columns mechanism (its name), paper, problem, setting, dataset, method, metric (the affected rows of ``published_results``, as in
        :func:`known_artefacts`), change (the settings that should reproduce the published value, ``key=value`` separated by ``;``), named
        (the order seeds, repetitions (seeds of order, split and initialisation, ``0/0/1``) or data sets on which the mechanism was
        identified, separated by ``|``; it must be confirmed on others) and reason. See :mod:`cglsuite.reports.studies.papers.compute`.
    """
    return _read("mechanisms.csv")


def disagreements() -> pd.DataFrame:
    """Return quantities for which two papers print different values, with the setting to cross with both protocols. All columns are text.

    Returns:
        Columns problem, setting, dataset, method, metric (as printed), presets, switch, values, given (other settings, as ``key=value``),
        orders (seeds of order and initialisation). Lists are separated by ``|``.
    """
    return _read("disagreements.csv")


def names() -> pd.DataFrame:
    """Return the papers' names for data sets and methods that have other names in this suite, with the columns kind, printed and here. All
    columns are text.
    """
    return _read("names.csv")


def leaks() -> pd.DataFrame:
    """Return how much the queries in class-IL presets reveal about their task, for order and split seed 0 (see ``cells.diagnostics.Leak``).

    Returns:
        Columns scenario, ``group`` (``task``: queries come task by task; ``all``), and float64 chance, alone, grouped, leak, low, high, p.
    """
    numbers = ("chance", "alone", "grouped", "leak", "low", "high", "p")
    return _read("leaks.csv").astype(dict.fromkeys(numbers, "float64"))


def leak_of(scenario: str) -> str:
    """Describe a preset's row in :func:`leaks`, or return an empty string if there is none. Does not import pandas."""
    row = _leaks().get(scenario)
    if row is None:
        return ""
    alone, grouped, leak, low, high = (100 * float(row[name]) for name in ("alone", "grouped", "leak", "low", "high"))
    return (
        f"{alone:.1f}% from a query's neighbourhood alone, {grouped:.1f}% with the mean of its query group: "
        f"{leak:+.1f} points [{low:+.1f}, {high:+.1f}]"
    )


def queries_note(preset: str, scenario: Mapping[str, Any]) -> str:
    """Return a caveat with the probe's accuracy and the twin preset if the size of a query graph reveals the task, or else an empty string.

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
    figure = f"Probe accuracy for the task: {revealed}." if revealed else f"`cglsuite scenarios audit {stem}@{protocol}` measures how well."
    pooled = "scenario.query_grouping=pooled with scenario.query_edges=seen"
    return (
        "Queries arrive task by task, and each group has its own graph, whose size reveals the task: a method can score from that alone. "
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
