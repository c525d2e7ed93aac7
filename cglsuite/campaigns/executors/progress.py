"""Progress display for many cells: a bar on a terminal, a single updated line in a notebook, and occasional log lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cglsuite.cells.observing import Epoch, ObservedCell, Observer

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record


LINE_EVERY_S = 15.0
NOTEBOOK_EVERY_S = 1.0
MIN_ELAPSED_S, MIN_SHARE = 2.0, 0.005
"""The minimum elapsed time and share of the work before the remaining time is estimated."""
MAX_LOG_LINES = 20
"""The maximum number of warnings shown in a notebook while cells run; further ones are only counted."""
_BAR_WIDTH = 20
LINES = logging.getLogger("cglsuite.progress")


def say(text: str) -> None:
    """Print information that the user requested to stderr in the log's format, regardless of the log level."""
    LINES.setLevel(logging.INFO)
    LINES.info("%s", text)


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _in_notebook_kernel() -> bool:
    """Return whether this process is a notebook kernel."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class _NotebookLine:
    """One line of plain text in a cell's output, replaced in place.

    A widget is an empty box when the notebook is opened without its kernel, and a new line per change would flood it; an updated output is
    saved with its last text.
    """

    def __init__(self, text: str) -> None:
        from IPython.display import display

        self._handle: Any = display({"text/plain": text}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._text, self._shown = text, time.monotonic()

    def show(self, text: str, now: bool = False) -> None:
        """Replace the text, at most once a second unless ``now`` is set."""
        if text != self._text and (now or time.monotonic() - self._shown >= NOTEBOOK_EVERY_S):
            self._text, self._shown = text, time.monotonic()
            self._handle.update({"text/plain": text}, raw=True)


def visible() -> bool:
    """Return whether progress can be shown on a terminal or in a notebook."""
    return _in_notebook_kernel() or _on_terminal()


def _drawn(label: str, share: float) -> str:
    full = int(_BAR_WIDTH * share)
    return f"{label} {'█' * full}{'░' * (_BAR_WIDTH - full)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _remaining_time(elapsed_s: float, share: float) -> str:
    """Return the estimated time left as text, at the average speed so far; empty while too little is done."""
    if elapsed_s < MIN_ELAPSED_S or not MIN_SHARE <= share < 1:
        return ""
    return f"about {_clock(elapsed_s * (1 - share) / share)} left"


def _bar(label: str) -> Any:
    from tqdm import tqdm

    shape = "{desc} {percentage:3.0f}% |{bar:20}| {unit}"  # tqdm sets a comma before its own postfix
    return tqdm(file=sys.stderr, **_width(), leave=False, total=1.0, desc=label, unit="", bar_format=shape)


def _width() -> dict[str, Any]:
    """Return the width of the bar: the terminal's, or 80 columns if the terminal reports 0, as some services do."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 1
    return {"dynamic_ncols": True} if columns else {"ncols": 80}


def _set_bar(bar: Any, share: float, text: str) -> None:
    bar.n, bar.unit = share, text
    bar.refresh()


