"""Tables and figures of a campaign's results, ready to display.

Functions here only format what :mod:`cglsuite.reports.results.tables` and :mod:`cglsuite.reports.results.published` compute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cglsuite.base.markup import Fragment, element, join
from cglsuite.campaigns.reference.values import ARTEFACT, paper_named
from cglsuite.cells.records.record import Record
from cglsuite.host import Catalogue
from cglsuite.reports.kit.figures import CHANCE, StreamAxis, curve_figure, legend_picture, matrix_figure, stream_matrix_figure
from cglsuite.reports.kit.pictures import Gallery, picture
from cglsuite.reports.kit.tables import Column, as_rows, definition_list, empty, folded, framed, interval, label, mean_std, number, words
from cglsuite.reports.kit.text import metric_words, verdict_badge
from cglsuite.reports.results import tables
from cglsuite.reports.results.measures import is_fraction, mean_chance, performance_name, performance_names, why_absent
from cglsuite.reports.results.published import compare, counted
from cglsuite.reports.results.results import Results, drawn
from cglsuite.reports.results.summary import NOTHING_DONE, heading, in_percent, performance_text
from cglsuite.reports.results.summary import progress as campaign_progress
from cglsuite.reports.studies.comparison import compute as comparison
from cglsuite.reports.studies.comparison import page as show_comparison
from cglsuite.reports.studies.comparison.compute import Question
from cglsuite.specs import METRICS
from cglsuite.stats import AGREEMENTS

_FOLD_ABOVE = 12
_MOST_PAIRS = 6


# --- results ---------------------------------------------------------------------------------------------------------------------


def published(results: Results) -> Fragment:
    """Compare our results with published ones: the difference, its interval, and a verdict (equivalent, different, undecided or none).

    Footnotes list known artefacts of published values, other remarks, and unit conversions of their standard deviations.
    """
    frame = compare(results)
    if frame.empty:
        return empty("No paper prints a value for these presets, methods and metrics (or a switch of the preset was overridden).")
    notes = _footnotes(frame)

    def metric(row: Mapping[str, Any]) -> Fragment:
        spec = results.metrics[row["metric"]]
        return element("td", f"{row['label']} ", element("code", spec.name), class_="name", title=spec.formula)

    def source(row: Mapping[str, Any]) -> Fragment:
        marks = ", ".join(map(str, sorted(notes.index(note) + 1 for note in itertools.chain(*_notes_of(row)))))
        return join([f"{row['paper']}, table {row['table']}", element("sup", f" {marks}") if marks else None])

    columns = [
        *(label("method", "method", "variant"), Column("metric", metric, "name"), mean_std("ours, %", _POINTS), number("n")),
        *(Column("published, %", _printed), number("difference", digits=1, plus=True), interval("90% interval", _POINTS, plus=True)),
        *(number("smallest margin", "smallest_margin", 1), Column("verdict", _verdict, None), words("source", source, "nowrap")),
    ]
    about = f"{_verdict_counts(frame)}; {_RULE}. {_spreads(frame)}"
    shown = framed(frame, columns, about, by=lambda row: results.preset_title(row["preset"]))
    return join([shown, element("ol", *(element("li", text) for text in notes), class_="footnotes")]) if notes else shown


_POINTS = (1, 1.0)
_RULE = (
    "difference = ours − published, in points; equivalent: its 90% interval lies within the margin (2 points, 3 for differences of "
    "performance); different: p ≤ 0.05 by Welch's test, Holm over the rows of a table; smallest margin: at which it is equivalent"
)


def _verdict_counts(frame: pd.DataFrame) -> str:
    """The number of rows per verdict; rows with known artefacts are counted separately."""
    known = counted(frame)
    counts, marked = known["verdict"].value_counts(), len(frame) - len(known)
    parts = [f"{counts[verdict]} {verdict}" for verdict in (*AGREEMENTS, "no verdict") if verdict in counts]
    text = f"Of {len(known)} means: {', '.join(parts)}" if parts else ""
    values = "published value is" if marked == 1 else "published values are"
    return "; ".join(filter(None, (text, f"{marked} {values} not counted, for the reasons in the footnotes" if marked else "")))


def _spreads(frame: pd.DataFrame) -> str:
    """What published standard deviations were computed over."""
    return " ".join(
        f"{name}'s standard deviations are assumed to be over {paper_named(name).spread}." for name in dict.fromkeys(frame["paper"])
    )


def _footnotes(frame: pd.DataFrame) -> list[str]:
    """Every footnote once: artefacts in the order of the rows, then other remarks, then units."""
    by_kind = zip(*map(_notes_of, as_rows(frame)), strict=True)
    return list(dict.fromkeys(note for of_rows in by_kind for notes in of_rows for note in notes))


def _notes_of(row: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """A row's footnotes: artefacts, other remarks, units."""

    def noted(*texts: str) -> list[str]:
        return [f"{row['paper']}: {text}." for text in texts if text]

    return noted(*row["footnotes"]), noted(*row["remarks"]), noted(row["unit_note"])


