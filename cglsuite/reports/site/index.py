"""The index of a campaign's reports: links to them, sortable and filterable leaderboards, method cards, provenance and downloads.

One file that fetches nothing: all content, including the downloads, is in the HTML. The page's policy allows only its own script (by hash).
That script sorts and hides rows and keeps the downloads in step with what is shown.
"""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cglsuite import __version__
from cglsuite.base.markup import Fragment, element, join
from cglsuite.reports.kit.htmltable import empty, head_cell, table
from cglsuite.reports.kit.notices import notice
from cglsuite.reports.kit.text import plain_text
from cglsuite.reports.rendering.page import Page, asset, document_html
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.overview import NOTHING_DONE, notices
from cglsuite.reports.results.summary import definitions
from cglsuite.reports.site.across import across
from cglsuite.reports.site.boards import Board, Row, boards
from cglsuite.reports.site.downloads import Download, Piece, board_downloads, file_stem
from cglsuite.reports.site.key_results import key_results
from cglsuite.reports.site.leaderboard import anchor, board_section, how_to_read, method_cards

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign
    from cglsuite.host import Catalogue
    from cglsuite.reports.rendering.notebook import RenderedReport
    from cglsuite.reports.results.results import CampaignResults

__all__ = [
    "board_controls",
    "board_data",
    "board_links",
    "boards_page",
    "dataset_page_name",
    "leaderboards",
    "part",
    "site_html",
    "site_page",
    "written",
]


def site_html(
    campaign: Campaign, rendered: Sequence[RenderedReport], catalogue: Catalogue, results: CampaignResults | None, problem: str = ""
) -> str:
    """The page.

    Args:
        rendered: the outcome of each report. results: of the campaign; ``None`` if unavailable, with the reason in ``problem``.
    """
    shown_boards = boards(results, catalogue) if results is not None else []
    parts = [_head(campaign, results, catalogue), _reports(rendered)]
    if results is None:
        parts.append(element("div", element("p", "There is no leaderboard: "), element("p", problem), class_="notice bad", role="alert"))
    else:
        parts += [leaderboards(results, catalogue, shown_boards, datasets=True), _more(results)]
    status: Literal["done", "failed"] = "done" if results is not None and all(report.done for report in rendered) else "failed"
    return site_page(campaign, catalogue, results, parts, shown_boards, status=status)


def site_page(
    campaign: Campaign,
    catalogue: Catalogue,
    results: CampaignResults | None,
    parts: Iterable[Fragment],
    shown_boards: Sequence[Board],
    *,
    title: str = "",
    status: Literal["done", "failed"] = "done",
) -> str:
    """A page with leaderboards and the script that sorts and filters them; ``shown_boards`` are those in its parts, in their order."""
    plugins = ", ".join(f"{name} {version}" for name, version in (results.plugins if results else ()) if name != "cglsuite")
    footer = f"Campaign {campaign.name}; {written()}" + (f" with {plugins}." if plugins else ".")
    return boards_page(title or campaign.title or campaign.name, catalogue, parts, shown_boards, footer, status)


def written() -> str:
    """When and by which version a page was written."""
    return f"written {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} by cglsuite {__version__}"


def boards_page(
    title: str,
    catalogue: Catalogue,
    parts: Iterable[Fragment],
    shown_boards: Sequence[Board],
    footer: str,
    status: Literal["done", "failed"] = "done",
) -> str:
    """A page of fragments with the script for the boards in them, and no script without boards."""
    page = Page(title=title, status=status, footer=(footer,))
    if not shown_boards:
        return document_html(page, join(parts), css=asset("site.css"))
    data = {"boards": [board_data(board, board_downloads(board, catalogue)) for board in shown_boards]}
    return document_html(page, join(parts), css=asset("site.css"), script=asset("site.js"), data=data)


def board_data(board: Board, files: Sequence[Download]) -> dict[str, Any]:
    """Sort and filter values and the pieces of the downloads for the page's script, as JSON types. Missing values are ``null``."""
    return {
        "columns": {column.name: column.better for column in board.columns},
        "first": [*_first_columns(board)],
        "rows": [_row_data(board, row) for row in board.rows],
        "files": [_file_data(file) for file in files],
    }


def _file_data(file: Download) -> dict[str, Any]:
    """A download as JSON types: a piece is its text, then its column and the text of the best row where it has these."""
    head, *rows = ([_piece_data(piece) for piece in pieces] for pieces in (file.head, *file.rows))
    return {"media": file.media, "head": head, "rows": rows, "foot": file.foot, "once": file.once}


def _piece_data(piece: Piece) -> list[str]:
    return [piece.text, *([piece.column] if piece.column else []), *([piece.best] if piece.best else [])]


def _first_columns(board: Board) -> Iterator[str]:
    """The columns that the page shows first: the main metric, one of forgetting, intransigence, time; a backbone if there are several."""
    names = [column.name for column in board.columns]
    yield from ("method", "records", board.first.name)
    yield from itertools.islice((name for name in names if name.startswith(("forgetting", "af_"))), 1)
    yield from (name for name in ("intransigence", "total_s") if name in names)
    if len(board.backbones) > 1:
        yield "backbone"
    yield from (name for name in board.texts if name == "pretraining")


def _row_data(board: Board, row: Row) -> dict[str, Any]:
    group = row.group
    means = {column.name: row.scores[column.name].mean if column.name in row.scores else None for column in board.columns}
    return {
        "text": {"method": group.label, **{name: row.texts[name] for name in board.texts}},
        "place": {"dataset": board.dataset, "setting": board.setting},
        "numbers": {"records": len(row.records), **means},
        "method": group.method,
        "words": " ".join((group.label, *(row.texts[name] for name in board.texts), board.title)).lower(),
    }


