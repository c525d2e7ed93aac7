"""What the package offers: baselines, regularisation and replay."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec, hookimpl

__all__ = ["cglsuite_methods"]

_LEVELS = ("NC", "LC", "LP", "GC", "GR")
_ITEMS = ("NC", "GC")  # of methods for streams without tasks
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
    name="chunk",
    default=2,
    minimum=1,
    doc="items per batched backward pass; bounds memory, not the result",
    effect="memory and time only",
)
_MEMORY = Hyperparameter(
    name="memory",
    default=100,
    minimum=1,
    doc="items kept in all where the scenario has no budget (scenario.memory_budget)",
    effect="more items: more of the stream is rehearsed and less forgotten; no effect where the scenario has a budget",
)
_FAN_OUT = Hyperparameter(
    name="fan_out",
    default=5,
    minimum=1,
    doc="neighbours that every node of a kept subgraph keeps, per hop",
    effect="more neighbours: replayed centres hear more of what they heard when they came, and fewer of them fit a budget of nodes",
)
_HOPS = Hyperparameter(
    name="hops",
    default=2,
    minimum=1,
    doc="how far a kept subgraph reaches",
    effect="fewer than the backbone has layers: replayed centres hear less than when they came, and more of them fit a budget of nodes",
)
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
            levels=_LEVELS,
            summary="fine-tuning on each task in turn; the lower bound",
            citation="McCloskey & Cohen, Catastrophic Interference in Connectionist Networks: The Sequential Learning Problem, 1989",
            factory="cglsuite:Method",
            category="baseline",
            settings=_EVERYWHERE,
        ),
        MethodSpec(
            name="joint",
            levels=_LEVELS,
            summary="a fresh model on the union of all tasks so far; the upper bound",
            citation="Caruana, Multitask Learning, Machine Learning 28, 1997",
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
                Hyperparameter(
                    name="only_last",
                    default=False,
                    doc="learn all tasks once, after the last one, instead of every prefix of the stream",
                    effect="cheaper; rows of the matrix before the last are NaN, and intransigence has nothing to compare with",
                ),
            ),
        ),
        MethodSpec(
            name="replay",
            levels=_LEVELS,
            summary="a random part of every past task is learnt along with the current one",
            citation="Robins, Catastrophic Forgetting, Rehearsal and Pseudorehearsal, Connection Science 7, 1995",
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=_LEVELS,
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
            levels=("NC", "LC", "LP"),
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
                    effect="more of them: a less noisy reference, so that fewer steps against the memory pass, at the cost of time",
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
                Hyperparameter(
                    name="compared",
                    default=10,
                    minimum=1,
                    doc="items of the memory that an arriving item is compared with",
                    effect="more of them: scores rise, fewer arriving items are candidates, and the memory changes less",
                ),
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
                Hyperparameter(
                    name="lambda",
                    default=0.5,
                    minimum=0,
                    doc="weight λ of the penalty",
                    effect="a larger weight: less is forgotten of what was learnt before the detector fired, and less is learnt afterwards",
                ),
                Hyperparameter(
                    name="window",
                    default=5,
                    minimum=2,
                    doc="batches whose losses are watched",
                    effect="longer: single batches count less and the detector fires later and more rarely",
                ),
                Hyperparameter(
                    name="mean_threshold",
                    default=0.2,
                    minimum=0,
                    doc="the loss rests below this mean",
                    effect="lower: the detector fires more rarely; where it never does, the method is fine-tuning with its buffer",
                ),
                Hyperparameter(
                    name="variance_threshold",
                    default=0.1,
                    minimum=0,
                    doc="and below this variance",
                    effect="lower: the detector fires more rarely, and only where the loss is steady",
                ),
                Hyperparameter(
                    name="hard_buffer",
                    default=30,
                    minimum=0,
                    doc="items with the highest losses that are learnt again and that importance is measured on, the scenario's budget at "
                    "most; as benchmarked by DRIFT: 0, importance is measured on the batch at hand",
                    effect="0: nothing is rehearsed, and importance is that for the latest batch alone",
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
                    effect="degree: hubs, which many centres share, are kept more often; uniform: as in the neighbourhoods of training",
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
                    effect="which edges the memory keeps: forman depends on degrees and favours sparse surroundings, ollivier costs some "
                    "hundred times as long, overlap ranks by common neighbours alone",
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
                Hyperparameter(
                    name="inter",
                    default=1.0,
                    minimum=0,
                    doc="weight of the distance to other classes in the selection",
                    effect="larger: the memory keeps items far from other classes, which are easy, rather than ones that cover their class",
                ),
                Hyperparameter(
                    name="reconstruction",
                    default=0.1,
                    minimum=0,
                    doc="weight λ_r of telling which items share a class",
                    effect="larger: synthesised embeddings of a class lie closer together",
                ),
                Hyperparameter(
                    name="kl",
                    default=0.1,
                    minimum=0,
                    doc="weight λ_kl of the divergence from a standard normal",
                    effect="larger: embeddings are smaller and varied further; 0 lets the variation vanish, which leaves plain replay",
                ),
                Hyperparameter(
                    name="adversarial",
                    default=0.1,
                    minimum=0,
                    doc="weight λ_a of the discriminator's loss",
                    effect="larger: synthesised embeddings are held closer to true ones",
                ),
            ),
        ),
    ]
