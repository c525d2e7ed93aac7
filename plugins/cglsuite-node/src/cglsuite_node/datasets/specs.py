"""Dataset specs: names, sizes, sources and licences. Does not import torch; the factories named here are imported on first use."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from cglsuite.specs import Citation, DatasetSpec, Hyperparameter


class Sizes(NamedTuple):
    """Sizes that a loader checks; ``edges`` counts directed edges without duplicates and is ``None`` if unknown."""

    nodes: int
    edges: int | None
    features: int
    classes: int

    def __str__(self) -> str:
        edges = "" if self.edges is None else f"{self.edges:,} directed edges, "
        return f"{self.nodes:,} nodes, {edges}{self.features:,} features, {self.classes} classes"


SIZES = {
    "cora": Sizes(2_708, 10_556, 1_433, 7),
    "citeseer": Sizes(3_327, 9_104, 3_703, 6),
    "pubmed": Sizes(19_717, 88_648, 500, 3),
    "corafull": Sizes(19_793, 126_842, 8_710, 70),
    "citationfull-cora-ml": Sizes(2_995, 16_316, 2_879, 7),
    "citationfull-citeseer": Sizes(4_230, 10_674, 602, 6),
    "citationfull-dblp": Sizes(17_716, 105_734, 1_639, 4),
    "amazon-clothing20": Sizes(9_360, 58_154, 9_034, 20),
    "ogbn-arxiv": Sizes(169_343, 1_166_243, 128, 40),
    "ogbn-products": Sizes(2_449_029, None, 100, 47),
    "ogbn-mag": Sizes(736_389, None, 128, 349),
    "ogbn-proteins": Sizes(132_534, None, 8, 112),
    "reddit": Sizes(232_965, 114_615_892, 602, 41),
    "twitch-gamers": Sizes(168_114, None, 4, 2),
    "twitch-musae": Sizes(36_890, 985_150, 3_170, 2),
    "pcg": Sizes(3_233, 74_702, 32, 15),
    "humango": Sizes(3_106, 32_486, 32, 14),
    "dblp-multilabel": Sizes(28_702, 135_167, 33, 4),
    "blogcatalog": Sizes(10_312, 667_966, 33, 39),
    "yelp": Sizes(716_847, None, 300, 100),
}

DEBIAN_SIZES = Sizes(21_520, 133_868, 5_000, 37)
"""The sizes of debian-packages, which is not in ``SIZES``: that table is part of the keys of all cells on the datasets in it."""

#: The languages of Twitch gamers in the order of BeGin's domain numbers.
TWITCH_LANGUAGES = (
    *("CS", "DA", "DE", "EN", "ES", "FI", "FR", "HU", "IT", "JA", "KO", "NL", "NO", "PL", "PT", "RU", "SV", "TH", "TR", "ZH"),
    "OTHER",
)
#: The graphs of MUSAE's Twitch data in the order of their domain numbers.
MUSAE_DOMAINS = ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW")
#: The three class orders that AGALE's study used; a task is two consecutive classes, an odd last class joins the last task.
AGALE_ORDERS: dict[str, tuple[tuple[int, ...], ...]] = {
    "pcg": (
        (2, 10, 5, 14, 11, 9, 3, 7, 8, 12, 6, 13, 1, 4, 0),
        (2, 8, 11, 3, 5, 14, 10, 9, 7, 6, 1, 0, 13, 4, 12),
        (3, 11, 6, 8, 10, 9, 5, 4, 13, 0, 2, 12, 14, 7, 1),
    ),
    "dblp-multilabel": ((3, 0, 1, 2), (3, 2, 1, 0), (0, 2, 1, 3)),
}

CSBM_HYPERPARAMETERS = (
    Hyperparameter(name="n_nodes", default=2_000, minimum=4, doc="number of nodes"),
    Hyperparameter(name="n_classes", default=10, minimum=1, doc="number of classes"),
    Hyperparameter(name="imbalance", default=1.0, minimum=1, doc="ratio of the largest class size to the smallest"),
    Hyperparameter(name="avg_degree", default=8.0, minimum=0, doc="directed edges per node; every edge is present in both directions"),
    Hyperparameter(name="homophily", default=0.6, minimum=0, maximum=1, doc="share of edges that join nodes of the same class"),
    Hyperparameter(
        name="features",
        default="binary",
        choices=("binary", "gaussian"),
        doc="binary = bag of words, some drawn from the vocabulary of the node's class; gaussian = class mean plus unit noise",
    ),
    Hyperparameter(name="n_features", default=500, minimum=1, doc="number of features (words, or dimensions)"),
    Hyperparameter(name="words", default=15.0, minimum=0, doc="binary features: words per node, at most half of n_features"),
    Hyperparameter(
        name="signal",
        default=0.3,
        minimum=0,
        maximum=1,
        doc="binary: share of a node's words drawn from its class's vocabulary; gaussian: size of every entry of a class mean",
    ),
    Hyperparameter(name="seed", default=0, minimum=0, doc="seed of the whole graph"),
)

GROWING_HYPERPARAMETERS = (
    Hyperparameter(name="years", default=6, minimum=1, doc="years in which nodes arrive; new classes are among them up to the middle"),
    Hyperparameter(name="domains", default=5, minimum=1, doc="number of domains; each node belongs to a random one"),
    Hyperparameter(
        name="drift",
        default=0.5,
        minimum=0,
        maximum=1,
        doc="share of nodes with the features of their class in their domain, not the first, and in the last year with its features",
    ),
    *CSBM_HYPERPARAMETERS,
)

TARGET_HYPERPARAMETERS = (
    Hyperparameter(name="n_nodes", default=2_000, minimum=4, doc="number of nodes"),
    Hyperparameter(name="years", default=6, minimum=1, doc="years in which nodes arrive"),
    Hyperparameter(name="domains", default=5, minimum=1, doc="number of domains, at most one per community"),
    Hyperparameter(
        name="drift",
        default=0.5,
        minimum=0,
        maximum=1,
        doc="size of the part of the target's coefficients that differs between domains, and of the part that grows over the years",
    ),
    Hyperparameter(
        name="communities", default=20, minimum=1, doc="groups of nodes with similar features and many edges; each belongs to one domain"
    ),
    Hyperparameter(name="avg_degree", default=8.0, minimum=0, doc="directed edges per node; every edge is present in both directions"),
    Hyperparameter(name="homophily", default=0.6, minimum=0, maximum=1, doc="share of edges that join nodes of the same community"),
    Hyperparameter(name="n_features", default=16, minimum=1, doc="number of features"),
    Hyperparameter(name="noise", default=0.1, minimum=0, doc="standard deviation of the noise of the targets"),
    Hyperparameter(name="seed", default=0, minimum=0, doc="seed of the whole graph"),
)

_EDGE_DEFAULTS = {"n_nodes": 300, "n_classes": 3, "avg_degree": 6.0, "n_features": 60, "words": 8.0, "signal": 0.6}
CSBM_EDGE_HYPERPARAMETERS = tuple(replace(h, default=_EDGE_DEFAULTS.get(h.name, h.default)) for h in CSBM_HYPERPARAMETERS)

_RECORDED = "No published checksum: the cache records the first download's SHA-256, and later downloads must match it."
_PLANETOID = Citation(
    authors=("Yang", "Cohen", "Salakhutdinov"),
    title="Revisiting Semi-Supervised Learning with Graph Embeddings",
    year=2016,
    booktitle="ICML",
    arxiv="1603.08861",
)
_CITATION_FULL = Citation(
    authors=("Bojchevski", "Günnemann"), title="Deep Gaussian Embedding of Graphs", year=2018, booktitle="ICLR", arxiv="1707.03815"
)
_OGB = Citation(
    authors=("Hu", "others"),
    title="Open Graph Benchmark: Datasets for Machine Learning on Graphs",
    year=2020,
    booktitle="NeurIPS",
    arxiv="2005.00687",
)
_MLGNC = Citation(
    authors=("Zhao", "Dong", "Hanjalic", "Khosla"),
    title="Multi-label Node Classification On Graph-Structured Data",
    year=2023,
    journal="TMLR",
    arxiv="2304.10398",
)
_CHECKED = "Checksums are known."
_STRUCTURAL = (
    "The source has no features; these are structural: one-hot of the degree in 16 powers of two, the neighbours' degrees in the same "
    "bins, local clustering"
)


def _split_source(original: str, begin: str, default: str = "original") -> Hyperparameter:
    return Hyperparameter(
        name="split_source", default=default, choices=("original", "begin"), doc=f"original = {original}; begin = BeGin's: {begin}"
    )


def _multi_label(name: str, title: str, note: str, factory: str) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=f"{title}, multi-label: {SIZES[name]}. No official split. {_CHECKED} {note}",
        citation=_MLGNC,
        factory=f"cglsuite_node.datasets.agale:{factory}",
        home="https://github.com/Tianqi-py/MLGNC",
    )


def _planetoid(name: str, title: str, note: str) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=f"{title}, citation graph with the public Planetoid split: {SIZES[name]}. {note}",
        citation=_PLANETOID,
        factory=f"cglsuite_node.datasets.planetoid:{name}",
        licence="MIT (repository); citation data: not stated",
        home="https://github.com/kimiyoung/planetoid",
    )


def _citation_full(name: str, title: str, note: str, *parameters: Hyperparameter) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=f"{title}, full citation graph: {SIZES[name]}. {note}",
        citation=_CITATION_FULL,
        factory=f"cglsuite_node.datasets.citation_full:{name.removeprefix('citationfull-').replace('-', '_')}",
        licence="MIT (repository); citation data: not stated",
        home="https://github.com/abojchevski/graph2gauss",
        hyperparameters=parameters,
    )


DATASETS: tuple[DatasetSpec, ...] = (
    DatasetSpec(
        name="synthetic-csbm",
        summary="Embedded: a contextual stochastic block model of any size; both edges and features reveal the classes. No official split.",
        citation=Citation(
            authors=("Deshpande", "Montanari", "Mossel", "Sen"),
            title="Contextual Stochastic Block Models",
            year=2018,
            booktitle="NeurIPS",
            arxiv="1807.09596",
        ),
        factory="cglsuite_node.datasets.synthetic:synthetic_csbm",
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=CSBM_HYPERPARAMETERS,
    ),
    DatasetSpec(
        name="synthetic-growing",
        summary="Embedded: a synthetic-csbm whose nodes and classes arrive over years (key year), from several domains (key domain); what "
        "classes look like drifts between years and domains. No official split.",
        citation=Citation(
            authors=("Deshpande", "Montanari", "Mossel", "Sen"),
            title="Contextual Stochastic Block Models",
            year=2018,
            booktitle="NeurIPS",
            arxiv="1807.09596",
        ),
        factory="cglsuite_node.datasets.growing:synthetic_growing",
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=GROWING_HYPERPARAMETERS,
    ),
    DatasetSpec(
        name="synthetic-node-targets",
        summary="Embedded: nodes with a real target, a function of the features around them, arrive over years (key year), from several "
        "domains (key domain); the function drifts over the years and differs between domains. No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_node.datasets.targets:synthetic_node_targets",
        levels=("NR",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=TARGET_HYPERPARAMETERS,
    ),
    DatasetSpec(
        name="synthetic-csbm-edges",
        summary="Embedded: the edges of synthetic-csbm as items of its line graph; an edge's class is the pair of communities it joins.",
        citation=Citation(
            authors=("Deshpande", "Montanari", "Mossel", "Sen"),
            title="Contextual Stochastic Block Models",
            year=2018,
            booktitle="NeurIPS",
            arxiv="1807.09596",
        ),
        factory="cglsuite_node.datasets.synthetic_edges:synthetic_csbm_edges",
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=CSBM_EDGE_HYPERPARAMETERS,
    ),
    _planetoid("cora", "Cora", "Checksums are known."),
    _planetoid("citeseer", "CiteSeer", "Checksums are known. 15 nodes have neither label nor features."),
    _planetoid("pubmed", "PubMed", _RECORDED),
    _citation_full(
        "corafull",
        "CoraFull",
        f"Official split: BeGin's, on request. {_RECORDED}",
        _split_source("none (the source has none)", "6 : 2 : 2 at random, for task-IL and class-IL"),
    ),
    _citation_full("citationfull-cora-ml", "Cora_ML", f"No official split. {_RECORDED}"),
    _citation_full("citationfull-citeseer", "CiteSeer (full)", f"No official split. {_RECORDED}"),
    _citation_full("citationfull-dblp", "DBLP", f"No official split. {_RECORDED}"),
    DatasetSpec(
        name="amazon-clothing20",
        summary="Amazon-Clothing co-purchase graph, the 20 test classes of its few-shot split: "
        f"{SIZES['amazon-clothing20']} (word counts). No official split. The checksum is known; this form cannot be downloaded.",
        citation=Citation(
            authors=("Ding", "others"),
            title="Graph Prototypical Networks for Few-shot Learning on Attributed Networks",
            year=2020,
            booktitle="CIKM",
            arxiv="2006.12739",
        ),
        factory="cglsuite_node.datasets.amazon_clothing:amazon_clothing20",
        home="https://github.com/kaize0409/GPN_Graph-Few-shot",
    ),
    DatasetSpec(
        name="ogbn-arxiv",
        summary=f"arXiv computer-science papers, citations as directed edges, key `year`, official split by time: "
        f"{SIZES['ogbn-arxiv']}. {_RECORDED}",
        citation=_OGB,
        factory="cglsuite_node.datasets.ogbn:arxiv",
        licence="ODC-BY",
        home="https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv",
        hyperparameters=(_split_source("OGB's, by time", "4 : 1 : 5 at random, for time-IL"),),
    ),
    DatasetSpec(
        name="ogbn-mag",
        summary="The papers of ogbn-mag, citations as directed edges, key `year`, official split by time: "
        f"{SIZES['ogbn-mag']}. {_RECORDED}",
        citation=_OGB,
        factory="cglsuite_node.datasets.ogbn:mag",
        licence="ODC-BY",
        home="https://ogb.stanford.edu/docs/nodeprop/#ogbn-mag",
        hyperparameters=(
            Hyperparameter(
                name="min_per_part",
                default=0,
                minimum=0,
                doc="remove classes with fewer nodes than this in any part of the official split and renumber the rest; BeGin: 10",
            ),
        ),
    ),
    DatasetSpec(
        name="ogbn-proteins",
        summary=f"Proteins of eight species, multi-label, both directions, key `domain` = species, features = mean of the edges' features, "
        f"official split by species: {SIZES['ogbn-proteins']}. {_RECORDED}",
        citation=_OGB,
        factory="cglsuite_node.datasets.ogbn:proteins",
        licence="CC0",
        home="https://ogb.stanford.edu/docs/nodeprop/#ogbn-proteins",
        hyperparameters=(_split_source("OGB's, by species", "4 : 1 : 5 at random, for domain-IL"),),
    ),
    DatasetSpec(
        name="ogbn-products",
        summary=f"Amazon co-purchases, both directions (about 124 million edges), official split by sales rank: "
        f"{SIZES['ogbn-products']}. {_RECORDED}",
        citation=_OGB,
        factory="cglsuite_node.datasets.ogbn:products",
        licence="Amazon licence (see the home page)",
        home="https://ogb.stanford.edu/docs/nodeprop/#ogbn-products",
    ),
    DatasetSpec(
        name="reddit",
        summary=f"Reddit posts joined by common commenters, official split by time: {SIZES['reddit']}. {_RECORDED}",
        citation=Citation(
            authors=("Hamilton", "Ying", "Leskovec"),
            title="Inductive Representation Learning on Large Graphs",
            year=2017,
            booktitle="NeurIPS",
            arxiv="1706.02216",
        ),
        factory="cglsuite_node.datasets.reddit:reddit",
        home="https://snap.stanford.edu/graphsage",
    ),
    DatasetSpec(
        name="twitch-gamers",
        summary="Twitch users and their mutual friendships, label = affiliate, key `domain` = one of 21 languages, official split: "
        f"BeGin's: {SIZES['twitch-gamers']}. {_RECORDED}",
        citation=Citation(
            authors=("Rozemberczki", "Sarkar"),
            title="Twitch Gamers: a Dataset for Evaluating Proximity Preserving and Structural Role-based Node Embeddings",
            year=2021,
            arxiv="2101.03091",
        ),
        factory="cglsuite_node.datasets.twitch:gamers",
        home="https://snap.stanford.edu/data/twitch_gamers.html",
        hyperparameters=(
            _split_source("none (the source has none)", "4 : 1 : 5 at random, for domain-IL", default="begin"),
            Hyperparameter(
                name="edges",
                default="both",
                choices=("both", "as-given"),
                doc="both = every friendship in both directions; as-given = only the direction in the file, as in BeGin's code",
            ),
        ),
    ),
    DatasetSpec(
        name="twitch-musae",
        summary="MUSAE's seven graphs of Twitch users, merged, label = mature, games played as features, key `domain` = language (in order "
        f"{', '.join(MUSAE_DOMAINS)}): {SIZES['twitch-musae']}. No official split. {_CHECKED}",
        citation=Citation(
            authors=("Rozemberczki", "Allen", "Sarkar"),
            title="Multi-Scale Attributed Node Embedding",
            year=2021,
            journal="Journal of Complex Networks",
            arxiv="1909.13021",
        ),
        factory="cglsuite_node.datasets.twitch:musae",
        licence="GPL-3.0 (repository)",
        home="https://github.com/benedekrozemberczki/MUSAE",
    ),
    _multi_label("pcg", "PCG, proteins that share a phenotype", "", "pcg"),
    _multi_label("humango", "HumanGo, proteins and their subcellular locations", "530 self-loops, as given.", "humango"),
    _multi_label("dblp-multilabel", "DBLP co-authors and their areas", f"1,503 self-loops, as given. {_STRUCTURAL}.", "dblp"),
    _multi_label("blogcatalog", "BlogCatalog bloggers and their interests", f"{_STRUCTURAL}.", "blogcatalog"),
    DatasetSpec(
        name="yelp",
        summary=f"Yelp reviewers and their friendships, multi-label, official split of GraphSAINT: {SIZES['yelp']}. "
        "No published checksum; not downloaded.",
        citation=Citation(
            authors=("Zeng", "others"),
            title="GraphSAINT: Graph Sampling Based Inductive Learning Method",
            year=2020,
            booktitle="ICLR",
            arxiv="1907.04931",
        ),
        factory="cglsuite_node.datasets.yelp:yelp",
        home="https://github.com/GraphSAINT/GraphSAINT",
        hyperparameters=(
            Hyperparameter(
                name="standardise",
                default="none",
                choices=("none", "train"),
                doc="none = features as in the file, like PyG; train = mean 0 and variance 1 over the training nodes, like GraphSAINT",
            ),
        ),
    ),
    DatasetSpec(
        name="debian-packages",
        summary=f"Packages of Debian 12 with one-line descriptions, class = section of the archive: {DEBIAN_SIZES}. An edge leads to a "
        "package that is depended on, recommended or suggested. Features are computed from all descriptions, without labels. Official "
        "split: 6 : 2 : 2; siblings from one source, which share words and sections, are in one part. "
        f"{_CHECKED} These files cannot be downloaded.",
        citation="The package index of Debian 12 (bookworm, main, amd64), https://www.debian.org",
        factory="cglsuite_node.datasets.debian_packages:debian_packages",
        licence="descriptions: those of the packages, all free software; embeddings: Apache-2.0",
        home="https://packages.debian.org/bookworm/",
        hyperparameters=(
            Hyperparameter(
                name="features",
                default="tfidf",
                choices=("tfidf", "minilm"),
                doc="features of the descriptions: tfidf = the 5,000 most frequent terms; minilm = 384 dimensions of all-MiniLM-L6-v2",
            ),
            Hyperparameter(
                name="max_in_degree",
                default=None,
                kind=int,
                optional=True,
                minimum=0,
                doc="drop the edges that lead to packages with more incoming edges than this (hubs); none = keep all edges",
            ),
            Hyperparameter(
                name="grouping",
                default="source",
                choices=("source", "none"),
                doc="the official split: source = packages built from one source are in one part; none = packages are drawn one by one",
            ),
            Hyperparameter(name="split_seed", default=0, minimum=0, doc="seed of the official split"),
            Hyperparameter(
                name="texts",
                default="given",
                choices=("given", "shuffled", "shuffled-in-class"),
                doc="controls: shuffled = descriptions are permuted within each part of the split; shuffled-in-class = within each class "
                "of each part, which uses the labels of all items, also in the test set",
            ),
        ),
    ),
)
