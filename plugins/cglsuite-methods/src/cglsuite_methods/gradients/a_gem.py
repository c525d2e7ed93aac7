"""Averaged gradient episodic memory (A-GEM)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling


class AGEM(Sampling):
    """Prevent steps that increase the memory loss to first order: if ``<g, g_ref> < 0``, the step uses ``g - (<g, g_ref> / ‖g_ref‖²)
    g_ref`` (Chaudhry et al. 2019).

    g is the gradient of the loss on the batch. g_ref is the gradient on the same number of memory items (or on ``reference`` items, if
    set), which are redrawn from a reservoir for every step. As in GEM, memory losses are computed in training mode. ``projected`` counts
    projected steps.
    """

    state: ClassVar[tuple[str, ...]] = (*Sampling.state, "projected")

    def setup(self) -> None:
        """Initialise the count of projected steps."""
        super().setup()
        self.projected = 0
        self._batch: Batch | None = None

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss on the batch and cache the batch for the projection."""
        self._batch = batch
        return super().loss(batch)

    def before_step(self) -> None:
        """Project the gradient if it conflicts with the gradient on the memory."""
        batch, self._batch = self._batch, None
        if batch is None or (memory := self.draw(batch, self.hyperparameters.reference or len(batch))) is None:
            return
        parameters = list(self.problem.parameters(self.model).values())
        loss = self.problem.loss(self.forward(memory), memory)
        self.projected += project(parameters, torch.autograd.grad(loss, parameters, allow_unused=True))

    def counters(self) -> dict[str, int]:
        """Return the number of projected steps."""
        return {**super().counters(), "projected": self.projected}


@torch.no_grad()
def project(parameters: list[torch.nn.Parameter], reference: tuple[Tensor | None, ...]) -> bool:
    """Remove the component that opposes ``reference`` from the parameter gradients, and return whether there was one.

    Works in place, parameter by parameter, without concatenating gradients.

    Args:
        reference: a gradient per parameter, of its shape; ``None`` counts as zeros, like a missing ``.grad``.
    """
    pairs = [(p, r) for p, r in zip(parameters, reference, strict=True) if r is not None]
    product = sum((torch.vdot(p.grad.flatten(), r.flatten()) for p, r in pairs if p.grad is not None), torch.zeros(()))
    square = sum((torch.vdot(r.flatten(), r.flatten()) for _, r in pairs), torch.zeros(()))
    inner, norm = torch.stack([product, square]).tolist()  # together: a GPU is waited for once
    if not inner < 0:
        return False
    scale = inner / norm
    for p, r in pairs:
        if p.grad is None:
            p.grad = r.mul(-scale)
        else:
            p.grad.add_(r, alpha=-scale)
    return True
