"""A page per paper: its published values beside ours, and those that nobody has run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.papers import PAPERS, Paper
from cglsuite.campaigns.reference.values import shown_value
from cglsuite.commons.hosted.parts import Site
from cglsuite.commons.hosted.standings import LEVELS, Scenario
from cglsuite.reports.kit.columns import Column, framed, label, number, words
from cglsuite.reports.kit.htmltable import definition_list, empty, exact_cell, folded, number_text
from cglsuite.reports.kit.notices import verdict_badge
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.site.index import part

__all__ = ["paper_page", "papers_page"]


def papers_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """A row per paper."""
    compared = {paper.name: [row for _, _, row in _compared(paper, scenarios)] for paper in PAPERS}
    columns = [
        label("paper", lambda paper: site.link("paper", paper.name)),
        number("published values", lambda paper: len(_published(paper))),
        number("with a result here", lambda paper: len({_identity(row) for row in compared[paper.name]})),
        *(number(verdict, partial(_judged, compared, verdict=verdict)) for verdict in ("equivalent", "different")),
    ]
    return site.page("Papers", framed(PAPERS, columns), here="papers.html")


def _judged(compared: Mapping[str, Sequence[Mapping[str, Any]]], paper: Paper, verdict: str) -> int:
    return sum(row["verdict"] == verdict for row in compared[paper.name])


def paper_page(site: Site, paper: Paper, scenarios: Sequence[Scenario]) -> str:
    """Published values with a result of ours, by table and scenario; then those without one, folded."""
    published, compared = _published(paper), _compared(paper, scenarios)
    facts: dict[Content, Content] = {
        "protocols here": ", ".join(paper.protocols),
        "printed deviation": paper.spread,
        "values": f"{len(published)} published, {len({_identity(row) for _, _, row in compared})} with a result here",
    }
    parts = []
    ours = "Equivalent and different are the outcomes of two tests (Holm over a table); undecided means that more repetitions are needed."
    for level in LEVELS:
        rows = [{**row, "scenario": one} for of, one, row in compared if of == level]
        if rows:
            parts.append(part(level, f"{site.results(level)} beside published values", framed(rows, _columns(site), ours)))
    if not compared:
        parts.append(part("verified", "Results beside published values", empty("No result here is comparable with a published value yet.")))
    known = {_identity(row) for _, _, row in compared}
    left = [row for row in published if _identity(row) not in known]
    parts.append(part("left", "Published values without a result here", _without(left)))
    return site.page(paper.name, *parts, head=[definition_list(facts.items())])


def _published(paper: Paper) -> list[dict[str, Any]]:
    frame = published_results()
    frame = frame[(frame["paper"] == paper.name) & frame["mean"].notna()]
    return [{**row, "row": index} for index, row in zip(frame.index, as_rows(frame), strict=True)]


def _compared(paper: Paper, scenarios: Sequence[Scenario]) -> list[tuple[str, Scenario, Mapping[str, Any]]]:
    """Rows of :func:`cglsuite.reports.results.published.compare` with the level and scenario of each."""
    return [
        (level, one, row)
        for one in scenarios
        if one.paper == paper.name
        for level in LEVELS
        if level in one.parts
        for row in one.parts[level].compared
    ]


def _identity(row: Mapping[str, Any]) -> int:
    """The place of the row in the published table."""
    return int(row["row"])


def _columns(site: Site) -> list[Column]:
    def method(row: Mapping[str, Any]) -> Fragment:
        variant = element("span", f" {row['variant']}", class_="quiet") if row["variant"] else None
        return join([site.link("method", row["method"]), variant])

    return [
        label("method", method),
        words("scenario", lambda row: site.link("scenario", row["scenario"].preset, row["scenario"].title), "nowrap"),
        *(words("table"), words("metric", "label"), words("published", "shown", "number", "number"), Column("here", _here)),
        *(number("records", "n"), number("difference, points", "difference", 1, plus=True)),
        words("verdict", lambda row: verdict_badge(row["verdict"], title=row["reason"] or None)),
    ]


def _here(row: Mapping[str, Any]) -> Fragment:
    spread = "" if row["std"] != row["std"] else f" ± {number_text(row['std'], 1)}"
    return exact_cell(number_text(row["mean"], 1), element("span", spread, class_="sd"), value=row["mean"])


def _without(left: Sequence[Mapping[str, Any]]) -> Fragment:
    if not left:
        return empty("Every published value has a result here.")
    columns = [label("method"), words("data set", "dataset"), *map(words, ("setting", "table", "metric"))]
    columns.append(words("published", shown_value, "number", "number"))
    return folded(f"{len(left)} published values", framed(left, columns))
