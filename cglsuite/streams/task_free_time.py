"""Task-free streams over periods of time and domains: links, real targets, and training graphs that do not contain the future.

Latent tasks are the values of ``scenario.task_key`` or, for time, its bins. The edge policy determines the training graph:

=============  ========================================================================================================
edge policy    training graph
=============  ========================================================================================================
``full``       the whole graph without validation nodes (in link prediction, all training links)
``snapshot``   only the nodes or links of the latent tasks up to the latest of which an item has arrived so far
=============  ========================================================================================================

Under ``snapshot``, latent tasks are periods of time. Links are queried in the graph of the same moment. Nodes are queried in the whole
graph, because a node that has not arrived yet has no place in an earlier one. Links and nodes of later periods are queried from the
start, as in all task-free streams, so the first rows of the matrix state how well a method predicts the future.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphData, LinkData, MessageGraph, NodeData, uploaded
from cglsuite.graphs.splits.negatives import random_destinations
from cglsuite.specs import ScenarioSpec, Seeds, TaskFreeSpec
from cglsuite.streams.assembly import check_labels
from cglsuite.streams.build_task_free import TaskFreeAssembly, _Graphs, _Nodes
from cglsuite.streams.layout import layout_of
from cglsuite.streams.link_graphs import LinkClassification
from cglsuite.streams.link_prediction import LinkPrediction
from cglsuite.streams.links import build_link_stream
from cglsuite.streams.stream import QueryGroup
from cglsuite.streams.task_free import TaskFreeStream
from cglsuite.streams.views import Batch

__all__ = ["build_task_free_time_stream"]


def build_task_free_time_stream(
    spec: ScenarioSpec, data: NodeData | LinkData | GraphData, seeds: Seeds, device: str = "cpu"
) -> TaskFreeStream:
    """Mix the periods or domains of ``data`` into a stream of batches according to ``spec``.

    The order of items depends only on (data, spec, ``seeds.order``, ``seeds.split``).

    Raises:
        SpecError: if there is no schedule or ``task_key``, a hyperparameter is out of range, a batch is larger than a latent task, or a
            switch does not support the data.
        DataError: as for the stream of tasks over the same latent tasks.
    """
    if spec.task_free is None or spec.task_key is None:
        raise SpecError(
            f"scenario {spec.name!r}: latent tasks are the values of scenario.task_key, and stream.schedule mixes them; expected both"
        )
    if spec.task_free.mask != "all":
        raise SpecError(f"stream.mask = {spec.task_free.mask}: periods and domains share all outputs, so none can be hidden; expected all")
    check_labels(spec, data)
    if isinstance(data, LinkData):
        return _Links(spec, data, seeds, device, spec.task_free)
    if isinstance(data, GraphData):
        return _TimedGraphs(spec, data, layout_of(with_tasks(spec), data, seeds), seeds, device, spec.task_free)
    return _TimedNodes(spec, data, layout_of(with_tasks(spec), data, seeds), seeds, device, spec.task_free)


def with_tasks(spec: ScenarioSpec) -> ScenarioSpec:
    """Return the scenario whose tasks are the latent tasks: in time-IL if they are periods of time, otherwise in domain-IL."""
    timed = spec.edge_policy == "snapshot" or spec.task_bins
    return replace(spec, setting="time-il" if timed else "domain-il", task_free=None)


class _Timed(TaskFreeAssembly):
    """Base class for streams whose graph may grow with the latent tasks that have arrived."""

    stage = 0
    """The latest latent task of which an item had arrived when the batch or query at hand was made."""

    @cached_property
    def _reached(self) -> Tensor:
        """The latest latent task of which an item arrives in the first t steps, 0 before the first: int64 [T + 1]."""
        latest = (torch.arange(len(self)) * (self.counts > 0)).amax(dim=1).cummax(dim=0).values
        return torch.cat([torch.zeros(1, dtype=torch.int64), latest])

    @cached_property
    def _first_shown(self) -> Tensor:
        """The step at which the stream first shows each output, which is the first for all, since latent tasks share them: int64 [C]."""
        return torch.zeros(self.n_outputs, dtype=torch.int64)

    def make_batch(self, step: int) -> Batch:
        self.stage = int(self._reached[step + 1])
        return super().make_batch(step)

    def everything(self) -> Batch:
        self.stage = len(self) - 1
        return super().everything()

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        self.stage = int(self._reached[learnt])
        return super().make_queries(learnt)


class _TimedNodes(_Timed, _Nodes):
    """A task-free stream of nodes that may have real targets or arrive over time."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._until = lru_cache(maxsize=1)(self._graph_until)

    def _graph_until(self, stage: int) -> tuple[MessageGraph, Tensor]:
        nodes = self.present
        if self.layout.arrival is not None:  # guaranteed by the layout
            nodes = nodes[self.layout.arrival[nodes] <= stage]
        return self.graph(nodes), self.positions(nodes)

    def placed_training(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        if self.spec.edge_policy == "full":
            return super().placed_training(ids)
        graph, position = self._until(self.stage)
        return graph, position[ids]

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        if self.task_free.query_graph == "merged":
            return super().placed_training(ids)
        return super().placed_queries(ids, stage)


class _TimedGraphs(_Timed, _Graphs):
    """A task-free stream of whole graphs that may have real targets or arrive over time."""


class _Links(_Timed):
    """A task-free stream of links. A stream of tasks over the same latent tasks builds their graphs and, in link prediction, their queries.

    In link prediction, every batch has one negative pair per link, with another destination. All test links are ranked against the same
    negative pairs at every evaluation.
    """

    data: LinkData

    def __init__(self, spec: ScenarioSpec, data: LinkData, seeds: Seeds, device: str, task_free: TaskFreeSpec) -> None:
        tasks = cast("LinkClassification | LinkPrediction", build_link_stream(with_tasks(spec), data, seeds, device))
        self._stream = tasks
        super().__init__(spec, data, tasks.layout, seeds, device, task_free)
        if isinstance(tasks, LinkPrediction):
            self.oracle, self._made = tasks.oracle, tasks._made

    def count_features(self) -> int:
        return self._stream.count_features()

    @property
    def _graph(self) -> MessageGraph:
        return self._stream.graph_at(self.stage, self.stage)

    def placed_training(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        return self._graph, self.data.links[:, ids].T.contiguous()

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        return self.placed_training(ids)

    def placed_validation(self, ids: Tensor) -> tuple[MessageGraph, Tensor]:
        return self.placed_training(ids)

    @property
    def _query_place(self) -> tuple[Any, Tensor]:
        graph, places = self.placed_queries(self._made[self.ask(tuple(range(len(self))), 0, 0)].ids, 0)
        return graph, uploaded(places, self.device)

    # --- link prediction -------------------------------------------------------------------------------------------------------

    def _labelled(self, ids: Tensor, allowed: Tensor) -> Batch:
        if not isinstance(self._stream, LinkPrediction):
            return super()._labelled(ids, allowed)
        links = self.data.links[:, ids]
        content = hashlib.sha256(ids.numpy().tobytes()).hexdigest()
        wrong = random_destinations(links[1], self._stream.types, self.generator("training negatives", content))
        pairs = torch.cat([links, torch.stack([links[0], wrong])], dim=1).T.contiguous()
        exist = (torch.arange(len(pairs)) < links.shape[1]).unsqueeze(1)
        none = torch.zeros(len(pairs), dtype=torch.int64, device=self.device)
        y = uploaded(exist, self.device)
        return Batch(graph=self._graph, ids=uploaded(pairs, self.device), allowed=torch.ones_like(y[0]), y=y, tasks=none)

    def make_queries(self, learnt: int) -> list[QueryGroup]:
        if not isinstance(self._stream, LinkPrediction):
            return super().make_queries(learnt)
        self.stage = int(self._reached[learnt])
        tasks = tuple(range(len(self)))
        token = self._stream.ask(tasks, len(self) if learnt == len(self.items) else 0, 0)
        pairs = uploaded(self._stream.pairs[self._made[token].ids], self.device)
        allowed = torch.ones(1, dtype=torch.bool, device=self.device)
        return [QueryGroup(token=token, query=Batch(graph=self._graph, ids=pairs, allowed=allowed, tasks=None), tasks=tasks)]
