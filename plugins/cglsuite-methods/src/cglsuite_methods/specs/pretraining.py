"""Self-supervised pre-training."""

from __future__ import annotations

from cglsuite import Hyperparameter, PretrainingSpec
from cglsuite.specs import Citation

_ITEMS = Hyperparameter(
    name="items", default=2048, minimum=2, doc="maximum number of items contrasted per step; memory grows with its square"
)

PRETRAININGS = (
    PretrainingSpec(
        name="dgi",
        summary="tells the items of the graph from those of a corrupted one by a summary of the graph",
        citation=Citation(
            authors=("Veličković", "Fedus", "Hamilton", "Liò", "Bengio", "Hjelm"), title="Deep Graph Infomax", year=2019, booktitle="ICLR"
        ),
        factory="cglsuite_methods.pretraining.dgi:DeepGraphInfomax",
        levels=("NC", "NR", "LC", "LP"),
    ),
    PretrainingSpec(
        name="graphcl",
        summary="contrasts augmented views of an item with views of others",
        citation=Citation(
            authors=("You", "Chen", "Sui", "Chen", "Wang", "Shen"),
            title="Graph Contrastive Learning with Augmentations",
            year=2020,
            booktitle="NeurIPS",
        ),
        factory="cglsuite_methods.pretraining.graphcl:GraphContrast",
        hyperparameters=(
            Hyperparameter(
                name="temperature",
                default=0.2,
                above=0,
                doc="temperature that divides similarities; the authors' code uses 0.2 for unsupervised and 0.1 for transfer learning",
            ),
            Hyperparameter(name="augmentation", default="subgraph", choices=("subgraph", "mask"), doc="how views are made"),
            Hyperparameter(name="keep", default=0.8, above=0, maximum=1, doc="share of the nodes that a view keeps"),
            _ITEMS,
            Hyperparameter(
                name="as_begin",
                default=False,
                doc="as implemented by BeGin: nodes and links are contrasted through the summaries of two subgraphs, graphs against the "
                "original",
            ),
        ),
    ),
    PretrainingSpec(
        name="grace",
        summary="contrasts each item with itself and all others in two views of the graph that lack edges and features",
        citation=Citation(
            authors=("Zhu", "Xu", "Yu", "Liu", "Wu", "Wang"),
            title="Deep Graph Contrastive Representation Learning",
            year=2020,
            booktitle="ICML Workshop on Graph Representation Learning and Beyond",
            arxiv="2006.04131",
        ),
        factory="cglsuite_methods.pretraining.grace:GRACE",
        levels=("NC", "NR", "LC", "LP"),
        hyperparameters=(
            Hyperparameter(name="temperature", default=0.5, above=0, doc="temperature that divides similarities"),
            Hyperparameter(
                name="edges",
                default=0.2,
                minimum=0,
                maximum=0.99,
                doc="probability that a view drops an edge",
                effect="larger: views differ more, so embeddings depend less on single neighbours",
            ),
            Hyperparameter(
                name="features",
                default=0.3,
                minimum=0,
                maximum=0.99,
                doc="probability that a view drops a feature, for all nodes at once",
                effect="larger: views differ more, so embeddings depend less on single features",
            ),
            _ITEMS,
            Hyperparameter(
                name="as_tpp", default=False, doc="as in the code of TPP: one view is the graph itself, and the projection is twice as wide"
            ),
        ),
    ),
    PretrainingSpec(
        name="infograph",
        summary="the nodes of a graph tell which graph they are from",
        citation=Citation(
            authors=("Sun", "Hoffmann", "Verma", "Tang"),
            title="InfoGraph: Unsupervised and Semi-supervised Graph-Level Representation Learning via Mutual Information Maximization",
            year=2020,
            booktitle="ICLR",
        ),
        factory="cglsuite_methods.pretraining.infograph:InfoGraph",
        levels=("GC", "GR"),
        hyperparameters=(
            Hyperparameter(name="as_begin", default=False, doc="as implemented by BeGin: only nodes go through a separate network"),
        ),
    ),
    PretrainingSpec(
        name="lightgcl",
        summary="contrasts each node heard through the graph with the same heard through a low-rank copy",
        citation=Citation(
            authors=("Cai", "Huang", "Xia", "Ren"),
            title="LightGCL: Simple Yet Effective Graph Contrastive Learning for Recommendation",
            year=2023,
            booktitle="ICLR",
        ),
        factory="cglsuite_methods.pretraining.lightgcl:LightContrast",
        levels=("LC", "LP"),
        hyperparameters=(
            Hyperparameter(name="rank", default=5, minimum=1, doc="rank of the low-rank copy of the graph"),
            Hyperparameter(name="temperature", default=0.2, above=0, doc="temperature that divides similarities (BeGin: 1)"),
            _ITEMS,
            Hyperparameter(
                name="recommend", default=0.0, minimum=0, doc="weight of the loss that ranks links above random pairs (paper: 1)"
            ),
        ),
    ),
)
