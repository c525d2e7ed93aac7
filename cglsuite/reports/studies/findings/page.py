"""The page of findings. It formats the results of :mod:`cglsuite.reports.studies.findings.compute`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from cglsuite import stats
from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.kit.sentences import p_text
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    amount_cell,
    as_rows,
    empty,
    folded,
    framed,
    interval,
    interval_cell,
    label,
    number,
    number_text,
    p_cell,
    titled,
    words,
)
from cglsuite.reports.kit.text import badge, change_words, key_box, notice, scenario_words, tile
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.runs import Facts
from cglsuite.reports.results.summary import NOTHING_DONE
from cglsuite.reports.results.tables import mean_interval
from cglsuite.reports.studies.comparison.page import grid as compared_grid
from cglsuite.reports.studies.findings.compute import Findings, method_of

__all__ = ["datasets", "differences", "forgetting", "means", "moved", "overview", "pairs", "provenance", "rankings", "worth"]


def overview(findings: Findings) -> Fragment:
    """Show the findings as sentences, with the data that they are based on."""
    said = headlines(findings)
    facts = [findings.facts[comparison.preset] for comparison in findings.comparisons]
    tiles = [
        tile(len(findings.results.used), "records"),
        tile(len(findings.comparisons), "scenarios"),
        tile(len({fact["dataset"] for fact in facts}), "data sets"),
        tile(len({method_of(label) for comparison in findings.comparisons for label in comparison.methods}), "methods"),
    ]
    if not said:
        return join([element("ul", *tiles, class_="tiles"), empty(NOTHING_DONE)])
    lines = [element("li", element("strong", _SECTIONS[section][0]), f": {text}") for section, text in said]
    return join([key_box(lines), element("ul", *tiles, class_="tiles")])


def grid(findings: Findings) -> Gallery | None:
    """Draw a heat map of methods by scenarios with unmodified presets."""
    native = [one for one in findings.comparisons if not findings.facts[one.preset]["modified"]]
    n_modified = len(findings.comparisons) - len(native)
    return compared_grid(native, f"; {several(n_modified, 'scenario')} with modified presets: in the tables only" if n_modified else "")


def _unit(row: Mapping[str, Any]) -> tuple[int, float]:
    """The unit of a row's differences: fractions are in percent or points."""
    return (1, 100.0) if row["percent"] else (4, 1.0)


_INTERVAL = interval("95% interval", _unit, plus=True)
_HOLM = Column("p, Holm", lambda row: p_cell(row["p_adjusted"]))


# --- differences -----------------------------------------------------------------------------------------------------------------


def differences(findings: Findings) -> Fragment:
    """Tabulate, per scenario, how many pairs were tested and how many differ, with the smallest detectable difference."""
    about = (
        "Tests are paired over shared orders and seeds. Different: p ≤ 0.05 after Holm's adjustment over the pairs of the scenario. A "
        "method with several settings is compared in each of them. Pairs that share too few repetitions, such as trials of a search, are "
        "not tested. n: repetitions. Minimum detectable difference: the difference (in points) detected with a power of 80% in Holm's "
        "first step. Synthetic data are left out."
    )
    if findings.repeated:
        named = ", ".join(comparison.name for comparison in findings.repeated)
        about += f" So are scenarios with exactly the same values as another one: {named}."
    columns = [
        *(label("scenario"), number("methods"), number("with their settings", "labels")),
        *(number(name) for name in ("n", "pairs", "tested", "different")),
        words("tests are over", lambda row: row["unit"] or "–"),
        Column("minimum detectable difference, median", _detectable),
    ]
    return framed(findings.scenarios, columns, about, none=NOTHING_DONE)


def _detectable(row: Mapping[str, Any]) -> Fragment:
    """The detectable difference of a row; two fractions are at most 100 points apart."""
    if row["percent"] and row["detectable"] > 1.0:
        return element("td", "cannot be shown", class_="quiet")
    return amount_cell(row["detectable"], *_unit(row))


