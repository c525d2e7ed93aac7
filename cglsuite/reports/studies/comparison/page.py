"""The page that compares methods. It formats the results of :mod:`cglsuite.reports.studies.comparison.compute`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from cglsuite import stats
from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.figures import box_figure, grid_picture
from cglsuite.reports.kit.pictures import (
    Gallery,
    Theme,
    headline,
    method_of,
    picture,
    plain_axes,
    row_titles,
    style_of,
    text_points,
    wrapped,
)
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    amount_cell,
    as_rows,
    components_table,
    definition_list,
    empty,
    exact_cell,
    folded,
    framed,
    interval,
    label,
    number,
    number_cell,
    number_text,
    p_cell,
    refused_alike,
    words,
)
from cglsuite.reports.kit.text import badge, metric_name
from cglsuite.reports.results.results import MAX_DRAWN, Group
from cglsuite.reports.results.runs import problems, provenance
from cglsuite.reports.results.summary import NOTHING_DONE, heading
from cglsuite.reports.results.summary import progress as campaign_progress
from cglsuite.reports.results.variants import note as tuning_note
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison.compute import (
    ADJUSTED,
    Comparison,
    Question,
    Study,
    amount_text,
    caption,
    detectable_cell,
    key_results,
    percent_text,
    range_text,
    refused,
    showable,
    unit,
    unit_text,
)
from cglsuite.stats import Friedman

__all__ = [
    "components",
    "differences",
    "distributions",
    "intervals",
    "means",
    "overview",
    "plans",
    "power",
    "problems",
    "progress",
    "provenance",
    "rank_diagrams",
    "rank_spreads",
    "ranks",
    "replication",
]

# --- what is asked, and of what ----------------------------------------------------------------------------------------------------


def overview(study: Study) -> Fragment:
    """Show the campaign and the results of its tests."""
    return heading(study.results, key_results(study))


def progress(study: Study) -> Fragment:
    """Show the campaign's progress and warnings, and (collapsed) the declared question."""
    question = definition_list(_question(study).items())
    return join([campaign_progress(study.results), folded("What is compared, and by which test", question)])


def _question(study: Study) -> dict[str, str]:
    question, spec = study.question, study.spec
    family = f"every other method against {question.against}" if question.against else "all pairs of methods"
    if not question.against and any(compared.axes for compared in study.comparisons):
        family += ", at equal settings if a method has several (its variants form a sweep and do not compete)"
    percent = any(compared.percent for compared in study.comparisons)
    return {
        "metric": f"{spec.title} ({spec.name}): {spec.summary}; {spec.better} is better",
        "family": f"{family} per scenario and backbone; p values adjusted over the family ({ADJUSTED[question.adjustment]}), controlling "
        + _BOUNDED[question.adjustment],
        "test": declared(question),
        "beside it": f"{_TESTS[question.beside]}; for comparison only",
        "level": f"α = {question.alpha:g}; {percent_text(1 - question.alpha)} intervals, not adjusted",
        "smallest interesting difference": f"{amount_text(question.smallest, percent)}, at a power of {percent_text(question.wanted)}",
        "digest of this question": question.digest,
    }


def declared(question: Question) -> str:
    """Describe the test that a question declares."""
    return f"{_TESTS[question.test]}; only this test gives verdicts"


_BOUNDED = {"holm": "the family-wise error rate", "benjamini-hochberg": "the false discovery rate"}
_TESTS = {
    "t": "paired t-test over units that both methods share, Welch's t-test if they share none, quasi-F if orders are crossed with seeds",
    "wilcoxon": "Wilcoxon's signed-rank test over units that both methods share",
    "welch": "Welch's t-test, which treats methods as if they had been run separately, each with the error of its own design",
}


def replication(study: Study) -> Fragment:
    """Show the units of the tests in each scenario, and the conditions for which the claims are valid."""
    if not study.comparisons:
        return empty(NOTHING_DONE)
    columns = [
        *(label("scenario", lambda compared: compared.name), number("methods", lambda compared: len(compared.methods))),
        *(number(f"{level}s", partial(_levels, level=level)) for level in stats.LEVELS),
        words("units", _design, "long"),
    ]
    remarks = [_warned(compared) for compared in study.comparisons]
    shared = len(remarks) > 1 and len(set(remarks)) == 1
    columns += [words("remark", _warned, "long")] if any(remarks) and not shared else []
    return join([framed(study.comparisons, columns), element("p", remarks[0], class_="note") if shared and remarks[0] else None])


def _levels(compared: Comparison, level: str) -> int:
    return compared.cells[level].nunique()


def _design(compared: Comparison) -> str:
    if not len(compared.cells):
        return "–"
    return f"refused: {compared.design}" if isinstance(compared.design, stats.Refused) else compared.design.description


