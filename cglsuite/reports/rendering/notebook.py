"""Render one notebook in a separate process. The outcome is a page, or a failure with its reason.

A page that is complete and up to date is not rendered again. If two runs render the same page, one waits and uses the other's page. A
fingerprint covers all inputs: every record and search in the store (a notebook may read more of it than its campaign plans), the notebook
and its parameters, the files named by parameters, the installed versions of the core's dependencies, and the sources of the core and the
loaded plugins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from nbformat.v4 import new_code_cell, new_notebook, new_output

from cglsuite.base.atomic import store_error, write_atomic
from cglsuite.base.errors import CglsuiteError, StoreError
from cglsuite.base.hashing import digest
from cglsuite.base.inputs import read_regular
from cglsuite.base.markup import element, join, plain_text
from cglsuite.cells.device import resolve_device
from cglsuite.cells.storage.lease import Lease, read_holder
from cglsuite.cells.storage.store import Store
from cglsuite.reports.rendering.job import Job, Outcome, hand_over
from cglsuite.reports.rendering.page import Page, page_html

if TYPE_CHECKING:
    from cglsuite.host import Catalogue


CELL_TIMEOUT_S = 3600.0
"""Default time limit for one cell of a notebook, in seconds."""
LARGEST_PAGE = 3_000_000
"""Size in bytes above which a warning is logged: such a page is slow to open on a phone."""
_LEASES = ".rendering"
_WAIT_S = 0.5
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RenderedReport:
    """The outcome of rendering one report.

    ``path`` is its page, which shows the report or the reason for a failure. ``seconds`` is the rendering time, possibly of an earlier run.
    ``title`` is the report's title in its campaign.
    """

    notebook: str
    path: Path
    status: Literal["done", "failed"]
    reason: str
    seconds: float
    title: str = ""

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
    read: Sequence[Path] = (),
    force: bool = False,
    computed: object = None,
) -> RenderedReport:
    """Render one notebook of the catalogue to ``page``. A failure is returned, not raised.

    The file ``<page>.status.json`` next to the page has the status ``running`` during rendering, then ``done``, or ``failed`` with the
    reason. After a failure, the page shows the failing cell's traceback. While another run renders the same page, this one waits.

    Args:
        heading: the page's first heading, in place of the notebook's own.
        parameters: values of parameters that the notebook declares. offered: defaults for declared parameters not in ``parameters``.
        stop: stops rendering when set from another thread.
        shared: the result of :func:`cglsuite.reports.rendering.notebook.surroundings`; with it, a page that is up to date is not rendered
            again unless ``force``.
        folders: where to look for files that parameters name. read: further stores for the notebook to read from.
        computed: a value that the notebook need not compute again; see :func:`cglsuite.reports.rendering.job.computed`.
    """
    page, began, stop = Path(page), time.monotonic(), stop or threading.Event()
    outcome = Outcome(status="failed", reason="interrupted while another run was rendering this page, which was left alone")
    try:
        with _lease_of_page(page, stop) as mine:
            if not mine:
                return _report(name, page, outcome, began)
            fingerprint = ""
            try:
                job = _job(name, parameters, page, catalogue, title or name, heading, offered or {}, cell_timeout_s)
                if shared:
                    fingerprint = page_fingerprint(shared, Path(job.notebook), job.title, job.parameters, folders)
                    status = None if force else current_status(page, _status_path(page), fingerprint)
                    if status is not None:
                        logger.info("%s is up to date", page)
                        return RenderedReport(notebook=name, path=page, status="done", reason="", seconds=float(status["seconds"]))
                logger.info("rendering %s to %s", name, page)
                _write_status(page, {"status": "running", "notebook": name, "pid": os.getpid(), "since": int(time.time())})
                outcome = in_process(dataclasses.replace(job, read=tuple(map(str, read))), stop, computed)
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
def _lease_of_page(page: Path, stop: threading.Event) -> Iterator[bool]:
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
    """Write the status file and, after a failure, a page that explains it."""
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
    """Create the rendering job, validating its parameters before anything runs."""
    from cglsuite.reports.rendering.parameters import accepted

    entry = catalogue.get("notebook", name)
    source: Path = catalogue.resolve(entry)
    return Job(
        notebook=str(source),
        name=name,
        title=title,
        heading=heading,
        parameters=accepted(entry, catalogue, parameters, offered),
        output=str(page.absolute()),
        cell_timeout_s=cell_timeout_s,
    )


def _write_status(page: Path, status: Mapping[str, Any]) -> None:
    write_atomic(_status_path(page), (json.dumps(status, sort_keys=True, indent=1) + "\n").encode(), option="--out")


def _show_failure(report: RenderedReport, outcome: Outcome, title: str) -> None:
    """Replace the report by a page that explains the failure; if that cannot be written, remove the earlier page."""

    try:
        write_atomic(report.path, failure_html(title, report.notebook, outcome).encode(), option="--out")
    except StoreError:
        with contextlib.suppress(OSError):
            report.path.unlink()


# Every notebook runs in a separate process, so the caller always gets an outcome and no kernel is left running.

_LONGEST_PARENT = 60
_PATIENCE_S = 10
_POLL_S = 0.1


def in_process(job: Job, stop: threading.Event, computed: object = None) -> Outcome:
    """Render a job in a separate process with a temporary scratch folder. Setting ``stop`` ends the process."""
    with _scratch() as scratch:
        if computed is not None:
            hand_over(computed, scratch)
        return _in_process(dataclasses.replace(job, scratch=str(scratch)), stop)


# Where rfc3987-syntax is installed, as it is beside JupyterLab, importing jsonschema compiles a grammar of IRIs, which takes a second.
_START = (
    "import runpy, sys; sys.modules['rfc3987_syntax'] = None; "
    "runpy.run_module('cglsuite.reports.rendering.child', run_name='__main__', alter_sys=True)"
)


def _in_process(job: Job, stop: threading.Event) -> Outcome:
    """Render in a separate process. If it ends without an outcome, the outcome is a failure that states how the process ended."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _START],
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
        with contextlib.suppress(BrokenPipeError):  # the child exits when its stdin closes, so keep it open meanwhile
            print(job.to_json(), file=process.stdin, flush=True)
        while process.poll() is None and not stop.wait(_POLL_S):
            pass
        running = process.poll() is None
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
    ending = f"the rendering process {how}"
    # Our own signal may have killed it: some libraries abort when a signal arrives.
    reason = f"interrupted before the report was complete; {ending}" if running else f"{ending} before the report was complete"
    return Outcome(status="failed", reason=reason, details=errors.text()[-4000:].strip())


