"""Hyperparameters shared by the backbones for whole graphs. Importing this module does not import torch."""

from __future__ import annotations

from cglsuite.specs import Hyperparameter

WHOLE_GRAPHS = ("GC", "GR")
READOUTS = ("weighted-sum-and-max", "sum-and-max", "mean")
READOUT_EFFECT = "sums grow with graph size and so encode it, a mean does not; the gate adds parameters that a new task can overwrite"
DROPOUT = Hyperparameter(
    name="dropout",
    default=0.0,
    minimum=0,
    maximum=0.99,
    doc="dropout after every convolution",
    effect="more dropout: less overfitting to a task's graphs, and usually less forgetting",
)
BATCH_NORM = Hyperparameter(
    name="batch_norm",
    default=True,
    doc="batch normalisation over all nodes of the batch, before the activation",
    effect="true: faster training, but the running statistics follow the latest task and shift embeddings of earlier tasks' graphs",
)
MEAN_READOUT = Hyperparameter(
    name="readout",
    default="mean",
    choices=READOUTS,
    doc="how to pool a graph's nodes: their mean, or a sum (optionally weighted by a learnt sigmoid gate) joined with the maximum",
    effect=READOUT_EFFECT,
)
EDGE_FEATURES = Hyperparameter(
    name="edge_features",
    default=0,
    minimum=0,
    maximum=65_536,
    doc="number of edge features in the messages: as many as the dataset's edges have, or 0 = none",
    effect="with edge features, messages depend on the kind of edge (such as the bond); without, all edges are alike and steps are faster",
)


def layers(default: int) -> Hyperparameter:
    """Declare the number of graph convolutions."""
    return Hyperparameter(
        name="layers",
        default=default,
        minimum=1,
        maximum=1_000,
        doc="graph convolutions",
        effect="more layers: a larger receptive field, and more similar nodes",
    )


def width(default: int) -> Hyperparameter:
    """Declare the number of hidden units per convolution."""
    return Hyperparameter(
        name="width",
        default=default,
        minimum=1,
        maximum=65_536,
        doc="hidden units per convolution",
        effect="more units: more capacity to separate tasks, more time and memory",
    )


def predictor_layers(default: int) -> Hyperparameter:
    """Declare the number of hidden layers between the readout and the outputs."""
    return Hyperparameter(
        name="predictor_layers",
        default=default,
        minimum=0,
        maximum=1_000,
        doc="hidden layers between readout and outputs, each half as wide as the one before; 0 = the head reads the readout directly",
        effect="hidden layers separate classes better, but all tasks share them",
    )
