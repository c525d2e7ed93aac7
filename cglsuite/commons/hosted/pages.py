"""The pages of a hosted leaderboard: overview, scenarios, data sets, methods, papers, feeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.values import PAPERS, Paper, shown_value
from cglsuite.commons.hosted.parts import Site, level_notes, meaning, scenario_table, score_cell
from cglsuite.commons.hosted.standings import LEVELS, Gathered, Part, Scenario, Standing
from cglsuite.reports.kit.tables import (
    Column,
    amount,
    as_rows,
    definition_list,
    empty,
    exact_cell,
    folded,
    framed,
    label,
    number,
    number_cell,
    number_text,
    words,
)
from cglsuite.reports.kit.text import notice, tile, verdict_badge
from cglsuite.reports.results.summary import definitions
from cglsuite.reports.site.boards import LEVEL, RESOURCES, Board, across, standings
from cglsuite.reports.site.downloads import board_downloads
from cglsuite.reports.site.index import board_controls, board_links, dataset_facts, part, tasks_table
from cglsuite.reports.site.leaderboard import Surroundings, Used, board_section, how_to_read, method_facts, settings_table

__all__ = [
    "across_page",
    "dataset_page",
    "datasets_page",
    "feeds_page",
    "index_page",
    "method_page",
    "methods_page",
    "paper_page",
    "papers_page",
    "scenario_page",
]

_MOST_COLUMNS = 8
"""A table of methods against scenarios with more columns cannot be read."""


def index_page(site: Site, scenarios: Sequence[Scenario], gathered: Gathered) -> str:
    """All scenarios by data set, and what verified means."""
    methods = {name for one in scenarios for name in one.methods}
    tiles = [
        tile(number_text(sum(one.count(level) for one in scenarios), 0), "records" if site.own else f"{level} records")
        for level in site.levels
    ]
    tiles += [tile(len(scenarios), "scenarios"), tile(len(methods), "methods"), tile(len({one.dataset for one in scenarios}), "data sets")]
    hidden = [(gathered.unfinished, "unfinished record{}"), (len(gathered.faults), "record{} that no board can show")]
    left = " and ".join(f"{n} {text.format('' if n == 1 else 's')}" for n, text in hidden if n)
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
        label("method", lambda one: site.link("method", one.method, one.name)),
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


# A page per method: what it is, its settings, and its place in every scenario.

_TIME = RESOURCES[0]


def methods_page(site: Site, by_method: dict[str, list[Scenario]]) -> str:
    """A row per method."""
    known: dict[str, Any] = {entry.name: entry.spec for entry in site.catalogue.entries("method")}

    def firsts(name: str) -> int:
        return sum(any(s.rank == 1 for s in _own(one, site.leading, name)) for one in by_method[name])

    def records(name: str, level: str) -> int:
        return sum(s.records for one in by_method[name] for s in _own(one, level, name))

    columns = [
        label("method", lambda name: site.link("method", name)),
        words("category", lambda name: known[name].category if name in known else "not installed", "nowrap"),
        *(number("scenarios", lambda name: len(by_method[name])), number("first in", firsts, zero=False), *site.counts(records)),
        words("what it does", lambda name: known[name].summary if name in known else "no installed plugin provides it", "long"),
    ]
    return site.page("Methods", framed(sorted(by_method), columns), here="methods.html")


def method_page(site: Site, name: str, scenarios: Sequence[Scenario]) -> str:
    """One method: its plugin's words, its results by scenario, and the values of its hyper-parameters in the records."""
    entry = next((entry for entry in site.catalogue.entries("method") if entry.name == name), None)
    spec: Any = entry.spec if entry is not None else None
    unknown = element("p", "No installed plugin provides this method: only what its records say is known.", class_="note")
    parts = [unknown if entry is None else definition_list(method_facts(entry).items())]
    for level in LEVELS:
        rows = [(one.parts[level].board, one, standing) for one in scenarios for standing in _own(one, level, name)]
        if rows:
            shown = framed(rows, _columns(site, level), "Ranks are among the methods of the same board.")
            parts.append(part(level, site.results(level), shown))
    used: Used = {}
    for one in scenarios:
        for setting, values in one.used.get(name, {}).items():
            for value, titles in values.items():
                used.setdefault(setting, {}).setdefault(value, []).extend(titles)
    parts.append(part("settings", "Settings", settings_table(getattr(spec, "hyperparameters", ()), used)))
    return site.page(name, *parts)


def _own(one: Scenario, level: str, method: str) -> list[Standing]:
    return [s for s in one.parts[level].standings if s.row.method == method] if level in one.parts else []


def _columns(site: Site, level: str) -> list[Column]:
    """Of rows of a board, its scenario and a standing on it."""

    def title(row: tuple[Board, Scenario, Standing]) -> Fragment:
        _, one, standing = row
        return join([site.link("scenario", one.preset, one.title), level_notes(site, standing, level)])

    return [
        *(label("scenario", title), Column("rank", _rank), words("metric", lambda row: row[0].first.label, "nowrap")),
        Column(f"mean, {LEVEL:.0%} interval", lambda row: score_cell(row[2].row.scores.get(row[0].first.name), row[0].first)),
        number(f"{_TIME.label}, {_TIME.unit}", lambda row: getattr(row[2].row.scores.get(_TIME.name), "mean", None), _TIME.digits),
        *(number("records", lambda row: row[2].records), words("variant", _variant, "long")),
    ]


def _rank(row: tuple[Board, Scenario, Standing]) -> Fragment:
    board, _, standing = row
    if not standing.rank:
        return number_cell(None)
    return element("td", f"{standing.rank} of {len(board.compared)}", class_="number", data_value=standing.rank)


def _variant(row: tuple[Board, Scenario, Standing]) -> str:
    board, _, standing = row
    group = standing.row.group
    return ", ".join(filter(None, [group.backbone if len(board.backbones) > 1 else "", group.variant])) or "–"


# A page per paper: its published values beside ours, and those that nobody has run here.


def papers_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """A row per paper."""
    compared = {paper.name: [row for _, _, row in _compared(paper, scenarios)] for paper in PAPERS}

    def judged(paper: Paper, verdict: str) -> int:
        return sum(row["verdict"] == verdict for row in compared[paper.name])

    columns = [
        label("paper", lambda paper: site.link("paper", paper.name)),
        number("published values", lambda paper: len(_published(paper))),
        number("with a result here", lambda paper: len({_identity(row) for row in compared[paper.name]})),
        *(number(verdict, partial(judged, verdict=verdict)) for verdict in ("equivalent", "different")),
    ]
    return site.page("Papers", framed(PAPERS, columns), here="papers.html")


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
            parts.append(part(level, f"{site.results(level)} beside published values", framed(rows, _paper_columns(site), ours)))
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
    parts = [(level, one) for one in scenarios if one.paper == paper.name for level in LEVELS if level in one.parts]
    return [(level, one, row) for level, one in parts for row in one.parts[level].compared]


def _identity(row: Mapping[str, Any]) -> int:
    """The place of the row in the published table."""
    return int(row["row"])


def _paper_columns(site: Site) -> list[Column]:
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
