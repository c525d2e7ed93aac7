"""The pages of a hosted leaderboard: overview, scenarios, data sets, methods, papers and feeds.

All pages use the same links, verification badges and score format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cglsuite.base.hashing import digest
from cglsuite.base.markup import Content, Fragment, element, join, several
from cglsuite.campaigns.reference import published_results
from cglsuite.campaigns.reference.values import PAPERS, Paper, shown_value
from cglsuite.commons.hosted.standings import LEVELS, Part, RecordsByPreset, Scenario, Standing
from cglsuite.host import Catalogue
from cglsuite.reports.kit.sentences import join_names
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
from cglsuite.reports.site import boards
from cglsuite.reports.site.boards import LEVEL, RESOURCES, Board, across, standings
from cglsuite.reports.site.downloads import board_downloads, file_stem
from cglsuite.reports.site.index import board_controls, board_links, boards_grid, boards_page, dataset_facts, part, tasks_table
from cglsuite.reports.site.leaderboard import BoardContext, Used, board_section, how_to_read, method_facts, missing_badge, settings_table

_MAX_COLUMNS = 8
"""The largest number of columns for which a table of methods by scenarios is still readable."""


def index_page(site: Site, scenarios: Sequence[Scenario], gathered: RecordsByPreset) -> str:
    """Return the start page, which lists all scenarios by data set and explains verification."""
    methods = {name for scenario in scenarios for name in scenario.methods}
    tiles = [
        tile(number_text(sum(scenario.count(level) for scenario in scenarios), 0), "records" if site.own else f"{level} records")
        for level in site.levels
    ]
    tiles += [
        tile(len(scenarios), "scenarios"),
        tile(len(methods), "methods"),
        tile(len({scenario.dataset for scenario in scenarios}), "data sets"),
    ]
    hidden = [(gathered.unfinished, "unfinished record{}"), (len(gathered.faults), "record{} that no board can show")]
    left = " and ".join(f"{n} {text.format('' if n == 1 else 's')}" for n, text in hidden if n)
    tables = [
        part(f"{problem}-{setting}".lower(), _problem_words(problem, setting), *_modified_last(site, some))
        for (problem, setting), some in _by(scenarios).items()
    ]
    leading = [scenario.parts[site.leading].board for scenario in scenarios if site.leading in scenario.parts and not scenario.changes]
    parts = [boards_grid(leading), *meaning(site, LEVELS), element("p", f"Left out: {left}.", class_="note") if left else None]
    parts += tables or [empty("No finished record is in this folder yet.")]
    return site.page(site.title, *parts, current="index.html", head=[element("ul", *tiles, class_="tiles")])


def _modified_last(site: Site, scenarios: Sequence[Scenario]) -> list[Fragment]:
    """Return the table of scenarios. Scenarios modified by overrides get a separate table, which is collapsed if there are others."""
    kept, modified = [[s for s in scenarios if bool(s.changes) == changed] for changed in (False, True)]
    if not (kept and modified):
        return [scenario_table(site, scenarios, grouped=True)]
    below = element(
        "details", element("summary", several(len(modified), "modified scenario")), scenario_table(site, modified, grouped=True)
    )
    return [scenario_table(site, kept, grouped=True), below]


_PROBLEMS = {
    "NC": "Nodes",
    "NR": "Node regression",
    "LC": "Link classification",
    "LP": "Link prediction",
    "GC": "Graphs",
    "GR": "Graph regression",
}


def _problem_words(problem: str, setting: str) -> str:
    return f"{_PROBLEMS.get(problem, problem)}, {re.sub('-il$', '-IL', setting)}"


def _by(scenarios: Iterable[Scenario]) -> dict[tuple[str, str], list[Scenario]]:
    groups: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(
        scenarios,
        key=lambda scenario: (
            list(_PROBLEMS).index(scenario.problem) if scenario.problem in _PROBLEMS else 9,
            scenario.setting,
            scenario.preset,
        ),
    ):
        groups.setdefault((scenario.problem, scenario.setting), []).append(scenario)
    return groups


# --- a scenario ------------------------------------------------------------------------------------------------------------------


def scenario_page(site: Site, scenario: Scenario, records: str) -> str:
    """Return the page of a preset's boards, verified records first. ``records`` is the path of the feed with all records."""
    shown = [scenario.parts[level].board for level in LEVELS if level in scenario.parts]
    paper = join([", of ", site.link("paper", scenario.paper)]) if scenario.paper else None
    facts: dict[Content, Content] = {
        "data set": site.link("dataset", scenario.dataset),
        "setting": ", ".join((scenario.setting, scenario.problem)),
    }
    facts["protocol"] = join([scenario.protocol, paper])
    if scenario.changes:
        facts["changed"] = scenario.changes
    counts = [f"{scenario.count(level):,}{'' if site.own else f' {level}'}" for level in site.levels]
    facts["records"] = join([f"{', '.join(counts)}: ", element("a", "CSV", href=records)])
    head = [element("p", element("code", scenario.preset), class_="kind"), definition_list(facts.items())]
    sections = []
    for place, level in enumerate(level for level in LEVELS if level in scenario.parts):
        sections.append(part(level, site.results(level), *_level(site, scenario.parts[level], place, records)))
    if "verified" not in scenario.parts and not site.own:
        sections.insert(0, part("verified", "Verified results", empty("No record of this scenario is verified yet.")))
    controls = board_controls(shown)
    defined = part("definitions", "What the metrics mean", definitions(scenario.first.results))
    parts = [how_to_read("as the records state them"), controls, *sections, part("tasks", "Tasks", tasks_table([scenario.tasks])), defined]
    return site.page(scenario.title, *parts, head=head, shown=shown)


