"""What the package offers: baselines, EWC and ER-GNN."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec, hookimpl

__all__ = ["cglsuite_methods"]


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    """Continual-learning methods and the two bounds that they are read against."""
    return [
        MethodSpec(
            name="bare",
            summary="fine-tuning on each task in turn; the lower bound",
            factory="cglsuite:Method",
            category="baseline",
        ),
        MethodSpec(
            name="joint",
            summary="a fresh model on the union of all tasks so far; the upper bound",
            factory="cglsuite_methods.joint:Joint",
            category="baseline",
            needs=("past-views", "task-boundaries"),
        ),
        MethodSpec(
            name="ewc",
            summary="elastic weight consolidation",
            citation="Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, PNAS 2017",
            factory="cglsuite_methods.ewc:EWC",
            category="Reg",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="lambda", default=1e4, minimum=0, doc="weight λ of the penalty"),
                Hyperparameter(
                    name="fisher",
                    default="items",
                    choices=("items", "batch"),
                    doc="mean of squared per-item gradients, or (as benchmarked by CGLB and BeGin) squared gradient of the batch mean",
                ),
                Hyperparameter(name="chunk", default=16, minimum=1, doc="items per batched backward pass; bounds memory, not the result"),
            ),
        ),
        MethodSpec(
            name="er-gnn",
            summary="experience replay of chosen nodes",
            citation="Zhou & Cao, Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay, AAAI 2021",
            factory="cglsuite_methods.er_gnn:ERGNN",
            category="Rep",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="per_class", default=10, minimum=1, doc="nodes kept of each class"),
                Hyperparameter(
                    name="sampler",
                    default="cm",
                    choices=("mf", "mf+", "cm", "cm+", "random"),
                    doc="nearest to the class mean (mf), coverage maximisation (cm), on embeddings (+), or random",
                ),
                Hyperparameter(name="distance", default=0.5, minimum=0, doc="radius d of coverage maximisation"),
                Hyperparameter(
                    name="candidates", default=1000, minimum=1, doc="nodes of a class that coverage maximisation looks at, at most"
                ),
                Hyperparameter(name="swap_weights", default=False, doc="as benchmarked by BeGin: (1 - β) L + β L_B"),
                Hyperparameter(
                    name="neighbourhood", default=False, doc="as benchmarked by BeGin: replayed nodes are read in the current graph"
                ),
            ),
        ),
    ]
