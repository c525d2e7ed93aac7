"""The page that compares methods. It formats what :mod:`cglsuite.reports.studies.comparison.compute` computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cglsuite import stats
from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.components import components_table
from cglsuite.reports.kit.htmltable import definition_list, empty, exact_cell, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.pictures import Gallery, Theme, picture
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.kit.statistical import box_figure
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.overview import NOTHING_DONE
from cglsuite.reports.results.overview import overview as campaign_overview
from cglsuite.reports.results.tuning import note as tuning_note
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison.cells import amount, caption, percent_text, range_text, refused, unit_cell, unit_text
from cglsuite.reports.studies.comparison.compute import Comparison, Study
from cglsuite.reports.studies.comparison.figures import difference_figure, rank_figure
from cglsuite.reports.studies.comparison.message import ADJUSTED, key_results

if TYPE_CHECKING:
    import pandas as pd

    from cglsuite.reports.results.runs import Facts

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
    "provenance",
    "rank_diagrams",
    "rank_spreads",
    "ranks",
    "replication",
]

# --- what is asked, and of what ----------------------------------------------------------------------------------------------------


def overview(study: Study) -> Fragment:
    """The campaign, what its tests found, and the question they answer."""
    question = definition_list(_question(study).items())
    return join([campaign_overview(study.results, key_results(study)), element("h3", "What is asked"), question])


def _question(study: Study) -> dict[str, str]:
    asked, spec = study.question, study.spec
    better = "higher" if spec.direction == "up" else "lower"
    family = f"every other method against {asked.against}" if asked.against else "all pairs of methods"
    percent = any(one.percent for one in study.comparisons)
    return {
        "metric": f"{spec.label or spec.name} ({spec.name}): {spec.summary}; {better} is better",
        "family": f"{family} per scenario and backbone; p values adjusted over the family ({ADJUSTED[asked.adjustment]}), controlling "
        + _BOUNDED[asked.adjustment],
        "test": _TESTS[asked.test],
        "level": f"α = {asked.alpha:g}; {percent_text(1 - asked.alpha)} intervals, not adjusted",
        "smallest interesting difference": f"{amount(asked.smallest, percent)}, at a power of {percent_text(asked.wanted)}",
    }


_BOUNDED = {
    "holm": "the family-wise error rate",
    "benjamini-hochberg": "the false discovery rate",
}
_TESTS = {
    "t": "paired t-test over units that both methods share, Welch's t-test if they share none, quasi-F if orders are crossed with seeds",
    "wilcoxon": "Wilcoxon's signed-rank test over units that both methods share",
}


def replication(study: Study) -> Fragment:
    """What tests are over in each scenario, and what claims are conditional on."""
    if not study.comparisons:
        return empty(NOTHING_DONE)
    rows, remarked = [], any(_warned(one) for one in study.comparisons)
    for one in study.comparisons:
        counts = {level: one.cells[level].nunique() for level in stats.LEVELS}
        texts = [_design(one), *([_warned(one)] if remarked else [])]
        listed = [element("td", text, class_="long") for text in texts]
        rows.append([row_head(one.name), *(number_cell(n, 0) for n in (len(one.methods), *counts.values())), *listed])
    head = [head_cell("scenario", "name"), *(head_cell(text, "number") for text in ("methods", *(f"{level}s" for level in stats.LEVELS)))]
    return table([*head, head_cell("tests are over"), *([head_cell("remark")] if remarked else [])], rows)


def _design(one: Comparison) -> str:
    if not len(one.cells):
        return "–"
    return f"refused: {one.design}" if isinstance(one.design, stats.Refused) else one.design.description


def _warned(one: Comparison) -> str:
    if one.absent and len(set(one.lacking.values())) == 1:
        warnings = [f"all methods: {next(iter(one.lacking.values()))} records without a value"]
    else:
        warnings = [f"{method}: {n} records without a value" for method, n in one.lacking.items()]
    design = one.design
    if isinstance(design, stats.Refused):
        return "; ".join(warnings)
    if design.population:
        warnings.insert(0, f"The orders are the population: {design.population} were run, and their effect is no error.")
    elif one.orders_in_all and "order" in design.factors:
        n = one.cells["order"].nunique()
        warnings.insert(0, f"{n} of all {one.orders_in_all} orders were run; tests treat them as drawn from many.")
    given = " and ".join(text for name, text in _GIVEN.items() if name in design.given)
    if given:
        warnings.insert(0, f"Every claim is about {given} only.")
    return "; ".join(warnings)


_GIVEN = {"order": "this one order", "seed": "this one seed"}


def means(study: Study) -> Fragment:
    """One table per scenario: every method's mean over units, with spread and interval."""
    level = 1.0 - study.question.alpha
    parts = []
    for one in study.comparisons:
        frame = comparison.means(one)
        if frame.empty:
            parts.append(refused(one, one.no_value))
            continue
        parts.append(_means_table(study, one, frame, level))
    return join(parts) if parts else empty(NOTHING_DONE)


