"""Which unfinished cells need which checkpoints: a checkpoint is removed with the last cell that needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from cglsuite.campaigns.executors.base import RunOptions
from cglsuite.cells.engine import Engine
from cglsuite.cells.plan import PlannedCell
from cglsuite.cells.storage.store import Store

__all__ = ["Families"]


class Families:
    """The families of some cells, each of which shares checkpoints, and how many of its cells are unfinished."""

    def __init__(self, store: Store, engine: Engine, options: RunOptions) -> None:
        self.store, self.engine, self.options = store, engine, options
        self._unfinished = Counter[str]()
        self._of: dict[str, list[str]] = {}

    def count(self, cells: Iterable[PlannedCell], unfinished: Container[str]) -> None:
        """Register the cells whose keys are ``unfinished``, and remove the checkpoints that only the other ``cells`` needed."""
        needless = set()
        saved = self.store.has_checkpoints()
        for planned in cells:
            if planned.cell is None or not (saved or planned.key in unfinished):
                continue
            names = list(self.engine.prefix_keys(planned.cell, self.options.catalogue))
            if planned.key in unfinished:
                self._unfinished.update(names)
                self._of[planned.key] = names
            else:
                needless.update(names)
        self.store.drop_checkpoints(sorted(needless - self._unfinished.keys()))

    def sharing(self) -> dict[str, str]:
        """The family of every cell that shares one."""
        if not self.options.share_prefixes:
            return {}
        return {key: names[0] for key, names in self._of.items() if names and self._unfinished[names[0]] > 1}

    def release(self, key: str) -> None:
        """Mark ``key`` as finished: its checkpoints are removed with the last cell that needs them."""
        for name in self._of.pop(key, ()):
            self._unfinished[name] -= 1
            if self._unfinished[name] <= 0:
                self.store.drop_checkpoints([name])
