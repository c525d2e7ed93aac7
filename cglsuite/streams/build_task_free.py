"""Build task-free streams, in which items of latent tasks arrive in mixed batches without announced task boundaries."""

from __future__ import annotations

import hashlib
import importlib
from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.base.hashing import digest
from cglsuite.graphs import GraphData, GraphSet, MessageGraph, NodeData, uploaded
from cglsuite.graphs.upload import Sent
from cglsuite.specs import ScenarioSpec, Seeds, TaskFreeSpec
from cglsuite.streams.assembly import AskedGroup, Assembly, check_labels
from cglsuite.streams.build import NodeGraphs
from cglsuite.streams.layout import Layout, layout_of
from cglsuite.streams.mixing import Schedule, allocate, deal, mid_steps, mixture_of, spans_of
from cglsuite.streams.stream import QueryGroup
from cglsuite.streams.task_free import TaskFreeStream
from cglsuite.streams.views import Batch, sent

__all__ = ["build_task_free_stream"]


def build_task_free_stream(spec: ScenarioSpec, data: NodeData | GraphData, seeds: Seeds, device: str = "cpu") -> TaskFreeStream:
    """Mix the latent tasks of ``data`` into a stream of batches according to ``spec``.

    The scenario's class or domain switches define the latent tasks, which are split with ``seeds.split``. The order of items depends only
    on (data, spec, ``seeds.order``, ``seeds.split``).

    Raises:
        SpecError: if there is no schedule, a hyperparameter is out of range, a batch is larger than a latent task, or a switch does not
            support the data.
        DataError: if a class is too small to split, or a latent task has no training or test items.
    """
    if spec.task_free is None:
        raise SpecError(f"scenario {spec.name!r} does not define a task-free stream: expected task_free=TaskFreeSpec(...)")
    check_labels(spec, data)
    kind = _Nodes if isinstance(data, NodeData) else _Graphs
    return kind(spec, data, layout_of(spec, data, seeds), seeds, device, spec.task_free)


def schedule_of(task_free: TaskFreeSpec) -> Schedule:
    """Return the mixing function of the schedule."""
    module, _, name = task_free.schedule_factory.partition(":")
    if not name:
        raise SpecError(f"stream.schedule = {task_free.schedule!r} was not resolved: resolve the scenario through the catalogue first")
    function: Schedule = getattr(importlib.import_module(module), name)
    return function


