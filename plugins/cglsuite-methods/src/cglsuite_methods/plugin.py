"""What the package offers: baselines, regularisation and replay."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec, hookimpl

__all__ = ["cglsuite_methods"]

_ITEMS = ("NC", "GC")
_NEIGHBOURHOOD = Hyperparameter(
    name="neighbourhood",
    default=False,
    doc="replayed items are read in the current graph instead of standing alone with their features",
    effect="replayed items hear their neighbours again, which a memory of features alone would not have kept",
)

_FISHER = Hyperparameter(
    name="fisher",
    default="items",
    choices=("items", "batch"),
    doc="mean of squared per-item gradients, or (as benchmarked by CGLB and BeGin) squared gradient of the batch mean",
)
_CHUNK = Hyperparameter(name="chunk", default=16, minimum=1, doc="items per batched backward pass; bounds memory, not the result")


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    """Continual-learning methods and the two bounds that they are read against."""
    return [
        MethodSpec(
            name="bare",
            levels=_ITEMS,
            summary="fine-tuning on each task in turn; the lower bound",
            factory="cglsuite:Method",
            category="baseline",
        ),
        MethodSpec(
            name="joint",
            levels=_ITEMS,
            summary="a fresh model on the union of all tasks so far; the upper bound",
            factory="cglsuite_methods.joint:Joint",
            category="baseline",
            needs=("past-views", "task-boundaries"),
        ),
        MethodSpec(
            name="replay",
            levels=_ITEMS,
            summary="a random part of every past task is learnt along with the current one",
            factory="cglsuite_methods.replay:Replay",
            category="baseline",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(
                    name="fraction",
                    default=0.1,
                    minimum=0,
                    maximum=1,
                    doc="share of each task's training items that is kept, at least one item; the skeleton benchmark has 0.05, 0.1 and 0.2",
                ),
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="ewc",
            levels=_ITEMS,
            summary="elastic weight consolidation",
            citation="Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, PNAS 2017",
            factory="cglsuite_methods.ewc:EWC",
            category="Reg",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="lambda", default=1e4, minimum=0, doc="weight λ of the penalty"),
                _FISHER,
                _CHUNK,
            ),
        ),
        MethodSpec(
            name="lwf",
            levels=_ITEMS,
            summary="learning without forgetting: the model before the task teaches the old outputs",
            citation="Li & Hoiem, Learning without Forgetting, ECCV 2016",
            factory="cglsuite_methods.lwf:LwF",
            category="Reg",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the distillation"),
                Hyperparameter(name="temperature", default=2.0, minimum=1e-6, doc="temperature τ at which outputs are compared"),
            ),
        ),
        MethodSpec(
            name="mas",
            levels=_ITEMS,
            summary="memory aware synapses",
            citation="Aljundi et al., Memory Aware Synapses: Learning what (not) to forget, ECCV 2018",
            factory="cglsuite_methods.mas:MAS",
            category="Reg",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="lambda", default=1.0, minimum=0, doc="weight λ of the penalty"),
                Hyperparameter(
                    name="importance",
                    default="items",
                    choices=("items", "batch", "batch-squared"),
                    doc="mean over items of |∂‖z‖²/∂θ|, or as benchmarked: |∂ mean‖z‖²/∂θ| (BeGin), "
                    "(∂ mean z²/∂θ)² averaged over tasks (CGLB)",
                ),
                _CHUNK,
            ),
        ),
        MethodSpec(
            name="twp",
            levels=_ITEMS,
            summary="topology-aware weight preserving: what matters to the loss and to the attention over edges is held",
            citation="Liu et al., Overcoming Catastrophic Forgetting in Graph Neural Networks, AAAI 2021",
            factory="cglsuite_methods.twp:TWP",
            category="Reg",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(name="lambda_l", default=1e4, minimum=0, doc="weight λ_l of the importance for the loss"),
                Hyperparameter(name="lambda_t", default=100.0, minimum=0, doc="weight λ_t of the importance for the topology"),
                Hyperparameter(
                    name="beta",
                    default=0.01,
                    minimum=0,
                    doc="weight β of the 1-norm of the loss's gradient, a second-order term; 0 leaves it out and halves the time of a step",
                ),
                Hyperparameter(
                    name="detach_beta", default=False, doc="as benchmarked by CGLB: the term of β has no gradient (it is left out)"
                ),
                Hyperparameter(
                    name="topology_accumulates",
                    default=False,
                    doc="as benchmarked by CGLB: the gradient of the loss counts in the importance for the topology too",
                ),
            ),
        ),
        MethodSpec(
            name="er-gnn",
            levels=_ITEMS,
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
        MethodSpec(
            name="gem",
            levels=_ITEMS,
            summary="gradient episodic memory: no step against a past task's memory",
            citation="Lopez-Paz & Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017",
            factory="cglsuite_methods.gem:GEM",
            category="Rep",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(
                    name="per_task", default=100, minimum=1, doc="items kept of each task; an equal share of the scenario's budget at most"
                ),
                Hyperparameter(
                    name="fraction",
                    default=None,
                    kind=float,
                    optional=True,
                    minimum=0,
                    maximum=1,
                    doc="share of each task's training items that is kept (at least one), in place of per_task; "
                    "the skeleton benchmark has 0.05, 0.1 and 0.2",
                ),
                Hyperparameter(name="margin", default=0.5, minimum=0, doc="least weight of a memory's gradient in a projected step"),
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="continual-gnn",
            levels=_ITEMS,
            summary="replay of a proportional memory and of the old items that new data changes most, and EWC",
            citation="Wang et al., Streaming Graph Neural Networks via Continual Learning, CIKM 2020",
            factory="cglsuite_methods.continual_gnn:ContinualGNN",
            category="Reg+Rep",
            needs=("task-boundaries",),
            hyperparameters=(
                Hyperparameter(
                    name="memory", default=500, minimum=1, doc="items kept of all past tasks together; the scenario's budget at most"
                ),
                Hyperparameter(
                    name="replayed", default=250, minimum=1, doc="items of the memory that are learnt again with a task, at most"
                ),
                Hyperparameter(
                    name="changed_share",
                    default=0.5,
                    minimum=0,
                    maximum=1,
                    doc="share of them that are those whose embedding the new graph changes most; the others are drawn",
                ),
                Hyperparameter(name="lambda", default=80.0, minimum=0, doc="weight λ of the EWC penalty"),
                _FISHER,
                _CHUNK,
                Hyperparameter(name="without_ewc", default=False, doc="as benchmarked by BeGin: the EWC penalty never applies"),
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="evolve-gcn",
            summary="the weights of the convolutions evolve from task to task through a recurrent cell; a dynamic-graph baseline",
            citation="Pareja et al., EvolveGCN: Evolving Graph Convolutional Networks for Dynamic Graphs, AAAI 2020",
            factory="cglsuite_methods.evolve_gcn:EvolveGCN",
            category="dynamic",
            needs=("task-boundaries",),
        ),
    ]