class _Drain:
    """Reads a pipe continuously so that its writer never blocks, even if a kernel briefly holds it open after the process has ended."""

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
        """Wait until the pipe is closed, for at most a few seconds, and return the output so far."""
        self._thread.join(_PATIENCE_S / 3)
        return "".join(self._parts)


def _end(process: subprocess.Popen[str]) -> None:
    """End the process, first with SIGTERM so that it can stop its kernel, then with SIGKILL."""
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
    """Create a temporary folder with a short absolute path, because paths of Unix sockets are limited to about 100 characters."""
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="cgl-", dir=parent if len(parent) <= _LONGEST_PARENT else "/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# The page shown in place of a failed report.


def failure_html(title: str, notebook: str, outcome: Outcome) -> str:
    """Build a page that cannot be mistaken for a report. It shows what failed and why, with the failing cell as plain text."""
    details = element("pre", plain_text(outcome.details), class_="error", tabindex=0) if outcome.details else None
    lines = element("p", element("strong", "This report failed.")), element("p", plain_text(outcome.reason))
    notice = element("div", *lines, class_="notice bad", role="alert")
    output = new_output("display_data", {"text/html": join([element("h1", title), notice, details]).source})  # type: ignore[no-untyped-call]
    page = new_notebook(cells=[new_code_cell("", outputs=[output])])  # type: ignore[no-untyped-call]
    stamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return page_html(page, Page(title=f"FAILED: {title}", status="failed", footer=(f"Notebook {notebook}; failed {stamp}.",)))


