"""One page per data set of a campaign: what it is, how the campaign's scenarios divide it into tasks, and its leaderboards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.htmltable import definition_list, exact_cell, head_cell, number_cell, row_head, table
from cglsuite.reports.kit.text import value_text
from cglsuite.reports.results.overview import notices
from cglsuite.reports.site.boards import boards
from cglsuite.reports.site.index import dataset_page_name, leaderboards, part, site_page

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.cells.records.record import Record
    from cglsuite.host import Catalogue
    from cglsuite.reports.results.results import CampaignResults
    from cglsuite.reports.site.boards import Board

__all__ = ["dataset_facts", "dataset_pages", "tasks_row", "tasks_table"]


def dataset_pages(campaign: Campaign, catalogue: Catalogue, results: CampaignResults, anatomy: str = "") -> dict[str, str]:
    """The pages by file name; ``anatomy`` is the file of the campaign's page on what its tasks are made of, if it has one."""
    shown = boards(results, catalogue)
    names = dict.fromkeys(board.dataset for board in shown)
    return {
        dataset_page_name(name): _page(campaign, catalogue, results, name, anatomy, [board for board in shown if board.dataset == name])
        for name in names
    }


def _page(campaign: Campaign, catalogue: Catalogue, results: CampaignResults, dataset: str, anatomy: str, shown: Sequence[Board]) -> str:
    back = element("p", element("a", campaign.title or campaign.name, href="index.html"), class_="kind")
    link = element("a", "What the tasks are made of", href=anatomy)
    more = element("p", link, ": class shares, drift, label homophily, degrees, and published statistics.") if anatomy else None
    parts = [
        element("header", element("h1", dataset), back, dataset_facts(catalogue, dataset), *notices(results)),
        part("tasks", "Tasks", join([_tasks(shown), more])),
    ]
    title = f"{dataset} – {campaign.title or campaign.name}"
    return site_page(campaign, catalogue, results, [*parts, leaderboards(results, catalogue, shown)], shown, title=title)


def dataset_facts(catalogue: Catalogue, dataset: str) -> Fragment:
    """What its plugin says of it."""
    entry = next((entry for entry in catalogue.entries("dataset") if entry.name == dataset), None)
    if entry is None:
        return element("p", "No installed plugin provides this data set.", class_="note")
    spec: Any = entry.spec
    facts: dict[Content, Content] = {
        "problem levels": value_text(spec.levels),
        "labels": spec.labels,
        "keys of items": value_text(spec.keys) if spec.keys else None,
        "cites": "; ".join(map(str, spec.citations)) or None,
        "licence": spec.licence,
        "home": element("a", spec.home, href=spec.home) if spec.home.startswith("https://") else spec.home or None,
        "provided by": entry.provider,
    }
    return join([element("p", spec.summary), definition_list((name, fact) for name, fact in facts.items() if fact)])


def _tasks(shown: Sequence[Board]) -> Fragment:
    return tasks_table([tasks_row(board) for board in shown])


def tasks_table(rows: Iterable[Sequence[Fragment]]) -> Fragment:
    """How many tasks, classes and items the scenarios of a data set have: a row of :func:`tasks_row` each."""
    head = [head_cell("scenario", "name"), head_cell("setting"), head_cell("tasks", "number"), head_cell("classes per task", "number")]
    head += [head_cell(f"{name} items per task", "number") for name in ("training", "validation", "test")]
    return table(head, rows, "Smallest and largest over the tasks; in another order of classes, tasks have other sizes.")


def tasks_row(board: Board) -> list[Fragment]:
    """Numbers of a board's scenario; ranges over the tasks of its first record."""
    record = next(record for row in board.rows for record in row.records)
    classes = [len(task.get("classes") or ()) for task in record.tasks]
    cells = [element("td", board.setting), number_cell(len(record.tasks) or _columns(record), 0), _range(classes)]
    cells += [_range(task.get(f"n_{name}") for task in record.tasks) for name in ("train", "validation", "test")]
    return [row_head(board.title), *cells]


def _columns(record: Record) -> int:
    return len(record.matrix[0]) if record.matrix else 0


def _range(values: Iterable[int | None]) -> Fragment:
    known = [value for value in values if value]
    if not known:
        return number_cell(None)
    least, most = min(known), max(known)
    ends = [f"{value:,}".replace(",", "\u202f") for value in dict.fromkeys((least, most))]
    return exact_cell("–".join(ends), low=least, high=most)
