"""SGC: logistic regression on propagated features."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.units import Units
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphSet, MessageGraph

_KEPT: WeakKeyDictionary[MessageGraph | GraphSet, dict[tuple[int, bool], Tensor]] = WeakKeyDictionary()
"""Cached embeddings by graph, hops and normalisation. They do not depend on any parameters."""


class SGC(Backbone):
    """Simplified graph convolution (Wu et al. 2019): ``z = W h + b``, where h is a row of S^k X with ``S = D^-1/2 (A + I) D^-1/2``.

    For whole graphs, h is the mean over the nodes of a graph.

    Args:
        in_features: number of node features F. outputs: number of outputs C.
        hops: the number of hops k. normalisation: ``unit`` scales each row h to length 1, ``none`` does not.
    """

    def __init__(self, in_features: int, outputs: int, *, hops: int, normalisation: str) -> None:
        super().__init__()
        self.head = nn.Linear(in_features, outputs)
        self._hops, self.unit = hops, normalisation == "unit"

    @property
    def hops(self) -> int:
        """The number of hops k."""
        return self._hops

    def units(self) -> tuple[Units, ...]:
        """Raise an error, since SGC has no hidden units.

        Raises:
            NotApplicable: always.
        """
        raise NotApplicable("sgc has no hidden units: choose a backbone with hidden layers, such as gcn")

    def encode(self, graph: MessageGraph | GraphSet) -> Tensor:
        """Compute the rows of S^k X for all nodes, or their mean over the nodes of each graph: float32 [N, F]. The result is cached."""
        kept = _KEPT.setdefault(graph, {})
        if (rows := kept.get((self._hops, self.unit))) is None:
            rows = graph.dense
            for _ in range(self._hops):
                rows = graph.propagate("sym", rows)
            if isinstance(graph, GraphSet):
                rows = graph.pool(rows, "mean")
            if self.unit:
                rows = functional.normalize(rows, dim=1)
            if not rows.requires_grad:  # learnt features would change
                kept[self._hops, self.unit] = rows
        return rows