class CellProgress:
    """Shows the number of finished cells as a bar on a terminal (log lines appear above it), as a single updated line in a notebook (saved
    with it), or as occasional log lines elsewhere. The time left is estimated from the finished cells and the progress of the running ones.

    Args:
        total: number of cells to run. label: a title for them. shown: False hides the progress.
    """

    def __init__(self, total: int, label: str, shown: bool = True) -> None:
        self.total, self.label, self.counts = total, label, Counter[str]()
        self._began = self._last_notice = time.monotonic()
        self._queue, self._queued_at, self._queued_s = "", 0.0, 0.0
        self._current = ""
        self._shares: dict[str, float] = {}
        self._stack = contextlib.ExitStack()
        self._bar: Any = None
        self._line = _NotebookLine(self._drawn()) if shown and total and _in_notebook_kernel() else None
        self._lines = shown and total > 0 and self._line is None and not _on_terminal()
        if self._line is not None:
            self._stack.enter_context(_limited_log_lines())
        elif shown and total and not self._lines:
            self._bar = self._stack.enter_context(_bar(label))
            self._stack.enter_context(_logging_above_bar())
            self._show()

    def finished(self, status: str, key: str = "") -> None:
        """Count a cell that has ended with ``status``."""
        self.counts[status] += 1
        self.left(key)
        self._show()

    def working(self, key: str, current: str, share: float | None = None) -> None:
        """Show that a cell is running, with its completed fraction if known."""
        self._current = current
        if share is not None:
            self._shares[key] = share

    def queued(self, text: str) -> None:
        """Show a reason for waiting in place of the time left while no cell runs. Waiting does not count as run time. An empty text means
        that cells are running again.
        """
        now = time.monotonic()
        if self._queue:
            self._queued_s += now - self._queued_at
        self._queue, self._queued_at = text, now

    def left(self, key: str) -> None:
        """Show that a cell is no longer running."""
        self._shares.pop(key, None)

    def tick(self) -> None:
        """Update the elapsed time. Called several times a second."""
        self._show()
        if self._line is not None:
            self._line.show(", ".join(filter(None, [self._drawn(), self._current])))
        now = time.monotonic()
        # Every 15 s at first; in long runs, each time the elapsed time has grown by a tenth.
        if self._lines and now - self._last_notice >= max(LINE_EVERY_S, 0.1 * (self._last_notice - self._began)):
            self._update()

    @property
    def _share(self) -> float:
        return (self.counts.total() + sum(self._shares.values())) / max(1, self.total)

    def _show(self) -> None:
        if self._bar is not None:
            _set_bar(self._bar, self._share, ", ".join(filter(None, [self._count_text(), self._current])))

    def _update(self) -> None:
        self._last_notice = time.monotonic()
        say(f"{self.label}: {self._count_text()}")

    def _count_text(self) -> str:
        elapsed = time.monotonic() - self._began
        left = self._queue or _remaining_time(elapsed - self._queued_s, self._share)
        others = [f"{n} {status}" for status, n in sorted(self.counts.items()) if status != "done"]
        parts = [f"{self.counts.total():,} of {self.total:,} cells", *others, _clock(elapsed), left]
        return ", ".join(filter(None, parts))

    def _drawn(self) -> str:
        return f"{_drawn(self.label, self._share)} {self._count_text()}"

    def close(self) -> None:
        """Remove the bar, or write the last line."""
        if self._lines:
            self._update()
        if self._line is not None:
            self._line.show(self._drawn(), now=True)
        self._stack.close()

    def __enter__(self) -> CellProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class EpochProgress(Observer):
    """Shows the task, the epoch and the time left for one cell, on a terminal or in a notebook only."""

    changes_nothing = True

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label
        self._bar: Any = None
        self._line: _NotebookLine | None = None
        self._began, self._start = time.monotonic(), 0.0

    def stream_built(self, cell: ObservedCell) -> None:
        """Show an empty bar."""
        self._began = time.monotonic()
        if _in_notebook_kernel():
            self._line = _NotebookLine(_drawn(self.label, 0.0))
        elif _on_terminal():
            self._bar = _bar(self.label)

    def epochs_ended(self, cell: ObservedCell, epochs: Sequence[Epoch]) -> None:
        """Show the position of the latest epoch."""
        task, epoch = epochs[-1][:2]
        self._show(cell.share(task, epoch), cell.position(task, epoch))

    def task_ended(self, cell: ObservedCell, task: int, performance: Sequence[float]) -> None:
        """Show the task as finished, even if it stopped early."""
        share = cell.share(task, cell.epochs[task])
        if task <= cell.covered:
            self._start = share
        self._show(share, cell.position(task), now=task == len(cell.epochs) - 1)

    def cell_ended(self, cell: ObservedCell, record: Record | None) -> None:
        """Remove the bar."""
        self.close()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _show(self, share: float, position: str, now: bool = False) -> None:
        elapsed = time.monotonic() - self._began
        here = (share - self._start) / (1 - self._start) if self._start < 1 else 1.0
        text = ", ".join(filter(None, [position, _clock(elapsed), _remaining_time(elapsed, here)]))
        if self._bar is not None:
            _set_bar(self._bar, share, text)
        if self._line is not None:
            self._line.show(f"{_drawn(self.label, share)} {text}", now=now)


@contextlib.contextmanager
def _logging_above_bar() -> Iterator[None]:
    """Write log lines above the bar while it is on the terminal."""
    from tqdm import tqdm

    class Above(logging.Handler):
        def __init__(self, inner: logging.Handler) -> None:
            super().__init__(inner.level)
            self.inner = inner

        def emit(self, record: logging.LogRecord) -> None:
            with tqdm.external_write_mode(file=sys.stderr):
                self.inner.handle(record)

    root = logging.getLogger("cglsuite")
    former = list(root.handlers)
    root.handlers[:] = [Above(handler) for handler in former]
    try:
        yield
    finally:
        root.handlers[:] = former


class _FirstLines(logging.Handler):
    """A log handler that passes the first lines to ``inner`` and counts the rest."""

    def __init__(self, inner: logging.Handler, max_lines: int) -> None:
        super().__init__(inner.level)
        self.inner, self.most, self.met = inner, max_lines, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.met += 1
        if self.met <= self.most:
            self.inner.handle(record)


@contextlib.contextmanager
def _limited_log_lines() -> Iterator[None]:
    """Show at most :data:`MAX_LOG_LINES` log lines, unless the user has configured logging."""
    logger, inner = logging.getLogger("cglsuite"), logging.lastResort
    if logger.hasHandlers() or inner is None:
        yield
        return
    few = _FirstLines(inner, MAX_LOG_LINES)
    logger.addHandler(few)
    try:
        yield
    finally:
        logger.removeHandler(few)
        if few.met > few.most:
            LINES.warning("%d further warnings are not shown; the reasons are in the records", few.met - few.most)
