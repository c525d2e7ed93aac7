"""Rendering the reports of a campaign: each notebook in a process of its own, a page or a failure with its reason, and an index."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

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
_LONGEST_PARENT = 60
_PATIENCE_S = 10
_POLL_S = 0.1
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
        out: the folder for the pages; default ``rendered/<campaign>`` beside the campaign file.
        overrides: what goes over the campaign's settings, as it was run.
        workers: notebooks at once. cell_timeout_s: seconds that one cell of a notebook may take; ``None`` = any time.

    Returns:
        One per report, in the campaign's order.

    Raises:
        UsageError: the campaign file is wrong.
    """
    from cglsuite.cells.campaign import Report, load_campaign
    from cglsuite.cells.overrides import Overrides
    from cglsuite.cells.store import Store
    from cglsuite.executors.progress import say
    from cglsuite.host import load_catalogue

    loaded = load_campaign(campaign)
    catalogue = catalogue or load_catalogue()
    folder = Path(campaign).parent / "rendered" / loaded.name if out is None else Path(out)
    forced = Overrides.of(overrides)
    offered = {
        "campaign": _short(Path(campaign)),
        "store": _short(Store(store).path),
        "overrides": dict(forced.settings),
        "device": forced.device or "",
        "train_missing": False,
    }
    stop = threading.Event()
    reports = loaded.reports or [Report(notebook="campaign_report")]
    pages = _page_names(reports)
    say(f"{loaded.name}: rendering {len(reports)} {'report' if len(reports) == 1 else 'reports'} to {folder}")

    def one(report: Report, page: str) -> RenderedReport:
        title = f"{loaded.title or loaded.name} – {report.notebook.replace('_', ' ').replace('-', ' ')}"
        return render_notebook(
            report.notebook,
            report.parameters,
            folder / page,
            catalogue=catalogue,
            title=title,
            offered=offered,
            cell_timeout_s=cell_timeout_s,
            stop=stop,
        )

    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(reports)))) as pool:
        try:
            rendered = list(pool.map(one, reports, pages))
        except BaseException:  # the user's interrupt: take the processes along
            stop.set()
            raise
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
    stop: threading.Event | None = None,
) -> RenderedReport:
    """Render one notebook of the catalogue to ``page``; a failure is in what is returned, not raised.

    Beside the page stands ``<page>.status.json``: ``running`` while it is rendered, then ``done`` or ``failed`` with the reason. After a
    failure the page says so too, with the failing cell's traceback.

    Args:
        parameters: must be declared by the notebook. offered: given to the notebook where it declares them and ``parameters`` does not.
        stop: set from another thread, it ends the rendering.
    """
    page, began = Path(page), time.monotonic()
    logger.info("rendering %s to %s", name, page)
    try:
        _write_status(page, {"status": "running", "notebook": name, "pid": os.getpid(), "since": int(time.time())})
        job = _job(name, parameters, page, catalogue, title or name, offered or {}, cell_timeout_s)
        with _scratch() as scratch:
            outcome = _in_process(dataclasses.replace(job, scratch=str(scratch)), stop or threading.Event())
    except CglsuiteError as error:
        outcome = Outcome(status="failed", reason=str(error))
    except Exception as error:  # noqa: BLE001 - the report boundary: a broken notebook file, a disk on which no folder can be made
        outcome = Outcome(status="failed", reason=f"{type(error).__name__}: {error}")
    report = RenderedReport(notebook=name, path=page, status=outcome.status, reason=outcome.reason, seconds=time.monotonic() - began)
    if report.done and page.stat().st_size > LARGEST_PAGE:
        logger.warning("%s has %.1f MB; it will be slow to open", page, page.stat().st_size / 1e6)
    if not report.done:
        logger.info("report %s failed: %s", name, report.reason)
        _tell_failure(report, outcome, title or name)
    with contextlib.suppress(StoreError):  # where the disk is full, the returned reason says so
        _write_status(page, {**asdict(report), "path": page.name, "details": outcome.details, "seconds": round(report.seconds, 2)})
    return report