def _warned(compared: Comparison) -> str:
    counts = set(compared.lacking.values())
    lacking = {"all methods": counts.pop()} if compared.absent and len(counts) == 1 else compared.lacking
    warnings = [f"{method}: {n} records without a value" for method, n in lacking.items()]
    design = compared.design
    if isinstance(design, stats.Refused):
        return "; ".join(warnings)
    if compared.overlap and "split" not in design.factors and _levels(compared, "split") > 1:
        warnings.insert(0, f"Splits change with the {design.factors[0]}s and share items, which makes intervals too narrow.")
    if design.population:
        warnings.insert(0, f"The orders are the population: {design.population} were run, so their effect does not count as error.")
    elif compared.orders_in_all and "order" in design.factors:
        n = compared.cells["order"].nunique()
        warnings.insert(0, f"{n} of all {compared.orders_in_all} orders were run; tests treat them as a sample from many.")
    conditions = " and ".join(text for name, text in _GIVEN.items() if name in design.given)
    if conditions:
        warnings.insert(0, f"Every claim is limited to {conditions}.")
    return "; ".join(warnings)


_GIVEN = {"order": "this one order", "seed": "this one seed"}


def means(study: Study) -> Fragment:
    """Tabulate the mean of every method over units, with its spread and interval, in one table per scenario."""
    return _tables(study, comparison.means, _means_table)


def _means_table(study: Study, compared: Comparison, frame: pd.DataFrame) -> Fragment:
    if frame.empty:
        return refused(compared, compared.no_value)

    def interval_of(row: Mapping[str, Any]) -> Fragment:
        if row["low"] != row["low"]:
            return element("td", f"refused: {row['interval']}", class_="quiet long")
        text = f"{unit_text(compared, row['low'])} to {unit_text(compared, row['high'])}"
        return exact_cell(f"{text} ", element("span", row["interval"], class_="sd"), low=row["low"], high=row["high"])

    columns = [
        *(label("method"), words("over", lambda row: row["replicates"] or "–", "nowrap"), number("cells")),
        *(amount(_measured(study, compared), "mean", unit(compared)), amount("std", "std", unit(compared))),
        Column(f"{percent_text(1 - study.question.alpha)} interval of the mean", interval_of),
    ]
    if frame["collapsed"].any():
        columns.append(
            words("collapsed", lambda row: f"{row['collapsed']} of {row['cells']}" if row["collapsed"] else "–", "number", "number")
        )
    if compared.axes:
        single = folded(f"All {len(frame)} settings", framed(frame, columns))
        return join([_ranges_table(study, compared, frame), single])
    about = f"{compared.performance}; interval: Student's t (BCa bootstrap for ten or more units, quasi-F if crossed). "
    groups = {g.label: g.records for g in study.results.groups if (g.preset, g.backbone) == (compared.preset, compared.backbone)}
    return framed(frame, columns, caption(compared, about + tuning_note(study.results.searches, groups)))


def _ranges_table(study: Study, compared: Comparison, frame: pd.DataFrame) -> Fragment:
    """A row per method: the range of its settings' means, and the setting chosen on validation."""
    mean = {str(row["method"]): float(row["mean"]) for row in as_rows(frame)}
    cells = {str(row["method"]): int(row["cells"]) for row in as_rows(frame)}

    def range_of(family: Sequence[Group]) -> Fragment:
        ends = sorted(mean[group.label] for group in family)
        texts = dict.fromkeys(unit_text(compared, end) for end in (ends[0], ends[-1]))
        return exact_cell(" to ".join(texts), low=ends[0], high=ends[-1])

    def chosen(family: Sequence[Group]) -> str:
        if len(family) == 1:
            return "–"
        best = next((g for g in family if g.label in compared.chosen), None)
        if best is None:
            return "validation performance was not recorded"
        said = f"{best.variant}: {unit_text(compared, mean[best.label])}"
        try:
            found = comparison.selection(compared, family)
        except stats.Refused as refusal:
            return f"{said} (no interval: {refusal})"
        ends = f"{unit_text(compared, found.low)} to {unit_text(compared, found.high)}"
        return f"{said} ({percent_text(1 - study.question.alpha)} interval {ends}; chosen again in {100 * found.again:.0f}% of draws)"

    columns = [
        *(label("method", lambda family: family[0].method), number("settings", len)),
        number("cells", lambda family: sum(cells[group.label] for group in family)),
        *(Column(f"range of {_measured(study, compared)}", range_of), words("chosen by validation", chosen, "long")),
    ]
    about = f"{compared.performance}; over the settings of {', '.join(compared.axes)}. "
    about += "The interval of a chosen setting repeats the choice in every bootstrap draw of repetitions"
    return framed(compared.families, columns, caption(compared, about))


def distributions(study: Study) -> Gallery | Fragment:
    """Plot the cells of each method as points, with the quartiles and the mean, in one figure per scenario."""
    pictures = []
    for compared in study.comparisons:
        if len(compared.methods) > MAX_DRAWN and compared.axes and len(compared.chosen) < len(compared.families):
            continue
        drawn = compared.chosen if len(compared.methods) > MAX_DRAWN and compared.axes else compared.methods
        rows = [
            (method, compared.scale * part["value"].to_numpy(dtype=np.float64))
            for method, part in compared.cells.groupby("method", sort=False)
            if method in drawn
        ]
        if rows:
            pictures.append(_box_picture(study, compared, rows, _measured(study, compared), "a point per cell"))
    return Gallery(tuple(pictures)) if pictures else empty("No method has a value." if study.comparisons else NOTHING_DONE)


