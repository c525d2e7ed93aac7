"""The pages of a hosted leaderboard but those about methods and papers: overview, scenarios, data sets, feeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.commons.hosted.gathering import Gathered
from cglsuite.commons.hosted.parts import Site, level_notes, meaning, scenario_table
from cglsuite.commons.hosted.standings import LEVELS, Part, Scenario
from cglsuite.reports.kit.columns import amount, framed, label, number, words
from cglsuite.reports.kit.htmltable import definition_list, empty
from cglsuite.reports.kit.notices import notice, tile
from cglsuite.reports.results.summary import definitions
from cglsuite.reports.site.across import across, standings
from cglsuite.reports.site.boards import Board
from cglsuite.reports.site.datasets import dataset_facts, tasks_table
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import board_controls, board_links, part
from cglsuite.reports.site.leaderboard import Surroundings, board_section, how_to_read

__all__ = ["across_page", "dataset_page", "datasets_page", "feeds_page", "index_page", "scenario_page"]

_MOST_COLUMNS = 8
"""A table of methods against scenarios with more columns cannot be read."""


def index_page(site: Site, scenarios: Sequence[Scenario], gathered: Gathered) -> str:
    """All scenarios by data set, and what verified means."""
    methods = {name for one in scenarios for name in one.methods}
    tiles = [
        tile(f"{n:,}".replace(",", "\u202f"), text)
        for n, text in (
            (sum(one.count(level) for one in scenarios), "records" if site.own else f"{level} records") for level in site.levels
        )
    ]
    tiles += [tile(len(scenarios), "scenarios"), tile(len(methods), "methods"), tile(len({one.dataset for one in scenarios}), "data sets")]
    hidden = [(gathered.unfinished, "unfinished records"), (len(gathered.faults), "records that no board can show")]
    left = " and ".join(f"{n} {text}" for n, text in hidden if n)
    tables = [
        part(f"{problem}-{setting}".lower(), _words(problem, setting), scenario_table(site, some, grouped=True))
        for (problem, setting), some in _by(scenarios).items()
    ]
    parts = [*meaning(site, LEVELS), element("p", f"Left out: {left}.", class_="note") if left else None]
    parts += tables or [empty("No finished record is in this folder yet.")]
    return site.page(site.title, *parts, here="index.html", head=[element("ul", *tiles, class_="tiles")])


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


# --- a scenario ------------------------------------------------------------------------------------------------------------------


def scenario_page(site: Site, one: Scenario, records: str) -> str:
    """The boards of a preset, verified records first; ``records``: the feed that has all of them."""
    shown = [one.parts[level].board for level in LEVELS if level in one.parts]
    paper = join([", of ", site.link("paper", one.paper)]) if one.paper else None
    facts: dict[Content, Content] = {"data set": site.link("dataset", one.dataset), "setting": ", ".join((one.setting, one.problem))}
    facts["protocol"] = join([one.protocol, paper])
    if one.changes:
        facts["changed"] = one.changes
    counts = [f"{one.count(level)}{'' if site.own else f' {level}'}" for level in site.levels]
    facts["records"] = join([f"{', '.join(counts)}: ", element("a", "CSV", href=records)])
    head = [element("p", element("code", one.preset), class_="kind"), definition_list(facts.items())]
    sections = []
    for place, level in enumerate(level for level in LEVELS if level in one.parts):
        sections.append(part(level, site.results(level), *_level(site, one.parts[level], place, records)))
    if "verified" not in one.parts and not site.own:
        sections.insert(0, part("verified", "Verified results", empty("No record of this scenario is verified yet.")))
    controls = board_controls(shown)
    defined = part("definitions", "What the metrics mean", definitions(one.first.results))
    parts = [how_to_read("as the records state them"), controls, *sections, part("tasks", "Tasks", tasks_table([one.tasks])), defined]
    return site.page(one.title, *parts, head=head, shown=shown)


def _level(site: Site, of_level: Part, number: int, records: str) -> list[Fragment]:
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
        of_level.results, board, extra=board_links(board_downloads(board, site.catalogue)), plot=True, number=number, around=around
    )
    parts = meaning(site, [of_level.level])
    if of_level.left_out:
        parts.append(notice(f"{of_level.left_out} records are left out: they were made by different code from the rest of their group."))
    return [*parts, section]


# --- across scenarios ------------------------------------------------------------------------------------------------------------


def across_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """Mean ranks of methods by problem and setting; unverified results never share a table with verified ones."""
    said = "A mean rank is over the scenarios, two at least, in which a method has a score. Compare methods that were run in equally many."
    parts = [element("p", said, class_="note")]
    for level in site.levels:
        sections = []
        for (problem, setting), some in _by(scenarios).items():
            boards = [replace(one.parts[level].board, title=one.title) for one in some if level in one.parts]
            if len(boards) > 1 and standings(boards):
                title = element("h3", _words(problem, setting), id=f"{level}-{problem}-{setting}".lower())
                sections += [title, _ranks(site, boards), _scores(boards)]
        content = sections or [empty(f"Fewer than two scenarios of a setting have {site.results(level).lower()}.")]
        parts.append(part(level, site.results(level), *content))
    return site.page("Across scenarios", *parts, here="across.html")


def _ranks(site: Site, boards: Sequence[Board]) -> Fragment:
    found = standings(boards)
    several = [one for one in found if len(one.ranks) > 1]
    columns = [
        label("method", lambda one: site.link("method", next(iter(one.rows.values())).method, one.name)),
        *(amount("mean rank ↓", lambda one: one.mean_rank, (1, 1.0)), number("scenarios", lambda one: len(one.ranks))),
        number("first in", lambda one: sum(rank == 1.0 for rank in one.ranks.values()), zero=False),
    ]
    caption = f"{len(boards)} scenarios."
    if several != found:
        caption += f" Left out: methods and variants with a score in one scenario alone ({len(found) - len(several)})."
    return framed(several, columns, caption) if several else element("p", caption, class_="note")


def _scores(boards: Sequence[Board]) -> Fragment | None:
    """Scores scenario by scenario, where they fit on a page."""
    if len(boards) > _MOST_COLUMNS or (found := across(boards, heading=False)) is None:
        return None
    return element("details", element("summary", "Scores by scenario"), found)


# --- data sets and feeds ---------------------------------------------------------------------------------------------------------


def datasets_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """A row per data set."""
    by_dataset: dict[str, list[Scenario]] = {}
    for one in scenarios:
        by_dataset.setdefault(one.dataset, []).append(one)

    def records(name: str, level: str) -> int:
        return sum(one.count(level) for one in by_dataset[name])

    columns = [label("data set", lambda name: site.link("dataset", name)), number("scenarios", lambda name: len(by_dataset[name]))]
    shown = framed(sorted(by_dataset), [*columns, *site.counts(records)])
    return site.page("Data sets", shown, here="datasets.html")


def dataset_page(site: Site, dataset: str, scenarios: Sequence[Scenario]) -> str:
    """What a data set is, how scenarios divide it into tasks, and their best methods."""
    tasks = part("tasks", "Tasks", tasks_table([one.tasks for one in scenarios]))
    listed = part("scenarios", "Scenarios", scenario_table(site, scenarios, dataset=False))
    return site.page(dataset, listed, tasks, head=[dataset_facts(site.catalogue, dataset)])


def feeds_page(site: Site, scenarios: Sequence[Scenario], files: Mapping[str, Mapping[str, str]]) -> str:
    """Links to all feeds."""
    said = "Files for programs, with unrounded numbers: the index of all scenarios, the rows of all boards, and two files per scenario."
    every = element("ul", *(element("li", element("a", name, href=name)) for name in ("feeds/index.json", "feeds/boards.csv")))
    columns = [label("scenario", lambda one: one.preset)]
    columns += [
        words("boards", lambda one: element("a", "boards (JSON)", href=files[one.preset]["board"]), "nowrap"),
        words("records", lambda one: element("a", "records (CSV)", href=files[one.preset]["records"]), "nowrap"),
    ]
    return site.page("Feeds", element("p", said), every, framed(scenarios, columns), here="feeds.html")
