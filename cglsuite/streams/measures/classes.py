"""Measures of items with one label: accuracy over items, or averaged over classes."""

from __future__ import annotations

import torch
from torch import Tensor

from cglsuite.streams.measures.answered import Answered

__all__ = ["macro", "micro"]


def micro(answered: Answered) -> float:
    """The share of items with correct predictions."""
    hits, counts = _counted(answered)
    return float(hits.sum() / counts.sum())


def macro(answered: Answered) -> float:
    """The mean over non-empty classes of the share of correct predictions."""
    hits, counts = _counted(answered)
    return float((hits[counts > 0] / counts[counts > 0]).mean())


def _counted(answered: Answered) -> tuple[Tensor, Tensor]:
    """Correct predictions and items per class, float64 [C]."""
    y, n = answered.y, len(answered.outputs)
    counts = torch.bincount(y, minlength=n).double()
    return torch.bincount(y[answered.answers == y], minlength=n).double(), counts
