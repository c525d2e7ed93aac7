"""The index page of a campaign: links to its reports, leaderboards to sort and filter, method cards, provenance and downloads.

The page is one file and fetches nothing: all content, including the downloads, is in the HTML. Its security policy allows only its own
script (by hash), which sorts and hides rows and updates the downloads to match the visible table.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite import __version__
from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.base.markup import Content, Fragment, element, join, plain_text, several
from cglsuite.campaigns.campaign import Campaign
from cglsuite.cells.records.frame import UPPER_BOUND
from cglsuite.cells.records.record import Record
from cglsuite.host import Catalogue
from cglsuite.reports.kit.figures import grid_picture
from cglsuite.reports.kit.pictures import Gallery
from cglsuite.reports.kit.sentences import Gap, best_text, incomplete_text, join_names, rank_level
from cglsuite.reports.kit.tables import (
    as_rows,
    definition_list,
    empty,
    exact_cell,
    framed,
    head_cell,
    label,
    number_cell,
    number_text,
    row_head,
    table,
    words,
)
from cglsuite.reports.kit.text import badge, key_box, notice, value_text
from cglsuite.reports.rendering.notebook import CELL_TIMEOUT_S, RenderedReport, render_notebook, surroundings
from cglsuite.reports.rendering.page import Page, asset, document_html, gallery_html
from cglsuite.reports.rendering.parameters import shown_path
from cglsuite.reports.results import runs as show_runs
from cglsuite.reports.results.guards import guards, upper_bound_of
from cglsuite.reports.results.published import compare, counted
from cglsuite.reports.results.results import CampaignResults, Results
from cglsuite.reports.results.summary import NOTHING_DONE, definitions, notices
from cglsuite.reports.results.variants import orders_in_all
from cglsuite.reports.site.boards import LEVEL, Board, Family, Row, across, boards, pairs_of
from cglsuite.reports.site.downloads import Download, Piece, board_downloads, file_stem
from cglsuite.reports.site.leaderboard import anchor, board_section, how_to_read, method_cards
from cglsuite.stats import AGREEMENTS, Refused

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Report
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Entry


def site_html(
    campaign: Campaign,
    rendered: Sequence[RenderedReport],
    catalogue: Catalogue,
    results: CampaignResults | None,
    problem: str = "",
    outdated: Sequence[str] = (),
    shown_boards: Sequence[Board] | None = None,
) -> str:
    """Render the index page of a campaign's reports.

    Args:
        rendered: the outcome of each report. results: the campaign's; ``None`` if unavailable, with the reason in ``problem``.
        outdated: pages of reports that the campaign no longer includes. shown_boards: as for :func:`key_results`.
    """
    if shown_boards is None:
        shown_boards = boards(results, catalogue) if results is not None else []
    parts = [_head(campaign, results, catalogue, shown_boards), _reports(rendered, outdated)]
    if results is None:
        parts.append(element("div", element("p", "There is no leaderboard: "), element("p", problem), class_="notice bad", role="alert"))
    else:
        parts += [leaderboards(results, catalogue, shown_boards, datasets=True), _details_section(results)]
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
    """Render a page with leaderboards and the script that sorts and filters them. ``shown_boards`` are its boards, in page order."""
    plugins = ", ".join(f"{name} {version}" for name, version in (results.plugins if results else ()) if name != "cglsuite")
    footer = f"Campaign {campaign.name}; {written()}" + (f" with {plugins}." if plugins else ".")
    return boards_page(title or campaign.title or campaign.name, catalogue, parts, shown_boards, footer, status)


def written() -> str:
    """Return a line that states when, and by which version of cglsuite, a page was written."""
    return f"written {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} by cglsuite {__version__}"


def boards_page(
    title: str,
    catalogue: Catalogue,
    parts: Iterable[Fragment],
    shown_boards: Sequence[Board],
    footer: str,
    status: Literal["done", "failed"] = "done",
) -> str:
    """Render a page from HTML fragments. The script for boards is included if there are any boards."""
    page = Page(title=title, status=status, footer=(footer,))
    if not shown_boards:
        return document_html(page, join(parts), css=asset("site.css"))
    data = {"boards": [board_data(board, board_downloads(board, catalogue)) for board in shown_boards]}
    return document_html(page, join(parts), css=asset("site.css"), script=asset("site.js"), data=data)


def board_data(board: Board, files: Sequence[Download]) -> dict[str, Any]:
    """Collect sort values, filter values and pieces of downloads for the page's script, as JSON-serialisable values (missing: ``null``)."""
    return {
        "columns": {column.name: column.better for column in board.columns},
        "first": [*_first_columns(board)],
        "rows": [_row_data(board, number, row) for number, row in enumerate(board.rows)],
        "files": [_file_data(file) for file in files],
    }


