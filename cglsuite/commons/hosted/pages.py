"""The pages of a hosted leaderboard but those about methods and papers: overview, scenarios, data sets, feeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.commons.hosted.gathering import Gathered
from cglsuite.commons.hosted.parts import Site, level_notes, meaning, navigation, scenario_table
from cglsuite.commons.hosted.standings import LEVELS, Part, Scenario
from cglsuite.reports.kit.htmltable import definition_list, empty, exact_cell, head_cell, number_cell, number_text, row_head, table
from cglsuite.reports.kit.notices import notice, tile
from cglsuite.reports.results.summary import definitions
from cglsuite.reports.site.across import across, standings
from cglsuite.reports.site.boards import Board
from cglsuite.reports.site.datasets import dataset_facts, tasks_table
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import board_controls, board_links, boards_page, part
from cglsuite.reports.site.leaderboard import Surroundings, board_section, how_to_read

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["across_page", "dataset_page", "datasets_page", "feeds_page", "index_page", "scenario_page"]

_MOST_COLUMNS = 8
"""A table of methods against scenarios with more columns cannot be read."""


def index_page(site: Site, catalogue: Catalogue, scenarios: Sequence[Scenario], gathered: Gathered) -> str:
    """All scenarios by data set, and what verified means."""
    methods = {s.row.method for one in scenarios for p in one.parts.values() for s in p.standings}
    tiles = [
        tile(f"{n:,}".replace(",", "\u202f"), text)
        for n, text in (
            (sum(one.count(level) for one in scenarios), "records" if site.own else f"{level} records") for level in site.levels
        )
    ]
    tiles += [tile(len(scenarios), "scenarios"), tile(len(methods), "methods"), tile(len({one.dataset for one in scenarios}), "data sets")]
    head = element("header", navigation(site, "index.html"), element("h1", site.title), element("ul", *tiles, class_="tiles"))
    hidden = [(gathered.unfinished, "unfinished records"), (len(gathered.faults), "records that no board can show")]
    left = " and ".join(f"{n} {text}" for n, text in hidden if n)
    parts = [head, *meaning(site, LEVELS), element("p", f"Left out: {left}.", class_="note") if left else None]
    if not scenarios:
        return boards_page(site.title, catalogue, _kept([*parts, empty("No finished record is in this folder yet.")]), (), site.footer)
    grouped = _by(scenarios)
    tables = [
        part(f"{problem}-{setting}".lower(), _words(problem, setting), scenario_table(site, some, grouped=True))
        for (problem, setting), some in grouped.items()
    ]
    return boards_page(site.title, catalogue, _kept([*parts, *tables]), (), site.footer)


_PROBLEMS = {"NC": "Nodes", "LC": "Link classification", "LP": "Link prediction", "GC": "Graphs", "GR": "Graph regression"}


def _words(problem: str, setting: str) -> str:
    return f"{_PROBLEMS.get(problem, problem)}, {re.sub('-il$', '-IL', setting)}"


def _by(scenarios: Iterable[Scenario]) -> dict[tuple[str, str], list[Scenario]]:
    found: dict[tuple[str, str], list[Scenario]] = {}
    for one in sorted(
        scenarios, key=lambda one: (list(_PROBLEMS).index(one.problem) if one.problem in _PROBLEMS else 9, one.setting, one.preset)
    ):
        found.setdefault((one.problem, one.setting), []).append(one)
    return found


def _kept(parts: Iterable[Fragment | None]) -> list[Fragment]:
    return [part for part in parts if part is not None]


# --- a scenario ------------------------------------------------------------------------------------------------------------------


def scenario_page(site: Site, catalogue: Catalogue, one: Scenario, records: str) -> str:
    """The boards of a preset, verified records first; ``records``: the feed that has all of them."""
    shown = [one.parts[level].board for level in LEVELS if level in one.parts]
    dataset = element("a", one.dataset, href=site.names.page("dataset", one.dataset))
    paper = join([", of ", element("a", one.paper, href=site.names.page("paper", one.paper))]) if one.paper else None
    facts: dict[Content, Content] = {"data set": dataset, "setting": ", ".join((one.setting, one.problem))}
    facts["protocol"] = join([one.protocol, paper])
    if one.changes:
        facts["changed"] = one.changes
    counts = [f"{one.count(level)}{'' if site.own else f' {level}'}" for level in site.levels]
    facts["records"] = join([f"{', '.join(counts)}: ", element("a", "CSV", href=records)])
    head = element(
        "header",
        navigation(site, ""),
        element("h1", one.title),
        element("p", element("code", one.preset), class_="kind"),
        definition_list(facts.items()),
    )
    sections = []
    for number, level in enumerate(level for level in LEVELS if level in one.parts):
        sections.append(part(level, site.results(level), *_level(site, catalogue, one.parts[level], number, records)))
    if "verified" not in one.parts and not site.own:
        sections.insert(0, part("verified", "Verified results", empty("No record of this scenario is verified yet.")))
    controls = board_controls(shown)
    defined = part("definitions", "What the metrics mean", definitions(one.first.results))
    parts = [head, how_to_read("as the records state them"), controls, *sections, part("tasks", "Tasks", tasks_table([one.tasks])), defined]
    return boards_page(f"{one.title} – {site.title}", catalogue, parts, shown, site.footer)


def _level(site: Site, catalogue: Catalogue, of_level: Part, number: int, records: str) -> list[Fragment]:
    by_group = {id(s.row.group): s for s in of_level.standings}
    around = Surroundings(
        method=lambda name: site.names.page("method", name),
        records=lambda board, row: records,
        note=lambda row: level_notes(site, by_group[id(row.group)], of_level.level),
        name=of_level.level,
        alone=True,
    )
    board = of_level.board
    section = board_section(
        of_level.results, board, extra=board_links(board_downloads(board, catalogue)), plot=True, number=number, around=around
    )
    parts = meaning(site, [of_level.level])
    if of_level.left_out:
        parts.append(notice(f"{of_level.left_out} records are left out: they were made by different code from the rest of their group."))
    return [*parts, section]


# --- across scenarios ------------------------------------------------------------------------------------------------------------


def across_page(site: Site, catalogue: Catalogue, scenarios: Sequence[Scenario]) -> str:
    """Mean ranks of methods by problem and setting; unverified results never share a table with verified ones."""
    head = element("header", navigation(site, "across.html"), element("h1", "Across scenarios"))
    said = "A mean rank is over the scenarios, two at least, in which a method has a score. Compare methods that were run in equally many."
    parts = [head, element("p", said, class_="note")]
    for level in site.levels:
        sections = []
        for (problem, setting), some in _by(scenarios).items():
            boards = [replace(one.parts[level].board, title=one.title) for one in some if level in one.parts]
            if len(boards) > 1 and standings(boards):
                title = element("h3", _words(problem, setting), id=f"{level}-{problem}-{setting}".lower())
                sections += [title, _ranks(site, boards), _scores(boards)]
        content = sections or [empty(f"Fewer than two scenarios of a setting have {site.results(level).lower()}.")]
        parts.append(part(level, site.results(level), *content))
    return boards_page(f"Across scenarios – {site.title}", catalogue, parts, (), site.footer)


def _ranks(site: Site, boards: Sequence[Board]) -> Fragment:
    found = standings(boards)
    several = [one for one in found if len(one.ranks) > 1]
    rows = []
    for one in several:
        method = next(iter(one.rows.values())).method
        link = element("a", one.name, href=site.names.page("method", method))
        firsts = sum(rank == 1.0 for rank in one.ranks.values())
        cells = [
            exact_cell(number_text(one.mean_rank, 1), value=one.mean_rank),
            number_cell(len(one.ranks), 0),
            number_cell(firsts or None, 0),
        ]
        rows.append([element("th", link, class_="name", scope="row"), *cells])
    head = [
        head_cell("method", "name"),
        head_cell("mean rank ↓", "number"),
        head_cell("scenarios", "number"),
        head_cell("first in", "number"),
    ]
    caption = f"{len(boards)} scenarios."
    if several != found:
        caption += f" Left out: methods and variants with a score in one scenario alone ({len(found) - len(several)})."
    return table(head, rows, caption) if several else element("p", caption, class_="note")


def _scores(boards: Sequence[Board]) -> Fragment | None:
    """Scores scenario by scenario, where they fit on a page."""
    if len(boards) > _MOST_COLUMNS or (found := across(boards, heading=False)) is None:
        return None
    return element("details", element("summary", "Scores by scenario"), found)


# --- data sets and feeds ---------------------------------------------------------------------------------------------------------


def datasets_page(site: Site, catalogue: Catalogue, scenarios: Sequence[Scenario]) -> str:
    """A row per data set."""
    rows = []
    for name in sorted({one.dataset for one in scenarios}):
        some = [one for one in scenarios if one.dataset == name]
        link = element("a", name, href=site.names.page("dataset", name))
        counts = [number_cell(len(some), 0), *(number_cell(sum(one.count(level) for one in some) or None, 0) for level in site.levels)]
        rows.append([element("th", link, class_="name", scope="row"), *counts])
    head = [head_cell("data set", "name"), *(head_cell(text, "number") for text in ("scenarios", *site.counted))]
    header = element("header", navigation(site, "datasets.html"), element("h1", "Data sets"))
    return boards_page(f"Data sets – {site.title}", catalogue, [header, table(head, rows)], (), site.footer)


def dataset_page(site: Site, catalogue: Catalogue, dataset: str, scenarios: Sequence[Scenario]) -> str:
    """What a data set is, how scenarios divide it into tasks, and their best methods."""
    header = element("header", navigation(site, ""), element("h1", dataset), dataset_facts(catalogue, dataset))
    parts = [header, part("scenarios", "Scenarios", scenario_table(site, scenarios, dataset=False))]
    parts.append(part("tasks", "Tasks", tasks_table([one.tasks for one in scenarios])))
    return boards_page(f"{dataset} – {site.title}", catalogue, parts, (), site.footer)


def feeds_page(site: Site, catalogue: Catalogue, scenarios: Sequence[Scenario], files: Mapping[str, Mapping[str, str]]) -> str:
    """Links to all feeds."""
    header = element("header", navigation(site, "feeds.html"), element("h1", "Feeds"))
    said = "Files for programs, with unrounded numbers: the index of all scenarios, the rows of all boards, and two files per scenario."
    every = element("ul", *(element("li", element("a", name, href=name)) for name in ("feeds/index.json", "feeds/boards.csv")))
    rows = []
    for one in scenarios:
        links = [
            element("td", element("a", text, href=files[one.preset][name]), class_="nowrap")
            for name, text in (("board", "boards (JSON)"), ("records", "records (CSV)"))
        ]
        rows.append([row_head(one.preset), *links])
    head = [head_cell("scenario", "name"), head_cell("boards"), head_cell("records")]
    return boards_page(f"Feeds – {site.title}", catalogue, [header, element("p", said), every, table(head, rows)], (), site.footer)
