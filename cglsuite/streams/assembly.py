"""What streams of tasks over any kind of item share: facts of tasks, views, queries, and the answers that go to the oracle."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cglsuite.errors import SpecError
from cglsuite.graphs import GraphData, LinkData, NodeData
from cglsuite.graphs.data import label_kind
from cglsuite.hashing import digest
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.layout import PARTS, Layout
from cglsuite.streams.oracle import Oracle
from cglsuite.streams.stream import AskedItems, QueryGroup, TaskFacts, TaskStream
from cglsuite.streams.views import Batch, TaskView

__all__ = ["Assembly", "check_labels"]


def check_labels(spec: ScenarioSpec, data: NodeData | LinkData | GraphData) -> None:
    """Refuse a scenario for another kind of labels than the data have.

    Raises:
        SpecError: single-label switches for multi-label data, or the other way round; either for real targets.
    """
    kind = label_kind(data.y)
    if spec.labels != kind:
        told = "has real targets" if kind == "real" else f"is {kind}-label"
        raise SpecError(f"scenario.labels = {spec.labels}: the dataset {spec.dataset!r} {told}")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A query group that was made: ids (int64 [n], shuffled), task positions, which are test items, and the stage it was made for."""

    ids: Tensor
    tasks: Tensor
    test: Tensor
    stage: int


