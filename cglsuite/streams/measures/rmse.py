"""The root mean squared error of real-valued targets."""

from __future__ import annotations

import torch

from cglsuite.streams.measures.answered import Answered, OutputScores


def negative_rmse(answered: Answered) -> OutputScores:
    """Compute the negative root mean squared error of each target, over all items."""
    errors = -(answered.answers - answered.y).double().square().mean(dim=0).sqrt()
    return OutputScores(values=torch.where(answered.outputs, errors, 0.0), counted=answered.outputs)
