"""Task streams for node classification with tasks defined by classes, domains or time steps, under any edge policy."""

from __future__ import annotations

import logging
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from cglsuite.graphs import MessageGraph, NodeData
from cglsuite.graphs.message import scipy_features
from cglsuite.graphs.splits import partition
from cglsuite.specs import ScenarioSpec, Seeds
from cglsuite.streams.assembly import Assembly, TaskAssembly, check_labels
from cglsuite.streams.layout import Layout, layout_of
from cglsuite.streams.stream import TaskStream

__all__ = ["build_task_stream"]

logger = logging.getLogger(__name__)


def build_task_stream(spec: ScenarioSpec, data: NodeData, seeds: Seeds, device: str = "cpu") -> TaskStream:
    """Partition ``data`` into a stream of tasks according to ``spec``.

    The stream depends only on (data, spec, seeds.order, seeds.split).

    Raises:
        SpecError: if an order is not a permutation, there are too many tasks for the data, the official split does not exist, or a switch
            does not support the kind of labels.
        DataError: if a class is too small to split, a class has no training items, a task has no items in some part, or a key is missing.
    """
    check_labels(spec, data)
    data = partition.replicated(data, spec.replicas)
    return _Nodes(spec, data, layout_of(spec, data, seeds), seeds, device)


class NodeGraphs(Assembly):
    """Builds message graphs from a dataset's nodes and edges."""

    data: NodeData

    @cached_property
    def features(self) -> Tensor | scipy.sparse.csr_matrix:
        sparse = self.data.x.layout == torch.sparse_csr
        x = scipy_features(self.data.x) if sparse else self.data.x
        if self.spec.feature_normalisation == "none":
            return x
        if isinstance(x, Tensor):
            return x / x.sum(dim=1, keepdim=True).clamp(min=1e-12)
        sums = np.asarray(x.sum(axis=1)).ravel()
        return scipy.sparse.csr_matrix(scipy.sparse.diags(1.0 / np.where(sums == 0, 1.0, sums)) @ x, dtype=np.float32)

    @cached_property
    def edges(self) -> Tensor:
        e = self.data.edge_index
        return partition.symmetrised(e, self.data.n_nodes) if self.spec.undirected else e

    def graph(self, nodes: Tensor, edges: Tensor | None = None) -> MessageGraph:
        """Build the message graph induced by ``nodes``, from all edges or only from ``edges`` (int64 [2, E])."""
        edges = self.edges if edges is None else edges
        whole = nodes.numel() == self.data.n_nodes and bool((nodes == torch.arange(nodes.numel())).all())
        if whole:
            return MessageGraph(self.features, edges, self.device)
        x = self.features[nodes] if isinstance(self.features, Tensor) else self.features[nodes.numpy()]
        return MessageGraph(x, partition.induced_subgraph(edges, nodes, self.data.n_nodes), self.device)

    def positions(self, nodes: Tensor) -> Tensor:
        """Return the position of each node of the dataset in ``nodes``, or -1 if it is not among them: int64 [N]."""
        position = torch.full((self.data.n_nodes,), -1, dtype=torch.int64)
        position[nodes] = torch.arange(nodes.numel())
        return position


