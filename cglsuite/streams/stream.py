"""A stream of tasks: views to learn from, queries to answer, and the oracle that scores. Only the runner holds one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from cglsuite.markup import Fragment, card, grid
from cglsuite.specs import ScenarioSpec
from cglsuite.streams.oracle import Oracle
from cglsuite.streams.views import Batch, TaskView

__all__ = ["AskedItems", "QueryGroup", "TaskFacts", "TaskStream", "task_grid"]


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What a record says of a task: what arrives, its outputs and the sizes of its parts; ``content`` identifies it in any order."""

    name: str
    classes: tuple[int, ...]
    n_train: int
    n_validation: int
    n_test: int
    content: str


def task_grid(tasks: Sequence[TaskFacts]) -> Fragment:
    """The facts of the tasks of a stream, for a notebook."""
    rows = ((k + 1, t.name, t.classes, t.n_train, t.n_validation, t.n_test) for k, t in enumerate(tasks))
    return grid(("task", "name", "classes", "training", "validation", "test"), rows)


@dataclass(frozen=True, kw_only=True)
class QueryGroup:
    """Queries that share a message graph, under an opaque token; ``tasks`` are the positions whose test items are asked."""

    token: str
    query: Batch
    tasks: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedItems:
    """The items of a query group, in its order, with their answers: never for a method.

    Args:
        ids: int64 [n], global ids. tasks: int64 [n], task positions. test: bool [n], a test item (else a validation item).
        y: int64 [n] or bool [n, C], their labels.
        nodes: int64 [N'], global ids of the nodes of the group's message graph, by their ids there. y_of_nodes: their labels.
    """

    ids: Tensor
    tasks: Tensor
    test: Tensor
    y: Tensor
    nodes: Tensor
    y_of_nodes: Tensor


@dataclass(kw_only=True)
class TaskStream:
    """Tasks in order. Views and query groups are made when asked for and depend on nothing but the scenario and its seeds.

    Args:
        spec: the scenario with every switch.
        n_outputs: number of global classes C.
        n_features: number of input features F.
        tasks: the facts of every task, by position.
        make_view: (position, stage) to view: the task at ``position`` as seen in the message graph of task ``stage``.
        make_queries: number of tasks learnt (0 = before training) to query groups: the test items that can be asked, and the
            validation items of the tasks learnt.
        task_outputs: bool [T, C], the outputs of each task.
        members: (position, part) to the global ids (int64) of the task's ``train``, ``validation`` or ``test`` items, for export.
        asked: the token of a query group that was made to what it asks, answers included; for the analysis of finished runs.
    """

    spec: ScenarioSpec
    n_outputs: int
    n_features: int
    data_hash: str
    tasks: Sequence[TaskFacts]
    oracle: Oracle
    make_view: Callable[[int, int], TaskView]
    make_queries: Callable[[int], list[QueryGroup]]
    validation_token: Callable[[int], str]
    task_outputs: Tensor
    members: Callable[[int, str], Tensor]
    asked: Callable[[str], AskedItems]
    _views: dict[tuple[int, int], TaskView] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        return f"<TaskStream of {self.spec.name}: {len(self)} tasks, {self.n_outputs} outputs, {self.n_features} features>"

    def _repr_html_(self) -> str:
        facts = [("scenario", self.spec.name), ("outputs", self.n_outputs), ("features", self.n_features), ("data", self.data_hash)]
        return card(f"stream of {len(self)} tasks", facts, task_grid(self.tasks))

    def view(self, position: int, stage: int | None = None) -> TaskView:
        """The view of the task at ``position`` in the message graph of task ``stage`` (its own by default)."""
        place = (position, position if stage is None else stage)
        if place not in self._views:
            self._views[place] = self.make_view(*place)
        return self._views[place]

    def forget(self) -> None:
        """Let go of all views."""
        self._views.clear()
