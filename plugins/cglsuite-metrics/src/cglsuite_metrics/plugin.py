"""The published metrics, under names that state their definition; papers' labels are shown next to these names, never instead."""

from __future__ import annotations

from cglsuite import MetricSpec, hookimpl
from cglsuite.specs import Citation

__all__ = ["cglsuite_metrics"]

_BEGIN = Citation(
    authors=("Ko", "others"),
    title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
    year=2025,
    journal="ACM TIST 16(1)",
)
_CHAUDHRY = Citation(authors=("Chaudhry", "others"), title="Riemannian Walk for Incremental Learning", year=2018, booktitle="ECCV")
_LOPEZ_PAZ = Citation(
    authors=("Lopez-Paz", "Ranzato"), title="Gradient Episodic Memory for Continual Learning", year=2017, booktitle="NeurIPS"
)
_DRIFT = Citation(
    authors=("Sun", "others"),
    title="DRIFT: A Benchmark for Task-Free Continual Graph Learning with Continuous Distribution Shifts",
    year=2026,
    arxiv="2605.12998",
)
_LLM4GCL = Citation(
    authors=("Cheng", "Li", "Li", "others"),
    title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
    year=2025,
    arxiv="2505.18697",
)
_TASK_FREE = ("task-free",)
_WITHOUT_TASK_IDS = ("class-il", "domain-il", "time-il")


@hookimpl
def cglsuite_metrics() -> list[MetricSpec]:
    """Metrics of streams of tasks, and of task-free streams."""
    return [*_of_tasks(), *_of_task_free_streams()]


def _of_tasks() -> list[MetricSpec]:
    """Average performance, three definitions of forgetting, forward transfer, intransigence."""
    return [
        MetricSpec(
            name="average_performance",
            summary="mean performance over all tasks after the last one",
            formula="mean_j M[T,j]",
            direction="up",
            range=(0.0, 1.0),
            label="AP (AA)",
            factory="cglsuite.stats.metrics:average_performance",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="forgetting_from_diagonal",
            summary="performance lost since a task was learnt; positive = forgetting",
            formula="mean_{j<T} (M[j,j] - M[T,j])",
            direction="down",
            range=(-1.0, 1.0),
            label="AF (BeGin)",
            factory="cglsuite.stats.metrics:forgetting_from_diagonal",
            citation=_BEGIN,
        ),
        MetricSpec(
            name="backward_transfer",
            summary="performance gained since a task was learnt; negative = forgetting",
            formula="mean_{j<T} (M[T,j] - M[j,j])",
            direction="up",
            range=(-1.0, 1.0),
            label="AF (CGLB, AGALE), BWT",
            factory="cglsuite.stats.metrics:backward_transfer",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="forgetting_max",
            summary="performance lost since a task was at its best; positive = forgetting",
            formula="mean_{j<T} (max_{j<=l<T} M[l,j] - M[T,j])",
            direction="down",
            range=(-1.0, 1.0),
            label="AF_max (skeleton)",
            factory="cglsuite.stats.metrics:forgetting_max",
            citation=_CHAUDHRY,
        ),
        MetricSpec(
            name="forward_transfer",
            summary="performance on the next task before learning it, relative to the untrained model",
            formula="mean_{j>=2} (M[j-1,j] - M[0,j])",
            direction="up",
            range=(-1.0, 1.0),
            label="FWT",
            settings=("domain-il", "time-il"),
            factory="cglsuite.stats.metrics:forward_transfer",
            citation=_LOPEZ_PAZ,
        ),
        MetricSpec(
            name="intransigence",
            summary="shortfall on each new task against joint training; lower is better",
            formula="mean_j (M_joint[j,j] - M[j,j])",
            direction="down",
            range=(-1.0, 1.0),
            needs_joint=True,
            label="INT",
            factory="cglsuite.stats.metrics:intransigence",
            citation=_CHAUDHRY,
        ),
        MetricSpec(
            name="pooled_accuracy",
            summary="accuracy over the test items of all tasks after the last one",
            formula="sum_j n_j M[T,j] / sum_j n_j",
            direction="up",
            range=(0.0, 1.0),
            settings=_WITHOUT_TASK_IDS,
            performances=("micro",),
            needs_tasks=True,
            label="pooled accuracy",
            factory="cglsuite.stats.metrics:pooled_accuracy",
            citation=_LLM4GCL,
        ),
        MetricSpec(
            name="pooled_accuracy_mean",
            summary="accuracy over the test items of the tasks learnt, averaged over the stages of the stream",
            formula="mean_k sum_{j<=k} n_j M[k,j] / sum_{j<=k} n_j",
            direction="up",
            range=(0.0, 1.0),
            settings=_WITHOUT_TASK_IDS,
            performances=("micro",),
            needs_tasks=True,
            label="pooled accuracy, averaged",
            factory="cglsuite.stats.metrics:pooled_accuracy_mean",
            citation=_LLM4GCL,
        ),
    ]