def _job(
    name: str,
    parameters: Mapping[str, Any],
    page: Path,
    catalogue: Catalogue,
    title: str,
    offered: Mapping[str, Any],
    cell_timeout_s: float | None,
) -> Job:
    """What to render, its parameters checked before anything runs."""
    import nbformat

    from cglsuite.reports.parameters import check_parameters, declared_parameters

    source: Path = catalogue.resolve(catalogue.get("notebook", name))
    declared = declared_parameters(nbformat.read(source, as_version=4))  # type: ignore[no-untyped-call]
    check_parameters(declared, parameters, name)
    return Job(
        notebook=str(source),
        name=name,
        title=title,
        parameters={key: value for key, value in offered.items() if key in declared} | dict(parameters),
        output=str(page.absolute()),
        cell_timeout_s=cell_timeout_s,
    )


def _in_process(job: Job, stop: threading.Event) -> Outcome:
    """Render in a process of its own; one that ends without an answer is a failure that says how it ended."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "cglsuite.reports.render_one"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    answer, errors = _Drain(process.stdout), _Drain(process.stderr)
    try:
        with contextlib.suppress(BrokenPipeError):  # it ends when its stdin closes, so that stays open while it works
            print(job.to_json(), file=process.stdin, flush=True)
        while process.poll() is None and not stop.wait(_POLL_S):
            pass
    finally:
        _end(process)
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
    logger.debug("%s: %s", job.name, errors.text())
    with contextlib.suppress(ValueError, TypeError, IndexError):
        return Outcome.from_json(answer.text().strip().splitlines()[-1])
    status = process.returncode
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    details = errors.text()[-4000:].strip()
    return Outcome(status="failed", reason=f"the rendering process {how} before the report was complete", details=details)


class _Drain:
    """Reads a pipe as it fills, so that its writer never waits. A kernel that outlives its process for a moment may keep it open."""

    def __init__(self, pipe: IO[str] | None) -> None:
        self._parts: list[str] = []
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in self._pipe or ():
                self._parts.append(line)
        if self._pipe is not None:
            self._pipe.close()

    def text(self) -> str:
        """What has come, once the pipe is closed or a few seconds have passed."""
        self._thread.join(_PATIENCE_S / 3)
        return "".join(self._parts)


def _end(process: subprocess.Popen[str]) -> None:
    """Make sure that the process is gone: politely, so that it takes its kernel along, then by force."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A fresh folder with a short absolute path: the paths of Unix sockets are limited to about 100 characters."""
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="cgl-", dir=parent if len(parent) <= _LONGEST_PARENT else "/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_status(page: Path, status: Mapping[str, Any]) -> None:
    write_atomic(page.with_name(f"{page.name}.status.json"), (json.dumps(status, sort_keys=True, indent=1) + "\n").encode())


def _tell_failure(report: RenderedReport, outcome: Outcome, title: str) -> None:
    """Put a page that says what went wrong in the place of the report; where even that cannot be written, an earlier page must not stay."""
    from cglsuite.reports.plain_pages import failure_html

    try:
        write_atomic(report.path, failure_html(title, report.notebook, outcome).encode())
    except StoreError:
        with contextlib.suppress(OSError):
            report.path.unlink()


def _write_index(campaign: Campaign, rendered: Sequence[RenderedReport], folder: Path) -> None:
    from cglsuite.reports.plain_pages import index_html

    try:
        write_atomic(folder / "index.html", index_html(campaign, rendered).encode())
    except StoreError as error:
        logger.warning("no index: %s", error)


def _page_names(reports: Sequence[Report]) -> list[str]:
    """A file name per report: the notebook's name, numbered where it comes again."""
    names: list[str] = []
    for report in reports:
        stem = re.sub(r"[^A-Za-z0-9._+-]", "-", report.notebook).lstrip(".") or "report"
        names.append(next(name for n in itertools.count(1) if (name := f"{stem}{'' if n == 1 else f'-{n}'}.html") not in names))
    return names


def _short(path: Path) -> str:
    """Relative to the current folder where it is inside: pages should not tell where on a machine they were made."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)
