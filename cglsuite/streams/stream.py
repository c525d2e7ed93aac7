"""Streams provide views or batches to train on, queries, and the oracle that scores predictions. Only the runner can access a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from cglsuite.base.markup import displayed
from cglsuite.specs import ScenarioSpec
from cglsuite.streams.oracle import Oracle
from cglsuite.streams.views import Batch, TaskView


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """Task metadata that is stored in records: name, outputs and split sizes. ``content`` identifies the task in any task order."""

    name: str
    classes: tuple[int, ...]
    n_train: int
    n_validation: int
    n_test: int
    content: str


@dataclass(frozen=True, kw_only=True)
class QueryGroup:
    """Queries that share a message graph and an opaque token. ``tasks`` are the positions of the tasks whose test items are queried."""

    token: str
    query: Batch
    tasks: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedItems:
    """The items of a query group in order, with their labels. This is never passed to a method.

    Args:
        ids: int64 [n], global ids. tasks: int64 [n], task positions. test: bool [n], true for test and false for validation items.
        y: int64 [n] or bool [n, C], the labels of the items.
        nodes: int64 [N'], the global ids of the nodes in the group's message graph, in that graph's order. y_of_nodes: their labels.
    """

    ids: Tensor
    tasks: Tensor
    test: Tensor
    y: Tensor
    nodes: Tensor
    y_of_nodes: Tensor


class Stream(ABC):
    """Base class for task streams and task-free streams. A stream does not depend on the method or its seed.

    Attributes:
        spec: the scenario with the values of all switches.
        n_outputs: number of global classes C.
        n_features: number of input features F.
        data_hash: SHA-256 (hex) of the dataset.
        tasks: the metadata of each task (for task-free streams, of each latent task), by position.
        task_outputs: bool [T, C], the outputs of each task.
        oracle: scores predictions. It is the only component that has the hidden labels.
    """

    spec: ScenarioSpec
    n_outputs: int
    n_features: int
    data_hash: str
    tasks: Sequence[TaskFacts]
    task_outputs: Tensor
    oracle: Oracle

    def __len__(self) -> int:
        """Return the number of tasks T, or of latent tasks."""
        return len(self.tasks)

    @abstractmethod
    def make_queries(self, learnt: int) -> list[QueryGroup]:
        """Create the query groups after ``learnt`` tasks or steps (0 = before training). The oracle has their labels."""

    @abstractmethod
    def members(self, k: int, part: str) -> Tensor:
        """Return the global ids (int64, ascending) of the ``train``, ``validation`` or ``test`` items of the task at position ``k``."""

    def _repr_html_(self) -> str:
        return displayed("card_of", self)


class TaskStream(Stream):
    """An ordered stream of tasks. Views and query groups are created on request and depend only on the scenario and its seeds."""

    def __init__(self) -> None:
        super().__init__()
        self._views: dict[tuple[int, int], TaskView] = {}

    def __repr__(self) -> str:
        return f"<TaskStream of {self.spec.name}: {len(self)} tasks, {self.n_outputs} outputs, {self.n_features} features>"

    def view(self, position: int, stage: int | None = None) -> TaskView:
        """Return the view of the task at ``position`` in the message graph of task ``stage`` (default: the task's own graph)."""
        place = (position, position if stage is None else stage)
        if place not in self._views:
            self._views[place] = self.make_view(*place)
        return self._views[place]

    def forget(self) -> None:
        """Clear the cache of views to free memory."""
        self._views.clear()

    @abstractmethod
    def make_view(self, position: int, stage: int) -> TaskView:
        """Create the view of the task at ``position`` in the message graph of task ``stage``."""

    @abstractmethod
    def validation_token(self, position: int, stage: int | None = None) -> str:
        """Deposit the labels of a view's validation items with the oracle, in the view's order, and return their token."""

    @abstractmethod
    def asked(self, token: str) -> AskedItems:
        """Return the items and labels of an existing query group, for analysing finished runs."""
