"""A plain graph-level GCN over skeleton sequences, for the loops of :mod:`plain_skeleton`: the arithmetic of the suite's ``graph-gcn`` with
its presets' settings, nothing switchable, convolution and residual as one product."""

from __future__ import annotations

from typing import Any

import torch
from plain import attention
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["PlainGCN"]


class PlainGCN(nn.Module):
    """``layers`` times [``relu((A + I) H W + b) + relu(H R + c)`` → batch norm], ``[Σ_v σ(a·h_v) h_v, max_v h_v]``, linear → ReLU → batch
    norm → linear.

    Args:
        adjacency: float32 [V, V], A + I of one skeleton.
    """

    def __init__(self, features: int, outputs: int, adjacency: Tensor, width: int = 64, layers: int = 2, hidden: int = 64) -> None:
        super().__init__()
        self.adjacency, self.width = adjacency, width
        sizes = [features] + [width] * (layers - 1)
        self.both = nn.ParameterList([nn.Parameter(torch.cat([_drawn(n, width), nn.Linear(n, width).weight.detach().T], 1)) for n in sizes])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in sizes])
        self.own_bias = nn.ParameterList([nn.Parameter(nn.Linear(n, width).bias.detach().clone()) for n in sizes])
        self.norms = nn.ModuleList([nn.BatchNorm1d(width) for _ in sizes])
        self.gate = nn.Linear(width, 1)
        self.inner, self.norm, self.outer = nn.Linear(2 * width, hidden), nn.BatchNorm1d(hidden), nn.Linear(hidden, outputs)

    def forward(self, graphs: Any) -> Tensor:
        """float32 [n, C]."""
        n, x = len(graphs), graphs.features
        for both, bias, own_bias, norm in zip(self.both, self.bias, self.own_bias, self.norms, strict=True):
            product = x @ both
            heard = (self.adjacency @ product[:, : self.width].reshape(len(self.adjacency), -1)).view(-1, self.width)
            x = _normed(norm, (heard + bias).relu_() + (product[:, self.width :] + own_bias).relu_())
        nodes = x.view(-1, n, self.width)
        gate = self.gate(x).sigmoid().view(-1, n, 1)
        pooled = torch.cat([(nodes * gate).sum(0), nodes.amax(0)], dim=1)
        return self.outer(_normed(self.norm, self.inner(pooled).relu_()))

    def edge_attention(self, graphs: Any) -> Tensor:
        """Attention over bones and loops, from the first convolution: float32 [E']."""
        return attention(graphs.features @ self.both[0][:, : self.width], *graphs.edges_with_loops)


def _drawn(n: int, width: int) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(n, width))


def _normed(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Batch norm without the module's bookkeeping."""
    return functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.training, norm.momentum, norm.eps)
