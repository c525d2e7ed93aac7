"""What the pages of a hosted leaderboard share: links between them, marks of verification, and scores as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.commons.hosted.names import Names
from cglsuite.commons.hosted.standings import LEVELS, Scenario, Standing
from cglsuite.reports.kit.htmltable import exact_cell, head_cell, number_cell, number_text, table
from cglsuite.reports.site.boards import LEVEL, Column, Score

__all__ = ["Site", "badge", "level_notes", "meaning", "navigation", "scenario_table", "score_cell"]

_MEANING = {
    "verified": "Whoever hosts this page recomputed keys, settings, bounds and metrics of these records, the method passed "
    "cglsuite check there, and a random sample of every group was rerun with the same result. Times and memory are as the submitter "
    "states them.",
    "unverified": "At least one of these checks could not be made, for the reasons given below each row. The numbers are "
    "the submitter's word, and no verified row is compared with them.",
}
_OWN = "Nothing was submitted to this folder, so nothing in it was verified by anyone else. The numbers are its owner's word."


@dataclass(frozen=True, kw_only=True)
class Site:
    """The title of the site, the names of its pages, and the footer of all of them.

    Args:
        own: nobody has submitted to the folder. Then pages say once that nothing in it was verified, and show its records as results.
    """

    title: str
    names: Names
    footer: str
    own: bool = False

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that tables count."""
        return LEVELS[1:] if self.own else LEVELS

    @property
    def counted(self) -> tuple[str, ...]:
        """The heads of columns with the numbers of records."""
        return ("records",) if self.own else ("verified records", "unverified")

    @property
    def leading(self) -> str:
        """The level whose best method stands for a scenario."""
        return self.levels[0]

    def results(self, level: str) -> str:
        """The results of a level, as a heading."""
        return "Results" if self.own else f"{level.capitalize()} results"


def navigation(site: Site, here: str) -> Fragment:
    """Links to the overview pages."""
    pages = {"index.html": "Scenarios", "across.html": "Across scenarios", "methods.html": "Methods", "datasets.html": "Data sets"}
    pages |= {"papers.html": "Papers", "feeds.html": "Feeds"}
    links = [element("li", element("a", text, href=page, aria_current="page" if page == here else None)) for page, text in pages.items()]
    name = element("a", site.title, href="index.html") if here != "index.html" else None
    return element("nav", name, element("ul", *links), class_="pages", aria_label="Pages")


def badge(level: str) -> Fragment:
    """The word for a level of verification."""
    return element("span", level, class_=f"badge {'good' if level == 'verified' else 'note'}")


def meaning(site: Site, levels: Iterable[str]) -> list[Fragment]:
    """What the levels mean, a paragraph each."""
    if site.own:
        return [element("p", badge("unverified"), " ", _OWN, class_="note")]
    return [element("p", badge(level), " ", _MEANING[level], class_="note") for level in levels]


def level_notes(site: Site, standing: Standing, level: str) -> Fragment:
    """Below the name of a method: how many records were rerun, or why none counts as verified; and how many repetitions are missing."""
    parts: list[Content] = []
    if level == "verified":
        parts += [element("br"), element("span", f"{standing.rerun} of {standing.records} rerun", class_="badge good")]
    elif standing.reasons and not site.own:
        reason, n = standing.reasons[0]
        more = "\n".join(f"{count} × {text}" for text, count in standing.reasons)
        shown = reason if len(reason) <= 60 else f"{reason[:59]}…"
        count = "" if n == standing.records else f" ({n} of {standing.records})"
        parts += [element("br"), element("span", f"{shown}{count}", class_="why", title=more)]
    if standing.missing:
        text = f"{standing.missing} of {standing.missing + standing.records} repetitions missing"
        parts += [element("br"), element("span", text, class_="badge note", title="other methods of this board have them")]
    return join(parts)


def score_cell(score: Score | None, column: Column) -> Fragment:
    """A mean with its deviation and interval; a dash without a score."""
    if score is None:
        return number_cell(None)
    unit = f" {column.unit}" if column.unit else ""
    shown: list[Content] = [_shown(score.mean, column) + unit]
    if score.std == score.std:
        shown.append(element("span", f" ± {_shown(score.std, column)}", class_="sd"))
    if score.kind:
        shown += [element("span", f" [{_shown(score.low, column)}, {_shown(score.high, column)}]", class_="interval")]
    return exact_cell(*shown, value=score.mean)


def _shown(value: float, column: Column) -> str:
    return number_text(value * column.scale, column.digits)


def scenario_table(site: Site, scenarios: Sequence[Scenario], *, dataset: bool = True, grouped: bool = False) -> Fragment:
    """A row per scenario: its best method (of verified records, if there are marks), and how many methods and records there are.

    Args:
        dataset: with a column of data sets. grouped: all are of one setting and level, which are left out.
    """
    head = [head_cell("scenario", "name"), *([head_cell("data set")] if dataset else [])]
    head += [] if grouped else [head_cell("setting"), head_cell("level")]
    head += [head_cell("best method" if site.own else "best verified method"), head_cell(f"its score, {LEVEL:.0%} interval", "number")]
    head += [head_cell(text, "number") for text in ("methods", *site.counted)]
    return table(head, [_row(site, one, dataset, grouped) for one in scenarios])


def _row(site: Site, one: Scenario, dataset: bool, grouped: bool) -> list[Fragment]:
    leading = one.parts.get(site.leading)
    best = next((s for s in leading.standings if s.rank == 1), None) if leading is not None else None
    methods = {s.row.method for part in one.parts.values() for s in part.standings}
    link = element("a", one.title, href=site.names.page("scenario", one.preset))
    changes = element("div", one.changes, class_="changes") if one.changes else None
    cells = [element("th", link, changes, class_="name", scope="row")]
    if dataset:
        cells.append(element("td", element("a", one.dataset, href=site.names.page("dataset", one.dataset)), class_="nowrap"))
    cells += [] if grouped else [element("td", one.setting, class_="nowrap"), element("td", one.problem)]
    if leading is None or best is None:
        cells += [element("td", "none yet", class_="quiet"), number_cell(None)]
    else:
        column = leading.board.first
        name = element("a", best.row.group.label, href=site.names.page("method", best.row.method))
        cells += [element("td", name), score_cell(best.row.scores[column.name], column)]
    return [*cells, number_cell(len(methods), 0), *(number_cell(one.count(level) or None, 0) for level in site.levels)]
