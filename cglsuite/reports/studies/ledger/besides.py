"""What stands beside the compared values on the ledger's page: tuning, running times as ratios, and statistics of the data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, exact_cell, group_title, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import verdict_badge
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.results.runs import best_pictures
from cglsuite.reports.results.tuning import best_of_n as expected_bests
from cglsuite.reports.studies.anatomy.page import statistics_table
from cglsuite.reports.studies.ledger.ratios import KINDS, RATIO_RULE, ratio_counts
from cglsuite.reports.studies.ledger.statistics import statistic_counts

if TYPE_CHECKING:
    from cglsuite.reports.kit.pictures import Gallery
    from cglsuite.reports.studies.ledger.compute import Ledger

__all__ = ["best_of_n", "running_times", "statistics", "trials"]

_KINDS = dict(zip(KINDS, ("seconds / Bare's", "framework"), strict=True))
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
    head = [head_cell("method", "name"), head_cell("verdict"), head_cell("ratio"), head_cell("printed seconds", "number")]
    head += [
        head_cell(text, "number") for text in ("published", "ours", "95 % interval", "n", "ours / published", "90 % interval", "p, Holm")
    ]
    head.append(head_cell("why"))
    rows: list[list[Fragment]] = []
    parts: Any = ratios.groupby(["paper", "dataset", "setting"], sort=False)
    for (paper, dataset, setting), part in parts:
        rows.append([group_title(f"{paper}, {dataset} in {setting}", len(head))])
        rows += [_ratio(row) for row in as_rows(part)]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in ratio_counts(ratios).items())
    about = f" – {counts}. {RATIO_RULE[0].upper()}{RATIO_RULE[1:]}. {_CLOCKS}"
    return table(head, rows, join([element("strong", "Printed running times"), about]))


def _ratio(row: Mapping[str, Any]) -> list[Fragment]:
    size = row["variant"].partition("; ")[0].removeprefix("size=")
    scale, digits = _scale(row["kind"])
    cells = [row_head(row["method"], size), element("td", verdict_badge(row["verdict"]))]
    cells.append(element("td", _KINDS[row["kind"]], class_="nowrap"))
    cells.append(number_cell(row["seconds"], 0 if row["seconds"] >= 1000 else 1))
    cells += [_number(row["published"], scale, digits), _number(row["ours"], scale, digits)]
    cells += [_interval(row["low"], row["high"], scale, digits), number_cell(None if pd.isna(row["our_n"]) else int(row["our_n"]), 0)]
    cells += [_number(row["factor"], 1.0, 2), _interval(row["factor_low"], row["factor_high"], 1.0, 2)]
    return [*cells, number_cell(row["p_holm"], 3), element("td", row["reason"], class_="quiet long")]


def _scale(kind: str) -> tuple[float, int]:
    """Shares are in percent."""
    return (100.0, 2) if kind == KINDS[1] else (1.0, 2)


def _number(value: float, scale: float, digits: int) -> Fragment:
    if value != value:
        return number_cell(None)
    unit = " %" if scale != 1.0 else ""
    return exact_cell(f"{number_text(scale * value, digits)}{unit}", value=value)


def _interval(low: float, high: float, scale: float, digits: int) -> Fragment:
    if low != low:
        return number_cell(None)
    return exact_cell(f"{number_text(scale * low, digits)} to {number_text(scale * high, digits)}", low=low, high=high)


def _ours(times: pd.DataFrame) -> Fragment | None:
    """A row per method: seconds over Bare's, and the framework's share."""
    known = times[times["n"] > 0]
    if known.empty:
        return None
    numbers = ("n", "seconds / Bare's", "95 % interval", "framework, %", "95 % interval, %")
    why = [head_cell("why")] if (known["reason"] != "").any() else []
    head = [head_cell("method", "name"), *(head_cell(text, "number") for text in numbers), *why]
    rows: list[list[Fragment]] = []
    parts: Any = known.groupby(["preset", "overrides", "backbone"], sort=False)
    for (preset, overrides, backbone), part in parts:
        rows.append([group_title(", ".join(filter(None, (preset, backbone, overrides))), len(head))])
        for row in as_rows(part):
            cells = [row_head(row["method"]), number_cell(row["n"], 0), _number(row["ratio"], 1.0, 2)]
            cells += [_interval(row["low"], row["high"], 1.0, 2), number_cell(100 * row["share"], 2)]
            cells.append(_interval(row["share_low"], row["share_high"], 100.0, 2))
            rows.append([*cells, *([element("td", row["reason"], class_="quiet long")] if why else [])])
    about = (
        " – geometric means over repetitions; intervals from three repetitions on. Framework: the share of the time in which neither the "
        "method nor training nor evaluation runs."
    )
    return table(head, rows, join([element("strong", "Our running times"), about, f" {_CLOCKS}"]))


# --- tuning ----------------------------------------------------------------------------------------------------------------------


def trials(ledger: Ledger) -> Fragment:
    """Per method and preset, from how many settings ours were chosen, beside what the paper says of its own."""
    frame = ledger.rows[ledger.rows["our_trials"].notna()]
    if frame.empty:
        return empty("No row has been compared: there is nothing to tune.")
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
