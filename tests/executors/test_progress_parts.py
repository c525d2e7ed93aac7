"""Progress without a kernel or a terminal to show it on: texts, thresholds, what is updated when, and which log lines are let through."""

from __future__ import annotations

import logging
import sys
import types
from typing import Any

import pytest

from cglsuite.campaigns.executors import progress
from cglsuite.campaigns.executors.progress import CellProgress, EpochProgress


class Time:
    """A clock that is set by hand."""

    now = 0.0

    @classmethod
    def monotonic(cls) -> float:
        return cls.now


class Shown:
    """What a notebook shows: the texts of each line."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        line = [data["text/plain"]]
        self.lines.append(line)

        def update(data: dict[str, str], raw: bool) -> None:
            assert raw
            line.append(data["text/plain"])

        return types.SimpleNamespace(update=update)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A notebook, whose clock stands at 0."""
    made = Shown()
    monkeypatch.setattr(progress, "_in_notebook_kernel", lambda: True)
    monkeypatch.setattr(progress, "time", Time)
    monkeypatch.setattr(Time, "now", 0.0)
    fake = types.ModuleType("IPython.display")
    fake.display = made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return made


@pytest.mark.parametrize(("share", "full"), [(0.0, 0), (0.049, 0), (0.05, 1), (0.5, 10), (0.99, 19), (1.0, 20)])
def test_a_drawn_bar_has_twenty_places(share: float, full: int) -> None:
    assert progress._drawn("x", share) == f"x {'█' * full}{'░' * (20 - full)}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.9, "0:59"), (60, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (3661, "1:01:01"), (9e4, "25:00:00")],
)
def test_times_in_words(seconds: float, text: str) -> None:
    assert progress._clock(seconds) == text


@pytest.mark.parametrize(
    ("elapsed", "share", "text"),
    [
        (1.99, 0.5, ""),
        (2.0, 0.5, "about 0:02 left"),
        (100.0, 0.0049, ""),
        (100.0, 0.005, "about 5:31:40 left"),
        (100.0, 0.25, "about 5:00 left"),
        (100.0, 0.99, "about 0:01 left"),
        (100.0, 1.0, ""),
        (100.0, 1.5, ""),
    ],
)
def test_the_time_left(elapsed: float, share: float, text: str) -> None:
    """Not before two seconds and half a per cent, and not at the end."""
    assert progress._remaining_time(elapsed, share) == text


def test_a_notebook_has_one_line_that_is_updated_once_a_second(shown: Shown) -> None:
    """The last text is shown whenever it comes."""
    with CellProgress(2, "demo") as made:
        (line,) = shown.lines
        assert line == ["demo ░░░░░░░░░░░░░░░░░░░░ 0 of 2 cells, 0:00"]
        made.finished("done", "a")
        Time.now = 0.9
        made.tick()
        assert len(line) == 1
        Time.now = 1.0
        made.working("b", "bare task 1/2", 0.5)
        made.tick()
        made.tick()
        assert line[1:] == ["demo ███████████████░░░░░ 1 of 2 cells, 0:01, bare task 1/2"]
        made.finished("failed", "b")
        Time.now = 1.5
    assert line[2:] == ["demo ████████████████████ 2 of 2 cells, 1 failed, 0:01"]
    CellProgress(0, "none").close()
    CellProgress(3, "hidden", shown=False).close()
    assert len(shown.lines) == 1


def test_a_cell_in_a_notebook(shown: Shown) -> None:
    spec: Any = types.SimpleNamespace(scenario=types.SimpleNamespace(task_free=None))
    cell = progress.ObservedCell("0" * 64, spec, (0, 10, 10))
    made = EpochProgress("ewc")
    made.stream_built(cell)
    (line,) = shown.lines
    assert line == ["ewc ░░░░░░░░░░░░░░░░░░░░"]
    Time.now = 4.0
    made.epochs_ended(cell, [progress.Epoch(1, 5, 0.5, None)])
    made.task_ended(cell, 1, [0.5, 0.0])
    assert line[1:] == ["ewc █████░░░░░░░░░░░░░░░ task 1/2, epoch 5/10, 0:04, about 0:12 left"]
    made.task_ended(cell, 2, [0.5, 0.5])  # the last one at once
    assert line[2:] == ["ewc ████████████████████ task 2/2, 0:04"]
    made.close()


