"""The problem adapters for links, which are pairs of nodes to classify (LC) or to rank against negative pairs (LP)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import MessageGraph
from cglsuite.graphs.linkgraph import LinkGraph
from cglsuite.graphs.message import scipy_features, torch_csr
from cglsuite.graphs.pack import Pack, taken_rows
from cglsuite.graphs.upload import uploaded
from cglsuite.problems.base import Problem, Surroundings
from cglsuite.problems.minibatch import sampled
from cglsuite.problems.multilabel import MultiLabelOutputs
from cglsuite.problems.node import NodeProblem
from cglsuite.problems.replay_items import MemoryItems
from cglsuite.streams import Batch, TaskView

_BLOCK = {"cpu": 2**10, "cuda": 2**16}  # pairs per block


class LinkProblem(NodeProblem):
    """Adapter for link classification. Items are pairs of nodes in a message graph, with ``ids`` int64 [n, 2] (source, target)."""

    def forward(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the raw outputs of the batch's pairs: float32 [n, C].

        Without gradients, pairs are processed in padded blocks of equal size, because the rounding of a matrix product may depend on its
        number of rows.
        """
        hidden = model.encode(batch.graph)
        if torch.is_grad_enabled():
            return model.readout(hidden, batch.graph, batch.ids)
        size = _BLOCK.get(batch.ids.device.type, _BLOCK["cpu"])
        filled = torch.arange(-(-len(batch) // size) * size, device=batch.ids.device) % max(len(batch), 1)
        answers = [model.readout(hidden, batch.graph, ids) for ids in batch.ids[filled].split(size)]
        return torch.cat(answers)[: len(batch)]

    def embed(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the embeddings of the batch's pairs before the head: float32 [n, d].

        Raises:
            NotApplicable: if the backbone cannot combine node embeddings into pair embeddings.
        """
        combine = getattr(model, "combine", None)
        if combine is None:
            raise NotApplicable(f"the backbone {type(model).__name__} cannot embed pairs of nodes: implement combine(hidden, ids)")
        embedded: Tensor = combine(model.encode(batch.graph), batch.ids)
        return embedded

    def features(self, batch: Batch) -> Tensor:
        """Return the concatenated input features of both nodes of each pair: dense float32 [n, 2F], on the problem's device."""
        ends = Batch(graph=batch.graph, ids=batch.ids.flatten(), allowed=batch.allowed)
        return super().features(ends).view(len(batch), -1)

    # --- memory ----------------------------------------------------------------------------------------------------------------

    def _content(
        self, batch: Batch, ids: Tensor, kind: Literal["reference", "item"], surroundings: Surroundings | None
    ) -> Tensor | Pack | None:
        if kind == "reference":
            return None
        if surroundings is not None:
            return _paired(surroundings(batch.graph, ids.flatten()))
        rows = batch.graph.rows(ids.flatten())
        return rows.view(len(ids), -1) if isinstance(rows, Tensor) else torch_csr(rows.reshape(len(ids), -1).tocsr())

    def recall(self, items: MemoryItems, view: TaskView | Batch | None = None) -> Batch:
        """Convert memory items to a labelled batch in the same order.

        Items stored by reference are in the view's graph, items with features are pairs of isolated nodes, and items with surroundings are
        the centres of their stored subgraphs.
        """
        none = torch.empty(2, 0, dtype=torch.int64)
        if items.x is None:
            graph, ids = self._where(view), items.ids
        elif isinstance(items.x, Pack):
            first = items.x.node_start[:-1]
            ids = uploaded(torch.stack([first, first + 1], dim=1), self.device)
            graph = self._kept_graph(items.x.x, items.x.edge_index, ids)
        else:
            kept: Any = items.x
            ids = torch.arange(2 * len(items), device=self.device).view(-1, 2)
            graph = self._kept_graph(_ends(kept), none, ids)
        return Batch(graph=graph, ids=ids, y=items.y, tasks=items.tasks, allowed=self.allowed(items.tasks))

    def _kept_graph(self, x: Tensor, edge_index: Tensor, ids: Tensor) -> MessageGraph:
        """Build a message graph from the features of stored nodes (float32 [N, F], dense or sparse CSR) and the pairs ``ids`` (int64 [n,
        2])."""
        return MessageGraph(x if x.layout == torch.strided else scipy_features(x), edge_index, self.device)


def _ends(x: Tensor) -> Tensor:
    """Split features of pairs (float32 [n, 2F], dense or sparse CSR) into features of their nodes, stacked vertically: [2n, F]."""
    if x.layout == torch.strided:
        return x.view(2 * len(x), -1)
    rows = scipy_features(x)
    return torch_csr(rows.reshape(2 * rows.shape[0], -1).tocsr())


def _paired(ends: Pack) -> Pack:
    """Merge 2n graphs that start with their centres into n graphs that start with the two centres of a pair."""
    starts = ends.node_start
    n_nodes = int(starts[-1])
    graph = torch.arange(len(ends)).repeat_interleave(ends.sizes)
    inner = torch.ones(n_nodes, dtype=torch.int64).index_fill(0, starts[:-1], 0)  # 0: a centre
    order = (graph // 2 * 2 + inner).argsort(stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(n_nodes)
    return Pack(x=taken_rows(ends.x, order), edge_index=place[ends.edge_index], node_start=starts[::2], edge_start=ends.edge_start[::2])


class MultiLabelLinkProblem(MultiLabelOutputs, LinkProblem):
    """Adapter for multi-label link classification, in which a link may have any number of labels."""


class LinkPredictionProblem(MultiLabelOutputs, LinkProblem):
    """Adapter for link prediction, with a single output that scores how likely a pair is linked.

    Batches contain links (label true) and negative pairs (label false). In training, negative pairs are redrawn for every batch: one for
    each link, from the same source to a random destination of the same node type as the link's, without filtering out existing links. If a
    view's batch is used directly (for memory, importance, or distillation without steps), it contains the view's original pairs.
    """

    def passes(self, batch: Batch, batch_size: int | None, generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable over batches of ``batch_size`` links (``None`` = all), each with the same number of negative pairs."""
        return _Resampled(batch, batch_size, self.fan_out, generator)

    def _union(self, graphs: Sequence[Any]) -> tuple[LinkGraph, list[int]]:
        union, sizes = super()._union(graphs)
        return LinkGraph.joined(union, graphs), sizes

    def _kept_graph(self, x: Tensor, edge_index: Tensor, ids: Tensor) -> LinkGraph:
        types = torch.full((x.shape[0],), 2, device=self.device)  # negative destinations are drawn from the other stored destinations
        types[ids[:, 0]], types[ids[:, 1]] = 0, 1
        return LinkGraph(x if x.layout == torch.strided else scipy_features(x), edge_index, self.device, types=types)


class _Resampled:
    """An iterable over the batches of an epoch. Each iteration shuffles the links and draws new negative pairs."""

    def __init__(self, batch: Batch, batch_size: int | None, fan_out: Sequence[int], generator: torch.Generator) -> None:
        self.batch, self.batch_size, self.fan_out, self.generator = batch, batch_size, tuple(fan_out), generator
        self.links = Problem.labels(batch)[:, 0].nonzero().flatten()

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return 1 if self.batch_size is None else -(-self.links.numel() // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(self.links.numel(), generator=self.generator)
        for chosen in order.split(self.batch_size or max(self.links.numel(), 1)):
            yield self._step(self.links[uploaded(chosen, self.links.device)])

    def _step(self, links: Tensor) -> Batch:
        batch = self.batch
        pairs = batch.ids[links]
        graph: Any = batch.graph.in_step(pairs)
        wrong = torch.stack([pairs[:, 0], batch.graph.destinations(pairs[:, 1], self.generator)], dim=1)
        ids, rows = torch.cat([pairs, wrong]), torch.cat([links, links])
        if self.fan_out:
            graph, ids = sampled(graph, ids, self.fan_out, self.generator)
        exist = torch.arange(len(ids), device=ids.device) < len(links)
        return Batch(
            graph=graph,
            ids=ids,
            allowed=batch.allowed if batch.allowed.dim() == 1 else batch.allowed[rows],
            y=exist.unsqueeze(1),
            tasks=None if batch.tasks is None else batch.tasks[rows],
        )
