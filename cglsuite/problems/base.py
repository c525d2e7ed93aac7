"""The base class of problem adapters, which provide outputs, losses, distillation, predictions and memory samples.

Methods use these without depending on the kind of items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.base.errors import SpecError
from cglsuite.graphs import GraphSet, MessageGraph, counted, uploaded
from cglsuite.graphs.pack import Pack
from cglsuite.problems.replay_items import MemoryItems, check_rows
from cglsuite.streams import Batch, TaskView
from cglsuite.streams.views import on_host

Reduction = Literal["mean", "sum", "none"]

Surroundings = Callable[[MessageGraph, Tensor], Pack]
"""Maps (graph, nodes int64 [m]) to one subgraph per node, in which that node comes first."""

_SETS_IN_USE = 16


class Problem(ABC):
    """Base class for problem adapters, for single-label items. Subclasses define the items (nodes, graphs, ...) and other kinds of labels.

    Args:
        task_outputs: bool [T, C], the outputs of each task that has arrived. The runner reveals rows as tasks arrive.
        task_ids: whether each item's task determines which outputs compete (task-IL). Otherwise, the same outputs compete for all items.
        class_balanced: whether to weight each item's loss by 1 / (count of its class in the batch).
        batch_size: number of items per training step; ``None`` = all. fan_out: number of neighbours sampled per layer in a training step;
            empty = all.
    """

    kind = "single-label"

    def __init__(
        self,
        *,
        n_outputs: int,
        n_tasks: int,
        task_ids: bool,
        class_balanced: bool,
        batch_size: int | None = None,
        fan_out: tuple[int, ...] = (),
        device: str = "cpu",
    ) -> None:
        self.n_outputs, self.task_ids, self.class_balanced = n_outputs, task_ids, class_balanced
        self.batch_size, self.fan_out = batch_size, fan_out
        self.device = torch.device(device)
        self.task_outputs = torch.zeros(n_tasks, n_outputs, dtype=torch.bool, device=self.device)
        self.current = torch.zeros(n_outputs, dtype=torch.bool, device=self.device)
        self.has_tasks = False
        """Whether a task has arrived. In a task-free stream, tasks never arrive."""
        self._of_outputs: dict[tuple[str, int], tuple[Tensor, int, Any]] = {}
        self.like: GraphSet | None = None
        """A set of graphs used to rebuild stored graphs from a checkpoint, or ``None`` if items are not graphs."""

    def arrive(self, view: TaskView) -> None:
        """Register the outputs of a new task. Called by the runner."""
        self.task_outputs[view.position] = view.task_outputs
        self.has_tasks = True
        self.current = view.train.allowed

    # --- batches ---------------------------------------------------------------------------------------------------------------

    def batch(self, views: Sequence[TaskView], part: Literal["train", "validation"] = "train") -> Batch:
        """Return all training (or unlabelled validation) items of the views as one batch, for example to fill memory or compute
        importance."""
        return self.merge([getattr(view, part) for view in views])

    def epochs(self, views: Sequence[TaskView], generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable over the batches of an epoch: one batch with all items, or mini-batches that are redrawn in each epoch.

        Computations without gradients (the monitored value and predictions) always use all items and neighbours.
        """
        return self.passes(self.batch(views), self.batch_size, generator)

    @abstractmethod
    def passes(self, batch: Batch, batch_size: int | None, generator: torch.Generator) -> Iterable[Batch]:
        """Return an iterable like :meth:`epochs`, for any batch and batch size."""

    def merge(self, batches: Iterable[Batch]) -> Batch:
        """Merge several batches into one. If they do not share a graph (or set of graphs), the batch uses the union of their graphs."""
        by_graph: dict[int, list[Batch]] = {}
        for batch in batches:
            by_graph.setdefault(id(batch.graph), []).append(batch)
        parts = [self._concatenate(group) for group in by_graph.values()]
        if len(parts) == 1:
            return parts[0]
        graph, sizes = self._union([p.graph for p in parts])
        offsets = uploaded(torch.tensor([0, *sizes[:-1]]).cumsum(0), self.device)
        return self._concatenate([replace(b, graph=graph, ids=b.ids + o, cache={}) for b, o in zip(parts, offsets, strict=True)])

    def _concatenate(self, batches: list[Batch]) -> Batch:
        if len(batches) == 1:
            return batches[0]
        labelled = all(b.y is not None for b in batches)
        first = batches[0].allowed
        shared = all(b.allowed.dim() == 1 and torch.equal(b.allowed, first) for b in batches)
        return Batch(
            graph=batches[0].graph,
            ids=torch.cat([b.ids for b in batches]),
            y=torch.cat([b.y for b in batches if b.y is not None]) if labelled else None,
            allowed=first if shared else torch.cat([b.allowed.expand(len(b), -1) for b in batches]),
            tasks=torch.cat([b.tasks for b in batches if b.tasks is not None]),
        )

    def together(self, queries: Sequence[Batch]) -> Batch:
        """Merge several queries into one on the disjoint union of their graphs. Only message graphs are supported."""
        raise NotImplementedError(f"{type(self).__name__} does not use message graphs")

    @abstractmethod
    def _union(self, graphs: Sequence[Any]) -> tuple[MessageGraph | GraphSet, list[int]]:
        """Return the union of several graphs (or sets of graphs), and the offset of each graph's ids."""

    def allowed(self, tasks: Tensor) -> Tensor:
        """Return the outputs that compete for items of ``tasks`` (int64 [n]): bool [n, C] in task-IL, otherwise bool [C] for all items."""
        return self.task_outputs[tasks] if self.task_ids else self.current

    # --- outputs and losses ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def forward(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the raw outputs of the batch's items: float32 [n, C]. ``batch.allowed`` determines which of them compete.

        Without gradients, outputs are computed for the whole graph before items are selected, so that an item's prediction is bit-identical
        whatever other items are in the query.
        """

    def embed(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the embeddings of the batch's items before the head: float32 [n, d]."""
        return model.encode(batch.graph)[batch.ids]

    def edge_attention(self, model: Backbone, batch: Batch) -> Tensor:
        """Compute the attention of the model's first layer over the edges of the batch's graphs: float32 [E', heads]."""
        return model.edge_attention(batch.graph)

    @abstractmethod
    def features(self, batch: Batch) -> Tensor:
        """Return the dense input features of each item: float32 [n, F], on the problem's device."""

    @staticmethod
    def labels(batch: Batch) -> Tensor:
        """Return the labels of a training batch: int64 [n], or bool [n, C] for multi-label items.

        Raises:
            SpecError: if the batch is a query. Only the oracle has its labels.
        """
        if batch.y is None:
            raise SpecError("this batch is a query, so it has no labels: only the oracle has them")
        return batch.y

    def loss(self, logits: Tensor, batch: Batch, reduction: Reduction = "mean") -> Tensor:
        """Compute the cross-entropy over the allowed outputs: a scalar, or float32 [n] for reduction ``none``.

        With class balance, ``mean`` is the weighted mean, where the weight of an item is 1 / (count of its class in the batch).
        """
        y = self.labels(batch)
        columns, labels = self._compete(logits, batch, y)
        weight = self._class_weight(batch, labels, columns.shape[1]) if self.class_balanced and reduction != "none" else None
        return functional.cross_entropy(columns, labels, weight=weight, reduction=reduction)

    def _compete(self, logits: Tensor, batch: Batch, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the competing columns of the logits, and the labels renumbered to match.

        If the competing outputs differ between items, return all columns, with the others masked by -inf.
        """
        if batch.allowed.dim() == 2:
            return logits.masked_fill(~batch.allowed, -torch.inf), y
        if "columns" not in batch.cache:
            columns, place = self._columns(batch)
            batch.cache.update(columns=columns, labels=place[y])
        return logits[:, batch.cache["columns"]], batch.cache["labels"]

    def _columns(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the allowed outputs, int64 [m], and the position of each output among them, int64 [C], or -1 if it is not allowed."""
        known = on_host(batch, batch.allowed)
        columns: tuple[Tensor, Tensor] = self._known("columns", batch.allowed, lambda allowed: self._renumbered(known, allowed.device))
        return columns

    def _renumbered(self, known: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
        columns = known.nonzero().flatten()
        place = torch.full((self.n_outputs,), -1, dtype=torch.int64, device=known.device)
        place[columns] = torch.arange(columns.numel(), device=known.device)
        return uploaded(columns, device), uploaded(place, device)

    def _known(self, what: str, outputs: Tensor, compute: Callable[[Tensor], Any]) -> Any:
        """Cache the result of ``compute`` for a set of outputs, because tensor sizes that depend on values need a GPU synchronisation."""
        kept = self._of_outputs.get((what, id(outputs)))
        if kept is None or kept[0] is not outputs or kept[1] != outputs._version:
            if len(self._of_outputs) >= _SETS_IN_USE:
                self._of_outputs.clear()
            kept = self._of_outputs[what, id(outputs)] = (outputs, outputs._version, compute(outputs))
        return kept[2]

    @staticmethod
    def _class_weight(batch: Batch, labels: Tensor, n_columns: int) -> Tensor:
        if "class_weight" not in batch.cache:
            counts = counted(labels, n_columns)
            batch.cache["class_weight"] = torch.where(counts > 0, 1.0 / counts.clamp(min=1), 0.0)
        weight: Tensor = batch.cache["class_weight"]
        return weight

    def distill(self, old: Tensor, new: Tensor, outputs: Tensor, temperature: float = 1.0) -> Tensor:
        """Compute the distillation loss ``-mean Σ softmax(old/τ) log softmax(new/τ)`` over ``outputs`` (bool [C]) of logits float32 [n, C].

        If ``outputs`` is bool [K, C], the loss is the sum over K groups of outputs, which compete only within their group.
        """
        before, after, live = self._grouped(old, new, outputs)
        target = functional.softmax((before / temperature).masked_fill(~live, -torch.inf), dim=2)
        logarithm = functional.log_softmax((after / temperature).masked_fill(~live, -torch.inf), dim=2).masked_fill(~live, 0.0)
        return -(target * logarithm).sum() / len(new)

    def _grouped(self, old: Tensor, new: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rearrange two sets of logits (float32 [n, C]) by the groups in ``outputs`` (bool [K, C] or [C]): both become float32 [n, K, m].

        Here, m is the size of the largest group. Also return a mask of the entries that are not padding: bool [K, m].
        """
        columns, live = self._known("groups", outputs, side_by_side)
        before, after = (z.index_select(1, columns.flatten()).view(len(z), *columns.shape) for z in (old, new))
        return before, after, live

    def squared_norm(self, logits: Tensor, batch: Batch) -> Tensor:
        """Compute the squared norm ``‖z‖²`` of the competing outputs of each item: float32 [n]."""
        return (logits * batch.allowed).pow(2).sum(dim=1)

    def has_output(self, batch: Batch, c: int) -> Tensor:
        """Return which items of a labelled batch have the label ``c``: bool [n]."""
        return self.labels(batch) == c

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Predict the class with the highest allowed output for each item: int64 [n]."""
        return logits.masked_fill(~allowed, -torch.inf).argmax(dim=1)

    # --- memory ----------------------------------------------------------------------------------------------------------------

    def sample(
        self,
        batch: Batch,
        chosen: Tensor,
        kind: Literal["reference", "item"],
        surroundings: Surroundings | None = None,
        *,
        extra: Mapping[str, Tensor] | None = None,
    ) -> MemoryItems:
        """Create memory items from the items at positions ``chosen`` (int64 [m]) of a labelled batch, by reference or with their features.

        Args:
            surroundings: extracts the subgraphs to store with items that are part of a larger graph. ``None`` = store items without
                neighbours. Whole graphs are stored unchanged.
            extra: other dense tensors to store with the items, by name, with one row per item of ``batch``. The rows of the chosen items
                are copied and detached.

        Raises:
            SpecError: if the batch is a query, the tasks of its items are unknown, or an extra tensor does not have one row per item of the
                batch.
        """
        y, tasks = self.labels(batch), batch.tasks
        if tasks is None:
            raise SpecError("memory items can be sampled only from a batch with task positions, but this batch has none")
        there = uploaded(chosen, batch.ids.device)
        ids, rows = batch.ids[there], dict[str, Tensor]()
        for name, given in (extra or {}).items():
            check_rows(name, given, len(batch), "item of the batch")
            rows[name] = given.detach().to(ids.device)[there]
        known = on_host(batch, batch.ids)
        content = self._content(batch, ids if known is batch.ids or chosen.device != known.device else known[chosen], kind, surroundings)
        return MemoryItems(ids=ids, y=y[there], tasks=tasks[there], x=content, extra=rows)

    @abstractmethod
    def _content(
        self, batch: Batch, ids: Tensor, kind: Literal["reference", "item"], surroundings: Surroundings | None
    ) -> Tensor | GraphSet | Pack | None:
        """Return what is stored for the items ``ids`` (on the CPU or the batch's device), except their labels."""

    @abstractmethod
    def recall(self, items: MemoryItems, view: TaskView | Batch | None = None) -> Batch:
        """Convert memory items to a labelled batch in the same order, so that the rows of ``items.extra`` match.

        Args:
            view: a task's view, or a batch of a task-free stream, whose graph contains items stored by reference. Other items do not need
                it.

        Raises:
            NotApplicable: if items stored by reference are not in the view's graph.
        """

    def join(self, parts: Sequence[MemoryItems]) -> MemoryItems:
        """Concatenate several sets of memory items."""
        return MemoryItems.joined(parts)

    @staticmethod
    def parameters(model: nn.Module) -> dict[str, nn.Parameter]:
        """Return the trainable parameters by name."""
        return {n: p for n, p in model.named_parameters() if p.requires_grad}


def side_by_side(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Convert groups of outputs (bool [K, C] or [C]) to indices, padded to the size of the largest group: int64 [K, m].

    Also return a mask of the indices that are not padding: bool [K, m].
    """
    outputs = torch.atleast_2d(outputs)
    columns = outputs.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : int(outputs.sum(dim=1).max())]
    return columns, outputs.gather(1, columns)