def pairs(findings: Findings) -> Fragment:
    """List all pairs that differ significantly, collapsed by scenario, with the largest difference first."""
    frame = findings.differences[findings.differences["better"] != ""]
    if frame.empty:
        return empty("No pair of methods differs.")
    parts = []
    for comparison in findings.comparisons:
        part = frame[frame["scenario"] == comparison.name]
        if len(part):
            part = part.loc[part["estimate"].abs().sort_values(ascending=False, kind="stable").index]
            about = f": {len(part)} {'pair differs' if len(part) == 1 else 'pairs differ'}"
            parts.append(folded(titled(comparison.name, about), framed([_pair(row, comparison.percent) for row in as_rows(part)], _PAIR)))
    return join(parts)


def _pair(row: Mapping[str, Any], percent: bool) -> dict[str, Any]:
    """The names of a pair, the better method first."""
    other = row["second"] if row["better"] == row["first"] else row["first"]
    sign = 1.0 if row["estimate"] >= 0 else -1.0
    low, high = sorted((sign * row["low"], sign * row["high"]))
    return {**row, "other": other, "gain": sign * row["estimate"], "low": low, "high": high, "percent": percent}


_PAIR = [
    label("better − other", lambda row: f"{row['better']} − {row['other']}"),
    amount("difference", "gain", _unit, plus=True),
    *(_INTERVAL, number("n"), _HOLM),
    words("condition", lambda row: stats.condition_of(row["given"]) if row["given"] else "", "quiet"),
]

# --- data sets -------------------------------------------------------------------------------------------------------------------


def means(findings: Findings) -> Fragment:
    """Tabulate, per setting, the mean of every method on every data set, with average ranks if Friedman's test is possible."""
    if findings.means.empty:
        return empty("No data set has two methods.")
    return join(_means_table(findings, str(setting), part) for setting, part in findings.means.groupby("setting", sort=False))


def _means_table(findings: Findings, setting: str, part: pd.DataFrame) -> Fragment:
    presets = dict(zip(part["dataset"], part["preset"], strict=True))
    wide = part.pivot(index="method", columns="dataset", values="value")
    ranks: Mapping[Any, float] = {}
    try:
        test = findings.friedman(setting)
        ranks = test.average_ranks.to_dict()
        said = f"Friedman's χ² = {test.statistic:.2f} with {test.df} degrees of freedom, p = {test.p:.3g}, over {test.n_blocks} data sets"
        said += f"; critical difference of average ranks (Nemenyi): {test.critical_difference:.2f}"
    except stats.Refused as refusal:
        said = f"Friedman's test is refused: {refusal}"
    named = ", ".join(scenario_words(preset) for preset in presets.values())
    values = [amount(name, name, _unit) for name in wide.columns]
    columns = [label("method"), *values, number("average rank", lambda row: ranks.get(row["method"]), 2)]
    return framed(
        wide.assign(percent=True).reset_index(), columns, titled(setting.replace("-il", "-IL"), f" – in percent; {named}. {said}.")
    )


def datasets(findings: Findings) -> Fragment:
    """Tabulate the tests of pairs of methods with data sets as the unit."""
    frame = findings.dataset_pairs
    if frame.empty:
        return empty("No two methods share two data sets.")
    columns = [
        label("first, second", lambda row: f"{row['first']}, {row['second']}"),
        *(number("data sets", "datasets"), number("first better", "wins"), number("second better", "losses")),
        *(number("smallest p", "smallest_p", 3), number("p", digits=3)),
        words("verdict", lambda row: row["verdict"].partition(":")[0], "quiet"),
    ]
    about = "Wilcoxon's signed-rank test over the means of data sets. Smallest p: the smallest value that is possible with this number of "
    about += "data sets. Joint training and overridden switches are left out."
    shown = framed(frame, columns, about, by=lambda row: row["setting"].replace("-il", "-IL"))
    return folded(f"{len(frame):,} pairs of methods", shown)


# --- protocols -------------------------------------------------------------------------------------------------------------------


