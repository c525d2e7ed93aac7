"""Dataset specs: names, sizes, sources and licences. Does not import torch; the factories named here are imported on first use."""

from __future__ import annotations

from dataclasses import replace

from cglsuite.specs import Citation, DatasetSpec, Hyperparameter
from cglsuite_skeleton.datasets.sizes import Sizes

SIZES = {"nw-ucla": Sizes(1_484, 58_534, 20, 10)}
NTU_CLASSES = 60

_FRAMES = Hyperparameter(
    name="frames",
    default=52,
    minimum=1,
    doc="number of frames of an input; sequences are resampled to this number",
    effect="more frames: finer motion, more features per joint, and a first layer that grows with them",
)
_AUGMENTATION = Hyperparameter(
    name="augmentation",
    default="views",
    choices=("views", "none"),
    doc="views = in every epoch of training another view (rotations about x and y) and another random sample of frames; none = training "
    "inputs are prepared as queries are",
    effect="views: slower fitting, less overfitting, and view-independent features; none: every epoch sees the same inputs, which are "
    "fitted quickly and overfitted",
)
_MAX_ANGLE = Hyperparameter(
    name="max_angle",
    default=60,
    minimum=0,
    maximum=180,
    doc="largest rotation of a random view in degrees, about each of the two axes; 0 = only frames are sampled",
    effect="larger angles: harder training inputs, further from those of queries",
)
_PREPARATION = (_FRAMES, _AUGMENTATION, _MAX_ANGLE)

MOTION_HYPERPARAMETERS = (
    replace(_FRAMES, default=32),
    _AUGMENTATION,
    replace(_MAX_ANGLE, default=30),
    Hyperparameter(name="n_classes", default=10, minimum=1, doc="number of motions", effect="more classes: more tasks, or larger ones"),
    Hyperparameter(
        name="per_class", default=30, minimum=1, doc="sequences of each class", effect="more sequences: a better fit, and smaller variance"
    ),
    Hyperparameter(
        name="layout",
        default="nw-ucla",
        doc="joints and bones: nw-ucla, ntu-rgbd, openpose-18, or an edge list such as 0-1,1-2,2-3;centre=1",
        effect="more joints: more nodes per graph, and motion spread over more of them",
    ),
    Hyperparameter(
        name="noise",
        default=1.0,
        minimum=0,
        doc="how much sequences of a class differ: at 1, sequence amplitudes as large as those shared by all motions, and in every frame a "
        "jitter of a fifth of a bone",
        effect="more noise: classes are harder to tell apart; at 1 a linear classifier is right about three times in four",
    ),
    Hyperparameter(
        name="seed", default=0, minimum=0, doc="seed of all motions and sequences", effect="different motions of the same difficulty"
    ),
)

DATASETS: tuple[DatasetSpec, ...] = (
    DatasetSpec(
        name="nw-ucla",
        summary=f"Northwestern-UCLA Multiview Action 3D, skeletons of one person: {SIZES['nw-ucla']}, 1 to 201 frames per sequence; keys "
        "`subject`, `view`, `episode`. No official split. Not downloadable: an npz, or the folder of JSON files as released.",
        citation=(
            Citation(
                authors=("Wang", "Nie", "Xia", "Wu", "Zhu"),
                title="Cross-view Action Modeling, Learning and Recognition",
                year=2014,
                booktitle="CVPR",
                arxiv="1405.2941",
            ),
            Citation(
                authors=("Chen", "others"),
                title="Channel-wise Topology Refinement Graph Convolution for Skeleton-Based Action Recognition",
                year=2021,
                booktitle="ICCV",
                arxiv="2107.12213",
                note="skeletons and preparation",
            ),
        ),
        factory="cglsuite_skeleton.datasets.nw_ucla:nw_ucla",
        levels=("GC",),
        licence="not stated (data); CC BY-NC 4.0 (repository of the skeletons)",
        home="https://github.com/Uason-Chen/CTR-GCN",
        hyperparameters=_PREPARATION,
    ),
    DatasetSpec(
        name="ntu-rgbd",
        summary="NTU RGB+D, skeletons of up to two persons, the training part of the cross-subject protocol: 25 joints, the first classes "
        f"of {NTU_CLASSES} (6,667 sequences in 10). No official split. Not downloadable: the prepared npz, or raw .skeleton files (keys "
        "`subject`, `view`, `episode`).",
        citation=Citation(
            authors=("Shahroudy", "Liu", "Ng", "Wang"),
            title="NTU RGB+D: A Large Scale Dataset for 3D Human Activity Analysis",
            year=2016,
            booktitle="CVPR",
            arxiv="1604.02808",
        ),
        factory="cglsuite_skeleton.datasets.ntu_rgbd:ntu_rgbd",
        levels=("GC",),
        licence="academic use on request (ROSE Lab, see the home page)",
        home="https://rose1.ntu.edu.sg/dataset/actionRecognition/",
        hyperparameters=(
            replace(_FRAMES, default=300),
            replace(_AUGMENTATION, default="none"),
            _MAX_ANGLE,
            Hyperparameter(
                name="classes",
                default=10,
                minimum=1,
                maximum=NTU_CLASSES,
                doc="number of classes to use, starting with the first",
                effect="more classes: more tasks, or larger ones",
            ),
            Hyperparameter(
                name="source",
                default="prepared",
                choices=("prepared", "raw"),
                doc="prepared = NTU60_CS.npz as shared in the skeleton-based literature (denoised, centred, padded to 300 frames); raw = "
                ".skeleton files, the two persons who move most",
                effect="prepared: sequences are cleaned and results comparable with the literature; raw: noise and spurious persons stay",
            ),
        ),
    ),
    DatasetSpec(
        name="synthetic-motion",
        summary="Embedded: motions of one person on any layout, a sum of harmonics per joint and class, with variable length, tempo, size, "
        "heading and noise. No official split.",
        citation="Embedded generator of this package",
        factory="cglsuite_skeleton.datasets.synthetic:synthetic_motion",
        levels=("GC",),
        licence="Apache-2.0 (generated by this package)",
        embedded=True,
        hyperparameters=MOTION_HYPERPARAMETERS,
    ),
)