def _head(campaign: Campaign, results: CampaignResults | None, catalogue: Catalogue) -> Fragment:
    parts = [element("h1", campaign.title or campaign.name)]
    parts += [element("p", campaign.description, class_="note")] if campaign.description else []
    if results is not None:
        parts += [message] if (message := key_results(results, catalogue)) is not None else []
        counted = ", ".join(f"{n} {state}" for state, n in results.counts().items())
        presets, methods = ({getattr(g, name) for g in results.groups} for name in ("preset", "method"))
        cells = f"{_number(len(results.cells), 'cell')} planned: {counted}. Results in {_number(len(presets), 'scenario')}"
        parts += [element("p", f"{cells}, of {_number(len(methods), 'method')}."), *notices(results)]
    failed = [f"{record.label}: {record.error}" for record in catalogue.failed]
    if failed:
        parts.append(notice("These plugins could not be loaded, so their scenarios, methods and metrics are absent:", *failed))
    return element("header", *parts)


def _number(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _reports(rendered: Sequence[RenderedReport]) -> Fragment:
    rows = [
        [
            element("th", element("a", report.path.stem, href=report.path.name), scope="row", class_="name"),
            element("td", element("span", report.status, class_=f"badge {'good' if report.done else 'bad'}")),
            element("td", f"{report.seconds:.0f} s", class_="number"),
            element("td", plain_text(report.reason), class_="long"),
        ]
        for report in rendered
    ]
    head = [head_cell("report", "name"), head_cell("state"), head_cell("rendered in", "number"), head_cell("reason")]
    return part("reports", "Reports", table(head, rows))


def leaderboards(results: CampaignResults, catalogue: Catalogue, shown_boards: Sequence[Board], *, datasets: bool = False) -> Fragment:
    """A section with boards, their controls, and the methods on them. ``datasets``: with links to the pages of data sets."""
    if not shown_boards:
        return join([part("leaderboards", "Leaderboards", empty(NOTHING_DONE)), _methods(results, catalogue)])
    items = [element("li", element("a", board.title, href=f"#{anchor('board', board.preset)}")) for board in shown_boards]
    contents = element("nav", element("ul", *items), class_="boards", aria_label="Scenarios") if len(shown_boards) > 1 else None
    shown = [
        board_section(results, board, extra=board_links(board_downloads(board, catalogue)), plot=True, number=number)
        for number, board in enumerate(shown_boards)
    ]
    links = _dataset_links(shown_boards) if datasets else None
    parts = (how_to_read(), links, across(shown_boards), contents, board_controls(shown_boards), *shown)
    return join([part("leaderboards", "Leaderboards", *parts), _methods(results, catalogue)])


def _dataset_links(shown_boards: Sequence[Board]) -> Fragment:
    names = dict.fromkeys(board.dataset for board in shown_boards)
    links = [element("a", name, href=dataset_page_name(name)) for name in names]
    spaced = [content for link in links for content in (" ", link)]
    return element("p", f"{'A page' if len(names) == 1 else 'Pages'} per data set:", *spaced, class_="note")


def dataset_page_name(dataset: str) -> str:
    """The file name of a data set's page."""
    return f"dataset-{file_stem(dataset)}.html"


def board_controls(shown_boards: Sequence[Board]) -> Fragment:
    """Filters over all boards, hidden until the script that makes them work has started."""
    rows = [row for board in shown_boards for row in board.rows]
    fields = [element("label", "text", Fragment('<input type="search" id="filter-words" autocomplete="off" spellcheck="false">'))]
    choices = {
        "dataset": [board.dataset for board in shown_boards],
        "setting": [board.setting for board in shown_boards],
        "method": [row.method for row in rows],
        **{name: [row.texts[name] for row in rows] for name in ("category", "backbone", "pretraining")},
    }
    for name, values in choices.items():
        if len(set(values)) < 2:
            continue  # nothing to choose
        options = [element("option", f"every {name}", value="")]
        options += [element("option", value, value=value) for value in sorted(set(values))]
        fields.append(element("label", name, element("select", *options, id=f"filter-{name}")))
    columns = {column.name: column.label for board in shown_boards for column in board.columns}
    named = {**columns, **{name: name for board in shown_boards for name in board.texts}}
    boxes = [element("label", element("input", type="checkbox", value=name), element("span", label)) for name, label in named.items()]
    chooser = element("details", element("summary", "columns"), element("div", *boxes), class_="columns", id="filter-columns")
    clear = element("button", "clear", type="button", id="filter-clear")
    status = element("p", id="filter-shown", role="status")
    return element(
        "div", *fields, chooser, clear, status, class_="filters", id="filters", role="search", aria_label="Filter rows", hidden=""
    )


def board_links(files: Sequence[Download]) -> Fragment:
    """Links that embed their files."""
    links = [
        element("a", file.label, href=f"data:{file.media};charset=utf-8;base64,{_base64(file.text)}", download=file.name, data_file=number)
        for number, file in enumerate(files)
    ]
    spaced = [part for link in links for part in (" ", link)]
    return element("p", element("span", "Download", class_="what"), *spaced, class_="downloads")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _methods(results: CampaignResults, catalogue: Catalogue) -> Fragment:
    return part("methods", "Methods", method_cards(results, catalogue))


def _more(results: CampaignResults) -> Fragment:
    return join(
        [
            part("definitions", "What the metrics mean", definitions(results)),
            part("problems", "Cells without a result", show_runs.problems(results)),
            part("provenance", "Provenance", show_runs.provenance(results).body),
        ]
    )


def part(name: str, title: str, *content: Fragment | None) -> Fragment:
    """A section of a page under a heading."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-title")