def _printed(row: Mapping[str, Any]) -> Fragment:
    return element("td", row["shown"].replace("-", "−"), class_="number", data_value=repr(float(row["published"])))


def _verdict(row: Mapping[str, Any]) -> Fragment:
    shown = "not comparable" if not row["comparable"] else "artefact" if row["verdict"] == ARTEFACT else ""
    return element("td", verdict_badge(row["verdict"], shown), title=row["reason"] or "; ".join(row["footnotes"]) or None)


# --- pairs -----------------------------------------------------------------------------------------------------------------------


def overview(results: Results, key: Fragment | None = None, test: str = "t") -> Fragment:
    """Show the campaign and its key results.

    Args:
        key: key results by the design's test. If another test was declared, its results replace them.
    """
    return heading(results, key if test == Question.test else comparison.key_results(comparison.study(results, Question(test=test))))


def progress(results: Results, test: str = "t") -> Fragment:
    """Show the campaign's progress and warnings, and (collapsed) the declared test with the digest of its question."""
    question = comparison.study(results, Question(test=test)).question
    declared = {"declared test": show_comparison.declared(question), "digest of this question": question.digest}
    return join([campaign_progress(results), folded("The declared test", definition_list(declared.items()))])


def grid(results: Results) -> Gallery | None:
    """Draw methods by scenarios as a heat map, or return ``None`` for fewer than three scenarios."""
    return show_comparison.grid(comparison.study(results).comparisons)


def learning_curves(results: Results) -> Gallery | None:
    """Plot average performance after every task, or return ``None`` if there are no task streams."""
    shown = curves(results)
    return shown if isinstance(shown, Gallery) else None


def differences(results: Results, test: str = "t") -> Fragment:
    """Tabulate every pair of methods with the declared test, which decides, and with the other test. Long tables are collapsed."""
    asked = comparison.study(results, Question(test=test))
    shown, n = show_comparison.differences(asked), sum(math.comb(len(compared.methods), 2) for compared in asked.comparisons)
    return shown if n <= _MOST_PAIRS else folded(f"{n} pairs of methods, by both tests", shown)


# --- figures ---------------------------------------------------------------------------------------------------------------------


def curves(results: Results, metric: str = "average_performance") -> Gallery | Fragment:
    """Plot ``metric`` after every task, one figure per preset and one line per method."""
    whole, (results, _) = results, drawn(results)
    frame = tables.curves(results, metric, all_results=whole)
    if frame.empty and any(group.task_free for group in results.groups):
        return empty("A task-free stream has no sequence of tasks. The notebook task_free_dynamics plots accuracy over its steps.")
    if frame.empty and METRICS[metric].reference and results.used:
        return empty(f"{metric_words(metric, '', False)} {why_absent(METRICS[metric], results.used[0])}.")
    if frame.empty:
        return empty("No finished cell has a value to plot.")
    frame = frame.assign(label=_labels(frame))
    order = list(dict.fromkeys(frame["label"]))

    presets = list(dict.fromkeys(frame["preset"]))
    guessed = {preset: _chance(results, str(preset), metric) for preset in presets}

    def chart(preset: str, part: pd.DataFrame) -> Any:
        percent, title = in_percent(results, preset), results.preset_title(preset)
        measure = performance_names(g.records[0] for g in results.groups if g.preset == preset)
        label = metric_words(metric, measure, percent)  # the name says the definition, a paper's label would not
        last = as_rows(part[part["task"] == part["task"].max()])
        ends = "; ".join(f"{row['label']} {(100.0 if percent else 1.0) * row['mean']:.1f}" for row in last)

        chance = guessed[preset]
        look: dict[str, Any] = {"title": title, "ylabel": label, "percent": percent, "chance": chance, "with_legend": len(presets) == 1}
        guessing = "" if chance is None else f"; {CHANCE} {100 * chance[-1]:.1f}"
        alt = f"{label} over tasks, {title}. After the last task: {ends}{guessing}"
        return picture(partial(curve_figure, part, order=order, **look), alt)

    pictures = [chart(str(preset), part) for preset, part in frame.groupby("preset", sort=False)]
    if len(presets) > 1:
        chances = any(chance is not None for chance in guessed.values())
        pictures.insert(0, legend_picture(order, order=order, chance=chances))
    return Gallery(tuple(pictures))


