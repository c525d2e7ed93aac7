"""Per-item gradients, for methods that estimate parameter importance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

__all__ = ["per_item_gradients"]


def per_item_gradients(values: Tensor, parameters: Sequence[Tensor], chunk: int = 16) -> Iterator[tuple[Tensor, ...]]:
    """Compute the gradient of each value with respect to each parameter, running one batched backward pass per ``chunk`` items.

    Args:
        values: float32 [n], one scalar per item, from one forward pass.
        parameters: the tensors with respect to which to differentiate.
        chunk: number of items per backward pass. It limits memory use (one copy of the gradients per item) and does not affect the result.

    Yields:
        For each chunk, one float32 [≤ chunk, *shape] per parameter. Gradients are zero where a value does not depend on the parameter.
    """

    def backward(direction: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(values, list(parameters), direction, retain_graph=True, materialize_grads=True, allow_unused=True)

    for rows in torch.eye(len(values), device=values.device).split(chunk):
        yield torch.func.vmap(backward)(rows)