def _means_table(study: Study, one: Comparison, frame: pd.DataFrame, level: float) -> Fragment:
    head = [head_cell("method", "name"), head_cell("over"), head_cell("cells", "number")]
    head += [head_cell(f"{_label(study)}{', %' if one.percent else ''}", "number"), head_cell("std", "number")]
    head.append(head_cell(f"{percent_text(level)} interval of the mean", "number"))
    rows = []
    for row in as_rows(frame):
        cells = [
            row_head(row["method"]),
            element("td", row["replicates"] or "–", class_="nowrap"),
            number_cell(row["cells"], 0),
        ]
        cells += [unit_cell(one, row["mean"]), unit_cell(one, row["std"])]
        if row["low"] == row["low"]:
            text = f"{unit_text(one, row['low'])} to {unit_text(one, row['high'])}"
            cells.append(exact_cell(f"{text} ", element("span", row["interval"], class_="sd"), low=row["low"], high=row["high"]))
        else:
            cells.append(element("td", f"refused: {row['interval']}", class_="quiet long"))
        rows.append(cells)
    about = f"{one.performance}; interval: Student's t, BCa bootstrap from ten units on, quasi-F if crossed. "
    groups = {g.label: g.records for g in study.results.groups if (g.preset, g.backbone) == (one.preset, one.backbone)}
    return table(head, rows, caption(one, about + tuning_note(study.results.searches, groups)))


def distributions(study: Study) -> Gallery | Fragment:
    """One figure per scenario: every cell's value of each method as a point, with quartiles and mean."""
    pictures = []
    for one in study.comparisons:
        rows = [(method, one.scale * part["value"].to_numpy(dtype=np.float64)) for method, part in one.cells.groupby("method", sort=False)]
        if rows:
            pictures.append(_box_picture(study, one, rows, f"{_label(study)}{', %' if one.percent else ''}", "a point per cell"))
    return Gallery(tuple(pictures)) if pictures else empty("No method has a value." if study.comparisons else NOTHING_DONE)


def _box_picture(study: Study, one: Comparison, rows: list[tuple[Any, Any]], xlabel: str, about: str, *, whole: bool = False) -> Any:
    digits = 1 if one.percent or whole else 4

    def draw(theme: Theme) -> Any:
        return box_figure(rows, theme, title=one.name, xlabel=xlabel, order=study.methods, whole=whole, digits=digits)

    said = "; ".join(
        f"{name} {values.min():.{digits}f} to {values.max():.{digits}f}, mean {values.mean():.{digits}f}" for name, values in rows
    )
    return picture(draw, f"{xlabel} in {one.name}: {said}.", f"{about}; box: quartiles and median; tall stroke: mean")


# --- pairs -------------------------------------------------------------------------------------------------------------------------


def differences(study: Study) -> Fragment:
    """One table per scenario: the declared family of tests, with effect sizes, verdicts, and refusals in words."""
    parts = []
    for one in study.comparisons:
        try:
            frame = comparison.pairs(one)
        except stats.Refused as refusal:
            parts.append(refused(one, str(refusal)))
            continue
        parts.append(_pairs_table(study, one, frame))
    return join(parts) if parts else empty(NOTHING_DONE)


