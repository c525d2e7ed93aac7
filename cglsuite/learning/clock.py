"""Time spent by a cell on training, the method, evaluation and checkpoints. The rest is framework overhead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Clock:
    """Measure the time spent in each section. Time in a nested section counts only towards the nested section."""

    def __init__(self) -> None:
        self.seconds = {"training": 0.0, "method": 0.0, "evaluation": 0.0, "checkpoints": 0.0, "framework": 0.0}
        self._current = "framework"
        self._since = perf_counter()

    def switch(self, section: str) -> str:
        """Add the time since the last switch to the current section, make ``section`` the current one, and return the previous one."""
        now = perf_counter()
        before = self._current
        self.seconds[before] += now - self._since
        self._current, self._since = section, now
        return before

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Add the time spent in the ``with`` block to section ``name``."""
        before = self.switch(name)
        try:
            yield
        finally:
            self.switch(before)

    def reading(self) -> dict[str, float]:
        """Return the seconds spent in each section so far, and their total."""
        self.switch(self._current)
        return {**self.seconds, "total": sum(self.seconds.values())}