def _file_data(file: Download) -> dict[str, Any]:
    """A download as JSON-serialisable values: each piece is its text, then its column and the text of the best row, if it has these."""
    head, *rows = ([_piece_data(piece) for piece in pieces] for pieces in (file.head, *file.rows))
    return {"media": file.media, "head": head, "rows": rows, "foot": file.foot, "once": file.once}


def _piece_data(piece: Piece) -> list[str]:
    return [piece.text, *([piece.column] if piece.column else []), *([piece.best] if piece.best else [])]


def _first_columns(board: Board) -> Iterator[str]:
    """The columns that the page shows first: the main metric, those declared so, and the backbone if there are several."""
    yield from ("method", "rank", "records", board.first.name)
    yield from (column.name for column in board.columns[1:] if column.shown_first)
    if len(board.backbones) > 1:
        yield "backbone"
    yield from (name for name in board.texts if name == "pretraining")


def _row_data(board: Board, number: int, row: Row) -> dict[str, Any]:
    group = row.group
    means = {column.name: row.scores[column.name].mean if column.name in row.scores else None for column in board.columns}
    return {
        "text": {"method": group.label, **{name: row.texts[name] for name in board.texts}},
        "place": {"dataset": board.dataset, "setting": board.setting},
        "numbers": {"records": len(row.records), "rank": board.ranks.get(number), **means},
        "method": group.method,
        "words": " ".join((group.label, *(row.texts[name] for name in board.texts), board.title)).lower(),
    }


def _head(campaign: Campaign, results: CampaignResults | None, catalogue: Catalogue, shown_boards: Sequence[Board]) -> Fragment:
    parts = [element("h1", campaign.title or campaign.name)]
    parts += [element("p", campaign.description, class_="note")] if campaign.description else []
    if results is not None:
        parts += [message] if (message := key_results(results, catalogue, shown_boards)) is not None else []
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


def _reports(rendered: Sequence[RenderedReport], outdated: Sequence[str]) -> Fragment:
    columns = [
        label("report", lambda report: element("a", report.title or report.path.stem, href=report.path.name)),
        words("state", lambda report: badge(report.status, "good" if report.done else "bad")),
        words("rendered in", lambda report: f"{report.seconds:.0f} s", "number", "number"),
        words("reason", lambda report: plain_text(report.reason), "long"),
    ]
    links = [content for name in outdated for content in (" ", element("a", name, href=name))]
    old = (
        element("p", "Left over from earlier runs (the campaign no longer includes these reports):", *links, class_="note")
        if outdated
        else None
    )
    return part("reports", "Reports", framed(rendered, columns), old)


