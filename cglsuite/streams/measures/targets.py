"""Measures for real-valued targets."""

from __future__ import annotations

import torch

from cglsuite.streams.measures.answered import Answered, OutputScores


def negative_mae(answered: Answered) -> OutputScores:
    """Compute the negative mean absolute error of each target."""
    errors = -(answered.answers - answered.y).double().abs().mean(dim=0)
    return OutputScores(values=torch.where(answered.outputs, errors, 0.0), counted=answered.outputs)