def rankings(findings: Findings) -> Fragment:
    """Tabulate Kendall's tau between the rankings under two presets, for pairs of presets that share methods."""

    def change(row: Mapping[str, Any]) -> Fragment:
        first, second = (findings.results.preset_title(row[name]) for name in ("first", "second"))
        return element("th", first, element("br"), element("span", f"to {second}", class_="quiet"), class_="long", scope="row")

    def interval(row: Mapping[str, Any]) -> Fragment:
        if row["reason"]:
            return element("td", f"refused: {row['reason']}", class_="quiet long")
        return interval_cell(row["low"], row["high"], 2)

    columns = [
        *(Column("from, to", change, None), words("change", "kind"), number("methods"), number("n"), number("Kendall's τ", "tau", 2)),
        *(Column("95% interval", interval), number("τ within a protocol", "within", 2)),
    ]
    about = (
        "Mean over repetitions of Kendall's τ between both rankings of the same repetition (same order, split and init seed), with "
        "Student's interval over repetitions. Within a protocol: the mean τ between two repetitions under the same protocol, the baseline "
        "for a change of protocol."
    )
    return framed(findings.rankings, columns, about, none=_ALONE)


_ALONE = "No two presets share three methods and two repetitions."


def moved(findings: Findings) -> Fragment:
    """Tabulate the effect of a change of protocol on each method, collapsed by pairs of presets."""
    frame = findings.changes
    if frame.empty:
        return empty(_ALONE)
    columns = [
        label("method"),
        amount("effect, points", "effect", _unit, plus=True),
        *(_INTERVAL, _HOLM, number("rank before", "rank_first", 1), number("rank after", "rank_second", 1)),
    ]
    parts = []
    for pair, part in frame.assign(percent=True).groupby(["first", "second"], sort=False):
        about = f": {int(part['different'].sum())} of {len(part)} methods move significantly"
        title = " to ".join(findings.results.preset_title(str(preset)) for preset in pair)
        parts.append(folded(titled(title, about), framed(part, columns)))
    return join(parts)


# --- forgetting, and costs -------------------------------------------------------------------------------------------------------


def forgetting(findings: Findings) -> Fragment:
    """Tabulate the two parts of forgetting for records with split forgetting."""
    rows = []
    for (preset, method), part in findings.splits.groupby(["preset", "method"], sort=False):
        sizes = {name: part[name].mean() for name in (*_SPLIT.values(), "excess")} | mean_interval(part["drift"])
        rows.append({"title": findings.results.preset_title(str(preset)), "method": method, "n": len(part), "percent": True, **sizes})
    columns = [
        *(label("method"), number("n")),
        *(amount(head, of, _unit, plus=True) for head, of in _SPLIT.items()),
        Column("drift, 95% interval", _INTERVAL.cell),
        amount("excess", "excess", _unit, plus=True),
    ]
    about = (
        "In points, means over repetitions; forgetting = drift + change of weights. Drift: the loss of the old weights in the new graph. "
        "Excess: change of weights beyond that of frozen-ncm, which cannot forget, in the same repetitions."
    )
    nothing = "No record has its forgetting split into parts; cglsuite cell --split-forgetting stores them next to the records."
    return framed(rows, columns, about, by="title", none=nothing)


_SPLIT = {"forgetting": "forgetting", "drift": "drift", "change of weights": "weights"}


def worth(findings: Findings) -> Fragment:
    """Tabulate, per scenario, the gain of every method over fine-tuning, with its seconds and bytes."""
    frame = findings.worth
    if frame.empty:
        return empty("No scenario has both fine-tuning and another method.")
    columns = [
        label("method"),
        amount("gain, points", "gain", _unit, plus=True),
        *(_INTERVAL, _HOLM, number("seconds / fine-tuning's", "seconds", 2), number("bytes kept", "bytes")),
        words("worth it", lambda row: badge("on the frontier", "good") if row["frontier"] else ""),
    ]
    parts: list[Content] = []
    for scenario, part in frame.groupby("scenario", sort=False):
        about = f": {int(part['better'].sum())} of {len(part)} methods gain significantly"
        parts.append(folded(titled(str(scenario), about), framed(part.sort_values("gain", ascending=False, kind="stable"), columns)))
    about = (
        "Gain over fine-tuning, paired over shared repetitions. Seconds: geometric mean of ratios of the same repetition on one class of "
        "machine. Bytes: kept in addition to the model, mean at the end. On the frontier: no other learner gains as much with no "
        "more seconds and bytes."
    )
    return join([element("p", about, class_="quiet"), *parts])


