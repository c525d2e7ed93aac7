"""Operations on stacked matrices, none of which adds up numbers of two slots, or treats one slot otherwise than another."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cglsuite.graphs import MessageGraph

__all__ = ["biased", "joined", "propagated", "scalar"]


def propagated(how: tuple[str, float], hidden: Tensor, graph: MessageGraph, bias: Tensor | None) -> Tensor:
    """What :class:`GCNConv` and :class:`GINConv` do after their map, on any number of columns."""
    kind, eps = how
    if kind == "gin":
        out = graph.propagate("sum-self", hidden) if eps == 0 else (1 + eps) * hidden + graph.propagate("sum", hidden)
    else:
        out = graph.propagate(kind, hidden)  # type: ignore[arg-type]
    return out if bias is None else biased(out, bias)


def biased(x: Tensor, b: Tensor) -> Tensor:
    """``x + b``, float32 [N, slots·block] and [slots, block]."""
    out: Tensor = _Biased.apply(x, b)  # type: ignore[no-untyped-call]
    return out


def scalar(x: Tensor, gradient: Tensor) -> Tensor:
    """A scalar whose gradient with respect to ``x`` is ``gradient``."""
    out: Tensor = _Seed.apply(x, gradient)  # type: ignore[no-untyped-call]
    return out


class _Seed(torch.autograd.Function):
    """See :func:`scalar`. Torch checks gradients that it is given itself by what it imports for its
    compiler, a second of every process's start."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gradient: Tensor) -> Tensor:
        ctx.gradient = gradient
        return x.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, one: Tensor) -> tuple[Tensor, None]:
        return ctx.gradient, None


class _Biased(torch.autograd.Function):
    """``x + b``, float32 [N, slots·block] and [slots, block].

    The gradient of b is a product per slot: torch's sum over rows adds up in another order for columns at the end of a row.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, b: Tensor) -> Tensor:
        ctx.slots = len(b)
        return x + b.reshape(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        n = len(gradient)
        ones = gradient.new_ones(1, 1, n).expand(ctx.slots, 1, n)
        return gradient, torch.bmm(ones, gradient.reshape(n, ctx.slots, -1).transpose(0, 1)).squeeze(1)


def joined(by_slot: Tensor) -> Tensor:
    """float32 [slots, N, b] to [N, slots·b]."""
    return by_slot.transpose(0, 1).reshape(by_slot.shape[1], -1)
