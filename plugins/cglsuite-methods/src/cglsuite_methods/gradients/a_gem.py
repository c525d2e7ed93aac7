"""Averaged gradient episodic memory."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cglsuite.streams import Batch
from cglsuite_methods.rehearsal.task_free.memory import Sampling

__all__ = ["AGEM", "project"]


class AGEM(Sampling):
    """No step may raise the loss on the memory, to first order: where ``<g, g_ref> < 0`` the step is along
    ``g - (<g, g_ref> / ‖g_ref‖²) g_ref`` (Chaudhry et al. 2019).

    g is the gradient of the batch's loss, g_ref that of the loss on as many items of one reservoir memory (``reference`` of them where
    that is set), redrawn for every step. As in GEM the memory is read in training mode. ``projected`` counts the steps that were
    changed.
    """

    state: ClassVar[tuple[str, ...]] = (*Sampling.state, "projected")

    def setup(self) -> None:
        """Nothing is remembered yet."""
        super().setup()
        self.projected = 0
        self._batch: Batch | None = None

    def loss(self, batch: Batch) -> Tensor:
        """That of the batch alone; it is kept at hand for the step."""
        self._batch = batch
        return super().loss(batch)

    def before_step(self) -> None:
        """Project the gradient where it conflicts with the memory's."""
        batch, self._batch = self._batch, None
        if batch is None or (memory := self.draw(batch, self.hyperparameters.reference or len(batch))) is None:
            return
        parameters = list(self.problem.parameters(self.model).values())
        loss = self.problem.loss(self.forward(memory), memory)
        self.projected += project(parameters, torch.autograd.grad(loss, parameters, allow_unused=True))

    def counters(self) -> dict[str, int]:
        """The steps that were changed."""
        return {**super().counters(), "projected": self.projected}


@torch.no_grad()
def project(parameters: list[torch.nn.Parameter], reference: tuple[Tensor | None, ...]) -> bool:
    """Take out of the parameters' gradients what points against ``reference``; whether there was anything.

    It works in the gradients' own storage, piece by piece; nothing is laid side by side.

    Args:
        reference: a gradient like each parameter; ``None`` counts as zeros, as an absent ``.grad`` does.
    """
    pairs = [(p, r) for p, r in zip(parameters, reference, strict=True) if r is not None]
    product = sum((torch.vdot(p.grad.flatten(), r.flatten()) for p, r in pairs if p.grad is not None), torch.zeros(()))
    if not float(product) < 0:
        return False
    scale = float(product) / float(sum(torch.vdot(r.flatten(), r.flatten()) for _, r in pairs))
    for p, r in pairs:
        if p.grad is None:
            p.grad = r.mul(-scale)
        else:
            p.grad.add_(r, alpha=-scale)
    return True