class _Nodes(NodeGraphs, TaskAssembly):
    """A task stream whose items are nodes of message graphs that depend on the edge policy.

    The policy is implemented in ``nodes`` and ``placed`` for training, and in ``placed_queries``, ``nodes_asked`` and ``plan`` for queries.
    Views of earlier tasks keep their node ids if ``keeps_nodes`` is true. :data:`cglsuite.specs.scenario.EDGE_POLICIES` lists the policies.
    """

    def __init__(self, spec: ScenarioSpec, data: NodeData, layout: Layout, seeds: Seeds, device: str) -> None:
        super().__init__(spec, data, layout, seeds, device)
        self.policy = spec.edge_policy
        self.keeps_nodes = self.policy != "none"
        self.pooled, self.seen = spec.query_grouping == "pooled", spec.query_edges == "seen"
        # Cached graphs: one for `full`, the current one for `inter-task`, one per task for `none` unless tasks share a graph.
        self._query_graph = lru_cache(maxsize=1 if self.pooled or self.seen else None)(self._make_query_graph)
        self._latest: tuple[int, tuple[MessageGraph, Tensor]] | None = None

    def nodes(self, stage: int) -> Tensor:
        """Return the global ids of the nodes in the message graph of task ``stage``."""
        if self.policy == "full":
            return torch.arange(self.data.n_nodes)
        if self.policy == "none":
            return self.layout.nodes[stage]
        # In order of arrival, so nodes keep their positions while the graph grows.
        arrival = self.layout.arrival
        if self.policy == "snapshot" and arrival is not None:  # guaranteed by the layout
            order = torch.argsort(arrival, stable=True)
            return order[: int((arrival <= stage).sum())]
        return _first_met(torch.cat(self.layout.nodes[: stage + 1]))

    def _training(self, stage: int) -> tuple[MessageGraph, Tensor]:
        """Return the training graph of ``stage`` and the positions of all nodes in it. Only the latest graph is cached."""
        if self._latest is None or self._latest[0] != stage:
            self._latest = None  # two graphs at once may not fit into memory
            self._latest = stage, self._training_graph(stage)
        return self._latest[1]

    def _training_graph(self, stage: int) -> tuple[MessageGraph, Tensor]:
        nodes = self.nodes(stage)
        graph = self.graph(nodes, self._edges_among(stage) if self.policy == "none" else None)
        if graph.n_edges == 0:
            logger.warning(
                "scenario %s: the graph of task %d (%s) has no edges, so no messages are passed; scenario.edge_policy=full keeps all edges",
                self.spec.name,
                stage + 1,
                self.layout.names[stage],
            )
        return graph, self.positions(nodes)

    def _make_query_graph(self, stage: int) -> tuple[MessageGraph, Tensor]:
        """Build a query graph under edge policy `none`. Node ids are shuffled, so that they cannot be matched with a training view."""
        nodes = self.nodes_asked(stage)
        return self.graph(nodes, self._edges_asked(stage)), self.positions(nodes)

    def _edges_asked(self, stage: int) -> Tensor | None:
        """Return the edges (int64 [2, E']) of a stage's query graph, or ``None`` for all edges among the queried nodes."""
        if self.seen:
            return None
        return torch.cat([self._edges_among(k) for k in range(stage + 1)], dim=1) if self.pooled else self._edges_among(stage)

    def _edges_among(self, stage: int) -> Tensor:
        """Return the edges among the nodes of task ``stage`` as global ids, in the dataset's order: int64 [2, E']."""
        if self._edges_by_task is not None:
            edges, starts = self._edges_by_task
            return edges[:, starts[stage] : starts[stage + 1]]
        member = torch.zeros(self.data.n_nodes, dtype=torch.bool)
        member[self.nodes(stage)] = True
        source, target = self.edges
        return self.edges[:, member[source] & member[target]]

    @cached_property
    def _edges_by_task(self) -> tuple[Tensor, list[int]] | None:
        """The edges within tasks, sorted by task, and the offset of each task's edges, or ``None`` if tasks share nodes."""
        task_of = np.full(self.data.n_nodes, -1, np.int16 if len(self) < 2**15 else np.int64)  # 16-bit integers are sorted in linear time
        for k, nodes in enumerate(nodes.numpy() for nodes in self.layout.nodes):
            if (task_of[nodes] >= 0).any():
                return None
            task_of[nodes] = k
        source, target = self.edges.numpy()
        own = task_of[source]
        inner = np.flatnonzero((own == task_of[target]) & (own >= 0))
        chosen = inner[np.argsort(own[inner], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(np.bincount(own[inner], minlength=len(self)))])
        return self.edges[:, torch.from_numpy(chosen)], starts.tolist()

    # --- where items are read --------------------------------------------------------------------------------------------------

    def placed(self, ids: Tensor, k: int, stage: int, part: str) -> tuple[MessageGraph, Tensor]:
        graph, position = self._training({"full": 0, "none": k}.get(self.policy, stage))
        return graph, position[ids]

    def placed_queries(self, ids: Tensor, stage: int) -> tuple[MessageGraph, Tensor]:
        if self.policy == "none":
            graph, position = self._query_graph(stage)
        else:
            graph, position = self._training(0 if self.policy == "full" else stage)
        return graph, position[ids]

    def nodes_asked(self, stage: int) -> Tensor:
        if self.policy != "none":
            return self.nodes(stage)
        if not (self.pooled or self.seen):
            return self._shuffled_task(stage)
        # Randomly interleaving shuffled tasks shuffles all their nodes. The nodes of a task keep their order, so messages are summed in the
        # same order as without pooling and predictions are bit-identical.
        tasks = [self._shuffled_task(k) for k in range(stage + 1)]
        owner = torch.arange(stage + 1).repeat_interleave(torch.tensor([nodes.numel() for nodes in tasks]))
        owner = owner[torch.randperm(owner.numel(), generator=self.generator("interleaved", stage))]
        nodes = torch.empty_like(owner)
        nodes[owner.argsort(stable=True)] = torch.cat(tasks)
        return nodes

    def _shuffled_task(self, k: int) -> Tensor:
        """Return the global ids of the nodes of task ``k`` in random order."""
        nodes = self.layout.nodes[k]
        return nodes[torch.randperm(nodes.numel(), generator=self.generator("ids", k))]

    def plan(self, learnt: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the query groups. Test items of unseen tasks are queried only if they are already in the graph (`full`)."""
        tasks = tuple(range(len(self.layout) if self.policy == "full" else learnt))
        if not tasks:
            return []
        latest = max(learnt - 1, 0)
        if self.policy != "none" or self.pooled:
            return [(tasks, latest)]
        return [((k,), latest if self.seen else k) for k in tasks]


def _first_met(ids: Tensor) -> Tensor:
    """Remove duplicates from ``ids`` (int64 [n]), keeping the order of first occurrence."""
    unique, inverse = ids.unique(return_inverse=True)
    first = torch.full((unique.numel(),), ids.numel(), dtype=torch.int64).scatter_reduce(0, inverse, torch.arange(ids.numel()), "amin")
    return ids[first.sort().values]
