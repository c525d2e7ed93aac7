"""Rendering the reports of a campaign: each notebook in a process of its own, a page or a failure with its reason, and an index."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.cells.atomic import write_atomic
from cglsuite.errors import CglsuiteError, StoreError
from cglsuite.reports.job import Job, Outcome

if TYPE_CHECKING:
    from cglsuite.cells.campaign import Campaign, Report
    from cglsuite.cells.overrides import Overrides
    from cglsuite.host import Catalogue

__all__ = ["CELL_TIMEOUT_S", "LARGEST_PAGE", "RenderedReport", "render_campaign", "render_notebook"]

CELL_TIMEOUT_S = 3600.0
"""Seconds that one cell of a notebook may take, unless told otherwise."""
LARGEST_PAGE = 3_000_000
"""Bytes above which a page is remarked upon: it gets slow to open on a phone."""
_LONGEST_SOCKET = 60
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RenderedReport:
    """What became of one report. ``path`` is its page: the report, or a page that says why there is none."""

    notebook: str
    path: Path
    status: Literal["done", "failed"]
    reason: str
    seconds: float

    @property
    def done(self) -> bool:
        """Whether the page is a complete report."""
        return self.status == "done"


def render_campaign(
    campaign: str | Path,
    *,
    store: str | Path | None = None,
    out: str | Path | None = None,
    overrides: Overrides | Mapping[str, Any] | None = None,
    catalogue: Catalogue | None = None,
    workers: int = 2,
    cell_timeout_s: float | None = CELL_TIMEOUT_S,
) -> list[RenderedReport]:
    """Render every ``[[report]]`` of a campaign (``campaign_report`` where it names none), and an ``index.html`` that links them.

    Nothing is trained, unless a report's parameters say so. A report that fails does not keep the others from being rendered.

    Args:
        campaign: the campaign's file. store: where the records are; default ``$CGLSUITE_STORE``, else ``./.cglsuite``.
        out: the folder for the pages; default ``reports/_out/<campaign>`` in the current folder.
        overrides: what goes over the campaign's settings, as it was run.
        workers: notebooks at once. cell_timeout_s: seconds that one cell of a notebook may take; ``None`` = any time.

    Returns:
        One per report, in the campaign's order.

    Raises:
        UsageError: the campaign file is wrong.
        StoreError: the folder cannot be made.
    """
    from cglsuite.cells.campaign import Report, load_campaign
    from cglsuite.cells.overrides import Overrides
    from cglsuite.cells.store import Store
    from cglsuite.host import load_catalogue

    loaded = load_campaign(campaign)
    catalogue = catalogue or load_catalogue()
    folder = Path("reports/_out") / loaded.name if out is None else Path(out)
    given = {
        "campaign": _short(Path(campaign)),
        "store": _short(Store(store).path),
        "overrides": _plain(Overrides.of(overrides)),
        "train_missing": False,
    }
    reports = loaded.reports or [Report(notebook="campaign_report")]
    pages = _page_names(reports)

    def one(report: Report, page: str) -> RenderedReport:
        title = f"{loaded.title or loaded.name} – {report.notebook.replace('_', ' ').replace('-', ' ')}"
        return render_notebook(
            report.notebook, report.parameters, folder / page, catalogue=catalogue, title=title, offered=given, cell_timeout_s=cell_timeout_s
        )

    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(reports)))) as pool:
        rendered = list(pool.map(one, reports, pages))
    _write_index(loaded, rendered, folder)
    return rendered


def render_notebook(
    name: str,
    parameters: Mapping[str, Any],
    page: str | Path,
    *,
    catalogue: Catalogue,
    title: str = "",
    offered: Mapping[str, Any] | None = None,
    cell_timeout_s: float | None = CELL_TIMEOUT_S,
) -> RenderedReport:
    """Render one notebook of the catalogue to ``page``; a failure is in what is returned, not raised.

    Beside the page stands ``<page>.status.json``: ``running`` while it is rendered, then ``done`` or ``failed`` with the reason. After a
    failure the page says so too, with the failing cell's traceback.

    Args:
        parameters: must be declared by the notebook. offered: given to the notebook where it declares them and ``parameters`` does not.
    """
    page, began = Path(page), time.monotonic()
    logger.info("rendering %s to %s", name, page)
    try:
        _write_status(page, {"status": "running", "notebook": name, "pid": os.getpid(), "since": int(time.time())})
        outcome = _rendered(name, parameters, page, catalogue, title or name, offered or {}, cell_timeout_s)
    except CglsuiteError as error:
        outcome = Outcome(status="failed", reason=str(error))
    report = RenderedReport(notebook=name, path=page, status=outcome.status, reason=outcome.reason, seconds=time.monotonic() - began)
    if report.done and page.stat().st_size > LARGEST_PAGE:
        logger.warning("%s has %.1f MB; it will be slow to open", page, page.stat().st_size / 1e6)
    if not report.done:
        logger.warning("report %s failed: %s", name, report.reason)
        _tell_failure(report, outcome, title or name)
    with contextlib.suppress(StoreError):  # where the disk is full, the returned reason says so
        _write_status(page, {**asdict(report), "path": page.name, "details": outcome.details, "seconds": round(report.seconds, 2)})
    return report


def _rendered(
    name: str, parameters: Mapping[str, Any], page: Path, catalogue: Catalogue, title: str, offered: Mapping[str, Any], cell_timeout_s: float | None
) -> Outcome:
    import nbformat

    from cglsuite.reports.parameters import check_parameters, declared_parameters

    source: Path = catalogue.resolve(catalogue.get("notebook", name))
    declared = declared_parameters(nbformat.read(source, as_version=4))
    check_parameters(declared, parameters, name)
    merged = {key: value for key, value in offered.items() if key in declared} | dict(parameters)
    with _scratch() as scratch:
        job = Job(
            notebook=str(source),
            name=name,
            title=title,
            parameters=merged,
            output=str(page.absolute()),
            scratch=str(scratch),
            cell_timeout_s=cell_timeout_s,
        )
        return _in_process(job)


def _in_process(job: Job) -> Outcome:
    """Render in a process of its own; one that ends without an answer is a failure that says how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cglsuite.reports.render_one"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        with process, _kept_open(process, job.to_json()) as (answer, errors):
            pass
    finally:
        _stop(process)
    logger.debug("%s: %s", job.name, errors)
    with contextlib.suppress(ValueError, TypeError, IndexError):
        return Outcome.from_json(answer.strip().splitlines()[-1])
    status = process.returncode
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return Outcome(status="failed", reason=f"the rendering process {how} before the report was complete", details=errors[-4000:])