def _level(site: Site, of_level: Part, number: int, records: str) -> list[Fragment]:
    by_group = {id(s.row.group): s for s in of_level.standings}
    context = BoardContext(
        method=lambda name: site.names.page("method", name),
        records=lambda board, row: records,
        note=lambda row: level_notes(site, by_group[id(row.group)], of_level.level),
        name=of_level.level,
        alone=True,
    )
    board = of_level.board
    section = board_section(
        of_level.results,
        board,
        extra=board_links(board_downloads(board, site.catalogue)),
        plot=True,
        number=number,
        context=context,
    )
    parts = meaning(site, [of_level.level])
    if of_level.left_out:
        parts.append(notice(f"{of_level.left_out:,} records computed with different code from the rest of their group are left out."))
    return [*parts, section]


# --- across scenarios ------------------------------------------------------------------------------------------------------------


def across_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """Return the page of the methods' mean ranks per problem and setting, with separate tables for verified and unverified results."""
    said = "A mean rank covers the scenarios that all methods of a table share (at least two) and only learners with every repetition."
    parts = [element("p", said, class_="note")]
    for level in site.levels:
        sections = []
        for (problem, setting), some in _by(scenarios).items():
            boards = [replace(scenario.parts[level].board, title=scenario.title) for scenario in some if level in scenario.parts]
            if len(boards) > 1 and standings(boards):
                title = element("h3", _problem_words(problem, setting), id=f"{level}-{problem}-{setting}".lower())
                sections += [title, _ranks(site, boards), _scores(boards)]
        content = sections or [empty(f"Fewer than two scenarios of a setting have {site.results(level).lower()}.")]
        parts.append(part(level, site.results(level), *content))
    return site.page("Across scenarios", *parts, current="across.html")


def _ranks(site: Site, boards: Sequence[Board]) -> Fragment:
    every = standings(boards)
    ranked = [standing for standing in every if len(standing.ranks) > 1]
    columns = [
        label("method", lambda standing: site.link("method", standing.method, standing.name)),
        amount("mean rank ↓", lambda standing: standing.mean_rank, (1, 1.0)),
        number("first in", lambda standing: sum(rank == 1.0 for rank in standing.ranks.values()), zero=False),
    ]
    shared = len(ranked[0].ranks) if ranked else 0
    caption = f"{shared} shared scenarios of {len(boards)}."
    if left_out := [standing.name for standing in every if not standing.reference and standing not in ranked]:
        caption += f" Left out because of missing scenarios or repetitions: {join_names(left_out)}."
    return framed(ranked, columns, caption) if ranked else element("p", caption, class_="note")


def _scores(boards: Sequence[Board]) -> Fragment | None:
    """Return a table of scores by scenario if it fits on a page, else None."""
    if len(boards) > _MAX_COLUMNS or (table := across(boards, heading=False)) is None:
        return None
    return element("details", element("summary", "Scores by scenario"), table)


# --- data sets and feeds ---------------------------------------------------------------------------------------------------------


