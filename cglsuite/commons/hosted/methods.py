"""A page per method: what it is, its settings, and its place in every scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Fragment, element
from cglsuite.commons.hosted.parts import Site, level_notes, navigation, score_cell
from cglsuite.commons.hosted.standings import LEVELS, Scenario, Standing
from cglsuite.reports.kit.htmltable import definition_list, head_cell, number_cell, table
from cglsuite.reports.site.boards import LEVEL, RESOURCES
from cglsuite.reports.site.index import boards_page, part
from cglsuite.reports.site.leaderboard import Used, method_facts, settings_table

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["method_page", "methods_page"]

_TIME = RESOURCES[0]


def methods_page(site: Site, catalogue: Catalogue, by_method: dict[str, list[Scenario]]) -> str:
    """A row per method."""
    known = {entry.name: entry.spec for entry in catalogue.entries("method")}
    rows = []
    for name in sorted(by_method):
        spec: Any = known.get(name)
        found = [(one, level, s) for one in by_method[name] for level in LEVELS for s in _own(one, level, name)]
        counts = [sum(s.records for _, of, s in found if of == level) for level in site.levels]
        firsts = len({one.preset for one, level, s in found if level == site.leading and s.rank == 1})
        cells = [element("td", spec.category if spec else "not installed", class_="nowrap"), number_cell(len(by_method[name]), 0)]
        cells += [number_cell(firsts or None, 0), *(number_cell(n or None, 0) for n in counts)]
        about = element("td", spec.summary if spec else "no installed plugin provides it", class_="long")
        rows.append([element("th", element("a", name, href=site.names.page("method", name)), class_="name", scope="row"), *cells, about])
    head = [head_cell("method", "name"), head_cell("category"), head_cell("scenarios", "number"), head_cell("first in", "number")]
    head += [*(head_cell(text, "number") for text in site.counted), head_cell("what it does")]
    header = element("header", navigation(site, "methods.html"), element("h1", "Methods"))
    return boards_page(f"Methods – {site.title}", catalogue, [header, table(head, rows)], (), site.footer)


def method_page(site: Site, catalogue: Catalogue, name: str, scenarios: Sequence[Scenario]) -> str:
    """One method: its plugin's words, its results by scenario, and the values of its hyper-parameters in the records."""
    entry = next((entry for entry in catalogue.entries("method") if entry.name == name), None)
    spec: Any = entry.spec if entry is not None else None
    facts = method_facts(entry)
    header = element("header", navigation(site, ""), element("h1", name))
    parts = [header]
    if entry is None:
        parts.append(element("p", "No installed plugin provides this method: only what its records say is known.", class_="note"))
    else:
        parts.append(definition_list(facts.items()))
    for level in LEVELS:
        rows = [_row(site, one, level, standing) for one in scenarios for standing in _own(one, level, name)]
        if rows:
            head = [
                head_cell("scenario", "name"),
                head_cell("rank", "number"),
                head_cell("metric"),
                head_cell(f"mean, {LEVEL:.0%} interval", "number"),
            ]
            head += [head_cell(f"{_TIME.label}, {_TIME.unit}", "number"), head_cell("records", "number"), head_cell("variant")]
            parts.append(part(level, site.results(level), table(head, rows, "Ranks are among the methods of the same board.")))
    used: Used = {}
    for one in scenarios:
        for setting, values in one.used.get(name, {}).items():
            for value, titles in values.items():
                used.setdefault(setting, {}).setdefault(value, []).extend(titles)
    parts.append(part("settings", "Settings", settings_table(getattr(spec, "hyperparameters", ()), used)))
    return boards_page(f"{name} – {site.title}", catalogue, parts, (), site.footer)


def _own(one: Scenario, level: str, method: str) -> list[Standing]:
    return [s for s in one.parts[level].standings if s.row.method == method] if level in one.parts else []


def _row(site: Site, one: Scenario, level: str, standing: Standing) -> list[Fragment]:
    board, row = one.parts[level].board, standing.row
    link = element("a", one.title, href=site.names.page("scenario", one.preset))
    several = len(board.backbones) > 1
    variant = ", ".join(filter(None, [row.group.backbone if several else "", row.group.variant]))
    of = len(board.rows)
    rank = element("td", f"{standing.rank} of {of}", class_="number", data_value=standing.rank) if standing.rank else number_cell(None)
    time = row.scores.get(_TIME.name)
    return [
        element("th", link, level_notes(site, standing, level), class_="name", scope="row"),
        rank,
        element("td", board.first.label, class_="nowrap"),
        score_cell(row.scores.get(board.first.name), board.first),
        number_cell(time.mean if time else None, _TIME.digits),
        number_cell(standing.records, 0),
        element("td", variant or "–", class_="long"),
    ]
