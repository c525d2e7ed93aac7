"""Hits@K of links ranked among negative pairs."""

from __future__ import annotations

import torch

from cglsuite.streams.measures.answered import Answered, OutputScores
from cglsuite.streams.measures.hits import hits_at


def hits(answered: Answered) -> OutputScores:
    """Compute Hits@K per output, ranking rows that have the label among rows that do not. Only outputs with a positive row are counted."""
    y, scores = answered.y, answered.answers
    counted = answered.outputs & y.any(dim=0)
    values = torch.zeros(len(counted), dtype=torch.float64)
    for c in counted.nonzero().flatten().tolist():
        values[c] = hits_at(answered.hits_k, scores[y[:, c], c], scores[~y[:, c], c])
    return OutputScores(values=values, counted=counted)