_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_DATA_ENDINGS = (".csv", ".css", ".js", ".j2", ".json", ".toml")


def surroundings(store: Store | Path, catalogue: Catalogue) -> str:
    """Compute the fingerprint (hex) of the inputs that all pages of one run share: records, versions, code and kind of device."""
    records = list(_record_digests(store if isinstance(store, Store) else Store(store)))
    return digest([records, _versions(), list(_source_digests(catalogue)), resolve_device("auto")])


def page_fingerprint(shared: str, notebook: Path, title: str, parameters: Mapping[str, Any], folders: tuple[Path, ...] = ()) -> str:
    """Compute the fingerprint (hex) of one page.

    Args:
        shared: the result of :func:`surroundings`. notebook: path of the notebook. parameters: the values passed to it.
        folders: where to look for files named by parameters, in addition to the current folder. Their content is part of the fingerprint.

    Raises:
        TypeError: a parameter is not JSON.
    """
    named = {text: file_digest(path) for text in _texts(parameters) for path in _files(text, folders)}
    return digest([shared, file_digest(notebook), title, parameters, named])


def current_status(page: Path, status: Path, fingerprint: str) -> dict[str, Any] | None:
    """Return the content of a page's status file if the page is complete, unmodified and has this fingerprint, or ``None`` otherwise."""
    try:
        content = json.loads(read_regular(status))
        wanted = {"status": "done", "fingerprint": fingerprint, "sha256": file_digest(page)}
        return content if isinstance(content, dict) and all(content.get(name) == value for name, value in wanted.items()) else None
    except (OSError, ValueError):
        return None


def file_digest(path: Path) -> str:
    """Return the SHA-256 hash (hex) of a file's content."""
    return hashlib.sha256(read_regular(path)).hexdigest()


def _record_digests(store: Store) -> Iterator[tuple[str, str]]:
    for key, sha256 in store.digests():
        yield f"cells/{key}.json", sha256
    for path in (path for folder in (store.path, *store.read) for path in sorted((folder / "searches").glob("*.json"))):
        with contextlib.suppress(FileNotFoundError):  # replaced or renamed at this moment
            yield f"searches/{path.name}", file_digest(path)


def _versions() -> dict[str, str]:
    """Return the versions of Python and of every distribution that the core requires."""
    names = {match[0] for line in importlib.metadata.requires("cglsuite") or () if (match := _REQUIREMENT.match(line))}
    versions = {"python": platform.python_version()}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # a dependency of an extra that is not installed
            continue
    return versions


def _source_digests(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    core = Path(__file__).parents[2]
    data = sorted(path for path in core.rglob("*") if path.suffix in _DATA_ENDINGS and path.is_file())
    yield "cglsuite", _source_digest(core, *data)
    for record in catalogue.records:
        source = record.source
        is_local = source is not None and source.exists() and core not in (source, *source.parents)
        yield f"{record.label} {record.entry_point} {record.status}", _source_digest(source) if is_local and source is not None else ""


def _source_digest(*roots: Path) -> str:
    """Return the SHA-256 hash (hex) of the Python sources below ``roots``: relative names and contents, with normalised line ends."""
    total = hashlib.sha256()
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix())
        for file in files:
            name = file.name if file == root else file.relative_to(root).as_posix()
            total.update(f"{root.name}/{name}\0".encode())
            total.update(file.read_bytes().replace(b"\r\n", b"\n"))
            total.update(b"\0")
    return total.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _files(text: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the first file with this name, if there is one."""
    if not text or len(text) > 4096 or "\0" in text:
        return
    for folder in (Path(), *folders):
        path = folder / text
        try:
            if path.is_file():
                yield path
                return
        except OSError:  # not a path, for example because the name is too long
            return
