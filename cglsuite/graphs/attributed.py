"""Node-level datasets with a text for every node, and their features once the texts are encoded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from cglsuite.base.errors import DataError
from cglsuite.graphs.data import NodeData


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributedNodeData(NodeData):
    """A node-level dataset with texts. Like labels, texts are never passed to methods, only vectors of them.

    Args:
        text: one text per node.

    Raises:
        DataError: as for :class:`cglsuite.graphs.NodeData`, or the number of texts is not that of the nodes.
    """

    text: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.text) != self.n_nodes:
            raise DataError(f"{self.name}: {len(self.text):,} texts for {self.n_nodes:,} nodes; expected one per node")


def encoded(data: AttributedNodeData, vectors: Any) -> NodeData:
    """Return a dataset with ``vectors`` (float16 [N, d], NumPy or scipy.sparse) as float32 features, and without its texts."""
    if hasattr(vectors, "tocsr"):
        vectors.sort_indices()
        parts = (torch.from_numpy(vectors.indptr.astype(np.int64)), torch.from_numpy(vectors.indices.astype(np.int64)))
        x = torch.sparse_csr_tensor(*parts, torch.from_numpy(vectors.data.astype(np.float32)), vectors.shape, check_invariants=True)
    else:
        x = torch.from_numpy(vectors.astype(np.float32))
    return NodeData(**{field.name: getattr(data, field.name) for field in fields(NodeData)} | {"x": x})
