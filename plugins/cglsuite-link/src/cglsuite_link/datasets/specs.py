"""Dataset specs: names, sizes, sources and licences. Does not import torch; the factories named here are imported on first use."""

from __future__ import annotations

from cglsuite.specs import Citation, DatasetSpec, Hyperparameter
from cglsuite_link.datasets.sizes import Sizes

SIZES = {
    "bitcoin-otc": Sizes(5_881, 35_592),
    "bitcoin-alpha": Sizes(3_783, 24_186),
    "wiki-cs": Sizes(11_701, None),
    "facebook": Sizes(134_833, 1_380_293),
    "facebook-7": Sizes(84_318, 560_987),
    "ogbl-collab": Sizes(235_868, 1_285_465),
    "math-overflow": Sizes(24_818, 199_973),
    "college-msg": Sizes(1_899, 13_838),
    "movielens": Sizes(9_992, 575_281),
}

#: The class of a rating: [-10, -9), [-9, 0), [3, 4), [4, 5), [5, 6) and [6, 10]; 1 and 2 have none.
RATING_CLASSES = {-10: 0, **dict.fromkeys(range(-9, 0), 1), 3: 2, 4: 3, 5: 4, **dict.fromkeys(range(6, 11), 5)}
#: The categories of Facebook pages in the order of their domain numbers.
FACEBOOK_CATEGORIES = ("artist", "athletes", "company", "government", "new_sites", "politician", "public_figure", "tvshow")
#: The genres of MovieLens-1M in the order of their features.
MOVIE_GENRES = (
    *("Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir", "Horror"),
    *("Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)

_CHECKED = "Checksums are known."
_RECORDED = "No checksum is published: that of the first download is recorded, and counts are checked."
_NO_FEATURES = "No node features"
_SIGNED = (
    Citation(
        authors=("Kumar", "Spezzano", "Subrahmanian", "Faloutsos"),
        title="Edge Weight Prediction in Weighted Signed Networks",
        year=2016,
        booktitle="ICDM",
    ),
    Citation(authors=("Kumar", "others"), title="REV2: Fraudulent User Prediction in Rating Platforms", year=2018, booktitle="WSDM"),
)
_MOTIFS = Citation(
    authors=("Paranjape", "Benson", "Leskovec"), title="Motifs in Temporal Networks", year=2017, booktitle="WSDM", arxiv="1612.09259"
)


def _steps(default: int, what: str = "links") -> Hyperparameter:
    return Hyperparameter(
        name="steps",
        default=default,
        minimum=1,
        doc=f"number of time steps with nearly equal numbers of {what} (key `step`)",
        effect="more steps: more tasks with fewer links each, and less drift within each",
    )


_LABELS = Hyperparameter(
    name="labels",
    default="classes",
    choices=("classes", "sign"),
    doc="classes = six rating classes, and no class for links rated 1 or 2; sign = one label, whether the rating is negative",
    effect="classes: six-way classification of a third of the links; sign: all links, one in ten negative, scored by ROC-AUC",
)


def _interactions(name: str, summary: str, home: str, skip_months: int, citation: Citation = _MOTIFS) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=f"{summary}; the earliest of the interactions of two people is their link, undirected, keys `time` and `month`; "
        f"self-loops are removed. {_NO_FEATURES}, no official split.",
        citation=citation,
        factory=f"cglsuite_link.datasets.interactions:{name.replace('-', '_')}",
        levels=("LP",),
        home=home,
        hyperparameters=(
            Hyperparameter(
                name="skip_months",
                default=skip_months,
                minimum=0,
                doc="number of initial calendar months to leave out",
                effect="leaving out the first months, when few people were active, makes the first tasks larger",
            ),
        ),
    )


def _seed(what: str) -> Hyperparameter:
    return Hyperparameter(
        name="seed", default=0, minimum=0, doc=f"seed of {what}", effect="different nodes and links of the same difficulty"
    )


def _common(nodes: int, groups: int, homophily: float, drift: float, signal: float) -> dict[str, Hyperparameter]:
    return {
        "n_nodes": Hyperparameter(
            name="n_nodes", default=nodes, minimum=4, doc="number of nodes", effect="more nodes, same number of links: sparser graphs"
        ),
        "n_groups": Hyperparameter(
            name="n_groups",
            default=groups,
            minimum=1,
            doc="number of groups; unordered pairs of groups are the domains or classes",
            effect="more groups: more domains or classes, with fewer links each",
        ),
        "links_per_step": Hyperparameter(
            name="links_per_step",
            default=600,
            minimum=1,
            doc="new links in a step",
            effect="more links: a better fit and a smaller variance",
        ),
        "homophily": Hyperparameter(
            name="homophily",
            default=homophily,
            minimum=0,
            maximum=1,
            doc="share of links drawn within communities (or groups); the others join any two nodes",
            effect="larger: links are more informative about their endpoints",
        ),
        "drift": Hyperparameter(
            name="drift",
            default=drift,
            minimum=0,
            maximum=1,
            doc="share of nodes that move to a random community (or group) before each step after the first",
            effect="more drift: features and early knowledge become outdated sooner",
        ),
        "signal": Hyperparameter(
            name="signal",
            default=signal,
            minimum=0,
            doc="signal amplitude in the features; the noise has unit variance",
            effect="larger: features are more informative without the links",
        ),
    }


_TEMPORAL = _common(600, 3, 0.9, 0.05, 3.0)
TEMPORAL_HYPERPARAMETERS = (
    _TEMPORAL["n_nodes"],
    _TEMPORAL["n_groups"],
    Hyperparameter(
        name="n_communities",
        default=8,
        minimum=1,
        doc="number of communities within which nodes link",
        effect="more communities: fewer plausible pairs among the negatives, so Hits@K rises",
    ),
    _steps(5),
    _TEMPORAL["links_per_step"],
    _TEMPORAL["homophily"],
    _TEMPORAL["drift"],
    _TEMPORAL["signal"],
    _seed("all nodes and links"),
)
_SIGNED_LINKS = _common(600, 3, 0.75, 0.05, 3.0)
SIGNED_HYPERPARAMETERS = (
    _SIGNED_LINKS["n_nodes"],
    _SIGNED_LINKS["n_groups"],
    _steps(5),
    _SIGNED_LINKS["links_per_step"],
    _SIGNED_LINKS["homophily"],
    _SIGNED_LINKS["drift"],
    Hyperparameter(
        name="label_noise",
        default=0.1,
        minimum=0,
        maximum=1,
        doc="share of links that carry another link's label",
        effect="more noise: a lower ceiling on performance",
    ),
    _SIGNED_LINKS["signal"],
    Hyperparameter(
        name="labels",
        default="classes",
        choices=("classes", "sign"),
        doc="classes = the unordered pair of the groups of a link's ends; sign = one label, whether the groups differ",
        effect="classes: classification, scored by accuracy; sign: one label, scored by ROC-AUC",
    ),
    _seed("all nodes and links"),
)

DATASETS: tuple[DatasetSpec, ...] = (
    DatasetSpec(
        name="bitcoin-otc",
        summary=f"Trust on Bitcoin-OTC, directed ratings -10..10 with times: {SIZES['bitcoin-otc']} (5,858 nodes are rated by "
        "somebody); keys `rating`, `time`, `step` (14-day periods in steps of nearly equal size). Official split: that of BeGin. "
        f"{_NO_FEATURES}. {_CHECKED}",
        citation=_SIGNED,
        factory="cglsuite_link.datasets.bitcoin:otc",
        levels=("LC",),
        home="https://snap.stanford.edu/data/soc-sign-bitcoin-otc.html",
        hyperparameters=(
            _LABELS,
            _steps(7, "links, of whole 14-day periods,"),
            Hyperparameter(
                name="split_source",
                default="begin",
                choices=("begin", "original"),
                doc="begin = BeGin's split (8 : 1 : 1 at random); original = none (the source has none)",
                effect="begin: the same test links in every repetition; original: scenario.split must create the split",
            ),
        ),
    ),
    DatasetSpec(
        name="bitcoin-alpha",
        summary=f"Trust on Bitcoin-Alpha, directed ratings -10..10 with times: {SIZES['bitcoin-alpha']}; keys `rating`, `time`, "
        f"`step` (14-day periods in steps of nearly equal size). {_NO_FEATURES}, no official split. {_CHECKED}",
        citation=_SIGNED,
        factory="cglsuite_link.datasets.bitcoin:alpha",
        levels=("LC",),
        home="https://snap.stanford.edu/data/soc-sign-bitcoin-alpha.html",
        hyperparameters=(_LABELS, _steps(7, "links, of whole 14-day periods,")),
    ),
    DatasetSpec(
        name="wiki-cs",
        summary=f"Wikipedia articles on computer science and the undirected links between them: {SIZES['wiki-cs']}, 300 features; "
        f"key `domain` = the unordered pair of the areas of its ends (10 areas, 55 pairs, one without links). No official split. "
        f"{_RECORDED}",
        citation=Citation(
            authors=("Mernyei", "Cangea"),
            title="Wiki-CS: A Wikipedia-Based Benchmark for Graph Neural Networks",
            year=2020,
            arxiv="2007.02901",
        ),
        factory="cglsuite_link.datasets.wiki_cs:wiki_cs",
        levels=("LP",),
        licence="MIT (repository)",
        home="https://github.com/pmernyei/wiki-cs-dataset",
    ),
    DatasetSpec(
        name="facebook",
        summary=f"Facebook pages and mutual likes within categories: {SIZES['facebook']}; key `domain` = category (in order "
        f"{', '.join(FACEBOOK_CATEGORIES)}). {_NO_FEATURES}, no official split. Checksums are known except artist's; without that category "
        f"{SIZES['facebook-7']}. Links of pages to themselves are among these counts and are left out (674 of the seven categories).",
        citation=Citation(
            authors=("Rozemberczki", "Davies", "Sarkar", "Sutton"),
            title="GEMSEC: Graph Embedding with Self Clustering",
            year=2019,
            booktitle="ASONAM",
            arxiv="1802.03997",
        ),
        factory="cglsuite_link.datasets.facebook:facebook",
        levels=("LP",),
        licence="GPL-3.0 (repository)",
        home="https://github.com/benedekrozemberczki/GEMSEC",
        hyperparameters=(
            Hyperparameter(
                name="categories",
                default="all",
                choices=("all", "without-artist"),
                doc="all = eight categories; without-artist = the seven whose files are smaller than artist's",
                effect="without-artist: one task fewer, and 40% of the links",
            ),
        ),
    ),
    DatasetSpec(
        name="ogbl-collab",
        summary=f"Co-authors, a link per year in which they wrote together, key `year`: {SIZES['ogbl-collab']}, 128 features; official "
        f"split: OGB's by time. {_RECORDED}",
        citation=Citation(
            authors=("Hu", "others"),
            title="Open Graph Benchmark: Datasets for Machine Learning on Graphs",
            year=2020,
            booktitle="NeurIPS",
            arxiv="2005.00687",
        ),
        factory="cglsuite_link.datasets.collab:ogbl_collab",
        levels=("LP",),
        licence="ODC-BY",
        home="https://ogb.stanford.edu/docs/linkprop/#ogbl-collab",
    ),
    _interactions(
        "ask-ubuntu",
        "Answers and comments on Ask Ubuntu from its 19th month on (published: 159,313 nodes, 507,988 links, including self-loops). "
        + _RECORDED.replace(", and counts are checked", ""),
        "https://snap.stanford.edu/data/sx-askubuntu.html",
        18,
    ),
    _interactions(
        "math-overflow",
        f"Answers and comments on MathOverflow: {SIZES['math-overflow']}, 11,987 of them self-loops. {_CHECKED}",
        "https://snap.stanford.edu/data/sx-mathoverflow.html",
        0,
    ),
    _interactions(
        "college-msg",
        f"Private messages between students: {SIZES['college-msg']}. {_CHECKED}",
        "https://snap.stanford.edu/data/CollegeMsg.html",
        0,
        Citation(
            authors=("Panzarasa", "Opsahl", "Carley"),
            title="Patterns and Dynamics of Users' Behavior and Interaction: Network Analysis of an Online Community",
            year=2009,
            journal="JASIST 60(5)",
        ),
    ),
    DatasetSpec(
        name="gowalla",
        summary="Users and the places they checked in at, each pair once, keys `time` and `step`; features tell users from places. "
        "Published: 29,858 users, 40,981 places, 1,027,370 links, the 10-core that recommender systems are tested on; the core is taken "
        "here from the check-ins themselves and may differ by a few places. No official split. "
        f"{_RECORDED.replace(', and counts are checked', '')}",
        citation=Citation(
            authors=("Cho", "Myers", "Leskovec"),
            title="Friendship and Mobility: User Movement in Location-Based Social Networks",
            year=2011,
            booktitle="KDD",
        ),
        factory="cglsuite_link.datasets.bipartite:gowalla",
        levels=("LP",),
        home="https://snap.stanford.edu/data/loc-Gowalla.html",
        hyperparameters=(
            Hyperparameter(
                name="core",
                default=10,
                minimum=1,
                doc="minimum number of links of each user and place",
                effect="a larger core: fewer and denser nodes",
            ),
            _steps(10),
        ),
    ),
    DatasetSpec(
        name="movielens",
        summary=f"MovieLens-1M, users and the films to which they gave four stars or five: {SIZES['movielens']} (6,040 users, film "
        "numbers up to 3,952), 42 features (two for gender, age group, 21 occupations; 18 genres); keys `time` and `step`. No official "
        f"split. {_RECORDED}",
        citation=Citation(
            authors=("Harper", "Konstan"), title="The MovieLens Datasets: History and Context", year=2015, journal="ACM TiiS 5(4)"
        ),
        factory="cglsuite_link.datasets.bipartite:movielens",
        levels=("LP",),
        licence="research use, no redistribution (see the home page)",
        home="https://grouplens.org/datasets/movielens/1m/",
        hyperparameters=(_steps(10),),
    ),
    DatasetSpec(
        name="synthetic-temporal-links",
        summary="Embedded: undirected links that appear step by step inside communities, between which nodes drift; keys `step` and "
        "`domain` = the pair of the groups of its ends. No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_link.datasets.synthetic:synthetic_temporal_links",
        levels=("LP",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=TEMPORAL_HYPERPARAMETERS,
    ),
    DatasetSpec(
        name="synthetic-signed-links",
        summary="Embedded: directed links whose class is the pair of the groups of its ends and whose sign says whether they differ; nodes "
        "drift between groups; key `step`. No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_link.datasets.synthetic:synthetic_signed_links",
        levels=("LC",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=SIGNED_HYPERPARAMETERS,
    ),
)
