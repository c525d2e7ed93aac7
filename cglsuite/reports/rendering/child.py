"""Render one notebook in a separate process, which the caller starts with this module as ``__main__``.

The process reads a job from stdin and writes the outcome to stdout. The page is written last and atomically. When stdin closes, the caller
has ended, so the process stops its kernel and exits.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError, ReportError
from cglsuite.base.markup import plain_text
from cglsuite.reports.rendering.job import Job, Outcome, handed_over

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from papermill.engines import NotebookExecutionManager


def render(job: Job) -> Outcome:
    """Execute the notebook and write its page. A failure is part of the returned outcome and is not raised."""

    try:
        _render(job)
    except NotebookFailure as failure:
        code = f"\n\nThe cell:\n{failure.source}" if failure.source else ""
        return Outcome(status="failed", reason=str(failure), details=(failure.traceback + code).strip())
    except CglsuiteError as error:
        return Outcome(status="failed", reason=str(error))
    except OSError as error:
        return Outcome(status="failed", reason=f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
    except Exception as error:  # noqa: BLE001 - the report boundary: reported to the caller
        import traceback

        return Outcome(status="failed", reason=f"{type(error).__name__}: {error}", details=traceback.format_exc())
    return Outcome(status="done")


def _render(job: Job) -> None:
    import nbformat
    import papermill

    from cglsuite.reports.rendering.page import Page, page_html

    began = time.monotonic()
    notebook = nbformat.read(job.notebook, as_version=4)  # type: ignore[no-untyped-call]
    executed = execute(notebook, job.parameters, scratch=Path(job.scratch), cell_timeout_s=job.cell_timeout_s)
    stamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    tools = f"Python {sys.version.split()[0]}, papermill {papermill.__version__}"
    line = f"Rendered {stamp} in {time.monotonic() - began:.0f} s from notebook {job.name} by {tools}."
    write_atomic(Path(job.output), page_html(executed, Page(title=job.title, heading=job.heading, footer=(line,))).encode())


def main() -> int:
    """Run the process. Success or failure is reported by the outcome on stdout, not by the exit status."""
    answer = _reserved_stdout()
    job = Job.from_json(sys.stdin.readline())
    if job.read:
        os.environ["CGLSUITE_READ"] = os.pathsep.join(job.read)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _interrupt)
    outcome = render(job)
    print(outcome.to_json(), file=answer, flush=True)
    return 0


def _reserved_stdout() -> TextIO:
    """Reserve the real stdout for the outcome. Everything else that this process or a kernel prints goes to stderr."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answer


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(signum: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ignore a second signal: it would interrupt the clean-up
    raise KeyboardInterrupt


# Our papermill engine reports failures that papermill's own engine would save as completed or ignore.
# Papermill 2.7 with its own engine saves a notebook whose kernel died, or whose cell timed out, with every cell marked completed; it takes
# ``sys.exit(0)`` in a cell for success and leaves the rest unexecuted; and it uses whatever ``python3`` kernel a user's folder names. Here
# the kernel is always this interpreter, talks over Unix sockets (TCP ports race, and need a network), and a notebook counts as finished
# only when its last code cell has run.

ENGINE = "cglsuite"
KERNEL = "python3"
_START = (
    "import runpy; from cglsuite.base.traces import end_with_parent; end_with_parent({}); "
    "runpy.run_module('ipykernel_launcher', run_name='__main__', alter_sys=True)"
)


class NotebookFailure(ReportError):
    """Raised when a notebook does not run to the end.

    Args:
        reason: one line.
        cell: number of the code cell that failed, counted from 1 as in Jupyter; ``None`` if no cell had started.
        source: that cell's code. traceback: plain text, which may be empty.
    """

    def __init__(self, reason: str, cell: int | None = None, source: str = "", traceback: str = "") -> None:
        super().__init__(reason if cell is None else f"cell {cell}: {reason}")
        self.reason, self.cell, self.source, self.traceback = reason, cell, source, traceback


class _ThisPython(KernelSpecManager):
    """A kernel manager that offers only ipykernel under this interpreter, because a user's kernelspec may start another Python."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        from ipykernel.kernelspec import RESOURCES, get_kernel_dict

        if kernel_name != KERNEL:
            raise ReportError(f"reports run on the kernel {KERNEL!r}, not on {kernel_name!r}")
        start = [sys.executable, "-P", "-c", _START.format(os.getpid())]
        options = ["-f", "{connection_file}", "--InteractiveShellApp.ignore_cwd=True"]
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict() | {"argv": [*start, *options]})


class _Client(PapermillNotebookClient):  # type: ignore[misc]
    """Papermill's client, extended to mark a cell as failed for every kind of exception."""

    def papermill_execute_cells(self) -> None:
        for index, cell in enumerate(self.nb.cells):
            self.nb_man.cell_start(cell, index)
            try:
                self.execute_cell(cell, index)
            except BaseException as error:
                self.nb_man.cell_exception(self.nb.cells[index], cell_index=index, exception=error)
                raise _failure(error, self.nb, index, self.km) from error
            finally:
                self.nb_man.cell_complete(self.nb.cells[index], cell_index=index)


class ReportEngine(Engine):  # type: ignore[misc]
    """A papermill engine that runs a kernel of this interpreter in an empty folder and talks to it over Unix sockets."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        *,
        scratch: str,
        cell_timeout_s: float | None = None,
        start_timeout: int = 300,
        **_: Any,
    ) -> None:
        """Execute the notebook of ``nb_man``, and check that all of its cells have run.

        Args:
            scratch: an empty folder with a short absolute path, for sockets, the connection file and IPython's files.
            cell_timeout_s: time limit for one cell, in seconds; ``None`` for no limit.

        Raises:
            NotebookFailure: a cell raised an exception, called ``sys.exit`` or exceeded the time limit, or the kernel died or did not
                start.
        """
        folder = Path(scratch)
        manager = AsyncKernelManager(
            kernel_name=kernel_name,
            kernel_spec_manager=_ThisPython(),
            transport="ipc",
            ip=str(folder / "k"),
            connection_file=str(folder / "kernel.json"),
        )
        client = _Client(
            nb_man,
            km=manager,
            kernel_name=kernel_name,
            timeout=None if cell_timeout_s is None else max(1, round(cell_timeout_s)),
            startup_timeout=start_timeout,
            iopub_timeout=60,  # on a busy machine the last outputs of a cell may arrive late
            coalesce_streams=True,
        )
        try:
            client.execute(env=_environment(folder), cleanup_kc=True)
        except NotebookFailure:
            raise
        except Exception as error:
            raise _failure(error, client.nb, None, manager) from error
        _require_finished(client.nb)


def execute(
    notebook: NotebookNode, parameters: Mapping[str, Any], *, scratch: Path, output: Path | None = None, cell_timeout_s: float | None = None
) -> NotebookNode:
    """Run ``notebook`` with validated ``parameters`` through papermill and :class:`ReportEngine`.

    Args:
        notebook: papermill changes it in place; pass a copy to keep the original.
        scratch: an empty folder with a short absolute path. output: path at which papermill saves the notebook after each cell; not saved
            by default.

    Returns:
        The executed notebook, in which every code cell has run.

    Raises:
        NotebookFailure: the notebook did not run to its end.
    """
    from papermill import PapermillExecutionError, execute_notebook

    papermill_engines.register(ENGINE, ReportEngine)
    try:
        executed: NotebookNode = execute_notebook(
            notebook,
            output,
            parameters=dict(parameters),
            engine_name=ENGINE,
            kernel_name=KERNEL,
            language="python",
            progress_bar=False,
            scratch=str(scratch),
            cell_timeout_s=cell_timeout_s,
            autosave_cell_every=0,
            start_timeout=300,
            request_save_on_cell_execute=output is not None,
        )
        return executed
    except PapermillExecutionError as error:  # an error output in a cell tagged raises-exception
        reason = f"{error.ename}: {error.evalue}"
        raise NotebookFailure(reason, error.exec_count, error.source, plain_text("\n".join(error.traceback))) from error


def _environment(folder: Path) -> dict[str, str]:
    """Return the kernel's environment: ours, but without the user's IPython profile and start-up files, which could change a report."""
    own = {"IPYTHONDIR": str(folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    return os.environ | own | handed_over(folder)


def _failure(error: BaseException, notebook: NotebookNode, index: int | None, manager: AsyncKernelManager) -> NotebookFailure:
    """Describe ``error`` and the cell in which it occurred, as text."""
    number, source = _numbered(notebook, index)
    trace = ""
    if isinstance(error, CellExecutionError):
        if error.ename == "SystemExit":
            reason = f"the cell raised SystemExit({error.evalue}): the rest of the notebook did not run"
        else:
            reason = f"{error.ename}: {error.evalue}"
        trace = plain_text(_error_output(notebook, index) or error.traceback)
    elif isinstance(error, CellTimeoutError):
        reason = str(error).splitlines()[0]
    elif isinstance(error, DeadKernelError):
        reason = f"the kernel died{_exit_status(manager)}"
    elif isinstance(error, RuntimeError) and "Kernel died before replying" in str(error):
        reason = f"the kernel did not start{_exit_status(manager)}"
    elif isinstance(error, (KeyboardInterrupt, SystemExit)):
        reason = "interrupted"
    elif isinstance(error, OSError):
        reason = f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    else:
        reason = f"{type(error).__name__}: {error}"
    return NotebookFailure(plain_text(reason).strip(), number, source, trace)


def _numbered(notebook: NotebookNode, index: int | None) -> tuple[int | None, str]:
    if index is None:
        return None, ""
    number = sum(c.cell_type == "code" and bool(c.source.strip()) for c in notebook.cells[: index + 1])
    return number, notebook.cells[index].source


def _error_output(notebook: NotebookNode, index: int | None) -> str:
    outputs = notebook.cells[index].get("outputs", []) if index is not None else []
    return "\n".join(line for o in outputs if o.output_type == "error" for line in o.traceback)


def _exit_status(manager: AsyncKernelManager) -> str:
    process = getattr(manager.provisioner, "process", None)
    status = process.poll() if process is not None else None
    if status is None:
        return ""
    if status < 0:
        hint = ", as when memory runs out" if -status == signal.SIGKILL else ""
        return f" (killed by {signal.Signals(-status).name}{hint})"
    return f" (exit status {status})"


def _require_finished(notebook: NotebookNode) -> None:
    """Require that all code cells of a notebook have run; nothing else proves that it was not cut short."""
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        status = cell.metadata.get("papermill", {}).get("status")
        if status != "completed" or cell.execution_count is None:
            number, source = _numbered(notebook, index)
            raise NotebookFailure(f"the cell did not run ({status or 'no status'})", number, source)


if __name__ == "__main__":
    sys.exit(main())
