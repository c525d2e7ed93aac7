"""One line of progress over many cells: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Any

__all__ = ["CellProgress", "TaskProgress", "say"]

LINE_EVERY_S = 15.0
LINES = logging.getLogger("cglsuite.progress")


def say(text: str) -> None:
    """Tell people something that they asked for on stderr, in the log's format, whatever else the log leaves out."""
    LINES.setLevel(logging.INFO)
    LINES.info("%s", text)


def _terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _bar(**options: Any) -> Any:
    from tqdm import tqdm

    return tqdm(file=sys.stderr, dynamic_ncols=True, leave=False, **options)


class CellProgress:
    """Counts finished cells. On a terminal a bar that log lines do not tear; else a log line now and then.

    Args:
        total: cells to run. label: what they are called. shown: False counts in silence.
    """

    def __init__(self, total: int, label: str, shown: bool = True) -> None:
        self.total, self.label, self.counts = total, label, Counter[str]()
        self._began = self._told = time.monotonic()
        self._current = ""
        self._lines = shown and total > 0 and not _terminal()
        self._stack = contextlib.ExitStack()
        self._bar: Any = None
        if shown and total and not self._lines:
            self._bar = self._stack.enter_context(_bar(total=total, desc=label, unit="cell"))
            self._stack.enter_context(_logging_above_bar())

    def finished(self, status: str) -> None:
        """One more cell has ended with ``status``."""
        self.counts[status] += 1
        if self._bar is not None:
            self._bar.update()
            self._show()

    def working(self, current: str) -> None:
        """``current`` is being worked on."""
        self._current = current

    def tick(self) -> None:
        """Time has passed: keep the clock going. Called several times a second."""
        if self._bar is not None:
            self._show()
        now = time.monotonic()
        # Every quarter of a minute at first, in a run of hours every tenth of the time so far.
        if self._lines and now - self._told >= max(LINE_EVERY_S, 0.1 * (self._told - self._began)):
            self._tell()

    def _others(self) -> list[str]:
        return [f"{n} {status}" for status, n in sorted(self.counts.items()) if status != "done"]

    def _show(self) -> None:
        self._bar.set_postfix_str(", ".join([*self._others(), *filter(None, [self._current])]), refresh=False)
        self._bar.refresh()

    def _tell(self) -> None:
        self._told = time.monotonic()
        elapsed = int(self._told - self._began)
        parts = [f"{self.label}: {self.counts.total()} of {self.total} cells", *self._others(), f"{elapsed // 60}:{elapsed % 60:02d}"]
        say(", ".join(parts))

    def close(self) -> None:
        """Take the bar away, or write the last line."""
        if self._lines:
            self._tell()
        self._stack.close()

    def __enter__(self) -> CellProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class TaskProgress:
    """A bar over the tasks of one cell, on a terminal only; called with (tasks learnt, tasks in all)."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._bar: Any = None

    def __call__(self, learnt: int, of: int) -> None:
        if self._bar is None:
            if not _terminal():
                return
            self._bar = _bar(total=of, desc=self.label, unit="task")
        self._bar.update(learnt - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def _logging_above_bar() -> Iterator[None]:
    """While a bar is on the terminal, log lines are written above it."""
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