def _box_picture(
    study: Study, compared: Comparison, rows: list[tuple[Any, Any]], xlabel: str, about: str, *, is_count: bool = False
) -> Any:
    digits = 1 if compared.percent or is_count else 4
    draw = partial(box_figure, rows, title=compared.name, xlabel=xlabel, order=study.methods, is_count=is_count, digits=digits)
    said = "; ".join(
        f"{name} {values.min():.{digits}f} to {values.max():.{digits}f}, mean {values.mean():.{digits}f}" for name, values in rows
    )
    return picture(draw, f"{xlabel} in {compared.name}: {said}.", f"{about}; box: quartiles and median; tall stroke: mean")


_LEAST_GRID = 3


def grid(comparisons: Sequence[Comparison], remark: str = "") -> Gallery | None:
    """Draw the mean of every method in each scenario as a heat map, or return ``None`` for fewer than three scenarios, where tables
    suffice.

    A method with several settings appears with the ones that validation chose. Scenarios whose metric is not a fraction are left out.

    Args:
        remark: the end of the caption.
    """
    titles = Counter(compared.title for compared in comparisons)
    cells: dict[tuple[str, str], float] = {}
    for compared in comparisons:
        name, means = compared.title if titles[compared.title] == 1 else compared.name, compared.cells.groupby("method")["value"].mean()
        cells |= {(method_of(label), name): float(means[label]) for label in compared.chosen if label in means and compared.percent}
    if len({scenario for _, scenario in cells}) < _LEAST_GRID:
        return None
    metrics = {metric_name(compared.question.metric) for compared in comparisons}
    words = metrics.pop() if len(metrics) == 1 else "performance"
    what, about = f"{words[0].upper()}{words[1:]}", "Means over records; –: no result"
    title = f"{what} by method and scenario, %"
    return Gallery((grid_picture(cells, title=title, what=what, caption=about + remark),))


# --- pairs -------------------------------------------------------------------------------------------------------------------------


def differences(study: Study) -> Fragment:
    """Tabulate the declared family of tests per scenario, with effect sizes, verdicts and the reasons for refusals."""
    role = element("p", f"{_ROLES[study.question.test == 'welch']} {sharing()}", class_="note")
    return join([role if study.comparisons else None, _tables(study, comparison.pairs, _pairs_table)])


def _tables(study: Study, function: Callable[[Comparison], Any], table: Callable[[Study, Comparison, Any], Fragment]) -> Fragment:
    """One table per scenario from the result of ``function``, or the reason for its refusal."""
    tried = _tried(study, function)
    parts = [
        refused(compared, str(result)) if isinstance(result, stats.Refused) else table(study, compared, result)
        for compared, result in tried
    ]
    return join(parts) if parts else empty(NOTHING_DONE)


def _tried(study: Study, function: Callable[[Comparison], Any]) -> list[tuple[Comparison, Any]]:
    """The result of ``function`` for every scenario, or its refusal."""
    results: list[tuple[Comparison, Any]] = []
    for compared in study.comparisons:
        try:
            results.append((compared, function(compared)))
        except stats.Refused as refusal:
            results.append((compared, refusal))
    return results


def _fit(study: Study, function: Callable[[Comparison], Any]) -> list[tuple[Comparison, Any]]:
    """The results of ``function`` without refused scenarios, whose reasons the tables give."""
    return [(compared, result) for compared, result in _tried(study, function) if not isinstance(result, stats.Refused)]


def _pairs_table(study: Study, compared: Comparison, frame: pd.DataFrame) -> Fragment:
    if compared.axes and len(frame) > _MAX_PAIRS:
        return _pairs_of_sweeps(study, compared, frame)
    question, level = study.question, percent_text(1 - study.question.alpha)
    ways = list(dict.fromkeys(_way(row) for row in as_rows(frame) if not row["refused"]))
    booted = interval(f"{level} interval, bootstrap (BCa)", unit(compared), "boot_low", "boot_high", plus=True)
    columns = [
        label("first − second", lambda row: f"{row['first']} − {row['second']}"),
        Column("verdict", _verdict_cell, None),
        words("over", "replicates", "nowrap"),
        amount(f"difference in {_label(study)}{', points' if compared.percent else ''}", "estimate", unit(compared), plus=True),
        interval(f"{level} interval", unit(compared), plus=True),
        *([booted] if frame["boot_low"].notna().any() else []),
        *(number("statistic", digits=2), number("df", digits=1), Column("p", lambda row: p_cell(row["p"]))),
        Column(f"p, {ADJUSTED[study.question.adjustment]}", lambda row: p_cell(row["p_adjusted"])),
        Column("Hedges' g", _effect),
        *([words("test", _way, "quiet long")] if len(ways) > 1 else []),
    ]
    columns[1:] = [replace(column, group=_HEADS[question.test]) for column in columns[1:]]
    counts = frame["verdict"].map(_kind).value_counts()
    several = f"{len(frame)} declared pair{'s' if len(frame) != 1 else ''}"
    verdicts = "; ".join(f"{counts[kind]} {kind}" for kind in _BADGES if kind in counts)
    verdicts += f". {ways[0][0].upper()}{ways[0][1:]}" if len(ways) == 1 else ""
    condition = next((text for text in frame["given"] if text), "")
    if condition:
        verdicts += f". All verdicts hold {stats.condition_of(condition)} only"
    population = next((text for text in frame["population"] if text), "")
    if population:
        verdicts += f". The orders are the population ({population} were run), so the order term does not count as error"
    columns += _beside_columns(study, compared)
    about = caption(compared, f"{several}: {verdicts}")
    return framed(frame, columns, about, refused=lambda row: (2, str(row["refused"])) if row["refused"] and row["beside_refused"] else None)


