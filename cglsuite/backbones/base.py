"""The base class of models, which encode a graph or a set of graphs and compute outputs for items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from cglsuite.backbones.units import Units
from cglsuite.base.errors import NotApplicable
from cglsuite.graphs import GraphSet, MessageGraph


class Backbone(nn.Module):
    """Base class for models, which consist of a body that encodes items and a head that maps embeddings to outputs.

    Depending on the problem level, ``graph`` is a message graph whose nodes are encoded, or a set of graphs, each with one embedding.
    Subclasses set ``self.head`` and implement :meth:`encode`. If the head itself passes messages, override :meth:`readout`. If the backbone
    can compute how much attention a node pays to each of its neighbours, implement :meth:`edge_attention`.
    """

    head: nn.Module
    gates: dict[str, Tensor]
    """Factors that scale hidden units, by the name of the units (:class:`cglsuite.backbones.Units`): float32 [width].

    They are applied after activation and dropout. Units without an entry are not scaled. Gates are set temporarily for a computation and
    are not part of the model's state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gates = {}

    def units(self) -> tuple[Units, ...]:
        """Return the hidden units, in order from the input, with the parameters that write and read them.

        Raises:
            NotApplicable: if the backbone does not implement this, or its units depend on each other.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} does not name its units: implement units() and apply gated() in encode(), or choose a "
            "built-in one"
        )

    def gated(self, name: str, hidden: Tensor) -> Tensor:
        """Scale ``hidden`` (float32 [..., width]) by the gate called ``name``, if it is set."""
        gate = self.gates.get(name)
        return hidden if gate is None else hidden * gate

    @property
    def hops(self) -> int | None:
        """The number of hops over which messages reach an output, or ``None`` if unknown."""
        return None

    def encode(self, graph: Any) -> Tensor:
        """Compute the embeddings of all nodes in a message graph, or of all graphs in a set: float32 [N, d]."""
        raise NotImplementedError(f"{type(self).__name__} must implement encode(graph)")

    def readout(self, hidden: Tensor, graph: Any, ids: Tensor | None) -> Tensor:
        """Compute the outputs for the items ``ids`` (int64 [n]; ``None`` = all) from the embeddings: float32 [n, C]."""
        out: Tensor = self.head(hidden if ids is None else hidden[ids])
        return out

    def forward(self, graph: MessageGraph | GraphSet, ids: Tensor | None = None) -> Tensor:
        """Compute the outputs, one per global class, for the items ``ids`` (``None`` = all): float32 [n, C]."""
        return self.readout(self.encode(graph), graph, ids)

    def edge_attention(self, graph: Any) -> Tensor:
        """Compute each node's attention over its in-neighbours and itself in the first message-passing layer.

        It is differentiable and computed without dropout. :meth:`encode` does not compute it.

        Returns:
            float32 [E', heads], one row per column of ``graph.edges_with_loops``. For each head, the rows with the same target sum to 1.

        Raises:
            NotApplicable: if the backbone does not implement this.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} does not compute attention over edges: implement edge_attention(graph), or choose a "
            "backbone that does (gcn, gat and gin for nodes, graph-gcn for graphs)"
        )

    def edge_attention_from(self, graph: Any, embeddings: str) -> Tensor:
        """Compute the attention of :meth:`edge_attention` from different node embeddings, as some published implementations do.

        Args:
            embeddings: ``propagated`` = the output of the first layer; ``degree-normalised`` = the messages it sends, scaled by 1/√degree.

        Raises:
            NotApplicable: if the backbone does not implement this.
        """
        raise NotApplicable(
            f"the backbone {type(self).__name__} cannot compute attention from {embeddings} embeddings; choose the backbone 'gcn', "
            "'gat' or 'link-gcn'"
        )

    def tagged_parameters(self) -> Iterator[tuple[str, str, nn.Parameter]]:
        """Iterate over all parameters as (tag, name, parameter), where the tag is ``head``, ``norm`` or ``body``."""
        norms = {n for n, m in self.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm | nn.LayerNorm)}
        for name, parameter in self.named_parameters():
            tag = "head" if name.startswith("head.") else "norm" if name.rpartition(".")[0] in norms else "body"
            yield tag, name, parameter
