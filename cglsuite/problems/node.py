"""The problem adapter for node classification (NC)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import scipy.sparse
import torch
from torch import Tensor

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import NotApplicable, SpecError
from cglsuite.graphs import MessageGraph, SparseMatrix
from cglsuite.graphs.blocks import SideBySide
from cglsuite.graphs.message import scipy_features, torch_csr
from cglsuite.graphs.pack import Pack
from cglsuite.graphs.upload import uploaded
from cglsuite.problems.base import Problem, Surroundings
from cglsuite.problems.minibatch import MiniBatches
from cglsuite.problems.replay_items import MemoryItems
from cglsuite.streams import Batch, TaskView


class NodeProblem(Problem):
    """Adapter for node classification. Items are the nodes of a message graph."""

    def passes(self, batch: Batch, batch_size: int | None, generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable over the batches of an epoch: the whole batch, or mini-batches in sampled graphs."""
        return [batch] if batch_size is None else MiniBatches(batch, batch_size, self.fan_out, generator)

    def together(self, queries: Sequence[Batch]) -> Batch:
        """Merge several queries into one on the disjoint union of their graphs."""
        graph = SideBySide([q.graph for q in queries])
        known = [q.tasks for q in queries if q.tasks is not None]
        return Batch(
            graph=graph,
            ids=torch.cat([q.ids + start for q, start in zip(queries, graph.starts, strict=False)]),
            allowed=torch.cat([q.allowed.expand(len(q), -1) for q in queries]),
            tasks=torch.cat(known) if len(known) == len(queries) else None,
        )

    def _union(self, graphs: Sequence[Any]) -> tuple[MessageGraph, list[int]]:
        sizes = [g.n_nodes for g in graphs]
        offsets = uploaded(torch.tensor([0, *sizes[:-1]]).cumsum(0), self.device)
        first = graphs[0].features
        x: Tensor | scipy.sparse.csr_matrix
        if isinstance(first, SparseMatrix):
            x = scipy.sparse.vstack([scipy_features(g.features.csr) for g in graphs if isinstance(g.features, SparseMatrix)], format="csr")
        else:
            x = torch.cat([g.features for g in graphs if isinstance(g.features, Tensor)])
        edges = torch.cat([g.edge_index + o for g, o in zip(graphs, offsets, strict=True)], dim=1)
        return MessageGraph(x, edges, self.device), sizes

    def forward(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the raw outputs of the batch's nodes: float32 [n, C]."""
        if torch.is_grad_enabled():
            out: Tensor = model(batch.graph, batch.ids)
            return out
        everything: Tensor = model(batch.graph)
        return everything[batch.ids]

    def features(self, batch: Batch) -> Tensor:
        """Return the dense input features of the batch's nodes: float32 [n, F], on the problem's device."""
        rows = batch.graph.rows(batch.ids)
        return uploaded(rows if isinstance(rows, Tensor) else torch.from_numpy(rows.toarray()), self.device)

    def _content(
        self, batch: Batch, ids: Tensor, kind: Literal["reference", "item"], surroundings: Surroundings | None
    ) -> Tensor | Pack | None:
        if kind == "reference":
            return None
        if surroundings is not None:
            return surroundings(batch.graph, ids)
        rows = batch.graph.rows(ids)
        return rows if isinstance(rows, Tensor) else torch_csr(rows)

    def recall(self, items: MemoryItems, view: TaskView | Batch | None = None) -> Batch:
        """Convert memory items to a labelled batch in the same order.

        Items stored by reference are in the view's graph, items with features are isolated nodes, and items with surroundings are the
        centres of their stored subgraphs.
        """
        if items.x is None:
            graph, ids = self._where(view), items.ids
        elif isinstance(items.x, Pack):
            graph = MessageGraph(_features(items.x.x), items.x.edge_index, self.device)
            ids = uploaded(items.x.node_start[:-1], self.device)
        else:
            kept: Any = items.x
            graph = MessageGraph(_features(kept), torch.empty(2, 0, dtype=torch.int64), self.device)
            ids = torch.arange(len(items), device=self.device)
        return Batch(graph=graph, ids=ids, y=items.y, tasks=items.tasks, allowed=self.allowed(items.tasks))

    @staticmethod
    def _where(view: TaskView | Batch | None) -> MessageGraph:
        """Return the graph that contains the items stored by reference."""
        if view is None:
            raise SpecError("items stored by reference need the graph that contains them; expected a task's view or a batch")
        if isinstance(view, TaskView) and not view.keeps_nodes:
            raise NotApplicable(
                "items stored by reference must be in the current graph, but the edge policy `none` excludes old nodes from it: "
                "store items with their features instead (method.neighbourhood=false)"
            )
        graph: MessageGraph = view.graph
        return graph


def _features(x: Tensor) -> Tensor | scipy.sparse.csr_matrix:
    """Convert stored features to the format that message graphs accept."""
    return x if x.layout == torch.strided else scipy_features(x)