class Assembly(ABC):
    """Makes views and query groups, and deposits the answers with the oracle as it goes.

    Everything is a function of (data, spec, seeds.order, seeds.split). Subclasses say in which graph items are read.
    """

    keeps_nodes = False

    def __init__(self, spec: ScenarioSpec, data: Any, layout: Layout, seeds: Seeds, device: str) -> None:
        self.spec, self.data, self.layout, self.seeds, self.device = spec, data, layout, seeds, device
        self.oracle = Oracle(data.n_classes, spec.accuracy, spec.hits_k)
        self._made: dict[str, _Asked] = {}

    def stream(self) -> TaskStream:
        """The stream; what it holds leads to this object, and only the runner holds it."""
        return TaskStream(
            spec=self.spec,
            n_outputs=self.data.n_classes,
            n_features=self.n_features,
            data_hash=self.data.content_hash,
            tasks=self.tasks,
            oracle=self.oracle,
            make_view=self.view,
            make_queries=self.groups,
            validation_token=lambda k: f"monitor-{k}",
            task_outputs=self.outputs.to(self.device),
            members=self.members,
            asked=self.asked,
        )

    # --- where items are read: what subclasses say -----------------------------------------------------------------------------

    @abstractmethod
    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[Any, Tensor]:
        """The graph in which the items ``ids`` (int64 [n]) of one part of task ``k`` are seen in ``stage``, and their ids in it."""

    @abstractmethod
    def placed_queries(self, ids: Tensor, stage: int) -> tuple[Any, Tensor]:
        """The graph in which the queries ``ids`` (int64 [n]) of ``stage`` are asked, and their ids in it."""

    @abstractmethod
    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        """The groups to be asked after ``learnt`` tasks: positions of the tasks whose test items are asked, and the stage of the graph."""

    def nodes_asked(self, stage: int) -> Tensor:
        """Global ids (int64) of the nodes of the graph of ``stage``'s queries, by their ids there; empty where items are no nodes."""
        return torch.empty(0, dtype=torch.int64)

    # --- facts -----------------------------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of input features F of a node."""
        return int(self.data.n_features)

    @property
    def outputs(self) -> Tensor:
        """bool [T, C]: the outputs of each task."""
        return self.layout.outputs

    def members(self, k: int, part: str) -> Tensor:
        """Global ids (ascending) of one part of one task."""
        return self.layout.parts[k][part]

    def facts(self, k: int) -> TaskFacts:
        """What a record says of a task."""
        parts = {part: self.members(k, part) for part in PARTS}
        blob = hashlib.sha256(b"".join(ids.numpy().tobytes() + b"|" for ids in parts.values())).hexdigest()
        classes = tuple(self.layout.classes[k].tolist())
        return TaskFacts(
            name=self.layout.names[k],
            classes=classes,
            n_train=parts["train"].numel(),
            n_validation=parts["validation"].numel(),
            n_test=parts["test"].numel(),
            content=digest([classes, blob]),
        )

    @cached_property
    def tasks(self) -> list[TaskFacts]:
        """The facts of every task, by position."""
        return [self.facts(k) for k in range(len(self.layout))]

    @cached_property
    def rank(self) -> Tensor:
        """int64 [T]: the place of each task in an order that does not depend on when the task arrives."""
        by_content = sorted(range(len(self.tasks)), key=lambda k: self.tasks[k].content)
        return torch.tensor(by_content).argsort()

    # --- views -----------------------------------------------------------------------------------------------------------------

    def visible(self, k: int, stage: int) -> Tensor:
        """bool [C]: the labels of items of task ``k`` that are known in ``stage``: the task's own in task-IL, else all seen so far."""
        return self.outputs[k] if self.spec.task_ids_at_test else self.outputs[: stage + 1].any(dim=0)

    def labels(self, ids: Tensor, visible: Tensor) -> Tensor:
        """int64 [n], or bool [n, C] without the labels that are not ``visible``."""
        y: Tensor = self.data.y[ids]
        return (y & visible if self.data.multi_label else y).to(self.device)

    def view(self, k: int, stage: int) -> TaskView:
        """The task at position ``k`` as seen in ``stage``; the answers to its validation items are deposited."""
        train, validation = self.members(k, "train"), self.members(k, "validation")
        own = self.outputs[k].clone().to(self.device)  # a copy: a row's storage is the whole table, later tasks included
        seen = self.outputs[: stage + 1].any(dim=0).to(self.device)
        allowed = {"task": own, "seen": seen, "all": torch.ones_like(seen)}[self.spec.train_outputs]
        visible = self.visible(k, stage)

        def batch(ids: Tensor, part: str, y: Tensor | None) -> Batch:
            graph, places = self.placed(ids, k, stage, part)
            tasks = torch.full((ids.numel(),), k, device=self.device)
            return Batch(graph=graph, ids=places.to(self.device), allowed=allowed, y=y, tasks=tasks)

        answers, of = self.labels(validation, visible), torch.full((validation.numel(),), k, device=self.device)
        self.oracle.deposit(f"monitor-{k}", answers, of, torch.zeros_like(of, dtype=torch.bool))
        return TaskView(
            position=k,
            n_tasks=len(self.layout),
            n_outputs=self.data.n_classes,
            train=batch(train, "train", self.labels(train, visible)),
            validation=batch(validation, "validation", None),
            classes=self.layout.classes[k].clone(),
            task_outputs=own,
            seen_outputs=seen,
            keeps_nodes=self.keeps_nodes,
        )

    # --- queries ---------------------------------------------------------------------------------------------------------------

    def groups(self, learnt: int) -> list[QueryGroup]:
        """The query groups after ``learnt`` tasks."""
        return [self._group(tasks, stage, learnt) for tasks, stage in self.plan(learnt)]

    def _group(self, tasks: tuple[int, ...], stage: int, learnt: int) -> QueryGroup:
        """Test items of ``tasks`` and validation items of those learnt, in one shuffled order."""
        token = self._asked_items(tasks, min(learnt, tasks[-1] + 1), stage)
        made = self._made[token]
        graph, places = self.placed_queries(made.ids, stage)
        known = made.tasks if self.spec.task_ids_at_test else None
        query = Batch(graph=graph, ids=places.to(self.device), allowed=self._allowed(learnt, known), tasks=known)
        return QueryGroup(token=token, query=query, tasks=tasks)

    def _asked_items(self, tasks: tuple[int, ...], learnt: int, stage: int) -> str:
        """The token of a group; its items are chosen, and their answers deposited, when it is first made."""
        token = digest([tasks, learnt, stage])
        if token not in self._made:
            parts = [(k, part) for part in ("test", "validation") for k in tasks if part == "test" or k < learnt]
            sizes = torch.tensor([self.members(k, part).numel() for k, part in parts])
            ids = torch.cat([self.members(k, part) for k, part in parts])
            of = torch.tensor([k for k, _ in parts]).repeat_interleave(sizes)
            test = torch.tensor([part == "test" for _, part in parts]).repeat_interleave(sizes)
            # Shuffled from ascending ids by their own hash: whatever the order of later tasks, the same items are asked in the same order.
            order = torch.argsort(ids * len(self.layout) + self.rank[of])
            name = hashlib.sha256(ids[order].numpy().tobytes()).hexdigest()
            order = order[torch.randperm(ids.numel(), generator=self.generator("items", name))]
            ids, of, test = ids[order], of[order].to(self.device), test[order].to(self.device)
            self.oracle.deposit(token, self.data.y[ids].to(self.device), of.clone(), test)
            self._made[token] = _Asked(ids=ids, tasks=of, test=test, stage=stage)
        return token

    def asked(self, token: str) -> AskedItems:
        """What the group ``token``, which was made before, asks."""
        made = self._made[token]
        nodes, y = self.nodes_asked(made.stage), self.data.y
        return AskedItems(ids=made.ids, tasks=made.tasks, test=made.test, nodes=nodes, y=y[made.ids], y_of_nodes=y[nodes])

    def _allowed(self, learnt: int, known: Tensor | None) -> Tensor:
        """Before training every output competes; then the item's task (task-IL) or all outputs seen so far."""
        table = self.outputs.to(self.device)
        if learnt == 0:
            return torch.ones(table.shape[1], dtype=torch.bool, device=table.device)
        return table[known] if known is not None else table[:learnt].any(dim=0)

    def generator(self, purpose: str, *context: object) -> torch.Generator:
        """A generator that depends on the split seed, the purpose and the context."""
        seed = int(digest(["stream", self.seeds.split, purpose, *map(str, context)])[:15], 16)
        return torch.Generator().manual_seed(seed)
