"""The clocks of benchmarks, and cells that go by one of them."""

from __future__ import annotations

import time

__all__ = ["CLOCKS", "go_by"]

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def go_by(name: str) -> None:
    """Have cells account for their time, and save their state every so often, by this clock.

    By the wall's, a cell on a busy machine saves its state more often than it would alone, and processor time is compared with a loop that
    saves nothing. Imports the runners: their time is not the cell's.
    """
    from cglsuite.learning import clock, runner, task_free_runner, task_runner  # noqa: F401

    clock.perf_counter = CLOCKS[name]  # type: ignore[attr-defined]
    runner.monotonic = CLOCKS[name]  # type: ignore[attr-defined]
