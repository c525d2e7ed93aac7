"""Piggyback: each task learns a binary mask over weights that never change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import parametrize

from cglsuite import Method
from cglsuite.learning.isolation import Held, along, by_task, output_wires
from cglsuite.streams import Batch, TaskView


class Piggyback(Method):
    """Learn which weights of a fixed body each task uses (Mallya et al., Piggyback: Adapting a Single Network to Multiple Tasks by Learning
    to Mask Weights, ECCV 2018).

    For each weight tensor W of the body, a task trains real numbers r, initialised to ``2 τ``, and computes with ``W ⊙ [r ≥ τ]``; the
    gradient passes straight through the threshold, ``∂L/∂r = W ⊙ ∂L/∂(W ⊙ m)``. After the task, the mask is stored and r is reset. Biases
    and normalisation layers of the body are fixed, the latter in evaluation mode. In the head, a task changes only its own outputs. Outputs
    for a learnt task are therefore bit-identical as long as the graph does not change.

    The body in the paper is trained on ImageNet, and its own mask is all ones. Here, the first task takes the place of ImageNet
    (``body=first-task``): it trains the whole body, including normalisation layers, and uses all of it. With ``body=drawn``, weights keep
    their random initial values, and the first task learns a mask too.

    Cost: the time of fine-tuning; one number per weight of the body while a task is trained, and one bit per weight and task afterwards.

    ``as_begin``: weights keep their random initial values, as in BeGin's code without its pre-training option (its tables pre-train the
    body without labels). Masks are those of the last epoch, whereas the head is that of the best epoch, because the masks are not part of
    the state that BeGin restores.
    """

    state = ("kept",)

    def setup(self) -> None:
        """Add a mask to every weight of the body."""
        self.drawn = self.hyperparameters.as_begin or self.hyperparameters.body == "drawn"
        self.wires = output_wires(self.model.head)
        tagged = [(tag, name, p) for tag, name, p in self.model.tagged_parameters()]
        self.body = [name for tag, name, _ in tagged if tag != "head"]
        self.masks: dict[str, Masked] = {}
        tau: float = self.hyperparameters.threshold
        for tag, name, p in tagged:
            if tag == "body" and p.dim() > 1:
                module, _, attribute = name.rpartition(".")
                self.masks[name] = Masked(p, tau)
                parametrize.register_parametrization(self.model.get_submodule(module), attribute, self.masks[name])
        masks = {id(mask.real) for mask in self.masks.values()}
        of_head = {id(p) for p in self.model.head.parameters()}
        self.fixed = [p for p in self.model.parameters() if id(p) not in masks | of_head]
        self.kept: dict[str, list[Tensor]] = {name: [] for name in self.masks}
        """By weight tensor the bits of each task's mask: uint8, eight weights to a byte."""
        self.held = Held(self.model)
        self.columns: dict[str, Tensor] = {}
        self.last: dict[str, Tensor] = {}

    @property
    def learnt(self) -> int:
        """The number of tasks that have a mask."""
        return len(next(iter(self.kept.values()), []))

    @torch.no_grad()
    def before_task(self, view: TaskView) -> None:
        """Start a new mask that lets every weight through. On the first task, train the body itself."""
        masked = self.drawn or not view.first
        for parameter in self.fixed:
            parameter.requires_grad_(not masked)
        for mask in self.masks.values():
            mask.real.fill_(2 * self.hyperparameters.threshold).requires_grad_(masked)
            mask.whole = not masked
        parameters = dict(self.model.named_parameters())
        self.columns = {w.parameter: along(w, parameters[w.parameter], view.task_outputs) for w in self.wires}

    def before_epoch(self, epoch: int) -> None:
        """Switch the normalisation layers of a fixed body to evaluation mode."""
        if self.drawn or self.learnt:
            for module in self.model.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()

    def before_step(self) -> None:
        """Save the outputs of other tasks."""
        self.held.before(self.columns)

    def after_step(self) -> None:
        """Restore the outputs of other tasks."""
        self.held.after()
        if self.hyperparameters.as_begin:
            self.last = {name: mask.real.detach().clone() for name, mask in self.masks.items()}

    @torch.no_grad()
    def after_task(self, view: TaskView) -> None:
        """Store the masks of the task as bits."""
        for name, mask in self.masks.items():
            real = self.last.get(name, mask.real)
            self.kept[name].append(packed(real >= mask.threshold))
        self.last = {}

    def predict(self, query: Batch) -> Tensor:
        """Return the raw outputs of each item with the masks of its task."""
        return by_task(self, query, self._of_task, self.learnt)

    @contextmanager
    def _of_task(self, k: int) -> Iterator[None]:
        for name, mask in self.masks.items():
            mask.chosen = unpacked(self.kept[name][k], mask.real.shape) if k >= 0 else None
        try:
            yield
        finally:
            for mask in self.masks.values():
                mask.chosen = None

    def counters(self) -> dict[str, int]:
        """Return the number of weights that the mask of the last task excludes."""
        left_out = [~unpacked(bits[-1], self.masks[name].real.shape) for name, bits in self.kept.items() if bits]
        return {"masked_weights": sum(int(m.sum()) for m in left_out)}


class Masked(nn.Module):
    """Parametrise a weight as ``W ⊙ [r ≥ τ]``, with a straight-through gradient for r.

    Args:
        weight: W, float32 of any shape. threshold: τ.
    """

    def __init__(self, weight: Tensor, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold
        self.real = nn.Parameter(torch.full_like(weight, 2 * threshold))
        self.chosen: Tensor | None = None
        """A stored mask (bool, shaped like W) that is used in place of ``[r ≥ τ]``."""
        self.whole = False
        """Nothing is masked: W itself is trained."""

    def forward(self, weight: Tensor) -> Tensor:
        """Return the masked weight, which has the shape of W."""
        if self.chosen is not None:
            return weight * self.chosen
        if self.whole:
            return weight
        masked: Tensor = _Threshold.apply(weight, self.real, self.threshold)  # type: ignore[no-untyped-call]
        return masked


class _Threshold(torch.autograd.Function):
    """``W ⊙ [r ≥ τ]``, whose gradient for r is that of ``W ⊙ r``."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, real: Tensor, threshold: float) -> Tensor:
        mask = torch.ge(real, threshold, out=torch.empty_like(weight))
        ctx.save_for_backward(weight, mask)
        return weight * mask

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        weight, mask = ctx.saved_tensors
        of_weight, of_real, _ = ctx.needs_input_grad
        return grad * mask if of_weight else None, grad * weight if of_real else None, None


def packed(mask: Tensor) -> Tensor:
    """Pack a bool tensor into bits: uint8 [ceil(n / 8)], with the first entry in the lowest bit."""
    bits = torch.nn.functional.pad(mask.flatten().to(torch.uint8), (0, -mask.numel() % 8)).view(-1, 8)
    return (bits << torch.arange(8, dtype=torch.uint8, device=mask.device)).sum(dim=1, dtype=torch.uint8)


def unpacked(bits: Tensor, shape: torch.Size) -> Tensor:
    """Restore the mask of shape ``shape`` that :func:`packed` stored as ``bits``: bool."""
    places = torch.arange(8, dtype=torch.uint8, device=bits.device)
    return ((bits.unsqueeze(1) >> places) & 1).flatten()[: shape.numel()].view(shape).to(torch.bool)
