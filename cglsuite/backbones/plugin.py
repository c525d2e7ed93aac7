"""The plugins that register the built-in backbones and performance measures."""

from __future__ import annotations

from cglsuite import BackboneSpec, Hyperparameter, hookimpl
from cglsuite.backbones import graph_hyperparameters as graphs
from cglsuite.protocols.begin import GRAPH_NETWORK
from cglsuite.specs import CORE_ENCODERS, CORE_MEASURES, LEVELS, Citation, EncoderSpec, MeasureSpec

_NODES = ("NC", "NR")

_HEAD = Hyperparameter(
    name="head",
    default="linear",
    choices=("linear", "convolution"),
    doc="a linear head after the convolutions, or the last convolution as the head",
    effect="convolution: outputs mix in the neighbours' classes; linear: outputs depend on the item's own embedding",
)
_LAYERS = Hyperparameter(
    name="layers",
    default=2,
    minimum=1,
    maximum=1_000,
    doc="number of graph convolutions, including a convolutional head",
    effect="more layers: a larger receptive field and more smoothing",
)
_DROPOUT = Hyperparameter(
    name="dropout",
    default=0.0,
    minimum=0,
    maximum=0.99,
    doc="dropout after every hidden layer",
    effect="more dropout: less overfitting to the few labels of a task, and usually less forgetting",
)
_BATCH_NORM = Hyperparameter(
    name="batch_norm",
    default=False,
    doc="batch normalisation over all nodes of the message graph, before the activation",
    effect="true: faster training, but the running statistics follow the latest task and shift the embeddings of earlier tasks' items",
)

_INIT = Hyperparameter(
    name="init",
    default="glorot",
    choices=("glorot", "linear", "xavier-normal", "fan-in-normal"),
    doc="initial weights of a map of i inputs and o outputs: glorot = uniform within √(6/(i+o)), linear = torch's default for linear maps "
    "(uniform within 1/√i), xavier-normal = N(0, 4/(i+o)), fan-in-normal = N(0, 1/i)",
    effect="the scale of the first outputs, and so how far a task moves the weights: linear is about 2.4 times smaller than glorot where "
    "inputs far outnumber outputs. Performance and forgetting shift by several points, and methods can change places",
    implicit=True,
)


_EDGE_WEIGHT = Hyperparameter(
    name="edge_weight",
    default=False,
    doc="message graphs use the edge weights of your own node data (array edge_weight, column weight of edges.csv), as PyG's gcn_norm does",
    effect="true: a neighbour counts by its weight, and edges of weight 0 pass no message; the scale of the weights matters beside the "
    "self-loops of weight 1. Methods that sample or store neighbours, or use attention, do not apply",
    implicit=True,
)


def _width(default: int) -> Hyperparameter:
    return Hyperparameter(
        name="width",
        default=default,
        minimum=1,
        maximum=65_536,
        doc="hidden units per layer (per head for GAT)",
        effect="more units: more capacity to separate tasks, more time and memory",
    )


_GINE = BackboneSpec(
    name="gine",
    summary="graph isomorphism network with edge features in its messages (GIN without them) and an MLP per layer",
    citation=Citation(authors=("Hu", "others"), title="Strategies for Pre-training Graph Neural Networks", year=2020, booktitle="ICLR"),
    factory="cglsuite.backbones.graphwise:gine",
    levels=graphs.WHOLE_GRAPHS,
    hyperparameters=(
        graphs.layers(5),
        graphs.width(300),
        Hyperparameter(
            name="eps",
            default=0.0,
            doc="ε, the extra weight of a node's own embedding",
            effect="larger: a node differs more from its neighbours; -1 ignores its own embedding",
        ),
        graphs.BATCH_NORM,
        graphs.DROPOUT,
        graphs.MEAN_READOUT,
        graphs.predictor_layers(0),
        graphs.EDGE_FEATURES,
    ),
)
_GRAPH_GCN = BackboneSpec(
    name="graph-gcn",
    summary="residual graph convolutions, a readout per graph and a small predictor",
    citation=Citation(
        authors=("Zhang", "Song", "Tao"),
        title="CGLB: Benchmark Tasks for Continual Graph Learning",
        year=2022,
        booktitle="NeurIPS Datasets and Benchmarks",
        note="graph level",
    ),
    factory="cglsuite.backbones.graphwise:graph_gcn",
    levels=graphs.WHOLE_GRAPHS,
    hyperparameters=(
        graphs.layers(2),
        Hyperparameter(
            name="width",
            default=64,
            minimum=1,
            maximum=65_536,
            doc="hidden units per convolution; the predictor keeps its own width",
            effect="more units: more capacity to separate tasks, more time and memory",
        ),
        Hyperparameter(
            name="normalisation",
            default="none",
            choices=("symmetric", "none"),
            doc="symmetric: D^-1/2 (A+I) D^-1/2; none: A+I",
            effect="none: embeddings grow with the degree, so nodes with many neighbours dominate the readout",
        ),
        Hyperparameter(
            name="residual",
            default=True,
            doc="adds a linear map and ReLU of each layer's input to its output",
            effect="true: a node's own embedding survives deep stacks, for about 1.5 times the time; false: layers smooth more",
        ),
        Hyperparameter(
            name="batch_norm",
            default=True,
            doc="batch normalisation over all nodes of the batch, after activation and residual (the predictor always has its own)",
            effect="true: faster training, but the running statistics follow the latest task and shift embeddings of earlier tasks' graphs",
        ),
        Hyperparameter(
            name="dropout",
            default=0.0,
            minimum=0,
            maximum=0.99,
            doc="dropout after every convolution and before the predictor",
            effect="more dropout: less overfitting to a task's graphs, and usually less forgetting",
        ),
        Hyperparameter(
            name="readout",
            default="weighted-sum-and-max",
            choices=graphs.READOUTS,
            doc="how to pool a graph's nodes: a sum (optionally weighted by a learnt sigmoid gate) joined with the maximum, or the mean",
            effect=graphs.READOUT_EFFECT,
        ),
        Hyperparameter(
            name="predictor_width",
            default=64,
            minimum=0,
            maximum=65_536,
            doc="units of the hidden layer between readout and outputs; 0 = no hidden layer",
            effect="a hidden layer separates classes better, but all tasks share it; without one, the head reads the readout directly",
        ),
    ),
)