def provenance(findings: Findings) -> Facts:
    """Show the code and environment of the records, with lines for the page footer."""
    from cglsuite import __version__

    shown = show_runs.provenance(findings.results)
    left = len(findings.results.left_out)
    note = notice(f"{left:,} records are left out, because different code produced them than the rest of their group.") if left else None
    n = len(findings.results.used)
    return Facts(join([note, shown.body]), (f"Findings over {n:,} records.", f"cglsuite {__version__}."))


# The findings as sentences, in which every number has its test.


def headlines(findings: Findings) -> list[tuple[str, str]]:
    """Return the findings as (section of the page, sentence) pairs, with the most important ones first.

    The sections are ``differences``, ``rankings``, ``worth``, ``datasets`` and ``forgetting``; one without records has no sentence.
    """
    return [(section, text) for section, (_, said) in _SECTIONS.items() if (text := said(findings))]


def _differences(findings: Findings) -> str:
    tested = findings.differences[findings.differences["refused"] == ""]
    if tested.empty:
        return ""
    shown = tested[tested["scenario"].isin([comparison.name for comparison in findings.comparisons if comparison.percent])]
    alone = tested["first"].map(method_of) == tested["second"].map(method_of)
    least, most = int(tested["n"].min()), int(tested["n"].max())
    repetitions = f"{least} to {most}" if least < most else f"{least}"
    two, single = tested[~alone], tested[alone]
    n, n_different, n_alone = len(two), int(two["claimed"].sum()), int((two["better"] != "").sum())
    said = f"{n_different:,} of {several(n, 'pair')} of methods ({100 * n_different / max(1, n):.0f}%) differ over orders and seeds"
    if len(single):
        said += f", and {int(single['claimed'].sum())} of {several(len(single), 'pair')} of one method in two settings"
    if len(shown) and shown["detectable"].notna().any():
        median = 100 * shown["detectable"].median()
        size = f"{number_text(median, 1)} points" if median <= 100.0 else "more than 100 points, which cannot be shown"
        said += f". To be detected with a power of 80%, a difference must be {size} (median over pairs)"
    said += f" [{several(tested['scenario'].nunique(), 'scenario')}; paired tests over {repetitions} repetitions; Holm within a scenario, "
    return f"{said}Benjamini-Hochberg over scenarios, α = 0.05; {n_alone:,} have p ≤ .05 in their scenario alone]."


def _rankings(findings: Findings) -> str:
    changed = findings.changes[findings.changes["different"]]
    pairs = findings.rankings[findings.rankings["tau"].notna()]
    if pairs.empty:
        return ""
    if changed.empty:
        lowest = as_rows(pairs.sort_values("tau", kind="stable"))[0]
        return f"No change of protocol has a significant effect on a method [{_agreement(lowest)}]."
    row = as_rows(changed.sort_values("effect", key=lambda effect: -effect.abs(), kind="stable"))[0]
    pair = pairs[(pairs["first"] == row["first"]) & (pairs["second"] == row["second"])]
    n = len(findings.changes[["first", "second"]].drop_duplicates())
    said = f"A change of protocol has a significant effect on a method in {len(changed):,} of {len(findings.changes):,} tests. The largest "
    said += f"effect: {row['method']} {'gains' if row['effect'] > 0 else 'loses'} {number_text(100 * abs(row['effect']), 1)} points on "
    said += f"{findings.facts[row['first']]['dataset']} when {change_words(row['first'], row['second'])}, and goes from rank "
    said += f"{number_text(row['rank_first'], 1)} to {number_text(row['rank_second'], 1)} "
    tail = f"; {_agreement(as_rows(pair)[0])}" if len(pair) else ""
    return (
        f"{said}({p_text(row['p_adjusted'])}) [Holm; paired t over {int(row['n'])} repetitions{tail}; {several(n, 'pair')} of protocols]."
    )


