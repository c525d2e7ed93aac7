"""The model protocol: encode a graph or set of graphs, read out items, and tag parameters as body, norm and head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from cglsuite.backbones.units import Units
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphSet, MessageGraph


class Backbone(nn.Module):
    """Base class of models: a body that encodes items, and a head that maps encodings to outputs.

    The problem's level determines ``graph``: one message graph whose nodes are encoded, or a set of graphs with one encoding each.
    Subclasses set ``self.head`` and implement :meth:`encode`; heads that themselves pass messages override :meth:`readout`, and backbones
    that can say how much a node listens to each of its neighbours implement :meth:`edge_attention`.
    """

    head: nn.Module
    gates: dict[str, Tensor]
    """Factors of hidden units by the name of their :class:`cglsuite.backbones.Units`: float32 [width], applied after activation and
    dropout; without an entry units are as computed. Gates are set for a computation and are no state of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = {}

    def units(self) -> tuple[Units, ...]:
        """Return the hidden units, in order from the input, with the parameters that write and read them.

        Raises:
            NotApplicable: the backbone does not implement this, or its units depend on each other.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} does not name its units: implement units() and apply gated() in encode(), or choose a "
            "built-in one"
        )

    def gated(self, name: str, hidden: Tensor) -> Tensor:
        """Scale ``hidden`` (float32 [..., width]) by the gate ``name``, if there is one."""
        gate = self.gates.get(name)
        return hidden if gate is None else hidden * gate

    @property
    def hops(self) -> int | None:
        """The number of hops over which an output receives messages; ``None`` if unknown."""
        return None

    def encode(self, graph: Any) -> Tensor:
        """Compute the embeddings of all nodes of a message graph, or of all graphs of a set: float32 [N, d]."""
        raise NotImplementedError(f"{type(self).__name__} must implement encode(graph)")

    def readout(self, hidden: Tensor, graph: Any, ids: Tensor | None) -> Tensor:
        """Compute the outputs of the items ``ids`` (int64 [n]; ``None`` = all) from all embeddings: float32 [n, C]."""
        out: Tensor = self.head(hidden if ids is None else hidden[ids])
        return out

    def forward(self, graph: MessageGraph | GraphSet, ids: Tensor | None = None) -> Tensor:
        """Compute one output per global class for the items ``ids`` (``None`` = all): float32 [n, C]."""
        return self.readout(self.encode(graph), graph, ids)

    def edge_attention(self, graph: Any) -> Tensor:
        """Compute the attention of each node over its in-neighbours and itself in the first message-passing layer.

        It is computed on demand, without dropout, and is differentiable; :meth:`encode` does not compute it.

        Returns:
            float32 [E', heads], one row per column of ``graph.edges_with_loops``; the rows of a target sum to 1 in every column.

        Raises:
            NotApplicable: the backbone does not implement this.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} has no attention over edges: implement edge_attention(graph), or choose one that offers "
            "it (gcn, gat and gin for nodes, graph-gcn for graphs)"
        )

    def edge_attention_from(self, graph: Any, embeddings: str) -> Tensor:
        """Like :meth:`edge_attention`, computed from other embeddings of the nodes, as published implementations do.

        Args:
            embeddings: ``propagated`` = the output of the first layer; ``degree-normalised`` = what it sends, scaled by 1/√degree.

        Raises:
            NotApplicable: the backbone does not implement this.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} has no attention from {embeddings} embeddings; expected gcn, gat or link-gcn"
        )

    def tagged_parameters(self) -> Iterator[tuple[str, str, nn.Parameter]]:
        """Iterate over (tag, name, parameter), where the tag is ``head``, ``norm`` or ``body``."""
        norms = {n for n, m in self.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm | nn.LayerNorm)}
        for name, parameter in self.named_parameters():
            tag = "head" if name.startswith("head.") else "norm" if name.rpartition(".")[0] in norms else "body"
            yield tag, name, parameter
