"""One notebook rendered in a separate process: a page, or a failure with its reason.

A page that is complete and up to date is not rendered again. If two runs render the same page, one waits and keeps the other's.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cglsuite.base.atomic import store_error, write_atomic
from cglsuite.base.errors import CglsuiteError, StoreError
from cglsuite.cells.storage.lease import Lease, read_holder
from cglsuite.reports.rendering.freshness import file_digest, kept_status, page_fingerprint
from cglsuite.reports.rendering.job import Job, Outcome
from cglsuite.reports.rendering.process import in_process

if TYPE_CHECKING:
    from cglsuite.host import Catalogue

__all__ = ["CELL_TIMEOUT_S", "LARGEST_PAGE", "RenderedReport", "render_notebook"]

CELL_TIMEOUT_S = 3600.0
"""Default time limit for one cell of a notebook, in seconds."""
LARGEST_PAGE = 3_000_000
"""Size in bytes above which a warning is logged: such a page is slow to open on a phone."""
_LEASES = ".rendering"
_WAIT_S = 0.5
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RenderedReport:
    """The outcome of one report. ``path`` is its page: the report, or a page that says why there is none; ``seconds`` is how long rendering
    took, possibly in an earlier run."""

    notebook: str
    path: Path
    status: Literal["done", "failed"]
    reason: str
    seconds: float

    @property
    def done(self) -> bool:
        """Whether the page is a complete report."""
        return self.status == "done"


def render_notebook(
    name: str,
    parameters: Mapping[str, Any],
    page: str | Path,
    *,
    catalogue: Catalogue,
    title: str = "",
    heading: str = "",
    offered: Mapping[str, Any] | None = None,
    cell_timeout_s: float | None = CELL_TIMEOUT_S,
    stop: threading.Event | None = None,
    shared: str = "",
    folders: tuple[Path, ...] = (),
    force: bool = False,
) -> RenderedReport:
    """Render one notebook of the catalogue to ``page``; a failure is returned, not raised.

    ``<page>.status.json`` beside the page says ``running`` during rendering, then ``done`` or ``failed`` with the reason. After a failure
    the page shows the failing cell's traceback. While another run renders the same page, this one waits.

    Args:
        heading: the page's first heading, in place of the notebook's own.
        parameters: must be declared by the notebook. offered: defaults for parameters that the notebook declares and ``parameters`` lacks.
        stop: ends the rendering when set from another thread.
        shared: :func:`cglsuite.reports.rendering.freshness.surroundings`; if given, a page that is up to date is kept unless ``force``.
        folders: where files that parameters name may lie.
    """
    page, began, stop = Path(page), time.monotonic(), stop or threading.Event()
    outcome = Outcome(status="failed", reason="interrupted while another run was rendering this page, which was left alone")
    try:
        with _turn(page, stop) as mine:
            if not mine:
                return _report(name, page, outcome, began)
            fingerprint = ""
            try:
                job = _job(name, parameters, page, catalogue, title or name, heading, offered or {}, cell_timeout_s)
                if shared:
                    fingerprint = page_fingerprint(shared, Path(job.notebook), job.title, job.parameters, folders)
                    kept = None if force else kept_status(page, _status_path(page), fingerprint)
                    if kept is not None:
                        logger.info("%s is up to date", page)
                        return RenderedReport(notebook=name, path=page, status="done", reason="", seconds=float(kept["seconds"]))
                logger.info("rendering %s to %s", name, page)
                _write_status(page, {"status": "running", "notebook": name, "pid": os.getpid(), "since": int(time.time())})
                outcome = in_process(job, stop)
            except CglsuiteError as error:
                outcome = Outcome(status="failed", reason=str(error))
            except Exception as error:  # noqa: BLE001 - the report boundary: a broken notebook file, a disk without room for a folder
                outcome = Outcome(status="failed", reason=f"{type(error).__name__}: {error}")
            return _finish(_report(name, page, outcome, began), outcome, title or name, fingerprint)
    except StoreError as error:  # the lease cannot be written
        outcome = Outcome(status="failed", reason=str(error))
        return _finish(_report(name, page, outcome, began), outcome, title or name, "")


def _status_path(page: Path) -> Path:
    return page.with_name(f"{page.name}.status.json")


@contextlib.contextmanager
def _turn(page: Path, stop: threading.Event) -> Iterator[bool]:
    """Wait until no other run renders this page, and take its lease; False if ``stop`` is set first.

    Raises:
        StoreError: the lease cannot be written.
    """
    path = page.parent / _LEASES / f"{page.name}.lease"
    lease, announced = Lease(path), False
    try:
        while not lease.acquire():
            if not announced:
                holder = read_holder(path)
                logger.warning("%s is being rendered by another run: waiting for it%s", page, f" ({holder.wait})" if holder else "")
                announced = True
            if stop.wait(_WAIT_S):
                yield False
                return
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            raise store_error(error.__cause__, path, "--out") from error
        raise
    with lease:
        yield True


def _report(name: str, page: Path, outcome: Outcome, began: float) -> RenderedReport:
    return RenderedReport(notebook=name, path=page, status=outcome.status, reason=outcome.reason, seconds=time.monotonic() - began)


def _finish(report: RenderedReport, outcome: Outcome, title: str, fingerprint: str) -> RenderedReport:
    """Write the outcome: the status file, and a page for a failure."""
    status = {**asdict(report), "path": report.path.name, "details": outcome.details, "seconds": round(report.seconds, 2)}
    if report.done:
        status |= {"fingerprint": fingerprint, "sha256": file_digest(report.path)}
        if report.path.stat().st_size > LARGEST_PAGE:
            logger.warning("%s has %.1f MB; it will be slow to open", report.path, report.path.stat().st_size / 1e6)
    else:
        logger.info("report %s failed: %s", report.notebook, report.reason)
        _show_failure(report, outcome, title)
    with contextlib.suppress(StoreError):  # if the disk is full, the returned reason says so
        _write_status(report.path, status)
    return report


def _job(
    name: str,
    parameters: Mapping[str, Any],
    page: Path,
    catalogue: Catalogue,
    title: str,
    heading: str,
    offered: Mapping[str, Any],
    cell_timeout_s: float | None,
) -> Job:
    """What to render, its parameters checked before anything runs."""
    import nbformat

    from cglsuite.reports.rendering.parameters import check_parameters, declared_parameters

    entry = catalogue.get("notebook", name)
    source: Path = catalogue.resolve(entry)
    declared = declared_parameters(nbformat.read(source, as_version=4))  # type: ignore[no-untyped-call]
    parameters = check_parameters(declared, parameters, name)
    return Job(
        notebook=str(source),
        name=name,
        title=title,
        heading=heading,
        parameters={key: value for key, value in offered.items() if key in declared} | dict(parameters),
        output=str(page.absolute()),
        cell_timeout_s=cell_timeout_s,
    )


def _write_status(page: Path, status: Mapping[str, Any]) -> None:
    write_atomic(_status_path(page), (json.dumps(status, sort_keys=True, indent=1) + "\n").encode(), option="--out")


def _show_failure(report: RenderedReport, outcome: Outcome, title: str) -> None:
    """Replace the report by a page that explains the failure; if that cannot be written, remove the earlier page."""
    from cglsuite.reports.rendering.failure import failure_html

    try:
        write_atomic(report.path, failure_html(title, report.notebook, outcome).encode(), option="--out")
    except StoreError:
        with contextlib.suppress(OSError):
            report.path.unlink()
