"""What stands beside the compared values on the ledger's page: tuning, running times as ratios, and statistics of the data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.tables import Column, amount, amount_cell, empty, framed, interval, label, number, titled, words
from cglsuite.reports.kit.text import verdict_badge
from cglsuite.reports.results.runs import best_pictures
from cglsuite.reports.results.variants import best_of_n as expected_bests
from cglsuite.reports.studies.anatomy.page import statistics_table
from cglsuite.reports.studies.ledger.ratios import KINDS, RATIO_RULE, ratio_counts, statistic_counts

if TYPE_CHECKING:
    from cglsuite.reports.kit.pictures import Gallery
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = ["best_of_n", "running_times", "statistics", "trials"]

_KINDS = dict(zip(KINDS, ("seconds / Bare's", "framework"), strict=True))
_RATIO, _SHARE = (2, 1.0), (2, 100.0)
_UNITS = dict(zip(KINDS, (_RATIO, _SHARE), strict=True))
_CLOCKS = (
    "Clocks of different machines are compared as ratios only. Ours are of records with the same scenario, backbone, seeds and machine, "
    "over the whole stream without saving checkpoints. A ratio also depends on when training stops, on the hardware, and on what else ran "
    "on the machine."
)


def running_times(ledger: Ledger) -> Fragment:
    """Printed running times as ratios beside ours, and the ratios of all our methods."""
    parts = [_printed(ledger.ratios), _ours(ledger.times)]
    shown = [part for part in parts if part is not None]
    return join(shown) if shown else empty("No running time is printed for these rows, and no record holds one.")


def _printed(ratios: pd.DataFrame) -> Fragment | None:
    if ratios.empty:
        return None
    columns = [
        label("method", "method", lambda row: row["variant"].partition("; ")[0].removeprefix("size=")),
        *(words("verdict", lambda row: verdict_badge(row["verdict"])), words("ratio", lambda row: _KINDS[row["kind"]], "nowrap")),
        number("printed seconds", "seconds", lambda row: 0 if row["seconds"] >= 1000 else 1),
        *(_ratio("published"), _ratio("ours")),
        interval("95 % interval", lambda row: _UNITS[row["kind"]]),
        number("n", lambda row: None if pd.isna(row["our_n"]) else int(row["our_n"])),
        *(amount("ours / published", "factor", _RATIO), interval("90 % interval", _RATIO, "factor_low", "factor_high")),
        *(number("p, Holm", "p_holm", 3), words("why", "reason", "quiet long")),
    ]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in ratio_counts(ratios).items())
    about = f" – {counts}. {RATIO_RULE[0].upper()}{RATIO_RULE[1:]}. {_CLOCKS}"
    return framed(
        ratios, columns, titled("Printed running times", about), by=lambda row: f"{row['paper']}, {row['dataset']} in {row['setting']}"
    )


def _ratio(head: str) -> Column:
    """Shares are in percent."""
    return Column(head, lambda row: amount_cell(row[head], *_UNITS[row["kind"]], unit=" %" if row["kind"] == KINDS[1] else ""))


def _ours(times: pd.DataFrame) -> Fragment | None:
    """A row per method: seconds over Bare's, and the framework's share."""
    known = times[times["n"] > 0]
    if known.empty:
        return None
    columns = [
        *(label("method"), number("n"), amount("seconds / Bare's", "ratio", _RATIO), interval("95 % interval", _RATIO)),
        number("framework, %", lambda row: 100 * row["share"], 2),
        interval("95 % interval, %", _SHARE, "share_low", "share_high"),
        *([words("why", "reason", "quiet long")] if (known["reason"] != "").any() else []),
    ]
    said = (
        " – geometric means over repetitions; intervals from three repetitions on. Framework: the share of the time in which neither the "
        "method nor training nor evaluation runs."
    )
    about = titled("Our running times", said, f" {_CLOCKS}")
    return framed(known, columns, about, by=lambda row: ", ".join(filter(None, (row["preset"], row["backbone"], row["overrides"]))))


# --- tuning ----------------------------------------------------------------------------------------------------------------------


def trials(ledger: Ledger) -> Fragment:
    """Per method and preset, from how many settings ours were chosen, beside what the paper says of its own."""
    frame = ledger.rows[ledger.rows["our_trials"].notna()]
    if frame.empty:
        return empty("No row has been compared: there is nothing to tune.")
    distinct = frame[["preset", "method_here", "our_trials"]].drop_duplicates()
    presets = list(dict.fromkeys(distinct["preset"]))
    counts = distinct.groupby(["method_here", "preset"], sort=False)["our_trials"].last().unstack(sort=False).reset_index()
    columns = [label("method", "method_here"), *(number(preset) for preset in presets)]
    paper = ledger.reproduction.paper
    theirs = f"{paper.name}: {paper.trials}" if paper.trials else f"{paper.name} does not say how many it tried"
    unequal = " Methods with unequal numbers of trials were not tuned equally." if distinct["our_trials"].nunique() > 1 else ""
    about = f"Number of settings from which our hyper-parameters were chosen on validation data; 1: nobody chose. {theirs}.{unequal}"
    return framed(counts, columns, about)


def best_of_n(ledger: Ledger) -> Gallery | Fragment:
    """One figure per scenario of a search in the store that chose a row's values: the expected best validation score of n trials."""
    frame = expected_bests(ledger.searches)
    if frame.empty:
        return empty("No search in this store chose these values, so there is no curve of the best of n trials.")
    return best_pictures(frame)


# --- statistics ------------------------------------------------------------------------------------------------------------------


def statistics(ledger: Ledger) -> Fragment:
    """What the paper prints of these data sets beside our counts, settings with the same numbers together; why some are not counted."""
    frame = ledger.statistics
    if frame.empty:
        return empty("No paper prints statistics of these data sets.")
    counts = ", ".join(f"{n} {name}" for name, n in statistic_counts(frame).items())
    parts: list[Content] = [element("p", f"Of {len(frame)} printed numbers: {counts}.")]
    parts.append(statistics_table(_together(frame)))
    reasons: Any = frame[frame["reason"] != ""].groupby("reason", sort=False)
    lines = [element("li", f"{', '.join(dict.fromkeys(part['dataset']))}: {reason}") for reason, part in reasons]
    if lines:
        parts += [element("p", "Not counted:", class_="quiet"), element("ul", *lines, class_="quiet")]
    return join(parts)


def _together(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By title; the settings of a data set in which all numbers are the same under one."""
    groups: dict[tuple[str, str, str], tuple[list[str], pd.DataFrame]] = {}
    parts: Any = frame.groupby(["paper", "dataset", "setting"], sort=False)
    for (paper, dataset, setting), part in parts:
        same = part.drop(columns=["setting", "preset"]).to_csv(index=False)
        groups.setdefault((paper, dataset, same), ([], part))[0].append(setting)
    return {f"{dataset} in {' and '.join(settings)}": part for (_, dataset, _), (settings, part) in groups.items()}