def _beside_columns(study: Study, compared: Comparison) -> list[Column]:
    """Return the columns of the test that gives no verdict, without badges or stars. If it is refused, the reason is shown."""
    level, title = percent_text(1 - study.question.alpha), _HEADS[study.question.beside]

    def amount_or_reason(row: Mapping[str, Any]) -> Fragment:
        if row["beside_refused"]:
            return element("td", f"refused: {row['beside_refused']}", class_="quiet long")
        return amount_cell(row["beside_estimate"], *unit(compared), plus=True)

    columns = [
        Column("difference", amount_or_reason),
        interval(f"{level} interval", unit(compared), "beside_low", "beside_high", plus=True),
        *(number("t", "beside_statistic", 2), number("df", "beside_df", 1), Column("p", lambda row: p_cell(row["beside_p"]))),
        Column(f"p, {ADJUSTED[study.question.adjustment]}", lambda row: p_cell(row["beside_p_adjusted"])),
        Column("Hedges' g", lambda row: _effect({name: row[f"beside_{name}"] for name in ("g", "g_low", "g_high")})),
    ]
    return [replace(column, group=title) for column in columns]


_HEADS = {
    "t": "The design's test",
    "wilcoxon": "Wilcoxon's test",
    "welch": "Welch's test, as if run separately (as in papers)",
}
_ROLES = {
    False: "Only the declared test gives verdicts. Welch's test, which treats methods as run separately, is for comparison with papers.",
    True: "Only Welch's test, which was declared, gives verdicts. The design's test is for comparison.",
}


def sharing() -> str:
    """State how much power Welch's test loses, in simulations, if methods share orders."""
    shares = stats.error_rate("sharing", "4")
    return (
        "If methods share orders, Welch's test counts the effect of an order on all of them as error. For ten shared orders with a "
        "standard deviation of 4 points and 2 points of noise per method, it detects a true difference of 2 points in "
        f"{shares['power, Welch']:.0f}% of cases; the paired test detects it in {shares['power, paired']:.0f}%."
    )


_MAX_PAIRS = 40
"""The most pairs of a sweep that are shown one by one; more are summarised by pairs of methods."""


def _by_methods(compared: Comparison, frame: pd.DataFrame) -> list[tuple[str, list[dict[str, Any]]]]:
    """The pairs of settings, grouped by their pair of methods."""
    method = {group.label: group.method for group in compared.groups}
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in as_rows(frame):
        by_pair.setdefault(f"{method[row['first']]} − {method[row['second']]}", []).append(row)
    return list(by_pair.items())


def _ends(compared: Comparison, values: Iterable[float], *, plus: bool = False) -> Fragment:
    """The range from the smallest to the largest known value."""
    known = sorted(value for value in values if value == value)
    if not known:
        return number_cell(None)
    texts = dict.fromkeys(unit_text(compared, end, plus=plus) for end in (known[0], known[-1]))
    return exact_cell(" to ".join(texts), low=known[0], high=known[-1])


def _pairs_of_sweeps(study: Study, compared: Comparison, frame: pd.DataFrame) -> Fragment:
    """Tabulate one row per pair of methods over all common settings, with the pairs of settings collapsed."""

    def count(row: tuple[str, list[dict[str, Any]]], kind: str) -> int:
        return sum(_kind(str(pair["verdict"])) == kind for pair in row[1])

    columns = [
        *(label("first − second", lambda row: row[0]), number("settings", lambda row: len(row[1]))),
        Column(
            f"difference in {_label(study)}{', points' if compared.percent else ''}",
            lambda row: _ends(compared, [float(pair["estimate"]) for pair in row[1]], plus=True),
        ),
        number("first better", lambda row: sum(pair["better"] == pair["first"] for pair in row[1])),
        number("second better", lambda row: sum(pair["better"] == pair["second"] for pair in row[1])),
        *(number(kind, partial(count, kind=kind)) for kind in ("not significant", "refused")),
    ]
    single = [
        label("first − second", lambda row: f"{row['first']} − {row['second']}"),
        words("verdict", lambda row: row["verdict"]),
        *(amount("difference", "estimate", unit(compared), plus=True), interval("interval", unit(compared), plus=True)),
        Column(f"p, {ADJUSTED[study.question.adjustment]}", lambda row: p_cell(row["p_adjusted"])),
    ]
    single[1:] = [replace(column, group=_HEADS[study.question.test]) for column in single[1:]]
    single += _beside_columns(study, compared)
    about = f"pairs of methods at equal settings of {', '.join(compared.axes)}; {len(frame)} declared pairs, adjusted together "
    about += f"({ADJUSTED[study.question.adjustment]}); a difference ranges over the settings"
    shown = framed(_by_methods(compared, frame), columns, caption(compared, about))
    return join([shown, folded(f"All {len(frame)} pairs", framed(frame, single))])


