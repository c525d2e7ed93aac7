"""Topology-aware weight preserving."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cglsuite import Method
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.regularisation.penalty import gradients, in_importance_mode, protect, pull

__all__ = ["TWP"]


class TWP(Method):
    """``L + Σ_s Σ_i (λ_l I_loss + λ_t I_topo)_s,i (θ_i - θ*_s,i)² + β ‖∂L/∂θ‖₁`` over all past tasks s (Liu et al. 2021).

    After a task, ``I_loss = (∂L/∂θ)²`` and ``I_topo = (∂‖attention‖²/∂θ)²`` on its training items (averaged over batches where there are
    several); the attention over edges is the backbone's own, or one read off its first layer. The sums over tasks are kept instead of
    one pair per task, as for EWC. The last term keeps later tasks plastic: its gradient is ``β H sign(∂L/∂θ)`` with H the Hessian of L,
    which a second-order backward pass gives exactly; β = 0 leaves it out, and its cost.

    As benchmarked by CGLB and BeGin: ``detach_beta`` (the last term has no gradient, so that it is left out), ``topology_accumulates`` (the
    topology pass adds to the gradient that the loss pass left: ``I_topo = (∂L/∂θ + ∂‖attention‖/∂θ)²``), ``attention_norm=norm`` (not
    squared), ``double_loss`` (the gradient of L counts twice in every step). CGLB reads the attention off the first layer's output
    (``attention_from=propagated``), BeGin off what it sends (``degree-normalised``).
    """

    state = ("importance", "weighted")

    def setup(self) -> None:
        """No task is protected yet."""
        self.importance: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}

    def loss(self, batch: Batch) -> Tensor:
        """The task loss, with the gradient of ``L + β ‖∂L/∂θ‖₁``; neither the norm nor the penalty is part of its value."""
        loss = super().loss(batch)
        beta: float = self.hyperparameters.beta
        twice = self.hyperparameters.get("double_loss", False)
        again = loss - loss.detach() if twice else None  # 0 with the gradient of the loss
        if beta and not self.hyperparameters.detach_beta:
            slopes = gradients(loss, self.problem.parameters(self.model), create_graph=True)
            loss = _Flattened.apply(loss, beta, *slopes.values())  # type: ignore[no-untyped-call]
        return loss if again is None else loss + again

    def before_step(self) -> None:
        """Add the gradient of the penalty; its value is not part of the loss."""
        if self.importance:
            pull(self.problem.parameters(self.model), self.importance, self.weighted)

    def after_task(self, view: TaskView) -> None:
        """Add what mattered to the task's loss and to its topology, at the weights it ended with."""
        if not self.hyperparameters.lambda_l and not self.hyperparameters.lambda_t:
            return
        parameters = self.problem.parameters(self.model)
        with in_importance_mode(self):
            added = self._importance(self.problem.batch([view]), parameters)
        protect(self.importance, self.weighted, added, parameters)

    def _importance(self, batch: Batch, parameters: dict[str, torch.nn.Parameter]) -> dict[str, Tensor]:
        """``λ_l I_loss + λ_t I_topo`` of one batch; the attention is computed only where it counts."""
        of_loss = gradients(self.problem.loss(self.forward(batch), batch), parameters)
        out = {n: self.hyperparameters.lambda_l * g.pow(2) for n, g in of_loss.items()}
        if self.hyperparameters.lambda_t:
            for name, gradient in gradients(self._topology(batch), parameters).items():
                if self.hyperparameters.topology_accumulates:
                    gradient = gradient + of_loss[name]
                out[name] += self.hyperparameters.lambda_t * gradient.pow(2)
        return out

    def _topology(self, batch: Batch) -> Tensor:
        """The squared norm of the attention, or as benchmarked the norm: a scalar."""
        embeddings: str = self.hyperparameters.get("attention_from", "sent")
        if embeddings == "sent":
            attention = self.problem.edge_attention(self.model, batch)
        else:
            attention = self.model.edge_attention_from(batch.graph, embeddings)
        squared = attention.pow(2).sum()
        return squared if self.hyperparameters.get("attention_norm", "squared") == "squared" else squared.sqrt()


class _Flattened(torch.autograd.Function):
    """A loss L passed on, with the gradient of ``L + β Σ|g|`` for L and for its slopes g.

    Both go into one backward pass, in which they meet before the products with the graph. Left to autograd, the absolute values of g
    and their gradient take as long as those products.
    """

    @staticmethod
    def forward(ctx: Any, loss: Tensor, beta: float, *slopes: Tensor) -> Tensor:
        ctx.beta = beta
        ctx.save_for_backward(*slopes)
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradient * ctx.beta
        needed = zip(ctx.saved_tensors, ctx.needs_input_grad[2:], strict=True)
        return gradient, None, *(g.sign().mul_(scale) if n else None for g, n in needed)
