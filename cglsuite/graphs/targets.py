"""A graph of nodes with real-valued targets (node regression)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cglsuite.graphs.data import NodeData, check_label_form


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeTargetData(NodeData):
    """Node data whose labels are real numbers.

    Args:
        y: float32 [N, C], the targets of every node, in the dataset's unit.
        n_classes: number of targets C.

    Raises:
        DataError: as for :class:`cglsuite.graphs.NodeData`, or a target is NaN or infinite.
    """

    def __post_init__(self) -> None:
        check_label_form(self.name, self.y, self.n_classes, real=True)
        unlabelled = torch.full((len(self.y),), -1)
        NodeData(**vars(self) | {"y": unlabelled})  # checks everything but the targets

    def __repr__(self) -> str:
        return super().__repr__().replace("NodeData", "NodeTargetData", 1).replace(" classes", " targets", 1)

    @property
    def multi_label(self) -> bool:
        """Always false: targets are real numbers."""
        return False