def _verdict_cell(row: Mapping[str, Any]) -> Fragment:
    """Show the verdict, with the reason for a refusal if the row continues with the other test."""
    if row["refused"] and not row["beside_refused"]:
        return element("td", _verdict(row), element("br"), element("span", row["refused"], class_="quiet"), class_="long")
    return element("td", _verdict(row), class_="nowrap")


def _verdict(row: Mapping[str, Any]) -> Fragment:
    """A note if ranks and means point in different directions."""
    shown = badge(row["verdict"].partition(",")[0], _BADGES[_kind(str(row["verdict"]))])
    turned = row["better"] and row["estimate"] * row["g"] < 0.0
    return (
        join([shown, element("br"), element("span", "by ranks; the means differ in the opposite direction", class_="quiet")])
        if turned
        else shown
    )


def _way(row: Mapping[str, Any]) -> str:
    """The test of a pair, as text."""
    each = f", {row['averaged']} cells in each" if row["averaged"] != "1" else ""
    interval = {"t": "Student's t", "signed ranks": "from the Walsh averages"}[row["interval"]]
    interval += "; difference: the Hodges-Lehmann estimate, which is their median" if row["interval"] == "signed ranks" else ""
    over = "crossed orders and seeds" if row["unit"] == "order × seed" else f"{row['unit']}s"
    return f"{row['test']} over {over}{each}; interval: {interval}; g in units of the {row['standardiser']}"


def _effect(row: Mapping[str, Any]) -> Fragment:
    if row["g"] != row["g"]:
        return number_cell(None)
    if abs(row["g"]) >= _LARGEST_EFFECT:
        return element("td", "larger than can be shown", class_="quiet")
    ends = element("span", f" [{number_text(row['g_low'], 1)}, {number_text(row['g_high'], 1)}]", class_="sd")
    return exact_cell(number_text(row["g"], 2, plus=True), ends, value=row["g"], low=row["g_low"], high=row["g_high"])


_LARGEST_EFFECT = 1000.0
_BADGES = {"significant": "good", "not significant": "plain", "refused": "note"}
"""The style of a badge by kind of verdict."""


def _kind(verdict: str) -> str:
    return {"refused": "refused", stats.NO_DIFFERENCE: "not significant"}.get(verdict, "significant")


def intervals(study: Study) -> Gallery | Fragment:
    """Plot all differences with their intervals and the smallest interesting difference, in one figure per scenario."""
    fitting = [
        (compared, tests)
        for compared, tests in _fit(study, lambda compared: compared.tests)
        if not compared.axes or len(tests) <= _MAX_PAIRS
    ]
    if not fitting and any(compared.axes for compared in study.comparisons):
        return empty(f"Sweeps with more than {_MAX_PAIRS} pairs are not plotted; the tables above show the differences.")
    pictures = [_interval_picture(study, compared, tests) for compared, tests in fitting]
    return Gallery(tuple(pictures)) if pictures else empty("No scenario has two methods with a value.")


def _interval_picture(study: Study, compared: Comparison, frame: pd.DataFrame) -> Any:
    shown = frame.assign(significant=frame["verdict"].map(_kind) == "significant")
    arrow = "→" if compared.higher_is_better else "←"
    xlabel = f"difference in {_label(study)}{', points' if compared.percent else ''} ({arrow} first is better)"

    draw = partial(difference_figure, shown, title=compared.name, xlabel=xlabel, scale=compared.scale, smallest=study.question.smallest)
    differences = "; ".join(f"{row['first']} minus {row['second']}: {_difference(compared, row)}" for row in as_rows(shown))
    below = f"{percent_text(1 - study.question.alpha)} intervals, not adjusted; shaded: less than "
    below += amount_text(study.question.smallest, compared.percent)
    return picture(draw, f"Differences between methods in {compared.name}. {differences}", below)


def _difference(compared: Comparison, row: Mapping[str, Any]) -> str:
    if row["refused"]:
        return "refused"
    return f"{unit_text(compared, row['estimate'])} ({range_text(compared, row['low'], row['high'])}), {_kind(str(row['verdict']))}"


# --- all methods at once -----------------------------------------------------------------------------------------------------------