def leaderboards(results: CampaignResults, catalogue: Catalogue, shown_boards: Sequence[Board], *, datasets: bool = False) -> Fragment:
    """Render a section with boards, their controls and their methods. ``datasets`` adds links to the pages of data sets."""
    if not shown_boards:
        return join([part("leaderboards", "Leaderboards", empty(NOTHING_DONE)), _methods(results, catalogue)])
    items = [element("li", element("a", board.title, href=f"#{anchor('board', board.preset)}")) for board in shown_boards]
    contents = element("nav", element("ul", *items), class_="boards", aria_label="Scenarios") if len(shown_boards) > 1 else None
    shown = [
        board_section(results, board, extra=board_links(board_downloads(board, catalogue)), plot=True, number=number)
        for number, board in enumerate(shown_boards)
    ]
    links = _dataset_links(shown_boards) if datasets else None
    parts = (boards_grid(shown_boards), how_to_read(), links, across(shown_boards), contents, board_controls(shown_boards), *shown)
    return join([part("leaderboards", "Leaderboards", *parts), _methods(results, catalogue)])


def boards_grid(shown_boards: Sequence[Board]) -> Fragment | None:
    """Draw a heat map of every method's first metric on each board, in percent, or return ``None`` for fewer than three boards."""
    cells: dict[tuple[str, str], float] = {}
    for board in shown_boards:
        for family in board.families if board.first.unit == "%" else ():
            row = family.rows[0] if len(family.rows) == 1 else family.selected
            if row is not None and board.first.name in row.scores:
                cells[family.method, board.title] = row.scores[board.first.name].mean
    if len({title for _, title in cells}) < 3:
        return None
    names = {board.first.name.replace("_", " ") for board in shown_boards}
    what = names.pop().capitalize() if len(names) == 1 else "Average performance"
    about = "Means over records; –: no result"
    return gallery_html(Gallery((grid_picture(cells, title=f"{what} by method and scenario, %", what=what, caption=about),)))


def _dataset_links(shown_boards: Sequence[Board]) -> Fragment:
    names = dict.fromkeys(board.dataset for board in shown_boards)
    links = [element("a", name, href=dataset_page_name(name)) for name in names]
    spaced = [content for link in links for content in (" ", link)]
    return element("p", f"{'A page' if len(names) == 1 else 'Pages'} per data set:", *spaced, class_="note")


def dataset_page_name(dataset: str) -> str:
    """Return the file name of a data set's page."""
    return f"dataset-{file_stem(dataset)}.html"


def board_controls(shown_boards: Sequence[Board]) -> Fragment:
    """Render the filters that apply to all boards. They are hidden until their script has started."""
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
    """Render links to the downloads, which are embedded in the page."""
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


def _details_section(results: CampaignResults) -> Fragment:
    return join(
        [
            part("definitions", "What the metrics mean", definitions(results)),
            part("problems", "Cells without a result", show_runs.problems(results)),
            part("provenance", "Provenance", show_runs.provenance(results).body),
        ]
    )


def part(name: str, title: str, *content: Fragment | None) -> Fragment:
    """Render a section of a page under a heading."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


# Key results: the message of a campaign in a few computed sentences, shown before its tables.
# Per scenario and backbone: the best learner, by how much it beats the others or is below a reference, by the leaderboard's family of tests
# (all pairs, Holm). Then how many published values were reproduced, and what to be careful about.


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The key result of one scenario with one backbone.

    Args:
        title: the scenario's title. best: the best learner, empty if none has a value. sentences: plain text.
    """

    title: str
    best: str
    sentences: tuple[str, ...]


def key_results(results: CampaignResults, catalogue: Catalogue, shown_boards: Sequence[Board] | None = None) -> Fragment | None:
    """Render a section with the findings of every scenario, the reproduced values and warnings, or return ``None`` if no cell is finished.

    ``shown_boards``: the boards of these results, if already computed.
    """
    messages = findings(results, catalogue, shown_boards)
    lines = [element("li", element("strong", f.title), ": ", " ".join(f.sentences)) for f in messages]
    always = [element("li", text) for text in (*published_line(results), *warning_lines(results))]
    return key_box(always, lines, [element("li", text) for text in _best_line(messages)]) if lines or always else None


