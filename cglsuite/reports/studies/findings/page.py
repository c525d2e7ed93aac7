"""The page of findings. It formats what :mod:`cglsuite.reports.studies.findings.compute` computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, exact_cell, group_title, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import key_box, notice, tile
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.text import scenario_words
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.overview import NOTHING_DONE
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.studies.findings.message import headlines
from cglsuite.reports.studies.findings.worth import method_of

if TYPE_CHECKING:
    from cglsuite.reports.studies.findings.compute import Findings

__all__ = [
    "datasets",
    "differences",
    "forgetting",
    "means",
    "moved",
    "overview",
    "pairs",
    "provenance",
    "rankings",
    "worth",
]

_TITLES = {
    "differences": "What differs",
    "rankings": "What the protocol decides",
    "worth": "What memory and seconds buy",
    "datasets": "What cannot be claimed",
    "forgetting": "Drift or forgetting",
}


def overview(findings: Findings) -> Fragment:
    """The findings in sentences, and what they are from."""
    said = headlines(findings)
    facts = [findings.facts[one.preset] for one in findings.comparisons]
    tiles = [
        tile(len(findings.results.used), "records"),
        tile(len(findings.comparisons), "scenarios"),
        tile(len({one["dataset"] for one in facts}), "data sets"),
        tile(len({method_of(label) for one in findings.comparisons for label in one.methods}), "methods"),
    ]
    if not said:
        return join([element("ul", *tiles, class_="tiles"), empty(NOTHING_DONE)])
    lines = [element("li", element("strong", _TITLES[section]), f": {text}") for section, text in said]
    return join([key_box(lines), element("ul", *tiles, class_="tiles")])


# --- differences -----------------------------------------------------------------------------------------------------------------


def differences(findings: Findings) -> Fragment:
    """Per scenario: pairs that were tested, that differ, and the smallest difference that they find."""
    frame = findings.scenarios
    if frame.empty:
        return empty(NOTHING_DONE)
    titles = {"methods": "methods", "labels": "with their settings"} | {name: name for name in ("n", "pairs", "tested", "different")}
    head = [head_cell("scenario", "name"), *(head_cell(text, "number") for text in titles.values()), head_cell("tests are over")]
    head += [head_cell("minimum detectable difference, median", "number")]
    rows = [
        [
            row_head(row["scenario"]),
            *(number_cell(row[name], 0) for name in titles),
            element("td", row["unit"] or "–"),
            _amount(row["detectable"], row["percent"]),
        ]
        for row in as_rows(frame)
    ]
    about = (
        "Pairs of methods: paired over shared orders and seeds, p ≤ 0.05 after Holm's adjustment over the pairs of the scenario. A method "
        "with several settings is compared in each; pairs that share too few repetitions, such as trials of a search, are not tested. n: "
        "repetitions. Minimum detectable difference: found with a power of 80 % in Holm's first step, in points. Made-up data are left out."
    )
    if findings.repeated:
        named = ", ".join(one.name for one in findings.repeated)
        about += f" So are scenarios whose values another one has, bit by bit: {named}."
    return table(head, rows, about)


def pairs(findings: Findings) -> Fragment:
    """All pairs that differ, folded by scenario, the largest difference first."""
    frame = findings.differences[findings.differences["better"] != ""]
    if frame.empty:
        return empty("No pair of methods differs.")
    parts = []
    for one in findings.comparisons:
        part = frame[frame["scenario"] == one.name]
        if len(part):
            part = part.loc[part["estimate"].abs().sort_values(ascending=False, kind="stable").index]
            head = [head_cell("better − other", "name"), *(head_cell(t, "number") for t in ("difference", "95 % interval", "n", "p, Holm"))]
            head.append(head_cell("condition"))
            shown = table(head, [_pair(row, one.percent) for row in as_rows(part)])
            summary = element(
                "summary", element("strong", one.name), f": {len(part)} {'pair differs' if len(part) == 1 else 'pairs differ'}"
            )
            parts.append(element("details", summary, shown))
    return join(parts)


def _pair(row: Mapping[str, Any], percent: bool) -> list[Fragment]:
    other = row["second"] if row["better"] == row["first"] else row["first"]
    sign = 1.0 if row["estimate"] >= 0 else -1.0
    low, high = sorted((sign * row["low"], sign * row["high"]))
    condition = stats.condition_of(row["given"]) if row["given"] else ""
    cells = [row_head(f"{row['better']} − {other}"), _amount(sign * row["estimate"], percent, plus=True), _range(low, high, percent)]
    return [*cells, number_cell(row["n"], 0), _p_cell(row["p_adjusted"]), element("td", condition, class_="quiet")]


# --- data sets -------------------------------------------------------------------------------------------------------------------


def means(findings: Findings) -> Fragment:
    """A table per setting: the mean of every method on every data set, with average ranks where Friedman's test can be made."""
    if findings.means.empty:
        return empty("No data set has two methods.")
    return join(_means_table(findings, str(setting), part) for setting, part in findings.means.groupby("setting", sort=False))


