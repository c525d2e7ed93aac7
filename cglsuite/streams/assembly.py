"""Code shared by streams of all kinds of items: task facts, shuffling, views, queries, and depositing labels with the oracle."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.base.hashing import digest
from cglsuite.graphs import GraphData, LinkData, NodeData, uploaded
from cglsuite.graphs.data import label_kind
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.layout import PARTS, Layout
from cglsuite.streams.oracle import Oracle
from cglsuite.streams.stream import AskedItems, QueryGroup, Stream, TaskFacts, TaskStream
from cglsuite.streams.views import Batch, TaskView


def check_labels(spec: ScenarioSpec, data: NodeData | LinkData | GraphData) -> None:
    """Check that the scenario expects the kind of labels that the data has.

    Raises:
        SpecError: if ``spec.labels`` differs from the data's kind of labels (single-label, multi-label or real targets).
    """
    kind = label_kind(data.y)
    if spec.labels != kind:
        fact = "has real targets" if kind == "real" else f"is {kind}-label"
        raise SpecError(f"scenario.labels = {spec.labels}: the dataset {spec.dataset!r} {fact}")


@lru_cache(maxsize=1024)
def token_of(tasks: tuple[int, ...], learnt: int, stage: int) -> str:
    """Return the opaque token that identifies a query group."""
    return digest([tasks, learnt, stage])


@dataclass(frozen=True, kw_only=True)
class AskedGroup:
    """The items of a query group: shuffled ids (int64 [n]), task positions and test flags, and the stage whose graph is used."""

    ids: Tensor
    tasks: Tensor
    test: Tensor
    stage: int


class Assembly(Stream):
    """Base class for streams that divide the items of a dataset among tasks according to a layout.

    The stream depends only on (data, spec, seeds.order, seeds.split).
    """

    def __init__(self, spec: ScenarioSpec, data: Any, layout: Layout, seeds: Seeds, device: str) -> None:
        super().__init__()
        self.spec, self.data, self.layout, self.seeds, self.device = spec, data, layout, seeds, device
        self.n_outputs, self.n_features, self.data_hash = data.n_classes, self.count_features(), data.content_hash
        self.oracle = self.make_oracle()
        self.outputs = layout.outputs
        """bool [T, C]: the outputs of each task, on the CPU."""
        self.task_outputs = uploaded(self.outputs, device)
        self.tasks = [self._facts(k) for k in range(len(layout))]
        self._made: dict[str, AskedGroup] = {}

    def make_oracle(self) -> Oracle:
        """Create the oracle for the scenario's performance measure."""
        return Oracle.of(self.spec, self.data.n_classes)

    # --- facts -----------------------------------------------------------------------------------------------------------------

    def count_features(self) -> int:
        """Return the number of input features per node, F."""
        return int(self.data.n_features)

    def members(self, k: int, part: str) -> Tensor:
        return self.layout.parts[k][part]

    def _facts(self, k: int) -> TaskFacts:
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

    def generator(self, purpose: str, *context: object) -> torch.Generator:
        """Create a generator seeded by the split seed, the purpose and the context."""
        seed = int(digest(["stream", self.seeds.split, purpose, *map(str, context)])[:15], 16)
        return torch.Generator().manual_seed(seed)

    # --- queries ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def placed_queries(self, ids: Tensor, stage: int) -> tuple[Any, Tensor]:
        """Return the graph in which the items ``ids`` (int64 [n]) are queried at ``stage``, and their ids in that graph."""

    def ask(self, tasks: tuple[int, ...], learnt: int, stage: int) -> str:
        """Return the token of a query group. On first use, select its items and deposit their labels."""
        token = token_of(tasks, learnt, stage)
        if token not in self._made:
            parts = [(k, part) for part in ("test", "validation") for k in tasks if part == "test" or k < learnt]
            ids, task_of, test = self._shuffled(parts)
            asked = AskedGroup(ids=ids, tasks=uploaded(task_of, self.device), test=uploaded(test, self.device), stage=stage)
            self.put_down(token, asked, self.data.y[ids])
        return token

    def put_down(self, token: str, asked: AskedGroup, y: Tensor) -> None:
        """Register a query group, and deposit its labels with the oracle."""
        self.oracle.deposit(token, uploaded(y, self.device), asked.tasks.to(self.device, copy=True), asked.test.to(self.device))
        self._made[token] = asked

    def _shuffled(self, parts: Sequence[tuple[int, str]]) -> tuple[Tensor, Tensor, Tensor]:
        """Shuffle the items of some parts of tasks together. Return their ids (int64 [n]), task positions and test flags (bool [n]).

        The permutation is seeded with a hash of the sorted ids, so that the order of queries does not depend on the order of later tasks.
        """
        sizes = torch.tensor([self.members(k, part).numel() for k, part in parts])
        ids = torch.cat([self.members(k, part) for k, part in parts])
        task_of = torch.tensor([k for k, _ in parts]).repeat_interleave(sizes)
        test = torch.tensor([part == "test" for _, part in parts]).repeat_interleave(sizes)
        # The rank of each task in an order that does not depend on arrival.
        rank = torch.tensor(sorted(range(len(self)), key=lambda k: self.tasks[k].content)).argsort()
        order = torch.argsort(ids * len(self) + rank[task_of])
        name = hashlib.sha256(ids[order].numpy().tobytes()).hexdigest()
        order = order[torch.randperm(ids.numel(), generator=self.generator("items", name))]
        return ids[order], task_of[order], test[order]


