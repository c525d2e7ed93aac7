"""Hits@K, computed with OGB's evaluator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch import Tensor

from cglsuite.base.errors import SpecError


def check_k(k: int, n_negatives: int) -> None:
    """Check that Hits@K is meaningful: OGB's evaluator returns 1 with fewer than K negatives.

    Raises:
        SpecError: fewer negatives than K.
    """
    if n_negatives < k:
        raise SpecError(
            f"scenario.hits_k = {k}: links are ranked against {n_negatives} pairs without a link, too few for Hits@{k}; "
            f"expected at most {n_negatives}, or more pairs (scenario.negatives)"
        )


def hits_at(k: int, positives: Tensor, negatives: Tensor) -> float:
    """Return the fraction of ``positives`` (float32 [n]) strictly above the K-th largest of ``negatives`` (float32 [m]) (Hu et al. 2020).

    Raises:
        SpecError: fewer negatives than K.
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
    return Evaluator("ogbl-collab")  # a dataset that OGB scores by Hits@K