def _chance(results: Results, preset: str, metric: str) -> Any:
    """The chance level after each task, if defined."""
    records = [record for group in results.groups if group.preset == preset for record in group.records]
    return mean_chance(records) if metric == "average_performance" else None


def _labels(frame: pd.DataFrame) -> list[str]:
    """Method with its variant, and with the backbone if there are several."""
    several = frame["backbone"].nunique() > 1
    return [", ".join(filter(None, [row["method"], row["backbone"] if several else "", row["variant"]])) for row in as_rows(frame)]


def matrices(results: Results) -> Gallery | Fragment:
    """Draw the mean performance matrix of every preset and method as a heat map."""

    results, _ = drawn(results)
    pictures = []
    presets = list(dict.fromkeys(group.preset for group in results.groups))  # a preset's methods side by side
    for group, values in sorted(tables.mean_matrices(results), key=lambda pair: presets.index(pair[0].preset)):
        percent, n = in_percent(results, group.preset), len(group.records)
        last = ", ".join("–" if math.isnan(v) else f"{(100.0 if percent else 1.0) * v:.1f}" for v in values[-1])
        title, measured = results.preset_title(group.preset), performance_text(results, group.preset)
        alt = f"Mean performance matrix ({measured}) of {group.label} on {title} over {n:,} records. After the last task: {last}"
        stream = group.records[0].stream
        pictures.append(_matrix_picture(values, f"{group.label}, n = {n}", alt, percent, f"{title} – {measured}", stream))
    return Gallery(tuple(pictures)) if pictures else empty(NOTHING_DONE)


def matrix(record: Record) -> Gallery | Fragment:
    """Draw one record's performance matrix as a heat map."""

    if not record.done:
        return empty("No matrix: the cell did not finish.")
    measured = performance_name(record.scenario) + (" in percent" if is_fraction(record) else "")
    alt, title = f"Performance matrix ({measured}) of {record.label}", f"{record.label} – {measured}"
    return Gallery((_matrix_picture(record.performance(), str(record.cell["method"]), alt, is_fraction(record), title, record.stream),))


def _matrix_picture(values: Any, title: str, alt: str, percent: bool, group: str, stream: Mapping[str, Any]) -> Any:
    """A matrix as a picture. ``stream`` holds a record's stream facts; if not empty, rows are evaluations, shown along steps."""

    finite = values[np.isfinite(values)]
    bounds = (0.0, 1.0) if percent or not finite.size else (float(finite.min()), float(finite.max()))

    figure = partial(stream_matrix_figure, values, StreamAxis.of(stream, len(values))) if stream else partial(matrix_figure, values)
    return picture(partial(figure, title, percent=percent, bounds=bounds), alt, group=group)


# --- exploring -------------------------------------------------------------------------------------------------------------------


def names(catalogue: Catalogue, kind: str) -> Fragment:
    """List the entries of one kind in the catalogue, with their names, summaries and providers."""
    every = catalogue.entries(kind)
    columns = [
        label(kind, lambda entry: entry.name),
        words("what it is", lambda entry: entry.spec.summary, "long"),
        words("provided by", lambda entry: entry.provider, "quiet nowrap"),
    ]
    listed = framed(every, columns, none=f"No plugin provides a {kind}.")
    return listed if len(every) <= _FOLD_ABOVE else folded(f"{len(every)} {kind}s", listed)