class TaskFreeAssembly(Assembly, TaskFreeStream):
    """Base class for task-free streams over a dataset. Subclasses define the graphs that contain the items."""

    def __init__(self, spec: ScenarioSpec, data: Any, layout: Layout, seeds: Seeds, device: str, task_free: TaskFreeSpec) -> None:
        super().__init__(spec, data, layout, seeds, device)
        self.task_free = task_free
        self.training = [layout.parts[k]["train"] for k in range(len(layout))]
        sizes = torch.tensor([ids.numel() for ids in self.training])
        batch = spec.training.batch_size or 1
        spans = spans_of(sizes, batch)
        hyperparameters = dict(task_free.schedule_hyperparameters)
        where = f"schedule {task_free.schedule!r} with {hyperparameters}"
        follows_time = getattr(schedule_of(task_free), "needs_arrivals", False)
        extra = {"arrivals": self._arrivals(str(hyperparameters.get("key", "time")))} if follows_time else {}
        self.mixture = mixture_of(schedule_of(task_free)(mid_steps(spans), spans, **hyperparameters, **extra), where)
        self.counts = allocate(self.mixture, batch)
        dealt = deal(self.counts, sizes, replacement=task_free.draw == "with-replacement", seed=seeds.order)
        self.items = torch.cat(self.training)[dealt]
        self.evaluations = [*range(0, len(self.items), task_free.evaluate_every), len(self.items)]
        self._sent: Sent | None = None
        self.content = digest([hashlib.sha256(self.items.numpy().tobytes()).hexdigest(), self.evaluations])

    def _arrivals(self, key: str) -> list[NDArray[np.int64]]:
        """Return the sorted times (int64) of each latent task's training items, for schedules that follow the attribute ``key``."""
        if key not in self.data.keys:
            known = ", ".join(sorted(self.data.keys)) or "none"
            raise SpecError(
                f"schedule {self.task_free.schedule!r} requires the attribute {key!r}; "
                f"the dataset {self.spec.dataset!r} has only these: {known}"
            )
        return [np.sort(self.data.keys[key][ids].numpy()) for ids in self.training]

    # --- graphs of items, defined by subclasses --------------------------------------------------------------------------------

    @abstractmethod
    def placed_training(self, ids: Tensor) -> tuple[Any, Tensor]:
        """Return the graph in which the training items ``ids`` (int64 [n]) arrive, and their ids in that graph."""

    @abstractmethod
    def placed_validation(self, ids: Tensor) -> tuple[Any, Tensor]:
        """Return the graph of the validation items ``ids`` (int64 [n]), and their ids in that graph."""

    # --- batches ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def _first_shown(self) -> Tensor:
        """The step at which the stream first shows each output, or T if it never does: int64 [C]."""
        y = self.data.y[self.items.flatten()]
        step = torch.arange(len(self.items)).repeat_interleave(self.items.shape[1])
        first = torch.full((self.n_outputs,), len(self.items))
        if y.dim() == 2:
            rows, columns = y.nonzero(as_tuple=True)
            return first.scatter_reduce(0, columns, step[rows], "amin")
        return first.scatter_reduce(0, y, step, "amin")

    def shown(self, made: int) -> Tensor:
        return self._there(self._first_shown < made)

    def _there(self, outputs: Tensor) -> Tensor:
        """Move a mask of outputs (bool [C], on the CPU) to the stream's device."""
        if self.device == "cpu":
            return outputs
        # Reuse the tensor until another output is shown, because adapters cache values derived from it. A method may have overwritten it.
        if self._sent is None or not torch.equal(self._sent.here, outputs) or not self._sent.equal:
            self._sent = Sent.of(outputs, self.device)
        return self._sent.there

    def make_batch(self, step: int) -> Batch:
        if self.spec.train_outputs not in ("seen", "all"):
            raise SpecError(
                f"scenario.train_outputs = {self.spec.train_outputs!r}, but a batch of a task-free stream has no task; expected 'seen' "
                "or 'all'"
            )
        seen = self.spec.train_outputs == "seen"
        return self._labelled(self.items[step], self.shown(step + 1) if seen else self._there(self.outputs.any(dim=0)))

    def everything(self) -> Batch:
        return self._labelled(torch.cat(self.training).sort().values, self.shown(len(self.items)))

    def _labelled(self, ids: Tensor, allowed: Tensor) -> Batch:
        graph, places = self.placed_training(ids)
        none = torch.zeros(ids.numel(), dtype=torch.int64, device=self.device)
        y, at = uploaded(self.data.y[ids], self.device), Sent.of(places, self.device)
        return Batch(graph=graph, ids=at.there, y=y, tasks=none, allowed=allowed, cache=sent(at, *([self._sent] if self._sent else [])))

    # --- queries ---------------------------------------------------------------------------------------------------------------

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        """Return the test items of all latent tasks as one group. After the last step, the validation items form a second group."""
        tasks = tuple(range(len(self)))
        token = self.ask(tasks, 0, 0)
        graph, places = self._query_place
        query = Batch(graph=graph, ids=places, allowed=self._competing(learnt, self._made[token].tasks), tasks=None)
        groups = [QueryGroup(token=token, query=query, tasks=tasks)]
        if learnt == len(self.items):
            groups.append(self._validation(learnt))
        return groups

    def _validation(self, made: int) -> QueryGroup:
        """The shuffled validation items of all latent tasks."""
        token, parts = "validation", [self.members(k, "validation") for k in range(len(self))]
        if token not in self._made:
            ids, task_of = torch.cat(parts), torch.arange(len(parts)).repeat_interleave(torch.tensor([part.numel() for part in parts]))
            order = torch.randperm(ids.numel(), generator=self.generator(token))
            ids, task_of = ids[order], uploaded(task_of[order], self.device)
            asked = AskedGroup(ids=ids, tasks=task_of, test=torch.zeros_like(task_of, dtype=torch.bool), stage=0)
            self.put_down(token, asked, self.data.y[ids])
        asked = self._made[token]
        graph, places = self.placed_validation(asked.ids)
        query = Batch(graph=graph, ids=uploaded(places, self.device), allowed=self._competing(made, asked.tasks), tasks=None)
        return QueryGroup(token=token, query=query, tasks=tuple(range(len(parts))))

    @cached_property
    def _query_place(self) -> tuple[Any, Tensor]:
        """The graph of the test queries and their ids in it, cached because every evaluation queries the same items."""
        graph, places = self.placed_queries(self._made[self.ask(tuple(range(len(self))), 0, 0)].ids, 0)
        return graph, uploaded(places, self.device)

    def _competing(self, made: int, task_of: Tensor) -> Tensor:
        if self.task_free.mask == "progressive":
            table: Tensor = self.task_outputs.cumsum(dim=0) > 0
            return table[task_of]
        if self.task_free.mask == "all" or not bool((self._first_shown < made).any()):
            return self.task_outputs.any(dim=0)
        return self.shown(made)


class _Nodes(NodeGraphs, TaskFreeAssembly):
    """A task-free stream of nodes. Training uses the joint graph of all latent tasks without their validation nodes."""

    @cached_property
    def present(self) -> Tensor:
        """The global ids of the nodes of all latent tasks, without validation nodes."""
        gone = torch.cat([parts["validation"] for parts in self.layout.parts])
        nodes = torch.cat(self.layout.nodes).unique()
        kept: Tensor = nodes[~torch.isin(nodes, gone)]
        return kept

    @cached_property
    def _merged(self) -> tuple[MessageGraph, Tensor]:
        return self.graph(self.present), self.positions(self.present)

    def placed_training(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        graph, position = self._merged
        return graph, position[ids]

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        if self.task_free.query_graph == "merged":
            return self.placed_training(ids)
        return self._asked_among(self.present, ids)

    def placed_validation(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        """Return the graph of all nodes, and the positions of ``ids`` in it. Training graphs do not contain validation nodes."""
        return self._asked_among(torch.cat([self.present, ids.unique()]), ids)

    def _asked_among(self, nodes: Tensor, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        nodes = nodes[torch.randperm(nodes.numel(), generator=self.generator("ids"))]
        if self.task_free.query_graph == "merged":
            return self.graph(nodes), self.positions(nodes)[ids]
        task_of = torch.full((self.data.n_nodes,), -1)
        for k, mine in enumerate(self.layout.nodes):
            task_of[mine] = k
        source, target = self.edges
        return self.graph(nodes, self.edges[:, task_of[source] == task_of[target]]), self.positions(nodes)[ids]


class _Graphs(TaskFreeAssembly):
    """A task-free stream of whole graphs. Every batch is a separate set of graphs."""

    def placed_training(self, ids: Tensor) -> tuple[GraphSet, Tensor]:
        return self.data.items.training(ids, self.seeds.split, self.device), torch.arange(ids.numel())

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[GraphSet, Tensor]:
        return self.data.items.queries(ids, self.device), torch.arange(ids.numel())

    def placed_validation(self, ids: Tensor) -> tuple[GraphSet, Tensor]:
        return self.placed_queries(ids, 0)
