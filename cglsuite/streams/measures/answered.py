"""Inputs and outputs of a performance measure."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Predictions and hidden labels for the test or validation items of one task. All tensors are on the CPU.

    Args:
        y: hidden labels: int64 [n] classes, bool [n, C] label sets, or float32 [n, C] real targets. In link prediction, rows without a
            label are the negative pairs against which links are ranked.
        answers: int64 [n] predicted classes where ``y`` has classes, else float32 [n, C] scores or predicted targets.
        outputs: bool [C], the outputs that competed.
        hits_k: the scenario's K of measures such as Hits@K.
    """

    y: Tensor
    answers: Tensor
    outputs: Tensor
    hits_k: int = 50


@dataclass(frozen=True, kw_only=True)
class OutputScores:
    """One score per output. Performance is the mean over ``counted`` outputs, or NaN if there are none.

    Args:
        values: float64 [C], 0 where nothing is counted. counted: bool [C].
    """

    values: Tensor
    counted: Tensor
