"""What the pages of a hosted leaderboard share: links between them, marks of verification, and scores as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from cglsuite.base.hashing import digest
from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.commons.hosted.standings import LEVELS, Scenario, Standing
from cglsuite.host import Catalogue
from cglsuite.reports.kit.tables import Column, exact_cell, framed, label, number, number_cell, number_text, words
from cglsuite.reports.site import boards
from cglsuite.reports.site.boards import LEVEL
from cglsuite.reports.site.downloads import file_stem
from cglsuite.reports.site.index import boards_page

__all__ = ["Names", "Site", "badge", "level_notes", "meaning", "scenario_table", "score_cell"]

# File names of pages and feeds, from names that strangers may have chosen: plain, short, and each name its own.

_LONGEST = 100


class Names:
    """A stem for every kind and name, the same for the same names in the same order; no two are alike where case does not count."""

    def __init__(self) -> None:
        self._stems: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def stem(self, kind: str, name: str) -> str:
        """As ``method-ewc``."""
        if (kind, name) not in self._stems:
            stem = f"{kind}-{file_stem(name)}"
            if len(stem) > _LONGEST or stem.lower() in self._taken:
                stem = f"{stem[:_LONGEST]}-{digest([kind, name])[:12]}"
            self._taken.add(stem.lower())
            self._stems[kind, name] = stem
        return self._stems[kind, name]

    def page(self, kind: str, name: str) -> str:
        """The file of a page."""
        return f"{self.stem(kind, name)}.html"


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
    """The title of the site, the names of its pages, the footer of all of them, and the catalogue that knows what they are about.

    Args:
        own: nobody has submitted to the folder. Then pages say once that nothing in it was verified, and show its records as results.
    """

    title: str
    names: Names
    footer: str
    catalogue: Catalogue
    own: bool = False

    def page(
        self, title: str, *parts: Fragment | None, here: str = "", head: Iterable[Content] = (), shown: Sequence[boards.Board] = ()
    ) -> str:
        """A page: links to the overview pages, its title with ``head`` below it, and its parts; ``shown`` are the boards in them."""
        header = element("header", _navigation(self, here), element("h1", title), *head)
        name = title if here == "index.html" else f"{title} – {self.title}"
        return boards_page(name, self.catalogue, [header, *(one for one in parts if one is not None)], shown, self.footer)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that tables count."""
        return LEVELS[1:] if self.own else LEVELS

    def counts(self, of: Callable[..., int]) -> list[Column]:
        """Columns with the numbers of records; ``of`` counts those of a row at a ``level``."""
        heads = ("records",) if self.own else ("verified records", "unverified")
        return [number(head, partial(of, level=level), zero=False) for head, level in zip(heads, self.levels, strict=True)]

    def link(self, kind: str, name: str, shown: str = "") -> Fragment:
        """A link to the page of a scenario, method, data set or paper."""
        return element("a", shown or name, href=self.names.page(kind, name))

    @property
    def leading(self) -> str:
        """The level whose best method stands for a scenario."""
        return self.levels[0]

    def results(self, level: str) -> str:
        """The results of a level, as a heading."""
        return "Results" if self.own else f"{level.capitalize()} results"


def _navigation(site: Site, here: str) -> Fragment:
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


def score_cell(score: boards.Score | None, column: boards.Column) -> Fragment:
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


def _shown(value: float, column: boards.Column) -> str:
    return number_text(value * column.scale, column.digits)


def scenario_table(site: Site, scenarios: Sequence[Scenario], *, dataset: bool = True, grouped: bool = False) -> Fragment:
    """A row per scenario: its best method (of verified records, if there are marks), and how many methods and records there are.

    Args:
        dataset: with a column of data sets. grouped: all are of one setting and level, which are left out.
    """

    def title(one: Scenario) -> Fragment:
        changes = element("div", one.changes, class_="changes") if one.changes else None
        return join([site.link("scenario", one.preset, one.title), changes])

    def best(one: Scenario) -> Fragment:
        first = one.best(site.leading)
        if first is None:
            sweeps = site.leading in one.parts
            return element("td", "none: sweeps without validation" if sweeps else "none yet", class_="quiet")
        chosen = " (chosen by validation)" if first.row.settings else None
        return element("td", site.link("method", first.row.method, first.row.group.label), chosen)

    def score(one: Scenario) -> Fragment:
        first = one.best(site.leading)
        if first is None:
            return number_cell(None)
        column = one.parts[site.leading].board.first
        return score_cell(first.row.scores[column.name], column)

    columns = [label("scenario", title)]
    columns += [words("data set", lambda one: site.link("dataset", one.dataset), "nowrap")] if dataset else []
    columns += [] if grouped else [words("setting", lambda one: one.setting, "nowrap"), words("level", lambda one: one.problem)]
    columns += [Column("best method" if site.own else "best verified method", best, None)]
    columns += [Column(f"its score, {LEVEL:.0%} interval", score), number("methods", lambda one: len(one.methods))]
    return framed(scenarios, [*columns, *site.counts(Scenario.count)])
