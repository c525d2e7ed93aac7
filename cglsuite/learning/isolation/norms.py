"""Batch norm layers in which some units are frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def frozen_units(norms: Mapping[str, tuple[nn.Module, Tensor]]) -> Iterator[None]:
    """Freeze the running statistics of some batch-norm units within the ``with`` block, and use these statistics in training.

    Args:
        norms: maps an arbitrary name to a norm module and a bool [width] mask, which is true for frozen units.
    """
    hooks = [norm.register_forward_hook(_Frozen(norm, mask)) for norm, mask in norms.values() if isinstance(norm, _BatchNorm)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Frozen:
    """A forward hook that normalises frozen units with the running statistics, and undoes the update of those statistics by the pass."""

    def __init__(self, norm: _BatchNorm, mask: Tensor) -> None:
        self.norm, self.mask = norm, mask
        self.start = [b.clone() for b in (norm.running_mean, norm.running_var) if b is not None]

    def __call__(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        norm = self.norm
        if not norm.training or norm.running_mean is None or norm.running_var is None:
            return output
        mean, var = self.start
        # Write to .data, as the norm itself does: the backward pass of an earlier call may still follow, and does not need the statistics.
        norm.running_mean.data.copy_(torch.where(self.mask, mean, norm.running_mean))
        norm.running_var.data.copy_(torch.where(self.mask, var, norm.running_var))
        fixed = (inputs[0] - mean) * (var + norm.eps).rsqrt()
        if norm.affine:
            fixed = fixed * norm.weight + norm.bias
        return torch.where(self.mask, fixed, output)
