"""What the package offers: baselines, regularisation and replay."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec, hookimpl

__all__ = ["cglsuite_methods"]

_ITEMS = ("NC", "GC")
_EVERYWHERE = ("task-il", "class-il", "domain-il", "time-il", "task-free")
_TASK_FREE = ("task-free",)
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


_SMALL_CHUNK = Hyperparameter(  # with two items the gradients of a model of millions of weights still lie in memory that is used again
    name="chunk", default=2, minimum=1, doc="items per batched backward pass; bounds memory, not the result"
)
_MEMORY = Hyperparameter(
    name="memory", default=100, minimum=1, doc="items kept in all where the scenario has no budget (scenario.memory_budget)"
)
_FAN_OUT = Hyperparameter(name="fan_out", default=5, minimum=1, doc="neighbours that every node of a kept subgraph keeps, per hop")
_HOPS = Hyperparameter(name="hops", default=2, minimum=1, doc="how far a kept subgraph reaches")
_CENTRES_ONLY = Hyperparameter(
    name="centres_only",
    default=False,
    doc="as benchmarked by DRIFT for SSM: the memory's capacity counts centres and not their neighbours",
    effect="the memory holds up to 31 times as many nodes (two hops of five) as that of a method that keeps nodes",
)


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    """Continual-learning methods and the two bounds that they are read against."""
    return [*_with_tasks(), *_task_free()]


def _with_tasks() -> list[MethodSpec]:
    return [
        MethodSpec(
            name="bare",
            levels=_ITEMS,
            summary="fine-tuning on each task in turn; the lower bound",
            factory="cglsuite:Method",
            category="baseline",
            settings=_EVERYWHERE,
        ),
        MethodSpec(
            name="joint",
            levels=_ITEMS,
            summary="a fresh model on the union of all tasks so far; the upper bound",
            factory="cglsuite_methods.joint:Joint",
            category="baseline",
            settings=_EVERYWHERE,
            needs=("past-views",),
            hyperparameters=(
                Hyperparameter(
                    name="offline_epochs",
                    default=100,
                    minimum=1,
                    doc="passes over all training items of a stream without tasks; elsewhere training.epochs counts",
                ),
                Hyperparameter(
                    name="offline_batch",
                    default=2000,
                    kind=int,
                    optional=True,
                    minimum=1,
                    doc="items per step in these passes, none = all (DRIFT: 2000); elsewhere training.batch_size counts",
                ),
            ),
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


def _task_free() -> list[MethodSpec]:
    """Methods that learn along a stream of batches of which nobody says where a task ends."""
    return [
        MethodSpec(
            name="er",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="experience replay from a reservoir: with every batch as many kept items are learnt again",
            citation="Chaudhry et al., On Tiny Episodic Memories in Continual Learning, arXiv:1902.10486, 2019",
            factory="cglsuite_methods.er:ER",
            category="Rep",
            hyperparameters=(_MEMORY, _NEIGHBOURHOOD),
        ),
        MethodSpec(
            name="a-gem",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="averaged gradient episodic memory: no step against the gradient of a reservoir memory",
            citation="Chaudhry et al., Efficient Lifelong Learning with A-GEM, ICLR 2019",
            factory="cglsuite_methods.a_gem:AGEM",
            category="Rep",
            hyperparameters=(
                _MEMORY,
                Hyperparameter(
                    name="reference",
                    default=None,
                    kind=int,
                    optional=True,
                    minimum=1,
                    doc="items of the memory that the reference gradient is taken from; none = as many as a batch has",
                ),
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="gss",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="gradient-based sample selection (greedy): a memory of items whose gradients differ, replayed with every batch",
            citation="Aljundi et al., Gradient based sample selection for online continual learning, NeurIPS 2019",
            factory="cglsuite_methods.gss:GSS",
            category="Rep",
            hyperparameters=(
                _MEMORY,
                Hyperparameter(name="compared", default=10, minimum=1, doc="items of the memory that an arriving item is compared with"),
                _SMALL_CHUNK,
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="mas-star",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="memory aware synapses, consolidated whenever the loss comes to rest",
            citation="Aljundi et al., Task-Free Continual Learning, CVPR 2019",
            factory="cglsuite_methods.mas_star:MASStar",
            category="Reg",
            hyperparameters=(
                Hyperparameter(name="lambda", default=0.5, minimum=0, doc="weight λ of the penalty"),
                Hyperparameter(name="window", default=5, minimum=2, doc="batches whose losses are watched"),
                Hyperparameter(name="mean_threshold", default=0.2, minimum=0, doc="the loss rests below this mean"),
                Hyperparameter(name="variance_threshold", default=0.1, minimum=0, doc="and below this variance"),
                Hyperparameter(
                    name="hard_buffer",
                    default=30,
                    minimum=0,
                    doc="items with the highest losses that are learnt again and that importance is measured on, the scenario's budget at "
                    "most; as benchmarked by DRIFT: 0, importance is measured on the batch at hand",
                ),
                _SMALL_CHUNK,
                _NEIGHBOURHOOD,
            ),
        ),
        MethodSpec(
            name="ssm",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="sparsified subgraph memory: kept nodes keep some of their neighbours",
            citation="Zhang et al., Sparsified Subgraph Memory for Continual Graph Representation Learning, ICDM 2022",
            factory="cglsuite_methods.ssm:SSM",
            category="Rep",
            hyperparameters=(
                _MEMORY,
                _FAN_OUT,
                _HOPS,
                Hyperparameter(
                    name="neighbours",
                    default="degree",
                    choices=("degree", "uniform"),
                    doc="how the neighbours that are kept are drawn: in proportion to their degrees, or uniformly",
                ),
                _CENTRES_ONLY,
            ),
        ),
        MethodSpec(
            name="sem",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="subgraph memory sparsified by curvature: kept nodes keep their edges of highest Ricci curvature",
            citation="Zhang et al., Ricci Curvature-Based Graph Sparsification for Continual Graph Representation Learning, TNNLS 2023",
            factory="cglsuite_methods.sem:SEM",
            category="Rep",
            hyperparameters=(
                _MEMORY,
                _FAN_OUT,
                _HOPS,
                Hyperparameter(
                    name="curvature",
                    default="forman",
                    choices=("forman", "ollivier", "overlap"),
                    doc="Forman's (closed form), Ollivier's (optimal transport, needs cglsuite-methods[curvature]), or as benchmarked by "
                    "DRIFT the overlap of neighbourhoods in its place",
                ),
                _CENTRES_ONLY,
            ),
        ),
        MethodSpec(
            name="dmsg",
            levels=_ITEMS,
            settings=_TASK_FREE,
            summary="diversified memory selection, replayed through embeddings that a variational layer synthesises",
            citation="Qiao et al., Towards Continuous Reuse of Graph Models via Holistic Memory Diversification, ICLR 2025",
            factory="cglsuite_methods.dmsg:DMSG",
            category="Rep",
            hyperparameters=(
                _MEMORY,
                Hyperparameter(name="inter", default=1.0, minimum=0, doc="weight of the distance to other classes in the selection"),
                Hyperparameter(name="reconstruction", default=0.1, minimum=0, doc="weight λ_r of telling which items share a class"),
                Hyperparameter(name="kl", default=0.1, minimum=0, doc="weight λ_kl of the divergence from a standard normal"),
                Hyperparameter(name="adversarial", default=0.1, minimum=0, doc="weight λ_a of the discriminator's loss"),
            ),
        ),
    ]
