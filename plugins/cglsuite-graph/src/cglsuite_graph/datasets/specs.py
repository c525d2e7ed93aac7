"""Dataset specs: names, sizes, sources and licences. Does not import torch; the factories named here are imported on first use."""

from __future__ import annotations

from dataclasses import replace

from cglsuite.specs import Citation, DatasetSpec, Hyperparameter
from cglsuite_graph.datasets.sizes import Sizes

SIZES = {
    "aqsol": Sizes(9_833, 1),
    "aromaticity": Sizes(3_868, 30),
    "cifar10": Sizes(60_000, 10),
    "mnist": Sizes(70_000, 10),
    "nyc-taxi": Sizes(35_064, 2),
    "ogbg-molhiv": Sizes(41_127, 1),
    "ogbg-ppa": Sizes(40_700, 37),
    "sider": Sizes(1_427, 27),
    "tox21": Sizes(7_831, 12),
    "zinc": Sizes(12_000, 1),
    "zinc-standin": Sizes(12_000, 1),
}

#: SHA-256 of the contents of the csv files of molecules: rows joined by line feeds, the relevant columns joined by commas.
CONTENT: dict[str, str] = {
    "aqsol": "23b8570b562dc166deb1003337f5904547a874ec146bf32872e4b67234e0345c",
    "aromaticity": "324a252e9f83cb0de5c6b136e59e9030a4f2f22e808796a5f5cf9acd943545be",
    "ogbg-molhiv": "53316b499c45fc62569186ad89599291acfc633840be3535facf5232bc4a8466",
    "sider": "13904c35a96acb5c94f2b4220a636a57c2028b1f675a3007594a0cebcba96166",
    "tox21": "81b407b629d7df8a167c5f58923da4827bc2fc2f671af28b3b6c18387c3fb5ae",
    "zinc-standin": "d6f8f9e59a2765e1bd2c62ac6d306f79e76f3f0c9e3e8b5f09030c179b16a9e0",
}

