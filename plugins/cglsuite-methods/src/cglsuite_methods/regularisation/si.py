"""Synaptic intelligence (SI)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from cglsuite import Method
from cglsuite.streams import TaskView
from cglsuite_methods.regularisation.penalty import pull


class SI(Method):
    """Minimise ``L + c Σ_i Ω_i (θ_i - θ*_i)²``, where θ* are the weights at the end of the last task (Zenke et al., Continual Learning
    Through Synaptic Intelligence, ICML 2017).

    Every step adds ``-g_i Δθ_i`` to a path integral ω_i, where g is the gradient of the task's loss alone (without the penalty) and Δθ is
    the actual step of the optimiser. After the task, ``Ω_i += ω_i / ((θ_i - θ_i at its start)² + ξ)``.

    Design choices that the paper leaves open: the sum Ω_i is at least 0 (as in the authors' code), because a negative weight would drive θ
    away from θ*. If the protocol restores the best epoch, ω is the integral up to that epoch, so that it belongs to the restored weights.
    Weights of outputs that are initialised when they arrive start from those initial values.

    Cost: the time of fine-tuning; three numbers per trainable weight (Ω, ω and θ*), regardless of the number of tasks. It makes no
    additional pass over the data.
    """

    state: ClassVar[tuple[str, ...]] = ("importance",)

    def setup(self) -> None:
        """Initialise the importance to zero."""
        parameters = self.problem.parameters(self.model)
        self.importance: dict[str, Tensor] = {n: torch.zeros_like(p) for n, p in parameters.items()}
        self.path = _Path(parameters)
        self.model.path_integral = self.path  # the best epoch restores it together with the weights
        self.start: dict[str, Tensor] = {}
        self.weighted: dict[str, Tensor] = {}
        self.protects = False
        self._step: list[tuple[Tensor, nn.Parameter, Tensor, Tensor]] = []

    def before_task(self, view: TaskView) -> None:
        """Start the path integral."""
        self.start = {n: p.detach().clone() for n, p in self.problem.parameters(self.model).items()}
        self.weighted = {n: w * self.start[n] for n, w in self.importance.items()}
        self.protects = view.position > 0 and self.hyperparameters.c != 0
        for integral in self.path.buffers():
            integral.zero_()

    def before_step(self) -> None:
        """Save the gradient of the loss and the weights, then add the gradient of the penalty, whose value is not part of the loss."""
        parameters = self.problem.parameters(self.model)
        self._step = [
            (integral, p, p.grad.clone(), p.detach().clone())
            for integral, p in zip(self.path.buffers(), parameters.values(), strict=True)
            if p.grad is not None
        ]
        if self.protects:
            pull(parameters, self.importance, self.weighted, self.hyperparameters.c)

    @torch.no_grad()
    def after_step(self) -> None:
        """Add the contribution of each weight to the decrease of the loss in this step."""
        for integral, parameter, gradient, before in self._step:
            integral.addcmul_(gradient, parameter - before, value=-1)
        self._step = []

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """Add the path integral of the task to the importance."""
        xi: float = self.hyperparameters.xi
        for integral, (name, p) in zip(self.path.buffers(), self.problem.parameters(self.model).items(), strict=True):
            self.importance[name] = importance_of(self.importance[name], integral, p - self.start[name], xi)


def importance_of(before: Tensor, integral: Tensor, moved: Tensor, xi: float) -> Tensor:
    """Compute the importance after a task, ``max(0, Ω + ω / (Δ² + ξ))`` element-wise; all tensors have the same shape."""
    return (before + integral / (moved.square() + xi)).clamp(min=0)


class _Path(nn.Module):
    """The path integral of every parameter, as buffers in the order of the parameters."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        super().__init__()
        for i, p in enumerate(parameters.values()):
            self.register_buffer(str(i), torch.zeros_like(p))
