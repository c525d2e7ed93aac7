"""Memory aware synapses (MAS)."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite import Method
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.regularisation.penalty import gradients, in_importance_mode, mean_over_items, pull


class MAS(Method):
    """Minimise ``L + λ Σ_i Ω_i (θ_i - θ*_i)²``, where θ* are the final weights of the last task (Aljundi et al. 2018).

    Each task adds to the importance Ω the mean over its training items of ``|∂‖z‖²/∂θ|``, where z are the competing outputs; labels are not
    used. As benchmarked: ``batch`` (BeGin) adds ``|∂ mean‖z‖² /∂θ|``, in which gradients of different items cancel; ``batch-squared``
    (CGLB) squares the gradient of the mean of z² over items and outputs, and averages over tasks in proportion to their numbers of items. Ω
    is estimated in evaluation mode, except in CGLB's graph-level code, which uses training mode (``importance_mode``).
    """

    state = ("omega", "weighted", "items")

    def setup(self) -> None:
        """Initialise the importance and the anchor."""
        self.omega: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}
        self.items = 0

    def before_step(self) -> None:
        """Add the gradient of the penalty; the loss does not include its value."""
        weight: float = self.hyperparameters["lambda"]
        if self.omega and weight != 0:
            pull(self.problem.parameters(self.model), self.omega, self.weighted, weight)

    def after_task(self, view: TaskView) -> None:
        """Add the importance of the task and move the anchor to its final weights."""
        with in_importance_mode(self):
            added = self._item_importance(view) if self.hyperparameters.importance == "items" else self._batch_importance(view)
        self.items += len(view.train)
        for name, parameter in self.problem.parameters(self.model).items():
            self.omega[name] = self._accumulated(self.omega.get(name), added[name], len(view.train))
            self.weighted[name] = self.omega[name] * parameter.detach()

    def _accumulated(self, before: Tensor | None, added: Tensor, count: int) -> Tensor:
        """The sum over tasks, or (batch-squared) the item-weighted mean; ``count`` of ``self.items`` belong to the new task."""
        if before is None:
            return added
        return before.lerp(added, count / self.items) if self.hyperparameters.importance == "batch-squared" else before + added

    def _item_importance(self, view: TaskView) -> dict[str, Tensor]:
        """The mean absolute per-item gradient."""
        return mean_over_items(self, view, self._norms, lambda gradient: torch.linalg.vector_norm(gradient, ord=1, dim=0))

    def _norms(self, batch: Batch) -> Tensor:
        return self.problem.squared_norm(self.forward(batch), batch)

    def _batch_importance(self, view: TaskView) -> dict[str, Tensor]:
        """The absolute gradient of the mean over items, or its square with the mean also over outputs."""
        batch = self.problem.batch([view])
        norms = self._norms(batch)
        total = gradients(norms.sum(), self.problem.parameters(self.model))
        if self.hyperparameters.importance == "batch":
            return {n: g.abs() / len(norms) for n, g in total.items()}
        outputs = int(batch.allowed.expand(len(norms), -1).sum())
        return {n: (g / outputs).pow_(2) for n, g in total.items()}
