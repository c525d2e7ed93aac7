"""The reports of a campaign: every notebook it names, and an index with its leaderboards."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError, UsageError
from cglsuite.reports.rendering.notebook import CELL_TIMEOUT_S, RenderedReport, render_notebook, surroundings
from cglsuite.reports.rendering.parameters import shown_path

if TYPE_CHECKING:
    from cglsuite.campaigns.campaign import Campaign, Report
    from cglsuite.campaigns.overrides import Overrides
    from cglsuite.cells.storage.store import Store
    from cglsuite.host import Catalogue, Entry


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
    """Render every ``[[report]]`` of a campaign (``campaign_report`` where it names none), and an ``index.html`` with its leaderboards.

    Nothing is trained unless a report's parameters say so. A failed report does not stop the others. Complete pages are kept if records,
    notebook, parameters and code are unchanged.

    Args:
        campaign: the campaign's file. store: where the records are; default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        out: the folder for the pages; default ``rendered/<campaign>`` next to the campaign file.
        overrides: on top of the campaign's, as when it was run.
        only: report on the cells that pass these filters ``key=value`` alone.
        workers: notebooks at once. cell_timeout_s: seconds that one cell of a notebook may take; ``None`` = any time.
        force: render all pages, even if they are up to date.
        every: after the campaign's own, render every other notebook of the catalogue that reports on a campaign.

    Returns:
        One outcome per report, in the campaign's order; the index follows if it could not be written.

    Raises:
        UsageError: the campaign file is wrong; ``out`` is a file, or has a page of one of these names that is not of cglsuite.
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
    reports = _reports(loaded, catalogue, every)
    pages = _page_names(reports)
    say(f"{loaded.name}: rendering {len(reports)} {'report' if len(reports) == 1 else 'reports'} to {folder}")
    _refuse_foreign(folder, ["index.html", *pages])
    shared = surroundings(records, catalogue)

    def render_one(report: Report, page: str) -> RenderedReport:
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
            rendered = list(pool.map(render_one, reports, pages))
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
    """Write the index and the pages of data sets. The index says why if leaderboards are unavailable.

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
        from cglsuite.reports.site.index import dataset_pages, site_html

        anatomy = next((report.path.name for report in rendered if report.notebook == "stream_anatomy" and report.done), "")
        left_over = _left_over(folder, [report.path.name for report in rendered])
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
            raise UsageError(f"{folder / name} was not written by cglsuite, and is not replaced: move it, or name another folder")


def _left_over(folder: Path, pages: Sequence[str]) -> list[str]:
    """Old reports in the folder that the campaign no longer names."""
    there = (path.name.removesuffix(".status.json") for path in sorted(folder.glob("*.html.status.json")))
    return [name for name in there if name not in pages and (folder / name).is_file()]


def _reports(campaign: Campaign, catalogue: Catalogue, every: bool) -> list[Report]:
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
