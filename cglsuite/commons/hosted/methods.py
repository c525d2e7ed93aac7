"""A page per method: what it is, its settings, and its place in every scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cglsuite.base.markup import Fragment, element, join
from cglsuite.commons.hosted.parts import Site, level_notes, score_cell
from cglsuite.commons.hosted.standings import LEVELS, Scenario, Standing
from cglsuite.reports.kit.columns import Column, framed, label, number, words
from cglsuite.reports.kit.htmltable import definition_list, number_cell
from cglsuite.reports.site.boards import LEVEL, RESOURCES, Board
from cglsuite.reports.site.index import part
from cglsuite.reports.site.leaderboard import Used, method_facts, settings_table

__all__ = ["method_page", "methods_page"]

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
        number(f"{_TIME.label}, {_TIME.unit}", _time, _TIME.digits),
        *(number("records", lambda row: row[2].records), words("variant", _variant, "long")),
    ]


def _rank(row: tuple[Board, Scenario, Standing]) -> Fragment:
    board, _, standing = row
    if not standing.rank:
        return number_cell(None)
    return element("td", f"{standing.rank} of {len(board.rows)}", class_="number", data_value=standing.rank)


def _time(row: tuple[Board, Scenario, Standing]) -> float | None:
    time = row[2].row.scores.get(_TIME.name)
    return time.mean if time else None


def _variant(row: tuple[Board, Scenario, Standing]) -> str:
    board, _, standing = row
    group = standing.row.group
    return ", ".join(filter(None, [group.backbone if len(board.backbones) > 1 else "", group.variant])) or "–"
