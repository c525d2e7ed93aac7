"""The backbones that come with the core, as a plugin."""

from __future__ import annotations

from cglsuite import BackboneSpec, Hyperparameter, hookimpl

_HEAD = Hyperparameter(
    name="head",
    default="linear",
    choices=("linear", "convolution"),
    doc="a linear head after the convolutions, or the last convolution as head",
    effect="convolution: outputs are averaged over neighbours, whose classes show in them; linear: an item's own state decides",
)
_LAYERS = Hyperparameter(
    name="layers",
    default=2,
    minimum=1,
    doc="graph convolutions, a convolutional head included",
    effect="more layers see further and smooth more",
)
_DROPOUT = Hyperparameter(
    name="dropout",
    default=0.0,
    minimum=0,
    maximum=0.99,
    doc="dropout after every hidden layer",
    effect="more dropout: less overfitting to the few labels of a task, and usually less of the earlier ones overwritten",
)
_BATCH_NORM = Hyperparameter(
    name="batch_norm",
    default=False,
    doc="batch normalisation over all nodes of the message graph, before the activation",
    effect="true: faster training, but the running statistics follow the latest task and shift the states of earlier tasks' items",
)


def _width(default: int) -> Hyperparameter:
    return Hyperparameter(
        name="width",
        default=default,
        minimum=1,
        doc="hidden units per layer (per head for GAT)",
        effect="more units: more room to keep several tasks apart, more time and memory",
    )


_GRAPH_GCN = BackboneSpec(
    name="graph-gcn",
    summary="residual graph convolutions over the nodes, a readout per graph, a small predictor",
    citation="Zhang et al., CGLB: Benchmark Tasks for Continual Graph Learning, NeurIPS 2022 (graph level)",
    factory="cglsuite.backbones.graphwise:graph_gcn",
    levels=("GC",),
    hyperparameters=(
        Hyperparameter(
            name="layers",
            default=2,
            minimum=1,
            doc="graph convolutions",
            effect="more layers see further within a graph, and make its nodes more alike",
        ),
        Hyperparameter(
            name="width",
            default=64,
            minimum=1,
            doc="hidden units per convolution; the predictor keeps its own width",
            effect="more units: more room to keep several tasks apart, more time and memory",
        ),
        Hyperparameter(
            name="normalisation",
            default="none",
            choices=("symmetric", "none"),
            doc="symmetric: D^-1/2 (A+I) D^-1/2; none: A+I",
            effect="none: states grow with the degree, so that nodes with many neighbours weigh more in the readout",
        ),
        Hyperparameter(
            name="residual",
            default=True,
            doc="adds a linear map and ReLU of each layer's input to its output",
            effect="true: a node's own state survives deep stacks, for about half as much time again; false: layers smooth more",
        ),
        Hyperparameter(
            name="batch_norm",
            default=True,
            doc="batch normalisation over all nodes of the batch, after activation and residual (the predictor's own is always there)",
            effect="true: faster training, but the running statistics follow the latest task and shift the states of earlier tasks' graphs",
        ),
        Hyperparameter(
            name="dropout",
            default=0.0,
            minimum=0,
            maximum=0.99,
            doc="dropout after every convolution and before the predictor",
            effect="more dropout: less overfitting to a task's graphs, and usually less of the earlier tasks overwritten",
        ),
        Hyperparameter(
            name="readout",
            default="weighted-sum-and-max",
            choices=("weighted-sum-and-max", "sum-and-max", "mean"),
            doc="how a graph's nodes become one vector: a sum (weighted by a learnt sigmoid gate, or not) beside the maximum, or the mean",
            effect="sums grow with a graph and tell sizes apart, a mean does not; the gate is one more thing that a task overwrites",
        ),
        Hyperparameter(
            name="predictor_width",
            default=64,
            minimum=0,
            doc="units of the hidden layer between readout and outputs; 0 = no hidden layer",
            effect="a hidden layer separates more, and is shared by all tasks; without one, outputs read the readout alone",
        ),
    ),
)


@hookimpl
def cglsuite_backbones() -> list[BackboneSpec]:
    """GCN, GAT and GIN for node-level problems, GCN for graph-level ones."""
    return [
        BackboneSpec(
            name="gcn",
            summary="graph convolutional network, symmetric normalisation or plain sums",
            citation="Kipf & Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017",
            factory="cglsuite.backbones.convolutional:gcn",
            hyperparameters=(
                _LAYERS,
                _width(256),
                Hyperparameter(
                    name="normalisation",
                    default="symmetric",
                    choices=("symmetric", "none"),
                    doc="symmetric: D^-1/2 (A+I) D^-1/2; none: A+I",
                    effect="none: states grow with the degree, hubs dominate, and the best learning rate is another",
                ),
                Hyperparameter(
                    name="bias",
                    default=True,
                    doc="bias in the convolutions",
                    effect="true: one more vector per layer that all tasks share; no effect under batch normalisation, which removes it",
                ),
                _BATCH_NORM,
                _DROPOUT,
                Hyperparameter(
                    name="input_dropout",
                    default=0.0,
                    kind=float,
                    optional=True,
                    minimum=0,
                    maximum=0.99,
                    doc="dropout on the input features; none = the same as dropout",
                    effect="more of it: less reliance on single features, which helps where they are many and sparse",
                ),
                _HEAD,
            ),
        ),
        BackboneSpec(
            name="gat",
            summary="graph attention network",
            citation="Veličković et al., Graph Attention Networks, ICLR 2018",
            factory="cglsuite.backbones.convolutional:gat",
            hyperparameters=(
                _LAYERS,
                _width(32),
                Hyperparameter(name="heads", default=8, minimum=1, doc="attention heads"),
                _DROPOUT,
                Hyperparameter(name="attention_dropout", default=0.0, minimum=0, maximum=0.99, doc="dropout on attention weights"),
                _HEAD,
            ),
        ),
        BackboneSpec(
            name="gin",
            summary="graph isomorphism network with one linear map per layer",
            citation="Xu et al., How Powerful are Graph Neural Networks?, ICLR 2019",
            factory="cglsuite.backbones.convolutional:gin",
            hyperparameters=(
                _LAYERS,
                _width(256),
                Hyperparameter(name="eps", default=0.0, doc="ε, the extra weight of a node's own state"),
                _BATCH_NORM,
                _DROPOUT,
                _HEAD,
            ),
        ),
        _GRAPH_GCN,
    ]
