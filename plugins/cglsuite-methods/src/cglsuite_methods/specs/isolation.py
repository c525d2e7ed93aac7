"""Isolation methods, which assign part of the network to each task."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import Citation
from cglsuite_methods.specs.shared import LEVELS

_TASK_IL = ("task-il",)
_SHARE = Hyperparameter(
    name="share",
    default=0.1,
    above=0,
    maximum=1,
    doc="epochs of the first phase, as a share of the protocol's (PackNet: before pruning; HAT: while gates close; PI-GNN: rectification)",
)

ISOLATION = (
    MethodSpec(
        name="packnet",
        levels=LEVELS,
        settings=_TASK_IL,
        summary="gives each task the largest weights that earlier ones left free, and never moves them again",
        citation=Citation(
            authors=("Mallya", "Lazebnik"),
            title="PackNet: Adding Multiple Tasks to a Single Network by Iterative Pruning",
            year=2018,
            booktitle="CVPR",
        ),
        factory="cglsuite_methods.isolation.packnet:PackNet",
        category="Iso",
        needs=("task-id", "task-boundaries", "epochs"),
        training={"weight_decay": 0.0, "norm_statistics": "frozen"},
        hyperparameters=(
            Hyperparameter(
                name="keep",
                default=None,
                kind=float,
                optional=True,
                minimum=0,
                maximum=1,
                doc="share of the free weights that a task keeps; none = the share that gives all tasks the same number (BeGin); "
                "the paper keeps 0.25 or 0.5",
                effect="more: a better fit of early tasks, and less room for later ones",
            ),
            _SHARE,
            Hyperparameter(
                name="as_begin",
                default=False,
                doc="as implemented by BeGin: normalisation statistics are frozen before the first task retrains its kept weights",
            ),
        ),
    ),
    MethodSpec(
        name="piggyback",
        levels=LEVELS,
        settings=_TASK_IL,
        summary="learns for each task which weights of a fixed network to use",
        citation=Citation(
            authors=("Mallya", "Davis", "Lazebnik"),
            title="Piggyback: Adapting a Single Network to Multiple Tasks by Learning to Mask Weights",
            year=2018,
            booktitle="ECCV",
        ),
        factory="cglsuite_methods.isolation.piggyback:Piggyback",
        category="Iso",
        needs=("task-id", "task-boundaries"),
        training={"weight_decay": 0.0, "norm_statistics": "frozen"},
        hyperparameters=(
            Hyperparameter(
                name="threshold",
                default=5e-3,
                above=0,
                doc="threshold τ of the real numbers behind a mask, which start at 2 τ; BeGin searches 0.1 and 0.01",
                effect="smaller, relative to the learning rate: more weights are masked",
            ),
            Hyperparameter(
                name="body",
                default="first-task",
                choices=("first-task", "drawn"),
                doc="the fixed weights: those at the end of the first task, or random initial weights, for which the first task learns "
                "a mask too",
                effect="drawn: all tasks are treated the same, and none can change the features that it reads",
            ),
            Hyperparameter(
                name="as_begin",
                default=False,
                doc="as implemented by BeGin, without its pre-training: random initial weights, masks of the last epoch, and the head "
                "of the best epoch",
            ),
        ),
    ),
    MethodSpec(
        name="hat",
        levels=LEVELS,
        settings=_TASK_IL,
        summary="hard attention to the task: learns which units each task uses, and holds the weights between used units",
        citation=Citation(
            authors=("Serrà", "others"),
            title="Overcoming Catastrophic Forgetting with Hard Attention to the Task",
            year=2018,
            booktitle="ICML",
        ),
        factory="cglsuite_methods.isolation.hat:HAT",
        category="Iso",
        needs=("task-id", "task-boundaries", "epochs"),
        training={"weight_decay": 0.0, "norm_statistics": "per-task"},
        hyperparameters=(
            Hyperparameter(
                name="c",
                default=0.75,
                minimum=0,
                doc="weight c of the sparsity of gates",
                effect="larger: tasks use fewer units, so later ones have more room",
            ),
            Hyperparameter(
                name="s_max",
                default=400.0,
                above=0,
                doc="slope of the gates at the end",
                effect="smaller: gates are softer, so tasks share units more and forget more",
            ),
            Hyperparameter(
                name="gates",
                default="soft",
                choices=("soft", "binary", "none"),
                doc="σ(s e); 0 or 1 with a straight-through gradient, which keeps answers to old tasks bit for bit; none: as at graph "
                "level in BeGin, gates hold weights and are not applied",
            ),
            _SHARE,
            Hyperparameter(
                name="as_begin",
                default=False,
                doc="as implemented by BeGin: gates are random and not trained, s is s_max throughout, only the latest task is protected",
                effect="true: units are assigned at random, and tasks before the latest are forgotten",
            ),
        ),
    ),
    MethodSpec(
        name="pi-gnn",
        levels=LEVELS,
        summary="trains one block of units per task, which reads all earlier blocks; those stay as they are",
        citation=Citation(
            authors=("Zhang", "others"), title="Continual Learning on Dynamic Graphs via Parameter Isolation", year=2023, booktitle="SIGIR"
        ),
        factory="cglsuite_methods.isolation.pi_gnn:PIGNN",
        category="Iso",
        needs=("task-boundaries", "epochs"),
        training={"weight_decay": 0.0},
        hyperparameters=(
            Hyperparameter(name="beta", default=0.1, minimum=0, doc="weight β of the memory's loss; BeGin searches 0.1 and 1"),
            Hyperparameter(
                name="per_task",
                default=100,
                minimum=1,
                doc="items to store per task, at most an equal share of the scenario's budget; none are stored if the task is known",
            ),
            Hyperparameter(
                name="neighbourhood",
                default=True,
                doc="embed stored items in the current graph; false, or if the graph does not keep old nodes: store their features",
                effect="false: no rectification, and stored items have no neighbours",
            ),
            _SHARE,
        ),
    ),
    MethodSpec(
        name="tpp",
        levels=("NC", "LC"),
        summary="trains a prompt and a head per task on one frozen network, and recognises an item's task by the nearest prototype",
        citation=Citation(
            authors=("Niu", "Pang", "Chen", "Liu"),
            title="Replay-and-Forget-Free Graph Class-Incremental Learning: A Task Profiling and Prompting Approach",
            year=2024,
            booktitle="NeurIPS",
            arxiv="2410.10341",
        ),
        factory="cglsuite_methods.isolation.tpp:TPP",
        category="Iso",
        needs=("task-boundaries", "epochs"),
        hyperparameters=(
            Hyperparameter(
                name="prompts",
                default=3,
                minimum=1,
                doc="number of vectors in the prompt of a task",
                effect="more: a task can change the features of different nodes in different ways, at a cost in parameters",
            ),
            Hyperparameter(
                name="body",
                default="grace",
                choices=("grace", "given"),
                doc="the frozen network: pre-trained by GRACE on the first task without labels, or as the cell gives it "
                "(pretraining.scheme, or as drawn)",
                effect="given: cells with the same pre-training share it, and any scheme can be used",
            ),
            Hyperparameter(
                name="infer",
                default="item",
                choices=("item", "graph"),
                doc="how the task of an item is inferred if it is unknown: from the item's own profile, or from the mean profile of the "
                "graph in which it is queried",
                effect="graph: correct if each task is queried in a separate graph, and the same guess for all items of a shared graph",
            ),
            Hyperparameter(
                name="steps",
                default=3,
                minimum=0,
                doc="number k of smoothing steps in profiles",
                effect="more: profiles depend on more of the neighbourhood and less on the item",
            ),
            Hyperparameter(
                name="share",
                default=1.0,
                above=0,
                doc="epochs of pre-training, as a share of the protocol's",
            ),
        ),
    ),
)