def _agreement(row: dict[str, Any]) -> str:
    interval = f" (95% interval {number_text(row['low'], 2)} to {number_text(row['high'], 2)})" if row["low"] == row["low"] else ""
    within = f", against {number_text(row['within'], 2)} between repetitions of one protocol" if row["within"] == row["within"] else ""
    return f"Kendall's τ of both rankings {number_text(row['tau'], 2)}{interval}{within}"


def _worth(findings: Findings) -> str:
    frame = findings.worth
    frame = frame[frame["method"].map(findings.results.competes).astype(bool) & frame["p_adjusted"].notna() & frame["percent"]]
    if frame.empty:
        return ""
    keeps, nothing = frame[frame["bytes"] > 0], frame[frame["bytes"] <= 0]
    parts = [_gains(keeps, "Methods that keep data in addition to the model"), _gains(nothing, "methods that keep no data")]
    said = "; ".join(filter(None, parts))
    known = frame[frame["seconds"].notna()]
    better, others = (known[known["better"] == gains] for gains in (True, False))
    if len(better) and len(others):
        a, b = better["seconds"].median(), others["seconds"].median()
        said += f". Those that gain take {number_text(a, 2)} times fine-tuning's seconds, the others {number_text(b, 2)} times (medians)"
    return f"{said[0].upper()}{said[1:]} [the same paired tests]."


def _gains(frame: Any, subject: str) -> str:
    if frame.empty:
        return ""
    better = frame[frame["better"]]
    gain = f", by a median of {number_text(100 * better['gain'].median(), 1)} points" if len(better) else ""
    return f"{subject} beat fine-tuning in {len(better)} of {several(len(frame), 'case')}{gain}"


def _datasets(findings: Findings) -> str:
    pairs = findings.dataset_pairs
    if pairs.empty:
        return ""
    most = int(pairs["datasets"].max())
    smallest = pairs["smallest_p"].min()
    decided = pairs[pairs["verdict"].str.endswith(" is better")]
    said = "No method can be called better than another in general" if smallest > 0.05 else "Few pairs of methods differ in general"
    said = f"{len(decided)} of {several(len(pairs), 'pair')} of methods differ in general" if len(decided) else said
    said += f": they share at most {several(most, 'data set')}, for which Wilcoxon's test cannot give a p value below {smallest:.2g}"
    separated = []
    for setting in dict.fromkeys(findings.means["setting"]):
        try:
            test = findings.friedman(setting)
        except stats.Refused:
            continue
        separated.append(f"{setting.replace('-il', '-IL')}: Friedman's p = {test.p:.2g} over {test.n_blocks}")
    about = [f"the data set is the unit; {len(decided)} of {several(len(pairs), 'pair')} differ", *separated]
    return f"{said} [{'; '.join(about)}]."


def _forgetting(findings: Findings) -> str:
    splits = findings.splits
    if splits.empty:
        return ""
    share = (splits["drift"].abs() > splits["weights"].abs()).sum()
    drift, total = 100 * splits["drift"].mean(), 100 * splits["forgetting"].mean()
    return (
        f"Drift of the graph is the larger part of forgetting in {share} of {several(len(splits), 'run')} where it was split: "
        f"on average, {number_text(drift, 1)} of {number_text(total, 1)} points."
    )


_SECTIONS: Mapping[str, tuple[str, Callable[[Findings], str]]] = {
    "differences": ("What differs", _differences),
    "rankings": ("What the protocol decides", _rankings),
    "worth": ("What memory and seconds buy", _worth),
    "datasets": ("What cannot be claimed", _datasets),
    "forgetting": ("Drift or forgetting", _forgetting),
}
"""The sections of the page: their headings, and the functions that write their sentences."""