def ranks(study: Study) -> Fragment:
    """Tabulate Friedman's test and the critical difference for every scenario, or the reason for a refusal."""
    columns = [
        *(label("scenario", lambda row: row[0].name), number("methods", lambda row: len(row[1].average_ranks))),
        *(number("blocks", lambda row: row[1].n_blocks), number("χ²", lambda row: row[1].statistic, 2)),
        Column("p", lambda row: p_cell(row[1].p)),
        number("critical difference", lambda row: row[1].critical_difference, 2),
        words("verdict", lambda row: _differing(*row), "nowrap"),
    ]
    if (refused := refused_alike(result for _, result in _tried(study, comparison.friedman))) is not None:
        return refused
    about = f"Friedman's test on the ranks within blocks, and Nemenyi's critical difference at α = {study.question.alpha:g}. Blocks are "
    about += (
        "orders with separate seeds, splits, or seeds of one data set; blocks that share seeds are refused. A significant result holds for "
    )
    about += "this data set: the unit for 'method A beats B' is the data set."
    return framed(_tried(study, comparison.friedman), columns, about, none=NOTHING_DONE, refused=_unfit)


def _unfit(row: tuple[Comparison, Any]) -> tuple[int, str] | None:
    return (1, f"refused: {row[1]}") if isinstance(row[1], stats.Refused) else None


def _differing(compared: Comparison, test: stats.Friedman) -> str:
    if not test.separates:
        return "no significant difference"
    upper = test.nemenyi.to_numpy()[np.triu_indices(len(test.nemenyi), 1)]
    only = ", in this one order only" if compared.block == "seed" and compared.cells["order"].nunique() == 1 else ""
    return f"{int((upper < test.alpha).sum())} of {upper.size} pairs differ{only}"


def rank_diagrams(study: Study) -> Gallery | Fragment:
    """Draw one critical-difference diagram per scenario with enough data."""
    pictures = []
    for compared, test in _fit(study, comparison.friedman):
        averages = "; ".join(f"{name} {rank:.2f}" for name, rank in test.average_ranks.sort_values().items())
        bar = f"A bar joins methods that do not differ significantly (Nemenyi, α = {test.alpha:g})"
        bar = bar if test.separates else "Friedman's test finds no significant difference: one bar joins all"
        draw = partial(rank_figure, test, title=compared.name, order=study.methods)
        pictures.append(picture(draw, f"Average ranks in {compared.name}: {averages}. {bar}.", bar))
    return Gallery(tuple(pictures)) if pictures else empty("No scenario allows Friedman's test: the table above gives the reasons.")


def rank_spreads(study: Study) -> Gallery | Fragment:
    """Plot the rank of every method within each block, with quartiles and mean, in one figure per scenario with enough data."""
    pictures = []
    for compared, table in _fit(study, comparison.block_ranks):
        rows = [(str(method), table.loc[method].to_numpy(dtype=np.float64)) for method in table.mean(axis=1).sort_values().index]
        pictures.append(_box_picture(study, compared, rows, "rank, 1 = best", f"a point per {compared.block}", is_count=True))
    return Gallery(tuple(pictures)) if pictures else empty("No scenario allows ranks within blocks.")


def components(study: Study) -> Fragment:
    """Tabulate the variance components of every scenario as standard deviations and shares, or the reason for a refusal."""
    fitted = [(compared.name, result, compared.percent) for compared, result in _tried(study, comparison.components)]
    about = f"Random effects on {_label(study)}, in points for fractions; methods are fixed effects, orders and seeds are crossed."
    return components_table(fitted, about) if fitted else empty(NOTHING_DONE)


# --- power -------------------------------------------------------------------------------------------------------------------------


def power(study: Study) -> Fragment:
    """Tabulate, per scenario, the detectable differences and the number of units needed for the smallest interesting difference."""
    return _tables(study, comparison.needs, _power_table)


def _power_table(study: Study, compared: Comparison, frame: pd.DataFrame) -> Fragment:
    if compared.axes and len(frame) > _MAX_PAIRS:
        return _power_of_sweeps(compared, frame)
    question, crossed = study.question, " × " in compared.unit
    over = f"{compared.unit.partition(' ')[0]}s"
    seeds = f" with {compared.design.values.shape[1]} seeds" if crossed and isinstance(compared.design, stats.Layout) else ""
    columns = [
        *(label("pair", lambda row: f"{row['first']} − {row['second']}"), number("values", "n")),
        *(amount("std", "std", unit(compared, 2)), Column("can find", lambda row: detectable_cell(compared, row["detectable"]))),
        number(f"{over} needed for {amount_text(question.smallest, compared.percent)}{seeds}", "needed"),
        number(f"{over} needed, cautious", "needed_bound"),
    ]

    def unknown(row: Mapping[str, Any]) -> tuple[int, str] | None:
        if not row["refused"]:
            return None
        return (4, row["refused"]) if row["std"] == row["std"] else (1, f"refused: {row['refused']}")

    known = frame[frame["detectable"].notna()]
    about = f"{_power_sentence(compared, known)}; " if len(known) else ""
    about += f"power {percent_text(question.wanted)}, two-sided level α/{len(frame)} = {question.alpha / len(frame):.2g} per pair"
    if crossed:
        about += "; std: of the difference in one cell, over orders and seeds"
    else:
        about += f"; std: of paired differences between {over} if shared, else within methods; cautious: with its 80% upper bound"
    return framed(frame, columns, caption(compared, about), refused=unknown)


