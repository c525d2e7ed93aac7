"""Items with real targets: absolute error as loss, squared differences for distillation, outputs as predictions."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.problems.base import Problem, Reduction
from cglsuite.problems.graphwise import GraphProblem
from cglsuite.streams import Batch


class RealOutputs(Problem):
    """Targets float32 [n, C] in the dataset's unit. A mixin to list before the class of a level.

    There are no classes: for methods that select items by class (such as samplers with a number per class), all items belong to the first
    output, and none to others.
    """

    kind = "real"

    def loss(self, logits: Tensor, batch: Batch, reduction: Reduction = "mean") -> Tensor:
        """The absolute error averaged over an item's allowed outputs: a scalar, or float32 [n] for ``none``.

        The loss of Dwivedi et al. (Benchmarking Graph Neural Networks, JMLR 2023) for ZINC and AqSol, which is also the performance.
        """
        items = self._mean((logits - self.labels(batch)).abs(), batch)
        return items if reduction == "none" else items.mean() if reduction == "mean" else items.sum()

    @staticmethod
    def _mean(each: Tensor, batch: Batch) -> Tensor:
        """The mean over the allowed outputs: float32 [n, C] to [n]."""
        return (each * batch.allowed).sum(dim=1) / batch.allowed.sum(dim=-1).clamp(min=1)

    def distill(self, old: Tensor, new: Tensor, outputs: Tensor, temperature: float = 1.0) -> Tensor:
        """The mean squared difference among ``outputs`` (bool [C]); for groups of outputs (bool [K, C]), the sum of their means.

        A temperature softens probabilities; regression has none, so it has no effect.
        """
        before, after, live = self._grouped(old, new, outputs)
        each = (after - before).square()
        return (each * (live / live.sum(dim=1, keepdim=True))).sum() / len(new)

    def has_output(self, batch: Batch, c: int) -> Tensor:
        """For the first allowed output all items of a labelled batch, for the others none: bool [n]."""
        allowed = batch.allowed if batch.allowed.dim() == 1 else batch.allowed.any(dim=0)
        first = int(allowed.nonzero()[0]) == c
        return torch.full((len(batch),), first, dtype=torch.bool, device=batch.ids.device)

    def decode(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """The outputs, 0 where an output does not compete: float32 [n, C]."""
        return logits.masked_fill(~allowed, 0.0)


class GraphRegressionProblem(RealOutputs, GraphProblem):
    """Graphs with real targets."""
