"""Task views and batches, which contain the data that a method can see. Hidden labels are left out, not just masked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from cglsuite.graphs.upload import Sent


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Items to train on or to predict, in a message graph or a set of graphs.

    Args:
        graph: the message graph, or the set of graphs at graph level.
        ids: int64 [n], the node ids of the items in ``graph`` or their positions in the set; int64 [n, 2] if items are pairs of nodes.
        allowed: the competing outputs: bool [C], or [n, C] if they differ between items.
        y: int64 [n] global class ids, or ``None`` for queries (only the oracle has their labels).
        tasks: int64 [n], the position of each item's task, or ``None`` if the method must not know it.
    """

    graph: Any
    ids: Tensor
    allowed: Tensor
    y: Tensor | None = None
    tasks: Tensor | None = None
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def as_pyg(self) -> Any:
        """Convert the items to a PyG ``Data``.

        Returns:
            ``x`` float32 [N, F] dense and ``edge_index`` int64 [2, E]. For nodes, also ``train_mask`` bool [N] (the items) and ``y``, which
            is -1 for all other nodes. For links, also ``edge_label_index`` int64 [2, n] and ``edge_label``. For whole graphs, also
            ``batch`` int64 [N], the graph of each node, and ``y`` [n]. ``y`` and ``edge_label`` are absent if the method may not see
            labels.

        Raises:
            SpecError: if the items do not consist of node features and edges (skeleton sequences).
        """
        from cglsuite.streams.pyg import batch_as_pyg

        return batch_as_pyg(self)

    def __repr__(self) -> str:
        labels = "no labels" if self.y is None else f"y {list(self.y.shape)}"
        outputs = "" if self.allowed.dim() != 1 else f", {int(self.allowed.sum())} of {self.allowed.shape[0]} outputs"
        return f"<Batch of {len(self)} items, {labels}{outputs}, in {self.graph!r}>"


def sent(*copies: Sent) -> dict[str, Any]:
    """Create a batch's cache, which stores the CPU tensors from which tensors of the batch were uploaded; see :func:`on_host`."""
    return {"sent": copies} if any(copy.here is not copy.there for copy in copies) else {}


def on_host(batch: Batch, x: Tensor) -> Tensor:
    """Return the CPU tensor from which the batch's tensor ``x`` was uploaded, or ``x`` if there is none, without waiting for an
    accelerator."""
    copies: tuple[Sent, ...] = batch.cache.get("sent", ())
    return next((copy.here for copy in copies if copy.there is x and copy.equal), x)


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskView:
    """The data of a task that a method can see during training.

    Args:
        position: 0-based position k of the task in the stream. ``n_tasks`` is T.
        train: the labelled training items.
        validation: the unlabelled validation items. Only the oracle has their labels, and the training loop gets a single scalar from it.
        classes: int64, the task's global class ids.
        task_outputs: bool [C], the task's own outputs.
        seen_outputs: bool [C], all outputs seen up to and including this task.
        keeps_nodes: whether node ids in earlier views refer to the same nodes in this view.
        past: the views of all earlier tasks. Only set for methods that declare the need ``past-views`` (upper bounds).
    """

    position: int
    n_tasks: int
    n_outputs: int
    train: Batch
    validation: Batch
    classes: Tensor
    task_outputs: Tensor
    seen_outputs: Tensor
    keeps_nodes: bool = True
    past: tuple[TaskView, ...] = ()

    def as_pyg(self) -> Any:
        """Convert the task to a single PyG ``Data``: ``train.as_pyg()`` plus ``val_mask`` bool [N] (``val_edge_label_index`` for links).

        Raises:
            SpecError: if items are whole graphs, or training and validation items are in different message graphs.
        """
        from cglsuite.streams.pyg import view_as_pyg

        return view_as_pyg(self)

    def __repr__(self) -> str:
        items = f"{len(self.train)} training and {len(self.validation)} validation items"
        return f"<TaskView of task {self.position + 1} of {self.n_tasks}: {items}, classes {self.classes.tolist()}, in {self.graph!r}>"

    @property
    def graph(self) -> Any:
        """The task's message graph, or the set of training graphs at graph level."""
        return self.train.graph

    @property
    def first(self) -> bool:
        """Whether this is the first task."""
        return self.position == 0