SIDER_CLASSES = (
    "Hepatobiliary disorders",
    "Metabolism and nutrition disorders",
    "Product issues",
    "Eye disorders",
    "Investigations",
    "Musculoskeletal and connective tissue disorders",
    "Gastrointestinal disorders",
    "Social circumstances",
    "Immune system disorders",
    "Reproductive system and breast disorders",
    "Neoplasms benign, malignant and unspecified (incl cysts and polyps)",
    "General disorders and administration site conditions",
    "Endocrine disorders",
    "Surgical and medical procedures",
    "Vascular disorders",
    "Blood and lymphatic system disorders",
    "Skin and subcutaneous tissue disorders",
    "Congenital, familial and genetic disorders",
    "Infections and infestations",
    "Respiratory, thoracic and mediastinal disorders",
    "Psychiatric disorders",
    "Renal and urinary disorders",
    "Pregnancy, puerperium and perinatal conditions",
    "Ear and labyrinth disorders",
    "Cardiac disorders",
    "Nervous system disorders",
    "Injury, poisoning and procedural complications",
)
TOX21_ASSAYS = (
    *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma"),
    *("SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
)

_FEATURES = Hyperparameter(
    name="features",
    default="canonical",
    choices=("canonical", "ogb", "symbols", "zinc", "degrees"),
    doc="features of atoms: canonical = the 74 of DGL-LifeSci; ogb = OGB's nine, one-hot (174); symbols = one-hot element, in order of "
    "first appearance; zinc = the 28 kinds of Kekulé structures in ZINC; degrees = in- and out-degree",
    effect="degrees: topology alone, so elements and aromaticity must be inferred; the others encode the element, canonical and ogb "
    "also aromaticity",
)
_BONDS = Hyperparameter(
    name="bonds",
    default="none",
    choices=("none", "ogb", "types", "kekule"),
    doc="features of bonds: none; ogb = type, stereo and conjugation, one-hot (13); types = one-hot type after a place for no bond (5); "
    "kekule = the same with single and double bonds in place of aromatic ones (4)",
    effect="only backbones with edge features use them; aromatic bonds reveal aromatic atoms",
)
_SCAFFOLD = Hyperparameter(
    name="scaffold",
    default="murcko",
    choices=("murcko", "brics"),
    doc="definition of the key `scaffold`: murcko = rings and their linkers; brics = the largest fragment between BRICS bonds",
    effect="changes which molecules are grouped together, and the domains if these are made of scaffolds",
)
_MOLECULES = (_FEATURES, _BONDS, _SCAFFOLD)
_SPLIT_SOURCE = Hyperparameter(
    name="split_source",
    default="none",
    choices=("none", "begin"),
    doc="none = no official split; begin = BeGin's split from begin-splits/",
    effect="begin: the same test graphs in every repetition",
)
_EDGE_FEATURES = Hyperparameter(
    name="edge_features",
    default=False,
    doc="whether edges carry their features (the distance of the superpixels)",
    effect="only backbones with edge features use them",
)

_SEED = Hyperparameter(name="seed", default=0, minimum=0, doc="seed of all graphs", effect="different graphs of the same difficulty")
_YEARS = Hyperparameter(
    name="years",
    default=1,
    minimum=1,
    implicit=True,
    doc="years in which graphs arrive, at random (key `year`); 1 = no years",
    effect="more years: more tasks in time-IL, with fewer graphs each",
)


def _drift(what: str) -> Hyperparameter:
    return Hyperparameter(
        name="drift",
        default=0.0,
        minimum=0,
        maximum=1,
        implicit=True,
        doc=f"{what}; it grows evenly over the years",
        effect="0: all years have the same distribution; larger: what is learnt in one year is less valid in another",
    )


MOTIF_HYPERPARAMETERS = (
    Hyperparameter(
        name="per_class", default=40, minimum=10, doc="graphs of each class", effect="more graphs: a better fit and a smaller variance"
    ),
    Hyperparameter(name="copies", default=2, minimum=1, doc="copies of the motif in a graph", effect="more copies: easier to classify"),
    Hyperparameter(
        name="signal",
        default=0.5,
        minimum=0,
        maximum=1,
        doc="probability that a motif edge has its class's kind; all other edges have a random one of three kinds",
        effect="0: only structure separates the classes; 1: edge features nearly separate them alone",
    ),
    _YEARS,
    _drift("the probability, in the last year, that a motif edge of its class's kind has the next kind instead"),
    _SEED,
)
REGRESSION_HYPERPARAMETERS = (
    Hyperparameter(
        name="n_graphs", default=500, minimum=50, doc="number of graphs", effect="more graphs: a better fit and a smaller variance"
    ),
    Hyperparameter(
        name="noise",
        default=0.0,
        minimum=0,
        doc="half the width of uniform noise on targets",
        effect="half of it is the lowest possible MAE",
    ),
    _YEARS,
    _drift("half of what the weight of edges in the target has lost in the last year: at 1 it has the opposite sign"),
    _SEED,
)

_RDKIT = "Read through RDKit (`cglsuite-graph[molecules]`); rows that it rejects are recovered."
_BEGIN = Citation(
    authors=("Ko", "others"),
    title="BeGin: Extensive Benchmark Scenarios and An Easy-to-use Framework for Graph Continual Learning",
    year=2025,
    journal="ACM TIST 16(1)",
)
_MOLECULENET = Citation(
    authors=("Wu", "others"),
    title="MoleculeNet: A Benchmark for Molecular Machine Learning",
    year=2018,
    journal="Chemical Science 9",
    arxiv="1703.00564",
)
_OGB = Citation(
    authors=("Hu", "others"),
    title="Open Graph Benchmark: Datasets for Machine Learning on Graphs",
    year=2020,
    booktitle="NeurIPS",
    arxiv="2005.00687",
)
_BENCHMARKING = Citation(
    authors=("Dwivedi", "others"), title="Benchmarking Graph Neural Networks", year=2023, journal="JMLR 24", arxiv="2003.00982"
)
_LECUN = Citation(
    authors=("LeCun", "Bottou", "Bengio", "Haffner"),
    title="Gradient-Based Learning Applied to Document Recognition",
    year=1998,
    journal="Proceedings of the IEEE 86(11)",
    note="images",
)
_KRIZHEVSKY = Citation(
    authors=("Krizhevsky",), title="Learning Multiple Layers of Features from Tiny Images", year=2009, note="University of Toronto"
)
_ATTENTIVE = Citation(
    authors=("Xiong", "others"),
    title="Pushing the Boundaries of Molecular Representation for Drug Discovery",
    year=2020,
    journal="J. Med. Chem. 63",
    note="as CGLB and BeGin use it",
)
_ZINC = Citation(
    authors=("Irwin", "others"), title="ZINC: A Free Tool to Discover Chemistry for Biology", year=2012, journal="J. Chem. Inf. Model. 52"
)
_JUNCTION_TREES = Citation(
    authors=("Jin", "Barzilay", "Jaakkola"),
    title="Junction Tree Variational Autoencoder for Molecular Graph Generation",
    year=2018,
    booktitle="ICML",
)


def _superpixels(name: str, summary: str, images: Citation) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=f"{summary}; {SIZES[name]}. Official split of the source. "
        "No checksum is published: the first download's SHA-256 is recorded.",
        citation=(_BENCHMARKING, images),
        factory=f"cglsuite_graph.datasets.superpixels:{name}",
        levels=("GC",),
        licence="MIT (graphs, benchmarking-gnns project); images: not stated",
        home="https://github.com/graphdeeplearning/benchmarking-gnns",
        hyperparameters=(_EDGE_FEATURES,),
    )


