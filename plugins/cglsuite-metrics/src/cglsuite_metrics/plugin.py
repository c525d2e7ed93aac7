"""The published metrics by names that carry their definition; a paper's label is shown beside, never instead."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl

__all__ = ["cglsuite_metrics"]

_CHAUDHRY = "Chaudhry et al., Riemannian Walk for Incremental Learning, ECCV 2018"
_LOPEZ_PAZ = "Lopez-Paz & Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017"


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    """Average performance, three definitions of forgetting, forward transfer, intransigence."""
    return [
        MetricSpec(
            name="average_performance",
            summary="mean performance over all tasks after the last one",
            formula="mean_j M[T,j]",
            direction="up",
            range=(0.0, 1.0),
            label="AP (AA)",
            factory="cglsuite.metrics:average_performance",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="forgetting_from_diagonal",
            summary="performance lost since a task was learnt; positive = forgetting",
            formula="mean_{j<T} (M[j,j] - M[T,j])",
            direction="down",
            range=(-1.0, 1.0),
            label="AF (BeGin)",
            factory="cglsuite.metrics:forgetting_from_diagonal",
            citation="Ko et al., BeGin, ACM TIST 2025",
        ),
        MetricSpec(
            name="backward_transfer",
            summary="performance gained since a task was learnt; negative = forgetting",
            formula="mean_{j<T} (M[T,j] - M[j,j])",
            direction="up",
            range=(-1.0, 1.0),
            label="AF (CGLB, AGALE), BWT",
            factory="cglsuite.metrics:backward_transfer",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="forgetting_max",
            summary="performance lost since a task was at its best; positive = forgetting",
            formula="mean_{j<T} (max_{j<=l<T} M[l,j] - M[T,j])",
            direction="down",
            range=(-1.0, 1.0),
            label="AF_max (skeleton)",
            factory="cglsuite.metrics:forgetting_max",
            citation=_CHAUDHRY,
        ),
        MetricSpec(
            name="forward_transfer",
            summary="performance on the next task before learning it, above the untrained model",
            formula="mean_{j>=2} (M[j-1,j] - M[0,j])",
            direction="up",
            range=(-1.0, 1.0),
            label="FWT",
            settings=("domain-il", "time-il"),
            factory="cglsuite.metrics:forward_transfer",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="intransigence",
            summary="performance on new tasks below joint training; down is better",
            formula="mean_j (M_joint[j,j] - M[j,j])",
            direction="down",
            range=(-1.0, 1.0),
            needs_joint=True,
            label="INT",
            factory="cglsuite.metrics:intransigence",
            citation=_CHAUDHRY,
        ),
    ]
