"""GRACE: contrastive learning between two views of a graph with dropped edges and features."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.graphs import MessageGraph, SparseMatrix, replaced, uploaded
from cglsuite.learning import Pretraining
from cglsuite.streams import Batch


class GRACE(Pretraining):
    """Bring the embeddings of an item in two views of the graph, with edges and features dropped, closer together and push all other items
    of both views away (Zhu et al., Deep Graph Contrastive Representation Learning, ICML workshop GRL+ 2020).

    With projections u_i and v_i of item i in the two views, the cosine similarity s and τ = ``temperature``,

        ℓ(u_i, v_i) = -log e^{s(u_i, v_i)/τ} / ( Σ_k e^{s(u_i, v_k)/τ} + Σ_{k≠i} e^{s(u_i, u_k)/τ} ),

    and the loss is the mean of ``(ℓ(u_i, v_i) + ℓ(v_i, u_i)) / 2`` over at most ``items`` items per step. A view drops each edge with
    probability ``edges`` and each feature, for all nodes at once, with probability ``features``. The projection is linear, ELU, linear, as
    in the authors' code.

    The paper uses different rates for the two views and tunes them per dataset; here both views have the same rates. Its negatives are all
    nodes; here they are the items drawn for the step. ``as_tpp``: one view is the graph itself, as in the code of Task Profiling and
    Prompting, and the projection is twice as wide.
    """

    def setup(self) -> None:
        """Initialise the projection."""
        width = self.width()
        hidden = width * (2 if self.hyperparameters["as_tpp"] else 1)
        self.projection = nn.Sequential(nn.Linear(width, hidden), nn.ELU(), nn.Linear(hidden, width))

    def loss(self, batch: Batch) -> Tensor:
        """Compute the contrastive loss between two views of a batch."""
        chosen = self.items.chosen(len(batch), self.hyperparameters["items"], self.generator)
        one = batch if self.hyperparameters["as_tpp"] else self._view(batch)
        u, v = (self.projection(self.items.embed(self.model, view)[chosen]) for view in (one, self._view(batch)))
        return node_contrast(u, v, self.hyperparameters["temperature"])

    def _view(self, batch: Batch) -> Batch:
        """The same items in a graph with dropped edges and features."""
        values = self.hyperparameters
        return replace(batch, graph=thinned(batch.graph, values["edges"], values["features"], self.generator), cache={})


def thinned(graph: MessageGraph, edges: float, features: float, generator: torch.Generator) -> MessageGraph:
    """Drop a random share of the edges of a graph, and set a random share of the features to 0 in all nodes.

    Args:
        edges, features: probabilities, in [0, 1), with which each is left out. generator: on the CPU.
    """
    x, index = graph.features, graph.edge_index
    stays = uploaded(torch.rand(index.shape[1], generator=generator) >= edges, index.device)
    kept = uploaded((torch.rand(graph.n_features, generator=generator) >= features).float(), graph.device)
    thinner = x.with_values(x.values * kept[x.csr.col_indices()]) if isinstance(x, SparseMatrix) else x * kept
    made: MessageGraph = replaced(MessageGraph(x, index[:, stays], graph.device), thinner)
    return made


def node_contrast(u: Tensor, v: Tensor, temperature: float) -> Tensor:
    """Compute the objective of GRACE for the same n items in two views, both float32 [n, d]: a scalar."""
    u, v = functional.normalize(u, dim=1), functional.normalize(v, dim=1)
    between = u @ v.T / temperature
    itself = torch.eye(len(u), dtype=torch.bool, device=u.device)

    def one_way(own: Tensor, other: Tensor) -> Tensor:
        within = (own @ own.T / temperature).masked_fill(itself, -torch.inf)
        return torch.cat([other, within], dim=1).logsumexp(dim=1) - other.diagonal()

    return (one_way(u, between) + one_way(v, between.T)).mean() / 2
