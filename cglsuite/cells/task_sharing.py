"""Share training among cells that start with the same tasks.

Cells of a family (see :func:`cglsuite.cells.keys.share_key`) differ only in the order of tasks. If they run depth first along the prefix
tree of their orders, they need one training per node of the tree: 325 instead of 600 for all 120 orders of 5 tasks. A state is saved
while an unfinished cell begins with its tasks, so one runner stores at most one state per position in the order.

If tasks are not known in advance (random classes), shared prefixes are short and rare. For such cells only the states after the first
task are saved, until the family is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cglsuite.cells.records.record import Record
    from cglsuite.cells.spec import CellSpec


Path = Sequence[str] | None
"""Names of tasks in order of arrival; ``None``: not known in advance."""


def foreseen_tasks(cell: CellSpec) -> Path:
    """Return a name for every task of ``cell``, in order of arrival (see :func:`cglsuite.graphs.splits.orders.foreseen`)."""
    from cglsuite.graphs.splits.orders import foreseen

    return foreseen(cell.scenario, cell.seeds.order)


def common_beginning(first: Path, other: Path) -> int:
    """Return the length of the common prefix of two cells in a family, as far as saving states is worthwhile."""
    if first is None or other is None:
        return int(first is other)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, other, strict=False)))


class Family:
    """The cells of a family that are to be run, by key."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(paths)

    def shared_tasks(self, key: str, unfinished: Callable[[str], bool]) -> int:
        """Return the number of tasks in the longest prefix that ``key`` shares with another ``unfinished`` cell."""
        mine = self.paths[key]
        shared = {other: common_beginning(mine, path) for other, path in self.paths.items() if other != key}
        ranked = sorted((other for other, n in shared.items() if n), key=lambda other: -shared[other])
        return next((shared[other] for other in ranked if unfinished(other)), 0)


def depth_first(keys: Sequence[str], families: Mapping[str, str], paths: Mapping[str, Path]) -> list[str]:
    """Reorder ``keys`` so that the cells of every family are in the depth-first order of the tree of task orders. Each family keeps its set
    of positions.

    Args:
        families: the family of each key that has one. paths: the keys' tasks.
    """
    members: dict[str, list[str]] = {}
    for key in keys:
        if key in families:
            members.setdefault(families[key], []).append(key)
    queues = {name: iter(sorted(cells, key=lambda key: (paths[key] is None, tuple(paths[key] or ())))) for name, cells in members.items()}
    return [next(queues[families[key]]) if key in families else key for key in keys]


def trainings(record: Record) -> tuple[int, int]:
    """Return the number of tasks in a record's stream, and how many of them were trained for this record. Checkpoints covered the
    others."""
    n_tasks = len(record.tasks)
    return n_tasks, int(record.provenance.get("trained_tasks", n_tasks - record.provenance["resumed_from_task"]))
