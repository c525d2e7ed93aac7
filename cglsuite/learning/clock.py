"""Time accounting of a cell: training, method, evaluation and checkpoints. The rest is framework overhead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Clock:
    """Measure exclusive times by section. Time in a nested section is charged to that section only."""

    def __init__(self) -> None:
        self.seconds = {"training": 0.0, "method": 0.0, "evaluation": 0.0, "checkpoints": 0.0, "framework": 0.0}
        self._current = "framework"
        self._since = perf_counter()

    def switch(self, section: str) -> str:
        """Charge the time since the last switch, continue in ``section``, and return the previous section."""
        now = perf_counter()
        before = self._current
        self.seconds[before] += now - self._since
        self._current, self._since = section, now
        return before

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Charge the time of the block to ``name``."""
        before = self.switch(name)
        try:
            yield
        finally:
            self.switch(before)

    def reading(self) -> dict[str, float]:
        """Return the seconds spent in each section so far, and their total."""
        self.switch(self._current)
        return {**self.seconds, "total": sum(self.seconds.values())}
