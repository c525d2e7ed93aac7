"""A page per paper: its published values beside ours, and those that nobody has run here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Content, Fragment, element
from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.papers import PAPERS, Paper
from cglsuite.campaigns.reference.values import shown_value
from cglsuite.commons.hosted.parts import Site, navigation
from cglsuite.commons.hosted.standings import LEVELS, Scenario
from cglsuite.reports.kit.htmltable import definition_list, empty, exact_cell, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import verdict_badge
from cglsuite.reports.kit.rows import as_rows
from cglsuite.reports.site.index import boards_page, part

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["paper_page", "papers_page"]


def papers_page(site: Site, catalogue: Catalogue, scenarios: Sequence[Scenario]) -> str:
    """A row per paper."""
    rows = []
    for paper in PAPERS:
        compared = _compared(paper, scenarios)
        verdicts = Counter(row["verdict"] for _, _, row in compared)
        link = element("a", paper.name, href=site.names.page("paper", paper.name))
        numbers = [len(_published(paper)), len({_identity(row) for _, _, row in compared}), verdicts["equivalent"], verdicts["different"]]
        rows.append([element("th", link, class_="name", scope="row"), *(number_cell(n, 0) for n in numbers)])
    head = [head_cell("paper", "name"), head_cell("published values", "number"), head_cell("with a result here", "number")]
    head += [head_cell("equivalent", "number"), head_cell("different", "number")]
    header = element("header", navigation(site, "papers.html"), element("h1", "Papers"))
    return boards_page(f"Papers – {site.title}", catalogue, [header, table(head, rows)], (), site.footer)


def paper_page(site: Site, catalogue: Catalogue, paper: Paper, scenarios: Sequence[Scenario]) -> str:
    """Published values with a result of ours, by table and scenario; then those without one, folded."""
    published, compared = _published(paper), _compared(paper, scenarios)
    facts: dict[Content, Content] = {
        "protocols here": ", ".join(paper.protocols),
        "printed deviation": paper.spread,
        "values": f"{len(published)} published, {len({_identity(row) for _, _, row in compared})} with a result here",
    }
    header = element("header", navigation(site, ""), element("h1", paper.name), definition_list(facts.items()))
    parts = [header]
    ours = "Equivalent and different are the outcomes of two tests (Holm over a table); undecided means that more repetitions are needed."
    for level in LEVELS:
        rows = [_row(site, one, row) for of, one, row in compared if of == level]
        if rows:
            head = [
                head_cell("method", "name"),
                head_cell("scenario"),
                head_cell("table"),
                head_cell("metric"),
                head_cell("published", "number"),
            ]
            head += [
                head_cell("here", "number"),
                head_cell("records", "number"),
                head_cell("difference, points", "number"),
                head_cell("verdict"),
            ]
            parts.append(
                part(
                    level,
                    f"{site.results(level)} beside published values",
                    table(head, rows, ours),
                )
            )
    if not compared:
        parts.append(part("verified", "Results beside published values", empty("No result here is comparable with a published value yet.")))
    known = {_identity(row) for _, _, row in compared}
    left = [row for row in published if _identity(row) not in known]
    parts.append(part("left", "Published values without a result here", _without(left)))
    return boards_page(f"{paper.name} – {site.title}", catalogue, parts, (), site.footer)


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


def _row(site: Site, one: Scenario, row: Mapping[str, Any]) -> list[Fragment]:
    named = element("a", row["method"], href=site.names.page("method", row["method"]))
    variant = element("span", f" {row['variant']}", class_="quiet") if row["variant"] else None
    spread = "" if row["std"] != row["std"] else f" ± {number_text(row['std'], 1)}"
    return [
        element("th", named, variant, class_="name", scope="row"),
        element("td", element("a", one.title, href=site.names.page("scenario", one.preset)), class_="nowrap"),
        element("td", str(row["table"])),
        element("td", str(row["label"])),
        element("td", str(row["shown"]), class_="number"),
        exact_cell(number_text(row["mean"], 1), element("span", spread, class_="sd"), value=row["mean"]),
        number_cell(row["n"], 0),
        number_cell(row["difference"], 1, plus=True),
        element("td", verdict_badge(row["verdict"], title=row["reason"] or None)),
    ]


def _without(left: Sequence[Mapping[str, Any]]) -> Fragment:
    if not left:
        return empty("Every published value has a result here.")
    rows = [
        [
            row_head(row["method"]),
            *(element("td", str(row[name])) for name in ("dataset", "setting", "table", "metric")),
            element("td", shown_value(row), class_="number"),
        ]
        for row in left
    ]
    head = [
        head_cell("method", "name"),
        *(head_cell(text) for text in ("data set", "setting", "table", "metric")),
        head_cell("published", "number"),
    ]
    return element("details", element("summary", f"{len(left)} published values"), table(head, rows))
