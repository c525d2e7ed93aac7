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
                doc="the features of the regression: S^kX, the embedding by a random or pre-trained backbone (pretraining.scheme), or that "
                "by the backbone after training on the first task (ACIL)",
                effect="propagated: no randomness, and the width of the features; first-task: an encoder trained on the first task's "
                "classes",
            ),
            Hyperparameter(
                name="hops",
                default=2,
                minimum=0,
                maximum=3,
                doc="exponent k of S^kX; not used by encoders",
                effect="0: the graph is not used",
            ),
            Hyperparameter(
                name="neighbours",
                default="all",
                choices=("all", "training"),
                doc="the nodes that propagate to training items: all nodes of their graph, or only the task's training items; not used by "
                "encoders and whole graphs",
                effect="training: no test node enters the sums, as if it had not arrived yet; queries still use their whole graph",
            ),
            Hyperparameter(
                name="normalisation",
                default="unit",
                choices=("none", "unit", "centred"),
                doc="rows unchanged, scaled to length 1, or with the mean of all items so far subtracted from features and targets",
                effect="unit: λ means the same for every dataset; centred: an intercept that is not penalised",
            ),
            Hyperparameter(
                name="projection",
                default=0,
                minimum=0,
                doc="width of a fixed random layer of ReLU units on the features; 0 = none; ACIL: 8192",
                effect="larger than 0: a non-linear boundary, G has this width, and the result depends on the init seed",
            ),
            Hyperparameter(
                name="lambda",
                default=0.1,
                above=0,
                doc="λ, added to the diagonal of G",
                effect="larger: smaller weights, which matters for classes with few items",
            ),
            Hyperparameter(
                name="solver",
                default="sums",
                choices=("sums", "dual", "woodbury"),
                doc="what is stored: G and C; the rows of all items, in the memory; or the inverse of G + λI, updated with the Woodbury "
                "identity",
                effect="the same predictions up to rounding at a different cost: F² numbers, n F numbers, or F² numbers without solving "
                "a system",
            ),
            Hyperparameter(
                name="balance",
                default=False,
                doc="weight items by 1 / (number of items of their class so far), as in AIR; stores one G per class",
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
                effect="true: embeddings that separate the first task's classes; not available in task-free streams",
            ),
            Hyperparameter(
                name="per_task",
                default=None,
                kind=int,
                optional=True,
                minimum=1,
                doc="size of the random sample of each task that is averaged; none = all items; LLM4GCL: 20",
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
                doc="share α of the base session's prototypes in the prototype of a later class; 0 = simple-cil with tune",
                effect="larger: less noise from small samples, but smaller differences between later classes",
            ),
            Hyperparameter(
                name="temperature",
                default=16.0,
                above=0,
                doc="factor τ of cosines in the softmax over the base session's classes",
                effect="larger: only the nearest class of the base session counts",
            ),
        ),
    ),
)