_PYG = BackboneSpec(
    name="pyg",
    summary="a stack of one of PyG's stock convolutions, for items of every level",
    citation=Citation(
        authors=("Fey", "Lenssen"), title="Fast Graph Representation Learning with PyTorch Geometric", year=2019, booktitle="ICLR Workshop"
    ),
    factory="cglsuite.backbones.stock:pyg",
    levels=LEVELS,
    hyperparameters=(
        Hyperparameter(
            name="convolution",
            default="sage",
            choices=("sage", "gcn", "gat", "gatv2", "gin", "transformer", "graph"),
            doc="SAGEConv, GCNConv, GATConv, GATv2Conv, GINConv (two-layer MLP), TransformerConv or GraphConv of torch_geometric.nn",
            effect="another way to aggregate neighbours: attention can ignore them, sums grow with the degree",
        ),
        _LAYERS,
        _width(64),
        Hyperparameter(name="heads", default=4, minimum=1, maximum=1_000, doc="attention heads, where there are any; they share the width"),
        _DROPOUT,
    ),
)


_LINK_GCN = BackboneSpec(
    name="link-gcn",
    summary="graph convolutions over the nodes, the product of a link's two ends and a small predictor",
    citation=Citation(
        authors=("Ko", "others"),
        title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
        year=2025,
        journal="ACM TIST 16(1)",
    ),
    factory="cglsuite.backbones.linkwise:link_gcn",
    levels=("LC", "LP"),
    hyperparameters=(
        Hyperparameter(
            name="layers",
            default=3,
            minimum=1,
            maximum=1_000,
            doc="graph convolutions of the encoder",
            effect="more layers: a larger receptive field around both ends, and more similar nodes",
        ),
        Hyperparameter(
            name="width",
            default=256,
            minimum=1,
            maximum=65_536,
            doc="hidden units per convolution, and of the product of the two ends",
            effect="more units: more capacity to separate tasks, more time and memory",
        ),
        Hyperparameter(
            name="normalisation",
            default="symmetric",
            choices=("symmetric", "none"),
            doc="symmetric: D^-1/2 (A+I) D^-1/2; none: A+I",
            effect="none: embeddings grow with the degree, so links between hubs score high regardless of their features",
        ),
        Hyperparameter(
            name="bias",
            default=False,
            doc="bias in the convolutions",
            effect="true: one more vector per layer that all tasks share; no effect with batch normalisation, which cancels it",
        ),
        Hyperparameter(
            name="batch_norm",
            default=True,
            doc="batch normalisation over all nodes of the message graph, before the activation",
            effect="true: faster training, but the running statistics follow the latest task's graph and shift the embeddings of all nodes",
        ),
        Hyperparameter(
            name="dropout",
            default=0.0,
            minimum=0,
            maximum=0.99,
            doc="dropout after every convolution",
            effect="more dropout: less overfitting to a task's links, and noise in both factors of the product",
        ),
        Hyperparameter(
            name="input_dropout",
            default=0.0,
            minimum=0,
            maximum=0.99,
            doc="dropout on the input features",
            effect="more dropout: less reliance on single features, which helps when they are many and sparse",
        ),
        Hyperparameter(
            name="predictor_layers",
            default=3,
            minimum=1,
            maximum=1_000,
            doc="linear layers from the product to the outputs; the last one is the head",
            effect="1: the head reads the product directly; more layers separate classes better, but all tasks share them",
        ),
        Hyperparameter(
            name="predictor_width",
            default=256,
            minimum=1,
            maximum=65_536,
            doc="hidden units of the predictor; unused with one layer",
            effect="more units: more capacity between product and outputs, more time per link",
        ),
        Hyperparameter(
            name="predictor_dropout",
            default=0.0,
            minimum=0,
            maximum=0.99,
            doc="dropout after every hidden layer of the predictor",
            effect="more dropout: less overfitting to a task's links, and usually less forgetting",
        ),
    ),
)