def _best_line(messages: Sequence[Finding]) -> Iterable[str]:
    """How often which method is best; nothing for few scenarios, which are all named."""
    best = Counter(finding.best for finding in messages if finding.best)
    if len(messages) > 2 and best:
        (first, n), *others = best.most_common()
        named = [f"{first} in {n} of {several(len(messages), 'scenario')}", *(f"{name} in {n}" for name, n in others)]
        yield f"Best learner: {join_names(named)}."


def findings(results: Results, catalogue: Catalogue, shown_boards: Sequence[Board] | None = None) -> list[Finding]:
    """Compute one finding per scenario and backbone, in leaderboard order. See :func:`key_results` for ``shown_boards``."""
    every = boards(results, catalogue, first=True) if shown_boards is None else shown_boards
    return [_finding(results, board, backbone) for board in every for backbone in board.backbones]


def _finding(results: Results, board: Board, backbone: str) -> Finding:
    title = board.title if len(board.backbones) == 1 else f"{board.title} × {backbone}"
    rows = [row for row in board.rows if row.group.backbone == backbone and board.first.name in row.scores]
    families = [f for f in board.families if f.rows[0].group.backbone == backbone and f.range(board.first) is not None]
    if not rows:
        return Finding(title=title, best="", sentences=(f"No method has a value of {board.first.label}.",))
    learners = [row for row in rows if not row.reference]
    if not learners:
        values = ", ".join(f"{row.group.label} {_value(board, row)}" for row in rows)
        return Finding(title=title, best="", sentences=(f"No learner has a value of {board.first.label}; for reference: {values}.",))
    if any(family.swept for family in families):
        return _finding_of_sweep(results, board, title, families)
    ranked = [row for row in learners if not row.missing] or learners
    level = rank_level(ranked[0].scores[board.first.name].mean)
    best = [row for row in ranked if rank_level(row.scores[board.first.name].mean) == level]
    others = [row for row in rows if row not in best]
    sentences = _standing(results, board, best, others, board.rows, rivals=len(ranked))
    lacking = [(row.group.label, len(row.records), row.missing) for row in learners if row.missing]
    sentences += [text] if (text := incomplete_text(lacking)) else []
    return Finding(title=title, best=best[0].group.label, sentences=tuple(sentences))


def _finding_of_sweep(results: Results, board: Board, title: str, families: Sequence[Family]) -> Finding:
    """The finding about a sweep: a range for each method; only variants that were not chosen on test data are compared."""
    rows = [row for family in families for row in family.rows if board.first.name in row.scores]
    axes = [name.partition(".")[2] or name for name in dict.fromkeys(name for family in families for name in family.axes)]
    ranges = [f"{family.method} {_range(board, family)}" for family in families if family.swept]
    most = max(len(family.rows) for family in families)
    sentences = [f"{board.first.label} over {most} settings of {join_names(axes)}: {'; '.join(ranges)}."]
    learners = [family for family in families if not family.rows[0].reference]
    if any(family.selected is None for family in learners):
        for family in learners:
            if family.swept and (best := family.best(board.first)) is not None:
                selected = f"{best.group.label} with {_value(board, best)}{_gap_at_equal_settings(board, best, rows)}"
                sentences.append(f"Best of {len(family.rows)} settings of {family.method} by test performance (optimistic): {selected}.")
        return Finding(title=title, best="", sentences=tuple(sentences))
    by_selected = {id(family.selected): family for family in families}
    compared = [row for row in board.compared if id(row) in by_selected and board.first.name in row.scores]
    best = next(row for row in compared if not row.reference)
    family = by_selected[id(best)]
    bound = upper_bound_of(best.group, [row.group for row in rows])
    others = [row for row in compared if row is not best and row.method != UPPER_BOUND]
    others += [row for row in rows if bound is not None and row.group is bound]
    how = f"setting chosen by validation out of {len(family.rows)}" if family.swept else ""
    sentences = [*_standing(results, board, [best], others, [best, *others], rivals=len(learners), how=how), *sentences]
    return Finding(title=title, best=best.group.label, sentences=tuple(sentences))