class TaskAssembly(Assembly, TaskStream):
    """Base class for task streams over a dataset. Subclasses define the graphs and the schedule of queries."""

    keeps_nodes = False

    @abstractmethod
    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[Any, Tensor]:
        """Return the graph in which items ``ids`` (int64 [n]) of a part of task ``k`` are seen at ``stage``, and their ids in that
        graph."""

    @abstractmethod
    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the query groups after ``learnt`` tasks, each as the positions of the queried tasks and the stage of the graph."""

    def nodes_asked(self, stage: int) -> Tensor:
        """Return the global ids (int64) of the nodes in the query graph of ``stage``, in that graph's order. Empty if items are not
        nodes."""
        return torch.empty(0, dtype=torch.int64)

    # --- views -----------------------------------------------------------------------------------------------------------------

    def _labels(self, ids: Tensor, k: int, stage: int) -> Tensor:
        """Return the labels of items of task ``k`` that are known at ``stage``: int64 [n] or bool [n, C].

        Multi-label rows omit the labels of outputs not seen so far (in task-IL, of other tasks' outputs).
        """
        y: Tensor = self.data.y[ids]
        if self.data.multi_label:
            y = y & (self.outputs[k] if self.spec.task_ids_at_test else self.outputs[: stage + 1].any(dim=0))
        return uploaded(y, self.device)

    def make_view(self, position: int, stage: int) -> TaskView:
        k, train = position, self.members(position, "train")
        own = uploaded(self.outputs[k].clone(), self.device)  # a copy, since a row shares its storage with the rows of later tasks
        seen = uploaded(self.outputs[: stage + 1].any(dim=0), self.device)
        allowed = {"task": own, "seen": seen, "all": torch.ones_like(seen)}[self.spec.train_outputs]

        def batch(ids: Tensor, part: str, y: Tensor | None) -> Batch:
            graph, places = self.placed(ids, k, stage, part)
            tasks = torch.full((ids.numel(),), k, device=self.device)
            return Batch(graph=graph, ids=uploaded(places, self.device), allowed=allowed, y=y, tasks=tasks)

        return TaskView(
            position=k,
            n_tasks=len(self),
            n_outputs=self.n_outputs,
            train=batch(train, "train", self._labels(train, k, stage)),
            validation=batch(self.members(k, "validation"), "validation", None),
            classes=self.layout.classes[k].clone(),
            task_outputs=own,
            seen_outputs=seen,
            keeps_nodes=self.keeps_nodes,
        )

    def validation_token(self, position: int, stage: int | None = None) -> str:
        token, ids = f"monitor-{position}", self.members(position, "validation")
        tasks = torch.full((ids.numel(),), position, device=self.device)
        y = self._labels(ids, position, position if stage is None else stage)
        self.oracle.deposit(token, y, tasks, torch.zeros_like(tasks, dtype=torch.bool))
        return token

    # --- queries ---------------------------------------------------------------------------------------------------------------

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        return [self._group(tasks, stage, learnt) for tasks, stage in self.plan(learnt)]

    def _group(self, tasks: tuple[int, ...], stage: int, learnt: int) -> QueryGroup:
        """Return a query group with the test items of ``tasks`` and the validation items of those already learnt, shuffled together."""
        token = self.ask(tasks, min(learnt, tasks[-1] + 1), stage)
        made = self._made[token]
        graph, places = self.placed_queries(made.ids, stage)
        known = made.tasks if self.spec.task_ids_at_test else None
        query = Batch(graph=graph, ids=uploaded(places, self.device), allowed=self._allowed(learnt, known), tasks=known)
        return QueryGroup(token=token, query=query, tasks=tasks)

    def asked(self, token: str) -> AskedItems:
        made = self._made[token]
        nodes, y = self.nodes_asked(made.stage), self.data.y
        return AskedItems(ids=made.ids, tasks=made.tasks, test=made.test, nodes=nodes, y=y[made.ids], y_of_nodes=y[nodes])

    def _allowed(self, learnt: int, known: Tensor | None) -> Tensor:
        """Return which outputs compete: all before training, and then those of the item's task (task-IL) or all seen so far."""
        table = self.task_outputs
        if learnt == 0:
            return torch.ones(table.shape[1], dtype=torch.bool, device=table.device)
        return table[known] if known is not None else table[:learnt].any(dim=0)
