"""Times are exclusive: every moment is charged to one section."""

from __future__ import annotations

import pytest

from cglsuite.learning import clock
from cglsuite.learning.clock import Clock


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock reads; a test moves it on by adding to it."""
    now = [100.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    return now


def test_a_section_inside_another_is_charged_to_itself_alone(pass_time: list[float]) -> None:
    watch = Clock()
    pass_time[0] += 1  # framework
    with watch.section("training"):
        pass_time[0] += 2
        with watch.section("method"):
            pass_time[0] += 4
            with watch.section("training"):
                pass_time[0] += 8
        pass_time[0] += 16
    pass_time[0] += 32  # framework again
    with watch.section("evaluation"):
        pass_time[0] += 64
    assert watch.reading() == {"training": 26.0, "method": 4.0, "evaluation": 64.0, "checkpoints": 0.0, "framework": 33.0, "total": 127.0}


def test_a_reading_counts_the_running_section_and_goes_on(pass_time: list[float]) -> None:
    watch = Clock()
    with watch.section("training"):
        pass_time[0] += 3
        assert watch.reading()["training"] == 3
        pass_time[0] += 3
        assert watch.reading() == {"training": 6.0, "method": 0.0, "evaluation": 0.0, "checkpoints": 0.0, "framework": 0.0, "total": 6.0}
    assert watch.reading()["training"] == 6


def test_an_exception_leaves_the_section(pass_time: list[float]) -> None:
    watch = Clock()

    def fail() -> None:
        pass_time[0] += 1
        raise RuntimeError

    with pytest.raises(RuntimeError), watch.section("method"):
        fail()
    pass_time[0] += 2
    assert watch.reading() == {"training": 0.0, "method": 1.0, "evaluation": 0.0, "checkpoints": 0.0, "framework": 2.0, "total": 3.0}


def test_switch_returns_what_was_current(pass_time: list[float]) -> None:
    watch = Clock()
    assert watch.switch("method") == "framework"
    pass_time[0] += 5
    assert watch.switch("framework") == "method"
    assert watch.reading()["method"] == 5