def _range(board: Board, family: Family) -> str:
    """From the smallest to the largest mean of a method's variants."""
    ends = [number_text(board.first.scale * end, board.first.digits) for end in family.range(board.first) or ()]
    return f"{' to '.join(dict.fromkeys(ends))}{'%' if board.first.unit == '%' else f' {board.first.unit}'}".rstrip()


def _gap_at_equal_settings(board: Board, row: Row, rows: Sequence[Row]) -> str:
    """The distance of a row from joint training at the same settings."""
    bound = upper_bound_of(row.group, [row.group for row in rows])
    partner = next((row for row in rows if bound is not None and row.group is bound), None)
    return _gap(board, row, partner) if partner is not None else ""


def _value(board: Board, row: Row) -> str:
    text = number_text(board.first.scale * row.scores[board.first.name].mean, board.first.digits)
    return f"{text}{'%' if board.first.unit == '%' else f' {board.first.unit}'}".rstrip()


def _statistics(board: Board, row: Row) -> str:
    """The interval of a mean, in page units, or that there is none."""
    score = row.scores[board.first.name]
    if score.refusal:
        return f"{several(score.n, 'record')}, no interval"
    low, high = (number_text(board.first.scale * end, board.first.digits) for end in (score.low, score.high))
    return f"{LEVEL:.0%} interval {low} to {high}, n = {score.n}"


def _gap(board: Board, best: Row, bound: Row) -> str:
    gap = board.first.sign * (bound.scores[board.first.name].mean - best.scores[board.first.name].mean)
    return f", {board.first.amount(abs(gap))} {'below' if gap >= 0 else 'above'} {bound.group.label} ({_value(board, bound)})"


def _standing(
    results: Results, board: Board, best: Sequence[Row], others: Sequence[Row], family: Sequence[Row], *, rivals: int, how: str = ""
) -> list[str]:
    """The best row, or those that share the best mean, against others, by a family of tests; then why nothing could be tested.

    Args:
        how: how its setting was chosen.
    """
    column, first, problem = board.first, best[0], ""
    p: dict[str, float] = {}
    if others and column.metric:
        try:
            tests = _tests(results, board, first, family)
            p = {name: math.nan if test["refused"] else float(test["p_adjusted"]) for name, test in tests.items()}
            if all(math.isnan(value) for value in p.values()):
                problem = next((str(test["refused"]) for test in tests.values() if test["refused"]), "")
        except Refused as refusal:
            problem = str(refusal)
    mean = first.scores[column.name].mean
    gaps = [
        Gap(
            name=row.group.label,
            size=column.scale * column.sign * (mean - row.scores[column.name].mean),
            p=p.get(board.name_of(row), math.nan),
        )
        for row in others
    ]
    said = best_text(
        [row.group.label for row in best],
        rivals,
        f"{column.label} {_value(board, first)}",
        gaps,
        unit=column.gap_unit,
        digits=column.digits,
        alpha=1.0 - LEVEL,
    )
    sentences = [f"{said} [{'; '.join(filter(None, [how, _statistics(board, first)]))}]."]
    return [*sentences, f"No difference can be tested: {problem}."] if problem else sentences


def _tests(results: Results, board: Board, best: Row, family: Sequence[Row]) -> Mapping[str, Mapping[str, Any]]:
    """The tests of the best method against every other row of a family, by the row's name."""
    name = board.name_of(best)
    n_possible_orders = orders_in_all([record for row in board.rows for record in row.records])
    frame = pairs_of(family, results.frame.set_index("key"), board.first, n_possible_orders, len(board.backbones) > 1)
    return {(set(pair) - {name}).pop(): row for row in as_rows(frame) if name in (pair := (row["first"], row["second"]))}