def _power_of_sweeps(compared: Comparison, frame: pd.DataFrame) -> Fragment:
    """A row per pair of methods: the differences that can and cannot be detected at its settings."""
    columns = [
        *(label("pair", lambda row: row[0]), number("settings", lambda row: len(row[1]))),
        Column("can find", lambda row: _ends(compared, [v for pair in row[1] if showable(compared, v := float(pair["detectable"]))])),
        number("refused", lambda row: sum(bool(pair["refused"]) for pair in row[1])),
    ]
    known = frame[frame["detectable"].notna()]
    about = f"{_power_sentence(compared, known)}; " if len(known) else ""
    about += (
        f"power {percent_text(compared.question.wanted)}, over the settings that both methods have; two-sided level α/{len(frame)} per pair"
    )
    return framed(_by_methods(compared, frame), columns, caption(compared, about))


def _power_sentence(compared: Comparison, known: pd.DataFrame) -> str:
    """The detectable difference of a comparison in one sentence."""
    shown = known["detectable"][known["detectable"].map(partial(showable, compared)).astype(bool)]
    finds = " to ".join(unit_text(compared, value) for value in sorted({shown.min(), shown.max()}))
    text = f"these records can detect differences of {finds}{' points' if compared.percent else ''}"
    if len(shown) < len(known):
        text = f"{text} in {len(shown)} of {len(known)} pairs" if len(shown) else "these records cannot detect any difference"
    numbers = known["needed"].dropna()
    if numbers.empty:
        return text
    needs = " to ".join(f"{n:.0f}" for n in sorted({numbers.min(), numbers.max()}))
    return f"{text}; {amount_text(compared.question.smallest, compared.percent)} needs {needs} {compared.unit.partition(' ')[0]}s"


def plans(study: Study) -> Fragment:
    """Tabulate how many orders are needed to detect the smallest interesting difference, by number of seeds. Use it to plan the next
    campaign.
    """
    tried, rows = _tried(study, comparison.plans), list[tuple[Comparison, Any]]()
    if (refused := refused_alike(result for _, result in tried)) is not None:
        return refused
    for compared, result in tried:
        rows += [(compared, result)] if isinstance(result, stats.Refused) else [(compared, row) for row in as_rows(result)]
    columns = [
        *(label("scenario", lambda row: row[0].name), number("seeds", lambda row: row[1]["seeds"])),
        amount("std of a difference", lambda row: row[1]["std"], lambda row: unit(row[0], 2)),
        *(number("orders needed", lambda row: row[1]["orders"]), number("cells per method", lambda row: row[1]["cells"])),
    ]

    def unknown(row: tuple[Comparison, Any]) -> tuple[int, str] | None:
        if isinstance(row[1], stats.Refused) or not row[1]["refused"]:
            return _unfit(row)
        return 3, f"refused: {row[1]['refused']}"

    about = "From the variance components, with orders crossed with seeds; std: of the difference between two methods in one cell. "
    about += "If all orders are run, they are the population, and only the number of seeds is planned."
    return framed(rows, columns, about, none=NOTHING_DONE, refused=unknown)


# --- the rest ----------------------------------------------------------------------------------------------------------------------


def _measured(study: Study, compared: Comparison) -> str:
    return f"{_label(study)}{', %' if compared.percent else ''}"


def _label(study: Study) -> str:
    return study.spec.title


# Figures of comparisons: differences with their intervals, and average ranks with their critical difference (drawn by scikit-posthocs).


def difference_figure(frame: pd.DataFrame, theme: Theme, *, title: str, xlabel: str, scale: float, smallest: float) -> Figure:
    """Plot the difference and the interval of each pair in one row. The point is filled if the test is significant, otherwise hollow.

    Args:
        frame: columns first, second, estimate, low, high (NaN where refused), significant (bool).
        scale: factor from stored to displayed values.
        smallest: the smallest interesting difference in displayed units; the band between its negative and itself is shaded.
    """
    n, names = len(frame), [f"{a} − {b}" for a, b in zip(frame["first"], frame["second"], strict=True)]
    left, inner, row, lines = 0.25 + 0.075 * max(map(len, names)), 3.6, 0.27, wrapped(title, 4.6, 10.5)
    above, below = 0.24 + 0.19 * len(lines), 0.74
    width, height = left + inner + 0.2, row * n + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, inner / width, row * n / height))
    y = np.arange(n)[::-1]
    values = {name: scale * frame[name].to_numpy(dtype=np.float64) for name in ("estimate", "low", "high")}
    axes.axvspan(-smallest, smallest, color=theme.rule, alpha=0.45, linewidth=0)
    axes.axvline(0, color=theme.quiet, linewidth=1)
    known, significant = np.isfinite(values["estimate"]), frame["significant"].to_numpy(dtype=bool)
    for rows, look in ((known & significant, _FILLED), (known & ~significant, _HOLLOW)):
        colour = theme.lines[0] if look is _FILLED else theme.quiet
        axes.hlines(y[rows], values["low"][rows], values["high"][rows], color=colour, linewidth=1.6)
        fill = colour if look is _FILLED else theme.ground
        axes.plot(values["estimate"][rows], y[rows], linestyle="none", color=colour, markerfacecolor=fill, **look)
    for place in y[~known]:
        axes.text(0, place, "refused", ha="center", va="center", fontsize=8, style="italic", color=theme.quiet)
    ends = np.concatenate([values["low"][known], values["high"][known], [1.6 * smallest, -1.6 * smallest]])
    axes.set_xlim(ends.min() - 0.05 * np.ptp(ends), ends.max() + 0.05 * np.ptp(ends))
    axes.set_ylim(-0.6, n - 0.4)
    axes.set_yticks(y, names)
    axes.set_xlabel(xlabel)
    plain_axes(axes, theme, "x")
    row_titles(axes, theme)
    headline(figure, lines, theme)
    legend_entries = [("significant", theme.lines[0], theme.lines[0], _FILLED), ("not significant", theme.quiet, theme.ground, _HOLLOW)]
    handles = [Line2D([], [], color=colour, markerfacecolor=fill, label=label, **look) for label, colour, fill, look in legend_entries]
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 0.0), ncols=2, frameon=False, fontsize=9)
    return figure


