"""The backbone specs of this package. This module does not import torch."""

from __future__ import annotations

from cglsuite import BackboneSpec, Hyperparameter
from cglsuite.specs import Citation

_SIZE = (
    Hyperparameter(
        name="layers",
        default=2,
        minimum=1,
        maximum=1_000,
        doc="number of blocks; ignored with deep = full",
        effect="more blocks: a larger receptive field over bones (one per hop and block) and frames; time grows in proportion",
    ),
    Hyperparameter(
        name="width",
        default=64,
        minimum=1,
        maximum=65_536,
        doc="channels of every block; ignored with deep = full",
        effect="more channels: more capacity to separate tasks; time grows quadratically, memory linearly",
    ),
    Hyperparameter(
        name="deep",
        default="none",
        choices=("none", "full"),
        doc="full: the paper's ten blocks, 64 channels four times, 128 and 256 three times each, frames halved at blocks 5 and 8",
        effect="full: about 3 million parameters instead of 0.1 million for two blocks of 64, and many times their training time",
    ),
)
_SPACE = (
    Hyperparameter(
        name="layout",
        default="nw-ucla",
        doc="the skeleton: nw-ucla, ntu-rgbd, openpose-18, or an edge list such as 0-1,1-2,2-3;centre=1 (0-based joints)",
        effect="defines which joints exchange messages; it must have the same number of joints as the dataset's skeletons",
    ),
    Hyperparameter(
        name="channels",
        default=3,
        minimum=1,
        maximum=65_536,
        doc="coordinates per joint and frame",
        effect="determined by the data; a wrong number is an error",
    ),
    Hyperparameter(
        name="partition",
        default="spatial",
        choices=("uniform", "distance", "spatial", "spatial-truncated"),
        doc="subsets of a joint's neighbours, each with separate weights: all together; by distance; itself, those farther from the "
        "centre and those closer to it (truncated: as in the paper's code, bones beyond max_hop from the centre have no direction)",
        effect="more subsets separate more motions (in the paper spatial > distance > uniform), with more weights to overwrite",
    ),
    Hyperparameter(
        name="max_hop",
        default=1,
        minimum=1,
        maximum=1_000,
        doc="radius of one convolution, in bones",
        effect="larger: joints see farther joints at once, and each one counts less",
    ),
    Hyperparameter(
        name="edge_importance",
        default=True,
        doc="a learnt factor for every pair of neighbours in every block",
        effect="true: blocks learn which bones matter; all tasks share these few parameters, and the latest task sets them",
    ),
)
_TIME = (
    Hyperparameter(
        name="temporal_kernel",
        default=9,
        minimum=1,
        maximum=1_000,
        doc="kernel size of the temporal convolution in frames, an odd number",
        effect="longer kernels capture slower motions; time grows in proportion",
    ),
    Hyperparameter(
        name="dropout",
        default=0.0,
        minimum=0,
        maximum=0.99,
        doc="dropout at the end of each block, before its residual",
        effect="more dropout: less overfitting to a task's sequences, and usually less forgetting",
    ),
    Hyperparameter(
        name="residual",
        default=True,
        doc="adds each block's input to its output, except in the first block (a linear map with batch norm where the shape changes)",
        effect="true: necessary to train deep stacks; little effect with two blocks",
    ),
)


def backbones() -> list[BackboneSpec]:
    """Return the specs of ST-GCN."""
    return [
        BackboneSpec(
            name="st-gcn",
            summary="spatial-temporal graph convolutional network over joints and frames",
            citation=Citation(
                authors=("Yan", "Xiong", "Lin"),
                title="Spatial Temporal Graph Convolutional Networks for Skeleton-Based Action Recognition",
                year=2018,
                booktitle="AAAI",
            ),
            factory="cglsuite_skeleton.stgcn:st_gcn",
            levels=("GC",),
            hyperparameters=(*_SPACE, *_SIZE, *_TIME),
        )
    ]