def test_lines_come_every_quarter_minute_and_then_less_often(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where there is neither a notebook nor a terminal: after 15 s, and after every tenth of the time so far."""
    monkeypatch.setattr(progress, "_in_notebook_kernel", lambda: False)
    monkeypatch.setattr(progress, "_on_terminal", lambda: False)
    monkeypatch.setattr(progress, "time", Time)
    monkeypatch.setattr(Time, "now", 0.0)
    caplog.set_level(logging.INFO)
    with CellProgress(4, "demo") as made:
        for now in (14.9, 15.0, 29.9, 30.0):
            Time.now = now
            made.tick()
        assert caplog.messages == ["demo: 0 of 4 cells, 0:15", "demo: 0 of 4 cells, 0:30"]
        made.finished("done", "a")
        made.finished("failed", "b")
        made.finished("diverged", "c")
        Time.now = 1000.0
        made.tick()
        Time.now = 1099.9
        made.tick()
        Time.now = 1100.0
        made.tick()
        assert caplog.messages[2:] == [
            "demo: 3 of 4 cells, 1 diverged, 1 failed, 16:40, about 5:33 left",
            "demo: 3 of 4 cells, 1 diverged, 1 failed, 18:20, about 6:06 left",
        ]
    assert caplog.messages[4:] == ["demo: 3 of 4 cells, 1 diverged, 1 failed, 18:20, about 6:06 left"]
    CellProgress(0, "none").close()
    CellProgress(3, "hidden", shown=False).close()
    assert len(caplog.messages) == 5


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.mark.parametrize(("lines", "more"), [(3, 0), (20, 0), (21, 1), (50, 30)])
def test_a_notebook_shows_twenty_warnings(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lines: int, more: int) -> None:
    """And counts the others; a user who has configured logging sees all."""
    kept, logger = Kept(), logging.getLogger("cglsuite")
    monkeypatch.setattr(logging, "lastResort", kept)
    monkeypatch.setattr(logger, "propagate", False)
    before = list(logger.handlers)
    logger.handlers[:] = []
    try:
        with progress._limited_log_lines():
            assert len(logger.handlers) == 1
            for n in range(lines):
                logger.getChild("inner").warning("line %d", n)
        assert logger.handlers == []
        said = [f"line {n}" for n in range(min(lines, 20))]
        said += [f"{more} further warnings are not shown; the reasons are in the records"] * (more > 0)
        assert kept.said == said
        mine = Kept()
        logger.addHandler(mine)
        with progress._limited_log_lines():
            assert logger.handlers == [mine]
            for n in range(lines):
                logger.warning("line %d", n)
        assert len(mine.said) == lines
    finally:
        logger.handlers[:] = before


def test_one_cell_of_one_is_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of none there is no part."""
    monkeypatch.setattr(progress, "time", Time)
    alone = CellProgress(1, "c", shown=False)
    alone.working("k", "task 1", 0.5)
    assert alone._share == 0.5
    alone.finished("done", "k")
    assert alone._share == 1.0
    assert CellProgress(0, "c", shown=False)._share == 0.0


def test_time_in_a_queue_counts_for_no_estimate(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """While nothing runs the queue is named; afterwards the time left follows from the time in which something ran."""
    monkeypatch.setattr(progress, "_in_notebook_kernel", lambda: False)
    monkeypatch.setattr(progress, "_on_terminal", lambda: False)
    monkeypatch.setattr(progress, "time", Time)
    monkeypatch.setattr(Time, "now", 0.0)
    caplog.set_level(logging.INFO)
    with CellProgress(4, "demo") as made:
        made.queued("2 parts pending")
        Time.now = 600.0
        made.tick()
        made.queued("2 parts pending")
        made.queued("")
        made.finished("done", "a")
        made.finished("done", "b")
        Time.now = 700.0
        made.tick()
        made.queued("")
    assert caplog.messages[:2] == ["demo: 0 of 4 cells, 10:00, 2 parts pending", "demo: 2 of 4 cells, 11:40, about 1:40 left"]