_FILLED: dict[str, Any] = {"marker": "o", "markersize": 6.0, "markeredgewidth": 1.4}
_HOLLOW: dict[str, Any] = {"marker": "s", "markersize": 5.2, "markeredgewidth": 1.4}


_MARGIN = 0.06
"""The space between the outermost ranks and the names, as a share of the scale."""


def rank_figure(test: Friedman, theme: Theme, *, title: str, order: Sequence[str]) -> Figure:
    """Plot average ranks on a line, with the best on the left. A bar joins methods that do not differ significantly (Nemenyi).

    If Friedman's test finds no significant difference, pairs are not examined and one bar joins all.

    Args:
        order: every method of the study.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from scikit_posthocs import critical_difference_diagram

    ranks, n = test.average_ranks, len(test.average_ranks)
    together = pd.DataFrame(1.0, index=ranks.index, columns=ranks.index)
    names = [str(name) for name in ranks.index]
    inner, lines = max(2.6, 0.42 * n), [] if theme.width else wrapped(title, 4.6, 10.5)
    beside = (0.5 + 0.066 * max(map(len, names))) if theme.width else (0.72 + 0.078 * max(map(len, names)))
    beside += _MARGIN * inner
    inner = max(1.0, theme.width - 2 * beside) if theme.width else inner
    above, rows = (0.62 if lines or test.separates else 0.3) + 0.19 * len(lines), (n + 1) // 2
    width, height = inner + 2 * beside, above + 0.24 * (rows + 3) + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((beside / width, 0.1 / height, inner / width, (height - above - 0.1) / height))
    drawn = critical_difference_diagram(
        ranks,
        test.nemenyi if test.separates else together,
        alpha=test.alpha,
        ax=axes,
        label_fmt_left="{label} ({rank:.2f})\u00a0",
        label_fmt_right="\u00a0({rank:.2f}) {label}",
        label_props={"fontsize": text_points(theme)},
        marker_props={"marker": "o", "s": 26, "clip_on": False},
        elbow_props={"linewidth": 1.2, "clip_on": False},
        crossbar_props={"color": theme.ink, "linewidth": 3.0, "solid_capstyle": "butt", "clip_on": False},
        color_palette={name: style_of(name, order, theme)["color"] for name in names},
        text_h_margin=_MARGIN * (n - 1),
    )
    for (bar,) in drawn["crossbars"]:  # its points come from a set, in an order that is another in every process
        bar.set_xdata(sorted(bar.get_xdata()))
    axes.set_xlim(1, n)
    axes.set_ylim(-(len(drawn["crossbars"]) + rows + 1.2), 0)
    axes.xaxis.set_major_locator(MultipleLocator(1))
    axes.tick_params(axis="x", length=3, color=theme.quiet)
    axes.spines["top"].set_color(theme.quiet)
    if test.separates:
        _distance(figure, axes, test, theme)
    headline(figure, lines, theme)
    return figure


def _distance(figure: Figure, axes: Axes, test: Friedman, theme: Theme) -> None:
    """Draw the critical difference as a length above the scale."""
    place = axes.get_position()
    length = place.width * test.critical_difference / (len(test.average_ranks) - 1)
    up = place.y1 + 0.34 / figure.get_size_inches()[1]
    tick = 0.04 / figure.get_size_inches()[1]
    ends = [((end, end), (up - tick, up + tick)) for end in (place.x0, place.x0 + length)]
    for x, y in (((place.x0, place.x0 + length), (up, up)), *ends):
        figure.add_artist(Line2D(x, y, color=theme.ink, linewidth=1.6))
    length_label = f"CD = {test.critical_difference:.2f}"
    figure.text(
        place.x0 + length + 0.08 / figure.get_size_inches()[0], up, length_label, ha="left", va="center", fontsize=9, color=theme.ink
    )
