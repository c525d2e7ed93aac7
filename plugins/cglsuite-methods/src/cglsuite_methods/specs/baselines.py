"""Baselines: fine-tuning (lower bound), joint training (upper bound), random replay and EvolveGCN."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import Citation
from cglsuite_methods.specs.shared import LEVELS, NEIGHBOURHOOD

_EVERYWHERE = ("task-il", "class-il", "domain-il", "time-il", "task-free")

BASELINES = (
    MethodSpec(
        name="bare",
        levels=LEVELS,
        summary="fine-tuning on each task in turn; the lower bound",
        citation=Citation(
            authors=("McCloskey", "Cohen"),
            title="Catastrophic Interference in Connectionist Networks: The Sequential Learning Problem",
            year=1989,
            booktitle="Psychology of Learning and Motivation 24",
        ),
        factory="cglsuite:Method",
        category="baseline",
        settings=_EVERYWHERE,
    ),
    MethodSpec(
        name="joint",
        levels=LEVELS,
        summary="a fresh model on the union of all tasks so far; bounds what its network and recipe reach",
        citation=Citation(authors=("Caruana",), title="Multitask Learning", year=1997, journal="Machine Learning 28"),
        factory="cglsuite_methods.baselines.joint:Joint",
        category="reference",
        settings=_EVERYWHERE,
        needs=("past-views",),
        hyperparameters=(
            Hyperparameter(
                name="offline_epochs",
                default=100,
                minimum=1,
                doc="number of epochs over all training items of a task-free stream; other settings use training.epochs",
            ),
            Hyperparameter(
                name="offline_batch",
                default=2000,
                kind=int,
                optional=True,
                minimum=1,
                doc="batch size in these epochs; none = full batch (DRIFT: 2000); other settings use training.batch_size",
            ),
            Hyperparameter(
                name="only_last",
                default=False,
                doc="train once on all tasks, instead of after each task",
                effect="true: cheaper, but every row of the matrix except the last is NaN, so intransigence is undefined",
            ),
            Hyperparameter(
                name="warm_start",
                default=False,
                doc="as in CGLB's graph-level code: continue from the previous tasks' weights instead of a fresh model",
                effect="true: more epochs over the data than for any other method, which raises the bound if there are few epochs",
            ),
        ),
    ),
    MethodSpec(
        name="joint-budgeted",
        levels=LEVELS,
        summary="joint training with the compute of fine-tuning: one model, and as many passes over items as the stream's tasks have",
        citation=Citation(
            authors=("Prabhu", "others"),
            title="Computationally Budgeted Continual Learning: What Does Matter?",
            year=2023,
            booktitle="CVPR",
        ),
        factory="cglsuite_methods.baselines.joint_budgeted:JointBudgeted",
        category="reference",
        needs=("past-views", "task-boundaries", "epochs"),
    ),
    MethodSpec(
        name="replay",
        elsewhere=("er",),
        levels=LEVELS,
        summary="trains on a random sample of every past task along with the current one",
        citation=Citation(
            authors=("Robins",), title="Catastrophic Forgetting, Rehearsal and Pseudorehearsal", year=1995, journal="Connection Science 7"
        ),
        factory="cglsuite_methods.baselines.replay:Replay",
        category="baseline",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="fraction",
                default=0.1,
                minimum=0,
                maximum=1,
                doc="share of each task's training items to store, at least one item; the skeleton benchmark uses 0.05, 0.1 and 0.2",
            ),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="gdoc",
        levels=("NC", "LC", "GC"),
        labels=("single",),
        summary="one-vs-rest classifiers that reject items of unknown classes by a threshold per class, with replay (gDOC)",
        citation=(
            Citation(
                authors=("Galke", "Vagliano", "Franke", "Zielke", "Hoffmann", "Scherp"),
                title="Lifelong Learning on Evolving Graphs Under the Constraints of Imbalanced Classes and New Classes",
                year=2023,
                journal="Neural Networks 164",
            ),
            Citation(authors=("Shu", "Xu", "Liu"), title="DOC: Deep Open Classification of Text Documents", year=2017, booktitle="EMNLP"),
        ),
        factory="cglsuite_methods.baselines.gdoc:GDOC",
        category="baseline",
        settings=("class-il",),
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="alpha",
                default=3.0,
                minimum=0,
                doc="α of the threshold max(0.5, 1 - α s), with the standard deviation s of a class's probabilities, mirrored about 1",
                effect="a smaller α rejects more items, known and unknown",
            ),
            Hyperparameter(
                name="weighted",
                default=True,
                doc="weight positives by negatives / positives of their class; false = DOC",
                effect="without weights, rare classes get low probabilities, so their items are rejected",
            ),
            Hyperparameter(
                name="fraction",
                default=0.1,
                minimum=0,
                maximum=1,
                doc="share of each task's training items to keep, at least one item; the paper trains on all items of the last time steps",
            ),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="frozen-ncm",
        levels=("NC", "LC", "GC"),
        labels=("single",),
        summary="the nearest class mean under a random network that is never trained; what a learnt representation must beat",
        citation=(
            Citation(
                authors=("Rebuffi", "others"),
                title="iCaRL: Incremental Classifier and Representation Learning",
                year=2017,
                booktitle="CVPR",
                note="the classifier",
            ),
            Citation(
                authors=("Janson", "others"),
                title="A Simple Baseline that Questions the Use of Pretrained-Models in Continual Learning",
                year=2022,
                arxiv="2210.04428",
            ),
        ),
        factory="cglsuite_methods.baselines.frozen_ncm:FrozenNCM",
        category="reference",
        settings=_EVERYWHERE,
    ),
    MethodSpec(
        name="task-guesser",
        levels=("NC",),
        labels=("single",),
        summary="guesses the task of a query from degrees and answers among its classes; what the structure of tasks gives away",
        citation=Citation(
            authors=("Cheng", "Li", "Li", "others"),
            title="Can LLMs Alleviate Catastrophic Forgetting in Graph Continual Learning? A Systematic Study",
            year=2025,
            arxiv="2505.18697",
            note="tasks that queries reveal",
        ),
        factory="cglsuite_methods.baselines.task_guesser:TaskGuesser",
        category="reference",
        settings=("class-il",),
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="evidence",
                default="graph",
                choices=("graph", "item"),
                doc="what the guess is based on: the mean view of the graph in which a query arrives, or the item's own view",
                effect="graph: correct if each task is queried in a separate graph; item: uses what the neighbourhood of a node reveals",
            ),
            Hyperparameter(
                name="hops",
                default=2,
                minimum=0,
                doc="radius over which degrees are averaged, in hops",
                effect="0: only the degree of the node itself",
            ),
        ),
    ),
    MethodSpec(
        name="evolve-gcn",
        levels=("NC", "NR", "LC", "LP"),
        summary="a recurrent cell evolves the convolution weights from task to task; a dynamic-graph baseline",
        citation=Citation(
            authors=("Pareja", "others"),
            title="EvolveGCN: Evolving Graph Convolutional Networks for Dynamic Graphs",
            year=2020,
            booktitle="AAAI",
        ),
        factory="cglsuite_methods.baselines.evolve_gcn:EvolveGCN",
        category="dynamic",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="start",
                default="previous",
                choices=("previous", "drawn"),
                doc="the weights that a task starts from: those at the end of the previous task (W_0 is learnt in the first), or (as "
                "implemented by the library version that AGALE requires) W_0 as drawn, in every task",
                effect="drawn: weights do not evolve from task to task, and all tasks train one cell per layer: fine-tuning of "
                "convolutions parametrised by a cell",
                implicit=True,
            ),
        ),
    ),
)