_SGC = BackboneSpec(
    name="sgc",
    summary="softmax regression on features that were propagated beforehand",
    citation=Citation(authors=("Wu", "others"), title="Simplifying Graph Convolutional Networks", year=2019, booktitle="ICML"),
    factory="cglsuite.backbones.sgc:SGC",
    levels=(*_NODES, *graphs.WHOLE_GRAPHS),
    hyperparameters=(
        Hyperparameter(
            name="hops",
            default=2,
            minimum=0,
            maximum=1_000,
            doc="k of S^kX, with S = D^-1/2 (A + I) D^-1/2",
            effect="more hops: a larger receptive field and more smoothing; 0: no graph",
        ),
        Hyperparameter(
            name="normalisation",
            default="none",
            choices=("none", "unit"),
            doc="rows of S^kX as they are, or scaled to length 1",
            effect="unit: items count alike whatever their number of words; the learning rate needs tuning again",
        ),
    ),
)


@hookimpl
def cglsuite_backbones() -> list[BackboneSpec]:
    """Register GCN, GAT, GIN and SGC at node level, GCN at link level, and GCN and GIN with edge features at graph level."""
    return [
        BackboneSpec(
            name="gcn",
            summary="graph convolutional network, with symmetric normalisation or plain sums",
            citation=Citation(
                authors=("Kipf", "Welling"),
                title="Semi-Supervised Classification with Graph Convolutional Networks",
                year=2017,
                booktitle="ICLR",
            ),
            factory="cglsuite.backbones.convolutional:gcn",
            levels=_NODES,
            hyperparameters=(
                _LAYERS,
                _width(256),
                Hyperparameter(
                    name="normalisation",
                    default="symmetric",
                    choices=("symmetric", "none"),
                    doc="symmetric: D^-1/2 (A+I) D^-1/2; none: A+I",
                    effect="none: embeddings grow with the degree, hubs dominate, and the learning rate needs tuning again",
                ),
                Hyperparameter(
                    name="bias",
                    default=True,
                    doc="bias in the convolutions",
                    effect="true: one more vector per layer that all tasks share; no effect with batch normalisation, which cancels it",
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
                    effect="more dropout: less reliance on single features, which helps when they are many and sparse",
                ),
                _HEAD,
                _INIT,
                _EDGE_WEIGHT,
            ),
        ),
        BackboneSpec(
            name="gat",
            summary="graph attention network",
            citation=Citation(authors=("Veličković", "others"), title="Graph Attention Networks", year=2018, booktitle="ICLR"),
            factory="cglsuite.backbones.convolutional:gat",
            levels=_NODES,
            hyperparameters=(
                _LAYERS,
                _width(32),
                Hyperparameter(name="heads", default=8, minimum=1, maximum=1_000, doc="attention heads"),
                _DROPOUT,
                Hyperparameter(name="attention_dropout", default=0.0, minimum=0, maximum=0.99, doc="dropout on attention weights"),
                _HEAD,
                _INIT,
            ),
        ),
        BackboneSpec(
            name="gin",
            summary="graph isomorphism network with one linear layer per convolution",
            citation=Citation(authors=("Xu", "others"), title="How Powerful are Graph Neural Networks?", year=2019, booktitle="ICLR"),
            factory="cglsuite.backbones.convolutional:gin",
            levels=_NODES,
            hyperparameters=(
                _LAYERS,
                _width(256),
                Hyperparameter(name="eps", default=0.0, doc="ε, the extra weight of a node's own embedding"),
                _BATCH_NORM,
                _DROPOUT,
                _HEAD,
                _INIT,
                _EDGE_WEIGHT,
            ),
        ),
        _SGC,
        _LINK_GCN,
        _PYG,
        _GRAPH_GCN,
        GRAPH_NETWORK,
        _GINE,
    ]


@hookimpl
def cglsuite_measures() -> tuple[MeasureSpec, ...]:
    """Register the performance measures: accuracy, average precision, ROC-AUC, Hits@K, and errors of real targets."""
    return CORE_MEASURES


@hookimpl
def cglsuite_encoders() -> tuple[EncoderSpec, ...]:
    """Register the encoders of texts that need no language model: TF-IDF, hashed words, and random numbers as a control."""
    return CORE_ENCODERS
