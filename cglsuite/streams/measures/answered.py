"""The input and output types of performance measures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Predictions and hidden labels for the test or validation items of one task. All tensors are on the CPU.

    Args:
        y: the hidden labels: int64 [n] classes, bool [n, C] label sets, or float32 [n, C] real targets. In link prediction, rows without a
            label are the negative pairs against which links are ranked.
        answers: the predictions: int64 [n] classes if ``y`` contains classes, else float32 [n, C] scores or targets.
        outputs: bool [C], the outputs that competed.
        hits_k: the scenario's K for measures such as Hits@K.
    """

    y: Tensor
    answers: Tensor
    outputs: Tensor
    hits_k: int = 50


@dataclass(frozen=True, kw_only=True)
class OutputScores:
    """A measure's score for each output. Performance is the mean over ``counted`` outputs, or NaN if there are none.

    Args:
        values: float64 [C], 0 for outputs that are not counted. counted: bool [C].
    """

    values: Tensor
    counted: Tensor
