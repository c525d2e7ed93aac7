"""Items with real-valued targets: the loss is the absolute error, and distillation uses squared differences."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.problems.base import Problem, Reduction
from cglsuite.problems.graphwise import GraphProblem
from cglsuite.streams import Batch


class RealOutputs(Problem):
    """Mixin for real-valued targets (float32 [n, C], in the dataset's unit). List it before the adapter class of a level.

    There are no classes. For methods that select items by class (such as samplers with a quota per class), all items belong to the first
    output only.
    """

    kind = "real"

    def loss(self, logits: Tensor, batch: Batch, reduction: Reduction = "mean") -> Tensor:
        """Compute the absolute error, averaged over each item's allowed outputs: a scalar, or float32 [n] for reduction ``none``.

        Dwivedi et al. (Benchmarking Graph Neural Networks, JMLR 2023) use this loss for ZINC and AqSol, and also as the performance
        measure.
        """
        items = self._mean((logits - self.labels(batch)).abs(), batch)
        return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()

    @staticmethod
    def _mean(each: Tensor, batch: Batch) -> Tensor:
        """Average over each item's allowed outputs: float32 [n, C] to [n]."""
        return (each * batch.allowed).sum(dim=1) / batch.allowed.sum(dim=-1).clamp(min=1)

    def distill(self, old: Tensor, new: Tensor, outputs: Tensor, temperature: float = 1.0) -> Tensor:
        """Compute the mean squared difference over ``outputs`` (bool [C]), or the sum of the means over groups of outputs (bool [K, C]).

        The temperature has no effect, because it softens probabilities, and regression has none.
        """
        before, after, live = self._grouped(old, new, outputs)
        each = (after - before).square()
        return (each * (live / live.sum(dim=1, keepdim=True))).sum() / len(new)

    def has_output(self, batch: Batch, c: int) -> Tensor:
        """Return true for all items of a labelled batch if ``c`` is the first allowed output, and false otherwise: bool [n]."""
        allowed = batch.allowed if batch.allowed.dim() == 1 else batch.allowed.any(dim=0)
        first = int(allowed.nonzero()[0]) == c
        return torch.full((len(batch),), first, dtype=torch.bool, device=batch.ids.device)

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Return the outputs, with 0 for outputs that do not compete: float32 [n, C]."""
        return logits.masked_fill(~allowed, 0.0)


class GraphRegressionProblem(RealOutputs, GraphProblem):
    """Adapter for graphs with real-valued targets."""