def published_line(results: CampaignResults) -> Iterable[str]:
    """Count the reproduced values among the published values that are not known artefacts. The line is empty if none has a verdict."""
    judged = [row for row in as_rows(counted(compare(results))) if row["verdict"] in AGREEMENTS]
    if judged:
        papers = join_names(list(dict.fromkeys(str(row["paper"]) for row in judged)))
        counts = Counter(row["verdict"] for row in judged)
        others = [f"{n} {'is' if n == 1 else 'are'} {name}" for name in AGREEMENTS if name != "equivalent" and (n := counts[name])]
        rest = f"; {', '.join(others)}" if others else ""
        yield f"{counts['equivalent']} of {len(judged)} comparable values published by {papers} are reproduced (equivalent){rest}."


def warning_lines(results: CampaignResults) -> Iterable[str]:
    """List every kind of warning once, with its number of scenarios. Details are in the notices."""
    kinds: dict[str, set[tuple[str, str]]] = {}
    for guard in guards(results):
        kinds.setdefault(guard.summary, set()).add((guard.preset, guard.backbone))
    scenarios = len({(group.preset, group.backbone) for group in results.groups})
    cautions = [f"{summary} ({len(warnings)} of {scenarios} comparisons)" for summary, warnings in kinds.items()]
    if cautions:
        yield f"Caution: {'; '.join(cautions)}."


# One page per data set of a campaign: what it is, how the campaign's scenarios divide it into tasks, and its leaderboards.


def dataset_pages(
    campaign: Campaign, catalogue: Catalogue, results: CampaignResults, anatomy: str = "", shown_boards: Sequence[Board] | None = None
) -> dict[str, str]:
    """Render the pages of data sets, by file name.

    Args:
        anatomy: the file of the campaign's page with statistics of its tasks, if there is one. shown_boards: as for :func:`key_results`.
    """
    shown = boards(results, catalogue) if shown_boards is None else shown_boards
    names = dict.fromkeys(board.dataset for board in shown)
    return {
        dataset_page_name(name): _page(campaign, catalogue, results, name, anatomy, [board for board in shown if board.dataset == name])
        for name in names
    }


def _page(campaign: Campaign, catalogue: Catalogue, results: CampaignResults, dataset: str, anatomy: str, shown: Sequence[Board]) -> str:
    back = element("p", element("a", campaign.title or campaign.name, href="index.html"), class_="kind")
    link = element("a", "Composition of the tasks", href=anatomy)
    more = element("p", link, ": class shares, drift, label homophily, degrees, and published statistics.") if anatomy else None
    parts = [
        element("header", element("h1", dataset), back, dataset_facts(catalogue, dataset), *notices(results)),
        part("tasks", "Tasks", join([_tasks(shown), more])),
    ]
    title = f"{dataset} – {campaign.title or campaign.name}"
    return site_page(campaign, catalogue, results, [*parts, leaderboards(results, catalogue, shown)], shown, title=title)


def dataset_facts(catalogue: Catalogue, dataset: str) -> Fragment:
    """Show the facts that a data set's plugin declares about it."""
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
    """Tabulate the numbers of tasks, classes and items in the scenarios of a data set, with one :func:`tasks_row` per scenario."""
    head = [head_cell("scenario", "name"), head_cell("setting"), head_cell("tasks", "number"), head_cell("classes per task", "number")]
    head += [head_cell(f"{name} items per task", "number") for name in ("training", "validation", "test")]
    return table(head, rows, "Ranges over the tasks. Task sizes depend on the class order.")


def tasks_row(board: Board) -> list[Fragment]:
    """Return the numbers for the scenario of a board. Ranges are over the tasks of its first record."""
    record = next(record for row in board.rows for record in row.records)
    classes = [len(task.get("classes") or ()) for task in record.tasks]
    cells = [element("td", board.setting), number_cell(len(record.tasks) or _columns(record), 0), _datasets_range(classes)]
    cells += [_datasets_range(task.get(f"n_{name}") for task in record.tasks) for name in ("train", "validation", "test")]
    return [row_head(board.title), *cells]


def _columns(record: Record) -> int:
    return len(record.matrix[0]) if record.matrix else 0