def _means_table(findings: Findings, setting: str, part: pd.DataFrame) -> Fragment:
    presets = dict(zip(part["dataset"], part["preset"], strict=True))
    wide = part.pivot(index="method", columns="dataset", values="value")
    try:
        found: stats.Friedman | stats.Refused = findings.friedman(setting)
    except stats.Refused as refusal:
        found = refusal
    head = [head_cell("method", "name"), *(head_cell(name, "number") for name in wide.columns), head_cell("average rank", "number")]
    rows = []
    for method in wide.index:
        rank = found.average_ranks.get(method) if isinstance(found, stats.Friedman) else None
        rows.append([row_head(method), *(_amount(value, True) for value in wide.loc[method]), number_cell(rank, 2)])
    if isinstance(found, stats.Friedman):
        said = (
            f"Friedman's χ² = {found.statistic:.2f} with {found.df} degrees of freedom, p = {found.p:.3g}, over {found.n_blocks} data sets"
        )
        said += f"; critical difference of average ranks (Nemenyi): {found.critical_difference:.2f}"
    else:
        said = f"Friedman's test is refused: {found}"
    named = ", ".join(scenario_words(preset) for preset in presets.values())
    return table(head, rows, join([element("strong", setting.replace("-il", "-IL")), f" – in percent; {named}. {said}."]))


def datasets(findings: Findings) -> Fragment:
    """Pairs of methods with data sets as the unit."""
    frame = findings.dataset_pairs
    if frame.empty:
        return empty("No two methods share two data sets.")
    head = [head_cell("first, second", "name")]
    head += [head_cell(text, "number") for text in ("data sets", "first better", "second better", "smallest p", "p")]
    head.append(head_cell("verdict"))
    rows: list[list[Fragment]] = []
    for setting, part in frame.groupby("setting", sort=False):
        rows.append([group_title(str(setting).replace("-il", "-IL"), len(head))])
        for row in as_rows(part):
            counts = [number_cell(row[name], 0) for name in ("datasets", "wins", "losses")]
            p = [number_cell(row["smallest_p"], 3), number_cell(row["p"], 3)]
            verdict = row["verdict"].partition(":")[0]
            rows.append([row_head(f"{row['first']}, {row['second']}"), *counts, *p, element("td", verdict, class_="quiet")])
    about = "Wilcoxon's signed-rank test over means of data sets; smallest p: the least that it can give with so many of them, whatever "
    about += "the values. Joint training and overridden switches are left out."
    return element("details", element("summary", f"{len(frame)} pairs of methods"), table(head, rows, about))


# --- protocols -------------------------------------------------------------------------------------------------------------------


def rankings(findings: Findings) -> Fragment:
    """Pairs of presets that ask the same methods: Kendall's tau between their rankings."""
    frame = findings.rankings
    if frame.empty:
        return empty("No two presets share three methods and two repetitions.")
    head = [head_cell("from, to"), head_cell("change")]
    head += [head_cell(text, "number") for text in ("methods", "n", "Kendall's τ", "95 % interval", "τ within a protocol")]
    rows = []
    for row in as_rows(frame):
        first, second = (findings.results.preset_title(row[name]) for name in ("first", "second"))
        name = element("th", first, element("br"), element("span", f"to {second}", class_="quiet"), class_="long", scope="row")
        interval = _tau_range(row) if not row["reason"] else element("td", f"refused: {row['reason']}", class_="quiet long")
        counts = [number_cell(row["methods"], 0), number_cell(row["n"], 0), number_cell(row["tau"], 2)]
        rows.append([name, element("td", row["kind"]), *counts, interval, number_cell(row["within"], 2)])
    about = (
        "Mean over repetitions of Kendall's τ between both rankings of the same repetition (same order, split and init seed), with "
        "Student's interval over repetitions. Within a protocol: the mean τ between two repetitions of one of them, which a change of the "
        "protocol has to be compared with."
    )
    return table(head, rows, about)


def moved(findings: Findings) -> Fragment:
    """What a change of the protocol does to each method, folded by pair of presets."""
    frame = findings.changes
    if frame.empty:
        return empty("No two presets share three methods and two repetitions.")
    parts = []
    for (first, second), part in frame.groupby(["first", "second"], sort=False):
        head = [head_cell("method", "name")]
        head += [head_cell(text, "number") for text in ("effect, points", "95 % interval", "p, Holm", "rank before", "rank after")]
        rows = []
        for row in as_rows(part):
            cells = [row_head(row["method"]), _amount(row["effect"], True, plus=True), _range(row["low"], row["high"], True)]
            cells += [_p_cell(row["p_adjusted"]), number_cell(row["rank_first"], 1), number_cell(row["rank_second"], 1)]
            rows.append(cells)
        n = int(part["different"].sum())
        titles = f"{findings.results.preset_title(str(first))} to {findings.results.preset_title(str(second))}"
        summary = element("summary", element("strong", titles), f": {n} of {len(part)} methods move significantly")
        parts.append(element("details", summary, table(head, rows)))
    return join(parts)


