"""Multi-label items, with sigmoid outputs, binary cross-entropy as the loss and scores as predictions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from cglsuite.base.errors import SpecError
from cglsuite.problems.base import Problem, Reduction
from cglsuite.streams import Batch, TaskView


class MultiLabelOutputs(Problem):
    """Mixin for multi-label items (bool [n, C]). List it before the adapter class of a level. Outputs that do not compete are ignored."""

    kind = "multi-label"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.positive_weight: Tensor | None = None
        """float32 [C], the ratio of negatives to positives for each output that has arrived. Only used with class balance."""

    def arrive(self, view: TaskView) -> None:
        """Register the outputs of a new task, and compute weights for their positives from the task's training items."""
        super().arrive(view)
        if self.class_balanced:
            y = self.labels(view.train)
            positives = y.sum(dim=0)
            # Outputs without positives or without negatives keep their weight.
            weight = torch.where((positives == 0) | (positives == len(y)), 1.0, (len(y) - positives) / positives.clamp(min=1))
            before = torch.ones_like(weight) if self.positive_weight is None else self.positive_weight
            self.positive_weight = torch.where(view.task_outputs, weight, before)

    def allowed(self, tasks: Tensor) -> Tensor:
        """Return the outputs that compete for each item: those of its task (task-IL) or those seen when it arrived, bool [n, C].

        It is unknown whether an item has labels that were first seen later. In a task-free stream, an item arrives with all its labels, so
        the current outputs compete for all items: bool [C].
        """
        if not self.has_tasks:
            return self.current
        return self.task_outputs[tasks] if self.task_ids else (self.task_outputs.cumsum(dim=0) > 0)[tasks]

    def loss(self, logits: Tensor, batch: Batch, reduction: Reduction = "mean") -> Tensor:
        """Compute the binary cross-entropy, averaged over each item's allowed outputs: a scalar, or float32 [n] for reduction ``none``.

        With class balance, ``mean`` and ``sum`` weight positives by the ratio of negatives to positives among the training items of the
        latest task with that output.

        Raises:
            SpecError: if class balance is set for a task-free stream, in which the items of a task cannot be counted.
        """
        y = self.labels(batch).to(logits.dtype)
        weight = self._positive_weight() if self.class_balanced and reduction != "none" else None
        if batch.allowed.dim() == 1:
            if "columns" not in batch.cache:
                batch.cache["columns"], _ = self._columns(batch)
            columns = batch.cache["columns"]
            scale = None if weight is None else weight[columns]
            each = functional.binary_cross_entropy_with_logits(logits[:, columns], y[:, columns], reduction="none", pos_weight=scale)
            items = each.mean(dim=1)
        else:
            each = functional.binary_cross_entropy_with_logits(logits, y, reduction="none", pos_weight=weight) * batch.allowed
            items = each.sum(dim=1) / batch.allowed.sum(dim=1).clamp(min=1)
        return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()

    def _positive_weight(self) -> Tensor:
        if self.positive_weight is None:
            raise SpecError(
                "training.class_balanced = true: positives are weighted by counts over a task's training items, but this stream has no "
                "tasks; expected false"
            )
        return self.positive_weight

    def distill(self, old: Tensor, new: Tensor, outputs: Tensor, temperature: float = 1.0) -> Tensor:
        """Compute the distillation loss over ``outputs`` (bool [C]): the mean binary cross-entropy between σ(new/τ) and the targets
        σ(old/τ).

        For groups of outputs (bool [K, C]), the loss is the sum of the means of the groups.
        """
        before, after, live = self._grouped(old, new, outputs)
        target = torch.sigmoid(before / temperature)
        each = functional.binary_cross_entropy_with_logits(after / temperature, target, reduction="none")
        return (each * (live / live.sum(dim=1, keepdim=True))).sum() / len(new)

    def has_output(self, batch: Batch, c: int) -> Tensor:
        """Return which items of a labelled batch have the label ``c``: bool [n]."""
        return self.labels(batch)[:, c]

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Return a score per output for ranking items, with 0 for outputs that do not compete: float32 [n, C]."""
        return logits.masked_fill(~allowed, 0.0)
