"""Unlabelled items for self-supervised learning, and transformations of them that work at every problem level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphSet, MessageGraph, uploaded
from cglsuite.graphs.altered import graph_of_nodes, masked_rows, permuted_rows, replaced, subgraphs
from cglsuite.problems.base import Problem
from cglsuite.problems.minibatch import MiniBatches
from cglsuite.streams import Batch, TaskView


class Unlabelled:
    """Provide the unlabelled items of views and transform them for self-supervised learning.

    Args:
        problem: the adapter of the problem level.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def items(self, view: TaskView) -> Batch:
        """Return the view's items without labels: nodes with at least one neighbour, edges if items are pairs of nodes, or training graphs.

        These include all nodes and edges that the method can see, not only the items of the task.
        """
        train = replace(view.train, y=None, tasks=None, allowed=view.task_outputs, cache={})
        graph = train.graph
        if isinstance(graph, GraphSet):
            return train
        ids = graph.edge_index.T if train.ids.dim() == 2 else graph.edge_index.unique()
        proper = ids[ids[:, 0] != ids[:, 1]] if ids.dim() == 2 else ids
        return replace(train, ids=proper) if len(proper) else train

    def passes(self, batch: Batch, generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable over the batches of an epoch, formed like the protocol's labelled batches; see :meth:`Problem.passes`."""
        problem = self.problem
        if isinstance(batch.graph, GraphSet):
            return problem.passes(batch, problem.batch_size, generator)
        return [batch] if problem.batch_size is None else MiniBatches(batch, problem.batch_size, problem.fan_out, generator)

    @staticmethod
    def corrupted(batch: Batch, generator: torch.Generator) -> Batch:
        """Return the same items in a corrupted graph, whose features are shuffled among the nodes (Veličković et al. 2019).

        Args:
            generator: a CPU generator.
        """
        graph = batch.graph
        order = torch.randperm(graph.n_nodes, generator=generator)
        return replace(batch, graph=replaced(graph, permuted_rows(graph.features, order)), cache={})

    @staticmethod
    def masked(batch: Batch, share: float, generator: torch.Generator) -> Batch:
        """Return the same items, with the features of each node set to 0 with probability ``share``."""
        graph = batch.graph
        kept = torch.rand(graph.n_nodes, generator=generator) >= share
        return replace(batch, graph=replaced(graph, masked_rows(graph.features, kept)), cache={})

    @staticmethod
    def subgraph(batch: Batch, keep: float, generator: torch.Generator) -> tuple[Batch, Tensor]:
        """Extract a subgraph around a random node, with a fraction ``keep`` of the graph's nodes. If items are graphs, do so for each
        graph.

        Returns:
            The remaining items, and their positions in ``batch``: int64 [m].
        """
        graph, kept = subgraphs(batch.graph, keep, generator)
        if isinstance(batch.graph, GraphSet):
            return replace(batch, graph=graph, cache={}), torch.arange(len(batch), device=batch.ids.device)
        place = torch.full((batch.graph.n_nodes,), -1, dtype=torch.int64, device=kept.device)
        place[kept] = torch.arange(len(kept), device=kept.device)
        ids = place[batch.ids]
        there = (ids >= 0) if ids.dim() == 1 else (ids >= 0).all(dim=1)
        return replace(batch, graph=graph, ids=ids[there], cache={}), there.nonzero().flatten()

    def embed(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the embeddings of the items before the head: float32 [n, d]."""
        return self.problem.embed(model, batch)

    @staticmethod
    def parts(model: Backbone, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the embeddings of graphs and of their nodes.

        Returns:
            float32 [N, d'], the embeddings of all nodes; int64 [N], the position of each node's graph in the set; and float32 [n, d], the
            embeddings of the graphs before the head.

        Raises:
            NotApplicable: if items are not graphs, or the backbone does not pool with ``graph.pool``.
        """
        graphs: Any = batch.graph
        if not isinstance(graphs, GraphSet):
            raise NotApplicable("only whole graphs have parts, but items here are not graphs")
        pooled: list[Tensor] = []
        whole = type(graphs).pool

        def pool(hidden: Tensor, how: Any) -> Tensor:
            pooled.append(hidden)
            return whole(graphs, hidden, how)

        watched = object.__new__(type(graphs))
        vars(watched).update(vars(graphs), pool=pool)
        embedded = model.encode(watched)
        if not pooled:
            raise NotApplicable(f"the backbone {type(model).__name__} does not pool nodes with graph.pool")
        return pooled[-1], graph_of_nodes(graphs), embedded[batch.ids]

    @staticmethod
    def edges(batch: Batch) -> Tensor:
        """Return the edges of the message graph without self-loops: int64 [2, E].

        Raises:
            NotApplicable: if items are whole graphs.
        """
        if not isinstance(batch.graph, MessageGraph):
            raise NotApplicable("items are whole graphs; expected nodes or links of a single graph")
        edges = batch.graph.edge_index
        return edges[:, edges[0] != edges[1]]

    def chosen(self, n: int, most: int, generator: torch.Generator) -> Tensor:
        """Draw up to ``most`` of the numbers 0, ..., n - 1 at random, in ascending order: int64 [m], on the problem's device."""
        drawn = torch.randperm(n, generator=generator)[:most].sort().values
        return uploaded(drawn, self.problem.device)
