"""Task-free streams: items of latent tasks arrive in mixed batches, and nobody says when one task ends and another begins."""

from __future__ import annotations

import hashlib
import importlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cglsuite.errors import SpecError
from cglsuite.graphs import GraphData, GraphSet, MessageGraph, NodeData
from cglsuite.hashing import digest
from cglsuite.markup import card
from cglsuite.specs import OnlineSpec, ScenarioSpec, Seeds
from cglsuite.streams.assembly import Assembly, check_labels
from cglsuite.streams.build import NodeGraphs
from cglsuite.streams.layout import Layout, layout_of
from cglsuite.streams.mixing import Schedule, allocate, deal, mid_steps, mixture_of, spans_of
from cglsuite.streams.oracle import Oracle
from cglsuite.streams.stream import QueryGroup, TaskFacts, task_grid
from cglsuite.streams.views import Batch

__all__ = ["BatchStream", "build_batch_stream"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchStream:
    """Batches in order. Nothing here depends on a method or on its seed.

    Args:
        tasks: the facts of the latent tasks.
        mixture: float64 [T, K], the schedule's shares at every step. counts: int64 [T, K], the items that each latent task delivers.
        items: int64 [T, B], global ids of what arrives.
        evaluations: the numbers of steps after which queries are asked: 0, Δ, 2Δ, ..., T.
        make_batch: step to labelled batch. make_queries: number of steps made to query groups: the test items, and after the last step
            the validation items, which score a search and are in no other graph.
        everything: all training items as one labelled batch, only for methods that declare the need ``past-views`` (upper bounds).
        shown: number of steps made to the outputs that the stream has shown by then: bool [C].
        content: SHA-256 (hex) of what arrives when.
    """

    spec: ScenarioSpec
    n_outputs: int
    n_features: int
    data_hash: str
    tasks: Sequence[TaskFacts]
    oracle: Oracle
    mixture: NDArray[np.float64]
    counts: Tensor
    items: Tensor
    evaluations: Sequence[int]
    make_batch: Callable[[int], Batch]
    make_queries: Callable[[int], list[QueryGroup]]
    everything: Callable[[], Batch]
    shown: Callable[[int], Tensor]
    members: Callable[[int, str], Tensor]
    task_outputs: Tensor
    content: str

    def __len__(self) -> int:
        """Number of latent tasks K."""
        return len(self.tasks)

    def __repr__(self) -> str:
        size = f"{self.n_steps} steps of {self.items.shape[1]} items"
        return f"<BatchStream of {self.spec.name}: {size}, {len(self)} latent tasks, {self.n_outputs} outputs>"

    def _repr_html_(self) -> str:
        facts = [("scenario", self.spec.name), ("steps", self.n_steps), ("items per step", int(self.items.shape[1]))]
        facts += [("evaluations", len(self.evaluations)), ("outputs", self.n_outputs), ("features", self.n_features)]
        facts += [("data", self.data_hash)]
        return card(f"stream of {self.n_steps} steps over {len(self)} latent tasks", facts, task_grid(self.tasks))

    @property
    def n_steps(self) -> int:
        """Number of steps T."""
        return int(self.items.shape[0])

    def delivered(self) -> list[list[int]]:
        """How many items of each latent task had arrived by each evaluation: [E + 1][K]."""
        total = torch.cat([torch.zeros(1, len(self), dtype=torch.int64), self.counts.cumsum(0)])
        rows: list[list[int]] = total[list(self.evaluations)].tolist()
        return rows

    def exposure(self) -> list[list[int]]:
        """Of each latent task, how many of its training items arrive 0, 1, 2, ... times in the whole stream: [K][1 + the most]."""
        members = [self.members(k, "train") for k in range(len(self))]
        draws = torch.bincount(self.items.flatten(), minlength=1 + max(int(ids.max()) for ids in members))
        return [torch.bincount(draws[ids]).tolist() for ids in members]


def build_batch_stream(spec: ScenarioSpec, data: NodeData | GraphData, seeds: Seeds, device: str = "cpu") -> BatchStream:
    """Mix the latent tasks of ``data`` into a stream of batches as ``spec`` says.

    Latent tasks are those of the scenario's class or domain switches, split by ``seeds.split``; which of their items arrive when is a
    function of (data, spec, ``seeds.order``, ``seeds.split``).

    Raises:
        SpecError: no schedule, a schedule's setting out of range, a batch larger than a latent task, switches that do not fit the data.
        DataError: a class too small to split, a latent task without training or test items.
    """
    if spec.online is None:
        raise SpecError(f"scenario {spec.name!r} has no stream: expected online=OnlineSpec(...)")
    check_labels(spec, data)
    kind = _NodeFlow if isinstance(data, NodeData) else _GraphFlow
    return kind(spec, data, layout_of(spec, data, seeds), seeds, device, spec.online).flow()


def schedule_of(online: OnlineSpec) -> Schedule:
    """The schedule's function."""
    module, _, name = online.schedule_factory.partition(":")
    if not name:
        raise SpecError(f"stream.schedule = {online.schedule!r} was not resolved: resolve the scenario through the catalogue first")
    function: Schedule = getattr(importlib.import_module(module), name)
    return function


class _Flow(Assembly):
    """What batch streams over any kind of item share."""

    def __init__(self, spec: ScenarioSpec, data: Any, layout: Layout, seeds: Seeds, device: str, online: OnlineSpec) -> None:
        super().__init__(spec, data, layout, seeds, device)
        self.online = online
        self.training = [layout.parts[k]["train"] for k in range(len(layout))]
        sizes = torch.tensor([ids.numel() for ids in self.training])
        batch = spec.training.batch_size or 1
        spans = spans_of(sizes, batch)
        settings = dict(online.schedule_settings)
        where = f"schedule {online.schedule!r} with {settings}"
        follows_time = getattr(schedule_of(online), "needs_arrivals", False)
        extra = {"arrivals": self._arrivals(str(settings.get("key", "time")))} if follows_time else {}
        self.mixture = mixture_of(schedule_of(online)(mid_steps(spans), spans, **settings, **extra), where)
        self.counts = allocate(self.mixture, batch)
        dealt = deal(self.counts, sizes, replacement=online.draw == "with-replacement", seed=seeds.order)
        self.items = torch.cat(self.training)[dealt]
        self.steps = [*range(0, len(self.items), online.evaluate_every), len(self.items)]

    def _arrivals(self, key: str) -> list[NDArray[np.int64]]:
        """Per latent task the times (int64, ascending) of its training items, for schedules that follow the attribute ``key``."""
        if key not in self.data.keys:
            known = ", ".join(sorted(self.data.keys)) or "none"
            raise SpecError(
                f"schedule {self.online.schedule!r} follows the attribute {key!r}; the dataset {self.spec.dataset!r} has {known}"
            )
        return [np.sort(self.data.keys[key][ids].numpy()) for ids in self.training]

    def flow(self) -> BatchStream:
        """The stream."""
        return BatchStream(
            spec=self.spec,
            n_outputs=self.data.n_classes,
            n_features=self.data.n_features,
            data_hash=self.data.content_hash,
            tasks=self.tasks,
            oracle=self.oracle,
            mixture=self.mixture,
            counts=self.counts,
            items=self.items,
            evaluations=self.steps,
            make_batch=self.batch,
            make_queries=self.queries,
            everything=lambda: self._labelled(torch.cat(self.training).sort().values, self.shown(len(self.items))),
            shown=self.shown,
            members=self.members,
            task_outputs=self.outputs.to(self.device),
            content=digest([hashlib.sha256(self.items.numpy().tobytes()).hexdigest(), self.steps]),
        )

    @cached_property
    def _first_shown(self) -> Tensor:
        """int64 [C]: the step at which the stream first shows an output; T where it never does."""
        y = self.data.y[self.items.flatten()]
        step = torch.arange(len(self.items)).repeat_interleave(self.items.shape[1])
        first = torch.full((self.data.n_classes,), len(self.items))
        if y.dim() == 2:
            rows, columns = y.nonzero(as_tuple=True)
            return first.scatter_reduce(0, columns, step[rows], "amin")
        return first.scatter_reduce(0, y, step, "amin")

    def shown(self, made: int) -> Tensor:
        """bool [C]: the outputs shown in the first ``made`` steps."""
        return (self._first_shown < made).to(self.device)

    def batch(self, step: int) -> Batch:
        """What arrives at ``step``, with labels."""
        allowed = {"seen": self.shown(step + 1), "all": self.outputs.any(dim=0).to(self.device)}
        if self.spec.train_outputs not in allowed:
            raise SpecError(f"scenario.train_outputs = {self.spec.train_outputs}: a batch has no task; expected seen or all")
        return self._labelled(self.items[step], allowed[self.spec.train_outputs])

    def _labelled(self, ids: Tensor, allowed: Tensor) -> Batch:
        graph, places = self.placed(ids, 0, 0, "train")
        none = torch.zeros(ids.numel(), dtype=torch.int64, device=self.device)
        return Batch(graph=graph, ids=places.to(self.device), y=self.data.y[ids].to(self.device), tasks=none, allowed=allowed)

    def queries(self, made: int) -> list[QueryGroup]:
        """The test items of every latent task, as one group; after the last step the validation items, as another."""
        tasks = tuple(range(len(self.layout)))
        token = self._asked_items(tasks, 0, 0)
        asked = self._made[token]
        graph, places = self._query_place
        query = Batch(graph=graph, ids=places, allowed=self._competing(made, asked.tasks), tasks=None)
        groups = [QueryGroup(token=token, query=query, tasks=tasks)]
        if made == len(self.items):
            groups.append(self._validation(made))
        return groups

    def _validation(self, made: int) -> QueryGroup:
        """The validation items of every latent task, in a shuffled order."""
        token, parts = "validation", [self.members(k, "validation") for k in range(len(self.layout))]
        ids, of = torch.cat(parts), torch.arange(len(parts)).repeat_interleave(torch.tensor([part.numel() for part in parts]))
        order = torch.randperm(ids.numel(), generator=self.generator(token))
        ids, of = ids[order], of[order].to(self.device)
        self.oracle.deposit(token, self.data.y[ids].to(self.device), of, torch.zeros_like(of, dtype=torch.bool))
        graph, places = self.placed_validation(ids)
        query = Batch(graph=graph, ids=places.to(self.device), allowed=self._competing(made, of), tasks=None)
        return QueryGroup(token=token, query=query, tasks=tuple(range(len(parts))))

    @abstractmethod
    def placed_validation(self, ids: Tensor) -> tuple[Any, Tensor]:
        """The graph in which the validation items ``ids`` (int64 [n]) are asked, and their ids in it."""

    @cached_property
    def _query_place(self) -> tuple[Any, Tensor]:
        """Kept: the same items are asked at every evaluation."""
        (asked,) = self._made.values()
        graph, places = self.placed_queries(asked.ids, 0)
        return graph, places.to(self.device)

    def _competing(self, made: int, of: Tensor) -> Tensor:
        if self.online.mask == "progressive":
            table: Tensor = (self.outputs.cumsum(dim=0) > 0).to(self.device)
            return table[of]
        shown = self.shown(made)
        if self.online.mask == "all" or not bool(shown.any()):
            return self.outputs.any(dim=0).to(self.device)
        return shown

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        return [(tuple(range(len(self.layout))), 0)]


class _NodeFlow(NodeGraphs, _Flow):
    """Nodes: training reads the merged graph of all latent tasks without their validation nodes."""

    @cached_property
    def present(self) -> Tensor:
        """Global ids of the nodes of all latent tasks, validation nodes removed."""
        gone = torch.cat([parts["validation"] for parts in self.layout.parts])
        nodes = torch.cat(self.layout.nodes).unique()
        kept: Tensor = nodes[~torch.isin(nodes, gone)]
        return kept

    @cached_property
    def _merged(self) -> tuple[MessageGraph, Tensor]:
        return self.graph(self.present), self.positions(self.present)

    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[MessageGraph, Tensor]:
        graph, position = self._merged
        return graph, position[ids]

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        if self.online.query_graph == "merged":
            return self.placed(ids, 0, 0, "test")
        return self._asked_among(self.present, ids)

    def placed_validation(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        """Among all other nodes, which hear them nowhere else."""
        return self._asked_among(torch.cat([self.present, ids.unique()]), ids)

    def _asked_among(self, nodes: Tensor, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        nodes = nodes[torch.randperm(nodes.numel(), generator=self.generator("ids"))]
        if self.online.query_graph == "merged":
            return self.graph(nodes), self.positions(nodes)[ids]
        of = torch.full((self.data.n_nodes,), -1)
        for k, mine in enumerate(self.layout.nodes):
            of[mine] = k
        source, target = self.edges
        return self.graph(nodes, self.edges[:, of[source] == of[target]]), self.positions(nodes)[ids]


class _GraphFlow(_Flow):
    """Whole graphs: every batch is a set of its own."""

    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[GraphSet, Tensor]:
        return self.data.items.training(ids, self.seeds.split, self.device), torch.arange(ids.numel())

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[GraphSet, Tensor]:
        return self.data.items.queries(ids, self.device), torch.arange(ids.numel())

    def placed_validation(self, ids: Tensor) -> tuple[GraphSet, Tensor]:
        return self.placed_queries(ids, 0)
