"""Items with real targets, with absolute error as loss, squared differences for distillation and outputs as predictions."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.problems.base import Problem, Reduction
from cglsuite.problems.graphwise import GraphProblem
from cglsuite.streams import Batch


class RealOutputs(Problem):
    """Mixin for targets float32 [n, C] in the dataset's unit, to list before the class of a level.

    There are no classes. For methods that select items by class (such as samplers with a number per class), all items belong to the first
    output and none to the others.
    """

    kind = "real"

    def loss(self, logits: Tensor, batch: Batch, reduction: Reduction = "mean") -> Tensor:
        """Compute the absolute error averaged over an item's allowed outputs: a scalar, or float32 [n] for ``none``.

        Dwivedi et al. (Benchmarking Graph Neural Networks, JMLR 2023) use this loss for ZINC and AqSol, also as the performance measure.
        """
        items = self._mean((logits - self.labels(batch)).abs(), batch)
        return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()

    @staticmethod
    def _mean(each: Tensor, batch: Batch) -> Tensor:
        """Average over the allowed outputs: float32 [n, C] to [n]."""
        return (each * batch.allowed).sum(dim=1) / batch.allowed.sum(dim=-1).clamp(min=1)

    def distill(self, old: Tensor, new: Tensor, outputs: Tensor, temperature: float = 1.0) -> Tensor:
        """Compute the mean squared difference over ``outputs`` (bool [C]); for groups of outputs (bool [K, C]), the sum of their means.

        The temperature softens probabilities. Regression has none, so it has no effect here.
        """
        before, after, live = self._grouped(old, new, outputs)
        each = (after - before).square()
        return (each * (live / live.sum(dim=1, keepdim=True))).sum() / len(new)

    def has_output(self, batch: Batch, c: int) -> Tensor:
        """Return true for all items of a labelled batch if ``c`` is the first allowed output, and otherwise false: bool [n]."""
        allowed = batch.allowed if batch.allowed.dim() == 1 else batch.allowed.any(dim=0)
        first = int(allowed.nonzero()[0]) == c
        return torch.full((len(batch),), first, dtype=torch.bool, device=batch.ids.device)

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Return the outputs, with 0 for outputs that do not compete: float32 [n, C]."""
        return logits.masked_fill(~allowed, 0.0)


class GraphRegressionProblem(RealOutputs, GraphProblem):
    """Adapter for graphs with real targets."""
