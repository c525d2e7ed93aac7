"""Adam with torch's fused kernel, without what torch's optimisers import for its compiler: a second of every process's start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

__all__ = ["FusedAdam"]


def _undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of torch's as it is written: its decorator imports ``torch._dynamo``, to say that it is not to be compiled."""
    return getattr(function, "__wrapped__", function)


class FusedAdam(Adam):
    """:class:`torch.optim.Adam` with ``fused=True``, to the bit and with the same state; hooks and gradient scaling are not called.

    Args:
        groups: parameter groups, as ``torch.optim`` takes them. lr, weight_decay: for groups that do not set them.
    """

    def __init__(self, groups: Any, *, lr: float, weight_decay: float) -> None:
        super().__init__(groups, lr=lr, weight_decay=weight_decay, fused=True)

    add_param_group = _undecorated(Optimizer.add_param_group)
    state_dict = _undecorated(Optimizer.state_dict)
    load_state_dict = _undecorated(Optimizer.load_state_dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients (or set them to 0)."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad = torch.zeros_like(parameter.grad)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step for all parameters that have a gradient."""
        for group in self.param_groups:
            lists: tuple[list[Tensor], ...] = ([], [], [], [], [], [])
            self._init_group(group, *lists)  # type: ignore[no-untyped-call]
            for parameters, gradients, means, squares, largest, steps in _by_place(lists):
                torch._foreach_add_(steps, 1)
                torch._fused_adam_(
                    parameters,
                    gradients,
                    means,
                    squares,
                    largest,
                    steps,
                    lr=group["lr"],
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    weight_decay=group["weight_decay"],
                    eps=group["eps"],
                    amsgrad=group["amsgrad"],
                    maximize=group["maximize"],
                )

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps the others to profile every step


def _by_place(lists: tuple[list[Tensor], ...]) -> list[tuple[list[Tensor], ...]]:
    """Parallel lists of tensors, divided by device and dtype of the first: a kernel takes one kind."""
    places = [(parameter.device, parameter.dtype) for parameter in lists[0]]
    if len(found := dict.fromkeys(places)) <= 1:
        return [lists] if found else []
    chosen = [[i for i, there in enumerate(places) if there == place] for place in found]
    return [tuple([part[i] for i in rows] if part else [] for part in lists) for rows in chosen]
