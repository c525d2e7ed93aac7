"""Replay: a memory of items is learnt again, or bounds the steps that are made; with a penalty beside it in continual-gnn."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite_methods.specs.shared import CHUNK, FISHER, ITEMS, LEVELS, NEIGHBOURHOOD, SMALL_CHUNK, TASK_FREE

__all__ = ["REPLAY"]

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

REPLAY = (
    MethodSpec(
        name="er-gnn",
        levels=LEVELS,
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
            Hyperparameter(name="candidates", default=1000, minimum=1, doc="nodes of a class that coverage maximisation looks at, at most"),
            Hyperparameter(name="swap_weights", default=False, doc="as benchmarked by BeGin: (1 - β) L + β L_B"),
            Hyperparameter(
                name="neighbourhood", default=False, doc="as benchmarked by BeGin: replayed nodes are read in the current graph"
            ),
        ),
    ),
    MethodSpec(
        name="gem",
        levels=LEVELS,
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
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="continual-gnn",
        levels=LEVELS,
        summary="replay of a proportional memory and of the old items that new data changes most, and EWC",
        citation="Wang et al., Streaming Graph Neural Networks via Continual Learning, CIKM 2020",
        factory="cglsuite_methods.continual_gnn:ContinualGNN",
        category="Reg+Rep",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="memory", default=500, minimum=1, doc="items kept of all past tasks together; the scenario's budget at most"
            ),
            Hyperparameter(name="replayed", default=250, minimum=1, doc="items of the memory that are learnt again with a task, at most"),
            Hyperparameter(
                name="changed_share",
                default=0.5,
                minimum=0,
                maximum=1,
                doc="share of them that are those whose embedding the new graph changes most; the others are drawn",
            ),
            Hyperparameter(name="lambda", default=80.0, minimum=0, doc="weight λ of the EWC penalty"),
            FISHER,
            CHUNK,
            Hyperparameter(name="without_ewc", default=False, doc="as benchmarked by BeGin: the EWC penalty never applies"),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="er",
        levels=ITEMS,
        settings=TASK_FREE,
        summary="experience replay from a reservoir: with every batch as many kept items are learnt again",
        citation="Chaudhry et al., On Tiny Episodic Memories in Continual Learning, arXiv:1902.10486, 2019",
        factory="cglsuite_methods.er:ER",
        category="Rep",
        hyperparameters=(_MEMORY, NEIGHBOURHOOD),
    ),
    MethodSpec(
        name="a-gem",
        levels=ITEMS,
        settings=TASK_FREE,
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
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="gss",
        levels=ITEMS,
        settings=TASK_FREE,
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
            SMALL_CHUNK,
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="ssm",
        levels=ITEMS,
        settings=TASK_FREE,
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
        levels=ITEMS,
        settings=TASK_FREE,
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
        levels=ITEMS,
        settings=TASK_FREE,
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
)
