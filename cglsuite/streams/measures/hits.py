"""Hits@K, computed with OGB's evaluator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch import Tensor

from cglsuite.base.errors import SpecError


def check_k(k: int, n_negatives: int) -> None:
    """Check that there are at least K negatives. With fewer, OGB's evaluator always returns 1.

    Raises:
        SpecError: if there are fewer than K negatives.
    """
    if n_negatives < k:
        raise SpecError(
            f"scenario.hits_k = {k}: links are ranked against only {n_negatives} negative pairs, too few for Hits@{k}; "
            f"expected at most {n_negatives}, or more negative pairs (scenario.negatives)"
        )


def hits_at(k: int, positives: Tensor, negatives: Tensor) -> float:
    """Compute Hits@K (Hu et al. 2020): the fraction of ``positives`` that score strictly above the K-th largest of ``negatives``.

    Args:
        positives: float32 [n]. negatives: float32 [m].

    Raises:
        SpecError: if there are fewer than K negatives.
    """
    check_k(k, len(negatives))
    evaluator = _evaluator()
    evaluator.K = k
    share: float = evaluator.eval({"y_pred_pos": positives, "y_pred_neg": negatives})[f"hits@{k}"]
    return share


@lru_cache(maxsize=1)
def _evaluator() -> Any:
    # Imported here because it loads PyG and pandas, which runs without links do not need.
    from cglsuite.graphs.splits.ogb import without_update_check

    with without_update_check():
        from ogb.linkproppred.evaluate import Evaluator
    return Evaluator("ogbl-collab")  # a dataset for which OGB computes Hits@K