def _pairs_table(study: Study, one: Comparison, frame: pd.DataFrame) -> Fragment:
    booted = bool(frame["boot_low"].notna().any())
    level = percent_text(1 - study.question.alpha)
    head = [head_cell("first − second", "name"), head_cell("verdict"), head_cell("over")]
    head += [
        head_cell(f"difference in {_label(study)}{', points' if one.percent else ''}", "number"),
        head_cell(f"{level} interval", "number"),
    ]
    head += [head_cell(f"{level} interval, bootstrap (BCa)", "number")] if booted else []
    head += [head_cell(text, "number") for text in ("statistic", "df", "p", f"p, {ADJUSTED[study.question.adjustment]}", "Hedges' g")]
    ways = list(dict.fromkeys(_way(row) for row in as_rows(frame) if not row["refused"]))
    head += [head_cell("test")] if len(ways) > 1 else []
    rows = [_pair_row(one, row, booted, len(head), several=len(ways) > 1) for row in as_rows(frame)]
    counts = frame["verdict"].map(_kind).value_counts()
    several = f"{len(frame)} declared pair{'s' if len(frame) != 1 else ''}"
    verdicts = "; ".join(f"{counts[kind]} {kind}" for kind in _BADGES if kind in counts)
    verdicts += f". {ways[0][0].upper()}{ways[0][1:]}" if len(ways) == 1 else ""
    given = next((text for text in frame["given"] if text), "")
    if given:
        verdicts += f". All verdicts hold {stats.condition_of(given)} only"
    population = next((text for text in frame["population"] if text), "")
    if population:
        verdicts += f". The orders are the population ({population} were run): the order term is no error"
    return table(head, rows, caption(one, f"{several}: {verdicts}"))


def _way(row: Mapping[str, Any]) -> str:
    """The test of a pair, as text."""
    each = f", {row['averaged']} cells in each" if row["averaged"] != "1" else ""
    interval = {"t": "Student's t", "BCa": "BCa bootstrap"}[row["interval"]]
    over = "crossed orders and seeds" if row["unit"] == "order × seed" else f"{row['unit']}s"
    return f"{row['test']} over {over}{each}; interval: {interval}; g in units of the {row['standardiser']}"


def _pair_row(one: Comparison, row: Mapping[str, Any], booted: bool, width: int, *, several: bool) -> list[Fragment]:
    name, kind = row_head(f"{row['first']} − {row['second']}"), _kind(str(row["verdict"]))
    verdict = row["verdict"].partition(",")[0]
    badge = element("td", element("span", verdict, class_=f"badge {_BADGES[kind]}"), class_="nowrap")
    if row["refused"]:
        return [name, badge, element("td", str(row["refused"]), class_="quiet long", colspan=width - 2)]
    low, high = row["low"], row["high"]
    cells = [
        name,
        badge,
        element("td", row["replicates"], class_="nowrap"),
        unit_cell(one, row["estimate"], plus=True),
    ]
    cells.append(exact_cell(range_text(one, low, high), low=low, high=high))
    if booted:
        given = row["boot_low"] == row["boot_low"]
        ends = {"low": row["boot_low"], "high": row["boot_high"]}
        cells.append(exact_cell(range_text(one, *ends.values()), **ends) if given else number_cell(None))
    cells += [number_cell(row["statistic"], 2), number_cell(row["df"], 1), _p_cell(row["p"]), _p_cell(row["p_adjusted"])]
    effect = element("span", f" [{number_text(row['g_low'], 1)}, {number_text(row['g_high'], 1)}]", class_="sd")
    cells.append(exact_cell(number_text(row["g"], 2, plus=True), effect, value=row["g"], low=row["g_low"], high=row["g_high"]))
    return [*cells, element("td", _way(row), class_="quiet long")] if several else cells


_BADGES = {"significant": "good", "not significant": "plain", "refused": "note"}
"""The style of a badge by kind of verdict."""


def _kind(verdict: str) -> str:
    return {"refused": "refused", stats.NO_DIFFERENCE: "not significant"}.get(verdict, "significant")


def _p_cell(value: float) -> Fragment:
    text = "< 0.001" if value < 0.001 else f"{value:.3f}"
    return element("td", text, class_="number", data_value=repr(float(value)))


def intervals(study: Study) -> Gallery | Fragment:
    """One figure per scenario: all differences with their intervals, and the smallest interesting difference."""
    pictures = []
    for one in study.comparisons:
        try:
            frame = one.tests
        except stats.Refused:
            continue  # the table of differences shows this refusal
        pictures.append(_interval_picture(study, one, frame))
    return Gallery(tuple(pictures)) if pictures else empty("No scenario has two methods with a value.")


def _interval_picture(study: Study, one: Comparison, frame: pd.DataFrame) -> Any:
    shown = frame.assign(significant=frame["verdict"].map(_kind) == "significant")
    xlabel = f"difference in {_label(study)}{', points' if one.percent else ''} ({'→' if one.higher_is_better else '←'} first is better)"

    def draw(theme: Theme) -> Any:
        return difference_figure(shown, theme, title=one.name, xlabel=xlabel, scale=one.scale, smallest=study.question.smallest)

    differences = "; ".join(f"{row['first']} minus {row['second']}: {_difference(one, row)}" for row in as_rows(shown))
    below = f"{percent_text(1 - study.question.alpha)} intervals, not adjusted; shaded: less than "
    below += amount(study.question.smallest, one.percent)
    return picture(draw, f"Differences between methods in {one.name}. {differences}", below)