def datasets_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """Return the page of all data sets, with one row each."""
    by_dataset: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        by_dataset.setdefault(scenario.dataset, []).append(scenario)

    def records(name: str, level: str) -> int:
        return sum(scenario.count(level) for scenario in by_dataset[name])

    columns = [label("data set", lambda name: site.link("dataset", name)), number("scenarios", lambda name: len(by_dataset[name]))]
    shown = framed(sorted(by_dataset), [*columns, *site.counts(records)])
    return site.page("Data sets", shown, current="datasets.html")


def dataset_page(site: Site, dataset: str, scenarios: Sequence[Scenario]) -> str:
    """Return the page of a data set, with its description and, for each scenario, the division into tasks and the best method."""
    tasks = part("tasks", "Tasks", tasks_table([scenario.tasks for scenario in scenarios]))
    listed = part("scenarios", "Scenarios", scenario_table(site, scenarios, dataset=False))
    return site.page(dataset, listed, tasks, head=[dataset_facts(site.catalogue, dataset)])


def feeds_page(site: Site, scenarios: Sequence[Scenario], files: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page with links to all feeds."""
    said = "Machine-readable files with unrounded numbers: an index of all scenarios, the rows of all boards, and two files per scenario."
    every = element("ul", *(element("li", element("a", name, href=name)) for name in ("feeds/index.json", "feeds/boards.csv")))
    columns = [label("scenario", lambda scenario: scenario.preset)]
    columns += [
        words("boards", lambda scenario: element("a", "boards (JSON)", href=files[scenario.preset]["board"]), "nowrap"),
        words("records", lambda scenario: element("a", "records (CSV)", href=files[scenario.preset]["records"]), "nowrap"),
    ]
    return site.page("Feeds", element("p", said), every, framed(scenarios, columns), current="feeds.html")


# A page per method: what it is, its settings, and its place in every scenario.

_TIME = RESOURCES[0]


def methods_page(site: Site, by_method: dict[str, list[Scenario]]) -> str:
    """Return the page of all methods, with one row each."""
    known: dict[str, Any] = {entry.name: entry.spec for entry in site.catalogue.entries("method")}

    def n_ranked_first(name: str) -> int:
        return sum(any(s.rank == 1 for s in _standings_of(scenario, site.leading, name)) for scenario in by_method[name])

    def records(name: str, level: str) -> int:
        return sum(s.records for scenario in by_method[name] for s in _standings_of(scenario, level, name))

    columns = [
        label("method", lambda name: site.link("method", name)),
        words("category", lambda name: known[name].category if name in known else "not installed", "nowrap"),
        *(number("scenarios", lambda name: len(by_method[name])), number("first in", n_ranked_first, zero=False), *site.counts(records)),
        words("what it does", lambda name: known[name].summary if name in known else "no installed plugin provides it", "long"),
    ]
    return site.page("Methods", framed(sorted(by_method), columns), current="methods.html")


def method_page(site: Site, name: str, scenarios: Sequence[Scenario]) -> str:
    """Return the page of a method, with the description by its plugin, its results by scenario, and the hyperparameter values in its
    records.
    """
    entry = next((entry for entry in site.catalogue.entries("method") if entry.name == name), None)
    spec: Any = entry.spec if entry is not None else None
    unknown = element("p", "No installed plugin provides this method. This page shows only what its records state.", class_="note")
    parts = [unknown if entry is None else definition_list(method_facts(entry).items())]
    for level in LEVELS:
        rows = [
            (scenario.parts[level].board, scenario, standing) for scenario in scenarios for standing in _standings_of(scenario, level, name)
        ]
        if rows:
            shown = framed(rows, _columns(site, level), "Ranks are among the methods of the same board.")
            parts.append(part(level, site.results(level), shown))
    used: Used = {}
    for of_method in scenarios:
        for setting, values in of_method.used.get(name, {}).items():
            for value, titles in values.items():
                used.setdefault(setting, {}).setdefault(value, []).extend(titles)
    parts.append(part("settings", "Settings", settings_table(getattr(spec, "hyperparameters", ()), used)))
    return site.page(name, *parts)


def _standings_of(scenario: Scenario, level: str, method: str) -> list[Standing]:
    return [s for s in scenario.parts[level].standings if s.row.method == method] if level in scenario.parts else []


def _columns(site: Site, level: str) -> list[Column]:
    """Return the columns of a table of results: a board's scenario and a method's standing on it."""

    def title(row: tuple[Board, Scenario, Standing]) -> Fragment:
        _, scenario, standing = row
        notes = (level_notes(site, standing, level), missing_badge(standing.missing, standing.records))
        return join([site.link("scenario", scenario.preset, scenario.title), *notes])

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
    return element("td", f"{standing.rank} of {len(board.ranks)}", class_="number", data_value=standing.rank)


def _variant(row: tuple[Board, Scenario, Standing]) -> str:
    board, _, standing = row
    group = standing.row.group
    return ", ".join(filter(None, [group.backbone if len(board.backbones) > 1 else "", group.variant])) or "–"


# A page per paper: its published values compared with ours, and those that nobody has run here.


def papers_page(site: Site, scenarios: Sequence[Scenario]) -> str:
    """Return the page of all papers, with one row each."""
    compared = {paper.name: [row for _, _, row in _comparison_rows(paper, scenarios)] for paper in PAPERS}

    def judged(paper: Paper, verdict: str) -> int:
        return sum(row["verdict"] == verdict for row in compared[paper.name])

    columns = [
        label("paper", lambda paper: site.link("paper", paper.name)),
        number("published values", lambda paper: len(_published_rows(paper))),
        number("with a result here", lambda paper: len({_identity(row) for row in compared[paper.name]})),
        *(number(verdict, partial(judged, verdict=verdict)) for verdict in ("equivalent", "different")),
    ]
    return site.page("Papers", framed(PAPERS, columns), current="papers.html")


def paper_page(site: Site, paper: Paper, scenarios: Sequence[Scenario]) -> str:
    """Return the page of a paper. Published values with a result here come first, by table and scenario; the others are in a collapsed
    list.
    """
    published, compared = _published_rows(paper), _comparison_rows(paper, scenarios)
    facts: dict[Content, Content] = {
        "protocols here": ", ".join(paper.protocols),
        "printed deviation": paper.spread,
        "values": f"{len(published)} published, {len({_identity(row) for _, _, row in compared})} with a result here",
    }
    parts = []
    ours = (
        "The verdicts equivalent and different come from two tests (Holm-adjusted over a table). Undecided means that more repetitions are "
        "needed."
    )
    for level in LEVELS:
        rows = [{**row, "scenario": scenario} for of, scenario, row in compared if of == level]
        if rows:
            shown = _by_verdict(rows, _paper_columns(site))
            parts.append(part(level, f"{site.results(level)} and published values", element("p", ours), *shown))
    if not compared:
        parts.append(part("verified", "Results and published values", empty("No result here is comparable with a published value yet.")))
    known = {_identity(row) for _, _, row in compared}
    left = [row for row in published if _identity(row) not in known]
    parts.append(part("left", "Published values without a result here", _without(left)))
    return site.page(paper.name, *parts, head=[definition_list(facts.items())])


def _published_rows(paper: Paper) -> list[dict[str, Any]]:
    frame = published_results()
    frame = frame[(frame["paper"] == paper.name) & frame["mean"].notna()]
    return [{**row, "row": index} for index, row in zip(frame.index, as_rows(frame), strict=True)]


def _comparison_rows(paper: Paper, scenarios: Sequence[Scenario]) -> list[tuple[str, Scenario, Mapping[str, Any]]]:
    """Return the rows of :func:`cglsuite.reports.results.published.compare` with the level and scenario of each."""
    parts = [(level, scenario) for scenario in scenarios if scenario.paper == paper.name for level in LEVELS if level in scenario.parts]
    return [(level, scenario, row) for level, scenario in parts for row in scenario.parts[level].compared]


def _identity(row: Mapping[str, Any]) -> int:
    """Return the row's identity in the published table."""
    return int(row["row"])


def _paper_columns(site: Site) -> list[Column]:
    def method(row: Mapping[str, Any]) -> Fragment:
        variant = element("span", f" {row['variant']}", class_="quiet") if row["variant"] else None
        return join([site.link("method", row["method"]), variant])

    return [
        label("method", method),
        words("verdict", lambda row: verdict_badge(row["verdict"], title=row["reason"] or None)),
        words("scenario", lambda row: site.link("scenario", row["scenario"].preset, row["scenario"].title), "nowrap"),
        *(words("table"), words("metric", "label"), words("published", "shown", "number", "number"), Column("here", _here)),
        *(number("records", "n"), number("difference, points", "difference", 1, plus=True)),
    ]


def _by_verdict(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> Iterable[Fragment]:
    """Yield one table per verdict. Only the table of values that differ is expanded."""
    for verdict in dict.fromkeys(("different", "equivalent", *(row["verdict"] for row in rows))):
        if some := [row for row in rows if row["verdict"] == verdict]:
            title = element("summary", f"{verdict}: {several(len(some), 'value')}")
            yield element("details", title, framed(some, columns), open="" if verdict == "different" else None)


def _here(row: Mapping[str, Any]) -> Fragment:
    spread = "" if row["std"] != row["std"] else f" ± {number_text(row['std'], 1)}"
    return exact_cell(number_text(row["mean"], 1), element("span", spread, class_="sd"), value=row["mean"])


def _without(missing: Sequence[Mapping[str, Any]]) -> Fragment:
    if not missing:
        return empty("Every published value has a result here.")
    columns = [label("method"), words("data set", "dataset"), *map(words, ("setting", "table", "metric"))]
    columns.append(words("published", shown_value, "number", "number"))
    return folded(f"{len(missing):,} published values", framed(missing, columns))


# File names of pages and feeds, from names that strangers may have chosen: plain, short, and each name its own.

_LONGEST = 100


class Names:
    """Reproducible file names, unique per kind and name even on case-insensitive file systems."""

    def __init__(self) -> None:
        self._stems: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def stem(self, kind: str, name: str) -> str:
        """Return the file name without its suffix, such as ``method-ewc``."""
        if (kind, name) not in self._stems:
            stem = f"{kind}-{file_stem(name)}"
            if len(stem) > _LONGEST or stem.lower() in self._taken:
                stem = f"{stem[:_LONGEST]}-{digest([kind, name])[:12]}"
            self._taken.add(stem.lower())
            self._stems[kind, name] = stem
        return self._stems[kind, name]

    def page(self, kind: str, name: str) -> str:
        """Return the file name of a page."""
        return f"{self.stem(kind, name)}.html"


_MEANING = {
    "verified": "The host of this page recomputed the keys, settings, bounds and metrics of these records. The method passed "
    "cglsuite check on the host's machine, and a random sample of every group was rerun with the same result. Times and memory are "
    "as stated by the submitter.",
    "unverified": "At least one of these checks could not be made, for the reason shown below each row. The submitter states "
    "these numbers, and verified rows are not compared with them.",
}
_OWN = "Nothing was submitted to this folder, so nobody else has verified its numbers. They are as stated by its owner."


@dataclass(frozen=True, kw_only=True)
class Site:
    """The state shared by all pages of a site: its title, page names and footer, and the catalogue with descriptions.

    Args:
        own: nobody has submitted to the folder. In this case, pages say once that nothing was verified, and show all records as results.
    """

    title: str
    names: Names
    footer: str
    catalogue: Catalogue
    own: bool = False

    def page(
        self, title: str, *parts: Fragment | None, current: str = "", head: Iterable[Content] = (), shown: Sequence[boards.Board] = ()
    ) -> str:
        """Return a page with links to the overview pages, a title followed by ``head``, and the parts. ``shown`` lists the boards on the
        page.
        """
        header = element("header", _navigation(self, current), element("h1", title), *head)
        name = title if current == "index.html" else f"{title} – {self.title}"
        return boards_page(name, self.catalogue, [header, *(part for part in parts if part is not None)], shown, self.footer)

    @property
    def levels(self) -> tuple[str, ...]:
        """The verification levels that have a column in tables."""
        return LEVELS[1:] if self.own else LEVELS

    def counts(self, of: Callable[..., int]) -> list[Column]:
        """Return one column of record counts per level. ``of`` counts the records of a row at a ``level``."""
        heads = ("records",) if self.own else ("verified records", "unverified")
        return [number(head, partial(of, level=level), zero=False) for head, level in zip(heads, self.levels, strict=True)]

    def link(self, kind: str, name: str, shown: str = "") -> Fragment:
        """Return a link to the page of a scenario, method, data set or paper."""
        return element("a", shown or name, href=self.names.page(kind, name))

    @property
    def leading(self) -> str:
        """The verification level from which a scenario's best method is taken."""
        return self.levels[0]

    def results(self, level: str) -> str:
        """Return a heading for the results of a level."""
        return "Results" if self.own else f"{level.capitalize()} results"


def _navigation(site: Site, current: str) -> Fragment:
    """Return links to the overview pages."""
    pages = {"index.html": "Scenarios", "across.html": "Across scenarios", "methods.html": "Methods", "datasets.html": "Data sets"}
    pages |= {"papers.html": "Papers", "feeds.html": "Feeds"}
    links = [element("li", element("a", text, href=page, aria_current="page" if page == current else None)) for page, text in pages.items()]
    name = element("a", site.title, href="index.html") if current != "index.html" else None
    return element("nav", name, element("ul", *links), class_="pages", aria_label="Pages")


def badge(level: str) -> Fragment:
    """Return a badge with the name of a verification level."""
    return element("span", level, class_=f"badge {'good' if level == 'verified' else 'note'}")


def meaning(site: Site, levels: Iterable[str]) -> list[Fragment]:
    """Return one paragraph per level that explains what the level means."""
    if site.own:
        return [element("p", badge("unverified"), " ", _OWN, class_="note")]
    return [element("p", badge(level), " ", _MEANING[level], class_="note") for level in levels]


def level_notes(site: Site, standing: Standing, level: str) -> Fragment:
    """Return the notes below a method's name: how many records were rerun, and why none is verified."""
    parts: list[Content] = []
    if level == "verified":
        parts += [element("br"), element("span", f"{standing.rerun} of {standing.records} rerun", class_="badge good")]
    elif standing.reasons and not site.own:
        reason, n = standing.reasons[0]
        more = "\n".join(f"{count} × {text}" for text, count in standing.reasons)
        shown = reason if len(reason) <= 60 else f"{reason[:59]}…"
        count = "" if n == standing.records else f" ({n} of {standing.records})"
        parts += [element("br"), element("span", f"{shown}{count}", class_="why", title=more)]
    return join(parts)


def score_cell(score: boards.Score | None, column: boards.Column) -> Fragment:
    """Return a cell with a mean, its standard deviation and its interval, or a dash if there is no score."""
    if score is None:
        return number_cell(None)
    unit = column.unit if column.unit == "%" else f" {column.unit}".rstrip()
    shown: list[Content] = [_metric_text(score.mean, column) + unit]
    if score.std == score.std:
        shown.append(element("span", f" ± {_metric_text(score.std, column)}", class_="sd"))
    if score.kind:
        shown += [element("span", f" [{_metric_text(score.low, column)}, {_metric_text(score.high, column)}]", class_="interval")]
    return exact_cell(*shown, value=score.mean)


def _metric_text(value: float, column: boards.Column) -> str:
    return number_text(value * column.scale, column.digits)


def scenario_table(site: Site, scenarios: Sequence[Scenario], *, dataset: bool = True, grouped: bool = False) -> Fragment:
    """Return a table with one row per scenario. A row shows the best method (by verified records, if any) and counts methods and records.

    Args:
        dataset: include a column of data sets. grouped: all scenarios share a setting and level, so omit these columns.
    """

    def title(scenario: Scenario) -> Fragment:
        changes = element("div", scenario.changes, class_="changes") if scenario.changes else None
        return join([site.link("scenario", scenario.preset, scenario.title), changes])

    def best(scenario: Scenario) -> Fragment:
        first = scenario.best(site.leading)
        if first is None:
            sweeps = site.leading in scenario.parts
            return element("td", "none: sweeps without validation" if sweeps else "none yet", class_="quiet")
        tied = sum(standing.rank == 1 for standing in scenario.parts[site.leading].standings) - 1
        notes = ["chosen by validation"] * bool(first.row.settings) + [f"{tied} more with the same mean"] * bool(tied)
        note = f" ({', '.join(notes)})" if notes else None
        return element("td", site.link("method", first.row.method, first.row.group.label), note)

    def score(scenario: Scenario) -> Fragment:
        first = scenario.best(site.leading)
        if first is None:
            return number_cell(None)
        column = scenario.parts[site.leading].board.first
        return score_cell(first.row.scores[column.name], column)

    columns = [label("scenario", title)]
    columns += [words("data set", lambda scenario: site.link("dataset", scenario.dataset), "nowrap")] if dataset else []
    columns += (
        []
        if grouped
        else [words("setting", lambda scenario: scenario.setting, "nowrap"), words("level", lambda scenario: scenario.problem)]
    )
    columns += [Column("best method" if site.own else "best verified method", best, None)]
    columns += [Column(f"its score, {LEVEL:.0%} interval", score), number("methods", lambda scenario: len(scenario.methods))]
    return framed(scenarios, [*columns, *site.counts(Scenario.count)])