_MOLECULE_SETS = (
    DatasetSpec(
        name="aromaticity",
        summary="PubChem bioassay molecules by their stated number of aromatic atoms, for numbers that at least 20 molecules have: "
        f"{SIZES['aromaticity']}; keys `row`, `scaffold`, `aromatic_atoms`. {_RDKIT} Official split: BeGin's, on request.",
        citation=_ATTENTIVE,
        factory="cglsuite_graph.datasets.molecules.moleculenet:aromaticity",
        levels=("GC",),
        licence="CC0 1.0 (data directory of the AttentiveFP project)",
        home="https://github.com/OpenDrugAI/AttentiveFP",
        hyperparameters=(*_MOLECULES, _SPLIT_SOURCE),
    ),
    DatasetSpec(
        name="sider",
        summary=f"Side effects of drugs by system organ class, one label each: {SIZES['sider']}, all labels known; keys `row`, `scaffold`. "
        f"{_RDKIT} No official split.",
        citation=(
            _MOLECULENET,
            Citation(
                authors=("Kuhn", "others"),
                title="The SIDER database of drugs and side effects",
                year=2016,
                journal="Nucleic Acids Research 44",
            ),
        ),
        factory="cglsuite_graph.datasets.molecules.moleculenet:sider",
        levels=("GC",),
        licence="not stated (file); MIT (DeepChem project)",
        home="https://moleculenet.org",
        hyperparameters=_MOLECULES,
    ),
    DatasetSpec(
        name="tox21",
        summary=f"Toxicity in twelve assays: {SIZES['tox21']}, 77,946 of 93,972 labels known; keys `row`, `scaffold`. {_RDKIT} No official "
        "split.",
        citation=(_MOLECULENET, "Tox21 Challenge, 2014"),
        factory="cglsuite_graph.datasets.molecules.moleculenet:tox21",
        levels=("GC",),
        licence="CC0 1.0 (data directory of the AttentiveFP project)",
        home="https://moleculenet.org",
        hyperparameters=_MOLECULES,
    ),
    DatasetSpec(
        name="ogbg-molhiv",
        summary=f"Whether a molecule inhibits HIV: {SIZES['ogbg-molhiv']}; HIV.csv, whose rows are the graphs of ogbg-molhiv, or OGB's raw "
        f"files; keys `row`, `scaffold`, `domain` (BeGin's 20 groups of scaffolds). {_RDKIT} Official split: BeGin's.",
        citation=(_OGB, _MOLECULENET),
        factory="cglsuite_graph.datasets.molecules.moleculenet:molhiv",
        levels=("GC",),
        licence="MIT (ogbg-molhiv); CC0 1.0 (HIV.csv, data directory of the AttentiveFP project)",
        home="https://ogb.stanford.edu/docs/graphprop/",
        hyperparameters=(
            replace(_FEATURES, default="ogb"),
            replace(_BONDS, default="ogb"),
            _SCAFFOLD,
            replace(_SPLIT_SOURCE, default="begin"),
            Hyperparameter(
                name="source",
                default="smiles",
                choices=("smiles", "ogb"),
                doc="smiles = HIV.csv through RDKit; ogb = OGB's raw files, always with OGB's features (features and bonds are ignored) "
                "and without the key `scaffold`",
                effect="the two differ between RDKit versions, and in seven molecules that RDKit rejects",
            ),
        ),
    ),
    DatasetSpec(
        name="aqsol",
        summary=f"Solubility (log mol/L) of AqSolDB's molecules that have a bond: {SIZES['aqsol']}; keys `row`, `scaffold`, `group` "
        "(reliability, 1 to 5), `domain` (whole scaffolds in five parts of nearly equal size: ours, not BeGin's). "
        f"{_RDKIT} Official split: the scaffold split of the benchmark AQSOL.",
        citation=(
            Citation(
                authors=("Sorkun", "Khetan", "Er"),
                title="AqSolDB, a curated reference set of aqueous solubility and 2D descriptors for a diverse set of compounds",
                year=2019,
                journal="Scientific Data 6",
            ),
            _BENCHMARKING,
        ),
        factory="cglsuite_graph.datasets.molecules.regression:aqsol",
        levels=("GR",),
        licence="CC0 1.0 (data); MIT (split)",
        home="https://github.com/mcsorkun/AqSolDB",
        hyperparameters=(
            replace(_FEATURES, default="symbols"),
            replace(_BONDS, default="types"),
            _SCAFFOLD,
            Hyperparameter(
                name="n_domains",
                default=5,
                minimum=1,
                doc="domains made of scaffolds",
                effect="more domains: more tasks, of fewer molecules",
            ),
        ),
    ),
    DatasetSpec(
        name="zinc-standin",
        summary=f"Penalised logP of molecules of ZINC 250k: {SIZES['zinc-standin']}. Stands in for ZINC-12k: its validation and test "
        f"molecules, but 10,000 other training molecules, and recomputed targets; keys `row`, `scaffold`, `domain` (size). {_RDKIT} "
        "Official split of the source.",
        citation=(_ZINC, _JUNCTION_TREES, _BENCHMARKING),
        factory="cglsuite_graph.datasets.molecules.regression:zinc_standin",
        levels=("GR",),
        licence="MIT (projects of the splits); ZINC data: not stated",
        home="https://github.com/wengong-jin/icml18-jtnn",
        hyperparameters=(replace(_FEATURES, default="zinc"), replace(_BONDS, default="kekule"), _SCAFFOLD),
    ),
)