def _difference(one: Comparison, row: Mapping[str, Any]) -> str:
    if row["refused"]:
        return "refused"
    return f"{unit_text(one, row['estimate'])} ({range_text(one, row['low'], row['high'])}), {_kind(str(row['verdict']))}"


# --- all methods at once -----------------------------------------------------------------------------------------------------------


def ranks(study: Study) -> Fragment:
    """Friedman's test and the critical difference of every scenario in one table, or the reason for a refusal."""
    rows = []
    for one in study.comparisons:
        try:
            test = comparison.friedman(one)
        except stats.Refused as refusal:
            rows.append([row_head(one.name), element("td", f"refused: {refusal}", class_="long quiet", colspan=6)])
            continue
        verdict = _differing(test) if test.separates else "no significant difference; pairs are not examined"
        cells = [number_cell(len(test.average_ranks), 0), number_cell(test.n_blocks, 0), number_cell(test.statistic, 2)]
        cells += [_p_cell(test.p), number_cell(test.critical_difference, 2), element("td", verdict, class_="nowrap")]
        rows.append([row_head(one.name), *cells])
    head = [head_cell("scenario", "name"), *(head_cell(text, "number") for text in ("methods", "blocks", "χ²", "p", "critical difference"))]
    about = f"Friedman's test on the ranks within blocks, and Nemenyi's critical difference at α = {study.question.alpha:g}. Both assume "
    about += (
        "independent blocks. The blocks here are orders, splits or seeds of one data set, which share its items and often their seeds: "
    )
    about += "a significant result is about these cells. The unit for 'method A beats B' is the data set."
    return table([*head, head_cell("verdict")], rows, about) if rows else empty(NOTHING_DONE)


def _differing(test: stats.Friedman) -> str:
    upper = test.nemenyi.to_numpy()[np.triu_indices(len(test.nemenyi), 1)]
    return f"ranks differ; {int((upper < test.alpha).sum())} of {upper.size} pairs differ significantly"


def rank_diagrams(study: Study) -> Gallery | Fragment:
    """One critical-difference diagram per scenario with enough data."""
    pictures = []
    for one in study.comparisons:
        try:
            test = comparison.friedman(one)
        except stats.Refused:
            continue  # the table of ranks shows this refusal

        def draw(theme: Theme, test: stats.Friedman = test, one: Comparison = one) -> Any:
            return rank_figure(test, theme, title=one.name, order=study.methods)

        averages = "; ".join(f"{name} {rank:.2f}" for name, rank in test.average_ranks.sort_values().items())
        bar = f"A bar joins methods that do not differ significantly (Nemenyi, α = {test.alpha:g})"
        bar = bar if test.separates else "Friedman's test finds no significant difference: one bar joins all"
        pictures.append(picture(draw, f"Average ranks in {one.name}: {averages}. {bar}.", bar))
    return Gallery(tuple(pictures)) if pictures else empty("No scenario allows Friedman's test: the table above gives the reasons.")


def rank_spreads(study: Study) -> Gallery | Fragment:
    """One figure per scenario with enough data: the rank of every method within each block as a point, with quartiles and mean."""
    pictures = []
    for one in study.comparisons:
        try:
            table = comparison.block_ranks(one)
        except stats.Refused:
            continue  # the table of ranks shows this refusal
        rows = [(str(method), table.loc[method].to_numpy(dtype=np.float64)) for method in table.mean(axis=1).sort_values().index]
        pictures.append(_box_picture(study, one, rows, "rank, 1 = best", f"a point per {one.block}", whole=True))
    return Gallery(tuple(pictures)) if pictures else empty("No scenario allows ranks within blocks: the table above gives the reasons.")


def components(study: Study) -> Fragment:
    """The components of every scenario as standard deviations and shares, or the reason for a refusal."""
    fitted: list[tuple[str, stats.VarianceComponents | stats.Refused, bool]] = []
    for one in study.comparisons:
        try:
            fitted.append((one.name, comparison.components(one), one.percent))
        except stats.Refused as refusal:
            fitted.append((one.name, refusal, one.percent))
    about = f"Random effects on {_label(study)}, in points for fractions; methods are fixed effects, orders and seeds are crossed."
    return components_table(fitted, about) if fitted else empty(NOTHING_DONE)


# --- power -------------------------------------------------------------------------------------------------------------------------


