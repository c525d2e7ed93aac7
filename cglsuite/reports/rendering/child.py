"""Render one notebook in a separate process: ``python -m cglsuite.reports.rendering.child``, a job on stdin, the outcome on stdout.

The page is written last and atomically. When stdin closes, the caller is gone, and the process ends with its kernel.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from cglsuite.base.atomic import write_atomic
from cglsuite.base.errors import CglsuiteError
from cglsuite.reports.rendering.job import Job, Outcome

__all__ = ["main", "render"]


def render(job: Job) -> Outcome:
    """Execute the notebook and write its page; failures are part of the outcome."""
    from cglsuite.reports.rendering.execution import NotebookFailure

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

    from cglsuite.reports.rendering.execution import execute
    from cglsuite.reports.rendering.page import Page, page_html

    began = time.monotonic()
    notebook = nbformat.read(job.notebook, as_version=4)  # type: ignore[no-untyped-call]
    executed = execute(notebook, job.parameters, scratch=Path(job.scratch), cell_timeout_s=job.cell_timeout_s)
    stamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    tools = f"Python {sys.version.split()[0]}, papermill {papermill.__version__}"
    line = f"Rendered {stamp} in {time.monotonic() - began:.0f} s from notebook {job.name} by {tools}."
    write_atomic(Path(job.output), page_html(executed, Page(title=job.title, heading=job.heading, footer=(line,))).encode())


def main() -> int:
    """Entry point of the process; success or failure is in the outcome, not in the exit status."""
    answer = _own_stdout()
    job = Job.from_json(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _interrupt)
    outcome = render(job)
    print(outcome.to_json(), file=answer, flush=True)
    return 0


def _own_stdout() -> TextIO:
    """Reserve the real stdout for the answer; anything else printed here or by kernels goes to stderr."""
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


if __name__ == "__main__":
    sys.exit(main())