def _of_task_free_streams() -> list[MetricSpec]:
    """Averages over the stream and at its end, two definitions of forgetting, and time to recover."""
    return [
        MetricSpec(
            name="a_auc",
            summary="mean performance over latent tasks and evaluations, including the one before training",
            formula="mean_{i>=0} mean_k A[i,k]",
            direction="up",
            range=(0.0, 1.0),
            settings=_TASK_FREE,
            label="A_AUC",
            factory="cglsuite.stats.metrics:a_auc",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="a_auc_trained",
            summary="mean performance over latent tasks and evaluations, excluding the one before training",
            formula="mean_{i>=1} mean_k A[i,k]",
            direction="up",
            range=(0.0, 1.0),
            settings=_TASK_FREE,
            label="A_AUC (from step 1)",
            factory="cglsuite.stats.metrics:a_auc_trained",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="a_auc_node_weighted",
            summary="performance on all test items pooled, averaged over evaluations, including the one before training",
            formula="mean_{i>=0} sum_k n_k A[i,k] / sum_k n_k",
            direction="up",
            range=(0.0, 1.0),
            settings=_TASK_FREE,
            label="A_AUC (DRIFT's code)",
            factory="cglsuite.stats.metrics:a_auc_node_weighted",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="a_end",
            summary="mean performance over latent tasks after the last step",
            formula="mean_k A[E,k]",
            direction="up",
            range=(0.0, 1.0),
            settings=_TASK_FREE,
            label="AA, A_end",
            factory="cglsuite.stats.metrics:a_end",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="af_s",
            summary="final performance minus the best over the stream; negative = forgetting, never positive",
            formula="mean_k (A[E,k] - max_i A[i,k])",
            direction="up",
            range=(-1.0, 0.0),
            settings=_TASK_FREE,
            label="AF_s (DRIFT)",
            factory="cglsuite.stats.metrics:af_s",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="af_hard",
            summary="performance gained since the last item of a latent task arrived; negative = forgetting",
            formula="mean_k (A[E,k] - A[e_k,k]), e_k: all of k has arrived",
            direction="up",
            range=(-1.0, 1.0),
            settings=_TASK_FREE,
            label="AF (DRIFT, hard streams)",
            factory="cglsuite.stats.metrics:af_hard",
            citation=_DRIFT,
        ),
        MetricSpec(
            name="time_to_recover",
            summary="steps until a latent task that fell below 90 % of its best recovers",
            undefined="nothing falls, or at least half of the falls never recover",
            formula="median over dips of (step back - step of the fall)",
            direction="down",
            range=(0.0, float("inf")),
            unit="steps",
            settings=_TASK_FREE,
            label="time to recover",
            citation="cglsuite, 2026 (defined here: see the formula)",
            factory="cglsuite.stats.metrics:time_to_recover",
        ),
    ]