def power(study: Study) -> Fragment:
    """One table per scenario: detectable differences, and the number of units needed for the smallest interesting difference."""
    parts = []
    for one in study.comparisons:
        try:
            frame = comparison.needs(one)
        except stats.Refused as refusal:
            parts.append(refused(one, str(refusal)))
            continue
        parts.append(_power_table(study, one, frame))
    return join(parts) if parts else empty(NOTHING_DONE)


def _power_table(study: Study, one: Comparison, frame: pd.DataFrame) -> Fragment:
    asked, crossed = study.question, " × " in one.unit
    unit = one.unit.partition(" ")[0]
    seeds = f" with {one.design.values.shape[1]} seeds" if crossed and isinstance(one.design, stats.Layout) else ""
    head = [head_cell("pair", "name"), *(head_cell(text, "number") for text in ("values", "std", "can find"))]
    head += [
        head_cell(f"{unit}s needed for {amount(asked.smallest, one.percent)}{seeds}", "number"),
        head_cell(f"{unit}s needed, cautious", "number"),
    ]
    rows = []
    for row in as_rows(frame):
        name = row_head(f"{row['first']} − {row['second']}")
        if row["refused"] and row["std"] != row["std"]:
            rows.append([name, element("td", f"refused: {row['refused']}", class_="quiet long", colspan=len(head) - 1)])
            continue
        cells = [name, number_cell(row["n"], 0), unit_cell(one, row["std"], digits=2), unit_cell(one, row["detectable"])]
        if row["refused"]:
            rows.append([*cells, element("td", row["refused"], class_="quiet long", colspan=2)])
            continue
        rows.append([*cells, number_cell(row["needed"], 0), number_cell(row["needed_bound"], 0)])
    known = frame[frame["detectable"].notna()]
    about = f"{_power_sentence(one, known)}; " if len(known) else ""
    about += f"power {percent_text(asked.wanted)}, two-sided level α/{len(frame)} = {asked.alpha / len(frame):.2g} per pair"
    if crossed:
        about += "; std: of the difference in one cell, over orders and seeds"
    else:
        about += f"; std: of paired differences between {unit}s if shared, else within methods; cautious: with its 80 % upper bound"
    return table(head, rows, caption(one, about))


def _power_sentence(one: Comparison, known: pd.DataFrame) -> str:
    """The statement in one sentence."""
    finds = " to ".join(unit_text(one, value) for value in sorted({known["detectable"].min(), known["detectable"].max()}))
    text = f"these records can detect differences of {finds}{' points' if one.percent else ''}"
    numbers = known["needed"].dropna()
    if numbers.empty:
        return text
    needs = " to ".join(f"{n:.0f}" for n in sorted({numbers.min(), numbers.max()}))
    return f"{text}; {amount(one.question.smallest, one.percent)} needs {needs} {one.unit.partition(' ')[0]}s"


def plans(study: Study) -> Fragment:
    """Orders needed to detect the smallest interesting difference, by seeds crossed with them: for planning the next campaign."""
    rows: list[list[Fragment]] = []
    for one in study.comparisons:
        try:
            frame = comparison.plans(one)
        except stats.Refused as refusal:
            rows.append([row_head(one.name), element("td", f"refused: {refusal}", class_="quiet long", colspan=4)])
            continue
        for row in as_rows(frame):
            cells = [row_head(one.name), number_cell(row["seeds"], 0), unit_cell(one, row["std"], digits=2)]
            if row["refused"]:
                rows.append([*cells, element("td", f"refused: {row['refused']}", class_="quiet long", colspan=2)])
                continue
            rows.append([*cells, number_cell(row["orders"], 0), number_cell(row["cells"], 0)])
    head = [head_cell("scenario", "name"), *(head_cell(text, "number") for text in ("seeds", "std of a difference"))]
    head += [head_cell(text, "number") for text in ("orders needed", "cells per method")]
    about = "From the variance components, with orders crossed with seeds; std: of the difference of two methods in one cell. "
    about += "Where all orders are run, they are the population, and the plan is a number of seeds."
    return table(head, rows, about) if rows else empty(NOTHING_DONE)


# --- the rest ----------------------------------------------------------------------------------------------------------------------


def problems(study: Study) -> Fragment:
    """Every planned cell without a result, with its reason."""
    return show_runs.problems(study.results)


def provenance(study: Study) -> Facts:
    """Code and environment of the records, with lines for the page footer."""
    return show_runs.provenance(study.results)


def _label(study: Study) -> str:
    return study.spec.label or study.spec.name
