"""Building blocks shared by contrastive objectives."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def projection(width: int) -> nn.Module:
    """Build a projection network of two linear layers with a ReLU between them: float32 [n, d] to [n, d]."""
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def discriminated(right: Tensor, wrong: Tensor) -> Tensor:
    """Compute the binary cross-entropy of the scores of positive pairs (float32 [n], target 1) plus that of negative pairs (float32 [m],
    target 0).
    """
    ones, zeros = torch.ones_like(right), torch.zeros_like(wrong)
    return functional.binary_cross_entropy_with_logits(right, ones) + functional.binary_cross_entropy_with_logits(wrong, zeros)


def noise_contrast(one: Tensor, other: Tensor, temperature: float, *, positives_compete: bool) -> Tensor:
    """Compute ``-mean_i log( e^{s_ii} / Σ_j e^{s_ij} )``, where ``s_ij`` are cosine similarities between two views divided by the
    temperature.

    Args:
        one, other: float32 [n, d]; row i of both is the same item.
        positives_compete: whether the sum includes j = i (InfoNCE); otherwise it runs over the other items alone.
    """
    similar = functional.normalize(one, dim=1) @ functional.normalize(other, dim=1).T / temperature
    right = similar.diagonal()
    if not positives_compete and len(one) > 1:
        similar = similar.masked_fill(torch.eye(len(one), dtype=torch.bool, device=one.device), -torch.inf)
    return (similar.logsumexp(dim=1) - right).mean()
