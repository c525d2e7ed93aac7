"""SGC: softmax regression on propagated features."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.nn import functional

from cglsuite.backbones.base import Backbone
from cglsuite.backbones.units import Units
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphSet, MessageGraph

_KEPT: WeakKeyDictionary[MessageGraph | GraphSet, dict[tuple[int, bool], Tensor]] = WeakKeyDictionary()
"""Embeddings by graph, hops and normalisation: no parameter changes them."""


class SGC(Backbone):
    """``z = W h + b``, where h is a row of S^kX (Wu et al. 2019), ``S = D^-1/2 (A + I) D^-1/2``; for a graph, h is the mean over its nodes.

    Args:
        in_features: F. outputs: C.
        hops: k. normalisation: ``unit`` scales rows h to length 1, ``none`` leaves them.
    """

    def __init__(self, in_features: int, outputs: int, *, hops: int, normalisation: str) -> None:
        super().__init__()
        self.head = nn.Linear(in_features, outputs)
        self._hops, self.unit = hops, normalisation == "unit"

    @property
    def hops(self) -> int:
        """k."""
        return self._hops

    def units(self) -> tuple[Units, ...]:
        """None.

        Raises:
            NotApplicable: always.
        """
        raise NotApplicable("sgc has no hidden units: choose a backbone with hidden layers, such as gcn")

    def encode(self, graph: MessageGraph | GraphSet) -> Tensor:
        """Compute S^kX of all nodes, or its mean over the nodes of each graph, once per graph: float32 [N, F]."""
        kept = _KEPT.setdefault(graph, {})
        if (rows := kept.get((self._hops, self.unit))) is None:
            rows = graph.dense
            for _ in range(self._hops):
                rows = graph.propagate("sym", rows)
            if isinstance(graph, GraphSet):
                rows = graph.pool(rows, "mean")
            if self.unit:
                rows = functional.normalize(rows, dim=1)
            if not rows.requires_grad:  # features that are learnt change
                kept[self._hops, self.unit] = rows
        return rows
