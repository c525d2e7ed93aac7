"""Elastic weight consolidation (EWC)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.regularisation.penalty import gradients, in_importance_mode, mean_over_items, protect, pull


class EWC(Method):
    """Minimise ``L + λ Σ_s Σ_i F_s,i (θ_i - θ*_s,i)²``, summed over all past tasks s (Kirkpatrick et al. 2017).

    F_s is the diagonal of the empirical Fisher information on the training items of the task: the mean of squared per-item gradients or, as
    benchmarked by CGLB and BeGin, the square of the batch-mean gradient. Only the sums ΣF and ΣFθ* are stored, which gives the same
    gradient in O(P) memory. F is estimated in evaluation mode, except in CGLB's graph-level code, which uses training mode
    (``importance_mode``).

    As benchmarked by AGALE (``fisher=last-step``), F_s is the squared gradient of the last training step, including the penalty, and θ*_s
    are the weights after that step, even if other weights are restored afterwards.
    """

    state: ClassVar[tuple[str, ...]] = ("fisher", "weighted")

    def setup(self) -> None:
        """Initialise the sums."""
        self.fisher: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}
        self._last_step: tuple[dict[str, Tensor], dict[str, Tensor]] | None = None

    def before_step(self) -> None:
        """Add the gradient of the penalty; the loss does not include its value."""
        weight: float = self.hyperparameters["lambda"]
        if self.fisher and weight != 0:
            pull(self.problem.parameters(self.model), self.fisher, self.weighted, weight)

    @torch.no_grad()
    def after_step(self) -> None:
        """Save the gradient and the resulting weights of the step, in case it is the last one of the task."""
        if self.hyperparameters.fisher == "last-step":
            parameters = self.problem.parameters(self.model)
            gradients_taken = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in parameters.items()}
            self._last_step = gradients_taken, {n: p.detach().clone() for n, p in parameters.items()}

    def after_task(self, view: TaskView) -> None:
        """Add the Fisher information of the task at its final weights."""
        if self.hyperparameters.fisher == "last-step":
            self._protect_last_step()
            return
        with in_importance_mode(self):
            fisher = self._batch_fisher(view) if self.hyperparameters.fisher == "batch" else self._item_fisher(view)
        protect(self.fisher, self.weighted, fisher, self.problem.parameters(self.model))

    def _protect_last_step(self) -> None:
        if self._last_step is not None:
            gradients_taken, weights = self._last_step
            protect(self.fisher, self.weighted, {n: g.pow(2) for n, g in gradients_taken.items()}, weights)
        self._last_step = None

    def _batch_fisher(self, view: TaskView) -> dict[str, Tensor]:
        batch = self.problem.batch([view])
        of_loss = gradients(self.problem.loss(self.forward(batch), batch), self.problem.parameters(self.model))
        return {n: g.pow(2) for n, g in of_loss.items()}

    def _item_fisher(self, view: TaskView) -> dict[str, Tensor]:
        def losses(batch: Batch) -> Tensor:
            return self.problem.loss(self.forward(batch), batch, reduction="none")

        return mean_over_items(self, view, losses, lambda gradient: gradient.pow(2).sum(dim=0))
