"""The message graph used for scoring pairs in link prediction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import scipy.sparse
import torch
from torch import Tensor

from cglsuite.graphs.message import MessageGraph
from cglsuite.graphs.splits.negatives import by_type, pair_keys, random_destinations
from cglsuite.graphs.upload import uploaded

DEGREE_FEATURES = {"degrees": 2, "log-degrees": 3}
"""Number of node features that :func:`degree_features` computes, by kind."""


def degree_features(edge_index: Tensor, n_nodes: int, kind: str) -> Tensor:
    """Compute node features from the degrees in ``edges`` (int64 [2, E]), counting parallel edges separately: float32 [N, 2 or 3].

    Args:
        kind: ``degrees``: ``[in-degree, out-degree]``; ``log-degrees``: ``[1, log(1 + in-degree), log(1 + out-degree)]``.
    """
    source, target = (torch.bincount(ends, minlength=n_nodes).float() for ends in edge_index)
    if kind == "degrees":
        return torch.stack([target, source], dim=1)
    return torch.stack([torch.ones_like(source), target.log1p(), source.log1p()], dim=1)


class LinkGraph(MessageGraph):
    """A message graph that also determines how negative pairs are drawn and which edges a training step sees.

    The only links that it contains are those that carry messages.

    Args:
        x: float32 [N, F] or SciPy CSR. edge_index: int64 [2, E].
        types: int64 [N], node types. A negative pair replaces a link's destination with a node of the same type.
        undirected: whether every edge is listed in both directions.
        hides_targets: whether a training step removes the links to be predicted from the graph (``scenario.exclude_targets``).
        counted: bool [N], the nodes that use their degrees in this graph as features; ``None`` = none.
        kind: the kind of these features, see :func:`degree_features`.
    """

    def __init__(
        self,
        x: Tensor | scipy.sparse.csr_matrix,
        edge_index: Tensor,
        device: str | torch.device = "cpu",
        *,
        types: Tensor,
        undirected: bool = True,
        hides_targets: bool = False,
        counted: Tensor | None = None,
        kind: str = "degrees",
    ) -> None:
        super().__init__(x, edge_index, device)
        self._describe(types, undirected, hides_targets, counted, kind)

    def _describe(self, types: Tensor, undirected: bool, hides_targets: bool, counted: Tensor | None, kind: str) -> None:
        self.types, self.undirected, self.hides_targets, self.kind = uploaded(types, self.device), undirected, hides_targets, kind
        self.counted = None if counted is None else uploaded(counted, self.device)

    @cached_property
    def _grouped(self) -> tuple[Tensor, Tensor, Tensor]:
        return by_type(self.types)

    def destinations(self, nodes: Tensor, generator: torch.Generator) -> Tensor:
        """Draw a random node of the same type for each node in ``of`` (int64 [n]); the pair may be a link: int64 [n]."""
        return random_destinations(nodes, self.types, generator, self._grouped)

    def in_step(self, pairs: Tensor) -> LinkGraph:
        """Return the graph for a training step that predicts ``pairs`` (int64 [n, 2]).

        If targets are hidden, these edges are removed and degrees are recounted; otherwise the graph itself is returned.
        """
        if not self.hides_targets:
            return self
        hidden = pair_keys(pairs.T, self.n_nodes, self.undirected)
        kept = self.edge_index[:, ~torch.isin(pair_keys(self.edge_index, self.n_nodes, self.undirected), hidden)]
        made = LinkGraph.__new__(LinkGraph)
        made.features, made._edges, made.device, made._operators = self.features, kept, self.device, {}
        made._describe(self.types, self.undirected, True, self.counted, self.kind)
        if self.counted is not None and isinstance(self.features, Tensor):
            made.features = torch.where(self.counted.unsqueeze(1), degree_features(kept, self.n_nodes, self.kind), self.features)
        return made

    @classmethod
    def joined(cls, union: MessageGraph, parts: Sequence[LinkGraph]) -> LinkGraph:
        """Convert ``union``, the disjoint union of ``parts``, to a link graph. Node types of different parts remain distinct."""
        made = cls.__new__(cls)
        vars(made).update(vars(union))
        widths = torch.tensor([0, *(int(p.types.max()) + 1 for p in parts[:-1])]).cumsum(0)
        counted = [torch.zeros_like(p.types, dtype=torch.bool) if p.counted is None else p.counted for p in parts]
        kinds = [p.kind for p in parts if p.counted is not None]  # all parts agree: they come from one stream
        made._describe(
            torch.cat([p.types + int(w) for p, w in zip(parts, widths, strict=True)]),
            parts[0].undirected,
            any(p.hides_targets for p in parts),
            torch.cat(counted) if kinds else None,
            kinds[0] if kinds else parts[0].kind,
        )
        return made
