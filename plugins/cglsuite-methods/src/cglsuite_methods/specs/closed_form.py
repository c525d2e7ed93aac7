"""Closed-form learners and prototype methods, which use feature statistics that later tasks do not change."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import Citation

_EVERYWHERE = ("task-il", "class-il", "domain-il", "time-il", "task-free")
_LEVELS = ("NC", "LC", "GC")
_SIMPLE_CIL = Citation(
    authors=("Zhou", "Cai", "Ye", "Zhan", "Liu"),
    title="Revisiting Class-Incremental Learning with Pre-Trained Models: Generalizability and Adaptivity Are All You Need",
    year=2025,
    journal="IJCV 133",
)
_LLM4GCL = Citation(
    authors=("Cheng", "Li", "Li", "others"),
    title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
    year=2025,
    arxiv="2505.18697",
    note="on graphs",
)

CLOSED_FORM = (
    MethodSpec(
        name="analytic-ridge",
        levels=_LEVELS,
        settings=_EVERYWHERE,
        summary="a ridge classifier in closed form on propagated features, from sums over all items so far; deterministic",
        citation=(
            Citation(
                authors=("Zhuang", "Weng", "Wei", "Xie", "Toh", "Lin"),
                title="ACIL: Analytic Class-Incremental Learning with Absolute Memorization and Privacy Protection",
                year=2022,
                booktitle="NeurIPS",
            ),
            Citation(
                authors=("Fang", "Zhu", "Chen", "Wang", "others"),
                title="AIR: Analytic Imbalance Rectifier for Continual Learning",
                year=2024,
                arxiv="2408.10349",
                note="the balance",
            ),
            Citation(
                authors=("Zhuang", "Chen", "Fang", "others"),
                title="GACL: Exemplar-Free Generalized Analytic Continual Learning",
                year=2024,
                booktitle="NeurIPS",
                note="the same where tasks share no class",
            ),
        ),
        factory="cglsuite_methods.closed_form.ridge:AnalyticRidge",
        category="baseline",
        hyperparameters=(
            Hyperparameter(
                name="features",
                default="propagated",
                choices=("propagated", "encoder", "first-task"),
                doc="what is regressed on: S^kX, the embedding by the backbone as drawn or pre-trained (pretraining.scheme), or that by "
                "the backbone after training on the first task (ACIL)",
                effect="propagated: nothing random, as wide as the features; first-task: an encoder that knows the first task's classes",
            ),
            Hyperparameter(name="hops", default=2, minimum=0, maximum=3, doc="k of S^kX; unused by encoders", effect="0: no graph"),
            Hyperparameter(
                name="neighbours",
                default="all",
                choices=("all", "training"),
                doc="the nodes that are propagated to training items: all of their graph, or the task's training items alone; unused by "
                "encoders and whole graphs",
                effect="training: no test node enters the sums, as if it were not there yet; queries still meet their whole graph",
            ),
            Hyperparameter(
                name="normalisation",
                default="unit",
                choices=("none", "unit", "centred"),
                doc="rows as they are, of length 1, or with the mean of all items so far subtracted from features and targets",
                effect="unit: λ means the same for every dataset; centred: an intercept that is not penalised",
            ),
            Hyperparameter(
                name="projection",
                default=0,
                minimum=0,
                doc="width of a fixed random layer of ReLU units on the features, 0 = none; ACIL: 8192",
                effect="a non-linear boundary, and G of that width; the init seed then plays a part",
            ),
            Hyperparameter(
                name="lambda",
                default=0.1,
                above=0,
                doc="λ, added to the diagonal of G",
                effect="larger: smaller weights, which matters where a class has few items",
            ),
            Hyperparameter(
                name="solver",
                default="sums",
                choices=("sums", "dual", "woodbury"),
                doc="what is kept: G and C; the rows of all items, in the memory; or the inverse of G + λI, updated by Woodbury's identity",
                effect="the same answers to rounding, at another cost: F² numbers, n F numbers, or F² numbers without a system to solve",
            ),
            Hyperparameter(
                name="balance",
                default=False,
                doc="weigh items by 1 / (number of items of their class so far), as AIR does; keeps a G per class",
                effect="true: rare classes count as much as frequent ones",
            ),
        ),
    ),
    MethodSpec(
        name="simple-cil",
        levels=_LEVELS,
        labels=("single",),
        settings=_EVERYWHERE,
        summary="the class mean of highest cosine under a network that is never trained, or on the first task alone",
        citation=(_SIMPLE_CIL, _LLM4GCL),
        factory="cglsuite_methods.closed_form.prototypes:SimpleCIL",
        category="baseline",
        hyperparameters=(
            Hyperparameter(
                name="tune",
                default=False,
                doc="train the network on the first task, then freeze it (LLM4GCL)",
                effect="true: embeddings that tell the first task's classes apart; not in task-free streams",
            ),
            Hyperparameter(
                name="per_task",
                default=None,
                kind=int,
                optional=True,
                minimum=1,
                doc="items of each task that are averaged, a random sample; none = all, LLM4GCL: 20",
                effect="fewer: noisier means, and classes without a sampled item are never predicted",
            ),
        ),
    ),
    MethodSpec(
        name="teen",
        levels=_LEVELS,
        labels=("single",),
        settings=("task-il", "class-il"),
        summary="trains on a base session, then moves prototypes of later classes towards similar ones of the base session",
        citation=(
            Citation(
                authors=("Wang", "Zhou", "Zhang", "Zhan", "Ye"),
                title="Few-shot Class-Incremental Learning via Training-free Prototype Calibration",
                year=2023,
                booktitle="NeurIPS",
            ),
            _LLM4GCL,
        ),
        factory="cglsuite_methods.closed_form.prototypes:TEEN",
        category="baseline",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="alpha",
                default=0.5,
                minimum=0,
                maximum=1,
                doc="share α of the base session's prototypes in a later class's; 0 = simple-cil with tune",
                effect="larger: less noise of few items, and less difference between later classes",
            ),
            Hyperparameter(
                name="temperature",
                default=16.0,
                above=0,
                doc="factor τ of cosines in the softmax over the base session's classes",
                effect="larger: the nearest class of the base session alone",
            ),
        ),
    ),
)
