"""Topology-aware weight preserving (TWP)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cglsuite import Method
from cglsuite.streams import Batch, TaskView
from cglsuite_methods.regularisation.penalty import gradients, in_importance_mode, protect, pull


class TWP(Method):
    """Minimise ``L + Σ_s Σ_i (λ_l I_loss + λ_t I_topo)_s,i (θ_i - θ*_s,i)² + β ‖∂L/∂θ‖₁``, summed over all past tasks s (Liu et al. 2021).

    After a task, ``I_loss = (∂L/∂θ)²`` and ``I_topo = (∂‖attention‖²/∂θ)²`` are computed on its training items (averaged over batches). The
    attention over edges is the backbone's own, or one computed from its first layer. Sums over tasks are stored as for EWC. The last term
    preserves plasticity: its gradient is ``β H sign(∂L/∂θ)``, where H is the Hessian of L, computed exactly by a second-order backward
    pass; β = 0 avoids its cost.

    As benchmarked by CGLB and BeGin: ``detach_beta`` (the last term has no gradient and is left out), ``topology_accumulates`` (the
    topology pass accumulates into the gradient of the loss: ``I_topo = (∂L/∂θ + ∂‖attention‖/∂θ)²``), ``attention_norm=norm`` (not
    squared), ``double_loss`` (the gradient of L counts twice in every step). CGLB computes attention from the output of the first layer
    (``attention_from=propagated``), and BeGin from its normalised messages (``degree-normalised``).
    """

    state = ("importance", "weighted")

    def setup(self) -> None:
        """Initialise the sums."""
        self.importance: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}

    def loss(self, batch: Batch) -> Tensor:
        """Return the task loss with the gradient of ``L + β ‖∂L/∂θ‖₁``; its value includes neither the norm nor the penalty."""
        loss = super().loss(batch)
        beta: float = self.hyperparameters.beta
        twice = self.hyperparameters.get("double_loss", False)
        again = loss - loss.detach() if twice else None  # 0 with the gradient of the loss
        if beta and not self.hyperparameters.detach_beta:
            slopes = gradients(loss, self.problem.parameters(self.model), create_graph=True)
            loss = _Flattened.apply(loss, beta, *slopes.values())  # type: ignore[no-untyped-call]
        return loss if again is None else loss + again

    def before_step(self) -> None:
        """Add the gradient of the penalty; the loss does not include its value."""
        if self.importance:
            pull(self.problem.parameters(self.model), self.importance, self.weighted)

    def after_task(self, view: TaskView) -> None:
        """Add the importance for the loss and the topology of the task, at its final weights."""
        if not self.hyperparameters.lambda_l and not self.hyperparameters.lambda_t:
            return
        parameters = self.problem.parameters(self.model)
        with in_importance_mode(self):
            added = self._importance(self.problem.batch([view]), parameters)
        protect(self.importance, self.weighted, added, parameters)

    def _importance(self, batch: Batch, parameters: dict[str, torch.nn.Parameter]) -> dict[str, Tensor]:
        """``λ_l I_loss + λ_t I_topo`` of one batch; attention is computed only if it counts."""
        of_loss = gradients(self.problem.loss(self.forward(batch), batch), parameters)
        out = {n: self.hyperparameters.lambda_l * g.pow(2) for n, g in of_loss.items()}
        if self.hyperparameters.lambda_t:
            for name, gradient in gradients(self._topology(batch), parameters).items():
                if self.hyperparameters.topology_accumulates:
                    gradient = gradient + of_loss[name]
                out[name] += self.hyperparameters.lambda_t * gradient.pow(2)
        return out

    def _topology(self, batch: Batch) -> Tensor:
        """The squared norm of the attention, or (as benchmarked) the norm: a scalar."""
        embeddings: str = self.hyperparameters.get("attention_from", "sent")
        if embeddings == "sent":
            attention = self.problem.edge_attention(self.model, batch)
        else:
            attention = self.model.edge_attention_from(batch.graph, embeddings)
        squared = attention.pow(2).sum()
        return squared if self.hyperparameters.get("attention_norm", "squared") == "squared" else squared.sqrt()


class _Flattened(torch.autograd.Function):
    """Passes on a loss L, with the gradient of ``L + β Σ|g|`` with respect to L and its gradient g.

    One backward pass serves both, and they are summed before the products with the graph. With autograd, the absolute values of g and their
    gradient take as long as those products.
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