_OTHER_SETS = (
    DatasetSpec(
        name="zinc",
        summary=f"Penalised logP of ZINC-12k, 28 types of atoms and 4 of bonds: {SIZES['zinc']}; keys `row`, `domain` (atoms less 18, cut "
        "to 0..10). From the official pickles. Official split of the source.",
        citation=(_ZINC, _BENCHMARKING),
        factory="cglsuite_graph.datasets.molecules.zinc_pickles:zinc",
        levels=("GR",),
        licence="MIT (benchmarking-gnns project); ZINC data: not stated",
        home="https://github.com/graphdeeplearning/benchmarking-gnns",
    ),
    _superpixels("mnist", "MNIST digits as about 71 superpixels: intensity and position", _LECUN),
    _superpixels("cifar10", "CIFAR10 images as about 118 superpixels: colour and position", _KRIZHEVSKY),
    DatasetSpec(
        name="ogbg-ppa",
        summary=f"Protein neighbourhoods of species by taxonomic group, 1,100 graphs of each: {SIZES['ogbg-ppa']}, as BeGin sampled them; "
        "keys `row`, `domain` (11, one species of every group each). About 16 GB of memory. Official split: BeGin's.",
        citation=(_OGB, _BEGIN),
        factory="cglsuite_graph.datasets.ogbg:ppa",
        levels=("GC",),
        licence="CC0 1.0",
        home="https://ogb.stanford.edu/docs/graphprop/",
        hyperparameters=(replace(_EDGE_FEATURES, default=True, doc="whether edges carry their seven features"),),
    ),
    DatasetSpec(
        name="nyc-taxi",
        summary="Yellow-taxi passengers between 265 zones of New York, a graph per hour of 2018 to 2021, weekday or weekend: "
        f"{SIZES['nyc-taxi']}; made from the public monthly files; keys `row`, `quarter` (0 to 15). Official split: BeGin's.",
        citation=("NYC Taxi and Limousine Commission, TLC Trip Record Data", _BEGIN),
        factory="cglsuite_graph.datasets.nyc_taxi:nyc_taxi",
        levels=("GC",),
        licence="terms of use of nyc.gov",
        home="https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page",
    ),
    DatasetSpec(
        name="sentiment140",
        summary="Posts of 11 days of 2009 as dependency trees, positive or negative: 5,500 graphs, 300-dimensional token vectors; keys "
        "`row`, `day`. Parsed by spaCy (`cglsuite-graph[text]` and the model en_core_web_lg). No official split.",
        citation=(
            Citation(
                authors=("Go", "Bhayani", "Huang"),
                title="Twitter Sentiment Classification using Distant Supervision",
                year=2009,
                note="Stanford",
            ),
            _BEGIN,
        ),
        factory="cglsuite_graph.datasets.sentiment:sentiment140",
        levels=("GC",),
        licence="not stated",
        home="https://www.kaggle.com/datasets/kazanova/sentiment140",
        hyperparameters=(
            Hyperparameter(
                name="model",
                default="en_core_web_lg",
                doc="the spaCy model for parsing and token vectors",
                effect="changes trees and vectors",
            ),
            Hyperparameter(name="days", default=11, minimum=1, doc="number of days", effect="more days: more tasks"),
            Hyperparameter(
                name="posts", default=250, minimum=1, doc="posts of each polarity per day", effect="more posts: a better fit, larger tasks"
            ),
        ),
    ),
    DatasetSpec(
        name="synthetic-motifs",
        summary="Embedded: ten classes of motifs in random trees; edge features; key `domain` (five sizes). No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_graph.datasets.synthetic:synthetic_motifs",
        levels=("GC",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=MOTIF_HYPERPARAMETERS,
    ),
    DatasetSpec(
        name="synthetic-graph-regression",
        summary="Embedded: a known function of the kinds of nodes and edges of a random graph; edge features; key `domain` (five sizes). "
        "No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_graph.datasets.synthetic:synthetic_graph_regression",
        levels=("GR",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=REGRESSION_HYPERPARAMETERS,
    ),
)

DATASETS: tuple[DatasetSpec, ...] = _MOLECULE_SETS + _OTHER_SETS
