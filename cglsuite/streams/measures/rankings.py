"""Ranking measures for multi-label items, which compare the scores of items with and without a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from cglsuite.streams.measures.answered import Answered, OutputScores


def average_precision(answered: Answered) -> OutputScores:
    """Compute the average precision of each label. Competing labels without positives count as 0."""
    defined = answered.outputs & (answered.y.sum(dim=0) > 0)
    return OutputScores(values=_by_label(average_precision_score, answered, defined), counted=answered.outputs)


def roc_auc(answered: Answered) -> OutputScores:
    """Compute the area under the ROC curve (ROC-AUC) of each label. Only labels with both positives and negatives are counted."""
    positives = answered.y.sum(dim=0)
    defined = answered.outputs & (positives > 0) & (positives < len(answered.y))
    return OutputScores(values=_by_label(roc_auc_score, answered, defined), counted=defined)


def _by_label(score: Callable[..., Any], answered: Answered, defined: Tensor) -> Tensor:
    """Compute ``score`` for each label in ``defined`` (bool [C]), and 0 for all others: float64 [C]."""
    values = torch.zeros(len(answered.outputs), dtype=torch.float64)
    if bool(defined.any()):
        found = score(answered.y[:, defined].numpy(), answered.answers[:, defined].numpy(), average=None)
        values[defined] = torch.as_tensor(found, dtype=torch.float64)
    return values
