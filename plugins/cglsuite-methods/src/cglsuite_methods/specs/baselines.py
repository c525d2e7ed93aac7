"""Baselines: fine-tuning and joint training, the two bounds that methods are read against, random replay, and evolving weights."""

from __future__ import annotations

from cglsuite import Hyperparameter, MethodSpec
from cglsuite_methods.specs.shared import LEVELS, NEIGHBOURHOOD

__all__ = ["BASELINES"]

_EVERYWHERE = ("task-il", "class-il", "domain-il", "time-il", "task-free")

BASELINES = (
    MethodSpec(
        name="bare",
        levels=LEVELS,
        summary="fine-tuning on each task in turn; the lower bound",
        citation="McCloskey & Cohen, Catastrophic Interference in Connectionist Networks: The Sequential Learning Problem, 1989",
        factory="cglsuite:Method",
        category="baseline",
        settings=_EVERYWHERE,
    ),
    MethodSpec(
        name="joint",
        levels=LEVELS,
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
            Hyperparameter(
                name="warm_start",
                default=False,
                doc="as benchmarked (CGLB's graph level): go on with the model of the tasks before instead of a fresh one",
                effect="true: more passes over the data than any other method makes, so that where epochs are few the bound is higher",
            ),
        ),
    ),
    MethodSpec(
        name="replay",
        levels=LEVELS,
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
            NEIGHBOURHOOD,
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
)
