"""The model protocol: encode a message graph, read items out, and say which parameters are body, norm and head."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from cglsuite.graphs import MessageGraph

__all__ = ["Backbone"]


class Backbone(nn.Module):
    """A body that encodes nodes and a head that turns encodings into outputs.

    Subclasses set ``self.head`` and implement :meth:`encode`; heads that themselves pass messages override :meth:`readout`.
    """

    head: nn.Module

    def encode(self, graph: MessageGraph) -> Tensor:
        """Embeddings of all nodes: float32 [N, d]."""
        raise NotImplementedError(f"{type(self).__name__} must implement encode(graph)")

    def readout(self, hidden: Tensor, graph: MessageGraph, ids: Tensor | None) -> Tensor:
        """Outputs of the items ``ids`` (int64 [n]; ``None`` = all nodes) from all embeddings: float32 [n, C]."""
        out: Tensor = self.head(hidden if ids is None else hidden[ids])
        return out

    def forward(self, graph: MessageGraph, ids: Tensor | None = None) -> Tensor:
        """float32 [n, C]: one output per global class for the items ``ids`` (``None`` = all nodes)."""
        return self.readout(self.encode(graph), graph, ids)

    def tagged_parameters(self) -> Iterator[tuple[str, str, nn.Parameter]]:
        """(tag, name, parameter) with tag ``head``, ``norm`` or ``body``."""
        norms = {n for n, m in self.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm | nn.LayerNorm)}
        for name, parameter in self.named_parameters():
            tag = "head" if name.startswith("head.") else "norm" if name.rpartition(".")[0] in norms else "body"
            yield tag, name, parameter
