"""InfoGraph: learn node embeddings that identify the graph a node belongs to."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from cglsuite.learning import Pretraining
from cglsuite.streams import Batch


class _Feedforward(nn.Module):
    """Three linear maps with ReLUs between them, plus a linear shortcut: float32 [n, in] to [n, out]."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(width, out), nn.ReLU(), nn.Linear(out, out), nn.ReLU(), nn.Linear(out, out))
        self.shortcut = nn.Linear(width, out)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network: float32 [n, in] to [n, out]."""
        out: Tensor = self.deep(x) + self.shortcut(x)
        return out


class InfoGraph(Pretraining):
    """Train the model so that the parts of a graph identify the graph they come from (Sun et al., ICLR 2020).

    Maximises the Jensen-Shannon estimate of the mutual information between graphs and nodes in the form in which the model pools them. The
    loss is ``E₋ − E₊`` with ``E₊ = log 2 − softplus(−s)`` over nodes and their own graph and ``E₋ = softplus(−s) + s − log 2`` over nodes
    and other graphs, where s is the inner product of the two after feed-forward networks. With ``as_begin``, only the nodes pass through
    such a network, as in BeGin. The paper concatenates the node embeddings of all layers; here, only those of the last layer are used.
    """

    def setup(self) -> None:
        """Initialise the networks."""
        self.model.eval()
        with torch.no_grad():
            nodes, _, graphs = self.items.parts(self.model, self.context.example)
        self.model.train()
        self.local = _Feedforward(nodes.shape[1], graphs.shape[1])
        self.whole = nn.Identity() if self.hyperparameters["as_begin"] else _Feedforward(graphs.shape[1], graphs.shape[1])

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss ``E₋ − E₊`` on a batch, or 0 for a single graph."""
        nodes, graph_of, graphs = self.items.parts(self.model, batch)
        score: Tensor = self.local(nodes) @ self.whole(graphs).T
        own = score.gather(1, graph_of.unsqueeze(1))
        if score.shape[1] < 2:
            return 0.0 * score.sum()
        right = (math.log(2) - functional.softplus(-own)).mean()
        terms = functional.softplus(-score) + score - math.log(2)
        wrong = (terms.sum() - terms.gather(1, graph_of.unsqueeze(1)).sum()) / (score.shape[0] * (score.shape[1] - 1))
        return wrong - right