def _datasets_range(values: Iterable[int | None]) -> Fragment:
    known = [value for value in values if value]
    if not known:
        return number_cell(None)
    least, most = min(known), max(known)
    ends = [f"{value:,}" for value in dict.fromkeys((least, most))]
    return exact_cell("–".join(ends), low=least, high=most)


def render_campaign(
    campaign: str | Path,
    *,
    store: str | Path | Store | None = None,
    out: str | Path | None = None,
    overrides: Overrides | Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    catalogue: Catalogue | None = None,
    workers: int = 2,
    cell_timeout_s: float | None = CELL_TIMEOUT_S,
    force: bool = False,
    every: bool = False,
) -> list[RenderedReport]:
    """Render every ``[[report]]`` of a campaign (default: ``campaign_report``) and an ``index.html`` with its leaderboards.

    Nothing is trained unless a report's parameters request it. A failed report does not stop the others. Complete pages are kept if
    records, notebook, parameters and code are unchanged.

    Args:
        campaign: the campaign's file. store: where the records are; default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        out: the folder for the pages; default ``rendered/<campaign>`` next to the campaign file.
        overrides: added to the campaign's own, as when it was run.
        only: filters ``key=value``; reports use only the cells that match them.
        workers: number of notebooks that run in parallel. cell_timeout_s: time limit of one notebook cell in seconds; ``None`` = no limit.
        force: render all pages, even if they are up to date.
        every: after the campaign's own, render every other notebook of the catalogue that reports on a campaign.

    Returns:
        One outcome per report, in the campaign's order; the index follows if it could not be written.

    Raises:
        UsageError: if the campaign file is invalid, ``out`` is a file, or a page in ``out`` with one of these names is not from cglsuite.
    """
    from cglsuite.campaigns.campaign import load_campaign
    from cglsuite.campaigns.executors.progress import say
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import load_catalogue

    loaded = load_campaign(campaign)
    catalogue = catalogue or load_catalogue()
    folder = Path(campaign).parent / "rendered" / loaded.name if out is None else Path(out)
    records, forced = store if isinstance(store, Store) else Store(store), Overrides.of(overrides)
    records.read_from(loaded.stores)
    offered = {
        "campaign": shown_path(Path(campaign)),
        "store": shown_path(records.path),
        "overrides": dict(forced.values),
        "only": list(only),
        "device": forced.device or "",
        "train_missing": False,
    }
    stop = threading.Event()
    reports = _rendered_reports(loaded, catalogue, every)
    pages = _page_names(reports)
    say(f"{loaded.name}: rendering {len(reports)} {'report' if len(reports) == 1 else 'reports'} to {folder}")
    _refuse_foreign(folder, ["index.html", *pages])
    shared = surroundings(records, catalogue)

    def render_report(report: Report, page: str) -> RenderedReport:
        title = f"{loaded.title or loaded.name} – {report.title or report.notebook.replace('_', ' ').replace('-', ' ')}"
        rendered = render_notebook(
            report.notebook,
            report.parameters,
            folder / page,
            catalogue=catalogue,
            title=title,
            heading=report.title or loaded.title or loaded.name,
            offered=offered,
            cell_timeout_s=cell_timeout_s,
            stop=stop,
            shared=shared,
            folders=(Path(campaign).parent,),
            read=records.read,
            force=force,
        )
        return replace(rendered, title=report.title)

    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(reports)))) as pool:
        try:
            rendered = list(pool.map(render_report, reports, pages))
        except BaseException:  # on the user's interrupt, end the processes too
            stop.set()
            raise
    index = _render_index(loaded, rendered, folder, records, forced, only, catalogue)
    return rendered if index.done else [*rendered, index]