# --- forgetting, and costs -------------------------------------------------------------------------------------------------------


def forgetting(findings: Findings) -> Fragment:
    """Forgetting in two parts, where it was split."""
    frame = findings.splits
    if frame.empty:
        return empty("No record's forgetting was split: cglsuite cell --split-forgetting keeps the parts beside the records.")
    head = [
        head_cell("method", "name"),
        *(head_cell(t, "number") for t in ("n", "forgetting", "drift", "change of weights", "drift, 95 % interval")),
    ]
    rows: list[list[Fragment]] = []
    for preset, some in frame.groupby("preset", sort=False):
        rows.append([group_title(findings.results.preset_title(str(preset)), len(head))])
        for method, part in some.groupby("method", sort=False):
            sizes = [_amount(part[name].mean(), True, plus=True) for name in ("forgetting", "drift", "weights")]
            try:
                interval = stats.mean_interval(part["drift"])
                drawn = _range(interval.low, interval.high, True)
            except stats.Refused:
                drawn = number_cell(None)
            rows.append([row_head(method), number_cell(len(part), 0), *sizes, drawn])
    about = "In points, means over repetitions; forgetting = drift + change of weights. Drift: what the old weights lose in the new graph."
    return table(head, rows, about)


def worth(findings: Findings) -> Fragment:
    """Per scenario: the gain of every method over fine-tuning beside its seconds and bytes."""
    frame = findings.worth
    if frame.empty:
        return empty("No scenario has fine-tuning beside another method.")
    numbers = ("gain, points", "95 % interval", "p, Holm", "seconds / fine-tuning's", "bytes kept")
    head = [head_cell("method", "name"), *(head_cell(text, "number") for text in numbers), head_cell("worth it")]
    parts: list[Content] = []
    for scenario, part in frame.groupby("scenario", sort=False):
        rows = []
        for row in as_rows(part.sort_values("gain", ascending=False, kind="stable")):
            cells = [
                row_head(row["method"]),
                _amount(row["gain"], row["percent"], plus=True),
                _range(row["low"], row["high"], row["percent"]),
            ]
            cells += [_p_cell(row["p_adjusted"]), number_cell(row["seconds"], 2), number_cell(row["bytes"], 0)]
            badge = element("span", "on the frontier", class_="badge good") if row["frontier"] else ""
            rows.append([*cells, element("td", badge)])
        better = int(part["better"].sum())
        summary = element("summary", element("strong", str(scenario)), f": {better} of {len(part)} methods gain significantly")
        parts.append(element("details", summary, table(head, rows)))
    about = (
        "Gain over fine-tuning, paired over shared repetitions. Seconds: geometric mean of ratios of the same repetition on one class of "
        "machine. Bytes: what is kept beyond the model, the mean at the end. On the frontier: nothing but joint training gains as much for "
        "no more seconds and bytes."
    )
    return join([element("p", about, class_="quiet"), *parts])


def provenance(findings: Findings) -> Facts:
    """Code and environment of the records, with lines for the page footer."""
    from cglsuite import __version__

    shown = show_runs.provenance(findings.results)
    left = len(findings.results.left_out)
    note = notice(f"{left} records by other code than the rest of their group are left out.") if left else None
    n = len(findings.results.used)
    return Facts(join([note, shown.body]), (f"Findings over {n} records.", f"cglsuite {__version__}."))


def _amount(value: float, percent: bool, *, plus: bool = False) -> Fragment:
    """A value in the unit of its metric, fractions in percent or points."""
    if value != value:
        return number_cell(None)
    return exact_cell(number_text(100.0 * value if percent else value, 1 if percent else 4, plus), value=value)


def _range(low: float, high: float, percent: bool) -> Fragment:
    if low != low:
        return number_cell(None)
    scale, digits = (100.0, 1) if percent else (1.0, 4)
    return exact_cell(
        f"{number_text(scale * low, digits, plus=True)} to {number_text(scale * high, digits, plus=True)}", low=low, high=high
    )


def _tau_range(row: Mapping[str, Any]) -> Fragment:
    return exact_cell(f"{number_text(row['low'], 2)} to {number_text(row['high'], 2)}", low=row["low"], high=row["high"])


def _p_cell(value: float) -> Fragment:
    if value != value:
        return number_cell(None)
    return element("td", "< 0.001" if value < 0.001 else f"{value:.3f}", class_="number", data_value=repr(float(value)))
