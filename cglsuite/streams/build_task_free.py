"""Task-free streams, in which items of latent tasks arrive in mixed batches and task boundaries are never announced."""

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

    Latent tasks are those of the scenario's class or domain switches, split by ``seeds.split``; the arrival of items is a function of
    (data, spec, ``seeds.order``, ``seeds.split``).

    Raises:
        SpecError: no schedule, a hyper-parameter out of range, a batch larger than a latent task, switches that do not fit the data.
        DataError: a class too small to split, a latent task without training or test items.
    """
    if spec.task_free is None:
        raise SpecError(f"scenario {spec.name!r} has no stream: expected task_free=TaskFreeSpec(...)")
    check_labels(spec, data)
    kind = _Nodes if isinstance(data, NodeData) else _Graphs
    return kind(spec, data, layout_of(spec, data, seeds), seeds, device, spec.task_free)


def schedule_of(task_free: TaskFreeSpec) -> Schedule:
    """The schedule's function."""
    module, _, name = task_free.schedule_factory.partition(":")
    if not name:
        raise SpecError(f"stream.schedule = {task_free.schedule!r} was not resolved: resolve the scenario through the catalogue first")
    function: Schedule = getattr(importlib.import_module(module), name)
    return function


class TaskFreeAssembly(Assembly, TaskFreeStream):
    """A task-free stream. Subclasses define the graphs in which items are read."""

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
        """For each latent task, the times (int64, ascending) of its training items, for schedules that follow the attribute ``key``."""
        if key not in self.data.keys:
            known = ", ".join(sorted(self.data.keys)) or "none"
            raise SpecError(
                f"schedule {self.task_free.schedule!r} follows the attribute {key!r}; the dataset {self.spec.dataset!r} has {known}"
            )
        return [np.sort(self.data.keys[key][ids].numpy()) for ids in self.training]

    # --- where items are read: what subclasses say -----------------------------------------------------------------------------

    @abstractmethod
    def placed_training(self, ids: Tensor) -> tuple[Any, Tensor]:
        """The graph in which the training items ``ids`` (int64 [n]) arrive, and their ids in it."""

    @abstractmethod
    def placed_validation(self, ids: Tensor) -> tuple[Any, Tensor]:
        """The graph of the validation items ``ids`` (int64 [n]), and their ids in it."""

    # --- batches ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def _first_shown(self) -> Tensor:
        """The step at which the stream first shows each output, int64 [C]; T if it never does."""
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
        """A set of outputs (bool [C], on the CPU) moved to the stream's device."""
        if self.device == "cpu":
            return outputs
        # The same tensor until another output is shown: what adapters derive from it, they keep. A method may have written into it.
        if self._sent is None or not torch.equal(self._sent.here, outputs) or not self._sent.equal:
            self._sent = Sent.of(outputs, self.device)
        return self._sent.there

    def make_batch(self, step: int) -> Batch:
        if self.spec.train_outputs not in ("seen", "all"):
            raise SpecError(f"scenario.train_outputs = {self.spec.train_outputs}: a batch has no task; expected seen or all")
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
        """The test items of every latent task as one group; after the last step, the validation items as another."""
        tasks = tuple(range(len(self)))
        token = self.ask(tasks, 0, 0)
        graph, places = self._query_place
        query = Batch(graph=graph, ids=places, allowed=self._competing(learnt, self._made[token].tasks), tasks=None)
        groups = [QueryGroup(token=token, query=query, tasks=tasks)]
        if learnt == len(self.items):
            groups.append(self._validation(learnt))
        return groups

    def _validation(self, made: int) -> QueryGroup:
        """The validation items of every latent task, in a shuffled order."""
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
        """The graph and ids of the test queries, cached because every evaluation queries the same items."""
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
    """A task-free stream of nodes: training uses the merged graph of all latent tasks without their validation nodes."""

    @cached_property
    def present(self) -> Tensor:
        """Global ids of the nodes of all latent tasks, without validation nodes."""
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
        """The graph and ids of validation nodes, together with all other nodes; training graphs do not contain them."""
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