def _render_index(
    campaign: Campaign,
    rendered: Sequence[RenderedReport],
    folder: Path,
    store: Store,
    overrides: Overrides,
    only: Sequence[str],
    catalogue: Catalogue,
) -> RenderedReport:
    """Write the index and the pages of data sets. If leaderboards are unavailable, the index states the reason.

    If a page cannot be written, an earlier index is removed.
    """
    page, began = folder / "index.html", time.monotonic()
    results, problem = None, ""
    try:
        from cglsuite.reports.results.results import load_campaign_results

        results = load_campaign_results(campaign, store, overrides=overrides, only=only, catalogue=catalogue)
    except Exception as error:  # noqa: BLE001 - the report boundary: errors of a campaign or a plugin are shown on the page
        problem = str(error) if isinstance(error, CglsuiteError) else f"{type(error).__name__}: {error}"
    try:
        from cglsuite.reports.site.boards import boards

        anatomy = next((report.path.name for report in rendered if report.notebook == "stream_anatomy" and report.done), "")
        left_over = _outdated_pages(folder, [report.path.name for report in rendered])
        shown = boards(results, catalogue) if results is not None else []
        pages = dataset_pages(campaign, catalogue, results, anatomy, shown) if results is not None else {}
        _refuse_foreign(folder, pages)
        for earlier in folder.glob("dataset-*.html"):
            if earlier.name not in pages and _is_ours(earlier):
                earlier.unlink()
        for name, text in (pages | {page.name: site_html(campaign, rendered, catalogue, results, problem, left_over, shown)}).items():
            write_atomic(folder / name, text.encode(), option="--out")
    except Exception as error:  # noqa: BLE001 - likewise; a full disk
        problem = str(error) if isinstance(error, CglsuiteError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            page.unlink()
    return RenderedReport(
        notebook="index", path=page, status="failed" if problem else "done", reason=problem, seconds=time.monotonic() - began
    )


def _is_ours(page: Path) -> bool:
    """Whether a page was written by the suite: its head names it as the generator."""
    with page.open("rb") as file:
        return re.search(rb'content="cglsuite [^"]*"', file.read(5000)) is not None


def _refuse_foreign(folder: Path, names: Iterable[str]) -> None:
    """Refuse to replace files that the suite has not written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for the pages")
    for name in names:
        if (folder / name).is_file() and not _is_ours(folder / name):
            raise UsageError(f"{folder / name} was not written by cglsuite and will not be replaced: move it, or choose a different folder")


def _outdated_pages(folder: Path, pages: Sequence[str]) -> list[str]:
    """Old reports in the folder that the campaign no longer names."""
    there = (path.name.removesuffix(".status.json") for path in sorted(folder.glob("*.html.status.json")))
    return [name for name in there if name not in pages and (folder / name).is_file()]


def _rendered_reports(campaign: Campaign, catalogue: Catalogue, every: bool) -> list[Report]:
    """The reports that a campaign names (default ``campaign_report``); with ``every``, all others that fit it too."""
    from cglsuite.campaigns.campaign import Report

    reports = list(campaign.reports) or [Report(notebook="campaign_report")]
    named = {report.notebook for report in reports}
    others = [entry for entry in catalogue.entries("notebook") if every and entry.name not in named]
    return reports + [Report(notebook=entry.name) for entry in others if _reports_on_campaigns(entry, catalogue)]


def _reports_on_campaigns(entry: Entry, catalogue: Catalogue) -> bool:
    from cglsuite.reports.rendering.parameters import parameter_rows

    if getattr(entry.spec, "interactive", False):
        return False
    try:
        return "campaign" in [name for name, *_ in parameter_rows(entry, catalogue)]
    except Exception:  # noqa: BLE001 - a plugin's file: rendering it will report the fault
        return True


def _page_names(reports: Sequence[Report]) -> list[str]:
    """A file name per report: the notebook's name, numbered if repeated."""
    names: list[str] = []
    for report in reports:
        stem = re.sub(r"[^A-Za-z0-9._+-]", "-", report.notebook).lstrip(".") or "report"
        names.append(next(name for n in itertools.count(1) if (name := f"{stem}{'' if n == 1 else f'-{n}'}.html") not in names))
    return names
