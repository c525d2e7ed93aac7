"""Dataset specs: names, sizes, sources and licences. Does not import torch; the factories named here are imported on first use."""

from __future__ import annotations

from typing import NamedTuple

from cglsuite.specs import Citation, DatasetSpec, Hyperparameter


class Sizes(NamedTuple):
    """Sizes that a loader checks; ``edges`` counts directed edges without duplicates."""

    nodes: int
    edges: int
    features: int
    classes: int

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes, {self.edges:,} directed edges, {self.features:,} features, {self.classes} classes"


SIZES = {
    "actor": Sizes(7_600, 30_019, 932, 5),
    "roman-empire": Sizes(22_662, 65_854, 300, 18),
    "uai2010": Sizes(3_067, 56_616, 4_973, 19),
}
#: Number of official splits of the two heterophilous graphs.
SPLITS = 10

_SPLIT_NUMBER = Hyperparameter(
    name="split_number",
    default=0,
    minimum=0,
    maximum=SPLITS - 1,
    doc=f"index of one of the {SPLITS} official splits; matters only with scenario.split=official",
    effect="other nodes are training, validation and test nodes",
)

DATASETS: tuple[DatasetSpec, ...] = (
    DatasetSpec(
        name="roman-empire",
        summary="Words of an article on the Roman Empire; edges join consecutive words and syntactic dependencies, classes are syntactic "
        f"roles; heterophilous: {SIZES['roman-empire']}. {SPLITS} official splits. No checksum is published: the SHA-256 of the first "
        "download is recorded in the cache, and later downloads must match it.",
        citation=Citation(
            authors=("Platonov", "Kuznedelev", "Diskin", "Babenko", "Prokhorenkova"),
            title="A Critical Look at the Evaluation of GNNs under Heterophily: Are We Really Making Progress?",
            year=2023,
            booktitle="ICLR",
            arxiv="2302.11640",
        ),
        factory="cglsuite_drift.datasets.roman_empire:roman_empire",
        licence="MIT (repository)",
        home="https://github.com/yandex-research/heterophilous-graphs",
        hyperparameters=(_SPLIT_NUMBER,),
    ),
    DatasetSpec(
        name="actor",
        summary="Actors, joined if they co-occur on a page (edges directed as in the source), with keywords of their pages as features; "
        f"heterophilous: {SIZES['actor']}. {SPLITS} official splits. Checksums are verified.",
        citation=Citation(
            authors=("Pei", "Wei", "Chang", "Lei", "Yang"),
            title="Geom-GCN: Geometric Graph Convolutional Networks",
            year=2020,
            booktitle="ICLR",
            arxiv="2002.05287",
        ),
        factory="cglsuite_drift.datasets.actor:actor",
        home="https://github.com/graphdml-uiuc-jlu/geom-gcn",
        hyperparameters=(_SPLIT_NUMBER,),
    ),
    DatasetSpec(
        name="uai2010",
        summary=f"Wiki pages joined by links, words as features, self-loops removed: {SIZES['uai2010']} of 9 to 475 nodes. No official "
        "split. The checksum is verified; the file cannot be downloaded in this form.",
        citation=Citation(
            authors=("Wang", "Zhu", "Bo", "Cui", "Shi", "Pei"),
            title="AM-GCN: Adaptive Multi-channel Graph Convolutional Networks",
            year=2020,
            booktitle="KDD",
            arxiv="2007.02265",
        ),
        factory="cglsuite_drift.datasets.uai2010:uai2010",
        licence="MIT (collection); of the data itself: not stated",
        home="https://github.com/EdisonLeeeee/GraphData",
    ),
)
