"""Key results of a comparison: what its declared tests found, in one sentence or two per scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cglsuite import stats
from cglsuite.base.markup import Fragment, element
from cglsuite.reports.kit.notices import key_box
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.studies.comparison.cells import unit_text
from cglsuite.reports.studies.comparison.compute import Comparison, Study, means

__all__ = ["ADJUSTED", "key_results", "sentences", "summary"]

_MOST_NAMED = 6
ADJUSTED = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg"}
"""Display names of the adjustments."""


def key_results(study: Study) -> Fragment | None:
    """A box with the message of every comparison that has a value; ``None`` if none has."""
    lines = [element("li", element("strong", one.name), ": ", " ".join(sentences(one))) for one in study.comparisons if one.methods]
    return key_box(lines) if lines else None


def sentences(one: Comparison) -> Iterator[str]:
    """The message of one comparison as plain text: how many pairs differ, which, by how much, and on what condition."""
    try:
        frame = one.tests
    except stats.Refused as refusal:
        yield f"Nothing is tested: {refusal}."
        return
    tested = [row for row in as_rows(frame) if not row["refused"]]
    if not tested:
        yield f"Nothing is tested: {next(str(row['refused']) for row in as_rows(frame))}."
        return
    significant = [row for row in tested if row["better"]]
    how = f"{ADJUSTED[one.question.adjustment]}, α = {one.question.alpha:g}"
    if not significant:
        yield f"None of {len(tested)} pairs of methods differs significantly ({how})."
    else:
        largest = sorted(significant, key=lambda row: -abs(float(row["estimate"])))
        named = "; ".join(_better(one, row) for row in largest[:_MOST_NAMED])
        more = f"; and {len(largest) - _MOST_NAMED} more" if len(largest) > _MOST_NAMED else ""
        yield f"{len(significant)} of {len(tested)} pairs of methods differ significantly ({how}): {named}{more}."
    if refused := len(frame) - len(tested):
        yield f"{refused} {'pair was' if refused == 1 else 'pairs were'} refused."
    if given := next((str(row["given"]) for row in tested if row["given"]), ""):
        yield f"This holds {stats.condition_of(given)} only."


def summary(one: Comparison) -> Iterator[str]:
    """A comparison as lines of text: its name, the mean of every method with its interval, and the message of its tests."""
    yield f"{one.name}: {one.question.metric}{' in %' if one.percent else ''}"
    rows = as_rows(means(one))
    width = max(len(str(row["method"])) for row in rows)
    for row in rows:
        low, high = float(row["low"]), float(row["high"])
        given = f"{1.0 - one.question.alpha:.0%} interval {unit_text(one, low)} to {unit_text(one, high)}"
        interval = "no interval" if low != low else given
        over = row["replicates"] or f"n = {row['cells']}"
        yield f"  {row['method']:<{width}}  {unit_text(one, float(row['mean'])):>6}  ({interval}, {over})"
    yield f"  {' '.join(sentences(one))}"


def _better(one: Comparison, row: Mapping[str, Any]) -> str:
    """A significant pair: the better method first, and by how much."""
    better, worse = row["better"], row["second"] if row["better"] == row["first"] else row["first"]
    by = unit_text(one, abs(float(row["estimate"])))
    return f"{better} is better than {worse} by {by}{' points' if one.percent else ''}"
